"""[[then]]: tables of the sources, row by row, to stand beside what is measured here.

Read from an experiment file and checked; beside.py puts the two together.
"""

import math
import re
from collections.abc import Iterator

from harness.coherence import operand_problem
from harness.errors import InputError
from harness.model import Experiment, Then, ThenRow, x_text
from harness.tables import Table

# As claims.toml names them -> how a table is headed.
SOURCES = {
    "talk": "the talk, 2003",
    "page": "the benchmark page, 2003",
    "lighty": "lighttpd 1.5.0 and Linux AIO, 2006",
    "small-files": "lighttpd and small files, 2006",
    "perlbal": "Perlbal and lighttpd, 2006",
    "raw-io": "raw I/O with lighttpd 1.5.0, 2007",
}
KEY = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
ENDS = ("first", "last")


def read(top: Table) -> tuple[Then, ...]:
    """The tables of an experiment file; what only the whole file can tell is left to `check`."""
    found = tuple(_then(top, data, n) for n, data in enumerate(top.tables("then"), 1))
    keys = [then.key for then in found]
    for key in keys:
        if keys.count(key) > 1:
            raise top.error(f'then "{key}" is there twice')
    return found


def _then(top: Table, data: dict[str, object], number: int) -> Then:
    key = data.get("key")
    table = Table(f'{top.where}: then "{key}"' if key else f"{top.where}: then {number}", data)
    then = Then(
        key=table.text("key"),
        title=table.text("title"),
        source=table.choice("source", tuple(SOURCES)),
        metric=table.text("metric"),
        unit=table.text("unit", ""),
        scale=table.number("scale", 0.0),
        base=table.text("base"),
        rows=tuple(_rows(table)),
        notes=table.texts("notes"),
    )
    table.done()
    if not KEY.fullmatch(then.key):
        raise table.error('"key" must be lower-case words joined by "-"')
    if "scale" in table and not (math.isfinite(then.scale) and then.scale > 0):
        raise table.error('"scale" must be above 0')
    return then


def _rows(table: Table) -> Iterator[ThenRow]:
    rows = table.tables("rows")
    if not rows:
        raise table.error('"rows" is missing')
    names = []
    for number, data in enumerate(rows, 1):
        inner = Table(f"{table.where}: row {number}", data)
        row = _row(inner)
        name = row.name or row.title
        if name in names:
            raise inner.error(f'"{name}" is there twice')
        names.append(name)
        yield row


def _row(table: Table) -> ThenRow:
    variant, at, x = table.text("variant", "").partition("@")
    table.required("value")
    row = ThenRow(
        title=table.text("title", ""),
        value=table.number("value", 0.0),
        low=table.optional_number("low"),
        high=table.optional_number("high"),
        variant=variant,
        x=x,
        why=table.text("why", ""),
        note=table.text("note", ""),
    )
    table.done()
    if at and not x:
        raise table.error('"variant" ends with "@", without an x')
    if not variant and not (row.title and row.why):
        raise table.error('"variant" is needed, or "title" and "why" nothing here stands beside it')
    if variant and row.why:
        raise table.error('"why" goes with a row that has no "variant"')
    if not _in_order(row):
        raise table.error('"value" must be 0 or more, with both or none of "low" <= it <= "high"')
    return row


def _in_order(row: ThenRow) -> bool:
    ends = [end for end in (row.low, row.high) if end is not None]
    if len(ends) == 1 or not all(math.isfinite(v) and v >= 0 for v in (row.value, *ends)):
        return False
    return not ends or ends[0] <= row.value <= ends[1]


# ---- together with the rest of the file ----------------------------------------------------------


def check(experiment: Experiment, shown: str) -> None:
    """InputError for a table that names what the experiment does not have."""
    for then in experiment.thens:
        problem = next(_problems(experiment, then), "")
        if problem:
            raise InputError(f'{shown}: then "{then.key}": {problem}')


def _problems(experiment: Experiment, then: Then) -> Iterator[str]:
    metric = next((m for m in experiment.metrics if m.name == then.metric), None)
    if metric is None:
        yield f'unknown metric "{then.metric}"'
        return
    if metric.unit != then.unit and not then.scale:
        yield (
            f'"scale" is missing: metric "{metric.name}" is in "{metric.unit}", not "{then.unit}"'
        )
    if metric.unit == then.unit and then.scale not in (0.0, 1.0):
        yield f'"scale" is not 1, though metric "{metric.name}" is in "{then.unit}" too'
    for number, row in enumerate(then.rows, 1):
        if row.variant:
            problem = operand_problem(experiment, row.operand(then.metric)) or _x(experiment, row)
            if problem:
                yield f"row {number}: {problem}"
    if not any(row.variant and row.name == then.base for row in then.rows):
        yield f'"base" must be the variant of a row, not "{then.base}"'
    elif not then.base_row.value:
        yield f'no ratio to "{then.base}", whose value is 0'


def _x(experiment: Experiment, row: ThenRow) -> str:
    if not row.x:
        return ""
    axis = experiment.axis
    if axis is None:
        return f'"@{row.x}" names no x: the experiment has none'
    if axis.column or row.x in ENDS:
        return ""
    sweeps = [experiment.sweep, *(p.sweep for p in experiment.profiles.values())]
    sweeps.append(experiment.variant(row.variant.partition(",")[0]).sweep)
    values = {x_text(value) for sweep in sweeps for value in sweep.get(axis.parameter, ())}
    return "" if row.x in values else f'"@{row.x}": no sweep has this value of {axis.parameter}'
