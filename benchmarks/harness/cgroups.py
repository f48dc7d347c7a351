"""A control group of its own for the server that is measured: less memory, a slow disk.

Groups are called quest-<process id of the harness>-<number>: what a killed harness has left is
found by its name and removed by the next (`sweep`).
"""

import contextlib
import errno
import itertools
import os
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

from harness import cgroup_v1, cgroup_v2
from harness.errors import RepetitionError, Unsupported
from harness.grouplimits import Limits

VERSIONS: tuple[ModuleType, ...] = (cgroup_v1, cgroup_v2)
MOUNTS = Path("/proc/mounts")
PREFIX = "quest-"
PROCESSES = "cgroup.procs"
PATIENCE = 5.0
REMEDY = "run it as root, on a machine or in a container that may make control groups"
WORDS = {"memory": "limit memory", "io": "limit the reads of a disk"}

_numbers = itertools.count(1)


def _mounts() -> str:
    try:
        return MOUNTS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""  # not Linux


def choose(controllers: Iterable[str], mounts: str) -> tuple[ModuleType, dict[str, Path]]:
    """The version that has all of these, and where; Unsupported if there is none."""
    wanted = sorted(controllers)
    for version in VERSIONS:
        folders: dict[str, Path] = version.folders(mounts)
        if all(name in folders for name in wanted):
            return version, {name: folders[name] for name in wanted}
    what = " and ".join(WORDS[name] for name in wanted)
    raise Unsupported(f"no control groups here that {what}", REMEDY)


@contextlib.contextmanager
def group(limits: Limits, mounts: str | None = None) -> Iterator[list[Path]]:
    """Makes a group with these limits. A process joins it by writing 0 into each of the files."""
    if not limits.controllers:
        yield []
        return
    version, folders = choose(limits.controllers, _mounts() if mounts is None else mounts)
    name = f"{PREFIX}{os.getpid()}-{next(_numbers)}"
    places = {controller: root / name for controller, root in folders.items()}
    what = "no control group"
    try:
        try:
            for root in dict.fromkeys(folders.values()):
                version.enable(root, folders)
                (root / name).mkdir()
            for setting in version.settings(limits):
                what = f"{setting.file} = {setting.value}"
                file = places[setting.controller] / setting.file
                file.write_text(setting.value, encoding="ascii")
        except OSError as error:
            raise Unsupported(f"{what}: {error.strerror}", REMEDY) from error
        yield [place / PROCESSES for place in dict.fromkeys(places.values())]
    finally:
        for place in dict.fromkeys(places.values()):
            if not _remove(place):
                raise RepetitionError(f"the control group {name} cannot be removed")


def _remove(place: Path) -> bool:
    """Waits for the last processes in it to be gone."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            place.rmdir()
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        else:
            return True


def why_not(controller: str) -> str:
    """Why this controller cannot be used here; "" if it can. Tried."""
    if controller == "memory":
        limits = Limits(memory_bytes=64 << 20)
    else:
        limits = Limits(read_iops=100000, device=_some_disk())
        if not limits.device:
            return "no block device is known here"
    try:
        with group(limits):
            return ""
    except Unsupported as error:
        return error.reason
    except RepetitionError as error:
        return str(error)


def _some_disk() -> str:
    for file in sorted(Path("/sys/block").glob("*/dev")):
        with contextlib.suppress(OSError):
            return file.read_text(encoding="ascii").strip()
    return ""


def sweep(mounts: str | None = None, proc: Path = Path("/proc")) -> list[str]:
    """Ends and removes what a killed harness has left; the names of those groups."""
    text = _mounts() if mounts is None else mounts
    roots = {root for version in VERSIONS for root in version.folders(text).values()}
    found = [
        place
        for root in roots
        for place in root.glob(f"{PREFIX}*-*")
        if not (proc / place.name.removeprefix(PREFIX).partition("-")[0]).exists()
    ]
    for place in found:
        with contextlib.suppress(OSError):
            for pid in (place / PROCESSES).read_text(encoding="ascii").split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
        _remove(place)
    return sorted({place.name for place in found})
