"""`python3 -m tests.labs.class_of FOLDER [STUDENTS]`: a made-up class that has done 02-fork, to try the
commands for teachers on: what was handed in, the roster, the tables of four forges, class.toml, and
expected.tsv, which says what each line has to be.

What is handed in is the solution, the starter, or the solution with one fault of faults.toml; so the
points are known from how it was made. Names, ids and addresses are made up; the layouts are those of
the forges.
"""

import csv
import os
import sys
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

from quest.ground import foreign
from quest.labs import class_table
from quest.labs import lab as labs
from tests.labs.grading import solution
from tests.labs.test_labs_grading import wrong_ones

SLUG = "02-fork"
ASSIGNMENT = "Lab 2: fork (4711)"
DUE = datetime(2026, 10, 21, 23, 59, tzinfo=timezone(timedelta(hours=2)))
RULES = f"""rosters = ["roster.csv", "classroom_roster.csv", "canvas.csv", "moodle.csv"]

[late]
grace_minutes = 10
per_day = 0.1
most_days = 4

[deadline]
"{SLUG}" = {DUE.isoformat()}

[column]
"{SLUG}" = "{ASSIGNMENT}"
"""
FIRST = ("Ada", "Björn", "Chloé", "Dmitri", "Emeka", "Fatma", "Gül", "Hana", "Igor", "Jürgen", "Kaoru", "Łucja")
LAST = ("O'Neill", "Müller", "van der Berg", "Nguyễn", "Öz")
ODD = ("=1+cmd|' C calc'!A0", "\u202egnp.exe", "דנה כהן", "-2+3", 'Ann,  "the" Smith', "<b>Bo", "`id`|tail")


@dataclass
class Student:
    """One of the roster, and what has to become of the work."""

    number: int
    name: str
    work: str = "solution"  #: how the work was made
    form: str = "repository"  #: how it was handed in
    days: int = 0  #: late
    submissions: list[str] = field(default_factory=list)  #: names of the lines
    score: str = ""
    state: str = class_table.GRADED
    known: bool = True  #: whether the line is this student's

    @property
    def id(self) -> str:
        return f"s{1000 + self.number}"

    @property
    def mail(self) -> str:
        return f"{self.id}@example.edu"

    @property
    def user(self) -> str:
        return f"octo-{self.number:02}"

    @property
    def sortable(self) -> str:
        """As Canvas has it."""
        first, blank, last = self.name.partition(" ")
        return f"{last}, {first}" if blank and self.name not in ODD else self.name

    @property
    def time(self) -> datetime:
        """Three hours before the deadline of that day."""
        return DUE + timedelta(days=self.days, hours=-3)


Works = Mapping[str, tuple[Mapping[str, str], int | None]]  #: how it was made -> files, points


def works(only: Sequence[str]) -> Works:
    """All that may be handed in. only: the tests that count; all without."""
    lab = labs.load(SLUG)
    points = {test.id: test.points for test in lab.tests if not only or test.id in only}
    found: dict[str, tuple[Mapping[str, str], int | None]] = {"solution": (solution(lab), sum(points.values()))}
    for name, (texts, fails) in wrong_ones(lab).items():
        found[name] = (texts, sum(most for id_, most in points.items() if id_ not in fails))
    found["does-not-build"] = ({"server.c": "int main(void)\n{\n    return 0\n}\n"}, 0)
    found["python-in-c"] = ({"server.c": "#!/usr/bin/env python3\nimport socket\nprint('serving')\n"}, 0)
    found["wrong-language"] = ({"server.py": "import socket\n"}, None)
    return found


