"""Recordings: from what strace writes to the table for the player, with lines and moments; and the committed ones."""

import contextlib
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quest.ground import c_source
from quest.ground.errors import InputError, RepetitionError
from quest.ground.places import Answer
from quest.measure import difference, form, lines, moments, needs, recorded, recorder, recording, ring, scene, strace
from quest.measure.form import Moment, Recording, Times
from quest.measure.lines import Place
from quest.measure.recorder import Target
from quest.measure.recording import Source
from quest.measure.scene import Act, Client, Scene, Visit
from quest.measure.strace import Call, Frame
from tests.harness.made_up import BENCHMARKS, Tree, await_

ROOT = BENCHMARKS.parent
LIBC, OURS = "/lib/libc.so.6", "/tree/build/server"


# ---- what strace -k writes -----------------------------------------------------------------------


def parsed(*texts: str) -> list[strace.Event]:
    """The events of tasks 1, 2, ..."""
    return strace.parse({pid: text.splitlines() for pid, text in enumerate(texts, 1)})


def stacks(events: list[strace.Event]) -> list[list[str]]:
    return [[frame.symbol for frame in event.stack] for event in events if isinstance(event, Call)]


CLOSE = "1.0 close(3) = 0 <0.1>"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"{CLOSE}\n > {LIBC}(__close+0x10) [0xf89f0]\n > {OURS}(main+0x140) [0x3670]", [["__close", "main"]]),
        # a stack that cannot be followed, or not named
        (f"{CLOSE}\n > {OURS}() [0x12]\n > unexpected_backtracing_error [0x0]", [[""]]),
        (f"{CLOSE}\n > /tmp/a (deleted)(main+0x1) [0x12]", [["main"]]),
        # what follows a signal is the stack where it came
        (f"{CLOSE}\n > {OURS}(a+0x1) [0x1]\n2.0 --- stopped by SIGSTOP ---\n > {OURS}(b+0x1) [0x2]", [["a"]]),
        (f"1.5 --- SIGCHLD {{si_signo=SIGCHLD}} ---\n > {OURS}(b+0x1) [0x2]\n2.0 close(3) = 0 <0.1>", [[]]),
        # of _exit() it comes when the task is gone
        (f"1.0 exit_group(0) = ?\n1.1 +++ exited with 0 +++\n > {OURS}(child+0x1) [0x1]", [["child"]]),
        (f"1.1 +++ killed by SIGKILL +++\n > {OURS}(child+0x1) [0x1]", []),
    ],
)  # fmt: skip
def test_each_call_has_its_own_stack(text: str, found: list[list[str]]) -> None:
    assert stacks(parsed(text)) == found


def test_a_stack_that_is_not_understood_is_refused_with_its_line() -> None:
    with pytest.raises(strace.SyntaxErrorInTrace, match="trace of 1, line 2: no frame of a stack"):
        parsed(f"{CLOSE}\n > nonsense")


ACCEPT = "accept(3<TCP:[127.0.0.1:80]>, NULL, NULL)"


def test_a_call_that_is_begun_anew_is_one_call() -> None:
    events = strace.joined(
        parsed(
            f"1.0 {ACCEPT} = ? ERESTARTSYS (To be restarted if SA_RESTART is set) <0.5>\n"
            f" > {OURS}(loop+0x1) [0x10]\n"
            "1.5 --- SIGCHLD {si_signo=SIGCHLD} ---\n"
            f"1.6 {ACCEPT} = 4 <0.4>\n"
            f" > {OURS}(elsewhere+0x1) [0x20]\n"
            "3.0 poll([{fd=4, events=POLLIN}], 1, 100) = ? ERESTART_RESTARTBLOCK (Interrupted by signal) <0.05>\n"
            "3.1 --- SIGCONT {si_signo=SIGCONT} ---\n"
            "3.2 restart_syscall(<... resuming interrupted poll ...>) = 0 <0.01>\n"
        )
    )
    assert [(e.name, e.start, e.end) for e in events if isinstance(e, Call)] == [
        ("accept", 1.0, 2.0),
        ("poll", 3.0, pytest.approx(3.21)),
    ]
    assert stacks(events) == [["loop"], []]


def test_with_a_handler_that_makes_calls_they_are_two_and_the_signal_is_named() -> None:
    events = strace.joined(
        parsed(
            f"1.0 {ACCEPT} = ? ERESTARTSYS (To be restarted) <0.5>\n"
            "1.5 --- SIGCHLD {si_signo=SIGCHLD} ---\n"
            "1.6 wait4(-1, NULL, WNOHANG, NULL) = 7 <0.1>\n"
            f"1.8 {ACCEPT} = 4 <0.4>\n"
            '2.5 read(4, "", 1) = -1 EINTR (Interrupted system call) <0.1>\n'
        )
    )
    calls = [event for event in events if isinstance(event, Call)]
    assert [call.name for call in calls] == ["accept", "wait4", "accept", "read"]
    assert [call.interrupted for call in calls] == ["SIGCHLD", "", "", ""]
    assert [call.error() for call in calls] == ["EINTR", "", "", "EINTR"]


def test_the_stack_of_a_new_thread_s_maker_is_that_of_the_call_before() -> None:
    events = strace.with_makers(
        parsed(
            "1.0 rt_sigprocmask(SIG_BLOCK, ~[], [], 8) = 0 <0.1>\n"
            f" > {LIBC}(pthread_create+0x1) [0x1]\n > {OURS}(start+0x1) [0x10]\n"
            "1.2 clone3({flags=CLONE_VM|CLONE_THREAD}, 88) = 2 <0.1>\n"
            f" > {LIBC}(__clone3+0x1) [0x2]\n"
            "1.4 clone3({flags=CLONE_VM|CLONE_THREAD}, 88) = 3 <0.1>\n"
            f" > {LIBC}(__clone3+0x1) [0x2]\n"
        )
    )
    assert stacks(events)[1:] == [["pthread_create", "start"], ["__clone3"]]


# ---- lines ---------------------------------------------------------------------------------------


def test_the_call_is_looked_up_and_not_what_comes_after_it() -> None:
    frames = (
        Frame(LIBC, "wait4", 0x100),
        Frame(OURS, "on_child", 0x200),
        Frame(LIBC, lines.TRAMPOLINE, 0x300),
        Frame(OURS, "main", 0x400),  # where the signal came: nothing was called there
    )
    assert [address for _, address in lines.returning(frames)] == [0xFF, 0x1FF, 0x2FF, 0x400]


