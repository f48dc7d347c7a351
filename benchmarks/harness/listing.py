"""`list`: the experiments, what each asks, and how long it takes."""

import textwrap

from harness import experiment
from harness.model import PROFILES, Experiment
from harness.progress import duration


def show() -> int:
    experiments = experiment.load_all()
    for definition in experiments:
        print(describe(definition))
    print(totals(experiments))
    return 0


def describe(definition: Experiment) -> str:
    times = ", ".join(
        f"{name} {duration(definition.profiles[name].seconds)}"
        for name in PROFILES
        if name in definition.profiles
    )
    mark = " (headline)" if definition.headline else ""
    question = textwrap.fill(definition.question, 96, initial_indent="    ",
                             subsequent_indent="    ")  # fmt: skip
    return f"{definition.id}{mark}\n{question}\n    {definition.kind}; {times}"


def totals(experiments: list[Experiment]) -> str:
    parts = []
    for name in ("smoke", "quick", "full"):
        total = sum(e.profiles[name].seconds for e in experiments)
        parts.append(f"{name} {duration(total)}")
    headline = sum(
        e.profiles[e.headline_profile("quick")].seconds for e in experiments if e.headline
    )
    return f"all: {', '.join(parts)}; what `make` measures: {duration(headline)}"
