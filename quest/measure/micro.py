"""kind = "micro": a fresh process that prints raw samples as TSV.

The header line names the columns. A column `error` holds "-" or the name of an errno: such a line
stays in the data and is counted, but no metric ever takes it for a fast sample (analysis.py).
"""

import contextlib
import json
import math
import os
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from quest.ground import places, processes
from quest.ground.errors import RepetitionError
from quest.ground.places import scratch
from quest.ground.processes import Process, Usage, output_of, running
from quest.measure.counters import CpuTime, cpu_time, kernel_threads_s
from quest.measure.load_tools import option_value
from quest.measure.needs import is_mounted
from quest.measure.programs import folders
from quest.measure.records import Repetition
from quest.measure.session import Context
from quest.spec.model import NO_ERROR, Disk, Experiment, Params, Variant
from quest.spec.plan import expand_all

NOISY_SHARE = 0.10
NOISY_SECONDS = 0.05  # below it the clock ticks of the accounting decide
STEAL_SHARE = 0.01


def run(experiment: Experiment, variant: Variant, params: Params, context: Context) -> Repetition:
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(scratch())
        values: Params = {**params, **folders(variant), "scratch": folder}
        cpus = context.placement.measured
        mounted = None
        if experiment.disk:
            mount = mounted_museum(experiment.disk, variant, values, context.placement.load)
            mounted = stack.enter_context(mount)
            mounted.begin()
        noise = Noise.begin(cpus)
        with running(variant.name, expand_all(variant.command, values), cpus) as process:
            output = output_of(process, context.timeout, context.tick)
            noise.end()
            repetition = Repetition(samples=parse_samples(output, variant.rename))
            assert process.usage is not None
            repetition.scalars = usage_scalars(process.usage)
            wall = process.wall_s
        if mounted:
            repetition.scalars.update(mounted.scalars())
    column = repetition.samples.get("error", ())
    errors = sum(str(value) not in NO_ERROR for value in column)
    if errors:
        repetition.scalars["errors"] = float(errors)
        repetition.mark("errors")
    repetition.mark(*context.placement.marks)
    noise.mark(repetition, repetition.scalars["cpu_s"], wall)
    return repetition


def usage_scalars(usage: Usage, prefix: str = "") -> dict[str, float]:
    names = {"voluntary": "voluntary_switches", "involuntary": "involuntary_switches"}
    used = {"cpu_s": usage.cpu_s, **asdict(usage)}
    return {f"{prefix}{names.get(key, key)}": float(value) for key, value in used.items()}


@dataclass
class Noise:
    """What the processors of a measurement do from begin() to end(), and who did it."""

    cpus: Collection[int]
    total: CpuTime
    children_s: float
    own_s: float
    kernel_s: float

    @classmethod
    def begin(cls, cpus: Collection[int]) -> "Noise":
        return cls(cpus, cpu_time(cpus), *_ours(), kernel_threads_s())

    def end(self) -> None:
        """The figures are from now on what was done since begin()."""
        children_s, own_s = _ours()
        self.total = cpu_time(self.cpus).since(self.total)
        self.children_s, self.own_s = children_s - self.children_s, own_s - self.own_s
        self.kernel_s = kernel_threads_s() - self.kernel_s

    def mark(self, repetition: Repetition, known_s: float, wall_s: float) -> None:
        """Marks a repetition during which others used the same processors.

        `known_s` is what our programs say they have used. What a server used that lets the kernel
        reap its children is known to none but them; what a helper used is in our children's time.
        """
        available = wall_s * max(1, len(self.cpus))
        if available <= 0:
            return
        ours = self.own_s + max(known_s, self.children_s) + self.kernel_s
        foreign = max(0.0, self.total.busy - self.total.softirq - ours)
        repetition.scalars["foreign_share"] = foreign / available
        repetition.scalars["kernel_share"] = self.kernel_s / available
        repetition.scalars["steal_share"] = self.total.steal / available
        noisy = foreign > NOISY_SECONDS and foreign / available > NOISY_SHARE
        # One tick of the clock is not yet a share.
        stolen = self.total.steal > 0.015 and self.total.steal / available > STEAL_SHARE
        if noisy or stolen:
            repetition.mark("noisy")


