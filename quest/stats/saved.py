"""A table of numbers as a file, so that a set is analysed once: build/data/numbers/ORIGIN/ID.jsonl.

JSON Lines. The first line says what the table was made from and what is known of the run; then a
line for each row of table.py: `series`, `metric`, `x` ("overall": all x together), the median as
`value` with `low`, `high`, `unit`, `count`, `marks`, and `rounds`, `least`, `p99`, `taken`,
`spoilt`; a line for each [[number]] (`derived`), for each `noise_floor` (a share) and each `scalar`
of a trace; then what is drawn as it came (`samples`, `distribution`, `timeline`).
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from quest.ground.files import dated
from quest.spec.model import Experiment
from quest.stats.table import Attempts, Measurement, Number, NumberTable, Raw, Run, Series

PACKAGE = Path(__file__).parents[1]
DECIDE = ("spec", "measure", "stats")  #: the packages of ours that decide about a table


def made_from(experiment: Experiment, path: Path) -> str:
    """A digest of all that decides about the table of a result file: the definition, date and size
    of the file and of our own modules, and whether there is SciPy.
    """
    modules = (module for part in DECIDE for module in (PACKAGE / part).glob("*.py"))
    parts = [repr(experiment), str(bool(find_spec("scipy"))), *map(dated, [path, *sorted(modules)])]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def to_text(table: NumberTable, digest: str) -> str:
    """The lines of the file; `digest`: of made_from()."""
    return "".join(
        json.dumps(line, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"
        for line in _lines(table, digest)
    )


def _lines(table: NumberTable, digest: str) -> Iterator[Mapping[str, Any]]:
    yield {"made_from": digest, "origin": table.origin, "run": asdict(table.run)}
    for name, metrics in table.series.items():
        yield {"kind": "series", "series": name}
        for metric, series in metrics.items():
            place = {"kind": "row", "series": name, "metric": metric}
            for point in series.points:
                yield {**place, **_row(point)}
            if series.overall:
                yield {**place, "overall": True, **_row(series.overall)}
    for key, number in table.derived.items():
        yield {"kind": "derived", "key": key, **vars(number)}
    for metric, share in table.noise_floors.items():
        yield {"kind": "noise_floor", "metric": metric, "share": share}
    for key, number in table.scalars.items():
        yield {"kind": "scalar", "key": key, **vars(number)}
    for name, columns in table.raw.samples.items():
        yield {"kind": "samples", "series": name, "columns": columns}
    for (name, x), counts in table.raw.distributions.items():
        yield {"kind": "distribution", "series": name, "x": x, "counts": [*counts.items()]}
    if table.raw.timeline:
        yield {"kind": "timeline", "columns": table.raw.timeline}


def _row(row: Measurement) -> dict[str, Any]:
    """Without what is not there."""
    whole = {**vars(row), **vars(row.number)}
    del whole["number"]
    return {key: value for key, value in whole.items() if value not in (None, "", (), {})}


def from_text(text: str, experiment: Experiment, digest: str) -> NumberTable | None:
    """The table; None where it was made from something else, or the text is none of ours."""
    try:
        head, *lines = map(json.loads, text.splitlines())
        return _table(experiment, head, lines) if head["made_from"] == digest else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _table(experiment: Experiment, head: Mapping[str, Any], lines: Iterable[dict[str, Any]]) -> NumberTable:
    points: dict[str, dict[str, list[Measurement]]] = {}
    overall: dict[tuple[str, str], Measurement] = {}
    derived, scalars, floors = {}, {}, {}
    samples, distributions, timeline = {}, {}, {}
    for line in lines:
        match line.pop("kind"):
            case "series":
                of_metric: list[tuple[str, list[Measurement]]]
                of_metric = [(metric.name, []) for metric in experiment.metrics]
                points[line["series"]] = dict(of_metric)
            case "row":
                name, metric = line.pop("series"), line.pop("metric")
                if line.pop("overall", False):
                    overall[name, metric] = _measurement(line)
                else:
                    points[name][metric].append(_measurement(line))
            case "derived":
                derived[line["key"]] = _number(line)
            case "noise_floor":
                floors[line["metric"]] = line["share"]
            case "scalar":
                scalars[line["key"]] = _number(line)
            case "samples":
                samples[line["series"]] = line["columns"]
            case "distribution":
                distributions[line["series"], line["x"]] = dict(line["counts"])
            case "timeline":
                timeline = line["columns"]
    series = {
        name: {m: Series(tuple(rows), overall.get((name, m))) for m, rows in metrics.items()}
        for name, metrics in points.items()
    }
    raw = Raw(samples, distributions, timeline)
    run = _run(head["run"])
    return NumberTable(experiment, head["origin"], run, series, derived, floors, scalars, raw)


NUMBER = ("value", "low", "high", "unit", "count", "marks")


def _number(line: Mapping[str, Any]) -> Number:
    known = {name: line[name] for name in NUMBER if name in line}
    return Number(**{**known, "marks": tuple(line.get("marks", ()))})


def _measurement(line: Mapping[str, Any]) -> Measurement:
    return Measurement(
        line.get("x"),
        _number(line),
        {int(n): value for n, value in line["rounds"].items()},
        line.get("least"),
        line.get("p99"),
        {int(n): share for n, share in line.get("taken", {}).items()},
        {int(n): mark for n, mark in line.get("spoilt", {}).items()},
    )


def _run(data: Mapping[str, Any]) -> Run:
    tuples = {
        "settings": {name: tuple(values) for name, values in data["settings"].items()},
        "attempts": tuple(Attempts(**each) for each in data["attempts"]),
        "given_up": tuple(data["given_up"]),
        "skips": tuple((variant, reason) for variant, reason in data["skips"]),
    }
    return Run(**{**data, **tuples})
