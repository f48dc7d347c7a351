"""How a measurement ends: its numbers here and in the reference run, the verdicts of the claims
that rest on it, and where to read on.
"""

import textwrap
from collections.abc import Container, Iterator, Sequence
from pathlib import Path

from quest.report import claims, rules, since, then
from quest.report.measured import Both, Library
from quest.report.otherwise import otherwise
from quest.report.tsv import aligned
from quest.report.verdicts import WITHOUT_SCIPY, remedy
from quest.spec.coherence import split_operand
from quest.spec.model import AA, Experiment, Metric, x_text
from quest.stats import estimates, units
from quest.stats.table import NumberTable

MOST_NUMBERS, MOST_SERIES = 8, 12
BOOK, FIGURES = Path("build/book"), Path("build/figures")


def print_results(definitions: Sequence[Experiment], library: Library, width: int, upto: str = "") -> None:
    """Prints the result of each that has data, `width` columns wide; `upto`: the chapter whose
    reader asks, who is not to be told what later ones let him guess.
    """
    measured = [definition for definition in definitions if library.both(definition.id).here]
    ids = [definition.id for definition in measured]
    judged = [*claims.side_by_side(library, ids), *since.side_by_side(library, ids)]
    for definition in measured:
        print(f"\n{definition.id}: {definition.question}")
        later = later_variants(definition, upto)
        both = library.both(definition.id)
        lines = _table(definition, both, later, width - 2)
        if later:
            names = ", ".join(sorted(set(later.values())))
            left_out = f"left out for later chapters: {names} (without CH=: all)"
            lines += textwrap.wrap(left_out, width - 2)
        print("\n".join(f"  {line}" for line in lines))
        for source in then.source_tables(definition, both):
            print("\n" + then.text(source, definition.id, width))
        chapter = definition.chapters[0] if definition.chapters else ""
        rest_on_it = [
            each
            for each in judged
            if each[0].experiment == definition.id
            if not upto or (each[0].chapter or chapter) <= upto
        ]
        for claim, here, other in rest_on_it:
            words = [f"claim {claim.id}: {claim.text}"]
            words += [f"  {_verdicts(here, other)}"] if estimates.AVAILABLE else []
            for each in words:
                print("\n".join(textwrap.wrap(each, width, subsequent_indent="  ")))
        if rest_on_it and not estimates.AVAILABLE:
            print(f"  {WITHOUT_SCIPY}")
        if any(here.verdict not in rules.UNDECIDED for _, here, _ in rest_on_it):
            print("  yours is one session: another one, after a reboot or three hours later, may give another verdict")
        if any(rules.TOO_FEW in here.why for _, here, _ in rest_on_it):
            print(f"  more repetitions: make bench ONLY={definition.id} PROFILE=quick")
        for what in {remedy(here.why, definition.id) for _, here, _ in rest_on_it} - {""}:
            print(f"  noisy: {what}")
        print("\n".join(f"  {line}" for line in _read_on(definition, chapter)))


# ---- numbers -------------------------------------------------------------------------------------


def later_variants(definition: Experiment, upto: str) -> dict[str, str]:
    """Variant -> its chapter, of those whose chapter comes after `upto`: the one of its server, or
    of the system call that it is named after. Chapters sort by their names.
    """
    call = {slug.partition("-")[2]: slug for slug in definition.chapters}
    chapter_of = {v.name: v.server or call.get(v.name.partition("-")[0], "") for v in definition.variants}
    later = {slug for slug in definition.chapters if upto and slug > upto}
    return {name: chapter for name, chapter in chapter_of.items() if chapter in later}


