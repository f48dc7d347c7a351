"""From raw repetitions to series: for each x one value a round, and all raw values beside.

A series belongs to one variant and one metric. Where a sweep has parameters beside x, each
combination is a series of its own, called `variant,size=1024`.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.micro import NO_ERROR
from harness.model import AA, Axis, Experiment, Metric, Value, x_text
from harness.record import Record, ResultSet
from harness.statistics import median, quantile


def jain(values: Sequence[float]) -> float:
    """Jain's index of fairness: 1 if all have the same, 1/n if one of n has everything."""
    squares = math.fsum(value * value for value in values)
    # Where nobody has anything, all have the same.
    return math.fsum(values) ** 2 / (len(values) * squares) if squares else 1.0


REDUCTIONS: dict[str, Callable[[Sequence[float]], float]] = {
    "median": median,
    "min": min,
    "max": max,
    "p90": lambda values: quantile(values, 0.90),
    "p99": lambda values: quantile(values, 0.99),
    "p999": lambda values: quantile(values, 0.999),
    "sum": math.fsum,
    "jain": jain,
    "count": len,
}


@dataclass
class Point:
    """`values`: round -> what that repetition gave at this x; `raw`: every single sample."""

    x: Value | None
    values: dict[int, float] = field(default_factory=dict)
    raw: list[float] = field(default_factory=list)
    marks: set[str] = field(default_factory=set)


@dataclass
class Series:
    label: str
    metric: Metric
    points: list[Point]
    overall: Point

    def at(self, x: Value) -> Point | None:
        return next((p for p in self.points if p.x is not None and same_x(p.x, x)), None)


def same_x(a: Value, b: Value) -> bool:
    return x_text(a) == x_text(b)


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
    bins = _Bins(experiment.axis, repetitions := list(repetitions))
    for repetition in repetitions:
        for x, samples in _by_x(experiment.axis, metric, repetition, bins):
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
    return Point(None, values, [raw for point in points for raw in point.raw], marks)


def _add(point: Point, metric: Metric, repetition: Record, samples: list[float]) -> None:
    point.values[repetition["round"]] = REDUCTIONS[metric.reduce](samples)
    point.raw += samples
    point.marks.update(repetition["marks"])


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


@dataclass
class _Bins:
    """Bins of a sample column, from 0 on and of one width, so that their centres stay the same."""

    width: float = 0.0

    def __init__(self, axis: Axis | None, repetitions: list[Record]) -> None:
        self.width = axis.bin_width if axis else 0.0
        if axis and axis.bins:
            highest = max(
                (
                    v
                    for r in repetitions
                    for v in r["samples"].get(axis.column, ())
                    if _is_number(v)
                ),
                default=0,
            )
            self.width = (highest + 1) / axis.bins

    def centre(self, x: float) -> float:
        return (math.floor(x / self.width) + 0.5) * self.width if self.width else x


def _by_x(
    axis: Axis | None, metric: Metric, repetition: Record, bins: _Bins
) -> Iterable[tuple[Value | None, list[float]]]:
    if axis is None:
        yield None, _values(metric, repetition)
    elif axis.parameter:
        yield repetition["params"].get(axis.parameter), _values(metric, repetition)
    elif metric.scalar:
        return  # a scalar belongs to the whole repetition, not to one bin
    else:
        yield from _binned(axis, metric, repetition, bins).items()


def _binned(
    axis: Axis, metric: Metric, repetition: Record, bins: _Bins
) -> dict[Value | None, list[float]]:
    samples = repetition["samples"]
    xs, ys = samples.get(axis.column, []), samples.get(metric.column, [])
    found: dict[Value | None, list[float]] = {}
    for x, y, ok in zip(xs, ys, _good(repetition), strict=False):
        if ok and _is_number(x) and _is_number(y):
            found.setdefault(bins.centre(x), []).append(y * metric.scale)
    return found
