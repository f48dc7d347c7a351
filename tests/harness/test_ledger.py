"""Each rule of the real ledger on made-up data: on which it holds, and on which it does not. A
claim that cannot fail, or cannot hold, is found here.
"""

from pathlib import Path

import pytest

from quest.report import claims
from quest.report.claims import Claim, RuleUse
from quest.report.rules import HOLDS, UNDECIDED, judge
from quest.spec import experiment_file
from quest.spec.coherence import split_operand
from tests.harness.test_rules import MADE_UP, at_value

pytest.importorskip("scipy")

ROOT = Path(__file__).parents[2]
EXPERIMENTS = {e.id: e for e in experiment_file.load_all(ROOT / "benchmarks/experiments")}
LEDGER = claims.load(EXPERIMENTS.values(), ROOT / "benchmarks/claims.toml")
JUDGED = [claim for claim in LEDGER if claim.rules]


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
                {key: at_value(v, better) for key, v in zip(use.operands, values, strict=True)},
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
