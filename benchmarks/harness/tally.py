"""How many claims of each source stand how, for the figure of the verdicts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from harness import tsv
from harness.claims import STANDINGS
from harness.gnuplot import gnuplot_string
from harness.judgement import NOT_MEASURED
from harness.sources import HERE, REFERENCE

FOLDER = "claims"
Entries = Sequence[Mapping[str, Any]]


def tables(entries: Entries) -> dict[str, str]:
    """The files of build/data/claims: a row a source, and what every figure must know."""
    counts = Counter((entry["source_title"], entry["standing"]) for entry in entries)
    sources = dict.fromkeys(entry["source_title"] for entry in entries)
    rows: list[Sequence[Any]] = [["source", *STANDINGS]]
    rows += [[source, *(counts[source, standing] for standing in STANDINGS)] for source in sources]
    text = tsv.table(rows)
    return {"verdicts.tsv": text, "meta.gp": _meta(entries, rows)}


def _meta(entries: Entries, rows: Sequence[Sequence[Any]]) -> str:
    judged = [e for e in entries if e["rule"] and e["verdict"] != NOT_MEASURED]
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
    lines = [f"{name} = {gnuplot_string(text)}" for name, text in variables.items()]
    # A figure depends on this file alone, so it must change with the table.
    return "\n".join([*lines, *(f"# {row}" for row in rows)]) + "\n"
