"""The claim ledger: benchmarks/claims.toml, judged by rules.py on the results that are shown."""

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, TypedDict

from quest.ground import toml
from quest.ground.errors import InputError
from quest.ground.toml import Doc, Rule
from quest.measure.records import HERE, REFERENCE, ResultSet
from quest.report import rules
from quest.report.measured import Both, Library
from quest.report.rules import NOT_JUDGED, NOT_MEASURED, UNDECIDED, Judgement, Measured
from quest.spec import experiment_file
from quest.spec.coherence import operand_problem, split_operand
from quest.spec.experiment_file import LEDGER
from quest.spec.model import SOURCES, VERDICTS, Derived, Experiment, Value, x_text
from quest.stats.table import Measurement, Number, NumberTable

# How a claim stands that no rule decides, by its kind; one with a rule stands as its verdict says.
WITHOUT_RULE = {"other-system": "another system", "historical": "historical"}
WHY_NO_RULE = {
    "other-system": "it needs another operating system",
    "historical": "historical: it can only be cited",
}
NO_RULE = "no rule"
RULE = "is"  # the key of a rule's table that names the rule
STANDINGS = (*VERDICTS, *WITHOUT_RULE.values(), NO_RULE)


@dataclass(frozen=True)
class RuleUse:
    """A rule with its operands (`experiment:variant.metric@x`) and numbers."""

    name: str
    operands: Mapping[str, str]
    numbers: Mapping[str, float]

    def text(self) -> str:
        """`faster(a=a.us, b=b.us, min_effect=0.1)`."""
        parts = [f"{key}={value}" for key, value in self.operands.items()]
        parts += [f"{key}={value:g}" for key, value in self.numbers.items()]
        return f"{self.name}({', '.join(parts)})"


@dataclass(frozen=True)
class Claim:
    """What a source claims, and the rules that decide whether it holds here."""

    id: Annotated[int, Rule(least=1), Doc("its number, by which book and deck name it: [9]{.verdict}")]
    source: Annotated[str, Rule(choices=tuple(SOURCES)), Doc("where it stands")]
    kind: Annotated[
        str,
        Rule(choices=("testable", "partly", "historical", "other-system")),
        Doc(
            "partly: only a part of it, or by emulation; historical: it can only be cited; "
            "other-system: it needs an operating system other than Linux"
        ),
    ]
    text: Annotated[str, Doc("the claim in our words")]
    then: Annotated[str, Doc("the figures of the time")] = ""
    experiment: Annotated[str, Doc("whose results decide")] = ""
    as_written: Annotated[
        tuple[Mapping[str, Value], ...],
        Rule(filled=True, single=True, must='be a table with "is", or a list of such tables'),
        Doc(
            "what decides, or a list of rules (below)",
            key="rule",
            example='{ is = "faster", a = "variant.metric", b = .. }',
        ),
    ] = ()
    rules: tuple[RuleUse, ...] = ()
    why: Annotated[str, Doc("nothing decides")] = ""
    reason: Annotated[str, Doc("why the rule's lines are where they are, from the claim's own words")] = ""
    near_line: Annotated[
        str,
        Doc("known beforehand to lie near the line, and why: two runs may give different verdicts", key="near"),
    ] = ""
    chapter: Annotated[str, Doc("that tells of it, where that is not the first of its experiment's")] = ""

    def fault(self) -> str:
        """What is wrong with it, whatever the experiments are."""
        if self.as_written and not self.experiment:
            return '"rule" goes with "experiment"'
        if self.experiment and not self.as_written:
            return '"experiment" goes with "rule"'
        return next((f'rule: "{RULE}" is missing' for rule in self.as_written if RULE not in rule), "")


@dataclass(frozen=True)
class Ledger:
    """The file."""

    claims: Annotated[tuple[Claim, ...], Doc("one for each claim of the sources", key="claim")]


# ---- reading ------------------------------------------------------------------------------------


