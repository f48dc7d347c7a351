"""`make which`: what is read of a /proc that is made up, and the model that follows from it."""

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from quest.__main__ import main
from quest.learn.which import calls, goal, models, proc, seen, sockets
from quest.learn.which.goal import looks, server_of, told
from quest.learn.which.models import Model, Verdict, best, judge
from quest.learn.which.proc import KERNEL_THREAD, Proc
from quest.learn.which.seen import Process, Server, Thread, Wait, settled
from quest.learn.words import Wrong

MACHINE = "x86_64"
PORT, LISTENS = 8080, 100  # the inode of the listening socket, which is descriptor 3
NUMBERS = calls.numbers(MACHINE)


def call(name: str, *arguments: int) -> str:
    """As /proc/PID/task/TID/syscall has it: six arguments, then two registers."""
    six = [*arguments, *([0] * (6 - len(arguments)))]
    return " ".join([str(NUMBERS[name]), *map(hex, six), "0x7ffe0", "0x7f370"])


@dataclass(frozen=True)
class Task:
    """A thread that is made up. `at`: its syscall, None where /proc refuses that."""

    at: str | None
    function: str = "0"
    name: str = "server"
    state: str = "S"


@dataclass(frozen=True)
class Fake:
    """A process that is made up. Threads have its number and those after it; listening is descriptor 3."""

    pid: int
    tasks: tuple[Task, ...]
    parent: int = 1
    connections: tuple[int, ...] = ()  #: inodes; their descriptors are 10 and those after it
    listens: bool = True
    blocking: bool = True
    epoll: dict[int, tuple[int, ...]] = field(default_factory=dict)  #: descriptor -> inodes in its list
    events: int = 0x19
    others: dict[int, str] = field(default_factory=dict)
    flags: int = 0
    state: str = "S"
    faults_of_children: int = 0
    faults_of_the_dead: int = 0
    hidden: bool = False

    def write(self, root: Path) -> None:
        here = root / str(self.pid)
        (here / "fdinfo").mkdir(parents=True)
        links = dict(self.others)
        if self.listens:
            links[3] = f"socket:[{LISTENS}]"
            (here / "fdinfo/3").write_text(f"pos:\t0\nflags:\t{'02' if self.blocking else '02004002'}\nmnt_id:\t10\n")
        links |= {10 + place: f"socket:[{inode}]" for place, inode in enumerate(self.connections)}
        for fd, inodes in self.epoll.items():
            links[fd] = "anon_inode:[eventpoll]"
            rows = (f"tfd: {7:8} events: {self.events:8x} data: 0 pos:0 ino:{i:x} sdev:8\n" for i in inodes)
            (here / f"fdinfo/{fd}").write_text("pos:\t0\nflags:\t02\n" + "".join(rows))
        if self.hidden:
            (here / "fd").touch()  # to list it fails
        else:
            (here / "fd").mkdir()
            for fd, target in links.items():
                (here / "fd" / str(fd)).symlink_to(target)
        faults = 5 * len(self.tasks) + self.faults_of_the_dead
        name = self.tasks[0].name if self.tasks else "server"
        (here / "stat").write_text(self.stat(name, self.state, faults))
        for place, task in enumerate(self.tasks):
            folder = here / "task" / str(self.pid + place)
            folder.mkdir(parents=True)
            (folder / "stat").write_text(self.stat(task.name, task.state, 5))
            (folder / "wchan").write_text(task.function)
            if task.at is not None:
                (folder / "syscall").write_text(task.at)

    def stat(self, name: str, state: str, faults: int) -> str:
        """Up to what is read of it, and a little more."""
        ended = self.faults_of_children
        return f"{self.pid} ({name}) {state} {self.parent} 1 1 0 -1 {self.flags} {faults} {ended} 0 0\n"


def rows(*inodes: int) -> str:
    """The table of TCP with the listening socket and connections to it: an inode each, 0 for one in the queue."""
    head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    here = f"0100007F:{PORT:04X}"
    listening = f"   0: {here} 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 {LISTENS} 1 0\n"
    both = (
        f"   1: {here} 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 {inode} 1 0\n"
        f"   2: 0100007F:9999 {here} 01 00000000:00000000 00:00000000 00000000     0        0 {900 + inode} 1 0\n"
        for inode in inodes
    )
    return head + listening + "".join(both)


