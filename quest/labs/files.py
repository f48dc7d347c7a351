"""Files of students and teachers: read without waiting for a pipe or following a link, and written
only in place of a file.
"""

import contextlib
import math
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from quest.ground import foreign
from quest.ground.files import write_whole
from quest.labs.errors import LabError

FILE_BYTES = 1 << 20  #: the longest file of a submission that is judged
LOG_BYTES = 16 << 20  #: what is kept of the output of one test
PART = ".lab-"  #: how the name of a file begins that is not yet whole


def check_is_file(path: Path, most: float = math.inf) -> None:
    """LabError unless it is a regular file of at most `most` bytes. A link is refused: the reader
    may be allowed more than whoever made it."""
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        raise LabError(f"{path} is not a file: put the text itself there")
    if status.st_size > most:
        raise LabError(f"{path} has {status.st_size} bytes; {most} are the most")


def read_file(path: Path, most: int = FILE_BYTES) -> bytes:
    """The content, cut after `most` + 1 bytes, so that the caller sees that it is too long."""
    check_is_file(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    with open(descriptor, "rb") as file:
        return file.read(most + 1)


def part_of(path: Path) -> Path:
    """A new name in the same folder, for what shall be renamed to `path` once it is whole."""
    return path.with_name(f"{PART}{secrets.token_hex(8)}")


def check_writable(path: Path) -> None:
    """An error now, before the work, if write() would fail after it."""
    if path.exists() and not path.is_file():  # a rename would replace a device
        raise LabError(f"{path} is not a file: give a file, or a path that does not exist yet")
    part = part_of(path)
    part.touch(exist_ok=False)
    part.unlink()


def write(path: Path, text: str) -> None:
    """Replaces the file, and nothing that is no file, by this text; after an error it is as it
    was."""
    check_writable(path)
    write_whole(path, text)


@contextlib.contextmanager
def for_others() -> Iterator[None]:
    """What is made while the block runs can be read by others, who judge or unpack it; tables of grades are as the
    umask of the user wants them."""
    before = os.umask(0o022)
    try:
        yield
    finally:
        os.umask(before)


def make_plain(log: Path) -> None:
    """Rewrites a log with escape codes named, so that no terminal obeys a submission's output."""
    with log.open("rb") as file:
        text = file.read(LOG_BYTES).decode(errors="surrogateescape")
    log.write_text(foreign.plain(text), encoding="utf-8")
