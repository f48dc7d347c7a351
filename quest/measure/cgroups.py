"""A control group of its own for the server that is measured: less memory, a slow disk.

Groups are called quest-<process id of the harness>-<number>: what a killed harness has left is
found by its name and removed by the next (`remove_leftovers`).
"""

import contextlib
import errno
import itertools
import os
import re
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from quest.ground.errors import RepetitionError, Unsupported
from quest.ground.places import text_of
from quest.measure.waiting import comes_true


@dataclass(frozen=True)
class Limits:
    """Bytes of memory, and reads a second from `device` (major:minor); 0: no limit."""

    memory_bytes: int = 0
    read_iops: int = 0
    device: str = ""

    @property
    def controllers(self) -> list[str]:
        """The controllers these limits need."""
        wanted = {"io": self.read_iops, "memory": self.memory_bytes}
        return [name for name, value in wanted.items() if value]


def parse_mounts(mounts: str) -> Iterator[tuple[Path, str, list[str]]]:
    """Path, file system and options of each line of /proc/mounts."""
    for line in mounts.splitlines():
        words = line.split()
        if len(words) >= 4:
            yield Path(words[1].replace("\\040", " ")), words[2], words[3].split(",")


# ---- the two versions ----------------------------------------------------------------------------


def version_1_folders(mounts: str) -> dict[str, Path]:
    """Controller -> the root of its hierarchy, whose groups all have it."""
    ours = {"memory": "memory", "blkio": "io"}
    return {
        ours[option]: path
        for path, kind, options in parse_mounts(mounts)
        for option in options
        if kind == "cgroup" and option in ours
    }


def version_2_folders(mounts: str) -> dict[str, Path]:
    """Controller -> the root of the one hierarchy. On a hybrid system the controllers are in
    version 1, and this one has none.
    """
    for path, kind, _ in parse_mounts(mounts):
        if kind == "cgroup2":
            offered = text_of(path / "cgroup.controllers").split()
            return {name: path for name in ("memory", "io") if name in offered}
    return {}


class Version(NamedTuple):
    """Text of /proc/mounts -> controller -> the root of its hierarchy; and controller -> file of a
    group, and the format of the Limits that is written into it.
    """

    folders: Callable[[str], dict[str, Path]]
    settings: Mapping[str, tuple[str, str]]


VERSIONS = (
    Version(version_1_folders, {
        "memory": ("memory.limit_in_bytes", "{0.memory_bytes}"),
        "io": ("blkio.throttle.read_iops_device", "{0.device} {0.read_iops}"),
    }),
    Version(version_2_folders, {
        "memory": ("memory.max", "{0.memory_bytes}"),
        "io": ("io.max", "{0.device} riops={0.read_iops}"),
    }),
)  # fmt: skip


def enable(root: Path, controllers: Iterable[str]) -> None:
    """Enables controllers for the groups below a root, as version 2 wants it. They stay enabled:
    whether another program relies on them by now cannot be known.
    """
    control = root / "cgroup.subtree_control"
    enabled = text_of(control).split()
    wanted = [f"+{name}" for name in sorted(controllers) if name not in enabled]
    if wanted and control.exists():
        control.write_text(" ".join(wanted), encoding="ascii")


# ---- groups --------------------------------------------------------------------------------------

MOUNTS = Path("/proc/mounts")
PREFIX = "quest-"
OURS = re.compile(rf"{PREFIX}(?P<harness>\d+)-\d+")
PROCESSES = "cgroup.procs"
REMOVE_SECONDS = 5.0
REMEDY = "run it as root, on a machine or in a container that may make control groups"
ABILITIES = {"memory": "limit memory", "io": "limit the reads of a disk"}

_numbers = itertools.count(1)


def choose_version(controllers: Iterable[str], mounts: str) -> tuple[Version, dict[str, Path]]:
    """The version that has all of these, and controller -> root; Unsupported if there is none."""
    wanted = sorted(controllers)
    for version in VERSIONS:
        folders = version.folders(mounts)
        if all(name in folders for name in wanted):
            return version, {name: folders[name] for name in wanted}
    abilities = " and ".join(ABILITIES[name] for name in wanted)
    raise Unsupported(f"no control groups here that {abilities}", REMEDY)


@contextlib.contextmanager
def group(limits: Limits, mounts: str | None = None) -> Iterator[list[Path]]:
    """Makes a group with these limits. A process joins it by writing 0 into each of the files.
    Unsupported where the limits cannot be set. `mounts`: text of /proc/mounts, for tests.
    """
    if not limits.controllers:
        yield []
        return
    version, folders = choose_version(limits.controllers, text_of(MOUNTS) if mounts is None else mounts)
    roots = list(dict.fromkeys(folders.values()))
    names = (f"{PREFIX}{os.getpid()}-{number}" for number in _numbers)
    # What is there already is of a harness that was killed, and had the process id that we have now.
    name = next(name for name in names if not any((root / name).exists() for root in roots))
    attempt = "no control group"
    try:
        try:
            for root in roots:
                enable(root, folders)
                (root / name).mkdir()
            for controller, folder in folders.items():
                file, form = version.settings[controller]
                attempt = f"{file} = {form.format(limits)}"
                (folder / name / file).write_text(form.format(limits), encoding="ascii")
        except OSError as error:
            raise Unsupported(f"{attempt}: {error.strerror}", REMEDY) from error
        yield [root / name / PROCESSES for root in roots]
    finally:
        left = [root for root in roots if not _remove(root / name)]
        if left:
            raise RepetitionError(f"the control group {name} cannot be removed")


def _remove(folder: Path) -> bool:
    """Whether a group is gone in the end; its last processes may take a moment to be."""

    def gone_or_hopeless() -> bool:
        try:
            folder.rmdir()
        except OSError as error:
            return error.errno != errno.EBUSY
        return True

    return comes_true(gone_or_hopeless, REMOVE_SECONDS) and not folder.is_dir()


def why_unusable(controller: str) -> str:
    """Why this controller cannot be used here; "" if it can. Tried."""
    limits = Limits(memory_bytes=64 << 20)
    if controller != "memory":
        disks = filter(None, map(text_of, sorted(Path("/sys/block").glob("*/dev"))))
        limits = Limits(read_iops=100000, device=next(disks, ""))
        if not limits.device:
            return "no block device is known here"
    try:
        with group(limits):
            return ""
    except Unsupported as error:
        return error.reason
    except RepetitionError as error:
        return str(error)


def remove_leftovers(mounts: str | None = None, proc: Path = Path("/proc")) -> list[str]:
    """Ends the processes and removes the groups that a killed harness has left; their names. A group with a process
    that is not in our /proc (its number is 0) is of another container, where its harness may be alive.
    """
    text = text_of(MOUNTS) if mounts is None else mounts
    roots = {root for version in VERSIONS for root in version.folders(text).values()}
    left = {
        folder: list(map(int, text_of(folder / PROCESSES).split()))
        for root in roots
        for folder in root.glob(f"{PREFIX}*-*")
        if (name := OURS.fullmatch(folder.name)) and not (proc / name["harness"]).exists()
    }
    left = {folder: pids for folder, pids in left.items() if 0 not in pids}
    for folder, pids in left.items():
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # as a user one of root's
                os.kill(pid, signal.SIGKILL)
        _remove(folder)
    return sorted({folder.name for folder in left})
