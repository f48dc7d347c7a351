"""The law of usl.py found in numbers made from it, as numbers of an experiment, and the experiment
that measures it.
"""

import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from quest.ground.places import program
from quest.measure.needs import missing_library
from quest.measure.records import ResultSet, Source
from quest.report import export, tsv
from quest.stats import estimates, usl
from quest.stats.analysis import Analysis, numbers
from quest.stats.estimates import Rounds
from quest.stats.usl import fit, peak
from tests.harness.made_up import Tree, end_record, parsed, repetition, run_record

pytest.importorskip("scipy")

ROOT = Path(__file__).resolve().parents[2]
WORKERS = (1, 2, 3, 4, 6, 8, 12, 16)


def law(n: float, sigma: float, kappa: float) -> float:
    return 5e4 * n / (1 + sigma * (n - 1) + kappa * n * (n - 1))


def rates(
    sigma: float, kappa: float, noise: float = 0.01, count: int = 8, seed: int = 1,
    workers: Sequence[float] = WORKERS,
) -> dict[float, Rounds]:  # fmt: skip
    generator = random.Random(seed)
    return {
        float(n): {r: law(n, sigma, kappa) * (1 + generator.gauss(0, noise)) for r in range(count)}
        for n in workers
    }


def found(points: Mapping[float, Rounds]) -> usl.Fit:
    fitted = fit(points)
    assert fitted is not None
    return fitted


@pytest.mark.parametrize(
    ("sigma", "kappa"),
    [(0.05, 0.002), (0.02, 0.01), (0.3, 0.05), (0.05, 0), (0, 0.001), (0, 0), (1, 0)],
)
@pytest.mark.parametrize("workers", [WORKERS, (1, 2, 3, 4)])
def test_what_was_put_in_is_found(sigma: float, kappa: float, workers: tuple[int, ...]) -> None:
    fitted = found(rates(sigma, kappa, noise=0, workers=workers))
    assert fitted.rate.value == pytest.approx(5e4)
    assert fitted.sigma.value == pytest.approx(sigma, abs=1e-9)
    assert fitted.kappa.value == pytest.approx(kappa, abs=1e-9)
    assert fitted.told == (kappa > 0)
    assert fitted.peak.value == (pytest.approx(peak(sigma, kappa)) if kappa else math.inf)


def test_the_rate_is_highest_at_the_peak() -> None:
    top = peak(0.05, 0.002)
    assert law(top, 0.05, 0.002) > max(law(top + d, 0.05, 0.002) for d in (-0.1, 0.1))
    assert peak(1, 2) == peak(0.9, 5) == 1, "with none there is no rate at all"


def test_the_intervals_hold_what_was_put_in() -> None:
    """Each is to hold it in 95 of 100 runs; a kappa that is there is told, and no other."""
    held, told = [0, 0, 0, 0], 0
    for seed in range(20):
        fitted = found(rates(0.05, 0.002, noise=0.02, count=15, seed=seed))
        truth = (5e4, 0.05, 0.002, peak(0.05, 0.002))
        parts = (fitted.rate, fitted.sigma, fitted.kappa, fitted.peak)
        for place, (part, value) in enumerate(zip(parts, truth, strict=True)):
            held[place] += (part.low or 0) <= value <= (part.high or 0)
        told += fitted.told - found(rates(0.05, 0, 0.02, 15, seed)).told
    assert min(held) >= 17
    assert told >= 17


def test_what_disturbs_a_whole_round_widens_lambda_alone() -> None:
    factors = (1.0, 1.3, 0.8, 1.1, 0.9, 1.2, 0.7, 1.05)
    fitted = found(
        {float(n): {r: f * law(n, 0.05, 0.002) for r, f in enumerate(factors)} for n in WORKERS}
    )
    assert (fitted.rate.high or 0) > 1.1 * (fitted.rate.low or 0)
    assert fitted.sigma.low == pytest.approx(0.05)
    assert fitted.kappa.high == pytest.approx(0.002)


