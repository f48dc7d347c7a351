"""A place that cannot judge says so, in one line that names what it lacks: no points, no JSON, no
line of a table. Before, our own solution lost points there, or all.
"""

import dataclasses
import os
import resource
import signal
import socket
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from quest.labs import cell, judge, lack, plugin, stages
from quest.labs import lab as labs
from quest.labs.errors import CannotJudge
from quest.labs.judge import Grading, How, Result
from quest.labs.lab import Limits, Test
from quest.labs.place import claim
from quest.labs.protocol import Ending
from quest.labs.report import Outcome
from quest.labs.sandbox import Sandbox
from quest.labs.settings import Toolchain
from tests.conformance import tracing
from tests.conformance.process import Patience
from tests.labs.grading import Place, solution, write

pytestmark = pytest.mark.long
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts, and takes processes away")


def mounted(options: str) -> str:
    """A shell's line that runs the rest with another file system as $TMPDIR, for itself alone."""
    return f'mount -t tmpfs -o {options} none "$TMPDIR" && exec "$@"'


def shell(line: str) -> list[str]:
    return ["sh", "-c", line, "sh"]


#: As another user may fill a disk while one is being judged: with the first test that has ended.
FILLED = """mount -t tmpfs -o size=200m none "$TMPDIR" && {
    (until ls "$TMPDIR"/lab-*/judge/*.jsonl; do sleep 0.1; done
     head -c 1G /dev/zero > "$TMPDIR/fill") > /dev/null 2>&1 & exec "$@"; }"""
#: A group of processes that may be 60 of all together.
GROUPS = next((g for g in ("/sys/fs/cgroup/pids", "/sys/fs/cgroup") if os.path.isdir(g)), "")
FEW = f"""g={GROUPS}/labs-$$ && mkdir $g || exit
echo 60 > $g/pids.max && echo $$ > $g/cgroup.procs || exit
"$@"; status=$?; echo $$ > $g/../cgroup.procs; rmdir $g; exit $status"""
#: What a place is made of -> the lab of whose solution it took points, and what is said now.
PLACES: dict[str, tuple[list[str], str, str]] = {
    "noexec": (["unshare", "-m", *shell(mounted("noexec"))], "01-iterative", "is mounted noexec"),
    "filled meanwhile": (
        ["unshare", "-m", *shell(FILLED)],
        "01-iterative",
        "MiB left; choose another place with TMPDIR=",
    ),
    "smaller": (
        ["unshare", "-m", *shell(mounted("size=8m"))],
        "01-iterative",
        "has less than 160 MiB of room; choose another place with TMPDIR=",
    ),
    "processes": (
        ["prlimit", "--nproc=100:100"],
        "02-fork",
        "at most 100 processes (ulimit -u)",
    ),
    "descriptors": (
        ["prlimit", "--nofile=40:40"],
        "02-fork",
        "at most 40 open files (ulimit -n)",
    ),
    "processes of a cgroup": (
        shell(FEW),
        "02-fork",
        "at most 60 processes (pids.max of the cgroup)",
    ),
    "length of a file": (
        ["prlimit", "--fsize=4000000:"],
        "01-iterative",
        "at most 4000000 bytes in a file (ulimit -f)",
    ),
    "no loopback": (["unshare", "-n"], "01-iterative", "Network is unreachable"),
}


def may_limit_groups() -> bool:
    done = subprocess.run([*shell(FEW), "true"], capture_output=True, check=False)
    return done.returncode == 0


#: Each start of a server is tried until its time-out there.
STARVED = ("processes", "processes of a cgroup", "descriptors")
SLOW = (*STARVED, "filled meanwhile", "length of a file", "no loopback")  #: the last three judge first


