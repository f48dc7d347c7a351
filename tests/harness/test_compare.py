"""`compare`: old against new."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import pytest

from quest.report import compare
from quest.stats.estimates import median, median_with_interval, noise_floor
from quest.stats.table import Measurement, Number, Series
from tests.harness.made_up import EXPERIMENT, Tree, damaged, parsed, result_set, write

if TYPE_CHECKING:
    from numpy.random import Generator

pytest.importorskip("scipy")
numpy = pytest.importorskip("numpy")

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
    assert (cells[0], cells[4]) == ("a", f"n={len(old.rounds)}")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ([0.0] * 7, [20.0] * 7, "differs: no ratio, as the old values reach 0"),
        ([0.0] * 7, [0.0] * 7, "~"),
        ([-1.0, 0.0, 1.0, 2.0, -2.0, 1.0], [20.0] * 6, "differs: no ratio, as the old values reach 0"),
        ([20.0] * 7, [0.0] * 7, "0.000 (0.000–0.000)"),
        ([], [1.0] * 7, "~ (fewer than 6 repetitions)"),
    ],
)
def test_what_was_nothing_and_is_something(old: list[float], new: list[float], said: str) -> None:
    assert compare.verdict(old, new, 0.02) == said


def test_what_others_disturbed_is_left_out_and_counted() -> None:
    """Half of the new rounds are noisy, and twice as long."""
    old, values = row(40), {n: 40.0 + 0.1 * n if n < 6 else 90.0 for n in range(12)}
    noisy = Measurement(None, Number(90.0), values, taken=dict.fromkeys(range(6, 12), 0.3))
    cells = compare.row("a", old, noisy, "µs", 0.0)
    assert cells[2].startswith("40")
    assert cells[3:] == ("~", "n=8+6, 6 left out")
    worthless = Measurement(None, Number(90.0), values, spoilt=dict.fromkeys(values, "client-bound"))
    assert compare.row("a", old, worthless, "µs", 0.0)[2:] == (
        "-", "~ (fewer than 6 repetitions)", "n=8+0, 12 left out",
    )  # fmt: skip


def test_what_others_took_counts_from_a_fortieth_on() -> None:
    old = row(40)
    new = Measurement(None, Number(40.0), old.rounds, taken={0: 0.02, 1: 0.03})
    assert compare.row("a", old, new, "µs", 0.0)[4] == "n=8+7, 1 left out"


@pytest.mark.parametrize(("floor", "differs"), [(0.25, True), (0.3, False)])
def test_a_difference_counts_beyond_one_and_a_half_of_the_floor(floor: float, differs: bool) -> None:
    """Up and down by 40 %: the lines are 1.375 and 1.45."""
    for pair in ((row(40), row(56)), (row(56), row(40))):
        assert (compare.row("a", *pair, "µs", floor)[3] != "~") is differs


@pytest.mark.parametrize("count", [12, 13])
def test_more_than_twelve_bins_are_one_row(count: int) -> None:
    series = Series(tuple(replace(row(40), x=n) for n in range(count)), row(40))
    names = [name for name, *_ in compare._pairs("a", series, series)]
    assert names == ([f"a @{n}" for n in range(12)] if count == 12 else ["a"])


def _session(random: "Generator", level: float, sd: float = 0.066) -> Measurement:
    """Seven rounds; 8 % of them are of five times the spread (what committed runs have)."""
    spread = numpy.where(random.random(7) < 0.08, 5, 1) * sd
    rounds = {n: float(v) for n, v in enumerate(numpy.exp(level + random.normal(0, 1, 7) * spread))}
    return Measurement(None, Number(median(list(rounds.values()))), rounds)


@pytest.mark.parametrize(
    ("unstable", "factor", "least", "most"),
    [
        pytest.param(0.0, 1.0, 0.0, 0.05, id="one session", marks=pytest.mark.slow),
        pytest.param(0.45, 1.0, 0.0, 0.05, id="two sessions"),
        pytest.param(0.0, 2.0, 0.9, 1.0, id="twice as long", marks=pytest.mark.slow),
    ],
)
def test_twins_do_not_differ_and_others_do(unstable: float, factor: float, least: float, most: float) -> None:
    """Of two sessions the levels differ: of `unstable` of them by 1.3 times the spread, of the others by a fifth of it.
    The floor is that of an A/A pair in each.
    """
    random, count, differ = numpy.random.default_rng(20261126), 200, 0
    for _ in range(count):
        between = 0.066 * (1.3 if random.random() < unstable else 0.2) if unstable else 0.0
        levels = random.normal(0, between, 2)
        floors = [noise_floor(*(_session(random, level).rounds for _ in range(2))) or 0.0 for level in levels]
        old, new = _session(random, levels[0]), _session(random, levels[1] + float(numpy.log(factor)))
        differ += not compare.row("a", old, new, "µs", max(floors))[3].startswith("~")
    assert least <= differ / count <= most


@pytest.mark.parametrize(("value", "changed"), [(2e4, []), (16e4, ["claim 9: holds -> reversed"])])
def test_two_folders_and_their_claims(tree: Tree, said: Callable[..., str], value: float, changed: list[str]) -> None:
    tree.experiment()
    (tree.root / "benchmarks/claims.toml").write_text(LEDGER, encoding="utf-8")
    for folder, a in (("old", 4e4), ("new", value)):
        data = {name: [each * (1 + 0.001 * i) for i in range(8)] for name, each in (("a", a), ("a+aa", a), ("b", 8e4))}
        write(result_set(parsed(), data), tree.root / folder / "sample.jsonl")
    lines = said("compare", "A=old", "B=new").splitlines()
    assert lines[0] == "sample"
    machine = "run of 2026-11-21, Example, 2 cores, Linux 6.18, quick"
    assert lines[1:3] == [f"old: {machine}", f"new: {machine}"]
    assert lines[3].split() == ["us", "old", "new", "new/old", "n"]
    assert lines[4].startswith("a   40.1 µs ±0.3 %")
    assert f" {value / 4e4:.3f} (" in lines[4]
    assert len({len(line) for line in lines[3:6]}) == 1, "in columns"
    assert not any(line.startswith("a+aa") for line in lines)
    head = f"claims that both judge: 1, {1 - len(changed)} of them alike"
    assert lines[lines.index(head) + 1 :] == changed


def test_two_words_stand_for_folders(tree: Tree, said: Callable[..., str]) -> None:
    tree.experiment()
    for folder, a in (("benchmarks/results/reference", 4e4), ("build/results", 2e4)):
        data = {name: [each * (1 + 0.001 * i) for i in range(8)] for name, each in (("a", a), ("b", 8e4))}
        write(result_set(parsed(), data), tree.root / folder / "sample.jsonl")
    lines = said("compare", "A=reference", "B=here").splitlines()
    assert [" 0.500 (" in line for line in lines if line.startswith("a ")] == [True]


def test_an_experiment_of_the_second_ledger_is_compared_too(tree: Tree, said: Callable[..., str]) -> None:
    tree.experiment()
    folder = tree.root / "benchmarks/experiments-since"
    folder.mkdir()
    (folder / "since-one.toml").write_text(EXPERIMENT.format(id="since-one", rounds=3, extra=""), encoding="utf-8")
    for run in ("old", "new"):
        write(result_set(parsed(id="since-one"), {"a": [4e4] * 8, "b": [8e4] * 8}), tree.root / run / "since-one.jsonl")
    lines = said("compare", "A=old", "B=new").splitlines()
    assert lines[0] == "since-one" and any(line.startswith("b ") for line in lines)


def test_one_experiment_alone_is_compared(tree: Tree, said: Callable[..., str]) -> None:
    ids = ["one", "two"]
    for id, run in product(ids, ("old", "new")):
        tree.experiment(id)
        write(result_set(parsed(id=id), {"a": [4e4] * 8, "b": [8e4] * 8}), tree.root / run / f"{id}.jsonl")
    for only in ([], ["ONLY=two"]):
        lines = said("compare", "A=old", "B=new", *only).splitlines()
        assert [line for line in lines if line in ids] == (["two"] if only else ids)


def test_what_cannot_be_compared_is_one_line(tree: Tree, said: Callable[..., str]) -> None:
    tree.experiment()
    (tree.root / "new").mkdir()
    (tree.root / "new/sample.jsonl").write_text("x\n", encoding="utf-8")
    strange = result_set(parsed(), {"a": [1.0], "b": [1.0]})
    strange.run["environment"] = {"cpu": 17}
    write(strange, tree.root / "strange/sample.jsonl")
    for old, new, message in (
        ("nowhere", "new", "nowhere: no such folder"),
        ("benchmarks", "new", "no experiment has results in both benchmarks and new"),
        ("new", "new", damaged("new/sample.jsonl:1", "it has no check sum")),
        ("strange", "new", "strange/sample.jsonl: damaged: no run of sample has such lines"),
    ):
        assert said("compare", f"A={old}", f"B={new}", status=2) == f"{message}\n"
