"""What a demo must show, so that its slide says what is seen: pure functions over its events."""

from collections.abc import Sequence
from statistics import median

from quest.stage.demos import Act, Contrast, Demo
from quest.stage.events import Event, Note, Point

SETTLING = 1.0  # seconds after an arrival or a departure: neither the one nor the other
MOST = 0.8  # of the points, at least: one load of 0.4 s may be lost to another process


def points(events: Sequence[Event], server: str) -> list[tuple[float, float]]:
    """(x, y) of the server's line; y is 0 where no request was answered."""
    return [(e.x, e.y or 0.0) for e in events if isinstance(e, Point) and e.line == server]


def between(line: Sequence[tuple[float, float]], first: float, last: float) -> list[float]:
    """The y of the points whose x lies between the two, or is one of them."""
    return [y for x, y in line if first <= x <= last]


def beside(act: Act, events: Sequence[Event]) -> list[float]:
    """The y of the points beside the silent clients, or at the last number of readers; where none come, all but the
    first ones.
    """
    leave = act.leave - SETTLING if act.silent or act.computes else act.end
    return between(points(events, act.server), act.arrive + SETTLING, leave)


def top(demo: Demo, events: Sequence[Event]) -> float:
    """The top of the axis: at least demo.top, and as high as all points but those of an arrival,
    which may lie far above. The same rule as in demo.js.
    """
    marks = [e.x for e in events if isinstance(e, Note) and e.x is not None]
    ys = [
        e.y or 0.0 for e in events if isinstance(e, Point) and not any(mark <= e.x <= mark + SETTLING for mark in marks)
    ]
    return max([demo.top, *ys])


def missing(demo: Demo, events: Sequence[Event]) -> str:
    """What has not been seen, in a sentence; "" if all of it was."""
    for act in demo.acts:
        line = points(events, act.server)
        if not any(y > 0 for _, y in line):
            return f"{act.server}: nothing was measured"
        if demo.x != "silent" and demo.measure != "share" and (fault := _served(act, events)):
            return fault
    return _too_little(demo, demo.contrast, events) if demo.contrast else ""


def _served(act: Act, events: Sequence[Event]) -> str:
    before = between(points(events, act.server), act.begin, act.arrive - 0.5)
    if sum(y > 0 for y in before) < MOST * max(1, len(before)):
        return f"{act.server} does not serve before the clients come"
    ys = beside(act, events)
    if not ys:
        return f"{act.server}: nothing was measured beside the clients"
    share = sum(y > 0 for y in ys) / len(ys)
    if act.must == "nobody" and share > 1 - MOST:
        return f"{act.server} serves beside the silent clients, and should not"
    if act.must == "served" and share < MOST:
        return f"{act.server} serves in {share:.0%} of the time beside the clients, not always"
    return ""


def _too_little(demo: Demo, contrast: Contrast, events: Sequence[Event]) -> str:
    if contrast.lower:
        high, low = (
            median(beside(act, events))
            for server in (contrast.higher, contrast.lower)
            for act in demo.acts
            if act.server == server
        )
        what = f"{contrast.higher} over {contrast.lower}"
    else:
        ys = [y for _, y in points(events, contrast.higher)]
        low, high, what = ys[0], ys[-1], f"{contrast.higher}: last over first"
    if low > 0 and high / low >= contrast.times:
        return ""
    return f"{what} is {high / low if low else 0:.2g}, but must be at least {contrast.times:g}"
