"""What a figure must know beside its tables, as variables of gnuplot (meta.gp); and the tables of
the figure of the verdicts.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.report import tsv
from harness.report.claims import STANDINGS
from harness.report.rules import UNDECIDED
from harness.report.then import Beside
from harness.run.records import HERE, REFERENCE, Sources
from harness.spec.experiment_file import SOURCES
from harness.spec.model import Experiment
from harness.statistics.analysis import Analysis


def string(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _lines(variables: Mapping[str, str]) -> list[str]:
    return [f"{name} = {string(text)}" for name, text in variables.items()]


def meta(definition: Experiment, found: Sources, analysis: Analysis | None) -> str:
    labels = analysis.plain_labels if analysis else []
    titles = [analysis.title(label) for label in labels] if analysis else []
    shown = found.shown
    variables = {
        "footer": shown.footer if shown else "not measured",
        "source": shown.origin if shown else "none",
        "variants": " ".join(labels),
        "titles": " ".join(f"'{title}'" for title in titles),
        "missing": "; ".join(_missing(definition, found)),
        "marks": _marks(analysis) if analysis else "",
        "title": definition.title,
    }
    for metric in definition.metrics:
        name = metric.name.replace("-", "_")
        variables[f"y_title_{name}"] = f"{metric.title}, {metric.unit}".removesuffix(", ")
    for label, title in zip(labels, titles, strict=True):
        variables["title_" + "".join(c if c.isalnum() else "_" for c in label)] = title
    return "\n".join(_lines(variables)) + "\n"


def thens(tables: Iterable[Beside]) -> str:
    """What figures/then-and-now.gp says of a table; the numbers themselves are in then.tsv."""
    lines = []
    for beside in tables:
        name = beside.then.key.replace("-", "_")
        texts = {
            f"then_title_{name}": beside.then.title,
            f"then_source_{name}": SOURCES[beside.then.source],
            f"then_base_{name}": beside.base_title,
            f"then_metric_{name}": beside.metric.title,
        }
        lines += _lines(texts)
        lines.append(f"then_rows_{name} = {len(beside.lines)}")
    return "".join(line + "\n" for line in lines)


def _missing(definition: Experiment, found: Sources) -> list[str]:
    if found.shown is None and not found.skips:
        return [f"not measured yet: make bench ONLY={definition.id}"]
    skips = found.skips
    if found.here is None and not skips and found.reference:
        skips = [(s.get("variant", ""), s["reason"]) for s in found.reference.results.skips]
    titles = {variant.name: variant.title for variant in definition.variants}
    return [f"{titles.get(name, name)}: {reason}" for name, reason in skips]


def _marks(analysis: Analysis) -> str:
    """`noisy 3 of 60, client-bound 12 of 60`."""
    repetitions = analysis.results.repetitions
    counts = Counter(mark for repetition in repetitions for mark in repetition["marks"])
    return ", ".join(f"{m} {n} of {len(repetitions)}" for m, n in sorted(counts.items()))


# ---- How many claims of each source stand how, for the figure of the verdicts --------------------

Entries = Sequence[Mapping[str, Any]]


def tally(entries: Entries) -> dict[str, str]:
    """The files of build/data/claims: a row a source, and what every figure must know."""
    counts = Counter((entry["source_title"], entry["standing"]) for entry in entries)
    sources = dict.fromkeys(entry["source_title"] for entry in entries)
    rows: list[Sequence[Any]] = [["source", *STANDINGS]]
    rows += [[source, *(counts[source, standing] for standing in STANDINGS)] for source in sources]
    text = tsv.table(rows)
    return {"verdicts.tsv": text, "meta.gp": _meta(entries, rows)}


def _meta(entries: Entries, rows: Sequence[Sequence[Any]]) -> str:
    judged = [e for e in entries if e["rule"] and e["verdict"] not in UNDECIDED]
    of_run = Counter(entry["source_run"] for entry in judged)
    # The figure's footer says "measured here, " or "reference machine, " before these words.
    footer = f"{len(judged)} of {len(entries)} claims judged"
    if of_run[HERE] and of_run[REFERENCE]:
        footer += f", {of_run[REFERENCE]} of them on the reference run"
    variables = {
        "footer": footer,
        "source": HERE if of_run[HERE] else REFERENCE if of_run[REFERENCE] else "none",
        "missing": "" if judged else "no claim has been judged yet: make",
    }
    # A figure depends on this file alone, so it must change with the table.
    return "\n".join([*_lines(variables), *(f"# {row}" for row in rows)]) + "\n"
