"""Runs the tests of a lab against what was handed in, one after the other."""

import contextlib
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from quest.ground.processes import become_subreaper
from quest.labs import cell, files, lack
from quest.labs.errors import CannotJudge, LabError
from quest.labs.lab import MECHANISM, TREE, Lab, Test
from quest.labs.sandbox import NotBuilt, Sandbox, Toolchain, end_descendants
from tests.conformance import tracing
from tests.conformance.matrix import MODELS
from tests.conformance.process import calibrate

MOST_PATIENCE = 6.0  #: times the time-outs of an idle machine
SLOWER = 2.0  #: times: then what was not done in time may be this machine's fault
TESTER_BYTES = 2 << 30
SHORT = 100  #: characters; the log has it all
PYTEST_SAYS = ("assert ", "Failed: ")
EXCEPTION = re.compile(
    r"^([\w.]+\.)?(ContractBroken|NotServed|ConnectionLost|Misbehaved|AssertionError): "
)
#: ENOSPC, EDQUOT, EFBIG, EROFS, EMFILE, ENFILE, ENOMEM, EAGAIN of fork(): what Python says of them
OF_THE_PLACE = re.compile(
    r"^(OSError|BlockingIOError|RuntimeError|MemoryError)\b.*"
    r"(\[Errno (11|12|23|24|27|28|30|122)\]|start new thread)|^The test was ended: "
)
OURS, THEIRS = "ours", "theirs"  #: programs that are put aside; of our own the logs have the name


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
    seen: str = ""  #: the reason in the words of the test that found it
    timed_out: bool = False

    @property
    def score(self) -> int:
        return self.test.points if self.outcome is Outcome.PASSED else 0

    @property
    def is_of_the_place(self) -> bool:
        """The judge itself, and no server, was refused what it asked for; or it was killed."""
        return self.outcome is Outcome.FAILED and bool(OF_THE_PLACE.search(self.seen))

    @property
    def may_be_the_place(self) -> bool:
        return self.timed_out or self.is_of_the_place

    @property
    def is_unseen_mechanism(self) -> bool:
        return self.test.id == MECHANISM and self.outcome is Outcome.UNJUDGED

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
    def unseen(self) -> list[str]:
        """Tests that could not be judged here, of which one has no points of its own."""
        return [r.test.id for r in self.results if r.outcome is Outcome.UNJUDGED]

    @property
    def first_failure(self) -> Test | None:
        return next((r.test for r in self.results if r.outcome is Outcome.FAILED), None)


def _reasons(record: Path) -> dict[str, dict[str, str]]:
    """Outcome -> what the plugin has told of the first test that ended so. A plugin that was killed
    has left half a line."""
    lines = record.read_text(encoding="utf-8").split("\n")[:-1] if record.exists() else []
    seen = [json.loads(line) for line in reversed(lines)]
    return {line["outcome"]: line for line in seen}


def _short(why: str) -> str:
    """The first line of a reason, without the name of an exception that says nothing more."""
    lines = EXCEPTION.sub("", why).splitlines() or [""]
    line = lines[0].strip()
    return line if len(line) <= SHORT else line[: SHORT - 3] + "..."


def path_of_test(lab: Lab, name: str) -> Path:
    """Of the lab's own, of all labs, or below tests/."""
    file = name.partition("::")[0]
    folders = [lab.folder, Path(__file__).parent]
    return next((f for f in folders if (f / file).exists()), TREE / "tests") / name


@dataclass(frozen=True)
class How:
    tools: Toolchain
    logs: Path  #: a folder for what pytest says about each test
    patience: float | None  #: None: as this machine needs
    seed: int
    graded: bool  #: or a check of one's own work, whose tests come in their order
    tell: Callable[[Result], None]  #: each result as soon as there is one


