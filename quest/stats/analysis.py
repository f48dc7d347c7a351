"""From raw repetitions to series: for each x one value a round, and all raw values beside.

A series belongs to one variant and one metric. Where a sweep has parameters beside x, each
combination is a series of its own, called `variant,size=1024`.
"""

import contextlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import repeat
from typing import Any

from quest.measure import usable
from quest.measure.records import Record, ResultSet
from quest.spec.coherence import split_operand
from quest.spec.model import AA, NO_ERROR, Axis, Derived, Experiment, Metric, Value, x_text
from quest.stats import estimates, units
from quest.stats.estimates import median, percentile


def jain(values: Sequence[float]) -> float:
    """Jain's index of fairness: 1 if all have the same, 1/n if one of n has everything."""
    squares = math.fsum(value * value for value in values)
    # Where nobody has anything, all have the same.
    return math.fsum(values) ** 2 / (len(values) * squares) if squares else 1.0


REDUCTIONS: dict[str, Callable[[Sequence[float]], float]] = {
    "median": median,
    "min": min,
    "max": max,
    "p90": lambda values: percentile(values, 90),
    "p99": lambda values: percentile(values, 99),
    "sum": math.fsum,
    "jain": jain,
}


@dataclass
class Point:
    """`values`: round -> what that repetition gave at this x; `raw`: every single sample.

    `taken` and `spoilt`: of rounds that a mark speaks against, as in usable.py.
    """

    x: Value | None
    values: dict[int, float] = field(default_factory=dict)
    raw: list[float] = field(default_factory=list)
    marks: set[str] = field(default_factory=set)
    taken: dict[int, float] = field(default_factory=dict)
    spoilt: dict[int, str] = field(default_factory=dict)

    def unusable(self, allowed: float) -> dict[int, str]:
        """Round -> the mark, where others may have taken no more than this share."""
        noisy = {n: usable.NOISY for n, share in self.taken.items() if share > allowed}
        return noisy | self.spoilt

    def usable(self, allowed: float) -> "Point":
        """With those rounds alone that no mark speaks against."""
        values = {n: v for n, v in self.values.items() if n not in self.unusable(allowed)}
        return replace(self, values=values)


ENDS = {"first": slice(0, 1), "last": slice(-1, None)}


@dataclass
class Series:
    label: str
    metric: Metric
    points: list[Point]
    overall: Point

    def at(self, x: Value) -> Point | None:
        """An x of its own may be called "first" or "last"; else these are the ends."""
        same = [p for p in self.points if p.x is not None and x_text(p.x) == x_text(x)]
        if not same and x in ENDS:
            same = self.points[ENDS[str(x)]]
        return same[0] if same else None


def labels(experiment: Experiment, results: ResultSet) -> dict[str, list[Record]]:
    """Series label -> its repetitions, in the order of the file, `x+aa` behind `x`."""
    x = experiment.axis.parameter if experiment.axis else ""
    found: dict[str, list[Record]] = {}
    for name in (variant.name + again for variant in experiment.variants for again in ("", AA)):
        own = [r for r in results.repetitions if r["variant"] == name]
        keys = sorted({key for r in own for key in r["params"]} - {x})
        beside = [key for key in keys if len({str(r["params"].get(key)) for r in own}) > 1]
        # In the order of the plan's parameters, not in the random order of the round.
        for repetition in sorted(own, key=partial(_order, beside)):
            parts = [f"{key}={x_text(repetition['params'][key])}" for key in beside]
            found.setdefault(",".join([name, *parts]), []).append(repetition)
    return found


def _order(keys: list[str], repetition: Record) -> list[tuple[bool, float, str]]:
    values = [repetition["params"].get(key) for key in keys]
    return [
        (isinstance(v, str), 0.0 if isinstance(v, str) or v is None else float(v), str(v))
        for v in values
    ]


def series(
    experiment: Experiment, label: str, metric: Metric, repetitions: Iterable[Record]
) -> Series:
    axis = experiment.axis
    points: dict[str, Point] = {}
    overall = Point(None)
    for repetition in repetitions:
        samples = _samples(axis, metric, repetition)
        by_x: dict[Value | None, list[float]] = {}
        for x, y in samples:
            if x is not None or not (axis and axis.column):
                by_x.setdefault(x, []).append(y)
        for x, ys in by_x.items():
            _add(points.setdefault(x_text(x), Point(x)), metric, repetition, ys)
        if samples and not (axis and axis.parameter):
            _add(overall, metric, repetition, [y for _, y in samples])
    ordered = sorted(points.values(), key=lambda p: (isinstance(p.x, str), p.x or 0))
    if axis and axis.parameter:
        overall = _across(ordered)
    return Series(label, metric, ordered, overall)


