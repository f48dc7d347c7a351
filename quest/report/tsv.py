"""The tables that figures read: tab-separated, a header line, "-" for what is not there."""

import math
import textwrap
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, product, zip_longest
from typing import Any

from quest.ground import foreign
from quest.measure.load_tools import bucket_edges
from quest.measure.timeline import COLUMNS
from quest.spec.model import x_text
from quest.stats import estimates
from quest.stats.analysis import Analysis, Point, summary

LEAST_FOR_P99 = 100
MOST_STEPS = 200
NOTHING = "-"


def tables(analysis: Analysis) -> dict[str, str]:
    """All tables of an experiment by file name."""
    names = [metric.name for metric in analysis.experiment.metrics]
    axis = analysis.experiment.axis
    found = {}
    if analysis.experiment.kind == "trace":
        # What else the machine did stretches a trace: drawn is where A, alone, waited least.
        least = min(analysis.results.repetitions, key=lambda r: float(r["scalars"]["client_a_ms"]))
        found = timeline_tables(least["samples"])
    if not names:
        return found
    summaries: list[list[Any]] = [["variant", "title", *_columns(names, ("", "_low", "_high"))]]
    for label in analysis.repetitions:
        found[f"{label}.tsv"], found[f"points-{label}.tsv"] = _series_tables(analysis, label, names)
        if axis and axis.column:
            found[f"samples-{label}.tsv"] = _samples_table(analysis, label, axis.column)
        found |= _distribution_tables(analysis, label)
        overall = [analysis.series(label, name).overall for name in names]
        cells = (cell for point in overall for cell in _cells(point)[:3])
        summaries.append([label, analysis.title(label), *cells])
    found["summary.tsv"] = table(summaries)
    derived: list[list[Any]] = [["key", "value", "low", "high", "unit"]]
    for wanted in analysis.experiment.derived:
        if number := analysis.derived(wanted):
            value = number.value if math.isfinite(number.value) else None
            derived.append([wanted.key, value, number.low, number.high, number.unit or None])
    found["numbers.tsv"] = table(derived)
    return found


def curves(analysis: Analysis) -> dict[str, str]:
    """The table of each variant alone, for a run that stands beside another in a figure."""
    names = [metric.name for metric in analysis.experiment.metrics]
    labels = analysis.plain_labels if names else []
    return {label: _series_tables(analysis, label, names)[0] for label in labels}


def table(rows: Iterable[Iterable[Any]]) -> str:
    return "".join("\t".join(cell(value) for value in row) + "\n" for row in rows)


def cell(value: Any) -> str:
    if value is None:
        return NOTHING
    return f"{value:.6g}" if isinstance(value, float) else foreign.line(str(value))


LEAST_COLUMN = 16


def aligned(rows: Sequence[Sequence[str]], right: Container[int] = (), width: int = 0) -> list[str]:
    """The lines of a table for the terminal; `right`: the columns that end in one line.

    Where it is wider than `width`, the words of the widest columns go on in a second line.
    """
    widths = [max(1, *map(len, column)) for column in zip(*rows, strict=True)]
    excess = sum(widths) + 2 * (len(widths) - 1) - width if width else 0
    for place in sorted(range(len(widths)), key=widths.__getitem__, reverse=True):
        if excess > 0 and place not in right:
            narrower = min(widths[place], max(LEAST_COLUMN, widths[place] - excess))
            excess -= widths[place] - narrower
            widths[place] = narrower
    cells = ([textwrap.wrap(text, widths[place]) for place, text in enumerate(row)] for row in rows)
    rows = [line for row in cells for line in zip_longest(*row, fillvalue="")]

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


def _columns(names: Iterable[str], parts: Iterable[str]) -> Iterator[str]:
    return (f"{name}{part}" for name, part in product(names, parts))


