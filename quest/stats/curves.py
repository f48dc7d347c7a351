"""What can be said of y over x: by how much it varies, and with which power it grows.

A curve has one y for each x, in the order of x, all above 0. What disturbs a round disturbs all its
points, so rounds are kept whole.
"""

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from quest.stats.reach import middle

try:
    import numpy
except ImportError:
    AVAILABLE = False
else:
    AVAILABLE = True

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[numpy.float64]

REDRAWS = 2000
UPPER = 0.95  # of the redraws lie below the upper end
SEED = 20031016  # the same data must give the same numbers in every build
LEAST_X = 4  # points for a statement about growth

Curve = Sequence[float]


class Spread(NamedTuple):
    """The largest y over the smallest, whatever their places, and its upper end (95 %)."""

    value: float
    upper: float


def spread(sessions: "Sequence[Sequence[Curve]]") -> Spread:
    """Of one processor: of each session the curves of its rounds. Without NumPy no upper end is known:
    infinite.

    Each session gives the median curve of its rounds; their mean (of logarithms) counts. The upper
    end is of whole rounds drawn anew within each session, with a fixed seed. Noise makes the largest
    larger, so both are rather too large.
    """
    if not AVAILABLE:
        return Spread(math.inf, math.inf)
    logs = [numpy.log(numpy.array(session, dtype=float)) for session in sessions]
    generator = numpy.random.default_rng(SEED)
    drawn = numpy.zeros((REDRAWS, logs[0].shape[1]))
    for rounds in logs:
        choice = generator.integers(0, len(rounds), (REDRAWS, len(rounds)))
        drawn += numpy.median(rounds[choice], axis=1) / len(logs)
    whole = sum(numpy.median(rounds, axis=0) for rounds in logs) / len(logs)
    upper = float(numpy.quantile(numpy.ptp(drawn, axis=1), UPPER))
    return Spread(math.exp(float(numpy.ptp(whole))), math.exp(upper))


def exponent(xs: Sequence[float], ys: Curve) -> float:
    """b of y ~ x^b: the median of the slopes between all pairs of points, as logarithms (Theil and
    Sen), of the upper half of the points, or the LEAST_X last ones, since a fixed cost bends the
    lower half. x in ascending order, these and all y above 0.
    """
    first = max(0, min(len(xs) // 2, len(xs) - LEAST_X))
    points = [(math.log(x), math.log(y)) for x, y in zip(xs[first:], ys[first:], strict=True)]
    return middle([(y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in itertools.combinations(points, 2)])
