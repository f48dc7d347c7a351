"""Runs checks, one after the other, in a network of its own where that can be had.

python3 -m quest.my.judge FOLDER STAGE...   checks FOLDER/run, and prints a line of JSON for each stage

It is a process of its own: the network is that of the process, and what a server leaves behind becomes its child.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from quest.ground.processes import become_subreaper, end_with_parent
from quest.labs import place
from quest.labs.cell import judge_in_a_network_of_its_own, loopback_up
from quest.labs.sandbox import end_descendants
from quest.my import stages
from quest.my.bench import Bench
from quest.my.box import Box, tools_missing
from quest.my.errors import Failed, Unseen
from tests.conformance.process import calibrate

TREE = Path(__file__).resolve().parents[2]
MOST_PATIENCE = 4.0
BUSIER = 1.5  #: times as slow as when the check began
PASSED, FAILED, UNSEEN = "passed", "failed", "unseen"


@dataclass(frozen=True)
class Outcome:
    """What became of one stage."""

    stage: str
    how: str  #: PASSED, FAILED or UNSEEN
    why: str = ""  #: one sentence, if it has not passed
    seconds: float = 0.0
    no_cell: str = ""  #: why there was no sandbox

    @property
    def passed(self) -> bool:
        return self.how == PASSED


def check_of(name: str) -> Callable[[Bench], None]:
    """The function of a stage's `check`."""
    module, _, function = name.partition(":")
    found: Callable[[Bench], None] = getattr(importlib.import_module(f"quest.my.checks.{module}"), function)
    return found


def one(stage: stages.Stage, bench: Bench) -> Outcome:
    """Runs a check."""
    began = time.monotonic()
    how, why = PASSED, ""
    try:
        check_of(stage.check)(bench)
    except Failed as failed:
        how, why = FAILED, str(failed)
    except Unseen as unseen:
        how, why = UNSEEN, str(unseen)
    return Outcome(stage.name, how, why, round(time.monotonic() - began, 2), bench.box.no_cell)


def patience() -> float:
    """By which factor this machine is slower now than one with nothing else to do."""
    return min(MOST_PATIENCE, calibrate().factor)


def judged(folder: Path, names: Sequence[str], own_network: bool) -> Iterator[Outcome]:
    """The outcome of each stage, as soon as there is one. One that fails on a machine that has become busier meanwhile
    is checked once more, with the patience that this takes."""
    known = stages.load()
    run = folder.resolve() / "run"
    no_cell = os.environ.get("MY_NO_CELL", "") or tools_missing()
    for name in names:
        for times in (1, 2):
            factor = patience()
            with place.temporary() as top:
                box = Box([folder.resolve(), top], folder.resolve(), no_cell)
                no_cell = box.no_cell
                try:
                    outcome = one(known[name], Bench([str(run)], top, box, factor, own_network))
                finally:
                    box.end()
            if outcome.how != FAILED or times == 2 or patience() < BUSIER * factor:
                break
        yield outcome


def outcomes(folder: Path, names: Sequence[str]) -> Generator[Outcome, None, None]:
    """The same by a process of its own. RuntimeError, with its last words, if that fails."""
    words = [sys.executable, "-E", "-s", "-m", "quest.my.judge"]
    for prefix, mark in ((judge_in_a_network_of_its_own(), "own"), ([], "shared")):
        with subprocess.Popen(
            [*prefix, *words, mark, str(folder), *names], cwd=TREE, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            assert process.stdout and process.stderr
            came = 0
            try:
                for line in process.stdout:
                    came += 1
                    yield Outcome(**json.loads(line))
                error = process.stderr.read().strip()
            finally:
                process.terminate()
        if came or process.returncode == 0:
            if came < len(names):
                raise RuntimeError(error or f"the checker ended with status {process.returncode}")
            return
    raise RuntimeError(error or f"the checker ended with status {process.returncode}")


def _stop(number: int, _frame: object) -> None:
    """An exception, so that servers are ended and folders removed."""
    signal.signal(number, signal.SIG_IGN)
    raise SystemExit(128 + number)


def main(words: Sequence[str]) -> int:
    mark, folder, *names = words
    signal.signal(signal.SIGTERM, _stop)
    end_with_parent()
    become_subreaper()
    own_network = mark == "own"
    if own_network:
        loopback_up()
    try:
        for outcome in judged(Path(folder), names, own_network):
            print(json.dumps(asdict(outcome)), flush=True)
    finally:  # Ctrl-C and the SIGTERM of our parent come both, and the second in the midst of what the first has begun
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        end_descendants()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
