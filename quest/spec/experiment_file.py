"""Experiment files: benchmarks/experiments/<id>.toml -> model.Experiment, or several with [[each]].

Their form is in experiment.schema.json, what only a whole experiment can tell in coherence.py.
Every mistake ends in one line: `benchmarks/experiments/x.toml: variant "diet": unknown key
"comand"`. The keys are described in benchmarks/README.md.
"""

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from quest.ground.errors import InputError
from quest.spec import coherence, model
from quest.spec.model import OPERATIONS, Experiment
from quest.spec.schema import made, read_toml, validate

FOLDER = Path("benchmarks/experiments")
LEDGER = Path("benchmarks/claims.toml")
FEW = 40  # names in one line
# Keys of the file -> fields of the model, where they differ.
FIELDS = {
    "variant": "variants", "profile": "profiles", "set": "values", "x": "axis", "metric": "metrics",
    "number": "derived", "helper": "helpers", "phase": "phases", "then": "thens",
}  # fmt: skip
PINS = {"micro": "one", "load": "apart", "trace": "none"}  # where the file does not say
# As experiments and claims.toml name the sources -> how a table is headed.
SOURCES = {
    "talk": "the talk, 2003",
    "page": "the benchmark page, 2003",
    "lighty": "lighttpd 1.5.0 and Linux AIO, 2006",
    "small-files": "lighttpd and small files, 2006",
    "perlbal": "Perlbal and lighttpd, 2006",
    "raw-io": "raw I/O with lighttpd 1.5.0, 2007",
}


def load_all(
    folder: Path = FOLDER, only: Iterable[str] = (), headline: bool = False
) -> list[Experiment]:
    """All, or those asked for: by id, or by the words it begins with (`disk` for disk-seek, ...).
    Of the others only the id is looked at.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; run from the root of the tree")
    tables = [table for path in sorted(folder.glob("*.toml")) for table in _tables(path)]
    known = [id for _, id, _ in tables]
    wanted = {id for word in only for id in _named(word, known)} or {*known}
    return [
        parse(table, str(path), id)
        for path, id, table in tables
        if id in wanted and (table.get("headline") or not headline)
    ]


def _named(word: str, known: list[str]) -> list[str]:
    if named := [word] if word in known else [id for id in known if id.startswith(f"{word}-")]:
        return named
    names = f" (known: {', '.join(known)})"
    if len(known) > FEW:
        names = f"; make doctor ALL=1 names all {len(known)}"
    if near := difflib.get_close_matches(word, known, n=1):
        names = f"; did you mean {near[0]}?"
    raise InputError(f'unknown experiment "{word}"{names}')


def load(path: Path) -> list[Experiment]:
    return [parse(one, str(path), id) for _, id, one in _tables(path)]


def _tables(path: Path) -> list[tuple[Path, str, Mapping[str, Any]]]:
    """The experiments of a file, each with the id it has to have."""
    return [(path, path.stem + name, one) for name, one in spread(read_toml(path), str(path))]


def spread(data: Mapping[str, Any], shown: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The experiments of a file, and how each is called behind the file's name: itself, or all of
    [[each]], whose keys take the place of the file's, and whose name that of {each}.
    """
    if "each" not in data:
        yield "", data
        return
    several: Any = data["each"] if isinstance(data["each"], list) else [data["each"]]
    for own in several:
        name = own.get("name") if isinstance(own, dict) else None
        if not isinstance(name, str):
            raise InputError(f'{shown}: "each" must be tables with a "name"')
        both = {**data, **own}.items()
        whole = {key: value for key, value in both if key not in ("each", "name")}
        try:
            one = json.loads(json.dumps(whole).replace("{each}", name))
        except (TypeError, ValueError) as error:  # a date; a name with a quote in it
            raise InputError(f'{shown}: "each": {name!r}: {error}') from error
        yield f"-{name}", one


def parse(data: Mapping[str, Any], shown: str, stem: str) -> Experiment:
    validate(data, "experiment", shown)
    try:
        if data["id"] != stem:
            raise InputError(f'{shown}: "id" is "{data["id"]}", but the file is called {stem}.toml')
        experiment = made(Experiment, _experiment(data))
        coherence.check(experiment, shown)
    except (AttributeError, KeyError, StopIteration, TypeError, ValueError) as error:
        # The schema has not looked: without python3-jsonschema it cannot.
        remedy = "apt-get install python3-jsonschema, which tells where"
        raise InputError(f"{shown}: not what its schema asks for ({error}); {remedy}") from error
    return experiment


# ---- from the tables of a file to those of the model ---------------------------------------------


def _experiment(data: Mapping[str, Any]) -> dict[str, Any]:
    whole = {"pin": PINS[data["kind"]], **_fields(data)}
    whole["tools"] = {tool: whole.pop(tool) for tool in model.LOAD_TOOLS if tool in data}
    whole["variants"] = [_variant(variant) for variant in data["variant"]]
    whole["profiles"] = {n: {"name": n, **_fields(table)} for n, table in data["profile"].items()}
    whole["metrics"] = [{"title": m["name"], **m} for m in data.get("metric", ())]
    whole["derived"] = [_derived(number) for number in data.get("number", ())]
    whole["thens"] = [{**t, "rows": [_row(row) for row in t["rows"]]} for t in data.get("then", ())]
    if "stage" in data:
        whole["stage"] = {key: str(value) for key, value in data["stage"].items()}
    return whole


def _fields(table: Mapping[str, Any]) -> dict[str, Any]:
    return {FIELDS.get(key, key): value for key, value in table.items()}


def _variant(data: Mapping[str, Any]) -> dict[str, Any]:
    aa = data.get("aa", False)
    at = aa if isinstance(aa, Mapping) else {}
    return {"title": data["name"], **_fields(data), "aa": aa is not False, "aa_at": at}


def _derived(data: Mapping[str, Any]) -> dict[str, Any]:
    operation = next(name for name in OPERATIONS if name in data)
    rest = {key: value for key, value in data.items() if key != operation}
    return {**rest, "operation": operation, "operands": data[operation]}


def _row(data: Mapping[str, Any]) -> dict[str, Any]:
    variant, _, x = data.get("variant", "").partition("@")
    return {**data, "variant": variant, "x": x}
