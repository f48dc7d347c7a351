"""`check`: are experiments, result files, the claim ledger and the keys used in the prose in
order?
"""

import contextlib
import itertools
import re
import sys
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from datetime import datetime
from pathlib import Path

from quest.ground import foreign
from quest.ground.errors import InputError
from quest.ground.toml import record_of
from quest.measure import chosen, environment, peers, programs
from quest.measure.records import (
    Record,
    RunLine,
    complete_lines,
    first_and_last,
    malformed_lines,
    read_results,
    wrong_sum,
)
from quest.report import claims, guards, machines, published, sessions, since
from quest.spec import experiment_file
from quest.spec.coherence import operand_problem
from quest.spec.model import Experiment, Variant

PROSE = ("chapters", "slides")
NUMBER = re.compile(r"\[([^\[\]\s]+)\]\{[^}]*\.num\b")
VERDICT = re.compile(r"\[(\d+)\]\{[^}]*\.verdict\b")
WHEN = re.compile(r"\{[^}]*\.when\b[^}]*claim=\"?(\d+)")
ENVIRONMENT = tuple(environment.in_words("", "", {}))
THEN = re.compile(r"\{\.then\b[^}]*table=\"?([^\s\"}]*)")
X = re.compile(r"-?[\w.]+(-x)?")


def check(results: Path, reference: Path) -> int:
    """0, or 1 with a line on stderr for each thing that is wrong."""
    try:
        experiments = chosen.everything()
        of_talk, later = claims.load(experiments), since.ledger()
        findings = guards.load(experiments, of_talk) if guards.GUARDS.exists() else {}
    except InputError as error:
        print(foreign.plain(str(error)), file=sys.stderr)
        return 1
    ledger = [*of_talk, *later]
    known, numbers = {e.id: e for e in experiments}, {claim.id for claim in ledger}
    twice = [number for number, count in Counter(claim.id for claim in ledger).items() if count > 1]
    problems = [f"claim {number} is in {experiment_file.LEDGER} and in {chosen.LEDGER_SINCE}" for number in twice]
    problems += [*_programs(experiments), *_results(known, (results, *sessions.folders(reference)))]
    problems += [*_machines(known), *session_problems(reference)]
    prose = [path for folder in PROSE for path in sorted(Path(folder).glob("*.md"))]
    for path in (*prose, *([guards.GUARDS] if findings else ())):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            problems += [f"{path}:{number}: {problem}" for problem in line_problems(line, known, numbers)]
    for problem in problems:
        print(foreign.plain(problem), file=sys.stderr)
    if not problems:
        print(f"in order: experiments {len(experiments)}, claims {len(ledger)}, guards {len(findings)}")
    return 1 if problems else 0


def _programs(experiments: Iterable[Experiment]) -> Iterator[str]:
    for definition in experiments:
        for variant in definition.variants:
            try:
                programs.needed_programs(definition, variant)
                yield from _peer_values(definition, variant) if variant.peer else ()
            except InputError as error:
                yield str(error)


def _peer_values(definition: Experiment, variant: Variant) -> Iterator[str]:
    """What the files of its peer ask for and no profile has."""
    peer = peers.load(variant.peer)
    shared = {*variant.values, *variant.sweep, *definition.sweep}
    for profile in definition.profiles.values():
        for name in peers.unknown_values(peer, shared | {*profile.values, *profile.sweep}):
            yield (
                f'{definition.id}.toml: variant "{variant.name}": no value for @{name}@ of'
                f' {peers.FOLDER}/{peer.name}.toml in profile "{profile.name}"'
            )


def _results(known: Container[str], folders: Iterable[Path]) -> Iterator[str]:
    for path in (path for folder in folders for path in sorted(folder.glob("*.jsonl"))):
        if path.stem not in known:
            yield f"{path}: no experiment of that name"
        try:
            if lines := complete_lines(path.read_bytes())[0]:
                faults = [] if wrong_sum(lines)[0] else list(malformed_lines(path))
                yield from faults
                if not faults:  # else a line may lack the keys that it looks for
                    read_results(path)
        except InputError as error:
            yield str(error)
        except (RecursionError, TypeError):  # nested too deep; a "type" that is a list
            yield f"{path}: damaged: a line is none of a set"


