"""The rules that judge claims: from measured values to a verdict and words with numbers.

A rule makes one number of each round and asks where the *reach* of these numbers lies
(quest/stats/reach.py): all of it on one side of the rule's line decides, else the verdict is "near
the line". The median alone decides nothing. Each rule is asked of the sessions of one processor;
what several processors say is put together afterwards. Repetitions that a mark speaks against are
not asked (quest/measure/usable.py); a session counts that has enough of the others.
"""

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from quest.spec.model import (
    CHANGED,
    DEPENDS,
    FASTER_NOW,
    HOLDS,
    LEAST,
    NEAR,
    NO_DIFFERENCE,
    NOT_JUDGED,
    NOT_MEASURED,
    REVERSED,
    UNDECIDED,
    VERDICTS,
)
from quest.stats import curves, estimates, units
from quest.stats.estimates import Estimate, Rounds
from quest.stats.reach import Reach, middle, reach, too_few, word

__all__ = [
    "CHANGED", "DEPENDS", "FASTER_NOW", "HOLDS", "NEAR", "NOT_JUDGED", "NOT_MEASURED", "NO_DIFFERENCE", "REVERSED",
    "UNDECIDED", "VERDICTS",
]  # fmt: skip
# All rules of a claim must hold: one that fails decides, whatever else is near its line.
WORST_FIRST = (NOT_MEASURED, REVERSED, CHANGED, FASTER_NOW, NO_DIFFERENCE, NOT_JUDGED, DEPENDS, NEAR, HOLDS)


@dataclass(frozen=True)
class Judgement:
    """A verdict (one of VERDICTS), why, and the numbers that were asked, in words."""

    verdict: str
    why: str
    numbers: str = ""
    usable: int = 0  # repetitions that were asked, of the operand that has the fewest
    repetitions: int = 0  # that there are, of the same operand
    sessions: int = 0  # with enough usable rounds, of the operand that has the fewest
    within: str = ""  # "within one session": too few sessions for a verdict of this book
    bars: bool = False  # what the other rules take for granted was not so

    @property
    def near_line(self) -> bool:
        """Whether the data lie on both sides of the line."""
        return self.verdict == NEAR


class Undecidable(Exception):
    """Too little is measured for any statement: why."""


class Spoilt(Undecidable):
    """Enough is measured, and not well enough: why."""


class Barred(Spoilt):
    """What the other rules of the claim take for granted was not so: why."""


@dataclass(frozen=True)
class Measured:
    """A metric of a variant in one session: one value a round, and the same for each x where x is a
    number.
    """

    name: str
    values: Rounds
    unit: str = ""
    better: str = ""
    points: Mapping[float, Rounds] = field(default_factory=dict)
    set: str = ""  # values of one set were taken in the same rounds and are compared in pairs
    repetitions: int = 0  # that there are; `values` and `points` are of those that are usable
    against: frozenset[str] = frozenset()  # the marks of the others
    # Name of an A/A pair of this metric -> round -> the logarithm of its ratio.
    twins: Mapping[str, Rounds] = field(default_factory=dict)
    held_back: bool = False  # some values are of a client at its limit: the server could have done more

    def median(self) -> Estimate:
        """With its interval, in `unit`."""
        return estimates.median_with_interval(list(self.values.values()))


#: An operand on one processor: what each session has measured of it.
Sessions = Sequence[Measured]


def combine(judgements: Sequence[Judgement]) -> Judgement:
    """All rules of a claim must hold, on one processor."""

    def joined(texts: Iterable[str]) -> str:
        return "; ".join(dict.fromkeys(text for text in texts if text))

    judgements = [judgement for judgement in judgements if judgement.bars] or judgements
    verdict = min((j.verdict for j in judgements), key=WORST_FIRST.index)
    fewest = min(judgements, key=lambda j: (j.usable, -j.repetitions))
    return Judgement(
        verdict,
        joined(j.why for j in judgements if verdict == HOLDS or j.verdict != HOLDS),
        joined(j.numbers for j in judgements),
        fewest.usable,
        fewest.repetitions,
        min(j.sessions for j in judgements),
        joined(j.within for j in judgements),
    )