def test_no_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of none, of three points, up to three workers, with half a worker, with a rate of nothing."""
    enough = rates(0.05, 0, workers=(1, 2, 3, 4))
    assert fit({}) is fit(rates(0.05, 0, workers=(1, 2, 4))) is None
    assert fit(rates(0.05, 0, workers=(1, 1.5, 2, 3))) is None
    assert fit(enough | {0.5: {0: 1.0}}) is fit(enough | {5.0: {0: 0.0}}) is None
    assert fit(enough)
    monkeypatch.setattr(estimates, "AVAILABLE", False)
    assert fit(enough) is None, "without scipy"


@pytest.mark.parametrize(
    "rate", [lambda n: n**1.2, lambda n: 1 / n, lambda n: 100.0 if n == 2 else 1.0]
)
def test_numbers_that_follow_no_such_law_come_to_an_end(rate: Callable[[float], float]) -> None:
    fitted = found({float(n): {r: rate(n) for r in range(6)} for n in WORKERS})
    assert 0 <= fitted.sigma.value <= 1
    assert fitted.kappa.value >= 0
    assert math.isfinite(fitted.rate.value)


# ---- as numbers of an experiment -----------------------------------------------------------------

EXPERIMENT = parsed(
    number=[
        {"key": f"a-{part}", f"usl_{part}": "a.rate", "unit": unit}
        for part, unit in {"lambda": "/s", "sigma": "", "kappa": "", "peak": "workers"}.items()
    ],
    sweep={"workers": list(WORKERS)}, x={"title": "n", "parameter": "workers"},
    metric=[{"name": "rate", "scalar": "rate", "unit": "/s"}],
)  # fmt: skip


def analysed(
    points: dict[float, Rounds], marks: dict[float, list[str]] | None = None
) -> tuple[Analysis, dict[str, Any]]:
    """And its entries in numbers.json."""
    result = ResultSet(Path("x"), run_record(EXPERIMENT))
    for n, values in points.items():
        for number, rate in values.items():
            more: dict[str, Any] = {"params": {"workers": int(n)}, "scalars": {"rate": rate}}
            result.add(repetition("a", number, marks=(marks or {}).get(n, []), **more))
    result.add(end_record(len(result.repetitions)))
    analysis, source = Analysis(EXPERIMENT, result), Source("here", result)
    made = {key: export.entry(n, source) for key, n in numbers(analysis).items() if key[:2] == "a-"}
    json.dumps(made, allow_nan=False)
    return analysis, {key.removeprefix("a-"): entry for key, entry in made.items()}


def test_the_law_is_a_number_like_others() -> None:
    _, made = analysed(rates(0.05, 0.002, noise=0.005))
    assert list(made) == ["lambda", "sigma", "kappa", "peak"]
    assert made["lambda"]["text"] == "50.0k/s"
    assert made["sigma"]["low"] < 0.05 < made["sigma"]["high"]
    assert made["kappa"]["text"] == "0.0020"
    assert (made["peak"]["text"], made["peak"]["n"]) == ("22 workers", 8)


def test_a_kappa_not_told_from_0_is_said_in_words() -> None:
    analysis, made = analysed(rates(0.05, 0, noise=0.03))
    assert (made["kappa"]["text"], made["kappa"]["low"]) == ("not told from 0", 0)
    least = made["peak"]["low"]
    assert least == pytest.approx(peak(0.05, made["kappa"]["high"]), rel=0.05)
    assert made["peak"]["text"] == f"{least:.0f} workers or more"
    assert (made["peak"]["value"], made["peak"]["high"]) == (None, None)
    # The table of the figure has no infinity either.
    last = tsv.tables(analysis)["numbers.tsv"].splitlines()[-1].split("\t")
    assert last[:2] == ["a-peak", "-"]
    assert float(last[2]) > 16
    # Of few rounds there are values alone.
    _, few = analysed(rates(0.05, 0.002, noise=0, count=5))
    assert (few["kappa"]["text"], few["peak"]["text"]) == ("not told from 0", "not told")
    assert few["kappa"]["value"] == pytest.approx(0.002)
    assert (few["kappa"]["low"], few["peak"]["value"]) == (None, None)


@pytest.mark.parametrize("mark", ["client-bound", "shared-core"])
def test_points_that_are_not_the_workers_are_left_out(mark: str) -> None:
    points = rates(0.05, 0.002, noise=0)
    points[16.0] = dict.fromkeys(range(8), 1.0)
    points[12.0] = dict.fromkeys(range(8), 2.0)
    marks = {16.0: [mark], 12.0: ["noisy", mark], 2.0: ["noisy"]}
    _, made = analysed(points, marks)
    assert made["kappa"]["value"] == pytest.approx(0.002)
    assert made["kappa"]["marks"] == ["noisy"]
    assert analysed(points, {n: [mark] for n in WORKERS if n > 3})[1] == {}


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
    done = tree.bench()
    assert (done.returncode, done.stderr) == (0, "")
    ours = [r for r in tree.of_type("repetition", "scaling") if r["variant"] == "15-slashdot"]
    assert sorted(r["params"]["workers"] for r in ours) == [1, 2]
    for one in ours:
        assert one["scalars"]["server_processes"] == 1 + one["params"]["workers"]
        assert one["scalars"]["requests_per_s"] > 0
    peers = {r["variant"] for r in tree.of_type("repetition", "scaling")}
    assert ("nginx" in peers) == program("nginx").ok
