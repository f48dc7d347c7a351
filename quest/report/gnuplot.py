"""meta.gp: what a figure must know beside its tables, as variables of gnuplot."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from quest.ground import foreign
from quest.measure.records import HERE, REFERENCE
from quest.report import tsv
from quest.report.claims import JudgedClaim
from quest.report.measured import Both
from quest.report.otherwise import otherwise
from quest.report.rules import UNDECIDED
from quest.report.then import SourceTable
from quest.spec.model import SOURCES, STANDINGS, Experiment
from quest.stats.table import NumberTable

LONGEST = 65  # characters of settings in a footer


def assignments(variables: Mapping[str, object]) -> str:
    """A line for each variable; texts are quoted."""
    return "".join(
        f"{name} = {foreign.gnuplot(value) if isinstance(value, str) else value}\n" for name, value in variables.items()
    )


def experiment_variables(definition: Experiment, both: Both, sources: Sequence[SourceTable]) -> dict[str, str | int]:
    """Of an experiment's figure. `sources`: its [[then]] tables."""
    variables = _titles(definition, both) | _source_titles(sources)
    if both.here and both.reference:
        beside = both.reference.plain_series if definition.metrics else []
        if beside:
            unlike = otherwise([both.here.run, both.reference.run]).words("load")
            unlike = f"{unlike[: LONGEST - 1]}…" if len(unlike) > LONGEST else unlike
            footer = both.reference.run.footer + (f"; with {unlike}" if unlike else "")
            variables |= {"reference_variants": " ".join(beside), "reference_footer": footer}
    return variables


def _titles(definition: Experiment, both: Both) -> dict[str, str | int]:
    table = both.preferred
    titles = {name: table.title(name) for name in table.plain_series} if table else {}
    marks = table.run.marks if table else {}
    count = table.run.repetitions if table else 0
    variables: dict[str, str | int] = {
        "footer": table.run.footer if table else "not measured",
        "source": table.origin if table else "none",
        "variants": " ".join(titles),
        "titles": " ".join(f"'{title}'" for title in titles.values()),
        "missing": "; ".join(_missing(definition, both)),
        **_failed(definition, table),
        "marks": ", ".join(f"{mark} {n} of {count}" for mark, n in sorted(marks.items())),
        "title": definition.title,
    }
    for metric in definition.metrics:
        title = f"{metric.title}, {metric.unit}".removesuffix(", ")
        variables[f"y_title_{metric.name.replace('-', '_')}"] = title
    for name, title in titles.items():
        variables["title_" + "".join(c if c.isalnum() else "_" for c in name)] = title
    return variables


def _missing(definition: Experiment, both: Both) -> Iterator[str]:
    skips = both.skips
    if both.preferred is None and not skips:
        yield f"not measured yet: make bench ONLY={definition.id}"
    if both.here is None and not skips and both.reference:
        skips = both.reference.run.skips
    titles = {variant.name: variant.title for variant in definition.variants}
    for name, reason in skips:
        yield f"{titles.get(name, name)}: {reason}"


def _failed(definition: Experiment, table: NumberTable | None) -> dict[str, str]:
    """What failed of a run, and how often; and the variants of which nothing else is left, which
    have a place in a figure of bars all the same.
    """
    if table is None:
        return {}
    titles = {variant.name: variant.title for variant in definition.variants}
    attempts = table.run.attempts
    measured = {each.variant for each in attempts if each.failed < each.count}
    texts, lost, in_part = [], {}, {}
    for each in attempts:
        if each.failed:
            how = f"failed {each.failed} of {each.count}"
            at = f" at {each.x}" if each.x else ""
            texts.append(f"{titles.get(each.variant, each.variant)}{at}: {how}")
            if each.variant not in measured:
                lost[each.variant] = how
            elif not each.x:  # with an x the remark below the figure names it
                in_part[each.variant] = how
    return {
        "failed": "; ".join(texts),
        "failed_in_part": " ".join(in_part),
        "failed_in_part_texts": " ".join(f"'{how}'" for how in in_part.values()),
        "failed_variants": " ".join(lost),
        "failed_titles": " ".join(f"'{titles.get(name, name)}'" for name in lost),
        "failed_texts": " ".join(f"'{how}'" for how in lost.values()),
    }


def _source_titles(sources: Iterable[SourceTable]) -> dict[str, str | int]:
    """What figures/then-and-now.gp prints of a table; the numbers themselves are in then.tsv."""
    variables: dict[str, str | int] = {}
    for source in sources:
        name = source.then.key.replace("-", "_")
        variables |= {
            f"then_title_{name}": source.then.title,
            f"then_source_{name}": SOURCES[source.then.source],
            f"then_base_{name}": source.base_title,
            f"then_metric_{name}": source.metric.title,
            f"then_rows_{name}": len(source.lines),
        }
    return variables


def tally(claims: Sequence[JudgedClaim]) -> dict[str, str]:
    """The files of build/data/claims, for the figure of the verdicts: how many claims of each
    source stand how.
    """
    counts = Counter((claim["source_title"], claim["standing"]) for claim in claims)
    rows: list[list[str | int]] = [["source", *STANDINGS]]
    for source in dict.fromkeys(claim["source_title"] for claim in claims):
        rows.append([source, *(counts[source, standing] for standing in STANDINGS)])
    judged = [claim for claim in claims if claim["rule"] and claim["verdict"] not in UNDECIDED]
    of_run = Counter(claim["source_run"] for claim in judged)
    # The figure's footer says "measured here, " or "reference machine, " before these words.
    footer = f"{len(judged)} of {len(claims)} claims judged"
    if of_run[HERE] and of_run[REFERENCE]:
        footer += f", {of_run[REFERENCE]} of them on the reference run"
    variables = {
        "footer": footer,
        "source": HERE if of_run[HERE] else REFERENCE if of_run[REFERENCE] else "none",
        "missing": "" if judged else "no claim has been judged yet: make",
    }
    # A figure depends on this file alone, so it must change with the table.
    text = assignments(variables) + "".join(f"# {row}\n" for row in rows)
    return {"verdicts.tsv": tsv.table(rows), "meta.gp": text}