class Judge:
    """Judges in a sandbox."""

    def __init__(self, box: Sandbox, how: How) -> None:
        self.box, self.logs, self.seed = box, how.logs, how.seed
        self.told = how.patience
        self.patience = how.patience or min(MOST_PATIENCE, calibrate().factor)

    def is_slower_now(self) -> bool:
        """Somebody else has begun to use this machine since it was calibrated."""
        return not self.told and self.patience < min(MOST_PATIENCE, calibrate().factor) / SLOWER

    def takes_its_time(self) -> bool:
        """From now on as a slower machine needs, if it is one."""
        if not self.is_slower_now():
            return False
        self.patience = min(MOST_PATIENCE, SLOWER * self.patience)
        return True

    def _command(self, test: Test) -> list[str]:
        names = [str(path_of_test(self.box.lab, name)) for name in test.tests]
        options = ["-c", str(TREE / "tests/pytest.ini"), "--noconftest", "-p", "tests.conftest"]
        options += ["-q", "-x", "--tb=short", "-rN", "-p", "no:cacheprovider"]
        options += ["-p", "quest.labs.plugin"]
        options += [f"--basetemp={self.box.root / 'judge/tmp'}", f"--build={self.box.root}"]
        options += [f"--patience={self.patience:.3f}"]
        if self.box.lab.slug in MODELS:  # 00-client is no server
            options += [f"--servers={self.box.lab.slug}"]
        if not test.afterwards:
            options += ["--unjudged"]
        # Nothing that a submission can write is on the path: it has this tree, and Python's own.
        python = [sys.executable, "-E", "-s", "-m", "pytest"]
        # a reply without an end must not fill the memory
        bounded = [cell.path_of("prlimit"), f"--as={TESTER_BYTES}", "--core=0", "--"]
        # if we are killed, so is pytest, and with it the server
        tied = [cell.path_of("setpriv"), "--pdeathsig=KILL", "--"]
        network: list[str] = []
        if not self.box.confinement.no_cell:
            network = cell.judge_in_a_network_of_its_own()
            options += ["--in-cell"]
        return [*bounded, *network, *tied, *python, *options, *names]

    def _run(self, test: Test, record: Path, log_path: Path) -> int | None:
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
        status = None
        with log_path.open("wb") as log:
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = subprocess.run(
                    self._command(test), cwd=TREE, env=env, stdin=subprocess.DEVNULL, stdout=log,
                    stderr=log, start_new_session=True, timeout=test.seconds * self.patience,
                    check=False,
                ).returncode  # fmt: skip
            end_descendants()
        files.make_plain(log_path)
        return status

    def judge(self, test: Test, whose: str = "") -> Result:
        """The program that is in the sandbox now."""
        name = f"{whose}-{test.id}" if whose else test.id
        record, log = self.box.root / "judge" / f"{name}.jsonl", self.logs / f"{name}.log"
        record.unlink(missing_ok=True)
        status = self._run(test, record, log)
        seen = _reasons(record)
        if "failed" not in seen and status == 3:  # pytest: an error of its own, so of the machine
            last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
            lacks = lack.lacks(self.box.root, self.box.lab.limits) or last
            raise CannotJudge(f"the judge failed, see {log}: {'; '.join(lacks)}")
        if "failed" not in seen and status in (4, 5):  # pytest: wrong usage, or no test found
            raise LabError(f"test {test.id} of the lab: see {log}")
        return self._result(test, status, seen)

    def _result(self, test: Test, status: int | None, seen: Mapping[str, dict[str, str]]) -> Result:
        why, end = None, ""
        if status is None:
            why = f"Not done within {test.seconds * self.patience:.0f} s."
        elif "failed" in seen:
            why = seen["failed"]["why"]
            end = seen["failed"]["end"] and f"Your server {seen['failed']['end']}. "
        elif status != 0:
            why = f"The test was ended: {status}."
        if why is not None:  # said, too, if it is more than a piece of our test
            short = _short(why)
            more = "" if not short or short.startswith(PYTEST_SAYS) else f" ({short})"
            said = end + test.fail + more
            return Result(test, Outcome.FAILED, said, "", end + why, status is None)
        if "skipped" in seen or "passed" not in seen:
            why = seen["skipped"]["why"] if "skipped" in seen else "no test ran"
            return Result(test, Outcome.UNJUDGED, _short(why))
        return Result(test, Outcome.PASSED)


def _build_ours(box: Sandbox, tools: Toolchain) -> None:
    """What has not been built is the submission's fault if what we wrote can be."""
    box.take_ours()
    try:
        box.build(tools)
    except NotBuilt as error:
        lines = str(error).splitlines()
        seen = [line for line in lines if "error: " in line][:1]
        seen = seen or lack.lacks(box.root, box.lab.limits) or lines[-1:]
        cc = " ".join(tools.compiler)
        said = f"CC={cc} builds not even the real server: {'; '.join(seen)}"
        raise CannotJudge(said) from None


