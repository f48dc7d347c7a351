"""What is to be measured: every step, in the order in which it is done, and a hash of it all."""

import hashlib
import itertools
import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from harness.spec.model import AA, Experiment, Params, Profile, Value, Variant


@dataclass(frozen=True)
class Step:
    """One repetition to do. `variant` ends in +aa for the second of an A/A pair."""

    variant: str
    params: Params
    round: int
    order: int

    def key(self) -> tuple[str, str, int]:
        return self.variant, json.dumps(self.params, sort_keys=True), self.round


def points(experiment: Experiment, variant: Variant, profile: Profile) -> list[Params]:
    """All combinations of the sweep, with the values that stay the same."""
    sweep: dict[str, tuple[Value, ...]] = dict(experiment.sweep)
    sweep.update(profile.sweep)
    sweep.update(variant.sweep)
    fixed: Params = {**profile.values, **variant.values}
    return [
        {**fixed, **dict(zip(sweep, combination, strict=True))}
        for combination in itertools.product(*sweep.values())
    ]


def apply_caps(params: Params, caps: Mapping[str, int]) -> Params:
    """Parameters no larger than the machine's limits allow (limits.py)."""
    return {
        key: min(value, caps[key]) if key in caps and not isinstance(value, str) else value
        for key, value in params.items()
    }


def _round(
    experiment: Experiment, profile: Profile, variants: Iterable[str], caps: Mapping[str, int]
) -> list[tuple[str, Params]]:
    wanted = set(variants)
    steps: list[tuple[str, Params]] = []
    for variant in experiment.variants:
        if variant.name not in wanted:
            continue
        for params in points(experiment, variant, profile):
            capped = apply_caps(params, caps)
            twice = variant.aa and all(params.get(k) in some for k, some in variant.aa_at.items())
            names = [variant.name] + ([variant.name + AA] if twice else [])
            # Two points that the caps made equal are one.
            steps += [(name, capped) for name in names if (name, capped) not in steps]
    return steps


def steps(
    experiment: Experiment,
    profile: Profile,
    seed: int,
    variants: Iterable[str],
    caps: Mapping[str, int],
    extra: int = 0,
) -> list[Step]:
    """The whole plan, and `extra` rounds beyond it. Within a round everything is in random order;
    the seed decides which.
    """
    one_round = _round(experiment, profile, variants, caps)
    order = 0
    plan = []
    for number in range(profile.rounds + extra):
        shuffled = list(one_round)
        random.Random(f"{seed}/{number}").shuffle(shuffled)
        for variant, params in shuffled:
            plan.append(Step(variant, params, number, order))
            order += 1
    return plan


# What decides about a measurement; titles, axes and metrics can change without measuring again.
MEASURING = ("id", "kind", "pin", "sweep", "caps", "docroot", "tools", "helpers", "phases")
MEASURING_VARIANT = (
    "name", "build", "command", "server", "peer", "args", "prefix", "load", "load_args", "aa",
    "aa_at", "values", "sweep", "rename",
)  # fmt: skip


def plan_hash(
    experiment: Experiment, profile: Profile, programs: Mapping[str, str], skipped: Iterable[str]
) -> str:
    """SHA-256 over all that decides about the numbers: settings, programs, what cannot be run."""
    whole = asdict(experiment)
    measuring: dict[str, Any] = {key: whole[key] for key in MEASURING}
    # No longer a key; it stays in the hash, or everything would be measured anew.
    measuring["docroot"]["path"] = ""
    measuring["variants"] = [
        {key: variant[key] for key in MEASURING_VARIANT}
        | {key: variant[key] for key in ("holds", "disk_args") if variant[key]}
        for variant in whole["variants"]
    ]
    measuring["phases"] = [
        {key: value for key, value in phase.items() if key != "may_fail" or value}
        for phase in whole["phases"]
    ]
    if whole["disk"]:
        measuring["disk"] = whole["disk"]
    if whole["stage"]:
        measuring["stage"] = whole["stage"]
    settings = asdict(profile)
    measuring["profile"] = {key: settings[key] for key in ("name", "rounds", "values", "sweep")}
    measuring["programs"] = dict(programs)
    measuring["skipped"] = sorted(skipped)
    text = json.dumps(measuring, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
