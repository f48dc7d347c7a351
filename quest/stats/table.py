"""The table of numbers: all that was measured in one finished set, analysed once (analysis.py).

Figures, book, deck, claims, `compare`, `tables`, the end of a measurement and the labs read this
table and no result file. A row, `Measurement`, is one metric of one series at one x: its median
over the repetitions with its interval, its marks, and the value of each round, since ratios pair
rounds and claims leave out what a mark speaks against.

A *series* is a variant; where a sweep has parameters beside x, each combination is a series of its
own, called `variant,size=1024`. All values are in the unit of their metric (`Metric.unit`).
"""

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from quest.measure.usable import NOISY
from quest.spec.coherence import split_operand
from quest.spec.model import AA, Derived, Experiment, Value, x_text
from quest.stats import estimates, units

ENDS = {"first": slice(0, 1), "last": slice(-1, None)}


@dataclass(frozen=True)
class Number:
    """A median, in `unit`, with its interval if there are repetitions enough for one.

    `count`: how many repetitions it rests on; `marks`: of any of them.
    """

    value: float
    low: float | None = None
    high: float | None = None
    unit: str = ""
    count: int = 0
    marks: tuple[str, ...] = ()

    def text(self) -> str:
        """As a reader wants it: `41 µs`."""
        return units.text(self.value, self.unit, self.low, self.high)

    def interval(self) -> str:
        """`40–43 µs`, or "" without an interval."""
        return units.interval(self.value, self.unit, self.low, self.high)

    def with_interval(self) -> str:
        """`41 µs (40–43 µs)`; the value alone where the interval says no more."""
        text, interval = self.text(), self.interval()
        return f"{text} ({interval})" if interval and interval != text else text


@dataclass(frozen=True)
class Measurement:
    """One metric of one series at one x, or (x is None) over whole repetitions.

    `rounds`: round -> the value of that repetition. `least` and `p99` are of all single samples,
    p99 from 100 of them on. `taken` and `spoilt` have the rounds that a mark speaks against: the
    share (0 to 1) of the processors that others took, and the mark that makes the value worthless
    (quest/measure/usable.py).
    """

    x: Value | None
    number: Number
    rounds: Mapping[int, float]
    least: float | None = None
    p99: float | None = None
    taken: Mapping[int, float] = field(default_factory=dict)
    spoilt: Mapping[int, str] = field(default_factory=dict)

    def unusable(self, allowed: float, forgiven: str = "") -> dict[int, str]:
        """Round -> the mark against it, where others may have taken the share `allowed`, but for one mark."""
        noisy = {n: NOISY for n, share in self.taken.items() if share > allowed}
        return noisy | {n: mark for n, mark in self.spoilt.items() if mark != forgiven}

    def usable_rounds(self, allowed: float | None, forgiven: str = "") -> dict[int, float]:
        """Round -> value, without those that a mark speaks against, but for one mark; None: all of them."""
        against = {} if allowed is None else self.unusable(allowed, forgiven)
        return {n: value for n, value in self.rounds.items() if n not in against}


@dataclass(frozen=True)
class Series:
    """One metric of one series: its points in ascending x, and all x together."""

    points: tuple[Measurement, ...]
    overall: Measurement | None

    def at(self, x: Value) -> Measurement | None:
        """An x of its own may be called "first" or "last"; else these are the ends."""
        same = self._by_text.get(x_text(x))
        ends = self.points[ENDS[str(x)]] if same is None and x in ENDS else ()
        return ends[0] if ends else same

    @cached_property
    def _by_text(self) -> dict[str, Measurement]:
        return {x_text(point.x): point for point in self.points if point.x is not None}


@dataclass(frozen=True)
class Attempts:
    """How often a variant was tried at one x (as text, "" without), and how often it failed."""

    variant: str
    x: str
    count: int
    failed: int


