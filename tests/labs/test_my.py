"""`make my`: its stages, their checks on servers that have an idea or lack it, and the command.

LAB_RUNS=1 (make test-labs): each of our servers by all stages, against labs/my/matrix.tsv; a quarter of an hour.
Without it: the stage at which the model of each stops, and the one before.
"""

import contextlib
import itertools
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from quest.ground.errors import InputError
from quest.my import commands, judge, stages, work
from quest.my.client import Client, parsed, readable
from quest.my.errors import Failed, Unseen
from quest.my.judge import FAILED, PASSED, UNSEEN, Outcome, check_of, outcomes
from quest.my.server import Server, ended_by, wait_for
from tests.conformance import proc
from tests.conformance.matrix import rows
from tests.conformance.process import Unprivileged
from tests.labs import my_matrix
from tests.labs.my_matrix import MARKS, SERVERS, binary, judged
from tests.place import without_outer_make

TREE = Path(__file__).resolve().parents[2]
FAULTY = Path(__file__).with_name("faulty.py")
RUNS = int(os.environ.get("LAB_RUNS", "0"))
ALL = stages.load()

# ---- the stages


def test_each_stage_has_a_check_and_a_task_of_a_paragraph() -> None:
    assert len(ALL.all) == 29
    for stage in ALL.all:
        assert callable(check_of(stage.check)), stage.name
        assert 40 <= len(stage.task.split()) <= 110, stage.name
        assert (TREE / stage.where.partition(",")[0]).is_file(), stage.read
        assert ("#" in stage.read) == ("," in stage.where), stage.read


def test_some_earlier_stages_end_or_sleep() -> None:
    assert ALL.holds("bounded", "light") and not ALL.holds("bounded", "oneloop")
    assert ALL.holds("patience", "bounded") and not ALL.holds("patience", "slowreaders")
    assert ALL.with_("alarm") == ["patience"]
    assert any("bounded" in line for line in ALL.told("oneloop"))


def test_a_stage_that_breaks_a_later_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "path.toml").write_text('[[part]]\ntitle = "x"\nstages = ["one"]\n')
    text = (stages.FOLDER / "half.toml").read_text()
    (tmp_path / "one.toml").write_text(text.replace("check =", 'breaks = ["later"]\ncheck ='))
    with pytest.raises(InputError, match="later"):
        stages.load(tmp_path)


# ---- our servers

#: Where the model of each stops. `bounded` is left out: a later stage ends it.
STOPS = {
    "01-iterative": "neighbours", "02-fork": "light", "03-prefork": "light", "04-threads": "oneloop",
    "05-pool": "light", "05b-nonblocking": "neighbours", "06-select": "thousand", "07-poll": "flat",
    "08-sigio": "nocopy",
    "09-epoll": "nocopy", "10-kqueue": "nocopy", "11-sendfile": "slowdisk", "12-aio": "nocopy", "13-uring": "nocopy",
    "14-owfat": "slowdisk", "15-slashdot": "", "16-coroutines": "nocopy",
}  # fmt: skip
NAMES = [name for name in ALL.names if name != "bounded"]


def test_the_table_says_where_each_model_stops() -> None:
    table = my_matrix.read()
    assert list(table) == list(SERVERS)
    for server, row in table.items():
        assert list(row) == ALL.names
        assert next((name for name in NAMES if row[name] == "."), "") == STOPS[server], server


def owfat_lacks_sendfile(program: Path) -> bool:
    """Whether libowfat was built without sendfile(2), as that of Debian 13 is (chapters/14-owfat.md): it then sends
    files by mmap() and write(), and the row of the matrix is of the other.
    """
    if not (shutil.which("ldd") and shutil.which("readelf")):
        return False
    linked = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
    library = next((words[2] for line in linked.splitlines() if (words := line.split())[0].startswith("libowfat")), "")
    names = subprocess.run(
        ["readelf", "-W", "--dyn-syms", library or str(program)], capture_output=True, text=True, check=False
    )
    return not re.search(r"UND sendfile(64)?\b", names.stdout)


@pytest.mark.long
@pytest.mark.parametrize("server", rows(SERVERS))
def test_each_of_ours_stops_where_its_model_does(server: str) -> None:
    if not binary(server).exists():
        pytest.skip(f"{server} cannot be built here")
    if server == "14-owfat" and owfat_lacks_sendfile(binary(server)):
        pytest.skip("this libowfat was built without sendfile(2); the matrix is of one that has it")
    stop = NAMES.index(STOPS[server]) if STOPS[server] else len(NAMES)
    names = list(ALL.names) if RUNS else NAMES[stop - 1 : stop + 1]
    wanted = my_matrix.read()[server]
    found = judged(binary(server), names)
    if any(one.how not in MARKS for one in found):
        pytest.skip(next(one.why for one in found if one.how not in MARKS))
    words = {one.stage: one.why for one in found}
    assert {one.stage: MARKS[one.how] for one in found} == {name: wanted[name] for name in names}, words


