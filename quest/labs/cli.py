"""The command line behind make lab, check, hint, solution, grade and grade-all:

    python3 -E -s -m quest.labs hint CH=02-fork N=3

The settings are those of make. Status 0: all points, or nothing to count; 1: points are missing;
2: the lab, its use or the machine is wrong, so there is no grade, and what was there stays;
3: not everything could be judged on this machine.
"""

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from quest.ground import foreign
from quest.ground.entry import begin, told
from quest.ground.processes import end_with_parent
from quest.labs import files, intake, many, place, report, work
from quest.labs.errors import CannotJudge, LabError, say
from quest.labs.judge import How, Result, Verdict, grade
from quest.labs.lab import Lab, load, slugs
from quest.labs.sandbox import Toolchain

MISSING, WRONG, UNJUDGED = 1, 2, 3
COMMANDS = ("lab", "check", "hint", "solution", "grade", "grade-all")
PLACES = ("JSON", "LOGS", "CSV", "WORK")  #: of what is written
SETTINGS = (*PLACES, "DIR", "CH", "ONLY", "PATIENCE", "PROCESSES", "N", "SURE", "SEED", "JOBS",
            "SANDBOX")  # fmt: skip
SEEDS = 1 << 31
BUILD = Path(os.environ.get("LAB_BUILD", "build"))
Given = Mapping[str, str]
Number = TypeVar("Number", int, float)


def settings(words: Iterable[str]) -> Given:
    """Those that have a value. Paths are from the root of the tree, where make starts us."""
    given = dict(word.partition("=")[::2] for word in words)
    if unknown := set(given) - set(SETTINGS):
        known = ", ".join(SETTINGS)
        raise LabError(f"{min(unknown)}: there is no such setting. There are: {known}")
    if given.get("SANDBOX", "") not in ("", "no"):
        raise LabError(f"SANDBOX={given['SANDBOX']}: there is only SANDBOX=no: points without one")
    return {"WORK": "work", **{name: text for name, text in given.items() if text}}


def _number(given: Given, name: str, kind: type[Number], most: Number) -> Number | None:
    if name not in given:
        return None
    try:
        number = kind(given[name])
    except ValueError:
        number = kind(0)
    if not 0 < number <= most:
        raise LabError(f"{name}={given[name]}: give a number above 0, at most {most:g}")
    return number


def _list(folder: Path) -> str:
    lines, first = [], ""
    for slug in slugs():
        lab = load(slug)
        score = work.Progress.load(folder / slug).score
        state = "begun" if (folder / slug).is_dir() else "not begun"
        state = state if score is None else f"{score} of {lab.points} points"
        first = first or (slug if score != lab.points else "")
        lines.append(f"  {slug:<15} {lab.title} ({lab.kind}; {state})")
    more = f"To begin, or to go on: make lab CH={first}" if first else "You have done all of them."
    return "\n".join([*lines, "", more])


def logs_of(lab: Lab, folder: Path, given: Given) -> Path:
    """No two submissions share one; where a student looks for it, it has a short name."""
    is_default = folder == Path("work") / lab.slug
    whose = "" if is_default else f"-{zlib.crc32(os.fsencode(folder.absolute())):08x}"
    return Path(given.get("LOGS", BUILD / "labs" / f"{lab.slug}{whose}"))


def _judge(lab: Lab, folder: Path, shown: Path, given: Given, graded: bool) -> Verdict:
    """Prints a line for each test, and the points. shown: what it is called."""
    logs = logs_of(lab, shown, given)
    patience = _number(given, "PATIENCE", float, 100.0)
    seed = _number(given, "SEED", int, SEEDS) or secrets.randbelow(SEEDS) + 1

    def tell(result: Result) -> None:
        if not graded:  # then they come in another order, and are told when all are done
            say(report.line(result))

    how = How(Toolchain.of_make(), logs, patience, seed, graded, tell)
    logs.mkdir(parents=True, exist_ok=True)
    with files.alone(logs / ".lock", lambda: say(f"{shown} is being judged; waiting for that.")):
        say(f"{lab.slug}: {lab.title}\n")
        try:
            verdict = grade(lab, folder, how)
        except OSError as error:
            raise CannotJudge(_told(error, given)) from None
        except (RuntimeError, MemoryError, subprocess.SubprocessError) as error:
            raise CannotJudge(str(error) or "out of memory") from None
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
    if verdict.unseen:
        return UNJUDGED
    return 0 if verdict.score == verdict.lab.points else MISSING


