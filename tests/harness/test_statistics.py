"""Statistics against values known from elsewhere, and laws found in numbers made from them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping

import pytest

from harness.statistics import estimates, units, usl
from harness.statistics.estimates import Rounds, growth, median_interval, paired_ratio, tukey
from harness.statistics.usl import fit, law, peak

pytest.importorskip("scipy")


def rounds(values: list[float]) -> dict[int, float]:
    return dict(enumerate(values))


def noisy(value: float, count: int = 12, spread: float = 0.02, seed: int = 1) -> dict[int, float]:
    generator = random.Random(seed)
    return {i: value * (1 + generator.uniform(-spread, spread)) for i in range(count)}


# ---- medians, ratios, floors ---------------------------------------------------------------------


@pytest.mark.parametrize("available", [True, False])
def test_percentiles_lie_between_neighbours(
    monkeypatch: pytest.MonkeyPatch, available: bool
) -> None:
    monkeypatch.setattr(estimates, "AVAILABLE", available)
    assert estimates.median([4, 1, 3, 2]) == 2.5
    assert estimates.percentile([10, 20, 30, 40, 50], 90) == pytest.approx(46)
    assert estimates.percentile([7.0], 99) == 7


@pytest.mark.parametrize(
    ("count", "expected"),
    # The classic table for the median at 95 %: ranks 1-6 of 6, 1-8 of 8, 2-9 of 10, 6-15 of 20.
    [(5, None), (6, (1, 6)), (8, (1, 8)), (10, (2, 9)), (20, (6, 15)), (50, (18, 33))],
)
def test_the_interval_of_the_median_has_the_ranks_of_the_table(
    count: int, expected: tuple[int, int] | None
) -> None:
    assert median_interval([float(i) for i in range(1, count + 1)]) == expected


def test_a_ratio_of_paired_rounds_ignores_what_disturbs_both() -> None:
    disturbance = [1.0, 1.3, 0.8, 2.0, 1.1, 0.9, 1.6, 1.2]
    ratio = paired_ratio(
        rounds([200 * d for d in disturbance]), rounds([100 * d for d in disturbance])
    )
    assert ratio.interval == pytest.approx((2, 2))
    alone = paired_ratio({0: 10.0, 1: 10.0, 5: 99.0}, {0: 5.0, 1: 5.0, 4: 1.0})
    assert (alone.value, alone.rounds, alone.interval, alone.p) == (2, 2, None, None)


def test_the_same_data_give_the_same_interval_each_time() -> None:
    a, b = noisy(100), noisy(90, seed=2)
    first = paired_ratio(a, b)
    estimates._bootstrap_ratio.cache_clear()
    assert paired_ratio(a, b) == first


def test_the_rank_test_knows_textbook_values() -> None:
    low, high = [1.0, 2, 3, 4, 5, 6], [7.0, 8, 9, 10, 11, 12]
    assert estimates.mann_whitney(low, high) == pytest.approx(2 / 924)  # exact: 2 of C(12, 6)
    assert estimates.mann_whitney(low, list(low)) == pytest.approx(1)


def test_the_floor_is_what_two_runs_of_the_same_thing_differ_by() -> None:
    floor = estimates.noise_floor(rounds([100.0] * 8), rounds([108.0] * 8))
    assert floor == pytest.approx(1 - 100 / 108)
    assert estimates.noise_floor({0: 1.0}, {1: 1.0}) is None


def test_outliers_are_marked_and_kept() -> None:
    values = [10.0, 10.1, 9.9, 10.2, 9.8, 10.05, 11.3, 30.0]
    assert tukey(values) == [""] * 6 + ["mild", "far"]
    assert tukey([0.1 + 0.2] * 7) == [""] * 7


# ---- growth --------------------------------------------------------------------------------------


def over_x(function: Callable[[float], float]) -> dict[float, dict[int, float]]:
    return {float(x): noisy(function(x), seed=x) for x in [*range(0, 2000, 100), 2000]}


@pytest.mark.parametrize(
    ("function", "kind", "rise"),
    [
        (lambda _: 100, "flat", 1),
        (lambda x: 100 + 0.005 * x, "flat", 1.1),
        (lambda x: 100 + x, "linear", 21),
        (lambda x: 100 - 0.04 * x, "falls", 0.2),
        (lambda x: 100 if x < 1400 else 200_000, "knee", None),
        (lambda x: 100 + 5 * max(0, x - 1000), "knee", None),
    ],
)
def test_growth_is_told_by_its_shape(
    function: Callable[[float], float], kind: str, rise: float | None
) -> None:
    found = growth(over_x(function))
    assert found is not None
    assert found.kind == kind
    assert rise is None or found.rise == pytest.approx(rise, rel=0.03)
    assert (found.knee is not None) == (kind == "knee")
    assert found.rise_low is not None
    assert found.rise_high is not None
    assert found.rise_low <= found.rise <= found.rise_high or math.isinf(found.rise)


def test_a_knee_is_where_it_is() -> None:
    found = growth(over_x(lambda x: 100 if x < 1400 else 9000))
    assert found is not None
    assert found.knee in (1300.0, 1400.0)


def test_three_points_tell_nothing_about_growth() -> None:
    assert growth({1.0: noisy(1), 2.0: noisy(2), 3.0: noisy(3)}) is None


# ---- the Universal Scalability Law ---------------------------------------------------------------

WORKERS = (1, 2, 3, 4, 6, 8, 12, 16)


def rates(
    sigma: float, kappa: float, noise: float = 0.01, count: int = 8, seed: int = 1,
    workers: tuple[int, ...] = WORKERS,
) -> dict[float, Rounds]:  # fmt: skip
    generator = random.Random(seed)
    return {
        float(n): {
            r: law(n, 5e4, sigma, kappa) * (1 + generator.gauss(0, noise)) for r in range(count)
        }
        for n in workers
    }


def found(points: Mapping[float, Rounds]) -> usl.Fit:
    fitted = fit(points)
    assert fitted is not None
    return fitted


@pytest.mark.parametrize(
    ("sigma", "kappa"),
    [(0.05, 0.002), (0.02, 0.01), (0.3, 0.05), (0.05, 0), (0, 0.001), (0, 0), (1, 0)],
)
@pytest.mark.parametrize("workers", [WORKERS, (1, 2, 3, 4)])
def test_what_was_put_in_is_found(sigma: float, kappa: float, workers: tuple[int, ...]) -> None:
    fitted = found(rates(sigma, kappa, noise=0, workers=workers))
    assert fitted.rate.value == pytest.approx(5e4)
    assert fitted.sigma.value == pytest.approx(sigma, abs=1e-9)
    assert fitted.kappa.value == pytest.approx(kappa, abs=1e-9)
    assert fitted.told == (kappa > 0)
    assert fitted.peak.value == (pytest.approx(peak(sigma, kappa)) if kappa else math.inf)


def test_the_rate_is_highest_at_the_peak() -> None:
    top = peak(0.05, 0.002)
    assert law(top, 1, 0.05, 0.002) > max(law(top + d, 1, 0.05, 0.002) for d in (-0.1, 0.1))
    assert peak(1, 2) == peak(0.9, 5) == 1, "with none there is no rate at all"


def test_the_intervals_hold_what_was_put_in() -> None:
    """Each is to hold it in 95 of 100 runs; a kappa that is there is told, and no other."""
    held, told = [0, 0, 0, 0], 0
    for seed in range(30):
        fitted = found(rates(0.05, 0.002, noise=0.02, count=15, seed=seed))
        truth = (5e4, 0.05, 0.002, peak(0.05, 0.002))
        parts = (fitted.rate, fitted.sigma, fitted.kappa, fitted.peak)
        for place, (part, value) in enumerate(zip(parts, truth, strict=True)):
            held[place] += (part.low or 0) <= value <= (part.high or 0)
        told += fitted.told - found(rates(0.05, 0, 0.02, 15, seed)).told
    assert min(held) >= 26
    assert told >= 26


def test_without_a_peak_there_is_the_least_it_can_be() -> None:
    fitted = found(rates(0.05, 0, noise=0.03))
    assert (fitted.told, fitted.kappa.low) == (False, 0)
    assert (fitted.peak.value, fitted.peak.high) == (math.inf, None)
    assert fitted.peak.low == pytest.approx(peak(0.05, fitted.kappa.high or 0), rel=0.05)


def test_what_disturbs_a_whole_round_widens_lambda_alone() -> None:
    factors = (1.0, 1.3, 0.8, 1.1, 0.9, 1.2, 0.7, 1.05)
    fitted = found(
        {float(n): {r: f * law(n, 5e4, 0.05, 0.002) for r, f in enumerate(factors)}
         for n in WORKERS}
    )  # fmt: skip
    assert (fitted.rate.high or 0) > 1.1 * (fitted.rate.low or 0)
    assert fitted.sigma.low == pytest.approx(0.05)
    assert fitted.kappa.high == pytest.approx(0.002)


def test_few_rounds_give_values_alone_and_tell_nothing() -> None:
    fitted = found(rates(0.05, 0.002, noise=0, count=5))
    assert fitted.kappa.value == pytest.approx(0.002)
    assert (fitted.kappa.low, fitted.told, fitted.peak) == (None, False, usl.Estimate(math.inf))


@pytest.mark.parametrize(
    "points",
    [
        {},
        rates(0.05, 0.002, workers=(1, 2, 4)),
        rates(0.05, 0.002, workers=(1, 2, 3)),
        rates(0.05, 0, workers=(1, 2, 3, 4)) | {0.5: {0: 1.0}},
        rates(0.05, 0, workers=(1, 2, 3, 4)) | {5.0: {0: 0.0}},
    ],
    ids=["none", "three", "three workers", "half a worker", "a rate of nothing"],
)
def test_no_fit(points: Mapping[float, Rounds]) -> None:
    assert fit(points) is None


@pytest.mark.parametrize(
    "rate", [lambda n: n**1.2, lambda n: 1 / n, lambda n: 100.0 if n == 2 else 1.0]
)
def test_numbers_that_follow_no_such_law_come_to_an_end(rate: Callable[[float], float]) -> None:
    fitted = found({float(n): {r: rate(n) for r in range(6)} for n in WORKERS})
    assert 0 <= fitted.sigma.value <= 1
    assert fitted.kappa.value >= 0
    assert math.isfinite(fitted.rate.value)


def test_without_scipy_there_are_medians_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimates, "AVAILABLE", False)
    assert median_interval([1.0] * 10) is None
    assert paired_ratio(noisy(2), noisy(1)).interval is None
    assert growth(over_x(lambda x: x + 1)) is None
    assert fit(rates(0.05, 0.002)) is None


# ---- numbers as a reader sees them ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "unit", "low", "high", "text", "interval"),
    [
        (41.3, "µs", 40.2, 43.1, "41 µs", "40–43 µs"),
        (41.34, "µs", 41.2, 41.5, "41.3 µs", "41.2–41.5 µs"),
        (0.52, "µs", None, None, "520 ns", ""),
        (999.7, "µs", None, None, "1.0 ms", ""),
        (999.2, "ms", 990, 1008, "999 ms", "990–1008 ms"),
        (1234.5, "ms", 1150, 1300, "1.2 s", "1.1–1.3 s"),
        (0.3, "ns", None, None, "0.30 ns", ""),
        (58817.2, "requests/s", 58000, 59500, "58.8k requests/s", "58.0–59.5k requests/s"),
        (5260.9, "requests/s", None, None, "5300 requests/s", ""),
        (1.31e6, "requests/s", None, None, "1.3 million requests/s", ""),
        (2.59e10, "forks", None, None, "26 billion forks", ""),
        (1.913, "", 1.85, 1.97, "1.9", "1.9–2.0"),
        (-3.2, "%", -5.1, 1.3, "−3.2 %", "−5.1 to 1.3 %"),
        (1024, "", None, None, "1024", ""),
        (4096, "bytes", 4096, 4096, "4096 bytes", "4096 bytes"),
        (4096, "bytes", 4095, 4096, "4100 bytes", "4095–4096 bytes"),
        (19034, "/s", None, None, "19k/s", ""),
        (4.5e6, "B/s", None, None, "4.5 MB/s", ""),
        (0, "µs", 0, 0, "0 ns", "0 ns"),
        (math.inf, "", None, None, "∞", ""),
    ],
)
def test_text(
    value: float, unit: str, low: float | None, high: float | None, text: str, interval: str
) -> None:
    assert units.text(value, unit, low, high) == text
    assert units.interval(value, unit, low, high) == interval


@pytest.mark.parametrize(("share", "text"), [(0.083, "8.3 %"), (0.0996, "10 %"), (0.5, "50 %")])
def test_shares(share: float, text: str) -> None:
    assert units.percent(share) == text
