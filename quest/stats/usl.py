"""The Universal Scalability Law (Gunther): the rate of N workers, each with a core of its own.

    X(N) = λN / (1 + σ(N-1) + κN(N-1))

λ is the rate of one; σ, contention, is the share of its work that only one can do at a time; κ,
coherency, is what every pair of them costs each other, and the only part that makes the rate fall
again: from N* = sqrt((1-σ)/κ) on. Neither may be below 0: growth by more than there are workers is
fitted as growth without any loss.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quest.spec.model import LEAST_WORKERS
from quest.stats import estimates
from quest.stats.estimates import LEAST_X, Ends, Rounds

try:
    import numpy
    import scipy
except ImportError:
    pass  # estimates.AVAILABLE is false then

NOTHING = 1e-3  # what changes the rate by less, at the most workers there were, counts as 0


@dataclass(frozen=True)
class Fit:
    """`peak` is infinite where κ cannot be told from 0; its `low` is then the least it can be."""

    rate: Ends
    sigma: Ends
    kappa: Ends
    peak: Ends
    rounds: int

    @property
    def told(self) -> bool:
        """κ can be told from 0."""
        return bool(self.kappa.low)

    def estimate(self, name: str) -> Ends:
        """Of lambda, sigma, kappa or peak."""
        return {"lambda": self.rate, "sigma": self.sigma, "kappa": self.kappa}.get(name, self.peak)


def peak(sigma: float, kappa: float) -> float:
    """N*, where the rate is highest: with one at least."""
    return max(1.0, math.sqrt((1 - sigma) / kappa)) if kappa else math.inf


def fit(points: Mapping[float, Rounds]) -> Fit | None:
    """Over the medians of the rates, by number of workers. None without scipy, with too few points,
    or without a point at four workers or beyond.
    """
    if not estimates.AVAILABLE or len(points) < LEAST_X or max(points) < LEAST_WORKERS:
        return None
    xs = numpy.array(sorted(points), dtype=float)
    medians = numpy.array([estimates.median(list(points[x].values())) for x in xs])
    if xs[0] < 1 or not (medians > 0).all():
        return None
    values = _solve(xs, medians)
    rounds = len(set.intersection(*(set(points[x]) for x in xs)))
    solved = [_solve(xs, again) for again in estimates.resampled(points, xs)]
    if not solved:
        rate, sigma, kappa = map(Ends, values)
        return Fit(rate, sigma, kappa, Ends(math.inf), rounds)
    found = [(*some, peak(*some[1:])) for some in solved]
    # One of those that were found, and none between two: N* may be infinite.
    lows = numpy.quantile(found, estimates.TAIL, axis=0, method="lower").tolist()
    highs = numpy.quantile(found, 1 - estimates.TAIL, axis=0, method="higher").tolist()
    rate, sigma, kappa = map(Ends, values, lows, highs)
    last = Ends(peak(sigma.value, kappa.value), lows[3], highs[3])
    if not kappa.low:
        last = Ends(math.inf, lows[3] if math.isfinite(lows[3]) else None)
    return Fit(rate, sigma, kappa, last, rounds)


def _solve(xs: Any, ys: Any) -> tuple[float, float, float]:
    """λ, σ and κ with the smallest relative errors.

    Turned over, the law is a sum: N/X = d + bN + cN(N-1) with λ = 1/(d+b), σ = b/(d+b) and
    κ = c/(d+b); and σ is within 0 and 1 and κ not below 0 just where none of the three is below 0.
    So there is one solution, and nothing to search for: a search comes to no end at such a bound.
    """
    unit = ys[0] / xs[0]
    design = numpy.column_stack([numpy.ones_like(xs), xs, xs * (xs - 1)])
    (d, b, c), _ = scipy.optimize.nnls(design * (ys / unit / xs)[:, None], numpy.ones_like(ys))
    one = max(float(d + b), 1e-9)  # numbers that follow no such law may leave c alone
    sigma, kappa, most = float(b) / one, float(c) / one, float(xs[-1])
    sigma = sigma if sigma * (most - 1) >= NOTHING else 0.0
    kappa = kappa if kappa * most * (most - 1) >= NOTHING else 0.0
    return float(unit) / one, sigma, kappa
