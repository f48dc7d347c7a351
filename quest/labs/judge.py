"""Runs the tests of a lab against a submission, one after the other."""

import contextlib
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from quest.ground.processes import become_subreaper
from quest.labs import cell, files, lack
from quest.labs.errors import CannotJudge, LabError
from quest.labs.lab import MECHANISM, TREE, Lab, Stage, Test
from quest.labs.protocol import Ending, to_json
from quest.labs.report import Entry, Outcome, Report
from quest.labs.sandbox import NotBuilt, Sandbox, end_descendants
from quest.labs.settings import Toolchain
from tests.conformance import tracing
from tests.conformance.matrix import MODELS
from tests.conformance.process import calibrate

MOST_PATIENCE = 6.0  #: times the time-outs of an idle machine
SLOWER = 2.0  #: times: then a time-out may be the fault of this machine
TESTER_BYTES = 2 << 30  #: of address space, for pytest
BUILT_AS = "glibc"  #: the variant, in the tests' name of a server
SHORT = 100  #: characters of a reason; the log has all of it
PYTEST_SAYS = ("assert ", "Failed: ")
EXCEPTION = re.compile(r"^([\w.]+\.)?(ContractBroken|NotServed|ConnectionLost|Misbehaved|AssertionError): ")
#: ENOSPC, EDQUOT, EFBIG, EROFS, EMFILE, ENFILE, ENOMEM, EAGAIN of fork(): what Python says of them
OF_THE_PLACE = re.compile(
    r"^(OSError|BlockingIOError|RuntimeError|MemoryError)\b.*"
    r"(\[Errno (11|12|23|24|27|28|30|122)\]|start new thread)|^The test was ended: "
)
OURS, THEIRS = "ours", "theirs"  #: programs that are put aside; logs of ours begin so


@dataclass(frozen=True)
class Result:
    """What became of one test of a lab."""

    test: Test
    outcome: Outcome
    why: str = ""  #: for the student
    after: str = ""  #: the test that has to pass before this one is tried
    seen: str = ""  #: the reason in the words of pytest
    timed_out: bool = False

    @property
    def score(self) -> int:
        return self.test.points if self.outcome is Outcome.PASSED else 0

    @property
    def is_of_the_place(self) -> bool:
        """The judge itself was refused what it asked for, or killed; no server was at fault."""
        return self.outcome is Outcome.FAILED and bool(OF_THE_PLACE.search(self.seen))

    @property
    def may_be_the_place(self) -> bool:
        """Whether this machine may be at fault, and not the server."""
        return self.timed_out or self.is_of_the_place

    @property
    def is_unseen_mechanism(self) -> bool:
        """Whether the way of working could not be looked at here."""
        return self.test.id == MECHANISM and self.outcome is Outcome.UNJUDGED

    @property
    def entry(self) -> Entry:
        """The same in a report."""
        unjudged = self.outcome is Outcome.UNJUDGED
        reason = f"Could not be judged here: {self.why}" if unjudged else self.why
        test = self.test
        return Entry(test.id, self.score, test.points, self.outcome, test.title, reason, self.after, test.stage)


@dataclass(frozen=True)
class Verdict:
    """What became of a submission."""

    lab: Lab
    results: tuple[Result, ...]
    message: str = ""  #: why there is no program, or the compiler's warnings
    built: bool = True
    no_cell: str = ""  #: why there was no sandbox, so that this is no grade
    seed: int = 0  #: of what was served, and of the order of tests

    @property
    def score(self) -> int:
        return sum(result.score for result in self.results)

    @property
    def unjudged(self) -> int:
        """The points of the tests that could not be judged on this machine."""
        return sum(r.test.points for r in self.results if r.outcome is Outcome.UNJUDGED)

    @property
    def unseen(self) -> list[str]:
        """The ids of those tests. One of them, the mechanism, has no points."""
        return [r.test.id for r in self.results if r.outcome is Outcome.UNJUDGED]

    @property
    def first_failure(self) -> Test | None:
        """The test to mend first; None if none has failed."""
        return next((r.test for r in self.results if r.outcome is Outcome.FAILED), None)

    @property
    def by_stage(self) -> list[tuple[Stage, int]]:
        """Each stage that was judged, with the points that were reached in it."""
        points = {stage: [r.score for r in self.results if r.test.stage == stage.title] for stage in self.lab.stages}
        return [(stage, sum(scores)) for stage, scores in points.items() if scores]

    @property
    def total(self) -> str:
        """The points, and what could not be judged, in words."""
        unseen = self.unjudged or (" and ".join(self.unseen))
        more = f"; {unseen} could not be judged here" if unseen else ""
        return f"{self.score} of {self.lab.points} points{more}"

    def report(self, trusted: bool) -> Report:
        """trusted: there are points even without a sandbox."""
        no_grade = "" if trusted else self.no_cell
        self_check = f"A self-check, not a grade: {self.no_cell}." if self.no_cell else ""
        messages = ["" if no_grade else f"{self.total}.", self_check, self.message]
        no_program = "" if self.built else self.message.splitlines()[0]
        entries = [result.entry for result in self.results]
        reached = [{"stage": stage.title, "score": score, "of": stage.points} for stage, score in self.by_stage]
        more = {"no_program": no_program, **({} if no_grade else {"stages": reached})}
        return Report(entries, messages, no_grade, more)


