"""The models that a server may stand on, and the rules that tell them apart: pure functions over what was seen."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from quest.learn.which import seen
from quest.learn.which.seen import Process, Server, Thread


@dataclass(frozen=True)
class Model:
    """A way of serving many clients."""

    name: str
    chapters: tuple[str, ...]  #: the one that it stands on first
    computes: str  #: which clients wait while a handler computes
    reads: str  #: which wait while a handler reads a file from the disk


_SAME_LOOP = "all other clients of the same loop"
ITERATIVE = Model("one client after another", ("01-iterative",), "all other clients", "all other clients")
FORK = Model(
    "a process for each connection", ("02-fork", "process-cost"),
    "no other client, as long as a processor is free: the kernel shares them among the processes", "no other client",
)  # fmt: skip
PREFORK = Model(
    "processes made in advance", ("03-prefork",),
    "no other client while a process is free; with all of them busy, every new client", "the same",
)  # fmt: skip
THREADS = Model(
    "a thread for each connection", ("04-threads",),
    "no other client, as long as a processor is free: the kernel shares them among the threads", "no other client",
)  # fmt: skip
POOL = Model(
    "a pool of threads", ("05-pool", "04-threads"),
    "no other client while a thread is free; with all of them busy, every new client", "the same",
)  # fmt: skip
SELECT_LOOP = Model("one loop over select", ("06-select", "05b-nonblocking"), "all other clients", "all other clients")
POLL_LOOP = Model("one loop over poll", ("07-poll", "06-select"), "all other clients", "all other clients")
SIGNAL_LOOP = Model("one loop over a queue of signals", ("08-sigio",), "all other clients", "all other clients")
EPOLL_LOOP = Model("one loop over epoll", ("09-epoll", "05b-nonblocking"), "all other clients", "all other clients")
LOOP_HELPERS = Model(
    "one loop over epoll, and threads for what would make it wait", ("12-aio", "09-epoll"),
    "all other clients, if the loop runs the handler",
    "no other client, if a thread reads; all, if the loop does",
)  # fmt: skip
RING_LOOP = Model(
    "one loop over io_uring", ("13-uring",), "all other clients",
    "no other client, if the ring reads; all, if the loop does",
)  # fmt: skip
PROCESS_LOOPS = Model(
    "several processes, a loop over epoll in each", ("15-slashdot", "09-epoll"), _SAME_LOOP,
    f"{_SAME_LOOP}, unless a thread reads",
)  # fmt: skip
THREAD_LOOPS = Model(
    "several threads, a loop over epoll in each", ("15-slashdot", "09-epoll"), _SAME_LOOP,
    f"{_SAME_LOOP}, unless another thread reads",
)  # fmt: skip
OLD_LOOPS = Model(
    "several processes, a loop over select or poll in each", ("15-slashdot", "07-poll", "06-select"), _SAME_LOOP,
    _SAME_LOOP,
)  # fmt: skip
POLLER = Model(
    "a pool of threads, and a loop over epoll for clients between two requests", ("05-pool", "09-epoll"),
    "no other client while a thread is free; with all of them busy, every request", "the same",
)  # fmt: skip
RUNTIME = Model(
    "a runtime: many small tasks on a few threads, over one epoll", ("frameworks", "09-epoll", "04-threads"),
    "the tasks that wait for its thread: until it ends, or until the runtime interrupts it, if it can",
    "a thread of the runtime's: most have, or make, another one for the tasks",
)  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """The model, or those that it may be, and what was seen that says so."""

    models: tuple[Model, ...]
    because: tuple[str, ...]
    ask: str = ""  #: what would tell them apart


LESS_BUSY = "ask again when it has less to do"
OPEN_ONE = "open a connection, keep it open (nc ADDRESS PORT) and ask again"
SEVERAL = "open two connections, keep them open (nc ADDRESS PORT, twice) and ask again"
WAITS_AT_CLIENTS = (seen.ACCEPT, seen.CLIENT, seen.RING)
OLD_WAITS = (seen.SELECT, seen.POLL, seen.EITHER)
LOOPS_OF: dict[str, tuple[Model, ...]] = {
    seen.SELECT: (SELECT_LOOP,), seen.POLL: (POLL_LOOP,), seen.EITHER: (SELECT_LOOP, POLL_LOOP),
}  # fmt: skip
#: How the names of threads begin that a Java machine has for itself. They sleep, and serve no client.
OF_JAVA = (
    "java", "main", "GC Thread", "G1 ", "VM ", "C1 Compiler", "C2 Compiler", "Signal Dispatch", "Finalizer",
    "Reference Handl", "Common-Cleaner", "Notification Th", "Service Thread", "Monitor Deflati", "Sweeper thread",
    "Attach Listener", "process reaper", "DestroyJavaVM", "Cleaner-",
)  # fmt: skip


def number(count: int, noun: str, plural: str = "") -> str:
    """1 thread, 2 threads."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