# ---- a server that grows

PATCHES = Path(__file__).with_name("my.patches")
ONE = re.compile(r"^--- (?P<stage>[a-z]+)/server\.c\n.*?(?=^--- [a-z]+/server\.c\n|\Z)", re.M | re.S)


@pytest.mark.skipif(not RUNS, reason="make test-labs: a minute")
def test_a_server_that_grows_fails_each_stage_and_then_passes_it(tmp_path: Path) -> None:
    for stage in grown(tmp_path / "my"):
        (before,) = outcomes(tmp_path / "my", [stage]) if stage != "hello" else (Outcome(stage, FAILED),)
        assert before.how == FAILED, stage
        apply(tmp_path / "my", stage)
        (after,) = outcomes(tmp_path / "my", [stage])
        assert after.how == PASSED, f"{stage}: {after.why}"


STEPS = {one["stage"]: one[0] for one in ONE.finditer(PATCHES.read_text())}


def grown(folder: Path) -> Iterator[str]:
    """Begins it, and names the stage that comes next; it is the caller that adds that."""
    work.begin(folder)
    yield from STEPS
    assert list(STEPS)[-1] == "full"


def apply(folder: Path, stage: str, build: bool = True) -> None:
    """A stage's patch."""
    subprocess.run(["patch", "-s", "-p1"], cwd=folder, input=STEPS[stage], text=True, check=True)
    if build:
        make(folder)


def make(folder: Path) -> None:
    """The learner's own makefile."""
    subprocess.run(["make", "-s", "-C", folder], env=without_outer_make(), check=True)


#: The server after the last stage, with one mistake: what it says, what it then says, the stage that fails, and a word
#: of its sentence. In C a mistake costs little time, and a check sees less of it than of one in Python.
FAULTS_IN_C = {
    "walk-list": (
        "            if (lists[i].next != &lists[i] && (nearest == 0 || lists[i].next->deadline < nearest))\n"
        "                nearest = lists[i].next->deadline;\n",
        "            for (struct client *o = lists[i].next; o != &lists[i]; o = o->next)\n"
        "                if (nearest == 0 || o->deadline < nearest)\n"
        "                    nearest = o->deadline;\n",
        "flat", "idle clients",
    ),
    "no-turns": ("", "", "turns", "MiB of these came first"),
}  # fmt: skip


TRIES = 3  #: of a check that could not look: it says so, and gives no word


def word_on(folder: Path, stage: str) -> Outcome:
    """What the check of a stage says of the server in that folder; the test is skipped if it could not look."""
    for _ in range(TRIES):
        (found,) = outcomes(folder, [stage])
        if found.how != UNSEEN:
            return found
    pytest.skip(f"a machine too busy to tell: {found.why}")


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS_IN_C)
def test_a_mistake_in_c_fails_its_stage(tmp_path: Path, fault: str) -> None:
    old, new, at, word = FAULTS_IN_C[fault]
    for stage in grown(tmp_path / "my"):
        if stage == at and not old:
            break  # the stages before have the mistake
        apply(tmp_path / "my", stage, build=False)
    source = tmp_path / "my/server.c"
    assert old in source.read_text()
    source.write_text(source.read_text().replace(old, new))
    make(tmp_path / "my")
    found = word_on(tmp_path / "my", at)
    assert found.how == FAILED
    assert word in found.why, found.why


# ---- servers with one mistake


def server(tmp_path: Path, model: str, fault: str) -> Path:
    """A learner's folder with such a server."""
    run = tmp_path / "run"
    run.write_text(f'#!/bin/sh\nexec {sys.executable} -S {FAULTY} {model} {fault} "$@"\n')
    run.chmod(0o755)
    return tmp_path


