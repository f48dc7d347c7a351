"""The source around each line of a recording: the whole function, out of the tree, with its line numbers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from quest.ground.c_source import around, mark
from quest.ground.errors import InputError
from quest.measure.form import Recording, Site

MARKER = re.compile(r"\s*(/\*|//)\s*(end)?region: ")


@dataclass(frozen=True)
class Excerpt:
    """Lines of a file from line `first` on. The mark of a region is a form feed: it has a number, and is not shown."""

    first: int
    lines: Sequence[str]


def source(root: Path, recording: Recording, site: Site) -> list[str]:
    """The file of this line. InputError: it is not there, or the line is another than was recorded."""
    advice = f"make trace CH={recording.server} records it anew"
    try:
        lines = (root / site.file).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise InputError(f"{site.file}: in {recording.name}, and not in the tree; {advice}") from None
    if not 1 <= site.line <= len(lines) or mark(lines, site.line) != site.mark:
        raise InputError(f"{site.file}:{site.line}: not the line that is in {recording.name}; {advice}")
    return [line.expandtabs(4) for line in lines]


def excerpts(recording: Recording, root: Path) -> tuple[list[Excerpt], list[int]]:
    """The functions that its stacks pass through, and for each site which of them. InputError: a line has changed."""
    places: dict[tuple[str, int], int] = {}
    found: list[Excerpt] = []
    of_site: list[int] = []
    for site in recording.sites:
        lines = source(root, recording, site)
        function = around(lines, site.line)
        first, last = (function.first, function.last) if function else (site.line, site.line)
        if (site.file, first) not in places:
            places[site.file, first] = len(found)
            found.append(Excerpt(first, ["\f" if MARKER.match(text) else text for text in lines[first - 1 : last]]))
        of_site.append(places[site.file, first])
    return found, of_site
