"""`make grade-all`: each submission of a class (intake.py) gets a line of CSV as soon as it is
graded, whatever is wrong with it.

A line is settled for the same work, the same judge and the same tests: their hashes are in it. So
a run that was ended half-way goes on, and what was handed in anew is graded anew. What the machine
could not do (status 2) is said in its line, and tried again the next time.
"""

import contextlib
import csv
import errno
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from hashlib import sha256
from pathlib import Path

from quest.ground import foreign
from quest.ground.files import locked
from quest.labs import closure, files, intake, place
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
NOT_HERE = "cannot be judged here"  #: and gets no line: it may be judged elsewhere
#: errors of this machine, and not of a submission
OF_THE_MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
#: how one submission is graded, in a process of its own
COMMAND = [sys.executable, "-E", "-s", "-m", "quest.labs", "grade"]
LONGEST = 100  #: characters of the name of a folder of logs


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

    def noting(self, text: str) -> "Row":
        """The same with one note more."""
        return replace(self, note="; ".join(filter(None, [self.note, text])))


FIELDS = tuple(field.name for field in fields(Row))
FORMERLY = FIELDS[:6]  #: of a table from before there were hashes


@dataclass(frozen=True)
class Grade:
    """What became of one submission."""

    state: str
    score: int | None = None
    failed: str = ""
    note: str = ""


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


def hash_of(patterns: Iterable[str], *more: str) -> str:
    """Of these files of the tree, with their names, and of other texts that decide."""
    digest = sha256("\0".join(more).encode("utf-8", "surrogateescape"))
    for path in sorted({path for pattern in patterns for path in TREE.glob(pattern)}):
        data = path.read_bytes()
        digest.update(f"{path.relative_to(TREE)}\0{len(data)}\0".encode() + data)
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
    return Kind(
        lab.files, lab.slug, lab.points, ids,
        hash_of([*judge, "quest/labs/*.c", *tools["OBJECTS"].split()], *tools.values(), *deciding),
        hash_of([*tests, "tests/pytest.ini", f"labs/{lab.slug}/lab.toml"], *ids),
        lambda one, folder: grade_one(lab, folder, [*settings.judging, f"LOGS={logs(one)}"]),
    )  # fmt: skip


def log_name(name: str) -> str:
    """The name of a folder for the logs of a student, which every file system takes."""
    short = name.replace("/", "-")
    return short if len(short) <= LONGEST else f"{short[:LONGEST]}-{zlib.crc32(name.encode()):08x}"


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
    report = json.loads(results.read_text(encoding="utf-8"))
    failed = [test["name"].split(":")[0] for test in report["tests"] if test["status"] != Outcome.PASSED]
    reasons = [report["extra_data"][why] for why in ("no_program", "no_grade")]
    failed += [f"({why})" for why in reasons if why]
    state = UNJUDGED if done.returncode == 3 else GRADED
    return Grade(state, report.get("score"), " ".join(failed))


# ---- the table


def read_rows(table: Path, names: Iterable[str]) -> dict[str, Row]:
    """Name -> its last line; a line that was cut short is left out. names: those of the class,
    since a cell does not always tell whose it is."""
    known = {foreign.cell(name): name for name in names}
    if not table.exists():
        return {}
    with table.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        lines = list(csv.DictReader(file))
    if lines and set(lines[0]) not in (set(FIELDS), set(FORMERLY)):
        raise LabError(f"{table}: not a table of ours: its first line is not {','.join(FIELDS)}")
    rows = {}
    for line in lines:
        if line["seconds"] or line["state"] == BY_HAND:
            texts = {key: foreign.from_cell(line.get(key) or "") for key in FIELDS}
            name = known.get(line["name"], texts["name"])
            rows[name] = Row(**(texts | {"name": name}))
    return rows


def _lines(rows: Iterable[Row], head: bool = False) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, FIELDS)
    if head:
        writer.writeheader()
    for row in rows:
        writer.writerow({key: foreign.cell(value) for key, value in asdict(row).items()})
    return text.getvalue()


def _keep_old(table: Path) -> None:
    """A copy beside it: points that are about to be replaced are not lost."""
    number = 1
    while (old := table.with_name(f"{table.name}.old{number}")).exists():
        number += 1
    files.write(old, table.read_text(encoding="utf-8", errors="replace"))
    say(f"The judge, the tests or the settings have changed: all is graded anew. Before: {old}")