#: The mistake, the stage that it fails, and a word of its sentence.
FAULTS = (
    ("threads", "length", "hello", "Content-Length says"),
    ("threads", "one-read", "half", "before the empty line"),
    ("threads", "strlen-body", "files", "bin.dat"),
    ("threads", "judge-first", "fence", "%2e%2e"),
    ("threads", "prefix", "fence", "doc-private"),
    ("threads", "fifo", "fence", "FIFO"),
    ("threads", "strlen", "words", "takes a byte zero for the end"),
    ("threads", "head-body", "words", "has a body"),
    ("threads", "keeps", "whole", "you keep"),
    ("threads", "sigpipe", "gone", "SIGPIPE"),
    ("threads", "drain-once", "hangup", "of 300000 bytes came"),
    ("threads", "no-stop", "stop", "was cut at"),
    ("threads", "no-reuse", "stop", "already in use"),
    ("threads", "cut", "stop", "was cut at"),
    ("threads", "one-clock", "patience", "one byte every"),
    ("threads", "fork-then-wait", "neighbours", "client 21"),
    ("threads", "leaks", "tidy", "descriptors"),
    ("threads", "zombies", "tidy", "zombies"),
    ("threads", "one-request", "stay", "request 2"),
    ("threads", "emptied", "inline", "10 requests in one packet"),
    ("threads", "two-sends", "onepacket", "20 packets"),
    ("threads", "shared-variable", "light", "client"),
    ("loop", "busy", "oneloop", "% of a processor"),
    ("loop", "writable", "slowreaders", "% of a processor"),
    ("loop", "looks-around", "alarm", "you woke"),
    ("loop", "edge-once", "inline", "10 requests in one packet"),
    ("loop", "walk", "flat", "idle clients"),
    ("loop", "no-turns", "turns", "MiB of these came first"),
    ("loop", "full-speed", "full", "200 descriptors"),
)


#: Those of which a check takes about a second of the processor or waits for long, and those whose stage another has.
SLOW = (
    "one-clock", "leaks", "zombies", "busy", "looks-around", "walk", "no-turns", "full-speed", "shared-variable",
    "judge-first", "prefix", "head-body", "one-request", "cut", "fork-then-wait", "writable", "keeps",
)  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(
    ("model", "fault", "stage", "word"),
    [pytest.param(*row, marks=[pytest.mark.slow] * (row[1] in SLOW), id=row[1]) for row in FAULTS],
)
def test_a_mistake_fails_its_stage(tmp_path: Path, model: str, fault: str, stage: str, word: str) -> None:
    found = word_on(server(tmp_path, model, fault), stage)
    assert found.how == FAILED, fault
    assert word in found.why, found.why
    assert "\n" not in found.why


@pytest.mark.slow
@pytest.mark.parametrize("model", ["threads", "loop"])
def test_the_same_server_without_a_mistake_passes(tmp_path: Path, model: str) -> None:
    names = {stage for one, _, stage, _ in FAULTS if one == model} | {"inline", "stay"}
    folder = server(tmp_path, model, "none")
    found = outcomes(folder, [name for name in ALL.names if name in names])
    assert [f"{one.stage}: {one.why}" for one in found if one.how != PASSED] == []


def written(tmp_path: Path, code: str, line: str = 'exec {python} -S {server} "$@"') -> Path:
    """A learner's folder with this server in Python; `line`: of `run`."""
    (tmp_path / "server.py").write_text(code)
    run = tmp_path / "run"
    run.write_text(f"#!/bin/sh\n{line.format(python=sys.executable, server=tmp_path / 'server.py')}\n")
    run.chmod(0o755)
    return tmp_path


ANSWERS = """
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[2])))
while True:
    with listener.accept()[0] as c:
        c.recv(65536)
        c.sendall({!r})
"""


@pytest.mark.long
@pytest.mark.parametrize(("first", "length", "how"), [("HTTP/1.1 200", "006", PASSED), ("HTTP 200 OK", "6", FAILED)])
def test_hello_takes_for_a_reply_what_later_stages_do(tmp_path: Path, first: str, length: str, how: str) -> None:
    """No reason, and a length with zeros before it, are legal; a first line without a version is not."""
    reply = f"{first}\r\nContent-Length: {length}\r\n\r\nhello\n".encode()
    (found,) = outcomes(written(tmp_path, ANSWERS.format(reply)), ["hello"])
    assert found.how == how, found.why


@pytest.mark.long
@pytest.mark.parametrize("body", ["", "\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n5\\r\\nnone\\n\\r\\n0"])
def test_what_is_not_there_needs_no_length(tmp_path: Path, body: str) -> None:
    """The connection ends with it, or its chunks tell the end; only of a file the stage wants the length."""
    code = FAULTY.read_text()
    old = 'return head("404 Not Found", len(body), keep) + (body if method == "GET" else b""), -1, 0, keep'
    assert old in code
    new = f'return b"HTTP/1.1 404 None\\r\\nConnection: close{body}\\r\\n\\r\\n", -1, 0, False'
    folder = written(tmp_path, code.replace(old, new), 'exec {python} -S {server} threads none "$@"')
    (found,) = outcomes(folder, ["files"])
    assert found.how == PASSED, found.why