# ---- one process


def serving_loops(process: Process) -> dict[int, list[Thread]]:
    """Descriptor of each epoll that has clients or a listening socket in its list -> the threads that sleep in it. One
    whose list may not be seen counts where a thread sleeps in it.
    """
    found: dict[int, list[Thread]] = {fd: [] for fd, watched in process.watching.items() if watched.serves}
    for thread in process.in_kind(seen.EPOLL):
        if thread.wait.fd in found:
            found[thread.wait.fd].append(thread)
        elif thread.wait.fd is None:  # the kernel's function names no descriptor
            found.setdefault(next(iter(found), -1), []).append(thread)
        elif process.opaque:
            found.setdefault(thread.wait.fd, []).append(thread)
    return found


def form(process: Process) -> str:
    """What it mainly does: one of the kinds of a wait, or "" if nothing that has to do with clients was seen."""
    kinds = Counter(thread.wait.kind for thread in process.threads)
    serves = bool(process.listens or process.connections or process.opaque)
    if kinds[seen.RING] or (process.rings and kinds[seen.RUNS] == len(process.threads)):
        return seen.RING
    if serving_loops(process):
        return seen.EPOLL
    if kinds[seen.ACCEPT]:
        return seen.ACCEPT
    if kinds[seen.CLIENT] or (len(process.connections) == 1 and not any(kinds[kind] for kind in OLD_WAITS)):
        return seen.CLIENT
    for kind in (*OLD_WAITS, seen.QUEUE):
        if kinds[kind] and serves:
            return kind
    if len(process.threads) == 1 and process.listens and (kinds[seen.TURN] or kinds[seen.LOCK]):
        return seen.TURN
    return ""


def idle(process: Process) -> list[Thread]:
    """Threads that sleep until they are given work, without those that a Java machine has for itself."""
    asleep = process.in_kind(seen.LOCK)
    return [t for t in asleep if process.runtime != "Java" or not t.name.startswith(OF_JAVA)]


def with_a_client(process: Process) -> int:
    """How many threads wait for one client each: in a read or write, or in a poll of one descriptor before it."""
    polls = [t for t in process.in_kind(*OLD_WAITS) if t.number != process.pid and t.wait.count in (None, 1)]
    return len(process.in_kind(seen.CLIENT)) + len(polls)


