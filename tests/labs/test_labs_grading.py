"""A grade is right: full for the real server, small for the starter and for servers that only look
like one, and there is one, soon and without damage, for whatever is handed in.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from grader import cell, work
from grader import lab as labs
from grading import TREE, Place

RUNS = int(os.environ.get("LAB_RUNS", "1"))  #: of each real server: 10 before a lab is given out
SOON = "PATIENCE=0.4"  #: for what has to fail: time-outs of 4 s are waited for in full
#: where all gradings are one user's, a fork bomb in one must leave room in the others
FEW = "PROCESSES=60"
FAULTS: list[dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("faults.toml").read_text(encoding="utf-8")
)["fault"]
#: each starts a server several times and waits for what must not happen
pytestmark = pytest.mark.long
ALL_LABS = pytest.mark.parametrize("slug", labs.slugs())


@ALL_LABS
@pytest.mark.parametrize("run", range(RUNS))
def test_the_solution_has_all_points(place: Place, slug: str, run: int) -> None:
    lab = labs.load(slug)
    grade = place.grade(slug, place.hand_in_the_real(lab))
    unjudged = grade.with_outcome("could not be judged here")
    assert grade.passed | unjudged == {test.id for test in lab.tests}, grade.out
    missing = sum(test.points for test in lab.tests if test.id in unjudged)
    assert grade.results["score"] == lab.points - missing
    if unjudged:
        pytest.skip(f"{missing} points could not be judged here: {grade.output(min(unjudged))}")
    assert f"{lab.points} of {lab.points} points." in grade.out


@ALL_LABS
def test_the_starter_works_and_fails(place: Place, slug: str) -> None:
    done = place.make("lab", f"CH={slug}")
    assert done.returncode == 0, done.stderr
    grade = place.grade(slug, place.work / slug, SOON)
    lab = labs.load(slug)
    assert grade.passed == {lab.tests[0].id}, grade.out
    assert grade.results["score"] == lab.tests[0].points


def test_a_sequential_server_has_no_points_for_concurrency(place: Place) -> None:
    grade = place.grade("02-fork", TREE / "code/01-iterative", SOON)
    assert grade.passed == {"serves"}
    assert "wait for a client" in grade.output("concurrency")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault['lab']} {fault['name']}")
def test_faults(place: Place, fault: dict[str, Any]) -> None:
    lab = labs.load(fault["lab"])
    folder = place.hand_in_the_real(lab, fault["old"], fault["new"])
    first = lab.tests[0].id
    grade = place.grade(lab.slug, folder, f"ONLY={','.join([first, *fault['fails']])}", SOON)
    if unjudged := grade.with_outcome("could not be judged here"):
        pytest.skip(grade.output(min(unjudged)))
    assert grade.passed == {first}, grade.out
    assert grade.with_outcome("failed") == set(fault["fails"]), grade.out


PLANTED = [(slug, at) for slug in labs.slugs() for at, _ in enumerate(labs.load(slug).mistakes)]


@pytest.mark.parametrize(("slug", "number"), PLANTED)
def test_a_planted_mistake_fails_its_test_alone(place: Place, slug: str, number: int) -> None:
    lab = labs.load(slug)
    mistake = lab.mistakes[number]
    grade = place.grade(slug, place.hand_in_the_real(lab, mistake.old, mistake.new), SOON)
    if unjudged := grade.with_outcome("could not be judged here"):
        pytest.skip(grade.output(min(unjudged)))
    failed = grade.with_outcome("failed")
    waits = {name for name in failed if grade.output(name).startswith("Not tried before ")}
    assert failed - waits == {mistake.test}, grade.out


@ALL_LABS
def test_every_test_of_a_lab_fails_somebody(slug: str) -> None:
    lab = labs.load(slug)
    failed = {test for fault in FAULTS if fault["lab"] == slug for test in fault["fails"]}
    failed |= {mistake.test for mistake in lab.mistakes}
    assert failed == {test.id for test in lab.tests[1:]}


HOSTILE = Path(__file__).with_name("hostile")
MARK = "lab_was_here*"
no_cell = cell.unavailable(None)
in_a_cell = pytest.mark.skipif(bool(no_cell), reason=no_cell)


def marks(place: Place) -> list[Path]:
    """What a hostile program has left, where it tries to."""
    folders = [TREE, TREE / "labs", TREE / "labs/grader", TREE / "tests", place.temporary]
    folders += [Path(name) for name in ("/", "/tmp", "/var/tmp", "/dev/shm", "/home")]
    return [path for folder in folders for path in folder.glob(MARK)]


@in_a_cell
@pytest.mark.parametrize("what", sorted(path.stem for path in HOSTILE.glob("*.c")))
def test_hostile_servers(place: Place, what: str) -> None:
    """The fixture sees to it that no process and no file is left."""
    text = (HOSTILE / f"{what}.c").read_text(encoding="utf-8").replace("@TREE@", str(TREE))
    server = TREE / place.build / "bin/02-fork"
    with subprocess.Popen([server, "-p", "0", "code"], stdout=subprocess.PIPE, text=True) as real:
        assert real.stdout is not None
        port = real.stdout.readline().rsplit(":", 1)[1].strip("/\n")
        folder = place.hand_in(text.replace("REAL_PORT 0", f"REAL_PORT {port}"))
        grade = place.grade("02-fork", folder, "ONLY=serves,concurrency", SOON, FEW)
        alive = real.poll() is None
        real.terminate()
    assert alive, "whoever runs beside it is unharmed"
    assert grade.results["score"] == 0, grade.out
    assert "It does not start, or does not answer" in grade.output("serves")
    assert grade.output("concurrency") == "Not tried before serves passes."
    assert marks(place) == []


@in_a_cell
def test_helper_programs_that_only_say_so(place: Place) -> None:
    say = '#include <stdio.h>\nint main(void)\n{{\n    puts("{}");\n    return 0;\n}}\n'
    real = labs.load("09-epoll").source("server.c").read_text(encoding="utf-8")
    told = "looked 1000 times, was told 0 times of a client that it has forgotten"
    shared = say.format("the second worker was told of its client")
    texts = {"server.c": real, "closed.c": say.format(told), "shared.c": shared}
    grade = place.grade("09-epoll", place.hand_in_all(texts), "ONLY=closed,shared", SOON)
    assert grade.results["score"] == 0, grade.out
    assert "its system calls do not" in grade.output("closed") + grade.output("shared")


def test_without_a_sandbox_it_is_no_grade(place: Place, tmp_path: Path) -> None:
    grade = place.grade("02-fork", TREE / "code/02-fork", "ONLY=serves", LAB_NO_CELL="1")
    assert "A self-check, not a grade: " in grade.said
    assert "self-check, not a grade" in grade.out
    assert "Error 3" in grade.err


@in_a_cell
def test_a_seed_serves_the_same_again(place: Place) -> None:
    folder = TREE / "code/02-fork"
    first = place.grade("02-fork", folder, "ONLY=serves", "SEED=5").out
    assert "SEED=5 serves the same again" in first
    assert first == place.grade("02-fork", folder, "ONLY=serves", "SEED=5").out
    other = place.grade("02-fork", folder, "ONLY=serves").out
    assert re.search(r"^Seed \d+: ", other, re.M)


NO_PROGRAM = {
    "a mistake": ("int main(void)\n{\n    return 0\n}\n", "server.c:3:13: error"),
    "no main": ("int x;\n", "main"),
    "the solution included": ('#include "02-fork/server.c"\n', "02-fork/server.c: No such file"),
    "the solution by its path": (f'#include "{TREE}/code/02-fork/server.c"\n', "No such file"),
    "a file that is nobody's": ('#include "/etc/shadow"\n', "/etc/shadow: No such file"),
    "the solution's object": (f'__asm__(".incbin \\"{TREE}/README.md\\"");\n', "not found"),
    "a gigabyte of data": ("char x[1 << 30] = {1};\nint main(void)\n{\n}\n", ""),
    "itself without end": ('#include "server.c"\n', "..."),
}
BIG = " " * ((1 << 20) + 1)


@pytest.mark.parametrize("what", NO_PROGRAM)
def test_what_does_not_build(place: Place, what: str) -> None:
    text, more = NO_PROGRAM[what]
    grade = place.grade("02-fork", place.hand_in(text))
    lines = grade.results["output"].splitlines()
    assert lines[:2] == ["0 of 20 points.", "it does not build"]
    assert more in grade.results["output"]
    assert len(lines) < 30
    assert {test["output"] for test in grade.results["tests"]} == {"There is no program."}


def test_what_is_handed_in_in_part(place: Place) -> None:
    folder = place.hand_in(BIG)
    assert place.grade("02-fork", folder).said == "server.c is longer than 1 MiB"
    assert place.grade("09-epoll", folder).said == "there is no closed.c, no shared.c"


def test_the_form_of_the_results(place: Place) -> None:
    """The keys that Gradescope knows, and the sums."""
    grade = place.grade("02-fork", TREE / "code/02-fork", "ONLY=serves,keep-alive")
    assert grade.results["score"] == 3
    assert [test["max_score"] for test in grade.results["tests"]] == [2, 1]
    for test in grade.results["tests"]:
        assert test["score"] == test["max_score"]
        assert (test["status"], test["visibility"]) == ("passed", "visible")
        assert test["output"] == "Passed."


def test_what_cannot_be_judged_is_no_failure(place: Place, tmp_path: Path) -> None:
    """Where tracing is not permitted, the race cannot be seen: neither points nor a failure."""
    strace = tmp_path / "strace"
    strace.write_text("#!/bin/sh\necho ptrace: not permitted >&2\nexit 1\n")
    strace.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    grade = place.grade("02-fork", TREE / "code/02-fork", "ONLY=serves,race", PATH=path)
    assert grade.passed == {"serves"}
    assert grade.with_outcome("could not be judged here") == {"race"}
    assert "Could not be judged here: tracing is not permitted here" in grade.output("race")
    assert "2 of 3 points; 1 could not be judged here." in grade.out
    assert "Error 3" in grade.err


def test_a_grading_that_is_ended_leaves_nothing(place: Place) -> None:
    """SIGTERM, as of a time-out around it. The fixture looks at what is left."""
    folder = place.hand_in((HOSTILE / "fork-bomb.c").read_text(encoding="utf-8"))
    python = f"PYTHON=timeout --foreground 4 {sys.executable}"
    done = place.make("grade", "CH=02-fork", f"DIR={folder}", FEW, python)
    assert "Error 124" in done.stderr, done.stderr


def test_a_wrong_test_is_the_labs_fault(place: Place) -> None:
    said = place.refusal("grade", "CH=02-fork", "DIR=code/02-fork", "ONLY=nothing")
    assert "lab: ONLY=nothing: there is no such test. There are: serves, " in said
    said = place.refusal("grade", "CH=99-none")
    assert "lab: CH=99-none: there is no such lab. There are: 00-client, " in said


def test_progress_is_noted(place: Place) -> None:
    place.make("lab", "CH=02-fork")
    mine = place.work / "02-fork"
    (mine / "server.c").write_text("int main(void)\n{\n    return 0;\n}\n")
    done = place.make("check", "CH=02-fork", "ONLY=serves")
    assert "Next: serves." in done.stdout
    assert work.Progress.load(mine).score is None
    (mine / "server.c").write_text("broken\n")
    done = place.make("check", "CH=02-fork")
    assert "it does not build\nserver.c:1:1: error: " in done.stdout
    assert "0 of 20 points." in done.stdout
    assert work.Progress.load(mine).score == 0
    assert "A process for each connection (build; 0 of 20 points)" in place.make("lab").stdout