def made_up(root: Path, fakes: tuple[Fake, ...], *inodes: int) -> Proc:
    """A /proc of these processes, whose server has these connections."""
    for fake in fakes:
        fake.write(root)
        (root / str(fake.pid) / "net").mkdir()
        (root / str(fake.pid) / "net/tcp").write_text(rows(*inodes))
    return Proc(root, MACHINE)


ACCEPTS = Task(call("accept", 3), "inet_csk_accept")
READS = Task(call("recvfrom", 10), "wait_woken")
IDLE = Task(call("futex", 0x7F00, 0x189), "futex_do_wait")
SUSPENDED = Task(call("rt_sigsuspend", 0x7F00, 8), "sigsuspend")
WAITS = Task(call("epoll_wait", 4, 0x7F00, 64), "ep_poll")
RUNS = Task("running", state="R")
PAIR, THREE = (201, 202), (201, 202, 203)


def workers(*tasks: tuple[Task, ...], first: Task = SUSPENDED, **more: object) -> tuple[Fake, ...]:
    """A parent, and a child with these threads for each of `tasks`."""
    children = (Fake(20 + 10 * n, each, parent=10, **more) for n, each in enumerate(tasks))  # type: ignore[arg-type]
    return (Fake(10, (first,)), *children)


def children(*connections: int) -> tuple[Fake, ...]:
    """Of 02-fork: a child that reads from each of these connections, and has no listening socket."""
    return tuple(
        Fake(20 + n, (READS,), parent=10, connections=(inode,), listens=False) for n, inode in enumerate(connections)
    )


