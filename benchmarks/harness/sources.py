"""Which result set is shown for an experiment: the reader's own if it is finished, else the
reference.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness import environment
from harness.errors import InputError
from harness.model import Experiment
from harness.record import ResultSet, read

HERE = "here"
REFERENCE = "reference"


@dataclass
class Source:
    """A finished set with data in it."""

    origin: str
    results: ResultSet

    @property
    def footer(self) -> str:
        return environment.footer(self.results.run)


@dataclass
class Sources:
    """What there is for one experiment. `skips` are always this machine's."""

    here: Source | None
    reference: Source | None
    skips: list[tuple[str, str]]

    @property
    def shown(self) -> Source | None:
        return self.here or self.reference


def wants_reference(environ: Mapping[str, str] = os.environ) -> bool:
    wanted = environ.get("RESULTS", HERE) or HERE
    if wanted not in (HERE, REFERENCE):
        raise InputError(f"RESULTS={wanted}: must be {HERE} or {REFERENCE}")
    return wanted == REFERENCE


def load(
    experiment: Experiment, results: Path, reference: Path, problems: list[str] | None = None
) -> Sources:
    """A damaged set is an InputError; with `problems` it is named there, and as if not there."""
    skips: list[tuple[str, str]] = []
    here = None
    if not wants_reference():
        own = _usable(experiment, results, problems)
        if own:
            skips = [(s.get("variant", ""), s["reason"]) for s in own.skips]
            if own.repetitions:
                here = Source(HERE, own)
    other = _usable(experiment, reference, problems)
    return Sources(here, Source(REFERENCE, other) if other and other.repetitions else None, skips)


def _usable(experiment: Experiment, folder: Path, problems: list[str] | None) -> ResultSet | None:
    try:
        return _finished(experiment, folder)
    except InputError as error:
        if problems is None:
            raise
        problems.append(str(error))
        return None


def _finished(experiment: Experiment, folder: Path) -> ResultSet | None:
    path = folder / f"{experiment.id}.jsonl"
    if not path.exists() or not path.read_bytes().count(b"\n"):
        return None
    found = read(path)
    if found.run["experiment"] != experiment.id:
        raise InputError(f"{path}:1: holds the experiment {found.run['experiment']}")
    return found if found.end else None