class Grading:
    """Of one submission. Nobody loses points for a test that our own server does not pass in the
    same folder and sandbox. So it is tried before anybody is judged, and again on what failed: a
    place may fill up meanwhile, or allow one server and not five hundred processes.
    """

    def __init__(self, box: Sandbox, how: How) -> None:
        self.box, self.how, self.lab = box, how, box.lab
        self.judge = Judge(box, how)
        self.found: dict[str, Result] = {}
        self.proven: set[str] = set()  #: tests that our own server has passed here

    def _try_ours(self, tests: Sequence[Test]) -> None:
        """The server in the sandbox is ours."""
        for test in tests:
            result = self.judge.judge(test, OURS)
            if result.outcome is not Outcome.PASSED:
                if result.outcome is Outcome.UNJUDGED:
                    raise CannotJudge(f"{test.id}: {result.why}")
                lacks = lack.lacks(self.box.root, self.lab.limits)
                seen = "; ".join(lacks) or result.seen or result.why
                raise CannotJudge(f"our own server fails {test.id} here, too: {seen}")
            self.proven.add(test.id)

    def trial(self) -> None:
        """Before what was handed in is built, so that it is not the one that has used up the place.

        In a tree without our solution the starter has to start; that it can be traced is known
        without it."""
        _build_ours(self.box, self.how.tools)
        self.box.put_aside(OURS)
        if self.box.has_ours:
            self._try_ours(self.lab.trial)
        else:
            self._try_ours(self.lab.trial[:1])
            if len(self.lab.trial) > 1 and (reason := tracing.unavailable()):
                raise CannotJudge(f"{MECHANISM}: {reason}")

    def run(self, tests: Sequence[Test]) -> None:
        """Those that have no result yet. One's own work is judged also where nobody can see how it
        works."""
        for test in (test for test in tests if test.id not in self.found):
            needed = [self.found[name] for name in test.needs]
            lacking = [r for r in needed if r.outcome is not Outcome.PASSED]
            if not self.how.graded:
                lacking = [r for r in lacking if not r.is_unseen_mechanism]
            if lacking:
                name = lacking[0].test.id
                why = f"Not tried before {name} passes."
                self.found[test.id] = Result(test, lacking[0].outcome, why, name)
            else:
                self.found[test.id] = self.judge.judge(test)
            self.how.tell(self.found[test.id])

    def doubtful(self) -> list[Test]:
        """What has failed, and our own server has not been tried on it since the place may have
        changed."""
        failed = [r for r in self.found.values() if r.outcome is Outcome.FAILED and not r.after]
        if not self.how.graded:  # enough to know whose fault the next one to be mended is
            failed = failed[:1]
        sure = self.proven if failed and not self.judge.is_slower_now() else set[str]()
        return [r.test for r in failed if r.test.id not in sure or r.may_be_the_place]

    def check_place(self, tests: Sequence[Test]) -> None:
        self.box.put_aside(THEIRS)
        if not (self.box.root / "judge" / OURS).exists():
            _build_ours(self.box, self.how.tools)
            self.box.put_aside(OURS)
        self.box.swap_in(OURS)
        self._try_ours(tests if self.box.has_ours else self.lab.trial[:1])
        self.box.swap_in(THEIRS)

    def forget(self, tests: Sequence[Test]) -> bool:
        """What the place had a part in, now that it is known to be sound, and what waited for it;
        true if that is anything."""
        slower = self.judge.takes_its_time()
        again = {t.id for t in tests if slower or self.found[t.id].is_of_the_place}
        for name, result in list(self.found.items()) if again else ():
            if name in again or result.after:
                del self.found[name]
        return bool(again)


def _judge(grading: Grading, tests: Sequence[Test]) -> None:
    grading.run(tests)
    for _ in range(2):
        doubtful = grading.doubtful()
        if not doubtful:
            return
        grading.check_place(doubtful)
        if not grading.how.graded or not grading.forget(doubtful):
            return
        grading.run(tests)


def _program(grading: Grading, folder: Path) -> str:
    """Builds what was handed in; returns the compiler's warnings."""
    box, how = grading.box, grading.how
    if how.graded:
        with contextlib.suppress(NotBuilt):
            box.take(folder)  # where there is nothing no place is needed
        grading.trial()
    try:
        box.take(folder)
        return box.build(how.tools)
    except NotBuilt:
        if not how.graded:
            _build_ours(box, how.tools)
        raise


def _graded(box: Sandbox, folder: Path, how: How) -> Verdict:
    lab, grading = box.lab, Grading(box, how)
    no_cell = box.confinement.no_cell
    try:
        warnings = _program(grading, folder)
    except NotBuilt as error:
        none = [Result(test, Outcome.FAILED, "There is no program.") for test in lab.tests]
        return Verdict(lab, tuple(none), str(error), False, no_cell, how.seed)
    box.keep_programs(how.logs)
    _judge(grading, shuffled(lab.tests, how.seed) if how.graded else lab.tests)
    in_order = tuple(grading.found[test.id] for test in lab.tests)
    return Verdict(lab, in_order, warnings, True, no_cell, how.seed)


def grade(lab: Lab, folder: Path, how: How) -> Verdict:
    """Judges the files in `folder`."""
    become_subreaper()  # nobody who has left his parents gets away
    with contextlib.closing(Sandbox(lab)) as box:
        try:
            return _graded(box, folder, how)
        except OSError:
            if lacks := lack.lacks(box.root, lab.limits):
                raise CannotJudge("; ".join(lacks)) from None
            raise


def shuffled(tests: Sequence[Test], seed: int) -> list[Test]:
    """In an order of the seed's, each after those it needs."""
    random_order = random.Random(seed)
    left, found = list(tests), list[Test]()
    while left:
        done = {test.id for test in found}
        found.append(random_order.choice([t for t in left if done.issuperset(t.needs)]))
        left.remove(found[-1])
    return found
