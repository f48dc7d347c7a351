"""The headline ratios over all machines whose results there are: the reference run, the files of `make share` in
benchmarks/results/machines, and the reader's own run. For a figure and a table of the book.
"""

import tempfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from quest.ground import foreign
from quest.ground.errors import InputError
from quest.measure.records import HERE, REFERENCE
from quest.report import share, tsv
from quest.report.gnuplot import assignments
from quest.report.measured import Library
from quest.spec.experiment_file import MACHINES, RATIOS
from quest.spec.model import Experiment
from quest.stats.table import Number, NumberTable

YOURS = "yours"
LARGE = 20.0  #: a ratio above it stands in the lower part of the figure, on an axis of its own

Tables = Mapping[str, NumberTable]  #: id of an experiment -> its table


@dataclass(frozen=True)
class Strip:
    """A ratio: by the name of each machine that has it, the reference first and the reader's own last."""

    key: str
    title: str
    ratios: Mapping[str, Number]


class Entry(TypedDict):
    """machines.json, for the table in the book. `rows`: a title, and the text of each of `names`, "" where it has none;
    `runs`: the run of each.
    """

    names: list[str]
    rows: list[list[str]]
    runs: list[dict[str, str]]


def headline(experiments: Mapping[str, Experiment], path: Path = RATIOS) -> list[tuple[str, str, str]]:
    """(id, key, title) of the ratios. InputError for a line that names none."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        name, _, title = line.partition("\t")
        id, _, key = name.partition(".")
        definition = experiments.get(id)
        if not title or definition is None or key not in {d.key for d in definition.derived if d.ratio}:
            raise InputError(f"{path}:{number}: {name} is no ratio of an experiment, or is without a title")
        found.append((id, key, title))
    return found


def committed(folder: Path, wanted: Collection[str], experiments: Mapping[str, Experiment]) -> dict[str, Tables]:
    """By the name of each file in the folder the tables of its finished sets of these experiments. InputError for a
    damaged one.
    """
    found: dict[str, Tables] = {}
    for path in sorted(folder.glob("*.zip")):
        with tempfile.TemporaryDirectory() as place:
            into = Path(place)
            names = share.unpack(path, into, wanted)
            found[path.stem] = {
                id: share.table_of(experiments[id], into / f"{id}.jsonl", path.stem, f"{path}: {id}") for id in names
            }
    return found


def strips(library: Library, folder: Path = MACHINES, ratios: Path = RATIOS) -> tuple[list[Strip], dict[str, str]]:
    """All of the ratios, and machine -> its run, in the order of the columns."""
    wanted = headline(library.experiments, ratios)
    others = committed(folder, {id for id, _, _ in wanted}, library.experiments)
    found: list[Strip] = []
    runs: dict[str, str] = {}
    for id, key, title in wanted:
        both = library.both(id)
        tables = {
            **({reference_name(both.reference): both.reference} if both.reference else {}),
            **{name: of[id] for name, of in others.items() if id in of and of[id].run.finished},
            **({YOURS: both.here} if both.here else {}),
        }
        numbers = {name: table.derived[key] for name, table in tables.items() if key in table.derived}
        runs |= {name: foreign.line(tables[name].run.footer) for name in numbers}
        found.append(Strip(f"{id}.{key}", title, numbers))
    order = sorted(runs, key=lambda name: (name == YOURS, not _is_reference(name), name))
    return found, {name: runs[name] for name in order}


def reference_name(table: NumberTable) -> str:
    """How the machine of the reference run is called."""
    return f"{REFERENCE}, {table.run.environment.get('cpu') or 'unknown'}"


def _is_large(strip: Strip) -> bool:
    return max(number.value for number in strip.ratios.values()) > LARGE


def _is_reference(name: str) -> bool:
    return name.startswith(f"{REFERENCE}, ")


def entry(found: list[Strip], runs: Mapping[str, str]) -> Entry:
    """Of the table."""
    return {
        "names": list(runs),
        "rows": [[each.title, *(_cell(each.ratios.get(name)) for name in runs)] for each in found],
        "runs": [{"source": HERE if name == YOURS else REFERENCE, "run": run} for name, run in runs.items()],
    }


def _cell(ratio: Number | None) -> str:
    return ratio.with_interval() if ratio else ""


def files(found: list[Strip], runs: Mapping[str, str]) -> dict[str, str]:
    """What figures/machines.gp reads, by file name; a ratio that no machine has is not drawn."""
    ordered = sorted((each for each in found if each.ratios), key=_is_large)
    dots = tsv.table([["place", "value", "low", "high", "whose"], *_dots(ordered)])
    titles = tsv.table([["place", "title"], *([place, each.title] for place, each in enumerate(ordered, 1))])
    others = [name for name in runs if name != YOURS]
    several = f"machines: {', '.join(others) or 'none'}" + ("; and yours" if YOURS in runs else "")
    variables = {
        "source": HERE if YOURS in runs else REFERENCE if runs else "none",
        "missing": "" if runs else "nothing of it is measured yet: make",
        "footer": several if len(runs) > 1 else "".join(runs.values()),
        "machines": len(runs),
        "yours": int(YOURS in runs),
        "referred": sum(map(_is_reference, runs)),
        "others": sum(not _is_reference(name) for name in others),
        "rows": len(ordered),
        "large": sum(map(_is_large, ordered)),
    }
    # A figure depends on meta.gp alone, so it changes with the tables.
    text = assignments(variables) + "".join(f"# {line}\n" for line in (dots + titles).splitlines())
    return {"dots.tsv": dots, "titles.tsv": titles, "meta.gp": text}


def _dots(ordered: list[Strip]) -> Iterator[list[object]]:
    """`whose`: 0 of another machine, 1 of the reference, 2 the reader's own."""
    for place, each in enumerate(ordered, 1):
        for name, ratio in each.ratios.items():
            whose = 2 if name == YOURS else int(_is_reference(name))
            yield [place, ratio.value, ratio.low, ratio.high, whose]
