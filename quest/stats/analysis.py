"""From the raw repetitions of a set to its table of numbers: the one place that looks at samples.

A repetition gives one value for each metric at each x: its samples there, reduced
(`Metric.reduce`). Over the rounds these values have a median with an interval.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from quest.measure import environment, usable
from quest.measure.records import Record, ResultSet
from quest.measure.timeline import COLUMNS
from quest.spec.model import AA, NO_ERROR, Axis, Experiment, Metric, Value, x_text
from quest.stats.estimates import median, median_with_interval, percentile
from quest.stats.table import (
    Attempts,
    Columns,
    Measurement,
    Number,
    NumberTable,
    Raw,
    Run,
    Series,
)

LEAST_FOR_P99 = 100  # samples
NUMBERS = (int, float)  # what JSON has for a number; bool is none


def jain(values: Sequence[float]) -> float:
    """Jain's index of fairness: 1 if all have the same, 1/n if one of n has everything."""
    squares = math.fsum(value * value for value in values)
    # Where each has nothing, all have the same.
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


def analyse(experiment: Experiment, results: ResultSet, origin: str) -> NumberTable:
    """The table of numbers of a set, which may be unfinished; `origin`: "here" or "reference"."""
    repetitions = series_of(experiment, results)
    table = NumberTable(
        experiment,
        origin,
        run_of(experiment, results),
        {name: _all_metrics(experiment, own) for name, own in repetitions.items()},
        scalars=dict(_scalars(experiment, repetitions)),
        raw=_raw(experiment, results, repetitions),
    )
    derived = {d.key: n for d in experiment.derived if (n := table.derive(d))}
    floors = {m.name: f for m in experiment.metrics if (f := table.noise_floor(m.name)) is not None}
    return replace(table, derived=derived, noise_floors=floors)


def series_of(experiment: Experiment, results: ResultSet) -> dict[str, list[Record]]:
    """Name of a series -> its repetitions, in the order of the experiment, `x+aa` behind `x`."""
    x = experiment.axis.parameter if experiment.axis else ""
    series: dict[str, list[Record]] = {}
    for name in (variant.name + again for variant in experiment.variants for again in ("", AA)):
        own = [r for r in results.repetitions if r["variant"] == name]
        keys = sorted({key for r in own for key in r["params"]} - {x})
        beside = [key for key in keys if len({str(r["params"].get(key)) for r in own}) > 1]
        # In the order of the plan's parameters, not in the random order of the round.
        for repetition in sorted(own, key=partial(_order, beside)):
            parts = [f"{key}={x_text(repetition['params'][key])}" for key in beside]
            series.setdefault(",".join([name, *parts]), []).append(repetition)
    return series


def _order(keys: list[str], repetition: Record) -> list[tuple[bool, float, str]]:
    values = [repetition["params"].get(key) for key in keys]
    return [(isinstance(v, str), 0.0 if isinstance(v, str) or v is None else float(v), str(v)) for v in values]


# ---- rows ----------------------------------------------------------------------------------------


@dataclass
class _Gathered:
    """A row that is being made: as Measurement, with all single samples."""

    x: Value | None
    rounds: dict[int, float] = field(default_factory=dict)
    samples: list[float] = field(default_factory=list)
    marks: set[str] = field(default_factory=set)
    taken: dict[int, float] = field(default_factory=dict)
    spoilt: dict[int, str] = field(default_factory=dict)

    def add(self, metric: Metric, repetition: Record, samples: list[float], together: float) -> None:
        """`together`: as shares_together() of quest/measure/usable.py has it."""
        number = repetition["round"]
        self.rounds[number] = REDUCTIONS[metric.reduce](samples)
        self.samples += samples
        self.marks.update(repetition["marks"])
        if share := usable.disturbance(metric, repetition, samples, together):
            self.taken[number] = share
            self.marks.update([usable.NOISY] if share == together else [])
        if mark := usable.spoiling_mark(metric, repetition):
            self.spoilt[number] = mark

    def row(self, unit: str, with_samples: bool = True) -> Measurement:
        """`with_samples`: with the least of them and their p99."""
        estimate = median_with_interval(list(self.rounds.values()))
        number = Number(*estimate, unit, len(self.rounds), tuple(sorted(self.marks)))
        enough = with_samples and len(self.samples) >= LEAST_FOR_P99
        return Measurement(
            self.x,
            number,
            self.rounds,
            min(self.samples) if with_samples else None,
            percentile(self.samples, 99) if enough else None,
            self.taken,
            self.spoilt,
        )


