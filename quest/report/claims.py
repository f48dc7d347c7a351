"""The claim ledger: benchmarks/claims.toml, judged by rules.py on the results that are shown."""

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, TypedDict

from quest.ground import toml
from quest.ground.errors import InputError
from quest.ground.toml import Doc, Rule
from quest.measure.records import HERE, REFERENCE
from quest.measure.usable import CLIENT_BOUND
from quest.report import frozen, judge, rules, sessions, tested
from quest.report.frozen import FrozenJudge
from quest.report.judge import Registration
from quest.report.measured import Both, Library
from quest.report.rules import (
    CHANGED,
    HOLDS,
    NO_DIFFERENCE,
    NOT_JUDGED,
    NOT_MEASURED,
    REVERSED,
    UNDECIDED,
    Judgement,
    Measured,
)
from quest.spec.coherence import operand_problem, split_operand
from quest.spec.experiment_file import LEDGER
from quest.spec.model import (
    AA,
    BY_TEST,
    FAILED,
    IN_MODEL,
    NEVER_SO,
    NO_RULE,
    NOT_BY_TEST,
    NOT_DECIDED,
    NOT_IN_MODEL,
    SOURCES,
    WITHOUT_RULE,
    Derived,
    Experiment,
    Value,
    x_text,
)
from quest.stats.table import ENDS, Measurement, NumberTable

WHY_NO_RULE = {
    "other-system": "it needs another operating system",
    "historical": "historical: it can only be cited",
}
RULE = "is"  # the key of a rule's table that names the rule
FAILS = (CHANGED, REVERSED, NO_DIFFERENCE)  #: what a rule says of what is not as it was said
MAKE_TESTS = "the test was not run here: make check"


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
    test: Annotated[
        str,
        Rule(pattern=r"tests/[\w/-]+\.py::test_\w+"),
        Doc(
            "in place of a rule: what no measurement could deny is shown by a test, whose result is the verdict",
            example='"tests/micro/test_x.py::test_y"',
        ),
    ] = ""
    passing: Annotated[
        str,
        Rule(choices=("holds", "fails")),
        Doc("what it says of the claim that its test passes; default holds", example='"holds|fails"'),
    ] = ""
    reason: Annotated[str, Doc("why the rule's lines are where they are, from the claim's own words")] = ""
    model: Annotated[
        bool, Doc('only a simulated disk, or a limit of reads in its place, decides: "in the model: holds"')
    ] = False
    mechanism: Annotated[
        str, Doc("the disk is simulated, and it decides nothing: why; a claim of such disks alone has this or model")
    ] = ""
    never: Annotated[
        str, Doc('the standard or source of the time by which it was wrong: where it fails here, "never so"')
    ] = ""
    flips: Annotated[
        str,
        Doc('sessions of one machine have given different words: "not decided" while there are too few of them; why'),
    ] = ""
    half_of: Annotated[int, Rule(least=1), Doc("the claim of which this is the other half; it stands behind it")] = 0
    near_line: Annotated[
        str,
        Doc("known beforehand to lie near the line, and why: two runs may give different verdicts", key="near"),
    ] = ""
    chapter: Annotated[str, Doc("that tells of it, where that is not the first of its experiment's")] = ""

    @property
    def asks(self) -> set[str]:
        """The experiments that its rules ask."""
        operands = [operand for use in self.rules for operand in use.operands.values()]
        return {operand.rpartition(":")[0] or self.experiment for operand in operands}

    def fault(self) -> str:
        """What is wrong with it, whatever the experiments are."""
        if self.as_written and not self.experiment:
            return '"rule" goes with "experiment"'
        if self.experiment and not self.as_written:
            return '"experiment" goes with "rule"'
        if self.test and (self.as_written or self.why):
            return '"test" stands in place of "rule" and "why"'
        if self.passing and not self.test:
            return '"passing" goes with "test"'
        for name in ("model", "mechanism", "flips"):
            if getattr(self, name) and not self.as_written:
                return f'"{name}" goes with "rule"'
        if self.model and (self.mechanism or self.never):
            return '"model" goes neither with "mechanism" nor with "never"'
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
            claims[claim.id] = with_rules(claim, known)
        except ValueError as error:
            problem = problem or f"claim {claim.id}: {error}"
        if problem:
            raise InputError(f"{path}: {problem}")
    for claim in claims.values():
        if claim.half_of and (claim.half_of not in claims or claims[claim.half_of].half_of):
            raise InputError(f"{path}: claim {claim.id}: half of {claim.half_of}, which is no whole claim")
    return sorted(claims.values(), key=lambda claim: (claim.half_of or claim.id, claim.id))