def over_processors(judgements: Mapping[str, Judgement]) -> Judgement:
    """The verdict of a claim from that on each processor, by its name; `within`, if the sessions
    are too few, says of how many it is.
    """
    within = too_few([judgement.sessions for judgement in judgements.values()])
    if len(judgements) == 1:
        return replace(next(iter(judgements.values())), within=within)

    def each(what: Callable[[Judgement], str]) -> str:
        return "; ".join(f"{name}: {text}" for name, j in judgements.items() if (text := what(j)))

    return Judgement(
        word({name: judgement.verdict for name, judgement in judgements.items()}),
        each(lambda j: j.why),
        each(lambda j: j.numbers),
        min(j.usable for j in judgements.values()),
        min(j.repetitions for j in judgements.values()),
        min(j.sessions for j in judgements.values()),
        within,
    )


#: What a smoke run has of everything.
TOO_FEW = "too few repetitions"


def _counted(sessions: Sequence[Rounds]) -> list[list[float]]:
    """The numbers of the sessions that have enough rounds. Undecidable if none has."""
    if not estimates.AVAILABLE:
        raise Undecidable("SciPy is not installed")
    counted = [list(rounds.values()) for rounds in sessions if len(rounds) >= LEAST]
    if not counted:
        count = max(map(len, sessions), default=0)
        raise Undecidable(f"{TOO_FEW}: {count}, and {LEAST} are needed")
    return counted


def _reach(sessions: Sequence[Rounds]) -> Reach:
    return reach(_counted(sessions))


def _beside(reached: Reach, low: float, high: float, fails: str = CHANGED) -> str:
    """HOLDS if all of it lies between two lines, `fails` if none of it does."""
    if reached.within(low, high):
        return HOLDS
    return fails if reached.outside(low, high) else NEAR


ACROSS = "the interval lies across the line"


def _said(verdict: str, holds: str, fails: str) -> str:
    return {HOLDS: holds, NEAR: f"not decided: {ACROSS}"}.get(verdict, fails)


# ---- words for numbers ---------------------------------------------------------------------------


def _medians(a: Sessions) -> Reach:
    """Of the values themselves; of fewer than LEAST without an interval."""
    return reach([list(one.values.values()) for one in a if one.values])


def _text(a: Sessions) -> str:
    """The median as a reader wants it."""
    found, enough = _medians(a), any(len(one.values) >= LEAST for one in a)
    ends = (found.low, found.high) if enough else ()
    return units.text(found.median, a[0].unit, *ends)


def _interval(found: Reach, unit: str) -> str:
    """`41 µs (40–43 µs)`, with each session's median where there are several."""
    value, low, high, sessions = found
    text, interval = units.text(value, unit, low, high), units.interval(value, unit, low, high)
    shown = [interval] if interval and interval != text else []
    if len(sessions) > 1:
        shown.append("sessions " + ", ".join(units.text(session, unit, low, high) for session in sessions))
    return f"{text} ({'; '.join(shown)})" if shown else text


# ---- two values ----------------------------------------------------------------------------------

SAME = 0.05  #: two that differ by less are called the same where a rule asked for more


def log_ratio(a: float, b: float) -> float:
    """The logarithm of a/b. To nothing everything is infinite, and nothing to nothing is 1.
    Undecidable of a number below 0.
    """
    if min(a, b) < 0:
        raise Undecidable("no ratio of a number below 0")
    if a == b:
        return 0.0
    if min(a, b) == 0:
        return math.inf if a > b else -math.inf
    return math.log(a / b)


def paired(a: Measured, b: Measured) -> dict[int, float]:
    """Of each round that both have the logarithm of a/b. What is of different sets shares no round:
    there the first goes with the first, and so on.
    """
    if a.set and a.set == b.set:
        return {n: log_ratio(a.values[n], b.values[n]) for n in sorted(set(a.values) & set(b.values))}
    in_order = zip(a.values.values(), b.values.values(), strict=False)
    return dict(enumerate(log_ratio(x, y) for x, y in in_order))


