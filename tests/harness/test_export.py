"""From result sets to tables, bound numbers and verdicts."""

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from quest.ground.errors import InputError
from quest.measure import chosen, records
from quest.measure.load_tools import bucket_edges
from quest.measure.records import Record, ResultSet, Writer
from quest.report import bound, check, claims, export, judge, tsv, verdicts
from quest.report.measured import Library
from quest.report.rules import RULES
from quest.spec import experiment_file
from quest.spec.model import Derived, Experiment
from quest.stats import analysis, saved
from quest.stats.analysis import analyse
from quest.stats.estimates import median
from quest.stats.table import Number, NumberTable
from tests.harness.made_up import (
    BENCHMARKS,
    CHANGED,
    Tree,
    damaged,
    definition,
    end_record,
    lines,
    parsed,
    repetition,
    result_set,
    run_record,
    write,
    write_lines,
)

pytest.importorskip("scipy")


def values(value: float, count: int = 8) -> list[float]:
    return [value * (1 + 0.001 * i) for i in range(count)]


def reduced(found: Experiment, *repetitions: Record) -> NumberTable:
    result = ResultSet(Path("x"), run_record(found))
    for one in repetitions:
        result.add(one)
    result.add(end_record(len(repetitions)))
    return analyse(found, result, "here")


def sweeping(**values: list[Any]) -> Experiment:
    """Over the first of them."""
    axis = {"title": "x", "parameter": next(iter(values))}
    return parsed(sweep=values, x=axis, metric=[{"name": "us", "scalar": "us"}])


def at(table: NumberTable, operand: str) -> Mapping[int, float] | None:
    row = table.row(operand)
    return row.rounds if row else None


# ---- reduction -----------------------------------------------------------------------------------