def test_a_source_may_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "addr2line").write_bytes(b"#!/bin/sh\necho 0x10\necho main\necho /tree/m\xfcller/a.c:3\n")
    (tmp_path / "addr2line").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found = lines.look_up({OURS: [0x10]}, Path("/tree"))
    assert found == {(OURS, 0x10): [Place("main", os.fsdecode(b"m\xfcller/a.c"), 3)]}


def test_inlined_functions_and_what_has_no_line() -> None:
    text = (
        "0x0000000000000012\nchild\n/tree/code/02/server.c:25\n"
        "main.part.0\n/tree/code/02/../02/server.c:46 (discriminator 3)\n"
        "0x0000000000000020\n??\n??:0\n"
        "0x0000000000000030\nmemcpy\n/usr/include/string.h:9\n"
    )
    assert lines.parse(text, "/tree") == {
        0x12: [Place("child", "code/02/server.c", 25), Place("main", "code/02/server.c", 46)],
        0x20: [],
        0x30: [Place("memcpy", "/usr/include/string.h", 9)],
    }


def test_a_stack_is_told_from_its_outermost_function_inwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the program alone, and of our sources; an inlined function is inside the one that it is in."""
    asked: dict[str, set[int]] = {}
    inlined, serve, main = (Place(name, "code/a.c", line) for name, line in (("inlined", 9), ("serve", 5), ("main", 1)))
    there = {(OURS, 0x1F): [inlined, serve], (OURS, 0xF): [main], (OURS, 0x2F): [Place("x", "/usr/include/x.h", 3)]}

    def look_up(addresses: dict[str, set[int]], _: Path) -> dict[tuple[str, int], list[Place]]:
        asked.update(addresses)
        return there

    monkeypatch.setattr(lines, "look_up", look_up)
    frames = (Frame(LIBC, "recv", 7), Frame(OURS, "x", 0x30), Frame(OURS, "serve", 0x20), Frame(OURS, "main", 0x10))
    found = lines.stacks([frames, ()], Path(OURS), Path("/tree"), ("code/",))
    assert found == {frames: (main, serve, inlined), (): ()}
    assert asked == {OURS: {0xF, 0x1F, 0x2F}}


def test_functions_of_a_source() -> None:
    text = ["static int twice(int a);", "", "/* b */", "static int twice(int a)", "{", "    return 2 * a;", "}",
            "int x;",
            "void long_one(int a,", "              int b)", "{", "}"]  # fmt: skip
    assert c_source.functions(text) == [("twice", 4, 7), ("long_one", 9, 12)]
    there = [c_source.around(text, number) for number in (1, 6, 8, 12)]
    assert [each and each.name for each in there] == [None, "twice", None, "long_one"]
    twice = ["void f(void)", "{", "    a();", "        a();", "}"]
    assert c_source.mark(twice, 3) != c_source.mark(twice, 4) != c_source.mark(["a ();"], 1)
    assert c_source.mark(twice, 3) == c_source.mark(["", *twice], 4) == c_source.mark(["a();"], 1)


# ---- the table -----------------------------------------------------------------------------------

SOURCE = """\
int fd = accept(listen_fd, NULL, NULL);
pid_t pid = fork();
close(fd);
ssize_t n = recv(fd, in, room, 0);
ssize_t m = send(fd, out, size, 0);
int got = waitpid(-1, NULL, WNOHANG);
_exit(0);
int file = open(name, O_RDONLY);
char *p = malloc(1);
"""
PORTS = {"A": 1001, "B": 1002}


def at(line: int) -> str:
    """A stack of one function whose line is that."""
    return f"\n > {OURS}(main+0x1) [{line:#x}]\n"


def tcp(fd: int, letter: str) -> str:
    return f"{fd}<TCP:[127.0.0.1:80->127.0.0.1:{PORTS[letter]}]>"


LISTENING = "3<TCP:[127.0.0.1:80]>"
MAIN = "".join(
    [
        f"99.0 accept4({LISTENING}, NULL, NULL, 0) = {tcp(4, 'A')} <1.000100>{at(1)}",
        f"100.001 clone(child_stack=NULL, flags=SIGCHLD) = 2 <0.000300>{at(2)}",
        f"100.002 close({tcp(4, 'A')}) = 0 <0.000010>{at(3)}",
        f"100.003 accept4({LISTENING}, NULL, NULL, 0) = {tcp(4, 'B')} <0.017000>{at(1)}",
        f"100.021 clone(child_stack=NULL, flags=SIGCHLD) = 3 <0.000300>{at(2)}",
        f"100.022 close({tcp(4, 'B')}) = 0 <0.000010>{at(3)}",
        f"100.023 accept4({LISTENING}, NULL, NULL, 0) = ? ERESTARTSYS (To be restarted) <0.178000>{at(1)}",
        "100.201 --- SIGCHLD {si_signo=SIGCHLD} ---\n",
        f"100.202 wait4(-1, NULL, WNOHANG, NULL) = 2 <0.000040>{at(6)}",
        f"100.203 wait4(-1, NULL, WNOHANG, NULL) = 0 <0.000040>{at(6)}",
        f"100.204 accept4({LISTENING}, NULL, NULL, 0) = ? ERESTARTSYS (To be restarted) <9.0>{at(1)}",
        "109.3 --- SIGTERM {si_signo=SIGTERM} ---\n",
    ]
)
CHILD_A = "".join(
    [
        f'100.0025 recvfrom({tcp(4, "A")}, ""..., 100, 0, NULL, NULL) = 54 <0.000020>{at(4)}',
        f'100.0026 openat(3</tree>, "index.html", O_RDONLY) = 5</tree/index.html> <0.000020>{at(8)}',
        f"100.0027 mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, -1, 0) = 0x7f <0.000020>{at(9)}",
        f"100.0028 close(5</tree/index.html>) = 0 <0.000020>{at(3)}",
        f'100.003 sendto({tcp(4, "A")}, ""..., 60, 0, NULL, 0) = 60 <0.000020>{at(5)}',
        f"100.004 exit_group(0) = ?\n100.005 +++ exited with 0 +++{at(7)}",
    ]
)
CHILD_B = "".join(
    [
        f'100.023 recvfrom({tcp(4, "B")}, ""..., 100, 0, NULL, NULL) = 27 <0.000020>{at(4)}',
        f'100.024 recvfrom({tcp(4, "B")}, ""..., 100, 0, NULL, NULL) = 27 <0.176000>{at(4)}',
        f'100.2005 sendto({tcp(4, "B")}, ""..., 60, 0, NULL, 0) = 60 <0.000020>{at(5)}',
        f"100.202 exit_group(0) = ?\n100.2025 +++ exited with 0 +++{at(7)}",
    ]
)
SCENE = Scene("Two clients", "Who waits?", ("server",), (Client("A"), Client("B", at_ms=20, pause_ms=180)))


def visits() -> list[Visit]:
    def acts(zero: float, *times: float, sent: tuple[int, ...]) -> list[Act]:
        names = ["connect", "connected", *("send" for _ in sent), "receive", "close"]
        sizes = [0, 0, *sent, 60, 0]
        return [Act(zero + t, name, size) for t, name, size in zip(times, names, sizes, strict=True)]

    a = acts(100.0, 0.0, 0.0001, 0.0002, 0.004, 0.005, sent=(54,))
    b = acts(100.020, 0.0, 0.0001, 0.0002, 0.180, 0.181, 0.182, sent=(27, 27))
    return [scene.visit_of("A", PORTS["A"], a), scene.visit_of("B", PORTS["B"], b)]


def recording_of(*texts: str) -> Recording:
    """What is made of these traces."""
    seen = visits()
    zero = seen[0].connecting
    made = Recording(
        "server", "two", SCENE.title, "", {}, 0, [], recording.guests(SCENE, seen, zero), {}, [], [], [], []
    )
    events = strace.with_makers(strace.joined(parsed(*texts)))
    all_stacks = {
        event.stack: tuple(Place("main", "server.c", frame.address) for frame in event.stack)
        for event in events
        if isinstance(event, Call)
    }
    source = Source(lambda _: SOURCE.splitlines())
    recording.record_calls(made, events, seen, all_stacks, source, 100.3, [(1, 3, "listens"), (1, 0, "stdin")])
    made.plain = {
        "A": Times(0, 100, None, 150, 250, 300),
        "B": Times(20_000, 20_100, 20_200, 200_200, 200_400, 200_500),
    }
    made.moments = moments.found(made)
    return made


def test_a_forking_server_as_a_table() -> None:
    made = recording_of(MAIN, CHILD_A, CHILD_B)
    assert [(t.name, t.kind, t.parent) for t in made.tasks] == [
        ("main", "main", None), ("child 1", "child", 0), ("child 2", "child", 0)
    ]  # fmt: skip
    assert [(t.born, t.ended, t.collected) for t in made.tasks] == [
        (None, None, None), (1300, 5000, 202_040), (21_300, 202_500, None)
    ]  # fmt: skip
    assert made.open == [(0, 0, "stdin"), (0, 3, "listens")]
    assert [(g.letter, g.times, g.sizes, g.does) for g in made.clients] == [
        ("A", Times(0, 100, None, 200, 4000, 5000), (0, 54, 60), ""),
        ("B", Times(20_000, 20_100, 20_200, 200_000, 201_000, 202_000), (27, 54, 60), "pauses"),
    ]
    told = [(c.task, c.name, c.fd, c.result, c.letter, c.note, c.asleep) for c in made.calls]
    assert [call for call in told if call[0] == 0] == [
        (0, "accept", 3, 4, "A", "", 1),
        (0, "fork", None, 1, "A", "", 0),
        (0, "close", 4, 0, "A", "", 0),
        (0, "accept", 3, 4, "B", "", 1),
        (0, "fork", None, 2, "B", "", 0),
        (0, "close", 4, 0, "B", "", 0),
        (0, "accept", 3, -1, "", "interrupted by SIGCHLD", 1),
        (0, "waitpid", None, 1, "", "", 0),
        (0, "waitpid", None, 0, "", "", 0),
        (0, "accept", 3, None, "", "", 1),
    ]
    # The file belongs to the client whose request it is for; what malloc() asks for is left out.
    assert [call for call in told if call[0] == 1] == [
        (1, "recv", 4, 54, "A", "", 0),
        (1, "open", 3, 5, "A", "index.html", 0),
        (1, "close", 5, 0, "A", "", 0),
        (1, "send", 4, 60, "A", "", 0),
        (1, "_exit", None, None, "A", "", 0),
    ]
    assert [call[-1] for call in told if call[:2] == (2, "recv")] == [0, 1]
    assert made.how["lines"] == [len(made.calls), len(made.calls)]
    assert made.calls == sorted(made.calls, key=lambda call: call.t)
    assert made.calls[-1].took is None and made.end == 234_000, "30 ms behind the last thing that happens"
    names = [made.sites[made.stacks[call.stack][-1]] for call in made.calls if call.name == "send"]
    assert {site[:3] for site in names} == {("main", "server.c", 5)}
    again: dict[str, Any] = json.loads(made.to_json())
    assert again["calls"][0] == [0, -1_000_000, 1_000_100, "accept", 3, 4, "A", 0, "", 1]


@pytest.mark.parametrize(
    ("call", "time"),
    [("100.021 clone", 100.0202), ("100.022 close", 100.0214), ("100.023 accept4", 100.0222)],
    ids=["before fork", "before close", "before accept"],
)
@pytest.mark.parametrize("options", ["WNOHANG", "0"])
def test_whom_a_child_is_for_does_not_depend_on_when_another_one_ends(call: str, time: float, options: str) -> None:
    """The handler of SIGCHLD asks for its children between any two calls, also between accept() and fork()."""
    asks = f"wait4(-1, NULL, {options}, NULL) = 2 <0.000040>{at(6)}"
    handler = f"{time:.6f} --- SIGCHLD {{si_signo=SIGCHLD}} ---\n{time + 0.0001:.6f} {asks}"
    child = f"100.0216 close({LISTENING}) = 0 <0.000010>{at(3)}{CHILD_B}"  # a call that does not name the client
    usual = recording_of(MAIN, CHILD_A, child)
    made = recording_of(MAIN.replace(call, f"{handler}{call}"), CHILD_A, child)
    assert len(made.calls) == len(usual.calls) + 1
    assert order(made) == order(usual)
    assert [each.letter for each in made.calls if each.name == "fork"] == ["A", "B"]
    assert [each[:2] for each in order(made)["child 2"]][:2] == [("close", "B"), ("recv", "B")]


def test_its_moments() -> None:
    made = recording_of(MAIN, CHILD_A, CHILD_B)
    assert [(m.head, m.rank) for m in made.moments] == [  # not that A connects: it is too near to the better one
        ("fork(): a process for A.", 4),
        ("A has its page after 0.3 ms.", 7),
        ("B falls silent.", 8),
        ("Child 2 falls asleep in recv(), for B.", 2),
        ("B goes on.", 5),
        ("main collects child 1.", 9),
    ]
    assert made.moments[2].rest == "27 of 54 bytes are sent; the rest comes after 180 ms."


def test_a_thread_may_live_longer_than_the_one_that_made_it() -> None:
    makes = "clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD}, 88)"
    main = f"99.0 {makes} = 2 <0.0001>{at(2)}99.5 accept4({LISTENING}, NULL, NULL, 0) = {tcp(4, 'A')} <0.500100>{at(1)}"
    maker = f"99.1 {makes} = 3 <0.0001>{at(2)}99.2 exit(0) = ?\n99.3 +++ exited with 0 +++{at(7)}"
    opens = f'100.001 openat(3</tree>, "index.html", O_RDONLY) = 5</tree/index.html> <0.000020>{at(8)}'
    serves = f'100.0005 recvfrom({tcp(4, "A")}, ""..., 100, 0, NULL, NULL) = 54 <0.000020>{at(4)}{opens}'
    made = recording_of(main, maker, serves)
    assert [(task.name, task.parent) for task in made.tasks] == [("main", None), ("thread 1", None)]
    assert [(call.name, call.letter) for call in made.calls[1:]] == [("recv", "A"), ("open", "A")]


def test_nobody_is_collected_where_there_is_no_child() -> None:
    fails = f"100.0225 wait4(-1, NULL, WNOHANG, NULL) = -1 ECHILD (No child processes) <0.000040>{at(6)}"
    made = recording_of(MAIN.replace("100.023 accept4", f"{fails}100.023 accept4"), CHILD_A, CHILD_B)
    assert [call.note for call in made.calls if call.name == "waitpid"] == ["ECHILD", "", ""]
    found = list(moments.first_collected(moments.View(made)))
    assert [(moment.t, moment.head) for moment in found] == [(202_000, "main collects child 1.")]


def test_that_the_tracer_was_slow_is_no_sleep() -> None:
    """While strace follows one task's stack, the call of another seems to last."""
    slow = CHILD_B.replace("100.024 recvfrom", "100.100 recvfrom").replace("<0.176000>", "<0.000100>")
    slow = slow.replace("100.023 recvfrom", "100.0235 recvfrom").replace("= 27 <0.000020>", "= 27 <0.005000>")
    busy = CHILD_A.replace("100.004 exit_group(0) = ?\n100.005", "100.029 exit_group(0) = ?\n100.030")
    made = recording_of(MAIN, busy, slow)
    recvs = [(call.took, call.asleep) for call in made.calls if call.name == "recv" and call.letter == "B"]
    assert recvs[0] == (5000, 0)