LIST = (LISTENS, *PAIR)
CASES: dict[str, tuple[tuple[Fake, ...], tuple[int, ...], tuple[Model, ...]]] = {
    "iterative": ((Fake(10, (READS,), connections=(201,)),), (201, 0, 0), (models.ITERATIVE,)),
    "one thread in accept": ((Fake(10, (ACCEPTS,)),), (), (models.ITERATIVE, models.FORK, models.THREADS)),
    "... whose children have ended": ((Fake(10, (ACCEPTS,), faults_of_children=7),), (), (models.FORK,)),
    "... whose threads have ended": ((Fake(10, (ACCEPTS,), faults_of_the_dead=3),), (), (models.THREADS,)),
    "fork": ((Fake(10, (ACCEPTS,)), *children(*PAIR)), PAIR, (models.FORK,)),
    "fork, and the children compute": (
        (Fake(10, (ACCEPTS,)), *(replace(child, tasks=(RUNS,)) for child in children(*PAIR))), PAIR, (models.FORK,),
    ),
    "fork by a parent that polls": (
        (Fake(10, (Task(call("poll", 0x7F00, 1)),), faults_of_children=9), *children(*PAIR)), PAIR, (models.FORK,),
    ),
    "fork, or all workers busy": (
        (Fake(10, (Task(call("pselect6", 9)),)), *children(*PAIR)), PAIR, (models.FORK, models.PREFORK),
    ),
    "fork, or all workers busy, and the parent runs": (
        (Fake(10, (RUNS,)), *children(*PAIR)), PAIR, (models.FORK, models.PREFORK),
    ),
    "prefork": (workers((ACCEPTS,), (ACCEPTS,)), (), (models.PREFORK,)),
    "prefork, one free": (
        (*workers((ACCEPTS,)), Fake(40, (READS,), parent=10, connections=(201,))), (201,), (models.PREFORK,),
    ),
    "prefork, none free": (
        (Fake(10, (SUSPENDED,)), *children(*PAIR)), (*PAIR, 0), (models.PREFORK,),
    ),
    "prefork that takes turns": (
        workers((ACCEPTS,), (Task(call("semop", 9)),), (Task(call("futex", 9)),)), (), (models.PREFORK,),
    ),
    "prefork that selects, or loops": (
        workers((Task(call("pselect6", 9)),), (Task(call("pselect6", 9)),), blocking=False), (),
        (models.PREFORK, models.OLD_LOOPS),
    ),
    "threads": ((Fake(10, (ACCEPTS, READS, READS), connections=PAIR),), PAIR, (models.THREADS,)),
    "threads, read with a time limit": (
        (Fake(10, (ACCEPTS, *[Task(call("poll", 0x7F00, 1))] * 2), connections=PAIR),), PAIR, (models.THREADS,),
    ),
    "threads, accepted after a poll": (
        (Fake(10, (Task(call("poll", 0x7F00, 1)), READS, READS), connections=PAIR),), PAIR, (models.THREADS,),
    ),
    "pool": ((Fake(10, (ACCEPTS, READS, IDLE, IDLE), connections=(201,)),), (201,), (models.POOL,)),
    "pool whose threads accept": ((Fake(10, (ACCEPTS,) * 4),), (), (models.POOL,)),
    "select": ((Fake(10, (Task(call("select", 12)),), connections=PAIR),), PAIR, (models.SELECT_LOOP,)),
    "poll": ((Fake(10, (Task(call("poll", 9, 3)),), connections=PAIR),), PAIR, (models.POLL_LOOP,)),
    "poll, and no client": ((Fake(10, (Task(call("poll", 9, 1)),), blocking=False),), (), (models.POLL_LOOP,)),
    "poll before an accept that blocks": (
        (Fake(10, (Task(call("poll", 9, 1)),)),), (), (models.ITERATIVE, models.FORK, models.THREADS),
    ),
    "select in each of several": (
        (*workers((Task(call("select", 12)),), blocking=False),
         Fake(50, (Task(call("select", 12)),), parent=10, connections=PAIR)), PAIR, (models.OLD_LOOPS,),
    ),
    "signals": ((Fake(10, (Task(call("rt_sigtimedwait", 9)),), connections=PAIR),), PAIR, (models.SIGNAL_LOOP,)),
    "epoll": ((Fake(10, (WAITS,), connections=PAIR, epoll={4: LIST}),), PAIR, (models.EPOLL_LOOP,)),
    "epoll that runs": ((Fake(10, (RUNS,), connections=PAIR, epoll={4: LIST}),), PAIR, (models.EPOLL_LOOP,)),
    "epoll and helpers": (
        (Fake(10, (WAITS, IDLE, IDLE), connections=PAIR, epoll={4: LIST}),), PAIR, (models.LOOP_HELPERS,),
    ),
    "epoll, and another that has no client": (
        (Fake(10, (WAITS, Task(call("epoll_wait", 5)), IDLE), connections=PAIR, epoll={4: LIST, 5: (77,)}),), PAIR,
        (models.LOOP_HELPERS,),
    ),
    "epoll in each of several": (
        workers((WAITS,), (WAITS,), epoll={4: (LISTENS,)}), (), (models.PROCESS_LOOPS,),
    ),
    "epoll in each of several, and helpers": (
        workers((WAITS, IDLE), (WAITS, IDLE), epoll={4: (LISTENS,)}), (), (models.PROCESS_LOOPS,),
    ),
    "one worker": (workers((WAITS,), epoll={4: (LISTENS,)}), (), (models.EPOLL_LOOP,)),
    "epoll in each of several threads": (
        (Fake(10, (WAITS, Task(call("epoll_wait", 5))), connections=PAIR, epoll={4: LIST, 5: (LISTENS,)}),), PAIR,
        (models.THREAD_LOOPS,),
    ),
    "many threads at one epoll": (
        (Fake(10, (WAITS, WAITS, IDLE), connections=PAIR, epoll={4: LIST}),), PAIR, (models.RUNTIME,),
    ),
    "tokio": (
        (Fake(10, (WAITS, *[replace(IDLE, name="tokio-runtime-w")] * 2), connections=PAIR, epoll={4: LIST}),), PAIR,
        (models.RUNTIME,),
    ),
    "Java's virtual threads": (
        (Fake(10, (IDLE, replace(IDLE, name="VM Thread"), replace(IDLE, name="ForkJoinPool-1-"),
                   replace(WAITS, name="Read-Poller")), connections=PAIR, epoll={4: LIST}),), PAIR, (models.RUNTIME,),
    ),
    "Java's platform threads": (
        (Fake(10, (replace(IDLE, name="java"), replace(IDLE, name="VM Thread"), ACCEPTS, READS, READS),
              connections=PAIR),), PAIR, (models.THREADS,),
    ),
    "pool with a poller, at work": (
        (Fake(10, (IDLE, WAITS, READS, IDLE), connections=PAIR, epoll={4: LIST}),), PAIR, (models.POLLER,),
    ),
    "pool with a poller, between requests": (
        (Fake(10, (IDLE, WAITS, IDLE), connections=PAIR, epoll={4: LIST}, events=0x40000019),), PAIR,
        (models.POLLER,),
    ),
    "io_uring": (
        (Fake(10, (Task(call("io_uring_enter", 4), "io_cqring_wait"), Task("running", name="iou-wrk-10")),
              others={4: "anon_inode:[io_uring]"}),), PAIR, (models.RING_LOOP,),
    ),
    "io_uring that runs": ((Fake(10, (RUNS,), others={4: "anon_inode:[io_uring]"}),), (), (models.RING_LOOP,)),
    "io_uring in each of several": (
        workers(*[(Task(call("io_uring_enter", 4), "io_cqring_wait"),)] * 2, others={4: "anon_inode:[io_uring]"}), (),
        (models.RING_LOOP,),
    ),
    "one thread that computes for its only client": (
        (Fake(10, (RUNS,), connections=(201,)),), (201,), (models.ITERATIVE, models.SELECT_LOOP, models.POLL_LOOP),
    ),
    "poll and helpers": (
        (Fake(10, (Task(call("poll", 9, 3)), IDLE, IDLE), connections=PAIR),), PAIR, (models.POLL_LOOP,),
    ),
    "select and helpers": (
        (Fake(10, (Task(call("select", 12)), IDLE), connections=PAIR),), PAIR, (models.SELECT_LOOP,),
    ),
    "poll and helpers, or a pool": (
        (Fake(10, (Task(call("poll", 9, 2)), IDLE), connections=(201,), blocking=False),), (201,),
        (models.POOL, models.POLL_LOOP),
    ),
    "epoll, and a thread that only sleeps": (
        (Fake(10, (WAITS, Task(call("nanosleep", 9))), connections=PAIR, epoll={4: LIST}),), PAIR, (models.EPOLL_LOOP,),
    ),
    "one worker, and helpers": (workers((WAITS, IDLE), epoll={4: (LISTENS,)}), (), (models.LOOP_HELPERS,)),
    "many threads at one epoll, in each of several": (
        workers((WAITS, WAITS), (WAITS, WAITS), epoll={4: (LISTENS,)}), (), (models.RUNTIME,),
    ),
    "pool in each of several": (workers((ACCEPTS, IDLE, IDLE), (ACCEPTS, IDLE, IDLE)), (), (models.POOL,)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_model_is_told_from_what_proc_shows(tmp_path: Path, name: str) -> None:
    fakes, inodes, expected = CASES[name]
    server = proc.look(made_up(tmp_path, fakes, *inodes), 10)
    verdict = judge(server)
    assert verdict.models == expected, verdict
    assert verdict.because and bool(verdict.ask) == (len(expected) > 1)
    assert server.addresses == ("127.0.0.1:8080",) and server.connections == len(inodes)
    assert server.queued == inodes.count(0) and not server.hidden


def without_calls(fakes: tuple[Fake, ...]) -> tuple[Fake, ...]:
    """The same where /proc/PID/syscall may not be read, as with Yama's ptrace_scope."""
    return tuple(replace(fake, tasks=tuple(replace(task, at=None) for task in fake.tasks)) for fake in fakes)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (name, CASES[name][2])
        for name in ("iterative", "fork", "prefork", "prefork, one free", "threads", "pool", "epoll",
                     "epoll and helpers", "epoll in each of several", "io_uring")
    ],
)  # fmt: skip
def test_where_calls_are_refused_the_functions_of_the_kernel_do(
    tmp_path: Path, name: str, expected: tuple[Model, ...]
) -> None:
    fakes, inodes, _ = CASES[name]
    server = proc.look(made_up(tmp_path, without_calls(fakes), *inodes), 10)
    assert judge(server).models == expected
    assert len(server.hidden) == 1 and "wchan" in server.hidden[0]


