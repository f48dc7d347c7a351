"""The rules that judge claims: from measured values to a verdict and words with numbers.

A rule says "holds" only if the data show it beyond doubt and beyond the A/A floor; where an
interval lies across the line, the median decides and the judgement is marked as near the line.
Repetitions that a mark speaks against are not asked (quest/measure/usable.py); where too few are
left, nothing is judged.
"""

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from quest.spec.model import LEAST, VERDICTS
from quest.stats import estimates, units
from quest.stats.estimates import DIFFERENT, Estimate, Ratio, Rounds

HOLDS, CHANGED, REVERSED, NO_DIFFERENCE, NOT_JUDGED, NOT_MEASURED = VERDICTS
UNDECIDED = (NOT_JUDGED, NOT_MEASURED)
# Of several rules of one claim the worst verdict counts.
WORST_FIRST = (*reversed(UNDECIDED), REVERSED, CHANGED, NO_DIFFERENCE, HOLDS)


@dataclass(frozen=True)
class Judgement:
    """A verdict (one of VERDICTS), why, and the numbers that were asked, in words. `near_line`: an
    interval lies across the line.
    """

    verdict: str
    why: str
    numbers: str = ""
    near_line: bool = False
    usable: int = 0  # repetitions that were asked, of the operand that has the fewest
    repetitions: int = 0  # that there are, of the same operand


class Undecidable(Exception):
    """Too little is measured for any statement: why."""


@dataclass(frozen=True)
class Measured:
    """A metric of a variant: one value a round, and the same for each x where x is a number."""

    name: str
    values: Rounds
    unit: str = ""
    better: str = ""
    points: Mapping[float, Rounds] = field(default_factory=dict)
    floor: float | None = None
    set: str = ""  # values of one set were taken in the same rounds and are compared in pairs
    number: Estimate | None = None  # a derived one, with interval
    repetitions: int = 0  # that there are; `values` and `points` are of those that are usable
    against: frozenset[str] = frozenset()  # the marks of the others

    def text(self) -> str:
        """Its median as a reader wants it."""
        value, *ends = self.median()
        return units.text(value, self.unit, *ends)

    def median(self) -> Estimate:
        """With its interval, in `unit`."""
        if self.number:
            return self.number
        return estimates.median_with_interval(list(self.values.values()))


def combine(judgements: list[Judgement]) -> Judgement:
    """All rules of a claim must hold."""

    def joined(texts: Iterable[str]) -> str:
        return "; ".join(dict.fromkeys(text for text in texts if text))

    fewest = min(judgements, key=lambda j: (j.usable, -j.repetitions))
    return Judgement(
        min((j.verdict for j in judgements), key=WORST_FIRST.index),
        joined(j.why for j in judgements),
        joined(j.numbers for j in judgements),
        any(j.near_line for j in judgements),
        fewest.usable,
        fewest.repetitions,
    )


#: What a smoke run has of everything.
TOO_FEW = "too few repetitions"


def _need(count: int) -> None:
    if not estimates.AVAILABLE:
        raise Undecidable("SciPy is not installed")
    if count < LEAST:
        raise Undecidable(f"{TOO_FEW}: {count}, and {LEAST} are needed")


def _between(low: float | None, high: float | None, *lines: float) -> bool:
    """Whether an interval lies across one of these lines."""
    return low is not None and high is not None and any(low < line < high for line in lines)


# ---- two values ----------------------------------------------------------------------------------


class Comparison:
    """a to b, with what can be said of any such ratio."""

    def __init__(self, a: Measured, b: Measured, invert: bool = False) -> None:
        over, under = (b.values, a.values) if invert else (a.values, b.values)
        if a.set and a.set == b.set:
            samples = estimates.in_both(over, under)
            _need(len(samples[0]))
            self.ratio: Ratio = estimates.paired_ratio(over, under)
        else:
            samples = list(over.values()), list(under.values())
            _need(min(map(len, samples)))
            self.ratio = estimates.unpaired_ratio(*samples)
        self.p = estimates.mann_whitney(*samples)
        self.value = self.ratio.value
        self.floor = max(a.floor or 0.0, b.floor or 0.0)
        shown = self.value, "", self.ratio.low, self.ratio.high
        ratio = f"{units.text(*shown)} times ({units.interval(*shown)})"
        self.numbers = f"{a.name} {a.text()}, {b.name} {b.text()}; ratio {ratio}"

    def lies_across(self, *lines: float) -> bool:
        """Whether the interval lies across one of these lines."""
        return _between(self.ratio.low, self.ratio.high, *lines)

    @property
    def seen(self) -> bool:
        """A difference: by the rank test, by the interval, and beyond what A/A differs by."""
        low, high = self.ratio.interval or (0.0, math.inf)
        ranks_differ = self.p is not None and self.p < DIFFERENT
        beyond = not self.value or abs(math.log(self.value)) > math.log1p(self.floor)
        return ranks_differ and not low <= 1 <= high and beyond


