"""From result sets to tables, bound numbers and verdicts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from made_up import (
    BENCHMARKS,
    CHANGED,
    Tree,
    damaged,
    definition,
    end_record,
    parsed,
    repetition,
    result_set,
    run_record,
    write,
)

from harness.errors import InputError
from harness.report import check, claims, export
from harness.report import verdicts as verdicts_on_screen
from harness.run.records import ResultSet, Source, Writer
from harness.spec import experiment_file
from harness.spec.model import Experiment
from harness.statistics import analysis
from harness.statistics.analysis import Analysis, numbers

pytest.importorskip("scipy")

NUMBERS = [
    {"key": "gain", "ratio": ["b.us", "a.us"]},
    {"key": "more", "percent": ["b.us", "a.us"]},
    {"key": "apart", "difference": ["b.us", "a.us"], "unit": "µs"},
    {"key": "rate", "inverse": "a.us", "scale": 1e6, "unit": "calls/s"},
    {"key": "none", "ratio": ["a.us", "c.us"]},
]


def with_numbers() -> Experiment:
    variants = [*definition()["variant"], {"name": "c", "command": ["x"]}]
    return parsed(number=NUMBERS, variant=variants)


def values(value: float, count: int = 8) -> list[float]:
    return [value * (1 + 0.001 * i) for i in range(count)]


def analysed(count: int = 8) -> Analysis:
    found = with_numbers()
    data = {name: values(v, count) for name, v in (("a", 4e4), ("a+aa", 4.1e4), ("b", 8e4))}
    return Analysis(found, result_set(found, data))


# ---- reduction ----------------------------------------------------------------------------------


def curves() -> Analysis:
    axis = {"title": "alive", "column": "live", "bin_width": 10}
    found = parsed(x=axis)
    result = ResultSet(Path("x"), run_record(found))
    for number in range(6):
        samples = {"live": list(range(30)), "ns": [1000.0 * (x // 10 + 1) for x in range(30)]}
        result.add(repetition("a", number, samples=samples))
    result.add(end_record(6))
    return Analysis(found, result)


def test_a_column_is_cut_into_bins_with_fixed_centres() -> None:
    series = curves().series("a", "us")
    assert [p.x for p in series.points] == [5, 15, 25]
    assert [p.values[0] for p in series.points] == [1, 2, 3]
    assert series.overall.values[0] == 2
    assert len(series.points[0].raw) == 60


def test_first_and_last_are_keys_that_do_not_depend_on_the_profile() -> None:
    found = numbers(curves())
    assert found["a.us@first"] == found["a.us@5"]
    assert found["a.us@last"] == found["a.us@25"]
    assert found["a.us@last-x"].value == 25


def test_first_and_last_are_operands_too() -> None:
    done = curves()
    assert (done.point("a.us@first"), done.point("a.us@last")) == (
        done.point("a.us@5"),
        done.point("a.us@25"),
    )
    assert done.point("a.us@middle") is None
    assert done.point("b.us@last") is None


def test_an_x_that_is_called_last_is_that_x() -> None:
    found = parsed(
        sweep={"way": ["last", "other"]}, x={"title": "way", "parameter": "way"},
        metric=[{"name": "us", "scalar": "us"}],
    )  # fmt: skip
    result = ResultSet(Path("x"), run_record(found))
    for us, way in enumerate(("last", "other"), 1):
        result.add(repetition("a", 0, params={"way": way}, scalars={"us": us}))
    point = Analysis(found, result).point("a.us@last")
    assert point is not None
    assert point.values == {0: 1}


def test_an_error_is_never_a_fast_sample() -> None:
    found = parsed()
    result = ResultSet(Path("x"), run_record(found))
    samples = {"ns": [1000, 1, "-"], "error": ["-", "EMFILE", "-"]}
    result.add(repetition("a", 0, samples=samples))
    assert Analysis(found, result).series("a", "us").overall.raw == [1.0]


def test_a_second_parameter_makes_a_series_of_its_own() -> None:
    found = parsed(
        sweep={"n": [1, 2], "size": [10, 200]}, x={"title": "n", "parameter": "n"},
        metric=[{"name": "us", "scalar": "us"}],
    )  # fmt: skip
    result = ResultSet(Path("x"), run_record(found))
    for n in (2, 1):
        for size in (200, 10):
            result.add(repetition("a", 0, params={"n": n, "size": size}, scalars={"us": n * size}))
    done = Analysis(found, result)
    assert done.labels == ["a,size=10", "a,size=200"]
    series = done.series("a,size=200", "us")
    assert [(p.x, p.values[0]) for p in series.points] == [(1, 200), (2, 400)]
    assert series.overall.values == {0: 300}
    assert done.title("a,size=10") == "a, size=10"
    point = done.point("a,size=10.us@2")
    assert point is not None
    assert point.values == {0: 20}


def test_reductions() -> None:
    data = [float(i) for i in range(1, 101)]
    results = {name: reduce(data) for name, reduce in analysis.REDUCTIONS.items()}
    assert results == {
        "median": 50.5, "min": 1, "max": 100, "p90": pytest.approx(90.1),
        "p99": pytest.approx(99.01), "p999": pytest.approx(99.901), "sum": 5050, "count": 100,
        "jain": pytest.approx(5050**2 / (100 * 338350)),
    }  # fmt: skip


def test_jain_knows_equal_parts_and_one_who_has_all() -> None:
    assert analysis.jain([3.0] * 7) == pytest.approx(1)
    assert analysis.jain([0, 5.0, 0, 0]) == pytest.approx(0.25)
    assert analysis.jain([0.0, 0.0]) == 1


# ---- bound numbers ------------------------------------------------------------------------------


def test_derived_numbers() -> None:
    found = numbers(analysed())
    assert found["gain"].value == pytest.approx(2)
    assert found["more"].value == pytest.approx(100)
    assert found["apart"].value == pytest.approx(40.14)
    assert found["rate"].value == pytest.approx(24912.8, rel=1e-4)
    assert found["rate"].low is not None
    assert found["rate"].high is not None
    assert found["rate"].low < found["rate"].value < found["rate"].high
    assert "none" not in found
    assert found["floor.us"].value == pytest.approx(2.44, abs=0.01)


def test_no_interval_below_six_repetitions() -> None:
    found = numbers(analysed(5))
    assert all(number.low is None for number in found.values())


def test_the_text_of_an_entry() -> None:
    found = with_numbers()
    source = Source("here", result_set(found, {"a": values(4e4)}))
    number = numbers(Analysis(found, source.results))["a.us"]
    entry = export.entry(number, source)
    assert entry["text"] == "40.1 µs"
    assert entry["interval"] == "40.0–40.3 µs"
    assert entry["run"] == "run of 2026-11-21, Example, 2 cores, Linux 6.18, quick"


# ---- a whole export -----------------------------------------------------------------------------

LEDGER = """
[[claim]]
id = 9
source = "talk"
kind = "testable"
text = "a is faster than b."
then = "twice"
experiment = "sample"
rule = { is = "faster", a = "a.us", b = "b.us" }
[[claim]]
id = 8
source = "talk"
kind = "historical"
text = "It was so."
[[claim]]
id = 10
source = "talk"
kind = "testable"
text = "It will be seen."
planned = "event-wait"
"""


@pytest.fixture
def inside(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> Tree:
    tree.experiment(extra="")
    (tree.root / "benchmarks" / "claims.toml").write_text(LEDGER, encoding="utf-8")
    monkeypatch.chdir(tree.root)
    monkeypatch.delenv("RESULTS", raising=False)
    return tree


RESULTS, REFERENCE, DATA = Path("build/results"), Path("reference"), Path("build/data")


def fill(folder: Path, **data: float) -> Path:
    found = parsed()
    names = {name.replace("_", "+"): values(value) for name, value in data.items()}
    return write(result_set(found, names), folder / "sample.jsonl")


def exported() -> dict[str, Any]:
    assert export.export(RESULTS, REFERENCE, DATA) == 0
    found: dict[str, Any] = json.loads((DATA / "numbers.json").read_text(encoding="utf-8"))
    return found


def verdicts() -> dict[int, dict[str, Any]]:
    entries = json.loads((DATA / "claims.json").read_text(encoding="utf-8"))
    return {entry["id"]: entry for entry in entries}


def test_tables_for_gnuplot(inside: Tree) -> None:
    fill(RESULTS, a=4e4, b=8e4)
    exported()
    folder = DATA / "sample"
    header, line = (folder / "a.tsv").read_text(encoding="utf-8").splitlines()
    assert header.split("\t") == ["x", "us", "us_low", "us_high", "us_min", "us_p99", "n", "bound"]
    assert line.split("\t") == ["-", "40.14", "40", "40.28", "40", "-", "8", "0"]
    points = (folder / "points-b.tsv").read_text(encoding="utf-8").splitlines()
    assert points[0] == "x\tus\tround\tus_tukey"
    assert len(points) == 9
    meta = (folder / "meta.gp").read_text(encoding="utf-8")
    assert 'source = "here"' in meta
    assert 'variants = "a b"' in meta
    assert "titles = \"'a' 'b'\"" in meta
    assert 'missing = ""' in meta


def test_what_was_not_measured_here_comes_from_the_reference(inside: Tree) -> None:
    fill(RESULTS, a=4e4)
    fill(REFERENCE, a=5e4, b=8e4)
    found = exported()
    assert (found["sample.a.us"]["source"], found["sample.a.us"]["text"]) == ("here", "40.1 µs")
    assert found["sample.b.us"]["source"] == "reference"
    assert verdicts()[9]["verdict"] == "holds"
    assert verdicts()[9]["source_run"] == "reference"


def test_an_unfinished_set_is_not_shown(inside: Tree) -> None:
    path = fill(RESULTS, a=4e4, b=8e4)
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    fill(REFERENCE, a=5e4, b=8e4)
    assert exported()["sample.a.us"]["source"] == "reference"


def test_results_reference_shows_the_reference(
    inside: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(RESULTS, a=4e4, b=8e4)
    fill(REFERENCE, a=5e4, b=8e4)
    monkeypatch.setenv("RESULTS", "reference")
    assert exported()["sample.a.us"]["source"] == "reference"
    assert verdicts()[9]["source_run"] == "reference"
    monkeypatch.setenv("RESULTS", "mine")
    with pytest.raises(InputError, match="RESULTS=mine: must be here or reference"):
        exported()


def test_without_any_results_there_is_a_meta_that_says_so(inside: Tree) -> None:
    found = exported()
    assert list(found) == ["sample", "env"]
    assert (found["sample"]["text"], found["sample"]["source"]) == ("not measured", "none")
    meta = (DATA / "sample" / "meta.gp").read_text(encoding="utf-8")
    assert 'source = "none"' in meta
    assert 'missing = "not measured yet: make bench ONLY=sample"' in meta
    assert verdicts()[9]["verdict"] == "not measured here"


def test_a_variant_that_no_set_has_yet(inside: Tree) -> None:
    """Else a variant that is added breaks the book until the next reference run."""
    fill(REFERENCE, a=4e4)
    found = exported()
    assert found["sample.a.us"]["source"] == "reference"
    assert found["sample"]["text"] == "not measured"
    fill(REFERENCE, a=4e4, b=8e4)
    assert "sample" not in exported()


def test_nothing_is_rewritten_that_did_not_change(inside: Tree) -> None:
    fill(RESULTS, a=4e4, b=8e4)
    exported()
    before = {path: path.stat().st_mtime_ns for path in DATA.rglob("*") if path.is_file()}
    (DATA / "stamp").unlink()
    exported()
    after = {path: path.stat().st_mtime_ns for path in DATA.rglob("*") if path.is_file()}
    del before[DATA / "stamp"], after[DATA / "stamp"]
    assert after == before


def test_with_nothing_new_the_export_is_left_alone_and_scipy_too(inside: Tree) -> None:
    fill(RESULTS, a=4e4, b=8e4)
    assert inside.run("export", "--reference", "reference").returncode == 0
    code = (
        "import sys; from harness import cli\n"
        "for words in (['export'], ['claims', '--verdicts']):\n"
        "    print(cli.main([*words, '--reference', 'reference']), 'scipy' in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(BENCHMARKS)}
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment
    )
    lines = done.stdout.splitlines()
    assert (lines[0], lines[-1]) == ("0 False", "0 False")
    fill(RESULTS, a=4e4, b=9e4)  # now there is something to do, and both do it
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment
    )
    assert done.stdout.splitlines()[0] == "0 True"


def test_meta_changes_whenever_a_table_does(inside: Tree) -> None:
    fill(RESULTS, a=4e4, b=8e4)
    exported()
    before = (DATA / "sample" / "meta.gp").read_text(encoding="utf-8")
    fill(RESULTS, a=4e4, b=9e4)
    exported()
    assert (DATA / "sample" / "meta.gp").read_text(encoding="utf-8") != before


def test_tables_of_a_variant_that_is_gone_go(inside: Tree) -> None:
    fill(RESULTS, a=4e4, b=8e4)
    exported()
    fill(RESULTS, a=4e4)
    exported()
    assert not (DATA / "sample" / "b.tsv").exists()


def test_a_damaged_file_is_one_line_and_the_rest_is_exported(
    inside: Tree, capsys: pytest.CaptureFixture[str]
) -> None:
    inside.experiment("other")
    fill(RESULTS, a=4e4, b=8e4)
    (RESULTS / "other.jsonl").write_text("{}\n", encoding="utf-8")
    assert export.export(RESULTS, REFERENCE, DATA) == 1
    error = capsys.readouterr().err
    assert error == damaged("build/results/other.jsonl:1", "it has no check sum") + "\n"
    assert "sample.a.us" in json.loads((DATA / "numbers.json").read_text(encoding="utf-8"))
    assert export.export(RESULTS, REFERENCE, DATA) == 1  # said again, until it is mended


def test_an_edited_set_is_named_and_not_used(
    inside: Tree, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(REFERENCE, a=4e4, b=8e4)
    exported()
    reference = json.loads((DATA / "numbers.json").read_text(encoding="utf-8"))
    path = fill(RESULTS, a=4e4, b=8e4)
    path.write_bytes(re.sub(rb"\[(\d+)\.", rb"[\g<1>00.", path.read_bytes()))
    named = damaged("build/results/sample.jsonl:2", CHANGED) + "\n"
    assert export.export(RESULTS, REFERENCE, DATA) == 1
    assert capsys.readouterr().err == named
    assert json.loads((DATA / "numbers.json").read_text(encoding="utf-8")) == reference
    assert verdicts()[9]["source_run"] == "reference"
    assert check.check(RESULTS, REFERENCE) == 1
    assert capsys.readouterr().err == named


def test_latencies_become_shares_answered_within_a_time(inside: Tree) -> None:
    found = parsed()
    result = result_set(found, {"a": values(4e4)})
    for record in result.repetitions:
        record["histograms"] = {"total": [[1 << 20, 3], [1 << 21, 1]]}
    write(result, RESULTS / "sample.jsonl")
    exported()
    text = (DATA / "sample" / "distribution-a.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines()]
    assert rows[0] == ["ms", "within"]
    assert [row[1] for row in rows[1:]] == ["0", "0.75", "1"]
    assert float(rows[1][0]) == pytest.approx(1.04858)


# ---- claims -------------------------------------------------------------------------------------


def test_verdicts_come_from_the_data(inside: Tree) -> None:
    fill(RESULTS, a=4e4, b=8e4)
    exported()
    entry = verdicts()[9]
    assert entry["verdict"] == "holds"
    assert entry["source_run"] == "here"
    assert entry["then"] == "twice"
    assert entry["rule"] == "faster(a=a.us, b=b.us)"
    assert "a 40.1 µs, b 80.3 µs" in entry["numbers"]
    fill(RESULTS, a=8e4, b=4e4)
    exported()
    assert verdicts()[9]["verdict"] == "reversed"
    assert verdicts()[8]["why"] == "historical: it can only be cited"
    assert verdicts()[10]["why"] == "its experiment, event-wait, is still to come"


def test_a_claim_says_how_it_stands_where_it_is_shown_and_in_which_run(inside: Tree) -> None:
    fill(REFERENCE, a=4e4, b=8e4)
    exported()
    found = verdicts()
    assert [found[n]["standing"] for n in (8, 9, 10)] == ["historical", "holds", "no rule"]
    assert found[9]["source_title"] == "the talk, 2003"
    assert found[9]["chapters"] == list(parsed().chapters)
    assert found[9]["run"].startswith("run of ")
    assert (found[8]["chapters"], found[8]["run"]) == ([], "")


def test_a_chapter_of_its_own_comes_first(inside: Tree) -> None:
    experiment_file.LEDGER.write_text(
        LEDGER.replace('then = "twice"', 'chapter = "09-epoll"'), "utf-8"
    )
    fill(REFERENCE, a=4e4, b=8e4)
    exported()
    assert verdicts()[9]["chapters"] == ["09-epoll", *parsed().chapters]


def test_the_figure_of_the_verdicts_has_a_row_for_each_source(inside: Tree) -> None:
    fill(REFERENCE, a=4e4, b=8e4)
    exported()
    head, *rows = (DATA / "claims" / "verdicts.tsv").read_text(encoding="utf-8").splitlines()
    assert head.split("\t") == ["source", *claims.STANDINGS]
    assert rows == ["the talk, 2003\t1\t0\t0\t0\t0\t0\t1\t1"]
    meta = (DATA / "claims" / "meta.gp").read_text(encoding="utf-8")
    assert 'footer = "1 of 3 claims judged"' in meta
    assert 'source = "reference"' in meta
    # A figure is drawn again when its meta.gp has changed, so that has to change with the table.
    fill(RESULTS, a=8e4, b=4e4)
    exported()
    again = (DATA / "claims" / "meta.gp").read_text(encoding="utf-8")
    assert 'source = "here"' in again
    assert "'the talk, 2003', 0, 0, 1" in again


def test_without_a_verdict_the_figure_says_why(inside: Tree) -> None:
    exported()
    meta = (DATA / "claims" / "meta.gp").read_text(encoding="utf-8")
    assert 'source = "none"' in meta
    assert 'missing = "no claim has been judged yet: make"' in meta


def test_the_table_of_claims_fits_a_screen(
    inside: Tree, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    fill(RESULTS, a=4e4, b=8e4)
    entries = claims.judge_all(RESULTS, REFERENCE)
    assert verdicts_on_screen.show(entries, RESULTS, verdicts=True) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0].split() == ["9", "holds", "a", "is", "faster", "than", "b."]
    assert out.splitlines()[-1] == "3 claims: 1 holds, 1 historical, 1 not judged yet"
    assert max(len(line) for line in out.splitlines()) <= 80


def test_make_ends_with_the_failures(inside: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    path = fill(RESULTS, a=4e4, b=8e4)
    failure = {"type": "failure", "variant": "b", "params": {"n": 3}, "round": 9, "order": 9,
               "error": "b ended with status 1"}  # fmt: skip
    with Writer(path) as writer:
        writer.append(failure)
        writer.append({**end_record(16), "failures": 1})
    entries = claims.judge_all(RESULTS, REFERENCE)
    assert verdicts_on_screen.show(entries, RESULTS, verdicts=True) == 1
    assert capsys.readouterr().err == "failed: sample b: b ended with status 1\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("id = 10", "id = 9"), "claim 9 is there twice"),
        (('source = "talk"', 'source = "tlak"'),
         'claim 9: "source" must be one of talk, page, lighty, small-files, perlbal, raw-io, '
         'not "tlak"'),
        (('kind = "historical"', 'kind = "old"'),
         'claim 8: "kind" must be one of testable, partly, historical, other-system, not "old"'),
        (('is = "faster"', 'is = "quicker"'),
         'claim 9: rule: "is" must be one of faster, ratio_at_least, ratio_between, equal, flat, '
         'grows, linear, knee, at_least, at_most, about, exists, not "quicker"'),
        (('b = "b.us"', 'b = "c.us"'), 'claim 9: rule: unknown variant "c" in "c.us"'),
        (('b = "b.us"', 'b = "other:b.us"'),
         'claim 9: rule: unknown experiment "other" in "other:b.us"'),
        (('b = "b.us"', 'b = "gain"'), 'claim 9: rule: unknown number "gain"'),
        ((', b = "b.us"', ""), 'claim 9: rule: "b" is missing'),
        ((', b = "b.us"', ', b = "b.us", bound = 2'), 'claim 9: rule: unknown key "bound"'),
        (('experiment = "sample"', 'experiment = "simple"'),
         'claim 9: unknown experiment "simple"'),
        (('planned = "event-wait"', 'planned = "sample"'),
         'claim 10: the experiment "sample" is there: give the claim a rule'),
        (('planned = "event-wait"', ""),
         'claim 10: a rule, "planned" (an experiment to come) or "why" (not) is needed'),
        (('then = "twice"', 'them = "twice"'), 'claim 9: unknown key "them"'),
    ],
)  # fmt: skip
def test_a_mistake_in_the_ledger_is_one_line(
    inside: Tree, change: tuple[str, str], message: str
) -> None:
    text = LEDGER.replace(*change)
    assert text != LEDGER
    experiment_file.LEDGER.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as error:
        claims.load([parsed()])
    assert str(error.value) == f"benchmarks/claims.toml: {message}"


def test_every_rule_of_the_trees_own_ledger_names_what_exists(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(Path(__file__).resolve().parents[2])
    from harness.spec import experiment_file

    ledger = claims.load(experiment_file.load_all())
    assert len(ledger) >= 20
    named = [claim.chapter for claim in ledger if claim.chapter]
    assert named
    assert [slug for slug in named if not Path(f"chapters/{slug}.md").is_file()] == []


# ---- check --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("It took [sample.a.us]{.num}.", None),
        (
            "It took [sample.a.us@100]{.num form=interval}.",
            "number [sample.a.us@100]: sample has no x",
        ),
        ("It took [sample.c.us]{.num}.", 'number [sample.c.us]: unknown variant "c" in "c.us"'),
        ("[sample.gain]{.num}", 'number [sample.gain]: "gain" is no [[number]] of sample'),
        ("[simple.a.us]{.num}", 'number [simple.a.us]: unknown experiment "simple"'),
        ("[sample.floor.us]{.num} [env.cpu]{.num}", None),
        ("[env.host]{.num}", "number [env.host]: unknown: env has"),
        ("[9]{.verdict}", None),
        ("[11]{.verdict}", "claim 11 is not in benchmarks/claims.toml"),
        ('::: {.when claim=11 verdict="holds"}', "claim 11 is not in benchmarks/claims.toml"),
    ],
)
def test_keys_in_the_prose_are_checked(line: str, problem: str | None) -> None:
    found = list(check.line_problems(line, {"sample": parsed()}, {8, 9, 10}))
    if problem is None:
        assert found == []
    else:
        assert len(found) == 1
        assert found[0].startswith(problem)


def test_check_looks_at_everything(inside: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jsonschema")
    fill(RESULTS, a=4e4, b=8e4)
    assert check.check(RESULTS, REFERENCE) == 0
    assert capsys.readouterr().out == "in order: experiments 1, claims 3\n"
    (inside.root / "chapters").mkdir()
    (inside.root / "chapters" / "x.md").write_text("\n[sample.z.us]{.num}\n", encoding="utf-8")
    with Writer(RESULTS / "sample.jsonl") as writer:
        writer.append(repetition("a", 0, wall_s=-1))
    assert check.check(RESULTS, REFERENCE) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("build/results/sample.jsonl:19: wall_s: -1 is less than")
    assert lines[1].startswith("chapters/x.md:2: number [sample.z.us]: unknown variant")


def test_a_rule_across_two_experiments_names_both(inside: Tree) -> None:
    inside.experiment("other")
    other = parsed(id="other")
    write(result_set(other, {"a": values(2e4)}), RESULTS / "other.jsonl")
    fill(RESULTS, a=4e4, b=8e4)
    experiment_file.LEDGER.write_text(
        LEDGER.replace('b = "b.us"', 'b = "other:a.us"'), encoding="utf-8"
    )
    exported()
    entry = verdicts()[9]
    assert entry["verdict"] == "reversed"
    assert entry["why"] == "a (other) is faster than a (sample)"
