"""From what `strace -ff -ttt -T -yy` wrote, a file a task, and from what the clients saw, to
intervals: which task runs, which waits.

Pure functions; trace.py makes the trace, figures/timeline.gp draws the rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from quest.measure.scene import Visit
from quest.measure.strace import C_NAMES, CHILD_WAITS, MAKING_CALLS, PEER, WAITING_CALLS, Call, End, Event

# ---- tasks and rows ------------------------------------------------------------------------------

# What strace prints behind the first of several descriptors: it leaves out the rest of a poll().
MORE = {"poll": "}, ...", "ppoll": "}, ...", "select": "> ", "pselect6": "> "}
# Such a call is waiting if it takes that long; all else is running. (Under the tracer a call that returns at once takes
# some 0.05 ms.)
MIN_WAIT_S = 0.0005

MARGIN_BEFORE_S = 0.015
MARGIN_AFTER_S = 0.030


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


def may_wait(call: Call) -> bool:
    """Whether a task can sleep in it. With WNOHANG it cannot: if the call lasts long, the tracer was busy."""
    return call.name in WAITING_CALLS and not (call.name in CHILD_WAITS and "WNOHANG" in call.args)


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
        if may_wait(call) and stop - call.start >= MIN_WAIT_S:
            yield from running(call.start)
            name = C_NAMES.get(call.name, call.name)
            yield Row("task", task.name, "waiting", name, serves, call.start, stop)
            now, client = stop, client if call.name in CHILD_WAITS else accepted or serves
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
