"""`make grade-all`: every folder in DIR is a submission, named after who handed it in. Each is
graded by a process of its own; a line of CSV as soon as it is done.

Who has a line is not graded again, so that what was ended half-way goes on. What the machine could
not do (status 2) is said in its line, and tried again the next time.
"""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from grader import files
from grader.errors import LabError
from grader.lab import TREE, Lab

FIELDS = ("name", "score", "of", "state", "failed", "seconds")
GRADED, UNJUDGED, NOT_GRADED = "graded", "no final grade", "not graded"
MAIN = [sys.executable, "-I", "-B", str(TREE / "labs/grader/__main__.py"), "grade"]


def _done(table: Path) -> list[dict[str, str]]:
    """The lines that stay. One that was cut short does not."""
    if not table.exists():
        return []
    with table.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if rows and set(rows[0]) != set(FIELDS):
        raise LabError(f"{table}: not a table of ours: its first line is not {','.join(FIELDS)}")
    return [row for row in rows if row["seconds"] and row["state"] == GRADED]


def _grade(lab: Lab, folder: Path, words: list[str]) -> dict[str, object]:
    began = time.monotonic()
    row: dict[str, object] = {"name": folder.name, "of": lab.points, "score": "", "failed": ""}
    with tempfile.TemporaryDirectory(prefix="grades-") as place:
        results = Path(place, "results.json")
        settings = [f"CH={lab.slug}", f"DIR={folder.absolute()}", f"JSON={results}", *words]
        ran = subprocess.run(
            [*MAIN, *settings], cwd=TREE, capture_output=True, text=True, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        row["seconds"] = f"{time.monotonic() - began:.1f}"
        if ran.returncode not in (0, 1, 3):
            said = ran.stderr.strip().splitlines()[-1:] or [f"status {ran.returncode}"]
            return row | {"state": NOT_GRADED, "failed": said[0]}
        found: dict[str, Any] = json.loads(results.read_text(encoding="utf-8"))
    names = [test["name"].split(":")[0] for test in found["tests"] if test["status"] != "passed"]
    if why := found["extra_data"]["no_program"]:
        names += [f"({why})"]
    state = UNJUDGED if ran.returncode == 3 else GRADED
    return row | {"score": found["score"], "state": state, "failed": " ".join(names)}


def grade_all(
    lab: Lab, folder: Path, table: Path, jobs: int, words: list[str], logs: Path | None
) -> int:
    """The status: 0 if all are graded, 3 if some are not. Two at once would both write the table:
    what was killed may have left one at work."""
    table.parent.mkdir(parents=True, exist_ok=True)
    busy = f"{table} is being written by another grading; waiting for that."
    with files.alone(table.with_name(f".{table.name}.lock"), lambda: print(busy, flush=True)):
        return _grade_all(lab, folder, table, jobs, words, logs)


def _grade_all(
    lab: Lab, folder: Path, table: Path, jobs: int, words: list[str], logs: Path | None
) -> int:
    here = folder.iterdir() if folder.is_dir() else ()
    everybody = sorted(path for path in here if path.is_dir())
    if not everybody:
        raise LabError(f"{folder}: no folder is in it; DIR= has a folder for each submission")
    kept = _done(table)
    names = {row["name"] for row in kept}
    todo = [path for path in everybody if path.name not in names]
    start = io.StringIO(newline="")
    writer = csv.DictWriter(start, FIELDS)
    writer.writeheader()
    writer.writerows(kept)
    files.write(table, start.getvalue())
    lock = threading.Lock()

    def one(path: Path) -> bool:
        own = [] if logs is None else [f"LOGS={logs / path.name}"]
        row = _grade(lab, path, [*words, *own])
        with lock, table.open("a", newline="", encoding="utf-8") as file:
            csv.DictWriter(file, FIELDS).writerow(row)
            points = f"{row['score']:>3} of {row['of']}"
            print(f"  {path.name:<24} {points}  {row['failed']}", flush=True)
        return row["state"] == GRADED

    with ThreadPoolExecutor(jobs) as pool:  # whose map() starts nobody else if we are ended
        missing = sum(not graded for graded in pool.map(one, todo))
    print(f"\n{len(todo)} graded now, {len(kept)} before; {missing} without a final grade: {table}")
    return 3 if missing else 0
