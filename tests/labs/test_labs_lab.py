"""Reading a lab, cutting its starter, and what make lab, hint and solution say."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from quest.ground.errors import InputError
from quest.labs import catalogue, fields, judge, stages, starter, work
from quest.labs import lab as labs
from quest.labs.errors import LabError
from quest.labs.lab import MECHANISM, TREE, Lab
from tests.labs.grading import Place, solution

ALL_LABS = pytest.mark.parametrize("slug", labs.slugs())
SOURCE = """\
/* region: book */
int a;

/* Tells the
 * secret. */
static int secret(int x,
                  int y)
{
    /* region: inner */
    return x + y;
    /* endregion: inner */
}
/* endregion: book */
int secret_too(void)
{
}
"""


def test_a_function_gives_way_and_markers_go() -> None:
    """And the comment above it, to another one."""
    text = starter.cut(SOURCE, {"secret()": "\n/* write \\1 */\n"}, "x.c")
    assert text == "int a;\n\n/* write \\1 */\nint secret_too(void)\n{\n}\n"
    kept = starter.cut(SOURCE, {"secret()": "int secret;\n"}, "x.c")
    assert kept.startswith("int a;\n\n/* Tells the\n * secret. */\nint secret;\n")
    with pytest.raises(LabError, match=r"x.c: there is no function public\(\)"):
        starter.cut(SOURCE, {"public()": ""}, "x.c")
    twice = labs.Mistake("x.c", "test", "int", "long")
    with pytest.raises(LabError, match="x.c: 'int' is not there once"):
        starter.planted(SOURCE, [twice], "x.c")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "A', 'titel = "A', "titel"),
        ('title = "A process for each connection"', "", "title"),
        ('kind = "build"', 'kind = "built"', "kind"),
        ("points = 2", "points = 0", 'test "serves": "points"'),
        ("points = 2", 'points = "2"', 'test "serves": "points"'),
        ("points = 2", "points = true", 'test "serves": "points"'),
        ('files = ["server.c"]', "files = [1]", "files"),
        ('files = ["server.c"]', 'files = "server.c"', "files"),
        ('files = ["server.c"]', "files = []", "files"),
        ("minutes = 90", 'minutes = 90\nstarter.x = "y"', "starter"),
        ("minutes = 90", 'minutes = 90\nstarter."x.c".y = "z"', "starter"),
        ("minutes = 90", "minutes = 90\nlimits.hours = 1", "hours"),
        ('id = "crowd"', 'id = "serves"', "test serves is there twice"),
        ('id = "crowd"', 'id = "crew"', "hints.md: there is no test crowd"),
        ('needs = ["serves"]', 'needs = ["tidy"]', "test concurrency needs what does not come"),
        ('files = ["server.c"]', 'files = ["../x.c"]', '"files"'),
        ("minutes = 90", "minutes =", "not TOML"),
        ('tests = ["keep-alive"]', 'tests = ["descriptors"]', "stage: the tests of all stages must be"),
        ('"concurrency", "crowd"', '"crowd", "concurrency"', "stage: the tests of all stages must be"),
        ('tests = ["keep-alive"]', "tests = []", 'stage 2: "tests"'),
        ("minutes = 15", "minutes = 150", "stage: all stages take more minutes"),
        ("test_keep_alive = ", "test_keep = ", "says: test_keep is none of its tests"),
        *(("[[stage]]\n", f'[[mistake]]\nfile = "{file}"\ntest = "{test}"\nold = "x"\nnew = ""\n[[stage]]\n',
           f"mistake: {file} or {test} is not of this lab")
          for file, test in (("server.h", "serves"), ("server.c", "none"))),
    ],
)  # fmt: skip
def test_a_mistake_in_a_lab_is_said(tmp_path: Path, old: str, new: str, message: str) -> None:
    shutil.copytree(TREE / "labs/02-fork", tmp_path / "labs/02-fork")
    path = tmp_path / "labs/02-fork/lab.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError) as error:
        labs.load("02-fork", tmp_path)
    assert "labs/02-fork/lab.toml: " in str(error.value)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_the_readme_has_the_keys_of_a_lab() -> None:
    text = fields.README.read_text(encoding="utf-8")
    assert fields.with_fields(text) == text, "python3 -m quest.labs.fields writes them"
    other = text.replace("cpu_seconds", "cpu_minutes")
    assert fields.with_fields(other) == text != other


@ALL_LABS
def test_a_lab_is_whole(slug: str, tmp_path: Path) -> None:
    """Its starter builds without a warning and says what is missing; the tests that it names exist:
    whoever renames a test of the contract learns here that points hang on it. Its mistakes and
    those of faults.toml find their place, and every test but the first fails somebody.
    """
    lab = labs.load(slug)
    assert lab.is_whole
    include = ["-Icode", "-Icode/common", "-Icode/http", f"-Icode/{slug}", "-Icode/10-kqueue/linux"]
    flags = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wshadow", "-Werror"]
    if lab.kind == "debug":
        flags += ["-Wno-unused-function"]  # a call may be what is missing: that is a hint
    for name, text in work.starters(lab).items():
        path = tmp_path / name
        path.write_text(text)
        assert "region:" not in text
        assert "Missing" in text or lab.kind in ("debug", "extend")
        command = ["cc", *flags, *include, "-c", "-o", str(path.with_suffix(".o")), str(path)]
        subprocess.run(command, cwd=TREE, check=True)
    for name in (name for test in lab.tests for name in test.tests):
        file, _, function = name.partition("::")
        path = judge.file_of_test(lab, file)
        assert f"\ndef {function}(" in path.read_text(encoding="utf-8"), name
    assert {hint.test for hint in lab.hints} >= {test.id for test in lab.tests if test.points}
    for number, stage in enumerate(lab.stages, 1):
        asked = stages.task(lab, number)
        assert asked and "*" not in re.sub(r"`[^`]*`", "", asked), f"task.md has no step for {stage.title}, or marks"
        assert stage.points and len(stages.heading(lab, number)) <= 100
    task = (lab.folder / "task.md").read_text(encoding="utf-8")
    assert f"make check CH={slug}" in task
    assert f"{lab.points} points" in task
    faults = tomllib.loads((TREE / "tests/labs/faults.toml").read_text(encoding="utf-8"))["fault"]
    mine = [fault for fault in faults if fault["lab"] == slug]
    for old, new in [(f["old"], f["new"]) for f in mine] + [(m.old, m.new) for m in lab.mistakes]:
        solution(lab, old, new)
    failed = {test for fault in mine for test in fault["fails"]}
    failed |= {mistake.test for mistake in lab.mistakes}
    assert failed | {MECHANISM} == {test.id for test in lab.tests[1:]} | {MECHANISM}
    assert MECHANISM in {test.id for test in lab.tests} or slug == "00-client"


@pytest.mark.parametrize("slug", catalogue.slugs())
def test_the_stages_of_a_lab_have_all_its_points_and_each_test(slug: str) -> None:
    lab = catalogue.load(slug)
    all_of_it = stages.of(lab)
    assert sum(stage.points for stage in all_of_it) == lab.points
    assert sum(stage.minutes for stage in all_of_it) <= lab.minutes
    assert len({stage.title for stage in all_of_it}) == len(all_of_it) > 2
    if isinstance(lab, Lab):
        assert all(test.stage in {stage.title for stage in all_of_it} for test in lab.tests)
        assert stages.reached(lab, []) == 1
        passed = [name for stage in lab.stages[:2] for name in stage.tests]
        assert stages.reached(lab, passed) == 3
        assert stages.reached(lab, [test.id for test in lab.tests]) == len(lab.stages) + 1


def state_of(slug: str, listing: str) -> str:
    """What stands in brackets behind a lab in the list of `make lab`."""
    (line,) = [line for line in listing.splitlines() if line.split()[:1] == [slug]]
    return line.rpartition("(")[2].rstrip(")")


@pytest.mark.slow
def test_make_lab_never_writes_over_work(place: Place) -> None:
    """And make reset keeps it beside the new starter."""
    assert state_of("02-fork", place.make("lab").stdout) == "build; not begun"
    mine = place.work / "02-fork/server.c"
    assert str(mine) in place.make("lab", "CH=02-fork").stdout
    assert state_of("02-fork", place.make("lab").stdout) == "build; begun"
    given = mine.read_text()
    assert "Missing" in given
    mine.write_text("mine\n")
    work.Progress(score=17).save(mine.parent)
    assert place.make("lab", "CH=02-fork").returncode == 0
    assert mine.read_text() == "mine\n"
    assert state_of("02-fork", place.make("lab").stdout) == "build; 17 of 20 points"
    assert place.make("reset", "CH=02").returncode == 0
    assert (place.work / "02-fork.old1/server.c").read_text() == "mine\n"
    assert mine.read_text() == given
    assert work.Progress.load(mine.parent).score == 17


@pytest.fixture
def mine(tmp_path: Path) -> tuple[Lab, Path]:
    lab = labs.load("02-fork")
    work.begin(lab, tmp_path / "02-fork")
    return lab, tmp_path / "02-fork"


def test_hints_come_one_by_one_and_for_what_failed(mine: tuple[Lab, Path]) -> None:
    """Or by number, without regard to that; damaged progress costs nothing."""
    lab, folder = mine
    (folder / work.PROGRESS).write_text('{"score": 1, "what": 2}')
    assert not any(hint.text in work.hint(lab, folder, None) for hint in lab.hints), "of what?"
    assert work.Progress.load(folder).shown == []
    for number in range(1, len(lab.hints) + 1):
        assert work.hint(lab, folder, number).startswith(f"Hint {number} of {len(lab.hints)}")
    work.Progress(score=9, first_failure="descriptors").save(folder)
    fitting = [hint.text for hint in lab.hints if hint.test == "descriptors"]
    assert len(fitting) > 1
    for number, text in enumerate(fitting, 1):
        shown = work.hint(lab, folder, None)
        assert shown.startswith(f"Hint {number} of {len(fitting)}") and shown.endswith(text)
    kept = work.Progress.load(folder)
    assert [lab.hints[n - 1].text for n in kept.shown] == fitting
    last = work.hint(lab, folder, None)
    assert not any(text in last for text in fitting), "none is left"
    work.Progress(score=lab.points).save(folder)
    assert not any(hint.text in work.hint(lab, folder, None) for hint in lab.hints)
    work.Progress(score=9).save(folder)  # of a check with ONLY=, say: nothing is known to fail
    assert work.hint(lab, folder, None).endswith(lab.hints[0].text)


def test_the_solution_waits_for_the_points(mine: tuple[Lab, Path]) -> None:
    lab, folder = mine
    ours = "+    pid_t pid = fork();"
    assert ours not in work.solution(lab, folder, sure=False), "not checked yet"
    work.Progress(score=lab.points - 1).save(folder)
    assert ours not in work.solution(lab, folder, sure=False)
    assert ours in work.solution(lab, folder, sure=True)
    work.Progress(score=lab.points).save(folder)
    assert ours in work.solution(lab, folder, sure=False)
    (folder / "server.c").write_text(starter.clean(lab.source("server.c").read_text()))
    assert "---" not in work.solution(lab, folder, sure=False), "no difference is left"


def test_the_solution_of_what_extends_a_server_is_a_patch(tmp_path: Path) -> None:
    solved = work.solution(labs.load("15-slashdot"), tmp_path, sure=True)
    assert "+static void count_out(int fd)" in solved