def test_a_column_is_cut_into_bins_with_fixed_centres() -> None:
    samples = {"live": list(range(30)), "ns": [1000.0 * (x // 10 + 1) for x in range(30)]}
    axis = {"title": "alive", "column": "live", "bin_width": 10}
    done = reduced(parsed(x=axis), *(repetition("a", n, samples=samples) for n in range(6)))
    series = done.series["a"]["us"]
    assert [(p.x, p.rounds[0]) for p in series.points] == [(5, 1), (15, 2), (25, 3)]
    assert at(done, "a.us") == dict.fromkeys(range(6), 2)
    # Keys that do not depend on how far the profile went; operands of rules as well.
    found = done.numbers
    assert found["a.us@first"] == found["a.us@5"]
    assert found["a.us@last"] == found["a.us@25"]
    assert found["a.us@last-x"].value == 25
    assert done.row("a.us@last") is done.row("a.us@25")
    assert done.row("a.us@middle") is done.row("b.us@last") is None


def test_an_x_that_is_called_last_is_that_x() -> None:
    ways = [repetition("a", 0, params={"way": w}, scalars={"us": len(w)}) for w in ("last", "other")]
    assert at(reduced(sweeping(way=["last", "other"]), *ways), "a.us@last") == {0: 4}


def test_an_error_is_never_a_fast_sample() -> None:
    samples = {"ns": [1000, 1, "-"], "error": ["-", "EMFILE", "-"]}
    done = reduced(parsed(), repetition("a", 0, samples=samples))
    assert at(done, "a.us") == {0: 1}


def test_what_is_no_error_is_a_sample() -> None:
    samples = {"ns": [1000, 3000, 1], "error": [0, "", "EMFILE"]}
    assert at(reduced(parsed(), repetition("a", 0, samples=samples)), "a.us") == {0: 2}


def test_what_has_no_x_is_in_no_bin() -> None:
    alive = {"title": "alive", "column": "live"}
    each = {"live": ["-", 3], "ns": [9000, 1000]}, {"ns": [1000]}
    for axis, x in ((alive, 3), (alive | {"bin_width": 10}, 5)):
        done = reduced(parsed(x=axis), *(repetition("a", n, samples=of) for n, of in enumerate(each)))
        assert [(p.x, p.rounds) for p in done.series["a"]["us"].points] == [(x, {0: 1})]
        assert at(done, "a.us") == {0: 5}


def test_the_least_and_the_99th_percentile_are_of_all_samples() -> None:
    samples = [{"ns": [1000 * (i + 25 * n + 1) for i in range(25)]} for n in range(4)]
    whole = reduced(parsed(), *(repetition("a", n, samples=s) for n, s in enumerate(samples)))
    fewer = reduced(parsed(), *(repetition("a", n, samples=s) for n, s in enumerate(samples[1:])))
    found = [table.series["a"]["us"].points[0] for table in (whole, fewer)]
    assert [(row.least, row.p99) for row in found] == [(1, pytest.approx(99.01)), (26, None)]


def test_a_second_parameter_makes_a_series_of_its_own() -> None:
    pairs = [{"n": n, "size": size} for n in (2, 1) for size in (200, 10)]
    each = [repetition("a", 0, params=p, scalars={"us": p["n"] * p["size"]}) for p in pairs]
    done = reduced(sweeping(n=[1, 2], size=[10, 200]), *each)
    assert list(done.series) == ["a,size=10", "a,size=200"]
    series = done.series["a,size=200"]["us"]
    assert [(p.x, p.rounds[0]) for p in series.points] == [(1, 200), (2, 400)]
    assert at(done, "a,size=200.us") == {0: 300}
    assert done.title("a,size=10") == "a, size=10"
    assert at(done, "a,size=10.us@2") == {0: 20}


@pytest.mark.parametrize(
    ("sizes", "ordered"), [([10, 9], "9 10"), (["yes", "no"], "no yes"), (["close", 10, 9.5], "9.5 10 close")]
)
def test_series_stand_in_the_order_of_numbers_and_then_of_texts(sizes: list[Any], ordered: str) -> None:
    each = [repetition("a", 0, params={"n": 1, "size": size}, scalars={"us": 1}) for size in sizes]
    assert list(reduced(sweeping(n=[1], size=sizes), *each).series) == [f"a,size={size}" for size in ordered.split()]


WAIT = [{"name": "us", "scalar": "us", "unit": "µs"}]


def test_what_disturbed_one_x_has_disturbed_all_of_them_together() -> None:
    def one(number: int, n: int, *marks: str, **scalars: float) -> Record:
        return repetition("a", number, params={"n": n}, scalars={"us": 1.0, **scalars}, marks=[*marks])

    found = parsed(sweep={"n": [1, 2]}, x={"title": "x", "parameter": "n"}, metric=WAIT)
    noisy, bound_here = one(0, 1, "noisy", foreign_share=0.3), one(1, 2, client_bound=1)
    row = reduced(found, noisy, one(0, 2), one(1, 1), bound_here, one(2, 1), one(2, 2)).row("a.us")
    assert row and row.unusable(0.1) == {0: "noisy", 1: "client-bound"}


def test_short_rounds_that_are_noisy_together_are_marked() -> None:
    """None of them has a mark of its own."""
    short = [repetition("a", n, scalars={"us": 1.0, "foreign_s": 0.03, "available_s": 0.1}) for n in range(7)]
    row = reduced(parsed(metric=WAIT), *short).row("a.us")
    assert row and row.number.marks == ("noisy",) and set(row.taken) == set(range(7))


def test_latencies_of_all_rounds_are_put_together_from_when_they_were_due() -> None:
    due = {"total": [[4096, 9]], "total_from_intended": [[4096, 1], [8192, 2]]}
    each = [
        repetition(name, n, params={"n": 1}, scalars={"us": 1}, histograms=of)
        for name, of in (("a", due), ("b", {"total": [[4096, 5]]}))
        for n in range(2)
    ]
    found = reduced(sweeping(n=[1]), *each).raw.distributions
    assert found == {("a", "1"): {4096: 2, 8192: 4}, ("b", "1"): {4096: 10}}


@pytest.mark.parametrize(("noisy", "count", "warns"), [(2, 4, True), (2, 5, False), (0, 0, False)])
def test_a_run_is_noisy_from_one_half_on(noisy: int, count: int, warns: bool) -> None:
    result = result_set(parsed(), {"a": [1.0] * count})
    for one in result.repetitions[:noisy]:
        one["marks"] = ["noisy"]
    assert analysis.run_of(parsed(), result).half_noisy is warns


def test_a_table_that_is_kept_is_the_same_and_no_other_text_is_one() -> None:
    found = parsed(number=[{"key": "gain", "ratio": ["b.us", "a.us"]}])
    each = [
        repetition(name, n, samples={"ns": [1000 * (i + n + 1) for i in range(25)]})
        for n, name in product(range(7), ("a", "a+aa", "b"))
    ]
    each[0] |= {"marks": ["noisy"], "scalars": {"foreign_share": 0.3}}
    each[3] |= {"scalars": {"client_bound": 1}}
    whole = reduced(found, *each)
    row = whole.series["a"]["us"].points[0]
    assert (row.p99, set(row.taken), set(row.spoilt)) == (30, {0}, {1}), "all that a row may have"
    text = saved.to_text(whole, "x")
    assert saved.from_text(text, found, "x") == whole
    assert saved.from_text(text, found, "y") is None
    for other in ("", "x\n", "[]\n", '{"made_from":"x"}\n', f'{text.splitlines()[0]}\n"x"\n'):
        assert saved.from_text(other, found, "x") is None


def test_reductions() -> None:
    data = [float(i) for i in range(1, 101)]
    assert {name: reduce(data) for name, reduce in analysis.REDUCTIONS.items()} == {
        "median": 50.5, "min": 1, "max": 100, "p90": pytest.approx(90.1),
        "p99": pytest.approx(99.01), "sum": 5050, "jain": pytest.approx(5050**2 / (100 * 338350)),
    }  # fmt: skip
    assert analysis.jain([0, 5.0, 0, 0]) == pytest.approx(0.25)
    assert analysis.jain([0.0, 0.0]) == 1


def test_derived_numbers() -> None:
    found = parsed(
        number=[
            {"key": "gain", "ratio": ["b.us", "a.us"]},
            {"key": "apart", "difference": ["b.us", "a.us"], "unit": "µs"},
            {"key": "rate", "inverse": "a.us", "scale": 1e6, "unit": "calls/s"},
            {"key": "none", "ratio": ["a.us", "c.us"]},
        ],
        variant=[*definition()["variant"], {"name": "c", "command": ["x"]}],
    )

    def of(count: int) -> dict[str, Number]:
        data = {name: values(v, count) for name, v in (("a", 4e4), ("a+aa", 4.1e4), ("b", 8e4))}
        return analyse(found, result_set(found, data), "here").numbers

    made = of(8)
    rate = made["rate"]
    assert (made["gain"].value, made["apart"].value) == pytest.approx((2, 40.14))
    assert rate.value == pytest.approx(24912.8, rel=1e-4)
    assert (rate.low or 0) < rate.value < (rate.high or 0)
    assert "none" not in made
    assert made["floor.us"].value == pytest.approx(2.44, abs=0.01)
    assert all(number.low is None for number in of(5).values())


def of_each_round(table: NumberTable, wanted: Derived) -> list[float]:
    """What a rule is given of a [[number]]."""
    rows = [row for operand in wanted.operands if (row := table.row(operand))]
    return [*claims._of_each_round(wanted, rows, 0.1).values()]


def test_numbers_are_scaled_and_so_are_those_that_a_rule_is_given() -> None:
    found = parsed(
        number=[
            {"key": "percent", "ratio": ["b.us", "a.us"], "scale": 100},
            {"key": "apart", "difference": ["b.us", "a.us"], "scale": 1e-3},
            {"key": "rate", "inverse": "a.us", "scale": 1e6},
            {"key": "twice", "value": "a.us", "scale": 2},
        ]
    )
    made = analyse(found, result_set(found, {"a": values(4e4), "b": values(8e4)}), "here")
    expected = {"percent": 200, "apart": 0.04014, "rate": 24912.8, "twice": 80.28}
    assert {key: number.value for key, number in made.derived.items()} == pytest.approx(expected, rel=1e-5)
    assert {one.key: median(of_each_round(made, one)) for one in found.derived} == pytest.approx(expected, rel=1e-5)


def test_a_number_that_cannot_be_computed_is_not_there() -> None:
    """Nothing has an inverse, or a ratio to 0; nor has what shares no round with another."""
    found = parsed(
        number=[
            {"key": "gain", "ratio": ["b.us", "a.us"]},
            {"key": "apart", "difference": ["b.us", "a.us"]},
            {"key": "rate", "inverse": "a.us"},
        ]
    )
    nothing = analyse(found, result_set(found, {"a": [0.0] * 8, "b": [8e4] * 8}), "here")
    assert set(nothing.derived) == {"apart"}
    assert [of_each_round(nothing, one) for one in found.derived] == [[], [80] * 8, []]
    rounds = [("a", n) for n in range(4)] + [("b", n) for n in range(4, 8)]
    each = [repetition(name, n, samples={"ns": [1000]}) for name, n in rounds]
    assert set(reduced(found, *each).derived) == {"rate"}


def test_a_round_in_which_a_twin_has_nothing_is_left_out() -> None:
    data = {"a": [1000.0, 1000.0, 0.0], "a+aa": [1000.0, 2000.0, 1000.0]}
    twins = analyse(parsed(), result_set(parsed(), data), "here").twins("us", None, 0.1)
    assert twins == {"a": pytest.approx({0: 0.0, 1: -math.log(2)})}


def test_a_pair_at_one_x_is_the_noise_of_all() -> None:
    """And not what a has at all x beside what a+aa has at one."""
    found = parsed(x={"parameter": "n", "title": "n"}, sweep={"n": [1, 2]})
    result = result_set(found, {})
    measured = (("a", 1, 1000), ("a", 2, 9000), ("a+aa", 1, 1100))
    for number, (name, n, ns) in product(range(8), measured):
        result.add(repetition(name, number, params={"n": n}, samples={"ns": [ns]}))
    whole = analyse(found, result, "here")
    assert [whole.noise_floor("us", x) for x in (1, 2, None)] == pytest.approx([1 / 11] * 3)


def test_a_long_distribution_is_thinned_and_stays_what_it_is() -> None:
    uppers, counts = list[int](), dict[float, int]()
    while len(uppers) < 1000:
        lower, upper = bucket_edges(uppers[-1] if uppers else 0)
        counts[float(lower)] = 1
        uppers.append(upper)
    within = {f"{upper / 1e6:.6g}": f"{number / 1000:.6g}" for number, upper in enumerate(uppers, 1)}
    first, *rest = [line.split("\t") for line in tsv._distribution(counts).splitlines()[1:]]
    assert first == ["0", "0"] and rest[-1] == [f"{uppers[-1] / 1e6:.6g}", "1"]
    assert tsv.MOST_STEPS * 0.9 < len(rest) <= tsv.MOST_STEPS
    assert all(within[ms] == share for ms, share in rest)


def test_the_environment_is_that_of_the_newest_run_and_ones_own_comes_first() -> None:
    whole = reduced(parsed(), repetition("a", 0, samples={"ns": [1000]}))

    def begun(origin: str, day: int) -> NumberTable:
        run = replace(whole.run, started=f"2026-11-{day}T12:00:00Z", environment={"cpu": f"{origin} {day}"})
        return replace(whole, origin=origin, run=run)

    reference = [begun("reference", day) for day in (21, 29, 25)]
    for tables, cpu in ((reference, "reference 29"), ([*reference, begun("here", 24), begun("here", 22)], "here 24")):
        assert bound.environment_entries(tables)["env.cpu"]["text"] == cpu


# ---- a whole export ------------------------------------------------------------------------------

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
why = "nobody has measured it."
"""
RESULTS, REFERENCE, DATA = Path("build/results"), Path("reference"), Path("build/data")


@pytest.fixture
def inside(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> Tree:
    tree.experiment(extra="")
    (tree.root / "benchmarks" / "claims.toml").write_text(LEDGER, encoding="utf-8")
    monkeypatch.chdir(tree.root)
    return tree


def fill(folder: Path, *marks: str, count: int = 8, n: int = 3, **data: float) -> Path:
    names = {name: values(value, count) for name, value in data.items()}
    result = result_set(parsed(), names)
    for one in result.repetitions:
        one |= {"marks": list(marks), "params": {"n": n}}
    return write(result, folder / "sample.jsonl")


def read(name: str) -> str:
    return (DATA / name).read_text(encoding="utf-8")


def exported(expected: int = 0, reference_only: bool = False) -> dict[str, Any]:
    assert export.export(RESULTS, REFERENCE, DATA, reference_only) == expected
    found: dict[str, Any] = json.loads(read("numbers.json"))
    return found


def claim(number: int) -> dict[str, Any]:
    found: dict[str, Any] = next(e for e in json.loads(read("claims.json")) if e["id"] == number)
    return found


def test_what_was_not_measured_here_comes_from_the_reference(inside: Tree) -> None:
    assert list(found := exported()) == ["sample", "env"]
    assert (found["sample"]["text"], found["sample"]["source"]) == ("not measured", "none")
    assert 'missing = "not measured yet: make bench ONLY=sample"' in read("sample/meta.gp")
    assert claim(9)["verdict"] == "not measured here"
    # A variant that no set has yet must not break the book until the next reference run.
    fill(REFERENCE, a=5e4)
    found = exported()
    assert found["sample.a.us"]["source"] == "reference"
    assert found["sample"]["text"] == "not measured"
    fill(REFERENCE, a=5e4, b=8e4)
    unfinished = fill(RESULTS, a=4e4)
    whole = unfinished.read_text()
    unfinished.write_text("".join(whole.splitlines(keepends=True)[:-1]))
    assert exported()["sample.a.us"]["source"] == "reference"
    unfinished.write_text(whole)
    found = exported()
    assert "sample" not in found
    assert (found["sample.a.us"]["source"], found["sample.a.us"]["text"]) == ("here", "40.1 µs")
    assert found["sample.b.us"]["source"] == "reference"
    # In a figure the reference's curves stand beside the reader's own.
    assert 'reference_variants = "a b"' in read("sample/meta.gp")
    assert "; with" not in read("sample/meta.gp")
    # What failed is told, and what failed each time has a place in a figure.
    fell = [
        {"type": "failure", "variant": name, "params": {"n": 3}, "round": n, "order": 90 + n}
        for name, count in (("a", 2), ("b", 3))
        for n in range(10, 10 + count)
    ]
    texts = [json.dumps(record | {"error": "it fell"}) for record in fell]
    made = result_set(parsed(), {"a": values(4e4, 8)})
    write_lines([*map(json.dumps, lines(made)[:-1]), *texts, json.dumps(made.end)], unfinished)
    exported()
    assert 'failed = "a: failed 2 of 10; b: failed 3 of 3"' in read("sample/meta.gp")
    assert 'failed_in_part = "a"\nfailed_in_part_texts = "\'failed 2 of 10\'"' in read("sample/meta.gp")
    assert 'failed_variants = "b"\n' in read("sample/meta.gp")
    assert "failed_texts = \"'failed 3 of 3'\"\n" in read("sample/meta.gp")
    fill(RESULTS, a=4e4, n=4)
    exported()
    assert '; with n=3 (here 4)"\n' in read("sample/meta.gp")
    unfinished.write_text(whole)
    exported()
    assert (claim(9)["verdict"], claim(9)["source_run"]) == ("holds", "reference")
    beside = read("sample/reference-a.tsv")
    assert not (DATA / "sample/b.tsv").exists(), "what is gone goes"
    assert exported(reference_only=True)["sample.a.us"]["source"] == "reference"
    assert read("sample/a.tsv") == beside
    assert not (DATA / "sample/reference-a.tsv").exists()
    assert [records.wants_reference(word) for word in ("", "here", "reference")] == [False, False, True]
    with pytest.raises(InputError, match="RESULTS=mine: must be here or reference"):
        records.wants_reference("mine")


def test_with_nothing_new_the_export_is_left_alone_and_scipy_too(inside: Tree) -> None:
    code = (
        "import pathlib, sys; from quest.command import measuring\n"
        "measuring.REFERENCE = pathlib.Path('reference')\n"
        "for goal in (measuring.export, measuring.verdict):\n"
        "    print(goal({}), 'scipy' in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(BENCHMARKS.parent)}

    def said() -> list[str]:
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        return done.stdout.splitlines()

    for value in (8e4, 9e4):
        fill(RESULTS, a=4e4, b=value)
        assert said()[0] == "0 True"
        lines = said()
        assert (lines[0], lines[-1]) == ("0 False", "0 False")


def test_whatever_an_export_is_made_of_makes_it_old(inside: Tree) -> None:
    """Whether it is new or another."""
    reference = Path("benchmarks/results/reference")
    made_of = [
        experiment_file.LEDGER, chosen.LEDGER_SINCE, inside.experiments / "sample.toml", chosen.SINCE / "since-x.toml",
        experiment_file.RATIOS, experiment_file.MACHINES / "atom.zip", judge.REGISTERED, judge.REGISTERED_SINCE,
        Path("benchmarks/judges/x.json"), Path("chapters/guards.toml"), reference / "sample.jsonl",
        reference / "tests.json", RESULTS / "sample.jsonl", RESULTS / "tests.json",
        reference.with_name("sessions") / "amd-epyc/one/sample.jsonl",
    ]  # fmt: skip
    unseen = list[Path]()
    stamp = verdicts.stamp_of(RESULTS, reference, False)
    for path in made_of:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write("#\n")
        before, stamp = stamp, verdicts.stamp_of(RESULTS, reference, False)
        unseen += [path] if stamp == before else []
    assert unseen == []
    assert verdicts.stamp_of(RESULTS, reference, True) != stamp


def test_what_is_damaged_is_named_and_not_used(inside: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    inside.experiment("other")
    fill(REFERENCE, a=4e4, b=8e4)
    reference = exported()
    path = fill(RESULTS, a=4e4, b=8e4)
    path.write_bytes(re.sub(rb"\[(\d+)\.", rb"[\g<1>00.", path.read_bytes()))
    (RESULTS / "other.jsonl").write_text("{}\n", encoding="utf-8")
    named = {
        damaged("build/results/other.jsonl:1", "it has no check sum"),
        damaged("build/results/sample.jsonl:2", CHANGED),
    }
    for _ in range(2):  # said again, until it is mended
        assert exported(1) == reference
        assert set(capsys.readouterr().err.splitlines()) == named
    assert claim(9)["source_run"] == "reference"
    assert check.check(RESULTS, REFERENCE) == 1
    assert set(capsys.readouterr().err.splitlines()) == named


# ---- claims --------------------------------------------------------------------------------------


def test_a_page_can_warn_of_numbers_of_a_busy_machine(inside: Tree) -> None:
    def warned() -> set[bool]:
        exported()
        found = json.loads(read("numbers.json"))
        return {"noisy" in one for key, one in found.items() if key.startswith("sample.")}

    fill(REFERENCE, "noisy", a=4e4, b=8e4)
    assert warned() == {False}, "of one's own machine alone"
    fill(RESULTS, "noisy", a=4e4, b=8e4)
    assert warned() == {True}
    fill(RESULTS, a=4e4, b=8e4)
    assert warned() == {False}


def test_why_a_claim_cannot_be_judged(inside: Tree) -> None:
    def said(reference_only: bool = False) -> tuple[str, str, str]:
        exported(reference_only=reference_only)
        return claim(9)["verdict"], claim(9)["source_run"], claim(9)["why"]

    noisy, few = "the data is noisy (0 of 8 usable)", "too few repetitions: 3, and 6 are needed"
    assert said() == ("not measured here", "here", "it was not run")
    fill(REFERENCE, "noisy", a=4e4, b=8e4)
    assert said() == ("not judged", "reference", noisy)
    fill(RESULTS, "noisy", a=4e4, b=8e4)
    assert said() == ("not judged", "here", noisy)
    fill(REFERENCE, a=4e4, b=8e4, count=3)
    skipped = result_set(parsed(), {"a": values(4e4)})
    for variant in ("z", "b"):
        skipped.add({"type": "skip", "variant": variant, "reason": f"no {variant} here"})
    write(skipped, RESULTS / "sample.jsonl")
    assert said() == ("not measured here", "here", "no b here")
    assert said(reference_only=True) == ("not measured here", "reference", few)


def test_make_ends_with_verdicts_and_failures(
    inside: Tree, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    path = fill(RESULTS, a=4e4, b=8e4)
    entries = claims.judge_all(Library(RESULTS, REFERENCE))
    assert verdicts.print_ledger(entries, RESULTS, verdicts=True) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["9", "holds", "a", "is", "faster", "than", "b."]
    assert lines[-1] == "3 claims: 1 holds, 1 historical, 1 without a rule"
    assert max(map(len, lines)) <= 80
    failure = {"type": "failure", "variant": "b", "params": {"n": 3}, "round": 9, "order": 9,
               "error": "b ended with status 1"}  # fmt: skip
    with Writer(path) as writer:
        writer.append(failure)
        writer.append({**end_record(16), "failures": 1})
    assert verdicts.print_ledger(entries, RESULTS, verdicts=True) == 1
    assert capsys.readouterr().err == "failed: sample b: b ended with status 1\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("id = 10", "id = 9"), "claim 9 is there twice"),
        (('source = "talk"', 'source = "tlak"'),
         'claim 9: "source" must be one of talk, page, lighty, small-files, perlbal, raw-io, wiki, '
         'not "tlak"'),
        (('is = "faster"', 'is = "quicker"'),
         f'claim 9: rule: "is" must be one of {", ".join(RULES)}, not "quicker"'),
        (('b = "b.us"', 'b = "c.us"'), 'claim 9: rule: unknown variant "c" in "c.us"'),
        (('b = "b.us"', 'b = "other:b.us"'),
         'claim 9: rule: unknown experiment "other" in "other:b.us"'),
        (('b = "b.us"', 'b = "gain"'), 'claim 9: rule: unknown number "gain"'),
        ((', b = "b.us"', ""), 'claim 9: rule: "b" is missing'),
        ((', b = "b.us"', ', b = "b.us", bound = 2'), 'claim 9: rule: unknown key "bound"'),
        (('experiment = "sample"', 'experiment = "simple"'),
         'claim 9: unknown experiment "simple"'),
        (('why = "nobody has measured it."', ""), 'claim 10: a rule, "test", "never" or "why" (not) is needed'),
        (('why = "nobody has measured it."', 'why = "x"\ntest = "tests/x/test_y.py::test_z"'),
         'claim 10: "test" stands in place of "rule" and "why"'),
        (('why = "nobody has measured it."', 'test = "tests/x.py"'),
         'claim 10: "test" must match tests/[\\w/-]+\\.py::test_\\w+'),
        (('why = "nobody has measured it."', 'why = "x"\npassing = "fails"'), 'claim 10: "passing" goes with "test"'),
        (('why = "nobody has measured it."', 'why = "x"\nmodel = true'), 'claim 10: "model" goes with "rule"'),
        (('why = "nobody has measured it."', 'why = "x"\nmechanism = "y"'), 'claim 10: "mechanism" goes with "rule"'),
        (('why = "nobody has measured it."', 'why = "x"\nflips = "y"'), 'claim 10: "flips" goes with "rule"'),
        (('why = "nobody has measured it."', 'why = "x"\nexperiment = "sample"'),
         'claim 10: "experiment" goes with "rule"'),
        (('experiment = "sample"\n', ""), 'claim 9: "rule" goes with "experiment"'),
        (('then = "twice"', 'model = true\nnever = "x"'),
         'claim 9: "model" goes neither with "mechanism" nor with "never"'),
        ((', b = "b.us"', ', b = "b.us", min_effect = "x"'), 'claim 9: rule: "min_effect" must be a number'),
        (("id = 8\n", "id = 8\nhalf_of = 8\n"), "claim 8: half of 8, which is no whole claim"),
        (('why = "nobody has measured it."', 'why = "x"\nhalf_of = 3'),
         "claim 10: half of 3, which is no whole claim"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_ledger_is_one_line(inside: Tree, change: tuple[str, str], message: str) -> None:
    text = LEDGER.replace(*change)
    assert text != LEDGER
    experiment_file.LEDGER.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as error:
        claims.load([parsed()])
    assert str(error.value) == f"benchmarks/claims.toml: {message}"


# ---- check ---------------------------------------------------------------------------------------


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
        ("[sample.floor.ms]{.num}", "number [sample.floor.ms]: unknown metric in floor.ms"),
        ("[env.host]{.num}", "number [env.host]: unknown: env has"),
        ("[9]{.verdict}", None),
        ("[11]{.verdict}", "claim 11 is not in benchmarks/claims.toml"),
        ('::: {.when claim=11 verdict="holds"}', "claim 11 is not in benchmarks/claims.toml"),
        ('::: {.when verdict="holds" claim="11"}', "claim 11 is not in benchmarks/claims.toml"),
        ('``` {.then table="sample.small"}', '"sample.small" is no [[then]] of an experiment'),
    ],
)
def test_keys_in_the_prose_are_checked(line: str, problem: str | None) -> None:
    found = list(check.line_problems(line, {"sample": parsed()}, {8, 9, 10}))
    assert [text.startswith(problem or "-") for text in found] == [True] * bool(problem)


def test_an_x_of_a_key_has_the_form_of_one() -> None:
    known = {"sample": sweeping(n=[1])}
    forms = ("1", "0.5", "-1", "close", "first", "last-x", "", "1!", "a-b")
    assert [x for x in forms if check.key_problem(f"sample.a.us@{x}", known)] == ["", "1!", "a-b"]


def test_a_set_of_no_experiment_is_named(inside: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    fill(RESULTS, a=4e4, b=8e4).rename(RESULTS / "strange.jsonl")
    assert check.check(RESULTS, REFERENCE) == 1
    assert capsys.readouterr().err == "build/results/strange.jsonl: no experiment of that name\n"


def test_check_looks_at_everything(inside: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    fill(RESULTS, a=4e4, b=8e4)
    assert check.check(RESULTS, REFERENCE) == 0
    assert capsys.readouterr().out == "in order: experiments 1, claims 3, guards 0\n"
    (inside.root / "chapters").mkdir()
    (inside.root / "chapters" / "x.md").write_text("\n[sample.z.us]{.num}\n", encoding="utf-8")
    with Writer(RESULTS / "sample.jsonl") as writer:
        writer.append(repetition("a", 0, wall_s=-1))
    assert check.check(RESULTS, REFERENCE) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith('build/results/sample.jsonl:19: "wall_s"')
    assert lines[1].startswith("chapters/x.md:2: number [sample.z.us]: unknown variant")
