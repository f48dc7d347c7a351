"""kind = "micro": a fresh process that prints raw samples as TSV.

The header line names the columns. A column `error` holds "-" or the name of an errno: such a line
stays in the data and is counted, but no metric ever takes it for a fast sample (analysis.py).
"""

import contextlib
import math
from collections.abc import Mapping
from dataclasses import asdict

from quest.ground.errors import RepetitionError
from quest.ground.places import scratch
from quest.ground.processes import Process, Usage, output_of, running
from quest.measure import museum
from quest.measure.noise import Noise
from quest.measure.programs import folders
from quest.measure.records import Repetition
from quest.measure.session import Context
from quest.measure.usable import WAIT_SHARE, WAITING_UNKNOWN
from quest.spec.model import NO_ERROR, Experiment, Params, Value, Variant
from quest.spec.plan import expand_all


def run(experiment: Experiment, variant: Variant, params: Params, context: Context) -> Repetition:
    """One repetition of the variant; errors as records.Repetition says."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(scratch())
        values: Params = {**params, **folders(variant), "scratch": folder}
        cpus = context.placement.measured
        disk = None
        if experiment.disk:
            mount = museum.mounted(experiment.disk, variant, values, context.placement.load)
            disk = stack.enter_context(mount)
            disk.begin()
        noise = Noise.begin(cpus)
        with running(variant.name, expand_all(variant.command, values), cpus) as process:
            output = output_of(process, context.timeout, context.tick)
            noise.end()
            repetition = Repetition(samples=parse_samples(output, variant.rename))
            assert process.usage is not None
            repetition.scalars = usage_scalars(process.usage)
            wall_s = process.wall_s
        if disk:
            repetition.scalars.update(disk.scalars())
    errors = sum(str(value) not in NO_ERROR for value in repetition.samples.get("error", ()))
    if errors:
        repetition.scalars["errors"] = float(errors)
        repetition.mark("errors")
    repetition.mark(*context.placement.marks)
    wait_share = _wait_share(repetition.samples, process)
    if wait_share is None and not process.waited.others:
        repetition.mark(WAITING_UNKNOWN)
    noise.mark(repetition, repetition.scalars["cpu_s"], wall_s, wait_share)
    return repetition


def _wait_share(samples: dict[str, list[Value]], process: Process) -> float | None:
    """Of the time of a program that has ended, how much it waited in the run queue. It may say so itself, of the part
    that it has timed, in a column, which is taken out of the samples. None where nothing is known.
    """
    said = [share for share in samples.pop(WAIT_SHARE, ()) if isinstance(share, int | float)]
    if said:
        return float(said[-1])
    waited_s = process.waited.seconds
    return waited_s / process.wall_s if waited_s is not None and process.wall_s > 0 else None


def usage_scalars(usage: Usage, prefix: str = "") -> dict[str, float]:
    """What a program has used, as scalars: `cpu_s`, `voluntary_switches`, ..."""
    names = {"voluntary": "voluntary_switches", "involuntary": "involuntary_switches"}
    used = {"cpu_s": usage.cpu_s, **asdict(usage)}
    return {f"{prefix}{names.get(key, key)}": float(value) for key, value in used.items()}


def parse_samples(text: str, rename: Mapping[str, str]) -> dict[str, list[Value]]:
    """TSV with a header line -> its columns, under the names that `rename` gives them.
    RepetitionError if a line does not fit the header.
    """
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
        rename.get(name, name): [_value(field) for field in column] for name, column in zip(names, columns, strict=True)
    }


def _value(text: str) -> Value:
    with contextlib.suppress(ValueError):
        return int(text)
    with contextlib.suppress(ValueError):
        # JSON has no infinity; as a text it is no sample of any metric.
        return value if math.isfinite(value := float(text)) else text
    return text
