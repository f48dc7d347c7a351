"""The table of goals: each names a function that is there, and values that its checks let through; what a goal is told;
the budgets; which tests are about a part.
"""

import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from inspect import signature
from pathlib import Path

import pytest

from quest.__main__ import main
from quest.command import budgets, help, labs, measuring, parts, recordings, settings
from quest.command.goals import BY_NAME, GOALS, GROUPS, Goal, Setting
from quest.ground.errors import InputError
from quest.learn.words import Wrong
from quest.measure import form


@pytest.mark.parametrize("goal", [goal for goal in GOALS if goal.runs], ids=lambda goal: goal.name)
def test_what_runs_a_goal_takes_its_settings(goal: Goal) -> None:
    module, _, function = goal.runs.partition(":")
    try:
        runs = getattr(import_module(module), function)
    except ModuleNotFoundError as error:
        pytest.skip(f"{error.name} is not installed")
    needed = [one for one in signature(runs).parameters.values() if one.default is one.empty]
    assert len(needed) == 1


def test_a_goal_without_what_it_needs_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    needs = {goal.name: [f"{one.name}=" for one in goal.settings if one.needed] for goal in GOALS if goal.runs}
    for name in filter(needs.get, needs):
        status, complaint = main([name]), capsys.readouterr().err
        assert status == 2 and complaint.count("\n") == 1 and any(text in complaint for text in needs[name]), name


def test_a_goal_that_only_make_has_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["book"]) == 2
    assert re.fullmatch(r"make book: .*make book\n", capsys.readouterr().err)


def test_what_one_types_for_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-h"]) == main(["--help"]) == 0
    assert capsys.readouterr().out.count("  make next ") == 2


def test_the_table_is_in_order() -> None:
    assert len(BY_NAME) == len(GOALS)
    assert {goal.group for goal in GOALS} == {"", *GROUPS}
    assert sum(goal.first for goal in GOALS) == 10
    for goal in GOALS:
        names = [setting.name for setting in goal.settings]
        assert len(set(names)) == len(names), goal.name
        for setting in goal.settings:
            assert setting.help and (setting.kind != "words" or setting.among), (goal.name, setting.name)
            # what help shows can be typed
            for value in filter(None, (setting.example, setting.default)):
                beside = {"ONLY": "x"} if goal.name == "bench" else {}
                settings.checked([goal], beside | {setting.name: value})


@pytest.mark.parametrize(
    ("kind", "value", "meant"),
    [
        ("program", "9", "09-epoll"), ("program", "2", "02-fork"), ("program", "inetd", "02-inetd"),
        ("program", "const", "constant"), ("server", "epoll", "09-epoll"), ("chapter", "verd", "verdict"),
        ("lab", "meas", "measuring"), ("part", "stat", "stats"), ("goal", "benc", "bench"), ("number", "0", "0"),
    ],
)  # fmt: skip
def test_the_value_that_was_meant(kind: str, value: str, meant: str) -> None:
    goal = Goal("made-up", "", "", (Setting("X", "x", kind),))
    assert settings.checked([goal], {"X": value}) == {"X": meant}


@pytest.mark.parametrize(
    ("kind", "value"),
    [("server", "constant"), ("program", "0"), ("chapter", "99"), ("lab", "17"), ("track", "course.units"),
     ("number", "1e3"), ("number", "-1"), ("number", "\u0663"), ("part", "nothing"), ("goal", "check-data"),
     ("part", "__pycache__"), ("port", "x"), ("port", "65536"), ("port", "-1")],
)  # fmt: skip
def test_a_value_that_cannot_be(kind: str, value: str) -> None:
    goal = Goal("made-up", "", "", (Setting("X", "x", kind),))
    with pytest.raises(Wrong, match=f"^X={value}: "):
        settings.checked([goal], {"X": value})


