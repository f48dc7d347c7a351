"""The command line behind make lab, check, hint, solution and grade:

    PYTHONPATH=labs:tests python3 -m grader hint CH=02-fork N=3

The settings are those of make. Status 0: all points, or nothing to count; 1: points are missing;
2: the lab, its use or the machine is wrong, so there is no grade, and what was there stays;
3: not everything could be judged on this machine.
"""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import signal
import sys
import tempfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from grader import files, many, report, work
from grader.errors import LabError
from grader.judge import How, Result, Verdict, grade
from grader.lab import TREE, Lab, load, slugs
from grader.sandbox import Toolchain

MISSING, WRONG, UNJUDGED = 1, 2, 3
COMMANDS = ("lab", "check", "hint", "solution", "grade", "grade-all")
PATHS = ("JSON", "LOGS", "DIR", "WORK", "CSV")
OTHERS = ("CH", "ONLY", "PATIENCE", "PROCESSES", "N", "SURE", "SEED", "JOBS")
SEEDS = 1 << 31
Number = TypeVar("Number", int, float)


def _from_tree(text: str) -> Path:
    """The path as it reads in the root of the tree."""
    whole = Path(text).absolute()
    return whole.relative_to(TREE) if whole.is_relative_to(TREE) else whole


@dataclass(frozen=True)
class Given:
    """What was said on the command line, or {}."""

    texts: Mapping[str, str]
    paths: Mapping[str, Path]

    @classmethod
    def of(cls, words: Iterable[str]) -> Given:
        """To be called where the paths are meant."""
        texts = {name: text for name, _, text in (word.partition("=") for word in words) if text}
        if unknown := set(texts) - set(PATHS) - set(OTHERS):
            known = ", ".join([*PATHS, *OTHERS])
            raise LabError(f"{min(unknown)}=: there is no such setting. There are: {known}")
        paths = {name: _from_tree(texts[name]) for name in PATHS if name in texts}
        return cls(texts, {**paths, "WORK": paths.get("WORK", Path("work"))})

    def number(self, name: str, kind: type[Number], most: Number) -> Number | None:
        if name not in self.texts:
            return None
        try:
            number = kind(self.texts[name])
        except ValueError:
            number = kind(0)
        if not 0 < number <= most:
            raise LabError(f"{name}={self.texts[name]}: give a number above 0, at most {most:g}")
        return number