@pytest.mark.long
def test_the_type_of_a_page_has_no_case(tmp_path: Path) -> None:
    code = FAULTY.read_text()
    assert "text/html" in code
    folder = written(tmp_path, code.replace("text/html", "Text/HTML"), 'exec {python} -S {server} threads none "$@"')
    (found,) = outcomes(folder, ["files"])
    assert found.how == PASSED, found.why


@pytest.mark.long
def test_a_strace_that_may_not_trace_fails_no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "strace").write_text("#!/bin/sh\necho 'strace: test_ptrace_get_syscall_info: not permitted' >&2\nexit 1\n")
    (tools / "strace").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    (found,) = outcomes(server(tmp_path, "threads", "none"), ["slowdisk"])
    assert found.how == UNSEEN and "not permitted" in found.why, found.why


#: Where a client leaves in the middle, another process goes on in its place, as of a script that starts it anew.
ANEW = """
import os, socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[2])))
while True:
    c, _ = listener.accept()
    try:
        request = b""
        while b"\\r\\n\\r\\n" not in request:
            more = c.recv(4096)
            if not more:
                raise OSError
            request += more
        with open(sys.argv[-1] + request.split()[1].decode(), "rb") as file:
            body = file.read()
        c.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body)
    except OSError:
        if os.fork():
            os._exit(1)
    c.close()
"""


@pytest.mark.long
@pytest.mark.parametrize("cell", ["a cell", "no cell"])
def test_a_server_that_a_script_starts_anew_does_not_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cell: str
) -> None:
    if cell == "no cell":
        monkeypatch.setenv("MY_NO_CELL", "asked for")
    folder = written(tmp_path, ANEW, '{python} -S {server} "$@" & wait; exec sleep 60')
    (found,) = outcomes(folder, ["gone"])
    assert (found.how, "in its place" in found.why) == (FAILED, True), found.why


BOMB = 1500  #: processes


@pytest.mark.slow
@pytest.mark.parametrize("cell", ["a cell", "no cell"])
def test_a_server_that_forks_and_forks_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cell: str) -> None:
    if cell == "no cell":
        monkeypatch.setenv("MY_NO_CELL", "asked for")
    mark = f"{os.getpid()}.25"
    run = tmp_path / "run"
    # Not for ever in truth: where there is no cell, and its end fails, 30 000 of them would be left on the machine.
    run.write_text(f"#!/bin/sh\ni=0\nwhile [ $i -lt {BOMB} ]; do sleep {mark} & i=$((i + 1)); done; wait\n")
    run.chmod(0o755)
    (found,) = outcomes(tmp_path, ["hello"])
    assert found.how == FAILED
    assert bool(found.no_cell) == (cell == "no cell")
    mine = [pid for pid in proc.pids() if proc.text(pid, "cmdline").split("\0")[:2] == ["sleep", mark]]
    for pid in mine:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert not mine


IN_A_BOX = """
import subprocess
from pathlib import Path
from quest.my.box import Box
box = Box((), Path("/usr"))
print(box.no_cell, flush=True)
write = "for folder in /dev/shm /dev /tmp /etc; do echo > $folder/x && echo $folder; done 2> /dev/null; id -u"
subprocess.run(box.command(["/bin/sh", "-c", write], 64))
box.end()
"""


def test_an_ordinary_user_has_a_cell(unprivileged: Unprivileged) -> None:
    """Where such a user may have namespaces at all, a server is started in the cell and may write to little."""
    for command in (["test", "-x", str(TREE)], ["unshare", "--user", "--map-current-user", "true"]):
        done = subprocess.run([*unprivileged.prefix, *command], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"an ordinary user here may not {' '.join(command)}: {done.stderr.strip()}")
    command = [*unprivileged.prefix, sys.executable, "-B", "-c", IN_A_BOX]
    done = subprocess.run(command, cwd=TREE, capture_output=True, text=True, check=False)
    user = str(os.geteuid() or 65534)
    assert done.stdout.split("\n") == ["", "/dev/shm", "/dev", "/tmp", user, ""], done.stderr


#: A judge without a cell, whose looks into /proc are slower than the server forks, and whose time for the end is over.
SLOW_LOOKS = """
import subprocess, sys, time
from pathlib import Path
from quest.ground.processes import become_subreaper
from quest.my import box
from tests.conformance import proc

look = proc.children
def slowly(pid):
    time.sleep(0.002)
    return look(pid)

proc.children, box.END_SECONDS = slowly, 0.0
become_subreaper()
bomb = subprocess.Popen(["sh", "-c", sys.argv[1]])
time.sleep(0.5)
box.Box((), Path.cwd(), "asked for").clear(bomb.pid)
"""


