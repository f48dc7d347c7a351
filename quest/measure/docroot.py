"""The files a load experiment asks for, made once below build/docroot, with fixed contents."""

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from quest.ground import places
from quest.ground.entry import errors_named
from quest.spec.model import Docroot

RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")
CONTENT_BYTES = 64 << 20  # of a file; beyond, it is a hole: some experiments ask for gigabytes


def expand_name(pattern: str) -> Iterator[str]:
    """`pool/{00..99}.bin` -> the hundred names; the width of the first number is kept."""
    match = RANGE.search(pattern)
    if not match:
        yield pattern
        return
    first, last = match.groups()
    for number in range(int(first), int(last) + 1):
        yield from expand_name(RANGE.sub(f"{number:0{len(first)}}", pattern, count=1))


def file_names(docroot: Docroot) -> list[str]:
    """The names of all its files."""
    return [name for pattern in docroot.files for name in expand_name(pattern)]


def file_content(name: str, size: int) -> bytes:
    """`size` bytes that differ from file to file, and are the same on every machine."""
    line = name.encode() + b"\n"
    return (line * (size // len(line) + 1))[:size]


def write_file(path: Path, name: str, size: int) -> None:
    """The file of that name below the docroot, of `size` bytes."""
    with path.open("wb") as file:
        file.write(file_content(name, min(size, CONTENT_BYTES)))
        file.truncate(size)


def prepare(docroot: Docroot) -> Path:
    """The folder with these files; made if it is not there yet."""
    text = json.dumps(sorted(docroot.files.items()))
    folder = places.BUILD / "docroot" / hashlib.sha256(text.encode()).hexdigest()[:16]
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Renamed into place when complete: a run that was killed leaves no half docroot that looks
    # whole, and what it leaves has its process id, for sweep_scratch().
    unfinished = Path(tempfile.mkdtemp(dir=places.scratch_parent(), prefix=f"{os.getpid()}-docroot-"))
    try:
        with errors_named(folder):
            for pattern, size in docroot.files.items():
                for name in expand_name(pattern):
                    path = unfinished / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    write_file(path, name, size)
        unfinished.chmod(0o755)
        try:
            unfinished.rename(folder)
        except OSError:
            if not folder.is_dir():  # another process that makes the same one was quicker
                raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder
