"""The committed recordings: do their lines still say what they said, and the text of their functions for the player."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from quest.ground.c_source import Function, around, functions, mark
from quest.ground.errors import InputError
from quest.ground.files import write_whole
from quest.measure import moments
from quest.measure.recording import VERSION, of_table

FOLDER = Path("benchmarks/recordings")
Site = tuple[str, str, int, str]


def read(path: Path) -> dict[str, Any]:
    """A recording, as in its file. InputError if it is none of this version."""
    try:
        table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {error}") from None
    if not isinstance(table, dict) or table.get("v") != VERSION:
        raise InputError(f"{path}: no recording of version {VERSION}")
    return table


def all_paths(folder: Path = FOLDER) -> list[Path]:
    """The recordings there are."""
    return sorted(folder.glob("*.json"))


@cache
def _lines(path: Path) -> tuple[str, ...]:
    """Of a source file; none if it is not there."""
    try:
        return tuple(path.read_text(encoding="utf-8").splitlines())
    except OSError:
        return ()


def fault(site: Site, root: Path = Path()) -> str:
    """What is wrong with a recorded line; "" if it says what it said, in the same function."""
    function, file, number, recorded = site
    lines = _lines(root / file)
    if not 0 < number <= len(lines) or mark(lines, number) != recorded:
        return f"{file}:{number}: the line in {function}() has changed"
    there = around(lines, number)
    if there is None or there.name != function:
        return f"{file}:{number}: the line is not in {function}() any more"
    return ""


def faults(table: dict[str, Any], root: Path = Path()) -> Iterator[str]:
    """Of all lines of a recording."""
    yield from filter(None, (fault(tuple(site), root) for site in table["sites"]))


def moved(site: Site, root: Path = Path()) -> Site | None:
    """Where a line is now in the function of that name. None if it is gone."""
    function, file, _, recorded = site
    lines = _lines(root / file)
    spans = [each for each in functions(lines) if each.name == function]
    there = [n for each in spans for n in range(each.first, each.last + 1) if mark(lines, n) == recorded]
    return (function, file, there[0], recorded) if there else None


def follow(path: Path, root: Path = Path()) -> list[str]:
    """Writes a recording anew with the lines that have only moved, and with the moments that today's rules find; what
    is wrong with lines that have changed.
    """
    table = read(path)
    wrong: list[str] = []
    for n, site in enumerate(table["sites"]):
        problem = fault(tuple(site), root)
        if not problem:
            continue
        now = moved(tuple(site), root)
        if now is None:
            wrong.append(problem)
        else:
            table["sites"][n] = list(now)
    if not wrong:
        made = of_table(table)
        made.moments = moments.found(made)
        write_whole(path, made.to_json())
    return wrong


def code(paths: list[Path], root: Path = Path()) -> dict[str, dict[str, tuple[int, str]]]:
    """File -> function -> number of its first line, and its text: of all functions on a stack of these recordings."""
    found: dict[str, dict[str, tuple[int, str]]] = {}
    for path in paths:
        for function, file, number, _ in read(path)["sites"]:
            lines = _lines(root / file)
            there: Function | None = around(lines, number)
            if there is not None:
                text = "\n".join(lines[there.first - 1 : there.last])
                found.setdefault(file, {})[function] = (there.first, text)
    return {file: dict(sorted(functions_.items())) for file, functions_ in sorted(found.items())}
