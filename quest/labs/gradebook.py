"""A class's grades as a forge takes them: its own table, as it was exported, with the grades in it.
So each student is who the forge says, and no column is guessed. Without one: a plain list.
"""

import csv
import html
import io
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from quest.ground import foreign
from quest.labs import files, kept, student_report
from quest.labs.class_rules import SEVERAL, UNKNOWN, Rules, points
from quest.labs.class_table import Row
from quest.labs.errors import LabError, say
from quest.labs.forges import CANVAS, Table
from quest.labs.lab import Lab
from quest.labs.measured import MeasuredLab
from quest.labs.roster import Roster, listed


@dataclass
class Written:
    """What became of a table."""

    path: Path
    graded: int = 0
    left: list[str] = field(default_factory=list)  #: students of the table without a grade, and why
    others: list[str] = field(default_factory=list)  #: grades that found no place in it
    scale: str = ""  #: that the forge has other points


def _by_person(rows: Sequence[Row], roster: Roster) -> dict[int, Row]:
    """id() of a student -> the line. Two lines of one student are no grade."""
    found: dict[int, Row] = {}
    for row in rows:
        for text in filter(None, row.id.split(SEVERAL)):
            person = roster.of_id(text)
            if person is None:
                continue
            if (other := found.get(id(person))) is not None:
                raise LabError(f"{person.title} has two lines, {other.name} and {row.name}: make grade-all with CLASS=")
            found[id(person)] = row
    return found


def _column_of_canvas(table: Table, lab: Lab | MeasuredLab, rules: Rules) -> str:
    """The assignment's column, in small letters; a new one at the end where there is none."""
    wanted = rules.column.get(lab.slug, "").strip()
    assignments = [name for name in table.header if name.strip().endswith(")") and "(" in name]
    if wanted:
        if wanted.casefold() in table.columns:
            return wanted.casefold()
        raise LabError(f'{table.path}: it has no column "{wanted}"; there are {", ".join(assignments) or "none"}')
    called = [name for name in assignments if name.rpartition(" (")[0].strip() in (lab.slug, lab.title)]
    if len(called) > 1:
        raise LabError(f"{table.path}: which column? {', '.join(called)}: name it under [column] in CLASS=")
    if called:
        return called[0].strip().casefold()
    table.columns[lab.slug] = len(table.header)
    table.header.append(lab.slug)
    for row in table.rows:
        row.append("")
    return lab.slug


def _most_of_canvas(table: Table, column: str, of: int) -> float:
    """The points that Canvas has for the column; written there where it has none."""
    for row in table.rows:
        if "points possible" in row[0].casefold():
            if not (text := table.cell(row, column)):
                table.put(row, column, str(of))
            return _number(text, of)
    return of


def _number(text: str, otherwise: float) -> float:
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        return otherwise
    return number if number > 0 else otherwise


def _remark(table: Path, row: Row, lab: Lab | MeasuredLab) -> str:
    """For a forge that takes a remark, and shows it as HTML."""
    one = student_report.sheet(row, student_report.details(table, row), lab, "")
    said = [one.grade + ".", *one.remarks]
    if one.first is not None:
        said.append(f"To mend first: {one.first.id}. {one.first.said}")
    return html.escape(foreign.line(" ".join(said)), quote=False)


