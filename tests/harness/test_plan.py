"""The plan: what is run, in which order, and when results no longer fit it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from made_up import definition, parsed

from harness.spec import plan
from harness.spec.model import Experiment
from harness.spec.plan import Step

NAMES = ("a", "b")


def steps(found: Experiment, seed: int = 1, profile: str = "quick", **caps: int) -> list[Step]:
    return plan.steps(found, found.profiles[profile], seed, NAMES, caps)


def digest(programs: str = "1", skipped: tuple[str, ...] = (), **changes: Any) -> str:
    found = parsed(**changes)
    return plan.plan_hash(found, found.profiles["quick"], {"bin/fake": programs}, skipped)


def rounds(**counts: int) -> dict[str, Any]:
    """The profiles, each with its number of rounds."""
    whole = {"smoke": 2, "quick": 2, "full": 2, **counts}
    return {name: {"rounds": count, "set": {"n": 3}} for name, count in whole.items()}


def test_the_same_seed_gives_the_same_order_another_one_another() -> None:
    found = parsed(sweep={"size": [1, 2, 4]})
    assert steps(found) == steps(found)
    assert steps(found) != steps(found, seed=2)


def test_every_round_has_everything_once_the_aa_variant_twice_in_an_order_of_its_own() -> None:
    found = steps(parsed(sweep={"size": [1, 2]}, profile=rounds(quick=20)))
    orders = set()
    for number in range(20):
        inside = found[6 * number : 6 * number + 6]
        assert {s.round for s in inside} == {number}
        assert Counter(s.variant for s in inside) == {"a": 2, "a+aa": 2, "b": 2}
        orders.add(tuple((s.variant, s.params["size"]) for s in inside))
    assert len(orders) > 1
    assert [s.order for s in found] == list(range(120))


def test_aa_can_be_limited_to_some_points() -> None:
    limited = {"name": "a", "command": ["x"], "aa": {"size": [4]}}
    found = parsed(sweep={"size": [1, 4]}, variant=[limited, {"name": "b", "command": ["x"]}])
    assert [s.params["size"] for s in steps(found) if s.variant == "a+aa"] == [4, 4]


def test_a_sweep_is_a_product_and_profile_and_variant_may_change_it() -> None:
    profiles = rounds()
    profiles["smoke"]["sweep"] = {"size": [1]}
    variants = [
        {"name": "a", "command": ["x"]},
        {"name": "b", "command": ["x"], "sweep": {"keep": ["no"]}, "set": {"n": 9}},
    ]
    sweep = {"size": [1, 2], "keep": ["no", "yes"]}
    found = parsed(sweep=sweep, profile=profiles, variant=variants)
    assert len([s for s in steps(found) if s.round == 0 and s.variant == "a"]) == 4
    smoke = [s.params for s in steps(found, profile="smoke") if s.round == 0]
    assert sorted((p["size"], p["keep"], p["n"]) for p in smoke) == [
        (1, "no", 3), (1, "no", 9), (1, "yes", 3),
    ]  # fmt: skip


def test_caps_make_equal_points_one() -> None:
    found = parsed(sweep={"size": [1, 100, 200]})
    sizes = sorted(s.params["size"] for s in steps(found, size=50) if s.variant == "b")
    assert sizes == [1, 1, 50, 50]


@pytest.mark.parametrize(
    "change",
    [
        {"programs": "2"},
        {"skipped": ("b",)},
        {"sweep": {"size": [1]}},
        {"pin": "none"},
        {"variant": [{"name": "a", "command": ["y"]}]},
        {"profile": rounds(quick=3)},
    ],
    ids=str,
)
def test_the_hash_tells_what_decides_about_the_numbers(change: dict[str, Any]) -> None:
    assert digest(**change) != digest()


@pytest.mark.parametrize(
    "change",
    [
        {"title": "Another", "question": "Why?", "chapters": ["x"], "headline": True},
        {"x": {"title": "x", "column": "live"}},
        {"metric": [*definition()["metric"], {"name": "least", "column": "ns", "reduce": "min"}]},
        {"profile": rounds(full=50)},
    ],
    ids=str,
)
def test_words_metrics_and_other_profiles_may_change_without_measuring_again(
    change: dict[str, Any],
) -> None:
    assert digest(**change) == digest()
