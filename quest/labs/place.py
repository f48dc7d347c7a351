"""Temporary folders, one for each grading: closed to other users, and removed after it. If a
grading is killed, the next one of the same user removes its folder.
"""

import contextlib
import fcntl
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

PREFIX = "lab-"
MARK = ".grading"  #: a file in it, so that no other folder of that name is taken for one


def claim() -> tuple[Path, int]:
    """A new folder, and a descriptor with a lock on it, which says that it is in use. The kernel
    releases the lock when this process ends, however it ends."""
    sweep()
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX))
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            (path / MARK).touch()
        except FileNotFoundError:  # another's sweep() came first
            os.close(descriptor)
            continue
        except OSError:  # without the mark no sweep() would remove it
            remove(path)
            os.close(descriptor)
            raise
        return path, descriptor


def remove(path: Path) -> None:
    """Removes a folder, also one with folders that are closed to us, as a test that was ended
    leaves them in its docroot, and however deep it is: a submission may have made some."""
    subprocess.run(["chmod", "-R", "u+rwX", path], check=False)
    subprocess.run(["rm", "-rf", path], check=False)


def sweep() -> None:
    """Removes the folders of gradings that were killed."""
    for path in Path(tempfile.gettempdir()).glob(PREFIX + "*"):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:  # no folder, or not ours
            continue
        try:
            ours = os.fstat(descriptor).st_uid == os.geteuid() and (path / MARK).is_file()
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if ours:
                remove(path)
        except OSError:  # in use
            continue
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def temporary() -> Iterator[Path]:
    """A folder of claim(), removed where the block ends."""
    path, descriptor = claim()
    try:
        yield path
    finally:
        remove(path)
        os.close(descriptor)