def test_a_call_that_takes_long_and_is_not_known_to_wait_is_refused() -> None:
    long = CHILD_A
    for old, new in (
        ("close(5</tree/index.html>) = 0 <0.000020>", "fsync(5</tree/index.html>) = 0 <0.015000>"),
        ("100.003 sendto", "100.020 sendto"), ("100.004 exit", "100.030 exit"), ("100.005 +++", "100.031 +++"),
    ):  # fmt: skip
        long = long.replace(old, new)
    with pytest.raises(RepetitionError, match=r"fsync\(\) took 1\d+ us, and is not among the calls that can wait"):
        recording_of(MAIN, long, CHILD_B)


@pytest.mark.parametrize(
    ("call", "note"),
    [
        ("epoll_wait(5, [{events=EPOLLIN, data=0x1}], 64, -1) = 1 <0.1>", "other"),
        (f"poll([{{fd={LISTENING}, events=POLLIN}}, {{fd={tcp(4, 'A')}, events=POLLIN}}], 2, -1) = "
         "2 ([{fd=3, revents=POLLIN}, {fd=4, revents=POLLIN}]) <0.01>", "listen A"),
        (f"pselect6(6, [{LISTENING} {tcp(4, 'B')}], [], NULL, NULL, NULL) = 1 (in [4]) <0.01>", "B"),
        ("rt_sigtimedwait([IO RT_3], {si_signo=SIGRT_3, si_code=0x1, si_int=3, si_ptr=0x3}, NULL, 8) = 35 <0.01>",
         "SIGRTMIN+1 listen"),
        ("rt_sigtimedwait([IO RT_3], {si_signo=SIGIO, si_code=SI_KERNEL}, NULL, 8) = 29 (SIGIO) <0.01>", "SIGIO"),
        ("futex(0x1, FUTEX_WAKE_PRIVATE, 1) = 1 <0.0001>", "wake 1"),
        ("io_uring_enter(0, 2, 1, IORING_ENTER_GETEVENTS, NULL, 8) = 2 <0.0001>", "submits 2, waits for 1"),
        (f"setsockopt({tcp(4, 'A')}, SOL_SOCKET, SO_RCVTIMEO_OLD, \"\", 16) = 0 <0.0001>", "SO_RCVTIMEO"),
        ("recvfrom(4<TCP:[x]>, 0x7, 9, 0, NULL, NULL) = -1 EAGAIN (Resource temporarily unavailable) <0.0001>",
         "EAGAIN"),
        (f"epoll_ctl(5<anon_inode:[eventpoll]>, EPOLL_CTL_ADD, {tcp(4, 'A')}, {{events=EPOLLIN|EPOLLET, "
         "data={u32=1, u64=1}}) = 0 <0.0001>", "add IN|ET"),
    ],
)  # fmt: skip
def test_what_is_noted_of_a_call(call: str, note: str) -> None:
    made = recording_of(f"100.001 {call}{at(1)}")
    assert [each.note for each in made.calls] == [note]


