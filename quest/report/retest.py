"""Test and retest: do two sessions say the same, and does the frozen judge say what the judge of now says?

Of two sessions two things are compared. The intervals of what was measured: how many pairs have no value in common,
beside how many that would be by chance if nothing had changed but the noise. And the words of the ledger, if each
session is judged alone: how many agree of those that both decide and that nothing marks as near their line.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from quest.ground.errors import InputError
from quest.measure.environment import short_cpu
from quest.measure.records import parsed_line, started
from quest.report import claims, frozen, judge, sessions, share
from quest.report.claims import Claim
from quest.report.compare import MAY_TAKE
from quest.report.measured import Library
from quest.report.rules import NEAR, UNDECIDED
from quest.report.tsv import aligned
from quest.spec import experiment_file
from quest.spec.model import LEAST
from quest.stats.reach import order
from quest.stats.table import Measurement, NumberTable

WANTED_APART, WANTED_ALIKE = 5.0, 97.0  #: per cent: at most, at least


# ---- intervals ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Apart:
    """Of so many pairs of intervals, how many have no value in common; `chance`: how many are expected to."""

    pairs: int = 0
    apart: int = 0
    chance: float = 0.0

    def plus(self, other: "Apart") -> "Apart":
        return Apart(self.pairs + other.pairs, self.apart + other.apart, self.chance + other.chance)

    def words(self) -> str:
        """`5667 pairs, 397 have no value in common: 7.0 %, by chance 0.1 %, so 6.9 % beyond it`."""
        if not self.pairs:
            return "no pair with six usable rounds on both sides"
        seen, chance = (100 * number / self.pairs for number in (self.apart, self.chance))
        return (
            f"{self.pairs} pairs, {self.apart} have no value in common: {seen:.1f} %, by chance {chance:.1f} %, "
            f"so {max(0.0, seen - chance):.1f} % beyond it (wanted: at most {WANTED_APART:g} %)"
        )


@cache
def chance_apart(n: int, m: int) -> float:
    """How likely the order-statistics intervals of two samples of one distribution, of n and of m values, have no value
    in common. It depends on the order of all values alone, and each order is as likely as another.
    """
    return _below(n, m) + _below(m, n)


def _below(n: int, m: int) -> float:
    """That the upper end of the first interval is below the lower end of the second."""
    k, j = order(n), order(m)
    # So many of the first sample lie below the j-th of the second: at least up to the upper end.
    orders = (math.comb(i + j - 1, i) * math.comb(n - i + m - j, n - i) for i in range(n - k + 1, n + 1))
    return sum(orders) / math.comb(n + m, n)


def _pair(first: Sequence[float], second: Sequence[float]) -> Apart:
    if min(len(first), len(second)) < LEAST:
        return Apart()
    (low, high), (low2, high2) = ((sorted(each)[order(len(each)) - 1], sorted(each)[-order(len(each))])
                                  for each in (first, second))  # fmt: skip
    return Apart(1, int(high < low2 or high2 < low), chance_apart(len(first), len(second)))


def _rows(table: NumberTable, name: str, metric: str) -> dict[str, Measurement]:
    """By x as text, "" for all of it where there is no x, or too many bins of it."""
    series = table.series[name][metric]
    if len(series.points) > 12 or all(point.x is None for point in series.points):
        return {"": series.overall} if series.overall else {}
    return {str(point.x): point for point in series.points if point.x is not None}


def levels(before: NumberTable, after: NumberTable) -> Apart:
    """The intervals of each metric of each variant at each x, in both."""
    total = Apart()
    for name, metric in _both(before, after):
        rows, others = (_rows(table, name, metric) for table in (before, after))
        for x in rows.keys() & others.keys():
            total = total.plus(_pair(*([*row.usable_rounds(MAY_TAKE).values()] for row in (rows[x], others[x]))))
    return total


def ratios(before: NumberTable, after: NumberTable) -> Apart:
    """The same of the ratios to the first variant of each metric, taken within each round."""
    total = Apart()
    first: dict[str, str] = {}
    for name, metric in _both(before, after):
        if (base := first.setdefault(metric, name)) == name:
            continue
        found = [_paired(table, name, base, metric) for table in (before, after)]
        for x in found[0].keys() & found[1].keys():
            total = total.plus(_pair(found[0][x], found[1][x]))
    return total


def _both(before: NumberTable, after: NumberTable) -> Iterator[tuple[str, str]]:
    names = [name for name in before.plain_series if name in after.series]
    return itertools.product(names, [metric.name for metric in before.experiment.metrics])


def _paired(table: NumberTable, name: str, base: str, metric: str) -> dict[str, list[float]]:
    own, other = (_rows(table, each, metric) for each in (name, base))
    found = {}
    for x in own.keys() & other.keys():
        a, b = (rows[x].usable_rounds(MAY_TAKE) for rows in (own, other))
        found[x] = [math.log(a[n] / b[n]) for n in sorted(a.keys() & b.keys()) if min(a[n], b[n]) > 0]
    return found


# ---- words --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Alike:
    """Claims that both sessions decide: `near` their line, by the ledger or in one of them; of the others how many get
    the same word, and those that do not: `claim 9: holds, then changed`.
    """

    near: int = 0
    alike: int = 0
    differ: tuple[str, ...] = ()

    def plus(self, other: "Alike") -> "Alike":
        return Alike(self.near + other.near, self.alike + other.alike, (*self.differ, *other.differ))

    def words(self) -> str:
        count = self.alike + len(self.differ)
        share = f": {100 * self.alike / count:.1f} %" if count else ""
        return (
            f"{count + self.near} claims that both judge, {self.near} of them near the line; of the other {count} "
            f"{self.alike} get the same verdict{share} (wanted: at least {WANTED_ALIKE:g} %)"
        )


Tables = Mapping[str, NumberTable]


def words_alike(ledger: Iterable[Claim], before: Tables, after: Tables) -> Alike:
    """Each claim, judged on each of two sessions alone."""
    near, alike, differ = 0, 0, []
    for claim in ledger:
        words = [claims.in_session(claim, tables.get).verdict for tables in (before, after)] if claim.rules else []
        if not words or set(words) & set(UNDECIDED):
            continue
        if claim.near_line or claim.flips or NEAR in words:
            near += 1
        elif words[0] == words[1]:
            alike += 1
        else:
            differ.append(f"claim {claim.id}: {words[0]}, then {words[1]}")
    return Alike(near, alike, tuple(differ))


# ---- what is printed ----------------------------------------------------------------------------


def folder_of(name: str, reference: Path) -> Path:
    """Of `reference`, of PROCESSOR/SESSION among the committed ones, or a folder. InputError if there is none."""
    committed = {sessions.name_of(folder, reference): folder for folder in sessions.folders(reference)}
    folder = committed.get(name, Path(name))
    if not any(folder.glob("*.jsonl")):
        raise InputError(f"{name}: no session of this name; there are {', '.join(committed) or 'none'}, or a folder")
    return folder


def pairs_of(reference: Path) -> list[tuple[Path, Path]]:
    """All pairs of committed sessions of one processor."""
    places: dict[str, list[Path]] = {}
    for folder in sessions.folders(reference):
        places.setdefault(processor_of(folder), []).append(folder)
    return [pair for each in places.values() for pair in itertools.combinations(each, 2)]


def processor_of(folder: Path) -> str:
    """The one that its sets were measured on."""
    for path in filter(started, sorted(folder.glob("*.jsonl"))):
        with path.open("rb") as file:
            return short_cpu(str(parsed_line(path, 1, file.readline())["environment"].get("cpu", "")))
    return ""


@cache
def tables_of(folder: Path) -> Tables:
    """Of all finished sets of a session."""
    library = Library(folder, folder)
    found: dict[str, NumberTable] = {}
    for name in library.experiments:
        with share.as_foreign(f"{folder}/{name}.jsonl", name):
            if table := library.both(name).here:
                found[name] = table
    return found


def retest(pairs: Iterable[tuple[Path, Path]], reference: Path) -> Iterator[str]:
    """What is to be said of these pairs of sessions, and of all together, in lines."""
    ledger = claims.load(experiment_file.load_all())
    committed = {folder: sessions.name_of(folder, reference) for folder in sessions.folders(reference)}
    everything: list[tuple[Apart, Apart, Alike]] = []
    for one, other in pairs:
        before, after = tables_of(one), tables_of(other)
        shared = [(before[name], after[name]) for name in before if name in after]
        level, ratio = Apart(), Apart()
        for pair in shared:
            level, ratio = level.plus(levels(*pair)), ratio.plus(ratios(*pair))
        alike = words_alike(ledger, before, after)
        everything.append((level, ratio, alike))
        names = " and ".join(committed.get(each, str(each)) for each in (one, other))
        machines = list(dict.fromkeys(map(processor_of, (one, other))))
        yield f"{names} ({', '.join(machines)}): {len(shared)} experiments in both"
        if len(machines) > 1:
            yield "  two processors: their results are never pooled, and may well differ"
        yield from _said(level, ratio, alike)
    if len(everything) > 1:
        level, ratio, alike = everything[0]
        for more in everything[1:]:
            level, ratio, alike = level.plus(more[0]), ratio.plus(more[1]), alike.plus(more[2])
        yield f"all {len(everything)} pairs"
        yield from _said(level, ratio, alike)


def _said(level: Apart, ratio: Apart, alike: Alike) -> list[str]:
    lines = [f"levels: {level.words()}", f"ratios within the round: {ratio.words()}", f"verdicts: {alike.words()}"]
    return [f"  {line}" for line in (*lines, *dict.fromkeys(alike.differ))]


def against_the_frozen(reference: Path, name: str) -> Iterator[str]:
    """The frozen judge of that name and the judge of now on all committed results: a line for each claim of which they
    say another word, and how many there are.
    """
    path = frozen.FOLDER / f"{name}.zip"
    if not path.exists():
        yield f"no frozen judge {name[: judge.SHORT]}: make register"
        return
    _, kept = frozen.pronounce(path, reference.parent)
    now = {
        str(one["id"]): one["verdict"] for one in claims.judge_all(Library(reference, reference, True)) if one["rule"]
    }
    numbers = sorted(kept.keys() | now.keys(), key=int)
    words = {n: (kept[n].verdict if n in kept else "no verdict", now.get(n, "no verdict")) for n in numbers}
    rows = [("claim", f"frozen judge {name[: judge.SHORT]}", f"judge of now {judge.current()[: judge.SHORT]}")]
    rows += [(n, *each) for n, each in words.items() if each[0] != each[1]]
    yield f"{len(numbers)} claims, of which both judges give the same verdict on {len(numbers) - len(rows) + 1}"
    yield from (f"  {line}" for line in aligned(rows))
