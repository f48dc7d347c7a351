"""The tables of the sources beside what is measured here: absolutes, and ratios to one of the rows.

Machines differ by a factor of what they are made of; which of two ways is faster, and by how much,
is what can be compared. Both numbers of a ratio come from one run.
"""

import shutil
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quest.measure import records
from quest.measure.records import HERE, REFERENCE, Sources
from quest.report.tsv import aligned, table
from quest.spec import experiment_file
from quest.spec.model import SOURCES, Derived, Experiment, Metric, Then, ThenRow
from quest.stats.analysis import Analysis, Number, summary

NONE = "none"


@dataclass(frozen=True)
class Line:
    """One row of such a table; without `here`, `why` says why."""

    row: ThenRow
    title: str
    then_ratio: float
    here: Number | None = None
    ratio: Number | None = None
    there: Number | None = None  # the reference machine's ratio, where `ratio` is the reader's
    origin: str = NONE
    why: str = ""

    def shown(self) -> tuple[str, str, str, str]:
        """Value and ratio then, value and ratio here, with their intervals; or why there is none.

        A source's own value has no digit more than there, and none less.
        """
        row, then = self.row, f"{self.row.value:g}"
        if row.low is not None and row.high is not None:
            then += f" ({row.low:g}–{row.high:g})"
        here = self.here.shown() if self.here else self.why
        return then, ratio_text(self.then_ratio), here, ratio_shown(self.ratio)

    @property
    def marks(self) -> list[str]:
        return list(self.here.marks) if self.here else []


@dataclass(frozen=True)
class Beside:
    """A table of a source with what stands beside it. `runs`: origin -> the footer of its run."""

    then: Then
    metric: Metric
    base_title: str
    lines: tuple[Line, ...]
    runs: Mapping[str, str]

    @property
    def notes(self) -> list[str]:
        of_rows = [f"{line.title}: {line.row.note}" for line in self.lines if line.row.note]
        return [*self.then.notes, *of_rows]


def of(definition: Experiment, found: Sources) -> list[Beside]:
    """All tables of an experiment, with the reader's own values, else the reference's."""
    given = [source for source in (found.here, found.reference) if source]
    analyses = {source.origin: Analysis(definition, source.results) for source in given}
    tables = []
    for then in definition.thens:
        lines = tuple(_line(definition, then, row, analyses, found) for row in then.rows)
        used = {line.origin for line in lines}
        runs = {source.origin: source.footer for source in given if source.origin in used}
        base = title_of(definition, then.base_row)
        tables.append(Beside(then, definition.metric(then.metric), base, lines, runs))
    return tables


def _line(
    definition: Experiment, then: Then, row: ThenRow, analyses: Mapping[str, Analysis],
    found: Sources,
) -> Line:  # fmt: skip
    title = title_of(definition, row)
    then_ratio = row.value / then.base_row.value
    if not row.variant:
        return Line(row, title, then_ratio, why=row.why)
    operand = row.operand(then.metric)
    wanted = Derived("ratio", ratio=(operand, then.base_row.operand(then.metric)))
    measured = {origin: point for origin, a in analyses.items() if (point := a.point(operand))}
    ratios = {origin: analyses[origin].derived(wanted) for origin in measured}
    for origin, point in measured.items():
        number = summary(point, definition.metric(then.metric).unit)
        there = ratios.get(REFERENCE) if origin == HERE else None
        return Line(row, title, then_ratio, number, ratios[origin], there, origin)
    skipped = dict(found.skips).get(row.variant.partition(",")[0])
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


def ratio_shown(ratio: Number | None) -> str:
    """With its interval, where that says more."""
    if ratio is None:
        return ""
    ends = [ratio_text(end) for end in (ratio.low, ratio.high) if end is not None]
    text, interval = ratio_text(ratio.value), "–".join(dict.fromkeys(ends))
    return text if interval in ("", text) else f"{text} ({interval})"


