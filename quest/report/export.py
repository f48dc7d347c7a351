"""`export`: tables of numbers, and what figures, book and deck read of them, in build/data.

A file is rewritten only if its text changes, so that nothing is drawn again without need.
"""

import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from quest.ground import foreign
from quest.ground.errors import InputError
from quest.ground.files import write_if_other
from quest.measure import chosen
from quest.report import bound, claims, edition, gnuplot, guards, machines, since, then, tsv, verdicts
from quest.report.bound import Entry
from quest.report.measured import NUMBERS, Both, Library
from quest.spec import experiment_file
from quest.spec.model import Experiment


def export(results: Path, reference: Path, data: Path, reference_only: bool = False) -> int:
    """Writes all of `data`, of the results of the reader and of the reference run.

    0, or 1 if some result file is damaged: the others are exported all the same.
    """
    fingerprint = verdicts.stamp_of(results, reference, reference_only)
    errors: list[str] = []
    library = Library(results, reference, reference_only, data / NUMBERS, errors, chosen.everything())
    numbers: dict[str, Entry] = {}
    sources: dict[str, then.SourceEntry] = {}
    for definition in library.experiments.values():
        try:
            both = library.both(definition.id)
            beside = then.source_tables(definition, both)
            export_figure(definition, both, beside, data / definition.id)
        except InputError as error:
            errors.append(str(error))
            continue
        numbers |= bound.entries(definition, both)
        sources |= then.entries(beside, definition.id)
    every = (library.both(name).preferred for name in library.experiments)
    numbers |= bound.environment_entries(table for table in every if table)
    write_if_other(data / "numbers.json", _json(numbers))
    write_if_other(data / "then.json", _json(sources))
    write_if_other(data / "edition.json", _json(edition.edition(library)))
    if experiment_file.LEDGER.exists():
        try:
            judged = claims.judge_all(library)
        except InputError as error:
            errors.append(str(error))
        else:
            write_if_other(data / "claims.json", _json(judged))
            write_if_other(data / "judges.json", _json({"lines": verdicts.judges(judged).splitlines()}))
            for name, text in gnuplot.tally(judged).items():
                write_if_other(data / "claims" / name, text)
    if chosen.LEDGER_SINCE.exists():
        try:
            write_if_other(data / "since.json", _json(since.judge_all(library)))
        except InputError as error:
            errors.append(str(error))
    if guards.GUARDS.exists():
        try:
            write_if_other(data / "guards.json", _json(guards.judge_all(library)))
        except InputError as error:
            errors.append(str(error))
    if experiment_file.RATIOS.exists():
        try:
            strips, runs = machines.strips(library)
        except InputError as error:
            errors.append(str(error))
        else:
            write_if_other(data / "machines.json", _json(machines.entry(strips, runs)))
            for name, text in machines.files(strips, runs).items():
                write_if_other(data / "machines" / name, text)
    for text in dict.fromkeys(errors):
        print(foreign.plain(text), file=sys.stderr)
    if errors:
        (data / verdicts.STAMP).unlink(missing_ok=True)
        return 1
    write_if_other(data / verdicts.STAMP, fingerprint)
    return 0


def _json(data: object) -> str:
    return json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def export_figure(definition: Experiment, both: Both, sources: list[then.SourceTable], folder: Path) -> None:
    """The tables that a figure of the experiment reads, and meta.gp; nothing else stays there."""
    tables = figure_tables(both)
    if sources:
        tables["then.tsv"] = then.tsv(sources)
    for name, text in tables.items():
        write_if_other(folder / name, text)
    for path in folder.iterdir() if folder.is_dir() else ():  # of a variant that is gone
        if path.name not in (*tables, "meta.gp"):
            path.unlink()
    # Figures depend on meta.gp alone: it changes whenever a table beside it does.
    variables = gnuplot.experiment_variables(definition, both, sources)
    text = f"{gnuplot.assignments(variables)}# tables: {_digest(tables)}\n"
    write_if_other(folder / "meta.gp", text)


def figure_tables(both: Both) -> dict[str, str]:
    """By file name: of the run that is shown all tables, of the reference beside it the curves."""
    tables = tsv.tables(both.preferred) if both.preferred else {}
    if both.here and both.reference:
        curves = tsv.curves(both.reference)
        tables |= {f"reference-{name}.tsv": text for name, text in curves.items()}
    return tables


def _digest(tables: Mapping[str, str]) -> str:
    digest = hashlib.sha256()
    for name, text in sorted(tables.items()):
        digest.update(name.encode() + b"\0" + text.encode())
    return digest.hexdigest()
