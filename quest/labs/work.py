"""A student's folder, work/NN-slug: the starter, the progress, hints, and the solution."""

import difflib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

from quest.ground.files import locked
from quest.labs import files, stages, starter
from quest.labs.errors import LabError
from quest.labs.judge import Verdict
from quest.labs.lab import TREE, Lab

PROGRESS = ".progress.json"


@dataclass
class Progress:
    """Of a lab of either kind. Kept beside the student's files, and goes with them."""

    score: int | None = None  #: of the best check
    first_failure: str = ""  #: id of a test, of the last check
    shown: list[int] = field(default_factory=list)  #: numbers of hints, from 1
    stage: int = 0  #: the number of the stage in hand, of the last check

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Of a student's folder; an empty one where there is none yet, or it is damaged."""
        try:
            kept = cls(**json.loads(files.read_file(folder / PROGRESS)))
            shown = [int(number) for number in kept.shown]
            return cls(kept.score and int(kept.score), str(kept.first_failure), shown, int(kept.stage))
        except (FileNotFoundError, NotADirectoryError, ValueError, TypeError, OverflowError, RecursionError):
            return cls()  # none yet, or damaged

    def save(self, folder: Path) -> None:
        """Writes it there. OSError if that fails; it is then as it was."""
        files.write(folder / PROGRESS, json.dumps(asdict(self)) + "\n")


@contextmanager
def changing(slug: str, folder: Path) -> Iterator[Progress]:
    """The progress in a folder, to be changed while no other process does. After an error it stays
    as it was."""
    demand(slug, folder)
    with locked(folder / ".progress.lock"):
        progress = Progress.load(folder)
        yield progress
        progress.save(folder)


def demand(slug: str, folder: Path) -> None:
    """A LabError unless the lab was begun."""
    if not folder.is_dir():
        raise LabError(f"{folder} is not there yet: make lab CH={slug}")


def note(verdict: Verdict, folder: Path) -> int:
    """Keeps the points of a check if they are the best, and what failed first; the best points."""
    with changing(verdict.lab.slug, folder) as progress:
        progress.score = max(progress.score or 0, verdict.score)
        first = verdict.first_failure
        progress.first_failure = first.id if first is not None and verdict.built else ""
        progress.stage = stages.of_verdict(verdict) if verdict.built else progress.stage
        return progress.score


def starters(lab: Lab) -> dict[str, str]:
    """File -> what a student begins with."""
    texts = {}
    for name in lab.files:
        path = lab.source(name)
        where = str(path.relative_to(TREE))
        text = starter.cut(path.read_text(encoding="utf-8"), lab.starter.get(name, {}), where)
        mistakes = [mistake for mistake in lab.mistakes if mistake.file == name]
        texts[name] = starter.planted(text, mistakes, where)
    return texts


def begin(lab: Lab, folder: Path) -> str:
    """Writes the starter where nothing is yet, all of it or nothing; what to say about it."""
    if folder.exists() and any(folder.iterdir()):
        return (
            f"{folder} has your files already: nothing was changed.\n"
            f"To begin again, and keep these files:  make reset CH={lab.slug}"
        )
    part = files.part_of(folder)
    part.mkdir(parents=True)
    try:
        for name, text in starters(lab).items():
            files.write(part / name, text)
        part.replace(folder)  # which is empty, if it is there
    finally:
        shutil.rmtree(part, ignore_errors=True)
    where = ", ".join(str(folder / name) for name in lab.files)
    return (
        f"{lab.title} ({lab.points} points, about {lab.minutes} minutes)\n\n"
        f"  {'your file  ' if len(lab.files) == 1 else 'your files '} {where}\n"
        f"  the task    labs/{lab.slug}/task.md\n"
        f"  then        make check CH={lab.slug}"
    )


def hint(lab: Lab, folder: Path, number: int | None) -> str:
    """The hint of that number, or the next one for what failed first in the last check."""
    with changing(lab.slug, folder) as progress:
        place, count, again = number, len(lab.hints), ""
        if number is None:
            test = progress.first_failure
            if not test and progress.score == lab.points:
                ours = f" Ours: make solution CH={lab.slug}" if lab.is_whole else ""
                return f"Nothing failed in the last check.{ours}"
            if not test and progress.score is None:
                return f"First see what it lacks: make check CH={lab.slug}"
            fitting = [n for n, h in enumerate(lab.hints, 1) if not test or h.test == test]
            number = next((n for n in fitting if n not in progress.shown), None)
            if number is None:
                seen = f" (again: make hint CH={lab.slug} N={fitting[-1]})" if fitting else ""
                about = f" about {test}" if test else ""
                more = f"\nOne way to do it: make solution CH={lab.slug}" if lab.is_whole else ""
                return f"No hint{about} is left{seen}.{more}"
            place, count = fitting.index(number) + 1, len(fitting)
            again = f" (again: make hint CH={lab.slug} N={number})"
        if number not in progress.shown:
            progress.shown.append(number)
    shown = lab.hints[number - 1]
    return f"Hint {place} of {count}, about {shown.test}{again}\n\n{shown.text}"


def solution(lab: Lab, folder: Path, sure: bool) -> str:
    """What separates the student's files from the real ones; before full points: if `sure`."""
    demand(lab.slug, folder)
    score = Progress.load(folder).score
    if not sure and score != lab.points:
        have = "not been checked yet" if score is None else f"{score} of {lab.points} points"
        return f"Your server has {have}. To see the solution all the same:\nmake solution CH={lab.slug} SURE=1"
    if lab.kind == "extend":
        if not lab.patch.exists():
            return "The real server has no such thing, and what we added is not handed out."
        return lab.patch.read_text(encoding="utf-8") + "\nThis is one way to do it."
    text = ""
    for name in lab.files:
        real = starter.clean(lab.source(name).read_text(encoding="utf-8"))
        mine = files.read_file(folder / name).decode(errors="replace")
        labels = str(folder / name), str(lab.source(name).relative_to(TREE))
        lines = difflib.unified_diff(mine.splitlines(True), real.splitlines(True), *labels)
        text += "".join(lines)
    if text:
        text += "\nThis is one way; another may pass the tests as well."
    return text.rstrip("\n") or "Your server is the same as the real one, character for character."
