"""Experiment files: benchmarks/experiments/<id>.toml -> model.Experiment, or several with [[each]].

Their form is in model.py, what only a whole experiment can tell in coherence.py. The keys are
described in benchmarks/README.md, which is printed from model.py.
"""

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from quest.ground.errors import InputError
from quest.ground.toml import read_toml, record_of
from quest.spec import coherence
from quest.spec.model import Experiment

FOLDER = Path("benchmarks/experiments")
LEDGER = Path("benchmarks/claims.toml")
RATIOS = Path("benchmarks/headline.tsv")  #: those that are compared over machines
MACHINES = Path("benchmarks/results/machines")  #: NAME.zip, each as `make share` made it
FEW = 40  # names in one line


def load_all(folder: Path = FOLDER, only: Iterable[str] = (), headline: bool = False) -> list[Experiment]:
    """All, or those asked for: by id, or by the words it begins with (`disk` for disk-seek, ...).
    Of the others only the id is looked at.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; run from the root of the tree")
    tables = [table for path in sorted(folder.glob("*.toml")) for table in _tables(path)]
    known = [id for _, id, _ in tables]
    wanted = {id for word in only for id in _named(word, known)} or {*known}
    return [
        parse(table, str(path), id)
        for path, id, table in tables
        if id in wanted and (table.get("headline") or not headline)
    ]


def _named(word: str, known: list[str]) -> list[str]:
    if named := [word] if word in known else [id for id in known if id.startswith(f"{word}-")]:
        return named
    names = f" (known: {', '.join(known)})"
    if len(known) > FEW:
        names = f"; {FOLDER} has all {len(known)}"
    if near := difflib.get_close_matches(word, known, n=1):
        names = f"; did you mean {near[0]}?"
    raise InputError(f'unknown experiment "{word}"{names}')


def load(path: Path) -> list[Experiment]:
    """The experiments of one file, checked. InputError for what is wrong with it."""
    return [parse(one, str(path), id) for _, id, one in _tables(path)]


def _tables(path: Path) -> list[tuple[Path, str, Mapping[str, Any]]]:
    """The experiments of a file, each with the id it has to have."""
    return [(path, path.stem + name, one) for name, one in spread(read_toml(path), str(path))]


def spread(data: Mapping[str, Any], shown: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The experiments of a file, and how each is called behind the file's name: itself, or all of
    [[each]], whose keys take the place of the file's, and whose name that of {each}.
    """
    if "each" not in data:
        yield "", data
        return
    several: Any = data["each"] if isinstance(data["each"], list) else [data["each"]]
    for own in several:
        name = own.get("name") if isinstance(own, dict) else None
        if not isinstance(name, str):
            raise InputError(f'{shown}: "each" must be tables with a "name"')
        both = {**data, **own}.items()
        whole = {key: value for key, value in both if key not in ("each", "name")}
        try:
            one = json.loads(json.dumps(whole).replace("{each}", name))
        except (TypeError, ValueError) as error:  # a date; a name with a quote in it
            raise InputError(f'{shown}: "each": {name!r}: {error}') from error
        yield f"-{name}", one


def parse(table: Mapping[str, Any], shown: str, stem: str) -> Experiment:
    """The experiment of a table. `shown`: the file's name, for InputError; `stem`: the id it must
    have.
    """
    experiment = record_of(Experiment, table, shown)
    if experiment.id != stem:
        raise InputError(f'{shown}: "id" is "{experiment.id}", but the file is called {stem}.toml')
    coherence.check(experiment, shown)
    return experiment
