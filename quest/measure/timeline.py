"""From what `strace -ff -ttt -T -yy` wrote, a file a task, and from what the clients saw, to
intervals: which task runs, which waits.

Pure functions; trace.py makes the trace, figures/timeline.gp draws the rows.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

TRACE_LINE = re.compile(r"(?P<time>\d+\.\d+) (?P<rest>.*)")
# "???" is a call in which the task was ended before strace could read which it was.
CALL = re.compile(
    r"(?P<name>\w+|\?{3})\((?P<args>.*)"
    r"(?: <unfinished \.\.\.>|\)\s+= (?P<result>.*?)(?: <(?P<took>\d+\.\d+)>)?)"
)
SIGNAL = re.compile(r"--- \w+\b.* ---")
ENDED = re.compile(r"\+\+\+ .* \+\+\+")


class SyntaxErrorInTrace(ValueError):
    """A line no rule here understands: better no picture than a wrong one."""


@dataclass(frozen=True)
class Call:
    """One system call of one task. end is None if the task ends inside it."""

    pid: int
    name: str
    args: str
    result: str
    start: float
    end: float | None

    def value(self) -> int | None:
        """The number returned; None for "?" and for a call that did not return."""
        number = re.match(r"-?\d+", self.result)
        return int(number.group()) if number else None


@dataclass(frozen=True)
class End:
    """A task is gone."""

    pid: int
    start: float


Event = Call | End


def parse(files: Mapping[int, Iterable[str]]) -> list[Event]:
    """All events in the order in which they began. `files`: task -> the lines of its file.
    SyntaxErrorInTrace for a line that is not understood.
    """
    events: list[Event] = []
    for pid, lines in files.items():
        for number, line in enumerate(lines, start=1):
            match = TRACE_LINE.fullmatch(line)
            if match is None:
                raise SyntaxErrorInTrace(f"trace of {pid}, line {number}: no time: {line[:60]!r}")
            start, rest = float(match["time"]), match["rest"]
            if call := CALL.fullmatch(rest):
                end = start + float(call["took"]) if call["took"] else None
                result = call["result"] or ""
                events.append(Call(pid, call["name"], call["args"].rstrip(), result, start, end))
            elif ENDED.fullmatch(rest):
                events.append(End(pid, start))
            elif not SIGNAL.fullmatch(rest):
                what = f"not understood: {rest[:60]!r}"
                raise SyntaxErrorInTrace(f"trace of {pid}, line {number}: {what}")
    return sorted(events, key=lambda event: event.start)


# ---- tasks and rows ------------------------------------------------------------------------------

# What a task can sleep in. Such a call is waiting if it takes at least MIN_WAIT_S; all else is
# running. (Under the tracer a call that returns at once takes some 0.05 ms.)
# fmt: off
WAITING_CALLS = [
    "accept", "accept4", "connect",
    "read", "readv", "pread64", "recvfrom", "recvmsg",
    "write", "writev", "sendto", "sendmsg", "sendfile", "splice",
    "poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2",
    "rt_sigtimedwait", "rt_sigsuspend", "pause", "wait4", "waitid",
    "futex", "flock", "semop", "semtimedop", "nanosleep", "clock_nanosleep",
    "io_uring_enter", "io_getevents", "io_pgetevents",
]
# fmt: on
MAKING_CALLS = ["clone", "clone3", "fork", "vfork"]
OTHER_CALLS = ["close", "execve", "exit", "exit_group"]
# What strace prints behind the first of several descriptors: it leaves out the rest of a poll().
MORE = {"poll": "}, ...", "ppoll": "}, ...", "select": "> ", "pselect6": "> "}
MIN_WAIT_S = 0.0005

# The name in our sources where the kernel has another one.
C_NAMES = {
    "accept4": "accept",
    "clock_nanosleep": "nanosleep",
    "epoll_pwait": "epoll_wait",
    "epoll_pwait2": "epoll_wait",
    "ppoll": "poll",
    "pread64": "pread",
    "pselect6": "select",
    "recvfrom": "recv",
    "rt_sigsuspend": "sigsuspend",
    "rt_sigtimedwait": "sigtimedwait",
    "sendto": "send",
    "wait4": "waitpid",
}

MARGIN_BEFORE_S = 0.015
MARGIN_AFTER_S = 0.030
PEER = re.compile(r"TCP(?:v6)?:\[[^\]]*->[^\]]*:(\d+)\]")


@dataclass(frozen=True)
class Visit:
    """What a client saw; times in seconds of CLOCK_REALTIME, the clock that strace -ttt prints."""

    name: str
    port: int
    connecting: float
    connected: float
    half_sent: float  # equal to sent if it did not pause
    sent: float
    first_byte: float
    done: float


# Of the samples: the members of a Row.
COLUMNS = ("kind", "name", "state", "call", "client", "start_ms", "end_ms")


@dataclass(frozen=True)
class Row:
    """One line of the samples, in seconds.

    kind: client (state connecting|pausing|waiting|receiving), task (running|waiting|ended), spawn
    (name is the new task, state its parent), accept. client: the one it is about, or "".
    """

    kind: str
    name: str
    state: str
    call: str
    client: str
    start: float
    end: float


@dataclass
class Task:
    """A process or thread of the server. client: the one it serves when it starts."""

    name: str
    start: float
    client: str = ""
    parent: str = ""
    calls: list[Call] = field(default_factory=list)
    end: float | None = None
    reaped: float | None = None


def peer(text: str, visits: Mapping[int, Visit]) -> str:
    """The client at the other end of the first connection that strace -yy names in a text."""
    match = PEER.search(text)
    visit = visits.get(int(match[1])) if match else None
    return visit.name if visit else ""


def served_by(call: Call, visits: Mapping[int, Visit]) -> str:
    """The client a call is for; "" for a wait for several descriptors."""
    several = call.name in MORE and MORE[call.name] in call.args
    return "" if several else peer(call.args, visits)


def return_time(call: Call, visits: Mapping[int, Visit], end: float) -> float:
    """When a call was over; end if it never returned.

    strace takes the time it prints first and starts to count how long the call takes a little
    later: a millisecond where the machine is busy. No connection is accepted before it is made.
    """
    match = PEER.search(call.result)
    made = visits[int(match[1])].connecting if match and int(match[1]) in visits else 0.0
    return min(end, end if call.end is None else max(call.end, made))


def collect_tasks(events: Sequence[Event]) -> dict[int, Task]:
    """The server's tasks by id, in the order in which they were made; the first is main."""
    tasks: dict[int, Task] = {}
    for event in events:
        task = tasks.get(event.pid)
        if task is None:
            name = f"process {len(tasks) + 1}" if tasks else "main"
            task = tasks[event.pid] = Task(name, event.start)
        task.start = min(task.start, event.start)  # a child may run before fork() has returned
        if isinstance(event, End):
            task.end = event.start
        else:
            task.calls.append(event)
            note_relatives(event, tasks)
    return tasks


