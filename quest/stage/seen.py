"""What a demo must show, so that its slide says what is seen: pure functions over its events."""

from collections.abc import Sequence
from statistics import median

from quest.stage.scene import Act, Demo, Event

SETTLING = 1.0  # seconds after an arrival or a departure: neither the one nor the other
MOST = 0.8  # of the points, at least: one slice of 0.4 s may be lost to another process


def points(events: Sequence[Event], server: str) -> list[tuple[float, float]]:
    """(x, y) of the line; y is 0 where no request was answered."""
    found = [e for e in events if e.get("line") == server]
    return [(float(e["x"]), float(e["y"] or 0)) for e in found]


def between(line: Sequence[tuple[float, float]], first: float, last: float) -> list[float]:
    return [y for x, y in line if first <= x <= last]


def beside(act: Act, events: Sequence[Event]) -> list[float]:
    """The points beside the silent clients, or at the last number of readers."""
    leave = act.end if act.readers else act.leave - SETTLING
    return between(points(events, act.server), act.arrive + SETTLING, leave)


def top(demo: Demo, events: Sequence[Event]) -> float:
    """Of the axis: at least demo.top, and all points but those of an arrival, which may lie far
    above. The same rule as in demo.js.
    """
    marks = [float(e["x"]) for e in events if "note" in e and "x" in e]
    ys = [
        float(e["y"] or 0)
        for e in events
        if "line" in e and not any(mark <= float(e["x"]) <= mark + SETTLING for mark in marks)
    ]
    return max([demo.top, *ys])


def missing(demo: Demo, events: Sequence[Event]) -> str:
    """What has not been seen, in a sentence; "" if all of it was."""
    for act in demo.acts:
        line = points(events, act.server)
        if not any(y > 0 for _, y in line):
            return f"{act.server} has no point"
        if demo.x != "silent" and (fault := _served(act, events)):
            return fault
    return _over(demo, events) if demo.over else ""


def _served(act: Act, events: Sequence[Event]) -> str:
    before = between(points(events, act.server), act.begin, act.arrive - 0.5)
    if sum(y > 0 for y in before) < MOST * max(1, len(before)):
        return f"{act.server} does not serve before the clients come"
    ys = beside(act, events)
    if not ys:
        return f"{act.server} has no point beside the clients"
    share = sum(y > 0 for y in ys) / len(ys)
    if act.must == "nobody" and share > 1 - MOST:
        return f"{act.server} serves beside the silent clients, and must not"
    if act.must == "served" and share < MOST:
        return f"{act.server} serves in {share:.0%} of the time beside the clients, not always"
    return ""


def _over(demo: Demo, events: Sequence[Event]) -> str:
    *servers, least = demo.over
    if len(servers) == 1:
        ys = [y for _, y in points(events, servers[0])]
        low, high, what = ys[0], ys[-1], f"{servers[0]}: last over first"
    else:
        high, low = (
            median(beside(act, events))
            for server in servers
            for act in demo.acts
            if act.server == server
        )
        what = f"{servers[0]} over {servers[1]}"
    if low > 0 and high / low >= least:
        return ""
    return f"{what} is {high / low if low else 0:.2g}, and at least {least:g} is to be seen"