def _compared(a: Sessions, b: Sessions, less_is_more: bool = False) -> tuple[Reach, str]:
    """The reach of log(a/b), or of log(b/a), and in words."""
    pairs = ((y, x) if less_is_more else (x, y) for x, y in zip(a, b, strict=True))
    found = _reach([paired(over, under) for over, under in pairs])
    return found, f"{a[0].name} {_text(a)}, {b[0].name} {_text(b)}; ratio {_times(found)}"


def _times(found: Reach) -> str:
    """Of a logarithm: `1.86 times (1.71–1.99)`, with three digits, so that an end and a line can be told apart."""

    def text(logarithm: float) -> str:
        ratio = math.exp(min(logarithm, 700.0))
        return units.number(ratio, 3, units.decimals(ratio, 3)) if logarithm < math.inf else "∞"

    ends = list(dict.fromkeys(map(text, (found.low, found.high))))
    shown = ["–".join(ends)] if ends != [text(found.median)] else []
    if len(found.sessions) > 1:
        shown.append("sessions " + ", ".join(map(text, found.sessions)))
    return f"{text(found.median)} times" + (f" ({'; '.join(shown)})" if shown else "")


def _exp(logarithm: float) -> float:
    return math.exp(logarithm) if logarithm < 700 else math.inf


def faster(a: Sessions, b: Sessions, min_effect: float = 0.05) -> Judgement:
    """a is faster than b by at least `min_effect`: higher or lower, as "better" of the metric says."""
    gain, numbers = _compared(a, b, less_is_more=a[0].better != "higher")
    least = math.log(1 + min_effect)
    verdict, why = NEAR, "not decided: the interval holds both a difference that counts and one that does not"
    if gain.within(-least, least):
        verdict, why = NO_DIFFERENCE, f"the two differ by less than {units.percent(min_effect)}"
    for sign, word_of, first, second in ((1, HOLDS, a, b), (-1, REVERSED, b, a)):
        enough = sign * gain.median >= least - EXACTLY
        if enough and min(sign * gain.low, sign * gain.high) > 0:
            verdict, why = word_of, f"{first[0].name} is faster than {second[0].name}"
    return Judgement(verdict, why, numbers)


EXACTLY = 1e-9


def _how_it_fails(found: Reach, expected: int) -> str:
    """`expected`: the sign of the logarithm that the rule asks for; 0 if it asks for none, or allows 1."""
    if expected and found.within(-math.log1p(SAME), math.log1p(SAME)):
        return NO_DIFFERENCE
    other_sign = found.high < 0 if expected > 0 else found.low > 0
    return REVERSED if expected and other_sign else CHANGED


FAILS = {NO_DIFFERENCE: "{a} and {b} do not differ", REVERSED: "the difference has the other sign"}


def ratio_at_least(a: Sessions, b: Sessions, bound: float) -> Judgement:
    """a is at least `bound` times b."""
    found, numbers = _compared(a, b)
    verdict = _beside(found, math.log(bound), math.inf, _how_it_fails(found, int(bound >= 1)))
    names = {"a": a[0].name, "b": b[0].name}
    fails = FAILS.get(verdict, "{a} is less than {bound:g} times {b}").format(**names, bound=bound)
    return Judgement(verdict, _said(verdict, f"{a[0].name} is at least {bound:g} times {b[0].name}", fails), numbers)


def exceeds(a: Sessions, b: Sessions, bound: float) -> Judgement:
    """a is at least `bound` times b, by a bound from below: repetitions of a in which the client was at its limit are
    asked too, as a could only have been more; so where some were and it is not, nothing is judged.
    """
    judgement = ratio_at_least(a, b, bound)
    if judgement.verdict != HOLDS and any(one.held_back for one in a):
        raise Spoilt(f"the client was at its limit, and saw too little for a word: {judgement.numbers}")
    return judgement


def ratio_between(a: Sessions, b: Sessions, low: float, high: float) -> Judgement:
    """a is `low` to `high` times b: for "nearly half", "about twice"."""
    found, numbers = _compared(a, b)
    sign = (low > 1) - (high < 1)
    verdict = _beside(found, math.log(low), math.log(high), _how_it_fails(found, sign))
    span = f"{low:g} to {high:g} times"
    fails = FAILS.get(verdict, "{a} is not {span} {b}").format(a=a[0].name, b=b[0].name, span=span)
    return Judgement(verdict, _said(verdict, f"{a[0].name} is {span} {b[0].name}", fails), numbers)