@needs_root
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in PLACES])
def test_a_place_that_cannot_judge(place: Place, name: str) -> None:
    under, slug, lacks = PLACES[name]
    if "cgroup" in name and not may_limit_groups():
        pytest.skip("no group of processes can be made here")
    folder = write(place.top / "hand-in", solution(labs.load(slug)))
    results = place.top / "results.json"
    words = ("grade", f"CH={slug}", f"DIR={folder}", f"JSON={results}")
    said = place.refusal(*words, under=under)
    assert said.startswith("lab: cannot judge here: "), said
    assert lacks in said
    assert not results.exists()


# ---- a place that breaks, or is mended, meanwhile


class Scripted:
    """A judge whose results are known before: of the server that is in the sandbox at the time."""

    def __init__(self, ours: dict[str, list[Result]], theirs: dict[str, list[Result]]) -> None:
        self.results = {"ours": ours, "": theirs}
        self.slower = False

    def judge(self, test: Test, whose: str = "") -> Result:
        left = self.results[whose].get(test.id, [])
        return left.pop(0) if left else Result(test, Outcome.PASSED)

    def is_slower_now(self) -> bool:
        return self.slower

    def becomes_more_patient(self) -> bool:
        self.slower, before = False, self.slower
        return before


class Box:
    """A sandbox without programs."""

    has_ours = True

    def __init__(self, root: Path) -> None:
        self.root, self.lab = root, labs.load("02-fork")
        (root / "judge/ours").mkdir(parents=True)

    def put_aside(self, whose: str) -> None: ...
    def swap_in(self, whose: str) -> None: ...


def grading_of(box: Box, scripted: Scripted, graded: bool = True) -> Any:
    grading: Any = Grading.__new__(Grading)
    how = How(Toolchain((), (), ()), box.root, None, 1, graded, lambda _: None)
    grading.box, grading.how, grading.lab, grading.judge = box, how, box.lab, scripted
    grading.results, grading.proven = {}, {"serves", "mechanism"}
    return grading


def graded(box: Box, scripted: Scripted, slower: bool = False) -> dict[str, Result]:
    grading = grading_of(box, scripted)
    scripted.slower = slower
    judge._judge(grading, box.lab.tests)
    results: dict[str, Result] = grading.results
    return results


def failed(name: str, seen: str) -> Result:
    test = next(test for test in labs.load("02-fork").tests if test.id == name)
    return Result(test, Outcome.FAILED, test.fail, "", seen)


FULL = "OSError: [Errno 28] No space left on device"
WRONG = "tests.conformance.wire.ContractBroken: 404"


@pytest.mark.parametrize(
    ("name", "seen", "slower", "again"),
    [
        ("serves", FULL, False, True),  # the judge itself had no room, and has now
        ("serves", "The test was ended: -9.", False, True),
        ("crowd", WRONG, True, True),  # somebody uses the machine who did not before
        ("crowd", WRONG, False, False),
        ("serves", WRONG, False, False),
        ("serves", f"AssertionError: {FULL}", False, False),  # a server's words, not the judge's
    ],
)
def test_what_the_place_had_a_part_in_is_judged_again(
    tmp_path: Path, name: str, seen: str, slower: bool, again: bool
) -> None:
    """With all that waits for it."""
    found = graded(Box(tmp_path), Scripted({}, {name: [failed(name, seen)]}), slower)
    passed = {test for test, result in found.items() if result.outcome is Outcome.PASSED}
    assert (passed == set(found)) == again
    assert again or name not in passed


def test_nobody_loses_points_where_our_own_server_does(tmp_path: Path) -> None:
    """It passed before anybody was judged, and does not any more."""
    ours = {"serves": [failed("serves", FULL)]}
    with pytest.raises(CannotJudge, match=r"our own server fails serves here, too: .*28"):
        graded(Box(tmp_path), Scripted(ours, {"serves": [failed("serves", FULL)]}))
    ours = {"crowd": [failed("crowd", WRONG)]}
    with pytest.raises(CannotJudge, match="fails crowd here, too"):
        graded(Box(tmp_path / "2"), Scripted(ours, {"crowd": [failed("crowd", WRONG)]}))


