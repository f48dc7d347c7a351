"""Which experiments are asked for: those of benchmarks/experiments, and by name those of benchmarks/experiments-since.

The claims since 2003 have a ledger and a folder of experiments of their own, with ids that begin with `since-`. So
neither takes part in the hash of the judge of the first ledger (quest/report/judge.py), and a new experiment of the
second leaves the first as it was registered.
"""

from collections.abc import Iterable
from pathlib import Path

from quest.ground.errors import InputError
from quest.spec import experiment_file
from quest.spec.model import Experiment

SINCE = Path("benchmarks/experiments-since")
LEDGER_SINCE = Path("benchmarks/claims-since-2003.toml")
PREFIX = "since"  #: the first word of an id there; alone it names them all


def of_since(word: str) -> bool:
    """Whether an id, or what ids begin with, is of the second folder."""
    return word.partition("-")[0] == PREFIX


def load_all(only: Iterable[str] = (), headline: bool = False) -> list[Experiment]:
    """Those that the words name, of both folders; all of the first without any. InputError for a word that names
    none, and for a file that is wrong.
    """
    words = list(only)
    first = [word for word in words if not of_since(word)]
    found = experiment_file.load_all(only=first, headline=headline) if first or not words else []
    named = [word for word in words if of_since(word)]
    return found + (since(named) if named and not headline else [])


def since(only: Iterable[str] = ()) -> list[Experiment]:
    """Those of the second folder that the words name, or all. Without words none where there is no such folder, as in
    the tree of a test.
    """
    words = list(only)
    if not words and not SINCE.is_dir():
        return []
    found = experiment_file.load_all(SINCE, only=[] if PREFIX in words else words)
    for one in found:
        if not of_since(one.id):
            raise InputError(f'{SINCE}/{one.id}.toml: its name must begin with "{PREFIX}-"')
    return found


def everything() -> list[Experiment]:
    """Of both folders."""
    return experiment_file.load_all() + since()
