"""The law of usl.py as numbers of an experiment, and the experiment that measures it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_up import Tree, end_record, parsed, repetition, run_record
from test_bench import bench
from test_statistics import WORKERS, rates

from harness.report import export, tsv
from harness.run.records import ResultSet, Source
from harness.spec.model import Experiment
from harness.statistics.analysis import Analysis, numbers
from harness.statistics.estimates import Rounds
from harness.system.needs import missing_library
from harness.system.places import program

pytest.importorskip("scipy")

ROOT = Path(__file__).resolve().parents[2]


def experiment() -> Experiment:
    parts = [
        {"key": f"a-{part}", f"usl_{part}": "a.rate", "unit": unit}
        for part, unit in {"lambda": "/s", "sigma": "", "kappa": "", "peak": "workers"}.items()
    ]
    return parsed(
        number=parts, sweep={"workers": list(WORKERS)}, x={"title": "n", "parameter": "workers"},
        metric=[{"name": "rate", "scalar": "rate", "unit": "/s"}],
    )  # fmt: skip


def results(points: dict[float, Rounds], marks: dict[float, list[str]]) -> ResultSet:
    result = ResultSet(Path("x"), run_record(experiment()))
    for n, values in points.items():
        for number, rate in values.items():
            result.add(
                repetition(
                    "a", number, params={"workers": int(n)}, scalars={"rate": rate},
                    marks=marks.get(n, []),
                )
            )  # fmt: skip
    result.add(end_record(len(result.repetitions)))
    return result


def entries(
    points: dict[float, Rounds], marks: dict[float, list[str]] | None = None
) -> dict[str, Any]:
    result = results(points, marks or {})
    known = numbers(Analysis(experiment(), result))
    source = Source("here", result)
    made = {key: export.entry(number, source) for key, number in known.items() if "-" in key}
    json.dumps(made, allow_nan=False)
    return {key.removeprefix("a-"): entry for key, entry in made.items() if "@" not in key}


def test_the_law_is_a_number_like_others() -> None:
    made = entries(rates(0.05, 0.002, noise=0.005))
    assert list(made) == ["lambda", "sigma", "kappa", "peak"]
    assert made["lambda"]["text"] == "50.0k/s"
    assert made["sigma"]["low"] < 0.05 < made["sigma"]["high"]
    assert made["kappa"]["text"] == "0.0020"
    assert (made["peak"]["text"], made["peak"]["n"]) == ("22 workers", 8)


def test_a_kappa_not_told_from_0_is_said_in_words() -> None:
    made = entries(rates(0.05, 0, noise=0.03))
    assert made["kappa"]["text"] == "not told from 0"
    assert made["kappa"]["low"] == 0
    assert made["peak"]["value"] is None
    assert made["peak"]["text"] == f"{made['peak']['low']:.0f} workers or more"
    few = entries(rates(0.05, 0.002, noise=0.03, count=1))
    assert (few["kappa"]["text"], few["peak"]["text"]) == ("not told from 0", "not told")


@pytest.mark.parametrize("mark", ["client-bound", "shared-core"])
def test_points_that_are_not_the_workers_are_left_out(mark: str) -> None:
    points = rates(0.05, 0.002, noise=0)
    points[16.0] = dict.fromkeys(range(8), 1.0)
    points[12.0] = dict.fromkeys(range(8), 2.0)
    marks = {16.0: [mark], 12.0: ["noisy", mark], 2.0: ["noisy"]}
    made = entries(points, marks)
    assert made["kappa"]["value"] == pytest.approx(0.002)
    assert made["kappa"]["marks"] == ["noisy"]
    assert entries(points, {n: [mark] for n in WORKERS if n > 3}) == {}


def test_the_table_of_the_figure_has_no_infinity() -> None:
    analysis = Analysis(experiment(), results(rates(0.05, 0, noise=0.03), {}))
    rows = tsv.tables(analysis)["numbers.tsv"].splitlines()
    keys = [row.split("\t")[0] for row in rows]
    assert keys == ["key", "a-lambda", "a-sigma", "a-kappa", "a-peak"]
    assert rows[-1].split("\t")[1] == "-"
    assert float(rows[-1].split("\t")[2]) > 16


# ---- the experiment itself ----------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.skipif(not program("wrk").ok, reason=program("wrk").reason)
def test_scaling_runs_with_one_worker_and_with_two(tree: Tree) -> None:
    """On any machine: without the probe that asks for ten cores and the cap that may leave one."""
    slashdot = ROOT / "build" / "bin" / "15-slashdot"
    if not slashdot.exists() and missing_library("15-slashdot", ROOT):
        pytest.skip("15-slashdot cannot be built here")
    (tree.root / "build" / "bin").mkdir(parents=True)
    (tree.root / "build" / "bin" / "15-slashdot").symlink_to(slashdot)
    (tree.root / "benchmarks" / "peers").symlink_to(ROOT / "benchmarks" / "peers")
    text = (ROOT / "benchmarks/experiments/scaling.toml").read_text(encoding="utf-8")
    for old, new in {
        '"worker-cores", ': "",
        "[1, 2, 3, 4] }": "[1, 2] }",
        '[caps]\nworkers = "cores"\n': "",
    }.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    tree.experiment("scaling", text=text)
    done = bench(tree)
    assert (done.returncode, done.stderr) == (0, "")
    ours = [r for r in tree.of_type("repetition", "scaling") if r["variant"] == "15-slashdot"]
    assert sorted(r["params"]["workers"] for r in ours) == [1, 2]
    for one in ours:
        assert one["scalars"]["server_processes"] == 1 + one["params"]["workers"]
        assert one["scalars"]["requests_per_s"] > 0
    peers = {r["variant"] for r in tree.of_type("repetition", "scaling")}
    assert ("nginx" in peers) == program("nginx").ok