def _of_single(process: Process, server: Server) -> Verdict:
    """A process with one thread, and no other process that serves."""
    thread = process.threads[0]
    what = thread.wait.call or thread.wait.kind
    held = number(server.connections - server.queued, "connection")
    alone = f"one process with one thread serves, and it has {held} open"
    kind = form(process)
    if kind == seen.RING:
        return Verdict((RING_LOOP,), (alone, "it sleeps in io_uring_enter, where the kernel hands over what is done"))
    if kind == seen.EPOLL:
        return Verdict((EPOLL_LOOP,), (alone, f"it waits for all of them in one call, {_epoll_call(process)}"))
    if kind == seen.QUEUE:
        return Verdict((SIGNAL_LOOP,), (alone, "it sleeps in rt_sigtimedwait: the kernel tells of events by signals"))
    if kind == seen.CLIENT:
        if thread.wait.kind != seen.CLIENT:
            return Verdict((ITERATIVE, SELECT_LOOP, POLL_LOOP), (alone, f"it was not seen to wait: {what}"), LESS_BUSY)
        waits = f"it sleeps in {what} for one client"
        behind = f"{number(server.queued, 'other waits', 'others wait')} in the queue of accept()"
        return Verdict((ITERATIVE,), (alone, waits, behind))
    loops = LOOPS_OF.get(kind, ())
    asks = "the call itself is not to be seen: as root, ask again" if len(loops) > 1 else ""
    if loops and (len(process.connections) > 1 or not process.blocking):
        return Verdict(loops, (alone, f"it waits for all of them in one call, {what}"), asks)
    if loops or kind == seen.ACCEPT:
        waits = f"it sleeps in {what} until a client comes"
        if process.children_ended:
            return Verdict((FORK,), (alone, waits, "children of it have served and ended"))
        if process.threads_ended:
            return Verdict((THREADS,), (alone, waits, "threads of it have served and ended"))
        return Verdict((ITERATIVE, FORK, THREADS), (alone, waits, "it has no client now"), OPEN_ONE)
    return Verdict((), (alone, f"it was not seen to wait for a client: {what}"), LESS_BUSY)


def _epoll_call(process: Process) -> str:
    names = [t.wait.call for threads in serving_loops(process).values() for t in threads if t.wait.call]
    lists = [watched for watched in process.watching.values() if watched.serves]
    many = sum(watched.connections for watched in lists)
    listed = f" ({number(many, 'connection')} in its list)" if lists else ""
    return f"{names[0] if names else 'epoll_wait'}{listed}"


def _of_threads(process: Process) -> Verdict:
    """A process with several threads."""
    count = number(process.thread_count, "thread")
    kind = form(process)
    if kind == seen.RING:
        return Verdict((RING_LOOP,), (f"one of its {count} sleeps in io_uring_enter",))
    if kind == seen.EPOLL:
        return _of_epolls(process, count)
    clients, rest = with_a_client(process), idle(process)
    busy = f"{number(clients, 'thread waits', 'threads wait')} for a client each"
    if len(process.in_kind(seen.ACCEPT)) > 1:
        waits = number(len(process.in_kind(seen.ACCEPT)), "thread sleeps", "threads sleep")
        return Verdict((POOL,), (f"{waits} in accept(), for the same socket", busy))
    loop = SELECT_LOOP if kind == seen.SELECT else POLL_LOOP
    if kind in OLD_WAITS and len(process.connections) > max(1, clients):
        held = f"one thread waits for {number(len(process.connections), 'connection')} in one call, {kind}"
        return Verdict((loop,), (held, f"{number(len(rest), 'other sleeps', 'others sleep')} until there is work"))
    if rest:
        free = f"{number(len(rest), 'thread sleeps', 'threads sleep')} until there is work (futex)"
        if kind in OLD_WAITS and not clients and not process.blocking:
            return Verdict((POOL, loop), (free, f"one thread sleeps in {kind}, and has no two clients"), SEVERAL)
        return Verdict((POOL,), (free, busy, "one thread takes the connections"))
    if clients:
        beside = f"none of its {count} sleeps without work; one thread takes the connections"
        return Verdict((THREADS,), (busy, beside))
    return Verdict((), (f"none of its {count} was seen to wait for a client",))


