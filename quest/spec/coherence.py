"""What only a whole experiment can tell: a placeholder without a value, an unknown operand."""

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import astuple

from quest.ground.errors import InputError
from quest.spec import model, plan
from quest.spec.model import AA, NO_LOAD, Experiment, Profile, Variant, x_text

# What the harness itself fills in, beside the values of profile, variant and sweep.
BUILTINS = {
    "micro": {"bin", "build", "scratch"},
    "load": {"bin", "build", "scratch", "docroot", "url", "urls", "port", "address", "load_cpus"},
    "trace": {"bin", "build", "scratch", "docroot"},
}
DISK_BUILTINS = {"docroot", "files"}  # with a [disk]
ENDS = ("first", "last")


def check(experiment: Experiment, shown: str) -> None:
    """InputError for the first thing that does not fit together."""
    problem = next(_problems(experiment), "")
    if problem:
        raise InputError(f"{shown}: {problem}")


def _problems(experiment: Experiment) -> Iterator[str]:
    named = {
        "variant": [v.name for v in experiment.variants],
        "metric": [m.name for m in experiment.metrics],
        "number": [d.key for d in experiment.derived],
        "phase": [p.name for p in experiment.phases],
        "then": [t.key for t in experiment.then_tables],
    }
    for what, names in named.items():
        yield from (f'{what} "{name}" is there twice' for name, n in Counter(names).items() if n > 1)
    yield from _kind(experiment)
    for variant, profile in itertools.product(experiment.variants, experiment.profiles.values()):
        for problem in _values(experiment, variant, profile):
            yield f'variant "{variant.name}": {problem} in profile "{profile.name}"'
    axis = experiment.axis
    if axis and axis.parameter and not _is_parameter(experiment, axis.parameter):
        yield f'"x": no value or sweep is called "{axis.parameter}"'
    for derived in experiment.derived:
        for operand in derived.operands:
            if problem := operand_problem(experiment, operand):
                yield f'number "{derived.key}": {problem}'
    for variant in experiment.variants:
        if experiment.kind == "load" and variant.load not in (*experiment.tools, NO_LOAD):
            yield f'variant "{variant.name}": no [{variant.load}] table'
    for key in experiment.caps:
        if not _is_parameter(experiment, key):
            yield f'"caps": no value or sweep is called "{key}"'
    for helper in experiment.helpers:
        for phase in {*helper.phases} - {*named["phase"]}:
            yield f'helper "{helper.name}": unknown phase "{phase}"'
    for then in experiment.then_tables:
        for problem in _then(experiment, then):
            yield f'then "{then.key}": {problem}'


def _kind(experiment: Experiment) -> Iterator[str]:
    """What belongs to another kind of experiment, or is missing for this one."""
    kind, disk = experiment.kind, experiment.disk
    if kind != "trace" and not experiment.metrics:
        yield '"metric" is missing'
    if kind == "trace" and disk:
        yield '"disk" goes with kind = "micro" or "load"'
    if disk and experiment.docroot.files:
        yield '"docroot": the disk is the docroot: there is none beside it'
    if experiment.stage and not (kind == "load" and experiment.docroot.files):
        yield '"stage" goes with kind = "load" and [docroot.files]'
    for variant in experiment.variants:
        problem = ""
        if kind == "micro" and not variant.command:
            problem = '"command" is missing'
        elif kind != "micro" and variant.command:
            problem = '"command" belongs to kind = "micro"'
        elif kind == "load":
            problem = model.one_of(variant, "server", "peer")
        elif kind == "trace" and not variant.server:
            problem = '"server" is missing'
        if problem:
            yield f'variant "{variant.name}": {problem}'
        if variant.disk_args and not disk:
            yield f'variant "{variant.name}": "disk_args" without a [disk]'


def _is_parameter(experiment: Experiment, key: str) -> bool:
    both: list[Variant | Profile] = [*experiment.variants, *experiment.profiles.values()]
    return key in experiment.sweep or any(key in {**some.values, **some.sweep} for some in both)


def _values(experiment: Experiment, variant: Variant, profile: Profile) -> Iterator[str]:
    """A placeholder that nothing fills; a number that is none."""
    points = plan.points(experiment, variant, profile)

    def is_number(name: str) -> bool:
        """A whole one above 0, at every point."""
        values = [params.get(name) for params in points]
        return all(isinstance(value, int) and value > 0 for value in values)

    texts = [*variant.command, *variant.args, *variant.load_args, variant.holds]
    texts += [word for helper in experiment.helpers for word in helper.command]
    texts += [word for phase in experiment.phases for word in phase.args]
    texts += astuple(experiment.stage) if experiment.stage else ()
    known = BUILTINS[experiment.kind].union(*points)
    if experiment.disk:
        texts += [*experiment.disk.pools, *experiment.disk.args, *variant.disk_args]
        known |= DISK_BUILTINS
    if tool := experiment.tools.get(variant.load):
        texts += [*tool.args, *tool.warmup]
    for name, times in (match for text in texts for match in plan.PLACEHOLDER.findall(text)):
        if name not in known:
            yield f"unknown placeholder {{{name}}}"
        elif times and not is_number(name):
            yield f'{{{name}*{times}}}, but "{name}" is not always a whole number'


# ---- operands ------------------------------------------------------------------------------------


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


# ---- tables of the sources -----------------------------------------------------------------------


def _then(experiment: Experiment, then: model.Then) -> Iterator[str]:
    metric = next((m for m in experiment.metrics if m.name == then.metric), None)
    if metric is None:
        yield f'unknown metric "{then.metric}"'
        return
    if metric.unit != then.unit and not then.scale:
        units = f'is in "{metric.unit}", not "{then.unit}"'
        yield f'"scale" is missing: metric "{metric.name}" {units}'
    if metric.unit == then.unit and then.scale not in (0.0, 1.0):
        yield f'"scale" is not 1, though metric "{metric.name}" is in "{then.unit}" too'
    seen = set()
    for number, row in enumerate(then.rows, 1):
        name = row.name or row.title
        problem = f'"{name}" is there twice' if name in seen else _row(experiment, then, row)
        seen.add(name)
        if problem:
            yield f"row {number}: {problem}"
    if not any(row.variant and row.name == then.base for row in then.rows):
        yield f'"base" must be the variant of a row, not "{then.base}"'
    elif not then.base_row.value:
        yield f'no ratio to "{then.base}", whose value is 0'


def _row(experiment: Experiment, then: model.Then, row: model.ThenRow) -> str:
    if row.low is not None and row.high is not None and not row.low <= row.value <= row.high:
        return '"value" must be between "low" and "high"'
    if not row.variant:
        return ""
    if problem := operand_problem(experiment, row.operand(then.metric)):
        return problem
    axis = experiment.axis
    if not row.x or (axis and (axis.column or row.x in ENDS)):
        return ""
    if axis is None:
        return f'"@{row.x}" names no x: the experiment has none'
    sweeps = [experiment.sweep, *(p.sweep for p in experiment.profiles.values())]
    sweeps.append(experiment.variant(row.variant.partition(",")[0]).sweep)
    values = {x_text(value) for sweep in sweeps for value in sweep.get(axis.parameter, ())}
    return "" if row.x in values else f'"@{row.x}": no sweep has this value of {axis.parameter}'
