"""A class from what it hands in to the grades in a forge's table: whose each submission is, days,
points per test, reports, exports. A made-up class (class_of.py) goes through it with a judge that
knows each work by its text; a small one with the real judge.

CLASS_OF=60 make test-labs PYTEST_ARGS="-k by_the_real_judge": sixty of them, a quarter of an hour.
"""

import csv
import io
import json
import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from html.parser import HTMLParser
from pathlib import Path

import pytest

from quest.ground import foreign
from quest.ground.errors import InputError
from quest.labs import class_commands, class_rules, class_table, forges, intake, kept, roster, student_report
from quest.labs import lab as labs
from quest.labs.class_rules import Known, Rules
from quest.labs.class_table import Grade, Kind, Row
from quest.labs.errors import LabError
from quest.labs.report import Entry, Outcome, Report
from quest.labs.settings import Settings
from tests.conformance import tracing
from tests.labs import class_of
from tests.labs.class_of import DUE, SLUG, Student, make_class
from tests.labs.grading import Place
from tests.labs.test_labs_grading import wrong_ones

SHORT = ("serves", "concurrency")  #: tests of the small class
STUDENTS = int(os.environ.get("CLASS_OF", "0"))


def lines_of(path: Path, dialect: str = "excel") -> list[dict[str, str]]:
    """The lines of a table."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file, dialect=dialect))


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


class MadeUp:
    """A class, and a judge that knows each work by its text."""

    def __init__(self, top: Path, count: int) -> None:
        self.top, self.table = top, top / "grades.csv"
        self.everybody = make_class(top, count)
        self.expected = {line["submission"]: line for line in lines_of(top / "expected.tsv", dialect="excel-tab")}
        lab = labs.load(SLUG)
        tests = [test for test in lab.tests if test.points]
        fails = {texts["server.c"]: lost for texts, lost in wrong_ones(lab).values()}
        fails[class_of.works(())["solution"][0]["server.c"]] = set()
        self.asked: list[str] = []

        def grade(one: intake.Submission, folder: Path) -> Grade:
            self.asked.append(one.name)
            lost = fails.get((folder / "server.c").read_text(encoding="utf-8"), {test.id for test in tests})
            entries = [
                Entry(test.id, 0, test.points, Outcome.FAILED, test.title, test.fail)
                if test.id in lost
                else Entry(test.id, test.points, test.points, Outcome.PASSED, test.title)
                for test in tests
            ]
            report = Report(entries, [f"{len(lost)} have failed."], "", {"no_program": ""})
            return Grade(class_table.GRADED, report.score, "", "", report.gradescope())

        columns = [kept.column(test.id, test.points) for test in tests]
        self.kind = Kind(["server.c"], SLUG, lab.points, [], "judge", "tests", grade, columns=columns)

    @property
    def settings(self) -> Settings:
        return Settings(
            lab=SLUG, hand_in=self.top / "submissions", table=self.table, class_file=self.top / "class.toml",
            gradebook=self.top / "github.csv",
        )  # fmt: skip

    def grade(self, student: str = "") -> dict[str, dict[str, str]]:
        """Grades all, or one again; the lines by their names."""
        folder = self.top / "submissions"
        about = class_commands.about(self.settings, SLUG, folder)
        self.asked.clear()
        class_table.grade_all(folder, self.table, self.kind, about=about, student=student)
        return {foreign.from_cell(line["name"]): line for line in lines_of(self.table)}

    def of(self, form: str) -> Student:
        """The first student who has handed in like this."""
        return next(one for one in self.everybody if one.form == form)


@pytest.fixture
def small(tmp_path: Path) -> MadeUp:
    return MadeUp(tmp_path, 8)


def test_sixty_made_up_students(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whose, how late and how many points: as it was made. What is not certain is listed."""
    sixty = MadeUp(tmp_path, 60)
    found = sixty.grade()
    said = capsys.readouterr().out
    assert {
        name: (line["state"], line["score"], line["id"], int(line["late"] or 0), line["grade"])
        for name, line in found.items()
    } == {
        name: (line["state"], line["score"], line["id"], int(line["days"]), line["grade"])
        for name, line in sixty.expected.items()
    }
    double, same = sixty.of("twice"), sixty.of("by name")
    assert f"{double.name} ({double.id}) has handed in twice: {double.mail}, too" in said
    absent = said.partition("On the roster, but nothing was handed in")[2]
    assert double.id not in absent and sixty.of("absent").id in absent
    assert f"Jane Doe: may be Jane Doe ({same.id}) or Jane Doe (s{1000 + same.number + 1})" in said
    assert "nobody-knows-me: not on the roster" in said
    for line in found.values():
        if line["state"] in (class_table.GRADED, class_table.NOTHING):
            assert sum(int(line[column]) for column in sixty.kind.columns) == int(line["score"])
    assert all(char.isprintable() or char == "\n" for char in said)


def test_a_teacher_decides_whose_and_how_late(small: MadeUp, capsys: pytest.CaptureFixture[str]) -> None:
    double, late, rules = small.of("twice"), small.everybody[1], small.top / "class.toml"
    before = small.grade()
    assert [before[name]["id"] for name in double.submissions] == ["", ""]
    assert before[late.submissions[0]]["late"] == "2"
    asked = f'\n[who]\n"{double.id}" = ""\n[days_late."{SLUG}"]\n{late.id} = 1\n'
    write(rules, class_of.RULES + asked)
    after = small.grade()
    assert [after[name]["id"] for name in double.submissions] == ["", double.id]
    line = after[late.submissions[0]]
    assert (line["late"], float(line["grade"])) == ("1", float(line["score"]) - 2)
    assert small.asked == [], "nothing is graded anew for it"
    write(rules, class_of.RULES + f'\n[extension."{SLUG}"]\n"{late.user}" = 2\n')
    assert small.grade()[late.submissions[0]]["late"] == "0"
    assert "Named in CLASS, but neither" not in capsys.readouterr().out
    write(rules, class_of.RULES + f'\n[days_late."{SLUG}"]\n"x{late.id}" = 0\n')
    assert small.grade()[late.submissions[0]]["late"] == "2"
    said = "Named in CLASS, but neither on the roster nor a submission (1):\n  [days_late.02-fork] x"
    assert said + late.id in capsys.readouterr().out