def test_what_forks_while_it_is_ended_is_ended_too(tmp_path: Path) -> None:
    mark = f"{os.getpid()}.75"
    bomb = f"i=0; while [ $i -lt {BOMB} ]; do sleep {mark} & i=$((i + 1)); done; wait"
    command = [sys.executable, "-c", SLOW_LOOKS, bomb]
    subprocess.run(command, cwd=TREE, check=True, timeout=100)
    left = [pid for pid in proc.pids() if proc.text(pid, "cmdline").split("\0")[:2] == ["sleep", mark]]
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert not left


#: A judge without a cell, and two servers at once, as for `flat`: whether the first runs when the second has ended.
TWO_SERVERS = """
import sys
from pathlib import Path
from quest.ground.processes import become_subreaper
from quest.my.bench import free_port
from quest.my.box import Box
from quest.my.server import Server

become_subreaper()
box = Box((), Path("/usr"), "asked for")
listens = "import socket, sys, time; s = socket.create_server(('127.0.0.1', int(sys.argv[1]))); time.sleep(60)"

def start():
    port = free_port()
    return Server(box, [sys.executable, "-S", "-c", listens, str(port)], port, 1.0, 64)

with start() as first:
    with start() as second:
        print(len(first.members()), len(second.members()))
    print(first.alive())
"""


def test_two_servers_without_a_cell_are_two(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", TWO_SERVERS], cwd=TREE, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["1", "1", "True"], done.stderr


#: A judge that a second signal reaches while it ends a server for the first.
TWICE_STOPPED = """
import subprocess, sys
from quest.my import judge

def judged(*_):
    process = subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print(process.pid, flush=True)
    raise SystemExit(143)
    yield

judge.judged = judged
judge.main(["shared", ".", "hello"])
"""


def test_a_judge_that_is_stopped_twice_leaves_nothing() -> None:
    command = [sys.executable, "-c", TWICE_STOPPED]
    done = subprocess.run(command, cwd=TREE, capture_output=True, text=True, check=False)
    pid = int(done.stdout)
    there = proc.alive(pid)
    if there:
        proc.send(pid, signal.SIGKILL)
    assert not there and done.returncode == 143


# ---- what is seen of a server


@pytest.mark.parametrize(
    ("status", "said"),
    [(139, "signal 11 (SIGSEGV)"), (-9, "signal 9 (SIGKILL)"), (250, "signal 122"), (128, "status 128")],
)
def test_how_a_server_has_ended(status: int, said: str) -> None:
    """A shell in `run` says 128 and the signal; Python says it below 0."""
    assert ended_by(status) == said


@pytest.mark.parametrize(
    ("how", "factors", "checked"),
    [(FAILED, [1.0, 1.4], [1.0]), (FAILED, [1.0, 1.5, 9.0], [1.0, 9.0]), (UNSEEN, [2.0], [2.0])],
)
def test_what_fails_is_checked_once_more_where_the_machine_became_busier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, factors: list[float], checked: list[float]
) -> None:
    """Then with the patience that this takes; what fails again has failed."""
    left, found = iter(factors), list[float]()

    def one(stage: stages.Stage, bench: MagicMock) -> Outcome:
        found.append(bench.patience)
        return Outcome(stage.name, how)

    monkeypatch.setattr(judge, "patience", lambda: next(left))
    monkeypatch.setattr(judge, "one", one)
    monkeypatch.setattr(judge, "Box", MagicMock())
    monkeypatch.setattr(judge, "Bench", lambda *given: MagicMock(patience=given[3]))
    monkeypatch.setattr(judge, "tools_missing", lambda: "")
    assert [outcome.how for outcome in judge.judged(tmp_path, ["hello"], False)] == [how]
    assert (found, list(left)) == (checked, [])


def test_the_last_words_of_a_server_that_printed_much(tmp_path: Path) -> None:
    server = Server.__new__(Server)
    with (tmp_path / "words").open("w+b") as server._words:
        server._words.write(b"GET /hello.txt 200\n" * 9000 + b"*** stack smashing detected ***\n")
        server._words.flush()
        assert server.says == '; it said: "*** stack smashing detected ***"'


def test_an_orphan_that_has_ended_is_no_zombie_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a server that forks twice, so that init waits for its children. Without a cell we are in init's place."""
    states = {7: ["S", str(os.getpid())], 8: ["Z", "7"], 9: ["Z", str(os.getpid())], 10: []}
    server = Server.__new__(Server)
    monkeypatch.setattr(server, "members", lambda: set(states))
    monkeypatch.setattr(proc, "stat_fields", lambda pid: states[pid])
    assert server.zombies() == 1