def _all_metrics(experiment: Experiment, repetitions: list[Record]) -> dict[str, Series]:
    # Where x is a column, the bins of its values are the same for every metric.
    bins = [_bins(experiment.axis, repetition) for repetition in repetitions]
    together = usable.shares_together(repetitions)
    return {m.name: _series(experiment.axis, m, repetitions, bins, together) for m in experiment.metrics}


def _series(
    axis: Axis | None,
    metric: Metric,
    repetitions: Iterable[Record],
    bins: Iterable[list[float | None]],
    together: Iterable[float],
) -> Series:
    points: dict[str, _Gathered] = {}
    overall = _Gathered(None)
    by_column = bool(axis and axis.column)
    for repetition, centres, share in zip(repetitions, bins, together, strict=True):
        samples, usual = _samples(metric, repetition)
        by_x: dict[Value | None, list[float]] = {}
        if by_column and not metric.scalar:
            for x, y, good in zip(centres, samples, usual, strict=False):
                if good and type(y) in NUMBERS and x is not None:
                    by_x.setdefault(x, []).append(y * metric.scale)
            usual = usual[: len(centres)]
        values = [y * metric.scale for y, good in zip(samples, usual, strict=False) if good and type(y) in NUMBERS]
        if values and not by_column:
            by_x = {repetition["params"].get(axis.parameter) if axis else None: values}
        for at, ys in by_x.items():
            points.setdefault(x_text(at), _Gathered(at)).add(metric, repetition, ys, share)
        if values and not (axis and axis.parameter):
            overall.add(metric, repetition, values, share)
    ordered = sorted(points.values(), key=lambda p: (isinstance(p.x, str), p.x or 0))
    if axis and axis.parameter:
        overall = _across(ordered)
    return Series(
        tuple(point.row(metric.unit) for point in ordered),
        # With bins no table shows the least of all samples, and there may be very many.
        overall.row(metric.unit, with_samples=not by_column) if overall.rounds else None,
    )


def _samples(metric: Metric, repetition: Record) -> tuple[Sequence[Any], Sequence[bool]]:
    """What was measured, and for each whether it is no error. A scalar is of the whole repetition,
    not of one bin.
    """
    if metric.scalar:
        return (repetition["scalars"].get(metric.scalar),), (True,)
    samples = repetition["samples"].get(metric.column, ())
    errors = repetition["samples"].get("error")
    if not errors:
        return samples, [True] * len(samples)
    return samples, [str(error) in NO_ERROR for error in errors]


def _bins(axis: Axis | None, repetition: Record) -> list[float | None]:
    """For each sample the centre of the bin that its x is in, None where x is no number. Bins begin
    at 0 and have one width, so that centres stay the same.
    """
    if axis is None or not axis.column:
        return []
    xs, width = repetition["samples"].get(axis.column, ()), axis.bin_width
    if not width:
        return [float(x) if type(x) in NUMBERS else None for x in xs]
    floor = math.floor
    return [(floor(x / width) + 0.5) * width if type(x) in NUMBERS else None for x in xs]


def _across(points: list[_Gathered]) -> _Gathered:
    """All x together, where x is a parameter: in each round the median of the points."""
    rounds = sorted({number for point in points for number in point.rounds})
    return _Gathered(
        None,
        {n: median([p.rounds[n] for p in points if n in p.rounds]) for n in rounds},
        [sample for point in points for sample in point.samples],
        {mark for point in points for mark in point.marks},
        {n: max(p.taken.get(n, 0.0) for p in points) for n in rounds},
        {n: mark for point in points for n, mark in point.spoilt.items()},
    )


def _scalars(experiment: Experiment, series: Mapping[str, list[Record]]) -> Iterable[tuple[str, Number]]:
    """Of a trace its scalars as they are, by `series.scalar`."""
    for name, repetitions in series.items() if experiment.kind == "trace" else ():
        for scalar in repetitions[0]["scalars"]:
            unit = "ms" if scalar.endswith("_ms") else ""
            metric = Metric(scalar, scalar, unit, scalar=scalar)
            overall = _series(None, metric, repetitions, [[]] * len(repetitions), [0.0] * len(repetitions)).overall
            if overall:
                yield f"{name}.{scalar}", overall.number


