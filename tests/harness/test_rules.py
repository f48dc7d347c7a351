"""Each rule on made-up data: on which it holds, on which it does not, on which nothing is told."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from harness.report.rules import (
    CHANGED,
    HOLDS,
    NO_DIFFERENCE,
    NOT_MEASURED,
    REVERSED,
    RULES,
    Judgement,
    Measured,
    combine,
    judge,
    parameters,
)

pytest.importorskip("scipy")


def near(value: float, count: int = 10, name: str = "it", **more: object) -> Measured:
    """Rounds within one per cent of a value."""
    generator = random.Random(f"{value}{name}")
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
    return Measured("it", points[0.0], unit="µs", points=points)


def apart(times: float) -> Measured:
    """Rounds that differ by far more than the two compared do."""
    spread = [1.0, 3.0, 0.4, 2.2, 0.7, 5.0, 1.6, 0.5, 2.8, 4.1]
    return Measured("it", {i: 100 * times * d for i, d in enumerate(spread)}, set="one run")


FAST, SLOW = near(100, name="a"), near(150, name="b")
MORE, LESS = (near(value, better="higher") for value in (200, 100))
CONSTANT, LINE = curve(lambda _: 100), curve(lambda x: 100 + x)
FALLING, KNEE = curve(lambda x: 100 - 0.04 * x), curve(lambda x: 100 if x < 1400 else 9000)
SHORT = curve(lambda _: 100, count=5)
ONCE, NEVER = (Measured("it", {0: 0.0, 1: value}) for value in (1.0, 0.0))

CASES = [
    ("faster", (FAST, SLOW), {}, HOLDS, "a is faster than b"),
    ("faster", (SLOW, FAST), {}, REVERSED, "a is faster than b"),
    ("faster", (MORE, LESS), {}, HOLDS, ""),
    ("faster", (LESS, MORE), {}, REVERSED, ""),
    ("faster", (FAST, near(100, name="c")), {}, NO_DIFFERENCE, "within the noise floor of 2.0 %"),
    ("faster", (near(100), near(103)), {}, NO_DIFFERENCE, "below 5.0 %"),
    ("faster", (near(100), near(110)), {"min_effect": 0.2}, NO_DIFFERENCE, "below 20 %"),
    ("faster", (near(100, floor=0.6), SLOW), {}, NO_DIFFERENCE, "within the noise floor of 60 %"),
    ("faster", (apart(1), apart(1.2)), {}, NO_DIFFERENCE, "the repetitions of the two overlap"),
    ("faster", (FAST, near(150, 7, set="another run")), {}, HOLDS, ""),  # not in pairs
    ("faster", (near(100, 5), SLOW), {}, NOT_MEASURED, "too few repetitions: 5, and 6 are needed"),
    ("ratio_at_least", (near(1500), FAST), {"bound": 10}, HOLDS, "at least 10 times a"),
    ("ratio_at_least", (near(300), FAST), {"bound": 10}, CHANGED, "less than 10 times"),
    ("ratio_at_least", (near(50), FAST), {"bound": 10}, REVERSED, "it is less than a"),
    ("ratio_at_least", (near(100), FAST), {"bound": 10}, NO_DIFFERENCE, "do not differ"),
    ("ratio_at_least", (near(70), FAST), {"bound": 0.9}, CHANGED, "it is less than 0.9 times a"),
    ("ratio_at_least", (near(1500, 2), FAST), {"bound": 10}, NOT_MEASURED, ""),
    ("ratio_between", (near(200), FAST), {"low": 1.5, "high": 2.5}, HOLDS, "1.5 to 2.5 times"),
    ("ratio_between", (near(400), FAST), {"low": 1.5, "high": 2.5}, CHANGED, "is not 1.5 to 2.5"),
    ("ratio_between", (near(50), FAST), {"low": 1.5, "high": 2.5}, REVERSED, "the other sign"),
    ("ratio_between", (near(101), FAST), {"low": 1.5, "high": 2.5}, NO_DIFFERENCE, ""),
    ("ratio_between", (near(200, 1), FAST), {"low": 1.5, "high": 2.5}, NOT_MEASURED, ""),
    ("equal", (near(101), FAST), {}, HOLDS, "equal within 5.0 %"),
    ("equal", (near(130), FAST), {}, CHANGED, "by more than 5.0 %"),
    ("equal", (near(130, floor=0.4), FAST), {}, HOLDS, "equal within 40 %"),
    ("equal", (near(100, 3), FAST), {}, NOT_MEASURED, ""),
    ("flat", (CONSTANT,), {}, HOLDS, "rises by less than 25 %"),
    ("flat", (LINE,), {}, CHANGED, "it grows linearly"),
    ("flat", (FALLING,), {}, CHANGED, "it falls"),
    ("flat", (KNEE,), {}, CHANGED, "then it grows"),
    ("flat", (SHORT,), {}, NOT_MEASURED, "too few repetitions: 5"),
    ("flat", (FAST,), {}, NOT_MEASURED, "no points over x"),
    ("grows", (LINE,), {}, HOLDS, ""),
    ("grows", (KNEE,), {}, HOLDS, ""),
    ("grows", (CONSTANT,), {}, CHANGED, "rises by less than 25 %"),
    ("grows", (FALLING,), {}, REVERSED, "it falls"),
    ("grows", (SHORT,), {}, NOT_MEASURED, ""),
    ("linear", (LINE,), {}, HOLDS, ""),
    ("linear", (CONSTANT,), {}, CHANGED, ""),
    ("linear", (KNEE,), {}, CHANGED, ""),
    ("linear", (FALLING,), {}, REVERSED, ""),
    ("linear", (SHORT,), {}, NOT_MEASURED, ""),
    ("at_least", (FAST,), {"bound": 50}, HOLDS, "a is at least 50 µs"),
    ("at_least", (FAST,), {"bound": 200}, CHANGED, "a is less than 200 µs"),
    ("at_least", (near(100, 2),), {"bound": 50}, NOT_MEASURED, ""),
    ("at_most", (FAST,), {"bound": 200}, HOLDS, "a is at most 200 µs"),
    ("at_most", (FAST,), {"bound": 50}, CHANGED, "a is more than 50 µs"),
    ("at_most", (near(100, 2),), {"bound": 50}, NOT_MEASURED, ""),
    ("about", (FAST,), {"then": 120}, HOLDS, "within a factor of 1.5"),
    ("about", (near(35),), {"then": 350}, CHANGED, "10 times less than then"),
    ("about", (near(350),), {"then": 35}, CHANGED, "10 times more than then"),
    ("about", (near(40, 2),), {"then": 350}, NOT_MEASURED, ""),
    ("exists", (FAST,), {}, HOLDS, "it is there"),
    ("exists", (ONCE,), {}, CHANGED, "not always"),
    ("exists", (NEVER,), {}, CHANGED, "it is not there"),
    ("exists", (Measured("it", {}),), {}, NOT_MEASURED, "no repetition"),
]


@pytest.mark.parametrize(("rule", "operands", "numbers", "verdict", "why"), CASES)
def test_a_rule(
    rule: str, operands: tuple[Measured, ...], numbers: dict[str, float], verdict: str, why: str
) -> None:
    names = parameters(rule)[0]
    judgement = judge(rule, dict(zip(names, operands, strict=True)), numbers)
    assert judgement.verdict == verdict
    assert why in judgement.why


def test_every_rule_can_hold_fail_and_tell_nothing() -> None:
    for rule in RULES:
        seen = {verdict for name, *_, verdict, _ in CASES if name == rule}
        assert {HOLDS, NOT_MEASURED} < seen, rule
        assert seen & {CHANGED, REVERSED}, rule


def wide(low: float) -> Measured:
    return Measured("it", {i: low + i for i in range(12)}, unit="µs", set="one run")


@pytest.mark.parametrize(
    ("rule", "operands", "numbers"),
    [
        ("at_least", [wide(95)], {"bound": 100}),
        ("at_most", [wide(95)], {"bound": 100}),
        ("about", [wide(95)], {"then": 100, "factor": 1.0}),
        ("faster", [wide(94), near(105, 12)], {"min_effect": 0.05}),
        ("equal", [wide(94), near(105, 12)], {"margin": 0.05}),
        ("ratio_at_least", [wide(94), near(100, 12)], {"bound": 1}),
        ("ratio_between", [wide(94), near(100, 12)], {"low": 1, "high": 2}),
        ("exists", [ONCE], {}),
    ],
)
def test_a_line_within_the_interval_is_near(
    rule: str, operands: list[Measured], numbers: dict[str, float]
) -> None:
    names = parameters(rule)[0]
    assert judge(rule, dict(zip(names, operands, strict=True)), numbers).near
    far = [near(m.median()[0] * 9, 12, set="one run") for m in operands[:1]] + operands[1:]
    assert not judge(rule, dict(zip(names, far, strict=True)), numbers).near


def test_numbers_have_intervals() -> None:
    numbers = judge("faster", {"a": FAST, "b": SLOW}, {}).numbers
    assert numbers.startswith("a 99.9 µs, b 150 µs; ratio 1.50")
    assert " times (1.4" in numbers
    assert judge("about", {"a": FAST}, {"then": 350}).numbers == "a 99.9 µs here, 350 µs then"


def test_the_worst_of_several_rules_counts() -> None:
    holds, reversed_ = Judgement(HOLDS, "x", "1"), Judgement(REVERSED, "y", "2", near=True)
    assert combine([holds, reversed_]) == Judgement(REVERSED, "x; y", "1; 2", True)
    assert combine([reversed_, Judgement(NOT_MEASURED, "z")]).verdict == NOT_MEASURED


def test_without_scipy_nothing_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.statistics.estimates.AVAILABLE", False)
    judgement = judge("faster", {"a": FAST, "b": SLOW}, {})
    assert judgement.verdict == NOT_MEASURED
    assert judgement.why == "SciPy is not installed"
