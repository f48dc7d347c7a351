"""Reads what /proc shows of a server: its processes, their threads, descriptors and sockets.

It only reads, takes no longer than it is told, and needs no right beyond those that the reader has. What /proc refuses
(another user's process, hidepid, Yama) is told in `hidden`. A process that ends while it is looked at is left out.
"""

import contextlib
import itertools
import os
import platform
import re
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from quest.ground.places import link_of, numbered
from quest.learn.which import calls, seen
from quest.learn.which.seen import Process, Server, Thread, Wait, Watched
from quest.learn.which.sockets import Sockets, parsed

MOST_PROCESSES = 64  # that are looked at closely; of the rest only the number is told
MOST_THREADS = 300  # of a process
MOST_DESCRIPTORS = 20_000
MOST_ROWS = 200_000  # of a table of sockets
MOST_TEXT = 1 << 24  # the list of an epoll has a line for each descriptor
KERNEL_THREAD = 0x00200000  # PF_KTHREAD, a flag of stat
NONBLOCKING = 0o4000
ONESHOT = 1 << 30
OF_KERNEL = ("iou-wrk", "iou-sqp")  # names of threads that an io_uring has
SOCKET = re.compile(r"socket:\[(\d+)\]")
TARGET = re.compile(r"^tfd:\s*\d+ events:\s*([0-9a-f]+).*?\bino:([0-9a-f]+)", re.M)
FLAGS = re.compile(r"^flags:\s*0?([0-7]+)", re.M)
#: What the names of threads say of the runtime; the first 15 characters are kept.
NAMES_OF_RUNTIMES = (("tokio-runtime-w", "tokio"), ("VM Periodic Tas", "Java"), ("VM Thread", "Java"))
GO_SECTION = b".go.buildinfo"


@dataclass(frozen=True)
class Stat:
    """Of /proc/PID/stat, or of a thread's."""

    name: str
    state: str
    parent: int
    flags: int
    faults: int
    faults_of_children: int  #: of those that have ended and were waited for


def stat_of(text: str) -> Stat | None:
    """None where the text is not whole. The name may hold blanks and parentheses."""
    before, closed, rest = text.rpartition(")")
    words = rest.split()
    if not closed or len(words) < 9:
        return None
    name = before.partition("(")[2]
    return Stat(name, words[0], int(words[1]), int(words[6]), int(words[7]), int(words[8]))


