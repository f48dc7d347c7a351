"""How a measurement ends: its numbers here and in the reference run, the verdicts of the claims
that rest on it, and where to read on.
"""

import textwrap
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from typing import Any

from harness.report import claims, rules, then
from harness.report.tsv import aligned
from harness.report.verdicts import WITHOUT_SCIPY
from harness.run import records
from harness.run.records import Sources
from harness.spec.coherence import split_operand
from harness.spec.model import AA, Experiment, Metric, x_text
from harness.statistics import estimates, units
from harness.statistics.analysis import Analysis, numbers

MOST_NUMBERS, MOST_LABELS = 8, 12
#: Parameters that say how often and how long, not what.
REPEATS = {"requests", "samples", "seconds", "warm_up", "many"}
BOOK, FIGURES = Path("build/book"), Path("build/figures")


def show(
    definitions: Sequence[Experiment], results: Path, reference: Path, width: int, upto: str = ""
) -> None:
    """Prints the result of each that has data; `upto`: the chapter whose reader asks, who is not to
    be told what later ones let him guess.
    """
    found = {e.id: records.load_sources(e, results, reference) for e in definitions}
    judged = claims.side_by_side(
        results, reference, [e.id for e in definitions if found[e.id].here]
    )
    for definition in definitions:
        if not found[definition.id].here:
            continue
        print(f"\n{definition.id}: {definition.question}")
        later = _later(definition, upto)
        for line in _table(definition, found[definition.id], later):
            print(f"  {line}")
        if later:
            names = ", ".join(sorted(set(later.values())))
            print(f"  left out for later chapters: {names} (without CH=: all)")
        for beside in then.of(definition, found[definition.id]):
            print("\n" + then.text(beside, definition.id, width))
        own = definition.chapters[0] if definition.chapters else ""
        rest_on_it = [
            (claim.id, claim.text, here, other)
            for claim, here, other in judged.get(definition.id, [])
            if not upto or (claim.chapter or own) <= upto
        ]
        for number, text, here, other in rest_on_it:
            for words in (f"claim {number}: {text}", f"  {verdicts(here, other)}"):
                if estimates.AVAILABLE or words.startswith("claim"):
                    print("\n".join(textwrap.wrap(words, width, subsequent_indent="  ")))
        if rest_on_it and not estimates.AVAILABLE:
            print(f"  {WITHOUT_SCIPY}")
        if any(rules.TOO_FEW in here.why for _, _, here, _ in rest_on_it):
            print(f"  more repetitions: make bench ONLY={definition.id} PROFILE=quick")
        print(_read_on(definition))


# ---- numbers -------------------------------------------------------------------------------------


def _later(definition: Experiment, upto: str) -> dict[str, str]:
    """Variant -> its chapter, of those whose chapter comes after `upto`: the one of its server, or
    of the system call that it is named after. Chapters sort by their names.
    """
    call = {slug.partition("-")[2]: slug for slug in definition.chapters}
    found = {
        variant.name: variant.server or call.get(variant.name.partition("-")[0], "")
        for variant in definition.variants
    }
    return {
        name: chapter
        for name, chapter in found.items()
        if upto and chapter in definition.chapters and chapter > upto
    }


def _table(definition: Experiment, found: Sources, later: Container[str]) -> list[str]:
    sources = found.here, found.reference
    analyses = [Analysis(definition, source.results) if source else None for source in sources]
    both = [numbers(each) if each else {} for each in analyses]
    first = next(each for each in analyses if each)
    rows = [["", "here", "reference"]]
    ratios = {derived.key for derived in definition.derived if derived.operation == "ratio"}
    for name, key in _keys(definition, first, later):
        times = " times" if key in ratios else ""
        cells = [some[key].shown() + times if key in some else "-" for some in both]
        if cells[0] != "-":
            rows.append([name, *cells])
    everything = first.results.repetitions
    marks = Counter(mark for r in everything for mark in r["marks"])
    rounds = len({r["round"] for r in everything})
    told = [f"{rounds} rounds, {len(everything)} repetitions"]
    if marks:
        counts = ", ".join(f"{count} are {mark}" for mark, count in sorted(marks.items()))
        told[0] += f", of which {counts} (what that means: chapter 0b)"
    if others := _set_otherwise(found):
        told.append(f"the reference run was taken with {others}")
    return [*aligned(rows), *told]