def _table(definition: Experiment, both: Both, later: Container[str], width: int) -> list[str]:
    own = both.tables[0]
    columns = [*(table.numbers for table in both.tables), {}][:2]
    metric = _compared(definition)
    rows = [[metric.title if metric else "", "here", "reference"]]
    ratios = {derived.key for derived in definition.derived if derived.operation == "ratio"}
    for name, key in _keys(definition, own, later):
        times = " times" if key in ratios else ""
        cells = [numbers[key].with_interval() + times if key in numbers else "-" for numbers in columns]
        if cells[0] != "-":
            rows.append([name, *cells])
    marks = own.run.marks
    notes = f"{own.run.rounds} rounds, {own.run.repetitions} repetitions"
    if marks:
        counts = ", ".join(f"{count} are {mark}" for mark, count in sorted(marks.items()))
        notes += f", of which {counts} (what that means: the chapter on noise)"
    if "no-namespace" in marks:
        notes += "; no-namespace: server and load shared the machine's own network and its settings"
    unlike = otherwise([table.run for table in both.tables])
    load, effort = unlike.words("load"), unlike.words("effort")
    warning = f"not the same load: the reference run was taken with {load}" if load else ""
    notes += f"; the reference run had {effort}" if effort else ""
    return [
        *textwrap.wrap(warning, width),
        *aligned(rows, width=width),
        *textwrap.wrap(notes, width),
    ]


def _compared(definition: Experiment) -> Metric | None:
    """The first of which it is said what is better."""
    return next((metric for metric in definition.metrics if metric.better), None)


def _keys(definition: Experiment, table: NumberTable, later: Container[str]) -> Iterator[tuple[str, str]]:
    """(how it is called, its key): what is compared first, then each variant."""

    def told_now(name: str) -> bool:
        return definition.variant(name.partition(",")[0]).name not in later

    axis, metric = definition.axis, _compared(definition)
    for name in list(filter(told_now, table.plain_series))[:MOST_SERIES] if metric else ():
        assert metric
        title, key = table.title(name), f"{name}.{metric.name}"
        for end in ("first", "last") if axis else ():
            x = table.numbers.get(f"{key}@{end}-x")
            where = f"{axis.title} {units.text(x.value, '')}" if axis and x else f"the {end}"
            at = x_text(x.value) if x else end  # the other run may end elsewhere
            yield f"{title}, {where}", f"{key}@{at}"
        if not axis:
            yield title, key
    plain = [d for d in definition.derived if not any(AA in o for o in d.operands)]
    names_of = {d.key: [split_operand(operand)[0] for operand in d.operands] for d in plain}
    for derived in [d for d in plain if all(map(told_now, names_of[d.key]))][:MOST_NUMBERS]:
        sign = {"ratio": " / ", "difference": " - "}.get(derived.operation)
        names = sign.join(map(table.title, names_of[derived.key])) if sign else ""
        what = {split_operand(operand)[1:] for operand in derived.operands}
        alone = metric and what == {(metric.name, "")}
        yield names if names and alone else f"{derived.key}: {names}".rstrip(": "), derived.key


# ---- and then ------------------------------------------------------------------------------------


def _verdicts(here: rules.Judgement, reference: rules.Judgement) -> str:
    """`yours: holds; reference: holds`, with the reason where nothing could be said."""
    parts = []
    for name, judgement in (("yours", here), ("reference", reference)):
        undecided = judgement.verdict in rules.UNDECIDED
        parts.append(f"{name}: {judgement.why if undecided else judgement.verdict}")
    seen = here.numbers or reference.numbers
    return "; ".join(parts) + (f" ({seen})" if seen else "")


def _read_on(definition: Experiment, chapter: str) -> Iterator[str]:
    page = BOOK / f"{chapter}.html"
    if chapter:
        has_page = page.exists()
        yield f"{page} (make book puts your numbers in)" if has_page else f"chapters/{chapter}.md"
    plots = Path("figures/plots.tsv")
    listed = plots.exists() and f"\n{definition.id}\t" in plots.read_text(encoding="utf-8")
    if listed or Path(f"figures/{definition.id}.gp").exists():
        yield f"{FIGURES / definition.id}.svg (make figures draws it with your numbers)"
    yield f"again: make bench ONLY={definition.id} AGAIN=1"