def _check(lab: Lab, folder: Path, given: Given) -> int:
    work.demand(lab, folder)
    whole = "ONLY" not in given
    if whole:
        files.check_writable(folder / work.PROGRESS)
    verdict = _judge(lab, folder, folder, given, graded=False)
    best = work.note(verdict, folder) if whole else 0
    if best > verdict.score:
        say(f"Your best: {best}.")
    first = verdict.first_failure
    if first is not None and verdict.built:
        log = logs_of(lab, folder, given) / f"{first.id}.log"
        has_hints = first.id in {hint.test for hint in lab.hints}
        help_by = f"Help: make hint CH={lab.slug}; all" if has_hints else "All"
        say(f"Next: {first.id}. {help_by} of the test: {log}")
    elif first is None and not verdict.unseen and whole:
        ours = f" What we wrote: make solution CH={lab.slug}" if lab.is_whole else ""
        say(f"Well done.{ours}")
    return _status(verdict)


def _grade(lab: Lab, folder: Path, given: Given) -> int:
    one = intake.single(folder)
    results = Path(given["JSON"]) if "JSON" in given else None
    if results is not None:
        files.check_writable(results)
    with place.temporary() as top:
        handed = intake.staged(one, lab.files, lab.slug, top)
        for note in handed.notes:
            say(f"{note}\n")
        verdict = _judge(lab, handed.folder, folder, given, graded=True)
    trusted = given.get("SANDBOX") == "no"
    if results is not None:
        files.write(results, report.gradescope(verdict, trusted))
    if verdict.built:
        say(f"What the tests said: {logs_of(lab, folder, given)}")
    if not verdict.no_cell or trusted:
        return _status(verdict)
    _complain(f"no grade: {verdict.no_cell}; SANDBOX=no gives one all the same")
    return UNJUDGED


def _complain(line: str) -> None:
    with contextlib.suppress(OSError):
        print("lab: " + foreign.line(line.replace("\n", " ")), file=sys.stderr)


def _only(lab: Lab, given: Given) -> Lab:
    names = given["ONLY"]
    return lab.only([name for name in names.split(",") if name] or [names])


def run(what: str, given: Given) -> int:
    slug = given.get("CH", "")
    if not slug and what == "lab":
        say(_list(Path(given["WORK"])))
        return 0
    if not slug:
        raise LabError(f"which lab? CH={', CH='.join(slugs())}")
    lab = load(slug)
    folder = Path(given["WORK"]) / slug
    handed_in = Path(given.get("DIR", folder))
    if what in ("check", "grade"):
        lab = _only(lab, given) if "ONLY" in given else lab
        if processes := _number(given, "PROCESSES", int, 10000):
            lab = replace(lab, limits=replace(lab.limits, processes=processes))
        return _check(lab, folder, given) if what == "check" else _grade(lab, handed_in, given)
    if what == "grade-all":
        table = Path(given.get("CSV", f"{handed_in}.csv"))
        told = {"SEED", "ONLY", "PATIENCE", "PROCESSES", "SANDBOX"}.intersection(given)
        words = [f"{name}={given[name]}" for name in sorted(told)]
        if "ONLY" in given:
            lab = _only(lab, given)

        def logs(one: intake.Submission) -> Path:
            name = many.log_name(one.name)
            return (
                Path(given["LOGS"]) / name
                if "LOGS" in given
                else logs_of(lab, handed_in / name, {})
            )

        kind = many.kind_of(lab, words, logs)
        return many.grade_all(handed_in, table, kind, _number(given, "JOBS", int, 64) or 2)
    if what == "lab":
        say(work.begin(lab, folder))
    elif what == "hint":
        say(work.hint(lab, folder, _number(given, "N", int, len(lab.hints))))
    else:
        say(work.solution(lab, folder, "SURE" in given))
    return 0


def _told(error: OSError, given: Given) -> str:
    """What, where, and the setting that names another place."""
    name = error.filename2 or error.filename  # of a copy: where it was to be
    if not isinstance(name, str):
        return told(error)
    path = Path(name)
    part = [each for each in (path, *path.parents) if each.name.startswith(files.PART)]
    path = part[0].parent if part else path
    places = {name: Path(given[name]) for name in PLACES if name in given}
    places["BUILD"] = BUILD
    with contextlib.suppress(OSError):  # where nothing can be written there is no such folder
        places["TMPDIR"] = Path(tempfile.gettempdir())
    for name, named in places.items():
        if path.is_relative_to(named) or named.is_relative_to(path):
            return f"{path}: {error.strerror}; another place: {name}="
    return f"{path}: {error.strerror}"


def main() -> int:
    begin()
    end_with_parent()
    os.umask(0o022)  # a user of its own reads what is laid out for it
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, no status of a child would be seen
    # an exception, so that the sandbox is removed
    signal.signal(signal.SIGTERM, lambda signum, _: sys.exit(128 + signum))
    given: Given = {}
    try:
        if sys.argv[1:2] not in ([what] for what in COMMANDS):
            raise LabError(f"which command? {', '.join(COMMANDS)} (labs/README.md)")
        given = settings(sys.argv[2:])
        return run(sys.argv[1], given)
    except LabError as error:
        line = str(error)
    except OSError as error:
        line = _told(error, given)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    _complain(line)
    return WRONG
