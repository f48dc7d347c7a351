"""Which tests `make test ONLY=` runs: those of a folder of tests/, and those that are about a package of quest/."""

import ast
import functools
from collections import Counter
from pathlib import Path

from quest.command.settings import Given
from quest.learn.words import Wrong

TESTS = Path("tests")
NOT_OF_ITS_PACKAGE = "quest.ground.errors"  #: what every package raises says nothing about a test's subject


@functools.cache
def imported(path: Path) -> Counter[str]:
    """Package of quest/ -> how many names this file of tests has of it."""
    counts: Counter[str] = Counter()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module != NOT_OF_ITS_PACKAGE:
            top, *inside = node.module.split(".")
            if top == "quest":
                counts.update(inside[:1] or [alias.name for alias in node.names])
    return counts


def about(part: str) -> list[Path]:
    """The folder of that name, and each file of tests that imports of that package as much as of any other."""
    folder = TESTS / part
    files = [folder] if folder.is_dir() else []
    for path in sorted(TESTS.glob("*/test_*.py")):
        names = imported(path)
        if path.parent != folder and names[part] and names[part] == max(names.values()):
            files.append(path)
    return files


def tests_of(given: Given) -> int:
    """Prints the names of the files, for pytest."""
    if "ONLY" not in given:
        raise Wrong("ONLY= is missing: a package of quest/, or a folder of tests/")
    print(*about(given["ONLY"]))
    return 0