def _series_tables(analysis: Analysis, label: str, names: list[str]) -> tuple[str, str]:
    """A row for each x; and one for each round at each x."""
    parts = ("", "_low", "_high", "_min", "_p99")
    rows: list[list[Any]] = [["x", *_columns(names, parts), "n", "bound"]]
    each: list[list[Any]] = [["x", *names, "round", *_columns(names, ("_tukey",))]]
    all_series = [analysis.series(label, name) for name in names]
    xs = {x_text(point.x): point.x for series in all_series for point in series.points}
    for x in sorted(xs.values(), key=lambda x: (isinstance(x, str), x or 0)):
        shown = None if x is None else x_text(x)
        points = [series.overall if x is None else series.at(x) for series in all_series]
        there = [point for point in points if point]
        count = max((len(point.values) for point in there), default=0)
        bound = int(any("client-bound" in point.marks for point in there))
        rows.append([shown, *(cell for p in points for cell in _cells(p)), count, bound])
        tukey = [_tukey(point) for point in points]
        for number in sorted({number for point in there for number in point.values}):
            values = [point.values.get(number) if point else None for point in points]
            marks = [outside.get(number) or None for outside in tukey]
            each.append([shown, *values, number, *marks])
    return table(rows), table(each)


def _tukey(point: Point | None) -> Mapping[int, str]:
    if not point:
        return {}
    marks = estimates.tukey(list(point.values.values()))
    return dict(zip(point.values, marks, strict=True))


def _samples_table(analysis: Analysis, label: str, x: str) -> str:
    """Every sample of one repetition, as it came: what a median hides can be seen there."""
    repetition = min(analysis.repetitions[label], key=lambda r: int(r["round"]))
    metrics = [metric for metric in analysis.experiment.metrics if metric.column]
    columns = [repetition["samples"].get(c, []) for c in (x, *(m.column for m in metrics))]
    rows: list[list[Any]] = [["x", *(metric.name for metric in metrics)]]
    for at, *values in zip(*columns, strict=False):
        scaled = (
            v * metric.scale if isinstance(v, int | float) else None
            for v, metric in zip(values, metrics, strict=True)
        )
        rows.append([at, *scaled])
    return table(rows)


def _distribution_tables(analysis: Analysis, label: str) -> dict[str, str]:
    """distribution-<label>.tsv, or one for each x, of what was answered within which time."""
    axis = analysis.experiment.axis
    parameter = axis.parameter if axis else ""
    merged: dict[str, Counter[float]] = {}
    for repetition in analysis.repetitions[label]:
        x = f"@{x_text(repetition['params'][parameter])}" if parameter else ""
        histograms = repetition.get("histograms", {})
        # Open loop: from when a request was due, else the wait of those behind it would be left
        # out.
        histogram = histograms.get("total_from_intended") or histograms.get("total")
        for lower, count in histogram or ():
            merged.setdefault(f"distribution-{label}{x}.tsv", Counter())[lower] += count
    return {name: _distribution(counts) for name, counts in merged.items()}


def _distribution(counts: Mapping[float, float]) -> str:
    edges, total = sorted(counts), sum(counts.values())
    within = accumulate(counts[edge] for edge in edges)
    rows: list[list[Any]] = [["ms", "within"], [edges[0] / 1e6, 0.0]]
    rows += [
        [bucket_edges(e)[1] / 1e6, below / total] for e, below in zip(edges, within, strict=True)
    ]
    # Where little happens, steps can be left out; the first and the last stay.
    step = max(1, math.ceil((len(rows) - 3) / MOST_STEPS))
    return table([*rows[:2], *rows[2:-1][step - 1 :: step], rows[-1]])


def timeline_tables(samples: Mapping[str, Sequence[str | float]]) -> dict[str, str]:
    """What figures/timeline.gp draws."""
    lines = [tuple(map(str, line)) for line in zip(*map(samples.__getitem__, COLUMNS), strict=True)]
    # From the top: the clients, a gap, then the tasks in order of birth.
    names = dict.fromkeys((line[0], line[1]) for line in lines)
    clients = sorted(key for key in names if key[0] == "client")
    tasks = [key for key in names if key[0] == "task"]
    heights = {key: str(len(clients) + len(tasks) + 1.0 - i) for i, key in enumerate(clients)}
    heights |= {key: str(float(len(tasks) - i)) for i, key in enumerate(tasks)}
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