def equal(a: Sessions, b: Sessions, margin: float = 0.05) -> Judgement:
    """a and b are the same, within `margin`; not judged where an A/A pair of the metric is not."""
    found, numbers = _compared(a, b)
    width, least = units.percent(margin), math.log(1 + margin)
    for name in dict.fromkeys(name for one in a for name in one.twins):
        own = [one.twins.get(name, {}) for one in a]
        if any(len(rounds) >= LEAST for rounds in own) and not _reach(own).within(-least, least):
            raise Spoilt(f"{name} differs from itself: {_times(_reach(own))}")
    verdict = _beside(found, -least, least)
    return Judgement(
        verdict, _said(verdict, f"the two are equal within {width}", f"the two differ by more than {width}"), numbers
    )


# ---- one value -----------------------------------------------------------------------------------


def _beside_line(a: Sessions, bound: float, low: float, high: float, holds: str, fails: str) -> Judgement:
    found = _reach([one.values for one in a])
    verdict = _beside(found, low, high)
    line = units.text(bound, a[0].unit)
    why = _said(verdict, f"{a[0].name} is {holds} {line}", f"{a[0].name} is {fails} {line}")
    return Judgement(verdict, why, f"{a[0].name} {_interval(found, a[0].unit)}")


def at_least(a: Sessions, bound: float) -> Judgement:
    """a is not below `bound`."""
    return _beside_line(a, bound, bound, math.inf, "at least", "less than")


def at_most(a: Sessions, bound: float) -> Judgement:
    """a is not above `bound`."""
    return _beside_line(a, bound, -math.inf, bound, "at most", "more than")


def about(a: Sessions, then: float, factor: float = 1.5) -> Judgement:
    """a is what it was then, within `factor`."""
    return _within(a, then, factor, "then")


def speed(a: Sessions, then: float, factor: float = 1.5) -> Judgement:
    """a is as fast as it was then, within `factor`; where all of it is faster, the word is that it is faster now."""
    judgement = _within(a, then, factor, "then")
    gained = (_medians(a).median > then) == (a[0].better == "higher")
    return replace(judgement, verdict=FASTER_NOW) if judgement.verdict == CHANGED and gained else judgement


def expected(a: Sessions, value: float, factor: float = 1.5) -> Judgement:
    """a is what the claim's own words make one expect, within `factor`, where the source has no number."""
    return _within(a, value, factor, "expected")


def _within(a: Sessions, line: float, factor: float, what: str) -> Judgement:
    found = _reach([{n: log_ratio(value, line) for n, value in one.values.items()} for one in a])
    verdict = _beside(found, -math.log(factor), math.log(factor))
    values = _interval(_medians(a), a[0].unit)
    times = units.text(_exp(abs(found.median)), "") if math.isfinite(found.median) else "many"
    fails = f"{times} times {'less' if found.median < 0 else 'more'} than {what}"
    numbers = f"{a[0].name} {values} here, {units.text(line, a[0].unit)} {what}"
    return Judgement(verdict, _said(verdict, f"within a factor of {factor:g} of {what}", fails), numbers)


def provided(a: Sessions, bound: float = 0) -> Judgement:
    """What the other rules take for granted: a is at most `bound` in every repetition; else the claim is not judged."""
    most = max((value for one in a for value in one.values.values()), default=math.inf)
    if most == math.inf:
        raise Undecidable("no repetition")
    if most > bound:
        line = units.text(bound, a[0].unit)
        raise Barred(f"{a[0].name} is {units.text(most, a[0].unit)}, and at most {line} was taken for granted")
    return Judgement(HOLDS, "", f"{a[0].name} at most {units.text(most, a[0].unit)}")


def exists(a: Sessions) -> Judgement:
    """a is more than 0 in every repetition."""
    values = [value for one in a for value in one.values.values()]
    if not values:
        raise Undecidable("no repetition")
    seen = sum(1 for value in values if value > 0)
    numbers = f"{a[0].name}: seen in {seen} of {len(values)} repetitions"
    if 0 < seen < len(values):
        return Judgement(NEAR, "not decided: not always", numbers)
    return Judgement(HOLDS, "it is there", numbers) if seen else Judgement(CHANGED, "it is not there", numbers)