def students(count: int, works: Works) -> list[Student]:
    """A class in which each kind of work and each form is there, as far as there is room."""
    kinds = [name for name in works if name not in ("wrong-language", "python-in-c")]
    forms = ("repository", "canvas", "tree", "moodle", "zip", "tar", "folder")
    found = []
    for number in range(count):
        name = f"{FIRST[number % len(FIRST)]} {LAST[number % len(LAST)]}"
        found.append(Student(number, name, kinds[number % len(kinds)], forms[number % len(forms)]))
    for place, (name, student) in enumerate(zip(ODD, reversed(found[count // 2 :]), strict=False)):
        student.name, student.form = name, "folder"
        student.work = kinds[place + 1]
    special = iter(found)
    next(special).work = "solution"
    late = next(special)
    late.form, late.days, late.work = "repository", 2, kinds[4]
    latin = next(special)
    latin.name, latin.form, latin.work = "Jürgen Müller-Lüdenscheidt", "latin-1", kinds[1]
    double = next(special)
    double.form, double.known, double.work = "twice", False, kinds[4]
    for student, work in zip(special, ("does-not-build", "wrong-language", "nothing", "python-in-c"), strict=False):
        student.work, student.form = work, "folder"
    if count > 20:
        for student, days in zip(special, (1, 3, 6), strict=False):
            student.form, student.days = "repository", days
        next(special).form = "canvas twice"
        same = next(special), next(special)
        for student in same:  # two of one name: by the name alone nobody knows whose it is
            student.name, student.form = "Jane Doe", "by name"
        same[0].known = False
        same[1].form = "absent"
        next(special).form = "stranger"
    return found


# ---- handing in


def _zip(path: Path, texts: Mapping[str, str]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, text in texts.items():
            made.writestr(name, text)


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _below(top: str, texts: Mapping[str, str]) -> dict[str, str]:
    return {f"{top}{name}": text for name, text in texts.items()}


def hand_in(one: Student, into: Path, works: Works) -> None:
    """Writes what a student hands in, in the form that its forge gives it."""
    texts, points = works.get(one.work, ({}, 0))
    ours = works["solution"][0]
    tree = {**_below(f"code/{SLUG}/", ours), "README.md": "", **_below(f"work/{SLUG}/", texts)}
    handout = _below(f"{SLUG}/", {**_below(f"work/{SLUG}/", texts), "Makefile": "", f"labs/{SLUG}/task.md": ""})
    one.score = "" if points is None else str(points)
    one.state = {"wrong-language": class_table.NOT_GRADED, "nothing": class_table.NOTHING}.get(
        one.work, class_table.GRADED
    )
    lines = [one.id]
    match one.form:
        case "repository" | "tree":
            lines = [f"lab-fork-{one.user}"]
            _write(into / lines[0], {".git/config": "[core]\n", **(tree if one.form == "tree" else texts)})
        case "canvas" | "canvas twice":
            who = "".join(char for char in one.sortable.casefold() if char.isalnum())
            lines = [f"{who}_{2000 + one.number}"]
            first = "int x;\n" if one.form == "canvas twice" else ""
            for number, text in enumerate(filter(None, (first, texts.get("server.c", "")))):
                file = f"server-{number}.c" if number else "server.c"
                _write(into, {f"{lines[0]}_{3000 + number}_{file}": text})
        case "moodle":
            lines = [f"{one.name}_{5000 + one.number}"]
            _write(into / f"{lines[0]}_assignsubmission_file_", texts)
        case "zip":
            _zip(into / f"{one.id}.zip", handout)
        case "tar":
            with tarfile.open(into / f"{one.id}.tar.gz", "w:gz") as made:
                _write(into.parent / "packed", handout)
                made.add(into.parent / "packed" / SLUG, one.id)
        case "folder":
            name = one.name if one.name in ODD else one.mail
            lines = [foreign.name(name)]
            (into / name).mkdir()
            _write(into / name, texts)
        case "latin-1":
            lines = [one.name.encode("latin-1").decode("ascii", "backslashreplace")]
            folder = os.fsencode(into) + b"/" + one.name.encode("latin-1")
            os.mkdir(folder)
            Path(os.fsdecode(folder), "server.c").write_text(texts["server.c"], encoding="utf-8")
        case "twice":
            lines = [one.id, one.mail]
            for line in lines:
                _write(into / line, texts)
        case "by name" | "stranger":
            lines = [one.name if one.form == "by name" else "nobody-knows-me"]
            _write(into / lines[0], texts)
            one.known = False
        case "absent":
            lines = []
    one.submissions = lines


# ---- the tables


def _table(path: Path, lines: Sequence[Sequence[object]], end: str = "\n", before: str = "") -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        file.write(before)
        csv.writer(file, lineterminator=end).writerows(lines)


def tables(everybody: Sequence[Student], top: Path) -> None:
    """The roster, and what the four forges export."""
    _table(top / "roster.csv", [["Student ID", "Name", "E-mail"], *([s.id, s.name, s.mail] for s in everybody)])
    hub = [s for s in everybody if s.form in ("repository", "tree")]
    head = ["identifier", "github_username", "github_id", "name"]
    _table(top / "classroom_roster.csv", [head, *([s.id, s.user, 90000 + s.number, ""] for s in hub)])
    head = ["assignment_name", "assignment_url", "starter_code_url", "github_username", "roster_identifier",
            "student_repository_name", "student_repository_url", "submission_timestamp", "points_awarded",
            "points_available"]  # fmt: skip
    hub_lines = [
        ["lab-fork", "https://classroom.example/a/1", "https://git.example/starter", s.user, s.id, f"lab-fork-{s.user}",
         f"https://git.example/lab-fork-{s.user}", s.time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
         0, 0]
        for s in hub
    ]  # fmt: skip
    _table(top / "github.csv", [head, *hub_lines])
    canvas = [["Student", "ID", "SIS User ID", "SIS Login ID", "Section", ASSIGNMENT, "Final Score"],
              ["    Points Possible", "", "", "", "", "20.0", "(read only)"]]  # fmt: skip
    for s in everybody:
        shown = f'="{s.sortable}"' if s.sortable.startswith("=") else s.sortable
        canvas.append([shown, str(2000 + s.number), s.id, s.mail, "Systems, group 1", "", "0.0"])
    _table(top / "canvas.csv", canvas)
    head = ["Identifier", "Full name", "ID number", "Email address", "Status", "Grade", "Maximum grade",
            "Grade can be changed", "Last modified (submission)", "Last modified (grade)",
            "Feedback comments"]  # fmt: skip
    lines = [
        [f"Participant {5000 + s.number}", s.name, s.id, s.mail, "Submitted for grading - ", "", "100.00", "Yes",
         s.time.strftime("%A, %d %B %Y, %I:%M %p"), "-", ""]
        for s in everybody
    ]  # fmt: skip
    _table(top / "moodle.csv", [head, *lines], "\r\n", "\ufeff")
    head = ["First Name", "Last Name", "SID", "Email", "Sections", "Total Score", "Max Points", "Status",
            "Submission ID", "Submission Time", "Lateness (H:M:S)", "View Count", "Submission Count",
            "1: serves (2.0 pts)"]  # fmt: skip
    lines = [
        [*s.name.partition(" ")[::2], s.id, s.mail, "", "", "20.0", "Ungraded", str(7000 + s.number),
         s.time.strftime("%Y-%m-%d %H:%M:%S %z"), "00:00:00", "0", "1", ""]
        for s in everybody
    ]  # fmt: skip
    _table(top / "gradescope.csv", [head, *lines])


def expected_grade(one: Student, most: int) -> str:
    """By hand: a tenth of the points for each day, nothing after four days."""
    if one.state not in class_table.SETTLED:
        return ""
    return str(0 if one.days > 4 else max(0.0, int(one.score) - one.days * most / 10)).removesuffix(".0")


def make_class(top: Path, count: int, only: Sequence[str] = ()) -> list[Student]:
    """All of it, below a folder that is there."""
    made = works(only)
    everybody = students(count, made)
    (top / "submissions").mkdir()
    for one in everybody:
        hand_in(one, top / "submissions", made)
    tables([one for one in everybody if one.form != "stranger"], top)
    (top / "class.toml").write_text(RULES, encoding="utf-8")
    most = made["solution"][1] or 0
    head = ["submission", "id", "work", "form", "state", "score", "days", "grade"]
    lines = [
        [line, one.id if one.known else "", one.work, one.form, one.state, one.score, one.days, grade]
        for one, grade in ((one, expected_grade(one, most)) for one in everybody)
        for line in one.submissions
    ]
    with (top / "expected.tsv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, "excel-tab", lineterminator="\n").writerows([head, *lines])
    return everybody


if __name__ == "__main__":
    make_class(Path(sys.argv[1]), int((sys.argv[2:] or ["60"])[0]))
