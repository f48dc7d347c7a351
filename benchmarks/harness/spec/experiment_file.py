"""Experiment files: benchmarks/experiments/<id>.toml -> model.Experiment.

Their form is in experiment.schema.json, what only a whole experiment can tell in coherence.py.
Every mistake ends in one line: `benchmarks/experiments/x.toml: variant "diet": unknown key
"comand"`. The keys are described in benchmarks/README.md.
"""

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from harness.errors import InputError
from harness.spec import coherence
from harness.spec.model import (
    LAWS,
    LOAD_TOOLS,
    Axis,
    Derived,
    Disk,
    Docroot,
    Experiment,
    Helper,
    LoadTool,
    Metric,
    Phase,
    Profile,
    Stage,
    Then,
    ThenRow,
    Variant,
)
from harness.spec.schema import frozen, made, read_toml, validate

FOLDER = Path("benchmarks/experiments")
LEDGER = Path("benchmarks/claims.toml")
FEW = 40  # names in one line
OPERATIONS = ("ratio", "difference", "inverse", "value", *LAWS)
AS_THEY_ARE = (
    "id", "title", "question", "kind", "source", "chapters", "headline", "needs", "pin", "sweep",
)  # fmt: skip
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


def load_all(folder: Path = FOLDER) -> list[Experiment]:
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; run from the root of the tree")
    return [load(path) for path in sorted(folder.glob("*.toml"))]


def select(experiments: list[Experiment], only: Iterable[str], headline: bool) -> list[Experiment]:
    """Those asked for: by id, or by the words an id begins with (`disk` for disk-seek, ...)."""
    chosen = [e for e in experiments if e.headline or not headline]
    known, wanted = [e.id for e in experiments], set()
    for word in only:
        named = [id for id in known if id == word] or [
            id for id in known if id.startswith(f"{word}-")
        ]
        if not named:
            raise InputError(f'unknown experiment "{word}"{_meant(word, known)}')
        wanted.update(named)
    return [e for e in chosen if not wanted or e.id in wanted]


def _meant(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    if near:
        return f"; did you mean {near[0]}?"
    if len(known) > FEW:
        return f"; make doctor ALL=1 names all {len(known)}"
    return f" (known: {', '.join(known)})"


def load(path: Path) -> Experiment:
    data = read_toml(path)
    try:
        return parse(data, str(path), path.stem)
    except (AttributeError, KeyError, StopIteration, TypeError, ValueError) as error:
        # The schema has not looked: without python3-jsonschema it cannot.
        remedy = "apt-get install python3-jsonschema, which tells where"
        raise InputError(f"{path}: not what its schema asks for ({error}); {remedy}") from error


def parse(data: Mapping[str, Any], shown: str, stem: str) -> Experiment:
    validate(data, "experiment", shown)
    if data["id"] != stem:
        raise InputError(f'{shown}: "id" is "{data["id"]}", but the file is called {stem}.toml')
    kind = data["kind"]
    as_they_are = {key: value for key, value in data.items() if key in AS_THEY_ARE}
    experiment = made(
        Experiment,
        {"pin": PINS[kind], **as_they_are},
        variants=tuple(map(_variant, data["variant"])),
        profiles={name: _profile(name, kind, p) for name, p in data["profile"].items()},
        axis=made(Axis, data["x"]) if "x" in data else None,
        metrics=tuple(made(Metric, {"title": m["name"], **m}) for m in data.get("metric", ())),
        derived=tuple(map(_derived, data.get("number", ()))),
        caps={key: _listed(value) for key, value in data.get("caps", {}).items()},
        docroot=made(Docroot, data.get("docroot", {})),
        tools={tool: made(LoadTool, data[tool]) for tool in LOAD_TOOLS if tool in data},
        helpers=tuple(made(Helper, helper) for helper in data.get("helper", ())),
        phases=tuple(made(Phase, phase) for phase in data.get("phase", ())),
        disk=made(Disk, data["disk"]) if "disk" in data else None,
        thens=tuple(map(_then, data.get("then", ()))),
        stage=Stage(**{k: str(v) for k, v in data["stage"].items()}) if "stage" in data else None,
    )
    coherence.check(experiment, shown)
    return experiment


def _set_apart(data: Mapping[str, Any]) -> dict[str, Any]:
    """`set` is a type to Python."""
    rest = {key: value for key, value in data.items() if key != "set"}
    return {**rest, "values": data.get("set", {})}


def _variant(data: Mapping[str, Any]) -> Variant:
    aa = data.get("aa", False)
    at = frozen(aa) if isinstance(aa, Mapping) else {}
    rest = {"title": data["name"], **_set_apart(data)}
    return made(Variant, rest, aa=aa is not False, aa_at=at)


def _profile(name: str, kind: str, data: Mapping[str, Any]) -> Profile:
    seconds = 2.0 if kind == "trace" else 30.0
    return made(Profile, {"name": name, "seconds": seconds, **_set_apart(data)})


def _derived(data: Mapping[str, Any]) -> Derived:
    operation = next(name for name in OPERATIONS if name in data)
    rest = {key: value for key, value in data.items() if key != operation}
    return made(Derived, rest, operation=operation, operands=_listed(data[operation]))


def _listed(value: str | list[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _then(data: Mapping[str, Any]) -> Then:
    return made(Then, data, rows=tuple(map(_row, data["rows"])))


def _row(data: Mapping[str, Any]) -> ThenRow:
    variant, _, x = data.get("variant", "").partition("@")
    return made(ThenRow, data, variant=variant, x=x)
