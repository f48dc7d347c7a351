"""A recording of a server at work: what strace, the clients and the ring have told, as one table for the player.

Pure functions. form.py has the records, and the file; recorder.py runs the server.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from quest.ground.c_source import mark
from quest.ground.errors import RepetitionError
from quest.measure.form import Guest, Life, Recorded, Recording, Site, Times
from quest.measure.lines import Place, Stack
from quest.measure.scene import Scene, Visit
from quest.measure.strace import C_NAMES, CHILD_WAITS, MAKING_CALLS, WAITING_CALLS, Call, Event, Frame
from quest.measure.timeline import Task, collect_tasks, peer, return_time

SLEEP_US = 2500
#: Longer than that a call only takes that waits for something; it has to be listed as one.
LONGEST_WORK_US = 10_000
TAIL_US = 30_000  # behind the last thing that happens

# What is not recorded unless the line names it: libc's own, between the call in our source and its subject.
UNTRACED = {
    "brk", "mprotect", "madvise", "rseq", "set_robust_list", "set_tid_address", "getrandom", "getpid", "gettid",
    "arch_prctl", "prlimit64", "sched_getaffinity", "sigaltstack",
}  # fmt: skip
UNKNOWN = "???"  # the task was ended before strace could read the name
HOUSEKEEPING = UNTRACED | {"mmap", "munmap", "rt_sigprocmask", "rt_sigreturn", "restart_syscall", "exit"}
# The name in our sources: the first that the line has. MAKING_CALLS are told apart by their flags.
NAMES = {
    **{kernel: (name,) for kernel, name in C_NAMES.items()},
    "rt_sigsuspend": ("sigsuspend",),
    "openat": ("open", "openat"),
    "open": ("open",),
    "newfstatat": ("fstat", "fstatat", "stat"),
    "exit_group": ("_exit", "exit"),
    "rt_sigaction": ("sigaction", "signal"),
    "rt_sigprocmask": ("sigprocmask", "pthread_sigmask"),
    "eventfd2": ("eventfd",),
    "pipe2": ("pipe2", "pipe"),
    "signalfd4": ("signalfd",),
    "tgkill": ("pthread_kill", "raise"),
    "rt_tgsigqueueinfo": ("pthread_sigqueue",),
    "rt_sigqueueinfo": ("sigqueue",),
    "pwrite64": ("pwrite",),
    "timerfd_settime": ("timerfd_settime",),
    "epoll_pwait": ("epoll_wait",),
}
#: Library functions that make system calls for us, by how their names begin: of all calls, and of some.
MAKERS = ("pthread_", "io_", "iob_", "kevent", "syscall")
MAKERS_OF = {
    "clone": ("fork",),
    "clone3": ("fork",),
    "rt_sigaction": ("signal",),
    "alarm": ("watchdog",),  # the name of the pointer to alarm() in 01-iterative/serve_client.c
}
#: What malloc() and free() ask for, now and then, is no part of the lesson.
MEMORY = re.compile(r"\b(malloc|calloc|realloc|free)\(")
#: Waits that are for no client in particular, whatever they return.
LOOP_WAITS = {
    "accept", "poll", "select", "epoll_wait", "sigtimedwait", "sigsuspend", "pause", "waitpid", "waitid",
    "io_uring_enter", "io_getevents", "io_pgetevents", "flock", "semop", "semtimedop", "nanosleep", "restart_syscall",
}  # fmt: skip
ENDING = {"_exit", "exit"}
WAITING = {C_NAMES.get(name, name) for name in WAITING_CALLS}
EPOLL_WAITS = {"epoll_wait", "epoll_pwait", "epoll_pwait2"}
POLLS = {"poll", "ppoll", "select", "pselect6"}


# ---- clients -------------------------------------------------------------------------------------


def times_of(visit: Visit, zero: float) -> Times:
    """The six times after `zero`. What did not happen is None."""
    came = any(act.what == "receive" for act in visit.acts)
    sends = sum(act.what == "send" for act in visit.acts)
    whole = visit.acts[-1].what == "close"

    def at(time: float) -> int:
        return round((time - zero) * 1e6)

    return Times(
        at(visit.connecting),
        at(visit.connected),
        at(visit.half_sent) if sends > 1 or not (whole or came) else None,
        at(visit.sent) if sends > 1 or came else None,
        at(visit.first_byte) if came else None,
        at(visit.done) if whole else None,
    )


def guests(scene: Scene, visits: Sequence[Visit], zero: float) -> list[Guest]:
    """The clients, in the order of their letters."""
    made: list[Guest] = []
    for visit, client in zip(visits, scene.each().values(), strict=True):
        sends = [act.bytes for act in visit.acts if act.what == "send"]
        reply = sum(act.bytes for act in visit.acts if act.what == "receive")
        half = sends[0] if client.pause_ms else 0
        acts = [(round((act.time - zero) * 1e6), act.what, act.bytes) for act in visit.acts]
        sizes = (half, sum(sends), reply)
        made.append(Guest(visit.name, visit.port, times_of(visit, zero), sizes, client.does(), acts))
    return made


# ---- calls ---------------------------------------------------------------------------------------

EVENT_DATA = re.compile(r"events=([A-Z|]+), data=(\{[^{}]*\}|0x[0-9a-f]+|\w+)")
CONSTANT = re.compile(r"\b((?:F|TCP|SO|SIG|MSG|O|EPOLL|FUTEX|SHUT|IORING|RWF|MADV|POSIX_FADV|SPLICE_F)_[A-Z_0-9]+)")
OPENING = {"open", "openat", "openat2", "creat"}
LIBC_SIGNALS = 2  # real-time signals that glibc keeps for itself
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')


def name_of(call: Call, line: str) -> str:
    """The name of a call in C: of several that the library has, the one that stands in the line."""
    if call.name in MAKING_CALLS:
        return "pthread_create" if "CLONE_THREAD" in call.args else "fork"
    names = NAMES.get(call.name, (call.name,))
    return next((name for name in names if re.search(rf"\b{name}\(", line)), names[0])


def is_named(call: Call, line: str) -> bool:
    """Whether a line has the call, or the library call that makes it. With a call through a pointer to a function of
    that name it is the call of the pointer.
    """
    return names_it((*NAMES.get(call.name, ()), call.name, *MAKERS_OF.get(call.name, ())), line)


def names_it(names: Iterable[str], line: str) -> bool:
    """Whether a line calls one of these, or a function of a library that makes system calls for us."""
    return any(re.search(rf"\b{re.escape(name)}\w*\(", line) for name in (*names, *MAKERS))


class _Teller:
    """Goes through the calls of all tasks in the order in which they began, and says of each what it is about."""

    def __init__(
        self, tasks: Mapping[int, Task], visits: Mapping[int, Visit], listening: set[int], owners: Mapping[int, int]
    ) -> None:
        self.tasks, self.visits, self.listening = tasks, visits, listening
        self.numbers = {pid: number for number, pid in enumerate(pid for pid, task in tasks.items() if task.name)}
        self.owners = owners  # task -> that whose descriptors it has
        self.files: dict[tuple[int, int], str] = {}  # (task that owns the table, fd) -> client
        self.serving: dict[int, str] = {}  # task -> client
        self.watched: dict[str, str] = {}  # what epoll gives back -> who it is
        self.handed: dict[str, list[str]] = {}  # where threads wait -> the clients for which one was woken
        self.waited: dict[int, str] = {}  # task -> where it has waited

    def tell(self, call: Call, line: str) -> tuple[str, int | None, int | None, str, str]:
        """Name, descriptor, result, client and note."""
        name = name_of(call, line)
        fd, note = self._fd(call), ""
        result = call.value()
        letter = self._letter(call, name, fd)
        if error := call.error():
            note = f"interrupted by {call.interrupted}" if call.interrupted and error == "EINTR" else error
            result = -1
        elif call.name in MAKING_CALLS or (call.name == "wait4" and result):
            result = self.numbers.get(result or 0)
        elif teller := NOTES.get(call.name):
            note = teller(self, call)
        elif found := CONSTANT.search(call.args):
            note = found[1].removesuffix("_OLD")
        if call.name == "preadv2" and "RWF_NOWAIT" in call.args:
            note = f"NOWAIT {note}".strip()
        self._remember(call, name, fd, letter)
        return name, fd, result, letter, note

    def _fd(self, call: Call) -> int | None:
        if call.name == "epoll_ctl":
            watched = re.search(r"EPOLL_CTL_\w+, (\d+)", call.args)
            return int(watched[1]) if watched else None
        if call.name in POLLS or call.name in MAKING_CALLS:
            return None
        first = re.match(r"(\d+)<", call.args)
        return int(first[1]) if first else None

    def _letter(self, call: Call, name: str, fd: int | None) -> str:
        if name in LOOP_WAITS:
            if call.name not in CHILD_WAITS:
                self.serving[call.pid] = self.tasks[call.pid].client
            return peer(call.result, self.visits) if name == "accept" else ""
        direct = "" if call.name in POLLS else peer(call.args, self.visits)
        by_file = self.files.get((self.owners[call.pid], fd), "") if fd is not None and not direct else ""
        if name == "futex" and "FUTEX_WAIT" in call.args:
            return ""
        woken_for = self.handed.get(self.waited.pop(call.pid, ""))
        if woken_for:
            self.serving[call.pid] = woken_for.pop(0)
        return direct or by_file or self.serving.get(call.pid, self.tasks[call.pid].client)

    def _remember(self, call: Call, name: str, fd: int | None, letter: str) -> None:
        owner, value = self.owners[call.pid], call.value()
        self.serving.setdefault(call.pid, self.tasks[call.pid].client)
        if letter:
            self.serving[call.pid] = letter
        if (call.name in OPENING or name == "accept") and value is not None and value >= 0 and letter:
            self.files[owner, value] = letter
        if call.name == "close" and fd is not None:
            self.files.pop((owner, fd), None)
            if peer(call.args, self.visits):
                self.serving[call.pid] = self.tasks[call.pid].client
        if call.name in MAKING_CALLS and (value or 0) in self.tasks:
            made = self.tasks[value or 0]
            made.client = letter if made.name.startswith("child") else ""
            self.serving[value or 0] = made.client
        if name == "futex" and "FUTEX_WAIT" in call.args:
            self.serving[call.pid] = self.tasks[call.pid].client
            self.waited[call.pid] = call.args.partition(",")[0]
        if name == "futex" and "FUTEX_WAKE" in call.args and value and letter:
            self.handed.setdefault(call.args.partition(",")[0], []).append(letter)

    def who(self, text: str) -> str:
        """A client's letter; `listen` for the listening socket; "" for another descriptor."""
        letter = peer(text, self.visits)
        return letter or ("listen" if "TCP:[" in text and "->" not in text else "")


