"""`make grade-all`: each submission of a class (intake.py) gets a line of CSV as soon as it is
graded, whatever is wrong with it.

A line is settled for the same work, the same judge and the same tests: their hashes are in it. So
a run that was ended half-way goes on, and what was handed in anew is graded anew. What the machine
could not do (status 2) is said in its line, and tried again the next time.

Whose a line is, and what lateness costs, is filled in when all are graded (About; roster.py): a
roster or a deadline that changes needs no grading.
"""

import contextlib
import csv
import difflib
import errno
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from quest.ground import foreign
from quest.ground.files import locked, write_whole
from quest.labs import closure, files, forges, intake, kept, place
from quest.labs.errors import CannotJudge, LabError, say
from quest.labs.judge import file_of_test
from quest.labs.lab import TREE, Lab
from quest.labs.report import Outcome
from quest.labs.settings import Settings
from tests.conformance import proc

GRADED, UNJUDGED, NOT_GRADED = "graded", "no final grade", "not graded"
NOTHING = "nothing handed in"
BY_HAND = "by hand"  #: a teacher's own line: it stays as it is
SELF_CHECK = "self-check"
SETTLED = (GRADED, NOTHING, BY_HAND, SELF_CHECK)
STATES = (*SETTLED, UNJUDGED, NOT_GRADED, "")  #: that a line may have; without one it is graded again
NOT_HERE = "cannot be judged here"  #: and gets no new line: it may be judged elsewhere
FOR_TEACHERS = "not for the student: "  #: how what follows in a note begins, to its end: it may name others
#: errors of this machine, and not of a submission
OF_THE_MACHINE = (
    errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN,
)  # fmt: skip
COLUMN = re.compile(r"\S+ \(\d+\)")  #: of the points of a test, as kept.column() names it
FORMER = re.compile(r"\bbefore: (\S+)$")  #: at the end of a note: the points that other work had
LONGEST = 2000  #: characters of a reason or a note: a spreadsheet, and Python, refuse a cell that has too many
#: how one submission is graded, in a process of its own
COMMAND = [sys.executable, "-E", "-s", "-m", "quest.labs", "grade"]


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    name: str
    score: str = ""
    of: str = ""
    state: str = ""  #: one of the above
    failed: str = ""  #: ids of tests; in brackets why there is no program, or no grade
    seconds: str = ""
    note: str = ""
    work: str = ""  #: hash of what was handed in
    judge: str = ""  #: hash of what judges
    tests: str = ""  #: hash of what is asked
    id: str = ""  #: on the roster
    student: str = ""  #: the name there; in brackets why none is known
    handed_in: str = ""  #: as the forge says
    late: str = ""  #: days
    grade: str = ""  #: the score, less what the days cost; "" as long as it is not final
    points: Mapping[str, str] = field(default_factory=dict)  #: of each test: kept.column() -> points

    def noting(self, text: str) -> "Row":
        """The same with one note more."""
        return replace(self, note="; ".join(filter(None, [self.note, text])))


FIELDS = tuple(each.name for each in fields(Row) if each.name != "points")
#: Of tables from before there were hashes, and from before there was a roster.
FORMERLY = (FIELDS[:6], FIELDS[:10])


@dataclass(frozen=True)
class Grade:
    """What became of one submission."""

    state: str
    score: int | None = None
    failed: str = ""
    note: str = ""
    report: str = ""  #: the text of results.json


class About(Protocol):
    """What is known of the students of a class, beside what they have handed in."""

    def look(self, submissions: Sequence[intake.Submission]) -> None:
        """What there is, before anything is graded."""

    def named(self, student: str) -> set[str]:
        """The names of the submissions of a student; none if there is no such student."""

    def filled(self, row: Row) -> Row:
        """The line with what it says of the student, with the days and the grade."""

    def tell(self) -> None:
        """Prints what a teacher has to decide."""