def test_what_epoll_tells_of_is_found_by_what_it_was_given() -> None:
    add = f"100.001 epoll_ctl(5, EPOLL_CTL_ADD, {tcp(4, 'B')}, {{events=EPOLLIN, data={{u32=9, u64=9}}}}) = 0 <0.0001>"
    wait = "100.002 epoll_wait(5, [{events=EPOLLIN, data={u32=9, u64=9}}], 64, -1) = 1 <0.01>"
    made = recording_of(f"{add}{at(1)}{wait}{at(1)}")
    assert [call.note for call in made.calls] == ["add IN", "B"]


# ---- moments -------------------------------------------------------------------------------------


def test_the_best_nine_are_kept_and_none_too_near_to_a_better_one() -> None:
    def moment(t: int, rank: int) -> Moment:
        return Moment(t, rank, None, None, str(t), "", "clients")

    kept = moments.best([*(moment(n * 10_000, 7) for n in range(12)), moment(500, 1), moment(70_500, 2)])
    assert [(m.t, m.rank) for m in kept] == [
        (500, 1), *((n * 10_000, 7) for n in range(1, 7)), (70_500, 2), (80_000, 7)
    ]  # fmt: skip


def test_where_the_ring_is_not_known_nothing_is_said_of_what_is_accepted() -> None:
    table = of_file(BENCHMARKS / "recordings/13-uring.at-once.json")
    with_ring = moments.found(form.of_table(table))
    del table["ring"]
    without = moments.found(form.of_table(table))
    assert [moment.show for moment in with_ring if moment.show == "queue"] == ["queue"]
    assert {moment.show for moment in without} == {"clients"}


