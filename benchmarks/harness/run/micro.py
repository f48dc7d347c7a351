"""kind = "micro": a fresh process that prints raw samples as TSV.

The header line names the columns. A column `error` holds "-" or the name of an errno: such a line
stays in the data and is counted, but no metric ever takes it for a fast sample (analysis.py).
"""

import contextlib
import os
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from harness.errors import RepetitionError
from harness.run import museum
from harness.run.context import Context, Repetition, expand_all, folders
from harness.spec.model import NO_ERROR, Experiment, Params, Variant
from harness.system.counters import CpuTime, cpu_time, kernel_threads_s
from harness.system.places import scratch
from harness.system.processes import Usage, output_of, running

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
            mount = museum.mounted_museum(experiment.disk, variant, values, context.placement.load)
            mounted = stack.enter_context(mount)
            mounted.begin()
        words = [*expand_all(variant.prefix, values), *expand_all(variant.command, values)]
        noise = Noise.begin(cpus)
        with running(variant.name, words, cpus) as process:
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
    return {
        f"{prefix}cpu_s": usage.cpu_s,
        f"{prefix}user_s": usage.user_s,
        f"{prefix}system_s": usage.system_s,
        f"{prefix}voluntary_switches": float(usage.voluntary),
        f"{prefix}involuntary_switches": float(usage.involuntary),
        f"{prefix}minor_faults": float(usage.minor_faults),
        f"{prefix}max_rss_kib": float(usage.max_rss_kib),
        f"{prefix}integral_sizes": float(usage.integral_sizes),
    }


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


def _ours() -> tuple[float, float]:
    """Seconds of processor time: of all our children that have ended, and of this process."""
    times = os.times()
    return times.children_user + times.children_system, times.user + times.system


def parse_samples(text: str, rename: Any = None) -> dict[str, list[Any]]:
    """TSV with a header line -> columns. RepetitionError if a line does not fit the header."""
    lines = text.splitlines()
    if not lines or not lines[0].strip():
        raise RepetitionError("no header line on stdout")
    names = [(rename or {}).get(name, name) for name in lines[0].split("\t")]
    columns: list[list[Any]] = [[] for _ in names]
    for number, line in enumerate(lines[1:], 2):
        fields = line.split("\t")
        if len(fields) != len(names):
            raise RepetitionError(
                f"line {number} of stdout has {len(fields)} columns, the header {len(names)}"
            )
        for column, text_value in zip(columns, fields, strict=True):
            column.append(_value(text_value))
    if len(lines) == 1:
        raise RepetitionError("no samples on stdout")
    return dict(zip(names, columns, strict=True))


def _value(text: str) -> int | float | str:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        value = float(text)
    except ValueError:
        return text
    # JSON has no infinity; as a text it is no sample of any metric.
    return value if abs(value) != float("inf") and value == value else text
