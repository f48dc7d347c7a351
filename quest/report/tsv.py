"""The tables that figures read, made of a table of numbers: tab-separated, a header line, "-" for
what is not there.
"""

import math
import textwrap
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, product, zip_longest

from quest.ground import foreign
from quest.measure.load_tools import bucket_edges
from quest.measure.timeline import COLUMNS
from quest.spec.model import x_text
from quest.stats import estimates
from quest.stats.table import Columns, Measurement, NumberTable, Series

MOST_STEPS = 200
NOTHING = "-"
Rows = list[Sequence[object]]


def tables(numbers: NumberTable) -> dict[str, str]:
    """All tables of an experiment by file name; benchmarks/README.md says what is in which."""
    files = timeline_tables(numbers.raw.timeline) if numbers.raw.timeline else {}
    names = [metric.name for metric in numbers.experiment.metrics]
    if not names:
        return files
    summaries: Rows = [["variant", "title", *_columns(names, ("", "_low", "_high"))]]
    for name, metrics in numbers.series.items():
        files[f"{name}.tsv"] = _series_table(metrics)
        files[f"points-{name}.tsv"] = _rounds_table(metrics)
        if samples := numbers.raw.samples.get(name):
            files[f"samples-{name}.tsv"] = _samples_table(samples)
        cells = (cell for metric in names for cell in _cells(metrics[metric].overall)[:3])
        summaries.append([name, numbers.title(name), *cells])
    for (name, x), counts in numbers.raw.distributions.items():
        files[f"distribution-{name}{f'@{x}' if x else ''}.tsv"] = _distribution(counts)
    files["summary.tsv"] = table(summaries)
    derived: Rows = [["key", "value", "low", "high", "unit"]]
    derived += [
        [key, number.value, number.low, number.high, number.unit or None] for key, number in numbers.derived.items()
    ]
    files["numbers.tsv"] = table(derived)
    return files


def curves(numbers: NumberTable) -> dict[str, str]:
    """The table of each series alone, for a run that stands beside another in a figure."""
    names = numbers.plain_series if numbers.experiment.metrics else []
    return {name: _series_table(numbers.series[name]) for name in names}


def table(rows: Iterable[Iterable[object]]) -> str:
    """Rows of cells as tab-separated lines."""
    return "".join("\t".join(cell(value) for value in row) + "\n" for row in rows)


def cell(value: object) -> str:
    """Six digits of a measured value; a text in one line, without tabs."""
    if type(value) is float:
        return f"{value:.6g}"
    if type(value) is int:
        return str(value)
    return NOTHING if value is None else foreign.line(str(value))


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


def _cells(row: Measurement | None) -> list[float | None]:
    """Median and its interval, the least sample and the 99th percentile."""
    if row is None:
        return [None] * 5
    return [row.number.value, row.number.low, row.number.high, row.least, row.p99]


def _columns(names: Iterable[str], parts: Iterable[str]) -> Iterator[str]:
    return (f"{name}{part}" for name, part in product(names, parts))


def _by_x(metrics: Mapping[str, Series]) -> Iterator[tuple[str | None, list[Measurement | None]]]:
    """For each x, in ascending order, its text and a row for each metric."""
    xs = {x_text(point.x): point.x for series in metrics.values() for point in series.points}
    for x in sorted(xs.values(), key=lambda x: (isinstance(x, str), x or 0)):
        every = metrics.values()
        yield (
            None if x is None else x_text(x),
            [series.overall if x is None else series.at(x) for series in every],
        )


def _series_table(metrics: Mapping[str, Series]) -> str:
    """A row for each x."""
    parts = ("", "_low", "_high", "_min", "_p99")
    lines: Rows = [["x", *_columns(metrics, parts), "n", "bound"]]
    for x, rows in _by_x(metrics):
        there = [row.number for row in rows if row]
        count = max((number.count for number in there), default=0)
        bound = int(any("client-bound" in number.marks for number in there))
        lines.append([x, *(cell for row in rows for cell in _cells(row)), count, bound])
    return table(lines)


def _rounds_table(metrics: Mapping[str, Series]) -> str:
    """A row for each round at each x, with what lies outside of Tukey's fences."""
    lines: Rows = [["x", *metrics, "round", *_columns(metrics, ("_tukey",))]]
    for x, rows in _by_x(metrics):
        outside = [_tukey(row) for row in rows]
        for number in sorted({number for row in rows if row for number in row.rounds}):
            values = [row.rounds.get(number) if row else None for row in rows]
            marks = [of_metric.get(number) or None for of_metric in outside]
            lines.append([x, *values, number, *marks])
    return table(lines)


def _tukey(row: Measurement | None) -> Mapping[int, str]:
    if not row:
        return {}
    return dict(zip(row.rounds, estimates.tukey(list(row.rounds.values())), strict=True))


def _samples_table(columns: Columns) -> str:
    return table([[*columns], *zip(*columns.values(), strict=False)])


def _distribution(counts: Mapping[float, int]) -> str:
    """The share of the requests that were answered within a time, in ms."""
    edges, total = sorted(counts), sum(counts.values())
    within = accumulate(counts[edge] for edge in edges)
    rows: Rows = [["ms", "within"], [edges[0] / 1e6, 0.0]]
    rows += [[bucket_edges(e)[1] / 1e6, below / total] for e, below in zip(edges, within, strict=True)]
    # Where little happens, steps can be left out; the first and the last stay.
    step = max(1, math.ceil((len(rows) - 3) / MOST_STEPS))
    return table([*rows[:2], *rows[2:-1][step - 1 :: step], rows[-1]])


def timeline_tables(columns: Mapping[str, Sequence[object]]) -> dict[str, str]:
    """What figures/timeline.gp draws, of the columns of a trace."""
    lines = [tuple(map(str, line)) for line in zip(*map(columns.__getitem__, COLUMNS), strict=True)]
    # From the top: the clients, a gap, then the tasks in order of birth.
    names = dict.fromkeys((line[0], line[1]) for line in lines)
    clients = sorted(key for key in names if key[0] == "client")
    tasks = [key for key in names if key[0] == "task"]
    heights = {key: str(len(clients) + len(tasks) + 1.0 - i) for i, key in enumerate(clients)}
    heights |= {key: str(float(len(tasks) - i)) for i, key in enumerate(tasks)}
    rows: Rows = [("y", "kind", "name")]
    rows += [(height, kind, name) for (kind, name), height in heights.items()]
    bars: Rows = [("y", "start_ms", "end_ms", "kind", "state", "call", "letter", "client")]
    arrows: Rows = [("ms", "from_y", "to_y", "kind", "client")]
    for kind, name, state, call, client, start, end in lines:
        letter, number = (client, ord(client) - ord("A") + 1) if client else (NOTHING, 0)
        if kind in ("client", "task"):
            what = kind, state, call or NOTHING, letter, number
            bars.append((heights[kind, name], start, end, *what))
        else:
            ends = heights["task", state or name], heights["task", name]
            arrows.append((start, *ends, kind, number))
    return {"rows.tsv": table(rows), "bars.tsv": table(bars), "arrows.tsv": table(arrows)}
