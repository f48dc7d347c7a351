"""`compare A B`: two result folders, old against new, in the manner of benchstat."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from quest.ground.errors import InputError
from quest.measure.records import HERE, REFERENCE
from quest.report import claims
from quest.report.measured import Library, read_table
from quest.report.otherwise import otherwise
from quest.report.rules import UNDECIDED
from quest.report.tsv import aligned
from quest.spec.model import LEAST, Experiment, x_text
from quest.stats import estimates, units
from quest.stats.estimates import DIFFERENT
from quest.stats.table import Measurement, Series

HEADER = ("old", "new", "new/old", "p", "n")
WHAT_IS_OLD = "A difference is shown where the rank test sees one and it is beyond the A/A floor; else ~."


def compare(old: Path, new: Path, only: Sequence[str]) -> int:
    """Prints the tables. 0, also where nothing differs: a difference is no error."""
    for folder in (old, new):
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder")
    library = Library(new, old)
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
    judged = claims.side_by_side(library, names)
    pairs = [each for each in judged if not {each[1].verdict, each[2].verdict} & set(UNDECIDED)]
    differ = [each for each in pairs if each[1].verdict != each[2].verdict]
    head = f"claims that both judge: {len(pairs)}, {len(pairs) - len(differ)} of them alike"
    lines = [f"\n{head}"] if pairs else []
    for claim, after, before in differ:
        near = " (near the line)" if before.near_line or after.near_line or claim.near_line else ""
        lines.append(f"claim {claim.id}: {before.verdict} -> {after.verdict}{near}")
    return lines


def _table(definition: Experiment, old: Path, new: Path) -> str:
    file = f"{definition.id}.jsonl"
    before = read_table(definition, old / file, REFERENCE)
    after = read_table(definition, new / file, HERE)
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
    return "\n".join([definition.id, *set_to, *aligned(rows, right=range(1, 6))])


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
    """The cells of a line: its name, then as HEADER. `noise_floor`: the A/A share of the metric."""
    a, b = list(old.rounds.values()), list(new.rounds.values())
    ratio, p = estimates.unpaired_ratio(b, a), estimates.mann_whitney(b, a)
    n = str(len(a)) if len(a) == len(b) else f"{len(a)}+{len(b)}"
    p_text = "" if p is None or ratio.interval is None else f"p={p:.3f}"
    cells = (_cell(old, unit), _cell(new, unit), verdict(ratio, p, noise_floor))
    return name, *cells, p_text, f"n={n}"


def _cell(row: Measurement, unit: str) -> str:
    value, low, high = row.number.value, row.number.low, row.number.high
    text = units.text(value, unit, low, high)
    if low is None or high is None or not value:
        return text
    return f"{text} ±{units.percent(max(high - value, value - low) / abs(value))}"


def verdict(ratio: estimates.Ratio, p: float | None, noise_floor: float) -> str:
    """The ratio with its interval, or `~` where no difference is seen; `p`: of the rank test."""
    if ratio.interval is None or p is None:
        return f"~ (fewer than {LEAST} repetitions)"
    low, high = ratio.interval
    if p >= DIFFERENT or low <= 1 <= high or abs(ratio.value - 1) <= noise_floor:
        return "~"
    return f"{ratio.value:.3f} ({low:.3f}–{high:.3f})"
