"""Runs the tests of a lab against what was handed in, one after the other."""

import contextlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import pytest

from conformance.matrix import MODELS
from conformance.process import calibrate
from grader import cell, files
from grader.errors import LabError
from grader.lab import TREE, Lab, Test
from grader.sandbox import NotBuilt, Sandbox, Toolchain, end_descendants
from harness.system.processes import become_subreaper

MOST_PATIENCE = 6.0  #: times the time-outs of an idle machine
TESTER_BYTES = 2 << 30
SHORT = 100  #: characters; the log has it all
#: Nothing that a submission, or whoever handed it in, can write is on the path.
RUN = """
import sys
sys.path[:0] = sys.argv[1].split(":")
import pytest
sys.exit(pytest.main(sys.argv[2:]))
"""
PYTEST_SAYS = ("assert ", "Failed: ")
EXCEPTION = re.compile(
    r"^([\w.]+\.)?(ContractBroken|NotServed|ConnectionLost|Misbehaved|AssertionError): "
)


class Outcome(Enum):
    PASSED = "passed"
    FAILED = "failed"
    UNJUDGED = "could not be judged here"


@dataclass(frozen=True)
class Result:
    test: Test
    outcome: Outcome
    why: str = ""
    after: str = ""  #: not tried before this test passes

    @property
    def score(self) -> int:
        return self.test.points if self.outcome is Outcome.PASSED else 0

    @property
    def said(self) -> str:
        unjudged = self.outcome is Outcome.UNJUDGED
        return f"Could not be judged here: {self.why}" if unjudged else self.why


@dataclass(frozen=True)
class Verdict:
    """What a submission is worth."""

    lab: Lab
    results: tuple[Result, ...]
    message: str = ""  #: why there is no program, or the compiler's warnings
    built: bool = True
    no_cell: str = ""  #: why this is a check of one's own work, and no grade
    seed: int = 0  #: of what was served, and of the order

    @property
    def score(self) -> int:
        return sum(result.score for result in self.results)

    @property
    def unjudged(self) -> int:
        """Points that nobody can give or refuse on this machine."""
        return sum(r.test.points for r in self.results if r.outcome is Outcome.UNJUDGED)

    @property
    def first_failure(self) -> Test | None:
        return next((r.test for r in self.results if r.outcome is Outcome.FAILED), None)


def _reasons(record: Path) -> dict[str, dict[str, str]]:
    """Outcome -> what grader.plugin has told of the first test that ended so. Whoever was killed
    has left half a line."""
    lines = record.read_text(encoding="utf-8").split("\n")[:-1] if record.exists() else []
    seen = [json.loads(line) for line in reversed(lines)]
    return {line["outcome"]: line for line in seen}


def _short(why: str) -> str:
    """The first line of a reason, without the name of an exception that says nothing more."""
    lines = EXCEPTION.sub("", why).splitlines() or [""]
    line = lines[0].strip()
    return line if len(line) <= SHORT else line[: SHORT - 3] + "..."


@dataclass(frozen=True)
class How:
    tools: Toolchain
    logs: Path  #: a folder for what pytest says about each test
    patience: float | None  #: None: as this machine needs
    seed: int
    shuffled: bool  #: whether the tests come in an order of the seed's
    tell: Callable[[Result], None]  #: each result as soon as there is one


