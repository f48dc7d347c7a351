"""The ledger of the claims since 2003: benchmarks/claims-since-2003.toml, judged by the rules of the first ledger.

A row has the form of a claim (claims.py), and beside it who said it, where, whether its figures were found there, who
disputes it, and who saw the same. A row that is not measured yet says how it can be; one that loopback or two
processors cannot decide says why. Nothing here takes part in the judge of the first ledger: this one has a hash of its
own, of the same rules, of this file and of those of benchmarks/experiments-since that a rule asks.
"""

import textwrap
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from quest.ground import toml
from quest.ground.errors import InputError
from quest.ground.toml import Doc, Rule
from quest.measure import chosen
from quest.measure.chosen import LEDGER_SINCE
from quest.measure.progress import terminal_width
from quest.measure.records import HERE, REFERENCE
from quest.report import claims, judge, sessions, verdicts
from quest.report.claims import Claim, JudgedClaim
from quest.report.measured import Library
from quest.report.rules import NOT_JUDGED, NOT_MEASURED, UNDECIDED, Judgement
from quest.spec import experiment_file
from quest.spec.model import WITHOUT_RULE, Experiment, Filled, Texts
from quest.stats.table import NumberTable

SOURCE, TITLE = "since", "claims since 2003"
#: How far the figures of a claim were found in what it cites; the first words of `source_checked`.
CHECKED = ("found", "in part", "second hand")
#: How a row stands that no rule decides: it could be measured, or not on this machine.
NOT_YET, NOT_HERE = "not measured yet", "cannot be decided here"
NOT_REGISTERED = "not registered"  #: of a word: its data are older than the registration of this ledger's judge
#: What decides about a word of this ledger.
CODE = (*judge.CODE, "quest/report/since.py", "quest/measure/chosen.py")


@dataclass(frozen=True, kw_only=True)
class ClaimSince(Claim):
    """What somebody has claimed since 2003, who and where, and the rules that decide whether it holds here."""

    source: str = SOURCE  # of all of them: no key
    since: Annotated[int, Rule(least=1), Doc("number in the list of these claims; rows of one number are of one text")]
    author: Annotated[Filled, Doc("who said it")]
    work: Annotated[Filled, Doc("in what")]
    date: Annotated[str, Doc("when, as exactly as it is known")]
    url: Annotated[str, Rule(pattern="https?://.+", must="be an address"), Doc("where")]
    source_checked: Annotated[
        str,
        Rule(pattern=rf"({'|'.join(CHECKED)}): .+", must='begin with "found: ", "in part: " or "second hand: "'),
        Doc("whether the figures were found in what is cited, what was read, and what of it was not found"),
    ]
    disputed: Annotated[Texts, Doc("who says otherwise, and where that was read")] = ()
    confirmed: Annotated[Texts, Doc("who saw the same, and where that was read")] = ()
    how: Annotated[str, Doc("not measured yet: how it can be, and the line that would decide")] = ""
    probe: Annotated[str, Doc("what short probes on busy processors showed, before there was a rule; not printed")] = ""

    @property
    def checked(self) -> str:
        """One of CHECKED."""
        return self.source_checked.partition(":")[0]

    def fault(self) -> str:
        """What is wrong with it, whatever the experiments are."""
        if problem := super().fault():
            return problem
        decided = [name for name in ("as_written", "test", "how", "why") if getattr(self, name)]
        if self.kind in WITHOUT_RULE or self.never:
            return ""
        if len(decided) == 1:
            return ""
        return 'one of "rule", "test", "how" (not measured yet) and "why" (it cannot be) is needed'


@dataclass(frozen=True)
class LedgerSince:
    """The file."""

    claims: Annotated[tuple[ClaimSince, ...], Doc("one for each claim", key="claim")]


# ---- reading ------------------------------------------------------------------------------------


