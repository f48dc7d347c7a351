"""Guards of findings: ten of all kinds, on a reference run that shows them, and on a run in which all are reversed."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from quest.ground.errors import InputError
from quest.measure import chosen
from quest.report import claims, guards
from quest.report.check import check
from quest.report.guards import AGREES, DISAGREES, UNKNOWN
from quest.report.measured import Library
from quest.report.rules import HOLDS, RULES
from quest.spec import experiment_file
from tests.harness.made_up import EXPERIMENT, Tree, end_record, lines, repetition, result_set, run_record, write_lines

pytest.importorskip("scipy")

ROOT = Path(__file__).parents[2]
#: Of the experiment `sweep`, over x: flat and growing.
SWEEP = """\
id = "sweep"
title = "Over x"
question = "Does it grow?"
kind = "micro"
sweep = { x = [1, 2, 4, 8, 16] }
x = { title = "x", parameter = "x" }
[profile.smoke]
rounds = 2
[profile.quick]
rounds = 8
[profile.full]
rounds = 9
[[variant]]
name = "level"
command = ["{bin}/fake", "-n", "{x}"]
[[variant]]
name = "steep"
command = ["{bin}/fake", "-n", "{x}"]
[[metric]]
name = "us"
scalar = "us"
unit = "µs"
better = "lower"
"""
#: Ten findings: their rules are of nine kinds, and one is a claim of the ledger.
TEN = {
    "faster": '{ is = "faster", a = "a.us", b = "b.us" }',
    "twice": '{ is = "ratio_at_least", a = "b.us", b = "a.us", bound = 2 }',
    "thrice": '{ is = "ratio_between", a = "b.us", b = "a.us", low = 2.5, high = 3.5 }',
    "same": '{ is = "equal", a = "a.us", b = "twin.us" }',
    "little": '{ is = "at_most", a = "a.us", bound = 2 }',
    "much": '{ is = "at_least", a = "b.us", bound = 2 }',
    "level": '{ is = "flat", a = "sweep:level.us" }',
    "rising": '{ is = "grows", a = "sweep:steep.us" }',
    "straight": '{ is = "linear", a = "sweep:steep.us" }',
}
OTHERWISE = "There it took [sample.a.us]{.num}."
GUARDS = (
    "".join(
        f'[guard.{name}]\nexperiment = "sample"\nrule = {rule}\notherwise = "{OTHERWISE}"\n'
        for name, rule in TEN.items()
    )
    + f'[guard.claimed]\nclaim = 3\notherwise = "{OTHERWISE}"\n'
)
LEDGER = """\
[[claim]]
id = 3
source = "talk"
kind = "testable"
text = "a is faster"
experiment = "sample"
rule = { is = "faster", a = "a.us", b = "b.us" }
reason = "as it says"
"""
THIRD = '[[variant]]\nname = "twin"\ncommand = ["{{bin}}/fake", "-n", "{{n}}"]\n'
Times = Mapping[str, float]  # µs
Curve = Callable[[int], float]
SHOWN: Times = {"a": 1, "b": 3, "twin": 1}
REVERSED: Times = {"a": 3, "b": 1, "twin": 1}


def measure(folder: Path, times: Times, level: Curve, steep: Curve, rounds: int) -> None:
    """A set of each experiment in this folder."""
    known = {one.id: one for one in experiment_file.load_all()}
    values = {name: [1000 * us * (1 + 0.002 * n) for n in range(rounds)] for name, us in times.items()}
    write_lines(map(json.dumps, lines(result_set(known["sample"], values))), folder / "sample.jsonl")
    some = [
        repetition(name, n, params={"x": x}, scalars={"us": curve(x) * (1 + 0.002 * n)})
        for n in range(rounds)
        for name, curve in (("level", level), ("steep", steep))
        for x in (1, 2, 4, 8, 16)
    ]
    records = [run_record(known["sweep"]), *some, end_record(len(some))]
    write_lines(map(json.dumps, records), folder / "sweep.jsonl")


@pytest.fixture
def here(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """Ten findings, and the reference run that shows them."""
    monkeypatch.chdir(tree.root)
    tree.experiment(text=EXPERIMENT.format(id="sample", rounds=8, extra="") + THIRD.format())
    tree.experiment("sweep", text=SWEEP)
    (tree.root / "chapters").mkdir()
    (tree.root / "chapters/guards.toml").write_text(GUARDS, encoding="utf-8")
    (tree.root / "benchmarks/claims.toml").write_text(LEDGER, encoding="utf-8")
    measure(Path("reference"), SHOWN, lambda _: 5, lambda x: 10 * x, rounds=8)
    return tree


def judged(only: bool = False) -> dict[str, guards.Judged]:
    return guards.judge_all(Library(Path("build/results"), Path("reference"), only))


def test_ten_findings_are_reversed(here: Tree) -> None:
    measure(here.results, REVERSED, lambda x: 10 * x, lambda _: 5, rounds=8)
    found = judged()
    assert len(found) == 10
    assert {(one["on_reference"], one["reference"]) for one in found.values()} == {(AGREES, HOLDS)}
    assert {name for name, one in found.items() if one["on_own"] == DISAGREES} == found.keys()
    for one in found.values():
        assert one["here_why"] and one["here_numbers"] and one["otherwise"] == OTHERWISE
    alone = judged(only=True)
    assert {(one["on_own"], one["here"]) for one in alone.values()} == {(UNKNOWN, "")}


@pytest.mark.parametrize("rounds", [0, 3])
def test_too_little_says_nothing_of_the_readers_own(here: Tree, rounds: int) -> None:
    if rounds:
        measure(here.results, REVERSED, lambda x: 10 * x, lambda _: 5, rounds)
    assert {one["on_own"] for one in judged().values()} == {UNKNOWN}


def test_the_same_again_agrees(here: Tree) -> None:
    measure(here.results, SHOWN, lambda _: 6, lambda x: 11 * x, rounds=7)
    assert {one["on_own"] for one in judged().values()} == {AGREES}


@pytest.mark.parametrize("rounds", [3, 8])
def test_a_finding_needs_a_reference_that_shows_it(here: Tree, rounds: int) -> None:
    measure(Path("reference"), REVERSED, lambda x: 10 * x, lambda _: 5, rounds)
    assert {one["on_reference"] for one in judged().values()} == {DISAGREES}


@pytest.mark.parametrize(
    ("times", "level", "steep", "rounds", "stands"),
    [
        (REVERSED, lambda x: 10 * x, lambda _: 5, 8, DISAGREES),
        (REVERSED, lambda x: 10 * x, lambda _: 5, 3, AGREES),
        (SHOWN, lambda _: 6, lambda x: 11 * x, 8, AGREES),
    ],
    ids=["contradicts", "too little", "the same"],
)
def test_a_further_session_stops_a_finding_only_if_it_contradicts_it(
    here: Tree, times: Times, level: Curve, steep: Curve, rounds: int, stands: str
) -> None:
    session = Path("sessions/another/2026-11-27")
    session.mkdir(parents=True)
    measure(session, times, level, steep, rounds)
    assert {one["on_reference"] for one in judged().values()} == {stands}


def test_what_one_session_leaves_open_all_together_may_decide(here: Tree) -> None:
    measure(Path("reference"), SHOWN, lambda _: 5, lambda x: 10 * x, rounds=3)
    for day in range(3):
        session = Path(f"sessions/another/2026-11-2{day}")
        session.mkdir(parents=True)
        measure(session, SHOWN, lambda _: 5, lambda x: 10 * x, rounds=8)
    assert {one["on_reference"] for one in judged().values()} == {AGREES}


def test_it_is_exported(here: Tree) -> None:
    measure(Path("benchmarks/results/reference"), SHOWN, lambda _: 5, lambda x: 10 * x, rounds=8)
    measure(here.results, REVERSED, lambda x: 10 * x, lambda _: 5, rounds=8)
    assert here.run("export").returncode == 0
    exported = json.loads((here.root / "build/data/guards.json").read_text(encoding="utf-8"))
    assert [one["on_own"] for one in exported.values()] == [DISAGREES] * 10
    path = here.root / "chapters/guards.toml"
    path.write_text(GUARDS.replace("bound = 2 }", "bound = 9 }", 1), encoding="utf-8")
    assert here.run("export").returncode == 0  # it is looked at again when it has changed
    exported = json.loads((here.root / "build/data/guards.json").read_text(encoding="utf-8"))
    assert exported["twice"]["on_reference"] == DISAGREES


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("claim = 3\n", "", 'it has either "rule" or "claim"'),
        ("claim = 3\n", "claim = 4\n", "the ledger has no claim 4 with a rule"),
        ("claim = 3\n", 'claim = 3\nverdict = "perhaps"\n', "verdict"),
        ('is = "flat"', 'is = "plain"', 'guard.level: rule: "is" must be one of'),
        ('a = "sweep:level.us"', 'a = "sweep:even.us"', "guard.level: rule: "),
        ('"a.us", b = "twin.us"', '"a.us", b = "other:twin.us"', 'unknown experiment "other"'),
        ('experiment = "sample"\n', "", 'an operand without an experiment, and no "experiment"'),
        (f'otherwise = "{OTHERWISE}"', 'otherwise = ""', "otherwise"),
    ],
)
def test_a_guard_that_cannot_be_right_is_refused(here: Tree, old: str, new: str, said: str) -> None:
    assert old in GUARDS
    Path("chapters/guards.toml").write_text(GUARDS.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError, match=r"^chapters/guards\.toml: ") as refused:
        judged()
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_numbers_of_a_note_are_checked(here: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    Path("chapters/guards.toml").write_text(GUARDS.replace("[sample.a.us]", "[sample.c.us]", 1), encoding="utf-8")
    assert check(Path("build/results"), Path("reference")) == 1
    assert "chapters/guards.toml:4: number [sample.c.us]: " in capsys.readouterr().err


def test_those_of_the_book_can_be_asked() -> None:
    folders = (experiment_file.FOLDER, chosen.SINCE)
    experiments = [one for folder in folders for one in experiment_file.load_all(ROOT / folder)]
    ledger = claims.load(experiments, ROOT / "benchmarks/claims.toml")
    found = guards.load(experiments, ledger, ROOT / guards.GUARDS)
    assert found and all(use.name in RULES for _, claim in found.values() for use in claim.rules)
