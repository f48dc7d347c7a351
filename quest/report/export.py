"""`export`: numbers for figures, book and deck, in build/data.

A file is rewritten only if its text changes, so that nothing is drawn again without need. Bound
numbers are looked for in the reader's own run first, and one by one in the reference where that
has none.
"""

import hashlib
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from quest.ground import foreign
from quest.ground.errors import InputError
from quest.ground.files import write_whole
from quest.measure import environment, records
from quest.measure.records import HERE, REFERENCE, Source, Sources
from quest.measure.usable import NOISY
from quest.report import claims, then, tsv, verdicts
from quest.report.claims import STANDINGS
from quest.report.otherwise import otherwise
from quest.report.rules import UNDECIDED
from quest.report.then import Beside
from quest.spec import experiment_file
from quest.spec.model import AA, SOURCES, Experiment
from quest.stats.analysis import Analysis, Number, numbers, scalar_numbers


def export(results: Path, reference: Path, data: Path) -> int:
    """0, or 1 if some result file is damaged: the others are exported all the same."""
    fingerprint = verdicts.stamp_of(results, reference)
    errors: list[str] = []
    bound: dict[str, Any] = {}
    tables: dict[str, Any] = {}
    shown: list[Source] = []
    for definition in experiment_file.load_all():
        try:
            found = records.load_sources(definition, results, reference, errors)
            thens = then.of(definition, found)
            of_one = _export_one(definition, found, thens, data)
        except InputError as error:
            errors.append(str(error))
            continue
        bound |= of_one
        tables |= then.bound(thens, definition.id)
        shown += [found.shown] if found.shown else []
        variants = {re.split("[.,]", key, maxsplit=2)[1] for key in of_one}
        derived = {f"{definition.id}.{number.key}" for number in definition.derived}
        if {variant.name for variant in definition.variants} - variants or derived - of_one.keys():
            # It stands for all keys of the experiment that no set of results has yet.
            how = f"make bench ONLY={definition.id}"
            bound[definition.id] = _words("not measured", "none", how)
    bound |= _environment_numbers(shown)
    _write(data / "numbers.json", _json(bound))
    _write(data / "then.json", _json(tables))
    if experiment_file.LEDGER.exists():
        try:
            entries = claims.judge_all(results, reference, errors)
        except InputError as error:
            errors.append(str(error))
        else:
            _write(data / "claims.json", _json(entries))
            for name, text in tally(entries).items():
                _write(data / "claims" / name, text)
    for text in dict.fromkeys(errors):
        print(foreign.plain(text), file=sys.stderr)
    if errors:
        (data / verdicts.STAMP).unlink(missing_ok=True)
        return 1
    _write(data / verdicts.STAMP, fingerprint)
    return 0


def _write(path: Path, text: str) -> None:
    data = text.encode()
    if path.is_file() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, data)


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _export_one(
    definition: Experiment, found: Sources, thens: list[Beside], data: Path
) -> dict[str, Any]:
    """Writes the tables of an experiment; its bound numbers."""
    folder = data / definition.id
    given = [source for source in (found.reference, found.here) if source]
    analyses = {source.origin: Analysis(definition, source.results) for source in given}
    analysis = analyses[found.shown.origin] if found.shown else None
    tables = tsv.tables(analysis) if analysis else {}
    beside = tsv.curves(analyses[REFERENCE]) if len(given) == 2 else {}
    tables |= {f"reference-{label}.tsv": text for label, text in beside.items()}
    if thens:
        tables["then.tsv"] = then.tsv(thens)
    digest = hashlib.sha256()
    for name, text in sorted(tables.items()):
        _write(folder / name, text)
        digest.update(name.encode() + b"\0" + text.encode())
    for path in folder.iterdir() if folder.is_dir() else ():  # of a variant that is gone
        if path.name not in (*tables, "meta.gp"):
            path.unlink()
    # Figures depend on meta.gp alone: it changes whenever a table beside it does.
    variables = {**meta(definition, found, analysis), **then_titles(thens)}
    if found.reference and beside:
        unlike = otherwise([source.results for source in (found.here, found.reference) if source])
        words = unlike.words("load")
        words = f"{words[:64]}…" if len(words) > 65 else words
        footer = found.reference.footer + (f"; with {words}" if words else "")
        variables |= {"reference_variants": " ".join(beside), "reference_footer": footer}
    _write(folder / "meta.gp", f"{assignments(variables)}# tables: {digest.hexdigest()}\n")
    bound: dict[str, Any] = {}
    for source in given:  # the later one wins
        known = dict(numbers(analyses[source.origin]))
        if definition.kind == "trace":
            known |= scalar_numbers(analyses[source.origin])
        for name, number in known.items():
            key, one = f"{definition.id}.{name}", entry(number, source)
            if source.origin == HERE and half_noisy(source):
                one["noisy"] = True
            if key in bound:  # a page that shows one's own run may show the reference beside it
                one["reference"] = bound[key]["value"]
            bound[key] = one
    return bound


def half_noisy(source: Source) -> bool:
    """So many repetitions that a page warns of its numbers; of a few their own marks tell."""
    marked = [NOISY in repetition["marks"] for repetition in source.results.repetitions]
    return 2 * sum(marked) >= len(marked) > 0


def entry(number: Number, source: Source) -> dict[str, Any]:
    result: dict[str, Any] = {
        "value": number.value if math.isfinite(number.value) else None,
        "low": number.low,
        "high": number.high,
        "unit": number.unit,
        "text": number.text(),
        "interval": number.interval(),
        "source": source.origin,
        "run": source.footer,
    }
    if number.count:
        result["n"] = number.count
    if number.marks:
        result["marks"] = list(number.marks)
    return result