def test_a_child_that_is_just_ending_fails_no_server() -> None:
    """It is a zombie until its parent has run: at the last of these looks."""
    bench = MagicMock(patience=1.0)
    server = bench.start().__enter__()
    server.zombies.side_effect = itertools.chain([0, 0, 0], itertools.repeat(1))
    server.descriptors.return_value = 3
    server.settled.return_value = server.tasks.return_value = {"7/task/7"}
    check_of(ALL["tidy"].check)(bench)


@pytest.mark.parametrize("text", ["", "0 0 0\n"])
def test_a_kernel_that_counts_no_time_lets_no_server_pass(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Else each would be found to use no processor at all."""
    server = Server.__new__(Server)
    monkeypatch.setattr(server, "tasks", lambda: {"7/task/7"})
    monkeypatch.setattr(proc, "text", lambda *_: text)
    with pytest.raises(Unseen, match="schedstat"):
        server.cpu()


# ---- what a client makes of a reply


@contextlib.contextmanager
def answered(pieces: Iterable[bytes]) -> Iterator[int]:
    """A port at which one client gets this reply."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            c, _ = listener.accept()
            with c, contextlib.suppress(OSError):
                c.recv(65536)
                for piece in pieces:
                    c.sendall(piece)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield int(listener.getsockname()[1])
        thread.join()


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 \xb2 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: \xb2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n",
    ],
)  # fmt: skip
def test_what_is_no_number_is_a_fault_of_the_server(reply: bytes) -> None:
    with answered([reply]) as port, Client(port) as client:
        client.ask("/")
        with pytest.raises(Failed):
            client.reply()
    assert parsed(b"HTTP/1.1 " + b"9" * 5000 + b" OK\r\n\r\n")[0] == 0


