"""The order in which things are measured: properties of every plan."""

import random

import pytest

from quest.measure.records import step_key
from quest.spec import plan
from tests.harness.made_up import parsed


@pytest.mark.parametrize("seed", range(20))
def test_a_round_is_a_permutation_and_the_seed_decides_it(seed: int) -> None:
    """Of experiments of random size: each round has each point of each variant once, all rounds
    are interleaved, and more rounds do not change those before them.
    """
    source = random.Random(seed)
    sizes = source.sample(range(100), source.randint(2, 6))
    experiment = parsed(sweep={"size": sizes})
    profile = experiment.profiles["quick"]
    names = [variant.name for variant in experiment.variants]
    steps = plan.steps(experiment, profile, seed, names, {})
    points = {(name, size) for name in (*names, "a+aa") for size in sizes}
    per_round = len(points)
    assert [step.order for step in steps] == list(range(per_round * profile.rounds))
    for number in range(profile.rounds):
        of_round = steps[number * per_round : (number + 1) * per_round]
        assert {step.round for step in of_round} == {number}
        assert {(step.variant, step.params["size"]) for step in of_round} == points
    assert len({step.key() for step in steps}) == len(steps)
    assert plan.steps(experiment, profile, seed, names, {}) == steps
    assert plan.steps(experiment, profile, seed + 1, names, {}) != steps
    assert plan.steps(experiment, profile, seed, names, {}, extra=2)[: len(steps)] == steps
    assert plan.steps(experiment, profile, seed, names, {}, extra=-1) == steps[:-per_round]
    record = {"variant": steps[0].variant, "params": steps[0].params, "round": 0}
    assert step_key(record) == steps[0].key()


def test_no_two_rounds_are_in_the_same_order_for_every_seed() -> None:
    experiment = parsed(sweep={"size": [1, 2, 3, 4]})
    profile = experiment.profiles["full"]
    steps = plan.steps(experiment, profile, 3, ["a", "b"], {})
    rounds: dict[int, list[str]] = {}
    for step in steps:
        rounds.setdefault(step.round, []).append(f"{step.variant} {step.params['size']}")
    assert len({tuple(order) for order in rounds.values()}) > 1
