"""Cuts a starter from the real source: in a build lab whole functions are replaced, in a debug lab
mistakes are planted, each an edit of a text that is there once. The source has no marks for it.
"""

import re
from collections.abc import Iterable, Mapping

from quest.labs.errors import LabError
from quest.labs.lab import Mistake

MARKER = re.compile(r"^[ \t]*/\* (end)?region: [a-z0-9-]+ \*/\n", re.M)
COMMENT = r"(?:^/\*(?:(?!\*/).)*\*/\n)?"


def clean(text: str) -> str:
    """The real source without the markers of the book; a solution is compared with it."""
    return MARKER.sub("", text)


def planted(text: str, mistakes: Iterable[Mistake], where: str) -> str:
    """The real source with these mistakes in it."""
    for mistake in mistakes:
        if text.count(mistake.old) != 1:
            raise LabError(f"{where}: {mistake.old.strip()!r} is not there once")
        text = text.replace(mistake.old, mistake.new)
    return text


def cut(text: str, replacements: Mapping[str, str], where: str) -> str:
    """The starter: `name()` gives way to its replacement, and so does the comment above it if the
    replacement has one. A function is from the line with its name in the first columns to a brace
    in the first."""
    text = clean(text)
    for name, body in replacements.items():
        head = rf"^(?!\s)[^\n;]*\b{re.escape(name.removesuffix('()'))}\([^;{{}}]*\n{{\n"
        above = COMMENT if body.lstrip("\n").startswith("/*") else ""
        function = re.compile(above + head + r".*?^}\n", re.M | re.S)
        if len(function.findall(text)) != 1:
            raise LabError(f"{where}: there is no function {name}")
        text = function.sub(body.lstrip("\n").replace("\\", r"\\"), text)
    return text