# ---- the ring ------------------------------------------------------------------------------------

RING = """\
       s-77 [001] ..... 5.000001: io_uring_complete: ring 00aa, req 00, user_data 0x0, result 0, cflags 0x2
       s-77 [001] ..... 5.000002: io_uring_submit_req: ring 00aa, req 01, user_data 0x1003, opcode RECV
       s-77 [001] ..... 5.000003: io_uring_complete: ring 00aa, req 01, user_data 0x1003, result 54, cflags 0x1
       s-77 [001] ..... 5.000004: io_uring_submit_req: ring 00aa, req 01, user_data 0x2000, opcode OPENAT2
       s-77 [001] ..... 5.000005: io_uring_complete: ring 00aa, req 01, user_data 0x2000, result 6, cflags 0x0
       s-77 [001] ..... 5.000006: io_uring_submit_req: ring 00aa, req 01, user_data 0x2002, opcode READ
       s-77 [001] ..... 5.000007: io_uring_submit_req: ring 00aa, req 02, user_data 0x1004, opcode SEND
       s-77 [001] ..... 5.000008: io_uring_complete: ring 00aa, req 02, user_data 0x1004, result 60, cflags 0x0
       s-77 [001] ..... 5.000009: io_uring_submit_req: ring 00aa, req 02, user_data 0x1, opcode CLOSE
       s-77 [001] ..... 5.100000: io_uring_complete: ring 00aa, req 00, user_data 0x0, result 0, cflags 0x2
       s-77 [001] ..... 5.100001: io_uring_submit_req: ring 00aa, req 01, user_data 0x1003, opcode RECV
       o-99 [001] ..... 5.100002: io_uring_submit_req: ring 00bb, req 01, user_data 0x1003, opcode RECV
       s-77 [001] ..... 5.100003: io_uring_task_add: ring 00aa, req 01, user_data 0x1003, opcode RECV, mask c3
"""


def test_whose_is_what_happens_in_a_ring() -> None:
    """A pointer that free() has given back may be the next client's."""
    told = ring.told(ring.parse(RING, [77]), ["A", "B"])
    assert [(e.what[0], e.opcode, e.letter, e.result) for e in told] == [
        ("c", "accept", "A", 0), ("s", "recv", "A", None), ("c", "recv", "A", 54), ("s", "openat2", "A", None),
        ("c", "openat2", "A", 6), ("s", "read", "A", None), ("s", "send", "A", None), ("c", "send", "A", 60),
        ("s", "close", "", None), ("c", "accept", "B", 0), ("s", "recv", "B", None),
    ]  # fmt: skip
    fails = RING.splitlines()[0].replace("result 0", "result -24")
    told = ring.told(ring.parse(f"{fails}\n{RING}", [77]), ["A", "B"])
    assert [event.letter for event in told if event.opcode == "accept"] == ["", "A", "B"], "one that fails is of nobody"


def test_the_ring_has_received_what_the_clients_have_sent() -> None:
    """Else an event of it is lost, and the recording is made again."""

    def made(*received: int, usable: Answer = recorder.ALLOWED) -> Recording:
        guests = recording.guests(SCENE, visits(), 100.0)
        one = Recording("server", "two", SCENE.title, "", {}, 0, [], guests, {}, [], [], [], [])
        line = "s-77 [001] ..... 5.2: io_uring_complete: ring 00aa, req 01, user_data 0x1003, result {}, cflags 0x1\n"
        recorder.add_ring(one, usable, RING + "".join(map(line.format, received)), [77], visits())
        return one

    for received in ((54,), (27, -11, 27)):  # one that fails is no byte less
        told = made(*received)
        assert told.ring is not None and (len(told.ring), told.left) == (11 + len(received), [])
    with pytest.raises(RepetitionError, match="client B has sent 54 bytes, the ring received 53"):
        made(53)
    unknown = made(usable=Answer(False, "it is hidden", "ask root"))
    assert unknown.ring is None and len(unknown.left) == 1


def test_why_the_ring_cannot_be_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ring, "TRACEFS", tmp_path)
    for user, remedy in ((0, f"mount -t tracefs tracefs {tmp_path}"), (1000, "run it as root")):
        monkeypatch.setattr("os.geteuid", lambda user=user: user)
        assert ring.usable()[::2] == (False, remedy)
    (tmp_path / "events/io_uring").mkdir(parents=True)
    assert ring.usable()[::2] == (False, "run it as root")
    (tmp_path / "instances").mkdir()
    assert ring.usable().ok


