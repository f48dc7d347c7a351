"""Reading a lab, cutting its starter, and what make lab, hint and solution say; marks of solutions
are in the sources, and in nothing that is made from them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from grader import lab as labs
from grader import starter, work
from grader.errors import LabError
from grader.lab import TREE, Lab
from grading import Place

ALL_LABS = pytest.mark.parametrize("slug", labs.slugs())
SOURCE = """\
#include <x.h>
/* region: book */
int a;
/* solution: one */
int secret;
/* region: inner */
int more;
/* endregion: inner */
/* endsolution: one */
/* endregion: book */
    /* solution: two */
    int hidden;
    /* endsolution: two */
int b;
"""


# ---- cutting


def test_solutions_give_way_and_markers_go() -> None:
    text = starter.cut(SOURCE, {"one": "/* write one */\n", "two": ""}, "x.c")
    assert text == "#include <x.h>\nint a;\n/* write one */\nint b;\n"
    assert starter.clean(SOURCE).split("\n") == [
        "#include <x.h>", "int a;", "int secret;", "int more;", "    int hidden;", "int b;", "",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("/* solution: three */\n/* endsolution: three */\n", "x.c:1: the lab has no replacement"),
        ("/* solution: one */\n", "x.c: solution one is not closed"),
        ("/* endsolution: one */\n", "x.c:1: endsolution one without its solution"),
        ("/* solution: one */\n/* solution: two */\n", "x.c:2: solution two inside one"),
        ("/* solution: one */\n/* endsolution: two */\n", "x.c:2: endsolution two without"),
        ("/* solution: one */\n/* endsolution: one */\n" * 2, "x.c:3: solution one is there twice"),
        ("/* solution: one */\n/* endsolution: one */\n", "x.c: no solution two in it"),
    ],
)
def test_bad_solutions_are_refused(text: str, message: str) -> None:
    with pytest.raises(LabError, match=message):
        starter.cut(text, {"one": "", "two": ""}, "x.c")


MARK = re.compile(r"(region|solution): ")


def test_what_is_made_of_a_source_has_no_marks(place: Place) -> None:
    """A diff; an amalgamation, which compiles; and lines are counted without them."""
    source = (TREE / "code/02-fork/server.c").read_text()
    assert "/* solution: " in source
    diff = place.make("diff", "FROM=01-iterative", "TO=02-fork").stdout
    build = place.top / "build"
    single = build / "single/02-fork.c"
    said = place.make("amalgamate", "CH=02-fork", f"BUILD={build}").stdout
    assert said.strip() == str(single)
    for text in (diff, single.read_text()):
        assert "pid_t pid = fork();" in text and MARK.search(text) is None
    compiler = ["cc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    subprocess.run([*compiler, str(single)], check=True)
    counted = by_lint("*lint.source_lines(pathlib.Path('02-fork/server.c')), sep='\\n'")
    assert counted.splitlines() == [s for s in source.splitlines() if MARK.search(s) is None]


def by_lint(shown: str) -> str:
    command = [sys.executable, "-c", f"import lint, pathlib; print({shown})"]
    done = subprocess.run(command, cwd=TREE / "code", check=True, capture_output=True, text=True)
    return done.stdout


@pytest.mark.parametrize(
    ("marks", "line"),
    [
        ("solution: a/region: b/endregion: b/endsolution: a", 0),
        ("solution: a/endsolution: b", 2),
        ("solution: a/solution: b/endsolution: b/endsolution: a", 2),
        ("endsolution: a", 1),
        ("region: b/solution: a/endregion: b", 2),
    ],
)
def test_a_solution_has_both_marks(marks: str, line: int) -> None:
    lines = [f"    /* {mark} */" for mark in marks.split("/")]
    assert by_lint(f"lint.unmatched_solution({lines!r})") == f"{line}\n"


# ---- lab.toml


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with the lab 02-fork alone, to be damaged."""
    (tmp_path / "code/02-fork").mkdir(parents=True)
    shutil.copy(TREE / "code/02-fork/server.c", tmp_path / "code/02-fork")
    shutil.copytree(TREE / "labs/02-fork", tmp_path / "labs/02-fork")
    return tmp_path


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "A', 'titel = "A', "lab: unknown: titel"),
        ("points = 2", "points = 0", "test 1: points is a number above 0"),
        ("points = 2", 'points = "2"', "test 1: points is a number above 0"),
        ('id = "crowd"', 'id = "serves"', "test serves is there twice"),
        ('needs = ["serves"]', 'needs = ["tidy"]', "test concurrency needs what does not come"),
        ('files = ["server.c"]', 'files = ["../x.c"]', "files: ../x.c: only C files"),
        ("afterwards = true", "afterward = true", "test 12: unknown: afterward"),
        ("minutes = 90", "minutes =", "Invalid value"),
        ("[[test]]", "[limits]\nhours = 3\n\n[[test]]", "hours"),
    ],
)
def test_a_mistake_in_a_lab_is_said(tree: Path, old: str, new: str, message: str) -> None:
    path = tree / "labs/02-fork/lab.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(LabError) as error:
        labs.load("02-fork", tree)
    assert str(error.value).startswith("labs/02-fork/lab.toml: ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_hint_for_no_test_is_said(tree: Path) -> None:
    (tree / "labs/02-fork/hints.md").write_text("## nothing\n\nx\n")
    with pytest.raises(LabError, match=r"hints.md: there is no test nothing"):
        labs.load("02-fork", tree)


# ---- every lab


@ALL_LABS
def test_a_lab_is_whole(slug: str, tmp_path: Path) -> None:
    """Its starter builds without a warning and says what is missing; the tests that it names exist:
    whoever renames a test of the contract learns here that points hang on it.
    """
    lab = labs.load(slug)
    include = ["-Icode", "-Icode/common", "-Icode/http", f"-Icode/{slug}"]
    flags = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wshadow", "-Werror"]
    flags += ["-Wno-unused-function"]  # nobody calls it yet: that is a hint
    for name, text in work.starters(lab).items():
        path = tmp_path / name
        path.write_text(text)
        assert "solution" not in text
        assert "Missing" in text or lab.kind == "debug"
        command = ["cc", *flags, *include, "-c", "-o", str(tmp_path / "x.o"), str(path)]
        subprocess.run(command, cwd=TREE, check=True)
    for name in (name for test in lab.tests for name in test.tests):
        file, _, function = name.partition("::")
        path = lab.folder / file if (lab.folder / file).exists() else TREE / "tests" / file
        assert f"\ndef {function}(" in path.read_text(encoding="utf-8"), name
    assert {hint.test for hint in lab.hints} == {test.id for test in lab.tests}
    task = (lab.folder / "task.md").read_text(encoding="utf-8")
    assert f"make check CH={slug}" in task
    assert f"{lab.points} points" in task


# ---- what a student sees


def test_make_lab_never_writes_over_work(place: Place) -> None:
    done = place.make("lab", "CH=02-fork")
    mine = place.work / "02-fork/server.c"
    assert done.returncode == 0
    assert str(mine) in done.stdout
    mine.write_text("mine\n")
    done = place.make("lab", "CH=02-fork")
    assert done.returncode == 0
    assert "stays as it is" in done.stdout
    assert "mv " in done.stdout
    assert mine.read_text() == "mine\n"
    mine.parent.rename(place.work / "old")
    place.make("lab", "CH=02-fork")
    assert "Missing" in mine.read_text()


def test_make_lab_lists(place: Place) -> None:
    assert "02-fork         A process for each connection (build; not begun)" in (
        place.make("lab").stdout
    )


def test_which_lab_and_whether_it_was_begun(place: Place) -> None:
    for what in ("hint", "solution", "grade"):
        assert "lab: which lab? CH=00-client, " in place.make(what).stderr
    for what in ("check", "hint", "solution"):
        done = place.make(what, "CH=02-fork")
        assert done.returncode != 0
        assert "is not there yet: make lab CH=02-fork" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.fixture
def mine(tmp_path: Path) -> tuple[Lab, Path]:
    lab = labs.load("02-fork")
    work.begin(lab, tmp_path / "02-fork")
    return lab, tmp_path / "02-fork"


def test_hints_come_one_by_one_and_for_what_failed(mine: tuple[Lab, Path]) -> None:
    lab, folder = mine
    progress = work.Progress(score=9, first_failure="descriptors")
    progress.save(folder)
    fitting = [hint.text for hint in lab.hints if hint.test == "descriptors"]
    assert len(fitting) > 1
    for text in fitting:
        assert work.hint(lab, folder, None).endswith(text)
    assert "No hint about descriptors is left" in work.hint(lab, folder, None)
    work.Progress(score=9, first_failure="race", shown=[]).save(folder)
    assert "about race" in work.hint(lab, folder, None)


def test_hints_want_a_check_or_a_number(mine: tuple[Lab, Path]) -> None:
    """By number without regard to that; damaged progress costs nothing."""
    lab, folder = mine
    (folder / work.PROGRESS).write_text('{"score": 1, "what": 2}')
    assert "make check CH=02-fork" in work.hint(lab, folder, None), "what would it be about?"
    for number in range(1, len(lab.hints) + 1):
        assert work.hint(lab, folder, number).startswith(f"Hint {number} of ")
    assert work.hint(lab, folder, 2).startswith(f"Hint 2 of {len(lab.hints)}")


def test_the_solution_waits_for_the_points(mine: tuple[Lab, Path]) -> None:
    lab, folder = mine
    assert "not been checked yet" in work.solution(lab, folder, sure=False)
    work.Progress(score=3).save(folder)
    assert "3 of 20 points" in work.solution(lab, folder, sure=False)
    assert "+    pid_t pid = fork();" in work.solution(lab, folder, sure=True)
    work.Progress(score=lab.points).save(folder)
    text = work.solution(lab, folder, sure=False)
    assert "+    pid_t pid = fork();" in text
    assert "region" not in text
    (folder / "server.c").write_text(starter.clean(lab.source("server.c").read_text()))
    assert work.solution(lab, folder, sure=False) == "Your server is the real one, to the letter."