# ---- the run, and what is drawn as it came -------------------------------------------------------


def run_of(experiment: Experiment, results: ResultSet) -> Run:
    """What is known of a set as a whole."""
    run = results.run["started"], results.run["profile"], results.run["environment"]
    marks = Counter(mark for r in results.repetitions for mark in set(r["marks"]))
    return Run(
        experiment=results.run["experiment"],
        started=str(results.run["started"]),
        footer=environment.footer(*run),
        finished=results.end is not None,
        rounds=len({r["round"] for r in results.repetitions}),
        repetitions=len(results.repetitions),
        environment=environment.in_words(*run),
        marks=dict(sorted(marks.items())),
        settings=_settings(results.repetitions),
        attempts=tuple(_attempts(experiment, results)),
        given_up=tuple((results.end or {}).get("given_up", ())),
        skips=tuple((skip.get("variant", ""), skip["reason"]) for skip in results.skips),
        judge=results.run.get("judge", ""),
        claims=results.run.get("claims", {}),
        session=results.run.get("session", ""),
        digest=(results.end or {}).get("sum", ""),
    )


def _settings(repetitions: Iterable[Record]) -> dict[str, tuple[Value, ...]]:
    values_of: dict[str, dict[Value, None]] = {}
    for repetition in repetitions:
        for name, value in repetition["params"].items():
            values_of.setdefault(name, {})[value] = None
    return {name: tuple(sorted(values, key=_rank)) for name, values in values_of.items()}


def _rank(value: Value) -> tuple[bool, float, str]:
    number = isinstance(value, int | float)
    return not number, float(value) if number else 0.0, str(value)


def _attempts(experiment: Experiment, results: ResultSet) -> Iterable[Attempts]:
    """For each variant at each x; A/A pairs count as one variant."""
    swept = experiment.axis.parameter if experiment.axis else ""
    tries: dict[tuple[str, str], list[int]] = {}
    for record, failed in [
        *((r, 0) for r in results.repetitions),
        *((f, 1) for f in results.failures),
    ]:
        place = record["variant"].removesuffix(AA), str(record["params"].get(swept, ""))
        tries.setdefault(place, []).append(failed)
    return (Attempts(name, x, len(each), sum(each)) for (name, x), each in tries.items())


def _raw(experiment: Experiment, results: ResultSet, series: Mapping[str, list[Record]]) -> Raw:
    timeline: Columns = {}
    if experiment.kind == "trace" and results.repetitions:
        # What else the machine did stretches a trace: drawn is where A, alone, waited least.
        least = min(results.repetitions, key=lambda r: float(r["scalars"]["client_a_ms"]))
        timeline = {name: list(least["samples"][name]) for name in COLUMNS}
    samples: dict[str, Columns] = {}
    distributions: dict[tuple[str, str], Counter[float]] = {}
    for name, repetitions in series.items() if experiment.metrics else ():
        if experiment.axis and experiment.axis.column:
            samples[name] = _first_samples(experiment, experiment.axis.column, repetitions)
        _add_histograms(experiment, name, repetitions, distributions)
    return Raw(samples, distributions, timeline)


def _first_samples(experiment: Experiment, x: str, repetitions: list[Record]) -> Columns:
    """Every sample of one repetition, as it came: what a median hides can be seen there."""
    samples = min(repetitions, key=lambda r: int(r["round"]))["samples"]
    columns: dict[str, list[Value | None]] = {"x": samples.get(x, [])}
    for metric in experiment.metrics:
        if metric.column:
            columns[metric.name] = [
                value * metric.scale if isinstance(value, int | float) else None
                for value in samples.get(metric.column, [])
            ]
    return columns


def _add_histograms(
    experiment: Experiment,
    name: str,
    repetitions: Iterable[Record],
    merged: dict[tuple[str, str], Counter[float]],
) -> None:
    """The latencies of all rounds together, for each x that is a parameter."""
    parameter = experiment.axis.parameter if experiment.axis else ""
    for repetition in repetitions:
        x = x_text(repetition["params"][parameter]) if parameter else ""
        histograms = repetition.get("histograms", {})
        # Open loop: from when a request was due, else the wait of those behind it is left out.
        histogram = histograms.get("total_from_intended") or histograms.get("total")
        for lower, count in histogram or ():
            merged.setdefault((name, x), Counter())[lower] += count
