"""How a measurement ends: numbers, verdicts, and where to read on."""

import contextlib
import io
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from quest.report import gnuplot
from quest.report.measured import Both, Library
from quest.report.otherwise import otherwise
from quest.report.result import print_results
from quest.report.tsv import aligned
from quest.report.verdicts import remedy
from quest.spec import experiment_file, plan
from quest.stats.analysis import analyse, run_of
from quest.stats.table import NumberTable
from tests.harness.made_up import BENCHMARKS, Tree, parsed, repetition, result_set, write
from tests.harness.test_compare import LEDGER

NUMBER = '[[number]]\nkey = "gain"\nratio = ["b.us", "a.us"]\n'
BENCH = ("bench", "PROFILE=smoke", "ONLY=sample")

pytest.importorskip("scipy")


@pytest.fixture
def tree(tree: Tree) -> Tree:
    tree.experiment()
    path = tree.experiments / "sample.toml"
    path.write_text(path.read_text("utf-8") + NUMBER, encoding="utf-8")
    (tree.root / "benchmarks/claims.toml").write_text(LEDGER, encoding="utf-8")
    data = {name: [v * (1 + 0.001 * i) for i in range(8)] for name, v in (("a", 4e4), ("b", 8e4))}
    reference = tree.root / "benchmarks/results/reference/sample.jsonl"
    write(result_set(parsed(), data), reference)
    tree.program()
    return tree


@pytest.mark.slow
def test_a_measurement_that_was_named_ends_with_its_claims(tree: Tree, said: Callable[..., str]) -> None:
    claims = ("claims", "ONLY=9")
    assert "holds (reference)" in said(*claims)
    done = tree.run(*BENCH)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    start = lines.index("sample: Is a faster than b?")
    assert lines[start + 1] == "us here reference"
    assert lines[start + 2] == "a 1.0 µs 40.1 µs (40.0–40.3 µs)"
    assert lines[start + 4].startswith("b / a 1 times 2 times")
    assert any(line.startswith("2 rounds") for line in lines), "and what disturbed them"
    assert "claim 9: a is faster than b." in lines
    verdict = next(line for line in lines if line.startswith("yours: "))
    few = "yours: too few repetitions: [012], and 6 are needed; reference: holds"
    assert re.match(few, verdict), "others may have taken some"
    assert "  more repetitions: make bench ONLY=sample PROFILE=quick\n" in done.stdout
    assert lines[-1] == "again: make bench ONLY=sample AGAIN=1"
    # The ledger says it, too.
    ledger = said(*claims)
    assert "yours: too few repetitions" in ledger
    assert "reference: holds" in " ".join(ledger.split())
    assert said("claims", "ONLY=sample") == ledger
    wrong = "ONLY=7: neither a claim (1 to 9) nor an experiment of one\n"
    assert said("claims", "ONLY=7", status=2) == wrong
    # What is measured is told again, or measured again and nothing lost.
    still = said(*BENCH)
    assert "everything is measured" in still and "yours: too few" in still
    before = (tree.results / "sample.jsonl").read_bytes()
    assert "1 experiment measured" in tree.run(*BENCH, "AGAIN=1").stdout
    assert (tree.results / "old" / "sample-1.jsonl").read_bytes() == before
    assert said("programs", "ONLY=sample") == "build/bin/fake\n"


def test_nothing_is_told_of_later_chapters(tree: Tree, said: Callable[..., str]) -> None:
    path = tree.experiments / "sample.toml"
    text, chapters = path.read_text("utf-8"), 'chapters = ["01-a", "02-b"]\n'
    path.write_text(text.replace('kind = "micro"', chapters + 'kind = "micro"'), encoding="utf-8")
    (tree.root / "chapters").mkdir()
    (tree.root / "chapters/contents.json").write_text("[]", encoding="utf-8")
    lines = tree.run(*BENCH, "CH=01-a").stdout.splitlines()
    first = [" ".join(line.split()) for line in lines]
    table = first[: first.index("left out for later chapters: 02-b (without CH=: all)")]
    assert any(re.match(r"a \d", line) for line in table)
    assert not any(re.match(r"b (\d|/ a)", line) for line in table)
    assert "sample: 2 variants are measured; those of later chapters are shown there" in first
    second = said(*BENCH, "CH=02-b")
    assert "b / a" in second and "left out" not in second


