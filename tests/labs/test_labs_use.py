"""What is not the student's fault is one line and status 2, and what there was stays, also beside
another grading.
"""

from __future__ import annotations

import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from grader import files, work
from grader import lab as labs
from grader.lab import TREE
from grading import LIMIT_S, Place

REAL = TREE / "code/02-fork/server.c"
SOON = "PATIENCE=0.4"


@pytest.fixture
def mine(place: Place) -> Path:
    """A student's folder, with 17 points already."""
    folder = place.work / "02-fork"
    work.begin(labs.load("02-fork"), folder)
    work.Progress(score=17).save(folder)
    return folder


def seventeen(mine: Path) -> bool:
    return work.Progress.load(mine).score == 17


# ---- nothing to judge, or nothing to judge it with


def test_where_nothing_is_handed_in(place: Place) -> None:
    folder = place.top / "o'brien"
    grade = ["grade", "CH=02-fork", f"DIR={folder}", f"JSON={place.top / 'results.json'}"]
    assert f"{folder}: there is no such folder" in place.refusal(*grade)
    folder.mkdir()
    assert f"{folder}: nothing to judge: there is no server.c" in place.refusal(*grade)
    path = folder / "server.c"
    for create in (os.mkfifo, lambda at: os.symlink("/nowhere", at), os.mkdir):
        create(path)
        assert f"{path} is not a file" in place.refusal(*grade)
        path.rename(place.top / f"{create}")
    assert not (place.top / "results.json").exists()


@pytest.mark.parametrize("compiler", ["/nowhere/cc", "false"])
def test_without_a_compiler(place: Place, mine: Path, compiler: str) -> None:
    said = place.refusal("check", "CH=02-fork", f"CC={compiler}")
    assert f"CC={compiler} builds not even the real server" in said
    assert seventeen(mine)


def test_the_best_stays(place: Place, mine: Path) -> None:
    (mine / "server.c").write_text("broken\n")
    done = place.make("check", "CH=02-fork")
    assert "0 of 20 points.\nYour best: 17.\n" in done.stdout
    assert "Error 1" in done.stderr
    assert seventeen(mine)


def test_numbers_that_are_none(place: Place, mine: Path) -> None:
    for words in (
        ("hint", "N=x"),
        ("hint", "N=99"),
        ("check", "PATIENCE=inf"),
        ("check", "PROCESSES=0"),
    ):
        assert f"lab: {words[1]}: give a number" in place.refusal(*words, "CH=02-fork")
    assert seventeen(mine)


# ---- nowhere to write


def test_results_that_cannot_be_written(place: Place) -> None:
    """Known before anything is judged; and what is there is not taken away."""
    pipe = place.top / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, place.top, place.top / "no/results.json"):
        said = place.refusal("grade", "CH=02-fork", f"DIR={REAL.parent}", f"JSON={path}", SOON)
        assert str(path if path.exists() else path.parent) in said
    assert pipe.is_fifo()


def test_folders_that_are_none(place: Place, mine: Path) -> None:
    (mine / work.PROGRESS).unlink()
    (mine / work.PROGRESS).mkdir()
    for what in ("check", "hint", "solution"):
        assert f"{work.PROGRESS} is not a file" in place.refusal(what, "CH=02-fork", SOON)
    assert "server.c: Not a directory" in place.refusal("lab", "CH=02-fork", f"WORK={REAL}")


def test_a_starter_is_there_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, text: str) -> None:
        if path.exists() or path.name == "shared.c":
            raise OSError(28, "No space left on device")
        path.write_text(text)

    monkeypatch.setattr(files, "write", full)
    with pytest.raises(OSError, match="No space"):
        work.begin(labs.load("09-epoll"), tmp_path / "09-epoll")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("what", ["solution", "check"])
def test_a_reader_who_has_gone(place: Place, mine: Path, what: str) -> None:
    """make solution | head: no complaint; and a check is noted all the same."""
    (mine / "server.c").write_text("broken\n")
    work.Progress().save(mine)
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as gone:
        process = place.start(what, "CH=02-fork", "SURE=1", stdout=gone.fileno())
    errors = process.communicate(timeout=LIMIT_S)[1]
    if what == "solution":
        assert (process.returncode, errors) == (0, "")
    else:
        assert [line.split()[-1] for line in errors.splitlines()] == ["1"]
        assert work.Progress.load(mine).score == 0


# ---- two at once


def test_two_gradings_at_once_have_logs_of_their_own(place: Place) -> None:
    """The one passes, the other does not: so say the logs of each, and the programs are its own."""

    def grade(name: str, text: str) -> Path:
        folder = place.top / name
        folder.mkdir()
        (folder / "server.c").write_text(text)
        done = place.make("grade", "CH=02-fork", "LOGS=", f"DIR={folder}", "ONLY=serves", SOON)
        found = re.search(r"^What the tests said: (.*)$", done.stdout, re.M)
        assert found is not None, done.stdout
        return TREE / found[1]

    with ThreadPoolExecutor(2) as pool:
        logs = list(
            pool.map(grade, ["a", "b"], [REAL.read_text(), "int main(void) { return 0; }\n"])
        )
    try:
        said = [(folder / "serves.log").read_text().splitlines()[-1] for folder in logs]
        assert "passed" in said[0]
        assert "passed" not in said[1]
        assert (logs[0] / "02-fork").read_bytes() != (logs[1] / "02-fork").read_bytes()
    finally:
        for folder in set(logs):
            shutil.rmtree(folder)


def test_two_checks_of_one_folder_take_turns(place: Place, mine: Path) -> None:
    place.logs.mkdir()
    with files.alone(place.logs / ".lock"):
        check = place.start("check", "CH=02-fork", "ONLY=serves", SOON)
        first = check.stdout.readline() if check.stdout is not None else ""
        waits = check.poll() is None
    rest = check.communicate(timeout=LIMIT_S)[0]
    assert first == f"{mine} is being judged; waiting for that.\n"
    assert waits
    assert "2 of 2 points" in rest


def test_hints_at_once_are_all_noted(mine: Path) -> None:
    lab = labs.load("02-fork")
    numbers = range(1, len(lab.hints) + 1)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: work.hint(lab, mine, number), numbers))
    assert sorted(work.Progress.load(mine).shown) == list(numbers)
    assert seventeen(mine)