def test_select_and_poll_sleep_in_the_same_function(tmp_path: Path) -> None:
    fake = Fake(10, (Task(None, "poll_schedule_timeout.constprop.0"),), connections=PAIR)
    verdict = judge(proc.look(made_up(tmp_path, (fake,), *PAIR), 10))
    assert verdict.models == (models.SELECT_LOOP, models.POLL_LOOP) and verdict.ask


@pytest.mark.parametrize("pid", [10, 20, 21])
def test_any_process_of_a_server_stands_for_all(tmp_path: Path, pid: int) -> None:
    shell = Fake(5, (SUSPENDED,), listens=False)
    helper = Fake(30, (IDLE,), parent=10, listens=False)  # that serves no client, and is none of it
    fakes = (shell, Fake(10, (ACCEPTS,), parent=5), *children(*PAIR), helper)
    server = proc.look(made_up(tmp_path, fakes, *PAIR), pid)
    assert [process.pid for process in server.processes] == [10, 20, 21]


def test_what_may_not_be_seen_is_told(tmp_path: Path) -> None:
    dark = Task(None, "0")
    fakes = (Fake(10, (SUSPENDED,)), *(Fake(20 + n, (dark,), parent=10, hidden=True) for n in range(2)))
    server = proc.look(made_up(tmp_path, fakes), 10)
    verdict = judge(server)
    assert not verdict.models and "root" in verdict.ask
    assert [line for line in server.hidden if "descriptors of 20" in line and "server" in line]
    assert server.hidden[-1] == "where 2 threads sleep"
    text = "\n".join(told([server], 10))
    assert "Not visible" in text and "cannot be told" in text


