"""Which files of the tree a module of ours needs: all that it imports, and so on. What decides
about a grade is hashed by it, and what an autograder needs is packed by it.
"""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from quest.labs.lab import TREE

PACKAGES = ("quest", "tests")
#: Programs of their own, and what pytest loads by name (-p in judge.py).
STARTED = ("quest.labs.__main__", "quest.labs.plugin", "quest.labs.archive", "tests.conftest")


def programs() -> list[Path]:
    """Programs that tests start, and what these preload, beside the modules: below the tree's root."""
    found = (path for path in TREE.glob("tests/conformance/*") if path.is_file() and not path.name.startswith("test_"))
    return sorted(path.relative_to(TREE) for path in found)


def _imports(body: Iterable[ast.stmt]) -> Iterator[str]:
    """The names that a module imports when it is itself imported; those inside functions are of
    commands that a bundle does not have."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Try):
            yield from _imports(node.body)


def _file_of(name: str) -> Path | None:
    """The file of a module of ours, or of a package; None for any other name."""
    if name.partition(".")[0] not in PACKAGES:
        return None
    path = TREE.joinpath(*name.split("."))
    return next((p for p in (path.with_suffix(".py"), path / "__init__.py") if p.is_file()), None)


def files_of(modules: Iterable[str], more: Iterable[Path] = ()) -> list[Path]:
    """The files of these modules, of `more` files of Python, and of all that these import, below
    the tree's root."""
    todo = [*filter(None, map(_file_of, modules)), *more]
    known: set[Path] = set()
    while todo:
        path = todo.pop()
        if path in known:
            continue
        known.add(path)
        body = ast.parse(path.read_text(encoding="utf-8")).body
        todo += filter(None, map(_file_of, _imports(body)))
        folders = (p for p in path.parents if p.is_relative_to(TREE) and p != TREE)
        todo += (p for folder in folders if (p := folder / "__init__.py").is_file())
    return sorted(path.relative_to(TREE) for path in known)
