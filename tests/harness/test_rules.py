"""Each rule on made-up data: on which it holds, on which it does not, on which nothing is told; and
each line that a rule draws from both of its sides, and on it.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from quest.report import rules
from quest.report.rules import (
    CHANGED,
    DEPENDS,
    FASTER_NOW,
    HOLDS,
    NEAR,
    NO_DIFFERENCE,
    NOT_JUDGED,
    NOT_MEASURED,
    REVERSED,
    RULES,
    Judgement,
    Measured,
    combine,
    over_processors,
    parameters,
)

pytest.importorskip("scipy")


def of(values: Sequence[float], name: str = "it", **more: Any) -> Measured:
    fields = {"unit": "µs", "better": "lower", "set": "one run", **more}
    return Measured(name, dict(enumerate(values)), **fields)


def near(value: float, count: int = 10, name: str = "it", **more: Any) -> Measured:
    """Rounds within one per cent of a value."""
    apart = random.Random(f"{value}{name}")
    values = [value * (1 + apart.uniform(-0.01, 0.01)) for _ in range(count)]
    return of(values, name, **more)


def just(value: float, count: int = 6, **more: Any) -> Measured:
    """The same in all rounds: what is exactly on a line."""
    return of([value] * count, **more)


def curve(function: Callable[[float], float], count: int = 8) -> Measured:
    points = {
        float(x): {r: function(x) * (1 + 0.01 * random.Random(x + r).random()) for r in range(count)}
        for x in range(0, 2000, 100)
    }
    return Measured("it", points[0.0], unit="µs", points=points)


def judge(rule: str, operands: Sequence[Measured | Sequence[Measured]], **numbers: Any) -> Judgement:
    return rules.judge(rule, dict(zip(parameters(rule)[0], operands, strict=True)), numbers)


FAST, SLOW = near(100, name="a"), near(150, name="b")
MORE, LESS = (near(value, better="higher") for value in (200, 100))
# Rounds that differ by far more than the two compared do: in the same way, and each in its own.
APART = [1, 3, 0.4, 2.2, 0.7, 5, 1.6, 0.5, 2.8, 4.1]
TOGETHER = [of([t * d for d in APART]) for t in (100, 120)]
ALONE = [of([100.0] * 10), of([120 * d for d in APART])]
CONSTANT, LINE = curve(lambda _: 100), curve(lambda x: 100 + x)
FALLING, KNEE = curve(lambda x: 100 - 0.04 * x), curve(lambda x: 100 if x < 1400 else 9000)
SHORT = curve(lambda _: 100, count=5)
FEW_X = Measured("it", CONSTANT.values, points={x: CONSTANT.points[x] for x in (0, 100, 200)})
ONCE, NEVER = of([0.0, 1.0]), of([0.0, 0.0])
# The lower end of the interval is exactly 1.
TOUCHING = of([100.0] * 4 + [110.0] * 8)
HUMP = curve(lambda x: 200 if 800 <= x <= 1000 else 100)
WILD = curve(lambda x: 100 + 60 * random.Random(x).random())
STRAIGHT, SQUARE = curve(lambda x: x + 1), curve(lambda x: x * x + 1)
TWIN = {"apart": {n: 0.2 * n for n in range(6)}}
LATER = Measured("later", dict.fromkeys(range(50, 56), 100.0))
TWICE = {"low": 1.5, "high": 2.5}

CASES: list[tuple[str, tuple[Measured, ...], dict[str, float], str, str]] = [
    ("faster", (FAST, SLOW), {}, HOLDS, "a is faster than b"),
    ("faster", (SLOW, FAST), {}, REVERSED, "a is faster than b"),
    ("faster", (MORE, LESS), {}, HOLDS, ""),
    ("faster", (LESS, MORE), {}, REVERSED, ""),
    ("faster", (FAST, near(100, name="c")), {}, NO_DIFFERENCE, "by less than 5.0 %"),
    ("faster", (near(100), near(103)), {}, NO_DIFFERENCE, "by less than 5.0 %"),
    ("faster", (near(100), near(110)), {"min_effect": 0.2}, NO_DIFFERENCE, "by less than 20 %"),
    ("faster", (near(100), near(105)), {}, NEAR, "not decided"),
    ("faster", tuple(TOGETHER), {}, HOLDS, ""),
    ("faster", tuple(ALONE), {}, NEAR, "not decided"),
    ("faster", (just(100, 12), TOUCHING), {}, NEAR, ""),
    ("faster", (TOUCHING, just(100, 12)), {}, NEAR, ""),
    ("faster", (FAST, near(150, 7, set="another run")), {}, HOLDS, ""),  # not in pairs
    ("faster", (Measured("it", just(50).values), LATER), {}, HOLDS, ""),  # of no set: no pairs
    ("faster", (just(50), Measured("it", LATER.values, set="one run")), {}, NOT_MEASURED, ""),
    ("faster", (just(100), just(150)), {"min_effect": 0.5}, HOLDS, ""),
    ("faster", (just(200), just(100)), {"min_effect": 1}, REVERSED, ""),
    ("faster", (just(0, better="higher"), just(9)), {}, REVERSED, ""),
    ("faster", (just(0), just(9)), {}, HOLDS, ""),
    ("faster", (just(0), just(0)), {}, NO_DIFFERENCE, ""),
    ("faster", (just(-1), just(9)), {}, NOT_MEASURED, "below 0"),
    ("faster", (near(100, 5), SLOW), {}, NOT_MEASURED, "too few repetitions: 5, and 6 are needed"),
    ("ratio_at_least", (near(1500), FAST), {"bound": 10}, HOLDS, "at least 10 times a"),
    ("ratio_at_least", (just(200), just(100)), {"bound": 2}, HOLDS, ""),
    ("ratio_at_least", (near(300), FAST), {"bound": 10}, CHANGED, "less than 10 times"),
    ("ratio_at_least", (near(50), FAST), {"bound": 10}, REVERSED, "the other sign"),
    ("ratio_at_least", (near(50), FAST), {"bound": 1}, REVERSED, ""),
    ("ratio_at_least", (near(100), FAST), {"bound": 10}, NO_DIFFERENCE, "do not differ"),
    ("ratio_at_least", (near(70), FAST), {"bound": 0.9}, CHANGED, "it is less than 0.9 times a"),
    ("ratio_at_least", (near(1500, 5), FAST), {"bound": 10}, NOT_MEASURED, ""),
    ("exceeds", (near(1500), FAST), {"bound": 10}, HOLDS, "at least 10 times a"),
    ("exceeds", (near(1500, held_back=True), FAST), {"bound": 10}, HOLDS, ""),
    ("exceeds", (near(300), FAST), {"bound": 10}, CHANGED, ""),
    ("exceeds", (near(1500, 5), FAST), {"bound": 10}, NOT_MEASURED, ""),
    ("speed", (just(400),), {"then": 350, "factor": 1.5}, HOLDS, "within a factor of 1.5 of then"),
    ("speed", (just(90),), {"then": 350, "factor": 1.5}, FASTER_NOW, "3.9 times less than then"),
    ("speed", (just(900),), {"then": 350, "factor": 1.5}, CHANGED, "more than then"),
    ("speed", (just(900, better="higher"),), {"then": 350, "factor": 1.5}, FASTER_NOW, "more than then"),
    ("speed", (just(90, better="higher"),), {"then": 350, "factor": 1.5}, CHANGED, ""),
    ("speed", (just(90, 5),), {"then": 350}, NOT_MEASURED, ""),
    ("provided", (of([0.0] * 6),), {}, HOLDS, ""),
    ("provided", (of([0.0] * 5 + [1.0]),), {}, NOT_JUDGED, "taken for granted"),
    ("provided", (of([]),), {}, NOT_MEASURED, "no repetition"),
    ("exceeds", (near(300, held_back=True), FAST), {"bound": 10}, NOT_JUDGED, "the client was at its limit"),
    ("ratio_between", (near(200), FAST), TWICE, HOLDS, "1.5 to 2.5 times"),
    ("ratio_between", (just(150), just(100)), TWICE, HOLDS, ""),
    ("ratio_between", (just(250), just(100)), TWICE, HOLDS, ""),
    ("ratio_between", (near(400), FAST), TWICE, CHANGED, "is not 1.5 to 2.5"),
    ("ratio_between", (near(50), FAST), TWICE, REVERSED, "the other sign"),
    ("ratio_between", (near(400), FAST), {"low": 0.5, "high": 2}, CHANGED, ""),
    ("ratio_between", (near(101), FAST), TWICE, NO_DIFFERENCE, ""),
    ("ratio_between", (just(103), just(100)), {"low": 0.9, "high": 1.02}, CHANGED, "is not 0.9 to 1.02"),
    ("ratio_between", (near(200, 1), FAST), TWICE, NOT_MEASURED, ""),
    ("equal", (near(101), FAST), {}, HOLDS, "equal within 5.0 %"),
    ("equal", (just(200), just(100)), {"margin": 1}, HOLDS, ""),
    ("equal", (just(50), just(100)), {"margin": 1}, HOLDS, ""),
    ("equal", (near(130), FAST), {}, CHANGED, "by more than 5.0 %"),
    ("equal", (near(105), FAST), {}, NEAR, "not decided"),
    ("equal", (just(100, twins=TWIN), just(100)), {}, NOT_JUDGED, "apart differs from itself: 1.65 times (1.00–2.72)"),
    ("equal", (just(100, twins={"few": {0: 9.0}}), just(100)), {}, HOLDS, ""),
    ("equal", (near(100, 3), FAST), {}, NOT_MEASURED, ""),
    ("flat", (CONSTANT,), {}, HOLDS, "varies by less than 25 %"),
    ("flat", (LINE,), {}, CHANGED, "at 1900 it is"),
    ("flat", (KNEE,), {"up_to": 1300}, HOLDS, ""),
    ("flat", (KNEE,), {"up_to": 1400}, CHANGED, "90"),
    ("flat", (KNEE,), {"up_to": 200}, NOT_MEASURED, "too few points over x: 3"),
    ("flat", (FALLING,), {}, CHANGED, "at 0 it is 4.18"),
    ("flat", (KNEE,), {}, CHANGED, "90"),
    ("flat", (HUMP,), {}, CHANGED, "2.0"),
    ("flat", (WILD,), {"tolerance": 0.58}, NEAR, "not decided"),
    ("flat", (curve(lambda _: 0),), {}, NOT_MEASURED, "not above 0"),
    ("flat", (SHORT,), {}, NOT_MEASURED, "too few repetitions: 5"),
    ("flat", (FAST,), {}, NOT_MEASURED, "no points over x"),
    ("flat", (FEW_X,), {}, NOT_MEASURED, "too few points over x: 3, and 4 are needed"),
    ("grows", (LINE,), {}, HOLDS, ""),
    ("grows", (KNEE,), {}, HOLDS, ""),
    ("grows", (CONSTANT,), {}, CHANGED, "rises by less than 25 %"),
    ("grows", (FALLING,), {}, REVERSED, "it falls"),
    ("grows", (SHORT,), {}, NOT_MEASURED, ""),
    ("grows", (LINE,), {"at_least": 20}, NEAR, ""),
    ("linear", (STRAIGHT,), {}, HOLDS, "in proportion"),
    ("linear", (SQUARE,), {}, CHANGED, "more than in proportion"),
    ("linear", (FEW_X,), {}, NOT_MEASURED, "too few points"),
    ("linear", (CONSTANT,), {}, CHANGED, "less than in proportion"),
    ("linear", (curve(lambda _: 0),), {}, NOT_MEASURED, "not above 0"),
    ("at_least", (FAST,), {"bound": 50}, HOLDS, "a is at least 50 µs"),
    ("at_least", (just(100),), {"bound": 100}, HOLDS, ""),
    ("at_least", (FAST,), {"bound": 200}, CHANGED, "a is less than 200 µs"),
    ("at_least", (near(100, 5),), {"bound": 50}, NOT_MEASURED, ""),
    ("at_most", (FAST,), {"bound": 200}, HOLDS, "a is at most 200 µs"),
    ("at_most", (just(100),), {"bound": 100}, HOLDS, ""),
    ("at_most", (FAST,), {"bound": 50}, CHANGED, "a is more than 50 µs"),
    ("at_most", (near(100, 5),), {"bound": 50}, NOT_MEASURED, ""),
    ("about", (FAST,), {"then": 120}, HOLDS, "within a factor of 1.5"),
    ("about", (just(50),), {"then": 100, "factor": 2}, HOLDS, ""),
    ("about", (just(200),), {"then": 100, "factor": 2}, HOLDS, ""),
    ("about", (near(35),), {"then": 350}, CHANGED, "10 times less than then"),
    ("about", (near(350),), {"then": 35}, CHANGED, "10 times more than then"),
    ("about", (just(0),), {"then": 35}, CHANGED, "many times less than then"),
    ("about", (near(40, 5),), {"then": 350}, NOT_MEASURED, ""),
    ("expected", (just(100),), {"value": 100}, HOLDS, "within a factor of 1.5 of expected"),
    ("expected", (near(35),), {"value": 350}, CHANGED, "10 times less than expected"),
    ("expected", (near(40, 5),), {"value": 350}, NOT_MEASURED, ""),
    ("exists", (FAST,), {}, HOLDS, "it is there"),
    ("exists", (ONCE,), {}, NEAR, "not always"),
    ("exists", (NEVER,), {}, CHANGED, "it is not there"),
    ("exists", (Measured("it", {}),), {}, NOT_MEASURED, "no repetition"),
]


@pytest.mark.parametrize(("rule", "operands", "numbers", "verdict", "why"), CASES)
def test_a_rule(rule: str, operands: tuple[Measured, ...], numbers: dict[str, float], verdict: str, why: str) -> None:
    judgement = judge(rule, operands, **numbers)
    assert judgement.verdict == verdict
    assert why in judgement.why


def test_every_rule_can_hold_fail_and_tell_nothing() -> None:
    for rule in RULES:
        seen = {verdict for name, *_, verdict, _ in CASES if name == rule}
        assert {HOLDS, NOT_MEASURED} < seen, rule
        assert seen & {CHANGED, REVERSED} or rule == "provided", rule


#: Half of the effect, or of its logarithm.
BEARS: list[tuple[str, dict[str, float], float]] = [
    ("faster", {}, 0.024),
    ("faster", {"min_effect": 0.5}, 0.184),
    ("ratio_at_least", {"bound": 10}, 0.684),
    ("ratio_at_least", {"bound": 0.5}, 0.293),
    ("ratio_between", {"low": 0.5, "high": 2}, 0.293),
    ("equal", {"margin": 0.5}, 0.184),
    ("flat", {"tolerance": 0.25}, 0.106),
    ("grows", {"at_least": 4}, 0.5),
    ("linear", {}, 0.1),
    ("about", {"factor": 4}, 0.5),
    ("expected", {"factor": 4}, 0.5),
    ("at_least", {"bound": 3}, 0.1),
    ("at_most", {"bound": 3}, 0.1),
    ("exists", {}, 0.1),
    ("exceeds", {"bound": 10}, 0.684),
    ("speed", {"factor": 4}, 0.5),
    ("provided", {}, 0.1),
]


def test_what_rules_can_bear() -> None:
    assert {rule for rule, *_ in BEARS} == set(RULES)
    for rule, numbers, share in BEARS:
        assert rules.allowed(rule, numbers) == pytest.approx(share, abs=0.001), rule


CLEARLY = 1.3  # beyond the line
XS = (1.0, 10.0, 100.0, 400.0, 700.0, 1000.0)

Numbers = Mapping[str, float]
Function = Callable[[float], float]
Operands = tuple[float | Function, ...]


def at_value(at: float | Function, better: str) -> Measured:
    """Ten rounds of one value, or of a function of x."""
    points = {x: dict.fromkeys(range(10), at(x) if callable(at) else at) for x in XS}
    return Measured("it", points[XS[-1]], better=better, points=points, set="one run")


def two(holds: float, fails: float) -> tuple[Operands, Operands]:
    return (100 * holds, 100), (100 * fails, 100)


def line(rise: float) -> Function:
    return lambda x: 100 * (1 + (rise - 1) * x / XS[-1])


#: rule -> of its numbers: operands on which it holds, and does not. The ledger is tried on these.
MADE_UP: dict[str, Callable[[Numbers], tuple[Operands, Operands]]] = {
    "faster": lambda n: two(gain := (1 + n.get("min_effect", 0.05)) * CLEARLY, 1 / gain),
    "ratio_at_least": lambda n: two(n["bound"] * CLEARLY, n["bound"] / CLEARLY),
    "ratio_between": lambda n: two((n["low"] * n["high"]) ** 0.5, n["high"] * CLEARLY),
    "equal": lambda n: two(1, (1 + n.get("margin", 0.05)) * CLEARLY),
    "flat": lambda n: ((line(1),), (line((1 + n.get("tolerance", 0.25)) * CLEARLY),)),
    "exceeds": lambda n: two(n["bound"] * CLEARLY, n["bound"] / CLEARLY),
    "grows": lambda n: ((line(n.get("at_least", 1.25) * CLEARLY),), (line(1),)),
    "linear": lambda _: ((lambda x: x,), (lambda x: x * x,)),
    "at_least": lambda n: ((n["bound"] * CLEARLY,), (n["bound"] / CLEARLY,)),
    "at_most": lambda n: ((n["bound"] / CLEARLY,), (n["bound"] * CLEARLY or 1,)),
    "about": lambda n: ((n["then"],), (n["then"] * n.get("factor", 1.5) * CLEARLY,)),
    "speed": lambda n: ((n["then"],), (n["then"] * n.get("factor", 1.5) * CLEARLY,)),
    "provided": lambda n: ((n.get("bound", 0),), (n.get("bound", 0) + 1,)),
    "expected": lambda n: ((n["value"],), (n["value"] * n.get("factor", 1.5) * CLEARLY,)),
    "exists": lambda _: ((1,), (0,)),
}


def test_every_rule_has_made_up_operands() -> None:
    assert MADE_UP.keys() == RULES.keys()


def wide(low: float) -> Measured:
    """Of 12 values the interval of the median goes from the third to the tenth."""
    return of([low + i for i in range(12)])


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
def test_a_line_within_the_interval_is_near(rule: str, operands: list[Measured], numbers: dict[str, float]) -> None:
    assert judge(rule, operands, **numbers).near_line
    far = near(operands[0].median()[0] * 9, 12)
    assert not judge(rule, [far, *operands[1:]], **numbers).near_line


def test_a_line_at_the_end_of_the_interval_is_not_near() -> None:
    low = {bound: judge("at_least", [wide(95)], bound=bound).verdict for bound in (97, 98, 104, 105)}
    assert low == {97: HOLDS, 98: NEAR, 104: NEAR, 105: CHANGED}
    assert judge("at_most", [wide(95)], bound=104).verdict == HOLDS
    assert not judge("exists", [NEVER]).near_line


def test_numbers_have_intervals() -> None:
    numbers = judge("faster", [FAST, SLOW]).numbers
    assert numbers.startswith("a 99.9 µs, b 150 µs; ratio 1.50")
    assert " times (1.4" in numbers
    assert judge("about", [FAST], then=350).numbers == "a 99.9 µs (99.5–100.6 µs) here, 350 µs then"


def test_who_is_asked() -> None:
    """With enough repetitions of which the marks leave too few, nothing is judged."""
    noisy = {"repetitions": 6, "against": frozenset({"noisy", "little"})}
    found = judge("at_least", [just(9, 5, **noisy)], bound=1)
    assert (found.verdict, found.usable, found.repetitions) == (NOT_JUDGED, 5, 6)
    assert found.why == "the data is little, noisy (5 of 6 usable)"
    few = judge("at_least", [just(9, 5, **{**noisy, "repetitions": 5})], bound=1)
    assert (few.verdict, few.usable, few.repetitions) == (NOT_MEASURED, 5, 5)
    both = judge("faster", [just(9, repetitions=9), just(99, 7)])
    assert (both.usable, both.repetitions) == (6, 9), "of the operand that has fewest"
    over_x = Measured("it", just(9, 9).values, points={1.0: just(9, 7).values})
    assert judge("at_least", [over_x], bound=1).usable == 9
    assert judge("flat", [over_x]).usable == 7


def test_the_worst_of_several_rules_counts() -> None:
    holds, reversed_ = Judgement(HOLDS, "x", "1"), Judgement(REVERSED, "y", "2")
    assert combine([holds, reversed_]) == Judgement(REVERSED, "y", "1; 2"), "it names what fails"
    assert combine([holds, Judgement(HOLDS, "z")]).why == "x; z"
    assert combine([reversed_, Judgement(NOT_MEASURED, "z")]).verdict == NOT_MEASURED
    assert combine([reversed_, Judgement(NOT_JUDGED, "z")]).verdict == REVERSED, "it fails whatever z is"
    assert combine([holds, Judgement(NEAR, "z")]).verdict == NEAR
    assert combine([reversed_, Judgement(NEAR, "z")]).verdict == REVERSED
    asked = [Judgement(HOLDS, "x", usable=n, repetitions=whole) for n, whole in ((9, 9), (7, 8), (7, 9))]
    assert combine(asked) == Judgement(HOLDS, "x", usable=7, repetitions=9)


def test_without_scipy_nothing_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quest.stats.estimates.AVAILABLE", False)
    found = judge("faster", [FAST, SLOW])
    assert (found.verdict, found.why) == (NOT_MEASURED, "SciPy is not installed")


# ---- sessions and processors ---------------------------------------------------------------------


def test_a_session_counts_that_has_rounds_enough() -> None:
    sessions = [just(101), just(103), just(90, 5)]
    found = judge("at_least", [sessions], bound=100)
    assert (found.verdict, found.sessions, found.within) == (HOLDS, 2, "within two sessions")
    assert "sessions 101" in found.numbers
    assert judge("at_least", [[*sessions, just(99)]], bound=100).near_line, "one session says otherwise"
    assert judge("at_least", [[just(101)] * 5], bound=100).within == ""


def test_twins_of_all_sessions_are_asked() -> None:
    sessions = [just(100, twins={"it": just(0.001 * n).values}) for n in range(3)]
    assert judge("equal", [sessions, [just(100)] * 3]).verdict == HOLDS
    sessions[2] = just(100, twins={"it": just(0.3).values})
    assert judge("equal", [sessions, [just(100)] * 3]).verdict == NOT_JUDGED


def test_over_x_whole_rounds_of_each_session_are_asked() -> None:
    assert judge("flat", [[CONSTANT] * 3]).verdict == HOLDS
    assert judge("flat", [[CONSTANT, SHORT]]).sessions == 1
    assert judge("grows", [[LINE, LINE, CONSTANT]]).verdict == NEAR


@pytest.mark.parametrize(
    ("sides", "verdict"),
    [
        ((HOLDS, HOLDS), HOLDS),
        ((HOLDS, CHANGED), DEPENDS),
        ((HOLDS, NEAR), NEAR),
        ((CHANGED, NEAR), NEAR),
        ((CHANGED, NO_DIFFERENCE), CHANGED),
        ((REVERSED, NO_DIFFERENCE), DEPENDS),
        ((HOLDS, NOT_JUDGED), NOT_JUDGED),
        ((NEAR, NOT_MEASURED), NOT_MEASURED),
        ((HOLDS,), HOLDS),
    ],
)
def test_processors_are_never_pooled(sides: Sequence[str], verdict: str) -> None:
    said = {f"cpu{n}": Judgement(side, f"why{n}", sessions=5) for n, side in enumerate(sides)}
    found = over_processors(said)
    assert (found.verdict, found.within) == (verdict, "")
    assert all(f"why{n}" in found.why for n in range(len(sides)))


@pytest.mark.parametrize(
    ("sessions", "within"),
    [
        ((1,), "within one session"),
        ((4,), "within four sessions"),
        ((5,), ""),
        ((3, 3), ""),
        ((5, 2), "within two sessions"),
        ((1, 1), "within one session"),
    ],
)
def test_too_few_sessions_are_told(sessions: Sequence[int], within: str) -> None:
    said = {f"cpu{n}": Judgement(HOLDS, "", sessions=count) for n, count in enumerate(sessions)}
    assert over_processors(said).within == within


def test_what_is_taken_for_granted_comes_first() -> None:
    """Where it was not so, neither a rule that holds nor one that fails has a say."""
    dirty = judge("provided", [of([1.0] * 6)])
    for other in (judge("faster", [FAST, SLOW]), judge("faster", [SLOW, FAST])):
        assert combine([dirty, other]).verdict == combine([other, dirty]).verdict == NOT_JUDGED
    assert combine([judge("provided", [of([0.0] * 6)]), judge("faster", [SLOW, FAST])]).verdict == REVERSED


def test_faster_now_is_worse_than_near_and_better_than_changed() -> None:
    gained, near_it = (judge("speed", [one], then=350) for one in (just(90), of([300.0] * 6 + [700.0] * 6)))
    assert combine([gained, near_it]).verdict == FASTER_NOW
    assert combine([gained, judge("speed", [just(900)], then=350)]).verdict == CHANGED