class NoRoster:
    """About a class of which nothing is known."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def look(self, submissions: Sequence[intake.Submission]) -> None:
        """Their names are all there is."""
        self.names = {one.name for one in submissions}

    def named(self, student: str) -> set[str]:
        """The submission of that name."""
        return self.names & {student}

    def filled(self, row: Row) -> Row:
        """The grade is the score."""
        return replace(row, id="", student="", handed_in="", late="", grade=row.score if row.state in SETTLED else "")

    def tell(self) -> None:
        """There is nothing to decide."""


@dataclass(frozen=True)
class Kind:
    """What is graded, and how one submission is."""

    wanted: Sequence[str]  #: names of files
    slug: str
    points: int
    tests: Sequence[str]  #: ids: what has failed where nothing was handed in
    judge: str  #: hash
    tested: str  #: hash
    grade: Callable[[intake.Submission, Path], Grade]  #: its files are in this folder
    most: int = files.FILE_BYTES  #: of one file
    anew: bool = False  #: grading costs nothing, so no line is settled
    finish: Callable[[dict[str, Row]], None] = lambda _: None  #: notes about the class as a whole
    columns: Sequence[str] = ()  #: of the points of each test


def hash_of(patterns: Iterable[str], *more: str, files_beside: Iterable[Path] = ()) -> str:
    """Of these files of the tree, with their names, and of other texts that decide. files_beside: by their
    paths, which may lie outside of the tree."""
    digest = sha256("\0".join(more).encode("utf-8", "surrogateescape"))
    found = {path for pattern in patterns for path in TREE.glob(pattern)}
    for path in sorted(found.union(TREE / path for path in files_beside)):
        data = path.read_bytes()
        digest.update(os.fsencode(os.path.relpath(path, TREE)) + f"\0{len(data)}\0".encode() + data)
    return digest.hexdigest()[:16]


def hash_of_modules(modules: Iterable[str]) -> str:
    """Of these modules, and of all of ours that they import."""
    return hash_of(map(str, closure.files_of(modules)))


def kind_of(lab: Lab, settings: Settings, logs: Callable[[intake.Submission], Path]) -> Kind:
    """How submissions of a lab with a program are graded: by `make grade`, with these settings."""
    tools = settings.toolchain.words
    deciding = [word for word in settings.judging if not word.startswith(("SEED=", "ONLY="))]
    ids = [test.id for test in lab.tests]
    own = [file_of_test(lab, name) for test in lab.tests for name in test.tests]
    code = closure.files_of(closure.STARTED, own)
    judge = [str(path) for path in code if path.parts[0] == "quest"]
    tests = [str(path) for path in code if path.parts[0] != "quest"]
    tests += [str(path) for path in closure.programs() if path.suffix != ".py"]
    return Kind(
        lab.files, lab.slug, lab.points, ids,
        hash_of(
            [*judge, "quest/labs/*.c", "code/**/*.h"], *tools.values(), *deciding,
            files_beside=settings.toolchain.objects,
        ),
        hash_of([*tests, "tests/pytest.ini", f"labs/{lab.slug}/lab.toml"], *ids),
        lambda one, folder: grade_one(lab, folder, [*settings.judging, f"LOGS={logs(one)}"]),
        columns=[kept.column(test.id, test.points) for test in lab.tests if test.points],
    )  # fmt: skip


def grade_one(lab: Lab, folder: Path, words: Sequence[str]) -> Grade:
    """By a process of its own, with these settings."""
    results = folder.with_name("results.json")
    settings = [f"CH={lab.slug}", f"DIR={folder}", f"JSON={results}", *words]
    done = subprocess.run(
        [*COMMAND, *settings], cwd=TREE, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False,
    )  # fmt: skip
    if done.returncode not in (0, 1, 3) or not results.exists():
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        last = (lines or [f"status {done.returncode}"])[-1]
        here = not last.startswith(f"lab: {CannotJudge.SAYS}")
        return Grade(NOT_GRADED if here else NOT_HERE, None, last)
    text = results.read_text(encoding="utf-8")
    report = json.loads(text)
    failed = [test["name"].split(":")[0] for test in report["tests"] if test["status"] != Outcome.PASSED]
    reasons = [report["extra_data"][why] for why in ("no_program", "no_grade")]
    failed += [f"({why})" for why in reasons if why]
    state = UNJUDGED if done.returncode == 3 else GRADED
    return Grade(state, report.get("score"), " ".join(failed), report=text)


# ---- the table


def text_of(table: Path) -> str:
    """As it was written here, or as a spreadsheet has saved it, which may be in Windows-1252. The last line may
    have been cut, in the middle of a character too."""
    data = table.read_bytes()
    try:
        data[: data.rfind(b"\n") + 1].decode()
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")
    return data.decode("utf-8-sig", "replace")


def read_rows(table: Path, names: Iterable[str]) -> dict[str, Row]:
    """Name -> its last line; a line that was cut short is left out. names: those of the class,
    since a cell does not always tell whose it is."""
    names = tuple(names)
    known = {foreign.cell(name): name for name in names}
    numbers = Counter(str(int(name)) for name in names if name.isdecimal())
    for name in names:  # of 0042 a spreadsheet makes 42
        if name.isdecimal() and numbers[str(int(name))] == 1:
            known[str(int(name))] = name
    if not table.exists():
        return {}
    text = text_of(table)
    separator = forges.separator_of(text.partition("\n")[0])
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator)
        lines, head = list(reader), reader.fieldnames or ()
    except csv.Error as error:
        raise LabError(f"{table}: not CSV: {error}") from None
    columns = [name for name in head if COLUMN.fullmatch(name)]
    if text.strip() and set(head) - set(columns) not in map(set, (FIELDS, *FORMERLY)):
        raise LabError(f"{table}: not a table of ours: its first line is not {','.join(FIELDS)}")
    rows = {}
    for line in lines:
        texts = {key: foreign.from_cell(line.get(key) or "") for key in FIELDS}
        name = known.get(line["name"], texts.pop("name"))
        texts["state"] = " ".join(texts["state"].casefold().split())  # a spreadsheet may write a capital
        if line.get("seconds") is None and texts["state"] != BY_HAND:  # cut short
            continue
        if texts["state"] not in STATES:  # written by a person, who does not want it replaced
            state = texts["state"]
            raise LabError(f'{table}: {name} has the unknown state "{state}"; for a score of yours write {BY_HAND}')
        if texts["seconds"] or texts["state"] == BY_HAND:
            points = {key: value for key in columns if (value := foreign.from_cell(line[key] or ""))}
            rows[name] = Row(**(texts | {"name": name}), points=points)
    return rows


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


def _lines(rows: Collection[Row], columns: Sequence[str], head: bool = False) -> str:
    """As CSV; columns: those of the tests that come first."""
    text = io.StringIO(newline="")
    others = [key for row in rows for key in row.points]
    writer = csv.DictWriter(text, list(dict.fromkeys([*FIELDS, *columns, *others])))
    if head:
        writer.writeheader()
    for row in rows:
        cells = {**{key: getattr(row, key) for key in FIELDS}, **row.points}
        writer.writerow({key: foreign.cell(value) for key, value in cells.items()})
    return text.getvalue()


def _keep_old(table: Path) -> None:
    """A copy beside it: points that are about to be replaced are not lost."""
    number = 1
    while (old := table.with_name(f"{table.name}.old{number}")).exists():
        number += 1
    write_whole(old, table.read_bytes())  # whatever encoding a spreadsheet has given it
    say(f"The judge, the tests or the settings have changed: all is graded anew. Before: {old}")


def _of_student(student: str, about: About, submissions: Sequence[intake.Submission]) -> set[str]:
    """The names of the submissions of a student. LabError if there are none."""
    names = about.named(student)
    if not names:
        near = difflib.get_close_matches(student, [one.name for one in submissions], 3, 0.5)
        meant = f"; did you mean {', '.join(near)}?" if near else ": neither a submission nor on the roster"
        raise LabError(f"STUDENT={student}: there is no such student{meant}")
    return names


def grade_all(
    folder: Path, table: Path, kind: Kind, jobs: int = 1, results: Path | None = None,
    about: About | None = None, student: str = "",
) -> bool:  # fmt: skip
    """Grades the submissions in a folder into a table, and to `results` as JSON; true if all have a
    final grade. One process at a time writes a table. student: only this one is graded, again, and
    the other lines stay."""
    about = about or NoRoster()
    table.parent.mkdir(parents=True, exist_ok=True)
    for path in filter(None, (table, results)):
        files.check_writable(path)
    if os.path.lexists(beside := kept.folder_of(table)):  # else it can be made, since the table can
        files.check_writable(beside / "x.json")
    lock = table.with_name(f".{table.name}.lock")

    def wait() -> None:
        pid = files.read_file(lock).decode(errors="replace").strip()
        whose = f" (pid {pid})" if pid else ""
        say(f"{table} is being written by another grading{whose}; waiting for that.")

    with locked(lock, wait):
        submissions, left = intake.students(folder)
        if left:
            more = f" and {len(left) - 5} more" if len(left) > 5 else ""
            say(f"Left out, as they are no submissions: {', '.join(left[:5])}{more}")
        about.look(submissions)
        again = _of_student(student, about, submissions) if student else None
        grading = _Class(table, kind, submissions, about, again)
        missing = grading.grade(jobs)
        if results is not None:
            rows = [asdict(row) for row in grading.in_order]
            files.write(results, foreign.to_json(rows, indent=1) + "\n")
        return not missing


class _Class:
    """A table, while it is written."""

    def __init__(
        self, table: Path, kind: Kind, submissions: Sequence[intake.Submission],
        about: About, again: Collection[str] | None,
    ) -> None:  # fmt: skip
        """again: the names of those that are graded whatever there is, and alone."""
        self.table, self.kind, self.about, self.again = table, kind, about, again
        self.before = read_rows(table, (one.name for one in submissions))
        if again is None:
            self.submissions = submissions
            self.rows = {name: row for name, row in self.before.items() if self._stays(row)}
            graded = sum(row.state in (GRADED, BY_HAND) for row in self.before.values())
            if len(self.rows) < graded:
                _keep_old(table)
        else:
            self.submissions = [one for one in submissions if one.name in again]
            self.rows = {name: row for name, row in self.before.items() if name not in again}
            for name in again:
                if name in self.before and self.before[name].state == BY_HAND:
                    raise LabError(f"{table}: {name} was graded {BY_HAND}; to grade it again, empty its state")
        self.lock, self.ended = threading.Lock(), False
        self.at_work = 0  #: submissions that are being graded; under the lock, as is `ended`
        self.not_here: list[str] = []  #: why, of each submission that gets no new line
        self.settled = 0  #: lines that were not graded now
        #: whether lines are written one by one, so that a run that is ended loses none
        self.writes_at_once = not kind.anew and again is None
        if self.writes_at_once:  # the old lines, too: each stays until there is another
            files.write(table, _lines(self.before.values(), kind.columns, head=True))

    @property
    def in_order(self) -> list[Row]:
        return sorted(self.rows.values(), key=lambda row: row.name)

    def _stays(self, row: Row) -> bool:
        same = (row.judge, row.tests) == (self.kind.judge, self.kind.tested)
        return row.state == BY_HAND or (row.state == GRADED and same)

    def _row(self, one: intake.Submission, top: Path) -> Row:
        """The line of a submission whose files are laid out below `top`."""
        kind, blank = self.kind, Row(one.name, of=str(self.kind.points))
        handed = intake.stage(one, kind.wanted, kind.slug, top, kind.most)
        if handed is None:
            none = dict.fromkeys(kind.columns, "0")
            return replace(blank, score="0", state=NOTHING, failed=" ".join(kind.tests), points=none)
        settled = self.rows.get(one.name)
        if settled is not None and settled.work == handed.digest and not kind.anew:
            return settled
        grade = kind.grade(one, handed.folder)
        points: Mapping[str, str] = {}
        if grade.report:
            points = kept.parsed(grade.report).points
            kept.keep(kept.place_of(self.table, one.name), grade.report, handed.digest)
        return replace(
            blank,
            score="" if grade.score is None else str(grade.score),
            state=grade.state,
            failed=grade.failed,
            note="; ".join(filter(None, [*handed.notes, grade.note])),
            work=handed.digest,
            judge=kind.judge,
            tests=kind.tested,
            points=points,
        )

    def _with_former(self, row: Row) -> Row:
        """A new line with the points that the submission had before, also where it has none now: a download that broke
        off may look like an empty folder."""
        before = self.before.get(row.name)
        if before is None:
            return row
        found = FORMER.search(before.note)
        former = before.score if before.work else found[1] if found else ""
        if not former:
            return row
        if before.work != row.work:
            return row.noting(f"handed in anew; before: {former}" if row.work else f"before: {former}")
        if row.work and self.again is None:  # the judge has changed, and the table as it was is beside this one
            return row
        return row.noting(f"graded again; before: {former}" if row.work else f"before: {former}")

    def _row_whatever_happens(self, one: intake.Submission) -> Row:
        """What is wrong with a submission is said in its line, and does not end the class."""
        settled = self.rows.get(one.name)
        by_hand = settled if settled is not None and settled.state == BY_HAND else None
        if by_hand is not None and not self.kind.anew:  # else it is looked at, to be set against the others
            return by_hand
        began = time.monotonic()
        blank = Row(one.name, of=str(self.kind.points), state=NOT_GRADED)
        try:
            with place.temporary() as top:
                row = self._row(one, top)
        except LabError as error:
            row = replace(blank, failed=str(error), note="; ".join(one.notes))
        except OSError as error:
            if error.errno in OF_THE_MACHINE:
                raise
            row = replace(blank, failed=f"it cannot be read: {error.strerror}")
        except Exception as error:  # a defect of ours, which must not cost the others their grade
            row = replace(blank, failed=f"the grader failed: {error!r}")
        if by_hand is not None:
            return by_hand
        if row is not settled:
            row = self._with_former(replace(row, failed=_shortened(row.failed), note=_shortened(row.note)))
        return row if row.seconds else replace(row, seconds=f"{time.monotonic() - began:.1f}")

    def _one(self, one: intake.Submission) -> bool:
        """Whether it has a final grade."""
        with self.lock:
            if self.ended:
                return False
            self.at_work += 1
        try:
            row = self._row_whatever_happens(one)
        finally:
            with self.lock:
                self.at_work -= 1
        with self.lock:
            if self.ended:
                return False
            if row.state == NOT_HERE:
                self.not_here.append(row.failed)
                if (before := self.before.get(one.name)) is not None:
                    self.rows[one.name] = before
                say(foreign.line(f"  {one.name:<24} {row.failed}"))
            elif row == self.rows.get(one.name):
                self.settled += 1
            else:
                self.rows[one.name] = row
                self._add(row)
        return row.state in SETTLED

    def _add(self, row: Row) -> None:
        """A new line, in the table and on the screen."""
        if self.writes_at_once:
            with self.table.open("a", newline="", encoding="utf-8") as file:
                file.write(_lines([row], self.kind.columns))
        reason = NOTHING if row.state == NOTHING else row.failed
        note = f" [{row.note}]" if row.note else ""
        say(foreign.line(f"  {row.name:<24} {row.score:>3} of {row.of}  {reason}{note}"))

    def grade(self, jobs: int) -> int:
        """Writes the whole table; how many have no final grade."""
        with ThreadPoolExecutor(jobs) as pool:
            try:
                gradings = [pool.submit(self._one, one) for one in self.submissions]
                missing = sum(not grading.result() for grading in gradings)
            except BaseException:  # a signal has ended us, or the table cannot be written
                self._end_children()
                raise
        self.kind.finish(self.rows)
        self.rows = {name: self.about.filled(row) for name, row in self.rows.items()}
        files.write(self.table, _lines(self.in_order, self.kind.columns, head=True))
        now = len(self.submissions) - self.settled - len(self.not_here)
        if self.not_here and not now:
            raise CannotJudge(self.not_here[0].partition(CannotJudge.SAYS)[2])
        without = f"{missing} without a final grade"
        say(f"\n{now} graded now, {self.settled} before; {without}: {self.table}")
        self.about.tell()
        return missing

    def _end_children(self) -> None:
        """SIGTERM for each process that grades, also for one that only now begins; returns when no grading
        is at work. The threads count these themselves: a signal may come while submit() has begun a
        grading and has not yet returned it. A second signal would end a grading's own clearing up.
        """
        with self.lock:
            self.ended = True
        signalled: set[int] = set()
        while self.at_work:
            new = set(proc.children(os.getpid())) - signalled
            signalled |= new
            for pid in new:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
            time.sleep(0.1)
