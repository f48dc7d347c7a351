"""`compare`: old against new."""

from collections.abc import Callable

import pytest

from quest.report import compare
from quest.stats.estimates import median_with_interval
from quest.stats.table import Measurement, Number
from tests.harness.made_up import Tree, damaged, parsed, result_set, write

pytest.importorskip("scipy")

LEDGER = """
[[claim]]
id = 9
source = "talk"
kind = "testable"
text = "a is faster than b."
experiment = "sample"
rule = { is = "faster", a = "a.us", b = "b.us" }
"""


def row(value: float, count: int = 8) -> Measurement:
    rounds = {i: value * (1 + 0.002 * i) for i in range(count)}
    return Measurement(None, Number(*median_with_interval([*rounds.values()])), rounds)


@pytest.mark.parametrize(
    ("old", "new", "floor", "verdict"),
    [
        (row(40), row(20), 0.02, "0.500 (0.4"),
        (row(40), row(60), 0.02, "1.500 (1.4"),
        (row(40), row(40), 0.02, "~"),
        (row(40), row(60), 0.6, "~"),
        (row(40, 5), row(20, 5), 0.0, "~ (fewer than 6 repetitions)"),
    ],
)
def test_a_row(old: Measurement, new: Measurement, floor: float, verdict: str) -> None:
    cells = compare.row("a", old, new, "µs", floor)
    assert cells[3].startswith(verdict)
    assert verdict != "~" or cells[3] == "~"
    assert (cells[0], cells[5]) == ("a", f"n={len(old.rounds)}")


@pytest.mark.parametrize(("value", "changed"), [(2e4, []), (16e4, ["claim 9: holds -> reversed"])])
def test_two_folders_and_their_claims(tree: Tree, said: Callable[..., str], value: float, changed: list[str]) -> None:
    tree.experiment()
    (tree.root / "benchmarks/claims.toml").write_text(LEDGER, encoding="utf-8")
    for folder, a in (("old", 4e4), ("new", value)):
        data = {name: [each * (1 + 0.001 * i) for i in range(8)] for name, each in (("a", a), ("a+aa", a), ("b", 8e4))}
        write(result_set(parsed(), data), tree.root / folder / "sample.jsonl")
    lines = said("compare", "A=old", "B=new").splitlines()
    assert lines[0] == "sample"
    assert lines[1].split() == ["us", "old", "new", "new/old", "p", "n"]
    assert lines[2].startswith("a   40.1 µs ±0.3 %")
    assert f" {value / 4e4:.3f} (" in lines[2]
    assert len({len(line) for line in lines[1:4]}) == 1, "in columns"
    assert not any(line.startswith("a+aa") for line in lines)
    head = f"claims that both judge: 1, {1 - len(changed)} of them alike"
    assert lines[lines.index(head) + 1 :] == changed


def test_what_cannot_be_compared_is_one_line(tree: Tree, said: Callable[..., str]) -> None:
    tree.experiment()
    (tree.root / "new").mkdir()
    (tree.root / "new/sample.jsonl").write_text("x\n", encoding="utf-8")
    for old, new, message in (
        ("nowhere", "new", "nowhere: no such folder"),
        ("benchmarks", "new", "no experiment has results in both benchmarks and new"),
        ("new", "new", damaged("new/sample.jsonl:1", "it has no check sum")),
    ):
        assert said("compare", f"A={old}", f"B={new}", status=2) == f"{message}\n"
