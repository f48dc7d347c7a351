"""Runs the README's commands in a bare Debian tree and says how long they took and what they left.

usage: tests/fresh-machine/run [bookworm|trixie] [--as-user all|essential|bare] [--uncommitted] ...
Needs: root, debootstrap, git, unshare, setpriv. The log goes to build/fresh-machine/.
"""

import argparse
import itertools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import machine_setup
import readme_commands
from fresh_tree import Interrupted, Tree, remove_stale
from machine import Machine, Outcome, Step, TimeIsUp

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "build" / "fresh-machine"
SUITES = {"bookworm": "Debian 12", "trixie": "Debian 13"}
# The last three need a library each.
MADE = (
    "build/book/index.html", "build/slides/deck.html",
    "build/bin/13-uring", "build/bin/14-owfat", "build/bin/museum",
)  # fmt: skip
STUDENT = 1000
NEEDED_MB = 4096

README = "readme"
LEVELS = {
    "all": "everything is installed",
    "essential": "only make, gcc and python3 are installed",
    "bare": "only make is installed",
}


def steps_for(level: str, commands: list[str]) -> list[Step]:
    """What is run: by root the README's commands; as a user `make`, with more or less installed."""
    if level == README:
        return [Step(command) for command in commands]
    make = "make PROFILE=smoke"
    if level == "all":
        return [
            Step("apt-get install -y make && make deps DEPS=yes"),
            Step(f"{make} DEPS=yes", uid=STUDENT, makes=MADE),
            Step("make test", uid=STUDENT),
            Step("make doctor", uid=STUDENT),
        ]
    if level == "essential":
        install = "apt-get install -y --no-install-recommends make gcc libc6-dev python3"
        return [Step(install), Step(make, uid=STUDENT), Step("make doctor", uid=STUDENT)]
    refusal = "deps.sh: nothing can run without: C compiler"
    return [Step("apt-get install -y make"), Step(make, uid=STUDENT, refuses=refusal)]


def judge(steps: list[Step], outcomes: list[Outcome], folder: Callable[[Step], Path]) -> list[str]:
    """What is wrong; nothing if the proof holds."""
    wrong = []
    for step, outcome in zip(steps, outcomes, strict=False):
        if step.refuses:
            if outcome.status == 0 or step.refuses not in "\n".join(outcome.said):
                wrong.append(f'{step.command}: status {outcome.status}, not "{step.refuses}"')
        elif outcome.status:
            wrong.append(f"{step.command}: status {outcome.status}")
        wrong += [f"{step.command}: left a {thing}" for thing in outcome.left]
        for name in step.makes:
            made = folder(step) / name
            if not made.is_file() or not made.stat().st_size:
                wrong.append(f"{step.command}: did not make {name}")
    if len(outcomes) < len(steps):
        wrong.append(f"{steps[len(outcomes)].command}: did not end")
    return wrong


def not_brought(log: str) -> list[str]:
    """What deps.sh has installed and still misses, by its own words."""
    block = log.partition("\nstill missing:\n")[2]
    lines = itertools.takewhile(lambda line: line.startswith("  "), block.splitlines())
    return [f"still missing after the installation: {line.split()[0]}" for line in lines]


def duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"


def summary(title: str, tree: Tree, steps: list[Step], outcomes: list[Outcome]) -> str:
    lines = [title, f"  {'bare tree made':52} {duration(tree.seconds):>12}"]
    for step, outcome in zip(steps, outcomes, strict=False):
        who = "" if step.uid == 0 else "user: "
        lines.append(
            f"  {who + step.command:52} {duration(outcome.seconds):>12}   status {outcome.status}"
        )
    lines.append(f"  {'peak disk, the bare tree included':52} {tree.peak_mb:>9} MB")
    return "\n".join(lines)


def arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tests/fresh-machine/run", description="The README's commands, in a bare Debian tree."
    )
    parser.add_argument("suite", nargs="?", default="bookworm", choices=SUITES)
    parser.add_argument(
        "--as-user", choices=LEVELS, default=README, metavar="LEVEL",
        help="run make as a user without sudo instead; "
        + "; ".join(f"{level}: {text}" for level, text in LEVELS.items()),
    )  # fmt: skip
    parser.add_argument(
        "--uncommitted", action="store_true", help="copy the working tree, not a clone of HEAD"
    )
    parser.add_argument("--minutes", type=float, default=45, help="time for all of it (45)")
    parser.add_argument("--mirror", help="a Debian mirror, if apt here has none")
    parser.add_argument("--keep", action="store_true", help="do not remove the tree at the end")
    return parser.parse_args(words)


def check_needs() -> None:
    if os.geteuid() != 0:
        raise machine_setup.SetupError("needs root: debootstrap and mounts do")
    for tool, package in (("git", "git"), ("unshare", "util-linux"), ("setpriv", "util-linux")):
        if not shutil.which(tool):
            raise machine_setup.SetupError(f"{tool} is not installed (apt-get install {package})")
    free = shutil.disk_usage(Tree.base()).free >> 20
    if free < NEEDED_MB:
        raise machine_setup.SetupError(
            f"{Tree.base()}: {free} MB free, {NEEDED_MB} MB are needed (TMPDIR names another place)"
        )


def prove(options: argparse.Namespace) -> int:
    check_needs()
    steps = steps_for(options.as_user, readme_commands.read(ROOT / "README.md"))
    if options.as_user == README:
        steps[0] = steps[0].making(MADE)
    sources = [machine_setup.Source(options.mirror.rstrip("/"), "")] if options.mirror else []
    sources = sources or machine_setup.debian_sources()
    LOGS.mkdir(parents=True, exist_ok=True)
    name = options.suite if options.as_user == README else f"{options.suite}-user-{options.as_user}"
    log = LOGS / f"{name}.log"
    remove_stale()
    with Tree(options.suite, log, options.minutes * 60, keep=options.keep) as tree:
        tree.make(sources)
        tree.copy_checkout(ROOT, [step.uid for step in steps], options.uncommitted)
        outcomes = Machine(tree).run(steps)
        wrong = judge(steps, outcomes, lambda step: tree.path / tree.home(step.uid)[1:])
        if options.as_user in (README, "all"):
            wrong += not_brought(log.read_text(encoding="utf-8", errors="replace"))
        tree.measure()
        title = f"{SUITES[options.suite]} ({options.suite}), {os.cpu_count()} cores, {name}"
        text = summary(title, tree, steps, outcomes)
    wrong += tree.traces_left()
    verdict = [f"  WRONG  {line}" for line in wrong] or ["  nothing left behind; all as expected"]
    text = "\n".join([text, *verdict])
    print(text)
    (LOGS / f"{name}.txt").write_text(text + "\n", encoding="utf-8")
    for step, outcome in zip(steps, outcomes, strict=False):
        if outcome.status and not step.refuses:
            print("\n".join([f"  last lines of: {step.command}", *outcome.said]))
    if wrong:
        print(f"  the log: {log.relative_to(ROOT)}")
    return 1 if wrong else 0


def main() -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, Interrupted.by_signal)
    try:
        return prove(arguments(sys.argv[1:]))
    except (machine_setup.SetupError, readme_commands.ReadmeError) as error:
        print(f"fresh-machine: {error}", file=sys.stderr)
        return 2
    except TimeIsUp as error:
        print(f"fresh-machine: {error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        command = " ".join(map(str, error.cmd))
        print(f"fresh-machine: {command}: status {error.returncode}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # nobody reads any more; the tree is removed
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Interrupted as stop:
        print("fresh-machine: stopped; the tree is removed", file=sys.stderr)
        return 128 + stop.number


if __name__ == "__main__":
    sys.exit(main())
