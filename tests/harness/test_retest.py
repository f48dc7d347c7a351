"""Two sessions side by side, and the frozen judge beside the judge of now, on made-up sessions."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from quest.ground.errors import InputError
from quest.report import claims, frozen, judge, retest
from quest.report.retest import Alike, Apart
from quest.spec import experiment_file
from quest.stats.analysis import analyse
from quest.stats.reach import order
from tests.harness.made_up import Tree, parsed, result_set, write

pytest.importorskip("scipy")
numpy = pytest.importorskip("numpy")

CLAIM = """\
[[claim]]
id = {id}
source = "talk"
kind = "testable"
text = "So it is."
experiment = "sample"
reason = "as it says"
rule = {rule}
{more}
"""
FASTER = '{ is = "faster", a = "a.us", b = "b.us" }'
REFERENCE = Path("benchmarks/results/reference")
SESSIONS = REFERENCE.parent / "sessions"


@pytest.fixture
def place(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> Tree:
    tree.experiment(rounds=8)
    monkeypatch.chdir(tree.root)
    ledger((9, FASTER, ""))
    return tree


def ledger(*entries: tuple[int, str, str]) -> None:
    text = "".join(CLAIM.format(id=number, rule=rule, more=more) for number, rule, more in entries)
    Path("benchmarks/claims.toml").write_text(text, encoding="utf-8")


def session(folder: Path, cpu: str = "AMD EPYC", scale: float = 1, **ns: float) -> None:
    """Seven rounds, whose values grow by a thousandth each; `scale`: of all of them."""
    values = {"a": 1000.0, "a+aa": 1000.0, "b": 2000.0, **ns}
    found = result_set(parsed(), {n: [scale * v * (1 + r / 1000) for r in range(7)] for n, v in values.items()})
    found.run["environment"]["cpu"] = cpu
    write(found, folder / "sample.jsonl")


def tables(folder: Path) -> retest.Tables:
    retest.tables_of.cache_clear()
    return retest.tables_of(folder)


@pytest.mark.parametrize(("n", "m"), [(6, 6), (7, 7), (7, 6), (9, 21), (21, 21)])
def test_by_chance_as_often_as_in_a_trial(n: int, m: int) -> None:
    random = numpy.random.default_rng(20261127)
    ends = []
    for count in (n, m):
        drawn = numpy.sort(random.standard_normal((200_000, count)), axis=1)
        ends.append((drawn[:, order(count) - 1], drawn[:, -order(count)]))
    (low, high), (low2, high2) = ends
    seen = float(((high < low2) | (high2 < low)).mean())
    assert retest.chance_apart(n, m) == pytest.approx(seen, abs=3e-4)
    assert retest.chance_apart(n, m) == pytest.approx(retest.chance_apart(m, n))
    assert retest.chance_apart(7, 7) == pytest.approx(2 / 3432), "all of one above all of the other"


@pytest.mark.parametrize(
    ("second", "level", "ratio"),
    [
        ({}, 0, 0),
        ({"scale": 1.5}, 2, 0),  # all is slower, and no ratio is another
        ({"b": 3000.0}, 1, 1),
        ({"scale": 1.004}, 0, 0),  # they meet
    ],
)
def test_levels_and_ratios_that_have_no_value_in_common(
    place: Tree, second: Mapping[str, Any], level: int, ratio: int
) -> None:
    session(Path("one"))
    session(Path("two"), **second)
    before, after = (tables(Path(name))["sample"] for name in ("one", "two"))
    chance = retest.chance_apart(7, 7)
    assert retest.levels(before, after) == Apart(2, level, chance + chance)
    assert retest.ratios(before, after) == Apart(1, ratio, chance)


def test_too_few_rounds_are_no_pair(place: Tree) -> None:
    few = analyse(parsed(), result_set(parsed(), {"a": [1.0] * 5, "b": [1.0] * 5}), "here")
    assert retest.levels(few, few) == Apart()
    assert Apart().words() == "no pair with six usable rounds on both sides"
    assert "397 have no value in common: 7.0 %, by chance 0.2 %, so 6.8 % beyond it" in Apart(5667, 397, 11.3).words()


def test_a_round_in_which_one_took_nothing_has_no_ratio(place: Tree) -> None:
    session(Path("one"))
    session(Path("two"), b=0.0)
    before, after = (tables(Path(name))["sample"] for name in ("one", "two"))
    assert retest.ratios(before, after) == Apart()


@pytest.mark.parametrize("text", ["", '{"type":"run","sch'])
def test_a_set_that_was_killed_in_its_first_line_is_none(place: Tree, text: str) -> None:
    """It sorts before the others, and says nothing of the processor."""
    session(Path("one"))
    Path("one/another.jsonl").write_text(text)
    assert retest.processor_of(Path("one")) == "AMD EPYC" and list(tables(Path("one"))) == ["sample"]


def test_a_set_of_others_that_fits_no_run_is_one_line(place: Tree) -> None:
    found = result_set(parsed(), {"a": [1.0], "b": [1.0]})
    found.run["environment"] = {"libc": "none"}
    write(found, Path("one/sample.jsonl"))
    with pytest.raises(InputError, match="one/sample.jsonl: damaged: no run of sample has such lines"):
        tables(Path("one"))


def test_words_that_two_sessions_give(place: Tree) -> None:
    ledger(
        (1, FASTER, ""),
        (2, '{ is = "at_most", a = "a.us", bound = 1.2 }', ""),
        (3, '{ is = "at_most", a = "a.us", bound = 1.2 }', 'near = "it is of the machine"'),
        (4, '{ is = "at_most", a = "a.us", bound = 1.003 }', ""),  # the first lies across it
    )
    session(Path("one"))
    session(Path("two"), scale=1.5)
    known = claims.load(experiment_file.load_all())
    before, after = tables(Path("one")), retest.tables_of(Path("two"))
    found = retest.words_alike(known, before, after)
    assert found == Alike(2, 1, ("claim 2: holds, then changed",))
    assert found.words().startswith("4 claims that both judge, 2 of them near the line; of the other 2 1 get the same")
    assert retest.words_alike(known, before, before) == Alike(2, 2, ())
    assert retest.words_alike(known, before, {}) == Alike()


def test_all_pairs_of_a_processor_or_two_that_are_named(place: Tree, said: Callable[..., str]) -> None:
    session(REFERENCE)
    assert said("retest") == "no two sessions of one processor are committed; A= and B= name folders\n"
    session(SESSIONS / "amd-epyc/two")
    session(SESSIONS / "amd-epyc/three", scale=1.5)
    session(SESSIONS / "intel-xeon/one", "Intel Xeon", scale=3)
    lines = said("retest").splitlines()
    heads = [line for line in lines if not line.startswith(" ")]
    assert heads[0] == "reference and amd-epyc/three (AMD EPYC): 1 experiments in both"
    assert len(heads) == 4 and heads[3] == "all 3 pairs"
    assert lines[-3].startswith("  levels: 6 pairs, 4 have no value in common: 66.7 %, by chance 0.1 %, so 66.6 %")
    assert lines[-2].startswith("  ratios within the round: 3 pairs, 0 have")
    assert "3 get the same verdict: 100.0 %" in lines[-1]
    lines = said("retest", "A=reference", "B=intel-xeon/one").splitlines()
    assert lines[0].startswith("reference and intel-xeon/one (AMD EPYC, Intel Xeon)") and "never pooled" in lines[1]
    assert "no session of this name; there are reference, amd-epyc/three" in said("retest", "A=x", "B=x", status=2)
    assert "both A= and B=, or neither" in said("retest", "A=reference", status=2)
    with pytest.raises(InputError, match="no session"):
        retest.folder_of("benchmarks", REFERENCE)


@pytest.mark.slow
def test_the_frozen_judge_and_the_judge_of_now_are_a_table(place: Tree, said: Callable[..., str]) -> None:
    ledger((9, FASTER, ""), (10, '{ is = "exists", a = "a.us" }', ""))
    session(REFERENCE)
    name = judge.current()
    assert list(retest.against_the_frozen(REFERENCE, name)) == [f"no frozen judge {name[:12]}: make register"]
    frozen.FOLDER.mkdir(parents=True)
    (frozen.FOLDER / f"{name}.zip").write_bytes(frozen.packed(judge.OURS, Path()))
    judge.write_registration(judge.Registration(name, "2026-11-27", "b" * 40, {}))
    assert said("retest").splitlines()[1] == "2 claims, of which both judges give the same verdict on 2"
    ledger((9, '{ is = "faster", a = "b.us", b = "a.us" }', ""), (11, FASTER, ""))
    table = said("retest").splitlines()[1:]
    assert table[0] == "3 claims, of which both judges give the same verdict on 0"
    assert [line.split() for line in table[1:]] == [
        ["claim", "frozen", "judge", name[:12], "judge", "of", "now", name[:12]],
        ["9", "holds", "reversed"], ["10", "holds", "no", "verdict"], ["11", "no", "verdict", "holds"],
    ]  # fmt: skip
