"""A student's folder, work/NN-slug: the starter, what has been reached, hints, and the solution."""

from __future__ import annotations

import difflib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from grader import starter
from grader.errors import LabError
from grader.judge import Verdict
from grader.lab import Lab

PROGRESS = ".progress.json"


@dataclass
class Progress:
    """Of the last check. Lies beside the student's files, and goes with them."""

    score: int | None = None
    first_failure: str = ""
    shown: list[int] = field(default_factory=list)  #: numbers of hints, from 1

    @classmethod
    def load(cls, folder: Path) -> Progress:
        try:
            return cls(**json.loads((folder / PROGRESS).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):  # none yet, or damaged: nothing is lost but hints
            return cls()

    def save(self, folder: Path) -> None:
        (folder / PROGRESS).write_text(json.dumps(asdict(self)) + "\n", encoding="utf-8")


def note(verdict: Verdict, folder: Path) -> None:
    """Remembers how far a check came."""
    progress = Progress.load(folder)
    progress.score = verdict.score
    first = verdict.first_failure
    progress.first_failure = first.id if first is not None and verdict.built else ""
    progress.save(folder)


def _in_tree(lab: Lab, name: str) -> str:
    return str(lab.source(name).relative_to(lab.folder.parent.parent))


def starters(lab: Lab) -> dict[str, str]:
    """File -> what a student begins with."""
    found = {}
    for name in lab.files:
        path = lab.source(name)
        replacements = lab.replacements.get(name, {})
        where = _in_tree(lab, name)
        found[name] = starter.cut(path.read_text(encoding="utf-8"), replacements, where)
    return found


def begin(lab: Lab, folder: Path) -> str:
    """Writes the starter where nothing is yet. Returns what to tell."""
    if folder.exists() and any(folder.iterdir()):
        return (
            f"{folder} is yours already and stays as it is.\n"
            f"To start anew, move it away first:  mv {folder} {folder}.old"
        )
    texts = starters(lab)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    where = ", ".join(str(folder / name) for name in texts)
    files = "your file  " if len(texts) == 1 else "your files "
    return (
        f"{lab.title} ({lab.points} points, about {lab.minutes} minutes)\n\n"
        f"  {files} {where}\n"
        f"  the task    labs/{lab.slug}/task.md\n"
        f"  then        make check CH={lab.slug}"
    )


def _demand(lab: Lab, folder: Path) -> None:
    if not folder.is_dir():
        raise LabError(f"{folder} is not there yet: make lab CH={lab.slug}")


def hint(lab: Lab, folder: Path, number: int | None) -> str:
    """The hint of that number, or the next one for what failed first in the last check."""
    _demand(lab, folder)
    progress = Progress.load(folder)
    if number is not None and not 1 <= number <= len(lab.hints):
        raise LabError(f"N={number}: the hints are 1 to {len(lab.hints)}")
    if number is None:
        test = progress.first_failure
        fitting = [n for n, h in enumerate(lab.hints, 1) if not test or h.test == test]
        unseen = [n for n in fitting if n not in progress.shown]
        if not unseen:
            seen = f" (again: make hint CH={lab.slug} N={fitting[-1]})" if fitting else ""
            about = f" about {test}" if test else ""
            return f"No hint{about} is left{seen}.\nOne way to do it: make solution CH={lab.slug}"
        number = unseen[0]
    if number not in progress.shown:
        progress.shown.append(number)
        progress.save(folder)
    shown = lab.hints[number - 1]
    return f"Hint {number} of {len(lab.hints)}, about {shown.test}\n\n{shown.text}"


def solution(lab: Lab, folder: Path, sure: bool) -> str:
    """What separates the student's files from the real ones; before full points: if `sure`."""
    _demand(lab, folder)
    score = Progress.load(folder).score
    if not sure and score != lab.points:
        have = "not been checked yet" if score is None else f"{score} of {lab.points} points"
        return (
            f"Your server has {have}. To see the solution all the same:\n"
            f"make solution CH={lab.slug} SURE=1"
        )
    text = ""
    for name in lab.files:
        real = starter.clean(lab.source(name).read_text(encoding="utf-8"))
        try:
            mine = (folder / name).read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise LabError(f"{folder / name}: {error.strerror}") from None
        labels = str(folder / name), _in_tree(lab, name)
        lines = difflib.unified_diff(mine.splitlines(True), real.splitlines(True), *labels)
        text += "".join(lines)
    return text.rstrip("\n") or "Your server is the real one, to the letter."