def test_what_a_killed_recorder_left_in_the_kernel_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel takes a folder there away with its files; one that is made up, and has some, stays."""
    monkeypatch.setattr(ring, "TRACEFS", tmp_path)
    mine = ring._prefix()
    assert re.fullmatch(r"quest-\d+-", mine)
    left = (f"{mine}{os.getpid()}", f"{mine}4999999", f"{mine}1", f"{mine}db", "quest-1-4999999")  # 4194304 is highest
    for name in left:
        (tmp_path / "instances" / name).mkdir(parents=True)
    with contextlib.suppress(OSError), ring.watched() as text:
        text.append("begun")
    assert text == ["begun", ""]
    assert sorted(path.name for path in (tmp_path / "instances").iterdir()) == sorted({*left} - {f"{mine}4999999"})


# ---- a student's beside ours ---------------------------------------------------------------------


def test_the_first_difference_is_found_marked_and_said() -> None:
    ours = recording_of(MAIN, CHILD_A, CHILD_B)
    assert difference.first(ours, recording_of(MAIN, CHILD_A, CHILD_B)) is None
    close_a = f"100.002 close({tcp(4, 'A')}) = 0 <0.000010>{at(3)}"
    yours = recording_of(MAIN.replace(close_a, ""), CHILD_A, CHILD_B)
    found = difference.first(ours, yours)
    assert found is not None and found.ours is not None and found.yours is not None
    assert (ours.calls[found.ours].name, yours.calls[found.yours].name) == ("close", "accept")
    assert found.text == (
        "In main, after fork() for A, ours calls close(4) for A, server.c line 3; yours calls accept() for B, "
        "server.c line 1, and sleeps in it: 1 call of ours is missing there."
    )
    added = difference.first(yours, ours)
    assert added is not None and added.text.endswith("; then, 1 call later, they go on alike.")
    difference.mark(yours, found)
    assert [moment.call for moment in yours.moments if moment.rank == 1] == [found.yours]


def test_who_comes_or_ends_when_is_no_difference() -> None:
    """accept() sleeps or does not, and the handler of SIGCHLD interrupts it, or asks between two other calls."""
    interrupted = f"100.023 accept4({LISTENING}, NULL, NULL, 0) = ? ERESTARTSYS (To be restarted) <0.178000>{at(1)}"
    asks = "".join(f"100.20{n} wait4(-1, NULL, WNOHANG, NULL) = {got} <0.000040>{at(6)}" for n, got in ((2, 2), (3, 0)))
    assert interrupted in MAIN and asks in MAIN
    between = f"100.0221 --- SIGCHLD {{si_signo=SIGCHLD}} ---\n{asks.replace('100.20', '100.022')}100.0225 close"
    early = MAIN.replace(interrupted, "").replace(asks, "").replace("100.022 close", between)
    early = early.replace("100.204 accept4", "100.023 accept4").replace("100.003 accept4", "100.0199 accept4")
    early = early.replace("<0.017000>", "<0.000300>")
    ours, yours = (recording_of(main, CHILD_A, CHILD_B) for main in (MAIN, early))
    assert [call.name for call in ours.calls if call.task == 0] != [call.name for call in yours.calls if call.task == 0]
    assert difference.first(ours, yours) is None
    some, none = (recording_of(MAIN.replace("100.203 wait4(-1, NULL, WNOHANG, NULL) = 0", f"100.203 wait4(-1, NULL, "
                  f"WNOHANG, NULL) = {got}")) for got in ("0", "-1 ECHILD (No child processes)"))  # fmt: skip
    assert difference.first(some, none) is None, "by then another child has ended, or has not"
    never = recording_of(MAIN.replace(asks, ""), CHILD_A, CHILD_B)
    found = difference.first(ours, never)
    assert found is not None and found.ours is not None and ours.calls[found.ours].name == "waitpid"


def test_of_several_differences_the_earliest_is_told() -> None:
    late = f"100.203 wait4(-1, NULL, WNOHANG, NULL) = 0 <0.000040>{at(6)}"
    early = f"100.0028 close(5</tree/index.html>) = 0 <0.000020>{at(3)}"
    yours = recording_of(MAIN.replace(late, ""), CHILD_A.replace(early, ""), CHILD_B)
    found = difference.first(recording_of(MAIN, CHILD_A, CHILD_B), yours)
    assert found is not None and found.text.startswith("In child 1, ")


def test_that_a_call_fails_is_a_difference_and_how_long_any_client_is_waited_for_is_none() -> None:
    def made(call: str) -> Recording:
        return recording_of(f"100.001 {call}{at(1)}")

    long, short = (made(f"epoll_wait(5, [], 64, -1) = 0 <{took}>") for took in ("0.020000", "0.000100"))
    assert (long.calls[0].asleep, short.calls[0].asleep) == (1, 0)
    assert difference.first(long, short) is None
    before = f'recvfrom({tcp(4, "A")}, ""..., 9, 0, NULL, NULL) = 9 <0.000100>{at(1)}100.002 '
    wakes = "futex(0x1, FUTEX_WAKE_PRIVATE, 1) = 1"
    long, short = (made(f"{before}{wakes} <{took}>") for took in ("0.020000", "0.000100"))
    assert [(one.calls[1].letter, one.calls[1].asleep) for one in (long, short)] == [("A", 1), ("A", 0)]
    assert difference.first(long, short) is None
    reads, fails = (
        made(f'recvfrom({tcp(4, "A")}, ""..., 9, 0, NULL, NULL) = {result} <0.000100>')
        for result in ("9", "-1 EAGAIN (Resource temporarily unavailable)")
    )
    assert difference.first(reads, fails) is not None


def test_a_task_that_one_of_them_does_not_have_is_a_difference() -> None:
    ours, yours = recording_of(MAIN, CHILD_A, CHILD_B), recording_of(MAIN, CHILD_A)
    found = difference.first(ours, yours)
    assert found is not None and found.text.startswith("In child 2, ours calls recv() for B")
    assert "yours makes no further call" in found.text


def test_a_server_of_which_no_call_has_a_line_differs_from_the_start() -> None:
    ours, yours = recording_of(MAIN, CHILD_A, CHILD_B), recording_of()
    found = difference.first(ours, yours)
    assert found is not None and found.text.startswith("In main, ours calls accept() for A")
    difference.mark(yours, found)
    assert [(moment.t, moment.call) for moment in yours.moments if moment.rank == 1] == [(0, None)]


# ---- the committed ones --------------------------------------------------------------------------

COMMITTED = form.all_paths(BENCHMARKS / "recordings")


def of_file(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8")))


def test_each_scene_is_recorded_with_each_of_its_servers() -> None:
    wanted = {f"{server}.{name}" for name in scene.names() for server in scene.read(name).servers}
    assert {path.stem for path in COMMITTED} == wanted


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: str(path.stem))
def test_a_committed_recording(path: Path) -> None:
    table = of_file(path)
    made = form.read(path)
    assert list(recorded.faults(made, ROOT)) == []
    assert {Path(site[1]).parts[0] for site in table["sites"]} <= {"code"}
    placed, of_all = table["how"]["lines"]
    assert placed == len(table["calls"]) and placed >= 0.99 * of_all
    assert not table.get("left")
    starts = [call[1] for call in table["calls"]]
    assert starts == sorted(starts)
    for call in table["calls"]:
        _, file, number, _ = table["sites"][table["stacks"][call[7]][-1]]
        line = (ROOT / file).read_text(encoding="utf-8").splitlines()[number - 1]
        names = (*recording.MAKERS_OF.get(call[3], ()), call[3])
        assert recording.names_it(names, line), f"{call[3]}: {file}:{number}: {line}"
    seen = [
        scene.visit_of(guest.letter, guest.port, [Act(t / 1e6, what, size) for t, what, size in guest.acts])
        for guest in made.clients
    ]
    played = scene.read(made.scene)
    again = [list(vars(guest).values()) for guest in recording.guests(played, seen, 0.0)]
    assert json.loads(json.dumps(again)) == table["clients"]
    for client, guest in zip(played.each().values(), made.clients, strict=True):
        half, sent, _ = guest.sizes
        whole = len(scene.request(client))
        assert (half, sent) == (whole // 2 if client.pause_ms else 0, half if client.resets else whole)
    letters = [client[0] for client in table["clients"]]
    assert sorted(table["plain"]) == letters
    assert made.to_json() == path.read_text(encoding="utf-8")
    assert moments.found(made) == made.moments
    assert 1 <= len(table["moments"]) <= moments.MOST
    for t, rank, task, number, head, rest, show in table["moments"]:
        assert t <= table["end"] and 1 <= rank <= 9 and head and show
        assert task is None or task < len(table["tasks"])
        assert number is None or number < len(table["calls"])
        for said in re.findall(r"[\d.]+ ms", f"{head} {rest}"):
            assert said in spans(table["plain"])


def spans(plain: dict[str, list[int | None]]) -> set[str]:
    """All that a caption may say of the plain run: a reply's time, a pause."""
    found: set[str] = set()
    for times in plain.values():
        for first, last in ((0, 5), (2, 3)):
            a, b = times[first], times[last]
            if a is not None and b is not None:
                found.add(moments.ms(b - a))
    return found


