"""Statistics as pure functions. scipy does the work; here it is only asked the right question.

Nothing is dropped, and no interval is given for fewer than six repetitions. Without scipy there are
medians, but neither intervals nor tests: these functions then return None.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

from quest.spec.model import LEAST

try:
    import numpy
    import scipy  # scipy.stats, a quarter of a second, is loaded when it is used
except ImportError:
    AVAILABLE = False
else:
    AVAILABLE = True

CONFIDENCE = 0.95
RESAMPLES = 2000
TAIL = (1 - CONFIDENCE) / 2  # beyond each end of an interval
SEED = 20031016  # the same data must give the same numbers in every build
DIFFERENT = 0.05  # p below which a rank test sees a difference
LEAST_X = 4  # points for a statement about growth

Interval = tuple[float, float]
Rounds = Mapping[int, float]


class Ends(NamedTuple):
    """A value, and its interval if there are rounds enough for one."""

    value: float
    low: float | None = None
    high: float | None = None


def percentile(values: Sequence[float], part: int) -> float:
    """Linear between neighbours."""
    if AVAILABLE:
        return float(numpy.percentile(values, part))
    cuts = statistics.quantiles(values, n=100, method="inclusive") if len(values) > 1 else None
    return cuts[part - 1] if cuts else values[0]


def median(values: Sequence[float]) -> float:
    return float(statistics.median(values))


def median_and_ends(values: Sequence[float]) -> Ends:
    """With its distribution-free interval, from order statistics: at least CONFIDENCE.

    The k-th smallest and the k-th largest of all values bracket the median.
    """
    if not AVAILABLE or len(values) < LEAST:
        return Ends(median(values))
    ordered = sorted(values)
    k = max(1, int(_order(len(ordered))))
    return Ends(median(values), ordered[k - 1], ordered[-k])


@cache
def _order(count: int) -> float:
    return float(scipy.stats.binom.ppf(TAIL, count, 0.5))


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
    """Of two medians. `low`, `high` and `p` are None with too few rounds."""

    value: float
    low: float | None = None
    high: float | None = None
    p: float | None = None

    @property
    def interval(self) -> Interval | None:
        return None if self.low is None or self.high is None else (self.low, self.high)


def paired_ratio(a: Rounds, b: Rounds) -> Ratio:
    """median(a) / median(b), of the same interleaved rounds, which are resampled together."""
    common = sorted(set(a) & set(b))
    first, second = [a[r] for r in common], [b[r] for r in common]
    return _ratio(first, second, paired=True)


def unpaired_ratio(a: Sequence[float], b: Sequence[float]) -> Ratio:
    """median(a) / median(b) of two runs that have nothing to do with each other."""
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
    return Ratio(value, *_bootstrap_ratio(tuple(a), tuple(b), paired), mann_whitney(a, b))


@lru_cache(maxsize=4096)
def _bootstrap_ratio(a: tuple[float, ...], b: tuple[float, ...], paired: bool) -> Interval:
    if len(set(a)) == 1 and len(set(b)) == 1:
        return a[0] / b[0], a[0] / b[0]

    def ratio(x: Any, y: Any, axis: int = -1) -> Any:
        return numpy.median(x, axis=axis) / numpy.median(y, axis=axis)

    result = scipy.stats.bootstrap(
        (a, b), ratio, paired=paired, vectorized=True, n_resamples=RESAMPLES,
        confidence_level=CONFIDENCE, method="percentile", random_state=SEED,
    )  # fmt: skip
    interval = result.confidence_interval
    return float(interval.low), float(interval.high)


def mann_whitney(a: Sequence[float], b: Sequence[float]) -> float:
    """p of the rank test: how likely are such ranks if a and b do not differ?"""
    if len(set(a) | set(b)) == 1:
        return 1.0
    return float(scipy.stats.mannwhitneyu(a, b, alternative="two-sided").pvalue)


def noise_floor(a: Rounds, again: Rounds) -> float | None:
    """The relative difference two runs of the same thing can show; from an A/A pair."""
    if not set(a) & set(again):
        return None
    ratio = paired_ratio(a, again)
    if not math.isfinite(ratio.value):
        return None
    low, high = ratio.interval or (ratio.value, ratio.value)
    return max(abs(1 - low), abs(high - 1))


# ---- growth -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Growth:
    """How y depends on x. `rise` is the fitted y at the end over the fitted y at the start."""

    kind: str  # "flat", "linear", "knee", "grows", "falls"
    rise: Ends
    knee: float | None


def growth(points: Mapping[float, Rounds], tolerance: float = 0.25) -> Growth | None:
    """Fits the medians over x. None without scipy or with too few points.

    A rise within `tolerance` is flat. Else a straight line is compared, by the Bayesian information
    criterion of the relative errors, with a line that is flat up to a knee.
    """
    if not AVAILABLE or len(points) < LEAST_X:
        return None
    xs = numpy.array(sorted(points), dtype=float)
    medians = numpy.array([median(list(points[x].values())) for x in xs])
    if not (medians > 0).all():
        return None
    line, line_error = _fit(xs, medians, xs)
    rise = _rise(line, xs)
    kind, knee = _kind(xs, medians, rise, line_error, tolerance)
    rises = [_rise(_fit(xs, ys, xs)[0], xs) for ys in resampled(points, xs, 400)]
    finite = [rise for rise in rises if math.isfinite(rise)]
    if not finite:
        return Growth(kind, Ends(rise), knee)
    return Growth(kind, Ends(rise, *map(float, numpy.quantile(finite, [TAIL, 1 - TAIL]))), knee)


def resampled(points: Mapping[float, Rounds], xs: Any, times: int = RESAMPLES) -> Any:
    """The medians over x of whole rounds drawn anew, again and again: what disturbs a round
    disturbs all its points. Nothing with too few rounds.
    """
    rounds = sorted(set.intersection(*(set(points[x]) for x in xs)))
    if len(rounds) < LEAST:
        return []
    table = numpy.array([[points[x][r] for x in xs] for r in rounds])
    drawn = numpy.random.default_rng(SEED).integers(0, len(rounds), (times, len(rounds)))
    return numpy.median(table[drawn], axis=1)


def _fit(xs: Any, ys: Any, regressor: Any) -> tuple[Any, float]:
    """y = a + b * regressor with the smallest relative errors; their mean square."""
    design = numpy.column_stack([numpy.ones_like(xs), regressor]) / ys[:, None]
    coefficients, *_ = numpy.linalg.lstsq(design, numpy.ones_like(ys), rcond=None)
    errors = design @ coefficients - 1
    return coefficients, float(numpy.mean(errors**2))


def _rise(line: Any, xs: Any) -> float:
    start, end = line[0] + line[1] * xs[0], line[0] + line[1] * xs[-1]
    return float(end / start) if start > 0 else math.inf


def _kind(
    xs: Any, ys: Any, rise: float, line_error: float, tolerance: float
) -> tuple[str, float | None]:
    """Of Growth; and where the knee is, of the line that is flat up to some x."""
    count = len(xs)
    knee_error, knee = math.inf, None
    for at in xs[2:-2] if count >= 6 else ():
        for regressor in (numpy.maximum(0.0, xs - at), (xs > at).astype(float)):
            line, error = _fit(xs, ys, regressor)
            if error < knee_error and line[1] > 0:
                knee_error, knee = error, float(at)

    def bic(error: float, parameters: int) -> float:
        # An error of one in a million is as good as none; its logarithm must not decide.
        return count * math.log(max(error, 1e-12)) + parameters * math.log(count)

    largest = float(ys.max() / numpy.median(ys[: max(2, count // 4)]))
    if (
        knee is not None
        and bic(line_error, 2) - bic(knee_error, 3) > 10
        and largest > 1 + tolerance
    ):
        return "knee", knee
    if 1 / (1 + tolerance) <= rise <= 1 + tolerance:
        return "flat", None
    if rise < 1:
        return "falls", None
    flat_error = float(numpy.mean((numpy.median(ys) / ys - 1) ** 2))
    explained = 1 - line_error / flat_error if flat_error else 0.0
    return ("linear" if explained > 0.8 else "grows"), None