def test_one_student_again(small: MadeUp) -> None:
    """The other lines stay, whatever the judge is by now; a line by hand is not lost."""
    before = small.grade()
    late = small.everybody[1]
    small.kind = replace(small.kind, judge="another")
    after = small.grade(late.id)
    assert small.asked == late.submissions
    name = late.submissions[0]
    assert after[name]["note"].endswith(f"graded again; before: {before[name]['score']}")
    assert after[name]["judge"] == "another"
    assert {n: line for n, line in after.items() if n != name} == {n: line for n, line in before.items() if n != name}
    with pytest.raises(LabError, match="there is no such student; did you mean lab-fork-octo"):
        small.grade("lab-fork-octo-1")
    text = small.table.read_text(encoding="utf-8").replace(",graded,", ",by hand,")
    write(small.table, text)
    with pytest.raises(LabError, match="by hand"):
        small.grade(late.id)
    assert small.table.read_text(encoding="utf-8") == text


# ---- days


@pytest.mark.parametrize(
    ("minutes", "days", "grade"),
    [(-1, "0", "20"), (10, "0", "20"), (11, "1", "18"), (24 * 60, "1", "18"), (24 * 60 + 1, "2", "16"),
     (4 * 24 * 60, "4", "12"), (4 * 24 * 60 + 1, "5", "0")],
)  # fmt: skip
def test_days_and_what_they_cost(tmp_path: Path, minutes: int, days: str, grade: str) -> None:
    """Ten minutes of grace; a day that has begun counts; after four there is nothing left."""
    time = (DUE + timedelta(minutes=minutes)).astimezone(UTC)
    row = handed_in_at(tmp_path, f"{time:%Y-%m-%dT%H:%M:%SZ}").filled(OCTOCAT)
    assert (row.id, row.late, row.grade) == ("s1", days, grade)


OCTOCAT = Row("lab-octocat", "20", "20", class_table.GRADED, work="x")


def handed_in_at(tmp_path: Path, time: str, *rosters: str) -> Known:
    """A class of one, by the made-up one's rules and a table of GitHub's with this time."""
    rules = class_rules.load(write(tmp_path / "class.toml", class_of.RULES.partition("\n\n")[2]))
    head = "github_username,roster_identifier,student_repository_name,submission_timestamp"
    line = f"octocat,s1,lab-octocat,{time}"
    book = write(tmp_path / "github.csv", f"{head},points_awarded,points_available\n{line},0,0\n")
    known = Known(replace(rules, rosters=rosters), SLUG, book, tmp_path)
    known.look([intake.Submission("lab-octocat", keys=[("any", "lab-octocat")])])
    return known


@pytest.mark.parametrize(("text", "late", "grade"), [("", "", "20"), ("-", "", "20"), ("mercredi 21 octobre", "?", "")])
def test_a_time_that_is_not_understood_gives_no_grade(tmp_path: Path, text: str, late: str, grade: str) -> None:
    """And where the forge has none, the work counts as in time."""
    row = handed_in_at(tmp_path, text).filled(OCTOCAT)
    assert (row.late, row.grade) == (late, grade)


def test_a_gradebook_that_is_named_as_a_roster_too_is_read_once(tmp_path: Path) -> None:
    """Else each of its lines would be a second one of its student, whose time is not looked at."""
    known = handed_in_at(tmp_path, f"{DUE + timedelta(days=1):%Y-%m-%dT%H:%M:%S%z}", "github.csv")
    assert known.roster.notes == []
    assert known.filled(OCTOCAT).late == "1"


def test_an_extension_without_an_end(tmp_path: Path) -> None:
    """Longer than any calendar is never late; no error, which would leave the class without grades."""
    late = Rules(deadline={SLUG: DUE})
    for rules in (
        replace(late, extension={SLUG: {"x": 10**7}}), replace(late, extension={SLUG: {"x": 10**12}}),
        replace(late, late=class_rules.Late(grace_minutes=10**14)),
    ):  # fmt: skip
        known = Known(rules, SLUG, None, tmp_path)
        known.matches = {"x": roster.Match(time=DUE + timedelta(days=3))}
        assert known.filled(Row("x", "20", "20", class_table.GRADED, work="w")).late == "0"


def test_late_by_the_word_of_canvas_alone(tmp_path: Path) -> None:
    """By how much is not told: there is no grade until the teacher says."""
    known = Known(Rules(deadline={SLUG: DUE}), SLUG, None, tmp_path)
    one = intake.Submission("doejane_1", notes=[intake.LATE])
    known.look([one])
    row = Row("doejane_1", "20", "20", class_table.GRADED, work="x")
    assert (known.filled(row).late, known.filled(row).grade) == ("?", "")
    for days, grade in ((0, "20"), (1, "18"), (99, "0")):  # 0 forgives, and less than nothing is no grade
        known.rules = Rules(deadline={SLUG: DUE}, days_late={SLUG: {"doejane_1": days}})
        assert (known.filled(row).late, known.filled(row).grade) == (str(days), grade)
    known.rules = Rules()
    assert (known.filled(row).late, known.filled(row).grade) == ("", "20"), "without a deadline nothing is late"
    assert known.filled(replace(row, score="excused", state=class_table.BY_HAND)).grade == "excused"
    assert known.filled(replace(row, score="4,5", state=class_table.BY_HAND)).grade == "4.5"


