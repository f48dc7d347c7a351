"""From raw repetitions to series: for each x one value a round, and all raw values beside.

A series belongs to one variant and one metric. Where a sweep has parameters beside x, each
combination is a series of its own, called `variant,size=1024`.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

from harness.run.records import Record, ResultSet
from harness.spec.coherence import split_operand
from harness.spec.model import AA, LAWS, NO_ERROR, Axis, Derived, Experiment, Metric, Value, x_text
from harness.statistics import estimates, units, usable, usl
from harness.statistics.estimates import Ends, median, percentile


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


@dataclass
class Series:
    label: str
    metric: Metric
    points: list[Point]
    overall: Point

    def at(self, x: Value) -> Point | None:
        same = (p for p in self.points if p.x is not None and x_text(p.x) == x_text(x))
        return next(same, None)


def labels(experiment: Experiment, results: ResultSet) -> dict[str, list[Record]]:
    """Series label -> its repetitions, in the order of the file, `x+aa` behind `x`."""
    by_variant: dict[str, list[Record]] = {}
    for variant in experiment.variants:
        for name in (variant.name, variant.name + AA):
            by_variant[name] = [r for r in results.repetitions if r["variant"] == name]
    found: dict[str, list[Record]] = {}
    for name, repetitions in by_variant.items():
        beside = _varying(experiment.axis, repetitions)
        # In the order of the plan's parameters, not in the random order of the round.
        for repetition in sorted(repetitions, key=lambda r: _order(r, beside)):
            parts = [f"{key}={x_text(repetition['params'][key])}" for key in beside]
            found.setdefault(",".join([name, *parts]), []).append(repetition)
    return found


def _varying(axis: Axis | None, repetitions: list[Record]) -> list[str]:
    keys = sorted({key for r in repetitions for key in r["params"]})
    x = axis.parameter if axis else ""
    return [k for k in keys if k != x and len({str(r["params"].get(k)) for r in repetitions}) > 1]


def _order(repetition: Record, beside: list[str]) -> list[tuple[bool, float, str]]:
    values = [repetition["params"].get(key) for key in beside]
    return [
        (isinstance(v, str), 0.0 if isinstance(v, str) or v is None else float(v), str(v))
        for v in values
    ]


def series(
    experiment: Experiment, label: str, metric: Metric, repetitions: Iterable[Record]
) -> Series:
    points: dict[str, Point] = {}
    overall: Point = Point(None)
    for repetition in repetitions:
        for x, samples in _by_x(experiment.axis, metric, repetition):
            if samples:
                _add(points.setdefault(x_text(x), Point(x)), metric, repetition, samples)
        everything = _values(metric, repetition)
        if everything and not (experiment.axis and experiment.axis.parameter):
            _add(overall, metric, repetition, everything)
    ordered = sorted(points.values(), key=lambda p: (isinstance(p.x, str), p.x or 0))
    if experiment.axis and experiment.axis.parameter:
        overall = _across(ordered)
    return Series(label, metric, ordered, overall)


def _across(points: list[Point]) -> Point:
    """All x together, where x is a parameter: in each round the median of the points."""
    rounds = sorted({number for point in points for number in point.values})
    values = {n: median([p.values[n] for p in points if n in p.values]) for n in rounds}
    marks = set().union(*(point.marks for point in points)) if points else set()
    taken = {n: max(p.taken.get(n, 0.0) for p in points) for n in rounds}
    spoilt = {n: mark for point in points for n, mark in point.spoilt.items()}
    return Point(None, values, [raw for point in points for raw in point.raw], marks, taken, spoilt)


def _add(point: Point, metric: Metric, repetition: Record, samples: list[float]) -> None:
    point.values[repetition["round"]] = REDUCTIONS[metric.reduce](samples)
    point.raw += samples
    point.marks.update(repetition["marks"])
    if share := usable.taken(metric, repetition):
        point.taken[repetition["round"]] = share
    if mark := usable.spoilt(metric, repetition):
        point.spoilt[repetition["round"]] = mark


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _values(metric: Metric, repetition: Record) -> list[float]:
    if metric.scalar:
        value = repetition["scalars"].get(metric.scalar)
        return [] if value is None else [value * metric.scale]
    column = repetition["samples"].get(metric.column, [])
    good = _good(repetition)
    return [v * metric.scale for v, ok in zip(column, good, strict=False) if ok and _is_number(v)]


def _good(repetition: Record) -> list[bool]:
    """Which samples are no errors."""
    samples = repetition["samples"]
    length = max((len(column) for column in samples.values()), default=0)
    if "error" not in samples:
        return [True] * length
    return [str(value) in NO_ERROR for value in samples["error"]]


def _centre(axis: Axis, x: float) -> float:
    """Of the bin it is in: from 0 on and of one width, so that centres stay the same."""
    width = axis.bin_width
    return (math.floor(x / width) + 0.5) * width if width else x


def _by_x(
    axis: Axis | None, metric: Metric, repetition: Record
) -> Iterable[tuple[Value | None, list[float]]]:
    if axis is None:
        yield None, _values(metric, repetition)
    elif axis.parameter:
        yield repetition["params"].get(axis.parameter), _values(metric, repetition)
    elif metric.scalar:
        return  # a scalar belongs to the whole repetition, not to one bin
    else:
        yield from _binned(axis, metric, repetition).items()


def _binned(axis: Axis, metric: Metric, repetition: Record) -> dict[Value | None, list[float]]:
    samples = repetition["samples"]
    xs, ys = samples.get(axis.column, []), samples.get(metric.column, [])
    found: dict[Value | None, list[float]] = {}
    for x, y, ok in zip(xs, ys, _good(repetition), strict=False):
        if ok and _is_number(x) and _is_number(y):
            found.setdefault(_centre(axis, x), []).append(y * metric.scale)
    return found


# ---- One finished result set, reduced: all series, and the derived numbers -----------------------


@dataclass(frozen=True)
class Number:
    """A value with its interval, if there are repetitions enough for one; `words` stand for it
    where it alone would mislead. It may be infinite.
    """

    value: float
    low: float | None = None
    high: float | None = None
    unit: str = ""
    count: int = 0
    marks: tuple[str, ...] = ()
    words: str = ""

    def text(self) -> str:
        return self.words or units.text(self.value, self.unit, self.low, self.high)

    def interval(self) -> str:
        return units.interval(self.value, self.unit, self.low, self.high)

    def shown(self) -> str:
        """With its interval, where that says more."""
        text, interval = self.text(), self.interval()
        return f"{text} ({interval})" if interval and interval != text else text


# A point with one of these marks is not the rate of so many workers with a core each.
NOT_OF_THE_LAW = {"client-bound", "shared-core"}


class Analysis:
    def __init__(self, experiment: Experiment, results: ResultSet) -> None:
        self.experiment = experiment
        self.results = results
        self.repetitions = labels(experiment, results)
        self.series = cache(self._series)
        self.law = cache(self._law)

    @property
    def labels(self) -> list[str]:
        return list(self.repetitions)

    @property
    def plain_labels(self) -> list[str]:
        """Without the second halves of A/A pairs."""
        return [label for label in self.labels if not label.partition(",")[0].endswith(AA)]

    def _series(self, label: str, metric: str) -> Series:
        repetitions = self.repetitions.get(label, [])
        return series(self.experiment, label, self.experiment.metric(metric), repetitions)

    def title(self, label: str) -> str:
        return self.experiment.title_of(label)

    def point(self, operand: str, at: Value | None = None) -> Point | None:
        """`variant.metric`, `variant.metric@x`, `@first` or `@last`; None if it has no data."""
        label, metric, x = split_operand(operand)
        if label not in self.repetitions or metric not in self._metric_names:
            return None
        series = self.series(label, metric)
        wanted = at if at is not None else (_x_value(x) if x else None)
        found = series.overall if wanted is None else _at(series, wanted)
        return found if found and found.values else None

    @cached_property
    def _metric_names(self) -> set[str]:
        return {metric.name for metric in self.experiment.metrics}

    def floor(self, metric: str, x: Value | None = None) -> float | None:
        """The A/A noise floor of a metric at x; without x the largest of any pair."""
        floors = []
        for label in self.plain_labels:
            variant, comma, params = label.partition(",")
            again = f"{variant}{AA}{comma}{params}"
            if again not in self.repetitions:
                continue
            first, second = (self.series(name, metric) for name in (label, again))
            pairs = [(first.overall, second.overall)]
            if x is not None:
                at = first.at(x), second.at(x)
                pairs = [(at[0], at[1])] if at[0] and at[1] else pairs
            elif self.experiment.axis and self.experiment.axis.parameter:
                # A/A may have been run at some x only: compare where both are.
                pairs = [(p, q) for q in second.points if (p := first.at(q.x or 0)) is not None]
            found = [estimates.noise_floor(a.values, b.values) for a, b in pairs]
            floors += [value for value in found if value is not None and math.isfinite(value)]
        return max(floors, default=None)

    def derived(self, wanted: Derived, allowed: float | None = None) -> Number | None:
        """A [[number]] of the experiment; None if a part of it was not measured.

        With `allowed` only of repetitions in which others took no more than this share.
        """
        if wanted.operation in LAWS:
            return self._of_law(wanted)
        points = [self.point(operand, wanted.at) for operand in wanted.operands]
        if any(point is None for point in points):
            return None
        present = [point for point in points if point is not None]
        if allowed is not None:
            present = [point.usable(allowed) for point in present]
            if not all(point.values for point in present):
                return None
        marks = tuple(sorted(set().union(*(point.marks for point in present))))
        if len(present) == 1:
            return _transformed(wanted, present[0], marks)
        return _of_two(wanted, present[0], present[1], marks)

    def _law(self, operand: str) -> usl.Fit | None:
        """Of `variant.metric`, fitted over x; None if there are too few points that may count."""
        return usl.fit({x: p.values for x, p in self._counted(operand).items()})

    def _counted(self, operand: str) -> dict[float, Point]:
        label, metric, _ = split_operand(operand)
        points = self.series(label, metric).points if label in self.repetitions else []
        return {
            float(point.x): point
            for point in points
            if isinstance(point.x, int | float) and not point.marks & NOT_OF_THE_LAW
        }

    def _of_law(self, wanted: Derived) -> Number | None:
        law = self.law(wanted.operands[0])
        if law is None:
            return None
        marks = set().union(*(p.marks for p in self._counted(wanted.operands[0]).values()))
        words = ""
        if wanted.operation == "usl_kappa" and not law.told:
            words = "not told from 0"
        if wanted.operation == "usl_peak" and not law.told:
            least = f"{law.peak.low or 0:.0f} {wanted.unit}".rstrip()
            words = f"{least} or more" if law.peak.low else "not told"
        found = law.estimate(wanted.operation.removeprefix("usl_"))
        return Number(
            found.value, found.low, found.high, wanted.unit, law.rounds, tuple(sorted(marks)), words
        )


def _at(series: Series, x: Value) -> Point | None:
    """An x of its own may be called "first"; else that is the first there is."""
    ends = {"first": 0, "last": -1}
    found = series.at(x)
    if found or x not in ends or not series.points:
        return found
    return series.points[ends[str(x)]]


def _x_value(text: str) -> Value:
    try:
        return float(text)
    except ValueError:
        return text


def summary(point: Point, unit: str) -> Number:
    values = list(point.values.values())
    marks = tuple(sorted(point.marks))
    return Number(*estimates.median_and_ends(values), unit, len(values), marks)


def _transformed(wanted: Derived, point: Point, marks: tuple[str, ...]) -> Number | None:
    number = summary(point, wanted.unit)
    value, low, high = number.value, number.low, number.high
    if wanted.operation == "inverse":
        if 0 in (value, low, high):
            return None
        value, low, high = 1 / value, high and 1 / high, low and 1 / low
    return _scaled(wanted, (value, low, high), number.count, marks)


def _scaled(wanted: Derived, ends: Ends, count: int, marks: tuple[str, ...]) -> Number:
    value, *interval = ends
    low, high = (None if end is None else end * wanted.scale for end in interval)
    return Number(value * wanted.scale, low, high, wanted.unit, count, marks)


def _of_two(wanted: Derived, a: Point, b: Point, marks: tuple[str, ...]) -> Number | None:
    if wanted.operation == "difference":
        common = sorted(set(a.values) & set(b.values))
        if not common:
            return None
        each = [(a.values[r] - b.values[r]) * wanted.scale for r in common]
        return Number(*estimates.median_and_ends(each), wanted.unit, len(each), marks)
    if not set(a.values) & set(b.values):
        return None
    ratio = estimates.paired_ratio(a.values, b.values)
    if not math.isfinite(ratio.value):
        return None
    return _scaled(wanted, (ratio.value, ratio.low, ratio.high), ratio.rounds, marks)


def numbers(analysis: Analysis) -> Mapping[str, Number]:
    """All bound numbers of an experiment by key, without the experiment's id."""
    found: dict[str, Number] = {}
    for label in analysis.labels:
        for metric in analysis.experiment.metrics:
            series = analysis.series(label, metric.name)
            if series.overall.values:
                found[f"{label}.{metric.name}"] = summary(series.overall, metric.unit)
            found.update(_over_x(f"{label}.{metric.name}", series))
    for wanted in analysis.experiment.derived:
        number = analysis.derived(wanted)
        if number:
            found[wanted.key] = number
    found.update(_floors(analysis))
    return found


def _over_x(key: str, series: Series) -> dict[str, Number]:
    """`...@100` for each x, and `...@first` and `...@last`, which do not depend on the profile."""
    found = {}
    points = [point for point in series.points if point.x is not None]
    for point in points:
        found[f"{key}@{x_text(point.x)}"] = summary(point, series.metric.unit)
    for word, place in (("first", 0), ("last", -1)):
        if points:
            found[f"{key}@{word}"] = summary(points[place], series.metric.unit)
            x = points[place].x
            if isinstance(x, int | float):
                found[f"{key}@{word}-x"] = Number(float(x))
    return found


def _floors(analysis: Analysis) -> dict[str, Number]:
    """`floor.<metric>`: what two runs of the same thing differed by, in per cent."""
    found = {}
    for metric in analysis.experiment.metrics:
        floor = analysis.floor(metric.name)
        if floor is not None:
            found[f"floor.{metric.name}"] = Number(floor * 100, unit="%")
    return found


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