def say(text: str) -> None:
    """To stdout. A reader who has gone (make solution | head) has what he wanted."""
    try:
        print(text, flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # and so what is still in the buffer
        if not isinstance(error, BrokenPipeError):
            raise OSError(error.errno, error.strerror, "standard output") from None


def _list(folder: Path) -> str:
    lines, first = [], ""
    for slug in slugs():
        lab = load(slug)
        score = work.Progress.load(folder / slug).score
        state = "not begun" if not (folder / slug).is_dir() else "begun"
        first = first or (slug if score != lab.points else "")
        if score is not None:
            state = f"{score} of {lab.points} points"
        lines.append(f"  {slug:<15} {lab.title} ({lab.kind}; {state})")
    more = f"To begin, or to go on: make lab CH={first}" if first else "You have done all of them."
    return "\n".join([*lines, "", more])


def _build() -> Path:
    return Path(os.environ.get("LAB_BUILD", "build"))


def _logs(lab: Lab, folder: Path, given: Given) -> Path:
    """No two submissions share one; where a student looks for it, it has a short name."""
    if "LOGS" in given.paths:
        return given.paths["LOGS"]
    is_default = folder == Path("work") / lab.slug
    whose = "" if is_default else f"-{zlib.crc32(os.fsencode(folder.absolute())):08x}"
    return _build() / "labs" / f"{lab.slug}{whose}"


def _judge(lab: Lab, folder: Path, given: Given, graded: bool) -> Verdict:
    """Prints a line for each test, and the points."""
    logs = _logs(lab, folder, given)
    patience = given.number("PATIENCE", float, 100.0)
    seed = given.number("SEED", int, SEEDS) or secrets.randbelow(SEEDS) + 1

    def tell(result: Result) -> None:
        if not graded:  # then they come in another order, and are told when all are done
            say(report.line(result))

    how = How(Toolchain.of_make(), logs, patience, seed, graded, tell)
    logs.mkdir(parents=True, exist_ok=True)
    with files.alone(logs / ".lock", lambda: say(f"{folder} is being judged; waiting for that.")):
        say(f"{lab.slug}: {lab.title}\n")
        verdict = grade(lab, folder, how)
    if graded:
        for result in verdict.results if verdict.built else ():
            say(report.line(result))
        say(f"\nSeed {verdict.seed}: SEED={verdict.seed} serves the same again, in the same order.")
    if verdict.no_cell:
        say(f"\nThis is a self-check, not a grade: {verdict.no_cell}.")
    if verdict.message:
        say(f"{verdict.message}\n" if not verdict.built else f"\n{verdict.message}")
    say(f"\n{report.total(verdict)}." if verdict.built else f"{report.total(verdict)}.")
    return verdict


def _status(verdict: Verdict) -> int:
    if verdict.unjudged:
        return UNJUDGED
    return 0 if verdict.score == verdict.lab.points else MISSING


def _check(lab: Lab, folder: Path, given: Given) -> int:
    work.demand(lab, folder)
    whole = "ONLY" not in given.texts
    if whole:
        files.check_writable(folder / work.PROGRESS)
    verdict = _judge(lab, folder, given, graded=False)
    best = work.note(verdict, folder) if whole else 0
    if best > verdict.score:
        say(f"Your best: {best}.")
    first = verdict.first_failure
    if first is not None and verdict.built:
        log = _logs(lab, folder, given) / f"{first.id}.log"
        say(f"Next: {first.id}. Help: make hint CH={lab.slug}; all of the test: {log}")
    elif first is None and not verdict.unjudged and whole:
        say(f"Well done. What we wrote: make solution CH={lab.slug}")
    return _status(verdict)


def _grade(lab: Lab, folder: Path, given: Given) -> int:
    if not folder.is_dir():
        raise LabError(f"{folder}: there is no such folder; DIR= names what was handed in")
    results = given.paths.get("JSON")
    if results is not None:
        files.check_writable(results)
    verdict = _judge(lab, folder, given, graded=True)
    if results is not None:
        files.write(results, report.gradescope(verdict))
    if verdict.built:
        say(f"What the tests said: {_logs(lab, folder, given)}")
    return UNJUDGED if verdict.no_cell else _status(verdict)


def _run(what: str, given: Given) -> int:
    slug = given.texts.get("CH", "")
    if not slug and what == "lab":
        say(_list(given.paths["WORK"]))
        return 0
    if not slug:
        raise LabError(f"which lab? CH={', CH='.join(slugs())}")
    lab = load(slug)
    folder = given.paths["WORK"] / slug
    if what in ("check", "grade"):
        if "ONLY" in given.texts:
            names = given.texts["ONLY"]
            lab = lab.only([name for name in names.split(",") if name] or [names])
        if processes := given.number("PROCESSES", int, 10000):
            lab = replace(lab, limits=replace(lab.limits, processes=processes))
        if what == "check":
            return _check(lab, folder, given)
        return _grade(lab, given.paths.get("DIR", folder), given)
    if what == "grade-all":
        table = given.paths.get("CSV", Path(f"{given.paths.get('DIR', folder)}.csv"))
        told = [name for name in ("SEED", "ONLY", "PATIENCE") if name in given.texts]
        words = [f"{name}={given.texts[name]}" for name in told]
        jobs = given.number("JOBS", int, 64) or 2
        return many.grade_all(lab, given.paths.get("DIR", folder), table, jobs, words)
    if what == "lab":
        say(work.begin(lab, folder))
    elif what == "hint":
        say(work.hint(lab, folder, given.number("N", int, len(lab.hints))))
    else:
        say(work.solution(lab, folder, "SURE" in given.texts))
    return 0


def _told(error: OSError, given: Given) -> str:
    """What, where, and the setting that names another place."""
    name = error.filename2 or error.filename  # of a copy: where it was to be
    if not isinstance(name, str):
        return str(error)
    path = Path(name)
    path = path.parent if path.name.startswith(files.PART) else path
    places = {**given.paths, "BUILD": _build(), "TMPDIR": Path(tempfile.gettempdir())}
    for name, place in places.items():
        if path.is_relative_to(place) or place.is_relative_to(path):
            return f"{path}: {error.strerror}; another place: {name}="
    return f"{path}: {error.strerror}"


def _on_term(signum: int, _: object) -> None:
    sys.exit(128 + signum)  # an exception, so that the sandbox is removed


def main() -> int:
    signal.signal(signal.SIGTERM, _on_term)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # of names in another encoding
    given = Given({}, {})
    try:
        if sys.argv[1:2] not in ([what] for what in COMMANDS):
            raise LabError(f"python3 -m grader {'|'.join(COMMANDS)} CH=... (labs/README.md)")
        given = Given.of(sys.argv[2:])
        os.chdir(TREE)
        return _run(sys.argv[1], given)
    except LabError as error:
        line = str(error)
    except OSError as error:
        line = _told(error, given)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    with contextlib.suppress(OSError):
        print("lab: " + line.replace("\n", " "), file=sys.stderr)
    return WRONG
