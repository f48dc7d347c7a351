"""`make grade-all`: each submission in DIR (intake.py) gets a line of CSV as soon as it is
graded, whatever is wrong with it.

A line is settled for the same work, the same judge and the same tests: their hashes are in it. So
what was ended half-way goes on, and what was handed in anew is graded anew. What the machine could
not do (status 2) is said in its line, and tried again the next time.
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
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from quest.ground import foreign
from quest.labs import files, intake, place
from quest.labs.errors import CannotJudge, LabError, say
from quest.labs.lab import TREE, Lab
from tests.conformance import proc

HASHES = ("work", "judge", "tests")
FIELDS = ("name", "score", "of", "state", "failed", "seconds", "note", *HASHES)
FORMERLY = FIELDS[:6]  #: of a table from before there were hashes
GRADED, UNJUDGED, NOT_GRADED = "graded", "no final grade", "not graded"
NOTHING = "nothing handed in"
BY_HAND = "by hand"  #: a teacher's own: it stays as it is
SELF_CHECK = "self-check"
SETTLED = (GRADED, NOTHING, BY_HAND, SELF_CHECK)
#: errors of this machine, and not of a submission
OF_THE_MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
NOT_HERE = "cannot be judged here"  #: and gets no line: it may be judged elsewhere
Row = dict[str, object]
MAIN = [sys.executable, "-E", "-s", "-m", "quest.labs", "grade"]
JUDGE = ("quest/labs/*.py", "quest/labs/*.c", "quest/ground/*.py")
TESTS = ("tests/conformance/*.py", "tests/*.py", "tests/pytest.ini")
LONGEST = 100  #: characters of the name of a folder of logs


@dataclass(frozen=True)
class Kind:
    """What is graded, and how one submission is."""

    wanted: Sequence[str]  #: files
    slug: str
    points: int
    tests: Sequence[str]  #: ids: what has failed where nothing was handed in
    judge: str  #: hash
    tested: str  #: hash
    grade: Callable[[intake.Submission, Path], Row]  #: its files are in this folder
    most: int = files.FILE_BYTES  #: of one file
    anew: bool = False  #: it costs nothing, so nothing is settled
    finish: Callable[[dict[str, Row]], None] = lambda _: None  #: what only a whole class shows


def hashed(patterns: Iterable[str], *more: str) -> str:
    """Of these files of the tree, with their names, and of what else decides."""
    digest = sha256("\0".join(more).encode("utf-8", "surrogateescape"))
    for path in sorted({path for pattern in patterns for path in TREE.glob(pattern)}):
        data = path.read_bytes()
        digest.update(f"{path.relative_to(TREE)}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()[:16]


def kind_of(lab: Lab, words: Sequence[str], logs: Callable[[intake.Submission], Path]) -> Kind:
    """A lab with a program, with these settings of `make grade`."""
    told = [os.environ.get(f"LAB_{name}", "") for name in ("CC", "FLAGS", "LIBS", "OBJECTS")]
    deciding = [word for word in words if not word.startswith(("SEED=", "ONLY="))]
    ids = [test.id for test in lab.tests]
    return Kind(
        lab.files, lab.slug, lab.points, ids,
        hashed([*JUDGE, *told[-1].split()], *told, *deciding),
        hashed([*TESTS, f"labs/{lab.slug}/lab.toml", f"labs/{lab.slug}/*.py"], *ids),
        lambda one, folder: grade_one(lab, folder, [*words, f"LOGS={logs(one)}"]),
    )  # fmt: skip


def log_name(name: str) -> str:
    """Of the logs of a student: a name that every file system takes."""
    short = name.replace("/", "-")
    return short if len(short) <= LONGEST else f"{short[:LONGEST]}-{zlib.crc32(name.encode()):08x}"


def grade_one(lab: Lab, folder: Path, words: list[str]) -> Row:
    """By a process of its own."""
    results = folder.with_name("results.json")
    settings = [f"CH={lab.slug}", f"DIR={folder}", f"JSON={results}", *words]
    done = subprocess.run(
        [*MAIN, *settings], cwd=TREE, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False,
    )  # fmt: skip
    if done.returncode not in (0, 1, 3) or not results.exists():
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        said = (lines or [f"status {done.returncode}"])[-1]
        here = not said.startswith(f"lab: {CannotJudge.SAYS}")
        return {"state": NOT_GRADED if here else NOT_HERE, "failed": said}
    found: dict[str, Any] = json.loads(results.read_text(encoding="utf-8"))
    names = [test["name"].split(":")[0] for test in found["tests"] if test["status"] != "passed"]
    if why := found["extra_data"]["no_program"]:
        names += [f"({why})"]
    if why := found["extra_data"]["no_grade"]:
        names += [f"({why})"]
    state = UNJUDGED if done.returncode == 3 else GRADED
    return {"score": found.get("score", ""), "state": state, "failed": " ".join(names)}


# ---- the table


def _known(table: Path) -> dict[str, Row]:
    """Name -> the last line of it. One that was cut short is none."""
    if not table.exists():
        return {}
    with table.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        rows = list(csv.DictReader(file))
    if rows and set(rows[0]) not in (set(FIELDS), set(FORMERLY)):
        raise LabError(f"{table}: not a table of ours: its first line is not {','.join(FIELDS)}")
    known: dict[str, Row] = {}
    for row in rows:
        if row["seconds"] or row["state"] == BY_HAND:
            known[foreign.from_cell(row["name"])] = {
                field: foreign.from_cell(row.get(field) or "") for field in FIELDS
            }
    return known


def _lines(rows: Iterable[Mapping[str, object]], head: bool = False) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, FIELDS, restval="", extrasaction="ignore")
    if head:
        writer.writeheader()
    for row in rows:
        writer.writerow(
            {key: foreign.cell(x) if isinstance(x, str) else x for key, x in row.items()}
        )
    return text.getvalue()


def _keep_old(table: Path) -> None:
    """Points that are about to be replaced are not lost."""
    number = 1
    while (old := table.with_name(f"{table.name}.old{number}")).exists():
        number += 1
    files.write(old, table.read_text(encoding="utf-8", errors="replace"))
    say(f"The judge, the tests or the settings have changed: all is graded anew. Before: {old}")


def grade_all(folder: Path, table: Path, kind: Kind, jobs: int = 1) -> int:
    """The status: 0 if all are settled, 3 if some are not. One at a time writes the table."""
    table.parent.mkdir(parents=True, exist_ok=True)
    lock = table.with_name(f".{table.name}.lock")

    def wait() -> None:
        pid = files.read(lock).decode(errors="replace").strip()
        whose = f" (pid {pid})" if pid else ""
        say(f"{table} is being written by another grading{whose}; waiting for that.")

    with files.alone(lock, wait):
        lock.write_text(f"{os.getpid()}\n", encoding="utf-8")
        everybody, left = intake.students(folder)
        if left:
            more = f" and {len(left) - 5} more" if len(left) > 5 else ""
            say(f"No submissions, and left alone: {', '.join(left[:5])}{more}")
        return _Class(table, kind).grade(everybody, jobs)


class _Class:
    """A table, while it is written."""

    def __init__(self, table: Path, kind: Kind) -> None:
        self.table, self.kind = table, kind
        self.before = {} if kind.anew else _known(table)
        same = {"judge": kind.judge, "tests": kind.tested}
        self.rows = {
            name: row
            for name, row in self.before.items()
            if row["state"] == BY_HAND
            or (row["state"] == GRADED and all(row[key] == x for key, x in same.items()))
        }
        graded = sum(row["state"] in (GRADED, BY_HAND) for row in self.before.values())
        if len(self.rows) < graded:
            _keep_old(table)
        self.same = same
        self.lock, self.ended = threading.Lock(), threading.Event()
        self.not_here: list[str] = []  #: why, of each that gets no line
        self.kept = 0
        if not kind.anew:
            files.write(table, _lines(self.rows.values(), head=True))

    def _settled(self, name: str, digest: str) -> Row | None:
        row = self.rows.get(name)
        return row if row is not None and row["work"] == digest else None

    def _graded(self, one: intake.Submission, top: Path) -> Row:
        kind = self.kind
        handed = intake.stage(one, kind.wanted, kind.slug, top, kind.most)
        if handed is None:
            return {"score": 0, "state": NOTHING, "failed": " ".join(kind.tests)}
        known: Row = {"work": handed.digest, **self.same}
        if (old := self._settled(one.name, handed.digest)) is not None:
            return old
        before = self.before.get(one.name, {"work": ""})
        if before["work"] not in ("", handed.digest):
            handed.notes.append(f"handed in anew; before: {before['score']}")
        row = kind.grade(one, handed.folder)
        notes = [*handed.notes, *filter(None, [str(row.get("note", ""))])]
        return known | row | {"note": "; ".join(notes)}

    def _row(self, one: intake.Submission) -> Row:
        """Whatever is wrong with a submission is its line, and no end of the class."""
        if (row := self.rows.get(one.name)) is not None and row["state"] == BY_HAND:
            return row
        began = time.monotonic()
        row = {"name": one.name, "of": self.kind.points, "score": ""}
        try:
            with place.temporary() as top:
                row |= self._graded(one, top)
        except LabError as error:
            row |= {"state": NOT_GRADED, "failed": str(error), "note": "; ".join(one.notes)}
        except OSError as error:
            if error.errno in OF_THE_MACHINE:
                raise
            row |= {"state": NOT_GRADED, "failed": f"it cannot be read: {error.strerror}"}
        except Exception as error:  # a defect of ours, which must not cost the others their grade
            row |= {"state": NOT_GRADED, "failed": f"the grader failed: {error!r}"}
        return {"seconds": f"{time.monotonic() - began:.1f}", **row}

    def _one(self, one: intake.Submission) -> bool:
        if self.ended.is_set():
            return False
        row = self._row(one)
        if self.ended.is_set():
            return False
        with self.lock:
            if row["state"] == NOT_HERE:
                self.not_here.append(str(row["failed"]))
                say(foreign.line(f"  {one.name:<24} {row['failed']}"))
            elif row == self.rows.get(one.name):
                self.kept += 1
            else:
                self.rows[one.name] = row
                self._tell(row)
        return row["state"] in SETTLED

    def _tell(self, row: Row) -> None:
        if not self.kind.anew:
            with self.table.open("a", newline="", encoding="utf-8") as file:
                file.write(_lines([row]))
        said = NOTHING if row["state"] == NOTHING else str(row["failed"])
        note = f" [{row['note']}]" if row.get("note") else ""
        name = str(row["name"])
        say(foreign.line(f"  {name:<24} {row['score']:>3} of {row['of']}  {said}{note}"))

    def grade(self, everybody: list[intake.Submission], jobs: int) -> int:
        gradings: list[Future[bool]] = []
        with ThreadPoolExecutor(jobs) as pool:
            try:
                gradings += (pool.submit(self._one, one) for one in everybody)
                missing = sum(not grading.result() for grading in gradings)
            except BaseException:  # a signal has ended us, or the table cannot be written
                self.ended.set()
                told: set[int] = set()  # a second signal would end the clearing up
                while not all(grading.done() for grading in gradings):  # one may only now begin
                    new = set(proc.children(os.getpid())) - told
                    told |= new
                    for pid in new:
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(pid, signal.SIGTERM)
                    time.sleep(0.1)
                raise
        self.kind.finish(self.rows)
        rows = sorted(self.rows.values(), key=lambda row: str(row["name"]))
        files.write(self.table, _lines(rows, head=True))
        now = len(everybody) - self.kept - len(self.not_here)
        if self.not_here and not now:
            raise CannotJudge(self.not_here[0].partition(CannotJudge.SAYS)[2])
        say(
            f"\n{now} graded now, {self.kept} before; {missing} without a final grade: {self.table}"
        )
        return 3 if missing else 0
