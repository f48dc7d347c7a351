"""The data of a lab: a finished experiment of the harness, or runs of hammer made here."""

import json
import signal
import statistics
import subprocess
import time
from functools import reduce
from hashlib import sha256
from pathlib import Path
from typing import Any

from quest.ground.errors import InputError
from quest.labs import files
from quest.labs.errors import LabError
from quest.labs.lab import TREE
from quest.labs.measuring.lab import Lab
from quest.measure import environment, records
from quest.spec import experiment_file

SERVER = "01-iterative"
REFERENCE = TREE / "benchmarks/results/reference"
FREEZE_AFTER, FREEZE = 2.0, 1.0  # seconds into each run


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def started(lab: Lab, path: Path) -> str:
    """When it was measured, as 2026-11-24T05:30:00Z."""
    try:
        first = json.loads(path.read_text(encoding="utf-8").partition("\n")[0])
        return str(first["started"])
    except FileNotFoundError:
        raise LabError(f"{path} is not there") from None
    except (OSError, ValueError, KeyError, TypeError):
        raise LabError(f"{path}: no data of {lab.experiment or 'this lab'}") from None


def about(path: Path) -> str:
    """The machine and the time, as the data say."""
    try:
        first = json.loads(path.read_text(encoding="utf-8").partition("\n")[0])
        place = first.get("environment") or {}
        known = [
            environment.short_cpu(str(place.get("cpu", "unknown processor"))),
            environment.core_count(place.get("cores", "?")),
            environment.short_kernel(str(place.get("kernel", "unknown kernel"))),
        ]
        return f"{', '.join(known)}, {first['started']}"
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "unknown"


def pieces(lab: Lab, path: Path) -> frozenset[str]:
    """A hash of each repetition, or run, as it was measured: when and where does not count, nor
    the order. Two of one value do not happen by chance."""
    try:
        if lab.experiment:
            lines = [json.loads(line) for line in path.read_bytes().splitlines() if line]
            raw = [line for line in lines if line.get("type") == "repetition"]
            for line in raw:
                line.pop("sum", None)
        else:
            raw = list(json.loads(path.read_bytes())["runs"].values())
        texts = [json.dumps(each, sort_keys=True) for each in raw]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return frozenset()
    return frozenset(sha256(text.encode()).hexdigest() for text in texts)


def ours(lab: Lab) -> frozenset[str]:
    """The reference run's pieces."""
    return pieces(lab, REFERENCE / lab.data) if lab.experiment else frozenset()


class Numbers:
    """`variant.metric@x` of an experiment, or `run.total.p99` of hammer's JSON."""

    def __init__(self, lab: Lab, path: Path) -> None:
        self.lab, self.path = lab, path
        self.analysis: Any = None
        self.runs: dict[str, Any] = {}
        try:
            if lab.experiment:
                from quest.stats.analysis import Analysis  # nothing else here wants SciPy

                results = records.read(path)
                self.rounds = len({r["round"] for r in results.repetitions})
                file = TREE / experiment_file.FOLDER / f"{lab.experiment}.toml"
                (definition,) = experiment_file.load(file)
                self.analysis = Analysis(definition, results)
            else:
                self.runs = json.loads(path.read_text(encoding="utf-8"))["runs"]
                self.rounds = 1
        except (InputError, ValueError, KeyError, OSError) as error:
            raise LabError(f"{path}: {error}") from None

    def value(self, operand: str) -> float:
        if self.analysis:
            point = self.analysis.point(operand)
            if point is None or not point.values:
                raise LabError(f"{self.path}: nothing was measured for {operand}")
            return float(statistics.median(point.values.values()))
        try:
            found = reduce(lambda table, key: table[key], operand.split("."), self.runs)
            return float(found)  # type: ignore[arg-type]
        except (KeyError, TypeError, ValueError):
            raise LabError(f"{self.path}: nothing was measured for {operand}") from None

    def rows(self) -> list[str]:
        """Of runs made here, what the questions are about; `make bench` has shown an experiment's.

        The times of an open loop count from when a request was due.
        """
        lines = [f"{'':8} {'requests':>10} {'median':>12} {'p99':>12}"] if self.runs else []
        for name, run in self.runs.items():
            times = "total_from_intended" if run.get("total_from_intended") else "total"
            median, p99 = (self.value(f"{name}.{times}.{key}") / 1e6 for key in ("median", "p99"))
            lines.append(
                f"{name:8} {self.value(f'{name}.requests'):10.0f} {median:9.3f} ms {p99:9.3f} ms"
            )
        return [*lines, ""] if lines else []

    def ratio(self, of: tuple[str, str]) -> float:
        above, below = map(self.value, of)
        if below <= 0:
            raise LabError(f"{self.path}: {of[1]} is {below:g}")
        return above / below


def measure(lab: Lab, build: Path, into: Path) -> None:
    """The runs of hammer, each beside a server that stands still for a second."""
    server, hammer = (build / "bin" / program for program in (SERVER, "hammer"))
    for program in (server, hammer):
        if not program.exists():
            raise LabError(f"{program} is not built (make servers)")
    begun = now()
    runs = {name: _run(server, hammer, args) for name, args in lab.runs.items()}
    text = json.dumps({"started": begun, "environment": environment.machine(), "runs": runs})
    files.write(into, text + "\n")


def _run(server: Path, hammer: Path, args: list[str]) -> Any:
    with subprocess.Popen(
        [server, "-p", "0", TREE / "code"], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline().split()
            if not said:
                raise LabError(f"{server} does not start here")
            command = [str(hammer), *args, "--json", f"{said[-1]}README.md"]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as load:
                time.sleep(FREEZE_AFTER)
                process.send_signal(signal.SIGSTOP)
                time.sleep(FREEZE)
                process.send_signal(signal.SIGCONT)
                return json.loads(load.communicate(timeout=60)[0])
        except (ValueError, subprocess.TimeoutExpired):
            raise LabError(f"{hammer} has said nothing") from None
        finally:
            process.send_signal(signal.SIGCONT)
            process.terminate()