def _epoll_ctl(teller: _Teller, call: Call) -> str:
    what = re.search(r"EPOLL_CTL_(\w+)", call.args)
    events = EVENT_DATA.search(call.args)
    if events:
        teller.watched[events[2]] = teller.who(call.args.partition("EPOLL_CTL_")[2]) or "other"
    wanted = " " + events[1].replace("EPOLL", "") if events else ""
    return (what[1].lower() if what else "") + wanted


def _epoll_wait(teller: _Teller, call: Call) -> str:
    if not call.value():
        return ""
    return " ".join(teller.watched.get(data, "other") for _, data in EVENT_DATA.findall(call.args))


def _named(teller: _Teller, numbers: Iterable[str], text: str) -> str:
    """Who is at these descriptors, which a call's arguments have as 4<TCP:[...]>."""
    whose = {fd: teller.who(what) for fd, what in re.findall(r"\b(\d+)<((?:->|[^<>])*)>", text)}
    return " ".join(whose.get(number) or "other" for number in numbers)


def _poll(teller: _Teller, call: Call) -> str:
    """strace says behind the result which are ready: ([{fd=3, revents=POLLIN}])."""
    return _named(teller, re.findall(r"fd=(\d+)[,}]", call.result), call.args)


def _select(teller: _Teller, call: Call) -> str:
    """(in [3 4], left {...}), (out [5])."""
    sets = re.findall(r"(?:in|out|exc) \[([\d ]+)\]", call.result.partition("left")[0])
    return _named(teller, dict.fromkeys(" ".join(sets).split()), call.args)


