"""Files that are never seen half written, archives whose bytes depend on nothing but their content, and locks that hold
for one process at a time.
"""

import contextlib
import fcntl
import io
import math
import os
import stat
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

POLL_S = 0.1  # how often a lock that is taken is tried again, where the wait is limited
YEAR_1980 = 315532800  #: in seconds since 1970


class Busy(Exception):
    """Another process has the lock. The text is what it has written into the file: its number."""


def write_whole(path: Path, content: str | bytes) -> None:
    """Replaces the file: a reader gets the old content or the new one, never a part. Text is
    written as UTF-8. The folder must be there.

    OSError, with the name of the file, if it cannot be written; the file is then as it was.
    """
    data = content.encode() if isinstance(content, str) else content
    part = path.with_name(f".{os.urandom(8).hex()}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:  # that the disk is full comes without a name
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def write_if_other(path: Path, text: str) -> None:
    """As write_whole(), with its folder, and only if the file has another text: nothing is made anew without need."""
    data = text.encode()
    if path.is_file() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, data)


def changed_ns(path: Path) -> int:
    """When the file was last changed, in nanoseconds; 0 if it is none, or has just gone: editors and makes replace
    files between two looks.
    """
    try:
        status = path.stat()
    except OSError:
        return 0
    return status.st_mtime_ns if stat.S_ISREG(status.st_mode) else 0


def dated(path: Path) -> str:
    """A file's name, size and date, by which it is known to be the same. OSError if it is not there."""
    status = path.stat()
    return f"{path} {status.st_size} {status.st_mtime_ns}"


def zipped(entries: Iterable[tuple[str, bytes]], seconds: int) -> bytes:
    """A zip whose bytes depend on nothing but the arguments. Times before 1980, which it cannot hold, become 1980. The
    mimetype of an EPUB is not packed, so that readers see by it what they have."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as packed:
        for name, content in entries:
            entry = zipfile.ZipInfo(name, date_time=time.gmtime(max(seconds, YEAR_1980))[:6])
            entry.create_system = 3  # Unix: then the permissions below count
            entry.external_attr = 0o100644 << 16
            how = zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED
            packed.writestr(entry, content, how, compresslevel=9)
    return data.getvalue()


@contextlib.contextmanager
def locked(path: Path, on_wait: Callable[[], None] = lambda: None, patience_s: float = math.inf) -> Iterator[None]:
    """Holds a lock on a file, which is made if it is not there, while the block runs. The kernel
    opens it when the process ends, however it ends. The file holds the number of the process.

    `on_wait` is called once if another process has the lock. Busy after `patience_s` seconds.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        if not _try_lock(descriptor):
            on_wait()
            _wait_for(descriptor, patience_s)
        with contextlib.suppress(OSError):  # on a full disk the lock holds without a number
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait_for(descriptor: int, patience_s: float) -> None:
    if patience_s == math.inf:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return
    deadline = time.monotonic() + patience_s
    while not _try_lock(descriptor):
        if time.monotonic() > deadline:
            raise Busy(os.pread(descriptor, 64, 0).decode("ascii", "replace").strip())
        time.sleep(POLL_S)
