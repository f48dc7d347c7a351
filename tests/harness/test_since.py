"""The ledger of the claims since 2003: its form, its verdicts, and that it has no part in the judge of the first."""

import contextlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from quest.book.parts import read_parts
from quest.ground.errors import InputError
from quest.measure import chosen, records
from quest.report import check, claims, export, guards, judge, since
from quest.report.measured import Library
from quest.report.since import JudgedSince
from quest.spec import experiment_file
from tests.harness.made_up import EXPERIMENT, Tree, parsed, result_set, write
from tests.harness.test_judge import committed, git, needs_git, tagged

pytest.importorskip("scipy")

ROOT = Path(__file__).parents[2]
PAGE = Path("chapters/ledger-since.md")
RESULTS, REFERENCE, DATA = Path("build/results"), Path("reference"), Path("build/data")
RULE = 'experiment = "since-sample"\nrule = { is = "faster", a = "a.us", b = "b.us" }'
HOW = 'how = "Run it. It holds if it is so."'
ROW = """\
[[claim]]
id = {id}
since = 1
author = "A. Author"
work = "Why?"
date = "2017"
url = "https://example.org/why"
kind = "testable"
text = "a is faster."
source_checked = "found: the whole text"
disputed = ["B, 2018 (found)"]
{more}
"""


def rows(*texts: str) -> None:
    whole = "".join(ROW.format(id=1010 + number, more=more) for number, more in enumerate(texts))
    chosen.LEDGER_SINCE.write_text(whole, encoding="utf-8")


@pytest.fixture
def place(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """A tree with an experiment in each folder and a row with a rule, in which we stand."""
    tree.experiment(rounds=8)
    tree.program()
    monkeypatch.chdir(tree.root)
    chosen.SINCE.mkdir(parents=True)
    Path(chosen.SINCE / "since-sample.toml").write_text(
        EXPERIMENT.format(id="since-sample", rounds=8, extra=""), encoding="utf-8"
    )
    Path("benchmarks/claims.toml").write_text(
        '[[claim]]\nid = 1\nsource = "talk"\nkind = "historical"\ntext = "It was so."\n', encoding="utf-8"
    )
    rows(RULE)
    return tree


def measured(a: float, b: float) -> None:
    """A finished set of the reader's, in which a and b take so many nanoseconds, in eight rounds."""
    values = {name: [each + n for n in range(8)] for name, each in (("a", a), ("a+aa", a), ("b", b))}
    write(result_set(parsed(id="since-sample"), values), RESULTS / "since-sample.jsonl")


def judged() -> list[JudgedSince]:
    return since.judge_all(Library(RESULTS, REFERENCE, definitions=chosen.everything()))


# ---- the ledger itself --------------------------------------------------------------------------


def test_the_real_ledger_is_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    ledger = since.ledger()
    first = {claim.id for claim in claims.load(experiment_file.load_all())}
    assert len(ledger) > 50
    for row in ledger:
        assert row.id not in first
        assert row.id // 10 == 100 + row.since, "1010 and 1011 are of claim 1"
        assert row.checked in since.CHECKED
        assert not row.how or "It holds " in row.how, "with its line"


def test_the_page_has_each_row_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    named = [int(n) for some in re.findall(r'\.since since="([\d ]+)"', PAGE.read_text("utf-8")) for n in some.split()]
    assert sorted(named) == sorted({row.since for row in since.ledger()})
    assert PAGE.stem in read_parts().pages


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ("", 'claim 1010: one of "rule", "test", "how" (not measured yet) and "why" (it cannot be) is needed'),
        (f'{HOW}\nwhy = "no card"', "claim 1010: one of"),
        (f"{RULE}\n{HOW}", "claim 1010: one of"),
        (RULE.replace("since-sample", "since-none"), 'claim 1010: unknown experiment "since-none"'),
        (RULE.replace("b.us", "c.us"), 'claim 1010: rule: unknown variant "c" in "c.us"'),
        (f"{HOW}\nhalf_of = 3", "claim 1010: half of 3, which is no whole claim"),
        (f'{HOW}\nsource = "talk"', 'claim 1010: unknown key "source"'),
        (f'{HOW}\nprobes = "x"', 'claim 1010: unknown key "probes"; did you mean "probe"?'),
    ],
)
def test_a_mistake_is_one_line(place: Tree, more: str, problem: str) -> None:
    rows(more)
    with pytest.raises(InputError) as error:
        since.ledger()
    assert str(error.value).startswith(f"{chosen.LEDGER_SINCE}: {problem}")


@pytest.mark.parametrize("words", ["found", "seen: it", "Found: it"])
def test_a_source_that_was_not_checked_is_refused(place: Tree, words: str) -> None:
    text = chosen.LEDGER_SINCE.read_text("utf-8").replace("found: the whole text", words)
    chosen.LEDGER_SINCE.write_text(text, "utf-8")
    with pytest.raises(InputError, match='claim 1010: "source_checked" must begin with "found: ", "in part: " or'):
        since.ledger()


