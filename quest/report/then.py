"""The tables of the sources beside what is measured here: absolutes, and ratios to one of the rows.

Machines differ by a factor of what they are made of; which of two ways is faster, and by how much,
is what can be compared. Both numbers of a ratio come from one run.
"""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from quest.measure.progress import terminal_width
from quest.measure.records import HERE, REFERENCE
from quest.report.measured import Both, Library
from quest.report.tsv import aligned, table
from quest.spec.model import SOURCES, Derived, Experiment, Metric, Then, ThenRow
from quest.stats.table import Number

NONE = "none"


@dataclass(frozen=True)
class Line:
    """One row of such a table; without `here`, `why` says why. `then_ratio`, `ratio`: to the base
    row, then and here; `there`: the reference machine's, where `ratio` is the reader's.
    """

    row: ThenRow
    title: str
    then_ratio: float
    here: Number | None = None
    ratio: Number | None = None
    there: Number | None = None
    origin: str = NONE
    why: str = ""

    def texts(self) -> tuple[str, str, str, str]:
        """Value and ratio then, value and ratio here, with their intervals; or why there is none.

        A source's own value has no digit more than there, and none less.
        """
        row, then = self.row, f"{self.row.value:g}"
        if row.low is not None and row.high is not None:
            then += f" ({row.low:g}–{row.high:g})"
        here = self.here.with_interval() if self.here else self.why
        return then, ratio_text(self.then_ratio), here, ratio_with_interval(self.ratio)

    @property
    def marks(self) -> list[str]:
        """Of what was measured here."""
        return list(self.here.marks) if self.here else []


@dataclass(frozen=True)
class SourceTable:
    """A table of a source with what stands beside it. `runs`: origin -> the footer of its run."""

    then: Then
    metric: Metric
    base_title: str
    lines: tuple[Line, ...]
    runs: Mapping[str, str]

    @property
    def notes(self) -> list[str]:
        """What the source says of the table, and of its rows."""
        of_rows = [f"{line.title}: {line.row.note}" for line in self.lines if line.row.note]
        return [*self.then.notes, *of_rows]


def source_tables(definition: Experiment, both: Both) -> list[SourceTable]:
    """All tables of an experiment, with the reader's own values, else the reference's."""
    sources = []
    for then in definition.then_tables:
        lines = tuple(_line(definition, then, row, both) for row in then.rows)
        used = {line.origin for line in lines}
        runs = {each.origin: each.run.footer for each in both.tables if each.origin in used}
        base = title_of(definition, then.base_row)
        sources.append(SourceTable(then, definition.metric(then.metric), base, lines, runs))
    return sources


def _line(definition: Experiment, then: Then, row: ThenRow, both: Both) -> Line:
    title = title_of(definition, row)
    then_ratio = row.value / then.base_row.value
    if not row.variant:
        return Line(row, title, then_ratio, why=row.why)
    operand = row.operand(then.metric)
    wanted = Derived("ratio", ratio=(operand, then.base_row.operand(then.metric)))
    for numbers in both.tables:
        if measured := numbers.row(operand):
            beside = both.reference if numbers.origin == HERE else None
            there = beside.derive(wanted) if beside else None
            ratio = numbers.derive(wanted)
            return Line(row, title, then_ratio, measured.number, ratio, there, numbers.origin)
    skipped = dict(both.skips).get(row.variant.partition(",")[0])
    why = skipped or f"not measured: make bench ONLY={definition.id}"
    return Line(row, title, then_ratio, why=why)


def title_of(definition: Experiment, row: ThenRow) -> str:
    """Its own; else as the experiment calls the variant, with x."""
    if row.title:
        return row.title
    at_x = f", {definition.axis.title} {row.x}" if row.x and definition.axis else ""
    return definition.title_of(row.variant) + at_x


# ---- as text -------------------------------------------------------------------------------------


def ratio_text(value: float) -> str:
    """Two decimals, more where those would say nothing."""
    return f"{value:.3g}" if 0 < value < 0.1 or value >= 100 else f"{value:.2f}"


def ratio_with_interval(ratio: Number | None) -> str:
    """With its interval, where that says more."""
    if ratio is None:
        return ""
    ends = [ratio_text(end) for end in (ratio.low, ratio.high) if end is not None]
    text, interval = ratio_text(ratio.value), "–".join(dict.fromkeys(ends))
    return text if interval in ("", text) else f"{text} ({interval})"


