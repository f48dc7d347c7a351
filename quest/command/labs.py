"""The goals of the labs: each takes its settings and gives the status (quest/labs/commands.py)."""

import os
import time
from functools import partial
from pathlib import Path

from quest.command.settings import Given
from quest.ground.files import changed_ns
from quest.labs.cli import KNOWN, run_words
from quest.labs.errors import LabError, say

WAIT = 0.5  # seconds between two looks at a student's folder


def _run(command: str, given: Given) -> int:
    """A command of the labs, with those of the settings that they know. InputError for what is wrong."""
    words = [f"{name}={value}" for name, value in given.items() if name in KNOWN]
    return run_words([command, *words], {**os.environ, "LAB_BUILD": given.get("BUILD", "build")})


lab = partial(_run, "lab")
hint = partial(_run, "hint")
solution = partial(_run, "solution")
grade = partial(_run, "grade")
autograder = partial(_run, "autograder")
handout = partial(_run, "handout")
merge = partial(_run, "merge")
of_class = partial(_run, "class")
reports = partial(_run, "reports")
gradebook = partial(_run, "gradebook")


def labs(given: Given) -> int:
    """Which there are."""
    return _run("lab", {name: value for name, value in given.items() if name != "CH"})


def grade_all(given: Given) -> int:
    """A class's table has a name, wherever it was not given one: beside DIR, also where that ends with a /."""
    return _run("grade-all", {"CSV": f"{Path(given['DIR'])}.csv", **given} if "DIR" in given else given)


def check(given: Given) -> int:
    """With WATCH=1 once more after each change, until it is ended or nothing can be judged."""
    while "WATCH" in given:
        folder = _folder(given)
        before = _dates(folder)
        _run("check", given)
        say(f"\nWaiting for {folder} to change (Ctrl-C ends it).")
        while _dates(folder) == before:
            time.sleep(WAIT)
    return _run("check", given)


def _folder(given: Given) -> Path:
    if not given.get("CH"):
        raise LabError("which lab? CH=02-fork; make labs lists them")
    return Path(given.get("WORK", "work"), given["CH"])


def _dates(folder: Path) -> dict[Path, int]:
    """When each file of a student's was last changed, in nanoseconds. The newest date alone would not do: if it is in
    the future, no change of another file is seen.
    """
    return {path: changed_ns(path) for path in folder.glob("[!.]*")}


def reset(given: Given) -> int:
    """A student's folder is moved away and begun anew; what was reached, and which hints were taken, stays."""
    folder = _folder(given)
    if not folder.is_dir():
        raise LabError(f"{folder} is not there yet: make lab CH={given['CH']}")
    number = 1
    while (kept := folder.with_name(f"{folder.name}.old{number}")).exists():
        number += 1
    folder.rename(kept)
    say(f"{folder} is now {kept}")
    status = _run("lab", given)
    if status == 0 and (progress := kept / ".progress.json").is_file():
        (folder / progress.name).write_bytes(progress.read_bytes())
    return status