class Judge:
    """Judges in a sandbox."""

    def __init__(self, box: Sandbox, how: How) -> None:
        self.box, self.logs, self.seed = box, how.logs, how.seed
        self.patience = how.patience or min(MOST_PATIENCE, calibrate().factor)

    def _command(self, test: Test) -> list[str]:
        own, names = self.box.lab.folder, []
        for name in test.tests:  # below tests/, or of the lab's own
            is_own = (own / name.partition("::")[0]).exists()
            names.append(str((own if is_own else TREE / "tests") / name))
        options = ["-c", str(TREE / "tests/pytest.ini"), "--noconftest", "-p", "conftest"]
        options += ["-q", "-x", "--tb=short", "-rN", "-p", "no:cacheprovider"]
        options += ["-p", "grader.plugin"]
        options += [f"--basetemp={self.box.root / 'judge/tmp'}", f"--build={self.box.root}"]
        options += [f"--patience={self.patience:.3f}"]
        if self.box.lab.slug in MODELS:  # 00-client is no server
            options += [f"--servers={self.box.lab.slug}"]
        if not test.afterwards:
            options += ["--unjudged"]
        paths = [str(TREE / part) for part in ("labs", "tests", "benchmarks")]
        paths += [str(Path(pytest.__file__).parents[1])]  # wherever it is installed
        python = [sys.executable, "-I", "-c", RUN, ":".join(paths)]
        # a reply without an end must not fill the memory
        bounded = [cell.path_of("prlimit"), f"--as={TESTER_BYTES}", "--core=0", "--"]
        # if we are killed, so is pytest, and with it the server
        tied = [cell.path_of("setpriv"), "--pdeathsig=KILL", "--"]
        network: list[str] = []
        if not self.box.confinement.no_cell:
            network = cell.judge_in_a_network_of_its_own()
            options += ["--in-cell"]
        return [*bounded, *network, *tied, *python, *options, *names]

    def _run(self, test: Test, record: Path) -> int | None:
        """pytest's status; None if the time was up. Whatever it started has gone."""
        env = {
            **os.environ,
            "TMPDIR": str(self.box.root / "tmp"),
            "LAB_RECORD": str(record),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # a grade does not depend on what is installed
            "SITE_SEED": str(self.seed),
        }
        if not self.box.confinement.no_cell:
            env["LAB_CELL"] = json.dumps(self.box.cell())
        status, path = None, self.logs / f"{test.id}.log"
        with path.open("wb") as log:
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = subprocess.run(
                    self._command(test), cwd=TREE, env=env, stdin=subprocess.DEVNULL, stdout=log,
                    stderr=log, start_new_session=True, timeout=test.seconds * self.patience,
                    check=False,
                ).returncode  # fmt: skip
            end_descendants()
        files.make_plain(path)
        return status

    def judge(self, test: Test) -> Result:
        record = self.box.root / "judge" / f"{test.id}.jsonl"
        log = self.logs / f"{test.id}.log"
        status = self._run(test, record)
        seen = _reasons(record)
        if "failed" not in seen and status == 3:  # pytest: an error of its own, so of the machine
            last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
            raise LabError(f"the judge failed, see {log}: {''.join(last)}")
        if "failed" not in seen and status in (4, 5):  # pytest: wrong usage, or no test found
            raise LabError(f"test {test.id} of the lab: see {log}")
        why, end = None, ""
        if status is None:
            why = f"Not done within {test.seconds * self.patience:.0f} s."
        elif "failed" in seen:
            why = _short(seen["failed"]["why"])
            end = seen["failed"]["end"] and f"Your server {seen['failed']['end']}. "
        elif status != 0:
            why = f"The test was ended: {status}."
        if why is not None:  # said, too, if it is more than a piece of our test
            more = "" if not why or why.startswith(PYTEST_SAYS) else f" ({why})"
            return Result(test, Outcome.FAILED, end + test.fail + more)
        if "skipped" in seen or "passed" not in seen:
            why = seen["skipped"]["why"] if "skipped" in seen else "no test ran"
            return Result(test, Outcome.UNJUDGED, _short(why))
        return Result(test, Outcome.PASSED)


def _check_machine(box: Sandbox, tools: Toolchain) -> None:
    """What has not been built is the submission's fault if what we wrote can be."""
    for name in box.lab.files:
        shutil.copyfile(box.lab.source(name), box.root / "hand-in" / name)
    try:
        box.build(tools)
    except NotBuilt as error:
        lines = str(error).splitlines()
        seen = next((line for line in lines if "error: " in line), lines[-1])
        cc = " ".join(tools.compiler)
        raise LabError(f"CC={cc} builds not even the real server: {seen}") from None


def grade(lab: Lab, folder: Path, how: How) -> Verdict:
    """Judges the files in `folder`."""
    become_subreaper()  # nobody who has left his parents gets away
    with contextlib.closing(Sandbox(lab)) as box:
        try:
            box.take(folder)
            warnings = box.build(how.tools)
        except NotBuilt as error:
            _check_machine(box, how.tools)
            none = [Result(test, Outcome.FAILED, "There is no program.") for test in lab.tests]
            no_cell = box.confinement.no_cell
            return Verdict(lab, tuple(none), str(error), False, no_cell, how.seed)
        box.keep_programs(how.logs)
        judge = Judge(box, how)
        results: dict[str, Result] = {}
        for test in shuffled(lab.tests, how.seed) if how.shuffled else lab.tests:
            first = [results[n] for n in test.needs if results[n].outcome is not Outcome.PASSED]
            if first:
                name = first[0].test.id
                why = f"Not tried before {name} passes."
                results[test.id] = Result(test, first[0].outcome, why, name)
            else:
                results[test.id] = judge.judge(test)
            how.tell(results[test.id])
        in_order = tuple(results[test.id] for test in lab.tests)
        return Verdict(lab, in_order, warnings, True, box.confinement.no_cell, how.seed)


def shuffled(tests: Sequence[Test], seed: int) -> list[Test]:
    """In an order of the seed's, each after those it needs."""
    random_order = random.Random(seed)
    left, found = list(tests), list[Test]()
    while left:
        done = {test.id for test in found}
        found.append(random_order.choice([t for t in left if done.issuperset(t.needs)]))
        left.remove(found[-1])
    return found