def load(experiments: Iterable[Experiment], path: Path = LEDGER_SINCE) -> list[ClaimSince]:
    """The ledger, halves behind their whole; InputError for anything in it that cannot be right. `experiments`: of both
    folders, for a rule may ask either.
    """
    known = {one.id: one for one in experiments}
    rows: dict[int, ClaimSince] = {}
    for row in toml.load(LedgerSince, path).claims:
        problem = f"claim {row.id} is there twice" if row.id in rows else ""
        try:
            rows[row.id] = replace(row, rules=claims.with_rules(row, known).rules) if row.as_written else row
        except ValueError as error:
            problem = problem or f"claim {row.id}: {error}"
        if problem:
            raise InputError(f"{path}: {problem}")
    for row in rows.values():
        if row.half_of and (row.half_of not in rows or rows[row.half_of].half_of):
            raise InputError(f"{path}: claim {row.id}: half of {row.half_of}, which is no whole claim")
    return list(rows.values())


def ledger() -> list[ClaimSince]:
    """Of the tree we stand in; empty where it has none, as that of a test."""
    return load(chosen.everything()) if LEDGER_SINCE.exists() else []


def current() -> str:
    """The hash of the judge of this ledger, as it is now: an experiment that no rule asks is no part of it."""
    asked = sorted({name for row in ledger() for name in row.asks})
    folders = (chosen.SINCE, experiment_file.FOLDER)
    return judge.hash_of(judge.OURS, Path(), CODE, [f"{folder}/{name}.toml" for folder in folders for name in asked])


# ---- judging ------------------------------------------------------------------------------------


class JudgedSince(JudgedClaim):
    """An entry of since.json: that of the first ledger, and what stands beside it in the row. `how`: of a row that is
    not measured yet.
    """

    since: int
    author: str
    work: str
    date: str
    url: str
    checked: str
    source_checked: str
    disputed: Sequence[str]
    confirmed: Sequence[str]
    how: str


def judge_all(library: Library) -> list[JudgedSince]:
    """Every row with its verdict. `library`: with the experiments of both folders."""
    plan, now = judge.registered(judge.REGISTERED_SINCE), current()
    return [_judged(row, library, plan, now) for row in load(library.experiments.values())]


def side_by_side(library: Library, ids: Container[str]) -> list[tuple[Claim, Judgement, Judgement]]:
    """The rows that rest on these experiments, with the judgement on the own run and on the reference."""
    return [
        (row, claims.judge_on(row, library, HERE), claims.judge_on(row, library, REFERENCE))
        for row in (load(library.experiments.values()) if LEDGER_SINCE.exists() else ())
        if row.experiment in ids
    ]


def _judge(row: ClaimSince, library: Library) -> tuple[Judgement, str]:
    """On the reader's own data; where those do not suffice, on the reference."""
    if not row.rules:
        return Judgement(NOT_MEASURED, row.how or row.why), HERE
    own, other = (claims.judge_on(row, library, origin) for origin in (HERE, REFERENCE))
    if own.verdict not in UNDECIDED:
        return own, HERE
    if other.verdict not in UNDECIDED:
        return other, REFERENCE
    only = library.reference_only or other.verdict == NOT_JUDGED != own.verdict
    return (other, REFERENCE) if only else (own, HERE)


def _standing(row: ClaimSince, judgement: Judgement) -> str:
    if row.rules or row.never:
        return judgement.verdict
    return WITHOUT_RULE.get(row.kind, NOT_YET if row.how else NOT_HERE)


def _whose(row: ClaimSince, asked: Iterable[NumberTable], plan: judge.Registration | None, now: str) -> str:
    """Who gave the word: REGISTERED if the data name the judge that was registered before them, and it judges now; ANEW
    if another judges now; NOT_REGISTERED if the data name no registered one.
    """
    if plan is None or any(table.run.judge != plan.judge for table in asked):
        return NOT_REGISTERED
    own = claims.claim_hash(row)
    same = all(table.run.claims.get(str(row.id)) == own for table in asked)
    return claims.REGISTERED if same and plan.judge == now else claims.ANEW