@pytest.mark.parametrize(
    ("text", "utc"),
    [("2026-10-21T21:59:00Z", "2026-10-21 21:59"), ("2026-10-21 23:59:01.123456789 +0200", "2026-10-21 21:59"),
     ("2026-10-21 21:59:00 UTC", "2026-10-21 21:59"), ("Wednesday, 21 October 2026, 11:59 PM", "2026-10-21 21:59"),
     ("Wednesday, October 21, 2026, 11:59 PM", "2026-10-21 21:59"), ("21 October 2026, 23:59", "2026-10-21 21:59"),
     ("October 21, 2026, 23:59", "2026-10-21 21:59"), ("2026-10-21T21:59Z", "2026-10-21 21:59"),
     ("mercredi 21 octobre", ""), ("2026-13-45 10:00 Z", ""), ("", "")],
)  # fmt: skip
def test_times_as_forges_write_them(text: str, utc: str) -> None:
    """A text that is not understood is no time, and none is guessed."""
    found = forges.time_of(text, timezone(timedelta(hours=2)))
    assert (f"{found.astimezone(UTC):%Y-%m-%d %H:%M}" if found else "") == utc
    if "Z" not in text and "+" not in text and "UTC" not in text:
        assert forges.time_of(text, None) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [('[deadline]\n"02-fork" = 2026-10-21T23:59:00\n', "with its offset"),
     ('[deadline]\n"2-fork" = 2026-10-21T23:59:00Z\n', 'there is no lab "2-fork"'),
     ('[extension.2-fork]\njane = 1\n', "extension: there is no lab"),
     ('[days_late.2-fork]\njane = 1\n', "days_late: there is no lab"),
     ('[column]\n2-fork = "x"\n', "column: there is no"),
     ("[late]\nper_day = 2\n", "at most 1"), ("[late]\ngrace = 2\n", "unknown key"),
     ('time_zone = "Nowhere/Land"\n', "time_zone"), ("[extension.02-fork]\njane = -1\n", "at least 0"),
     ('rosters = ["no.csv"]\n', "no.csv: No such file")],
)  # fmt: skip
def test_a_mistake_in_the_rules_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "submissions/ada").mkdir(parents=True)
    rules = write(tmp_path / "class.toml", text)
    with pytest.raises(InputError) as error:
        class_commands.who(Settings(hand_in=tmp_path / "submissions", class_file=rules))
    assert said in str(error.value) and "\n" not in str(error.value)


# ---- who


def roster_of(tmp_path: Path, *texts: str) -> roster.Roster:
    found = roster.Roster()
    for number, text in enumerate(texts):
        found.merge(forges.read_table(write(tmp_path / f"{number}.csv", text)))
    return found


def whose(known: roster.Roster, *keys: tuple[str, str]) -> tuple[list[str], str]:
    match = roster.of_submission(intake.Submission("x", keys=list(keys)), known, {}, None)
    return [person.id for person in match.people], match.why


def test_whose_a_submission_is_and_whose_it_may_be(tmp_path: Path) -> None:
    known = roster_of(
        tmp_path,
        "id;name;e-mail\ns1;Doe, Jane;jane@x.org\ns2;Jane Doe;j2@x.org\ns3;Zoé Ärger;zoe@x.org\n",
        '"identifier","github_username","github_id","name"\n"s1","doe","1",""\n"zoe@x.org","jane-doe","2",""\n',
        "Identifier,Full name,Grade,Last modified (grade)\nParticipant 77,Zoé Ärger,,-\nParticipant 78,Jane Doe,,-\n",
    )
    assert len(known.people) == 3
    assert known.doubts == [f"{tmp_path}/2.csv, line 3: Jane Doe may be Doe, Jane (s1) or Jane Doe (s2)"]
    assert whose(known, ("any", "S3")) == (["s3"], "")
    assert whose(known, ("any", "ZOE\u0301 A\u0308RGER")) == (["s3"], ""), "an accent written in two ways"
    assert whose(known, ("any", os.fsdecode("Zoé Ärger".encode("latin-1")))) == (["s3"], "")
    assert whose(known, ("moodle", "77"), ("name", "Jane Doe")) == (["s3"], ""), "the number counts"
    assert whose(known, ("moodle", "99"), ("name", "Zoé Ärger")) == ([], "not on the roster")
    assert whose(known, ("any", "jane doe")) == ([], "may be Doe, Jane (s1) or Jane Doe (s2)")
    assert whose(known, ("any", "lab-jane-doe"))[0] == [], "of doe, or of jane-doe"
    assert whose(known, ("any", "doe")) == (["s1"], "")
    assert whose(known, ("canvas", "5"), ("canvas name", "doejane")) == (["s1"], ""), "no table of Canvas's is there"
    assert whose(known, ("any", "zoe")) == ([], "not on the roster"), "near is not enough"
    with pytest.raises(LabError, match='who: "x" = "s9": 0 of the roster'):
        roster.of_submission(intake.Submission("x"), known, {"x": "s9"}, None)


def test_a_line_of_a_table_that_may_be_two_is_nobodys(tmp_path: Path) -> None:
    """Two of one name in a forge's table, and a student of that name on the roster; an id that two have."""
    known = roster_of(
        tmp_path,
        "id,name\ns1,Ada\ns1,Ida\ns2,Jane Doe\n",
        "Identifier,Full name,Grade,Last modified (grade)\nParticipant 77,Jane Doe,,-\nParticipant 78,Jane Doe,,-\n",
    )
    assert [person.keys & {("moodle", "77"), ("moodle", "78")} for person in known.people] == [set(), set()]
    assert [doubt.partition(": ")[2] for doubt in known.doubts[1:]] == ["Jane Doe may be Jane Doe (s2)"] * 2
    table = forges.read_table(write(tmp_path / "one.csv", "id,name\ns1,Ada\ns2,Jane\n"))
    found = [known.of_line(table, row) for row in table.rows]
    assert found == [None, known.people[1]]


