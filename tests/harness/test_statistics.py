"""Statistics against values known from elsewhere."""

from __future__ import annotations

import random

import pytest

from harness.statistics import estimates
from harness.statistics.estimates import growth, median_interval, paired_ratio, tukey

pytest.importorskip("scipy")


def rounds(values: list[float]) -> dict[int, float]:
    return dict(enumerate(values))


def noisy(value: float, count: int = 12, spread: float = 0.02, seed: int = 1) -> dict[int, float]:
    generator = random.Random(seed)
    return {i: value * (1 + generator.uniform(-spread, spread)) for i in range(count)}


def test_quantiles_lie_between_neighbours_as_numpy_has_them() -> None:
    assert estimates.median([3, 1, 2]) == 2
    assert estimates.median([4, 1, 3, 2]) == 2.5
    assert estimates.quantile([10, 20, 30, 40, 50], 0.9) == pytest.approx(46)


@pytest.mark.parametrize(
    ("count", "expected"),
    # The classic table for the median at 95 %: ranks 1-6 of 6, 1-8 of 8, 2-9 of 10, 6-15 of 20.
    [(6, (1, 6)), (8, (1, 8)), (10, (2, 9)), (20, (6, 15)), (50, (18, 33))],
)
def test_the_interval_of_the_median_has_the_ranks_of_the_table(
    count: int, expected: tuple[int, int]
) -> None:
    assert median_interval([float(i) for i in range(1, count + 1)]) == expected


def test_the_interval_covers_at_least_95_per_cent() -> None:
    generator = random.Random(7)
    hits = 0
    for _ in range(400):
        low, high = median_interval([generator.gauss(0, 1) for _ in range(11)]) or (1, 1)
        hits += low <= 0 <= high
    assert hits >= 0.93 * 400


def test_five_repetitions_give_no_interval_and_no_test() -> None:
    five = [1.0, 2.0, 3.0, 4.0, 5.0]
    assert median_interval(five) is None
    ratio = paired_ratio(rounds(five), rounds(five))
    assert ratio.interval is None
    assert ratio.p is None
    assert ratio.value == 1


def test_a_ratio_of_paired_rounds_ignores_what_disturbs_both() -> None:
    disturbance = [1.0, 1.3, 0.8, 2.0, 1.1, 0.9, 1.6, 1.2]
    ratio = paired_ratio(
        rounds([200 * d for d in disturbance]), rounds([100 * d for d in disturbance])
    )
    assert ratio.value == pytest.approx(2)
    assert ratio.interval == pytest.approx((2, 2))


def test_only_rounds_both_have_are_paired() -> None:
    ratio = paired_ratio({0: 10.0, 1: 10.0, 5: 99.0}, {0: 5.0, 1: 5.0, 4: 1.0})
    assert (ratio.value, ratio.rounds) == (2, 2)


def test_the_same_data_give_the_same_interval_each_time() -> None:
    a, b = noisy(100), noisy(90, seed=2)
    estimates._bootstrap_ratio.cache_clear()
    first = paired_ratio(a, b)
    estimates._bootstrap_ratio.cache_clear()
    assert paired_ratio(a, b) == first


def test_the_rank_test_knows_textbook_values() -> None:
    low, high = [1.0, 2, 3, 4, 5, 6], [7.0, 8, 9, 10, 11, 12]
    assert estimates.mann_whitney(low, high) == pytest.approx(2 / 924)  # exact: 2 of C(12, 6)
    assert estimates.mann_whitney(low, list(low)) == pytest.approx(1)


def test_the_floor_is_what_two_runs_of_the_same_thing_differ_by() -> None:
    assert estimates.noise_floor(rounds([100.0] * 8), rounds([108.0] * 8)) == pytest.approx(
        1 - 100 / 108
    )
    assert estimates.noise_floor({0: 1.0}, {1: 1.0}) is None


def test_outliers_are_marked_and_kept() -> None:
    values = [10.0, 10.1, 9.9, 10.2, 9.8, 10.05, 11.3, 30.0]
    marks = tukey(values)
    assert marks[-1] == "far"
    assert marks[-2] == "mild"
    assert marks[:-2] == [""] * 6


def over_x(function: object, spread: float = 0.02) -> dict[float, dict[int, float]]:
    assert callable(function)
    return {
        float(x): noisy(function(x), spread=spread, seed=x) for x in [*range(0, 2000, 100), 2000]
    }


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (lambda _: 100, "flat"),
        (lambda x: 100 + 0.005 * x, "flat"),
        (lambda x: 100 + x, "linear"),
        (lambda x: 100 - 0.04 * x, "falls"),
        (lambda x: 100 if x < 1400 else 200_000, "knee"),
        (lambda x: 100 + 5 * max(0, x - 1000), "knee"),
    ],
)
def test_growth_is_told_by_its_shape(function: object, kind: str) -> None:
    found = growth(over_x(function))
    assert found is not None
    assert found.kind == kind


def test_the_rise_and_the_knee_have_numbers() -> None:
    line = growth(over_x(lambda x: 100 + x))
    assert line is not None
    assert line.rise_low is not None
    assert line.rise_high is not None
    assert line.rise_low < 21 < line.rise_high * 1.02
    knee = growth(over_x(lambda x: 100 if x < 1400 else 9000))
    assert knee is not None
    assert knee.knee in (1300.0, 1400.0)


def test_the_slope_of_a_proportional_line_is_one() -> None:
    found = growth({float(x): noisy(x, spread=0.001, seed=x) for x in range(100, 2000, 100)})
    assert found is not None
    assert found.slope == pytest.approx(1, abs=0.01)
    assert found.slope_low is not None
    assert found.slope_high is not None
    assert found.slope_low < 1.001
    assert found.slope_high > 0.999


def test_three_points_tell_nothing_about_growth() -> None:
    assert growth({1.0: noisy(1), 2.0: noisy(2), 3.0: noisy(3)}) is None


def test_without_scipy_there_are_medians_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimates, "AVAILABLE", False)
    assert median_interval([1.0] * 10) is None
    assert paired_ratio(noisy(2), noisy(1)).interval is None
    assert growth(over_x(lambda x: x + 1)) is None