# ---- growth over x -------------------------------------------------------------------------------


def _curves(a: Sessions, least: int, up_to: float = math.inf) -> tuple[list[float], list[dict[int, list[float]]]]:
    """The x that all sessions have, none above `up_to`, and of each session with enough rounds round -> its curve."""
    xs = sorted(x for x in set.intersection(*(set(one.points) for one in a)) if x <= up_to)
    if not xs:
        raise Undecidable("no points over x")
    if len(xs) < least:
        raise Undecidable(f"too few points over x: {len(xs)}, and {least} are needed")
    sessions = []
    for one in a:
        rounds = sorted(set.intersection(*(set(one.points[x]) for x in xs)))
        sessions.append({n: [one.points[x][n] for x in xs] for n in rounds})
    _counted([dict.fromkeys(session, 0.0) for session in sessions])
    return xs, [session for session in sessions if len(session) >= LEAST]


def _points(
    a: Sessions, every: Sequence[float], xs: Iterable[float], sessions: Sequence[Mapping[int, Sequence[float]]]
) -> str:
    """`it: 99.9 µs at 0, 2.0 ms at 1900`, of these of every x."""

    def at(x: float) -> str:
        values = middle([middle([curve[every.index(x)] for curve in session.values()]) for session in sessions])
        return f"{units.text(values, a[0].unit)} at {x:g}"

    return f"{a[0].name}: {', '.join(map(at, xs))}"


def flat(a: Sessions, tolerance: float = 0.25, up_to: float = math.inf) -> Judgement:
    """a does not depend on x: its largest is no more than `tolerance` above its smallest, of all x that are not above
    `up_to`.
    """
    xs, sessions = _curves(a, curves.LEAST_X, up_to)
    every = [curve for session in sessions for curve in session.values()]
    if min(map(min, every)) <= 0:
        raise Undecidable("no ratio of a number that is not above 0")
    width, limit = units.percent(tolerance), math.log(1 + tolerance)
    found = curves.spread([[*session.values()] for session in sessions])
    middles = [middle([middle([c[i] for c in s.values()]) for s in sessions]) for i in range(len(xs))]
    low, high = middles.index(min(middles)), middles.index(max(middles))
    numbers = _points(a, xs, dict.fromkeys((xs[0], xs[low], xs[high], xs[-1])), sessions)
    ratio = f"{units.text(found.value, '')} times, at most {units.text(found.upper, '')}"
    numbers += f"; largest over smallest {ratio}"
    if found.upper <= 1 + tolerance + EXACTLY:
        return Judgement(HOLDS, f"it varies by less than {width}", numbers)
    for i, j in ((high, low), *((i, j) for i in range(len(xs)) for j in range(len(xs)) if i != j)):
        if middles[i] <= middles[j] * (1 + tolerance):
            continue
        apart = reach([[math.log(curve[i] / curve[j]) for curve in s.values()] for s in sessions])
        if apart.low > limit + EXACTLY:
            how = f"at {xs[i]:g} it is {_times(apart)} what it is at {xs[j]:g}"
            return Judgement(CHANGED, how, numbers)
    return Judgement(NEAR, f"not decided: it varies by about {width}, or too much from round to round", numbers)


def grows(a: Sessions, at_least: float = 1.25) -> Judgement:
    """a grows with x, at least `at_least`-fold from end to end."""
    xs, sessions = _curves(a, 2)
    found = _reach([{n: log_ratio(curve[-1], curve[0]) for n, curve in session.items()} for session in sessions])
    verdict = _beside(found, math.log(at_least), math.inf, REVERSED if found.high < 0 else CHANGED)
    fails = "it falls" if verdict == REVERSED else f"it rises by less than {units.percent(at_least - 1)}"
    numbers = f"{_points(a, xs, (xs[0], xs[-1]), sessions)}; last over first {_times(found)}"
    return Judgement(verdict, _said(verdict, "it grows", fails), numbers)


