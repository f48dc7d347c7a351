"""Reach: the one interval by which claims are judged, and how several processors agree.

Each round gives one number. A session (a fresh boot, or three hours later) gives some rounds, and a
processor some sessions. What one session has in all its rounds, as the layout of memory or the state
of the machine, no number of rounds averages out: so the interval must hold every session's median.

The operating characteristics are simulated in tests/harness/simulated.py.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from quest.spec.model import CHANGED, DEPENDS, HOLDS, NEAR, UNDECIDED

SESSIONS_ON_ONE = 5  #: with which one processor decides alone
SESSIONS_ON_EACH = 3  #: with which each of several does
EXACT = 1e-9  #: what rounding may shift a logarithm, or a share of a value


class Reach(NamedTuple):
    """The median of the sessions' medians with the interval about it, in the unit of the numbers."""

    median: float
    low: float
    high: float
    sessions: tuple[float, ...] = ()  #: the median of each

    def within(self, low: float, high: float) -> bool:
        """Whether all of it lies between two lines, or on them."""
        return self.low >= low - _rounding(low) and self.high <= high + _rounding(high)

    def outside(self, low: float, high: float) -> bool:
        """Whether all of it lies beyond one of two lines."""
        return self.high < low - _rounding(low) or self.low > high + _rounding(high)


def _rounding(line: float) -> float:
    return EXACT * max(1.0, abs(line)) if math.isfinite(line) else 0.0


def middle(values: Sequence[float]) -> float:
    """The median; numbers may be infinite: between -inf and inf lies 0. ValueError of none."""
    if not values:
        raise ValueError("no values")
    ordered, half = sorted(values), len(values) // 2
    if len(ordered) % 2:
        return float(ordered[half])
    low, high = ordered[half - 1], ordered[half]
    if math.isinf(low) or math.isinf(high):
        return 0.0 if low == -high else float(low if math.isinf(low) else high)
    return (low + high) / 2


@cache
def order(count: int) -> int:
    """k: from the k-th smallest to the k-th largest of `count` values the median lies with a
    probability of 95 % or more, whatever their distribution; 1 also where that is less.
    """
    below, k, terms = 0, -1, 2**count
    while 40 * below < terms:  # 2.5 % on each side; whole numbers, so that no rounding decides
        k += 1
        below += math.comb(count, k)
    return max(1, k)


def reach(sessions: Sequence[Sequence[float]]) -> Reach:
    """The reach of the sessions of one processor: of each its rounds' numbers. ValueError of none.

    The order-statistics interval (95 % or more) of all rounds, widened until it holds every
    session's median. It needs no seed, and no library.
    """
    medians = tuple(middle(session) for session in sessions)
    every = sorted(number for session in sessions for number in session)
    k = order(len(every))
    return Reach(middle(medians), min(every[k - 1], *medians), max(every[-k], *medians), medians)


# ---- several processors -------------------------------------------------------------------------


def too_few(sessions: Sequence[int]) -> str:
    """How much too little the sessions of each processor are, in words, or "": a verdict needs five
    on one processor, or three on each of several.
    """
    least = min(sessions, default=0)
    if least >= (SESSIONS_ON_EACH if len(sessions) > 1 else SESSIONS_ON_ONE):
        return ""
    number = {1: "one session", 2: "two sessions", 3: "three sessions", 4: "four sessions"}
    return f"within {number.get(least, 'no session')}"


def word(sides: Mapping[str, str]) -> str:
    """The verdict of all processors together, from that of each: processors are never pooled.

    One that decides nothing, or lies near its line, leaves all undecided. Where some fail and none
    holds, but not in the same manner, the claim has changed.
    """
    said = set(sides.values())
    for undecided in (*reversed(UNDECIDED), NEAR):
        if undecided in said:
            return undecided
    if len(said) == 1:
        return said.pop()
    return CHANGED if CHANGED in said and not said & {HOLDS, DEPENDS} else DEPENDS