# ---- its verdicts -------------------------------------------------------------------------------


@pytest.mark.parametrize(("a", "b", "verdict"), [(1000, 2000, "holds"), (2000, 1000, "reversed")])
def test_a_row_is_judged_by_the_rules_of_the_first(place: Tree, a: float, b: float, verdict: str) -> None:
    measured(a, b)
    [one] = judged()
    assert (one["verdict"], one["standing"], one["source_run"]) == (verdict, verdict, "here")
    assert (one["author"], one["checked"], one["source_checked"]) == ("A. Author", "found", "the whole text")
    assert (one["judged"], one["sessions"]) == (since.NOT_REGISTERED, {"Example": 1})
    assert one["lacking"] == "within one session, your own"


def test_what_is_not_decided_says_why(place: Tree) -> None:
    rows(RULE, HOW, 'why = "no card"')
    found = {one["standing"]: one["why"] for one in judged()}
    assert found == {
        "not measured here": "it was not run",
        "not measured yet": "Run it. It holds if it is so.",
        "cannot be decided here": "no card",
    }
    assert {one["verdict"] for one in judged()} == {"not measured here"}
    assert {one["judged"] for one in judged()} == {""}


def test_the_ledger_is_printed_with_its_sources(place: Tree, said: Callable[..., str]) -> None:
    rows(RULE, HOW)
    measured(1000, 2000)
    whole = said("claims", "SINCE=yes")
    assert "1010  holds" in whole and "1011  not measured yet" in whole
    assert "said by A. Author: Why?, 2017; source checked: found" in whole
    assert "disputed: B, 2018 (found)" in whole
    assert "\n1 claim since 2003: 1 holds;" in said("claims", "SINCE=yes", "ONLY=1010")
    count = "2 claims since 2003: 1 holds, 1 not measured yet; figures checked in their sources: 2 found"
    assert whole.splitlines()[-1] == count
    assert "1011" not in said("claims", "SINCE=yes", "ONLY=since-sample")
    assert "ONLY=7: neither a claim" in said("claims", "SINCE=yes", "ONLY=7", status=2)
    assert "1010" not in said("claims")


def test_the_export_has_it_and_the_prose_may_name_it(place: Tree) -> None:
    measured(1000, 2000)
    assert export.export(RESULTS, REFERENCE, DATA) == 0
    [one] = json.loads((DATA / "since.json").read_text("utf-8"))
    assert (one["id"], one["verdict"], one["url"]) == (1010, "holds", "https://example.org/why")
    assert "since-sample.a.us" in json.loads((DATA / "numbers.json").read_text("utf-8"))
    Path("chapters").mkdir()
    Path("chapters/x.md").write_text("[1010]{.verdict}, [since-sample.a.us]{.num}\n", "utf-8")
    assert check.check(RESULTS, REFERENCE) == 0
    Path("chapters/x.md").write_text("[1011]{.verdict}\n", "utf-8")
    assert check.check(RESULTS, REFERENCE) == 1


def test_the_export_is_made_anew_when_the_judge_is_registered(place: Tree, said: Callable[..., str]) -> None:
    """Else the page of the ledger would call what is registered not registered."""
    now, hashes = since.current(), claims.hashes(since.ledger())
    found = result_set(parsed(id="since-sample"), {name: [1000.0 + n for n in range(8)] for name in ("a", "a+aa", "b")})
    found.run |= {"judge": now, "claims": hashes}
    write(found, RESULTS / "since-sample.jsonl")

    def judged_by() -> str:
        said("export")
        return str(json.loads((DATA / "since.json").read_text("utf-8"))[0]["judged"])

    assert judged_by() == since.NOT_REGISTERED
    judge.write_registration(judge.Registration(now, "2026-11-26", "b" * 40, hashes), judge.REGISTERED_SINCE)
    assert judged_by() == claims.REGISTERED


