"""`compare A B`: two result folders, old against new, in the manner of benchstat."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from quest.ground.errors import InputError
from quest.measure.records import read
from quest.report import claims
from quest.report.otherwise import otherwise
from quest.report.rules import UNDECIDED
from quest.report.tsv import aligned
from quest.spec import experiment_file
from quest.spec.model import LEAST, Experiment, x_text
from quest.stats import estimates, units
from quest.stats.analysis import Analysis, Point, Series
from quest.stats.estimates import DIFFERENT

HEADER = ("old", "new", "new/old", "p", "n")
WHAT_IS_OLD = (
    "A difference is shown where the rank test sees one and it is beyond the A/A floor; else ~."
)


def compare(old: Path, new: Path, only: Sequence[str]) -> int:
    """Prints the tables. 0, also where nothing differs: a difference is no error."""
    for folder in (old, new):
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder")
    experiments = {e.id: e for e in experiment_file.load_all()}
    both = sorted(path.stem for path in old.glob("*.jsonl") if (new / path.name).exists())
    names = [name for name in both if name in experiments and (not only or name in only)]
    if not names:
        raise InputError(f"no experiment has results in both {old} and {new}")
    print("\n\n".join(_table(experiments[name], old, new) for name in names))
    print(f"\n{WHAT_IS_OLD}")
    print("\n".join(verdicts(old, new, names)))
    return 0


def verdicts(old: Path, new: Path, names: Sequence[str]) -> list[str]:
    """How many claims both runs judge alike, and each that they do not, with what was known."""
    found = claims.side_by_side(new, old, names)
    pairs = [each for each in found if not {each[1].verdict, each[2].verdict} & set(UNDECIDED)]
    differ = [each for each in pairs if each[1].verdict != each[2].verdict]
    head = f"claims that both judge: {len(pairs)}, {len(pairs) - len(differ)} of them alike"
    lines = [f"\n{head}"] if pairs else []
    for claim, after, before in differ:
        near = " (near the line)" if before.near or after.near or claim.near else ""
        lines.append(f"claim {claim.id}: {before.verdict} -> {after.verdict}{near}")
    return lines


def _table(definition: Experiment, old: Path, new: Path) -> str:
    file = f"{definition.id}.jsonl"
    before, after = (Analysis(definition, read(folder / file)) for folder in (old, new))
    rows: list[tuple[str, ...]] = []
    for metric in definition.metrics:
        rows.append((metric.name, *HEADER))
        floors = [f for x in (before, after) if (f := x.floor(metric.name)) is not None]
        for label in (name for name in before.plain_labels if name in after.repetitions):
            a, b = (x.series(label, metric.name) for x in (before, after))
            for name, first, second in _pairs(label, a, b):
                rows.append(row(name, first, second, metric.unit, max(floors, default=0.0)))
    unlike = otherwise([after.results, before.results])
    both = (unlike.words(what, "now") for what in ("load", "effort"))
    set_to = [f"not set alike: {words}" for words in both if words]
    return "\n".join([definition.id, *set_to, *aligned(rows, right=range(1, 6))])


def _pairs(label: str, a: Series, b: Series) -> Iterable[tuple[str, Point, Point]]:
    """The points both have; all x together where x is a column of many bins."""
    if len(a.points) > 12 or all(point.x is None for point in a.points):
        if a.overall.values and b.overall.values:
            yield label, a.overall, b.overall
        return
    for point in a.points:
        if point.x is not None and (other := b.at(point.x)):
            yield f"{label} @{x_text(point.x)}", point, other


def row(name: str, old: Point, new: Point, unit: str, floor: float) -> tuple[str, ...]:
    a, b = list(old.values.values()), list(new.values.values())
    ratio = estimates.unpaired_ratio(b, a)
    n = str(len(a)) if len(a) == len(b) else f"{len(a)}+{len(b)}"
    p = "" if ratio.p is None else f"p={ratio.p:.3f}"
    return name, _cell(a, unit), _cell(b, unit), verdict(ratio, floor), p, f"n={n}"


def _cell(values: list[float], unit: str) -> str:
    value, low, high = estimates.median_and_ends(values)
    text = units.text(value, unit, low, high)
    if low is None or high is None or not value:
        return text
    return f"{text} ±{units.percent(max(high - value, value - low) / abs(value))}"


def verdict(ratio: estimates.Ratio, floor: float) -> str:
    """The ratio with its interval, or `~` where no difference is seen."""
    if ratio.interval is None or ratio.p is None:
        return f"~ (fewer than {LEAST} repetitions)"
    low, high = ratio.interval
    if ratio.p >= DIFFERENT or low <= 1 <= high or abs(ratio.value - 1) <= floor:
        return "~"
    return f"{ratio.value:.3f} ({low:.3f}–{high:.3f})"
