"""What a rule is given and what it says."""

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_type_hints

from harness.statistics import estimates, units
from harness.statistics.estimates import DIFFERENT, LEAST, Growth, Ratio, Rounds

HOLDS = "holds"
CHANGED = "changed"
REVERSED = "reversed"
NO_DIFFERENCE = "no difference seen"
NOT_MEASURED = "not measured here"
VERDICTS = (HOLDS, CHANGED, REVERSED, NO_DIFFERENCE, NOT_MEASURED)
# Of several rules of one claim the worst verdict counts.
WORST_FIRST = (NOT_MEASURED, REVERSED, CHANGED, NO_DIFFERENCE, HOLDS)


@dataclass(frozen=True)
class Judgement:
    verdict: str
    why: str
    numbers: str = ""
    near: bool = False


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
    number: tuple[float, float | None, float | None] | None = None  # a derived one, with interval

    def text(self) -> str:
        value, low, high = self.median()
        return units.text(value, self.unit, low, high)

    def median(self) -> tuple[float, float | None, float | None]:
        if self.number:
            return self.number
        values = list(self.values.values())
        low, high = estimates.median_interval(values) or (None, None)
        return estimates.median(values), low, high


def combine(judgements: list[Judgement]) -> Judgement:
    """All rules of a claim must hold."""
    verdict = min((j.verdict for j in judgements), key=WORST_FIRST.index)
    return Judgement(
        verdict,
        _joined(j.why for j in judgements),
        _joined(j.numbers for j in judgements),
        any(j.near for j in judgements),
    )


def _joined(texts: Iterable[str]) -> str:
    """Each once."""
    return "; ".join(dict.fromkeys(text for text in texts if text))


def not_measured(why: str) -> Judgement:
    return Judgement(NOT_MEASURED, why)


def too_few(*counts: int) -> Judgement | None:
    """The judgement where no statement can be made, else None."""
    if not estimates.AVAILABLE:
        return not_measured("SciPy is not installed")
    count = min(counts)
    if count < LEAST:
        return not_measured(f"too few repetitions: {count}, and {LEAST} are needed")
    return None


# ---- Rules about growth: flat, growing, linear, with a knee. See rules.py ------------------------


def _growth(a: Measured, tolerance: float) -> Growth | Judgement:
    counts = [len(rounds) for rounds in a.points.values()]
    problem = too_few(*counts) if counts else not_measured("no points over x")
    if problem:
        return problem
    growth = estimates.growth(a.points, tolerance)
    if growth is None:
        return not_measured(
            f"too few points over x: {len(counts)}, and {estimates.LEAST_X} are needed"
        )
    return growth


def _rise_text(a: Measured, growth: Growth) -> str:
    xs = sorted(a.points)
    rise = units.text(growth.rise, "", growth.rise_low, growth.rise_high)
    interval = units.interval(growth.rise, "", growth.rise_low, growth.rise_high)
    start, end = (estimates.median(list(a.points[x].values())) for x in (xs[0], xs[-1]))
    ends = f"{units.text(start, a.unit)} at {xs[0]:g}, {units.text(end, a.unit)} at {xs[-1]:g}"
    return f"{a.name}: {ends}; fitted rise {rise} times" + (f" ({interval})" if interval else "")


def _across(growth: Growth, line: float) -> bool:
    return (
        growth.rise_low is not None
        and growth.rise_high is not None
        and growth.rise_low < line < growth.rise_high
    )


def flat(a: Measured, tolerance: float = 0.25) -> Judgement:
    """a does not depend on x: fitted, it rises by no more than `tolerance` from end to end."""
    growth = _growth(a, tolerance)
    if isinstance(growth, Judgement):
        return growth
    numbers = _rise_text(a, growth)
    near = _across(growth, 1 + tolerance) or _across(growth, 1 / (1 + tolerance))
    if growth.kind == "knee":
        return Judgement(CHANGED, f"flat up to {growth.knee:g}, then it grows", numbers, near)
    if growth.kind == "flat":
        why = f"it rises by less than {units.percent(tolerance)}"
        return Judgement(HOLDS, why, numbers, near)
    return Judgement(CHANGED, f"it {_WORDS[growth.kind]}", numbers, near)


_WORDS = {
    "linear": "grows linearly",
    "grows": "grows",
    "falls": "falls",
    "knee": "is flat up to a knee, then grows",
    "flat": "is flat",
}


def grows(a: Measured, at_least: float = 1.25) -> Judgement:
    """a grows with x, at least `at_least`-fold from end to end."""
    growth = _growth(a, at_least - 1)
    if isinstance(growth, Judgement):
        return growth
    numbers = _rise_text(a, growth)
    near = _across(growth, at_least)
    if growth.kind == "falls":
        return Judgement(REVERSED, "it falls", numbers, near)
    if growth.kind == "flat":
        why = f"it rises by less than {units.percent(at_least - 1)}"
        return Judgement(CHANGED, why, numbers, near)
    return Judgement(HOLDS, f"it {_WORDS[growth.kind]}", numbers, near)