def _sigtimedwait(teller: _Teller, call: Call) -> str:
    """A signal that F_SETSIG has chosen has the descriptor where others have their value."""
    signal = re.search(r"si_signo=(\w+)", call.args)
    fd = re.search(r"si_(?:fd|int)=(\d+)", call.args)
    if signal is None:
        return ""
    name = signal[1]
    if number := re.fullmatch(r"SIGRT_(\d+)", name):
        name = f"SIGRTMIN+{int(number[1]) - LIBC_SIGNALS}"
    place = int(fd[1]) if fd else -1
    whose = teller.files.get((teller.owners[call.pid], place)) or ("listen" if place in teller.listening else "other")
    return f"{name} {whose}" if name.startswith("SIGRT") else name


def _futex(_: _Teller, call: Call) -> str:
    if "FUTEX_WAKE" in call.args:
        return f"wake {call.value() or 0}"
    return "wait" if "FUTEX_WAIT" in call.args or "FUTEX_LOCK" in call.args else ""


def _opened(_: _Teller, call: Call) -> str:
    text = QUOTED.search(call.args)
    return PurePath(text[1]).name if text and text[1].startswith("/") else text[1] if text else ""


def _entered(_: _Teller, call: Call) -> str:
    numbers = call.args.split(", ")
    return f"submits {numbers[1]}, waits for {numbers[2]}" if len(numbers) > 2 else ""


