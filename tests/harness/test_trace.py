"""Timelines: what strace writes, what is made of it, and a whole recording of a small server."""

import sys
from pathlib import Path

import pytest

from quest.ground.errors import RepetitionError, Unsupported
from quest.measure import needs, strace, timeline, trace
from quest.measure.records import Repetition
from quest.measure.scene import Visit
from quest.measure.strace import Call, End
from quest.report.tsv import timeline_tables
from tests.harness.made_up import BENCHMARKS

TO_A = "4<TCP:[127.0.0.1:80->127.0.0.1:1001]>"
TO_B = "5<TCP:[127.0.0.1:80->127.0.0.1:1002]>"
LISTENING = "3<TCP:[127.0.0.1:80]>"


# ---- what strace writes --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "events"),
    [
        (f"100.500000 close({TO_A}) = 0 <0.250000>", [Call(12, "close", TO_A, "0", 100.5, 100.75)]),
        # a result with words, and a string that looks like a result
        ('1.0 sendto(4, ") = 9 <1.0>"..., 60, 0) = -1 EAGAIN (Try) <0.500000>',
         [Call(12, "sendto", '4, ") = 9 <1.0>"..., 60, 0', "-1 EAGAIN (Try)", 1.0, 1.5)]),
        ("5.0 accept4(3, 0) = ? ERESTARTSYS (To be restarted) <0.250000>",
         [Call(12, "accept4", "3, 0", "? ERESTARTSYS (To be restarted)", 5.0, 5.25)]),
        ("1.0 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=2} ---\n"
         "2.0 exit_group(0) = ?\n"
         "2.1 +++ exited with 0 +++",
         [Call(12, "exit_group", "0", "?", 2.0, None), End(12, 2.1)]),
        ("3.0 +++ killed by SIGABRT (core dumped) +++", [End(12, 3.0)]),
        # calls that never return
        ("1.0 read(4,  <unfinished ...>\n2.0 +++ killed by SIGKILL +++",
         [Call(12, "read", "4,", "", 1.0, None), End(12, 2.0)]),
        ("1.0 read(4, <unfinished ...>) = ?",
         [Call(12, "read", "4, <unfinished ...>", "?", 1.0, None)]),
        ("1.0 ???( <unfinished ...>", [Call(12, "???", "", "", 1.0, None)]),
    ],
)  # fmt: skip
def test_what_strace_writes_is_read(text: str, events: list[strace.Event]) -> None:
    assert strace.parse({12: text.splitlines()}) == events


@pytest.mark.parametrize("line", ["nonsense", "abc close(3) = 0", "1.0 ???"])
def test_what_is_not_understood_is_refused_with_its_line(line: str) -> None:
    with pytest.raises(strace.SyntaxErrorInTrace, match="trace of 1, line 2: "):
        strace.parse({1: ["1.0 close(3) = 0 <0.1>", line]})


# ---- what is made of it --------------------------------------------------------------------------


def visits() -> list[Visit]:
    return [
        Visit("A", 1001, 100.000, 100.000, 100.000, 100.000, 100.004, 100.005),
        Visit("B", 1002, 100.020, 100.021, 100.022, 100.200, 100.300, 100.310),
    ]


FORKING = f"""\
1 99.9 accept4({LISTENING}, NULL, NULL, 0) = {TO_A} <0.100000>
1 100.001 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD) = 2 <0.000300>
1 100.002 close({TO_A}) = 0 <0.000010>
2 100.0025 sendto({TO_A}, ""..., 60, 0, NULL, 0) = 60 <0.000020>
1 100.003 accept4({LISTENING}, NULL, NULL, 0) = ? ERESTARTSYS (To be restarted) <0.003000>
2 100.004 exit_group(0) = ?
2 100.005 +++ exited with 0 +++
1 100.006 --- SIGCHLD {{si_signo=SIGCHLD}} ---
1 100.007 wait4(-1, NULL, WNOHANG, NULL) = 2 <0.000040>
1 100.008 accept4({LISTENING}, NULL, NULL, 0) = {TO_B} <0.012500>
1 100.021 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD) = 3 <0.000300>
1 100.022 close({TO_B}) = 0 <0.000010>
3 100.023 recvfrom({TO_B}, ""..., 100, 0, NULL, NULL) = 10 <0.176000>
3 100.200 +++ exited with 0 +++
1 100.201 accept4({LISTENING}, NULL, NULL, 0 <unfinished ...>
"""