def with_rules(claim: Claim, known: Mapping[str, Experiment]) -> Claim:
    """The claim with the rules as they are applied. ValueError for what cannot be right."""
    home = known.get(claim.experiment)
    uses = tuple(_rule(use, home, known) for use in claim.as_written)
    if claim.experiment and home is None:
        raise ValueError(f'unknown experiment "{claim.experiment}"')
    if claim.kind in ("testable", "partly") and not (uses or claim.why or claim.test or claim.never):
        raise ValueError('a rule, "test", "never" or "why" (not) is needed')
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


# ---- what was registered ------------------------------------------------------------------------


def claim_hash(claim: Claim) -> str:
    """SHA-256 of its rules as canonical JSON, with the experiment that their operands are of, and of what else decides
    about its word. Its prose may be mended without another hash.
    """
    rules_of_it = [
        {"is": use.name, **use.operands, **{key: float(number) for key, number in use.numbers.items()}}
        for use in claim.rules
    ]
    policy = {"model": claim.model, "never": bool(claim.never), "flips": bool(claim.flips), "test": claim.test}
    policy |= {"passing": claim.passing}
    whole = {"experiment": claim.experiment, "rule": rules_of_it, **{k: v for k, v in policy.items() if v}}
    canonical = json.dumps(whole, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def hashes(some: Iterable[Claim]) -> dict[str, str]:
    """Number of each claim that has a rule or a test, as text -> its hash."""
    return {str(claim.id): claim_hash(claim) for claim in some if claim.rules or claim.test}


# ---- judging ------------------------------------------------------------------------------------


class JudgedClaim(TypedDict):
    """An entry of claims.json. `verdict`, `why`, `numbers`: of the run `source_run` ("here" or
    "reference"), whose footer is `run`; `usable` of `repetitions` were asked; `near`: near the
    line, for `near_why` where that is so whatever is measured; `standing`: one of STANDINGS;
    of a claim whose judge is a test, `rule` names it;
    `own`: why the reader's own data, if they are there, decide nothing; `judged`: "registered" if
    the data say that they were judged like that before they were there, else "judged anew";
    `frozen`: the word of the judge that was frozen for these data, "" if none was; `sessions`:
    processor -> how many the word could rest on; `lacking`: what more it would take; `each_session`:
    where there are several, what each says; `failed`: how often what it is about has failed.
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
    judged: str
    frozen: str
    sessions: Mapping[str, int]
    lacking: str
    each_session: list[str]
    failed: list[str]


def judge_all(library: Library) -> list[JudgedClaim]:
    """Every claim of the ledger with its verdict, as claims.json has them."""
    record = OnRecord(judge.current(), judge.registered(), frozen.all_judged())
    return [_judged(claim, library, record) for claim in load(library.experiments.values())]


@dataclass(frozen=True)
class OnRecord:
    """The hash of the judge that runs now, what is registered, and the judges that were frozen."""

    now: str
    plan: Registration | None
    kept: Sequence[FrozenJudge]


def side_by_side(library: Library, ids: Container[str]) -> list[tuple[Claim, Judgement, Judgement]]:
    """The claims that rest on these experiments, with the judgement on the own run and on the
    reference.
    """
    return [
        (claim, judge_on(claim, library, HERE), judge_on(claim, library, REFERENCE))
        for claim in (load(library.experiments.values()) if LEDGER.exists() else ())
        if claim.experiment in ids
    ]


def _judged(claim: Claim, library: Library, record: OnRecord) -> JudgedClaim:
    judgement, origin = _judge(claim, library)
    decided = claim.rules or claim.test or claim.never
    chapters, run, own = [claim.chapter] if claim.chapter else [], "", ""
    if claim.experiment:  # its own chapter first, then the others that tell of it
        home = library.experiments[claim.experiment]
        chapters = list(dict.fromkeys([*chapters, *home.chapters]))
        both = library.both(claim.experiment)
        table = both.table_of(origin)
        run = table.run.footer if table else ""
        if origin == REFERENCE and both.here:
            own = judge_on(claim, library, HERE).why
    return {
        "id": claim.id,
        "source": claim.source,
        "source_title": SOURCES[claim.source],
        "kind": claim.kind,
        "text": claim.text,
        "then": claim.then,
        "experiment": claim.experiment,
        "rule": f"test({claim.test})" if claim.test else "; ".join(rule.text() for rule in claim.rules),
        "verdict": judgement.verdict,
        "why": judgement.why,
        "numbers": judgement.numbers,
        "usable": judgement.usable,
        "repetitions": judgement.repetitions,
        "near": judgement.near_line or bool(claim.near_line or claim.flips),
        "near_why": claim.near_line or claim.flips,
        "reason": claim.reason,
        "standing": judgement.verdict if decided else WITHOUT_RULE.get(claim.kind, NO_RULE),
        "chapters": chapters,
        "source_run": origin,
        "run": run,
        "own": own,
        "failed": _failures(claim, _tables(claim, library, origin)) if claim.rules else [],
        **_of_the_judge(claim, library, origin, record, judgement.within),
    }


class OfTheJudge(TypedDict):
    """What stands beside a word: who said it, and on how many sessions."""

    judged: str
    frozen: str
    sessions: Mapping[str, int]
    lacking: str
    each_session: list[str]


REGISTERED, ANEW = "registered", "judged anew"


def _of_the_judge(claim: Claim, library: Library, origin: str, record: OnRecord, within: str) -> OfTheJudge:
    """`within`: how many sessions too few have usable rounds enough, in words."""
    asked = {name: table for name in sorted(claim.asks) if (table := library.both(name).table_of(origin))}
    if not claim.rules or len(asked) < len(claim.asks):
        return {"judged": "", "frozen": "", "sessions": {}, "lacking": "", "each_session": []}
    own = claim_hash(claim)
    there_before = all(
        table.run.judge == record.now and table.run.claims.get(str(claim.id)) == own for table in asked.values()
    )
    in_sessions = _sessions(claim, library) if origin == REFERENCE else {HERE: asked}
    counts = Counter(map(_processor, in_sessions.values()))
    plan = record.plan or Registration
    return {
        "judged": REGISTERED if there_before else ANEW,
        "frozen": frozen.word_of(claim.id, asked, record.kept),
        "sessions": dict(sorted(counts.items())),
        "lacking": sessions.OWN if origin == HERE else sessions.lacking(counts, plan.sessions, plan.alone) or within,
        "each_session": _each_session(claim, in_sessions) if len(in_sessions) > 1 else [],
    }


def _sessions(claim: Claim, library: Library) -> dict[str, dict[str, NumberTable]]:
    """Name of each session that has all that the claim asks -> experiment -> its table there."""
    tables = {name: library.sessions(name) for name in claim.asks}
    names = [name for name in next(iter(tables.values()), {}) if all(name in of_one for of_one in tables.values())]
    return {name: {asked: of_one[name] for asked, of_one in tables.items()} for name in names}


def _tables(claim: Claim, library: Library, origin: str) -> list["Tables"]:
    """The tables of the reader's own run; or those of each session of the reference."""
    found: list[Tables] = []
    if origin == REFERENCE:
        found += [tables.get for tables in _sessions(claim, library).values()]
    return found or [lambda name: library.both(name).table_of(origin)]


def _failures(claim: Claim, sessions_of: Iterable["Tables"]) -> list[str]:
    """`Apache failed 3 of 3 and was given up`: of all that the rules of the claim ask, in any of these sessions."""
    texts = []
    operands = dict.fromkeys(operand for use in claim.rules for operand in use.operands.values())
    for tables, operand in itertools.product(sessions_of, operands):
        other, _, rest = operand.rpartition(":")
        table = tables(other or claim.experiment)
        for name, x in _asked_of(rest, table) if table else ():
            if how := table.run.failed(name, x):
                texts.append(f"{table.title(name)}{f' at {x}' if x else ''} {how}")
    return list(dict.fromkeys(texts))


def _asked_of(operand: str, table: NumberTable) -> list[tuple[str, str]]:
    """The variants of an operand, and at which x; "" is all of them."""
    parts = [(operand, "")]
    if "." not in operand:
        wanted = next(d for d in table.experiment.derived if d.key == operand)
        parts = [(part, "" if wanted.at is None else x_text(wanted.at)) for part in wanted.operands]
    split = [(split_operand(part), at) for part, at in parts]
    variants = [(name.partition(",")[0].removesuffix(AA), x or at) for (name, _, x), at in split]
    return [(name, "" if x in ENDS else x) for name, x in variants]


def _or_failed(judgement: Judgement, failures: Sequence[str]) -> Judgement:
    """What cannot be judged because it failed: then that is the word."""
    if judgement.verdict not in UNDECIDED or not failures:
        return judgement
    return replace(judgement, verdict=FAILED, why="; ".join(failures))


def _each_session(claim: Claim, in_sessions: Mapping[str, Mapping[str, NumberTable]]) -> list[str]:
    """What each session alone says, with its numbers."""
    texts = []
    for name, tables in in_sessions.items():
        judgement = in_session(claim, tables.get)
        head = f"{_processor(tables)}, session {name}: {judgement.verdict}"
        texts.append("; ".join(filter(None, (head, judgement.numbers))))
    return texts


def in_session(claim: Claim, tables: "Tables") -> Judgement:
    """What its rules say of these tables alone, as those of one session, in the ledger's words."""
    judgement = _pronounce(claim, tables, lambda operand: f"no data for {operand}")
    return in_words(replace(claim, flips=""), judgement)


def by_processor(claim: Claim, use: RuleUse, library: Library) -> dict[str, dict[str, list[Measured]]]:
    """What a rule asks of the reference: processor -> operand -> what was measured in each of its sessions, one value
    a round, of the rounds that are usable for the rule.
    """
    processors: dict[str, dict[str, list[Measured]]] = {}
    for tables in _sessions(claim, library).values():
        operands = _operands(claim, use, tables.get)
        if not isinstance(operands, str):
            of_processor = processors.setdefault(_processor(tables), {})
            for key, measured in operands.items():
                of_processor.setdefault(key, []).append(measured)
    return processors


def _processor(tables: Mapping[str, NumberTable]) -> str:
    """The one that a session ran on."""
    return next(iter(tables.values())).run.environment["cpu"]


def _judge(claim: Claim, library: Library) -> tuple[Judgement, str]:
    """On the reader's own data; where those do not suffice, on the reference."""
    if claim.test:
        return _by_test(claim, library)
    if not claim.rules:
        word = NEVER_SO if claim.never else NOT_MEASURED
        return Judgement(word, claim.never or claim.why or WHY_NO_RULE[claim.kind]), HERE
    own = judge_on(claim, library, HERE)
    if own.verdict not in UNDECIDED:
        return own, HERE
    other = judge_on(claim, library, REFERENCE)
    if other.verdict not in UNDECIDED:
        return other, REFERENCE
    # Where the reader's own data is not looked at, or there is none, the reference's reason counts.
    only = library.reference_only or other.verdict == NOT_JUDGED != own.verdict
    return (other, REFERENCE) if only else (own, HERE)


def in_words(claim: Claim, judgement: Judgement) -> Judgement:
    """The judgement of its rules in the words of the ledger's policy: a rule does not know what it was asked of."""
    verdict = judgement.verdict
    if claim.flips and judgement.within and verdict not in UNDECIDED:
        return replace(judgement, verdict=NOT_DECIDED, why=f"{verdict}, {judgement.within}; {claim.flips}")
    if claim.never and verdict in FAILS:
        return replace(judgement, verdict=NEVER_SO, why=f"{judgement.why}; {claim.never}")
    if claim.model and verdict == HOLDS:
        return replace(judgement, verdict=IN_MODEL)
    if claim.model and verdict in FAILS:
        return replace(judgement, verdict=NOT_IN_MODEL, why=f"{verdict}: {judgement.why}")
    return judgement


def _by_test(claim: Claim, library: Library) -> tuple[Judgement, str]:
    """What its test says: here, or else in the reference."""
    for origin, folder in library.places.items():
        outcome = tested.read(folder).get(claim.test)
        if outcome and not (origin == HERE and library.reference_only):
            as_said = (claim.passing != "fails") == (outcome == tested.PASSED)
            return Judgement(BY_TEST if as_said else NOT_BY_TEST, f"{claim.test} {outcome}"), origin
    return Judgement(NOT_MEASURED, MAKE_TESTS), HERE


def judge_on(claim: Claim, library: Library, origin: str) -> Judgement:
    """Of its rules, in words."""
    return in_words(claim, _of_rules(claim, library, origin))


def _of_rules(claim: Claim, library: Library, origin: str) -> Judgement:
    def why_missing(operand: str) -> str:
        return _why_missing(operand, library.both(operand.rpartition(":")[0] or claim.experiment), origin)

    if origin == REFERENCE:
        combined = _over_sessions(claim, library, why_missing)
    else:
        combined = _pronounce(claim, lambda name: library.both(name).here, why_missing)
    if origin == REFERENCE and not library.reference_only:
        return replace(combined, numbers=combined.numbers.replace(" here, ", " there, "))
    return combined


def _over_sessions(claim: Claim, library: Library, why_missing: Callable[[str], str]) -> Judgement:
    """All rules of the claim on each processor that has sessions enough, or on each, if none has; put together, and
    never pooled.
    """
    judgements: dict[str, list[Judgement]] = {}
    plan = judge.registered() or Registration
    failures = _failures(claim, _tables(claim, library, REFERENCE))
    for use in claim.rules:
        asked = by_processor(claim, use, library)
        if not asked:
            operands = _operands(claim, use, lambda name: library.both(name).reference)
            missing = operands if isinstance(operands, str) else use.operands["a"]
            return _or_failed(Judgement(NOT_MEASURED, why_missing(missing)), failures)
        counts = {cpu: min(map(len, operands.values())) for cpu, operands in asked.items()}
        for cpu in sessions.that_count(counts, plan.sessions, plan.alone) or asked:
            judgements.setdefault(cpu, []).append(rules.judge(use.name, asked[cpu], use.numbers))
    whole = {cpu: rules.combine(each) for cpu, each in judgements.items() if len(each) == len(claim.rules)}
    nothing = Judgement(NOT_MEASURED, "no processor has all that it asks")
    return _or_failed(rules.over_processors(whole) if whole else nothing, failures)


#: Experiment -> the table that is asked; None where there is none.
Tables = Callable[[str], NumberTable | None]


def _pronounce(claim: Claim, tables: Tables, why_missing: Callable[[str], str]) -> Judgement:
    """All rules of the claim on these tables. `why_missing`: of an operand that has no data there."""
    judgements = []
    for use in claim.rules:
        operands = _operands(claim, use, tables)
        if isinstance(operands, str):
            return _or_failed(Judgement(NOT_MEASURED, why_missing(operands)), _failures(claim, [tables]))
        judgements.append(rules.judge(use.name, operands, use.numbers))
    return _or_failed(rules.combine(judgements), _failures(claim, [tables]))


def _operands(claim: Claim, use: RuleUse, tables: Tables) -> dict[str, Measured] | str:
    """What the rule asks; the first operand that has no data there, if one has none."""
    operands = {}
    # Where two experiments are compared, the same variant is named twice.
    named = any(":" in operand for operand in use.operands.values())
    allowed = rules.allowed(use.name, use.numbers)
    from_below = rules.FROM_BELOW.get(use.name)
    for key, operand in use.operands.items():
        other, _, rest = operand.rpartition(":")
        name = other or claim.experiment
        table = tables(name)
        forgiven = CLIENT_BOUND if key == from_below else ""
        measured = _measured(rest, table, allowed, forgiven) if table else None
        if measured is None:
            return operand
        operands[key] = replace(measured, name=f"{measured.name} ({name})" if named else measured.name)
    return operands


def _why_missing(operand: str, both: Both, origin: str) -> str:
    variant = operand.rpartition(":")[2].partition(".")[0].partition(",")[0]
    otherwise = f"no data for {operand}" if both.table_of(origin) else "it was not run"
    return next((reason for name, reason in both.skips if name == variant), otherwise)


def _measured(operand: str, table: NumberTable, allowed: float, forgiven: str = "") -> Measured | None:
    """What a rule asks of an operand; others may have taken the share `allowed` of a repetition, and one mark is
    forgiven.
    """
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
        values=row.usable_rounds(allowed, forgiven),
        unit=asked.unit,
        better=asked.better,
        points={at: point.usable_rounds(allowed) for at, point in points.items()},
        set=f"{table.experiment.id}/{table.origin}",
        repetitions=len(row.rounds),
        against=_against([row, *points.values()], allowed, forgiven),
        twins=table.twins(metric, row.x if x else None, allowed),
        held_back=bool(forgiven) and forgiven in row.spoilt.values(),
    )


def _against(rows: Iterable[Measurement], allowed: float, forgiven: str = "") -> frozenset[str]:
    return frozenset(mark for row in rows for mark in row.unusable(allowed, forgiven).values())


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
        better=_better(wanted, table.experiment),
        set=f"{table.experiment.id}/{table.origin}",
        repetitions=whole.count,
        against=_against(rows, allowed),
    )


def _better(wanted: Derived, experiment: Experiment) -> str:
    """Of a [[number]] that is a metric or its inverse, which way is faster; "" of the others."""
    better = experiment.metric(split_operand(wanted.operands[0])[1]).better
    turned = {"lower": "higher", "higher": "lower"}
    return {"value": better, "inverse": turned.get(better, "")}.get(wanted.operation, "")


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
