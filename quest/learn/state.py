"""What the reader has done: work/path.json. It survives updates and `make distclean`; a file that
cannot be read is kept aside, and a line says so.

    {"version": 1, "done": {"01-iterative": {"run": "2026-11-23T12:00:00Z"}},
     "guesses": {"01-iterative": {"drawn-0": {"y": [1.5, null, 3]}}}}
"""

import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quest.ground.entry import os_error_text
from quest.ground.files import locked, write_whole

VERSION = 1
SKIPPED = "skipped"  # in the place of when it was done
DRAWN = "drawn-"  # before the number of a drawing, from 0

#: What is kept of one guess. Of a drawing: "y", a number or null for each place of x.
Guess = dict[str, list[float | None]]


@dataclass
class Progress:
    """By the slug of a chapter."""

    done: dict[str, dict[str, str]] = field(default_factory=dict)  # step -> when (UTC), or SKIPPED
    guesses: dict[str, dict[str, Guess]] = field(default_factory=dict)

    def drawings(self, slug: str) -> dict[str, list[float | None]]:
        """Number of the drawing in its chapter -> what was drawn."""
        guesses = self.guesses.get(slug, {}).items()
        return {key.removeprefix(DRAWN): one["y"] for key, one in guesses if key.startswith(DRAWN)}


@dataclass(frozen=True)
class Folders:
    """Where things are made, and where what is the reader's is kept."""

    build: Path
    work: Path

    @property
    def progress(self) -> Path:
        """The file that state.py keeps."""
        return self.work / "path.json"


def folders(settings: dict[str, str]) -> Folders:
    """Of the settings BUILD and WORK."""
    return Folders(Path(settings.get("BUILD") or "build"), Path(settings.get("WORK") or "work"))


def _load(path: Path) -> tuple[Progress, str]:
    """What is kept; and, if that cannot be used, why."""
    try:
        text = path.read_text(encoding="utf-8")
        kept = json.loads(text, parse_float=_finite, parse_int=_finite, parse_constant=lambda _: None)
    except FileNotFoundError:
        return Progress(), ""
    except (OSError, ValueError, RecursionError) as error:
        return Progress(), str(error)
    if not _is_ours(kept):
        return Progress(), "not in the form that make next writes"
    if kept.get("version", 0) > VERSION:
        return Progress(), f"of version {kept['version']:g}, which is newer than this tree"
    return Progress(kept.get("done", {}), kept.get("guesses", {})), ""


def _finite(number: str) -> float | None:
    """A number that is none came from a page of an older version: a point that was not drawn."""
    value = float(number)
    return value if math.isfinite(value) else None


def is_drawing(y: object) -> bool:
    """A number, as finite JSON has it, or null for each place of x."""
    return isinstance(y, list) and all(each is None or isinstance(each, float) for each in y)


def _is_ours(kept: Any) -> bool:
    """Whether each part has the type that its readers rely on; somebody may have edited the file."""
    try:
        times = [when for steps in kept.get("done", {}).values() for when in steps.values()]
        guesses = [guess for some in kept.get("guesses", {}).values() for guess in some.items()]
        drawn = [guess["y"] for name, guess in guesses if name.startswith(DRAWN)]
    except (AttributeError, KeyError, TypeError):
        return False
    version = kept.get("version", 0)
    return isinstance(version, float | int) and all(isinstance(t, str) for t in times) and all(map(is_drawing, drawn))


def read_progress(path: Path) -> Progress:
    """What is kept in this file; an empty one if there is none, or if it cannot be used."""
    progress, why = _load(path)
    if why:
        change(path, lambda _: None)  # it is moved aside under the lock
        progress, _ = _load(path)
    return progress


def change(path: Path, edit: Callable[[Progress], None]) -> bool:
    """Read, changed and written by one at a time: the page's requests are threads of `make read`,
    and `make done` is another process. False if it cannot be kept; a line says so.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path.with_suffix(".lock")):
            progress, why = _load(path)
            if why:
                _set_aside(path, why)
            edit(progress)
            _write(path, progress)
    except OSError as error:
        print(f"{os_error_text(error)}: what you have done could not be saved", file=sys.stderr)
        return False
    return True


def _set_aside(path: Path, why: str) -> None:
    number = 1
    while (aside := path.with_name(f"path.{number}.json")).exists():
        number += 1
    path.rename(aside)
    print(f"{path}: {why}; it is kept as {aside}, and a new file is begun", file=sys.stderr)


def unreadable(path: Path) -> list[Path]:
    """The files that have been set aside, and wait to be mended."""
    return sorted(path.parent.glob("path.[0-9]*.json"))


def _write(path: Path, progress: Progress) -> None:
    kept = {"version": VERSION, "done": progress.done, "guesses": progress.guesses}
    text = json.dumps(kept, indent=1, allow_nan=False)  # in ASCII: what was kept may hold half of a character
    write_whole(path, text + "\n")


def note_step(path: Path, step: str, slug: str, done: bool = True, skipped: bool = False) -> bool:
    """The reader has done this step of a chapter, or goes on without it; or, with done=False, has
    not done it after all. False if that cannot be kept.
    """
    now = SKIPPED if skipped else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

    def edit(progress: Progress) -> None:
        steps = progress.done.setdefault(slug, {})
        if not done:
            steps.pop(step, None)
        elif steps.get(step, SKIPPED) == SKIPPED:
            steps[step] = now

    return change(path, edit)


def keep_drawing(path: Path, slug: str, number: str, y: list[float | None]) -> bool:
    """What the reader has drawn in a box of this chapter, counted from "0". False if that cannot be
    kept.
    """

    def edit(progress: Progress) -> None:
        progress.guesses.setdefault(slug, {})[DRAWN + number] = {"y": y}

    return change(path, edit)
