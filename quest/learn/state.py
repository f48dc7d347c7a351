"""What the reader has done: work/path.json. It survives updates and `make distclean`; a file that
cannot be read is kept aside, and said.

    {"version": 1, "done": {"01-iterative": {"run": "2026-11-23T12:00:00Z"}}, "guesses": {...}}
"""

import fcntl
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from quest.ground.entry import naming, told

VERSION = 1
SKIPPED = "skipped"  # in the place of when it was done
State = dict[str, Any]


def place() -> Path:
    return Path(os.environ.get("WORK") or "work") / "path.json"


def empty() -> State:
    return {"version": VERSION, "done": {}, "guesses": {}}


def _load() -> tuple[State, str]:
    """What is kept; and, if that cannot be used, why."""
    try:
        # A number that is none came from a page of an older version: a point that was not drawn.
        found = json.loads(place().read_text(encoding="utf-8"), parse_constant=lambda _: None)
    except FileNotFoundError:
        return empty(), ""
    except (OSError, ValueError) as error:
        return empty(), str(error)
    if not isinstance(found, dict) or not isinstance(found.get("done", {}), dict):
        return empty(), "not what we wrote"
    if found.get("version", 0) > VERSION:
        return empty(), f"of version {found['version']}, which is newer than this tree"
    return {**empty(), **found, "version": VERSION}, ""


def read() -> State:
    found, why = _load()
    if why:
        change(lambda _: None)  # it is moved aside under the lock
        found, _ = _load()
    return found


def change(edit: Callable[[State], None]) -> bool:
    """Read, changed and written by one at a time: the page's requests are threads of `make read`,
    and `make done` is another process. That nothing can be kept here is said, and ends nothing;
    False then.
    """
    path = place()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with naming(path), path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            found, why = _load()
            if why:
                _aside(path, why)
            edit(found)
            _write(path, found)
    except OSError as error:
        print(f"{told(error)}: what you have done is not kept", file=sys.stderr)
        return False
    return True


def _aside(path: Path, why: str) -> None:
    number = 1
    while (kept := path.with_name(f"path.{number}.json")).exists():
        number += 1
    path.rename(kept)
    print(f"{path}: {why}; it is kept as {kept}, and a new one begun", file=sys.stderr)


def aside() -> list[Path]:
    """What could not be read, and waits to be mended."""
    return sorted(place().parent.glob("path.[0-9]*.json"))


def _write(path: Path, found: State) -> None:
    """Whole or not at all. By one at a time: change()."""
    unfinished = path.with_suffix(".new")
    text = json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False)
    try:
        unfinished.write_text(text + "\n", "utf-8")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def note(step: str, slug: str, done: bool = True, skipped: bool = False) -> bool:
    """The reader has done this step of a chapter, or goes on without it; or has not, after all.
    False if that could not be kept.
    """
    now = SKIPPED if skipped else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

    def edit(found: State) -> None:
        steps = found["done"].setdefault(slug, {})
        if not done:
            steps.pop(step, None)
        elif steps.get(step, SKIPPED) == SKIPPED:
            steps[step] = now

    return change(edit)


def keep_guess(slug: str, key: str, guess: State) -> bool:
    """What the reader expects of a chapter's question. False if it could not be kept."""
    return change(lambda found: found["guesses"].setdefault(slug, {}).update({key: guess}))
