"""The museum disk (benchmarks/disk) under an experiment: mounted anew for each repetition, always
unmounted at its end, and what it has done while the load ran.
"""

import contextlib
import json
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import RepetitionError
from harness.run.context import expand_all
from harness.run.load_tools import option_value
from harness.spec.model import Disk, Params, Variant
from harness.system import places, processes
from harness.system.needs import is_mounted
from harness.system.places import which
from harness.system.processes import Process, running

PROGRAM = "museum"
UNMOUNT_PATIENCE = 5.0
RATES = ("requests_per_s", "bytes_per_s")
TIMES = ("total.median", "total.p99", "first_byte.median", "connect.median")


def museum_program() -> str:
    return str(places.build_folder("glibc") / PROGRAM)


@dataclass
class Mounted:
    """A disk that is there."""

    folder: Path
    files: Path  # a list of the paths of all files, one a line
    names: list[str]
    process: Process
    speed: float  # --speed: seconds of the disk in one of ours

    def begin(self) -> None:
        """What it has done until now no longer counts."""
        self._report(".phase")

    def scalars(self, prefix: str = "") -> dict[str, float]:
        """What it has done since, as `disk.seeks`, ...: what is a number in its report."""
        return {
            f"{prefix}disk.{key}": float(value)
            for key, value in self._report(".statistics").items()
            if isinstance(value, int | float)
        }

    def at_its_pace(self, scalars: Mapping[str, float], prefix: str = "") -> dict[str, float]:
        """What a load tool measured, in the disk's own seconds: `disk.requests_per_s`, ...: what it
        would be at --speed 1, if nobody but the disk took any time.
        """
        rates = {key: scalars[key] / self.speed for key in RATES if key in scalars}
        times = {key: scalars[key] * self.speed for key in TIMES if key in scalars}
        return {f"{prefix}disk.{key}": value for key, value in (rates | times).items()}

    def _report(self, name: str) -> dict[str, object]:
        try:
            text = (self.folder / name).read_text(encoding="ascii")
            report: dict[str, object] = json.loads(text)
        except (OSError, ValueError) as error:
            self.process.reap(0.0)
            raise RepetitionError(f"{PROGRAM}: no statistics: {error}") from error
        return report

    @property
    def cpu_s(self) -> float:
        """Of its whole life, once it has ended."""
        return self.process.usage.cpu_s if self.process.usage else 0.0


@contextlib.contextmanager
def mounted_museum(
    disk: Disk, variant: Variant, values: Params, cpus: frozenset[int]
) -> Iterator[Mounted]:
    """Sets {docroot} and {files} among the values."""
    scratch = Path(str(values["scratch"])).absolute()
    folder, files = scratch / "disk", scratch / "files"
    folder.mkdir()
    # A peer that is started by root reads as another user.
    scratch.chmod(0o755)
    args = expand_all((*disk.args, *variant.disk_args), values)
    pools = expand_all(disk.pools, values)
    names = _names(args, pools)
    files.write_text("".join(f"{folder}/{name}\n" for name in names), encoding="utf-8")
    try:
        with running(
            PROGRAM, [museum_program(), *args, str(folder), *pools], cpus, pipe=True
        ) as process:
            processes.announcement(process)
            values["docroot"], values["files"] = str(folder), str(files)
            yield Mounted(folder, files, names, process, speed_of(args))
            processes.stop(process)
            if process.status != 0:
                raise RepetitionError(process.describe_end())
    finally:
        _await_unmounted(folder)


def speed_of(args: Sequence[str]) -> float:
    """That it is a number, the program has seen to."""
    return option_value(args, "--speed") or 1.0


def _names(args: Iterable[str], pools: Iterable[str]) -> list[str]:
    """Asked of the program, not of the mount: reading its directories could cost seeks."""
    command = [museum_program(), *args, "--list", *pools]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0:
        words = done.stderr.strip()
        raise RepetitionError(f"{PROGRAM} ended with status {done.returncode}: {words}")
    return done.stdout.splitlines()


def _await_unmounted(folder: Path) -> None:
    """When the program was killed, its guardian unmounts; if that was killed too, we do."""
    deadline = time.monotonic() + UNMOUNT_PATIENCE
    while is_mounted(folder):
        if time.monotonic() > deadline:
            # For a user too: fusermount3 would refuse on a system without /etc/mtab.
            command = [which("umount") or "umount", "-l", str(folder)]
            subprocess.run(command, capture_output=True, check=False, timeout=30)
            return
        time.sleep(0.01)
