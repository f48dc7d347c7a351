"""Cuts a starter from the real source: each solution region gives way to its replacement.

/* solution: name */        on lines of their own; regions of the book may lie inside or around
...
/* endsolution: name */
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from grader.errors import LabError

MARKER = re.compile(r"^\s*/\* (end)?(region|solution): ([a-z0-9-]+) \*/\s*$")


def clean(text: str) -> str:
    """The real source without markers: what a solution is compared with."""
    kept = [line for line in text.splitlines(keepends=True) if MARKER.match(line) is None]
    return "".join(kept)


def cut(text: str, replacements: Mapping[str, str], where: str) -> str:
    """The starter. Every solution needs its replacement and every replacement its solution."""
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