@dataclass(frozen=True)
class Run:
    """What is known of a set as a whole.

    `footer` names it in one line; `environment`: what `env.KEY` prints, "" where unknown;
    `marks`: mark -> how many repetitions have it; `settings`: parameter -> its values;
    `skips`: (variant, reason); `given_up`: variants that failed too often to go on with. `judge`,
    `claims` and `session` as in the `run` line, empty in old sets; `digest`: the check sum of the
    last line, which is one of the whole set.
    """

    experiment: str
    started: str
    footer: str
    finished: bool
    rounds: int
    repetitions: int
    environment: Mapping[str, str]
    marks: Mapping[str, int] = field(default_factory=dict)
    settings: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    attempts: tuple[Attempts, ...] = ()
    given_up: tuple[str, ...] = ()
    skips: tuple[tuple[str, str], ...] = ()
    judge: str = ""
    claims: Mapping[str, str] = field(default_factory=dict)
    session: str = ""
    digest: str = ""

    @property
    def half_noisy(self) -> bool:
        """So many repetitions that a page warns of its numbers; of a few their own marks tell."""
        return 2 * self.marks.get(NOISY, 0) >= self.repetitions > 0

    def failed(self, variant: str, x: str = "") -> str:
        """`failed 8 of 10`, or `failed 3 of 3 and was given up`; "" if it never did. At this x, or at all x."""
        tries = [each for each in self.attempts if each.variant == variant and x in ("", each.x)]
        if not (count := sum(each.failed for each in tries)):
            return ""
        after = " and was given up" if variant in self.given_up else ""
        return f"failed {count} of {sum(each.count for each in tries)}{after}"

    @property
    def failures(self) -> dict[str, str]:
        """Each variant that has failed -> how often, in words."""
        return {name: text for name in dict.fromkeys(a.variant for a in self.attempts) if (text := self.failed(name))}


Columns = Mapping[str, list[Value | None]]


@dataclass(frozen=True)
class Raw:
    """What figures draw as it came.

    `samples`: series -> the columns of its first repetition, where x is a column, in the metrics'
    units; `distributions`: (series, x) -> lower edge of a latency bucket in ns -> how many requests
    fell into it, in all rounds; `timeline`: the columns of the trace in which A waited least.
    """

    samples: Mapping[str, Columns] = field(default_factory=dict)
    distributions: Mapping[tuple[str, str], Mapping[float, int]] = field(default_factory=dict)
    timeline: Columns = field(default_factory=dict)


