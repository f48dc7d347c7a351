"""Each rule on made-up data: it holds, it is reversed, nothing is seen, there are too few data."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from harness.report import rules
from harness.report.rules import (
    CHANGED,
    HOLDS,
    NO_DIFFERENCE,
    NOT_MEASURED,
    REVERSED,
    VERDICTS,
    Judgement,
    Measured,
    combine,
)

pytest.importorskip("scipy")


def measured(
    value: float, count: int = 10, name: str = "it", seed: int | None = None, **more: object
) -> Measured:
    generator = random.Random(value if seed is None else seed)
    values = {i: value * (1 + generator.uniform(-0.01, 0.01)) for i in range(count)}
    fields = {"unit": "µs", "better": "lower", "set": "one run", "floor": 0.02, **more}
    return Measured(name, values, **fields)  # type: ignore[arg-type]


def curve(function: Callable[[float], float], count: int = 8) -> Measured:
    points = {
        float(x): {
            r: function(x) * (1 + 0.01 * random.Random(x + r).random()) for r in range(count)
        }
        for x in range(0, 2000, 100)
    }
    everything = {r: points[0.0][r] for r in range(count)}
    return Measured("it", everything, unit="µs", points=points)


FAST, SLOW = measured(100, name="a"), measured(150, name="b")


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        (FAST, SLOW, HOLDS),
        (SLOW, FAST, REVERSED),
        (FAST, measured(100, seed=3), NO_DIFFERENCE),
        (measured(100), measured(103), NO_DIFFERENCE),  # seen, but below the least effect
        (measured(100, floor=0.6), measured(150, floor=0.6), NO_DIFFERENCE),  # within the A/A floor
        (measured(100, count=5), SLOW, NOT_MEASURED),
    ],
)
def test_faster(a: Measured, b: Measured, verdict: str) -> None:
    assert rules.faster(a, b).verdict == verdict


def test_faster_knows_which_way_a_metric_points() -> None:
    more, less = measured(200, better="higher"), measured(100, better="higher")
    assert rules.faster(more, less).verdict == HOLDS
    assert rules.faster(less, more).verdict == REVERSED


def test_faster_needs_the_ranks_too() -> None:
    # In each round b takes 1.2 times as long, but the rounds differ by far more than that.
    rounds = [1.0, 3.0, 0.4, 2.2, 0.7, 5.0, 1.6, 0.5, 2.8, 4.1]
    a = Measured("a", {i: 100 * d for i, d in enumerate(rounds)}, set="one run")
    b = Measured("b", {i: 120 * d for i, d in enumerate(rounds)}, set="one run")
    judgement = rules.faster(a, b)
    assert judgement.verdict == NO_DIFFERENCE
    assert judgement.why == "the repetitions of the two overlap"


def test_words_have_numbers() -> None:
    judgement = rules.faster(FAST, SLOW)
    assert judgement.why == "a is faster than b"
    assert "100 µs" in judgement.numbers
    assert "1.5 times (1.4" in judgement.numbers or "1.50 times (1.4" in judgement.numbers


def test_two_runs_are_not_paired() -> None:
    other = measured(150, set="another run", count=7)
    assert rules.faster(FAST, other).verdict == HOLDS


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        (measured(1500), measured(100), HOLDS),
        (measured(300), measured(100), CHANGED),
        (measured(50), measured(100), REVERSED),
        (measured(100), measured(100, seed=9), NO_DIFFERENCE),
        (measured(1500, count=2), measured(100), NOT_MEASURED),
    ],
)
def test_ratio_at_least(a: Measured, b: Measured, verdict: str) -> None:
    assert rules.ratio_at_least(a, b, bound=10).verdict == verdict


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        (measured(200), measured(100), HOLDS),
        (measured(400), measured(100), CHANGED),
        (measured(50), measured(100), REVERSED),
        (measured(101), measured(100), NO_DIFFERENCE),
        (measured(200, count=1), measured(100), NOT_MEASURED),
    ],
)
def test_ratio_between(a: Measured, b: Measured, verdict: str) -> None:
    assert rules.ratio_between(a, b, low=1.5, high=2.5).verdict == verdict


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        (measured(100), measured(101), HOLDS),
        (measured(100), measured(130), CHANGED),
        (measured(100, floor=0.4), measured(130, floor=0.4), HOLDS),
        (measured(100, count=3), measured(100), NOT_MEASURED),
    ],
)
def test_equal(a: Measured, b: Measured, verdict: str) -> None:
    assert rules.equal(a, b).verdict == verdict


CONSTANT = curve(lambda _: 100)
LINE = curve(lambda x: 100 + x)
FALLING = curve(lambda x: 100 - 0.04 * x)
KNEE = curve(lambda x: 100 if x < 1400 else 9000)
SHORT = curve(lambda _: 100, count=5)


@pytest.mark.parametrize(
    ("rule", "curve", "verdict"),
    [
        (rules.flat, CONSTANT, HOLDS),
        (rules.flat, LINE, CHANGED),
        (rules.flat, FALLING, CHANGED),
        (rules.flat, KNEE, CHANGED),
        (rules.flat, SHORT, NOT_MEASURED),
        (rules.grows, LINE, HOLDS),
        (rules.grows, KNEE, HOLDS),
        (rules.grows, CONSTANT, CHANGED),
        (rules.grows, FALLING, REVERSED),
        (rules.grows, SHORT, NOT_MEASURED),
        (rules.linear, LINE, HOLDS),
        (rules.linear, CONSTANT, CHANGED),
        (rules.linear, KNEE, CHANGED),
        (rules.linear, FALLING, REVERSED),
        (rules.knee, KNEE, HOLDS),
        (rules.knee, LINE, CHANGED),
        (rules.knee, SHORT, NOT_MEASURED),
    ],
)
def test_growth(rule: Callable[[Measured], Judgement], curve: Measured, verdict: str) -> None:
    assert rule(curve).verdict == verdict


def test_growth_without_points_says_so() -> None:
    assert rules.flat(FAST) == Judgement(NOT_MEASURED, "no points over x")


@pytest.mark.parametrize(
    ("judgement", "verdict"),
    [
        (rules.at_least(measured(100), 50), HOLDS),
        (rules.at_least(measured(100), 200), CHANGED),
        (rules.at_least(measured(100, count=2), 50), NOT_MEASURED),
        (rules.at_most(measured(100), 200), HOLDS),
        (rules.at_most(measured(100), 50), CHANGED),
        (rules.at_most(measured(100, count=2), 50), NOT_MEASURED),
        (rules.about(measured(100), then=120), HOLDS),
        (rules.about(measured(40), then=350), CHANGED),
        (rules.about(measured(40, count=2), then=350), NOT_MEASURED),
        (rules.exists(Measured("it", {0: 1.0, 1: 2.0})), HOLDS),
        (rules.exists(Measured("it", {0: 0.0, 1: 0.0})), CHANGED),
        (rules.exists(Measured("it", {})), NOT_MEASURED),
    ],
)
def test_one_value(judgement: Judgement, verdict: str) -> None:
    assert judgement.verdict == verdict


def test_what_is_not_always_there_is_near() -> None:
    sometimes = rules.exists(Measured("it", {0: 0.0, 1: 1.0}))
    assert (sometimes.verdict, sometimes.why, sometimes.near) == (CHANGED, "not always", True)
    assert rules.exists(Measured("it", {0: 0.0})).why == "it is not there"


def test_a_change_says_how_much() -> None:
    judgement = rules.about(measured(35, name="dynamic"), then=350)
    assert judgement.why == "10 times less than then"
    assert judgement.numbers.startswith("dynamic 35")
    assert judgement.numbers.endswith("350 µs then")


def test_a_line_within_the_interval_is_near() -> None:
    a = Measured("a", {i: 95.0 + i for i in range(12)}, unit="µs")
    assert rules.at_least(a, 100).near
    assert not rules.at_least(a, 80).near


def test_the_worst_of_several_rules_counts() -> None:
    holds, reversed_ = Judgement(HOLDS, "x", "1"), Judgement(REVERSED, "y", "2", near=True)
    both = combine([holds, reversed_])
    assert both == Judgement(REVERSED, "x; y", "1; 2", True)
    assert combine([reversed_, Judgement(NOT_MEASURED, "z")]).verdict == NOT_MEASURED


def test_every_rule_has_operands_and_a_verdict_of_the_list() -> None:
    for name in rules.RULES:
        operands, needed, _ = rules.parameters(name)
        assert operands
        given = dict.fromkeys(operands, FAST)
        assert rules.judge(name, given, dict.fromkeys(needed, 1.0)).verdict in VERDICTS


def test_without_scipy_nothing_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.statistics.estimates.AVAILABLE", False)
    assert rules.faster(FAST, SLOW) == Judgement(NOT_MEASURED, "SciPy is not installed")
