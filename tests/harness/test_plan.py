"""The plan: what is run, in which order, and when results no longer fit it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from made_up import definition, parsed

from harness.spec import plan
from harness.spec.model import Experiment
from harness.spec.plan import Step

NAMES = ("a", "b")


def steps(found: Experiment, seed: int = 1, profile: str = "quick", **caps: int) -> list[Step]:
    return plan.steps(found, found.profiles[profile], seed, NAMES, caps)


def rounds(count: int) -> dict[str, Any]:
    return {name: {"rounds": count, "set": {"n": 3}} for name in ("smoke", "quick", "full")}


def digest(found: Experiment, profile: str = "quick", **more: Any) -> str:
    programs = more.get("programs", {"bin/fake": "1"})
    return plan.plan_hash(found, found.profiles[profile], programs, more.get("skipped", ()))


def test_the_same_seed_gives_the_same_order_another_one_another() -> None:
    found = parsed(sweep={"size": [1, 2, 4]})
    assert steps(found) == steps(found)
    assert steps(found) != steps(found, seed=2)


def test_every_round_has_everything_once_and_the_aa_variant_twice() -> None:
    found = parsed(sweep={"size": [1, 2]})
    for number in range(2):
        inside = [s for s in steps(found) if s.round == number]
        assert Counter(s.variant for s in inside) == {"a": 2, "a+aa": 2, "b": 2}
    assert [s.order for s in steps(found)] == list(range(12))


def test_rounds_are_interleaved_not_one_variant_after_the_other() -> None:
    found = parsed(profile=rounds(20))
    order = [s.variant for s in steps(found)]
    first_in_round = {tuple(order[i : i + 3]) for i in range(0, 60, 3)}
    assert all(Counter(group) == {"a": 1, "a+aa": 1, "b": 1} for group in first_in_round)
    assert len(first_in_round) > 1  # shuffled anew in each round


def test_aa_can_be_limited_to_some_points() -> None:
    variants = [
        {"name": "a", "command": ["x"], "aa": {"size": [4]}},
        {"name": "b", "command": ["x"]},
    ]
    found = parsed(sweep={"size": [1, 4]}, variant=variants)
    again = [s.params["size"] for s in steps(found) if s.variant == "a+aa"]
    assert again == [4, 4]


def test_a_sweep_is_a_product_and_profile_and_variant_may_change_it() -> None:
    profiles = definition()["profile"]
    profiles["smoke"]["sweep"] = {"size": [1]}
    variants = [
        {"name": "a", "command": ["x"]},
        {"name": "b", "command": ["x"], "sweep": {"keep": ["no"]}, "set": {"n": 9}},
    ]
    found = parsed(
        sweep={"size": [1, 2], "keep": ["no", "yes"]}, profile=profiles, variant=variants
    )
    quick = [s.params for s in steps(found) if s.round == 0 and s.variant == "a"]
    assert len(quick) == 4
    smoke = [s.params for s in steps(found, profile="smoke") if s.round == 0]
    assert sorted((p["size"], p["keep"], p["n"]) for p in smoke) == [
        (1, "no", 3), (1, "no", 9), (1, "yes", 3),
    ]  # fmt: skip


def test_caps_make_equal_points_one() -> None:
    found = parsed(sweep={"size": [1, 100, 200]})
    sizes = sorted(s.params["size"] for s in steps(found, size=50) if s.variant == "b")
    assert sizes == [1, 1, 50, 50]


def test_the_hash_tells_what_decides_about_the_numbers() -> None:
    base = digest(parsed())
    assert base == digest(parsed())
    changed = [
        digest(parsed(), programs={"bin/fake": "2"}),
        digest(parsed(), skipped=["b"]),
        digest(parsed(sweep={"size": [1]})),
        digest(parsed(pin="none")),
        digest(parsed(variant=[{"name": "a", "command": ["y"]}])),
        digest(parsed(profile=rounds(3))),
    ]
    assert base not in changed
    assert len(set(changed)) == len(changed)


def test_words_and_metrics_may_change_without_measuring_again() -> None:
    metrics = [*definition()["metric"], {"name": "least", "column": "ns", "reduce": "min"}]
    other = parsed(title="Another title", question="Why?", chapters=["x"], metric=metrics,
                   headline=True, x={"title": "x", "column": "live"})  # fmt: skip
    assert digest(other) == digest(parsed())


def test_another_profile_may_change_without_measuring_again() -> None:
    profiles = definition()["profile"]
    profiles["full"] = {"rounds": 50, "set": {"n": 3}}
    assert digest(parsed(profile=profiles)) == digest(parsed())
