"""Experiment files: benchmarks/experiments/<id>.toml -> model.Experiment.

Every mistake ends in one line: `benchmarks/experiments/x.toml: variant "diet": unknown key
"comand"`. The keys are described in benchmarks/README.md.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.errors import InputError
from harness.spec import coherence
from harness.spec.coherence import operand_problem
from harness.spec.model import (
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
    Stage,
    Then,
    ThenRow,
    Value,
    Variant,
    x_text,
)
from harness.spec.toml import Table, read_toml

# ---- [stage] -------------------------------------------------------------------------------------
#
# An old machine for the server: little memory, few reads a second, a disk of its own.

STAGE_PLACEHOLDER = re.compile(r"\{[a-z_][a-z0-9_]*\}")
OPTIONS = re.compile(r"[a-z0-9_=,{}]*")


def read_stage(top: Table, kind: str, has_files: bool) -> Stage | None:
    if "stage" not in top:
        return None
    table = top.table("stage")
    stage = Stage(
        memory_mib=_amount(table, "memory_mib"),
        read_iops=_amount(table, "read_iops"),
        read_bytes_per_s=_amount(table, "read_bytes_per_s"),
        mount=table.text("mount", ""),
    )
    table.done()
    if kind != "load" or not has_files:
        raise table.error('goes with kind = "load" and [docroot.files]')
    if not OPTIONS.fullmatch(stage.mount):
        raise table.error(f'"mount" must be options of mount(8), not "{stage.mount}"')
    return stage


def _amount(table: Table, key: str) -> str:
    value = table.raw(key)
    if value is None:
        return ""
    if isinstance(value, str) and STAGE_PLACEHOLDER.fullmatch(value):
        return value
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise table.error(f'"{key}" must be a whole number above 0, or a placeholder')
    return str(value)


# ---- [[then]] ------------------------------------------------------------------------------------
#
# Tables of the sources, row by row, to stand beside what is measured here.
#
# Read from an experiment file and checked; beside.py puts the two together.

# As claims.toml names them -> how a table is headed.
SOURCES = {
    "talk": "the talk, 2003",
    "page": "the benchmark page, 2003",
    "lighty": "lighttpd 1.5.0 and Linux AIO, 2006",
    "small-files": "lighttpd and small files, 2006",
    "perlbal": "Perlbal and lighttpd, 2006",
    "raw-io": "raw I/O with lighttpd 1.5.0, 2007",
}
THEN_KEY = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
ENDS = ("first", "last")


def read_thens(top: Table) -> tuple[Then, ...]:
    """The tables of an experiment file; what only the whole file can tell is left to `check`."""
    found = tuple(_then(top, data, n) for n, data in enumerate(top.tables("then"), 1))
    keys = [then.key for then in found]
    for key in keys:
        if keys.count(key) > 1:
            raise top.error(f'then "{key}" is there twice')
    return found


def _then(top: Table, data: dict[str, object], number: int) -> Then:
    key = data.get("key")
    table = Table(f'{top.where}: then "{key}"' if key else f"{top.where}: then {number}", data)
    then = Then(
        key=table.text("key"),
        title=table.text("title"),
        source=table.choice("source", tuple(SOURCES)),
        metric=table.text("metric"),
        unit=table.text("unit", ""),
        scale=table.number("scale", 0.0),
        base=table.text("base"),
        rows=tuple(_rows(table)),
        notes=table.texts("notes"),
    )
    table.done()
    if not THEN_KEY.fullmatch(then.key):
        raise table.error('"key" must be lower-case words joined by "-"')
    if "scale" in table and not (math.isfinite(then.scale) and then.scale > 0):
        raise table.error('"scale" must be above 0')
    return then


def _rows(table: Table) -> Iterator[ThenRow]:
    rows = table.tables("rows")
    if not rows:
        raise table.error('"rows" is missing')
    names = []
    for number, data in enumerate(rows, 1):
        inner = Table(f"{table.where}: row {number}", data)
        row = _row(inner)
        name = row.name or row.title
        if name in names:
            raise inner.error(f'"{name}" is there twice')
        names.append(name)
        yield row


def _row(table: Table) -> ThenRow:
    variant, at, x = table.text("variant", "").partition("@")
    table.required("value")
    row = ThenRow(
        title=table.text("title", ""),
        value=table.number("value", 0.0),
        low=table.optional_number("low"),
        high=table.optional_number("high"),
        variant=variant,
        x=x,
        why=table.text("why", ""),
        note=table.text("note", ""),
    )
    table.done()
    if at and not x:
        raise table.error('"variant" ends with "@", without an x')
    if not variant and not (row.title and row.why):
        raise table.error('"variant" is needed, or "title" and "why" nothing here stands beside it')
    if variant and row.why:
        raise table.error('"why" goes with a row that has no "variant"')
    if not _in_order(row):
        raise table.error('"value" must be 0 or more, with both or none of "low" <= it <= "high"')
    return row


def _in_order(row: ThenRow) -> bool:
    ends = [end for end in (row.low, row.high) if end is not None]
    if len(ends) == 1 or not all(math.isfinite(v) and v >= 0 for v in (row.value, *ends)):
        return False
    return not ends or ends[0] <= row.value <= ends[1]


# ---- together with the rest of the file ----------------------------------------------------------


def check_thens(experiment: Experiment, shown: str) -> None:
    """InputError for a table that names what the experiment does not have."""
    for then in experiment.thens:
        problem = next(_problems(experiment, then), "")
        if problem:
            raise InputError(f'{shown}: then "{then.key}": {problem}')


def _problems(experiment: Experiment, then: Then) -> Iterator[str]:
    metric = next((m for m in experiment.metrics if m.name == then.metric), None)
    if metric is None:
        yield f'unknown metric "{then.metric}"'
        return
    if metric.unit != then.unit and not then.scale:
        yield (
            f'"scale" is missing: metric "{metric.name}" is in "{metric.unit}", not "{then.unit}"'
        )
    if metric.unit == then.unit and then.scale not in (0.0, 1.0):
        yield f'"scale" is not 1, though metric "{metric.name}" is in "{then.unit}" too'
    for number, row in enumerate(then.rows, 1):
        if row.variant:
            problem = operand_problem(experiment, row.operand(then.metric)) or _x(experiment, row)
            if problem:
                yield f"row {number}: {problem}"
    if not any(row.variant and row.name == then.base for row in then.rows):
        yield f'"base" must be the variant of a row, not "{then.base}"'
    elif not then.base_row.value:
        yield f'no ratio to "{then.base}", whose value is 0'


def _x(experiment: Experiment, row: ThenRow) -> str:
    if not row.x:
        return ""
    axis = experiment.axis
    if axis is None:
        return f'"@{row.x}" names no x: the experiment has none'
    if axis.column or row.x in ENDS:
        return ""
    sweeps = [experiment.sweep, *(p.sweep for p in experiment.profiles.values())]
    sweeps.append(experiment.variant(row.variant.partition(",")[0]).sweep)
    values = {x_text(value) for sweep in sweeps for value in sweep.get(axis.parameter, ())}
    return "" if row.x in values else f'"@{row.x}": no sweep has this value of {axis.parameter}'


FOLDER = Path("benchmarks/experiments")
LEDGER = Path("benchmarks/claims.toml")
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


def select(experiments: list[Experiment], only: Iterable[str], headline: bool) -> list[Experiment]:
    """Those asked for: by id, or by the words an id begins with (`disk` for disk-seek, ...)."""
    chosen = [e for e in experiments if e.headline or not headline]
    wanted = list(only)
    for word in wanted:
        if not any(_asked_for(e, [word]) for e in experiments):
            known = ", ".join(e.id for e in experiments)
            raise InputError(f'unknown experiment "{word}" (known: {known})')
    return [e for e in chosen if not wanted or _asked_for(e, wanted)]


def _asked_for(experiment: Experiment, words: Iterable[str]) -> bool:
    return any(experiment.id == word or experiment.id.startswith(f"{word}-") for word in words)


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
        stage=read_stage(top, kind, bool(docroot.files)),
        tools={tool: _tool(top.table(tool)) for tool in LOAD_TOOLS if tool in top},
        helpers=tuple(_helpers(top, shown)),
        phases=tuple(_phases(top, shown)),
        disk=_disk(top, kind),
        thens=read_thens(top),
    )
    top.done()
    coherence.check(experiment, shown)
    check_thens(experiment, shown)
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