@pytest.mark.parametrize("way", [Client.reply, lambda client: client.rest(5)], ids=["reply", "rest"])
def test_a_reply_without_an_end_is_not_kept(monkeypatch: pytest.MonkeyPatch, way: Callable[[Client], object]) -> None:
    """It would go on as long as the server sends, or for some seconds, at a gigabyte in each."""
    monkeypatch.setattr("quest.my.client.MOST_BYTES", 2 << 20)
    pieces = itertools.repeat(b"x" * (1 << 20), 8)
    with answered([b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n", *pieces]) as port, Client(port) as client:
        client.ask("/")
        with pytest.raises(Failed, match="does not end"):
            way(client)


def test_bytes_that_never_stop_do_not_stop_the_clock() -> None:
    """There is always one to be read, and so a read never finds that the time is over."""
    with answered([b"x"]) as port, Client(port) as client:
        client.ask("/")
        assert readable([client], 5)
        with pytest.raises(Failed, match="no reply in 1 s"):
            client._more("it", time.monotonic() - 2, 1.0, "no reply")


# ---- the command


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "my"


def my(tmp_path: Path, **given: str) -> int:
    return commands.my({"WORK": str(tmp_path), **given})


def test_the_starter_builds_and_says_what_is_next(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert my(tmp_path) == 0
    assert "hello:" in capsys.readouterr().out
    assert my(tmp_path) == 1
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith("hello: your server ended with status 1 before it listened")
    assert any("make my HINT=1" in line for line in rest)
    assert work.Progress.load(folder).done == []


def test_hints_and_stages_that_are_left_out(tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    my(tmp_path)
    assert my(tmp_path, HINT="2") == 0
    assert ALL["hello"].hints[1] in " ".join(capsys.readouterr().out.split())
    assert my(tmp_path, HINT="1") == 0
    assert my(tmp_path, SKIP="hello") == 0
    progress = work.Progress.load(folder)
    assert progress.in_hand(ALL) == "half"
    assert progress.hints == {"hello": 2}
    for wrong in ({"HINT": "4"}, {"HINT": "0"}, {"STAGE": "nothing"}, {"SKIP": "nothing"}):
        with pytest.raises(InputError):
            my(tmp_path, **wrong)
    with pytest.raises(InputError, match=r"STAGE=helo: there is no such stage; did you mean hello\?"):
        my(tmp_path, STAGE="helo")


def test_a_stage_that_was_left_out_is_checked_alone(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is not left out any more, nor can it be."""
    my(tmp_path)
    my(tmp_path, SKIP="hello")
    asked = made_up(monkeypatch, {})
    assert my(tmp_path, STAGE="hello") == 0
    progress = work.Progress.load(folder)
    assert (asked, progress.done, progress.before, progress.skipped) == (["hello"], ["hello"], [], [])
    with pytest.raises(InputError, match="SKIP=hello"):
        my(tmp_path, SKIP="hello")


def test_a_stage_that_was_named_has_hints_of_its_own(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """HINT= alone is about the stage in hand: so what is said of another one names that."""
    my(tmp_path)
    made_up(monkeypatch, {"inline": "not yet", "hello": "not yet"})
    for given, which in ({"STAGE": "inline"}, "STAGE=inline "), ({}, ""):
        name = given.get("STAGE", "hello")
        capsys.readouterr()
        assert my(tmp_path, **given) == 1
        assert f"A hint: make my {which}HINT=1\n" in capsys.readouterr().out
        assert my(tmp_path, **given, HINT="1") == 0
        text = capsys.readouterr().out
        assert text.startswith(f"{name}, hint 1 of 3") and text.endswith(f"make my {which}HINT=2\n")
        assert my(tmp_path, **given) == 1
        assert f"The task: labs/my/{name}.toml." in capsys.readouterr().out, "it is not printed any more"


def test_on_a_terminal_it_is_said_what_is_checked(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Until it is done; and nothing of it goes to a file."""
    my(tmp_path)
    made_up(monkeypatch, {"hello": "not yet"})
    my(tmp_path)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    for term, end in (("xterm", "\r\x1b[K"), ("dumb", "\n")):
        monkeypatch.setenv("TERM", term)
        my(tmp_path)
        assert capsys.readouterr().err == f"checking hello ...{end}"


LISTS = '"done": [], "before": [], "skipped": []'


@pytest.mark.parametrize(
    "text",
    ["{", "[]", "{}", f'{{{LISTS}, "hints": []}}', f'{{{LISTS}, "hints": {{"hello": 1e999}}}}', "[" * 60_000],
    ids=["cut", "list", "empty", "hints", "infinite", "deep"],
)
def test_a_damaged_state_is_one_line(tmp_path: Path, folder: Path, text: str) -> None:
    my(tmp_path)
    (folder / work.STATE).write_text(text)
    with pytest.raises(InputError, match="damaged"):
        my(tmp_path)


def test_what_does_not_build_is_said(tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    my(tmp_path)
    (folder / "server.c").write_text("int main(void) { return mistake; }\n")
    capsys.readouterr()
    assert my(tmp_path) == 1
    assert capsys.readouterr().out.startswith("It does not build:")
    (folder / "run").chmod(0o644)
    assert my(tmp_path) == 1
    assert "chmod" in capsys.readouterr().out


def test_a_build_without_an_end_is_ended_with_all_that_it_started(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    my(tmp_path)
    mark = f"{os.getpid()}.5"
    (folder / "Makefile").write_text(f"all:\n\t@sleep {mark}\n")
    monkeypatch.setattr(commands, "BUILD_SECONDS", 0.5)
    assert my(tmp_path) == 1
    assert "Makefile: it took more than" in capsys.readouterr().out

    def left() -> list[int]:
        return [pid for pid in proc.pids() if proc.text(pid, "cmdline").split("\0")[:2] == ["sleep", mark]]

    ended = wait_for(lambda: not left(), 5.0)
    for pid in left():
        proc.send(pid, signal.SIGKILL)
    assert ended


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_who_ends_make_my_ends_the_build_too(tmp_path: Path, number: int) -> None:
    """As the end of a terminal does: the build is in a session of its own."""
    mark = f"{os.getpid()}.{number:d}"
    (tmp_path / "run").write_text("#!/bin/sh\n")
    (tmp_path / "run").chmod(0o755)
    (tmp_path / "Makefile").write_text(f"all:\n\t@sleep {mark}\n")
    code = "import signal, sys; from pathlib import Path; from quest.my import commands; "
    code += "signal.signal(int(sys.argv[2]), signal.SIG_DFL); "  # nohup, and & of a script, let us inherit SIG_IGN
    code += "commands.build(Path(sys.argv[1]))"

    def there() -> list[int]:
        return [pid for pid in proc.pids() if proc.text(pid, "cmdline").split("\0")[:2] == ["sleep", mark]]

    words = [sys.executable, "-c", code, str(tmp_path), f"{number:d}"]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as building:
        began = wait_for(lambda: bool(there()), 30.0)
        building.send_signal(number)
        ended = wait_for(lambda: not there(), 5.0)  # and not only at its end, after BUILD_SECONDS
        for pid in there():
            proc.send(pid, signal.SIGKILL)
    assert (began, ended) == (True, True)


def test_what_a_learner_has_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder may go while it is looked at, as one of a compiler's: WATCH= looks five times a second."""
    for name in ("server.c", "sub/more.c", ".git/config", "__pycache__/x.pyc", "server.o", "gone/x.c"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "server").write_bytes(work.ELF)
    (tmp_path / "again").symlink_to(".")
    listed = os.scandir

    def scandir(path: str | Path = ".") -> object:
        if Path(path).name == "gone":
            raise FileNotFoundError(2, "No such file or directory", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found = work.sources(tmp_path)
    monkeypatch.undo()
    assert [str(Path(path).relative_to(tmp_path)) for path in found] == ["server.c", "sub/more.c"]
    assert found[str(tmp_path / "server.c")][0] == 1


def made_up(monkeypatch: pytest.MonkeyPatch, bad: dict[str, str]) -> list[str]:
    """Checks that fail with these words, and pass otherwise; what was checked."""
    asked: list[str] = []

    def found(_: Path, names: list[str]) -> object:
        for name in names:
            asked.append(name)
            yield Outcome(name, FAILED if name in bad else PASSED, bad.get(name, ""))

    monkeypatch.setattr(commands, "outcomes", found)
    monkeypatch.setattr(commands, "build", lambda _: "")
    return asked


def test_a_stage_passes_with_those_that_it_can_break(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    my(tmp_path)
    done = ALL.names[: ALL.place("light")]
    work.Progress(done=list(done)).save(folder)
    bad = {"stop": "it was cut"}
    asked = made_up(monkeypatch, bad)
    capsys.readouterr()
    assert my(tmp_path) == 1
    assert asked == ["light", "stop"]
    since = "It had passed: something that you wrote since, perhaps for light, has broken it."
    assert capsys.readouterr().out.splitlines()[:2] == ["stop: it was cut.", since]
    assert work.Progress.load(folder).done == done
    del bad["stop"]
    bad["oneloop"] = "not yet"
    asked.clear()
    assert my(tmp_path) == 0
    assert asked == ["light", "stop", "tidy", "bounded", "oneloop"]
    text = capsys.readouterr().out
    assert "bounded" in text and "passed before you began" in text and "Now: not yet." in text
    progress = work.Progress.load(folder)
    assert progress.done == [*done, "light", "bounded"]
    assert progress.before == ["bounded"]


def test_a_stage_that_was_not_tried_has_passed_before_if_nothing_was_written(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    my(tmp_path)
    made_up(monkeypatch, {})
    monkeypatch.setattr(commands, "AHEAD_SECONDS", -1.0)  # after one more stage no other is tried
    my(tmp_path)  # hello, and half before it was begun
    assert work.Progress.load(folder).before == ["half"]
    capsys.readouterr()
    my(tmp_path)
    assert capsys.readouterr().out.startswith("files (a name becomes a file) passed before you began")
    assert work.Progress.load(folder).before == ["half", "files", "fence"]
    (folder / "server.c").write_text("something was written")
    my(tmp_path)
    assert work.Progress.load(folder).before == ["half", "files", "fence", "whole"]
    assert "words: passed." in capsys.readouterr().out


def test_all_are_checked_but_those_that_are_over(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    my(tmp_path)
    work.Progress(done=ALL.names[: ALL.place("oneloop")]).save(folder)
    asked = made_up(monkeypatch, {"oneloop": "not yet"})
    assert my(tmp_path, ALL="yes") == 1
    assert asked == ["oneloop"]
    asked = made_up(monkeypatch, {})
    assert my(tmp_path, ALL="yes") == 0
    assert asked == ["oneloop", *[n for n in ALL.names[: ALL.place("oneloop")] if n not in ("bounded", "patience")]]
    assert "Next: slowreaders" in capsys.readouterr().out


@pytest.mark.long
def test_a_saved_file_is_answered(tmp_path: Path) -> None:
    folder = tmp_path / "my"
    folder.mkdir()
    server(folder, "threads", "length")
    process = subprocess.Popen(
        [sys.executable, "-m", "quest", "my", f"WORK={tmp_path}", "WATCH=yes"], cwd=TREE,
        stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    late = threading.Timer(120, process.kill)
    late.start()
    try:
        assert process.stdout
        for word in ("hello: Content-Length", "Waiting until", "---- ", "hello: passed."):
            for line in process.stdout:
                if word in line:
                    break
            else:
                pytest.fail(f"it ended before {word}")
            if word == "Waiting until":
                time.sleep(0.05)
                server(folder, "threads", "none")
    finally:
        late.cancel()
        os.killpg(process.pid, signal.SIGINT)
        process.communicate()
