"""The harness can be overseen: no module needs, by whatever way, one that needs it."""

import ast
import graphlib
from pathlib import Path

import pytest

HARNESS = Path(__file__).resolve().parents[2] / "benchmarks/harness"


def imports(path: Path, modules: set[str]) -> set[str]:
    """The modules of ours that it imports, in functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("harness"):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in modules else node.module)
    return found & modules


def test_no_import_cycle() -> None:
    paths = {
        ".".join(path.relative_to(HARNESS.parent).with_suffix("").parts): path
        for path in HARNESS.rglob("*.py")
        if path.name != "__init__.py"
    }
    assert "harness.run.bench" in paths
    needs = {name: imports(path, set(paths)) for name, path in paths.items()}
    try:
        graphlib.TopologicalSorter(needs).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))