def load(experiments: Iterable[Experiment], path: Path = LEDGER) -> list[Claim]:
    """The ledger; InputError for anything in it that cannot be right."""
    known = {e.id: e for e in experiments}
    claims: dict[int, Claim] = {}
    for claim in toml.load(Ledger, path).claims:
        problem = f"claim {claim.id} is there twice" if claim.id in claims else ""
        try:
            claims[claim.id] = _with_rules(claim, known)
        except ValueError as error:
            problem = problem or f"claim {claim.id}: {error}"
        if problem:
            raise InputError(f"{path}: {problem}")
    return [claims[number] for number in sorted(claims)]


def _with_rules(claim: Claim, known: Mapping[str, Experiment]) -> Claim:
    """The claim with the rules as they are applied. ValueError for what cannot be right."""
    home = known.get(claim.experiment)
    uses = tuple(_rule(use, home, known) for use in claim.as_written)
    if claim.experiment and home is None:
        raise ValueError(f'unknown experiment "{claim.experiment}"')
    if claim.kind in ("testable", "partly") and not (uses or claim.why):
        raise ValueError('a rule or "why" (not) is needed')
    return replace(claim, rules=uses)


def _rule(data: Mapping[str, Value], home: Experiment | None, known: Mapping[str, Experiment]) -> RuleUse:
    name = str(data[RULE])
    if name not in rules.RULES:
        raise ValueError(f'rule: "is" must be one of {", ".join(rules.RULES)}, not "{name}"')
    operands, needed, defaults = rules.parameters(name)
    for key in [*operands, *needed]:
        if key not in data:
            raise ValueError(f'rule: "{key}" is missing')
    given = {key: value for key, value in data.items() if key != RULE}
    for key, value in given.items():
        if key not in (*operands, *needed, *defaults):
            raise ValueError(f'rule: unknown key "{key}"')
        if key not in operands and isinstance(value, str):
            raise ValueError(f'rule: "{key}" must be a number')
        if key in operands and (problem := _operand_problem(str(value), home, known)):
            raise ValueError(f"rule: {problem}")
    return RuleUse(
        name,
        {key: str(given[key]) for key in operands},
        {key: float(given[key]) for key in (*needed, *defaults) if key in given},
    )


def _operand_problem(operand: str, home: Experiment | None, known: Mapping[str, Experiment]) -> str:
    other, colon, rest = operand.rpartition(":")
    if colon:
        if other not in known:
            return f'unknown experiment "{other}" in "{operand}"'
        return _operand_problem(rest, known[other], known)
    if home is None:
        return ""  # said elsewhere: unknown experiment
    if "." not in operand:
        keys = {derived.key for derived in home.derived}
        return "" if operand in keys else f'unknown number "{operand}"'
    return operand_problem(home, operand)


# ---- judging ------------------------------------------------------------------------------------


class JudgedClaim(TypedDict):
    """An entry of claims.json. `verdict`, `why`, `numbers`: of the run `source_run` ("here" or
    "reference"), whose footer is `run`; `usable` of `repetitions` were asked; `near`: near the
    line, for `near_why` where that is so whatever is measured; `standing`: one of STANDINGS;
    `own`: why the reader's own data, if they are there, decide nothing.
    """

    id: int
    source: str
    source_title: str
    kind: str
    text: str
    then: str
    experiment: str
    rule: str
    verdict: str
    why: str
    numbers: str
    usable: int
    repetitions: int
    near: bool
    near_why: str
    reason: str
    standing: str
    chapters: list[str]
    source_run: str
    run: str
    own: str


def judge_all(library: Library) -> list[JudgedClaim]:
    """Every claim of the ledger with its verdict, as claims.json has them."""
    return [_judged(claim, library) for claim in load(library.experiments.values())]


def side_by_side(library: Library, ids: Container[str]) -> list[tuple[Claim, Judgement, Judgement]]:
    """The claims that rest on these experiments, with the judgement on the own run and on the
    reference.
    """
    return [
        (claim, _judge_on(claim, library, HERE), _judge_on(claim, library, REFERENCE))
        for claim in (load(library.experiments.values()) if LEDGER.exists() else ())
        if claim.experiment in ids
    ]


