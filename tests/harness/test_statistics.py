"""Statistics against values known from elsewhere."""

import math
import random

import pytest

from quest.stats import curves, estimates, reach, units
from quest.stats.estimates import median_with_interval, paired_ratio, tukey

pytest.importorskip("scipy")


def rounds(values: list[float]) -> dict[int, float]:
    return dict(enumerate(values))


def noisy(value: float, count: int = 12, spread: float = 0.02, seed: int = 1) -> dict[int, float]:
    generator = random.Random(seed)
    return {i: value * (1 + generator.uniform(-spread, spread)) for i in range(count)}


def test_percentiles_lie_between_neighbours() -> None:
    assert estimates.median([4, 1, 3, 2]) == 2.5
    assert estimates.percentile([10, 20, 30, 40, 50], 90) == pytest.approx(46)
    assert estimates.percentile([7.0], 99) == 7


def test_a_percentile_is_what_the_library_gives_to_the_last_bit() -> None:
    numpy, apart = pytest.importorskip("numpy"), random.Random(1)
    for count in range(1, 120):
        values = [apart.uniform(-1e6, 1e6) for _ in range(count)]
        for part in (25, 75, 90, 99):
            assert estimates.percentile(values, part) == numpy.percentile(values, part)


@pytest.mark.parametrize(
    ("count", "expected"),
    # The classic table for the median at 95 %: ranks 1-6 of 6, 1-8 of 8, 2-9 of 10, 6-15 of 20.
    [(5, (None, None)), (6, (1, 6)), (8, (1, 8)), (10, (2, 9)), (20, (6, 15)), (50, (18, 33))],
)
def test_the_interval_of_the_median_has_the_ranks_of_the_table(count: int, expected: tuple[int | None, ...]) -> None:
    assert median_with_interval([float(i) for i in range(1, count + 1)])[1:] == expected


def test_a_ratio_of_paired_rounds_ignores_what_disturbs_both() -> None:
    disturbance = [1.0, 1.3, 0.8, 2.0, 1.1, 0.9, 1.6, 1.2]
    both = [rounds([value * d for d in disturbance]) for value in (200, 100)]
    assert paired_ratio(*both).interval == pytest.approx((2, 2))
    alone = paired_ratio({0: 10.0, 1: 10.0, 5: 99.0}, {0: 5.0, 1: 5.0, 4: 1.0})
    assert (alone.value, alone.interval) == (2, None)


def test_the_same_data_give_the_same_interval_each_time() -> None:
    a, b = noisy(100), noisy(90, seed=2)
    first = paired_ratio(a, b)
    estimates._bootstrap_ratio.cache_clear()
    assert paired_ratio(a, b) == first


def test_the_rank_test_knows_textbook_values() -> None:
    low, high = [1.0, 2, 3, 4, 5, 6], [7.0, 8, 9, 10, 11, 12]
    assert estimates.mann_whitney(low, high) == pytest.approx(2 / 924)  # exact: 2 of C(12, 6)
    assert estimates.mann_whitney(low, list(low)) == pytest.approx(1)
    assert estimates.mann_whitney([5.0] * 6, [5.0] * 6) == 1
    assert estimates.mann_whitney(low[:5], high) is None, "of too few"


def test_the_floor_is_what_two_runs_of_the_same_thing_differ_by() -> None:
    floor = estimates.noise_floor(rounds([100.0] * 8), rounds([108.0] * 8))
    assert floor == pytest.approx(1 - 100 / 108)
    assert estimates.noise_floor({0: 1.0}, {1: 1.0}) is None


def test_outliers_are_marked_and_kept() -> None:
    values = [10.0, 10.1, 9.9, 10.2, 9.8, 10.05, 11.3, 30.0]
    assert tukey(values) == [""] * 6 + ["mild", "far"]
    assert tukey([0.1 + 0.2] * 7) == [""] * 7
    assert tukey([0.0, 0.0, 0.0, 100.0]) == ["", "", "", "mild"]
    assert tukey([]) == []


@pytest.mark.filterwarnings("error")
def test_what_has_both_signs_has_no_ratio_to_be_sure_of() -> None:
    both = [-1.0, 1.0] * 4 + [2.0]
    for below in (both, [0.0] * 4 + [1.0] * 5, [-1.0] * 5 + [0.0] * 4):
        assert estimates.unpaired_ratio([5.0] * 9, below).interval is None
    assert estimates.unpaired_ratio([5.0] * 9, [abs(value) for value in both]).interval
    found = estimates.unpaired_ratio([5.0] * 9, [1 + n / 10 for n in range(9)])
    assert found.low and found.high and found.low < found.value < found.high, "of which one varies"


def test_the_middle_of_two_of_which_one_has_no_end() -> None:
    inf = math.inf
    pairs = ([1.0, inf], [-inf, 1.0], [inf, -inf], [inf, inf])
    assert [reach.middle(pair) for pair in pairs] == [inf, -inf, 0, inf]


def test_growth_is_that_of_the_upper_half_of_the_points_or_of_four() -> None:
    """Powers of 2: of six the last four count, of twelve the last six."""

    def exponent(*powers: int) -> float:
        return curves.exponent([2.0**n for n in range(len(powers))], [2.0**n for n in powers])

    assert exponent(9, 9, 0, 3, 4, 6) == pytest.approx(2)
    assert exponent(*[0] * 8, 8, 9, 10, 11) == pytest.approx(2.2)


def test_the_spread_is_the_mean_of_sessions_and_its_end_that_of_whole_rounds() -> None:
    assert tuple(curves.spread([[[1, 4]], [[1, 16]]])) == pytest.approx((8, 8))
    assert tuple(curves.spread([[[1, 1], [1, 4]]])) == pytest.approx((2, 4))


def test_without_scipy_there_are_medians_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimates, "AVAILABLE", False)
    assert median_with_interval([1.0] * 10) == (1, None, None)
    assert paired_ratio(noisy(2), noisy(1)).interval is None


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
        (10000, "", None, None, "10k", ""),
        (4096, "bytes", 4096, 4096, "4096 bytes", "4096 bytes"),
        (4096, "bytes", 4095, 4096, "4100 bytes", "4095–4096 bytes"),
        (19034, "/s", None, None, "19k/s", ""),
        (4.5e6, "B/s", None, None, "4.5 MB/s", ""),
        (2.5e9, "B/s", None, None, "2.5 GB/s", ""),
        (0, "µs", 0, 0, "0 ns", "0 ns"),
        (math.inf, "", None, None, "∞", ""),
    ],
)
def test_text(value: float, unit: str, low: float | None, high: float | None, text: str, interval: str) -> None:
    assert units.text(value, unit, low, high) == text
    assert units.interval(value, unit, low, high) == interval


@pytest.mark.parametrize(("share", "text"), [(0.083, "8.3 %"), (0.0994, "9.9 %"), (0.0996, "10 %"), (0.5, "50 %")])
def test_shares(share: float, text: str) -> None:
    assert units.percent(share) == text