def test_where_no_user_is_spare_nothing_runs_as_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any user of the machine can take the hundred names by which gradings know that an id is in use."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(cell, "SPARE_USERS", range(64999, 65000))
    with socket.socket(socket.AF_UNIX) as taken:
        taken.bind("\0lab-user-64999")
        with pytest.raises(CannotJudge, match="no user id from 64999 to 64999 is free"):
            cell.confinement(Limits(), tmp_path, "none is tried")


def test_a_compiler_is_found_without_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As every program finds it that is started without PATH."""
    box: Any = Sandbox.__new__(Sandbox)
    box.root, box.lab, box.calls = tmp_path, labs.load("02-fork"), None
    box.confinement = cell.Confinement(Limits(), None, 10000, "none is tried")
    monkeypatch.delenv("PATH")
    assert box._compile(["true"]) == ""


def test_a_folder_that_cannot_be_marked_does_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk: without its mark nobody would know that it may be removed."""

    def full(_: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(Path, "touch", full)
    with pytest.raises(OSError, match="No space"):
        claim()
    assert list(tmp_path.iterdir()) == []


def test_why_a_place_cannot_judge_is_one_line(tmp_path: Path) -> None:
    """A test says what it has heard, below; the last line of that is no reason for the line of a class."""
    ours = {"crowd": [failed("crowd", f"{WRONG}\n> GET / HTTP/1.1\n< nothing")]}
    with pytest.raises(CannotJudge) as error:
        graded(Box(tmp_path), Scripted(ours, {"crowd": [failed("crowd", WRONG)]}))
    assert str(error.value) == f"{CannotJudge.SAYS}our own server fails crowd here, too: {WRONG}"


def test_in_a_grade_every_failure_is_doubtful_and_in_a_check_the_first(tmp_path: Path) -> None:
    """Unless our own server has passed that test here already, and nothing speaks for the place."""
    wrong = {name: [failed(name, WRONG)] for name in ("concurrency", "crowd", "serves")}
    for graded, expected in ((True, {"concurrency", "crowd"}), (False, set())):
        grading = grading_of(Box(tmp_path / str(graded)), Scripted({}, {}), graded)
        grading.results = {name: results[0] for name, results in wrong.items()}
        grading.results = {name: grading.results[name] for name in sorted(wrong, reverse=True)}
        assert {test.id for test in grading.doubtful()} == expected


def test_a_machine_that_becomes_slower_gets_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice, at most MOST_PATIENCE times; never where PATIENCE= was given."""
    now = [1.0]
    monkeypatch.setattr(judge, "calibrate", lambda: Patience(now[0]))
    box: Any = None
    how = How(Toolchain((), (), ()), Path(), None, 1, True, lambda _: None)
    own = judge.Judge(box, how)
    given = judge.Judge(box, dataclasses.replace(how, patience=1.0))
    for factor, slower, patience in (
        (1.9, False, 1.0), (2.1, True, 2.0), (3.9, False, 2.0), (9.0, True, 4.0), (99.0, False, 4.0)
    ):  # fmt: skip
        now[0] = factor
        assert (own.becomes_more_patient(), own.patience) == (slower, patience), factor
        assert (given.becomes_more_patient(), given.patience) == (False, 1.0)


@pytest.mark.skipif(bool(tracing.unavailable()), reason=str(tracing.unavailable()))
def test_a_good_place_lacks_nothing(tmp_path: Path) -> None:
    assert lack.lacks(tmp_path, Limits()) == []
    few = lack.lacks(tmp_path, Limits(processes=1 << 30))
    assert len(few) == 1 and "processes" in few[0]


def test_the_tightest_limit_of_processes_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lack, "_cgroups", lambda: iter(()))
    kernel = int(Path("/proc/sys/kernel/threads-max").read_text())
    for soft, expected in (
        (7, (7, "ulimit -u")), (resource.RLIM_INFINITY, (kernel, "kernel.threads-max")),
        (kernel + 1, (kernel, "kernel.threads-max")),
    ):  # fmt: skip
        monkeypatch.setattr(resource, "getrlimit", lambda _, soft=soft: (soft, soft))
        assert lack._processes() == expected


def test_the_order_of_tests_is_the_seeds(tmp_path: Path) -> None:
    """Each after those that it needs."""
    tests = labs.load("02-fork").tests
    orders = [[test.id for test in judge.shuffled(tests, seed)] for seed in range(20)]
    assert orders[3] == [test.id for test in judge.shuffled(tests, 3)]
    assert len(set(map(tuple, orders))) > 10
    for order in orders:
        assert sorted(order) == sorted(test.id for test in tests)
        assert all(order.index(need) < order.index(t.id) for t in tests for need in t.needs)


ENDINGS = {
    "passed": Ending("passed", "", ""), "skipped": Ending("skipped", "no strace\nmore", ""),
    "failed": Ending("failed", "tests.conformance.wire.ContractBroken: 404\nmore", ""),
    "ended": Ending("failed", "Failed: something of ours", "ended with status 3"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("status", "ends", "outcome", "why"),
    [
        (0, ["passed"], Outcome.PASSED, ""),
        (0, ["passed", "skipped"], Outcome.UNJUDGED, "no strace"),
        (0, [], Outcome.UNJUDGED, "no test ran"),
        (1, ["passed", "failed"], Outcome.FAILED, "FAIL (404)"),
        (1, ["ended"], Outcome.FAILED, "Your server ended with status 3. FAIL"),
        (-9, ["passed"], Outcome.FAILED, "FAIL (The test was ended: -9.)"),
        (None, ["passed"], Outcome.FAILED, "FAIL (Not done within 120 s.)"),
    ],
)
def test_what_becomes_of_a_test(
    status: int | None, ends: list[str], outcome: Outcome, why: str
) -> None:
    box: Any = SimpleNamespace(lab=SimpleNamespace(slug="x"))
    how = How(Toolchain((), (), ()), Path(), 2.0, 1, True, lambda _: None)
    test = Test("x", "X", 3, ("t",), "FAIL")
    found = {ENDINGS[name].outcome: ENDINGS[name] for name in ends}
    result = judge.Judge(box, how)._result(test, status, found)
    assert (result.outcome, result.why) == (outcome, why)
    assert result.score == (3 if outcome is Outcome.PASSED else 0)
    assert result.timed_out == (status is None)
    assert result.is_of_the_place == (status == -9)
    assert result.entry.gradescope(1, graded=True)["output"] == (
        f"Could not be judged here: {why}" if outcome is Outcome.UNJUDGED else why or "Passed."
    )


def test_who_makes_the_judge_fail_is_not_a_machine_that_cannot_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pytest ends with an error of its own: of the machine, if our own server is in the sandbox; else it is looked at
    again beside ours, and at last it is a failure."""
    lab = labs.load("02-fork")
    (tmp_path / "judge").mkdir()
    box: Any = SimpleNamespace(root=tmp_path, lab=lab)
    own = judge.Judge(box, How(Toolchain((), (), ()), tmp_path, 1.0, 1, True, lambda _: None))

    def fails(test: Test, record: Path, log: Path) -> int:
        log.write_text("INTERNALERROR> MemoryError\n")
        return 3

    monkeypatch.setattr(own, "_run", fails)
    monkeypatch.setattr(lack, "lacks", lambda *_: [])
    with pytest.raises(CannotJudge, match="the judge failed"):
        own.judge(lab.tests[0], judge.OURS)
    result = own.judge(lab.tests[0])
    assert result.outcome is Outcome.FAILED and result.is_of_the_place
    crashes = failed("serves", result.seen)
    found = graded(Box(tmp_path / "box"), Scripted({}, {"serves": [crashes] * 3}))
    assert found["serves"].score == 0


def test_a_log_says_what_was_tested_and_what_was_seen() -> None:
    def about() -> None:
        """Each client
        is served."""

    item: Any = SimpleNamespace(function=about)
    call: Any = SimpleNamespace(excinfo=SimpleNamespace(value=ValueError("404"), typename="X"))
    assert plugin._for_a_student(item, call) == "Each client\nis served.\n\n404"
    about.__doc__, call.excinfo.value = None, ValueError()
    assert plugin._for_a_student(item, call) == "X"
    ends = {1: "ended with status 1", -9: "was ended by signal 9 (SIGKILL)"}
    for status, said in ends.items():
        server: Any = SimpleNamespace(stopped=None, wait=lambda _, status=status: status)
        assert plugin._end(server) == said


def test_a_server_may_end_by_any_signal() -> None:
    """08-sigio has real-time signals, and who forgets to block them is ended by one: no error of the judge."""
    for number, name in ((11, "SIGSEGV"), (signal.SIGRTMIN + 1, "SIGRTMIN+1"), (signal.SIGRTMAX, "SIGRTMAX")):
        server: Any = SimpleNamespace(stopped=None, wait=lambda _, status=-number: status)
        assert plugin._end(server) == f"was ended by signal {number:d} ({name})"


@pytest.mark.parametrize(
    ("no_cell", "hard", "processes"),
    [("", resource.RLIM_INFINITY, 300), ("no bwrap", resource.RLIM_INFINITY, 4300), ("", 200, 200), ("", 400, 300),
     ("no bwrap", 400, 400)],
)  # fmt: skip
def test_how_many_processes_a_submission_may_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_cell: str, hard: int, processes: int
) -> None:
    """Without a cell those that its user has already are counted, too. No process may have more than its judge."""
    monkeypatch.setattr(cell, "_spare_user", lambda _: None)
    monkeypatch.setattr(cell, "unavailable", lambda _: "")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (0, hard))
    found = cell.confinement(Limits(), tmp_path, no_cell)
    assert (found.processes, found.no_cell) == (processes, no_cell)


