"""What strace writes, a file a task (-ff), and what its lines mean: calls, their stacks, ends of tasks.

Pure functions. `-ttt` gives each line its time, `-T` a call its length, `-yy` a descriptor what it is, and `-k` each
call its stack.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

TRACE_LINE = re.compile(r"(?P<time>\d+\.\d+) (?P<rest>.*)")
# "???" is a call in which the task was ended before strace could read which it was.
CALL = re.compile(
    r"(?P<name>\w+|\?{3})\((?P<args>.*)"
    r"(?: <unfinished \.\.\.>|\)\s+= (?P<result>.*?)(?: <(?P<took>\d+\.\d+)>)?)"
)
SIGNAL = re.compile(r"--- (?P<name>\w+)\b.* ---")
ENDED = re.compile(r"\+\+\+ .* \+\+\+")
FRAME = re.compile(r" > (?P<path>.*?)\((?P<symbol>[^()]*?)(?:\+0x[0-9a-f]+)?\) \[0x(?P<address>[0-9a-f]+)\]")
#: strace could not follow the stack any further; what it has said until there is right.
NO_FRAME = re.compile(r" > .*\[0x[0-9a-f]+\]| > .*error.*")

# What a task can sleep in.
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
#: A handler of SIGCHLD makes these calls at any moment, for example between accept() and fork(). They say nothing about
#: the client that the task serves.
CHILD_WAITS = {"wait4", "waitid"}
MAKING_CALLS = ["clone", "clone3", "fork", "vfork"]

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

PEER = re.compile(r"TCP(?:v6)?:\[[^\]]*->[^\]]*:(\d+)\]")


class SyntaxErrorInTrace(ValueError):
    """A line no rule here understands: better no picture than a wrong one."""


@dataclass(frozen=True)
class Frame:
    """A function on a stack. address: where in the file `path` it goes on when what it has called returns."""

    path: str
    symbol: str
    address: int


@dataclass(frozen=True)
class Call:
    """One system call of one task. end is None if the task ends inside it. stack: the innermost function first, empty
    without -k. interrupted: the signal by which it was.
    """

    pid: int
    name: str
    args: str
    result: str
    start: float
    end: float | None
    stack: tuple[Frame, ...] = ()
    interrupted: str = ""

    def value(self) -> int | None:
        """The number returned; None for "?" and for a call that did not return."""
        number = re.match(r"-?\d+", self.result)
        return int(number.group()) if number else None

    def error(self) -> str:
        """EAGAIN; "" if there was none. A call that begins anew after a signal was interrupted: EINTR."""
        if self.result.startswith("? ERESTART"):
            return "EINTR"
        failed = re.match(r"-1 (E[A-Z0-9]+)", self.result)
        return failed[1] if failed else ""


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
    events = [event for pid, lines in files.items() for event in _of_task(pid, lines)]
    return sorted(events, key=lambda event: event.start)


def _of_task(pid: int, lines: Iterable[str]) -> list[Event]:
    events: list[Event] = []
    calls: list[int] = []  # where in `events` those are that a stack may follow: -1, that of no call
    for number, line in enumerate(lines, start=1):
        if line.startswith(" > "):
            _add_frame(events, calls[-1] if calls else -1, line, f"trace of {pid}, line {number}")
            continue
        match = TRACE_LINE.fullmatch(line)
        if match is None:
            raise SyntaxErrorInTrace(f"trace of {pid}, line {number}: no time: {line[:60]!r}")
        start, rest = float(match["time"]), match["rest"]
        if call := CALL.fullmatch(rest):
            end = start + float(call["took"]) if call["took"] else None
            result = call["result"] or ""
            calls.append(len(events))
            events.append(Call(pid, call["name"], call["args"].rstrip(), result, start, end))
        elif ENDED.fullmatch(rest):
            # The stack of _exit() comes when the task is gone.
            events.append(End(pid, start))
        elif signal := SIGNAL.fullmatch(rest):
            if calls and calls[-1] >= 0:
                _note_signal(events, calls[-1], signal["name"])
            calls.append(-1)
        else:
            what = f"not understood: {rest[:60]!r}"
            raise SyntaxErrorInTrace(f"trace of {pid}, line {number}: {what}")
    return events


def _add_frame(events: list[Event], index: int, line: str, where: str) -> None:
    frame = FRAME.fullmatch(line)
    if frame is None and not NO_FRAME.fullmatch(line):
        raise SyntaxErrorInTrace(f"{where}: no frame of a stack: {line[:60]!r}")
    call = events[index] if index >= 0 else None
    if frame and isinstance(call, Call):
        added = Frame(frame["path"], frame["symbol"], int(frame["address"], 16))
        events[index] = replace(call, stack=(*call.stack, added))


def _note_signal(events: list[Event], index: int, name: str) -> None:
    call = events[index]
    if isinstance(call, Call) and call.error() == "EINTR":
        events[index] = replace(call, interrupted=name)


def joined(events: Sequence[Event]) -> list[Event]:
    """A call that a signal has interrupted, and that the kernel has begun anew at once, is one call. With a handler
    that makes calls of its own in between they are two.
    """
    last: dict[int, int] = {}  # task -> where its last call is in `whole`
    whole: list[Event] = []
    for event in events:
        before = whole[last[event.pid]] if event.pid in last else None
        if isinstance(event, Call) and isinstance(before, Call) and _goes_on(before, event):
            name = before.name
            whole[last[event.pid]] = replace(event, name=name, args=before.args, start=before.start, stack=before.stack)
            continue
        if isinstance(event, Call):
            last[event.pid] = len(whole)
        whole.append(event)
    return whole


def _goes_on(before: Call, event: Call) -> bool:
    if not before.result.startswith("? ERESTART"):
        return False
    return event.name == "restart_syscall" or (event.name, event.args) == (before.name, before.args)


def with_makers(events: Sequence[Event]) -> list[Event]:
    """clone(2) begins a stack of its own, so that of the call that makes a thread ends at once. What libc asks for
    just before, inside the same function, has the whole of it.
    """
    before: dict[int, Call] = {}
    whole: list[Event] = []
    for event in events:
        if isinstance(event, Call):
            last = before.get(event.pid)
            if event.name in MAKING_CALLS and len(event.stack) < 2 and last and last.name == "rt_sigprocmask":
                event = replace(event, stack=last.stack)
            before[event.pid] = event
        whole.append(event)
    return whole