def test_tables_that_contradict_each_other(tmp_path: Path) -> None:
    """One name and two ids are two students; one address and two ids are a question."""
    known = roster_of(
        tmp_path,
        "id,name,e-mail\ns1,Jane Doe,jane@x.org\ns2,Bob,bob@x.org\n",
        "id,name\ns9,Jane Doe\n",
        'Student,ID,SIS Login ID,Section\n"Doe, Jane",501,jane@x.org,A\n',
        "id,e-mail\ns7,bob@x.org\n",
    )
    assert [person.title for person in known.people] == ["Jane Doe (s1)", "Bob (s2)", "Jane Doe (s9)"]
    assert whose(known, ("canvas", "501")) == (["s1"], ""), "the login is the address"
    assert known.doubts == [f"{tmp_path}/3.csv, line 2: s7 has an id that is not that of Bob (s2)"]


def test_a_roster_with_one_id_for_two(tmp_path: Path) -> None:
    known = roster_of(tmp_path, "id,name\ns1,Ada\ns1,Bob\ns2,Cyd\ns2,Cyd\n")
    assert known.doubts == [f"{tmp_path}/0.csv, line 3: line 2 has the same id, and another student (Ada (s1))"]
    assert known.notes == [f"{tmp_path}/0.csv, line 5: Cyd (s2) was in line 4, too"]
    assert whose(known, ("any", "s1")) == ([], "Ada (s1) is twice on the roster")
    assert whose(known, ("any", "s2")) == (["s2"], "")


def test_a_line_is_where_an_editor_shows_it(tmp_path: Path) -> None:
    """Behind an empty line, and a name of two lines."""
    known = roster_of(tmp_path, 'id,name\ns1,Ada\n\ns2,"Bob\nRoe"\ns1,Ida\n')
    assert known.doubts == [f"{tmp_path}/0.csv, line 6: line 2 has the same id, and another student (Ada (s1))"]


def test_a_roster_of_windows(tmp_path: Path) -> None:
    path = tmp_path / "roster.csv"
    path.write_bytes("Student ID;First name;Last name\r\n7;Jürgen;Groß\r\n".encode("cp1252"))
    table = forges.read_table(path)
    assert table.notes == [f"{path} is not UTF-8: read as Windows-1252"]
    known = roster.Roster()
    known.merge(table)
    assert [person.title for person in known.people] == ["Jürgen Groß (7)"]