@dataclass(frozen=True)
class NumberTable:
    """One set, analysed. `series`: name of the series -> metric -> its rows, in the order of the
    experiment; `derived`: key of a [[number]] -> its value; `noise_floors`: metric -> the share by
    which A/A pairs differ at most; `scalars`: of a trace, which has no metrics.
    """

    experiment: Experiment
    origin: str
    run: Run
    series: Mapping[str, Mapping[str, Series]]
    derived: Mapping[str, Number] = field(default_factory=dict)
    noise_floors: Mapping[str, float] = field(default_factory=dict)
    scalars: Mapping[str, Number] = field(default_factory=dict)
    raw: Raw = field(default_factory=Raw)

    @cached_property
    def plain_series(self) -> list[str]:
        """The names of the series without the second halves of A/A pairs."""
        return [name for name in self.series if not name.partition(",")[0].endswith(AA)]

    @cached_property
    def measured_series(self) -> list[str]:
        """The names of the series with any number."""
        return [
            name
            for name, metrics in self.series.items()
            if any(s.points or s.overall for s in metrics.values())
            or any(key.startswith(f"{name}.") for key in self.scalars)
        ]

    def title(self, series: str) -> str:
        """How the experiment calls a series."""
        return self.experiment.title_of(series)

    def row(self, operand: str, at: Value | None = None) -> Measurement | None:
        """The row of `variant.metric`, `variant.metric@x`, `@first` or `@last`; None if that has
        no data. `at`, if given, is the x in place of the operand's.
        """
        name, metric, x = split_operand(operand)
        series = self.series.get(name, {}).get(metric)
        if series is None:
            return None
        wanted: Value = x if at is None else at
        with contextlib.suppress(ValueError):
            wanted = float(wanted)
        return series.overall if wanted == "" else series.at(wanted)

    @cached_property
    def numbers(self) -> dict[str, Number]:
        """All numbers that prose can name, by key, without the experiment's id.

        `...@100` for each x, `...@first` and `...@last`, which do not depend on the profile;
        `floor.<metric>`: the noise floor in per cent.
        """
        by_key = dict(self._measured())
        by_key |= self.derived
        for metric, share in self.noise_floors.items():
            by_key[f"floor.{metric}"] = Number(share * 100, unit="%")
        return by_key | dict(self.scalars)

    def _measured(self) -> Iterator[tuple[str, Number]]:
        for name, metrics in self.series.items():
            for metric, series in metrics.items():
                key = f"{name}.{metric}"
                if series.overall:
                    yield key, series.overall.number
                points = [point for point in series.points if point.x is not None]
                for point in points:
                    yield f"{key}@{x_text(point.x)}", point.number
                for word, ends in ENDS.items():
                    for end in points[ends]:
                        yield f"{key}@{word}", end.number
                        if isinstance(end.x, int | float):
                            yield f"{key}@{word}-x", Number(float(end.x))

    def noise_floor(self, metric: str, x: Value | None = None) -> float | None:
        """The share (0.05: 5 %) by which an A/A pair differs in a metric at x; without x, or where
        none was run there, the largest of any pair. None without a pair.
        """
        floors = (
            estimates.noise_floor(first.rounds, second.rounds)
            for name in self.plain_series
            for first, second in self._pairs(name, metric, x)
        )
        return max((f for f in floors if f is not None and math.isfinite(f)), default=None)

    def _pairs(self, name: str, metric: str, x: Value | None) -> list[tuple[Measurement, Measurement]]:
        """The two halves of an A/A pair, at x or wherever both were run."""
        variant, comma, params = name.partition(",")
        second = self.series.get(f"{variant}{AA}{comma}{params}", {}).get(metric)
        first = self.series[name].get(metric)
        if first is None or second is None:
            return []
        if not (self.experiment.axis and self.experiment.axis.parameter):
            both = first.overall, second.overall
            return [(both[0], both[1])] if both[0] and both[1] else []
        if x is not None and (a := first.at(x)) and (b := second.at(x)):
            return [(a, b)]
        return [(p, q) for q in second.points if (p := first.at(q.x or 0)) is not None]

    def twins(self, metric: str, x: Value | None, allowed: float) -> dict[str, dict[int, float]]:
        """Of each A/A pair of a metric, by the title of its series: round -> the logarithm of its ratio, at x; without
        x, or where none was run there, over all x. Of rounds in which others took no more than the share `allowed`.
        """
        found = {}
        for name in self.plain_series:
            variant, comma, params = name.partition(",")
            first = self.series[name].get(metric)
            second = self.series.get(f"{variant}{AA}{comma}{params}", {}).get(metric)
            if not first or not second:
                continue
            halves = (first.at(x), second.at(x)) if x is not None else (None, None)
            a, b = halves if all(halves) else (first.overall, second.overall)
            if a and b:
                one, other = a.usable_rounds(allowed), b.usable_rounds(allowed)
                both = sorted(n for n in set(one) & set(other) if one[n] > 0 and other[n] > 0)
                found[self.title(name)] = {n: math.log(one[n] / other[n]) for n in both}
        return found

    def derive(self, wanted: Derived, allowed: float | None = None) -> Number | None:
        """A [[number]] of the experiment; None if a part of it was not measured.

        With `allowed` only of rounds in which others took no more than this share.
        """
        rows = [row for o in wanted.operands if (row := self.row(o, wanted.at))]
        rounds = [row.usable_rounds(allowed) for row in rows]
        if len(rows) < len(wanted.operands) or not all(rounds):
            return None
        values, *others = rounds
        common = set(values).intersection(*others)
        if not common:
            return None
        estimate = _combined(wanted, values, others, sorted(common))
        if estimate is None:
            return None
        return Number(*estimate, wanted.unit, len(common), all_marks(row.number for row in rows))


def _combined(
    wanted: Derived,
    values: Mapping[int, float],
    others: list[dict[int, float]],
    common: list[int],
) -> estimates.Estimate | None:
    scale = wanted.scale
    if wanted.operation == "ratio":
        ratio = estimates.paired_ratio(values, others[0])
        estimate = estimates.Estimate(ratio.value, ratio.low, ratio.high)
        if not math.isfinite(ratio.value):
            return None
    elif wanted.operation == "difference":
        # Scaled before the median is taken: the last digit of what was published depends on it.
        return estimates.median_with_interval([(values[r] - others[0][r]) * scale for r in common])
    else:
        estimate = estimates.median_with_interval(list(values.values()))
    value, low, high = estimate
    if wanted.operation == "inverse":
        if 0 in estimate:
            return None
        value, low, high = 1 / value, high and 1 / high, low and 1 / low
    return estimates.Estimate(
        value * scale, None if low is None else low * scale, None if high is None else high * scale
    )


def all_marks(numbers: Iterable[Number]) -> tuple[str, ...]:
    """The marks of several numbers, each once, sorted."""
    return tuple(sorted({mark for number in numbers for mark in number.marks}))