def test_a_line_that_changes_fails_and_one_that_moves_is_followed(tmp_path: Path) -> None:
    source = tmp_path / "code/a.c"
    source.parent.mkdir()
    text = "static void f(void)\n{\n    a();\n    x();\n    a();\n}\n"
    source.write_text(text)
    sites = [["f", "code/a.c", n, c_source.mark(text.splitlines(), n)] for n in (3, 4, 5)]
    path = tmp_path / "r.json"

    def faults() -> list[str]:
        recorded._lines.cache_clear()
        words = dict.fromkeys(("server", "scene", "title", "args"), "")
        lists: dict[str, list[object]] = {
            name: [] for name in ("tasks", "clients", "open", "stacks", "calls", "moments")
        }
        path.write_text(json.dumps({"v": 1, **words, "how": {}, "end": 0, "plain": {}, **lists, "sites": sites}))
        return list(recorded.faults(form.read(path), tmp_path))

    assert faults() == []
    source.write_text(f"/* new */\n\n{text}")
    assert len(faults()) == 3
    assert recorded.follow(path, tmp_path) == []
    assert [site.line for site in form.read(path).sites] == [5, 6, 7]
    source.write_text(text.replace("x();", "y();"))
    assert faults() == ["code/a.c:4: the line in f() has changed"]
    before = path.read_text()
    assert recorded.follow(path, tmp_path) == ["code/a.c:4: the line in f() has changed"]
    assert path.read_text() == before
    source.write_text(text.replace("void f(", "void g("))
    assert faults()[0] == "code/a.c:3: the line is not in f() any more"
    source.write_bytes(text.encode() + b"/* M\xfcller */\n")  # not UTF-8
    assert faults() == []
    source.write_text("")
    assert len(faults()) == 3, "there are no such lines"
    source.unlink()
    assert len(faults()) == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "Expecting"),
        pytest.param("[" * 100_000, "not JSON", id="deep"),
        ('{"v": 2}', "no recording of version 1"),
        ("[]", "no"),
    ],
)
def test_what_is_no_recording_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(InputError, match=said):
        form.read(tmp_path / "r.json")


# ---- scenes, and whole recordings ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[client]]\nname = "A"\n[[client]]\nname = "BA"', "two clients have the same letter"),
        ('[[client]]\nname = "a"', r"must match \[A-Z\]\+"),
        ('[[client]]\nname = "A"\nresets = true', 'without "pause_ms" or "read_after_ms"'),
        ('args = { "x" = ["-w"] }\n[[client]]\nname = "A"', '"args" names x'),
    ],
)  # fmt: skip
def test_a_scene_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str) -> None:
    (tmp_path / "s.toml").write_text(f'title = "t"\nquestion = "q"\nservers = ["01-iterative"]\n{text}\n')
    monkeypatch.setattr(scene, "FOLDER", tmp_path)
    with pytest.raises(InputError, match=said):
        scene.read("s")
    with pytest.raises(InputError, match="there is no scene x; "):
        scene.read("x")


def test_several_clients_of_one_kind_come_one_after_the_other() -> None:
    both = Scene("t", "q", ("s",), (Client("BA", at_ms=5, each_ms=2), Client("C")))
    assert [(letter, client.at_ms) for letter, client in both.each().items()] == [("A", 7), ("B", 5), ("C", 0)]


def test_a_clock_that_is_set_meanwhile_ends_no_scene(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the date finds it a day later."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with listening.accept()[0] as connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")

        server = threading.Thread(target=serve, daemon=True)
        server.start()
        dates = itertools.count(1e9, 86400.0)
        with monkeypatch.context() as patched:
            patched.setattr("time.time", lambda: next(dates))
            visits = scene.play({"A": Client("A")}, listening.getsockname()[1], 20.0)
        server.join()
    assert [act.what for act in visits[0].acts] == ["connect", "connected", "send", "receive", "close"]