def rows_of(text: str) -> list[tuple[str, str, str, str, str, float, float]]:
    files: dict[int, list[str]] = {}
    for line in text.splitlines():
        pid, _, rest = line.partition(" ")
        files.setdefault(int(pid), []).append(rest)
    found = timeline.rows(strace.parse(files), visits())
    return [(r.kind, r.name, r.state, r.call, r.client, round(r.start, 4), round(r.end, 4)) for r in found]


def test_what_is_before_and_after_the_visits_is_cut() -> None:
    """What ends where the margin before them begins is there with no length."""
    first = 100.0 - timeline.MARGIN_BEFORE_S
    last = 100.310 + timeline.MARGIN_AFTER_S
    events: list[strace.Event] = [
        Call(1, "accept4", "", "5", 90.0, first),
        Call(1, "accept4", "", "6", first, last),
    ]
    found = [row for row in timeline.rows(events, visits()) if row.kind == "task"]
    before, behind = -timeline.MARGIN_BEFORE_S, last - 100.0
    assert [row.call for row in found] == ["accept", "accept"]
    times = [time for row in found for time in (row.start, row.end)]
    assert times == pytest.approx([before, before, before, behind])


def test_a_server_that_forks() -> None:
    rows = rows_of(FORKING)
    # Every task is running or waiting, without gaps; a child is a zombie until it is waited for.
    assert [row[2:] for row in rows if row[:2] == ("task", "main")] == [
        ("waiting", "accept", "", -0.015, 0.0),
        ("running", "", "A", 0.0, 0.002),
        ("running", "", "", 0.002, 0.003),
        ("waiting", "accept", "", 0.003, 0.006),
        ("running", "", "", 0.006, 0.008),
        ("waiting", "accept", "", 0.008, 0.0205),
        ("running", "", "B", 0.0205, 0.022),
        ("running", "", "", 0.022, 0.201),
        ("waiting", "accept", "", 0.201, 0.34),
    ]
    assert [row[2:] for row in rows if row[:2] == ("task", "child 2")] == [
        ("running", "", "B", 0.0213, 0.023),
        ("waiting", "recv", "B", 0.023, 0.199),
        ("running", "", "B", 0.199, 0.2),
        ("ended", "", "", 0.2, 0.2),
    ]
    assert ("task", "child 1", "ended", "", "", 0.005, 0.007) in rows
    # Who was accepted, who made whom, and what the clients did.
    assert [(r[1], r[4], r[5]) for r in rows if r[0] == "accept"] == [
        ("main", "A", 0.0),
        ("main", "B", 0.0205),
    ]
    assert [r[1:5] for r in rows if r[0] == "spawn"] == [
        ("child 1", "main", "fork", "A"),
        ("child 2", "main", "fork", "B"),
    ]
    assert [row[1:3] + row[5:] for row in rows if row[0] == "client"] == [
        ("A", "waiting", 0.0, 0.004),
        ("A", "receiving", 0.004, 0.005),
        ("B", "connecting", 0.02, 0.021),
        ("B", "pausing", 0.022, 0.2),
        ("B", "waiting", 0.2, 0.3),
        ("B", "receiving", 0.3, 0.31),
    ]