LOOK = 0.3  # seconds


def foreign_share(cpus: Collection[int]) -> float:
    """What others take of these processors just now; 0 where it would make nothing `noisy`."""
    noise = Noise.begin(cpus)
    time.sleep(LOOK)
    noise.end()
    share = max(0.0, noise.total.busy - noise.total.softirq - noise.own_s) / (LOOK * len(cpus))
    return min(1.0, share) if share > NOISY_SHARE else 0.0


def _ours() -> tuple[float, float]:
    """Seconds of processor time: of all our children that have ended, and of this process."""
    times = os.times()
    return times.children_user + times.children_system, times.user + times.system


def parse_samples(text: str, rename: Mapping[str, str]) -> dict[str, list[Any]]:
    """TSV with a header line -> columns. RepetitionError if a line does not fit the header."""
    names, *rows = [line.split("\t") for line in text.splitlines()] or [[""]]
    if not "".join(names).strip():
        raise RepetitionError("no header line on stdout")
    if not rows:
        raise RepetitionError("no samples on stdout")
    for number, row in enumerate(rows, 2):
        if len(row) != len(names):
            what = f"has {len(row)} columns, the header {len(names)}"
            raise RepetitionError(f"line {number} of stdout {what}")
    columns = zip(*rows, strict=True)
    return {
        rename.get(name, name): [_value(field) for field in column]
        for name, column in zip(names, columns, strict=True)
    }


def _value(text: str) -> int | float | str:
    with contextlib.suppress(ValueError):
        return int(text)
    with contextlib.suppress(ValueError):
        # JSON has no infinity; as a text it is no sample of any metric.
        return value if math.isfinite(value := float(text)) else text
    return text


# ---- The museum disk (benchmarks/disk) under an experiment, and what it has done -----------------

PROGRAM = "museum"
UNMOUNT_PATIENCE = 5.0
RATES = ("requests_per_s", "bytes_per_s")
TIMES = (
    *("total.median", "total.p99", "first_byte.median", "connect.median"),
    *("bystander.median", "bystander.worst"),
)
PAGE, PAGE_BYTES = "page.html", 1000


@dataclass
class Mounted:
    """A museum disk that is there."""

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
    """Mounted for one repetition, and unmounted in any case. Sets {docroot} and {files}, a list of
    the paths of all its files, among the values. In the docroot, beside the disk, lies a page that
    needs nothing of it.
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
    names = processes.run(PROGRAM, [program, *args, "--list", *pools], cpus, 60.0)[1].splitlines()
    files.write_text("".join(f"{folder}/{name}\n" for name in names), encoding="utf-8")
    try:
        command = [program, *args, str(folder), *pools]
        with running(PROGRAM, command, cpus, pipe=True) as process:
            processes.read_line(process)
            values["docroot"], values["files"] = str(docroot), str(files)
            below = [f"{folder.name}/{name}" for name in names]
            # That it is a number, the program has seen to.
            yield Mounted(folder, below, process, option_value(args, "--speed") or 1.0)
            processes.stop(process)
            if process.status != 0:
                raise RepetitionError(process.describe_end())
    finally:
        _await_unmounted(folder)


def _await_unmounted(folder: Path) -> None:
    """When the program was killed, its guardian unmounts; if that was killed too, we do."""
    deadline = time.monotonic() + UNMOUNT_PATIENCE
    while is_mounted(folder):
        if time.monotonic() > deadline:
            # For a user too: fusermount3 would refuse on a system without /etc/mtab.
            command = [places.which("umount") or "umount", "-l", str(folder)]
            subprocess.run(command, capture_output=True, check=False, timeout=30)
            return
        time.sleep(0.01)
