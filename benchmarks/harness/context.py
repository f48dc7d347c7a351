"""What every kind of experiment is given, and the shape of what it gives back."""

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from harness.cpus import Placement
from harness.model import Experiment, Params, Value, Variant
from harness.processes import Tick
from harness.programs import BUILD, build_folder

PLACEHOLDER = re.compile(r"\{([a-z_][a-z0-9_]*)(?:\*(\d+))?\}")
EXIT_UNSUPPORTED = 77  # a server whose model the system cannot run


@dataclass
class Context:
    """`placement` says where to run, `timeout` how long, `tick` is called while waiting."""

    placement: Placement
    timeout: float
    tick: Tick


@dataclass
class Repetition:
    """What one repetition found; bench.py adds what identifies it."""

    samples: dict[str, list[Any]] = field(default_factory=dict)
    scalars: dict[str, float] = field(default_factory=dict)
    histograms: dict[str, list[list[float]]] = field(default_factory=dict)
    marks: list[str] = field(default_factory=list)

    def mark(self, *marks: str) -> None:
        self.marks += [mark for mark in marks if mark not in self.marks]


class Runner(Protocol):
    """micro.run, load.run, tracing.run.

    RepetitionError: this repetition failed. Unsupported: the variant cannot run here.
    """

    def __call__(
        self, experiment: Experiment, variant: Variant, params: Params, context: Context
    ) -> Repetition: ...


def runner(kind: str) -> Runner:
    """Imported when needed: `bench` with nothing to do loads none of them."""
    import importlib

    module = {"micro": "micro", "load": "load", "trace": "tracing"}[kind]
    run: Callable[..., Repetition] = importlib.import_module(f"harness.{module}").run
    return run


def expand(text: str, values: Mapping[str, Value]) -> str:
    """Fills placeholders. (experiment.py has checked that each has a value.)"""

    def fill(match: re.Match[str]) -> str:
        name, times = match.groups()
        value = values.get(name, match.group(0))
        return str(int(value) * int(times) if times else value)

    return PLACEHOLDER.sub(fill, text)


def expand_all(words: tuple[str, ...], values: Mapping[str, Value]) -> list[str]:
    return [expand(word, values) for word in words]


def folders(variant: Variant) -> Params:
    """{bin}: where the programs of the variant are; {build}: the folder above."""
    return {"bin": str(build_folder(variant.build)), "build": str(BUILD)}


def scratch_parent() -> Path:
    parent = BUILD / "scratch"
    parent.mkdir(parents=True, exist_ok=True)
    return parent


@contextlib.contextmanager
def scratch() -> Iterator[str]:
    """A folder for one repetition. It carries our process id, for `sweep_scratch`."""
    prefix = f"{os.getpid()}-"
    with tempfile.TemporaryDirectory(dir=scratch_parent(), prefix=prefix) as folder:
        yield folder


def sweep_scratch() -> None:
    """Removes what a killed harness has left."""
    for folder in scratch_parent().iterdir():
        owner = folder.name.partition("-")[0]
        if owner.isdigit() and not Path("/proc", owner).exists():
            shutil.rmtree(folder, ignore_errors=True)