def linear(a: Measured, tolerance: float = 0.25) -> Judgement:
    """a is a straight line over x, and not a flat one."""
    growth = _growth(a, tolerance)
    if isinstance(growth, Judgement):
        return growth
    numbers = _rise_text(a, growth)
    verdict = {"linear": HOLDS, "falls": REVERSED}.get(growth.kind, CHANGED)
    return Judgement(verdict, f"it {_WORDS[growth.kind]}", numbers, _across(growth, 1 + tolerance))


def knee(a: Measured, tolerance: float = 0.25) -> Judgement:
    """a is flat up to some x and grows from there on."""
    growth = _growth(a, tolerance)
    if isinstance(growth, Judgement):
        return growth
    numbers = _rise_text(a, growth)
    if growth.kind == "knee":
        return Judgement(HOLDS, f"flat up to {growth.knee:g}, then it grows", numbers)
    return Judgement(CHANGED, f"it {_WORDS[growth.kind]}", numbers)


# ---- The rules that judge claims -----------------------------------------------------------------
#
# Pure functions from measured values to a verdict and words with numbers. Those about growth are
# in shapes.py.
#
# A rule says "holds" only if the data show it beyond doubt and beyond the A/A floor; where an
# interval lies across the line, the median decides and the judgement is marked as near the line.

# ---- comparing two ------------------------------------------------------------------------------


def _ratio(a: Measured, b: Measured) -> Ratio:
    if a.set and a.set == b.set:
        return estimates.paired_ratio(a.values, b.values)
    return estimates.unpaired_ratio(list(a.values.values()), list(b.values.values()))


def _rounds(a: Measured, b: Measured) -> int:
    if a.set and a.set == b.set:
        return len(set(a.values) & set(b.values))
    return min(len(a.values), len(b.values))


def _times(ratio: Ratio) -> str:
    value = units.text(ratio.value, "", ratio.low, ratio.high)
    return f"{value} times ({units.interval(ratio.value, '', ratio.low, ratio.high)})"


def _floor(a: Measured, b: Measured) -> float:
    return max(a.floor or 0.0, b.floor or 0.0)


def _seen(ratio: Ratio, floor: float) -> bool:
    """A difference: by the rank test, by the interval, and beyond what A/A differs by."""
    low, high = ratio.interval or (0.0, math.inf)
    ranks_differ = ratio.p is not None and ratio.p < DIFFERENT
    return ranks_differ and not low <= 1 <= high and abs(math.log(ratio.value)) > math.log1p(floor)


def faster(a: Measured, b: Measured, min_effect: float = 0.05) -> Judgement:
    """a is faster than b, by at least `min_effect`."""
    problem = too_few(_rounds(a, b))
    if problem:
        return problem
    # The gain of a over b, whichever way the metric points.
    gain = _ratio(a, b) if a.better == "higher" else _ratio(b, a)
    floor = _floor(a, b)
    numbers = f"{a.name} {a.text()}, {b.name} {b.text()}; ratio {_times(gain)}"
    least = 1 + min_effect
    low, high = gain.interval or (gain.value, gain.value)
    near = low < least < high or low < 1 / least < high
    if not _seen(gain, floor):
        why = f"the difference is within the noise floor of {units.percent(floor)}"
        if floor < abs(gain.value - 1):
            why = "the repetitions of the two overlap"
        return Judgement(NO_DIFFERENCE, why, numbers, near)
    if gain.value >= least:
        return Judgement(HOLDS, f"{a.name} is faster than {b.name}", numbers, near)
    if gain.value <= 1 / least:
        return Judgement(REVERSED, f"{b.name} is faster than {a.name}", numbers, near)
    why = f"the difference is below {units.percent(min_effect)}"
    return Judgement(NO_DIFFERENCE, why, numbers, near)


def ratio_at_least(a: Measured, b: Measured, bound: float) -> Judgement:
    """a is at least `bound` times b."""
    problem = too_few(_rounds(a, b))
    if problem:
        return problem
    ratio = _ratio(a, b)
    numbers = f"{a.name} {a.text()}, {b.name} {b.text()}; ratio {_times(ratio)}"
    low, high = ratio.interval or (ratio.value, ratio.value)
    near = low < bound <= high
    if ratio.value >= bound:
        why = f"{a.name} is at least {bound:g} times {b.name}"
        return Judgement(HOLDS, why, numbers, near)
    if not _seen(ratio, _floor(a, b)):
        return Judgement(NO_DIFFERENCE, f"{a.name} and {b.name} do not differ", numbers, near)
    if ratio.value < 1:
        return Judgement(REVERSED, f"{a.name} is less than {b.name}", numbers, near)
    why = f"{a.name} is more than {b.name}, but less than {bound:g} times"
    return Judgement(CHANGED, why, numbers, near)


