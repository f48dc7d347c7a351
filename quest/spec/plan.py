"""What is to be measured: every step, in the order in which it is done, and a hash of it all."""

import hashlib
import itertools
import json
import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from quest.spec.model import AA, LOAD_TOOLS, Experiment, Params, Profile, Value, Variant


@dataclass(frozen=True)
class Step:
    """One repetition to do. `variant` ends in +aa for the second of an A/A pair."""

    variant: str
    params: Params
    round: int
    order: int

    def key(self) -> tuple[str, str, int]:
        """What identifies it in a set; as records.step_key()."""
        return self.variant, json.dumps(self.params, sort_keys=True), self.round


def points(experiment: Experiment, variant: Variant, profile: Profile) -> list[Params]:
    """All combinations of the sweep, with the values that stay the same."""
    sweep: dict[str, tuple[Value, ...]] = dict(experiment.sweep)
    sweep.update(profile.sweep)
    sweep.update(variant.sweep)
    fixed: Params = {**profile.values, **variant.values}
    return [
        {**fixed, **dict(zip(sweep, combination, strict=True))} for combination in itertools.product(*sweep.values())
    ]


def steps(
    experiment: Experiment,
    profile: Profile,
    seed: int,
    variants: Iterable[str],
    caps: Mapping[str, int],
    extra: int = 0,
) -> list[Step]:
    """The whole plan, and `extra` rounds beyond it. Within a round everything is in random order;
    the seed decides which. No parameter is above its cap (limits.py).
    """
    wanted = set(variants)
    one_round: list[tuple[str, Params]] = []
    for variant in experiment.variants:
        for params in points(experiment, variant, profile) if variant.name in wanted else ():
            capped = {key: _capped(value, caps.get(key)) for key, value in params.items()}
            twice = variant.aa and all(params.get(k) in some for k, some in variant.aa_at.items())
            names = [variant.name] + ([variant.name + AA] if twice else [])
            # Two points that the caps made equal are one.
            one_round += [(name, capped) for name in names if (name, capped) not in one_round]
    plan: list[Step] = []
    for number in range(profile.rounds + extra):
        shuffled = list(one_round)
        random.Random(f"{seed}/{number}").shuffle(shuffled)
        plan += [Step(*step, number, len(plan) + i) for i, step in enumerate(shuffled)]
    return plan


def _capped(value: Value, most: int | None) -> Value:
    return value if most is None or isinstance(value, str) else min(value, most)


# What decides nothing about a measurement: it can change without measuring again.
WORDS = {
    "title", "question", "source", "chapters", "headline", "needs", "axis", "metrics", "derived",
    "then_tables", "seconds", "timeout", "by_name",
}  # fmt: skip


IGNORED = {*WORDS, *LOAD_TOOLS}  # the tools have a key of their own, "tools"


def plan_hash(experiment: Experiment, profile: Profile, programs: Mapping[str, str], skipped: Iterable[str]) -> str:
    """SHA-256 over all that decides about the numbers: settings, programs, what cannot be run."""
    tools = {name: asdict(tool) for name, tool in experiment.tools.items()}
    measuring = {
        **_that_decide(asdict(experiment) | {"tools": tools}),
        "variants": [_of_variant(variant) for variant in experiment.variants],
        "profiles": _that_decide(asdict(profile)),
        "programs": dict(programs),
        "skipped": sorted(skipped),
    }
    text = json.dumps(measuring, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _of_variant(variant: Variant) -> dict[str, Any]:
    again = {"aa": variant.aa is not False, "aa_at": dict(variant.aa_at)}
    return _that_decide(asdict(variant) | again)


def _that_decide(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Not what is not set: a key that is new must throw no results away."""
    return {key: value for key, value in settings.items() if value and key not in IGNORED}


# ---- placeholders --------------------------------------------------------------------------------

PLACEHOLDER = re.compile(r"\{([a-z_][a-z0-9_]*)(?:\*(\d+))?\}")  # {n} a value, {n*2} twice that


def expand(text: str, values: Mapping[str, Value]) -> str:
    """Fills placeholders. (coherence.py has checked that each has a value.)"""

    def fill(match: re.Match[str]) -> str:
        name, times = match.groups()
        value = values.get(name, match[0])
        return str(int(value) * int(times) if times else value)

    return PLACEHOLDER.sub(fill, text)


def expand_all(words: Iterable[str], values: Mapping[str, Value]) -> list[str]:
    """expand() of each."""
    return [expand(word, values) for word in words]