# ---- what is said --------------------------------------------------------------------------------


def test_the_three_questions_are_answered(tmp_path: Path) -> None:
    fakes, inodes, _ = CASES["pool"]
    lines = told([proc.look(made_up(tmp_path, fakes, *inodes), 10)], 10)
    text = "\n".join(lines)
    assert lines[0] == "server, PID 10, listens on 127.0.0.1:8080"
    for part in (
        "1 process, 4 threads; 1 connection", "2 threads  futex", "1 thread  accept", "1 thread  recvfrom: one client",
        models.POOL.name, "05-pool: ", "while a handler computes: " + models.POOL.computes,
    ):  # fmt: skip
        assert part in text, part


def test_each_number_of_connections_that_was_seen_is_told(tmp_path: Path) -> None:
    first = proc.look(made_up(tmp_path / "1", (Fake(10, (ACCEPTS,)),)), 10)
    later = proc.look(made_up(tmp_path / "2", (Fake(10, (ACCEPTS, READS, READS), connections=PAIR),), *PAIR), 10)
    text = "\n".join(told([first, later], 10))
    assert "with 0 connections: 1 process, 1 thread\n" in text
    assert "with 2 connections: 1 process, 3 threads\n" in text and models.THREADS.name in text


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("epoll", "epoll_wait: a list of 1 listening socket, 2 connections"), ("poll", "poll: a list of 3 descriptors"),
        ("iterative", "3 connections, 2 of them in the queue"),
    ],
)  # fmt: skip
def test_what_is_waited_for_is_counted(tmp_path: Path, name: str, part: str) -> None:
    fakes, inodes, _ = CASES[name]
    assert part in "\n".join(told([proc.look(made_up(tmp_path, fakes, *inodes), 10)], 10))


def test_what_it_may_be_is_told_with_what_would_tell_it(tmp_path: Path) -> None:
    fakes, inodes, expected = CASES["one thread in accept"]
    text = "\n".join(told([proc.look(made_up(tmp_path, fakes, *inodes), 10)], 10))
    assert all(model.name in text and model.computes in text for model in expected)
    assert models.OPEN_ONE in text and "with 0 connections" not in text, "only one number of them was seen"


def test_every_model_stands_on_a_chapter() -> None:
    for model in (one for one in vars(models).values() if isinstance(one, Model)):
        chapters = goal.chapters_of(Verdict((model,), ()))
        assert chapters != ["none"], model.name
        assert all(re.match(r"[\w-]+: \w", line) for line in chapters)


def test_many_calls_are_summed_up() -> None:
    waits = [Wait(seen.OTHER, f"call{n}") for n in range(9)]
    process = Process(10, 1, "server", tuple(Thread(10 + n, "t", wait) for n, wait in enumerate(waits)), more_threads=4)
    lines = goal.calls_of(Server((process,)))
    assert len(lines) == goal.MOST_LINES + 1
    assert sum(int(line.split()[0]) for line in lines) == process.thread_count == 13


