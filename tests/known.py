"""The experiments of the tree, read once for all tests of a process: that takes a fifth of a second. And the tables of
the reference run: to analyse all of it takes a quarter of a minute of processor time.
"""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from quest.measure import chosen
from quest.report.measured import NUMBERS, Library
from quest.spec import experiment_file
from quest.spec.model import Experiment

ROOT = Path(__file__).resolve().parents[1]
OF_THE_TALK = {one.id: one for one in experiment_file.load_all(ROOT / experiment_file.FOLDER)}
#: and those that are newer than the talk
EXPERIMENTS = OF_THE_TALK | {one.id: one for one in experiment_file.load_all(ROOT / chosen.SINCE)}
REFERENCE = Path("benchmarks/results/reference")
KEPT = Path("build/data", NUMBERS)  #: what `make export` has analysed


@contextlib.contextmanager
def reference(definitions: Iterable[Experiment]) -> Iterator[Library]:
    """The tables of the reference run alone, while we stand in the root of the tree. A table that the export has kept
    is taken if it was made of the same files by the same modules: a digest tells, which has their names, too.
    """
    with contextlib.chdir(ROOT):
        yield Library(Path("none"), REFERENCE, True, KEPT if KEPT.is_dir() else None, definitions=definitions)
