"""What failed is data: a word in the ledger, and a line of `compare`."""

from collections.abc import Callable
from pathlib import Path

import pytest

from quest.measure import records
from quest.measure.records import ResultSet
from quest.report import claims, compare, verdicts
from quest.report.claims import JudgedClaim
from quest.report.measured import Library
from quest.spec.model import Experiment
from quest.stats import saved
from quest.stats.analysis import analyse
from tests.harness.made_up import Tree, parsed, repetition, result_set, run_record, write

pytest.importorskip("scipy")

LEDGER = """\
[[claim]]
id = 9
source = "talk"
kind = "testable"
text = "a is faster."
experiment = "sample"
reason = "as it says"
rule = {rule}
"""
FASTER = '{ is = "faster", a = "a.us", b = "b.us" }'
REFERENCE, OWN = Path("benchmarks/results/reference"), Path("build/results")


@pytest.fixture
def place(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> Tree:
    tree.experiment(rounds=8)
    monkeypatch.chdir(tree.root)
    rule(FASTER)
    return tree


def rule(text: str) -> None:
    Path("benchmarks/claims.toml").write_text(LEDGER.format(rule=text), encoding="utf-8")


def with_failures(went_well: int, failed: int, given_up: bool = False) -> ResultSet:
    """Of b; a goes well ten times."""
    values = {name: [each + i for i in range(10)] for name, each in (("a", 1000.0), ("a+aa", 1000.0))}
    values["b"] = [2000.0 + i for i in range(went_well)]
    found = result_set(parsed(), values)
    for number in range(failed):
        place = {"variant": "b", "params": {"n": 3}, "round": went_well + number, "order": 0}
        found.add({"type": "failure", **place, "error": "b ended with status 1"})
    assert found.end
    found.end |= {"failures": failed, "given_up": ["b"] if given_up else []}
    return found


def judged(results: Path = REFERENCE) -> JudgedClaim:
    [one] = claims.judge_all(Library(results, REFERENCE, results == REFERENCE))
    return one


def shown(one: JudgedClaim) -> str:
    return " ".join(verdicts.line(one, 200, long=True).split())


@pytest.mark.parametrize(
    ("went_well", "failed", "given_up", "verdict", "text"),
    [
        (2, 8, False, "failed", "b failed 8 of 10"),
        (0, 3, True, "failed", "b failed 3 of 3 and was given up"),
        (7, 3, False, "holds", "b failed 3 of 10"),
        (10, 0, False, "holds", ""),
        (2, 0, False, "not measured here", ""),
    ],
)
def test_what_failed_is_a_word(
    place: Tree, went_well: int, failed: int, given_up: bool, verdict: str, text: str
) -> None:
    write(with_failures(went_well, failed, given_up), REFERENCE / "sample.jsonl")
    one = judged()
    assert (one["verdict"], one["standing"], one["failed"]) == (verdict, verdict, [text] if text else [])
    assert (one["why"] == text) == (verdict == "failed")
    assert shown(one).count("failed ") == (2 if verdict == "failed" else bool(text))
    assert not text or text in shown(one)
    assert f"1 {verdict}" in verdicts.counts([one])


def test_what_fails_as_the_second_of_a_pair_fails_as_its_variant() -> None:
    found = with_failures(10, 1)
    found.failures[0]["variant"] = "a+aa"
    assert analyse(parsed(), found, "here").run.failures == {"a": "failed 1 of 21"}


def test_a_number_and_an_x_name_what_failed(place: Tree) -> None:
    place.edit(("[[metric]]", '[x]\ntitle = "n"\nparameter = "n"\n[[metric]]'))
    place.edit(("set = { n = 3 }", "sweep = { n = [3, 5] }"))
    place.edit(("set = { n = 4 }", "sweep = { n = [3, 5] }"))
    with (place.experiments / "sample.toml").open("a") as file:
        file.write('[[number]]\nkey = "gain"\nratio = ["b.us", "a.us"]\nat = 5\n')
    definition = place_definition()
    found = records.ResultSet(REFERENCE / "sample.jsonl", run_record(definition))
    for number in range(8):
        for variant, n in (("a", 3), ("a", 5), ("b", 3), *(() if number > 1 else (("b", 5),))):
            found.add(repetition(variant, number, samples={"ns": [1000.0 * n + number]}, params={"n": n}))
        if number > 1:
            failure = {"type": "failure", "variant": "b", "params": {"n": 5}, "round": number, "order": 0}
            found.add({**failure, "error": "no"})
    found.add({"type": "end", "finished": "2026-11-21T12:05:00Z", "repetitions": 26, "failures": 6})
    write(found, found.path)
    for text, verdict, failed in (
        ('{ is = "at_least", a = "gain", bound = 1 }', "failed", ["b at 5 failed 6 of 8"]),
        ('{ is = "at_least", a = "b.us@5", bound = 1 }', "failed", ["b at 5 failed 6 of 8"]),
        ('{ is = "at_least", a = "b.us@3", bound = 1 }', "holds", []),
        ('{ is = "at_least", a = "b.us@last", bound = 1 }', "failed", ["b failed 6 of 16"]),
        ('{ is = "at_least", a = "a.us@5", bound = 1 }', "holds", []),
    ):
        rule(text)
        assert (judged()["verdict"], judged()["failed"]) == (verdict, failed), text


def place_definition() -> Experiment:
    from quest.spec import experiment_file

    [one] = experiment_file.load_all()
    return one


def test_the_readers_own_failure_is_said_beside_the_reference(place: Tree) -> None:
    write(with_failures(10, 0), REFERENCE / "sample.jsonl")
    write(with_failures(0, 3, given_up=True), OWN / "sample.jsonl")
    one = judged(OWN)
    assert (one["verdict"], one["source_run"], one["failed"]) == ("holds", "reference", [])
    assert "yours: b failed 3 of 3 and was given up" in shown(one) and "reference: holds" in shown(one)


def test_compare_names_what_failed(place: Tree, said: Callable[..., str]) -> None:
    write(with_failures(10, 0), Path("old/sample.jsonl"))
    write(with_failures(2, 8), Path("new/sample.jsonl"))
    lines = said("compare", "A=old", "B=new").splitlines()
    assert lines[3] == "b: new failed 8 of 10"
    tables = [analyse(parsed(), with_failures(0, 3, given_up=True), "here"), analyse(parsed(), with_failures(2, 8), "")]
    assert compare.failed(*tables) == ["b: old failed 3 of 3 and was given up, new failed 8 of 10"]
    again = saved.from_text(saved.to_text(tables[0], "x"), parsed(), "x")
    assert again and again.run == tables[0].run