@pytest.mark.parametrize("value", ["", "0", "x", "-1", "1.5"])
def test_how_many_at_once(value: str) -> None:
    """Of an empty one make starts as many compilers as there are files, and of a wrong one it prints its own help."""
    assert settings.checked([BY_NAME["servers"]], {"JOBS": "2"}) == {"JOBS": "2"}
    with pytest.raises(Wrong, match=f"^JOBS={value}: it must be a whole number above 0$"):
        settings.checked([BY_NAME["servers"]], {"JOBS": value})


def test_what_a_goal_is_told() -> None:
    """Its own settings, and what holds everywhere; the environment's only where that is documented."""
    outside = {"CLIENT": "user@host", "RESULTS": "reference", "ONLY": "x", "N": "3", "WORK": "outside"}
    given = {"ONLY": "y", "AGAIN": "", "DIR": "d", "WORK": "w"}
    found = settings.of_goal(BY_NAME["bench"], given, outside)
    assert found == {"CLIENT": "user@host", "RESULTS": "reference", "ONLY": "y", "WORK": "w"}
    assert settings.of_goal(BY_NAME["bench"], {}, {"MANY": "yes"}) == {"MANY": "1"}
    with pytest.raises(Wrong, match="^MANY=no: write MANY=1, or leave it out$"):
        settings.of_goal(BY_NAME["bench"], {}, {"MANY": "no"})
    assert settings.of_goal(BY_NAME["bench"], {"MANY": "1"}, {"MANY": "no"}) == {"MANY": "1"}, "it is not asked"


def test_one_and_yes_are_the_same() -> None:
    """Whichever of them the goal looks for."""
    assert settings.checked([BY_NAME["claims"]], {"SINCE": "1"}) == {"SINCE": "yes"}
    assert settings.checked([BY_NAME["bench"]], {"AGAIN": "yes"}) == {"AGAIN": "1"}


@pytest.mark.parametrize("word", ["V", "=x", ""])
def test_what_is_no_setting_at_all(word: str) -> None:
    """V alone, which every goal takes, would be V= with nothing."""
    with pytest.raises(Wrong):
        settings.parsed([word])


# ---- budgets


def test_a_file_counts_in_the_deepest_folder_that_has_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, lines in {"a.py": 1, "x/a.c": 2, "x/y/a.h": 3, "x/y/z/a.lua": 4, "x/y/z/a.md": 5}.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("line\n" * lines, encoding="ascii")
    files = [str(path) for path in Path().rglob("*") if path.is_file()]
    none = dict.fromkeys(budgets.COUNTS, 0)
    assert budgets.counted(files, [".", "x", "x/y"]) == {
        ".": none | {"python": 1, "files": 1}, "x": none | {"c": 2, "files": 1},
        "x/y": none | {"c": 3, "lua": 4, "files": 3},
    }  # fmt: skip


def test_what_is_over_its_budget_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("DECISIONS.md").write_text(f"{'x' * 121}\n|{'x' * 200}|\n{'x' * 120}\n", encoding="ascii")
    have = {"python": 11, "c": 5, "lua": 0, "files": 1}
    monkeypatch.setattr(budgets, "table", lambda: [(budgets.Budget("x", have | {"python": 10}), have)])
    over, wide = budgets.problems()
    assert over.startswith("x: 11 lines of python, 10 at most")
    assert wide.startswith("DECISIONS.md:1: ")