def _words(text: str, source: str, run: str) -> dict[str, Any]:
    """Where there is no number."""
    nothing = {"value": None, "low": None, "high": None, "unit": ""}
    return {**nothing, "text": text, "interval": "", "source": source, "run": run}


def _environment_numbers(shown: Sequence[Source]) -> dict[str, Any]:
    """env.cpu, env.kernel, ...: of the reader's newest run, else of the newest reference run."""
    own = [source for source in shown if source.origin == HERE]
    chosen = max(own or shown, key=lambda s: str(s.results.run["started"]), default=None)
    if chosen is None:
        return {"env": _words("not measured", "none", "make")}
    run = chosen.results.run
    found = run["environment"]
    texts = {
        "cpu": environment.short_cpu(found.get("cpu", "")),
        "kernel": environment.short_kernel(found.get("kernel", "")),
        **{key: str(found.get(key) or "") for key in ("cores", "compiler", "cflags")},
        **{key: found.get("libc", {}).get(key, "") for key in ("glibc", "musl", "diet")},
        **{key: str(found.get(key) or "") for key in ("hz", "distribution")},
        "date": run["started"][:10],
        "profile": run["profile"],
    }
    return {
        f"env.{name}": _words(text or "unknown", chosen.origin, chosen.footer)
        for name, text in texts.items()
    }


# ---- What a figure must know beside its tables, as variables of gnuplot (meta.gp) ----------------


def assignments(variables: Mapping[str, Any]) -> str:
    lines = []
    for name, value in variables.items():
        if isinstance(value, str):
            value = foreign.gnuplot(value)
        lines.append(f"{name} = {value}\n")
    return "".join(lines)


def meta(definition: Experiment, found: Sources, analysis: Analysis | None) -> dict[str, str]:
    titles = {label: analysis.title(label) for label in analysis.plain_labels} if analysis else {}
    repetitions = analysis.results.repetitions if analysis else []
    marks = Counter(mark for repetition in repetitions for mark in repetition["marks"])
    shown = found.shown
    variables = {
        "footer": shown.footer if shown else "not measured",
        "source": shown.origin if shown else "none",
        "variants": " ".join(titles),
        "titles": " ".join(f"'{title}'" for title in titles.values()),
        "missing": "; ".join(_missing(definition, found)),
        **_failed(definition, shown),
        "marks": ", ".join(f"{m} {n} of {len(repetitions)}" for m, n in sorted(marks.items())),
        "title": definition.title,
    }
    for metric in definition.metrics:
        title = f"{metric.title}, {metric.unit}".removesuffix(", ")
        variables[f"y_title_{metric.name.replace('-', '_')}"] = title
    for label, title in titles.items():
        variables["title_" + "".join(c if c.isalnum() else "_" for c in label)] = title
    return variables


def _missing(definition: Experiment, found: Sources) -> Iterator[str]:
    skips = found.skips
    if found.shown is None and not skips:
        yield f"not measured yet: make bench ONLY={definition.id}"
    if found.here is None and not skips and found.reference:
        skips = [(s.get("variant", ""), s["reason"]) for s in found.reference.results.skips]
    titles = {variant.name: variant.title for variant in definition.variants}
    for name, reason in skips:
        yield f"{titles.get(name, name)}: {reason}"


def _failed(definition: Experiment, shown: Source | None) -> dict[str, str]:
    """What failed of a run, and how often; and the variants of which nothing else is left, which
    have a place in a figure of bars all the same.
    """
    if shown is None:
        return {}
    swept = definition.axis.parameter if definition.axis else ""
    tries: dict[tuple[str, str], list[int]] = {}
    result = shown.results
    for record, down in [(r, 0) for r in result.repetitions] + [(f, 1) for f in result.failures]:
        place = record["variant"].removesuffix(AA), str(record["params"].get(swept, ""))
        tries.setdefault(place, []).append(down)
    titles = {variant.name: variant.title for variant in definition.variants}
    told, none = [], {}
    for (name, at), fell in tries.items():
        if any(fell):
            how = f"failed {sum(fell)} of {len(fell)}"
            told.append(f"{titles.get(name, name)}{f' at {at}' if at else ''}: {how}")
            if all(map(all, (some for (other, _), some in tries.items() if other == name))):
                none[name] = how
    return {
        "failed": "; ".join(told),
        "failed_variants": " ".join(none),
        "failed_titles": " ".join(f"'{titles.get(name, name)}'" for name in none),
        "failed_texts": " ".join(f"'{how}'" for how in none.values()),
    }


def then_titles(tables: Iterable[Beside]) -> dict[str, str | int]:
    """What figures/then-and-now.gp says of a table; the numbers themselves are in then.tsv."""
    variables: dict[str, str | int] = {}
    for beside in tables:
        name = beside.then.key.replace("-", "_")
        variables |= {
            f"then_title_{name}": beside.then.title,
            f"then_source_{name}": SOURCES[beside.then.source],
            f"then_base_{name}": beside.base_title,
            f"then_metric_{name}": beside.metric.title,
            f"then_rows_{name}": len(beside.lines),
        }
    return variables


def tally(entries: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The files of build/data/claims, for the figure of the verdicts: how many claims of each
    source stand how.
    """
    counts = Counter((e["source_title"], e["standing"]) for e in entries)
    rows: list[Sequence[Any]] = [["source", *STANDINGS]]
    for source in dict.fromkeys(e["source_title"] for e in entries):
        rows.append([source, *(counts[source, standing] for standing in STANDINGS)])
    judged = [e for e in entries if e["rule"] and e["verdict"] not in UNDECIDED]
    of_run = Counter(e["source_run"] for e in judged)
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
    text = assignments(variables) + "".join(f"# {row}\n" for row in rows)
    return {"verdicts.tsv": tsv.table(rows), "meta.gp": text}