def _judged(row: ClaimSince, library: Library, plan: judge.Registration | None, now: str) -> JudgedSince:
    judgement, origin = _judge(row, library)
    home = library.experiments.get(row.experiment)
    both = library.both(home.id) if home else None
    table = both.table_of(origin) if both else None
    asked = [found for name in row.asks if (found := library.both(name).table_of(origin))]
    whose = _whose(row, asked, plan, now) if table and len(asked) == len(row.asks) else ""
    counts = _sessions(row, library) if origin == REFERENCE else {table.run.environment["cpu"]: 1} if table else {}
    needed = plan or judge.Registration
    too_few = sessions.OWN if origin == HERE else sessions.lacking(counts, needed.sessions, needed.alone)
    return {
        "id": row.id,
        "source": SOURCE,
        "source_title": TITLE,
        "kind": row.kind,
        "text": row.text,
        "then": row.then,
        "experiment": row.experiment,
        "rule": "; ".join(rule.text() for rule in row.rules),
        "verdict": judgement.verdict,
        "why": judgement.why,
        "numbers": judgement.numbers,
        "usable": judgement.usable,
        "repetitions": judgement.repetitions,
        "near": judgement.near_line or bool(row.near_line or row.flips),
        "near_why": row.near_line or row.flips,
        "reason": row.reason,
        "standing": _standing(row, judgement),
        "chapters": list(dict.fromkeys([*([row.chapter] if row.chapter else []), *(home.chapters if home else ())])),
        "source_run": origin,
        "run": table.run.footer if table else "",
        "own": claims.judge_on(row, library, HERE).why if both and both.here and origin == REFERENCE else "",
        "judged": whose,
        "frozen": "",
        "sessions": counts if whose else {},
        "lacking": too_few if whose else "",
        "each_session": [],
        "failed": [],
        "since": row.since,
        "author": row.author,
        "work": row.work,
        "date": row.date,
        "url": row.url,
        "checked": row.checked,
        "source_checked": row.source_checked.partition(": ")[2],
        "disputed": row.disputed,
        "confirmed": row.confirmed,
        "how": row.how,
    }


def _sessions(row: ClaimSince, library: Library) -> dict[str, int]:
    """Processor -> how many sessions of the reference have what the rules ask."""
    found: dict[str, int] = {}
    for use in row.rules:
        for cpu, operands in claims.by_processor(row, use, library).items():
            found[cpu] = min(found.get(cpu, len(operands[next(iter(operands))])), *map(len, operands.values()))
    return found


# ---- on the screen ------------------------------------------------------------------------------


def print_ledger(rows: list[JudgedSince], only: list[str]) -> int:
    """Each row as the first ledger prints a claim, with its source below; then how many stand how."""
    width = terminal_width(120)
    wanted = {entry["id"] for entry in verdicts.select([*rows], only)}
    shown = [row for row in rows if row["id"] in wanted]
    for row in shown:
        print(verdicts.line(row, width, long=True))
        for text in source_lines(row):
            print("\n".join(f"      {part}" for part in textwrap.wrap(text, width - 12)))
    print(counts(shown))
    return 0


def source_lines(row: JudgedSince) -> list[str]:
    """Who said it and where, how far that was checked, and who says otherwise; in lines."""
    said = f"{row['author']}: {row['work']}" + (f", {row['date']}" if row["date"] else "")
    lines = [f"said by {said}; source checked: {row['checked']}"]
    lines += [f"then: {row['then']}"] if row["then"] else []
    lines += [f"disputed: {text}" for text in row["disputed"]]
    return [*lines, *(f"seen, too: {text}" for text in row["confirmed"])]


def counts(rows: Sequence[JudgedSince]) -> str:
    """`54 claims since 2003: 9 not measured here, 30 not measured yet, ...`, the commonest first."""
    standings = Counter(row["standing"] for row in rows)
    parts = ", ".join(f"{number} {word}" for word, number in standings.most_common())
    checked = Counter(row["checked"] for row in rows)
    sources = ", ".join(f"{checked[word]} {word}" for word in CHECKED if checked[word])
    title = TITLE if len(rows) != 1 else TITLE.replace("claims", "claim")
    return f"{len(rows)} {title}: {parts}; figures checked in their sources: {sources}"