def test_a_number_is_in_one_ledger(place: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    text = chosen.LEDGER_SINCE.read_text("utf-8").replace("id = 1010", "id = 1")
    chosen.LEDGER_SINCE.write_text(text, "utf-8")
    assert check.check(RESULTS, REFERENCE) == 1
    assert f"claim 1 is in {experiment_file.LEDGER} and in {chosen.LEDGER_SINCE}" in capsys.readouterr().err


def test_no_guard_rests_on_it(place: Tree) -> None:
    """A finding of the text rests on the first ledger, whose judge is registered."""
    guards.GUARDS.parent.mkdir()
    guards.GUARDS.write_text('[guard.x]\nclaim = 1010\notherwise = "It is not."\n', "utf-8")
    assert check.check(RESULTS, REFERENCE) == 1


# ---- the two judges -----------------------------------------------------------------------------


def test_the_first_judge_does_not_know_of_it(place: Tree) -> None:
    before, own = judge.current(), since.current()
    Path(chosen.SINCE / "since-sample.toml").write_text(
        EXPERIMENT.format(id="since-sample", rounds=9, extra=""), encoding="utf-8"
    )
    assert judge.current() == before and since.current() != own
    files = {line.split("  ")[1] for line in judge.lines(ROOT, ROOT)}
    assert not {"quest/report/since.py", "quest/measure/chosen.py"} & files
    assert not [name for name in files if name.startswith(str(chosen.SINCE))]


def test_a_set_names_the_judge_of_its_ledger(place: Tree) -> None:
    done = place.bench("ONLY=since")
    assert done.returncode == 0, done.stderr
    assert "claim 1010: a is faster." in done.stdout
    [run] = place.of_type("run", "since-sample")
    [row] = since.ledger()
    assert run["judge"] == since.current() and run["claims"] == {"1010": claims.claim_hash(row)}
    assert not list(records.malformed_lines(place.results / "since-sample.jsonl"))
    [one] = judged()
    assert (one["judged"], one["verdict"]) == (since.NOT_REGISTERED, "not measured here"), "two rounds decide nothing"


@pytest.mark.slow
@pytest.mark.long
@needs_git
def test_a_session_needs_the_registered_judge_of_this_ledger(place: Tree, said: Callable[..., str]) -> None:
    git("init", "-q")
    committed()
    path = judge.REGISTERED_SINCE
    assert said("reference", "SINCE=yes", status=2) == (
        f"no judge is registered ({path}): make register SINCE=yes, then commit and tag it\n"
    )
    said("register", "SINCE=yes")
    assert not judge.REGISTERED.exists(), "the first ledger has a judge of its own"
    plan = judge.registered(path)
    assert plan and plan.judge == since.current() and plan.claims == claims.hashes(since.ledger())
    judge.write_registration(replace(plan, rounds=6), path)
    committed()
    tag = f"judge-{since.current()[:12]}"
    refused = said("reference", "SINCE=yes", status=2)
    assert refused.startswith(f"the registered judge has no tag {tag}") and f"commit {path}, then git tag" in refused
    tagged(tag)
    said("reference", "SINCE=yes", "SESSION=first")
    [measured] = Path("build/reference").glob("*/first/*.jsonl")
    assert measured.name == "since-sample.jsonl"
    Path("benchmarks/results").mkdir()
    found = Library(measured.parent, Path("benchmarks/results/reference"), definitions=chosen.everything())
    assert [one["judged"] for one in since.judge_all(found)] == [claims.REGISTERED]
    rows(RULE.replace("faster", "equal") + "\n" + HOW.replace("how", "reason"))
    committed()
    assert said("reference", "SINCE=yes", status=2).startswith("claims whose rules are not the registered ones: 1010;")
    assert [one["judged"] for one in since.judge_all(found)] == [claims.ANEW]


def kept(id: str, cpu: str, folder: Path = Path("benchmarks/results/reference")) -> None:
    """A finished set of the reference, measured on `cpu`."""
    found = result_set(parsed(id=id), {name: [1000.0 + n for n in range(8)] for name in ("a", "a+aa", "b")})
    found.run["environment"] = {"cpu": cpu, "cores": 2, "kernel": "Linux 6.18"}
    write(found, folder / f"{id}.jsonl")


def test_the_reference_of_each_ledger_may_be_of_another_processor(place: Tree) -> None:
    kept("sample", "AMD EPYC")
    kept("since-sample", "Intel Xeon")
    reference = Path("benchmarks/results/reference")
    assert list(check.session_problems(reference)) == []
    Path(chosen.SINCE / "since-other.toml").write_text(
        EXPERIMENT.format(id="since-other", rounds=8, extra=""), encoding="utf-8"
    )
    kept("since-other", "AMD EPYC")
    assert list(check.session_problems(reference)) == [f"{reference}: of more than one cpu: AMD EPYC, Intel Xeon"]


# ---- which experiments --------------------------------------------------------------------------


def test_the_second_folder_is_measured_by_name(place: Tree) -> None:
    def ids(*only: str) -> list[str]:
        return [one.id for one in chosen.load_all(only)]

    assert (ids(), ids("sample"), ids("since")) == (["sample"], ["sample"], ["since-sample"])
    assert ids("since-sample", "sample") == ["sample", "since-sample"]
    assert [one.id for one in chosen.everything()] == ["sample", "since-sample"]
    with pytest.raises(InputError, match='unknown experiment "since-sampel"'):
        ids("since-sampel")
    with pytest.raises(InputError, match='unknown experiment "sampel"'):
        ids("since", "sampel")
    Path(chosen.SINCE / "other.toml").write_text(EXPERIMENT.format(id="other", rounds=8, extra=""), encoding="utf-8")
    with pytest.raises(InputError, match='other.toml: its name must begin with "since-"'):
        ids("since")


def test_a_tree_without_it_has_none(tree: Tree) -> None:
    tree.experiment()
    with contextlib.chdir(tree.root):
        assert since.ledger() == [] and [one.id for one in chosen.everything()] == ["sample"]
        with pytest.raises(InputError, match="no such folder"):
            chosen.load_all(["since"])
