"""`make grade-all`: every folder in DIR is a submission, named after who handed it in, and gets a
line of CSV as soon as it is graded.

Who has a line is not graded again, so that what was ended half-way goes on. What the machine could
not do (status 2) is said in its line, and tried again the next time. Who has handed in nothing has
no points, and is looked at again, which costs nothing.
"""

import contextlib
import csv
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from conformance import proc
from grader import files
from grader.errors import LabError, say
from grader.lab import TREE, Lab

FIELDS = ("name", "score", "of", "state", "failed", "seconds")
GRADED, UNJUDGED, NOT_GRADED = "graded", "no final grade", "not graded"
NOTHING = "nothing handed in"
SETTLED = (GRADED, NOTHING)
Row = dict[str, object]
DEEPER = 2  #: folders between that of a student and the files, as in work/02-fork/server.c
MAIN = [sys.executable, "-I", str(TREE / "labs/grader/__main__.py"), "grade"]


def _done(table: Path) -> list[dict[str, str]]:
    """The lines that stay. One that was cut short does not."""
    if not table.exists():
        return []
    with table.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if rows and set(rows[0]) != set(FIELDS):
        raise LabError(f"{table}: not a table of ours: its first line is not {','.join(FIELDS)}")
    return [row for row in rows if row["seconds"] and row["state"] == GRADED]


def handed_in(wanted: Collection[str], folder: Path) -> Path:
    """Where these files of one student are: the folder, or the only one below it, not too deep,
    that has any. Through no link: it may lead to what others have written."""
    if folder.is_symlink() or any(os.path.lexists(folder / name) for name in wanted):
        return folder
    found = []
    for place, below, names in os.walk(folder):
        if set(names).intersection(wanted):
            found.append(Path(place))
        if len(Path(place).relative_to(folder).parts) == DEEPER:
            below.clear()
    return found[0] if len(found) == 1 else folder


def empty(wanted: Collection[str], folder: Path) -> bool:
    """Whether no file is in it, however deep, nor anything under a file's name."""
    return not folder.is_symlink() and not any(
        names or any(name in wanted or Path(place, name).is_symlink() for name in below)
        for place, below, names in os.walk(folder)
    )


def grade_one(lab: Lab, folder: Path, words: list[str]) -> Row:
    """By a process of its own, with these settings."""
    began = time.monotonic()
    row: Row = {"name": folder.name, "of": lab.points, "score": "", "failed": ""}
    if empty(lab.files, folder):
        everything = " ".join(test.id for test in lab.tests)
        return row | {"score": 0, "state": NOTHING, "failed": everything, "seconds": "0.0"}
    with tempfile.TemporaryDirectory(prefix="grades-") as place:
        results = Path(place, "results.json")
        where = handed_in(lab.files, folder).absolute()
        settings = [f"CH={lab.slug}", f"DIR={where}", f"JSON={results}", *words]
        done = subprocess.run(
            [*MAIN, *settings], cwd=TREE, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False,
        )  # fmt: skip
        row["seconds"] = f"{time.monotonic() - began:.1f}"
        if done.returncode not in (0, 1, 3):
            said = done.stderr.strip().splitlines()[-1:] or [f"status {done.returncode}"]
            return row | {"state": NOT_GRADED, "failed": said[0]}
        found: dict[str, Any] = json.loads(results.read_text(encoding="utf-8"))
    names = [test["name"].split(":")[0] for test in found["tests"] if test["status"] != "passed"]
    if why := found["extra_data"]["no_program"]:
        names += [f"({why})"]
    state = UNJUDGED if done.returncode == 3 else GRADED
    return row | {"score": found["score"], "state": state, "failed": " ".join(names)}


def students(folder: Path) -> list[Path]:
    here = folder.iterdir() if folder.is_dir() else ()
    everybody = sorted(path for path in here if path.is_dir())
    if not everybody:
        raise LabError(f"{folder}: no folder is in it; DIR= has a folder for each submission")
    return everybody


def write(table: Path, rows: Iterable[Mapping[str, object]]) -> None:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, FIELDS)
    writer.writeheader()
    writer.writerows(rows)
    files.write(table, text.getvalue())


def grade_all(
    folder: Path, table: Path, grade: Callable[[Path], Row], jobs: int = 1, anew: bool = False
) -> int:
    """The status: 0 if all are settled, 3 if some are not. One at a time writes the table. `anew`:
    also who is in it already, and what was there stays until all are graded.
    """
    table.parent.mkdir(parents=True, exist_ok=True)
    lock = table.with_name(f".{table.name}.lock")

    def wait() -> None:
        pid = files.read(lock).decode(errors="replace").strip()
        whose = f" (pid {pid})" if pid else ""
        say(f"{table} is being written by another grading{whose}; waiting for that.")

    with files.alone(lock, wait):
        lock.write_text(f"{os.getpid()}\n", encoding="utf-8")
        return _grade_all(students(folder), table, grade, jobs, anew)


def _grade_all(
    everybody: list[Path], table: Path, grade: Callable[[Path], Row], jobs: int, anew: bool
) -> int:
    kept = [] if anew else _done(table)
    names = {row["name"] for row in kept}
    todo = [path for path in everybody if path.name not in names]
    rows: list[Mapping[str, object]] = [*kept]
    if not anew:
        write(table, kept)
    lock, ended = threading.Lock(), threading.Event()

    def one(path: Path) -> bool:
        if ended.is_set():
            return False
        row = grade(path)
        if ended.is_set():
            return False
        with lock:
            rows.append(row)
            if not anew:
                with table.open("a", newline="", encoding="utf-8") as file:
                    csv.DictWriter(file, FIELDS).writerow(row)
            points = f"{row['score']:>3} of {row['of']}"
            said = NOTHING if row["state"] == NOTHING else row["failed"]
            say(f"  {path.name:<24} {points}  {said}")
        return row["state"] in SETTLED

    gradings: list[Future[bool]] = []
    with ThreadPoolExecutor(jobs) as pool:
        try:
            gradings += (pool.submit(one, path) for path in todo)
            missing = sum(not grading.result() for grading in gradings)
        except BaseException:  # a signal has ended us, or the table cannot be written
            ended.set()
            told: set[int] = set()  # a second signal would end the clearing up
            while not all(grading.done() for grading in gradings):  # one may only now begin
                new = set(proc.children(os.getpid())) - told
                told |= new
                for pid in new:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGTERM)
                time.sleep(0.1)
            raise
    write(table, sorted(rows, key=lambda row: str(row["name"])))
    say(f"\n{len(todo)} graded now, {len(kept)} before; {missing} without a final grade: {table}")
    return 3 if missing else 0