def grade_all(folder: Path, table: Path, kind: Kind, jobs: int = 1, results: Path | None = None) -> bool:
    """Grades the submissions in a folder into a table, and to `results` as JSON; true if all have a
    final grade. One process at a time writes a table."""
    table.parent.mkdir(parents=True, exist_ok=True)
    for path in filter(None, (table, results)):
        files.check_writable(path)
    lock = table.with_name(f".{table.name}.lock")

    def wait() -> None:
        pid = files.read_file(lock).decode(errors="replace").strip()
        whose = f" (pid {pid})" if pid else ""
        say(f"{table} is being written by another grading{whose}; waiting for that.")

    with locked(lock, wait):
        submissions, left = intake.students(folder)
        if left:
            more = f" and {len(left) - 5} more" if len(left) > 5 else ""
            say(f"No submissions, and left alone: {', '.join(left[:5])}{more}")
        grading = _Class(table, kind, submissions)
        missing = grading.grade(jobs)
        if results is not None:
            rows = [asdict(row) for row in grading.in_order]
            files.write(results, foreign.to_json(rows, indent=1) + "\n")
        return not missing


class _Class:
    """A table, while it is written."""

    def __init__(self, table: Path, kind: Kind, submissions: Sequence[intake.Submission]) -> None:
        self.table, self.kind, self.submissions = table, kind, submissions
        self.before = {} if kind.anew else read_rows(table, (one.name for one in submissions))
        self.rows = {name: row for name, row in self.before.items() if self._stays(row)}
        graded = sum(row.state in (GRADED, BY_HAND) for row in self.before.values())
        if len(self.rows) < graded:
            _keep_old(table)
        self.lock, self.ended = threading.Lock(), threading.Event()
        self.not_here: list[str] = []  #: why, of each submission that gets no line
        self.kept = 0
        if not kind.anew:
            files.write(table, _lines(self.rows.values(), head=True))

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
            return replace(blank, score="0", state=NOTHING, failed=" ".join(kind.tests))
        settled = self.rows.get(one.name)
        if settled is not None and settled.work == handed.digest:
            return settled
        before = self.before.get(one.name)
        if before is not None and before.work not in ("", handed.digest):
            handed.notes.append(f"handed in anew; before: {before.score}")
        grade = kind.grade(one, handed.folder)
        return replace(
            blank,
            score="" if grade.score is None else str(grade.score),
            state=grade.state,
            failed=grade.failed,
            note="; ".join(filter(None, [*handed.notes, grade.note])),
            work=handed.digest,
            judge=kind.judge,
            tests=kind.tested,
        )

    def _row_whatever_happens(self, one: intake.Submission) -> Row:
        """What is wrong with a submission is said in its line, and does not end the class."""
        if (row := self.rows.get(one.name)) is not None and row.state == BY_HAND:
            return row
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
        return row if row.seconds else replace(row, seconds=f"{time.monotonic() - began:.1f}")

    def _one(self, one: intake.Submission) -> bool:
        """Whether it has a final grade."""
        if self.ended.is_set():
            return False
        row = self._row_whatever_happens(one)
        if self.ended.is_set():
            return False
        with self.lock:
            if row.state == NOT_HERE:
                self.not_here.append(row.failed)
                say(foreign.line(f"  {one.name:<24} {row.failed}"))
            elif row == self.rows.get(one.name):
                self.kept += 1
            else:
                self.rows[one.name] = row
                self._add(row)
        return row.state in SETTLED

    def _add(self, row: Row) -> None:
        """A new line, in the table and on the screen."""
        if not self.kind.anew:
            with self.table.open("a", newline="", encoding="utf-8") as file:
                file.write(_lines([row]))
        reason = NOTHING if row.state == NOTHING else row.failed
        note = f" [{row.note}]" if row.note else ""
        say(foreign.line(f"  {row.name:<24} {row.score:>3} of {row.of}  {reason}{note}"))

    def grade(self, jobs: int) -> int:
        """Writes the whole table; how many have no final grade."""
        gradings: list[Future[bool]] = []
        with ThreadPoolExecutor(jobs) as pool:
            try:
                gradings += (pool.submit(self._one, one) for one in self.submissions)
                missing = sum(not grading.result() for grading in gradings)
            except BaseException:  # a signal has ended us, or the table cannot be written
                self.ended.set()
                _end_children(gradings)
                raise
        self.kind.finish(self.rows)
        files.write(self.table, _lines(self.in_order, head=True))
        now = len(self.submissions) - self.kept - len(self.not_here)
        if self.not_here and not now:
            raise CannotJudge(self.not_here[0].partition(CannotJudge.SAYS)[2])
        without = f"{missing} without a final grade"
        say(f"\n{now} graded now, {self.kept} before; {without}: {self.table}")
        return missing


def _end_children(gradings: Sequence[Future[bool]]) -> None:
    """SIGTERM for each process that grades, also for one that only now begins; returns when all
    threads have done. A second signal would end a grading's own clearing up."""
    signalled: set[int] = set()
    while not all(grading.done() for grading in gradings):
        new = set(proc.children(os.getpid())) - signalled
        signalled |= new
        for pid in new:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        time.sleep(0.1)
