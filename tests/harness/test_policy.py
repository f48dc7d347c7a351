"""The ledger's words: what is made of a rule's verdict, and claims whose judge is a test or a source."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from quest.ground.errors import InputError
from quest.measure import records
from quest.report import claims, tested, verdicts
from quest.report.claims import Claim, JudgedClaim
from quest.report.measured import Library
from quest.report.rules import HOLDS, UNDECIDED, VERDICTS, Judgement
from quest.spec import experiment_file
from tests.harness.made_up import Tree, parsed, repetition, run_record, write

pytest.importorskip("scipy")

CLAIM = Claim(id=9, source="talk", kind="testable", text="It is so.")
MODEL = {"holds": "in the model: holds"} | dict.fromkeys(claims.FAILS, "in the model: fails")
NEVER = dict.fromkeys(claims.FAILS, "never so")


@pytest.mark.parametrize(
    ("policy", "words", "within"),
    [
        ({}, {}, ""),
        ({"model": True}, MODEL, ""),
        ({"never": "POSIX"}, NEVER, ""),
        ({"flips": "it does"}, {}, ""),
        ({"flips": "it does"}, {v: "not decided" for v in VERDICTS if v not in UNDECIDED}, "within one session"),
        ({"flips": "it does", "model": True}, MODEL, ""),
    ],
)
def test_a_rules_word_and_the_ledgers(policy: dict[str, object], words: dict[str, str], within: str) -> None:
    """Every word that is not among these stays what it was."""
    claim = Claim(id=9, source="talk", kind="testable", text="It is so.", **policy)  # type: ignore[arg-type]
    for verdict in VERDICTS:
        found = claims.in_words(claim, Judgement(verdict, "why", within=within))
        assert found.verdict == words.get(verdict, verdict), verdict
        assert "why" in found.why or found.verdict == "not decided"


def test_a_policy_is_in_the_hash_and_prose_is_not() -> None:
    rule = claims.RuleUse("exists", {"a": "a.us"}, {})
    hashes = {
        claims.claim_hash(Claim(id=9, source="talk", kind="testable", text=text, rules=(rule,), **more))
        for text in ("one", "two")
        for more in ({}, {"model": True}, {"never": "POSIX"}, {"never": "SUS"}, {"flips": "it does"})
    }
    assert len(hashes) == 4


# ---- a test as the judge ------------------------------------------------------------------------

LEDGER = """\
[[claim]]
id = 1
source = "talk"
kind = "testable"
text = "It cannot be otherwise."
test = "tests/x/test_y.py::test_z"
passing = "{passing}"

[[claim]]
id = 2
source = "talk"
kind = "partly"
text = "It was said."
never = "the source's own table"
"""
TEST = "tests/x/test_y.py::test_z"
HERE, REFERENCE = Path("build/results"), Path("reference")


@pytest.fixture
def place(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """place("holds") writes a ledger of a claim with a test and one with a source, in the tree we stand in."""
    monkeypatch.chdir(tree.root)

    def ledger(passing: str) -> None:
        experiment_file.LEDGER.write_text(LEDGER.format(passing=passing), encoding="utf-8")

    ledger("holds")
    return ledger


def judged(reference_only: bool = False) -> list[JudgedClaim]:
    return claims.judge_all(Library(HERE, REFERENCE, reference_only))


@pytest.mark.parametrize(
    ("passing", "outcome", "word"),
    [
        ("holds", "passed", "by a test: holds"), ("holds", "failed", "by a test: fails"),
        ("fails", "passed", "by a test: fails"), ("fails", "failed", "by a test: holds"),
    ],
)  # fmt: skip
def test_its_result_is_the_verdict(place: Callable[[str], None], passing: str, outcome: str, word: str) -> None:
    place(passing)
    tested.note(REFERENCE, {TEST: outcome})
    one, other = judged()
    assert (one["verdict"], one["standing"], one["source_run"]) == (word, word, "reference")
    assert one["why"] == f"{TEST} {outcome}" and one["rule"] == f"test({TEST})"
    assert (other["verdict"], other["why"], other["rule"]) == ("never so", "the source's own table", "")
    assert set(verdicts.counts([one, other]).partition(": ")[2].split(", ")) == {f"1 {word}", "1 never so"}


def test_ones_own_test_is_asked_first(place: Callable[[str], None]) -> None:
    assert [one["verdict"] for one in judged()] == ["not measured here", "never so"]
    assert judged()[0]["why"] == claims.MAKE_TESTS
    tested.note(REFERENCE, {TEST: "passed"})
    tested.note(HERE, {TEST: "failed"})
    assert (judged()[0]["verdict"], judged()[0]["source_run"]) == ("by a test: fails", "here")
    assert judged(reference_only=True)[0]["verdict"] == "by a test: holds"
    tested.note(HERE, {"another": "passed"})
    assert tested.read(HERE) == {TEST: "failed", "another": "passed"}


def test_one_case_that_fails_is_enough() -> None:
    def summed(*cases: tuple[str, str]) -> dict[str, str]:
        return tested.summed(cases, {TEST})

    assert summed((f"{TEST}[a]", "passed"), (f"{TEST}[b]", "failed"), (f"{TEST}[c]", "passed")) == {TEST: "failed"}
    assert summed((f"{TEST}[a]", "passed"), ("tests/x/test_y.py::test_other", "failed")) == {TEST: "passed"}
    assert summed(("tests/x/test_y.py::test_zz", "passed")) == {}


@pytest.mark.parametrize("text", ["{", "[]", '{"a": "skipped"}'])
def test_a_wrong_file_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / tested.FILE).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="tests.json: "):
        tested.read(tmp_path)


# ---- a bound from below -------------------------------------------------------------------------

BOUNDED = """\
[[claim]]
id = 1
source = "talk"
kind = "testable"
text = "a is more than b."
experiment = "sample"
reason = "as it says"
rule = { is = "RULE", a = "a.rate", b = "b.rate", bound = 1.5 }
"""
RATE = {"name": "rate", "scalar": "rate", "unit": "/s", "better": "higher"}


def bounded(rule: str, rates: Sequence[float]) -> str:
    """Of a, in all of whose rounds the client was at its limit, and b."""
    experiment_file.LEDGER.write_text(BOUNDED.replace("RULE", rule), encoding="utf-8")
    definition = parsed(metric=[RATE])
    found = records.ResultSet(HERE / "sample.jsonl", run_record(definition))
    for number in range(7):
        for variant, rate in zip("ab", rates, strict=True):
            scalars = {"rate": rate + number / 1000, "client_bound": float(variant == "a")}
            found.add(repetition(variant, number, samples={"ns": [1.0]}, scalars=scalars))
    found.add({"type": "end", "finished": "2026-11-21T12:00:00Z", "repetitions": 14, "failures": 0})
    write(found, HERE / "sample.jsonl")
    [one] = claims.judge_all(Library(HERE, REFERENCE, definitions=[definition]))
    return one["verdict"]


def test_a_client_at_its_limit_is_a_bound_from_below(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree.root)
    assert bounded("ratio_at_least", (40, 10)) == "not judged"
    assert bounded("exceeds", (40, 10)) == HOLDS
    assert bounded("exceeds", (12, 10)) == "not judged", "it could have been more"