def _ends(record: Path) -> dict[str, Ending]:
    """Outcome -> the first pytest test that ended so, as the plugin has recorded it. A plugin that
    was killed has left half a line."""
    lines = record.read_text(encoding="utf-8").split("\n")[:-1] if record.exists() else []
    ends = [Ending(**json.loads(line)) for line in reversed(lines)]
    return {end.outcome: end for end in ends}


def _short(why: str) -> str:
    """The first line of a reason, without the name of an exception that says nothing more."""
    lines = EXCEPTION.sub("", why).splitlines() or [""]
    line = lines[0].strip()
    return line if len(line) <= SHORT else line[: SHORT - 3] + "..."


def file_of_test(lab: Lab, name: str) -> Path:
    """Where the file of a pytest name is: the lab's own, one of all labs (mechanism.py), or below
    tests/."""
    file = name.partition("::")[0]
    folders = [lab.folder, Path(__file__).parent]
    return next((f for f in folders if (f / file).exists()), TREE / "tests") / file


@dataclass(frozen=True)
class How:
    """What a grading is told."""

    tools: Toolchain
    logs: Path  #: a folder for the output of pytest about each test
    patience: float | None  #: factor of all time-outs; None: as this machine needs
    seed: int
    graded: bool  #: False: a student's own check, whose tests come in their order
    on_result: Callable[[Result], None]  #: called as soon as there is one
    no_cell: str = ""  #: why no sandbox is to be tried


