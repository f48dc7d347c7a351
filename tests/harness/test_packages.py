"""The packages of quest/ stand in an order, and each imports only what stands before it.

python3 -m tests.harness.test_packages    prints the graph: package, its size, what it imports and how often
"""

import ast
import functools
import graphlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

QUEST = Path(__file__).resolve().parents[2] / "quest"
#: what a package may import are itself and those before it; modules of quest/ itself come last
ORDER = ["ground", "spec", "measure", "stats", "report", "book", "learn", "labs", "my", "stage", "command"]

Graph = dict[str, set[str]]  #: name of a module -> the modules of ours that it needs


def modules(quest: Path = QUEST) -> dict[str, Path]:
    """Name -> file of each module of ours."""
    return {
        ".".join(path.relative_to(quest.parent).with_suffix("").parts): path
        for path in quest.rglob("*.py")
        if path.name != "__init__.py"
    }


def named(tree: ast.AST, texts: bool) -> Iterator[str]:
    """What is imported, in functions too. With `texts` also what a text names, as the table of goals
    ("module:function") and the command line of a program that is started (-m) do: any of these may be a module.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports of ours name the whole path"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
            yield node.module or ""
        elif texts and isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value.partition(":")[0]


@functools.cache
def parsed(text: str) -> ast.AST:
    """Each module once: there are hundreds."""
    return ast.parse(text)


def graph(quest: Path = QUEST, texts: bool = False) -> Graph:
    """Of the package in that folder; `texts` as in named()."""
    paths = modules(quest)
    trees = {name: parsed(path.read_text(encoding="utf-8")) for name, path in paths.items()}
    return {name: set(named(tree, texts)) & set(paths) - {name} for name, tree in trees.items()}


def package(module: str) -> str:
    """`ground` of quest.ground.toml; `quest` of quest.__main__."""
    name = module.split(".")[1]
    return name if name in ORDER else "quest"


def upwards(needs: Graph) -> list[str]:
    """A line for each module that needs one of a package that stands later."""
    place = {name: number for number, name in enumerate([*ORDER, "quest"])}
    return sorted(
        f"{name} needs {needed}"
        for name, all_needed in needs.items()
        for needed in all_needed
        if place[package(needed)] > place[package(name)]
    )


def cycle(needs: Graph) -> list[str]:
    """The modules of a cycle, the first once more at its end; [] if there is none."""
    try:
        graphlib.TopologicalSorter(needs).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def drawn(quest: Path = QUEST) -> str:
    """A line for each package: how many modules it has, and each package that it imports, with the number of arrows."""
    needs, lines = graph(quest), []
    for name in [*ORDER, "quest"]:
        own = [module for module in needs if package(module) == name]
        arrows = Counter(package(needed) for module in own for needed in needs[module])
        below = ", ".join(f"{other} {arrows[other]}" for other in [*ORDER, "quest"] if arrows[other] and other != name)
        lines.append(f"{name:8} {len(own):3} modules" + (f" -> {below}" if below else ""))
    found = [*upwards(graph(quest, texts=True)), *filter(None, [" -> ".join(cycle(needs))])]
    return "\n".join([*lines, *(found or ["no arrow upwards, and no cycle of modules"])])


def test_imports_go_one_way() -> None:
    assert {path.name for path in QUEST.iterdir() if path.is_dir()} - {"__pycache__"} == set(ORDER)
    found = upwards(graph(texts=True))
    assert not found, "\n".join(found)
    circle = cycle(graph())
    assert not circle, " -> ".join(circle)


@pytest.mark.parametrize(
    "arrow",
    [
        "from quest.report import claims",
        "def late() -> None:\n    import quest.report.claims",
        "if TYPE_CHECKING:\n    from quest.report.claims import Claim",
        "RUNS = 'quest.report.claims:judge'",
    ],
)
def test_an_arrow_upwards_and_a_cycle_are_seen(arrow: str, tmp_path: Path) -> None:
    quest, texts = tmp_path / "quest", "RUNS" in arrow
    for name, text in {
        "ground/low.py": arrow,
        "report/claims.py": "from quest.ground import other\n",
        "ground/other.py": "import os\n",
    }.items():
        (quest / name).parent.mkdir(parents=True, exist_ok=True)
        (quest / name).write_text(text, encoding="utf-8")
    assert upwards(graph(quest, texts=True)) == ["quest.ground.low needs quest.report.claims"]
    assert not cycle(graph(quest))
    (quest / "ground/other.py").write_text("import quest.ground.low\n", encoding="utf-8")
    circle = {"quest.ground.low", "quest.report.claims", "quest.ground.other"}
    assert set(cycle(graph(quest))) == (set() if texts else circle), "a text is read when it is needed"


def test_a_set_is_analysed_in_one_place() -> None:
    """Whatever shows a number reads the table that report/measured.py hands out."""
    who = {name for name, needed in graph().items() if "quest.stats.analysis" in needed}
    assert who == {"quest.report.measured", "quest.my.race"}, "a race compares its own three laps, round by round"


if __name__ == "__main__":
    print(drawn())