def note_relatives(call: Call, tasks: dict[int, Task]) -> None:
    """Enters the task a call has made, marks the one it has collected."""
    other = call.value() or 0
    if call.name in MAKING_CALLS and other > 0 and other not in tasks:
        kind = "thread" if "CLONE_THREAD" in call.args else "child"
        number = 1 + sum(task.name.startswith(kind) for task in tasks.values())
        parent = tasks[call.pid].name
        tasks[other] = Task(f"{kind} {number}", call.end or call.start, parent=parent)
    elif call.name == "wait4" and other in tasks:
        tasks[other].reaped = call.end


def task_rows(task: Task, tasks: Mapping[int, Task], visits: Mapping[int, Visit], until: float) -> Iterator[Row]:
    """A task's life without gaps: running between the calls it waits in, then ended.

    Running is split where it turns from one client to another. Sets the client that the tasks it
    makes start with, so parents have to come before children.
    """
    now, client, end = task.start, task.client, task.end or until

    def running(stop: float) -> Iterator[Row]:
        if stop > now:
            yield Row("task", task.name, "running", "", client, now, stop)

    for call in task.calls:
        stop = return_time(call, visits, end)
        serves = served_by(call, visits)
        accepted = peer(call.result, visits)
        if call.name in WAITING_CALLS and stop - call.start >= MIN_WAIT_S:
            yield from running(call.start)
            name = C_NAMES.get(call.name, call.name)
            yield Row("task", task.name, "waiting", name, serves, call.start, stop)
            now, client = stop, accepted or serves
        elif (accepted or serves) not in ("", client):
            yield from running(call.start)
            now, client = call.start, accepted or serves
        if accepted:
            yield Row("accept", task.name, "", "accept", accepted, stop, stop)
        if call.name in MAKING_CALLS and call.value() in tasks:
            tasks[call.value() or 0].client = client
        if call.name == "close" and serves == client != task.client:
            yield from running(stop)
            now, client = stop, task.client
    yield from running(end)
    if task.end is not None:
        yield Row("task", task.name, "ended", "", "", task.end, task.reaped or task.end)


def client_rows(visit: Visit) -> Iterator[Row]:
    """What a client does, without what takes no time."""
    stages = [
        ("connecting", visit.connecting, visit.connected),
        ("pausing", visit.half_sent, visit.sent),
        ("waiting", visit.sent, visit.first_byte),
        ("receiving", visit.first_byte, visit.done),
    ]
    for state, start, end in stages:
        if end > start:
            yield Row("client", visit.name, state, "", visit.name, start, end)


def rows(events: Sequence[Event], visits: Sequence[Visit]) -> list[Row]:
    """All that is drawn, in seconds after the first connect, cut to the time of the visits."""
    by_port = {visit.port: visit for visit in visits}
    zero = min(visit.connecting for visit in visits)
    first, last = zero - MARGIN_BEFORE_S, max(visit.done for visit in visits) + MARGIN_AFTER_S
    drawn = [row for visit in visits for row in client_rows(visit)]
    tasks = collect_tasks(events)
    for task in tasks.values():
        drawn.extend(task_rows(task, tasks, by_port, last))
        if task.parent:
            call = "pthread_create" if task.name.startswith("thread") else "fork"
            made = task.start
            drawn.append(Row("spawn", task.name, task.parent, call, task.client, made, made))
    return [
        replace(row, start=max(row.start, first) - zero, end=min(row.end, last) - zero)
        for row in drawn
        if row.start <= last and row.end >= first
    ]