def text(source: SourceTable, name: str, width: int = 100, reference_only: bool = False) -> str:
    """A table for the terminal, of the experiment `name`; `reference_only`: there is no other run,
    so that it need not be said which it is.
    """
    unit = f" {source.then.unit}" if source.then.unit else ""
    rows = [["", f"then{unit}", "ratio", "here", "ratio", ""]]
    for line in source.lines:
        then, then_ratio, here, ratio = line.texts()
        of_reference = line.origin == REFERENCE and not reference_only
        remarks = ", ".join([REFERENCE] * of_reference + line.marks)
        if not line.here:
            here, remarks = "-", line.why
        rows.append([line.title, then, then_ratio, here, ratio, remarks])
    head = f"{name}.{source.then.key}: {source.then.title}"
    under = [f"then: {SOURCES[source.then.source]}"]
    under += [f"{origin}: {footer}" for origin, footer in source.runs.items()]
    under.append(f"{source.metric.title}; ratios to {source.base_title}")
    return "\n".join(
        [
            *textwrap.wrap(head, width),
            *(f"  {line}" for part in under for line in textwrap.wrap(part, width - 2)),
            *(f"  {line}" for line in aligned(rows, right=(1, 2), width=width - 2)),
            *(f"  {line}" for note in source.notes for line in textwrap.wrap(note, width - 2)),
        ]
    )


# ---- for figures, book and deck ------------------------------------------------------------------

HEADER = (
    "key", "row", "variant", "title", "then", "then_low", "then_high", "then_ratio",
    "here", "here_low", "here_high", "ratio", "ratio_low", "ratio_high", "there_ratio", "source",
    "then_text", "here_text",
)  # fmt: skip


def tsv(sources: Sequence[SourceTable]) -> str:
    """then.tsv: the values of the sources in the units of our metrics, and what stands at a bar."""
    rows: list[Sequence[object]] = [HEADER]
    for source in sources:
        scale = source.then.scale or 1.0
        for number, line in enumerate(source.lines, 1):
            row = line.row
            then = [None if v is None else v * scale for v in (row.value, row.low, row.high)]
            then_text, _, here_text, _ = line.texts()
            if line.origin == REFERENCE and HERE in source.runs:
                here_text += ", reference machine"
            rows.append(
                [source.then.key, number, row.name or None, line.title, *then, line.then_ratio,
                 *_ends(line.here), *_ends(line.ratio),
                 line.there.value if line.there else None, line.origin,
                 f"{then_text} {source.then.unit}".rstrip(), here_text]
            )  # fmt: skip
    return table(rows)


def _ends(number: Number | None) -> list[float | None]:
    return [number.value, number.low, number.high] if number else [None] * 3


class RowEntry(TypedDict):
    """A row as book and deck print it; `source`: "here", "reference" or "none"."""

    title: str
    then: str
    then_ratio: str
    here: str
    ratio: str
    source: str
    marks: list[str]


class SourceEntry(TypedDict):
    """A table as book and deck print it; `runs`: origin -> the footer of the run."""

    title: str
    source: str
    unit: str
    metric: str
    base: str
    rows: list[RowEntry]
    notes: list[str]
    runs: dict[str, str]


def entries(sources: Sequence[SourceTable], name: str) -> dict[str, SourceEntry]:
    """For then.json: the tables of the experiment `name`, by `experiment.key`."""
    return {
        f"{name}.{source.then.key}": {
            "title": source.then.title,
            "source": SOURCES[source.then.source],
            "unit": source.then.unit,
            "metric": source.metric.title,
            "base": source.base_title,
            "rows": [_row_entry(line) for line in source.lines],
            "notes": source.notes,
            "runs": dict(source.runs),
        }
        for source in sources
    }


def _row_entry(line: Line) -> RowEntry:
    then, then_ratio, here, ratio = line.texts()
    return {
        "title": line.title,
        "then": then,
        "then_ratio": then_ratio,
        "here": here,
        "ratio": ratio,
        "source": line.origin,
        "marks": line.marks,
    }


# ---- `tables` ------------------------------------------------------------------------------------


def print_tables(definitions: Sequence[Experiment], library: Library) -> None:
    """The tables of these experiments, as wide as the terminal."""
    width = terminal_width(120)
    for definition in definitions:
        for source in source_tables(definition, library.both(definition.id)):
            print(text(source, definition.id, width, library.reference_only) + "\n")


def tables(definitions: Sequence[Experiment], library: Library) -> int:
    """The command: the tables of these experiments, or a line that they have none."""
    if not any(definition.then_tables for definition in definitions):
        print("no table of a source stands beside these experiments")
    print_tables(definitions, library)
    return 0
