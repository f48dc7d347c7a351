"""Cuts a starter from the real source: each solution region gives way to its replacement.

/* solution: name */        on lines of their own; regions of the book may lie inside or around
...
/* endsolution: name */

A replacement called `name()` takes the place of a whole function. A debug lab has mistakes in
place of gaps: edits of the real source, each of which must find its place once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from grader.errors import LabError
from grader.lab import Mistake

MARKER = re.compile(r"^\s*/\* (end)?(region|solution): ([a-z0-9-]+) \*/\s*$")


def clean(text: str) -> str:
    """The real source without markers: what a solution is compared with."""
    kept = [line for line in text.splitlines(keepends=True) if MARKER.match(line) is None]
    return "".join(kept)


def planted(text: str, mistakes: Iterable[Mistake], where: str) -> str:
    """The real source with these mistakes in it."""
    for mistake in mistakes:
        if text.count(mistake.old) != 1:
            raise LabError(f"{where}: {mistake.old.strip()!r} is not there once")
        text = text.replace(mistake.old, mistake.new)
    return text


def _without_functions(text: str, replacements: Mapping[str, str], where: str) -> str:
    """A function is from the line with its name in the first columns to a brace in the first."""
    for name, body in replacements.items():
        head = rf"^(?!\s)[^\n;]*\b{re.escape(name[:-2])}\([^;{{}}]*\n{{\n"
        function = re.compile(head + r".*?^}\n", re.M | re.S)
        if len(function.findall(text)) != 1:
            raise LabError(f"{where}: there is no function {name}")
        text = function.sub(body.lstrip("\n").replace("\\", r"\\"), text)
    return text


def cut(text: str, replacements: Mapping[str, str], where: str) -> str:
    """The starter. Every solution needs its replacement and every replacement its solution; or the
    replacements are of functions.
    """
    functions = {name: body for name, body in replacements.items() if name.endswith("()")}
    if functions or not replacements:
        return _without_functions(clean(text), functions, where)
    kept: list[str] = []
    inside = ""
    done: set[str] = set()
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        match = MARKER.match(line)
        if match is None or match[2] == "region":
            if match is None and not inside:
                kept.append(line)
            continue
        name = match[3]
        if match[1]:
            if name != inside:
                raise LabError(f"{where}:{number}: endsolution {name} without its solution")
            inside = ""
            continue
        if inside or name in done:
            problem = f"inside {inside}" if inside else "is there twice"
            raise LabError(f"{where}:{number}: solution {name} {problem}")
        if name not in replacements:
            raise LabError(f"{where}:{number}: the lab has no replacement for solution {name}")
        kept.append(replacements[name])
        done.add(name)
        inside = name
    if inside:
        raise LabError(f"{where}: solution {inside} is not closed")
    if missing := set(replacements) - done:
        raise LabError(f"{where}: no solution {', '.join(sorted(missing))} in it")
    return "".join(kept)
