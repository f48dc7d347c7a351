"""The committed recordings: do their lines still say what they said, and where are those that have moved."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from quest.ground.c_source import around, functions, mark
from quest.ground.files import write_whole
from quest.measure import moments
from quest.measure.form import Recording, Site, read


@cache
def _lines(path: Path) -> tuple[str, ...]:
    """Of a source file; none if it is not there."""
    try:
        return tuple(path.read_text(encoding="utf-8", errors="replace").splitlines())
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


def faults(recording: Recording, root: Path = Path()) -> Iterator[str]:
    """Of all lines of a recording."""
    yield from filter(None, (fault(site, root) for site in recording.sites))


def moved(site: Site, root: Path = Path()) -> Site | None:
    """Where a line is now in the function of that name. None if it is gone."""
    function, file, _, recorded = site
    lines = _lines(root / file)
    spans = [each for each in functions(lines) if each.name == function]
    there = [n for each in spans for n in range(each.first, each.last + 1) if mark(lines, n) == recorded]
    return Site(function, file, there[0], recorded) if there else None


def follow(path: Path, root: Path = Path()) -> list[str]:
    """Writes a recording anew with the lines that have only moved, and with the moments that today's rules find; what
    is wrong with lines that have changed.
    """
    recording = read(path)
    wrong: list[str] = []
    for n, site in enumerate(recording.sites):
        problem = fault(site, root)
        if not problem:
            continue
        now = moved(site, root)
        if now is None:
            wrong.append(problem)
        else:
            recording.sites[n] = now
    if not wrong:
        recording.moments = moments.found(recording)
        write_whole(path, recording.to_json())
    return wrong