def test_children_are_numbered_in_the_order_in_which_they_were_made() -> None:
    """Not in that in which they first ran, which is the scheduler's."""
    lines = FORKING.splitlines()
    late = [line for line in lines if line.startswith("2 ")]
    later = [line.replace("2 100.00", "2 100.25") for line in late]
    rows = rows_of("\n".join([*(line for line in lines if line not in late), *later]))
    assert [(r[1], r[4]) for r in rows if r[0] == "spawn"] == [("child 1", "A"), ("child 2", "B")]


@pytest.mark.parametrize(("options", "waits"), [("WNOHANG", 0), ("0", 1)])
def test_a_child_that_ends_between_accept_and_fork_changes_no_client(options: str, waits: int) -> None:
    """The handler of SIGCHLD runs there, and its wait4() seems to last while the tracer is busy with other tasks."""
    there = f"1 100.0207 wait4(-1, NULL, {options}, NULL) = 2 <0.000600>\n1 100.021300 clone"
    rows = rows_of(FORKING.replace("1 100.021 clone", there))
    assert [(r[1], r[4]) for r in rows if r[0] == "spawn"] == [("child 1", "A"), ("child 2", "B")]
    assert len([row for row in rows if row[:4] == ("task", "main", "waiting", "waitpid")]) == waits


def test_nobody_is_accepted_before_he_connects() -> None:
    """Where strace was kept waiting between the time and the duration it prints."""
    late = FORKING.replace("1 99.9 accept4", "1 99.898 accept4")
    assert [row[5] for row in rows_of(late) if row[0] == "accept"] == [0.0, 0.0205]


def test_a_thread_is_called_one() -> None:
    text = (
        "1 100.0 clone3({flags=CLONE_VM|CLONE_THREAD} => {parent_tid=[2]}, 88) = 2 <0.0001>\n"
        "2 100.001 futex(0x1, FUTEX_WAIT, 0, NULL) = 0 <0.050000>\n"
    )
    rows = rows_of(text)
    assert ("spawn", "thread 1", "main", "pthread_create", "") in [row[:5] for row in rows]
    assert ("task", "thread 1", "waiting", "futex", "") in [row[:5] for row in rows]


@pytest.mark.parametrize(
    ("call", "waits"),
    [
        (f'recvfrom({TO_A}, ""..., 9, 0, NULL, NULL) = 9 <0.000100>', []),
        (f'recvfrom({TO_A}, ""..., 9, 0, NULL, NULL) = 9 <0.010000>', [("recv", "A")]),
        # Its only descriptor says whom it is for; of several, strace names one that need not be
        # the cause, and of a set all, the listening socket mostly the first.
        (f"poll([{{fd={TO_A}, events=POLLIN}}], 2, -1) = 1 <0.010000>", [("poll", "A")]),
        (f"poll([{{fd={TO_A}, events=POLLIN}}, ...], 2, -1) = 1 <0.010000>", [("poll", "")]),
        (f"pselect6(5, [{TO_A}], [], NULL) = 1 (in [4]) <0.010000>", [("select", "A")]),
        (f"pselect6(5, [{LISTENING} {TO_A}], [], NULL) = 1 (in [4]) <0.010000>",
         [("select", "")]),
    ],
)  # fmt: skip
def test_what_is_waiting_and_for_whom(call: str, waits: list[tuple[str, str]]) -> None:
    rows = rows_of(f"1 100.0 {call}\n")
    assert [row[3:5] for row in rows if row[2] == "waiting" and row[0] == "task"] == waits


