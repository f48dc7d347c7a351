"""What there is of an experiment: the reader's own set if it is finished, and the reference run's.

Whatever shows numbers asks a `Library`, which analyses each set once and hands out its table.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from quest.ground.errors import InputError
from quest.ground.files import write_if_other
from quest.measure import records
from quest.measure.records import HERE, REFERENCE
from quest.report import sessions
from quest.spec import experiment_file
from quest.spec.model import Experiment
from quest.stats import saved
from quest.stats.table import NumberTable

NUMBERS = "numbers"  #: the folder in build/data that has the tables


@dataclass(frozen=True)
class Both:
    """The two tables of one experiment; None where nothing was measured. `skips`: (variant, reason)
    of this machine, also where all was skipped.
    """

    here: NumberTable | None = None
    reference: NumberTable | None = None
    skips: tuple[tuple[str, str], ...] = ()

    def table_of(self, origin: str) -> NumberTable | None:
        """The table of that origin."""
        return self.here if origin == HERE else self.reference

    @property
    def preferred(self) -> NumberTable | None:
        """The one that is shown where only one can be."""
        return self.here or self.reference

    @property
    def tables(self) -> list[NumberTable]:
        """Those there are, the reader's own first."""
        return [table for table in (self.here, self.reference) if table]


class Library:
    """The tables of a folder of results and of a reference run.

    `reference_only`: the reader's own are not looked at. `keep`: the folder where tables are kept
    as files (saved.py), None for none. A damaged set is an InputError; with `problems` it is named
    there, and as if not there. `definitions` by id; all of benchmarks/experiments without.
    """

    def __init__(
        self,
        results: Path,
        reference: Path,
        reference_only: bool = False,
        keep: Path | None = None,
        problems: list[str] | None = None,
        definitions: Iterable[Experiment] | None = None,
    ) -> None:
        some = experiment_file.load_all() if definitions is None else definitions
        self.experiments: Mapping[str, Experiment] = {e.id: e for e in some}
        self.reference_only = reference_only
        self._results, self._reference = results, reference
        self.places = {HERE: results, REFERENCE: reference}  #: folders
        self._keep, self._problems = keep, problems
        self.both: Callable[[str], Both] = cache(self._both)
        #: All sessions of the reference that have this experiment, by name: the first is in `both`, too.
        self.sessions: Callable[[str], Mapping[str, NumberTable]] = cache(self._sessions)

    def _both(self, name: str) -> Both:
        """What there is of the experiment with this id."""
        own = None if self.reference_only else self._usable(name, self._results, HERE)
        other = self._usable(name, self._reference, REFERENCE)
        return Both(
            own if own and own.run.repetitions else None,
            other if other and other.run.repetitions else None,
            own.run.skips if own else (),
        )

    def _sessions(self, name: str) -> Mapping[str, NumberTable]:
        tables: dict[str, NumberTable] = {}
        for folder in sessions.folders(self._reference):
            first = folder == self._reference
            table = self.both(name).reference if first else self._usable(name, folder, REFERENCE)
            if table and table.run.repetitions:
                tables[sessions.name_of(folder, self._reference)] = table
        return tables

    def _usable(self, name: str, folder: Path, origin: str) -> NumberTable | None:
        """The table of a finished set."""
        path = folder / f"{name}.jsonl"
        try:
            if not records.started(path):
                return None
            kept = self._kept(name, folder, origin)
            table = read_table(self.experiments[name], path, origin, kept)
            if table.run.experiment != name:
                raise InputError(f"{path}:1: holds the experiment {table.run.experiment}")
        except InputError as error:
            if self._problems is None:
                raise
            self._problems.append(str(error))
            return None
        return table if table.run.finished else None

    def _kept(self, name: str, folder: Path, origin: str) -> Path | None:
        if not self._keep:
            return None
        of = origin if folder in (self._results, self._reference) else sessions.name_of(folder, self._reference)
        return self._keep / of / f"{name}.jsonl"


def read_table(experiment: Experiment, path: Path, origin: str, kept: Path | None = None) -> NumberTable:
    """The table of a result file, finished or not; InputError where that is damaged. It is read
    from the file `kept` if that was made from the same, and else written there.
    """
    digest = saved.made_from(experiment, path) if kept else ""
    if kept and kept.is_file():
        table = saved.from_text(kept.read_text(encoding="utf-8"), experiment, digest)
        if table:
            return table
    from quest.stats.analysis import analyse  # with SciPy; not needed where a table is kept

    table = analyse(experiment, records.read_results(path), origin)
    if kept:
        write_if_other(kept, saved.to_text(table, digest))
    return table