def _samples(
    axis: Axis | None, metric: Metric, repetition: Record
) -> list[tuple[Value | None, float]]:
    """x and y of each that is a number and no error. x is None where there is none: a scalar
    belongs to the whole repetition, not to one bin.
    """
    samples = repetition["samples"]
    xs: Iterable[Value | None] = repeat(None)
    if axis and axis.parameter:
        xs = repeat(repetition["params"].get(axis.parameter))
    elif axis and metric.column:
        xs = (_centre(axis, x) for x in samples.get(axis.column, ()))
    ys, errors = samples.get(metric.column, ()), samples.get("error") or repeat("")
    if metric.scalar:
        ys, errors = (repetition["scalars"].get(metric.scalar),), ("",)
    return [
        (x, y * metric.scale)
        for x, y, error in zip(xs, ys, errors, strict=False)
        if str(error) in NO_ERROR and _is_number(y)
    ]


def _centre(axis: Axis, x: Any) -> float | None:
    """Of the bin it is in: from 0 on and of one width, so that centres stay the same."""
    width = axis.bin_width
    if not _is_number(x):
        return None
    return (math.floor(x / width) + 0.5) * width if width else float(x)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _add(point: Point, metric: Metric, repetition: Record, samples: list[float]) -> None:
    number = repetition["round"]
    point.values[number] = REDUCTIONS[metric.reduce](samples)
    point.raw += samples
    point.marks.update(repetition["marks"])
    if share := usable.disturbance(metric, repetition):
        point.taken[number] = share
    if mark := usable.spoiling_mark(metric, repetition):
        point.spoilt[number] = mark


def _across(points: list[Point]) -> Point:
    """All x together, where x is a parameter: in each round the median of the points."""
    rounds = sorted({number for point in points for number in point.values})
    return Point(
        None,
        {n: median([p.values[n] for p in points if n in p.values]) for n in rounds},
        [raw for point in points for raw in point.raw],
        {mark for point in points for mark in point.marks},
        {n: max(p.taken.get(n, 0.0) for p in points) for n in rounds},
        {n: mark for point in points for n, mark in point.spoilt.items()},
    )


# ---- One finished result set, reduced: all series, and the derived numbers -----------------------


@dataclass(frozen=True)
class Number:
    """A value with its interval, if there are repetitions enough for one."""

    value: float
    low: float | None = None
    high: float | None = None
    unit: str = ""
    count: int = 0
    marks: tuple[str, ...] = ()

    def text(self) -> str:
        return units.text(self.value, self.unit, self.low, self.high)

    def interval(self) -> str:
        return units.interval(self.value, self.unit, self.low, self.high)

    def shown(self) -> str:
        """With its interval, where that says more."""
        text, interval = self.text(), self.interval()
        return f"{text} ({interval})" if interval and interval != text else text


