"""What the reader has done: work/path.json. It survives updates and `make distclean`; a file that
cannot be read is kept aside, and said.

    {"version": 1, "done": {"01-iterative": {"run": "2026-11-23T12:00:00Z"}}, "guesses": {...}}
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

VERSION = 1


def place() -> Path:
    return Path(os.environ.get("WORK") or "work") / "path.json"


def empty() -> dict[str, Any]:
    return {"version": VERSION, "done": {}, "guesses": {}}


def read() -> dict[str, Any]:
    path = place()
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return empty()
    except (OSError, ValueError) as error:
        return _aside(path, str(error))
    if not isinstance(found, dict) or not isinstance(found.get("done", {}), dict):
        return _aside(path, "not what we wrote")
    if found.get("version", 0) > VERSION:
        return _aside(path, f"of version {found['version']}, which is newer than this tree")
    return {**empty(), **found, "version": VERSION}


def _aside(path: Path, why: str) -> dict[str, Any]:
    number = 1
    while (kept := path.with_name(f"path.{number}.json")).exists():
        number += 1
    try:
        path.rename(kept)
        print(f"{path}: {why}; it is kept as {kept}, and a new one begun", file=sys.stderr)
    except OSError:
        print(f"{path}: {why}; it is not used", file=sys.stderr)
    return empty()


def write(state: dict[str, Any]) -> None:
    """Whole or not at all. That nothing can be kept here is said, and ends nothing."""
    path = place()
    unfinished = path.with_suffix(f".{os.getpid()}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(json.dumps(state, indent=1, ensure_ascii=False) + "\n", "utf-8")
        unfinished.replace(path)
    except OSError as error:
        print(f"{path}: {error.strerror}: what you have done is not kept", file=sys.stderr)


def note(step: str, slug: str, done: bool = True) -> None:
    """The reader has done this step of a chapter; or has not, after all."""
    state = read()
    steps = state["done"].setdefault(slug, {})
    if done and step not in steps:
        steps[step] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        write(state)
    elif not done and steps.pop(step, None):
        write(state)
