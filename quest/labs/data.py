"""The data of a lab that measures: a finished experiment of the harness, or runs of hammer made
here.
"""

import json
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from hashlib import sha256
from pathlib import Path
from typing import Any

from quest.ground.errors import InputError
from quest.labs import files
from quest.labs.errors import LabError
from quest.labs.lab import TREE
from quest.labs.measured import MeasuredLab
from quest.measure import environment, records
from quest.measure.records import utc_now
from quest.report.measured import read_table
from quest.spec import experiment_file
from quest.stats.table import NumberTable

SERVER = "01-iterative"
REFERENCE = TREE / "benchmarks/results/reference"
FREEZE_AFTER, FREEZE = 2.0, 1.0  #: seconds into each run, and for how long
HAMMER_SECONDS = 60  #: longer than any run
#: raised by a file that is damaged, or no data at all
DAMAGED = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)


def _head(path: Path) -> dict[str, Any]:
    """The first line, which tells when and where it was measured."""
    head = json.loads(path.read_text(encoding="utf-8").partition("\n")[0])
    return dict(head)


def started(lab: MeasuredLab, path: Path) -> str:
    """When it was measured, as utc_now() writes it."""
    try:
        return str(_head(path)["started"])
    except FileNotFoundError:
        raise LabError(f"{path} is not there") from None
    except (OSError, *DAMAGED):
        raise LabError(f"{path}: no data of {lab.experiment or 'this lab'}") from None


def is_finished(path: Path) -> bool:
    """Whether the set of an experiment was measured to its end."""
    try:
        last = json.loads(path.read_bytes().rstrip(b"\n").rpartition(b"\n")[2])
        return bool(last["type"] == "end")
    except DAMAGED:
        return False


def origin(path: Path) -> str:
    """The machine and the time that the data are said to be of; "unknown" if they do not say."""
    try:
        head = _head(path)
        place = head.get("environment") or {}
        known = [
            environment.short_cpu(str(place.get("cpu", "unknown processor"))),
            environment.core_count(place.get("cores", "?")),
            environment.short_kernel(str(place.get("kernel", "unknown kernel"))),
        ]
        return f"{', '.join(known)}, {head['started']}"
    except (OSError, *DAMAGED):
        return "unknown"


def fingerprints(lab: MeasuredLab, path: Path) -> frozenset[str]:
    """A hash of each repetition, or run, as it was measured: without its time, place and order. Two
    measurements do not have the same values by chance."""
    try:
        if lab.experiment:
            lines = [json.loads(line) for line in path.read_bytes().splitlines() if line]
            raw = [line for line in lines if line.get("type") == "repetition"]
            for line in raw:
                for name in ("round", "order", "marks", "sum"):
                    line.pop(name, None)
        else:
            raw = list(json.loads(path.read_bytes())["runs"].values())
        texts = [json.dumps(each, sort_keys=True) for each in raw]
    except (OSError, *DAMAGED):
        return frozenset()
    return frozenset(sha256(text.encode()).hexdigest() for text in texts)


def reference_fingerprints(lab: MeasuredLab) -> frozenset[str]:
    """Those of the reference run; none for a lab without an experiment."""
    return fingerprints(lab, REFERENCE / lab.data_file) if lab.experiment else frozenset()


@dataclass(frozen=True)
class Measurement:
    """Values by name: `variant.metric@x` of an experiment, `run.total.p99` of hammer's JSON."""

    path: Path
    rounds: int
    numbers: NumberTable | None  #: of an experiment
    runs: dict[str, Any]  #: name -> what hammer has printed

    @classmethod
    def read(cls, lab: MeasuredLab, path: Path) -> "Measurement":
        """The file with the lab's data. LabError if it cannot be used."""
        try:
            if not lab.experiment:
                runs = json.loads(path.read_text(encoding="utf-8"))["runs"]
                return cls(path, 1, None, runs)
            (definition,) = experiment_file.load(TREE / experiment_file.FOLDER / f"{lab.experiment}.toml")
            numbers = read_table(definition, path, records.HERE)
            return cls(path, numbers.run.rounds, numbers, {})
        except (InputError, ValueError, KeyError, OSError) as error:
            raise LabError(f"{path}: {error}") from None

    def value(self, operand: str) -> float:
        """The median of an operand, in its own unit; of hammer's times, ns."""
        if self.numbers is not None:
            row = self.numbers.row(operand)
            if row is None:
                raise LabError(f"{self.path}: nothing was measured for {operand}")
            return row.number.value
        try:
            return float(reduce(lambda table, key: table[key], operand.split("."), self.runs))  # type: ignore[arg-type]
        except (KeyError, TypeError, ValueError, OverflowError):
            raise LabError(f"{self.path}: nothing was measured for {operand}") from None

    def ratio(self, operands: Sequence[str]) -> float:
        """The first of two operands over the second."""
        above, below = map(self.value, operands)
        if below <= 0:
            raise LabError(f"{self.path}: {operands[1]} is {below:g}")
        return above / below

    def table(self) -> list[str]:
        """Lines with the numbers of runs made here; none for an experiment, whose numbers `make
        bench` has shown. The times of an open loop count from when a request was due.
        """
        lines = [f"{'':8} {'requests':>10} {'median':>12} {'p99':>12}"] if self.runs else []
        for name, run in self.runs.items():
            times = "total_from_intended" if run.get("total_from_intended") else "total"
            median, p99 = (self.value(f"{name}.{times}.{key}") / 1e6 for key in ("median", "p99"))
            lines.append(f"{name:8} {self.value(f'{name}.requests'):10.0f} {median:9.3f} ms {p99:9.3f} ms")
        return [*lines, ""] if lines else []


def measure(lab: MeasuredLab, build: Path, into: Path) -> None:
    """Makes the lab's runs of hammer, each beside a server that stands still for a second."""
    server, hammer = (build / "bin" / program for program in (SERVER, "hammer"))
    for program in (server, hammer):
        if not program.exists():
            raise LabError(f"{program} is not built (make servers)")
    begun = utc_now()
    runs = {run.name: _run(server, hammer, run.args) for run in lab.runs}
    text = json.dumps({"started": begun, "environment": environment.machine(), "runs": runs})
    files.write(into, text + "\n")


def _run(server: Path, hammer: Path, args: Sequence[str]) -> Any:
    """What hammer has printed as JSON."""
    with subprocess.Popen([server, "-p", "0", TREE / "code"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            words = process.stdout.readline().split()
            if not words:
                raise LabError(f"{server} does not start here")
            command = [str(hammer), *args, "--json", f"{words[-1]}README.md"]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as load:
                time.sleep(FREEZE_AFTER)
                process.send_signal(signal.SIGSTOP)
                time.sleep(FREEZE)
                process.send_signal(signal.SIGCONT)
                return json.loads(load.communicate(timeout=HAMMER_SECONDS)[0])
        except (ValueError, subprocess.TimeoutExpired):
            raise LabError(f"{hammer} has printed no result") from None
        finally:
            process.send_signal(signal.SIGCONT)
            process.terminate()
