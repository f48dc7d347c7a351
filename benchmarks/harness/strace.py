"""Reads what `strace -f -ttt -T -yy` wrote: a pure function from lines to calls, signals and ends.

Nothing here knows about servers or figures; see trace.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

LINE = re.compile(r"(?P<pid>\d+)\s+(?P<time>\d+\.\d+) (?P<rest>.*)")
WHOLE = re.compile(r"(?P<name>\w+)\((?P<args>.*)\)\s+= (?P<result>.*?)(?: <(?P<took>\d+\.\d+)>)?")
# "???" is a call in which the task was ended before strace could read which it was.
UNFINISHED = re.compile(r"(?P<name>\w+|\?{3})\((?P<args>.*?)\s*<unfinished \.\.\.>")
RESUMED = re.compile(
    r"<\.\.\. (?P<name>\w+|\?{3}) resumed>"
    r"(?P<args>.*)\)\s+= (?P<result>.*?)(?: <(?P<took>\d+\.\d+)>)?"
)
SIGNAL = re.compile(r"--- (?P<name>\w+)\b.* ---")
ENDED = re.compile(r"\+\+\+ (?P<how>.*) \+\+\+")


class SyntaxErrorInTrace(ValueError):
    """A line no rule here understands: better no picture than a wrong one."""


@dataclass(frozen=True)
class Call:
    """One system call of one task. end is None if the trace stops, or the task ends, inside it."""

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
class Signal:
    """A signal as it is delivered."""

    pid: int
    name: str
    time: float


@dataclass(frozen=True)
class End:
    """A task is gone: "exited with 0", "killed by SIGTERM"."""

    pid: int
    how: str
    time: float


Event = Call | Signal | End


def parse(lines: Iterable[str]) -> list[Event]:
    """All events, in the order in which they began; a call split by other tasks' lines is one."""
    events: list[Event] = []
    open_calls: dict[int, Call] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        found = LINE.fullmatch(line.rstrip("\n"))
        if found is None:
            raise SyntaxErrorInTrace(f"trace line {number}: no process id and time: {line[:60]!r}")
        event = parse_rest(int(found["pid"]), float(found["time"]), found["rest"], open_calls)
        if event is None:
            raise SyntaxErrorInTrace(f"trace line {number}: not understood: {found['rest'][:60]!r}")
        events.extend(event)
    events.extend(open_calls.values())
    return sorted(events, key=began)


def began(event: Event) -> float:
    return event.start if isinstance(event, Call) else event.time


def parse_rest(pid: int, time: float, rest: str, open_calls: dict[int, Call]) -> list[Event] | None:
    """The events a line completes: often one, none for the first half of a call."""
    if found := ENDED.fullmatch(rest):
        inside = [open_calls.pop(pid)] if pid in open_calls else []
        return [*inside, End(pid, found["how"], time)]
    if found := SIGNAL.fullmatch(rest):
        return [Signal(pid, found["name"], time)]
    if found := RESUMED.fullmatch(rest):
        first = open_calls.pop(pid, None)
        if first is None or first.name != found["name"]:
            return None
        back = first.start + float(found["took"]) if found["took"] else time
        args = first.args + found["args"]
        return [Call(pid, first.name, args, found["result"], first.start, back)]
    if found := WHOLE.fullmatch(rest):
        end = time + float(found["took"]) if found["took"] else None
        return [Call(pid, found["name"], found["args"], found["result"], time, end)]
    if found := UNFINISHED.match(rest):
        open_calls[pid] = Call(pid, found["name"], found["args"], "", time, None)
        return []
    return None
