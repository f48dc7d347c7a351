"""Room for time: equal room for each call, logarithmic room for what lasts.

A request takes 0.3 ms, a silence 250, and inside a burst durations are the tracer's: on a linear axis
nothing could be seen. So places are counted in units; a unit is as wide as the page lets it be.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from quest.book.player.recording import traced_clients
from quest.measure.form import Recording

MERGE_US, SHORT_US, LONG_US, CUT_US = 60, 300, 2500, 40_000
SHORT_UNITS, MOST_UNITS = 0.35, 7.0
#: Before the first event, and behind the last.
MARGIN_UNITS, MARGIN_US = 1.2, 1000


@dataclass(frozen=True)
class Scale:
    """`points`: times in microseconds; `units`: where each stands. Between two the place is proportional."""

    points: Sequence[int]
    units: Sequence[float]

    def at(self, t: float) -> float:
        """The place of t, from 0 (the left edge) to 1."""
        points, units = self.points, self.units
        if t <= points[0]:
            return 0.0
        for index in range(1, len(points)):
            if t <= points[index]:
                part = (t - points[index - 1]) / (points[index] - points[index - 1])
                return (units[index - 1] + part * (units[index] - units[index - 1])) / units[-1]
        return 1.0

    def cuts(self) -> list[tuple[float, int]]:
        """What is shortened so much that it must be said: its place, and how long it lasts in microseconds."""
        pairs = pairwise(self.points)
        return [(self.at(a + 0.72 * (b - a)), b - a) for a, b in pairs if b - a >= CUT_US]


def width(gap: int) -> float:
    """The units that so many microseconds get."""
    if gap < SHORT_US:
        return SHORT_UNITS
    if gap <= LONG_US:
        return 1.0
    return min(MOST_UNITS, 1 + 1.25 * math.log2(gap / LONG_US))


def events(recording: Recording) -> Iterable[int]:
    """When something begins or is over: calls, sleeps, what clients do."""
    for client in traced_clients(recording):
        times = (client.connect, client.connected, client.half, client.sent, client.first, client.done)
        yield from (t for t in times if t is not None)
    for call in recording.calls:
        yield call.t
        if call.asleep and call.took is not None:
            yield call.t + call.took


def scale_of(*recordings: Recording) -> Scale:
    """One scale for the events of all of these, so that equal times have equal places."""
    end = max(recording.end for recording in recordings)
    points: list[int] = []
    for t in sorted(t for recording in recordings for t in events(recording)):
        if 0 <= t <= end and (not points or t - points[-1] >= MERGE_US):
            points.append(t)
    units = [MARGIN_UNITS]
    for before, after in pairwise(points):
        units.append(units[-1] + width(after - before))
    return Scale(
        [points[0] - MARGIN_US, *points, points[-1] + MARGIN_US],
        [0.0, *units, units[-1] + MARGIN_UNITS],
    )
