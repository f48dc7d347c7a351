"""Rules about growth: flat, growing, linear, with a knee. See rules.py."""

from harness import statistics, units
from harness.judgement import (
    CHANGED,
    HOLDS,
    REVERSED,
    Judgement,
    Measured,
    not_measured,
    too_few,
)
from harness.statistics import Growth


def _growth(a: Measured, tolerance: float) -> Growth | Judgement:
    counts = [len(rounds) for rounds in a.points.values()]
    problem = too_few(*counts) if counts else not_measured("no points over x")
    if problem:
        return problem
    growth = statistics.growth(a.points, tolerance)
    if growth is None:
        return not_measured(
            f"too few points over x: {len(counts)}, and {statistics.LEAST_X} are needed"
        )
    return growth


def _rise_text(a: Measured, growth: Growth) -> str:
    xs = sorted(a.points)
    rise = units.text(growth.rise, "", growth.rise_low, growth.rise_high)
    interval = units.interval(growth.rise, "", growth.rise_low, growth.rise_high)
    start, end = (statistics.median(list(a.points[x].values())) for x in (xs[0], xs[-1]))
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
