"""The learner's folder, work/my: the starter, and what was reached (.stages.json)."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

from quest.ground.errors import InputError
from quest.ground.files import locked, write_whole
from quest.my.stages import FOLDER, Stages

STATE = ".stages.json"
STARTER = FOLDER / "starter"
ELF = b"\x7fELF"


@dataclass
class Progress:
    """What was reached. Kept beside the learner's files, and goes with them."""

    done: list[str] = field(default_factory=list)  #: stages that have passed, in that order
    before: list[str] = field(default_factory=list)  #: those of them that passed before they were begun
    skipped: list[str] = field(default_factory=list)
    hints: dict[str, int] = field(default_factory=dict)  #: stage -> how many were shown
    untried: str = ""  #: mark() of a stage that was put in hand and not tried

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Of a folder; an empty one where there is none yet. InputError if the file is damaged."""
        path = folder / STATE
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            lists = {name: [str(each) for each in kept[name]] for name in ("done", "before", "skipped")}
            hints = {str(name): int(count) for name, count in kept["hints"].items()}
            return cls(**lists, hints=hints, untried=str(kept.get("untried", "")))
        except FileNotFoundError:
            return cls()
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            raise InputError(f"{path}: it is damaged; without it all stages count as not done") from None

    def save(self, folder: Path) -> None:
        """Writes it there. OSError if that fails; it is then as it was."""
        write_whole(folder / STATE, json.dumps(asdict(self)) + "\n")

    def in_hand(self, stages: Stages) -> str:
        """The first stage that is neither done nor skipped; "" if there is none."""
        return next((name for name in stages.names if name not in (*self.done, *self.skipped)), "")

    def passed(self, name: str, before: bool = False) -> None:
        """Notes a stage as done. before: without work of the learner's."""
        if name not in self.done:
            self.done.append(name)
            self.before += [name] if before else []
        if name in self.skipped:
            self.skipped.remove(name)


@contextmanager
def changing(folder: Path) -> Iterator[Progress]:
    """The progress, to be changed while no other process does. After an error it stays as it was."""
    with locked(folder / ".stages.lock"):
        progress = Progress.load(folder)
        yield progress
        progress.save(folder)


def begin(folder: Path) -> bool:
    """Writes the starter, all of it or nothing, where no file is yet; whether it did."""
    if folder.exists() and any(folder.iterdir()):
        return False
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(STARTER, part)
    part.replace(folder)
    return True


def mark(folder: Path, stage: str) -> str:
    """A stage, and what the learner had written then: the same later, if nothing was written since."""
    return f"{stage} {hashlib.sha256(repr(sources(folder)).encode()).hexdigest()}"


def is_program(path: Path) -> bool:
    """Whether a file is one that a compiler has made. OSError if it may not be read."""
    with path.open("rb") as file:
        return file.read(4) == ELF


def sources(folder: Path, programs: bool = False) -> dict[str, tuple[int, int]]:
    """Size and date of each file that a learner writes, and so none that a compiler has made; with `programs` those
    that can be run, too."""
    found, paths = {}, list[Path]()
    for place, folders, names in os.walk(folder):  # what cannot be listed, or has just gone, is left out
        folders[:] = [name for name in folders if not name.startswith(".") and name != "__pycache__"]
        paths += [Path(place, name) for name in names if not name.startswith(".")]
    for path in sorted(paths):
        if path.suffix == ".o":
            continue
        try:
            if path.is_file():
                if is_program(path) and not (programs and os.access(path, os.X_OK)):  # a core file is none to run
                    continue
                status = path.stat()
                found[str(path)] = status.st_size, status.st_mtime_ns
        except OSError:  # an editor has just put another in its place
            continue
    return found
