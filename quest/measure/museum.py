"""The museum disk (benchmarks/disk) under an experiment, and what it has done."""

import contextlib
import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from quest.ground import places, processes
from quest.ground.errors import RepetitionError
from quest.ground.processes import Process, running
from quest.measure.load_tools import option_value
from quest.measure.needs import is_mounted
from quest.measure.waiting import comes_true
from quest.spec.model import Disk, Params, Variant
from quest.spec.plan import expand_all

PROGRAM = "museum"
LIST_SECONDS = 60.0
UNMOUNT_SECONDS = 5.0
# Scalars of a load that depend on the speed of the disk.
RATES = ("requests_per_s", "bytes_per_s")
TIMES = (
    *("total.median", "total.p99", "first_byte.median", "connect.median"),
    *("bystander.median", "bystander.worst"),
)
#: Beside the disk in the docroot: a page that needs nothing of it.
PAGE, PAGE_BYTES = "page.html", 1000


@dataclass
class MuseumDisk:
    """A museum disk that is mounted."""

    folder: Path
    names: list[str]  # of all its files, below the docroot
    process: Process
    speed: float  # seconds of the disk in one of ours

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

    def in_disk_seconds(self, scalars: Mapping[str, float], prefix: str = "") -> dict[str, float]:
        """What a load tool measured, in the disk's own seconds: `disk.requests_per_s`, ...: what it
        would be at --speed 1, if nothing but the disk took any time.
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
        """Seconds of processor time in its whole life, once it has ended."""
        return self.process.usage.cpu_s if self.process.usage else 0.0


@contextlib.contextmanager
def mounted(disk: Disk, variant: Variant, values: Params, cpus: frozenset[int]) -> Iterator[MuseumDisk]:
    """Mounted for one repetition, its program running on `cpus`, and unmounted in any case.

    Sets {docroot} and {files}, a list of the paths of all its files, among the values.
    RepetitionError if the program fails.
    """
    scratch = Path(str(values["scratch"])).absolute()
    docroot, files = scratch / "docroot", scratch / "files"
    folder = docroot / "disk"
    folder.mkdir(parents=True)
    (docroot / PAGE).write_text("p" * PAGE_BYTES, encoding="ascii")
    docroot.chmod(0o755)
    (docroot / PAGE).chmod(0o644)
    # A peer that is started by root reads as another user.
    scratch.chmod(0o755)
    args = expand_all((*disk.args, *variant.disk_args), values)
    pools = expand_all(disk.pools, values)
    program = str(places.build_folder("glibc") / PROGRAM)
    # Asked of the program, not of the mount: reading its directories could cost seeks.
    listed = processes.run(PROGRAM, [program, *args, "--list", *pools], cpus, LIST_SECONDS)[1]
    names = listed.splitlines()
    files.write_text("".join(f"{folder}/{name}\n" for name in names), encoding="utf-8")
    try:
        command = [program, *args, str(folder), *pools]
        with running(PROGRAM, command, cpus, pipe=True) as process:
            processes.read_line(process)
            values["docroot"], values["files"] = str(docroot), str(files)
            below = [f"{folder.name}/{name}" for name in names]
            # That it is a number, the program has seen to.
            yield MuseumDisk(folder, below, process, option_value(args, "--speed") or 1.0)
            processes.stop(process)
            if process.status != 0:
                raise RepetitionError(process.describe_end())
    finally:
        # When the program was killed, its guardian unmounts; if that was killed too, we do.
        if not comes_true(lambda: not is_mounted(folder), UNMOUNT_SECONDS):
            # For a user too: fusermount3 would refuse on a system without /etc/mtab.
            command = [places.which("umount") or "umount", "-l", str(folder)]
            subprocess.run(command, capture_output=True, check=False, timeout=30)