def faster(a: Measured, b: Measured, min_effect: float = 0.05) -> Judgement:
    """a is faster than b by at least `min_effect`: higher or lower, as "better" of the metric says."""
    gain = Comparison(a, b, invert=a.better != "higher")
    least = 1 + min_effect
    verdict, why = NO_DIFFERENCE, f"the difference is below {units.percent(min_effect)}"
    if not gain.seen:
        why = f"the difference is within the noise floor of {units.percent(gain.floor)}"
        if gain.floor < abs(gain.value - 1):
            why = "the repetitions of the two overlap"
    elif gain.value >= least:
        verdict, why = HOLDS, f"{a.name} is faster than {b.name}"
    elif gain.value <= 1 / least:
        verdict, why = REVERSED, f"{b.name} is faster than {a.name}"
    return Judgement(verdict, why, gain.numbers, gain.lies_across(least, 1 / least))


def ratio_at_least(a: Measured, b: Measured, bound: float) -> Judgement:
    """a is at least `bound` times b."""
    ratio = Comparison(a, b)
    verdict, why = CHANGED, f"{a.name} is less than {bound:g} times {b.name}"
    if ratio.value >= bound:
        verdict, why = HOLDS, f"{a.name} is at least {bound:g} times {b.name}"
    elif not ratio.seen:
        verdict, why = NO_DIFFERENCE, f"{a.name} and {b.name} do not differ"
    elif ratio.value < 1 <= bound:
        verdict, why = REVERSED, f"{a.name} is less than {b.name}"
    return Judgement(verdict, why, ratio.numbers, ratio.lies_across(bound))


def ratio_between(a: Measured, b: Measured, low: float, high: float) -> Judgement:
    """a is `low` to `high` times b: for "nearly half", "about twice"."""
    ratio = Comparison(a, b)
    span = f"{low:g} to {high:g} times"
    expected_more = low * high > 1
    verdict, why = CHANGED, f"{a.name} is not {span} {b.name}"
    if low <= ratio.value <= high:
        verdict, why = HOLDS, f"{a.name} is {span} {b.name}"
    elif not ratio.seen:
        verdict, why = NO_DIFFERENCE, f"{a.name} and {b.name} do not differ"
    elif (ratio.value > 1) != expected_more:
        verdict, why = REVERSED, "the difference has the other sign"
    return Judgement(verdict, why, ratio.numbers, ratio.lies_across(low, high))


def equal(a: Measured, b: Measured, margin: float = 0.05) -> Judgement:
    """a and b are the same, within `margin` or the noise floor, whichever is larger."""
    ratio = Comparison(a, b)
    width = max(margin, ratio.floor)
    bottom, top = 1 / (1 + width), 1 + width
    verdict, why = CHANGED, f"the two differ by more than {units.percent(width)}"
    if bottom <= ratio.value <= top:
        verdict, why = HOLDS, f"the two are equal within {units.percent(width)}"
    return Judgement(verdict, why, ratio.numbers, ratio.lies_across(bottom, top))


# ---- one value -----------------------------------------------------------------------------------


def _beside_line(a: Measured, bound: float, sign: int, holds: str, fails: str) -> Judgement:
    _need(len(a.values))
    value, low, high = a.median()
    verdict, how = (HOLDS, holds) if sign * value >= sign * bound else (CHANGED, fails)
    why = f"{a.name} is {how} {units.text(bound, a.unit)}"
    return Judgement(verdict, why, f"{a.name} {a.text()}", _between(low, high, bound))


def at_least(a: Measured, bound: float) -> Judgement:
    """a is not below `bound`."""
    return _beside_line(a, bound, 1, "at least", "less than")


def at_most(a: Measured, bound: float) -> Judgement:
    """a is not above `bound`."""
    return _beside_line(a, bound, -1, "at most", "more than")


def about(a: Measured, then: float, factor: float = 1.5) -> Judgement:
    """a is what it was then, within `factor`."""
    return _within(a, then, factor, "then")


def expected(a: Measured, value: float, factor: float = 1.5) -> Judgement:
    """a is what the claim's own words make one expect, within `factor`, where the source has no number."""
    return _within(a, value, factor, "expected")


def _within(a: Measured, line: float, factor: float, what: str) -> Judgement:
    _need(len(a.values))
    value, low, high = a.median()
    numbers = f"{a.name} {a.text()} here, {units.text(line, a.unit)} {what}"
    lines = (line / factor, line * factor)
    near = _between(low, high, *lines)
    if lines[0] <= value <= lines[1]:
        return Judgement(HOLDS, f"within a factor of {factor:g} of {what}", numbers, near)
    times = units.text(max(value / line, line / value), "") if value > 0 else "many"
    word = "less" if value < line else "more"
    return Judgement(CHANGED, f"{times} times {word} than {what}", numbers, near)


def exists(a: Measured) -> Judgement:
    """a is more than 0 in every repetition."""
    if not a.values:
        raise Undecidable("no repetition")
    seen = sum(1 for value in a.values.values() if value > 0)
    numbers = f"{a.name}: seen in {seen} of {len(a.values)} repetitions"
    if seen == len(a.values):
        return Judgement(HOLDS, "it is there", numbers)
    return Judgement(CHANGED, "it is not there" if not seen else "not always", numbers, seen > 0)


