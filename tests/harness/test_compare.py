"""`compare`: old against new."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_up import Tree, parsed, result_set, write

from harness.errors import InputError
from harness.report import compare
from harness.statistics.analysis import Point

pytest.importorskip("scipy")


def point(value: float, count: int = 8) -> Point:
    return Point(None, {i: value * (1 + 0.002 * i) for i in range(count)})


@pytest.mark.parametrize(
    ("old", "new", "floor", "verdict"),
    [
        (point(40), point(20), 0.02, "0.500 (0.4"),
        (point(40), point(60), 0.02, "1.500 (1.4"),
        (point(40), point(40), 0.02, "~"),
        (point(40), point(60), 0.6, "~"),
        (point(40, 5), point(20, 5), 0.0, "~ (fewer than 6 repetitions)"),
    ],
)
def test_a_row(old: Point, new: Point, floor: float, verdict: str) -> None:
    cells = compare.row("a", old, new, "µs", floor)
    assert cells[3].startswith(verdict)
    assert verdict != "~" or cells[3] == "~"
    assert cells[0] == "a"
    assert cells[5] == f"n={len(old.values)}"


def test_two_folders(tree: Tree) -> None:
    tree.experiment()
    definition = parsed()
    for folder, factor in (("old", 1.0), ("new", 0.5)):
        data = {
            name: [factor * value * (1 + 0.001 * i) for i in range(8)]
            for name, value in (("a", 4e4), ("a+aa", 4e4), ("b", 8e4))
        }
        write(result_set(definition, data), tree.root / folder / "sample.jsonl")
    done = tree.run("compare", "old", "new")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "sample"
    assert lines[1].split() == ["us", "old", "new", "new/old", "p", "n"]
    assert lines[2].split()[0] == "a"
    assert "40.1 µs ±0.3 %" in lines[2]
    assert "20.1 µs" in lines[2]
    assert "0.500 (0." in lines[2]
    assert not any(line.startswith("a+aa") for line in lines)


LEDGER = """
[[claim]]
id = 9
source = "talk"
kind = "testable"
text = "a is faster than b."
experiment = "sample"
rule = { is = "faster", a = "a.us", b = "b.us" }
"""


@pytest.mark.parametrize(
    ("value", "alike"),
    [(4e4, []), (16e4, ["claim 9: holds -> reversed"])],
)
def test_how_many_verdicts_are_the_same(tree: Tree, value: float, alike: list[str]) -> None:
    tree.experiment()
    (tree.root / "benchmarks" / "claims.toml").write_text(LEDGER, encoding="utf-8")
    for folder, a in (("old", 4e4), ("new", value)):
        data = {
            name: [each * (1 + 0.001 * i) for i in range(8)]
            for name, each in (("a", a), ("a+aa", a), ("b", 8e4))
        }
        write(result_set(parsed(), data), tree.root / folder / "sample.jsonl")
    lines = tree.run("compare", "old", "new").stdout.splitlines()
    head = f"claims that both judge: 1, {1 - len(alike)} of them alike"
    assert lines[lines.index(head) + 1 :] == alike


def test_the_columns_are_aligned() -> None:
    text = compare.layout([("", "old", "new", "r", "p", "n"), ("name", "1", "22", "~", "", "n=1")])
    assert text.splitlines() == ["      old  new  r  p    n", "name    1   22  ~     n=1"]


@pytest.mark.parametrize(
    ("old", "message"),
    [("nowhere", "nowhere: no such folder"), (".", "no experiment has results in both . and .")],
)
def test_nothing_to_compare_is_one_line(tree: Tree, old: str, message: str) -> None:
    tree.experiment()
    done = tree.run("compare", old, ".")
    assert done.returncode == 2
    assert done.stderr == f"{message}\n"


def test_a_damaged_file_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree(tmp_path / "tree")
    tree.experiment()
    monkeypatch.chdir(tree.root)
    for folder in ("old", "new"):
        (tree.root / folder).mkdir()
        (tree.root / folder / "sample.jsonl").write_text("x\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"old/sample\.jsonl:1: damaged: it has no check sum"):
        compare.compare(Path("old"), Path("new"), [])
