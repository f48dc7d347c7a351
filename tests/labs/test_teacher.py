"""What a teacher runs: bundles without a solution, a class's tables and figure, who copied."""

import csv
import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from quest.labs import files, many, starter, work
from quest.labs import lab as labs
from quest.labs.lab import TREE, Lab
from quest.labs.teacher import bundle, tables
from quest.labs.teacher.__main__ import main
from quest.labs.teacher.variant import Variant
from tests.conformance import proc
from tests.conformance.process import wait_until
from tests.labs.grading import LIMIT_S, Place, write

ALL = labs.slugs()


def real_of(lab: Lab) -> dict[str, str]:
    return {name: starter.clean(lab.source(name).read_text("utf-8")) for name in lab.files}


def lines_of(text: str) -> set[str]:
    return {line.strip() for line in text.splitlines()}


def bundle_of(place: Place, into: Path, *words: str) -> None:
    """Made by make, and unpacked."""
    done = place.make(*words)
    shutil.unpack_archive(done.stdout.splitlines()[-1].split(" (")[0], into)


@pytest.mark.parametrize("slug", ALL)
def test_nothing_of_the_solution_is_in_a_bundle(slug: str) -> None:
    """No line of it that nobody can have by chance. (Hints may quote one: HINTS=no.)"""
    lab = labs.load(slug)
    given = work.starters(lab)
    kept, real = (lines_of("\n".join(texts.values())) for texts in (given, real_of(lab)))
    secret = {line for line in real - kept if len(line) > 25}
    with bundle._tree(lab, given) as top:
        for path in filter(Path.is_file, top.rglob("*.[cht]*")):
            assert lines_of(path.read_text("utf-8")) & secret == set(), path
        assert "\nold = " not in (top / "labs" / slug / "lab.toml").read_text("utf-8")


@pytest.mark.parametrize("slug", ALL)
def test_a_variant_compiles_and_is_always_the_same(slug: str, tmp_path: Path) -> None:
    lab = labs.load(slug)
    variants = [Variant(lab, seed) for seed in (1, 1, 2)]
    first, again, other = (each.renamed(work.starters(lab)) for each in variants)
    assert first == again
    assert first != other
    assert variants[0].mistakes == variants[1].mistakes
    if lab.mistakes:
        assert len(lab.mistakes) > len(variants[0].mistakes) >= len(lab.mistakes) / 2
    folders = ("code", "code/common", "code/http", "code/10-kqueue/linux")
    flags = ["-D_GNU_SOURCE", *(f"-I{folder}" for folder in folders)]
    for name, text in first.items():
        (tmp_path / name).write_text(text)
        command = ["cc", "-std=c11", *flags, "-Werror", "-fsyntax-only", str(tmp_path / name)]
        subprocess.run(command, cwd=TREE, check=True)


def test_a_name_is_changed_in_code_and_not_in_english() -> None:
    variant = Variant(labs.load("02-fork"), 1)
    variant.names = {"child": "my_child"}
    task = "Each child is one. See `child` and child():\n\n    child(fd);\n"
    told = "Each child is one. See `my_child` and my_child():\n\n    my_child(fd);\n"
    assert variant.told(task) == told
    assert variant._in('child("child %d");') == 'my_child("child %d");'


def test_an_autograder(place: Place) -> None:
    """The real one has all points, what does not build has none, and nothing at all is told."""
    top = place.top / "autograder"
    bundle_of(place, top / "source", "autograder", "CH=05-pool")
    for name in ("results", "submission"):
        (top / name).mkdir()
    real = real_of(labs.load("05-pool"))["queue.c"]
    for text, score, said in ((None, None, "Not graded"), ("int x(", 0, ""), (real, 20, "20 of")):
        if text is not None:
            (top / "submission/queue.c").write_text(text)
        told = {**os.environ, "AUTOGRADER": str(top), "TMPDIR": str(place.temporary)}
        subprocess.run(["sh", top / "source/run_autograder"], env=told, check=True, timeout=300)
        results = json.loads((top / "results/results.json").read_text())
        assert (results.get("score"), said in results["output"]) == (score, True), results["output"]


