"""On which machines the numbers of this edition were measured: a column for the reference run, one for the further
sessions of each processor, and one for the reader's own results. For a table of the book
(chapters/appendix-b-machines.md).
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from quest.ground.errors import InputError
from quest.measure.environment import Environment, core_count
from quest.measure.records import HERE, REFERENCE, parsed_line
from quest.report import sessions
from quest.report.measured import Library

REFERENCE_NAME, YOURS = "reference run", "your machine"
MIB, SHORT = 1024, 12


class Edition(TypedDict):
    """edition.json. `rows`: what is told, and a cell for each of `names`, "" where it is not known; `differs`: for each
    row whether the reader's own is another than the reference's; False where there is no own.
    """

    names: list[str]
    rows: list[list[str]]
    differs: list[bool]


@dataclass(frozen=True)
class Column:
    """The sets of one session, or of several of one processor: the records that they begin with, the oldest first."""

    name: str
    runs: list[Mapping[str, Any]]  # as a result file has it in its first line
    sessions: int = 1

    @property
    def environments(self) -> list[Environment]:
        """Of all sets."""
        return [run["environment"] for run in self.runs]


def beginnings(folder: Path, ids: Iterable[str]) -> Iterator[Mapping[str, Any]]:
    """The first record of each set of these experiments in the folder; a set that is damaged there is left out."""
    for id in ids:
        path = folder / f"{id}.jsonl"
        try:
            with path.open("rb") as file:
                record = parsed_line(path, 1, file.readline())
        except (OSError, InputError):
            continue  # the library says so, in words
        if isinstance(record.get("environment"), dict) and isinstance(record.get("started"), str):
            yield record


def column_of(name: str, folders: Iterable[Path], ids: Iterable[str]) -> Column | None:
    """None where no folder has a set."""
    some = [runs for folder in folders if (runs := list(beginnings(folder, ids)))]
    runs = sorted(itertools.chain(*some), key=lambda run: str(run["started"]))
    return Column(name, runs, len(some)) if runs else None


def different(texts: Iterable[str]) -> str:
    """What is told of all sets in one cell: each text once."""
    return "; ".join(dict.fromkeys(text for text in texts if text))


def dates(column: Column) -> str:
    """`2026-11-25`, or `2026-11-25 to 2026-11-26`."""
    first, last = str(column.runs[0]["started"])[:10], str(column.runs[-1]["started"])[:10]
    return first if first == last else f"{first} to {last}"


def commit(environment: Environment) -> str:
    """`8658521dbd5b`, with what says that the tree had changes of its own."""
    text = str(environment.get("commit", ""))[:SHORT]
    return f"{text}, changed" if text and environment.get("dirty") else text


def processors(environment: Environment) -> str:
    """`2 cores of AMD EPYC`."""
    cores, cpu = environment.get("cores"), environment.get("cpu", "")
    return f"{core_count(cores)} of {cpu}" if cores and cpu else cpu


def memory(environment: Environment) -> str:
    """`23.5 GiB`."""
    kib = environment.get("memory_kib")
    return f"{kib / MIB / MIB:.1f} GiB" if kib else ""


def is_virtual(environment: Environment) -> str:
    """What the processor says of a hypervisor."""
    known = environment.get("hypervisor")
    return "" if known is None else "yes" if known else "no"


def library_of_c(environment: Environment) -> str:
    """`glibc 2.36, musl 1.2.3`, as far as they are there."""
    known = environment.get("libc", {})
    return ", ".join(f"{name} {known[name]}" for name in ("glibc", "musl") if known.get(name))


def steal(column: Column) -> str:
    """The largest share of processor time that the host had kept, since the boot, when a set began."""
    shares = [share for one in column.environments if (share := one.get("steal")) is not None]
    return f"{100 * max(shares):.2f} %" if shares else ""


def cells(column: Column) -> dict[str, str]:
    """What is told of it, in the order of the table."""
    every = column.environments
    return {
        "sessions": str(column.sessions),
        "measured": dates(column),
        "experiments": str(len({run["experiment"] for run in column.runs})),
        "profile": different(str(run.get("profile", "")) for run in column.runs),
        "commit": different(map(commit, every)),
        "judge in the results": different(str(run.get("judge", ""))[:SHORT] for run in column.runs),
        "processor": different(map(processors, every)),
        "virtual machine": different(map(is_virtual, every)),
        "time the host took": steal(column),
        "memory": different(map(memory, every)),
        "kernel": different(str(one.get("kernel", "")) for one in every),
        "timer interrupts": different(f"{one['hz']} Hz" if one.get("hz") else "" for one in every),
        "system": different(str(one.get("distribution", "")) for one in every),
        "C library": different(map(library_of_c, every)),
        "compiler": different(str(one.get("compiler", "")) for one in every),
        "congestion control": different(
            str(one.get("sysctl", {}).get("net/ipv4/tcp_congestion_control", "")) for one in every
        ),
    }


#: Of these no reader's machine can be like the reference.
NEVER_ALIKE = {"sessions", "measured", "experiments", "profile", "commit", "judge in the results", "time the host took"}


def edition(library: Library) -> Edition:
    """The table of what there is."""
    reference = library.places[REFERENCE]
    by_name: dict[str, list[Path]] = {}  # one for each session would be too many for a page
    for folder in sessions.folders(reference):
        by_name.setdefault(REFERENCE_NAME if folder == reference else folder.parent.name, []).append(folder)
    found = [column_of(name, folders, library.experiments) for name, folders in by_name.items()]
    own = None if library.reference_only else column_of(YOURS, [library.places[HERE]], library.experiments)
    shown = [column for column in [*found, own] if column]
    columns = [cells(column) for column in shown]
    names = list(columns[0]) if columns else []
    rows = [[name, *(column[name] for column in columns)] for name in names]
    rows = [row for row in rows if any(row[1:])]
    has_both = bool(own) and len(shown) > 1
    differs = [has_both and row[0] not in NEVER_ALIKE and row[1] != row[-1] for row in rows]
    return {"names": [column.name for column in shown], "rows": rows, "differs": differs}
