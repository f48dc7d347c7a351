"""Each rule of the real ledger on made-up data: on which it holds, and on which it does not. A
claim that cannot fail, or cannot hold, is found here.
"""

from pathlib import Path

import pytest

from quest.measure import chosen
from quest.report import claims, since, tested
from quest.report.claims import Claim, RuleUse
from quest.report.rules import HOLDS, NOT_JUDGED, UNDECIDED, judge
from quest.spec.coherence import split_operand
from quest.spec.model import Experiment
from tests.harness.test_rules import MADE_UP, at_value
from tests.known import EXPERIMENTS

pytest.importorskip("scipy")

ROOT = Path(__file__).parents[2]
LEDGER = claims.load(EXPERIMENTS.values(), ROOT / "benchmarks/claims.toml")
SINCE = since.load(EXPERIMENTS.values(), ROOT / chosen.LEDGER_SINCE)
JUDGED = [claim for claim in (*LEDGER, *SINCE) if claim.rules]
#: The fork of claim 28 and its end; one disk at all readers beside one reader, which any order leaves alone.
OTHER_X = {(94, "ratio_between"), (96, "ratio_at_least"), (115, "ratio_between")}


def better_of(claim: Claim, use: RuleUse) -> str:
    """Which way is faster; of a metric that does not say so "faster" is a mistake, and "speed"."""
    other, _, operand = use.operands["a"].rpartition(":")
    experiment = EXPERIMENTS[other or claim.experiment]
    derived = {each.key: each for each in experiment.derived}
    if operand in derived:
        return claims._better(derived[operand], experiment)
    return experiment.metric(split_operand(operand)[1]).better


@pytest.mark.parametrize("claim", JUDGED, ids=lambda claim: f"claim {claim.id}")
def test_a_claim_can_hold_and_fail(claim: Claim) -> None:
    for use in claim.rules:
        better = better_of(claim, use) if use.name in ("faster", "speed") else "higher"
        assert better, "is more better, or less?"
        holds, fails = MADE_UP[use.name](use.numbers)
        if better == "lower" and use.name == "faster":
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
        if use.name == "provided":
            assert found[1] == NOT_JUDGED
        else:
            assert found[1] not in (HOLDS, *UNDECIDED)


def is_simulated(experiment: Experiment) -> bool:
    """Whether its disk is a model, or a limit of reads in place of one."""
    programs = {Path(variant.command[0]).name for variant in experiment.variants if variant.command}
    return bool(experiment.disk or (experiment.stage and experiment.stage.read_iops) or "museum-model" in programs)


def test_a_simulated_disk_decides_only_where_the_ledger_says_so() -> None:
    """Each claim of such disks alone has either `model` or, why not, `mechanism`; no other claim has one."""
    for claim in JUDGED:
        alone = all(is_simulated(EXPERIMENTS[name]) for name in claim.asks)
        assert alone == (claim.model or bool(claim.mechanism)), claim.id


def test_what_is_compared_is_compared_at_the_same_x() -> None:
    """Where two variants are compared, and not one with itself, or with itself in another order."""
    for claim in JUDGED:
        for use in claim.rules:
            found = [split_operand(operand) for operand in use.operands.values() if "." in operand]
            if len({series for series, _, _ in found}) > 1 and all(x for _, _, x in found):
                assert len({x for _, _, x in found}) == 1 or (claim.id, use.name) in OTHER_X, claim.id


def test_its_tests_are_there() -> None:
    """Each is a function of its file; the outcome of each is committed with the reference."""
    named = [claim.test for claim in LEDGER if claim.test]
    assert named
    for test in named:
        path, _, function = test.partition("::")
        assert f"\ndef {function}(" in (ROOT / path).read_text("utf-8"), test
    assert tested.read(ROOT / "benchmarks/results/reference").keys() == set(named)
    assert tested.named(ROOT / "benchmarks/claims.toml") == set(named)


def test_halves_are_of_one_source() -> None:
    whole = {claim.id: claim for claim in LEDGER}
    halves = [claim for claim in LEDGER if claim.half_of]
    assert halves and all(claim.source == whole[claim.half_of].source for claim in halves)
    at = {claim.id: place for place, claim in enumerate(LEDGER)}
    assert all(at[claim.id] == at[claim.half_of] + 1 for claim in halves)


def test_a_line_has_a_reason() -> None:
    for claim in JUDGED:
        lines = {use.name for use in claim.rules} - {"exists", "provided"}
        assert claim.reason if lines else claim.source == since.SOURCE or not claim.reason, claim.id


def test_its_chapters_are_there() -> None:
    assert len(LEDGER) >= 20
    chapters = {claim.chapter for claim in LEDGER if claim.chapter}
    assert chapters <= {path.stem for path in (ROOT / "chapters").glob("*.md")}