def _of_epolls(process: Process, count: str) -> Verdict:
    loops, rest = serving_loops(process), idle(process)
    at_one = max(len(threads) for threads in loops.values())
    asleep = f"{number(len(rest), 'thread sleeps', 'threads sleep')} until there is work (futex)"
    clients = with_a_client(process)
    once = sum(watched.once for watched in process.watching.values())
    if process.runtime in ("Go", "tokio"):
        sign = "its file says so" if process.runtime == "Go" else "the names of its threads say so"
        share = f"one epoll has its clients, and any of its {count} may run a task"
        return Verdict((RUNTIME,), (f"it is a program of {process.runtime}: {sign}", share))
    if process.runtime == "Java" and any(thread.name.startswith("ForkJoinPool") for thread in process.threads):
        carriers = sum(thread.name.startswith("ForkJoinPool") for thread in process.threads)
        sign = f"it is a Java machine, and {number(carriers, 'thread')} of a ForkJoinPool carry its virtual threads"
        return Verdict((RUNTIME,), (sign, "an epoll has their connections"))
    if clients or once:
        hands = f"{number(clients, 'thread waits', 'threads wait')} for a client each"
        back = f"{number(once, 'connection is', 'connections are')} in an epoll for one event (EPOLLONESHOT)"
        return Verdict((POLLER,), (hands if clients else back, asleep, "one thread waits for the others in an epoll"))
    if len(loops) > 1:
        each = f"{len(loops)} epolls of the process have clients or a listening socket"
        return Verdict((THREAD_LOOPS,), (each, "a thread for each of them waits in it"))
    if at_one > 1:
        any_of_them = f"{number(at_one, 'thread')} wait in the same epoll: any of them may get an event"
        return Verdict((RUNTIME,), (any_of_them,))
    one = f"one of its {count} waits for all clients in one call, {_epoll_call(process)}"
    doubt = "what these do cannot be seen while they sleep: read files, look up names, or run handlers"
    return Verdict((LOOP_HELPERS,) if rest else (EPOLL_LOOP,), (one, asleep, doubt) if rest else (one,))


# ---- several processes


def _watches_over(process: Process, server: Server) -> bool:
    """Whether it only keeps other processes of the server: it is their parent, and does not wait for a client."""
    children = [one for one in server.processes if one.parent == process.pid]
    return bool(children) and not process.in_kind(seen.RUNS) and form(process) not in (*WAITS_AT_CLIENTS, seen.EPOLL)


def judge(server: Server) -> Verdict:
    """The model of the server, as one look shows it."""
    masters = [one for one in server.processes if _watches_over(one, server)]
    others = [one for one in server.processes if one not in masters]
    serving = [one for one in others if form(one) or one.in_kind(seen.RUNS)] or others
    dark = [one for one in others if len(one.in_kind(seen.HIDDEN)) == len(one.threads)]
    if dark:
        refused = f"of {number(len(dark), 'process', 'processes')} /proc does not say where threads sleep"
        return Verdict((), (refused,), "ask again as root")
    if len(serving) == 1 and not masters:
        one = serving[0]
        return _of_single(one, server) if one.thread_count == 1 else _of_threads(one)
    return _of_processes(server, masters, serving)


def _of_processes(server: Server, masters: Sequence[Process], serving: Sequence[Process]) -> Verdict:
    kinds = Counter(form(one) for one in serving)
    over = [f"{masters[0].name} ({masters[0].pid}) serves none, and watches over the others"] if masters else []
    many = number(len(serving), "process serves", "processes serve")
    if kinds[seen.EPOLL] and not kinds[seen.TURN] and not kinds[seen.CLIENT]:
        return _of_loops([one for one in serving if form(one) == seen.EPOLL], many, over)
    if kinds[seen.RING]:
        return Verdict((RING_LOOP,), (many, *over, "each sleeps in io_uring_enter"))
    threaded = [one for one in serving if one.thread_count > 1]
    if threaded:
        busiest = max(threaded, key=lambda one: (len(one.connections), one.thread_count))
        inner = _of_threads(busiest)
        return Verdict(inner.models, (many, *over, *inner.because), inner.ask)
    if (fork := _of_forks(server, masters, serving)) is not None:
        return fork
    asleep = f"{number(kinds[seen.ACCEPT], 'sleeps', 'sleep')} in accept(), for the same socket"
    turn = f"{number(kinds[seen.TURN], 'waits', 'wait')} for its turn to take a connection"
    busy = f"{number(kinds[seen.CLIENT], 'waits', 'wait')} for one client"
    if kinds[seen.ACCEPT] or kinds[seen.TURN] or kinds[seen.CLIENT]:
        found = [text for kind, text in ((seen.ACCEPT, asleep), (seen.TURN, turn), (seen.CLIENT, busy)) if kinds[kind]]
        return Verdict((PREFORK,), (many, *over, *found))
    if any(kinds[kind] for kind in OLD_WAITS):
        held = max(len(one.connections) for one in serving)
        call = next(kind for kind in OLD_WAITS if kinds[kind])
        if held > 1:
            return Verdict((OLD_LOOPS,), (many, *over, f"one of them waits for {held} connections in {call}"))
        return Verdict((PREFORK, OLD_LOOPS), (many, *over, f"each waits in {call}, and none has two clients"), SEVERAL)
    return Verdict((), (many, *over, "none of them was seen to wait for a client"))