def text(beside: Beside, name: str, width: int = 100) -> str:
    """A table for the terminal."""
    unit = f" {beside.then.unit}" if beside.then.unit else ""
    rows = [["", f"then{unit}", "ratio", "here", "ratio", ""]]
    for line in beside.lines:
        then, then_ratio, here, ratio = line.shown()
        of_reference = line.origin == REFERENCE and not records.wants_reference()
        remarks = ", ".join([REFERENCE] * of_reference + line.marks)
        if not line.here:
            here, remarks = "-", line.why
        rows.append([line.title, then, then_ratio, here, ratio, remarks])
    head = f"{name}.{beside.then.key}: {beside.then.title}"
    under = [f"then: {SOURCES[beside.then.source]}"]
    under += [f"{origin}: {footer}" for origin, footer in beside.runs.items()]
    under.append(f"{beside.metric.title}; ratios to {beside.base_title}")
    return "\n".join(
        [
            *textwrap.wrap(head, width),
            *(f"  {line}" for part in under for line in textwrap.wrap(part, width - 2)),
            *(f"  {line}" for line in aligned(rows, right=(1, 2), width=width - 2)),
            *(f"  {line}" for note in beside.notes for line in textwrap.wrap(note, width - 2)),
        ]
    )


# ---- for figures, book and deck ------------------------------------------------------------------

HEADER = (
    "key", "row", "variant", "title", "then", "then_low", "then_high", "then_ratio",
    "here", "here_low", "here_high", "ratio", "ratio_low", "ratio_high", "there_ratio", "source",
    "then_text", "here_text",
)  # fmt: skip


def tsv(tables: Sequence[Beside]) -> str:
    """then.tsv: the values of the sources in the units of our metrics, and what stands at a bar."""
    rows: list[Sequence[Any]] = [HEADER]
    for beside in tables:
        scale = beside.then.scale or 1.0
        for number, line in enumerate(beside.lines, 1):
            row = line.row
            then = [None if v is None else v * scale for v in (row.value, row.low, row.high)]
            then_text, _, here_text, _ = line.shown()
            if line.origin == REFERENCE and HERE in beside.runs:
                here_text += ", reference machine"
            rows.append(
                [beside.then.key, number, row.name or None, line.title, *then, line.then_ratio,
                 *_ends(line.here), *_ends(line.ratio),
                 line.there.value if line.there else None, line.origin,
                 f"{then_text} {beside.then.unit}".rstrip(), here_text]
            )  # fmt: skip
    return table(rows)


def _ends(number: Number | None) -> list[float | None]:
    return [number.value, number.low, number.high] if number else [None] * 3


def bound(tables: Sequence[Beside], name: str) -> dict[str, Any]:
    """For then.json: what book and deck print, by `experiment.key`."""
    return {
        f"{name}.{beside.then.key}": {
            "title": beside.then.title,
            "source": SOURCES[beside.then.source],
            "unit": beside.then.unit,
            "metric": beside.metric.title,
            "base": beside.base_title,
            "rows": [
                {
                    "title": line.title,
                    **dict(zip(("then", "then_ratio", "here", "ratio"), line.shown(), strict=True)),
                    "source": line.origin,
                    "marks": line.marks,
                }
                for line in beside.lines
            ],
            "notes": beside.notes,
            "runs": dict(beside.runs),
        }
        for beside in tables
    }


# ---- `tables` ------------------------------------------------------------------------------------


def print_all(definitions: Sequence[Experiment], results: Path, reference: Path) -> None:
    width = max(60, min(shutil.get_terminal_size((100, 24)).columns, 120))
    for definition in definitions:
        for beside in of(definition, records.load_sources(definition, results, reference)):
            print(text(beside, definition.id, width) + "\n")


def show(only: Sequence[str], results: Path, reference: Path) -> int:
    """The command: all tables, or those of the experiments named."""
    chosen = experiment_file.load_all(only=only)
    with_tables = [definition for definition in chosen if definition.thens]
    if not with_tables:
        print("no table of a source stands beside these experiments")
    print_all(with_tables, results, reference)
    return 0