# ---- growth over x -------------------------------------------------------------------------------

GROWS_HOW = {"linear": "grows linearly", "grows": "grows", "falls": "falls"}


def _shape(a: Measured, tolerance: float, verdicts: Mapping[str, str], otherwise: str, *lines: float) -> Judgement:
    """By how a grows: a verdict for each kind of growth."""
    if not a.points:
        raise Undecidable("no points over x")
    _need(min(map(len, a.points.values())))
    growth = estimates.growth(a.points, tolerance)
    if growth is None:
        least = estimates.LEAST_X
        raise Undecidable(f"too few points over x: {len(a.points)}, and {least} are needed")
    if growth.kind == "flat":
        how = f"it rises by less than {units.percent(tolerance)}"
    elif growth.kind == "knee":
        how = f"flat up to {growth.knee:g}, then it grows"
    else:
        how = f"it {GROWS_HOW[growth.kind]}"
    ends = [
        f"{units.text(estimates.median(list(a.points[x].values())), a.unit)} at {x:g}"
        for x in (min(a.points), max(a.points))
    ]
    value, low, high = growth.rise
    rise, interval = units.text(value, "", low, high), units.interval(value, "", low, high)
    numbers = f"{a.name}: {', '.join(ends)}; fitted rise {rise} times"
    numbers += f" ({interval})" if interval else ""
    near = _between(low, high, 1 + tolerance, *lines)
    return Judgement(verdicts.get(growth.kind, otherwise), how, numbers, near)


def flat(a: Measured, tolerance: float = 0.25) -> Judgement:
    """a does not depend on x: fitted, it rises by no more than `tolerance` from end to end."""
    return _shape(a, tolerance, {"flat": HOLDS}, CHANGED, 1 / (1 + tolerance))


def grows(a: Measured, at_least: float = 1.25) -> Judgement:
    """a grows with x, at least `at_least`-fold from end to end."""
    return _shape(a, at_least - 1, {"falls": REVERSED, "flat": CHANGED}, HOLDS)


# ---- all of them ---------------------------------------------------------------------------------

RULES: dict[str, Callable[..., Judgement]] = {
    rule.__name__: rule
    for rule in (
        faster, ratio_at_least, ratio_between, equal, flat, grows, at_least, at_most, about,
        expected, exists,
    )
}  # fmt: skip


def parameters(rule: str) -> tuple[list[str], list[str], dict[str, float]]:
    """Of a rule: its operands, the numbers it needs, those it may be given with their defaults."""
    signature = inspect.signature(RULES[rule]).parameters.items()
    operands = [name for name, p in signature if p.annotation is Measured]
    defaults = {name: p.default for name, p in signature if p.default is not p.empty}
    needed = [name for name, _ in signature if name not in (*operands, *defaults)]
    return operands, needed, defaults


# ---- which repetitions a rule may ask ------------------------------------------------------------

# The smallest effect a rule asks about. A line has none: there a repetition counts that others took
# less from than makes it `noisy` (measure/noise.py).
EFFECTS: dict[str, Callable[[Mapping[str, float]], float]] = {
    "faster": lambda n: n["min_effect"],
    "ratio_at_least": lambda n: max(n["bound"], 1 / n["bound"]) - 1,
    "ratio_between": lambda n: math.sqrt(n["high"] / n["low"]) - 1,
    "equal": lambda n: n["margin"],
    "flat": lambda n: n["tolerance"],
    "grows": lambda n: n["at_least"] - 1,
    "about": lambda n: n["factor"] - 1,
    "expected": lambda n: n["factor"] - 1,
}
BESIDE_A_LINE = 0.10


def allowed(rule: str, numbers: Mapping[str, float]) -> float:
    """The share of the processors that others may have taken from a repetition this rule asks.

    What takes the share s makes a time longer by 1/(1-s): that must be less than half of the effect
    (half of its logarithm), so that it cannot turn the verdict alone.
    """
    if rule not in EFFECTS:
        return BESIDE_A_LINE
    return float(1 - (1 + EFFECTS[rule]({**parameters(rule)[2], **numbers})) ** -0.5)


def judge(rule: str, operands: Mapping[str, Measured], numbers: Mapping[str, float]) -> Judgement:
    """A rule of RULES by its name, with its operands and numbers."""

    def asked(a: Measured) -> int:
        """Of a rule over x at the x that has the fewest."""
        over_x = a.points and rule in ("flat", "grows")
        return min(map(len, a.points.values())) if over_x else len(a.values)

    counts = [(asked(a), max(a.repetitions, asked(a))) for a in operands.values()]
    usable, count = min(counts, default=(0, 0))
    try:
        judgement = RULES[rule](**operands, **numbers)
    except Undecidable as why:
        judgement = Judgement(NOT_MEASURED, str(why))
        against = sorted(frozenset().union(*(a.against for a in operands.values())))
        if against and count >= LEAST:
            marks = ", ".join(against)
            judgement = Judgement(NOT_JUDGED, f"the data is {marks} ({usable} of {count} usable)")
    return replace(judgement, usable=usable, repetitions=count)