def _of_forks(server: Server, masters: Sequence[Process], serving: Sequence[Process]) -> Verdict | None:
    """A parent that accepts, and children with a connection each; None if it is not so."""
    accepting = [one for one in serving if form(one) == seen.ACCEPT]
    with_clients = [one for one in serving if form(one) == seen.CLIENT]
    each = f"{number(len(with_clients), 'process waits', 'processes wait')} for one client each"
    if len(accepting) == 1 and with_clients and all(one.parent == accepting[0].pid for one in with_clients):
        takes = f"{accepting[0].name} ({accepting[0].pid}) sleeps in accept()"
        return Verdict((FORK,), (takes, f"{each}: its children"))
    idle_or_busy = [one for one in (*masters, *serving) if form(one) in ("", *OLD_WAITS)]
    polling = [one for one in idle_or_busy if form(one) or one.in_kind(seen.RUNS)]
    parents = [one for one in polling if with_clients and all(child.parent == one.pid for child in with_clients)]
    if parents and not accepting:
        does = f"sleeps in {form(parents[0])}" if form(parents[0]) else "runs"
        waits = f"{parents[0].name} ({parents[0].pid}) {does}"
        if parents[0].children_ended and len(with_clients) == server.connections - server.queued:
            return Verdict((FORK,), (waits, each, "earlier children of it have ended"))
        return Verdict((FORK, PREFORK), (waits, each), "open one more connection, and see if one more process comes")
    return None


def _of_loops(loops: Sequence[Process], many: str, over: Sequence[str]) -> Verdict:
    """Processes that wait in an epoll each."""
    verdicts = [_of_threads(one) if one.thread_count > 1 else None for one in loops]
    for inner in filter(None, verdicts):
        if set(inner.models) & {RUNTIME, POLLER, THREAD_LOOPS}:
            return Verdict(inner.models, (many, *over, *inner.because))
    if len(loops) == 1:
        inner_one = verdicts[0]
        if inner_one:
            return Verdict(inner_one.models, (many, *over, *inner_one.because))
        return Verdict((EPOLL_LOOP,), (many, *over, f"it waits for all clients in one call, {_epoll_call(loops[0])}"))
    helpers = sum(len(idle(one)) for one in loops)
    each = f"each waits for all its clients in one call, {_epoll_call(loops[0])} in the first"
    asleep = [f"{number(helpers, 'thread', 'threads')} beside these loops sleep until there is work (futex)"]
    return Verdict((PROCESS_LOOPS,), (many, *over, each, *(asleep if helpers else [])))


# ---- several looks


def best(verdicts: Iterable[Verdict]) -> Verdict:
    """Of several looks: a model that is sure before models that may be; the one seen most often; then the latest."""
    found = list(verdicts)
    often = Counter(verdict.models for verdict in found)

    def rank(place: int) -> tuple[bool, bool, int, int]:
        models = found[place].models
        return len(models) == 1, bool(models), often[models], place

    return found[max(range(len(found)), key=rank)]
