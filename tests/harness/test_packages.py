"""The packages of quest/ stand in an order, and each imports only what stands before it."""

import ast
import graphlib
from pathlib import Path

import pytest

QUEST = Path(__file__).resolve().parents[2] / "quest"
#: what a package may import are itself and those before it; modules of quest/ itself come last
ORDER = ["ground", "spec", "measure", "stats", "report", "book", "learn", "labs", "stage", "command"]


def modules() -> dict[str, Path]:
    """Name -> file of each module of ours."""
    return {
        ".".join(path.relative_to(QUEST.parent).with_suffix("").parts): path
        for path in QUEST.rglob("*.py")
        if path.name != "__init__.py"
    }


def imports(path: Path, known: set[str]) -> set[str]:
    """The modules of ours that it imports, in functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("quest"):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in known else node.module)
    return found & known


def place(module: str) -> int:
    package = module.split(".")[1]
    return ORDER.index(package) if package in ORDER else len(ORDER)


def test_imports_go_one_way() -> None:
    paths = modules()
    assert {path.name for path in QUEST.iterdir() if path.is_dir()} - {"__pycache__"} == set(ORDER)
    needs = {name: imports(path, set(paths)) for name, path in paths.items()}
    upwards = {
        f"{name} imports {needed}"
        for name, all_needed in needs.items()
        for needed in all_needed
        if place(needed) > place(name)
    }
    assert not upwards, "\n".join(sorted(upwards))
    try:
        graphlib.TopologicalSorter(needs).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_a_set_is_analysed_in_one_place() -> None:
    """Whatever shows a number reads the table that report/measured.py hands out."""
    paths = modules()
    known = set(paths)
    who = {name for name, path in paths.items() if "quest.stats.analysis" in imports(path, known)}
    assert who == {"quest.report.measured", "quest.report.claims"}, "claims: while it is measured"
