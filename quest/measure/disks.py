"""A disk of its own for the files of an experiment: a loop device with a fresh ext4.

Each repetition mounts it anew, so no content of a file is in the page cache, and what is counted
for the device is read by the server alone. Names and inodes are read beforehand: a group's limit
counts each of the 32 blocks of inodes that ext4 reads ahead, where a disk would seek once.

It is mounted in a mount namespace of the harness's own: the mount ends with the harness, however
that ends, and the loop device with the mount.
"""

import atexit
import contextlib
import ctypes
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from quest.ground.errors import RepetitionError, Unsupported
from quest.ground.places import Answer, scratch_parent, which
from quest.ground.processes import ends_well
from quest.measure.counters import DiskCounters, disk_counters
from quest.measure.namespaces import separate_mounts
from quest.measure.waiting import comes_true

UNMOUNT_SECONDS = 5.0
TOOL_SECONDS = 120.0
REMEDY = "run it as root, on a machine or in a container that has loop devices"
# What fills inode tables later would be counted as writes of the server.
MAKE = ("-q", "-t", "ext4", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard")
SPARE = 32 << 20  # the journal, inode tables
TOOLS = ("mke2fs", "mount", "umount", "losetup")


@dataclass(frozen=True)
class StagedDisk:
    """A mounted disk."""

    root: Path
    device: str  # major:minor
    writable: bool

    def counters(self) -> DiskCounters:
        """After what is to be written has been: a journal may take seconds to do so by itself."""
        if self.writable:
            descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
            try:
                ctypes.CDLL(None).syncfs(descriptor)
            finally:
                os.close(descriptor)
        return disk_counters(self.device)


@contextlib.contextmanager
def staged_disk(files: Path, options: str) -> Iterator[StagedDisk]:
    """A disk with a copy of the folder `files`, mounted with these options of ext4, without any
    read-only. Unsupported without mounts of our own, RepetitionError if a tool fails.
    """
    try:
        separate_mounts()
    except OSError as error:
        raise Unsupported(f"no mount namespace: {error.strerror}", REMEDY) from error
    image = _image(files)
    root = Path(tempfile.mkdtemp(dir=scratch_parent(), prefix=f"{os.getpid()}-disk-"))
    root.chmod(0o755)
    try:
        _tool("mount", "-t", "ext4", "-o", f"loop,{options or 'ro'}", str(image), str(root))
        try:
            number = root.stat().st_dev
            device = f"{os.major(number)}:{os.minor(number)}"
            # Not every file system below can do without; then its cache makes the disk no slower.
            with contextlib.suppress(RepetitionError):
                loop = Path("/sys/dev/block", device).resolve().name
                _tool("losetup", "--direct-io=on", f"/dev/{loop}")
            for path in root.rglob("*"):
                path.stat()
            yield StagedDisk(root.resolve(), device, bool(options))
        finally:
            _unmount(root)
    finally:
        # Never a whole tree: while something is mounted here, that would be the files themselves.
        with contextlib.suppress(OSError):
            root.rmdir()


@cache
def _image(files: Path) -> Path:
    """An image of a file system with these files. Made once by each command, so that no earlier run
    has left its access times in it.
    """
    blocks, inodes, now = 0, 1024, time.time_ns()
    for path in (files, *files.rglob("*")):
        blocks += -(-path.stat().st_size // 4096) + 1
        inodes += 2  # in some block groups they will be left over
        # Read after it was written, else relatime would note the first reading of each. A minute
        # from now, for this itself changes the inode.
        os.utime(path, ns=(now + 60 * 10**9, now))
    size = blocks * 4096 * 21 // 20 + inodes * 256 + SPARE
    folder = tempfile.mkdtemp(dir=scratch_parent(), prefix=f"{os.getpid()}-image-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    image = Path(folder, "image")
    size_kib = f"{size // 1024}k"
    try:
        _tool("mke2fs", *MAKE, "-N", str(inodes), "-d", str(files), str(image), size_kib)
    except RepetitionError:
        shutil.rmtree(folder, ignore_errors=True)  # with half an image in it the disk may be full
        raise
    return image


def _unmount(root: Path) -> None:
    """RepetitionError if it is still in use after UNMOUNT_SECONDS; it is detached then."""
    if comes_true(lambda: _tried("umount", str(root)).ok, UNMOUNT_SECONDS, pause=0.05):
        return
    reason = _tried("umount", str(root)).reason
    _tool("umount", "-l", str(root))
    raise RepetitionError(f"umount: {reason}")


def _tried(name: str, *arguments: str) -> Answer:
    return ends_well([which(name) or name, *arguments], TOOL_SECONDS)


def _tool(name: str, *arguments: str) -> None:
    """Runs a program; RepetitionError with the first line it prints if it fails."""
    done = _tried(name, *arguments)
    if not done.ok:
        raise RepetitionError(f"{name}: {done.reason}")


def why_no_disk() -> str:
    """Why no such disk can be had; "" if it can. Tried, in mounts of its own."""
    if os.geteuid() != 0:
        return "needs root"
    absent = [name for name in TOOLS if not which(name)]
    if absent:
        return f"{absent[0]} is not installed"
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder, "image")
        try:
            _tool("mke2fs", *MAKE, str(image), "4096k")
            script = 'mount -o loop,ro "$0" "$1" && umount "$1"'
            _tool("unshare", "-m", "sh", "-c", script, str(image), folder)
        except RepetitionError as error:
            return str(error)
    return ""
