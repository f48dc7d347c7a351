"""Each rule of the real ledger on made-up data: on which it holds, and on which it does not. A
claim that cannot fail, or cannot hold, is found here.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from quest.report import claims
from quest.report.claims import Claim, RuleUse
from quest.report.rules import HOLDS, UNDECIDED, Measured, judge
from quest.spec import experiment_file
from quest.spec.coherence import split_operand

pytest.importorskip("scipy")

ROOT = Path(__file__).parents[2]
EXPERIMENTS = {e.id: e for e in experiment_file.load_all(ROOT / "benchmarks/experiments")}
LEDGER = claims.load(EXPERIMENTS.values(), ROOT / "benchmarks/claims.toml")
JUDGED = [claim for claim in LEDGER if claim.rules]
CLEARLY = 1.3  # beyond the line
XS = (1.0, 10.0, 100.0, 400.0, 700.0, 1000.0)

Numbers = Mapping[str, float]
Function = Callable[[float], float]
Operands = tuple[float | Function, ...]


def measured(at: float | Function, better: str) -> Measured:
    """Ten rounds of one value, or of a function of x."""
    points = {x: dict.fromkeys(range(10), at(x) if callable(at) else at) for x in XS}
    return Measured("it", points[XS[-1]], better=better, points=points, set="one run")


def two(holds: float, fails: float) -> tuple[Operands, Operands]:
    return (100 * holds, 100), (100 * fails, 100)


def line(rise: float) -> Function:
    return lambda x: 100 * (1 + (rise - 1) * x / XS[-1])


# rule -> of its numbers: operands on which it holds, and does not.
MADE_UP: dict[str, Callable[[Numbers], tuple[Operands, Operands]]] = {
    "faster": lambda n: two(gain := (1 + n.get("min_effect", 0.05)) * CLEARLY, 1 / gain),
    "ratio_at_least": lambda n: two(n["bound"] * CLEARLY, n["bound"] / CLEARLY),
    "ratio_between": lambda n: two((n["low"] * n["high"]) ** 0.5, n["high"] * CLEARLY),
    "equal": lambda n: two(1, (1 + n.get("margin", 0.05)) * CLEARLY),
    "flat": lambda n: ((line(1),), (line((1 + n.get("tolerance", 0.25)) * CLEARLY),)),
    "grows": lambda n: ((line(n.get("at_least", 1.25) * CLEARLY),), (line(1),)),
    "at_least": lambda n: ((n["bound"] * CLEARLY,), (n["bound"] / CLEARLY,)),
    "at_most": lambda n: ((n["bound"] / CLEARLY,), (n["bound"] * CLEARLY or 1,)),
    "about": lambda n: ((n["then"],), (n["then"] * n.get("factor", 1.5) * CLEARLY,)),
    "expected": lambda n: ((n["value"],), (n["value"] * n.get("factor", 1.5) * CLEARLY,)),
    "exists": lambda _: ((1,), (0,)),
}


def better_of(claim: Claim, use: RuleUse) -> str:
    """Which way is faster; of a metric that does not say so "faster" is a mistake."""
    other, _, operand = use.operands["a"].rpartition(":")
    experiment = EXPERIMENTS[other or claim.experiment]
    return experiment.metric(split_operand(operand)[1]).better


@pytest.mark.parametrize("claim", JUDGED, ids=lambda claim: f"claim {claim.id}")
def test_a_claim_can_hold_and_fail(claim: Claim) -> None:
    for use in claim.rules:
        better = better_of(claim, use) if use.name == "faster" else "higher"
        assert better, "is more better, or less?"
        holds, fails = MADE_UP[use.name](use.numbers)
        if better == "lower":
            holds, fails = fails, holds
        found = [
            judge(
                use.name,
                {key: measured(v, better) for key, v in zip(use.operands, values, strict=True)},
                use.numbers,
            ).verdict
            for values in (holds, fails)
        ]
        assert found[0] == HOLDS
        assert found[1] not in (HOLDS, *UNDECIDED)


def test_a_line_has_a_reason() -> None:
    for claim in JUDGED:
        lines = {use.name for use in claim.rules} - {"exists"}
        assert bool(claim.reason) == bool(lines), claim.id


def test_its_chapters_are_there() -> None:
    assert len(LEDGER) >= 20
    chapters = {claim.chapter for claim in LEDGER if claim.chapter}
    assert chapters <= {path.stem for path in (ROOT / "chapters").glob("*.md")}