def test_what_is_not_alike_is_said_before_the_table(tree: Tree) -> None:
    for folder, drip in (("reference", 50), ("here", 20)):
        made = result_set(parsed(), {"a": [4e4] * 8, "b": [8e4] * 8})
        for one in made.repetitions:
            one["params"] = {"drip": drip}
        write(made, tree.root / folder / "sample.jsonl")
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.chdir(tree.root):
        print_results([parsed()], Library(Path("here"), Path("reference")), 100)
    lines = [" ".join(line.split()) for line in told.getvalue().splitlines()]
    what = "not the same load: the reference run was taken with drip=50 (here 20)"
    assert lines.index(what) + 1 == lines.index("us here reference")


def test_all_that_quick_sets_otherwise_than_the_reference_run_is_named() -> None:
    """Every parameter of every experiment, once; how often something is done is no other load."""
    profiles = ("quick", "full")
    for definition in experiment_file.load_all(BENCHMARKS / "experiments"):
        names = [variant.name for variant in definition.variants]
        runs, values = [], []
        for profile in profiles:
            settings = replace(definition.profiles[profile], rounds=1)
            made = result_set(definition, {})
            seen: dict[str, set[object]] = {}
            for step in plan.steps(definition, settings, 1, names, {}):
                made.add(repetition(step.variant, 0, params=step.params))
                for name, value in step.params.items():
                    seen.setdefault(name, set()).add(value)
            runs.append(run_of(definition, made))
            values.append(seen)
        unlike = otherwise(runs)
        differ = {n for n in {*values[0], *values[1]} if values[0].get(n) != values[1].get(n)}
        told = f"{unlike.words('load')}, {unlike.words('effort')}"
        assert set(re.findall(r"(\w+)=", told)) == differ, definition.id
        assert len(re.findall(r"\(here ", told)) == len(differ), definition.id
    assert otherwise(runs[:1]).words("load") == ""


def set_to(origin: str, *each: dict[str, int]) -> NumberTable:
    """A run of a with these parameters, one after the other."""
    made = result_set(parsed(), {})
    for params in each:
        made.add(repetition("a", 0, params=params, samples={"ns": [1000]}))
    return analyse(parsed(), made, origin)


def test_more_points_of_the_same_load_are_no_other_load() -> None:
    few, more, other = (set_to("here", *({"size": n} for n in sizes)).run for sizes in ([5], [10, 9, 5], [3]))
    told = [[otherwise([few, run]).words(what) for what in ("load", "effort")] for run in (more, other)]
    assert told == [["", "size=5, 9, 10 (here 5)"], ["size=3 (here 5)", ""]]


def test_a_footer_names_as_many_settings_as_it_has_room_for() -> None:
    names = [f"parameter_{letter}" for letter in "abcd"]
    own, reference = (set_to(origin, dict.fromkeys(names, n)) for n, origin in enumerate(("here", "reference")))
    footer = str(gnuplot.experiment_variables(parsed(), Both(own, reference), [])["reference_footer"])
    told = footer.partition("; with ")[2]
    assert len(told) == gnuplot.LONGEST and told.startswith("parameter_a=1 (here 0), ") and told.endswith("…")


def test_noise_has_a_remedy() -> None:
    assert remedy("the data is noisy (0 of 9 usable)", "a") == ("close what else runs, then make bench ONLY=a AGAIN=1")
    assert remedy("the data is little (0 of 9 usable)", "a") == ""


def test_a_table_goes_on_in_a_second_line_where_it_is_too_wide() -> None:
    rows = [["", "n", "why"], ["a program linked dynamically", "12", "it needs another system"]]
    lines = aligned(rows, right=(1,), width=44)
    assert max(map(len, lines)) <= 44
    assert [" ".join(line.split()) for line in lines] == [
        "n why", "a program linked 12 it needs another", "dynamically system",
    ]  # fmt: skip
    assert len(aligned(rows, right=(1,))) == 2
    assert aligned([["a", "", "b"], ["a", "", "c"]], width=10) == ["a     b", "a     c"]


def test_a_value_of_the_reference_machine_is_there(tree: Tree, said: Callable[..., str]) -> None:
    ledger = tree.root / "benchmarks/claims.toml"
    text = ledger.read_text("utf-8")
    rule = 'rule = { is = "about", a = "a.us", then = 350 }'
    ledger.write_text(re.sub(r"rule = \{.*\}", rule, text, count=1), encoding="utf-8")
    assert "a 40.1 µs (40.0–40.3 µs) there, 350 µs then" in " ".join(said("claims").split())