# ---- several looks -------------------------------------------------------------------------------


def one_thread(wait: Wait) -> Server:
    return Server((Process(10, 1, "server", (Thread(10, "t", wait),)),))


def test_a_thread_that_runs_is_given_the_wait_it_was_seen_in() -> None:
    epoll, runs = Wait(seen.EPOLL, "epoll_wait", 4), Wait(seen.RUNS)
    waits = [epoll, Wait(seen.LOCK, "futex"), epoll, runs]
    assert settled(map(one_thread, waits)).processes[0].threads[0].wait == epoll
    assert settled([one_thread(runs)]).processes[0].threads[0].wait == runs
    assert settled([one_thread(epoll), one_thread(waits[1])]).processes[0].threads[0].wait == waits[1]


def test_a_look_that_is_sure_counts_before_those_that_are_not() -> None:
    unsure, none = Verdict((models.ITERATIVE, models.FORK), ("a",)), Verdict((), ("b",))
    sure, other = Verdict((models.FORK,), ("c",)), Verdict((models.POOL,), ("d",))
    assert best([none, unsure, sure, unsure]) == sure
    assert best([none, unsure]) == best([unsure, none]) == unsure
    assert best([sure, other, replace(sure, because=("later",)), other, sure]) == sure
    assert best([none]) == none


# ---- parts of it ---------------------------------------------------------------------------------


def test_names_may_hold_anything() -> None:
    stat = proc.stat_of("7 (a) S b (c)) R 3 1 1 0 -1 4194560 11 22 0 0\n")
    assert stat == proc.Stat("a) S b (c)", "R", 3, 4194560, 11, 22)
    assert proc.stat_of("") is None and proc.stat_of("7 (a) S 3") is None


def test_addresses_of_all_kinds() -> None:
    if sys.byteorder != "little":
        pytest.skip("the sample was written on a machine whose bytes are in the other order")
    queue = "00000000:00000000 00:00000000 00000000 0 0"
    tcp = [
        f"0: 0100007F:1F90 00000000:0000 0A {queue} 100 1 0",
        f"1: 00000000000000000000000001000000:0050 {'0' * 32}:0000 0A {queue} 101 1 0",
        f"2: 0000000000000000FFFF00000100007F:1F90 {'0' * 32}:0000 08 {queue} 0 1 0",
        f"3: 0100007F:1F90 00000000:0000 06 {queue} 0 1 0",  # TIME_WAIT
        "4: nonsense 0 01", f"5: 0100:1F90 0 01 {queue} 7 1 0",
    ]  # fmt: skip
    unix = [
        "00000000f2: 00000002 00000000 00010000 0001 01 300 /run/a b.sock\n", "00: 3 0 0 0001 03 301 /run/a b.sock\n",
        "00: 3 0 0 0001 03 302\n",
    ]  # fmt: skip
    found = sockets.parsed(tcp, unix)
    addresses = {inode: place.address for inode, place in found.listening.items()}
    assert addresses == {100: "127.0.0.1:8080", 101: "[::1]:80", 300: "unix:/run/a b.sock"}
    assert found.of(["8080"]) == [0] and found.of(["unix:/run/a b.sock"]) == [301]


def test_what_a_thread_does_is_told_by_its_call() -> None:
    def kind_of(fd: int) -> str:
        return {10: seen.CLIENT, 11: seen.DISK}.get(fd, seen.OTHER)

    def of(text: str, machine: str = MACHINE) -> Wait | None:
        return calls.of_syscall(text, machine, kind_of)

    assert of("running") == Wait(seen.RUNS)
    assert of(call("read", 10)) == Wait(seen.CLIENT, "read", 10)
    assert of(call("pread64", 11)) == Wait(seen.DISK, "pread64", 11)
    assert of(call("read", 0)) == Wait(seen.OTHER, "read", 0)
    assert of(call("ppoll", 0x7F00, 17)) == Wait(seen.POLL, "ppoll", None, 17)
    assert of(call("restart_syscall")) is of("-1 0x7ffe 0x7f37") is of("9999 0x0") is of("") is None
    assert of("22 0x4 0x0", "aarch64") == Wait(seen.EPOLL, "epoll_pwait", 4)
    assert of("22 0x4 0x0", "m68k") is None