def ratio_between(a: Measured, b: Measured, low: float, high: float) -> Judgement:
    """a is `low` to `high` times b: for "nearly half", "about twice"."""
    problem = too_few(_rounds(a, b))
    if problem:
        return problem
    ratio = _ratio(a, b)
    numbers = f"{a.name} {a.text()}, {b.name} {b.text()}; ratio {_times(ratio)}"
    ends = ratio.interval or (ratio.value, ratio.value)
    near = any(ends[0] < bound < ends[1] for bound in (low, high))
    span = f"{low:g} to {high:g} times"
    if low <= ratio.value <= high:
        return Judgement(HOLDS, f"{a.name} is {span} {b.name}", numbers, near)
    if not _seen(ratio, _floor(a, b)):
        return Judgement(NO_DIFFERENCE, f"{a.name} and {b.name} do not differ", numbers, near)
    expected_more = low * high > 1
    if (ratio.value > 1) != expected_more:
        return Judgement(REVERSED, "the difference has the other sign", numbers, near)
    return Judgement(CHANGED, f"{a.name} is not {span} {b.name}", numbers, near)


def equal(a: Measured, b: Measured, margin: float = 0.05) -> Judgement:
    """a and b are the same, within the margin or the A/A floor, whichever is larger."""
    problem = too_few(_rounds(a, b))
    if problem:
        return problem
    ratio = _ratio(a, b)
    width = max(margin, _floor(a, b))
    numbers = f"{a.name} {a.text()}, {b.name} {b.text()}; ratio {_times(ratio)}"
    low, high = ratio.interval or (ratio.value, ratio.value)
    bottom, top = 1 / (1 + width), 1 + width
    near = low < top < high or low < bottom < high
    if bottom <= ratio.value <= top:
        why = f"the two are equal within {units.percent(width)}"
        return Judgement(HOLDS, why, numbers, near)
    return Judgement(CHANGED, f"the two differ by more than {units.percent(width)}", numbers, near)


# ---- one value ----------------------------------------------------------------------------------


def _one(a: Measured) -> tuple[tuple[float, float | None, float | None], Judgement | None]:
    count = len(a.values)
    return a.median(), too_few(count)


def at_least(a: Measured, bound: float) -> Judgement:
    (value, low, high), problem = _one(a)
    if problem:
        return problem
    near = low is not None and high is not None and low < bound <= high
    line = units.text(bound, a.unit)
    if value >= bound:
        return Judgement(HOLDS, f"{a.name} is at least {line}", f"{a.name} {a.text()}", near)
    return Judgement(CHANGED, f"{a.name} is less than {line}", f"{a.name} {a.text()}", near)


def at_most(a: Measured, bound: float) -> Judgement:
    (value, low, high), problem = _one(a)
    if problem:
        return problem
    near = low is not None and high is not None and low <= bound < high
    line = units.text(bound, a.unit)
    if value <= bound:
        return Judgement(HOLDS, f"{a.name} is at most {line}", f"{a.name} {a.text()}", near)
    return Judgement(CHANGED, f"{a.name} is more than {line}", f"{a.name} {a.text()}", near)


def about(a: Measured, then: float, factor: float = 1.5) -> Judgement:
    """a is what it was then, up to `factor`."""
    (value, low, high), problem = _one(a)
    if problem:
        return problem
    numbers = f"{a.name} {a.text()} here, {units.text(then, a.unit)} then"
    lines = (then / factor, then * factor)
    near = low is not None and high is not None and any(low < line < high for line in lines)
    if lines[0] <= value <= lines[1]:
        return Judgement(HOLDS, f"within a factor of {factor:g} of then", numbers, near)
    times = units.text(max(value / then, then / value), "") if value > 0 else "many"
    word = "less" if value < then else "more"
    return Judgement(CHANGED, f"{times} times {word} than then", numbers, near)


def exists(a: Measured) -> Judgement:
    """It was seen at all, in every repetition."""
    if not a.values:
        return not_measured("no repetition")
    seen = sum(1 for value in a.values.values() if value > 0)
    numbers = f"{a.name}: seen in {seen} of {len(a.values)} repetitions"
    if seen == len(a.values):
        return Judgement(HOLDS, "it is there", numbers)
    return Judgement(CHANGED, "it is not there" if not seen else "not always", numbers, seen > 0)


Rule = Callable[..., Judgement]
RULES: dict[str, Rule] = {
    "faster": faster,
    "ratio_at_least": ratio_at_least,
    "ratio_between": ratio_between,
    "equal": equal,
    "flat": flat,
    "grows": grows,
    "linear": linear,
    "knee": knee,
    "at_least": at_least,
    "at_most": at_most,
    "about": about,
    "exists": exists,
}


def parameters(rule: str) -> tuple[list[str], list[str], list[str]]:
    """Of a rule: the names of its operands, of numbers it needs, of numbers it may be given."""
    hints = get_type_hints(RULES[rule])
    signature = inspect.signature(RULES[rule]).parameters
    operands = [name for name in signature if hints[name] is Measured]
    others = {name: p for name, p in signature.items() if name not in operands}
    needed = [name for name, p in others.items() if p.default is inspect.Parameter.empty]
    return operands, needed, [name for name in others if name not in needed]


def judge(rule: str, operands: Mapping[str, Measured], numbers: Mapping[str, Any]) -> Judgement:
    return RULES[rule](**operands, **numbers)