def read_text(path: Path) -> str | None:
    """At most MOST_TEXT characters; None where it may not be read, or is not there."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(MOST_TEXT)
    except OSError:
        return None


@dataclass(frozen=True)
class Descriptors:
    """What a process has open."""

    sockets: dict[int, int]  #: descriptor -> inode
    epolls: frozenset[int]
    rings: frozenset[int]
    files: frozenset[int]
    hidden: bool = False


class Proc:
    """/proc, or a folder that looks like it, until `deadline` (by time.monotonic())."""

    def __init__(self, root: Path = Path("/proc"), machine: str = "", deadline: float = float("inf")) -> None:
        self.root = root
        self.machine = machine or platform.machine()
        self.deadline = deadline
        self.calls_refused = False  #: the system call of a thread could not be read
        self._runtimes: dict[int, str] = {}

    def over(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() > self.deadline

    def stat(self, pid: int) -> Stat | None:
        """None if there is no such process, or it is hidden."""
        return stat_of(read_text(self.root / str(pid) / "stat") or "")

    def home(self, pid: int) -> Path:
        """Its folder. Where its first thread has ended, and others run on (pthread_exit() in main), that of one of
        these: what they have open is not shown at the first any more.
        """
        own, stat = self.root / str(pid), self.stat(pid)
        for task in numbered(own / "task") if stat and stat.state in "ZX" else ():
            one = stat_of(read_text(task / "stat") or "")
            if one and one.state not in "ZX":
                return task
        return own

    def process_of(self, number: int) -> int:
        """The process that a number of a thread belongs to; the number itself if it is a process."""
        status = read_text(self.root / str(number) / "status") or ""
        found = re.search(r"^Tgid:\s*(\d+)", status, re.M)
        return int(found[1]) if found else number

    def hides_others(self) -> bool:
        """Whether /proc is mounted so that other users' processes are not there."""
        mounts = read_text(self.root / "self/mounts") or ""
        return any(" proc " in line and re.search(r"hidepid=(2|invisible|4|ptraceable)", line) is not None
                   for line in mounts.splitlines())  # fmt: skip

    # ---- which processes belong together

    def parents(self) -> dict[int, int]:
        """Each process that can be seen -> its parent."""
        found = {}
        for path in numbered(self.root):
            if self.over():
                break
            if stat := stat_of(read_text(path / "stat") or ""):
                found[int(path.name)] = stat.parent
        return found

    def descriptors(self, pid: int) -> Descriptors:
        """At most MOST_DESCRIPTORS of them."""
        sockets: dict[int, int] = {}
        kinds: dict[str, set[int]] = {"anon_inode:[eventpoll]": set(), "anon_inode:[io_uring]": set(), "file": set()}
        folder = self.home(pid) / "fd"
        try:
            names = os.listdir(folder)
        except OSError:
            return Descriptors({}, frozenset(), frozenset(), frozenset(), hidden=True)
        for name in itertools.islice(names, MOST_DESCRIPTORS):
            if self.over():
                break
            target = link_of(folder / name)
            if found := SOCKET.fullmatch(target):
                sockets[int(name)] = int(found[1])
            elif target in kinds:
                kinds[target].add(int(name))
            elif target.startswith("/") and not target.startswith("/dev/"):
                kinds["file"].add(int(name))
        epolls, rings, files = map(frozenset, kinds.values())
        return Descriptors(sockets, epolls, rings, files)

    def sockets(self, pid: int) -> Sockets:
        """The tables of the namespace that the process is in."""
        return parsed(self._rows(pid, "tcp", "tcp6"), self._rows(pid, "unix"))

    def _rows(self, pid: int, *names: str) -> Iterator[str]:
        for name in names:
            with contextlib.suppress(OSError):
                path = self.home(pid) / "net" / name
                with path.open(encoding="utf-8", errors="replace") as file:
                    next(file, "")  # the head
                    for number, line in enumerate(file):
                        if number >= MOST_ROWS or (number % 1000 == 0 and self.over()):
                            return
                        yield line

    # ---- one process

    def _epoll(self, pid: int, fd: int, listening: set[int], connected: set[int]) -> Watched:
        text = read_text(self.home(pid) / "fdinfo" / str(fd)) or ""
        counts = {"listening": 0, "connections": 0, "others": 0, "once": 0}
        for events, number in TARGET.findall(text):
            inode = int(number, 16)
            what = "listening" if inode in listening else "connections" if inode in connected else "others"
            counts[what] += 1
            counts["once"] += what == "connections" and int(events, 16) & ONESHOT != 0
        return Watched(**counts)

    def _blocks(self, pid: int, fd: int) -> bool:
        found = FLAGS.search(read_text(self.home(pid) / "fdinfo" / str(fd)) or "")
        return found is not None and int(found[1], 8) & NONBLOCKING == 0

    def _wait(self, task: Path, state: str, kind_of: Callable[[int], str]) -> Wait:
        text, function = read_text(task / "syscall"), read_text(task / "wchan")
        self.calls_refused |= text is None and function is not None  # without both it has ended
        if text is not None and (wait := calls.of_syscall(text, self.machine, kind_of)):
            return wait
        return calls.of_function((function or "").strip(), state)

    def threads(self, pid: int, kind_of: Callable[[int], str]) -> tuple[list[Thread], int, int, int]:
        """Those of the program, at most MOST_THREADS; how many more there are; how many the kernel has added; and the
        page faults of all.
        """
        threads: list[Thread] = []
        more = kernel = faults = 0
        for path in sorted(numbered(self.root / str(pid) / "task"), key=lambda each: int(each.name)):
            if len(threads) >= MOST_THREADS or self.over():
                more += 1
                continue
            stat = stat_of(read_text(path / "stat") or "")
            faults += stat.faults if stat else 0
            if not stat or stat.state in "ZX":
                continue
            if stat.name.startswith(OF_KERNEL):
                kernel += 1
            else:
                threads.append(Thread(int(path.name), stat.name, self._wait(path, stat.state, kind_of)))
        return threads, more, kernel, faults

    def runtime(self, pid: int, names: Iterable[str]) -> str:
        """Go, tokio or Java, if the names of the threads or the program's file say so; else ""."""
        if pid not in self._runtimes:
            by_name = (what for name in names for known, what in NAMES_OF_RUNTIMES if name == known)
            self._runtimes[pid] = next(by_name, "Go" if self._is_of_go(pid) else "")
        return self._runtimes[pid]

    def _is_of_go(self, pid: int) -> bool:
        """Whether the program's file has the section in which Go keeps how it was built (ELF, 64 bits)."""
        try:
            with (self.home(pid) / "exe").open("rb") as file:
                head = file.read(64)
                if len(head) < 64 or head[:5] != b"\x7fELF\x02":
                    return False
                order = "<" if head[5] == 1 else ">"
                (sections,) = struct.unpack_from(f"{order}Q", head, 40)
                size, _, names = struct.unpack_from(f"{order}HHH", head, 58)
                file.seek(sections + names * size)
                offset, length = struct.unpack_from(f"{order}QQ", file.read(size), 24)
                file.seek(offset)
                return GO_SECTION in file.read(min(length, 1 << 16))
        except (OSError, struct.error, ValueError, OverflowError):
            return False

    def process(self, pid: int, sockets: Sockets, connected: set[int]) -> Process | None:
        """What is seen of it; `connected`: the inodes of the server's connections. None: it has ended."""
        stat = self.stat(pid)
        if not stat:
            return None
        has = self.descriptors(pid)
        listening = set(sockets.listening)
        clients = frozenset(fd for fd, inode in has.sockets.items() if inode in connected)
        listens = frozenset(fd for fd, inode in has.sockets.items() if inode in listening)

        def kind_of(fd: int) -> str:
            if fd in clients or has.hidden:
                return seen.CLIENT
            return seen.DISK if fd in has.files else seen.OTHER

        threads, more, kernel, faults = self.threads(pid, kind_of)
        if not threads:
            return None
        return Process(
            pid, stat.parent, stat.name, tuple(threads), more, kernel, listens,
            blocking=any(self._blocks(pid, fd) for fd in listens),
            connections=clients,
            watching={fd: self._epoll(pid, fd, listening, connected) for fd in sorted(has.epolls)},
            rings=has.rings,
            children_ended=stat.faults_of_children > 0,
            threads_ended=not more and not kernel and stat.faults > faults,
            runtime=self.runtime(pid, (thread.name for thread in threads)),
            opaque=has.hidden,
        )  # fmt: skip


