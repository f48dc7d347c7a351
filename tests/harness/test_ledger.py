"""Each judged claim of the real ledger on made-up data: on which it holds, on which it does not,
and on which nothing can be said. A claim that cannot fail, or cannot hold, is found here.
"""

import random
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from harness.report import claims, rules
from harness.report.claims import Claim, RuleUse
from harness.report.rules import HOLDS, NOT_JUDGED, NOT_MEASURED, Judgement, Measured, judge
from harness.spec import experiment_file
from harness.spec.coherence import split_operand

pytest.importorskip("scipy")

ROOT = Path(__file__).parents[2]
EXPERIMENTS = {e.id: e for e in experiment_file.load_all(ROOT / "benchmarks/experiments")}
LEDGER = claims.load(EXPERIMENTS.values(), ROOT / "benchmarks/claims.toml")
JUDGED = [claim for claim in LEDGER if claim.rules]
CLEARLY = 1.3  # beyond the line by more than the values are apart
XS = (1.0, 10.0, 100.0, 400.0, 700.0, 1000.0)
ENOUGH, TOO_FEW = 10, 5

Numbers = Mapping[str, float]
Function = Callable[[float], float]


def about(value: float, seed: str) -> list[float]:
    apart = random.Random(seed)
    return [value * (1 + apart.uniform(-0.005, 0.005)) for _ in range(ENOUGH)]


def measured(name: str, at: float | Function, better: str, **more: object) -> Measured:
    """Ten rounds of one value, or of a function of x."""
    function = at if callable(at) else lambda _: at
    points = {x: dict(enumerate(about(function(x), f"{name}{x}"))) for x in XS}
    values = points[XS[-1]] if callable(at) else dict(enumerate(about(at, name)))
    fields = {"better": better, "points": points, "set": "one run", "of": ENOUGH, **more}
    return Measured(name, values, **fields)  # type: ignore[arg-type]


def _two(holds: float, fails: float) -> tuple[tuple[float, float], tuple[float, float]]:
    return (100 * holds, 100), (100 * fails, 100)


def _faster(n: Numbers, better: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    gain = (1 + n.get("min_effect", 0.05)) * CLEARLY
    gain = gain if better == "higher" else 1 / gain
    return _two(gain, 1 / gain)


def _line(rise: float) -> Function:
    return lambda x: 100 * (1 + (rise - 1) * x / XS[-1])


def _constant(_: float) -> float:
    return 100


# rule -> of its numbers and of which way is better: operands on which it holds, and does not.
MADE_UP: dict[str, Callable[[Numbers, str], tuple[tuple[float | Function, ...], ...]]] = {
    "faster": _faster,
    "ratio_at_least": lambda n, _: _two(n["bound"] * CLEARLY, n["bound"] / CLEARLY),
    "ratio_between": lambda n, _: _two((n["low"] * n["high"]) ** 0.5, n["high"] * CLEARLY),
    "equal": lambda n, _: _two(1, (1 + n.get("margin", 0.05)) * CLEARLY),
    "flat": lambda n, _: ((_constant,), (_line((1 + n.get("tolerance", 0.25)) * CLEARLY),)),
    "grows": lambda n, _: ((_line(n.get("at_least", 1.25) * CLEARLY),), (_constant,)),
    "at_least": lambda n, _: ((n["bound"] * CLEARLY,), (n["bound"] / CLEARLY,)),
    "at_most": lambda n, _: ((n["bound"] / CLEARLY,), (n["bound"] * CLEARLY or 1,)),
    "about": lambda n, _: ((n["then"],), (n["then"] * n.get("factor", 1.5) * CLEARLY,)),
    "expected": lambda n, _: ((n["value"],), (n["value"] * n.get("factor", 1.5) * CLEARLY,)),
    "exists": lambda _n, _: ((1,), (0,)),
}


def better_of(claim: Claim, use: RuleUse) -> str:
    """Which way the metric of a claim points; "faster" of one that says nothing is a mistake."""
    operand = next(iter(use.operands.values()))
    other, _, rest = operand.rpartition(":")
    experiment = EXPERIMENTS[other or claim.experiment]
    if "." not in rest:
        return ""
    return experiment.metric(split_operand(rest)[1]).better


def operands(claim: Claim, use: RuleUse, holds: bool, **more: object) -> dict[str, Measured]:
    better = better_of(claim, use)
    if use.name == "faster":
        assert better, f"claim {claim.id}: is more better, or less?"
    made = MADE_UP[use.name](use.numbers, better)[0 if holds else 1]
    return {
        key: measured(f"{claim.id}{key}", value, better, **more)
        for key, value in zip(use.operands, made, strict=True)
    }


def only(found: dict[str, Measured], count: int, against: frozenset[str]) -> dict[str, Measured]:
    """With so many repetitions left, and these marks against the others."""
    return {
        key: Measured(
            a.name,
            {i: v for i, v in a.values.items() if i < count},
            better=a.better,
            points={x: {i: v for i, v in p.items() if i < count} for x, p in a.points.items()},
            set=a.set,
            of=ENOUGH if against else 0,
            against=against,
        )
        for key, a in found.items()
    }


def verdict(claim: Claim, wrong: int | None = None) -> Judgement:
    """All rules on data on which they hold, but for one."""
    return rules.combine(
        [
            judge(use.name, operands(claim, use, holds=place != wrong), use.numbers)
            for place, use in enumerate(claim.rules)
        ]
    )


@pytest.mark.parametrize("claim", JUDGED, ids=lambda claim: f"claim {claim.id}")
def test_a_claim_can_hold_fail_and_be_undecided(claim: Claim) -> None:
    assert verdict(claim).verdict == HOLDS
    for place in range(len(claim.rules)):
        assert verdict(claim, wrong=place).verdict not in (HOLDS, NOT_JUDGED, NOT_MEASURED), place
    for place, use in enumerate(claim.rules):
        left = TOO_FEW if use.name != "exists" else 0
        few = only(operands(claim, use, holds=True), left, frozenset())
        assert judge(use.name, few, use.numbers).verdict == NOT_MEASURED, place
        noisy = only(operands(claim, use, holds=True), left, frozenset({"noisy"}))
        found = judge(use.name, noisy, use.numbers)
        assert found.verdict == NOT_JUDGED, place
        assert found.why == f"the data is noisy ({left} of {ENOUGH} usable)"


def test_a_line_has_a_reason() -> None:
    for claim in JUDGED:
        lines = {use.name for use in claim.rules} - {"exists"}
        assert bool(claim.reason) == bool(lines), claim.id


def test_its_chapters_are_there() -> None:
    assert len(LEDGER) >= 20
    chapters = {claim.chapter for claim in LEDGER if claim.chapter}
    assert chapters <= {path.stem for path in (ROOT / "chapters").glob("*.md")}
