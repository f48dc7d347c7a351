"""The files a load experiment asks for. Made once under build/docroot, by size, with fixed
contents.
"""

import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from harness import programs
from harness.model import Docroot

RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")
LINE = b"The quick brown fox jumps over the lazy dog, again and again.\n"
WRITTEN = 64 << 20  #: bytes of a file; beyond, it is a hole: some experiments ask for gigabytes


def expand_name(pattern: str) -> Iterator[str]:
    """`pool/{00..99}.bin` -> the hundred names; the width of the first number is kept."""
    match = RANGE.search(pattern)
    if not match:
        yield pattern
        return
    width = len(match.group(1))
    for number in range(int(match.group(1)), int(match.group(2)) + 1):
        name = f"{pattern[: match.start()]}{number:0{width}}{pattern[match.end() :]}"
        yield from expand_name(name)


def names(docroot: Docroot) -> list[str]:
    return [name for pattern in docroot.files for name in expand_name(pattern)]


def smallest(docroot: Docroot) -> tuple[str, int] | None:
    """A file and its size, for a look whether the server is there."""
    if not docroot.files:
        return None
    pattern, size = min(docroot.files.items(), key=lambda item: item[1])
    return next(expand_name(pattern)), size


def content(name: str, size: int) -> bytes:
    """Differs from file to file, is the same on every machine."""
    head = name.encode() + b"\n"
    body = head + LINE * (max(0, size - len(head)) // len(LINE) + 1)
    return body[:size]


def write(path: Path, name: str, size: int) -> None:
    with path.open("wb") as file:
        file.write(content(name, min(size, WRITTEN)))
        file.truncate(size)


def prepare(docroot: Docroot) -> Path:
    """The folder with these files; made if it is not there yet."""
    text = json.dumps(sorted(docroot.files.items()))
    folder = programs.BUILD / "docroot" / hashlib.sha256(text.encode()).hexdigest()[:16]
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Renamed into place when complete: a run that was killed leaves no half docroot that looks
    # whole.
    unfinished = Path(tempfile.mkdtemp(dir=folder.parent, prefix="new-"))
    try:
        for pattern, size in docroot.files.items():
            for name in expand_name(pattern):
                path = unfinished / name
                path.parent.mkdir(parents=True, exist_ok=True)
                write(path, name, size)
        unfinished.chmod(0o755)
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder
