"""What is not the student's fault is one line and status 2, and what there was stays, also beside
another grading, and in the table of a class.
"""

import os
import signal
import subprocess
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from quest.ground.errors import Stopped
from quest.ground.files import locked
from quest.labs import catalogue, class_table, cli, commands, files, intake, stages, work
from quest.labs import lab as labs
from quest.labs.class_table import Grade, Kind
from quest.labs.errors import LabError
from quest.labs.judge import Result, Verdict
from quest.labs.lab import TREE, Lab
from quest.labs.report import Outcome
from quest.labs.settings import Settings, Toolchain
from tests.labs.grading import LIMIT_S, SOON, Place, solution, write

REAL = TREE / "code/02-fork/server.c"


def run(command: str, *words: str) -> int:
    return commands.run(command, cli.settings_of(words, {}))


@pytest.fixture
def mine(place: Place) -> Path:
    """A student's folder, with 17 points already."""
    folder = place.work / "02-fork"
    work.begin(labs.load("02-fork"), folder)
    work.Progress(score=17).save(folder)
    return folder


@pytest.mark.slow
def test_where_nothing_is_handed_in(place: Place) -> None:
    assert "lab: which lab? CH=00-client, " in place.refusal("hint")
    assert "is not there yet: make lab CH=02-fork" in place.refusal("reset", "CH=02-fork")
    folder = place.top / "o'brien"
    grade = ["grade", "CH=02-fork", f"DIR={folder}", f"JSON={place.top / 'results.json'}"]
    assert f"{folder}: there is no such folder" in place.refusal(*grade)
    folder.mkdir()
    assert f"{folder}: nothing to judge: there is no server.c" in place.refusal(*grade)
    assert not (place.top / "results.json").exists()


def test_a_name_is_no_program_of_make(place: Place) -> None:
    """A folder is called by whoever has handed it in; in a loop over all of them DIR= has that name."""
    mark = place.top / "mark"
    for name in (f"$(shell touch {mark})", f"`touch {mark}`", "a$b $$c", f"$(file >{mark})"):
        said = place.refusal("grade", "CH=02-fork", f"DIR={place.top}/x{name}")
        assert said == f"lab: {place.top}/x{name}: there is no such folder; DIR= names what was handed in"
    assert not mark.exists()


def test_wrong_settings(mine: Path) -> None:
    for words, said in {
        ("check", "CH=03-prefork"): f"{mine.with_name('03-prefork')} is not there yet: make lab CH",
        ("check", "CH=02-fork", "PATIENCE=inf"): "PATIENCE=inf: give a number",
        ("check", "CH=02-fork", "ONLY=nothing"): "ONLY=nothing: there is no such test. There are: ",
        ("grade", "CH=99-none"): "CH=99-none: there is no such lab. There are: 00-client, ",
        ("grade", "CK=99-none"): "CK: there is no such setting. There are: JSON, ",
    }.items():
        with pytest.raises(LabError) as error:
            run(words[0], f"WORK={mine.parent}", *words[1:])
        assert str(error.value).startswith(said)
    assert work.Progress.load(mine).score == 17
    for command in ([], ["graed"]):
        asked = [*class_table.COMMAND[:-1], *command]
        done = subprocess.run(asked, stderr=subprocess.PIPE, check=False)
        assert done.returncode == 2
        assert done.stderr.startswith(b"lab: which command? ") and done.stderr.count(b"\n") == 1


def test_settings_are_read_once() -> None:
    """Numbers up to their limit, and no further; what has no value is not given."""
    words = ["CH=02-fork", "N=3", "SEED=7", "JOBS=64", "PATIENCE=100", "ONLY=a,b", "DIR=d", "CSV="]
    read = cli.settings_of([*words, "HINTS=no", "SANDBOX=no"], {"LAB_BUILD": "b"})
    assert (read.lab, read.hint, read.seed, read.jobs, read.patience) == ("02-fork", 3, 7, 64, 100)
    assert (read.only, read.hand_in, read.table) == (("a", "b"), Path("d"), None)
    assert (read.hints, read.sandbox_wanted, read.build) == (False, False, Path("b"))
    assert sorted(read.judging) == ["ONLY=a,b", "PATIENCE=100.0", "SANDBOX=no", "SEED=7"]
    assert Settings().judging == [] and Settings().hints and Settings().sandbox_wanted
    more = cli.settings_of(["NAMES=no", "SURE=1", "ONLY=,", "RUNS=a b"], {})
    assert (more.names, more.sure, more.only, more.runs) == (False, True, (",",), (Path("a"), Path("b")))
    assert (read.names, read.sure, read.runs, read.tools) == (True, False, (), None)
    for wrong in ("JOBS=65", "JOBS=0", "N=x", "PATIENCE=nan", "SEED=-1", "PROCESSES=10001"):
        with pytest.raises(LabError, match=wrong.partition("=")[0]):
            cli.settings_of([wrong], {})


def test_what_is_written_is_as_private_as_the_user_wants(tmp_path: Path) -> None:
    """A table of grades too; only what others have to read, as the folder of a grading, is opened to them."""
    command = [*class_table.COMMAND[:-1], "lab", "CH=02-fork", f"WORK={tmp_path}"]
    subprocess.run(command, cwd=TREE, umask=0o077, stdout=subprocess.DEVNULL, check=True)
    assert (tmp_path / "02-fork/server.c").stat().st_mode & 0o777 == 0o600
    before = os.umask(0o077)
    try:
        with files.for_others():
            (tmp_path / "open").touch()
        (tmp_path / "closed").touch()
    finally:
        os.umask(before)
    assert [(tmp_path / name).stat().st_mode & 0o077 for name in ("open", "closed")] == [0o044, 0]


def test_a_toolchain_is_what_make_says(place: Place) -> None:
    tools = Toolchain.of_words("cc -m64", "-O2 '-DX=a b'", "build/a.o build/b.o", "-luring")
    assert (tools.compiler, tools.flags) == (("cc", "-m64"), ("-O2", "-DX=a b"))
    assert Toolchain.of_words(*tools.words.values()) == tools
    assert tools.link == ("-Wl,-Bstatic", "-luring", "-Wl,-Bdynamic")
    assert Toolchain.of_words("cc", "-O2", "a.o", "").link == ()
    for words in (("", "-O2", "a.o", ""), ("cc", "", "a.o", ""), ("cc", "-O2", " ", ""),
                  ("cc '", "-O2", "a.o", "")):  # fmt: skip
        with pytest.raises(LabError):
            Toolchain.of_words(*words)


def test_a_file_may_be_as_long_as_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"12345")
    files.check_is_file(path, 5)
    assert (files.read_file(path, 5), files.read_file(path, 3)) == (b"12345", b"1234")
    with pytest.raises(LabError):
        files.check_is_file(path, 4)
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(LabError):
        files.read_file(tmp_path / "link")


@pytest.mark.slow
def test_the_best_stays_and_the_first_is_noted(place: Place, mine: Path) -> None:
    """Where there is no compiler nothing is noted."""
    said = place.refusal("check", "CH=02-fork", "CC=/nowhere/cc")
    assert "CC=/nowhere/cc builds not even the real server" in said
    (mine / "server.c").write_text("broken\n")
    done = place.make("check", "CH=02-fork")
    assert "server.c:1:1: error: " in done.stdout, "the compiler's words, without our folders"
    assert "0 of 20 points" in done.stdout
    assert "Error 1" in done.stderr
    assert work.Progress.load(mine).score == 17
    (mine / work.PROGRESS).unlink()
    (mine / "server.c").write_text("int main(void)\n{\n    return 0;\n}\n")
    done = place.make("check", "CH=02-fork", "ONLY=serves", SOON)
    assert str(place.logs / "serves.log") in done.stdout, "where to look next"
    assert (place.logs / "serves.log").is_file()
    assert work.Progress.load(mine).score is None, "of one test nothing is noted"


@pytest.mark.slow
def test_a_stage_says_first_what_failed_and_the_next_comes_by_itself(place: Place, mine: Path) -> None:
    """STAGE=now goes on from where it was; a stage that was named is the only one."""
    done = place.make("check", "CH=02-fork", "STAGE=now")
    if "could not be judged" in done.stdout:
        pytest.skip("no system call can be traced here")
    assert done.stdout.startswith("mechanism: This lab asks for a process for each connection")
    assert "Stage 1 of 8: Fork (8 points, about 15 minutes): 2 so far" in done.stdout
    assert "start_child` starts a child" in " ".join(done.stdout.split()), "what the task asks for"
    assert work.Progress.load(mine) == work.Progress(17, "mechanism", stage=1)
    lab = labs.load("02-fork")
    shut = "    close(listen_fd);\n    stop_wakes(-1, fd);\n", "    stop_wakes(listen_fd, fd);\n"
    write(mine, solution(lab, *shut))
    done = place.make("check", "CH=02-fork", "STAGE=now", SOON)
    first, *rest = done.stdout.splitlines()
    assert first.startswith("Passed: Stage 1 of 8: Fork") and any(line.startswith("descriptors: ") for line in rest)
    assert work.Progress.load(mine).stage == 3
    done = place.make("check", "CH=02-fork", "STAGE=7", SOON)
    assert done.stdout.startswith("stop: One child got SIGTERM, and after that the server accepted"), done.stdout
    write(mine, solution(lab))
    done = place.make("check", "CH=02-fork", "STAGE=7")
    assert (done.returncode, done.stdout.count("\n")) == (0, 1), done.stdout
    assert "STAGE=9: now, or a number from 1 to 8" in place.refusal("check", "CH=02-fork", "STAGE=9")
    assert "one of them" in place.refusal("check", "CH=02-fork", "STAGE=1", "ONLY=serves")


@pytest.mark.parametrize(
    ("before", "asked", "outcome", "numbers", "after", "status"),
    [(0, "now", Outcome.PASSED, [1, 2, 3, 4, 5, 6, 7, 8], 9, 0), (7, "now", Outcome.PASSED, [7, 8], 9, 0),
     (9, "now", Outcome.PASSED, [8], 9, 0), (3, "8", Outcome.PASSED, [8], 9, 0), (9, "7", Outcome.PASSED, [7], 9, 0),
     (9, "2", Outcome.FAILED, [2], 2, 1), (5, "5", Outcome.UNJUDGED, [5], 6, 3)],
)  # fmt: skip
def test_which_stages_are_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    before: int, asked: str, outcome: Outcome, numbers: list[int], after: int, status: int,
) -> None:  # fmt: skip
    lab, judged = labs.load("02-fork"), list[int]()
    work.Progress(stage=before).save(tmp_path)

    def verdict(part: Lab, *_: object) -> Verdict:
        judged.append(stages.number_of(lab, part.tests[-1].stage))
        return Verdict(part, tuple(Result(test, outcome, "why") for test in part.tests))

    monkeypatch.setattr(commands, "_judged", verdict)
    assert commands._stage(lab, tmp_path, Settings(stage=asked)) == status
    assert (judged, work.Progress.load(tmp_path).stage) == (numbers, after)


def test_the_lab_to_go_on_with_is_the_first_that_is_not_done(tmp_path: Path) -> None:
    slugs = catalogue.slugs()
    for slug, then in zip(slugs, [*slugs[1:], ""], strict=True):
        (tmp_path / slug).mkdir()
        points = catalogue.load(slug).points
        for score, named in ((points - 1, slug), (points, then)):
            work.Progress(score).save(tmp_path / slug)
            last = commands._list(tmp_path).splitlines()[-1]
            assert last.endswith(f"CH={named}") if named else "CH=" not in last


def test_a_hint_by_its_number(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Up to the last, and no further."""
    hints = labs.load("02-fork").hints
    words = ("hint", f"WORK={mine.parent}", "CH=02-fork")
    assert run(*words, f"N={len(hints)}") == 0
    assert hints[-1].text in capsys.readouterr().out
    with pytest.raises(LabError, match=f"there are {len(hints)} hints"):
        run(*words, f"N={len(hints) + 1}")


@pytest.mark.slow
def test_a_reader_who_has_gone(place: Place, mine: Path) -> None:
    """make check | head: no complaint, and it is noted all the same."""
    (mine / "server.c").write_text("broken\n")
    work.Progress().save(mine)
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as gone:
        process = place.start("check", "CH=02-fork", stdout=gone.fileno())
        errors = process.communicate(timeout=LIMIT_S)[1].splitlines()
    assert len(errors) == 1 and errors[0].endswith("Error 1")
    assert work.Progress.load(mine).score == 0


def test_what_cannot_be_written(place: Place, mine: Path) -> None:
    """Known before anything is judged; and what is there is not taken away."""
    pipe = place.top / "pipe"
    os.mkfifo(pipe)
    grade = [f"DIR={REAL.parent}", "CH=02-fork"]
    for path in (pipe, place.top):
        with pytest.raises(LabError, match=f"{path} is not a file"):
            run("grade", *grade, f"JSON={path}")
    assert pipe.is_fifo()
    with pytest.raises(LabError, match="No such file or directory; choose another place with JSON="):
        run("grade", *grade, f"JSON={place.top}/no/results.json")
    (mine / work.PROGRESS).unlink()
    (mine / work.PROGRESS).mkdir()
    with pytest.raises(LabError, match=f"{work.PROGRESS} is not a file"):
        run("check", f"WORK={mine.parent}", "CH=02-fork")
    said = place.refusal("lab", "CH=02-fork", f"WORK={REAL}")
    assert "server.c: Not a directory; choose another place with WORK=" in said


def test_a_starter_is_there_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, text: str) -> None:
        if path.exists() or path.name == "shared.c":
            raise OSError(28, "No space left on device")
        path.write_text(text)

    monkeypatch.setattr(files, "write", full)
    with pytest.raises(OSError, match="No space"):
        work.begin(labs.load("09-epoll"), tmp_path / "09-epoll")
    assert list(tmp_path.iterdir()) == []


def test_two_gradings_at_once_have_logs_of_their_own() -> None:
    lab, folders = labs.load("02-fork"), [Path("class/a"), Path("class/b"), Path("work/02-fork")]
    assert len({commands.logs_of(lab.slug, folder, Settings()) for folder in folders}) == 3


@pytest.mark.slow
def test_two_checks_of_one_folder_take_turns(place: Place, mine: Path) -> None:
    place.logs.mkdir()
    (mine / "server.c").write_text("broken\n")
    with locked(place.logs / ".lock"):
        check = place.start("check", "CH=02-fork", "ONLY=serves", SOON)
        assert check.stdout is not None
        first = next(line for line in check.stdout if "waiting" in line)  # behind the title of the lab
        waits = check.poll() is None
    rest = check.communicate(timeout=LIMIT_S)[0]
    assert first == f"{mine} is being judged; waiting for that.\n"
    assert waits
    assert "0 of 2 points" in rest


def test_hints_at_once_are_all_noted(mine: Path) -> None:
    lab = labs.load("02-fork")
    numbers = range(1, len(lab.hints) + 1)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: work.hint(lab, mine, number), numbers))
    assert sorted(work.Progress.load(mine).shown) == list(numbers)
    assert work.Progress.load(mine).score == 17


@pytest.mark.slow
def test_a_class_that_was_ended_half_way(place: Place) -> None:
    """The last line was cut short, and one has been graded by hand: that one stays."""
    table = place.top / "grades.csv"
    table.write_text(",".join(class_table.FIELDS) + "\nada,4.5,5,by hand,,\nbob,20,20,gra")
    everybody = {
        "ada": {"server.c": "int x;\n"},
        "bob": {"server.c": "int main("},
        "ida": {"a.c": ""},
    }
    found = place.grade_class("02-fork", everybody)
    assert [found[name]["score"] for name in everybody] == ["4.5", "0", ""]
    assert found["bob"]["failed"].endswith("tidy (it does not build)")
    assert "there is no server.c" in found["ida"]["failed"]


def test_a_grading_that_only_now_begins_ends_too(tmp_path: Path) -> None:
    """Not yet a process when the others are ended. A table that is made anew stays as it was."""
    table = tmp_path / "grades.csv"
    text = ",".join(class_table.FIELDS) + "\n"
    table.write_text(text)
    began, at_work = time.monotonic(), threading.Event()

    def grade(one: intake.Submission, folder: Path) -> Grade:
        if one.name == "ada":
            at_work.wait()
            raise OSError(28, "No space left on device")
        at_work.set()
        time.sleep(0.5)
        subprocess.run(["sleep", "60"], check=False)
        return Grade(class_table.GRADED)

    for name in ("ada", "bob"):
        write(tmp_path / "class" / name, {"server.c": ""})
    kind = Kind(["server.c"], "02-fork", 20, [], "", "", grade, anew=True)
    with pytest.raises(OSError, match="No space"):
        class_table.grade_all(tmp_path / "class", table, kind, jobs=2)
    assert time.monotonic() - began < 30
    assert table.read_text() == text


def test_a_signal_while_a_grading_is_handed_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has begun, and submit() has not returned it."""
    at_work, began = threading.Event(), time.monotonic()

    class Signalled(ThreadPoolExecutor):
        def submit(self, *work: Any, **more: Any) -> Future[Any]:
            super().submit(*work, **more)
            at_work.wait()
            raise Stopped(signal.SIGTERM)

    def grade(_one: intake.Submission, _folder: Path) -> Grade:
        at_work.set()
        subprocess.run(["sleep", "60"], check=False)
        return Grade(class_table.GRADED)

    write(tmp_path / "class/ada", {"server.c": ""})
    monkeypatch.setattr(class_table, "ThreadPoolExecutor", Signalled)
    with pytest.raises(Stopped):
        class_table.grade_all(
            tmp_path / "class", tmp_path / "grades.csv", Kind(["server.c"], "02-fork", 20, [], "", "", grade)
        )
    assert time.monotonic() - began < 30


def test_a_table_of_somebody_elses_is_left_alone(place: Place) -> None:
    table = place.top / "grades.csv"
    text = "student,points\nada,5\n"
    table.write_text(text)
    folder = write(place.top / "class/ada", {"server.c": ""}).parent
    said = place.refusal("grade-all", "CH=02-fork", f"DIR={folder}", f"CSV={table}")
    assert "not a table of ours" in said
    assert table.read_text() == text
