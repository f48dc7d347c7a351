"""The tables that figures read: tab-separated, a header line, "-" for what is not there."""

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from harness.run.load_tools import bucket
from harness.run.timeline import COLUMNS
from harness.spec.model import x_text
from harness.statistics import estimates
from harness.statistics.analysis import Analysis, Point, summary

LEAST_FOR_P99 = 100
MOST_STEPS = 200
NOTHING = "-"


def tables(analysis: Analysis) -> dict[str, str]:
    """All tables of an experiment by file name."""
    names = [metric.name for metric in analysis.experiment.metrics]
    found = {}
    if analysis.experiment.kind == "trace":
        # What else the machine did stretches a trace: drawn is where A, alone, waited least.
        least = min(analysis.results.repetitions, key=lambda r: float(r["scalars"]["client_a_ms"]))
        found = timeline_tables(least["samples"])
    if not names:
        return found
    for label in analysis.labels:
        found[f"{label}.tsv"] = _series_table(analysis, label, names)
        found[f"points-{label}.tsv"] = _points_table(analysis, label, names)
        if analysis.experiment.axis and analysis.experiment.axis.column:
            found[f"samples-{label}.tsv"] = _samples_table(analysis, label)
        found.update(_distribution_tables(analysis, label))
    found["summary.tsv"] = _summary_table(analysis, names)
    found["numbers.tsv"] = _numbers_table(analysis)
    return found


def table(rows: Iterable[Iterable[Any]]) -> str:
    return "".join("\t".join(cell(value) for value in row) + "\n" for row in rows)