def _set_otherwise(found: Sources) -> str:
    """`drip=50 (here 20), requests=200 (here 60)`: what makes two columns hard to compare."""
    if not found.here or not found.reference:
        return ""
    sets = []
    for source in (found.here, found.reference):
        seen: dict[str, set[Any]] = {}
        for repetition in source.results.repetitions:
            for name, value in repetition["params"].items():
                seen.setdefault(name, set()).add(value)
        sets.append({name: next(iter(values)) for name, values in seen.items() if len(values) == 1})
    here, reference = sets
    return ", ".join(
        f"{name}={value} (here {here[name]})"
        for name, value in sorted(reference.items())
        if name in here and here[name] != value and name not in REPEATS
    )


def _keys(
    definition: Experiment, analysis: Analysis, later: Container[str]
) -> Iterable[tuple[str, str]]:
    """(how it is called, its key): what is compared first, then each variant."""

    def told(label: str) -> bool:
        return definition.variant(label.partition(",")[0]).name not in later

    metric = next((m for m in definition.metrics if m.better), None)
    if metric:
        for label in list(filter(told, analysis.plain_labels))[:MOST_LABELS]:
            yield from _of_label(definition, analysis, label, metric)
    plain = [d for d in definition.derived if not any(AA in o for o in d.operands)]
    labels = {d.key: [split_operand(operand)[0] for operand in d.operands] for d in plain}
    for derived in [d for d in plain if all(map(told, labels[d.key]))][:MOST_NUMBERS]:
        sign = {"ratio": " / ", "difference": " - "}.get(derived.operation)
        names = sign.join(map(analysis.title, labels[derived.key])) if sign else ""
        what = {split_operand(operand)[1:] for operand in derived.operands}
        alone = metric and what == {(metric.name, "")}
        yield names if names and alone else f"{derived.key}: {names}".rstrip(": "), derived.key


def _of_label(
    definition: Experiment, analysis: Analysis, label: str, metric: Metric
) -> Iterable[tuple[str, str]]:
    title = f"{analysis.title(label)}: {metric.title}"
    if definition.axis:
        ends = numbers(analysis)
        for end in ("first", "last"):
            x = ends.get(f"{label}.{metric.name}@{end}-x")
            where = f"{definition.axis.title} {units.text(x.value, '')}" if x else f"the {end}"
            at = x_text(x.value) if x else end  # the other run may end elsewhere
            yield f"{title}, {where}", f"{label}.{metric.name}@{at}"
    else:
        yield title, f"{label}.{metric.name}"


# ---- and then ------------------------------------------------------------------------------------


def verdicts(here: rules.Judgement, reference: rules.Judgement) -> str:
    """`yours: holds; reference: holds`, with the reason where nothing could be said."""
    parts = []
    for name, judgement in (("yours", here), ("reference", reference)):
        undecided = judgement.verdict in rules.UNDECIDED
        parts.append(f"{name}: {judgement.why if undecided else judgement.verdict}")
    seen = here.numbers or reference.numbers
    return "; ".join(parts) + (f" ({seen})" if seen else "")


def _read_on(definition: Experiment) -> str:
    chapter = next(iter(definition.chapters), "")
    page, source = BOOK / f"{chapter}.html", Path(f"chapters/{chapter}.md")
    figure = FIGURES / f"{definition.id}.svg"
    words = []
    if chapter:
        words.append(f"{page} (make book puts your numbers in)" if page.exists() else f"{source}")
    if Path(f"figures/{definition.id}.gp").exists():
        words.append(f"{figure} (make figures draws it with your numbers)")
    words.append(f"again: make bench ONLY={definition.id} AGAIN=1")
    return "\n".join(f"  {word}" for word in words)