@dataclass(frozen=True)
class Family:
    """The processes of a server, and where it listens."""

    pids: tuple[int, ...]  #: the parent of all first
    places: frozenset[str]  #: names of places; empty if none of them listens
    addresses: tuple[str, ...]


def family(proc: Proc, pid: int, sockets: Sockets) -> Family:
    """The processes that serve together with this one: they have a listening socket in common, or one listens where the
    other has a connection. A child whose descriptors may not be seen is taken for one of them.
    """
    parents = proc.parents()
    name_of_listening = {inode: place.name for inode, place in sockets.listening.items()}
    name_of_connection = {inode: name for name, inode in sockets.connected if inode}
    known: dict[int, Descriptors] = {}

    def inodes(one: int) -> set[int]:
        if one not in known:
            known[one] = proc.descriptors(one)
        return set(known[one].sockets.values())

    def places(one: int) -> set[str]:
        return {name_of_listening[inode] for inode in inodes(one) if inode in name_of_listening}

    def serves_for(child: int, other: int) -> bool:
        if inodes(child) & inodes(other) & name_of_listening.keys():
            return True
        return any(name_of_connection.get(inode) in places(other) for inode in inodes(child)) or known[child].hidden

    top = pid
    while (parent := parents.get(top, 0)) > 1 and serves_for(top, parent) and not proc.over():
        if known[parent].hidden:
            break
        top = parent
    children: dict[int, list[int]] = {}
    for child, parent in sorted(parents.items()):
        children.setdefault(parent, []).append(child)
    members, waiting = [top], list(children.get(top, []))
    while waiting and not proc.over():
        one = waiting.pop(0)
        if one == pid or serves_for(one, top) or serves_for(one, parents[one]):
            members.append(one)
        waiting += children.get(one, [])
    here = {name for one in members for name in places(one)}
    addresses = sorted({place.address for place in sockets.listening.values() if place.name in here})
    return Family(tuple(members), frozenset(here), tuple(addresses))


def listening_below(proc: Proc, pid: int) -> int:
    """A process that `pid` has started, or one that this has started, which listens; 0 if none does."""
    parents = proc.parents()
    listening = set(proc.sockets(pid).listening)
    below = {pid}
    for child in sorted(parents):  # a child mostly has a higher number than its parent
        if parents[child] in below and not proc.over():
            below.add(child)
            if listening & set(proc.descriptors(child).sockets.values()):
                return child
    return 0


def look(proc: Proc, pid: int) -> Server:
    """The server that this process belongs to, at this moment. Without an address if it is none; without processes if
    it has ended.
    """
    sockets = proc.sockets(pid)
    whole = family(proc, pid, sockets)
    connected = sockets.of(whole.places)
    processes = []
    for one in whole.pids[:MOST_PROCESSES]:
        if process := proc.process(one, sockets, set(connected) - {0}):
            processes.append(process)
    hidden = [f"the descriptors of {one.pid} ({one.name})" for one in processes if one.opaque]
    dark = sum(len(one.in_kind(seen.HIDDEN)) for one in processes)
    if dark:
        hidden.append(f"where {dark} {'thread sleeps' if dark == 1 else 'threads sleep'}")
    elif proc.calls_refused:
        hidden.append("system calls (/proc/PID/syscall): the functions of the kernel are shown instead (wchan)")
    return Server(
        tuple(processes), whole.addresses, len(connected), connected.count(0),
        max(0, len(whole.pids) - MOST_PROCESSES), tuple(hidden),
    )  # fmt: skip