class Judge:
    """Runs pytest on the program in a sandbox."""

    def __init__(self, box: Sandbox, how: How) -> None:
        self.box, self.logs, self.seed = box, how.logs, how.seed
        self.given_patience = how.patience
        self.patience = how.patience or min(MOST_PATIENCE, calibrate().factor)

    def is_slower_now(self) -> bool:
        """Whether another process has begun to use this machine since it was calibrated."""
        return not self.given_patience and self.patience < min(MOST_PATIENCE, calibrate().factor) / SLOWER

    def becomes_more_patient(self) -> bool:
        """Doubles the time-outs if the machine is slower now; whether it is."""
        if not self.is_slower_now():
            return False
        self.patience = min(MOST_PATIENCE, SLOWER * self.patience)
        return True

    def _command(self, test: Test, record: Path) -> list[str]:
        """pytest, in bounds of its own, for the tests of one line of the report."""
        lab = self.box.lab
        names = ["::".join([str(file_of_test(lab, name)), *name.split("::")[1:]]) for name in test.tests]
        options = ["-c", str(TREE / "tests/pytest.ini"), "--noconftest", "-p", "tests.conftest"]
        options += ["-q", "-x", "--tb=short", "-rN", "-p", "no:cacheprovider"]
        options += ["-p", "quest.labs.plugin", f"--record={record}"]
        options += [f"--basetemp={self.box.root / 'judge/tmp'}", f"--build={self.box.root}"]
        options += [f"--patience={self.patience:.3f}"]
        if lab.slug in MODELS:  # 00-client is no server
            options += [f"--servers={lab.slug}"]
        if not test.afterwards:
            options += ["--unjudged"]
        # Of what a submission can write nothing is on Python's path: there are this tree, which is
        # the working folder, and Python's own (-E -s).
        python = [sys.executable, "-E", "-s", "-m", "pytest"]
        # a reply without an end must not fill the memory
        bounded = [cell.path_of("prlimit"), f"--as={TESTER_BYTES}", "--core=0", "--"]
        # if we are killed, so is pytest, and with it the server
        tied = [cell.path_of("setpriv"), "--pdeathsig=KILL", "--"]
        network: list[str] = []
        if not self.box.confinement.no_cell:
            network = cell.judge_in_a_network_of_its_own()
            options += ["--in-cell", f"--cell-plan={to_json(self.box.cell_plan())}"]
        return [*bounded, *network, *tied, *python, *options, *names]

    def _run(self, test: Test, record: Path, log_path: Path) -> int | None:
        """pytest's status; None if the time was up. Afterwards nothing of what it started runs."""
        # A grade does not depend on what the environment would have pytest load.
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "PYTHON"))}
        env = {
            **inherited,
            "TMPDIR": str(self.box.root / "tmp"),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # nor on what is installed
            "SITE_SEED": str(self.seed),
        }
        status = None
        with log_path.open("wb") as log:
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = subprocess.run(
                    self._command(test, record), cwd=TREE, env=env, stdin=subprocess.DEVNULL,
                    stdout=log, stderr=log, start_new_session=True,
                    timeout=test.seconds * self.patience, check=False,
                ).returncode  # fmt: skip
            end_descendants()
        files.make_plain(log_path)
        return status

    def judge(self, test: Test, whose: str = "") -> Result:
        """What becomes of a test with the program that is in the sandbox now. whose: how the names
        of its files begin."""
        name = f"{whose}-{test.id}" if whose else test.id
        record, log = self.box.root / "judge" / f"{name}.jsonl", self.logs / f"{name}.log"
        record.unlink(missing_ok=True)
        status = self._run(test, record, log)
        ends = _ends(record)
        if "failed" not in ends and status == 3 and whose == OURS:  # pytest: an error of its own, so of the machine
            last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
            lacks = lack.lacks(self.box.root, self.box.lab.limits) or last
            raise CannotJudge(f"the judge failed, see {log}: {'; '.join(lacks)}")
        if "failed" not in ends and status in (4, 5):  # pytest: wrong usage, or no test found
            raise LabError(f"test {test.id} of the lab: see {log}")
        return self._result(test, status, ends)

    def _result(self, test: Test, status: int | None, ends: Mapping[str, Ending]) -> Result:
        why, end, fail = None, "", test.fail
        if status is None:
            why = f"Not done within {test.seconds * self.patience:.0f} s."
        elif (failed := ends.get("failed")) is not None:
            why, end = failed.why, failed.server and f"Your server {failed.server}. "
            fail = test.says.get(failed.test, test.fail)
        elif status != 0:
            why = f"The test was ended: {status}."
        if why is not None:
            short = _short(why).replace(f"{self.box.lab.slug}-{BUILT_AS}", "your server")
            # A piece of our test helps no student.
            more = "" if not short or short.startswith(PYTEST_SAYS) else f" ({short})"
            own = fail is not test.fail  # the failed test's own sentence comes first
            reason = (f"{fail} {end}".rstrip() if own else end + fail) + more
            return Result(test, Outcome.FAILED, reason, "", end + why, status is None)
        if "skipped" in ends or "passed" not in ends:
            why = ends["skipped"].why if "skipped" in ends else "no test ran"
            return Result(test, Outcome.UNJUDGED, _short(why))
        return Result(test, Outcome.PASSED)


def _build_ours(box: Sandbox, tools: Toolchain) -> None:
    """Builds our own server. Only where that can be done is it the submission's fault that it does
    not build; else CannotJudge."""
    box.take_ours()
    try:
        box.build(tools)
    except NotBuilt as error:
        lines = str(error).splitlines()
        seen = [line for line in lines if "error: " in line][:1]
        seen = seen or lack.lacks(box.root, box.lab.limits) or lines[-1:]
        cc = " ".join(tools.compiler)
        what = f"CC={cc} builds not even the real server: {'; '.join(seen)}"
        raise CannotJudge(what) from None


