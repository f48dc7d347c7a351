"""What only a whole experiment can tell: a placeholder without a value, an unknown operand."""

import re
from collections.abc import Mapping
from dataclasses import astuple
from typing import Any

from harness.errors import InputError
from harness.spec import plan
from harness.spec.model import AA, LAWS, NO_LOAD, Derived, Experiment, Profile, Variant
from harness.system.cpus import WORKERS

# What the harness itself fills in, beside the values of profile, variant and sweep.
BUILTINS = {
    "micro": {"bin", "build", "scratch"},
    "load": {"bin", "build", "scratch", "docroot", "url", "urls", "port", "address", "load_cpus"},
    "trace": {"bin", "build", "scratch", "docroot"},
}
DISK_BUILTINS = {"docroot", "files"}  # with a [disk]
PLACEHOLDER = re.compile(r"\{([a-z_][a-z0-9_]*)(\*\d+)?\}")


def check(experiment: Experiment, shown: str) -> None:
    """InputError for what does not fit together."""
    _check_placeholders(experiment, shown)
    _check_axis(experiment, shown)
    _check_workers(experiment, shown)
    _check_operands(experiment, shown)
    if experiment.kind == "load":
        for variant in experiment.variants:
            if variant.load not in (*experiment.tools, NO_LOAD):
                raise InputError(f'{shown}: variant "{variant.name}": no [{variant.load}] table')
    for key in experiment.caps:
        if not _is_parameter(experiment, key):
            raise InputError(f'{shown}: "caps": no value or sweep is called "{key}"')
    phases = {phase.name for phase in experiment.phases}
    for helper in experiment.helpers:
        for phase in helper.phases:
            if phase not in phases:
                raise InputError(f'{shown}: helper "{helper.name}": unknown phase "{phase}"')


def _is_parameter(experiment: Experiment, key: str) -> bool:
    tables: list[Mapping[str, Any]] = [experiment.sweep]
    for variant in experiment.variants:
        tables += [variant.values, variant.sweep]
    for profile in experiment.profiles.values():
        tables += [profile.values, profile.sweep]
    return any(key in table for table in tables)


def _check_placeholders(experiment: Experiment, shown: str) -> None:
    shared: list[str] = []
    for helper in experiment.helpers:
        shared += helper.command
    for phase in experiment.phases:
        shared += phase.args
    if experiment.stage:
        shared += astuple(experiment.stage)
    for variant in experiment.variants:
        texts = [*variant.command, *variant.args, *variant.prefix, *variant.load_args, *shared]
        texts.append(variant.holds)
        if experiment.disk:
            texts += [*experiment.disk.pools, *experiment.disk.args, *variant.disk_args]
        elif variant.disk_args:
            raise InputError(f'{shown}: variant "{variant.name}": "disk_args" without a [disk]')
        if tool := experiment.tools.get(variant.load):
            texts += [*tool.args, *tool.warmup]
        wanted = [match for text in texts for match in PLACEHOLDER.findall(text)]
        for profile in experiment.profiles.values():
            known = BUILTINS[experiment.kind] | profile.values.keys() | profile.sweep.keys()
            known |= DISK_BUILTINS if experiment.disk else set()
            known |= variant.values.keys() | variant.sweep.keys() | experiment.sweep.keys()
            for name, times in wanted:
                where = f'{shown}: variant "{variant.name}":'
                if name not in known:
                    raise InputError(
                        f'{where} unknown placeholder {{{name}}} in profile "{profile.name}"'
                    )
                if times and not _is_number(experiment, variant, profile, name):
                    raise InputError(
                        f'{where} {{{name}{times}}}, but "{name}" is not always a whole number'
                        f' in profile "{profile.name}"'
                    )


def _is_number(experiment: Experiment, variant: Variant, profile: Profile, name: str) -> bool:
    """A whole one above 0, at every point."""
    values = [params.get(name) for params in plan.points(experiment, variant, profile)]
    return all(isinstance(value, int) and value > 0 for value in values)


def _check_workers(experiment: Experiment, shown: str) -> None:
    """pin = "workers" gives a core to each of {workers}."""
    if experiment.pin != WORKERS:
        return
    if experiment.kind != "load":
        raise InputError(f'{shown}: pin = "{WORKERS}" goes with kind = "load"')
    for variant in experiment.variants:
        for profile in experiment.profiles.values():
            if not _is_number(experiment, variant, profile, WORKERS):
                raise InputError(
                    f'{shown}: variant "{variant.name}": pin = "{WORKERS}", but no "{WORKERS}"'
                    f' that is a whole number above 0 in profile "{profile.name}"'
                )


def _check_axis(experiment: Experiment, shown: str) -> None:
    axis = experiment.axis
    if axis and axis.parameter and not _is_parameter(experiment, axis.parameter):
        raise InputError(f'{shown}: "x": no value or sweep is called "{axis.parameter}"')


def _check_operands(experiment: Experiment, shown: str) -> None:
    for derived in experiment.derived:
        for operand in derived.operands:
            problem = operand_problem(experiment, operand)
            if derived.operation in LAWS:
                problem = problem or _law_problem(experiment, derived)
            if problem:
                raise InputError(f'{shown}: number "{derived.key}": {problem}')


def _law_problem(experiment: Experiment, derived: Derived) -> str:
    if experiment.axis is None or not experiment.axis.parameter:
        return f'"{derived.operation}" needs an x that is a parameter'
    if derived.at is not None or "@" in derived.operands[0]:
        return f'"{derived.operation}" is of all x, and takes none'
    if derived.scale != 1:
        return f'"{derived.operation}" takes no "scale"'
    return ""


def split_operand(operand: str) -> tuple[str, str, str]:
    """`variant.metric@x` -> variant, metric, x (or ""). The variant may carry `,size=1024`."""
    series, _, x = operand.partition("@")
    variant, _, metric = series.rpartition(".")
    return variant, metric, x


def operand_problem(experiment: Experiment, operand: str) -> str:
    """Why `variant.metric[@x]` can name nothing in this experiment; "" if it can."""
    series, metric, _ = split_operand(operand)
    variant = series.partition(",")[0]
    if not variant:
        return f'"{operand}" is not of the form variant.metric'
    if variant.removesuffix(AA) not in {v.name for v in experiment.variants}:
        return f'unknown variant "{variant}" in "{operand}"'
    if variant.endswith(AA) and not experiment.variant(variant).aa:
        return f'variant "{variant.removesuffix(AA)}" has no aa = true, so no "{variant}"'
    if metric not in {m.name for m in experiment.metrics}:
        return f'unknown metric "{metric}" in "{operand}"'
    return ""
