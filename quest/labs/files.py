"""Files of students and teachers: never waited for, written whole, and by one process at a time."""

import contextlib
import fcntl
import math
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from quest.ground import foreign
from quest.labs.errors import LabError

FILE_BYTES = 1 << 20  #: nobody writes a server that long
LOG_BYTES = 16 << 20  #: of the words of a test
PART = ".lab-"  #: how the name of what is not yet whole begins


def check_is_file(path: Path, most: float = math.inf) -> None:
    """And no link: whoever reads it may be allowed more than whoever made it."""
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        raise LabError(f"{path} is not a file: put the text itself there")
    if status.st_size > most:
        raise LabError(f"{path} has {status.st_size} bytes; {most} are the most")


def read(path: Path, most: int = FILE_BYTES) -> bytes:
    """At most a byte more than that."""
    check_is_file(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    with open(descriptor, "rb") as file:
        return file.read(most + 1)


def part_of(path: Path) -> Path:
    """A name beside the path that nobody else uses, for what shall take its place."""
    return path.with_name(f"{PART}{secrets.token_hex(8)}")


def check_writable(path: Path) -> None:
    """So that what cannot be written after the work is known before it."""
    if path.exists() and not path.is_file():  # a rename would take a device away
        raise LabError(f"{path} is not a file: name one, or what is not there yet")
    part = part_of(path)
    part.touch(exist_ok=False)
    part.unlink()


def write(path: Path, text: str) -> None:
    """All of it; or, after an error, what was there before."""
    check_writable(path)
    part = part_of(path)
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:  # that the disk is full comes without a name
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        part.unlink(missing_ok=True)


def make_plain(log: Path) -> None:
    """What a submission has said in it is not to be obeyed by the terminal that shows it."""
    with log.open("rb") as file:
        text = file.read(LOG_BYTES).decode(errors="surrogateescape")
    log.write_text(foreign.plain(text), encoding="utf-8")


@contextlib.contextmanager
def alone(path: Path, waits: Callable[[], None] = lambda: None) -> Iterator[None]:
    """For one process at a time, by a lock on that file. `waits` is called if another has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waits()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