def test_what_a_thread_does_is_told_by_the_function_it_sleeps_in() -> None:
    for function, state, kind in (
        ("inet_csk_accept", "S", seen.ACCEPT), ("futex_wait_queue_me", "S", seen.LOCK), ("0", "R", seen.RUNS),
        ("0", "S", seen.HIDDEN), ("", "S", seen.HIDDEN), ("what_is_this", "S", seen.OTHER), ("0", "D", seen.DISK),
    ):  # fmt: skip
        assert calls.of_function(function, state).kind == kind, function


@pytest.mark.parametrize(
    ("machine", "header"),
    [("x86_64", "x86_64-linux-gnu/asm/unistd_64.h"), ("aarch64", "asm-generic/unistd.h")],
)
def test_the_numbers_of_calls_are_the_kernels(machine: str, header: str) -> None:
    path = Path("/usr/include", header)
    if not path.exists():
        pytest.skip(f"{path} is not here (linux-libc-dev)")
    found = re.findall(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)$", path.read_text(encoding="utf-8"), re.M)
    here = {name.replace("fstatat", "newfstatat") if name == "fstatat" else name: int(n) for name, n in found}
    wrong = {name: (n, here.get(name)) for name, n in calls.numbers(machine).items() if here.get(name, n) != n}
    known = set(calls.numbers(machine)) & set(here)
    assert not wrong and len(known) > 30


def test_a_program_of_go_is_known_by_a_section_of_its_file(tmp_path: Path) -> None:
    names = b"\0.text\0.go.buildinfo\0"
    head = bytearray(64)
    head[:6] = b"\x7fELF\x02\x01"
    head[40:48] = (64).to_bytes(8, "little")  # where the table of sections is
    head[58:64] = b"".join(n.to_bytes(2, "little") for n in (64, 1, 0))  # their size, their number, that of the names
    section = bytearray(64)
    section[24:40] = (128).to_bytes(8, "little") + len(names).to_bytes(8, "little")
    fakes, inodes, _ = CASES["epoll and helpers"]
    shape = made_up(tmp_path, fakes, *inodes)
    for file, expected in (
        (bytes(head + section) + names, models.RUNTIME), (bytes(head + section) + b"\0.text\0", models.LOOP_HELPERS),
        (bytes(head), models.LOOP_HELPERS), (b"#!/bin/sh\n", models.LOOP_HELPERS),
    ):  # fmt: skip
        (tmp_path / "10/exe").write_bytes(file)
        assert judge(proc.look(Proc(shape.root, MACHINE), 10)).models == (expected,)


def test_what_a_read_is_of_is_told_by_its_descriptor(tmp_path: Path) -> None:
    """A file, no file, a client."""
    tasks = (Task(call("pread64", 11)), Task(call("read", 12)), READS)
    fake = Fake(10, tasks, connections=(201,), others={11: "/srv/a.html", 12: "/dev/null"})
    process = proc.look(made_up(tmp_path, (fake,), 201), 10).processes[0]
    assert [thread.wait.kind for thread in process.threads] == [seen.DISK, seen.OTHER, seen.CLIENT]


def test_many_processes_are_counted_and_not_all_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proc, "MOST_PROCESSES", 3)
    server = proc.look(made_up(tmp_path, workers(*[(ACCEPTS,)] * 4)), 10)
    assert (len(server.processes), server.process_count) == (3, 5)


@pytest.mark.parametrize(
    ("option", "hides"),
    [("2", True), ("invisible", True), ("4", True), ("ptraceable", True), ("1", False), ("noaccess", False)],
)
def test_a_proc_that_hides_others(tmp_path: Path, option: str, hides: bool) -> None:
    """With 1, noaccess, they are there, and may not be looked into."""
    (tmp_path / "self").mkdir()
    (tmp_path / "self/mounts").write_text(f"none / tmpfs rw 0 0\nproc /proc proc rw,hidepid={option} 0 0\n")
    assert Proc(tmp_path, MACHINE).hides_others() == hides