def _signalled(_: _Teller, call: Call) -> str:
    signal = re.search(r"\bSIG[A-Z0-9_]+", call.args)
    return signal[0] if signal else ""


NOTES: dict[str, Callable[[_Teller, Call], str]] = {
    "epoll_ctl": _epoll_ctl, "poll": _poll, "ppoll": _poll, "select": _select, "pselect6": _select, "futex": _futex,
    "rt_sigtimedwait": _sigtimedwait, "io_uring_enter": _entered, "rt_sigaction": _signalled, "kill": _signalled,
    **dict.fromkeys(OPENING, _opened), **dict.fromkeys(EPOLL_WAITS, _epoll_wait),
    **dict.fromkeys(["wait4", "accept", "accept4", "recvfrom", "sendto", "exit_group", "newfstatat"], lambda *_: ""),
}  # fmt: skip


# ---- the whole -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """Where lines come from: the text of each file, by its name, as a list of lines."""

    text: Callable[[str], Sequence[str]]

    def line(self, place: Place) -> str:
        """RepetitionError if there is no such line."""
        lines = self.text(place.file)
        if not 0 < place.line <= len(lines):
            raise RepetitionError(f"{place.file}:{place.line}: no such line")
        return lines[place.line - 1]


def record_calls(
    recording: Recording,
    events: Sequence[Event],
    visits: Sequence[Visit],
    stacks: Mapping[tuple[Frame, ...], Stack],
    source: Source,
    until: float,
    opened: Sequence[tuple[int, int, str]] = (),
) -> None:
    """Fills in tasks, calls, sites, stacks and open: all from the first client's connect on, and what each task was in
    then.

    `until`: when the server was told to stop; `opened`: (process, descriptor, what it is) before the first client.
    RepetitionError for a call that takes long and is not among those that can wait.
    """
    zero = visits[0].connecting
    by_port = {visit.port: visit for visit in visits}
    tasks = collect_tasks(events)
    owners = _owners(tasks)
    _name_anew(tasks, zero)
    teller = _Teller(tasks, by_port, {fd for _, fd, what in opened if what == "listens"}, owners)
    sites: dict[Place, int] = {}
    kinds: dict[Stack, int] = {}
    known = [pid for pid, task in tasks.items() if task.name]
    recording.tasks = [_life(tasks[pid], [tasks[each].name for each in known], zero, until) for pid in known]
    there = (each for each in opened if each[0] in known and _owns(tasks[each[0]]))
    recording.open = sorted((known.index(pid), fd, what) for pid, fd, what in there)
    busy = Busy(tasks.values(), until)
    placed = lost = 0
    for event in events:
        if not isinstance(event, Call) or event.name == UNKNOWN:
            continue
        stack = stacks.get(event.stack, ())
        line = source.line(stack[-1]) if stack else ""
        name, fd, result, letter, note = teller.tell(event, line)
        over = return_time(event, by_port, until) if event.end is not None and event.end <= until else None
        if event.start >= until or (over is not None and over < zero) or event.pid not in known:
            continue
        if (event.name in HOUSEKEEPING or MEMORY.search(line)) and not is_named(event, line):
            continue
        if not stack:
            lost += 1
            continue
        placed += 1
        for place in stack:
            sites.setdefault(place, len(sites))
        number = kinds.setdefault(stack, len(kinds))
        if over is None:
            result, note = None, "" if "interrupted" in note or name in LOOP_WAITS - {"io_uring_enter"} else note
        t = round((event.start - zero) * 1e6)
        took = None if over is None else max(0, round((over - event.start) * 1e6))
        quiet_us = busy.rest(event.start, over if over is not None else until) * 1e6
        if name not in WAITING and name not in ENDING and quiet_us >= LONGEST_WORK_US:
            raise RepetitionError(f"{name}() took {quiet_us:.0f} us, and is not among the calls that can wait")
        asleep = int(
            name in WAITING and (quiet_us >= SLEEP_US or bool(event.interrupted)) and "WNOHANG" not in event.args
        )
        recording.calls.append(
            Recorded(known.index(event.pid), t, took, name, fd, result, letter, number, note, asleep)
        )
    recording.how["lines"] = [placed, placed + lost]
    recording.sites = [Site(*place, mark(source.text(place.file), place.line)) for place in sites]
    recording.stacks = [tuple(sites[place] for place in stack) for stack in kinds]
    recording.end = _end(recording, round((until - zero) * 1e6))
    for call in recording.calls:
        if call.took is not None and call.t + call.took > recording.end:
            call.took = None