#: Asked for after each round of a measurement: none is edited meanwhile.
_while_measuring = cache(experiment_file.load_all)


class _Unfinished(Library):
    """Of one experiment what there is so far, of others what is finished in the same folder."""

    def __init__(self, so_far: NumberTable, folder: Path) -> None:
        super().__init__(folder, folder, definitions=_while_measuring())
        self._so_far = so_far

    def _both(self, name: str) -> Both:
        if name != self._so_far.experiment.id:
            return super()._both(name)
        return Both(self._so_far, None, self._so_far.run.skips)


#: An interval this narrow, as a share of the value, is as good as any.
NARROW = 0.05


def open_questions(experiment: Experiment, so_far: ResultSet) -> list[str]:
    """What more rounds could still decide: claims near their line, unless that is known to be so
    whatever is done, and numbers of which it cannot be said yet on which side of "no difference"
    they are. The rule of `make reference`.
    """
    from quest.stats.analysis import analyse

    table = analyse(experiment, so_far, HERE)
    library = _Unfinished(table, so_far.path.parent)
    still_open = []
    for claim in load(library.experiments.values()) if LEDGER.exists() else ():
        if claim.experiment == experiment.id and claim.rules:
            judgement = _judge_on(claim, library, HERE)
            if (judgement.near_line and not claim.near_line) or judgement.verdict == NOT_JUDGED:
                still_open.append(f"claim {claim.id}")
    for derived in experiment.derived:
        number = table.derived.get(derived.key)
        if number and not _settled(number, derived.operation == "ratio"):
            still_open.append(derived.key)
    return still_open


def _settled(number: Number, is_ratio: bool) -> bool:
    """A ratio is, too, if it is as far from 1 as its interval is wide."""
    if number.low is None or number.high is None:
        return False
    if number.high - number.low <= 2 * NARROW * abs(number.value):
        return True
    apart = is_ratio and min(number.low, number.value) > 0
    return apart and abs(math.log(number.value)) >= math.log(number.high / number.low)


def _judged(claim: Claim, library: Library) -> JudgedClaim:
    judgement, origin = _judge(claim, library)
    chapters, run, own = [claim.chapter] if claim.chapter else [], "", ""
    if claim.experiment:  # its own chapter first, then the others that tell of it
        home = library.experiments[claim.experiment]
        chapters = list(dict.fromkeys([*chapters, *home.chapters]))
        both = library.both(claim.experiment)
        table = both.table_of(origin)
        run = table.run.footer if table else ""
        if origin == REFERENCE and both.here:
            own = _judge_on(claim, library, HERE).why
    return {
        "id": claim.id,
        "source": claim.source,
        "source_title": SOURCES[claim.source],
        "kind": claim.kind,
        "text": claim.text,
        "then": claim.then,
        "experiment": claim.experiment,
        "rule": "; ".join(rule.text() for rule in claim.rules),
        "verdict": judgement.verdict,
        "why": judgement.why,
        "numbers": judgement.numbers,
        "usable": judgement.usable,
        "repetitions": judgement.repetitions,
        "near": judgement.near_line or bool(claim.near_line),
        "near_why": claim.near_line,
        "reason": claim.reason,
        "standing": judgement.verdict if claim.rules else WITHOUT_RULE.get(claim.kind, NO_RULE),
        "chapters": chapters,
        "source_run": origin,
        "run": run,
        "own": own,
    }


def _judge(claim: Claim, library: Library) -> tuple[Judgement, str]:
    """On the reader's own data; where those do not suffice, on the reference."""
    if not claim.rules:
        return Judgement(NOT_MEASURED, claim.why or WHY_NO_RULE[claim.kind]), HERE
    own = _judge_on(claim, library, HERE)
    if own.verdict not in UNDECIDED:
        return own, HERE
    other = _judge_on(claim, library, REFERENCE)
    if other.verdict not in UNDECIDED:
        return other, REFERENCE
    # Where the reader's own data is not looked at, or there is none, the reference's reason counts.
    only = library.reference_only or other.verdict == NOT_JUDGED != own.verdict
    return (other, REFERENCE) if only else (own, HERE)


