"""The command line behind make lab, check, hint, solution and grade.

Status 0: all points, or nothing to count; 1: some are missing; 2: the lab or its use is wrong;
3: not everything could be judged on this machine.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

from grader import report, work
from grader.errors import LabError
from grader.judge import How, Verdict, grade
from grader.lab import TREE, Lab, load, slugs
from grader.sandbox import Toolchain

MISSING, WRONG, UNJUDGED = 1, 2, 3


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="grader", description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["lab", "check", "hint", "solution", "grade"])
    parser.add_argument("lab", nargs="?", default="")
    parser.add_argument("--work", type=Path, default=Path("work"), help="where students work")
    parser.add_argument("--dir", type=Path, help="what was handed in, if it is not in --work")
    parser.add_argument("--json", type=Path, help="write results.json here")
    parser.add_argument("--only", default="", help="these tests, and no points for the others")
    parser.add_argument("--patience", type=float, help="scale all time-outs by this")
    parser.add_argument("--processes", type=int, help="the lab's limit, but this one")
    parser.add_argument("--number", type=int, help="which hint")
    parser.add_argument("--sure", action="store_true", help="the solution before it is due")
    return parser.parse_args()


def _list(folder: Path) -> str:
    lines = []
    for slug in slugs():
        lab = load(slug)
        score = work.Progress.load(folder / slug).score
        state = "not begun" if not (folder / slug).is_dir() else "begun"
        if score is not None:
            state = f"{score} of {lab.points} points"
        lines.append(f"  {slug:<14} {lab.title} ({lab.kind}; {state})")
    return "\n".join([*lines, "", f"To begin: make lab CH={slugs()[0]}"])


def _logs(lab: Lab) -> Path:
    return Path(os.environ.get("LAB_BUILD", "build")) / "labs" / lab.slug


def _judge(lab: Lab, folder: Path, patience: float | None) -> Verdict:
    """Prints a line for each test."""
    tools = Toolchain.of_make()
    print(f"{lab.slug}: {lab.title}\n", flush=True)
    how = How(tools, _logs(lab), patience, lambda r: print(report.line(r), flush=True))
    return grade(lab, folder, how)


def _status(verdict: Verdict) -> int:
    if verdict.unjudged:
        return UNJUDGED
    return 0 if verdict.score == verdict.lab.points else MISSING


def _say(verdict: Verdict) -> None:
    if verdict.message:
        print(f"{verdict.message}\n" if not verdict.built else f"\n{verdict.message}")
    print(f"\n{report.total(verdict)}." if verdict.built else f"{report.total(verdict)}.")


def _check(lab: Lab, folder: Path, patience: float | None, note: bool) -> int:
    if not folder.is_dir():
        raise LabError(f"{folder} is not there yet: make lab CH={lab.slug}")
    verdict = _judge(lab, folder, patience)
    _say(verdict)
    if note:
        work.note(verdict, folder)
    first = verdict.first_failure
    if first is not None and verdict.built:
        print(f"Next: {first.id}. Help: make hint CH={lab.slug}; all of the test: ", end="")
        print(_logs(lab) / f"{first.id}.log")
    elif first is None and not verdict.unjudged and note:
        print(f"Well done. What we wrote: make solution CH={lab.slug}")
    return _status(verdict)


def _grade(lab: Lab, folder: Path, patience: float | None, results: Path | None) -> int:
    verdict = _judge(lab, folder, patience)
    _say(verdict)
    if results is not None:
        report.write_json(verdict, results)
    return _status(verdict)


def _run(arguments: argparse.Namespace) -> int:
    if not arguments.lab and arguments.what == "lab":
        print(_list(arguments.work))
        return 0
    if not arguments.lab:
        raise LabError(f"which lab? CH={', CH='.join(slugs())}")
    lab = load(arguments.lab)
    folder = arguments.work / lab.slug
    only = [name for name in arguments.only.split(",") if name]
    if only:
        lab = lab.only(only)
    if arguments.processes:
        lab = replace(lab, limits=replace(lab.limits, processes=arguments.processes))
    if arguments.what == "check":
        return _check(lab, folder, arguments.patience, note=not only)
    if arguments.what == "grade":
        return _grade(lab, arguments.dir or folder, arguments.patience, arguments.json)
    if arguments.what == "lab":
        print(work.begin(lab, folder))
    elif arguments.what == "hint":
        print(work.hint(lab, folder, arguments.number))
    else:
        print(work.solution(lab, folder, arguments.sure))
    return 0


def _from_tree(path: Path) -> Path:
    """The path as it reads in the root of the tree."""
    whole = path.absolute()
    return whole.relative_to(TREE) if whole.is_relative_to(TREE) else whole


def _on_term(signum: int, _: object) -> None:
    sys.exit(128 + signum)  # an exception, so that the sandbox is removed


def main() -> int:
    signal.signal(signal.SIGTERM, _on_term)
    arguments = _arguments()
    for name in ("work", "dir", "json"):  # as the user means them, before we go elsewhere
        path = getattr(arguments, name)
        setattr(arguments, name, path and _from_tree(path))
    os.chdir(TREE)
    try:
        return _run(arguments)
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return WRONG
    except KeyboardInterrupt:
        return 130
