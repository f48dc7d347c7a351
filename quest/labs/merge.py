"""`make merge`: the measurements of a class, a figure for each headline experiment, in it a dot for
each machine.

A run is a folder of results (build/results of a student), or a file that `make share` made there. What names a machine
is not in it.
"""

import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from quest.ground import foreign
from quest.ground.errors import InputError
from quest.labs import files
from quest.labs.errors import LabError, say
from quest.measure import records
from quest.report import share, tsv
from quest.report.gnuplot import assignments
from quest.spec import experiment_file
from quest.spec.model import Experiment, Metric

Medians = dict[str, list[float]]  #: title of a variant -> the median of each machine that has one


def _add(definition: Experiment, metric: Metric, path: Path, medians: Medians) -> bool:
    """Adds the medians of one machine, if it has finished the experiment; whether it has."""
    try:
        table = share.table_of(definition, path, records.HERE, str(path)) if path.exists() else None
    except InputError as error:
        print(foreign.line(f"left out: {error}"), file=sys.stderr)
        return False
    if table is None or not table.run.finished:
        return False
    for name in table.plain_series:
        if overall := table.series[name][metric.name].overall:
            medians.setdefault(table.title(name), []).append(overall.number.value)
    return bool(table.run.repetitions)


def _write(definition: Experiment, metric: Metric, medians: Medians, machines: int, folder: Path) -> None:
    """Writes the tables that merge.gp draws."""
    rows: list[list[object]] = [["place", "value"]]
    middle: list[list[object]] = [["place", "value", "title"]]
    for place, (title, values) in enumerate(reversed(medians.items()), 1):
        rows += [[place, value] for value in values]
        middle.append([place, statistics.median(values), f"{title} ({len(values)})"])
    folder.mkdir(parents=True, exist_ok=True)
    files.write(folder / "machines.tsv", tsv.table(rows))
    files.write(folder / "medians.tsv", tsv.table(middle))
    texts = {
        "source": "here",
        "footer": f"machines: {machines}; behind each name: how many have it",
        "axis": f"{metric.title}, {metric.unit}".removesuffix(", "),
        "question": definition.title,
    }
    everything = [value for values in medians.values() for value in values]
    numbers = {
        "places": len(medians),
        "widest": max(map(len, medians)),
        "least": min(everything),
        "most": max(everything),
    }
    files.write(folder / "meta.gp", assignments({**texts, **numbers}))


def _folders(runs: Sequence[Path], scratch: Path, wanted: Collection[str]) -> list[Path]:
    """A folder of sets for each run; a file is unpacked below `scratch`. LabError, a line for each that is neither, or
    damaged.
    """
    folders, faults = [], []
    for number, run in enumerate(runs):
        folder = run
        if run.is_file():
            folder = scratch / str(number)
            folder.mkdir()
            try:
                share.unpack(run, folder, wanted)
            except InputError as error:
                faults.append(f"RUNS: {error}")
        elif not run.is_dir():
            faults.append(f"RUNS: {run}: there is no such file or folder of results")
        folders.append(folder)
    if faults:
        raise LabError("\n".join(faults))
    return folders


def _tables(definitions: Sequence[Experiment], folders: Sequence[Path], into: Path) -> list[str]:
    """Writes what is drawn, and gives the ids of those experiments that a machine has finished."""
    made = []
    for definition in definitions:
        metric = definition.metrics[0]
        medians: Medians = {}
        files_of_it = (folder / f"{definition.id}.jsonl" for folder in folders)
        machines = sum(_add(definition, metric, path, medians) for path in files_of_it)
        if medians:
            _write(definition, metric, medians, machines, into / definition.id)
            made.append(definition.id)
    return made


def merge(runs: Sequence[Path], into: Path) -> None:
    """Draws `into`/EXPERIMENT.svg from the results of several machines, a folder or a file of `make share` each."""
    if not runs:
        raise LabError('which runs? RUNS="folder file.zip ...": for each machine build/results, or its make share file')
    definitions = [d for d in experiment_file.load_all(headline=True) if d.kind != "trace" and d.metrics]
    with tempfile.TemporaryDirectory() as scratch:
        made = _tables(definitions, _folders(runs, Path(scratch), {d.id for d in definitions}), into)
    if not made:
        raise LabError("none of these runs has a finished headline experiment: make measures them")
    if shutil.which("gnuplot") is None:
        raise LabError(f"{into} has the tables; gnuplot, to draw them, is not installed (make deps)")
    for name in made:
        out = into / f"{name}.svg"
        script = "quest/labs/merge.gp"
        command = ["sh", "figures/draw.sh", name, script, str(into), str(out)]
        if subprocess.run(command, check=False).returncode:
            raise LabError(f"{out}: gnuplot says why, above")
        say(f"  {out}")
