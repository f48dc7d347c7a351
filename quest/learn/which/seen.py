"""What one look into /proc finds of a server: records, and nothing that reads."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

# What a thread does. A wait for a client is one of the first eight; the rest serves no client at the moment.
ACCEPT = "accept"  #: waits for a new connection
CLIENT = "client"  #: waits for one client: a read or write on its connection
SELECT, POLL, EPOLL = "select", "poll", "epoll"
EITHER = "select or poll"  #: the two sleep in the same function of the kernel
RING = "io_uring"
QUEUE = "signal queue"
LOCK = "lock"  #: futex: a thread without work, or one that waits for another
TURN = "turn"  #: a lock between processes: flock, fcntl, semop
SLEEP, CHILDREN, SIGNALS = "sleep", "children", "signals"
DISK = "disk"
RUNS = "runs"
OTHER = "other"
HIDDEN = "hidden"  #: /proc refuses


@dataclass(frozen=True)
class Wait:
    """What a thread does at the moment of the look."""

    kind: str
    call: str = ""  #: the system call that it sleeps in; "" if it is not known
    fd: int | None = None  #: what it waits for, where the call says so
    count: int | None = None  #: of poll: how many descriptors


@dataclass(frozen=True)
class Thread:
    """A thread of the program."""

    number: int
    name: str
    wait: Wait


@dataclass(frozen=True)
class Watched:
    """The list of an epoll: how many of each kind are in it."""

    listening: int = 0
    connections: int = 0
    others: int = 0
    once: int = 0  #: connections with EPOLLONESHOT: each event goes to one thread, which hands the connection back

    @property
    def serves(self) -> bool:
        """Whether clients are among them."""
        return self.listening + self.connections > 0


@dataclass(frozen=True)
class Process:
    """A process of the server."""

    pid: int
    parent: int
    name: str
    threads: tuple[Thread, ...]
    more_threads: int = 0  #: that were not looked at, because they are so many
    kernel_workers: int = 0  #: of an io_uring: threads that the kernel has added
    listens: frozenset[int] = frozenset()  #: descriptors of listening sockets
    blocking: bool = False  #: one of these makes accept() wait
    connections: frozenset[int] = frozenset()  #: descriptors of its clients' connections
    watching: Mapping[int, Watched] = field(default_factory=dict)  #: descriptor of an epoll -> its list
    rings: frozenset[int] = frozenset()  #: descriptors of io_urings
    children_ended: bool = False  #: it has waited for children of its own
    threads_ended: bool = False  #: threads of it have ended
    runtime: str = ""  #: Go, tokio or Java, if a mark of these was seen
    opaque: bool = False  #: its descriptors may not be seen

    @property
    def thread_count(self) -> int:
        """Of the program, without those of the kernel."""
        return len(self.threads) + self.more_threads

    def in_kind(self, *kinds: str) -> list[Thread]:
        """The threads that do one of these."""
        return [thread for thread in self.threads if thread.wait.kind in kinds]


@dataclass(frozen=True)
class Server:
    """All processes of a server, and its connections."""

    processes: tuple[Process, ...]  #: the first is the parent of the others, or of their parents
    addresses: tuple[str, ...] = ()  #: where it listens
    connections: int = 0  #: established ones, those in the queue among them
    queued: int = 0  #: of these, not yet taken by accept()
    more_processes: int = 0  #: that were not looked at, because they are so many
    hidden: tuple[str, ...] = ()  #: what may not be seen, a line each

    @property
    def process_count(self) -> int:
        """How many there are."""
        return len(self.processes) + self.more_processes

    @property
    def thread_count(self) -> int:
        """Of all processes that were looked at."""
        return sum(process.thread_count for process in self.processes)


def settled(looks: Iterable[Server]) -> Server:
    """The last look; a thread that runs in it is given the wait in which it was seen most often before."""
    seen: dict[tuple[int, int], Counter[Wait]] = {}
    last = Server(())
    for last in looks:
        for process in last.processes:
            for thread in process.threads:
                if thread.wait.kind not in (RUNS, HIDDEN):
                    seen.setdefault((process.pid, thread.number), Counter())[thread.wait] += 1

    def at_rest(pid: int, thread: Thread) -> Thread:
        waits = seen.get((pid, thread.number))
        if thread.wait.kind != RUNS or not waits:
            return thread
        return replace(thread, wait=waits.most_common(1)[0][0])

    processes = (
        replace(process, threads=tuple(at_rest(process.pid, thread) for thread in process.threads))
        for process in last.processes
    )
    return replace(last, processes=tuple(processes))