def linear(a: Sessions, low: float = 0.8, high: float = 1.25) -> Judgement:
    """a grows in proportion to x: as x to the power of `low` to `high`, in the upper half of the points."""
    xs, sessions = _curves(a, curves.LEAST_X)
    if min(xs[-curves.LEAST_X], *(min(curve) for session in sessions for curve in session.values())) <= 0:
        raise Undecidable("no power of a number that is not above 0")
    found = _reach([{n: curves.exponent(xs, curve) for n, curve in session.items()} for session in sessions])
    verdict = _beside(found, low, high)
    fails = f"it grows {'less' if found.median < low else 'more'} than in proportion"
    numbers = f"{_points(a, xs, (xs[0], xs[-1]), sessions)}; as x to the power of {_interval(found, '')}"
    return Judgement(verdict, _said(verdict, "it grows in proportion", fails), numbers)


# ---- all of them ---------------------------------------------------------------------------------

RULES: dict[str, Callable[..., Judgement]] = {
    rule.__name__: rule
    for rule in (
        faster, ratio_at_least, exceeds, ratio_between, equal, flat, grows, linear, at_least, at_most, about, speed,
        expected, exists, provided,
    )
}  # fmt: skip
OVER_X = ("flat", "grows", "linear")
#: Rule -> an operand of which repetitions with the client at its limit are asked, too.
FROM_BELOW = {"exceeds": "a"}


def parameters(rule: str) -> tuple[list[str], list[str], dict[str, float]]:
    """Of a rule: its operands, the numbers it needs, those it may be given with their defaults."""
    signature = inspect.signature(RULES[rule]).parameters.items()
    operands = [name for name, p in signature if p.annotation == Sessions]
    defaults = {name: p.default for name, p in signature if p.default is not p.empty}
    needed = [name for name, _ in signature if name not in (*operands, *defaults)]
    return operands, needed, defaults


# ---- which repetitions a rule may ask ------------------------------------------------------------

# The smallest effect a rule asks about. A line has none: there a repetition counts that others took
# less from than makes it `noisy` (measure/noise.py).
EFFECTS: dict[str, Callable[[Mapping[str, float]], float]] = {
    "faster": lambda n: n["min_effect"],
    "ratio_at_least": lambda n: max(n["bound"], 1 / n["bound"]) - 1,
    "exceeds": lambda n: max(n["bound"], 1 / n["bound"]) - 1,
    "ratio_between": lambda n: math.sqrt(n["high"] / n["low"]) - 1,
    "equal": lambda n: n["margin"],
    "flat": lambda n: n["tolerance"],
    "grows": lambda n: n["at_least"] - 1,
    "about": lambda n: n["factor"] - 1,
    "speed": lambda n: n["factor"] - 1,
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


def judge(rule: str, operands: Mapping[str, Measured | Sessions], numbers: Mapping[str, float]) -> Judgement:
    """A rule of RULES by its name, with its operands and numbers, on one processor: each operand in
    one session, or in several.
    """
    sessions = {key: [a] if isinstance(a, Measured) else [*a] for key, a in operands.items()}
    asked = partial(_asked, rule in OVER_X)
    counts = [(sum(map(asked, a)), sum(max(one.repetitions, asked(one)) for one in a)) for a in sessions.values()]
    usable, count = min(counts, default=(0, 0))
    enough = min((sum(asked(one) >= LEAST for one in a) for a in sessions.values()), default=0)
    try:
        judgement = RULES[rule](**sessions, **numbers)
    except Spoilt as why:
        judgement = Judgement(NOT_JUDGED, str(why), bars=isinstance(why, Barred))
    except Undecidable as why:
        judgement = Judgement(NOT_MEASURED, str(why))
        against = sorted(frozenset().union(*(one.against for a in sessions.values() for one in a)))
        if against and count >= LEAST:
            marks = ", ".join(against)
            judgement = Judgement(NOT_JUDGED, f"the data is {marks} ({usable} of {count} usable)")
    return replace(judgement, usable=usable, repetitions=count, sessions=enough, within=too_few([enough]))


def _asked(over_x: bool, a: Measured) -> int:
    """How many rounds: over x at the x that has the fewest."""
    return min(map(len, a.points.values())) if over_x and a.points else len(a.values)
