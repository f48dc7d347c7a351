"""Experiment files: benchmarks/experiments/<id>.toml -> model.Experiment.

Every mistake ends in one line: `benchmarks/experiments/x.toml: variant "diet": unknown key
"comand"`. The keys are described in benchmarks/README.md.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from harness import coherence, history, stage
from harness.errors import InputError
from harness.model import (
    LAWS,
    LOAD_TOOLS,
    NO_LOAD,
    PROFILES,
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
    Value,
    Variant,
)
from harness.tables import Table, read_toml

FOLDER = Path("benchmarks/experiments")
KINDS = ("micro", "load", "trace")
BUILDS = ("glibc", "static", "static-pie", "diet", "musl", "asan", "tsan")
PINS = ("one", "apart", "shared", "workers", "none")
REDUCTIONS = ("median", "min", "max", "p90", "p99", "p999", "sum", "count", "jain")
RESOURCES = (
    "processes", "descriptors", "connections", "memory", "mappings", "cores", "processors",
)  # fmt: skip
OPERATIONS = {
    "ratio": 2, "difference": 2, "percent": 2, "inverse": 1, "value": 1, **dict.fromkeys(LAWS, 1),
}  # fmt: skip

ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
KEY = re.compile(r"[a-z0-9]+([-_][a-z0-9]+)*")


def load_all(folder: Path = FOLDER) -> list[Experiment]:
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; run from the root of the tree")
    return [load(path) for path in sorted(folder.glob("*.toml"))]


def load(path: Path) -> Experiment:
    shown = str(path)
    return parse(read_toml(path, shown), shown, path.stem)


def parse(data: Mapping[str, Any], shown: str, stem: str) -> Experiment:
    top = Table(shown, data)
    kind = top.choice("kind", KINDS)
    docroot = _docroot(top.table("docroot"))
    experiment = Experiment(
        id=_id(top, stem),
        title=top.text("title"),
        question=top.text("question"),
        kind=kind,
        source=top.texts("source"),
        chapters=top.texts("chapters"),
        headline=top.flag("headline"),
        needs=top.texts("needs"),
        pin=top.choice("pin", PINS, {"micro": "one", "load": "apart"}.get(kind, "none")),
        variants=_variants(top, shown, kind),
        profiles=_profiles(top, 2.0 if kind == "trace" else 30.0),
        sweep=_sweep(top.table("sweep")),
        axis=_axis(top),
        metrics=tuple(_metrics(top, shown, kind)),
        derived=tuple(_derived(top, shown)),
        caps=_caps(top),
        docroot=docroot,
        stage=stage.read(top, kind, bool(docroot.files)),
        tools={tool: _tool(top.table(tool)) for tool in LOAD_TOOLS if tool in top},
        helpers=tuple(_helpers(top, shown)),
        phases=tuple(_phases(top, shown)),
        disk=_disk(top, kind),
        thens=history.read(top),
    )
    top.done()
    coherence.check(experiment, shown)
    history.check(experiment, shown)
    return experiment


def _id(top: Table, stem: str) -> str:
    value = top.text("id")
    if not ID.fullmatch(value):
        raise top.error(f'"id" must be lower-case words joined by "-", not "{value}"')
    if value != stem:
        raise top.error(f'"id" is "{value}", but the file is called {stem}.toml')
    return value


def _named(shown: str, what: str, data: Mapping[str, Any], number: int, key: str) -> Table:
    name = data.get(key)
    return Table(f'{shown}: {what} "{name}"' if name else f"{shown}: {what} {number}", data)


def _values(table: Table) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for key in table.names():
        value = table.raw(key)
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise table.error(f'"{key}" must be a number or a text')
        values[key] = value
    return values


def _sweep(table: Table) -> dict[str, tuple[Value, ...]]:
    sweep: dict[str, tuple[Value, ...]] = {}
    for key in table.names():
        values = table.raw(key)
        if not isinstance(values, list) or not values:
            raise table.error(f'"{key}" must be a list of values')
        if any(isinstance(v, bool) or not isinstance(v, int | float | str) for v in values):
            raise table.error(f'"{key}" must hold numbers or texts')
        if len(set(values)) != len(values):
            raise table.error(f'"{key}" names a value twice')
        sweep[key] = tuple(values)
    return sweep


def _variants(top: Table, shown: str, kind: str) -> tuple[Variant, ...]:
    variants = [
        _variant(_named(shown, "variant", data, number, "name"), kind)
        for number, data in enumerate(top.tables("variant"), 1)
    ]
    if not variants:
        raise top.error("no [[variant]]")
    _distinct(top, "variant", (variant.name for variant in variants))
    return tuple(variants)


def _distinct(top: Table, what: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise top.error(f'{what} "{name}" is there twice')
        seen.add(name)


def _variant(table: Table, kind: str) -> Variant:
    name = table.text("name")
    if not NAME.fullmatch(name):
        raise table.error('"name" may hold letters, digits, "-" and "_"')
    if re.search(r"['\"\t\n]", table.text("title", name)):
        raise table.error('"title" must not hold quotes')
    aa = table.raw("aa")
    if aa is not None and not isinstance(aa, bool | dict):
        raise table.error('"aa" must be true, false, or a table of parameters')
    variant = Variant(
        name=name,
        title=table.text("title", name),
        build=table.choice("build", BUILDS, "glibc"),
        command=table.texts("command"),
        server=table.text("server", ""),
        peer=table.text("peer", ""),
        args=table.texts("args"),
        holds=table.text("holds", ""),
        prefix=table.texts("prefix"),
        load=table.choice("load", (*LOAD_TOOLS, NO_LOAD), "hammer"),
        load_args=table.texts("load_args"),
        disk_args=table.texts("disk_args"),
        needs=table.texts("needs"),
        aa=bool(aa) or isinstance(aa, dict),
        aa_at=_sweep(table.table("aa")) if isinstance(aa, dict) else {},
        values=_values(table.table("set")),
        sweep=_sweep(table.table("sweep")),
        rename={key: str(value) for key, value in _values(table.table("rename")).items()},
    )
    table.done()
    if kind == "micro" and not variant.command:
        raise table.error('"command" is missing')
    if kind == "load" and bool(variant.server) == bool(variant.peer):
        raise table.error('one of "server" and "peer" is needed')
    if variant.holds and (kind != "load" or variant.peer):
        raise table.error('"holds" goes with "server" and kind = "load"')
    if kind == "trace" and not variant.server:
        raise table.error('"server" is missing')
    if kind != "micro" and variant.command:
        raise table.error(f'"command" belongs to kind = "micro", not "{kind}"')
    return variant


def _profiles(top: Table, seconds: float) -> dict[str, Profile]:
    table = top.table("profile")
    profiles = {}
    for name in table.names():
        if name not in PROFILES:
            raise top.error(f'unknown profile "{name}" (known: {", ".join(PROFILES)})')
        if not isinstance(table.raw(name), dict):
            raise top.error(f'profile "{name}" must be a table')
        inner = Table(f'{top.where}: profile "{name}"', table.raw(name))
        profiles[name] = _profile(name, inner, seconds)
    for name in PROFILES:
        if name not in profiles and name != "headline":
            raise top.error(f'profile "{name}" is missing')
    return profiles


def _profile(name: str, table: Table, seconds: float) -> Profile:
    profile = Profile(
        name=name,
        rounds=table.integer("rounds", least=1),
        values=_values(table.table("set")),
        sweep=_sweep(table.table("sweep")),
        seconds=table.number("seconds", seconds),
        timeout=table.number("timeout", 120.0),
        needs=table.texts("needs"),
        by_name=table.flag("by_name"),
    )
    table.done()
    return profile


def _axis(top: Table) -> Axis | None:
    if "x" not in top:
        return None
    table = top.table("x")
    axis = Axis(
        title=table.text("title"),
        unit=table.text("unit", ""),
        column=table.text("column", ""),
        parameter=table.text("parameter", ""),
        bins=table.integer("bins", 0),
        bin_width=table.number("bin_width", 0.0),
    )
    table.done()
    if bool(axis.column) == bool(axis.parameter):
        raise table.error('one of "column" and "parameter" is needed')
    if axis.parameter and (axis.bins or axis.bin_width):
        raise table.error('"bins" and "bin_width" go with "column"')
    return axis


def _metrics(top: Table, shown: str, kind: str) -> Iterable[Metric]:
    tables = top.tables("metric")
    if not tables and kind != "trace":
        raise top.error("no [[metric]]")
    names = []
    for number, data in enumerate(tables, 1):
        table = _named(shown, "metric", data, number, "name")
        name = table.text("name")
        if not KEY.fullmatch(name):
            raise table.error('"name" must be lower-case words joined by "_" or "-"')
        metric = Metric(
            name=name,
            title=table.text("title", name),
            unit=table.text("unit", ""),
            column=table.text("column", ""),
            scalar=table.text("scalar", ""),
            scale=table.number("scale", 1.0),
            reduce=table.choice("reduce", REDUCTIONS, "median"),
            better=table.choice("better", ("", "lower", "higher"), ""),
        )
        table.done()
        if bool(metric.column) == bool(metric.scalar):
            raise table.error('one of "column" and "scalar" is needed')
        names.append(name)
        yield metric
    _distinct(top, "metric", names)


def _derived(top: Table, shown: str) -> Iterable[Derived]:
    keys = []
    for number, data in enumerate(top.tables("number"), 1):
        table = _named(shown, "number", data, number, "key")
        key = table.text("key")
        if not KEY.fullmatch(key):
            raise table.error('"key" must be lower-case words joined by "-" or "_"')
        used = [name for name in OPERATIONS if name in table]
        if len(used) != 1:
            raise table.error(f"exactly one of {', '.join(OPERATIONS)} is needed")
        operands = table.texts(used[0]) if OPERATIONS[used[0]] == 2 else (table.text(used[0]),)
        if len(operands) != OPERATIONS[used[0]]:
            raise table.error(f'"{used[0]}" needs {OPERATIONS[used[0]]} operands')
        at = table.raw("at")
        if isinstance(at, bool) or not isinstance(at, int | float | str | None):
            raise table.error('"at" must be a value of x')
        keys.append(key)
        yield Derived(
            key=key,
            operation=used[0],
            operands=operands,
            at=at,
            scale=table.number("scale", 1.0),
            unit=table.text("unit", ""),
        )
        table.done()
    _distinct(top, "number", keys)


def _caps(top: Table) -> dict[str, tuple[str, ...]]:
    table = top.table("caps")
    caps = {}
    for key in table.names():
        value = table.raw(key)
        resources = (value,) if isinstance(value, str) else tuple(value or ())
        for resource in resources:
            if resource not in RESOURCES:
                raise table.error(f'"{key}" must be among {", ".join(RESOURCES)}')
        caps[key] = resources
    return caps


def _docroot(table: Table) -> Docroot:
    files = table.table("files")
    sizes = {}
    for name in files.names():
        sizes[name] = files.integer(name)
        if name.startswith("/") or ".." in Path(name).parts:
            raise files.error(f'"{name}" must lie below the docroot')
    docroot = Docroot(files=sizes, path=table.text("path", ""))
    table.done()
    return docroot


def _disk(top: Table, kind: str) -> Disk | None:
    if "disk" not in top:
        return None
    table = top.table("disk")
    disk = Disk(pools=table.texts("pools"), args=table.texts("args"))
    table.done()
    if not disk.pools:
        raise table.error('"pools" is missing')
    if kind == "trace":
        raise table.error('a disk goes with kind = "micro" or "load"')
    if "docroot" in top:
        raise table.error("the disk is the docroot: there is no [docroot] beside it")
    return disk


def _tool(table: Table) -> LoadTool:
    tool = LoadTool(args=table.texts("args"), warmup=table.texts("warmup"))
    table.done()
    return tool


def _helpers(top: Table, shown: str) -> Iterable[Helper]:
    for number, data in enumerate(top.tables("helper"), 1):
        table = _named(shown, "helper", data, number, "name")
        yield Helper(
            name=table.text("name"),
            command=table.texts("command"),
            after_server=table.flag("after_server"),
            phases=table.texts("phases"),
        )
        table.required("command")
        table.done()


def _phases(top: Table, shown: str) -> Iterable[Phase]:
    names = []
    for number, data in enumerate(top.tables("phase"), 1):
        table = _named(shown, "phase", data, number, "name")
        names.append(table.text("name"))
        yield Phase(names[-1], table.texts("args"), table.flag("may_fail"))
        table.done()
    _distinct(top, "phase", names)
