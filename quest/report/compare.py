"""`compare A B`: two result folders, old against new, in the manner of benchstat."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from quest.ground.errors import InputError
from quest.measure import chosen
from quest.measure.records import HERE, REFERENCE
from quest.measure.usable import NOISY
from quest.report import claims, share, since
from quest.report.measured import Library
from quest.report.otherwise import otherwise
from quest.report.rules import UNDECIDED
from quest.report.tsv import aligned
from quest.spec.model import LEAST, Experiment, x_text
from quest.stats import estimates, units
from quest.stats.table import Measurement, NumberTable, Series

HEADER = ("old", "new", "new/old", "n")
MAY_TAKE = 0.024  #: of a repetition, by others: it makes a time longer by 2.5 %
BEYOND = 1.5  #: an A/A floor is of one session; two sessions differ by more
WHAT_IS_OLD = (
    "A difference is shown where the intervals of both medians are apart, and it is more than 1.5 times the A/A\n"
    "floor; else ~. Repetitions that others disturbed, or that a mark makes worthless, are left out (behind n)."
)


def compare(old: Path, new: Path, only: Sequence[str]) -> int:
    """Prints the tables. 0, also where nothing differs: a difference is no error."""
    for folder in (old, new):
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder")
    library = Library(new, old, definitions=chosen.everything())
    experiments = library.experiments
    both = sorted(path.stem for path in old.glob("*.jsonl") if (new / path.name).exists())
    names = [name for name in both if name in experiments and (not only or name in only)]
    if not names:
        raise InputError(f"no experiment has results in both {old} and {new}")
    print("\n\n".join(_table(experiments[name], old, new) for name in names))
    print(f"\n{WHAT_IS_OLD}")
    print("\n".join(verdicts(library, names)))
    return 0


def verdicts(library: Library, names: Sequence[str]) -> list[str]:
    """How many claims both runs judge alike, and each that they do not, with what was known. The
    reader's own run is the new one, the reference the old one.
    """
    judged = [*claims.side_by_side(library, names), *since.side_by_side(library, names)]
    pairs = [each for each in judged if not {each[1].verdict, each[2].verdict} & set(UNDECIDED)]
    differ = [each for each in pairs if each[1].verdict != each[2].verdict]
    head = f"claims that both judge: {len(pairs)}, {len(pairs) - len(differ)} of them alike"
    lines = [f"\n{head}"] if pairs else []
    for claim, after, before in differ:
        near = " (expected near the line)" if claim.near_line or claim.flips else ""
        lines.append(f"claim {claim.id}: {before.verdict} -> {after.verdict}{near}")
    return lines


def _table(definition: Experiment, old: Path, new: Path) -> str:
    file = f"{definition.id}.jsonl"
    before, after = (
        share.table_of(definition, folder / file, origin, str(folder / file))
        for folder, origin in ((old, REFERENCE), (new, HERE))
    )
    rows: list[tuple[str, ...]] = []
    for metric in definition.metrics:
        rows.append((metric.name, *HEADER))
        floors = [x.noise_floors.get(metric.name, 0.0) for x in (before, after)]
        for series in (name for name in before.plain_series if name in after.series):
            a, b = (x.series[series][metric.name] for x in (before, after))
            for name, first, second in _pairs(series, a, b):
                rows.append(row(name, first, second, metric.unit, max(floors)))
    unlike = otherwise([after.run, before.run])
    both = (unlike.words(what, "now") for what in ("load", "effort"))
    set_to = [f"not set alike: {words}" for words in both if words]
    runs = [f"old: {before.run.footer}", f"new: {after.run.footer}"]
    head = [definition.id, *runs, *left_out(before, after), *failed(before, after), *set_to]
    return "\n".join([*head, *aligned(rows, right=range(1, 5))])


def left_out(*tables: NumberTable) -> list[str]:
    """How many repetitions of each run are noisy, in words; nothing if none is."""
    noisy = [f"{table.run.marks.get(NOISY, 0)} of {table.run.repetitions}" for table in tables]
    return (
        [f"noisy, and left out: old {noisy[0]}, new {noisy[1]}"] if any(t.run.marks.get(NOISY) for t in tables) else []
    )


def failed(before: NumberTable, after: NumberTable) -> list[str]:
    """What has failed, in either run, and how often, a line each: its row is of the rest, or is missing."""
    runs = (("old", before), ("new", after))
    names = dict.fromkeys(name for _, table in runs for name in table.run.failures)
    how = {name: [f"{which} {text}" for which, t in runs if (text := t.run.failed(name))] for name in names}
    return [f"{after.title(name)}: {', '.join(texts)}" for name, texts in how.items()]


def _pairs(name: str, a: Series, b: Series) -> Iterable[tuple[str, Measurement, Measurement]]:
    """The points both have; all x together where x is a column of many bins."""
    if len(a.points) > 12 or all(point.x is None for point in a.points):
        if a.overall and b.overall:
            yield name, a.overall, b.overall
        return
    for point in a.points:
        if point.x is not None and (other := b.at(point.x)):
            yield f"{name} @{x_text(point.x)}", point, other


def row(name: str, old: Measurement, new: Measurement, unit: str, noise_floor: float) -> tuple[str, ...]:
    """The cells of a line: its name, then as HEADER, of the repetitions that no mark speaks against. `noise_floor`: the
    A/A share of the metric.
    """
    used = [list(each.usable_rounds(MAY_TAKE).values()) for each in (old, new)]
    counts = [len(values) for values in used]
    left_out = len(old.rounds) + len(new.rounds) - sum(counts)
    n = f"n={counts[0]}" if counts[0] == counts[1] else f"n={counts[0]}+{counts[1]}"
    cells = [_cell(values, unit) for values in used]
    return name, *cells, verdict(used[0], used[1], noise_floor), f"{n}, {left_out} left out" if left_out else n


def _cell(values: Sequence[float], unit: str) -> str:
    if not values:
        return "-"
    value, low, high = estimates.median_with_interval(values)
    text = units.text(value, unit, low, high)
    if low is None or high is None or not value:
        return text
    return f"{text} ±{units.percent(max(high - value, value - low) / abs(value))}"


def verdict(old: Sequence[float], new: Sequence[float], noise_floor: float) -> str:
    """The ratio of the medians with its interval, or `~` where no difference is seen: their intervals meet, or it is
    within the floor. No rank test: the levels of two sessions of one machine differ a little, and with the floor it
    takes one pair of twins in twelve for different; this one in thirty (tests/harness/test_compare.py).
    """
    if min(len(old), len(new)) < LEAST:
        return f"~ (fewer than {LEAST} repetitions)"
    if not estimates.AVAILABLE:
        return "~ (no interval: SciPy is not installed)"
    if not _apart(*(estimates.median_with_interval(values) for values in (old, new))):
        return "~"
    ratio = estimates.unpaired_ratio(new, old)
    if ratio.interval is None:
        return "differs: no ratio, as the old values reach 0"
    line = 1 + BEYOND * noise_floor
    if 1 / line <= ratio.value <= line:
        return "~"
    low, high = ratio.interval
    return f"{ratio.value:.3f} ({low:.3f}–{high:.3f})"


def _apart(first: estimates.Estimate, second: estimates.Estimate) -> bool:
    """Whether their intervals have no value in common."""
    return (first.high or 0.0) < (second.low or 0.0) or (second.high or 0.0) < (first.low or 0.0)