def cell(value: Any) -> str:
    if value is None:
        return NOTHING
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def aligned(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> list[str]:
    """The lines of a table for the terminal; `right`: the columns that end in one line."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def shown(place: int, text: str) -> str:
        return text.rjust(widths[place]) if place in right else text.ljust(widths[place])

    return ["  ".join(shown(*each) for each in enumerate(row)).rstrip() for row in rows]


def _cells(point: Point | None) -> list[float | None]:
    if point is None or not point.values:
        return [None] * 5
    number = summary(point, "")
    enough = len(point.raw) >= LEAST_FOR_P99
    p99 = estimates.percentile(point.raw, 99) if enough else None
    return [number.value, number.low, number.high, min(point.raw), p99]


def _series_table(analysis: Analysis, label: str, names: list[str]) -> str:
    columns = (f"{name}{part}" for name in names for part in ("", "_low", "_high", "_min", "_p99"))
    header = ["x", *columns, "n", "bound"]
    rows: list[list[Any]] = [header]
    for x in _all_x(analysis, label, names):
        points = [_at(analysis, label, name, x) for name in names]
        count = max((len(point.values) for point in points if point), default=0)
        cells = [value for point in points for value in _cells(point)]
        bound = int(any("client-bound" in point.marks for point in points if point))
        rows.append([None if x is None else x_text(x), *cells, count, bound])
    return table(rows)


def _all_x(analysis: Analysis, label: str, names: list[str]) -> list[Any]:
    xs: dict[str, Any] = {}
    for name in names:
        for point in analysis.series(label, name).points:
            xs.setdefault(x_text(point.x), point.x)
    return sorted(xs.values(), key=lambda x: (isinstance(x, str), x or 0))


def _at(analysis: Analysis, label: str, name: str, x: Any) -> Point | None:
    series = analysis.series(label, name)
    return series.overall if x is None else series.at(x)


def _points_table(analysis: Analysis, label: str, names: list[str]) -> str:
    rows: list[list[Any]] = [["x", *names, "round", *(f"{name}_tukey" for name in names)]]
    for x in _all_x(analysis, label, names):
        points = [_at(analysis, label, name, x) for name in names]
        rounds = sorted({number for point in points if point for number in point.values})
        tukey = [_tukey(point) for point in points]
        for number in rounds:
            values = [point.values.get(number) if point else None for point in points]
            marks = [outside.get(number) for outside in tukey]
            shown = None if x is None else x_text(x)
            rows.append([shown, *values, number, *(mark or None for mark in marks)])
    return table(rows)


def _tukey(point: Point | None) -> Mapping[int, str]:
    if not point:
        return {}
    marks = estimates.tukey(list(point.values.values()))
    return dict(zip(point.values, marks, strict=True))


def _samples_table(analysis: Analysis, label: str) -> str:
    """Every sample of one repetition, as it came: what a median hides can be seen there."""
    axis = analysis.experiment.axis
    assert axis
    repetition = min(analysis.repetitions[label], key=lambda r: int(r["round"]))
    metrics = [metric for metric in analysis.experiment.metrics if metric.column]
    samples = repetition["samples"]
    columns = [samples.get(metric.column, []) for metric in metrics]
    rows: list[list[Any]] = [["x", *(metric.name for metric in metrics)]]
    for x, *values in zip(samples.get(axis.column, []), *columns, strict=False):
        scaled = [
            v * metric.scale if isinstance(v, int | float) else None
            for v, metric in zip(values, metrics, strict=True)
        ]
        rows.append([x, *scaled])
    return table(rows)


def _distribution_tables(analysis: Analysis, label: str) -> dict[str, str]:
    """distribution-<label>.tsv, or one for each x, of what was answered within which time."""
    axis = analysis.experiment.axis
    parameter = axis.parameter if axis else ""
    merged: dict[str, dict[float, float]] = {}
    for repetition in analysis.repetitions[label]:
        x = f"@{x_text(repetition['params'][parameter])}" if parameter else ""
        histograms = repetition.get("histograms", {})
        # Open loop: from when a request was due, else the wait of those behind it would be left
        # out.
        histogram = histograms.get("total_from_intended") or histograms.get("total")
        for lower, count in histogram or ():
            counts = merged.setdefault(f"distribution-{label}{x}.tsv", {})
            counts[lower] = counts.get(lower, 0) + count
    return {name: _distribution(counts) for name, counts in merged.items()}


def _distribution(counts: Mapping[float, float]) -> str:
    total = sum(counts.values())
    edges = sorted(counts)
    rows: list[list[Any]] = [["ms", "within"], [edges[0] / 1e6, 0.0]]
    below = 0.0
    for lower in edges:
        below += counts[lower]
        rows.append([bucket(lower)[1] / 1e6, below / total])
    # Where little happens, steps can be left out; the first and the last stay.
    step = max(1, math.ceil((len(rows) - 3) / MOST_STEPS))
    return table([*rows[:2], *rows[2:-1][step - 1 :: step], rows[-1]])


def timeline_tables(samples: Mapping[str, Sequence[str | float]]) -> dict[str, str]:
    """What figures/timeline.gp draws."""
    lines = [tuple(map(str, line)) for line in zip(*map(samples.__getitem__, COLUMNS), strict=True)]
    heights = _heights(lines)
    rows: list[Sequence[Any]] = [("y", "kind", "name")]
    rows += [(height, kind, name) for (kind, name), height in heights.items()]
    bars: list[Sequence[Any]] = [
        ("y", "start_ms", "end_ms", "kind", "state", "call", "letter", "client")
    ]
    arrows: list[Sequence[Any]] = [("ms", "from_y", "to_y", "kind", "client")]
    for kind, name, state, call, client, start, end in lines:
        letter, number = (client, ord(client) - ord("A") + 1) if client else (NOTHING, 0)
        if kind in ("client", "task"):
            what = kind, state, call or NOTHING, letter, number
            bars.append((heights[kind, name], start, end, *what))
        else:
            ends = heights["task", state or name], heights["task", name]
            arrows.append((start, *ends, kind, number))
    return {"rows.tsv": table(rows), "bars.tsv": table(bars), "arrows.tsv": table(arrows)}


def _heights(lines: Iterable[Sequence[str]]) -> dict[tuple[str, str], str]:
    """Where each bar goes, from the top: the clients, a gap, then the tasks in order of birth."""
    names = list(dict.fromkeys((line[0], line[1]) for line in lines))
    clients = sorted(key for key in names if key[0] == "client")
    tasks = [key for key in names if key[0] == "task"]
    heights = {key: str(len(clients) + len(tasks) + 1.0 - i) for i, key in enumerate(clients)}
    return heights | {key: str(float(len(tasks) - i)) for i, key in enumerate(tasks)}


def _summary_table(analysis: Analysis, names: list[str]) -> str:
    header = ["variant", "title"]
    for name in names:
        header += [name, f"{name}_low", f"{name}_high"]
    rows: list[list[Any]] = [header]
    for label in analysis.labels:
        cells: list[Any] = []
        for name in names:
            cells += _cells(analysis.series(label, name).overall)[:3]
        rows.append([label, analysis.title(label), *cells])
    return table(rows)


def _numbers_table(analysis: Analysis) -> str:
    rows: list[list[Any]] = [["key", "value", "low", "high", "unit"]]
    for wanted in analysis.experiment.derived:
        number = analysis.derived(wanted)
        if number:
            value = number.value if math.isfinite(number.value) else None
            rows.append([wanted.key, value, number.low, number.high, number.unit or None])
    return table(rows)