def _machines(known: dict[str, Experiment]) -> Iterator[str]:
    try:
        if experiment_file.RATIOS.exists():
            machines.headline(known)
        machines.committed(experiment_file.MACHINES, known.keys(), known)
    except InputError as error:
        yield str(error)


def _runs(paths: Iterable[Path]) -> Iterator[Record]:
    """How these sets begin. Of one that has not the form that it should have, _results() tells."""
    for path in paths:
        with contextlib.suppress(InputError, RecursionError, TypeError):
            if ends := first_and_last(path):
                record_of(RunLine, ends[0], str(path))
                yield ends[0]


def session_problems(reference: Path) -> Iterator[str]:
    """Is each session in the folder of its processor, of one commit and one machine, apart from the others, and
    measured after its judge was tagged? A folder may hold a session of each ledger: each has a judge of its own.
    """
    begun: dict[tuple[str, bool], list[tuple[datetime, Path]]] = {}
    for folder, second in itertools.product(sessions.folders(reference), (False, True)):
        paths = [path for path in sorted(folder.glob("*.jsonl")) if chosen.of_since(path.stem) == second]
        runs = list(_runs(paths))
        for name in ("cpu", "commit") if folder != reference else ("cpu",):
            if len(values := {str(run["environment"].get(name, "")) for run in runs}) > 1:
                yield f"{folder}: of more than one {name}: {', '.join(sorted(values))}"
        processor = sessions.slug(str(runs[0]["environment"].get("cpu", ""))) if runs else ""
        if folder != reference and runs and processor != folder.parent.name:
            yield f"{folder}: it was measured on {processor}, and is no session of {folder.parent.name}"
        at = min((datetime.fromisoformat(run["started"]) for run in runs if run.get("started")), default=None)
        # The reference may have sets of a later day than its first, and so of a later judge.
        for judge in {run["judge"] for run in runs if run.get("judge")}:
            measured = (datetime.fromisoformat(run["started"]) for run in runs if run.get("judge") == judge)
            if problem := published.too_late(folder, judge, min(measured)):
                yield problem
        if at:
            begun.setdefault((processor, second), []).append((at, folder))
    for of_processor in begun.values():
        of_processor.sort()
        for (before, _), (at, folder) in itertools.pairwise(of_processor):
            if at - before < sessions.APART:
                yield f"{folder}: begun less than three hours after another session of its processor"


# ---- keys in the prose --------------------------------------------------------------------------


def line_problems(line: str, experiments: dict[str, Experiment], ledger: set[int]) -> Iterator[str]:
    """What is wrong with the keys in a line of a chapter or slide. `ledger`: the numbers of the claims."""
    for key in NUMBER.findall(line):
        if problem := key_problem(key, experiments):
            yield f"number [{key}]: {problem}"
    tables = {f"{e.id}.{then.key}" for e in experiments.values() for then in e.then_tables}
    for key in THEN.findall(line):
        if key not in tables:
            yield f'"{key}" is no [[then]] of an experiment'
    for claim in (*VERDICT.findall(line), *WHEN.findall(line)):
        if int(claim) not in ledger:
            yield f"claim {claim} is not in {experiment_file.LEDGER}, nor in {chosen.LEDGER_SINCE}"


def key_problem(key: str, experiments: dict[str, Experiment]) -> str:
    """Why no export can ever have this key; "" if one can."""
    first, _, rest = key.partition(".")
    if first == "env":
        return "" if rest in ENVIRONMENT else f"unknown: env has {', '.join(ENVIRONMENT)}"
    if first not in experiments:
        return f'unknown experiment "{first}"'
    definition = experiments[first]
    if "." not in rest:
        keys = {derived.key for derived in definition.derived}
        return "" if rest in keys else f'"{rest}" is no [[number]] of {first}'
    if rest.startswith("floor."):
        metrics = {metric.name for metric in definition.metrics}
        return "" if rest.removeprefix("floor.") in metrics else f"unknown metric in {rest}"
    _, at, x = rest.partition("@")
    if at and (definition.axis is None or not X.fullmatch(x)):
        return f'"@{x}" names no x' if definition.axis else f"{first} has no x"
    if definition.kind == "trace" and not definition.metrics:
        return ""
    return operand_problem(definition, rest)
