"""The rules that judge claims: pure functions from measured values to a verdict and words with
numbers. Those about growth are in shapes.py.

A rule says "holds" only if the data show it beyond doubt and beyond the A/A floor; where an
interval lies across the line, the median decides and the judgement is marked as near the line.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

from harness import statistics, units
from harness.judgement import (
    CHANGED,
    HOLDS,
    NO_DIFFERENCE,
    REVERSED,
    Judgement,
    Measured,
    not_measured,
    too_few,
)
from harness.shapes import flat, grows, knee, linear
from harness.statistics import DIFFERENT, Ratio

# ---- comparing two ------------------------------------------------------------------------------


def _ratio(a: Measured, b: Measured) -> Ratio:
    if a.set and a.set == b.set:
        return statistics.paired_ratio(a.values, b.values)
    return statistics.unpaired_ratio(list(a.values.values()), list(b.values.values()))


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
