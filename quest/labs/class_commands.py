"""What a teacher does with a whole class beside the grading: whose each submission is, a report for
each student, the grades for a forge.
"""

import csv
import io
from collections.abc import Callable
from pathlib import Path

from quest.ground import foreign
from quest.ground.files import write_whole
from quest.labs import catalogue, class_rules, class_table, files, forges, gradebook, intake, roster, student_report
from quest.labs.class_rules import Known, Rules
from quest.labs.class_table import Row
from quest.labs.errors import LabError, say
from quest.labs.settings import Settings

OPEN = 1  #: status: a person has to decide something
HEAD = ("id", "student", "e-mail", "anonymous", "submission", "handed in", "remark")


def rules_of(settings: Settings) -> Rules:
    """The file that CLASS= names, checked against the labs there are."""
    rules = class_rules.load(settings.class_file)
    class_rules.check_lab(rules, catalogue.slugs())
    return rules


def about(settings: Settings, lab: str, folder: Path) -> Known | None:
    """What is known of a class; None where neither CLASS= nor GRADEBOOK= was given, and DIR is not
    Gradescope's."""
    if not (settings.class_file or settings.gradebook or (folder / forges.METADATA).is_file()):
        return None
    return Known(rules_of(settings), lab, settings.gradebook, folder)


def who(settings: Settings) -> int:
    """Whose each submission is, as a table; what a person has to decide is listed, with status 1."""
    folder = settings.hand_in
    if folder is None:
        raise LabError("which class? DIR= is the folder of what was handed in")
    if settings.class_file is None and settings.gradebook is None:
        raise LabError("which students? CLASS=class.toml names the roster (labs/README.md), or GRADEBOOK= is one")
    path = settings.table or Path(f"{folder}.students.csv")
    _check_replaceable(path)
    rules = rules_of(settings)
    known = Known(rules, settings.lab, settings.gradebook, folder)
    submissions, left = intake.students(folder)
    known.look(submissions)
    masked: Callable[[str, str], str] = _masked(rules) if rules.given else lambda *_: ""
    lines: list[tuple[str, ...]] = []
    for one in submissions:
        match = known.matches[one.name]
        time = f"{match.time:%Y-%m-%d %H:%M:%S%z}" if match.time else ""
        remark = "; ".join(filter(None, [match.why, *one.notes]))
        mask = masked(class_rules.SEVERAL.join(person.id for person in match.people), one.name)
        for person in match.people or (roster.Person(),):
            address = person.shown.get("e-mail", "")
            lines.append((person.id, person.name, address, mask, one.name, time, remark))
    for person in known.absent():
        address = person.shown.get("e-mail", "")
        lines.append((person.id, person.name, address, masked(person.id, ""), "", "", "handed in nothing"))
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEAD)
    writer.writerows([foreign.cell(cell) for cell in line] for line in sorted(lines))
    write_whole(path, text.getvalue())
    path.chmod(0o600)  # with it an anonymous id is a name again
    matched = sum(bool(match.people) for match in known.matches.values())
    say(f"{matched} of {len(submissions)} submissions are of a student of the roster: {path}")
    if left:
        say(roster.listed("Left out, as they are no submissions", left, 5))
    known.tell()
    return OPEN if known.undecided() or known.roster.doubts else 0


def _check_replaceable(path: Path) -> None:
    """LabError for a file that is no list of who: for the other commands CSV= is the table of grades."""
    files.check_writable(path)
    first = class_table.text_of(path)[:200].partition("\n")[0].strip() if path.exists() else ""
    if first and next(csv.reader([first], delimiter=forges.separator_of(first))) != list(HEAD):
        raise LabError(f"{path}: not a list that make class has written; choose another place with CSV=")


def _masked(rules: Rules) -> Callable[[str, str], str]:
    """An id, and the name of the submission, which counts where there is no id -> an anonymous id."""
    mask = rules.mask
    return lambda id_, name: mask.id(id_) if id_ else mask.of_submission(foreign.from_cell(foreign.cell(name)))


def _called(settings: Settings, rules: Rules) -> Callable[[Row], str] | None:
    """What a student is called in place of the name, with NAMES=no."""
    if settings.names:
        return None
    masked = _masked(rules)
    return lambda row: masked(row.id, row.name)


def _rows(settings: Settings) -> tuple[Path, list[Row]]:
    if settings.table is None or not settings.table.is_file():
        raise LabError(f"{settings.table or 'CSV='}: not the table of a class, which make grade-all writes")
    rows = sorted(class_table.read_rows(settings.table, ()).values(), key=lambda row: row.name)
    if not rows:
        raise LabError(f"{settings.table}: it has no line yet: make grade-all writes them")
    return settings.table, rows


def reports(settings: Settings) -> int:
    """A report for each student, beside the table."""
    table, rows = _rows(settings)
    lab = catalogue.load(settings.lab)
    into = table.with_suffix(".reports" if settings.names else ".anonymous.reports")  # never beside those with names
    number = student_report.write_all(table, rows, lab, into, _called(settings, rules_of(settings)))
    say(f"{number} reports, each as .md and .html: {into}")
    return 0


def grades(settings: Settings) -> int:
    """The grades in the forge's own table, or as a list."""
    table, rows = _rows(settings)
    lab, rules = catalogue.load(settings.lab), rules_of(settings)
    students = class_rules.read_roster(rules, settings.gradebook)
    if settings.gradebook is None:
        path = gradebook.plain_list(table, rows, students, _called(settings, rules))
        say(f"{len(rows)} lines: {path}")
        return 0
    if not settings.names:
        raise LabError("NAMES=no goes without GRADEBOOK=, which has names: leave one of them out")
    into = forges.read_table(settings.gradebook)
    gradebook.tell(gradebook.fill(into, table, rows, lab, rules, students))
    if into.layout.short == "gradescope":
        folder = table.with_suffix(".gradescope")
        say(f"{gradebook.results_of(table, rows, folder)} files results.json: {folder}")
    return 0