@pytest.mark.parametrize(
    ("data", "said"),
    [(b"", "it is empty"), (b"a,b\n1,2\n", "none of its columns"), (b"id,name\n\n1,2,3\n", "line 3 has 3 cells"),
     (b'id,name\n1,"x\n', "not CSV"), (b"\x00\xff;\n", "none of its columns")],
)  # fmt: skip
def test_what_is_no_roster_is_refused(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(data)
    with pytest.raises(LabError, match=said):
        forges.read_table(path)


METADATA = """---
submission_101:
  :submitters:
  - :name: Ada O'Neill
    :sid: 's1'
    :email: ada@x.org
  :created_at: 2026-10-22 20:00:00.123456789 Z
  :score: 3.0
  :status: processed
  :results:
    :tests:
    - :name: "no one"
      :created_at: 1999-01-01 00:00:00 Z
  :history:
  - :id: 1
    :created_at: 2026-10-01 00:00:00 Z
submission_102:
  :submitters:
  - :name: "B\\xF6b \\"x\\""
    :sid:
    :email: bob@x.org
  - :name: 'D''Arcy'
    :sid: 's3'
  :created_at: 2026-10-21 20:00:00 Z
"""


def test_what_gradescope_exports(tmp_path: Path) -> None:
    """A group's submission is of both; the time is that of the submission, and not of what it tells
    of others."""
    folder = tmp_path / "export"
    for name in ("submission_101", "submission_102"):
        (folder / name).mkdir(parents=True)
    write(folder / forges.METADATA, METADATA)
    book = "First Name,Last Name,SID,Email,Total Score,Max Points,Submission ID,Submission Time\n"
    book += "Ada,O'Neill,s1,ada@x.org,,20.0,101,\nBöb,x,,bob@x.org,,20.0,102,\nD,Arcy,s3,d@x.org,,20.0,102,\n"
    known = Known(Rules(deadline={SLUG: DUE}), SLUG, write(tmp_path / "g.csv", book), folder)
    submissions, left = intake.students(folder)
    known.look(submissions)
    assert left == [forges.METADATA]
    rows = {one.name: known.filled(Row(one.name, "10", "20", class_table.GRADED, work="x")) for one in submissions}
    assert (rows["submission_101"].id, rows["submission_101"].late) == ("s1", "1")
    assert rows["submission_101"].handed_in == "2026-10-22 20:00:00+0000"
    assert (rows["submission_102"].id, rows["submission_102"].late) == ("bob@x.org; s3", "0")
    assert forges.read_metadata(folder / forges.METADATA)["submission_102"].submitters[0][1] == ("name", 'Böb "x"')
    alone = [class_commands.about(Settings(), SLUG, where) for where in (folder, tmp_path)]
    assert alone[0] is not None and alone[1] is None, "it is enough to know of a class by"
    write(folder / forges.METADATA, METADATA.replace("'s3'", "'s9'"))
    known = Known(Rules(), SLUG, tmp_path / "g.csv", folder)
    known.look(submissions)
    assert known.matches["submission_102"].people == (), "a group with a stranger in it"
    assert known.undecided() == ['submission_102: Böb "x", D\'Arcy: not on the roster, or more than once']


# ---- back to the forge


def exported(small: MadeUp, name: str) -> Path:
    """The table that the command writes for a forge."""
    class_commands.grades(replace(small.settings, gradebook=small.top / f"{name}.csv"))
    return small.table.with_suffix(f".{name}.csv")


@pytest.mark.parametrize(
    ("name", "key", "grade", "most"),
    [("canvas", "SIS User ID", class_of.ASSIGNMENT, 20), ("moodle", "ID number", "Grade", 100),
     ("gradescope", "SID", "Total Score", 20), ("github", "roster_identifier", "points_awarded", 20)],
)  # fmt: skip
def test_grades_in_the_forges_own_table(
    small: MadeUp, name: str, key: str, grade: str, most: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing else of it changes, but where a spreadsheet would compute. What found no place in it is told."""
    graded = small.grade().values()
    rows = {line["id"]: line for line in graded if line["id"]}
    before, path = (small.top / f"{name}.csv"), exported(small, name)
    old, new = lines_of(before), lines_of(path)
    assert before.read_bytes().count(b"\r\n") == path.read_bytes().count(b"\r\n")
    assert before.read_bytes().startswith(b"\xef\xbb\xbf") == path.read_bytes().startswith(b"\xef\xbb\xbf")
    assert [*old[0]] == [*new[0]] and len(old) == len(new)
    given = 0
    for was, now in zip(old, new, strict=True):
        row = rows.get(was[key])
        mine = row["grade"] if row else ""
        assert now[grade] == (f"{float(mine) * most / 20:g}" if mine else was[grade]), (was, now)
        given += bool(mine)
        changed = {column for column in was if was[column] != now[column]} - {grade}
        for column in changed - {"Feedback comments", "points_available"}:
            assert now[column] == "'" + was[column] and was[column][0] in "=-"
        assert now.get("points_available", "20") == "20" or not mine, "GitHub's is 0 as long as there is none"
    said = capsys.readouterr().out
    others = sum(bool(line["grade"]) for line in graded) - given
    assert f"{given} grades: {path}" in said and f"Grades that have no line in the table ({others}):" in said
    assert ("is scaled" in said) == (most != 20)
    assert given == (2 if name == "github" else 6)
    of_each = list(small.table.with_suffix(".gradescope").glob("*/results.json"))
    assert len(of_each) == (sum(line["state"] == class_table.GRADED for line in graded) if name == "gradescope" else 0)


def test_what_a_forge_is_told_of_a_grade(small: MadeUp) -> None:
    """Moodle shows remarks as HTML. A remark that is there stays, and so does a locked grade."""
    small.grade()
    text = (small.top / "moodle.csv").read_bytes().decode().replace("\r\n", "\n")
    first, second, *others = text.splitlines()[1:]
    locked = first.replace(",Yes,", ",No,")
    remarked = second.removesuffix(",") + ",mine"
    write(small.top / "moodle.csv", "\n".join([text.splitlines()[0], locked, remarked, *others]) + "\n")
    lines = lines_of(exported(small, "moodle"))
    assert lines[0]["Grade"] == "" and lines[1]["Grade"] != "" and lines[1]["Feedback comments"] == "mine"
    said = lines[2]["Feedback comments"]
    assert said.startswith("2 of 20 points. ") and "To mend first: concurrency. " in said


def save(table: Path, lines: Sequence[dict[str, str]]) -> None:
    """As a spreadsheet would."""
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(lines[0]), delimiter=";")
        writer.writeheader()
        writer.writerows(lines)


def test_a_grade_with_a_decimal_comma_is_scaled(small: MadeUp) -> None:
    """As a spreadsheet has saved it; a word of the teacher's stays."""
    late = small.everybody[1]
    text = small.grade()[late.submissions[0]]["grade"]
    for grade, expected in (("4,5", "22.5"), ("excused", "excused")):
        lines = [{**line, "grade": grade if line["id"] == late.id else line["grade"]} for line in lines_of(small.table)]
        save(small.table, lines)
        given = {line["ID number"]: line["Grade"] for line in lines_of(exported(small, "moodle"))}
        assert given[late.id] == expected != text
        small.grade()


def test_a_new_column_of_canvas(small: MadeUp) -> None:
    """Where its gradebook has none for the lab: at the end, behind what Canvas looks for by place."""
    small.grade()
    write(small.top / "class.toml", class_of.RULES.partition("[column]")[0])
    text = (small.top / "canvas.csv").read_text(encoding="utf-8").replace(class_of.ASSIGNMENT, "Another (1)")
    write(small.top / "canvas.csv", text)
    table = list(csv.reader(io.StringIO(exported(small, "canvas").read_text(encoding="utf-8"))))
    assert table[0][-2:] == ["Final Score", SLUG] and table[1][-1] == "20"
    assert {len(line) for line in table} == {len(table[0])}
    write(small.top / "class.toml", class_of.RULES.replace(class_of.ASSIGNMENT, "No such"))
    with pytest.raises(LabError, match='no column "No such"; there are Another'):
        exported(small, "canvas")


@pytest.mark.parametrize("called", [SLUG, labs.load(SLUG).title])
def test_a_column_of_canvas_that_is_called_like_the_lab(small: MadeUp, called: str) -> None:
    """It need not be named in CLASS=; its points are Canvas's. Of two such a teacher has to say which."""
    small.grade()
    write(small.top / "class.toml", class_of.RULES.partition("[column]")[0])
    book, column = small.top / "canvas.csv", f"{called} (99)"
    text = book.read_text(encoding="utf-8").replace(class_of.ASSIGNMENT, column)
    write(book, text.replace("20.0", "50.0", 1))
    assert lines_of(exported(small, "canvas"))[1][column] == "50"
    write(book, text.replace("Final Score", f"{called} (98)"))
    with pytest.raises(LabError, match="which column"):
        exported(small, "canvas")


def test_two_lines_of_one_student_are_no_grade(small: MadeUp) -> None:
    """None is better than the other."""
    small.grade()
    save(small.table, [{**line, "id": line["id"] or small.everybody[0].id} for line in lines_of(small.table)])
    with pytest.raises(LabError, match="has two lines"):
        exported(small, "canvas")


def test_lines_of_canvas_that_are_no_students(tmp_path: Path) -> None:
    """Of how grades are posted. A number stays as it is, and a line may be shorter than the first."""
    head = "Student,ID,SIS Login ID,Section,Lab (1)\n    Points Possible,,,,20\n,,,,Manual Posting\n,,,,Muted\n"
    text = head + "Ada,7,a@x.org,-,-1.5\nBob,8,b@x.org\n"
    table = forges.read_table(write(tmp_path / "canvas.csv", text))
    assert [table.name(row) for _, row in table.students()] == ["Ada", "Bob"]
    assert table.text() == text.replace("b@x.org", "b@x.org,,")


def test_a_line_of_a_forge_that_may_be_two(small: MadeUp, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither of two lines with one id gets a grade."""
    small.grade()
    path = small.top / "canvas.csv"
    lines = path.read_text(encoding="utf-8").splitlines()
    write(path, "\n".join([*lines, lines[2].replace("Ada", "Ida")]) + "\n")
    new = lines_of(exported(small, "canvas"))
    assert new[1][class_of.ASSIGNMENT] == new[-1][class_of.ASSIGNMENT] == ""
    assert "In the table, but without a grade" in capsys.readouterr().out


def test_a_roster_takes_no_grades(small: MadeUp) -> None:
    small.grade()
    with pytest.raises(LabError, match="no column for grades"):
        exported(small, "classroom_roster")
    with pytest.raises(LabError, match="NAMES=no goes without GRADEBOOK="):  # which has them
        class_commands.grades(replace(small.settings, names=False))


# ---- reports, and names that are none

HOSTILE = (
    "<script>alert(1)</script> [x](javascript:1) @all | `a` *b* \x1b[31m\u202e _c_ # d\n> e & \"f\" 'g' http://x.org"
)


class Tags(HTMLParser):
    """The tags of a page, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def hostile_sheet() -> student_report.Sheet:
    lab = replace(labs.load(SLUG), title=HOSTILE)
    tests = (kept.Tested("serves", HOSTILE, "0", 2, Outcome.FAILED, HOSTILE),)
    row = Row("x", "0", "20", class_table.GRADED, note=HOSTILE, grade="0", late="1", work="w")
    return student_report.sheet(row, kept.Kept("w", HOSTILE, "", tests), lab, HOSTILE)


def test_a_report_is_text_for_a_browser() -> None:
    clean, seen = Tags(), Tags()
    lab = labs.load(SLUG)
    passed = kept.Tested("serves", "x", "0", 2, Outcome.FAILED, "y")
    row = Row("x", "0", "20", class_table.GRADED, note="n", grade="0", late="1", work="w")
    clean.feed(student_report.page(student_report.sheet(row, kept.Kept("w", "", "", (passed,)), lab, "z")))
    seen.feed(student_report.page(hostile_sheet()))
    assert seen.tags == clean.tags, "no tag is a student's"
    assert "<script>alert(1)</script>" in seen.text and "\x1b" not in seen.text and "\u202e" not in seen.text


def test_a_report_is_text_for_markdown() -> None:
    """Every mark is escaped, a line stays a line, and @all calls nobody."""
    text = student_report.markdown(hostile_sheet())
    assert text.count("\n# ") == 0 and text.startswith("# ")
    assert "\\<script\\>" in text and "\\[x\\](javascript:1)" in text and "@<!-- -->all" in text
    assert "\\|" in text and "\\`a\\`" in text and "\\*b\\*" in text and "http:\\//x" in text
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines() if line.startswith("|")} == {4}
    assert [char for char in text if not (char.isprintable() or char == "\n")] == []


def test_a_report_begins_with_the_sentence_of_the_first_failure(small: MadeUp) -> None:
    """Then what to read; and with full points nothing is to be read."""
    rows = small.grade()
    class_commands.reports(small.settings)
    folder = small.table.with_suffix(".reports")
    assert len(list(folder.iterdir())) == 2 * len(rows)
    latin = small.of("latin-1")
    text = (folder / f"{latin.submissions[0]}.md").read_text(encoding="utf-8")
    fail = next(test.fail for test in labs.load(SLUG).tests if test.id == "concurrency")
    assert text.index("To mend first: concurrency") < text.index(foreign.markdown(fail)) < text.index("Read:")
    assert "make check CH=02-fork ONLY=concurrency" in text
    stop = kept.Tested("stop", "", "0", 2, Outcome.FAILED, "")
    assert "the manual: shutdown(2)" in student_report.to_read(labs.load(SLUG), stop)
    whole = (folder / f"{small.everybody[0].submissions[0]}.html").read_text(encoding="utf-8")
    assert "20 of 20 points" in whole and "Read:" not in whole
    none = next(one for one in small.everybody if one.work == "nothing")
    name = kept.safe_name(none.submissions[0])
    assert "Nothing was handed in" in (folder / f"{name}.md").read_text(encoding="utf-8")


def test_what_a_report_says_of_days_of_no_grade_and_of_no_program(tmp_path: Path) -> None:
    row, lab = Row("x", "18", "20", class_table.GRADED, late="0", grade="18", work="w"), labs.load(SLUG)

    def told(changed: Row, found: kept.Kept | None = None, with_notes: bool = True) -> str:
        one = student_report.sheet(changed, found, lab, "z", with_notes)
        return f"{one.grade}\n{student_report.page(one)}"

    in_time, late = (student_report.sheet(replace(row, late=days), None, lab, "z").remarks for days in ("0", "2"))
    assert late[1:] == in_time and "2 days" in late[0]
    refused = replace(row, state=class_table.NOT_GRADED, failed="jane/server.c is a link", grade="")
    assert told(refused).startswith("No grade yet") and "jane" in told(refused)
    assert "jane" not in told(refused, with_notes=False), "which may have a name in it"
    tests = (kept.Tested("serves", "T", "0", 2, Outcome.FAILED, "There is no program."),)
    page = told(row, kept.Kept("w", "it does not build\nx.c:1: error", "it does not build", tests))
    assert "x.c:1: error" in page and "<table>" not in page and "To mend first" not in page
    kept.keep(kept.place_of(tmp_path / "t.csv", "x"), Report([], []).gradescope(), "w")
    found = [student_report.details(tmp_path / "t.csv", replace(row, work=work)) for work in ("w", "v")]
    assert found[0] is not None and found[1] is None, "of other work"


def test_what_is_kept_of_each_test(tmp_path: Path) -> None:
    """Points only of tests that have some, and none without a grade; what is damaged is as if it were not there."""
    entries = [
        Entry("serves", 2, 2, Outcome.PASSED, "t"), Entry("mechanism", 0, 0, Outcome.PASSED),
        Entry("crowd", 0, 3, Outcome.FAILED, "t", "why"), Entry("race", 0, 1, Outcome.UNJUDGED, "t", "no strace"),
        Entry("stop", 0, 2, Outcome.FAILED, "t", "why", "crowd"),
    ]  # fmt: skip
    points = {"serves (2)": "2", "crowd (3)": "0", "race (1)": "?", "stop (2)": "0"}
    assert kept.parsed(Report(entries, []).gradescope()).points == points
    assert kept.parsed(Report(entries, [], "no bwrap").gradescope()).points == {}
    assert [" ".join(entry.line.split()) for entry in entries] == [
        "2 of 2 serves t", "mechanism", "0 of 3 crowd t why", "- of 1 race t no strace", "0 of 2 stop t (after crowd)",
    ]  # fmt: skip
    for text in ("", "[]", "{}", '{"output": "", "tests": [], "extra_data": []}', "[" * 100_000):
        assert kept.read(write(tmp_path / "x.json", text)) is None


@pytest.mark.parametrize("text", ["", "z" * 64, "0" * 30])
def test_a_key_that_is_none_makes_no_ids(tmp_path: Path, text: str) -> None:
    """With an empty one everybody could compute them."""
    with pytest.raises(LabError, match="not a key"):
        roster.Mask.of_file(write(tmp_path / "class.key", text))
    assert roster.Mask.of_file(write(tmp_path / "class.key", "0" * 32)).key == bytes(16)


def test_two_students_never_have_one_anonymous_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roster, "ID_CHARACTERS", 0)
    mask = roster.Mask(bytes(16))
    assert mask.id("s1") == mask.id("S1")
    with pytest.raises(LabError, match="two students"):
        mask.id("s2")


def test_no_name_in_what_is_anonymous(small: MadeUp) -> None:
    """With the key the same ids come again, by another key others do; `make class` says whose they are."""
    small.grade()
    settings = replace(small.settings, names=False, gradebook=None)
    for each in (small.settings, settings):  # those with names lie elsewhere
        class_commands.reports(each)
        class_commands.grades(replace(each, gradebook=None))
    listed, folder = small.table.with_suffix(".anonymous.csv"), small.table.with_suffix(".anonymous.reports")
    texts = {path: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    texts[listed] = listed.read_text(encoding="utf-8")
    for one in small.everybody:
        for word in (one.name, one.mail, one.user, one.id, *one.submissions):
            assert [path.name for path, text in texts.items() if word in text or word in path.name] == [], word
    key = small.top / "class.key"
    assert key.stat().st_mode & 0o77 == 0
    class_commands.who(replace(settings, table=small.top / "who.csv", gradebook=small.top / "github.csv"))
    known = {line["anonymous"]: line["id"] for line in lines_of(small.top / "who.csv")}
    ids = [line["id"] for line in lines_of(listed)]
    assert set(ids) <= set(known) and len(set(ids)) == len(ids)
    assert (small.top / "who.csv").stat().st_mode & 0o77 == 0
    first = listed.read_text(encoding="utf-8")
    class_commands.grades(settings)
    assert listed.read_text(encoding="utf-8") == first
    key.unlink()
    class_commands.grades(settings)
    assert not set(ids) & {line["id"] for line in lines_of(listed)}


def test_no_two_lines_have_one_anonymous_id(small: MadeUp) -> None:
    """Else the report of one replaces that of the other: of names that differ in capitals or the way to write an
    accent, and of a submission that does not count and has the id of a student for a name."""
    double = small.of("twice")
    write(small.top / "class.toml", class_of.RULES + f'\n[who]\n"{double.id}" = ""\n')
    for name in ("Twin", "twin", "Zoe\u0301", "Zo\u00e9"):
        (small.top / "submissions" / name).mkdir()
        write(small.top / "submissions" / name / "server.c", "x")
    count, settings = len(small.grade()), replace(small.settings, names=False, gradebook=None)
    class_commands.reports(settings)
    class_commands.grades(settings)
    ids = [line["id"] for line in lines_of(small.table.with_suffix(".anonymous.csv"))]
    reports = small.table.with_suffix(".anonymous.reports").glob("*.md")
    assert len(set(ids)) == len(list(reports)) == count
    class_commands.who(replace(settings, table=small.top / "who.csv", gradebook=small.top / "github.csv"))
    assert set(ids) <= {line["anonymous"] for line in lines_of(small.top / "who.csv")}


def test_a_teachers_list(small: MadeUp) -> None:
    """A cell that a spreadsheet would compute is shown."""
    late = small.everybody[1]
    before = small.grade()[late.submissions[0]]
    class_commands.grades(replace(small.settings, gradebook=None))
    line = next(line for line in lines_of(small.table.with_suffix(".list.csv")) if line["id"] == late.id)
    assert (line["e-mail"], line["late"], line["of"], line["grade"]) == (late.mail, "2", "20", before["grade"])
    assert sum(int(line[column]) for column in small.kind.columns) == int(before["score"])
    text = small.table.with_suffix(".list.csv").read_text(encoding="utf-8")
    cells = [cell for line in csv.reader(io.StringIO(text)) for cell in line]
    assert [cell for cell in cells if cell[:1] in ("=", "-", "+", "@")] == []
    assert any(cell.startswith("'=1+cmd") for cell in cells)


def test_what_is_none_of_ours_is_not_written_over(small: MadeUp) -> None:
    """By `make class` the table of grades, which other commands call CSV=, too; by the grading a file of one line."""
    small.grade()
    text, settings = small.table.read_bytes(), replace(small.settings, table=small.table)
    with pytest.raises(LabError, match="grades.csv: not a list that make class has written; choose another place"):
        class_commands.who(settings)
    assert small.table.read_bytes() == text
    listed = small.top / "who.csv"
    for _ in range(2):
        class_commands.who(replace(settings, table=listed))
    saved = listed.read_text("utf-8").replace(",", ";")
    write(listed, f"\ufeff{saved}")
    class_commands.who(replace(settings, table=listed))
    small.table = write(small.top / "one.txt", "a line of somebody else's\n")
    with pytest.raises(LabError, match="not a table of ours"):
        small.grade()
    assert small.table.read_text("utf-8") == "a line of somebody else's\n"


def test_make_class_has_a_line_for_each_student_and_says_whether_all_is_decided(small: MadeUp) -> None:
    """Also for who has handed in nothing. Without CLASS= there is no key, and so no anonymous id."""
    double, gone, listed = small.of("twice"), small.everybody[1], small.top / "who.csv"
    settings = replace(small.settings, table=listed)
    assert class_commands.who(settings) == class_commands.OPEN
    write(small.top / "class.toml", class_of.RULES + f'\n[who]\n"{double.id}" = ""\n')
    assert class_commands.who(settings) == 0
    assert {line["id"] for line in lines_of(listed)} == {"", *(one.id for one in small.everybody)}
    shutil.rmtree(small.top / "submissions" / gone.submissions[0])
    class_commands.who(replace(settings, class_file=None, gradebook=small.top / "gradescope.csv"))
    (line,) = [line for line in lines_of(listed) if line["id"] == gone.id]
    assert (line["submission"], line["e-mail"], line["anonymous"]) == ("", gone.mail, "")


def test_what_comes_before_the_table(tmp_path: Path) -> None:
    for command in (class_commands.reports, class_commands.grades):
        with pytest.raises(LabError, match="not the table of a class"):
            command(Settings(lab=SLUG, table=tmp_path / "no.csv"))


# ---- with the real judge


def check_class(place: Place, count: int, only: Sequence[str], make: Callable[..., str]) -> None:
    """Import, grading, reports, regrade and export, one command each; every line as it was made."""
    everybody = make_class(place.top, count, only)
    table, rules, book = place.top / "grades.csv", place.top / "class.toml", place.top / "github.csv"
    submissions, tests = place.top / "submissions", [f"ONLY={','.join(only)}"] if only else []
    of_class = [f"CLASS={rules}", f"GRADEBOOK={book}"]
    make("class", f"DIR={submissions}", *of_class)
    said = make("grade-all", f"CH={SLUG}", f"DIR={submissions}", f"CSV={table}", *of_class, *tests)
    found = {foreign.from_cell(line["name"]): line for line in lines_of(table)}
    if any(line["state"] == class_table.UNJUDGED for line in found.values()):
        pytest.skip(said)
    keys = ("state", "score", "id", "grade")
    expected = {line["submission"]: line for line in lines_of(place.top / "expected.tsv", dialect="excel-tab")}
    wrong = {
        name: ([found[name][key] for key in keys], [line[key] for key in keys])
        for name, line in expected.items()
        if [found[name][key] for key in keys] != [line[key] for key in keys]
    }
    assert not wrong
    make("reports", f"CH={SLUG}", f"CSV={table}", f"CLASS={rules}")
    assert len(list(table.with_suffix(".reports").glob("*.html"))) == len(found)
    again = everybody[1]
    make("grade-all", f"CH={SLUG}", f"DIR={submissions}", f"CSV={table}", *of_class, *tests, f"STUDENT={again.id}")
    after = {foreign.from_cell(line["name"]): line for line in lines_of(table)}
    name = again.submissions[0]
    assert "graded again" in after[name]["note"] and after[name]["score"] == found[name]["score"]
    for forge in ("canvas", "moodle", "gradescope", "github"):
        make("gradebook", f"CH={SLUG}", f"CSV={table}", f"CLASS={rules}", f"GRADEBOOK={place.top / forge}.csv")
    given = {line["SIS User ID"]: line[class_of.ASSIGNMENT] for line in lines_of(table.with_suffix(".canvas.csv"))}
    certain = {line["id"]: line["grade"] for line in expected.values() if line["id"] and line["grade"]}
    most = float(found[everybody[0].submissions[0]]["of"])
    assert {id_: given[id_] for id_ in certain} == {
        id_: class_rules.points(float(grade) * 20 / most) for id_, grade in certain.items()
    }


@pytest.mark.slow
@pytest.mark.skipif(bool(tracing.unavailable()), reason=str(tracing.unavailable()))
def test_a_class_by_the_real_judge(place: Place) -> None:
    """CLASS_OF=60: the whole lab; without it eight students, and two of its tests."""

    def make(*words: str) -> str:
        began = datetime.now(UTC)
        done = place.make(*words, "JOBS=2")
        print(f"{words[0]}: {(datetime.now(UTC) - began).total_seconds():.1f} s")
        assert done.returncode in (0, 2), done.stderr
        if done.returncode == 2:  # of make: a person has to decide something, or there is work without a grade
            assert done.stderr.strip().endswith(("Error 1", "Error 3")), done.stderr
        return done.stdout

    place.limit += 60.0 * STUDENTS
    check_class(place, STUDENTS or 8, () if STUDENTS else SHORT, make)
    kept_ones = list(Path(f"{place.top / 'grades.csv'}.d").iterdir())
    assert all(json.loads(path.read_text(encoding="utf-8"))["tests"] for path in kept_ones)