def fill(
    table: Table, of_class: Path, rows: Sequence[Row], lab: Lab | MeasuredLab, rules: Rules, roster: Roster
) -> Written:
    """Puts the grades into a forge's table, and writes it beside the class's. roster: with this table
    in it."""
    layout = table.layout
    column = _column_of_canvas(table, lab, rules) if layout is CANVAS else layout.grade
    if not column:
        raise LabError(f"{table.path} is {layout.name}: it has no column for grades; give a GRADEBOOK= that has one")
    if not any(row.id for row in rows):
        raise LabError(f"{of_class}: no line has a student; first make grade-all with CLASS= or this GRADEBOOK=")
    of_canvas = _most_of_canvas(table, column, lab.points) if layout is CANVAS else 0
    by_person, used, scales = _by_person(rows, roster), set[str](), set[tuple[float, float]]()
    written = Written(of_class.with_suffix(f".{layout.short}.csv"))
    lines = [(cells, roster.of_line(table, cells)) for _, cells in table.students()]
    of_person = Counter(id(person) for _, person in lines if person is not None)
    for cells, person in lines:
        row = by_person.get(id(person)) if person is not None and of_person[id(person)] == 1 else None
        shown = table.name(cells) or next((text for _, text in table.keys(cells)), "?")
        if row is None or not row.grade:
            written.left.append(f"{shown}: {_why(row)}")
            continue
        used.add(row.name)
        if layout.locked and table.cell(cells, layout.locked).casefold() == "no":
            written.left.append(f"{shown}: the forge has locked the grade; ours is {row.grade}")
            continue
        of = _number(row.of, lab.points)
        most = of_canvas or _number(table.cell(cells, layout.most), of)
        if most != of:
            scales.add((of, most))
        table.put(cells, column, _scaled(row.grade, most, of))
        if layout.most and not _number(table.cell(cells, layout.most), 0):
            table.put(cells, layout.most, points(most))
        if layout.remark and not table.cell(cells, layout.remark):
            table.put(cells, layout.remark, _remark(of_class, row, lab))
        written.graded += 1
    written.others = [f"{row.name}: {row.grade}" for row in rows if row.grade and row.name not in used]
    if scales:
        each = ", ".join(f"{points(of)} points are {points(most)} there" for of, most in sorted(scales))
        written.scale = f"The forge has other points, and each grade is scaled: {each}"
    files.write(written.path, table.text())
    return written


def _why(row: Row | None) -> str:
    """Why a student has no grade."""
    if row is None:
        return "no line of the class's table is this student's"
    return "late, but by an unknown number of days" if row.late == UNKNOWN else row.state


def _scaled(grade: str, most: float, of: float) -> str:
    """A grade as points of the forge; a teacher's own word stays."""
    try:
        return points(float(grade.replace(",", ".")) * most / of)  # as a spreadsheet of some countries writes it
    except ValueError:
        return grade


def results_of(table: Path, rows: Sequence[Row], into: Path) -> int:
    """For Gradescope: results.json of each student, in a folder of its submission's name; how many."""
    number = 0
    for row in rows:
        path = kept.place_of(table, row.name)
        if student_report.details(table, row) is not None:
            folder = into / kept.safe_name(row.name)
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            files.write(folder / "results.json", files.read_file(path, files.LOG_BYTES).decode())
            number += 1
    return number


def plain_list(of_class: Path, rows: Sequence[Row], roster: Roster, called: Callable[[Row], str] | None) -> Path:
    """id, student, grade and the points of each test; with `called` an anonymous id, and no name."""
    tests = list(dict.fromkeys(key for row in rows for key in row.points))
    head = ["id", "grade", "of", *tests] if called else ["id", "student", "e-mail", "grade", "of", "late", *tests]
    lines: list[list[str]] = []
    for row in rows:
        cells = [row.points.get(test, "") for test in tests]
        if called:
            lines.append([called(row), row.grade, row.of, *cells])
        else:
            people = filter(None, map(roster.of_id, filter(None, row.id.split(SEVERAL))))
            addresses = SEVERAL.join(person.shown.get("e-mail", "") for person in people)
            who = [row.id or row.name, row.student, addresses]
            lines.append([*who, row.grade, row.of, row.late, *cells])
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([foreign.cell(cell) for cell in line] for line in sorted(lines))
    path = of_class.with_suffix(".anonymous.csv" if called else ".list.csv")
    files.write(path, text.getvalue())
    return path


def tell(written: Written) -> None:
    """What was written, and what was not."""
    say(f"{written.graded} grades: {written.path}")
    for text in (
        written.scale,
        listed("In the table, but without a grade", written.left),
        listed("Grades that have no line in the table", written.others),
    ):
        if text:
            say(text)