def _judge_on(claim: Claim, library: Library, origin: str) -> Judgement:
    judgements = []
    for rule in claim.rules:
        operands = {}
        # Where two experiments are compared, the same variant is named twice.
        named = any(":" in operand for operand in rule.operands.values())
        for key, operand in rule.operands.items():
            other, _, rest = operand.rpartition(":")
            name = other or claim.experiment
            allowed = rules.allowed(rule.name, rule.numbers)
            both = library.both(name)
            table = both.table_of(origin)
            measured = _measured(rest, table, allowed) if table else None
            if measured is None:
                return Judgement(NOT_MEASURED, _why_missing(operand, both))
            shown = f"{measured.name} ({name})" if named else measured.name
            operands[key] = replace(measured, name=shown)
        judgements.append(rules.judge(rule.name, operands, rule.numbers))
    combined = rules.combine(judgements)
    if origin == REFERENCE and not library.reference_only:
        return replace(combined, numbers=combined.numbers.replace(" here, ", " there, "))
    return combined


def _why_missing(operand: str, both: Both) -> str:
    variant = operand.rpartition(":")[2].partition(".")[0].partition(",")[0]
    otherwise = "it was not run" if both.here is None else f"no data for {operand}"
    return next((reason for name, reason in both.skips if name == variant), otherwise)


def _measured(operand: str, table: NumberTable, allowed: float) -> Measured | None:
    """What a rule asks of an operand; others may have taken the share `allowed` of a repetition."""
    if "." not in operand:
        return _derived(operand, table, allowed)
    name, metric, x = split_operand(operand)
    row = table.row(operand)
    if row is None:
        return None
    points = {
        float(point.x): point
        for point in table.series[name][metric].points
        if point.x is not None and not isinstance(point.x, str)
    }
    asked = table.experiment.metric(metric)
    return Measured(
        name=table.title(name) + (f" at {x_text(row.x)}" if x else ""),
        values=row.usable_rounds(allowed),
        unit=asked.unit,
        better=asked.better,
        points={at: point.usable_rounds(allowed) for at, point in points.items()},
        set=f"{table.experiment.id}/{table.origin}",
        repetitions=len(row.rounds),
        against=_against([row, *points.values()], allowed),
        twins=table.twins(metric, row.x if x else None, allowed),
    )


def _against(rows: Iterable[Measurement], allowed: float) -> frozenset[str]:
    return frozenset(mark for row in rows for mark in row.unusable(allowed).values())


def _derived(key: str, table: NumberTable, allowed: float) -> Measured | None:
    """Of a [[number]]."""
    whole = table.derived.get(key)
    if whole is None:
        return None
    wanted = next(d for d in table.experiment.derived if d.key == key)
    number = table.derive(wanted, allowed)
    rows = [row for operand in wanted.operands if (row := table.row(operand, wanted.at))]
    return Measured(
        name=key,
        values=_of_each_round(wanted, rows, allowed) if number else {},
        unit=whole.unit,
        set=f"{table.experiment.id}/{table.origin}",
        repetitions=whole.count,
        against=_against(rows, allowed),
    )


def _of_each_round(wanted: Derived, rows: Sequence[Measurement], allowed: float) -> dict[int, float]:
    """A [[number]] in each round that has all it is made of; the number itself is not the median of these, but its
    interval is of the same rounds.
    """
    first, *others = (row.usable_rounds(allowed) for row in rows)
    numbers = {}
    for n in sorted(set(first).intersection(*others)):
        value: float | None = first[n]
        match wanted.operation:
            case "ratio":
                value = first[n] / others[0][n] if others[0][n] else None
            case "difference":
                value = first[n] - others[0][n]
            case "inverse":
                value = 1 / first[n] if first[n] else None
        if value is not None:
            numbers[n] = value * wanted.scale
    return numbers
