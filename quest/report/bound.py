"""numbers.json: the numbers that prose can name, by `experiment.key`, each with its run.

A number is looked for in the reader's own run first, and one by one in the reference where that has
none. Book, deck and README read this file.
"""

from collections.abc import Iterable
from typing import NotRequired, TypedDict

from quest.measure.records import HERE
from quest.report.measured import Both
from quest.spec.model import Experiment
from quest.stats.table import Number, NumberTable

NOT_MEASURED = "not measured"


class Entry(TypedDict):
    """A number as the book's filters take it: `value`, `low` and `high` in `unit`; `text` and
    `interval` as they are printed; `source`: "here", "reference" or "none"; `run`: the footer of
    the run, or what to do where nothing was measured.
    """

    value: float | None
    low: float | None
    high: float | None
    unit: str
    text: str
    interval: str
    source: str
    run: str
    n: NotRequired[int]
    marks: NotRequired[list[str]]
    noisy: NotRequired[bool]
    reference: NotRequired[float | None]  # the reference run's value, where this is the reader's


def entries(definition: Experiment, both: Both) -> dict[str, Entry]:
    """All numbers of an experiment; by its bare id a word instead where no set has a variant or a
    [[number]] of it.
    """
    bound: dict[str, Entry] = {}
    for table in reversed(both.tables):  # the reader's own wins
        for name, number in table.numbers.items():
            key, one = f"{definition.id}.{name}", entry(number, table)
            if table.origin == HERE and table.run.half_noisy:
                one["noisy"] = True
            if key in bound:  # a page that shows one's own run may show the reference beside it
                one["reference"] = bound[key]["value"]
            bound[key] = one
    variants = {name.partition(",")[0] for table in both.tables for name in table.measured_series}
    derived = {key for table in both.tables for key in table.derived}
    wanted = {variant.name for variant in definition.variants}
    if wanted - variants or {number.key for number in definition.derived} - derived:
        bound[definition.id] = _words(NOT_MEASURED, "none", f"make bench ONLY={definition.id}")
    return bound


def entry(number: Number, table: NumberTable) -> Entry:
    """A number of this table."""
    result: Entry = {
        "value": number.value,
        "low": number.low,
        "high": number.high,
        "unit": number.unit,
        "text": number.text(),
        "interval": number.interval(),
        "source": table.origin,
        "run": table.run.footer,
    }
    if number.count:
        result["n"] = number.count
    if number.marks:
        result["marks"] = list(number.marks)
    return result


def environment_entries(preferred: Iterable[NumberTable]) -> dict[str, Entry]:
    """env.cpu, env.kernel, ...: of the reader's newest run, else of the newest reference run."""
    tables = list(preferred)
    own = [table for table in tables if table.origin == HERE]
    newest = max(own or tables, key=lambda table: table.run.started, default=None)
    if newest is None:
        return {"env": _words(NOT_MEASURED, "none", "make")}
    return {
        f"env.{name}": _words(text or "unknown", newest.origin, newest.run.footer)
        for name, text in newest.run.environment.items()
    }


def _words(text: str, source: str, run: str) -> Entry:
    """Where there is no number."""
    return {
        "value": None, "low": None, "high": None, "unit": "",
        "text": text, "interval": "", "source": source, "run": run,
    }  # fmt: skip
