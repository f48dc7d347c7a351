"""Guards of findings: chapters/guards.toml, asked on the reference run and on the reader's own.

A chapter says what the reference run shows. The guard of such a finding is a rule over results, of the form that
claims have, or the word that the ledger has for a claim. A finding that the reference run does not bear out stops the
build, and so does one that a further session contradicts; a session that decides nothing does not: the ledger says how
sure a word is. Where the run for which the text is written does not decide, all sessions together are asked, as for a
claim. A finding that the reader's own data contradict is marked. Where too little is measured nothing is said.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, TypedDict

from quest.ground import toml
from quest.ground.errors import InputError
from quest.ground.toml import Doc, Rule
from quest.measure.records import HERE, REFERENCE
from quest.report import claims
from quest.report.claims import Claim
from quest.report.measured import Library
from quest.report.rules import HOLDS, NEAR, UNDECIDED, Judgement
from quest.spec.model import SOURCES, VERDICTS, Experiment, Value
from quest.stats import estimates

GUARDS = Path("chapters/guards.toml")

AGREES, DISAGREES, UNKNOWN = "agrees", "disagrees", "unknown"


@dataclass(frozen=True)
class Guard:
    """What a finding rests on."""

    otherwise: Annotated[str, Rule(filled=True), Doc("one sentence for a reader whose own data disagree; Markdown")]
    experiment: Annotated[str, Doc("of the operands that name none")] = ""
    as_written: Annotated[
        tuple[Mapping[str, Value], ...],
        Rule(filled=True, single=True, must='be a table with "is", or a list of such tables'),
        Doc("a rule of benchmarks/claims.toml, or several, of which all must hold", key="rule"),
    ] = ()
    claim: Annotated[int, Doc("in place of a rule: a claim of the ledger")] = 0
    verdict: Annotated[str, Rule(choices=VERDICTS), Doc("the word that is expected")] = HOLDS

    def fault(self) -> str:
        """What is wrong with it, whatever the experiments are."""
        if bool(self.as_written) == bool(self.claim):
            return 'it has either "rule" or "claim"'
        if self.claim and self.experiment:
            return '"experiment" goes with "rule"'
        for rule in self.as_written:
            operands = (value for key, value in rule.items() if isinstance(value, str) and key != claims.RULE)
            if not self.experiment and any(":" not in operand for operand in operands):
                return 'an operand without an experiment, and no "experiment"'
        return ""


@dataclass(frozen=True)
class Guards:
    """The file."""

    guards: Annotated[Mapping[str, Guard], Doc("one for each finding", key="guard")]


class Judged(TypedDict):
    """An entry of guards.json. `rule`: as it is asked; `wanted`: the word that the finding rests on; `reference`,
    `why`, `numbers`: what the reference run says; `here`, `here_why`, `here_numbers`: what the reader has measured, ""
    where they are not looked at; `on_reference`, `on_own`: "agrees", "disagrees" or "unknown"; `asks`: the experiments.
    """

    rule: str
    wanted: str
    reference: str
    why: str
    numbers: str
    on_reference: str
    here: str
    here_why: str
    here_numbers: str
    on_own: str
    otherwise: str
    asks: list[str]


def load(
    experiments: Iterable[Experiment], ledger: Iterable[Claim], path: Path = GUARDS
) -> dict[str, tuple[Guard, Claim]]:
    """Name of each guard -> it, and the claim that is asked: of the ledger, or one made of its rules. InputError for
    anything that cannot be right.
    """
    known, by_number = {e.id: e for e in experiments}, {claim.id: claim for claim in ledger}
    found = {}
    for name, guard in toml.load(Guards, path).guards.items():
        try:
            found[name] = (guard, _asked(guard, known, by_number))
        except ValueError as error:
            raise InputError(f"{path}: guard.{name}: {error}") from None
    return found


def _asked(guard: Guard, known: Mapping[str, Experiment], ledger: Mapping[int, Claim]) -> Claim:
    if guard.claim:
        if guard.claim not in ledger or not ledger[guard.claim].rules:
            raise ValueError(f"the ledger has no claim {guard.claim} with a rule")
        return ledger[guard.claim]
    some = Claim(1, next(iter(SOURCES)), "testable", "", experiment=guard.experiment, as_written=guard.as_written)
    return claims.with_rules(some, known)


def judge_all(library: Library) -> dict[str, Judged]:
    """Every guard, by its name, as guards.json has them."""
    ledger = claims.load(library.experiments.values())
    return {
        name: _judged(guard, claim, library)
        for name, (guard, claim) in load(library.experiments.values(), ledger).items()
    }


def _judged(guard: Guard, claim: Claim, library: Library) -> Judged:
    reference = _on_reference(guard, claim, library)
    own = Judgement("", "") if library.reference_only else claims.judge_on(claim, library, HERE)
    rule = "; ".join(use.text() for use in claim.rules)
    return {
        "rule": f"claim {guard.claim}: {rule}" if guard.claim else rule,
        "wanted": guard.verdict,
        "reference": reference.verdict,
        "why": reference.why,
        "numbers": reference.numbers,
        "on_reference": _stands(reference, guard.verdict, missing=DISAGREES),
        "here": own.verdict,
        "here_why": own.why,
        "here_numbers": own.numbers,
        "on_own": _stands(own, guard.verdict, missing=UNKNOWN),
        "otherwise": guard.otherwise,
        "asks": sorted(claim.asks),
    }


def _on_reference(guard: Guard, claim: Claim, library: Library) -> Judgement:
    """What the run says for which the text is written, and if it does not decide, all sessions together; or what a
    further session says that decides, and otherwise.
    """
    if len(library.sessions(next(iter(sorted(claim.asks))))) < 2:
        return claims.judge_on(claim, library, REFERENCE)
    first = claims.in_session(claim, lambda name: library.both(name).reference)
    others = {session for name in claim.asks for session in library.sessions(name)}
    for session in sorted(others - {library.places[REFERENCE].name}):
        said = claims.in_session(claim, _tables_of(library, session))
        if _stands(said, guard.verdict, missing=UNKNOWN) == DISAGREES:
            return replace(said, why=f"session {session}: {said.why}")
    if _stands(first, guard.verdict, missing=UNKNOWN) == UNKNOWN:
        return claims.judge_on(claim, library, REFERENCE)
    return first


def _tables_of(library: Library, session: str) -> claims.Tables:
    """The tables of one session of the reference."""
    return lambda name: library.sessions(name).get(session)


def _stands(judgement: Judgement, wanted: str, missing: str) -> str:
    """`missing`: what it is where too little is measured: the book may say nothing that the reference has not shown,
    and a reader's data contradict it only where they decide.
    """
    if judgement.verdict == wanted:
        return AGREES
    if judgement.verdict in ("", NEAR, *UNDECIDED):
        return missing if estimates.AVAILABLE else UNKNOWN
    return DISAGREES