def test_many_threads_are_counted_and_not_all_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proc, "MOST_THREADS", 3)
    fake = Fake(10, (ACCEPTS, *[READS] * 6), connections=PAIR, faults_of_the_dead=9)
    process = proc.look(made_up(tmp_path, (fake,), *PAIR), 10).processes[0]
    assert (len(process.threads), process.thread_count, process.threads_ended) == (3, 7, False)


def test_the_time_is_kept(tmp_path: Path) -> None:
    fakes, inodes, _ = CASES["fork"]
    shape = made_up(tmp_path, fakes, *inodes)
    late = Proc(shape.root, MACHINE, deadline=time.monotonic() - 1)
    assert len(list(looks(late, 10))) <= 1


def test_a_server_whose_first_thread_has_ended_is_one(tmp_path: Path) -> None:
    """As after pthread_exit() in main: what it has open is shown at the threads that run on."""
    gone = replace(ACCEPTS, state="Z")
    shape = made_up(tmp_path, (Fake(10, (gone, ACCEPTS), state="Z"),))
    for name in ("fd", "fdinfo", "net"):
        (tmp_path / "10" / name).rename(tmp_path / "10/task/11" / name)
    assert server_of(shape, 10) == 10
    server = proc.look(shape, 10)
    assert (server.addresses, server.process_count, server.thread_count) == (("127.0.0.1:8080",), 1, 1)
    assert server.processes[0].blocking


# ---- bad input -----------------------------------------------------------------------------------


def refused(shape: Proc, pid: int) -> str:
    with pytest.raises(Wrong) as error:
        server_of(shape, pid)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_what_is_no_server_is_refused_in_one_line(tmp_path: Path) -> None:
    fakes = (
        Fake(10, (ACCEPTS,), parent=12), Fake(11, (IDLE,), flags=KERNEL_THREAD, listens=False),
        Fake(12, (IDLE,), listens=False), Fake(13, (replace(IDLE, state="Z"),), state="Z"),
        Fake(14, (IDLE,), hidden=True),
        Fake(15, (IDLE,), listens=False),
    )  # fmt: skip
    shape = made_up(tmp_path, fakes)
    (tmp_path / "99").mkdir()
    (tmp_path / "99/stat").write_text("99 (server) S 12 1 1 0 -1 0 5 0 0 0\n")
    (tmp_path / "99/status").write_text("Name:\tserver\nTgid:\t10\nPid:\t99\n")
    assert server_of(shape, 10) == server_of(shape, 99) == 10, "the number of a thread stands for its process"
    assert "thread of the kernel" in refused(shape, 11)
    assert refused(shape, 12).endswith("its child 10 (server) does: PID=10")
    assert "has ended" in refused(shape, 13)
    assert "sudo make which PID=14" in refused(shape, 14)
    assert "listens on no socket" in refused(shape, 15) and "child" not in refused(shape, 15)
    assert "no such process" in refused(shape, 77) and "hidepid" not in refused(shape, 77)
    (tmp_path / "self").mkdir()
    (tmp_path / "self/mounts").write_text("proc /proc proc rw,relatime,hidepid=invisible 0 0\n")
    assert "hidepid" in refused(shape, 77)


@pytest.mark.parametrize("look", ["descriptors", "sockets"])
def test_what_ends_while_it_is_looked_at_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look: str) -> None:
    shape = made_up(tmp_path, (Fake(10, (ACCEPTS,)),))
    reads = getattr(shape, look)

    def ends(pid: int) -> object:
        shutil.rmtree(tmp_path / "10", ignore_errors=True)
        return reads(pid)

    monkeypatch.setattr(shape, look, ends)
    assert refused(shape, 10) == "PID=10 (server) has just ended"


@pytest.mark.parametrize("word", ["", "PID=nginx", "PID=-1", "PID=0", "PID=99999999999", "PID=4711x"])
def test_a_bad_number_is_answered_in_one_line(capsys: pytest.CaptureFixture[str], word: str) -> None:
    assert main(["which", *filter(None, [word])]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("make which: ") and said.err.count("\n") == 1 and "PID=" in said.err


def test_a_program_that_listens_on_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as cat:
        assert main(["which", f"PID={cat.pid}"]) == 2
        assert f"PID={cat.pid} (cat) is no server" in capsys.readouterr().err
        assert os.path.isdir(f"/proc/{cat.pid}"), "it was only looked at"
