"""Experiments, result sets and a whole tree, made up for the tests of the harness."""

import json
import os
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from quest.ground.places import link_of, numbered, text_of
from quest.measure.records import Record, ResultSet, Sums
from quest.spec import experiment_file
from quest.spec.model import Experiment

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


EXPERIMENT = """\
id = "{id}"
title = "A sample"
question = "Is a faster than b?"
kind = "micro"
[profile.smoke]
rounds = 2
set = {{ n = 3 }}
[profile.quick]
rounds = {rounds}
set = {{ n = 4 }}
[profile.full]
rounds = 9
set = {{ n = 4 }}
{extra}
[[variant]]
name = "a"
command = ["{{bin}}/fake", "-n", "{{n}}"]
aa = true
[[variant]]
name = "b"
command = ["{{bin}}/fake", "-n", "{{n}}"]
[[metric]]
name = "us"
column = "ns"
scale = 1e-3
unit = "µs"
better = "lower"
"""


def definition(**changes: Any) -> dict[str, Any]:
    """A small experiment as its TOML would be read; a change to None is without it."""
    whole = tomllib.loads(EXPERIMENT.format(id="sample", rounds=2, extra=""))
    whole["profile"] = {name: {"rounds": 2, "set": {"n": 3}} for name in whole["profile"]}
    whole |= changes
    return {key: value for key, value in whole.items() if value is not None}


def parsed(**changes: Any) -> Experiment:
    data = definition(**changes)
    return experiment_file.parse(data, f"{data['id']}.toml", data["id"])


def run_record(definition: Experiment, **changes: Any) -> Record:
    return {
        "type": "run",
        "schema": 1,
        "experiment": definition.id,
        "profile": "quick",
        "rounds": 8,
        "seed": 1,
        "plan": "0" * 64,
        "started": "2026-11-21T12:00:00Z",
        "environment": {"cpu": "Example CPU", "cores": 2, "kernel": "Linux 6.18.44"},
        **changes,
    }


def repetition(variant: str, number: int, order: int = 0, **changes: Any) -> Record:
    return {
        "type": "repetition",
        "variant": variant,
        "params": {"n": 3},
        "round": number,
        "order": order,
        "wall_s": 0.1,
        "samples": {},
        "scalars": {},
        "marks": [],
        **changes,
    }


def end_record(count: int) -> Record:
    finished = "2026-11-21T12:05:00Z"
    return {"type": "end", "finished": finished, "repetitions": count, "failures": 0}


def result_set(definition: Experiment, values: Mapping[str, list[float]]) -> ResultSet:
    """Variant -> a value in nanoseconds for each round, in a column of one sample."""
    found = ResultSet(Path("made-up.jsonl"), run_record(definition))
    for variant, column in values.items():
        for number, value in enumerate(column):
            found.add(repetition(variant, number, samples={"ns": [value]}))
    found.add(end_record(len(found.repetitions)))
    return found


def lines(result: ResultSet) -> list[Record]:
    end = [result.end] if result.end else []
    return [result.run, *result.skips, *result.repetitions, *result.failures, *end]


def write(result: ResultSet, path: Path) -> Path:
    return write_lines(map(json.dumps, lines(result)), path)


def write_lines(texts: Iterable[str], path: Path) -> Path:
    """With the sums that belong to them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    sums = Sums()
    path.write_bytes(b"".join(sums.added(text.encode()) for text in texts))
    return path


CHANGED = "its check sum is wrong: this line, or one above it, was changed"


def damaged(place: object, why: str) -> str:
    return f"{place}: damaged: {why}; move the file away to measure again"


def machine(root: Path, files: Mapping[str, str]) -> Path:
    """Files with these texts below a folder, as a system has them."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


# ---- a tree with programs -----------------------------------------------------------------------

FAKE = """\
import sys, time
n = int(sys.argv[sys.argv.index("-n") + 1])
{extra}
print("live\\tns")
for i in range(n):
    print(f"{{i}}\\t{{1000 + i}}")
"""


class Tree:
    """A folder in which `python3 -m quest` runs, with programs that do what a test needs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.experiments = root / "benchmarks" / "experiments"
        self.results = root / "build" / "results"
        self.experiments.mkdir(parents=True)

    def experiment(self, name: str = "sample", rounds: int = 3, extra: str = "", text: str = "") -> None:
        whole = text or EXPERIMENT.format(id=name, rounds=rounds, extra=extra)
        (self.experiments / f"{name}.toml").write_text(whole, encoding="utf-8")

    def program(self, name: str = "fake", source: str = "", extra: str = "") -> Path:
        path = self.root / "build" / "bin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = source or FAKE.format(extra=extra)
        path.write_text(f"#!{sys.executable} -IS\n{text}", encoding="utf-8")  # it starts sooner
        path.chmod(0o755)
        return path

    def start(self, *arguments: str, inside: Iterable[str] = ()) -> subprocess.Popen[str]:
        """`inside`: the words of what starts it, if it is not to be started here."""
        environment = {**os.environ, "PYTHONPATH": str(BENCHMARKS.parent)}
        environment.pop("RESULTS", None)
        return subprocess.Popen(
            [*inside, sys.executable, "-m", "quest", "--of-make", *arguments],
            cwd=self.root,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def bench(self, *more: str) -> subprocess.CompletedProcess[str]:
        return self.run("bench", "PROFILE=smoke", *more)

    def edit(self, *pairs: tuple[str, str], name: str = "sample") -> None:
        """Changes the file of an experiment."""
        path = self.experiments / f"{name}.toml"
        text = path.read_text(encoding="utf-8")
        for old, new in pairs:
            assert old in text
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")

    def processes(self, marker: str) -> list[int]:
        """What runs in this tree, or has been started in it, with the marker in its command."""
        return [
            int(process.name)
            for process in numbered(Path("/proc"))
            if marker in text_of(process / "cmdline") and link_of(process / "cwd") == os.path.realpath(self.root)
        ]

    def records(self, name: str = "sample") -> list[Record]:
        """Without their sums."""
        text = (self.results / f"{name}.jsonl").read_text(encoding="utf-8")
        found = [json.loads(line) for line in text.splitlines()]
        return [{key: value for key, value in r.items() if key != "sum"} for r in found]

    def of_type(self, kind: str, name: str = "sample") -> list[Record]:
        return [record for record in self.records(name) if record["type"] == kind]


def await_(condition: Callable[[], object], process: subprocess.Popen[str] | None = None) -> None:
    """Until it is so, while the process runs that has to bring it about."""
    deadline = time.monotonic() + 30
    while not condition():
        assert process is None or process.poll() is None, "it has ended"
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.05)  # some conditions look at every process there is


def identities(records: list[Record], keep: Callable[[Record], bool] = lambda _: True) -> list[Any]:
    """What was measured, in which order; without what was found."""
    return [
        (r["order"], r["round"], r["variant"], json.dumps(r["params"], sort_keys=True))
        for r in records
        if r["type"] == "repetition" and keep(r)
    ]