def test_what_a_folder_has_of_what_it_may_have(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    most, have = (dict(zip(budgets.COUNTS, counts, strict=True)) for counts in ((10, 5, 0, 0), (11, 0, 0, 1)))
    monkeypatch.setattr(budgets, "table", lambda: [(budgets.Budget("x", most), have)] * 2)
    assert budgets.print_budgets({}) == 0
    _, line, _, sums = capsys.readouterr().out.splitlines()
    assert " ".join(line.split()) == "x 11 of 10 0 of 5 - 1 of 0"
    assert sums.split() == ["all", "22", "0", "0", "2"]


@pytest.mark.parametrize("line", ["x 1 2 3 4", "x\t1\t2\t3", "x\t1\t2\t3\tfour"])
def test_a_line_that_is_no_budget(tmp_path: Path, line: str) -> None:
    (tmp_path / "table").write_text(f"# folder\n{line}\n", encoding="ascii")
    with pytest.raises(InputError, match=f"^{tmp_path}/table:2: "):
        budgets.budgets(tmp_path / "table")


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_without_a_repository_of_its_own_nothing_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the tree of an archive, also where a repository of somebody's is around it."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="not a git repository"):
        budgets.tracked()
    subprocess.run(["git", "init", "-q"], check=True)
    with pytest.raises(InputError, match="it keeps none of this folder"):
        budgets.tracked()
    for name in ("a.py", "gone.py", "benchmarks/results/x.jsonl", "benchmarks/x.toml"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()
    subprocess.run(["git", "add", "-A"], check=True)
    Path("gone.py").unlink()
    assert budgets.tracked() == ["a.py", "benchmarks/x.toml"], "neither what was measured nor what has just gone"


# ---- README.md, and the tests of a part


def test_the_table_in_the_readme_is_replaced_and_the_rest_is_kept() -> None:
    old = f"before\n{help.BEGIN}anything\n{help.END}after\n"
    new = help.with_table(old)
    assert new == f"before\n{help.BEGIN}{help.readme_table()}{help.END}after\n" == help.with_table(new)
    assert new.count("\n| `make") == 10
    for text in ("no marks", f"before\n{help.BEGIN}after\n", f"before\n{help.END}after\n"):
        with pytest.raises(ValueError, match=r"README\.md"):
            help.with_table(text)  # without its end the rest of the file would be lost


def test_the_tests_of_a_part() -> None:
    stats = [str(path) for path in parts.about("stats")]
    assert "tests/harness/test_statistics.py" in stats and "tests/setup/test_command.py" not in stats
    assert parts.about("hammer") == [Path("tests/hammer")]
    assert Path("tests/setup/test_command.py") in parts.about("command")


# ---- measurements, recordings


def test_several_names_in_one_setting() -> None:
    assert measuring.names("a,b c, d") == ["a", "b", "c", "d"]
    assert measuring.names("") == []


@pytest.mark.parametrize(("status", "ticked"), [(0, ["02-fork"]), (1, [])])
def test_a_measurement_that_fails_ticks_nothing(
    monkeypatch: pytest.MonkeyPatch, status: int, ticked: list[str]
) -> None:
    noted: list[str] = []

    def note(given: dict[str, str]) -> int:
        noted.append(given["CH"])
        return 0

    monkeypatch.delenv("RESULTS", raising=False)
    monkeypatch.setattr("quest.report.bench.bench", lambda *_, **__: status)
    monkeypatch.setattr("quest.learn.path.note_measurement", note)
    assert measuring.bench({"CH": "02-fork", "ONLY": "fork-latency"}) == status
    assert measuring.bench({"ONLY": "fork-latency"}) == status
    assert noted == ticked


def test_which_recordings_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a server, of a scene, or one of them."""
    made: list[str] = []
    monkeypatch.setattr(recordings, "made", lambda *_: None)
    monkeypatch.setattr(recordings, "tell", lambda path, _: made.append(path.stem))
    committed = [path.stem for path in form.all_paths()]
    rows: list[tuple[dict[str, str], str]] = [({"CH": "08-sigio"}, "08-sigio."), ({"SCENE": "slow"}, ".slow"), ({}, "")]
    for given, part in rows:
        made.clear()
        assert recordings.keep(given) == 0
        assert sorted(made) == sorted(name for name in committed if part in name)
    for given in ({"CH": "08-sigio", "SCENE": "cold"}, {"CH": "00-client"}):
        with pytest.raises(InputError):
            recordings.keep(given)


def test_a_scene_is_not_for_every_server() -> None:
    with pytest.raises(InputError, match="08-sigio"):
        recordings.made({}, "01-iterative", "overflow")


@pytest.mark.parametrize("faults", [[], ["it has changed"]])
def test_a_recorded_line_that_has_changed_fails_the_check(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], faults: list[str]
) -> None:
    monkeypatch.setattr("quest.measure.form.all_paths", lambda: [Path("a.json"), Path("b.json")])
    monkeypatch.setattr("quest.measure.form.read", lambda path: path)
    monkeypatch.setattr("quest.measure.recorded.faults", lambda path: faults if path.stem == "a" else [])
    assert recordings.check({}) == len(faults)
    assert [line for line in capsys.readouterr().out.splitlines() if "json" in line] == [f"a.json: {x}" for x in faults]


# ---- labs


def test_the_table_of_a_class_is_beside_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell that completes names writes a / behind that of a folder."""
    told: list[dict[str, str]] = []

    def run(_: str, given: dict[str, str]) -> int:
        told.append(given)
        return 0

    monkeypatch.setattr(labs, "_run", run)
    for folder in ("submissions", "submissions/"):
        assert labs.grade_all({"DIR": folder}) == 0
    labs.grade_all({"DIR": "x", "CSV": "y"})
    assert [given["CSV"] for given in told] == ["submissions.csv", "submissions.csv", "y"]


def test_a_lab_that_is_begun_again_keeps_all_that_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time under a name of its own; what was reached is in the new one, too."""
    folder, given = tmp_path / "02-fork", {"CH": "02-fork", "WORK": str(tmp_path)}

    def begins(_: str, __: dict[str, str]) -> int:
        folder.mkdir()
        return 0

    monkeypatch.setattr(labs, "_run", begins)
    folder.mkdir()
    for turn in "12":
        for name in ("server.c", ".progress.json"):
            (folder / name).write_text(turn, encoding="ascii")
        assert labs.reset(given) == 0
        kept = tmp_path / f"02-fork.old{turn}"
        assert {path.name: path.read_text() for path in kept.iterdir()} == {"server.c": turn, ".progress.json": turn}
        assert {path.name: path.read_text() for path in folder.iterdir()} == {".progress.json": turn}


def test_a_change_is_seen_beside_a_file_of_the_future(tmp_path: Path) -> None:
    """As a copy from a machine has whose clock is ahead."""
    for name, seconds in (("future", 1 << 32), ("server.c", 1000)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (seconds, seconds))
    before = labs._dates(tmp_path)
    assert labs._dates(tmp_path) == before
    os.utime(tmp_path / "server.c", (2000, 2000))
    assert labs._dates(tmp_path) != before


def test_an_older_python_is_one_line() -> None:
    """Else it misses a module here, a type there, and make deps, which has no newer one, was the remedy."""
    script = "import sys\nsys.version_info = (3, 10, 12, 'final', 0)\nimport quest.__main__"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "Python 3.10 is too old: 3.11 or newer is needed, and PYTHON= names it\n"


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("ImportError('libx.so: failed to map segment', name='x')", "cannot be loaded: libx.so: failed to map segment"),
        ("ModuleNotFoundError('No module', name='x')", "it needs Python's x: make deps installs it"),
        ("MemoryError()", "not enough memory (ulimit -v)"),
    ],
)
def test_a_goal_whose_libraries_find_no_room_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], fault: str, said: str
) -> None:
    """They are imported when they are needed, and an address space may be limited."""
    (tmp_path / "made_up_goal.py").write_text(f"def run(_):\n    raise {fault}\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "made_up_goal", raising=False)
    monkeypatch.setitem(BY_NAME, "chapters", Goal("chapters", "", "", (), "made_up_goal:run"))
    assert main(["chapters"]) == 2
    assert re.fullmatch(f"make chapters: .*{re.escape(said)}\n", capsys.readouterr().err)