class Grading:
    """Of one submission. No points are lost for a test that our own server does not pass in the
    same folder and sandbox. So our server is tried before the submission is judged, and again on
    what failed: a disk may fill up meanwhile, and a machine that allows one server may not allow
    five hundred processes.
    """

    def __init__(self, box: Sandbox, how: How) -> None:
        self.box, self.how, self.lab = box, how, box.lab
        self.judge = Judge(box, how)
        self.results: dict[str, Result] = {}
        self.proven: set[str] = set()  #: tests that our own server has passed here

    def _try_ours(self, tests: Sequence[Test]) -> None:
        """CannotJudge unless the server in the sandbox, which is ours, passes these."""
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
        """Tries our server before the submission is built, which may use up the machine's room.

        In a tree without our solution it is the starter that has to start; whether programs can be
        traced is asked without it."""
        _build_ours(self.box, self.how.tools)
        self.box.put_aside(OURS)
        if self.box.has_ours:
            self._try_ours(self.lab.trial)
        else:
            self._try_ours(self.lab.trial[:1])
            if len(self.lab.trial) > 1 and (reason := tracing.unavailable()):
                raise CannotJudge(f"{MECHANISM}: {reason}")

    def run(self, tests: Sequence[Test]) -> None:
        """Judges those that have no result yet. In a student's own check the tests behind the
        mechanism are judged also where no system call can be traced."""
        for test in (test for test in tests if test.id not in self.results):
            needed = [self.results[name] for name in test.needs]
            lacking = [r for r in needed if r.outcome is not Outcome.PASSED]
            if not self.how.graded:
                lacking = [r for r in lacking if not r.is_unseen_mechanism]
            if lacking:
                name = lacking[0].test.id
                why = f"Not tried before {name} passes."
                self.results[test.id] = Result(test, lacking[0].outcome, why, name)
            else:
                self.results[test.id] = self.judge.judge(test)
            self.how.on_result(self.results[test.id])

    def doubtful(self) -> list[Test]:
        """The tests that have failed and that our own server has not passed since the machine may
        have changed."""
        failed = [r for r in self.results.values() if r.outcome is Outcome.FAILED and not r.after]
        if not self.how.graded:  # only whose fault the next one to mend is has to be known
            failed = failed[:1]
        sure = self.proven if failed and not self.judge.is_slower_now() else set[str]()
        return [r.test for r in failed if r.test.id not in sure or r.may_be_the_place]

    def check_place(self, tests: Sequence[Test]) -> None:
        """CannotJudge unless our own server passes these tests now."""
        self.box.put_aside(THEIRS)
        if not (self.box.root / "judge" / OURS).exists():
            _build_ours(self.box, self.how.tools)
            self.box.put_aside(OURS)
        self.box.swap_in(OURS)
        self._try_ours(tests if self.box.has_ours else self.lab.trial[:1])
        self.box.swap_in(THEIRS)

    def forget(self, tests: Sequence[Test]) -> bool:
        """Drops the results in which the machine had a part, now that it is known to be sound, and
        those of tests that were not tried; true if there are any."""
        slower = self.judge.becomes_more_patient()
        again = {t.id for t in tests if slower or self.results[t.id].is_of_the_place}
        for name, result in list(self.results.items()) if again else ():
            if name in again or result.after:
                del self.results[name]
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
    """Builds the submission; the compiler's warnings."""
    box, how = grading.box, grading.how
    if how.graded:
        with contextlib.suppress(NotBuilt):
            box.take(folder)  # a LabError before the trial, if there is nothing to judge
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
    in_order = tuple(grading.results[test.id] for test in lab.tests)
    return Verdict(lab, in_order, warnings, True, no_cell, how.seed)


def grade(lab: Lab, folder: Path, how: How) -> Verdict:
    """Judges the files in `folder`. CannotJudge if the machine is at fault, a LabError if there is
    nothing to judge."""
    become_subreaper()  # so that a process which has left its parent is found
    with files.for_others(), contextlib.closing(Sandbox(lab, how.no_cell)) as box:
        try:
            return _graded(box, folder, how)
        except OSError:
            if lacks := lack.lacks(box.root, lab.limits):
                raise CannotJudge("; ".join(lacks)) from None
            raise


def shuffled(tests: Sequence[Test], seed: int) -> list[Test]:
    """The tests in an order that the seed decides, each after those it needs."""
    random_order = random.Random(seed)
    left, ordered = list(tests), list[Test]()
    while left:
        done = {test.id for test in ordered}
        ordered.append(random_order.choice([t for t in left if done.issuperset(t.needs)]))
        left.remove(ordered[-1])
    return ordered