class Analysis:
    def __init__(self, experiment: Experiment, results: ResultSet) -> None:
        self.experiment = experiment
        self.results = results
        self.repetitions = labels(experiment, results)
        # Without the second halves of A/A pairs.
        self.plain_labels = [
            label for label in self.repetitions if not label.partition(",")[0].endswith(AA)
        ]
        self.series = cache(self._series)

    def _series(self, label: str, metric: str) -> Series:
        repetitions = self.repetitions.get(label, [])
        return series(self.experiment, label, self.experiment.metric(metric), repetitions)

    def title(self, label: str) -> str:
        return self.experiment.title_of(label)

    def point(self, operand: str, at: Value | None = None) -> Point | None:
        """`variant.metric`, `variant.metric@x`, `@first` or `@last`; None if it has no data."""
        label, metric, x = split_operand(operand)
        known = {each.name for each in self.experiment.metrics}
        if label not in self.repetitions or metric not in known:
            return None
        series = self.series(label, metric)
        wanted = x if at is None else at
        with contextlib.suppress(ValueError):
            wanted = float(wanted)
        found = series.overall if wanted == "" else series.at(wanted)
        return found if found and found.values else None

    def floor(self, metric: str, x: Value | None = None) -> float | None:
        """The A/A noise floor of a metric at x; without x, or where none was run there, the largest
        of any pair.
        """
        floors = []
        for label in self.plain_labels:
            variant, comma, params = label.partition(",")
            again = f"{variant}{AA}{comma}{params}"
            if again not in self.repetitions:
                continue
            first, second = (self.series(name, metric) for name in (label, again))
            pairs = [(first.overall, second.overall)]
            if self.experiment.axis and self.experiment.axis.parameter:
                # A/A may have been run at some x only: compare where both are.
                pairs = [(p, q) for q in second.points if (p := first.at(q.x or 0)) is not None]
                if x is not None and (a := first.at(x)) and (b := second.at(x)):
                    pairs = [(a, b)]
            found = [estimates.noise_floor(a.values, b.values) for a, b in pairs]
            floors += [value for value in found if value is not None and math.isfinite(value)]
        return max(floors, default=None)

    def derived(self, wanted: Derived, allowed: float | None = None) -> Number | None:
        """A [[number]] of the experiment; None if a part of it was not measured.

        With `allowed` only of repetitions in which others took no more than this share.
        """
        found = [self.point(operand, wanted.at) for operand in wanted.operands]
        points = [p if allowed is None else p.usable(allowed) for p in found if p]
        if len(points) < len(wanted.operands) or not all(point.values for point in points):
            return None
        values, *others = (point.values for point in points)
        common = set(values).intersection(*others)
        if not common:
            return None
        scale, count = wanted.scale, len(common)
        if wanted.operation == "ratio":
            ratio = estimates.paired_ratio(values, others[0])
            value, low, high = ratio.value, ratio.low, ratio.high
            if not math.isfinite(value):
                return None
        elif wanted.operation == "difference":
            each = [(values[r] - others[0][r]) * scale for r in sorted(common)]
            value, low, high = estimates.median_and_ends(each)
            scale = 1.0
        else:
            value, low, high = estimates.median_and_ends(list(values.values()))
        if wanted.operation == "inverse":
            if 0 in (value, low, high):
                return None
            value, low, high = 1 / value, high and 1 / high, low and 1 / low
        low, high = (None if end is None else end * scale for end in (low, high))
        return Number(value * scale, low, high, wanted.unit, count, _marks(points))


def _marks(points: Iterable[Point]) -> tuple[str, ...]:
    return tuple(sorted({mark for point in points for mark in point.marks}))


def summary(point: Point, unit: str) -> Number:
    values = list(point.values.values())
    return Number(*estimates.median_and_ends(values), unit, len(values), _marks([point]))


def numbers(analysis: Analysis) -> Mapping[str, Number]:
    """All bound numbers of an experiment by key, without the experiment's id.

    `...@100` for each x, and `...@first` and `...@last`, which do not depend on the profile;
    `floor.<metric>`: what two runs of the same thing differed by, in per cent.
    """
    found: dict[str, Number] = {}
    for label in analysis.repetitions:
        for metric in analysis.experiment.metrics:
            key, series = f"{label}.{metric.name}", analysis.series(label, metric.name)
            if series.overall.values:
                found[key] = summary(series.overall, metric.unit)
            points = [point for point in series.points if point.x is not None]
            for point in points:
                found[f"{key}@{x_text(point.x)}"] = summary(point, metric.unit)
            for word, ends in ENDS.items():
                for end in points[ends]:
                    found[f"{key}@{word}"] = summary(end, metric.unit)
                    if isinstance(end.x, int | float):
                        found[f"{key}@{word}-x"] = Number(float(end.x))
    derived = {
        d.key: number for d in analysis.experiment.derived if (number := analysis.derived(d))
    }
    floors = {
        f"floor.{metric.name}": Number(floor * 100, unit="%")
        for metric in analysis.experiment.metrics
        if (floor := analysis.floor(metric.name)) is not None
    }
    return found | derived | floors


def scalar_numbers(analysis: Analysis) -> dict[str, Number]:
    """For kind = "trace", which has no metrics: its scalars as they are."""
    found = {}
    for label, repetitions in analysis.repetitions.items():
        for name in repetitions[0]["scalars"] if repetitions else ():
            metric = Metric(name, name, "ms" if name.endswith("_ms") else "", scalar=name)
            point = series(analysis.experiment, label, metric, repetitions).overall
            if point.values:
                found[f"{label}.{name}"] = summary(point, metric.unit)
    return found