def test_a_handout_is_a_lab_of_its_own(place: Place) -> None:
    """With mistakes of its own, and without hints."""
    bundle_of(place, place.top, "handout", "CH=03", "HINTS=no", "VARIANT=7")
    top = place.top / "03-prefork"
    assert "**Of the mistakes it speaks of" in (top / "labs/03-prefork/task.md").read_text()

    def make(*words: str) -> str:
        how = {**place.how(), "args": ["make", "-s", *words], "cwd": top}
        done = subprocess.run(**how, capture_output=True, timeout=300, check=False)
        return str(done.stdout + done.stderr)

    assert "your file   work/03-prefork/server.c" in make("lab")
    assert "1 of 1 points" in make("check", "ONLY=serves")
    for goal in ("solution", "hint"):
        assert f"No rule to make target '{goal}'" in make(goal)
    readme = (top / "README.md").read_text()
    assert "\nHand in: work/03-prefork/server.c\n" in readme
    assert "make hint" not in readme
    assert (TREE / place.build / "handout/03-prefork-7-nohints.tar.gz").exists()
    assert (top / "labs/03-prefork/hints.md").read_text() == ""


def test_a_class_as_junit(tmp_path: Path) -> None:
    """The student's failures and the machine's errors are told apart."""
    lab = labs.load("05-pool")
    first, second = (test.id for test in lab.tests[:2])
    everything, every = " ".join(test.id for test in lab.tests), str(len(lab.tests))
    rows = [
        ("ada", 20, "graded", ""), ("bob", 12, "graded", second), ("eve", 0, "graded", everything),
        ("ida", "", many.NOT_GRADED, "CC=cc builds nothing"), ("kim", 5, many.UNJUDGED, first),
        ("zoe", 0, many.NOTHING, everything),
    ]  # fmt: skip
    with (tmp_path / "grades.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(many.FIELDS)
        writer.writerows((name, score, 20, state, no, 1.0) for name, score, state, no in rows)
    table, listed, junit = (tmp_path / f"grades.{kind}" for kind in ("csv", "json", "xml"))
    means = {test.id: test.fail for test in lab.tests}
    assert tables.write(lab.slug, means, table, str(listed), str(junit)) == 0
    assert [row["name"] for row in json.loads(listed.read_text())] == [r[0] for r in rows]
    suites = ElementTree.parse(junit).getroot()
    assert [(suite.get("failures"), suite.get("errors")) for suite in suites] == [
        ("0", "0"), ("1", "0"), (every, "0"), ("0", every), ("0", "1"), (every, "0"),
    ]  # fmt: skip


def test_who_has_handed_in_nothing_has_no_points(place: Place) -> None:
    """That is settled. Another grading of the same class says who it waits for."""
    table, folder = place.top / "class.csv", place.top / "class"
    for name in ("zoe", "ada", "kim/work"):
        (folder / name).mkdir(parents=True)
    with files.alone(place.top / ".class.csv.lock"):
        (place.top / ".class.csv.lock").write_text("4711\n")
        grading = place.start("grade-all", "CH=02-fork", f"DIR={folder}", f"CSV={table}", "JOBS=3")
        said = grading.stdout.readline() if grading.stdout is not None else ""
    assert "another grading (pid 4711); waiting" in said
    grading.communicate(timeout=LIMIT_S)
    assert grading.returncode == 0
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(r["name"], r["score"], r["state"]) for r in rows] == [
        (name, "0", many.NOTHING) for name in ("ada", "kim", "zoe")
    ]


def test_a_class_ends_with_make(place: Place) -> None:
    texts = real_of(labs.load("02-fork"))
    for name in ("ada", "bob", "cyd", "dan"):
        write(place.top / "class" / name, texts)
    table, lock = place.top / "class.csv", place.top / ".class.csv.lock"
    grading = place.start("grade-all", "CH=02-fork", f"DIR={place.top / 'class'}", f"CSV={table}")
    assert wait_until(lambda: lock.exists() and lock.read_text().strip() != "", 60)
    pid = lock.read_text().strip()
    assert wait_until(lambda: any(place.temporary.glob("*/*")), 60)  # a grading is at work
    grading.terminate()
    grading.communicate(timeout=60)
    # A zombie is what stays of it where a test before has made this process a subreaper.
    assert wait_until(lambda: not proc.alive(int(pid)), 60)
    assert len(table.read_text().splitlines()) < 5


@pytest.mark.skipif(shutil.which("sim_c") is None, reason="similarity-tester is not installed")
def test_who_copied(place: Place) -> None:
    lab = labs.load("02-fork")
    real, given = real_of(lab)["server.c"], work.starters(lab)["server.c"]
    own = given + "".join(f"static int f{i}(int x) {{ return x * {i} + 1; }}\n" for i in range(9))
    texts = {"ada": real, "bob": real.replace("start_child", "begin"), "cyd": own, "dan": given}
    for name, text in texts.items():
        (place.top / "class" / name).mkdir(parents=True)
        (place.top / "class" / name / "server.c").write_text(text)
    done = place.make("similar", "CH=02-fork", f"DIR={place.top / 'class'}")
    pairs = {tuple(line.split()[2:]) for line in done.stdout.splitlines() if line[:2] == "  "}
    assert pairs == {("ada", "bob"), ("ada", "(ours)"), ("bob", "(ours)")}, done.stdout


@pytest.mark.skipif(shutil.which("sim_c") is None, reason="similarity-tester is not installed")
def test_nobody_copied_what_a_class_was_given(place: Place) -> None:
    """Everybody has the class's variant, and has mended another mistake of it."""
    lab = labs.load("03-prefork")
    variant = Variant(lab, 7)
    given = variant.starters()
    for number, mistake in enumerate(variant.mistakes):
        old, new = variant._in(mistake.old), variant._in(mistake.new)
        mended = {
            name: text.replace(new, old) if name == mistake.file else text
            for name, text in given.items()
        }
        assert mended != given
        write(place.top / "class" / f"s{number}", mended)
    assert len(variant.mistakes) > 1
    words = ["similar", "CH=03", f"DIR={place.top / 'class'}"]
    pairs = re.compile(r"^ +\d+ %  s\d  s\d$", re.M)
    assert pairs.search(place.make(*words).stdout)
    done = place.make(*words, "VARIANT=7")
    assert f"{len(variant.mistakes)} submissions" in done.stdout, done.stderr
    assert not pairs.search(done.stdout), done.stdout


@pytest.mark.skipif(shutil.which("gnuplot") is None, reason="gnuplot is not installed")
def test_a_class_in_one_figure(place: Place) -> None:
    """Of three machines one has a damaged set and one has not finished."""
    folders, build = [place.top / name for name in ("one", "two", "three")], place.top / "build"
    text = (TREE / "benchmarks/results/reference/thread-create.jsonl").read_text()
    damaged, cut = text.replace('"round":1', '"round":2', 1), text[: text.rindex("\n", 0, -1) + 1]
    for folder, kept in zip(folders, (text, damaged, cut), strict=True):
        folder.mkdir()
        (folder / "thread-create.jsonl").write_text(kept)
    gone, end = os.pipe()
    os.close(gone)  # make merge | head
    how = place.how("merge", f"BUILD={build}", f"RUNS={' '.join(map(str, folders))}")
    done = subprocess.run(**how, stdout=end, stderr=subprocess.PIPE, timeout=LIMIT_S, check=True)
    os.close(end)
    said = done.stderr.splitlines()
    assert said[0].startswith(f"left out: {folders[1]}")
    assert all(line.startswith("left out: ") for line in said), said  # and of the reader nothing
    assert "<svg" in (build / "merge/thread-create.svg").read_text()
    rows = (build / "merge/thread-create/machines.tsv").read_text().splitlines()
    assert len({row.split("\t")[0] for row in rows}) == len(rows)  # of one machine


@pytest.mark.parametrize(("words", "said"), [
    ("handout CH=15b-overload", "nothing is built in a lab that measures"),
    ("handout CH=02-fork VARIANT=x", "VARIANT=x: a number"), ("autograder", "which lab?"),
    ("handout CH=02-fork HINTS=few", "yes or no"), ("similar CH=02-fork", "name a folder"),
    ("merge", "RUNS="), ("merge RUNS=/nowhere", "/nowhere"),
])  # fmt: skip
def test_a_wrong_word(capsys: pytest.CaptureFixture[str], words: str, said: str) -> None:
    assert main([*words.split(), "BUILD=build"]) == 2
    line = capsys.readouterr().err
    assert line.startswith("lab: ") and said in line and line.count("\n") == 1


def test_to_watch(place: Place) -> None:
    """A check for each change; Ctrl-C, which goes to all of them, ends it."""
    work.begin(labs.load("02-fork"), place.work / "02-fork")
    process = subprocess.Popen(
        **place.how("check", "CH=02", "WATCH=1", "ONLY=serves", "PATIENCE=0.4"),
        stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    seen = ""
    for line in process.stdout or ():
        seen += line
        if line.startswith("Waiting") and seen.count("of 2 points") == 1:
            time.sleep(0.1)  # the clock of files is coarse
            (place.work / "02-fork/server.c").write_text("int x(\n")
        elif seen.count("\nWaiting") > 1:
            os.killpg(process.pid, 2)
    process.wait(30)
    assert "it does not build" in seen
