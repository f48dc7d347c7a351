"""`export`: numbers for figures, book and deck, in build/data.

A file is rewritten only if its text changes, so that nothing is drawn again without need. Bound
numbers are looked for in the reader's own run first, and one by one in the reference where that
has none.
"""

import hashlib
import json
import math
import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from harness.errors import InputError
from harness.report import gnuplot, then, tsv, verdicts
from harness.report.then import Beside
from harness.run import records
from harness.run.records import HERE, REFERENCE, Source, Sources
from harness.spec import experiment_file
from harness.spec.model import Experiment
from harness.statistics.analysis import Analysis, Number, numbers, scalar_numbers
from harness.system import environment


def export(results: Path, reference: Path, data: Path) -> int:
    """0, or 1 if some result file is damaged: the others are exported all the same."""
    fingerprint = verdicts.stamp_of(results, reference)
    errors: list[str] = []
    bound: dict[str, Any] = {}
    tables: dict[str, Any] = {}
    shown: dict[str, Source] = {}
    for definition in experiment_file.load_all():
        try:
            found = records.load_sources(definition, results, reference, errors)
            thens = then.of(definition, found)
            bound.update(_export_one(definition, found, thens, data))
            tables.update(then.bound(thens, definition.id))
        except InputError as error:
            errors.append(str(error))
            continue
        if found.shown:
            shown[definition.id] = found.shown
        if _lacks_something(definition, bound):
            # It stands for all keys of the experiment that are not there.
            how = f"make bench ONLY={definition.id}"
            bound[definition.id] = _words("not measured", "none", how)
    bound.update(_environment_numbers(shown))
    _write(data / "numbers.json", _json(bound))
    _write(data / "then.json", _json(tables))
    _export_claims(results, reference, data, errors)
    for text in dict.fromkeys(errors):
        print(text, file=sys.stderr)
    if errors:
        (data / verdicts.STAMP).unlink(missing_ok=True)
        return 1
    _write(data / verdicts.STAMP, fingerprint)
    return 0


def _export_claims(results: Path, reference: Path, data: Path, errors: list[str]) -> None:
    if experiment_file.LEDGER.exists():
        from harness.report import claims

        try:
            entries = claims.judge_all(results, reference, errors)
        except InputError as error:
            errors.append(str(error))
            return
        _write(data / "claims.json", _json(entries))
        for name, text in gnuplot.tally(entries).items():
            _write(data / "claims" / name, text)


def _write(path: Path, text: str) -> None:
    data = text.encode()
    if path.is_file() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".new")
    unfinished.write_bytes(data)
    os.replace(unfinished, path)


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


# ---- one experiment -----------------------------------------------------------------------------


def _export_one(
    definition: Experiment, found: Sources, thens: list[Beside], data: Path
) -> dict[str, Any]:
    """Writes its tables; its bound numbers."""
    folder = data / definition.id
    analyses = {
        source.origin: Analysis(definition, source.results)
        for source in (found.reference, found.here)
        if source
    }
    analysis = analyses.get(found.shown.origin) if found.shown else None
    written = set()
    if analysis:
        tables = tsv.tables(analysis)
        for name, text in tables.items():
            _write(folder / name, text)
        written = set(tables)
    if thens:
        _write(folder / "then.tsv", then.tsv(thens))
        written.add("then.tsv")
    _remove_stale(folder, written | {"meta.gp"})
    # Figures depend on meta.gp alone: it changes whenever a table beside it does.
    hashes = _hash(folder, written)
    meta = gnuplot.meta(definition, found, analysis) + gnuplot.thens(thens)
    _write(folder / "meta.gp", f"{meta}# tables: {hashes}\n")
    bound: dict[str, Any] = {}
    for source in (found.reference, found.here):  # the later one wins
        if source:
            for key, number in _bound(definition, analyses[source.origin], source).items():
                if key in bound:  # a page that shows one's own run may show the reference beside it
                    number["reference"] = bound[key]["value"]
                bound[key] = number
    return bound


def _bound(definition: Experiment, analysis: Analysis, source: Source) -> dict[str, Any]:
    found = dict(numbers(analysis))
    if definition.kind == "trace":
        found.update(scalar_numbers(analysis))
    return {f"{definition.id}.{key}": entry(number, source) for key, number in found.items()}


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


def _hash(folder: Path, names: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for name in sorted(names):
        digest.update(name.encode() + b"\0" + (folder / name).read_bytes())
    return digest.hexdigest()


def _remove_stale(folder: Path, written: Iterable[str]) -> None:
    """Tables of a variant that is no longer there."""
    keep = set(written)
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.name not in keep:
            path.unlink()


# ---- without a number ---------------------------------------------------------------------------


def _lacks_something(definition: Experiment, bound: Mapping[str, Any]) -> bool:
    """A variant or a [[number]] that no set of results has yet."""
    variants = {re.split("[.,]", key, maxsplit=2)[1] for key in bound if "." in key
                and key.startswith(f"{definition.id}.")}  # fmt: skip
    return any(variant.name not in variants for variant in definition.variants) or any(
        f"{definition.id}.{number.key}" not in bound for number in definition.derived
    )


def _words(text: str, source: str, run: str) -> dict[str, Any]:
    return {
        "value": None, "low": None, "high": None, "unit": "", "text": text, "interval": "",
        "source": source, "run": run,
    }  # fmt: skip


def _environment_numbers(shown: Mapping[str, Source]) -> dict[str, Any]:
    """env.cpu, env.kernel, ...: of the reader's newest run, else of the newest reference run."""
    own = [source for source in shown.values() if source.origin == HERE]
    others = [source for source in shown.values() if source.origin == REFERENCE]
    chosen = max(own or others, key=lambda s: str(s.results.run["started"]), default=None)
    if chosen is None:
        return {"env": _words("not measured", "none", "make")}
    found = chosen.results.run["environment"]
    texts = {
        "cpu": environment.short_cpu(found.get("cpu", "")),
        "kernel": environment.short_kernel(found.get("kernel", "")),
        "cores": str(found.get("cores", "")),
        "compiler": found.get("compiler", ""),
        "cflags": found.get("cflags", ""),
        "glibc": found.get("libc", {}).get("glibc", ""),
        "musl": found.get("libc", {}).get("musl", ""),
        "diet": found.get("libc", {}).get("diet", ""),
        "hz": str(found.get("hz") or ""),
        "distribution": found.get("distribution", ""),
        "date": chosen.results.run["started"][:10],
        "profile": chosen.results.run["profile"],
    }
    return {
        f"env.{name}": _words(text or "unknown", chosen.origin, chosen.footer)
        for name, text in texts.items()
    }