def test_who_finds_the_queue_full_holds_up_no_other() -> None:
    """The server waits for A, who pauses; B is in its queue, which has room for one, and C is sent away until then."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listening:

        def serve() -> None:
            for _ in range(3):
                with listening.accept()[0] as connection:
                    text = b""
                    while not text.endswith(b"\r\n\r\n"):
                        text += connection.recv(1000)
                    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")

        server = threading.Thread(target=serve, daemon=True)
        server.start()
        clients = Scene("t", "q", ("s",), (Client("A", pause_ms=200), Client("B", at_ms=50), Client("C", at_ms=100)))
        visits = scene.play(clients.each(), listening.getsockname()[1], 5.0)
        server.join()
    a, _, c = visits
    assert a.sent < c.connected, "or the server, A and C would all have waited for each other"


def test_a_server_that_does_not_reply_is_not_waited_for_for_ever() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        clients = {letter: Client(letter) for letter in "AB"}
        with pytest.raises(RepetitionError, match="client A, B: no whole reply"):
            scene.play(clients, deaf.getsockname()[1], 0.2)


def test_the_run_that_was_disturbed_least_is_kept() -> None:
    calm = visits()
    long = [replace(visit, done=visit.done + 1) for visit in calm]
    late = [calm[0], replace(calm[1], connecting=calm[1].connecting + 1, done=calm[1].done + 1)]
    runs = iter([long, None, late, calm, long])

    def run() -> list[Visit]:
        if (found := next(runs)) is None:
            raise RepetitionError("a client was lost")
        return found

    assert recorder.least_disturbed(run, SCENE, 5) is calm
    runs = iter([None, None])
    with pytest.raises(RepetitionError, match="a client was lost"):
        recorder.least_disturbed(run, SCENE, 2)


def test_what_a_descriptor_is(tmp_path: Path) -> None:
    """As /proc has it; of a socket its table says whether it listens."""
    rest = "00000000:00000000 00:00000000 00000000 0 0"
    table = f"head\n0: 0100007F:1F90 00000000:0000 0A {rest} 77 1\n1: 0100007F:1F90 0100007F:9999 01 {rest} 78 1\n"
    listening = recorder._listening(table)
    for link, what in (
        ("socket:[77]", "listens"), ("socket:[78]", "socket"), ("anon_inode:[eventpoll]", "epoll"),
        ("anon_inode:[io_uring]", "io_uring"), ("anon_inode:inotify", "inotify"), ("pipe:[5]", "pipe"),
        ("/srv/a.html", "a.html"), ("/srv/a.html (deleted)", "a.html"),
    ):  # fmt: skip
        assert recorder._what(link, listening, tmp_path / "gone") == what
    assert recorder._what("/srv", listening, tmp_path) == "docroot"
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as other:
        found = {number: what for _, number, what in recorder.descriptors([os.getpid()])}
        assert [found[number] for number in (0, server.fileno(), other.fileno())] == ["stdin", "listens", "socket"]


def test_how_a_server_is_started() -> None:
    mine, root = Target("server", Path("/p"), ("-v",)), Path("/d")
    assert recorder.command_of(mine, SCENE, root) == ["/p", "-p", "0", "-v", "/d"]
    scene_of_few = replace(SCENE, signals=2, args={"server": ("-w", "16")})
    limited = ["prlimit", "--sigpending=2", "--"]
    assert recorder.command_of(mine, scene_of_few, root) == [*limited, "/p", "-p", "0", "-v", "-w", "16", "/d"]


def target(name: str) -> Target:
    program = ROOT / "build/bin" / name
    if not program.exists():
        pytest.skip(f"{program} is not built")
    return Target(name, program, root=ROOT)


def traced(server: Target) -> Recording:
    """A recording without its plain times. On a busy machine the tracer may be held up in a call, or the server be so
    late that B has sent its second half before the first one is read: then once more.
    """
    for _ in range(9):
        try:
            made = recorder.traced(server, "slow", scene.read("slow"))[1]
        except RepetitionError as error:
            said = str(error)
            continue
        if any((call.name, call.letter, call.asleep) == ("recv", "B", 1) for call in made.calls):
            return made
        said = "no process slept in recv() for B"
    pytest.fail(said)


def order(made: Recording) -> dict[str, list[tuple[str, str, str]]]:
    """What each task does, in its order; a wait that a signal cut in two is one."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for call in made.calls:
        note = call.note if call.name != "accept" else ""
        if call.name not in ("waitpid",) and not call.note.startswith("interrupted"):
            found.setdefault(made.tasks[call.task].name, []).append((call.name, call.letter, note))
    return found


@pytest.mark.parametrize("name", ["01-iterative", "02-fork"])
def test_two_recordings_of_one_scene_have_the_same_order(name: str) -> None:
    """Each process serves its client step by step, however the machine is."""
    tracing = needs.tracing()
    if not tracing.ok:
        pytest.skip(f"{tracing.reason}: {tracing.remedy}")
    with recorder.going_first():
        one, two = traced(target(name)), traced(target(name))
    assert order(one) == order(two)
    assert len(one.calls) > 30


def test_where_nothing_may_be_traced_the_clients_are_recorded_and_the_rest_is_said() -> None:
    made = recorder.record(target("01-iterative"), "slow", scene.read("slow"), Answer(False, "forbidden", "allow it"))
    assert made.left == ["Processes, threads and calls: forbidden (allow it)."]
    assert (made.calls, made.tasks) == ([], [])
    assert [guest.letter for guest in made.clients] == list(made.plain) == ["A", "B", "C", "D"]
    assert "B falls silent." in [moment.head for moment in made.moments]


FORKS = """\
import os, socket, time
sock = socket.create_server(("127.0.0.1", 0))
os.fork()
print(f"forks: listening on http://127.0.0.1:{sock.getsockname()[1]}/", flush=True)
time.sleep(60)
"""
RECORDS = """\
from pathlib import Path
from quest.ground.places import Answer
from quest.measure import recorder, scene
target = recorder.Target("s", Path("build/bin", "for" + "ks"))
recorder.record(target, "x", scene.Scene("t", "q", ("s",), (scene.Client("A"),)), Answer(False, "forbidden"))
"""


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_recorder_that_is_ended_leaves_no_process_of_the_server(tree: Tree, how: signal.Signals) -> None:
    tree.program("forks", FORKS)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", RECORDS], cwd=tree.root, env=environment, text=True) as process:
        await_(lambda: len(tree.processes("bin/forks")) == 2, process)
        process.send_signal(how)
        process.wait(20)
        assert process.returncode == -how
        await_(lambda: not tree.processes("bin/forks"))
