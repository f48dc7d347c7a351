"""Statistics as pure functions. scipy does the work; here it is only asked the right question.

Nothing is dropped, and no interval is given for fewer than six repetitions. Without scipy there are
medians, but neither intervals nor tests: these functions then return None.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from quest.spec.model import LEAST
from quest.stats.reach import order

try:
    import numpy
    import scipy  # scipy.stats, a quarter of a second, is loaded when it is used
except ImportError:
    AVAILABLE = False
else:
    AVAILABLE = True

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[numpy.float64]

CONFIDENCE = 0.95
RESAMPLES = 2000
SEED = 20031016  # the same data must give the same numbers in every build
DIFFERENT = 0.05  # p below which a rank test sees a difference

Interval = tuple[float, float]
Rounds = Mapping[int, float]


class Estimate(NamedTuple):
    """A value, and its interval if there are rounds enough for one; all in the values' unit."""

    value: float
    low: float | None = None
    high: float | None = None


def percentile(values: Sequence[float], part: int) -> float:
    """The value below which `part` per cent of the values lie, linear between neighbours; to the
    last bit what numpy.percentile gives, at a tenth of its price for the few values of a round.
    """
    ordered = sorted(values)
    place = (len(ordered) - 1) * (part / 100)
    below = math.floor(place)
    low, high, weight = ordered[below], ordered[math.ceil(place)], place - below
    step = high - low
    return float(low + step * weight if weight < 0.5 else high - step * (1 - weight))


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the two in the middle; ValueError of none."""
    return float(statistics.median(values))


def median_with_interval(values: Sequence[float]) -> Estimate:
    """The median with its distribution-free interval, from order statistics: at least CONFIDENCE.

    The k-th smallest and the k-th largest of all values bracket the median.
    """
    if not AVAILABLE or len(values) < LEAST:
        return Estimate(median(values))
    ordered = sorted(values)
    k = order(len(ordered))
    return Estimate(median(ordered), ordered[k - 1], ordered[-k])


def tukey(values: Sequence[float]) -> list[str]:
    """For each value "mild" or "far" outside of Tukey's fences, else "". Nothing is dropped."""
    if len(values) < 4:
        return [""] * len(values)
    first, third = percentile(values, 25), percentile(values, 75)
    spread = third - first

    def outside(value: float, fence: float) -> bool:
        return value < first - fence * spread or value > third + fence * spread

    return ["far" if outside(v, 3.0) else "mild" if outside(v, 1.5) else "" for v in values]


@dataclass(frozen=True)
class Ratio:
    """Of two medians. `low` and `high` are None with too few rounds."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def interval(self) -> Interval | None:
        """Both ends, or None."""
        return None if self.low is None or self.high is None else (self.low, self.high)


def paired_ratio(a: Rounds, b: Rounds) -> Ratio:
    """median(a) / median(b), of the same interleaved rounds, which are resampled together."""
    return _ratio(*in_both(a, b), paired=True)


def in_both(a: Rounds, b: Rounds) -> tuple[list[float], list[float]]:
    """The values of the rounds that both have, in the order of the rounds."""
    common = sorted(set(a) & set(b))
    return [a[r] for r in common], [b[r] for r in common]


def unpaired_ratio(a: Sequence[float], b: Sequence[float]) -> Ratio:
    """median(a) / median(b) of two runs of different rounds."""
    return _ratio(a, b, paired=False)


def _ratio(a: Sequence[float], b: Sequence[float], paired: bool) -> Ratio:
    count = min(len(a), len(b))
    if not count:
        raise ValueError("no data")
    bottom = median(b)
    value = median(a) / bottom if bottom else math.inf
    no_ratio = min(b) <= 0 <= max(b) or not math.isfinite(value)  # a median of both signs may be 0
    if not AVAILABLE or count < LEAST or no_ratio:
        return Ratio(value)
    return Ratio(value, *_bootstrap_ratio(tuple(a), tuple(b), paired))


@lru_cache(maxsize=4096)
def _bootstrap_ratio(a: tuple[float, ...], b: tuple[float, ...], paired: bool) -> Interval:
    if len(set(a)) == 1 and len(set(b)) == 1:
        return a[0] / b[0], a[0] / b[0]

    def ratio(x: "Array", y: "Array", axis: int = -1) -> "Array":
        of_medians: Array = numpy.median(x, axis=axis) / numpy.median(y, axis=axis)
        return of_medians

    result = scipy.stats.bootstrap(
        (a, b), ratio, paired=paired, vectorized=True, n_resamples=RESAMPLES,
        confidence_level=CONFIDENCE, method="percentile", random_state=SEED,
    )  # fmt: skip
    interval = result.confidence_interval
    return float(interval.low), float(interval.high)


def mann_whitney(a: Sequence[float], b: Sequence[float]) -> float | None:
    """p of the rank test: how likely are such ranks if a and b do not differ? None with too few
    values.
    """
    if not AVAILABLE or min(len(a), len(b)) < LEAST:
        return None
    if len(set(a) | set(b)) == 1:
        return 1.0
    return float(scipy.stats.mannwhitneyu(a, b, alternative="two-sided").pvalue)


def noise_floor(a: Rounds, again: Rounds) -> float | None:
    """The share by which two runs of the same thing can differ, from an A/A pair: 0.05 is 5 %. None
    where they have no round in common.
    """
    if not set(a) & set(again):
        return None
    ratio = paired_ratio(a, again)
    if not math.isfinite(ratio.value):
        return None
    low, high = ratio.interval or (ratio.value, ratio.value)
    return max(abs(1 - low), abs(high - 1))