def test_the_sums_of_a_verdict() -> None:
    lab = labs.load("02-fork")
    first, mechanism, second, third = lab.tests[:4]
    results = (
        Result(first, Outcome.PASSED), Result(mechanism, Outcome.UNJUDGED, "w"),
        Result(second, Outcome.UNJUDGED, "w"), Result(third, Outcome.FAILED, "w"),
    )  # fmt: skip
    verdict = judge.Verdict(lab, results, "m\nn", True, "no bwrap")
    assert (verdict.score, verdict.unjudged) == (first.points, second.points)
    assert verdict.unseen == ["mechanism", second.id]
    assert verdict.first_failure == third
    assert stages.of_verdict(verdict) == 1
    passed = tuple(Result(test, Outcome.PASSED) for test in lab.tests[3:5])
    assert stages.of_verdict(dataclasses.replace(verdict, results=(*results[:3], *passed))) == 2, "unjudged: no fault"
    graded, check = verdict.report(trusted=True), verdict.report(trusted=False)
    assert (graded.score, graded.no_grade, check.no_grade) == (first.points, "", "no bwrap")
    assert "score" in graded.gradescope() and '"score"' not in check.gradescope()
    assert graded.more["no_program"] == ""
    broken = dataclasses.replace(verdict, built=False).report(trusted=True)
    assert broken.more["no_program"] == "m"


@pytest.mark.slow
def test_a_class_in_a_place_that_cannot_judge(place: Place) -> None:
    """What was graded elsewhere stays, and nobody gets a line."""
    table = place.top / "grades.csv"
    text = "name,score,of,state,failed,seconds,note,work,judge,tests\nzoe,4.5,5,by hand,,,,,,\n"
    table.write_text(text)
    for name in ("ada", "bob"):
        write(place.top / "class" / name, {"server.c": "int main(void)\n{\n}\n"})
    words = ("CH=02-fork", f"DIR={place.top / 'class'}", f"CSV={table}")
    said = place.refusal("grade-all", *words, CC="/nowhere/cc")
    assert said.startswith("lab: cannot judge here: CC=/nowhere/cc builds not even")
    assert [line.split(",")[0] for line in table.read_text().splitlines()] == ["name", "zoe"]
