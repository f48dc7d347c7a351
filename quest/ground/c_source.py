"""Functions of our C sources, by their place: a head and a closing brace stand in column 0 (code_lint sees to it)."""

import hashlib
import re
from collections.abc import Sequence
from typing import NamedTuple

HEAD = re.compile(r"[A-Za-z_][\w\s*()]*?\b(?P<name>\w+)\(")
DIGITS = 8


class Function(NamedTuple):
    """first, last: lines, counted from 1."""

    name: str
    first: int
    last: int


def functions(lines: Sequence[str]) -> list[Function]:
    """All that are defined there."""
    found: list[Function] = []
    name, first = "", 0
    for number, line in enumerate(lines, 1):
        if (head := HEAD.match(line)) and not line.rstrip().endswith(";"):
            name, first = head["name"], number
        elif line.rstrip().endswith(";") and not line.startswith((" ", "\t", "}")):
            name = ""
        elif line == "}" and name:
            found.append(Function(name, first, number))
            name = ""
    return found


def around(lines: Sequence[str], number: int) -> Function | None:
    """The function that has this line; None if it is in none."""
    return next((each for each in functions(lines) if each.first <= number <= each.last), None)


def mark(lines: Sequence[str], number: int) -> str:
    """By which a line is known to say the same, wherever its function is, and however far it is indented: its text, and
    how many lines of its function before it say that, too.
    """
    text = lines[number - 1].strip()
    there = around(lines, number)
    above = lines[there.first - 1 : number - 1] if there else ()
    same = sum(line.strip() == text for line in above)
    return hashlib.sha256(f"{same} {text}".encode()).hexdigest()[:DIGITS]