def test_one_task_that_turns_from_client_to_client() -> None:
    """What an event loop does: served in one go, told apart all the same."""
    text = (
        "1 99.0 epoll_wait(6, [], 64, -1) = 2 <1.010000>\n"
        f'1 100.011 recvfrom({TO_A}, ""..., 9, 0, NULL, NULL) = 9 <0.00001>\n'
        f'1 100.012 sendto({TO_A}, ""..., 9, 0, NULL, 0) = 9 <0.00001>\n'
        f'1 100.013 recvfrom({TO_B}, ""..., 9, 0, NULL, NULL) = 9 <0.00001>\n'
        "1 100.014 epoll_wait(6, [], 64, -1 <unfinished ...>\n"
    )
    assert [row[2:] for row in rows_of(text) if row[0] == "task"] == [
        ("waiting", "epoll_wait", "", -0.015, 0.01),
        ("running", "", "", 0.01, 0.011),
        ("running", "", "A", 0.011, 0.013),
        ("running", "", "B", 0.013, 0.014),
        ("waiting", "epoll_wait", "", 0.014, 0.34),
    ]


# ---- a whole recording ---------------------------------------------------------------------------

BIN = BENCHMARKS.parent / "build" / "bin"


def record(*command: str | Path) -> Repetition:
    tracing = needs.tracing()
    if not tracing.ok:
        pytest.skip(f"{tracing.reason}: {tracing.remedy}")
    return trace.record([str(word) for word in command], timeout_s=20)


def c_waits_for_b(recording: Repetition) -> bool:
    """Whether client C waited at least half as long as B, which pauses for 250 ms."""
    return recording.scalars["client_c_ms"] > recording.scalars["client_b_ms"] / 2


def test_one_slow_client_stops_an_iterative_server_and_not_a_forking_one(tmp_path: Path) -> None:
    with pytest.raises(RepetitionError, match="client A: expected a page, got b'HTTP/1.1 404"):
        record(BIN / "01-iterative", "-p", "0", tmp_path)
    (tmp_path / "index.html").write_text("hi")
    iterative = record(BIN / "01-iterative", "-p", "0", tmp_path)
    assert c_waits_for_b(iterative)
    assert iterative.scalars["tasks"] == 1
    for _ in range(10):  # a machine with other work may hold up C all by itself
        forking = record(BIN / "02-fork", "-p", "0", tmp_path)
        if not c_waits_for_b(forking):
            break
    assert not c_waits_for_b(forking)
    assert forking.scalars["tasks"] == 5
    columns = (forking.samples[name] for name in ("name", "state", "call", "client"))
    waiting = [row for row in zip(*columns, strict=True) if row[1] == "waiting"]
    assert [row for row in waiting if row[2:] == ("recv", "B") and str(row[0]).startswith("child")]
    assert len({len(column) for column in forking.samples.values()}) == 1

    tables = timeline_tables(forking.samples)
    rows = [line.split("\t") for line in tables["rows.tsv"].splitlines()]
    assert rows[0] == ["y", "kind", "name"]
    names = ["A", "B", "C", "D", "main", "child 1", "child 2", "child 3", "child 4"]
    assert [row[2] for row in rows[1:]] == names
    assert [float(row[0]) for row in rows[1:]] == [10, 9, 8, 7, 5, 4, 3, 2, 1]
    for table in ("bars.tsv", "arrows.tsv"):
        lines = tables[table].splitlines()
        assert len(lines) > 4
        assert {line.count("\t") for line in lines} == {lines[0].count("\t")}


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import sys; sys.exit('toy: bind: no')", "^the server ended with status 1: toy: bind"),
        ("print('hello there', flush=True); input()", 'listening line, but "hello there"'),
    ],
)
def test_no_trace_has_a_reason_of_one_line(program: str, said: str) -> None:
    with pytest.raises(RepetitionError, match=said) as caught:
        record(sys.executable, "-c", program)
    assert "\n" not in str(caught.value)


def test_a_server_this_system_cannot_run_is_no_failure() -> None:
    with pytest.raises(Unsupported, match="needs epoll"):
        record("sh", "-c", "echo needs epoll >&2; exit 77")


def test_forbidden_tracing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "strace"
    fake.write_text("#!/bin/sh\necho 'strace: ptrace: Operation not permitted' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    tracing = needs.tracing()
    assert tracing.reason == "tracing is not allowed: strace: ptrace: Operation not permitted"
    assert tracing.remedy