class Busy:
    """When some task was in no call. A task waits for strace where it enters and leaves one, and strace is one process:
    while it follows the stack of one task, the call of another seems to last. What a call lasts while all tasks are in
    one is its own.
    """

    def __init__(self, tasks: Iterable[Task], until: float) -> None:
        spans = sorted(span for task in tasks for span in _between(task, until))
        self.spans: list[tuple[float, float]] = []
        for start, end in spans:
            if self.spans and start <= self.spans[-1][1]:
                self.spans[-1] = (self.spans[-1][0], max(end, self.spans[-1][1]))
            else:
                self.spans.append((start, end))

    def rest(self, start: float, end: float) -> float:
        """Seconds of that time in which every task was in a call."""
        return end - start - sum(max(0.0, min(end, b) - max(start, a)) for a, b in self.spans)


def _between(task: Task, until: float) -> Iterator[tuple[float, float]]:
    now = task.start
    for call in task.calls:
        if call.start > now:
            yield now, call.start
        now = max(now, task.end or until if call.end is None else call.end)
    if (end := task.end or until) > now:
        yield now, end


def _owns(task: Task) -> bool:
    """A thread has the descriptors of its process."""
    return not task.name.startswith("thread")


def _owners(tasks: Mapping[int, Task]) -> dict[int, int]:
    """Task -> the process whose descriptors it has. Asked while all have their names: a thread may live longer than
    the one that has made it.
    """
    pids = {task.name: pid for pid, task in tasks.items()}
    owners: dict[int, int] = {}
    for pid, task in tasks.items():  # a maker comes before what it has made
        maker = pids.get(task.parent, pid)
        owners[pid] = pid if _owns(task) else owners.get(maker, maker)
    return owners


def _name_anew(tasks: Mapping[int, Task], zero: float) -> None:
    """Tasks that ended before the first client came lose their name; the others are numbered from 1 on."""
    counted: dict[str, int] = {}
    names: dict[str, str] = {}
    for task in tasks.values():
        kind, _, number = task.name.partition(" ")
        old = task.name
        if task.end is not None and task.end < zero:
            task.name = ""
        elif number:
            counted[kind] = counted.get(kind, 0) + 1
            task.name = f"{kind} {counted[kind]}"
        names[old] = task.name
        task.parent = names.get(task.parent, "")


def _life(task: Task, names: Sequence[str], zero: float, until: float) -> Life:
    def at(time: float | None) -> int | None:
        return None if time is None or time > until else round((time - zero) * 1e6)

    kind = task.name.partition(" ")[0]
    born = at(task.start)
    parent = names.index(task.parent) if task.parent else None
    born = born if born is not None and born >= 0 else None
    return Life(task.name, kind, born, at(task.end), parent, at(task.reaped))


def _end(recording: Recording, until: int) -> int:
    """Behind the last thing that happens; what goes on until the server is stopped is waiting."""
    happened = [guest.acts[-1][0] for guest in recording.clients]
    for call in recording.calls:
        happened.append(call.t if call.asleep else call.end() or call.t)
    return min(until, max(happened) + TAIL_US)
