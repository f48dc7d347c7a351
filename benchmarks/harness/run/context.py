"""What every kind of experiment is given, and the shape of what it gives back."""

import importlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.spec.model import Experiment, Params, Value, Variant
from harness.system.cpus import Placement
from harness.system.places import BUILD, build_folder
from harness.system.processes import Tick

PLACEHOLDER = re.compile(r"\{([a-z_][a-z0-9_]*)(?:\*(\d+))?\}")


@dataclass
class Context:
    """`placement` says where to run, `timeout` how long, `tick` is called while waiting."""

    placement: Placement
    timeout: float
    tick: Tick


@dataclass
class Repetition:
    """What one repetition found; measure.py adds what identifies it."""

    samples: dict[str, list[Any]] = field(default_factory=dict)
    scalars: dict[str, float] = field(default_factory=dict)
    histograms: dict[str, list[list[float]]] = field(default_factory=dict)
    marks: list[str] = field(default_factory=list)

    def mark(self, *marks: str) -> None:
        self.marks += [mark for mark in marks if mark not in self.marks]


# RepetitionError: this repetition failed. Unsupported: the variant cannot run here.
Runner = Callable[[Experiment, Variant, Params, Context], Repetition]


def runner(kind: str) -> Runner:
    """micro.run, load.run or trace.run, imported when needed: `bench` with nothing to do loads
    none of them.
    """
    run: Runner = importlib.import_module(f"harness.run.{kind}").run
    return run


def expand(text: str, values: Mapping[str, Value]) -> str:
    """Fills placeholders. (coherence.py has checked that each has a value.)"""

    def fill(match: re.Match[str]) -> str:
        name, times = match.groups()
        value = values.get(name, match.group(0))
        return str(int(value) * int(times) if times else value)

    return PLACEHOLDER.sub(fill, text)


def expand_all(words: Iterable[str], values: Mapping[str, Value]) -> list[str]:
    return [expand(word, values) for word in words]


def folders(variant: Variant) -> Params:
    """{bin}: where the programs of the variant are; {build}: the folder above."""
    return {"bin": str(build_folder(variant.build)), "build": str(BUILD)}
