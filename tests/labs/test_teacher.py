"""What a teacher runs: bundles without a solution, a class's table and figure."""

import csv
import json
import os
import shutil
import subprocess
import time
import zipfile
from pathlib import Path

import pytest

from quest.ground.files import locked, zipped
from quest.labs import bundle, class_table, cli, commands, merge, starter, work
from quest.labs import lab as labs
from quest.labs.errors import LabError
from quest.labs.lab import TREE, Lab
from quest.labs.settings import Settings, Toolchain
from quest.report import share
from quest.spec import experiment_file
from tests.conformance import proc
from tests.conformance.matrix import rows
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


@pytest.mark.parametrize("slug", rows(ALL))
def test_nothing_of_the_solution_is_in_a_bundle(slug: str) -> None:
    """No line of it that nobody can have by chance. (Hints may quote one: HINTS=no.)"""
    lab = labs.load(slug)
    given, written = work.starters(lab), real_of(lab)
    kept, real = (lines_of("\n".join(texts.values())) for texts in (given, written))
    secret = {line for line in real - kept if len(line) > 25}
    with bundle.tree_of(lab) as top:
        assert not labs.load(slug, top).is_whole
        for path in filter(Path.is_file, top.rglob("*.[cht]*")):
            assert lines_of(path.read_text("utf-8")) & secret == set(), path
        assert "\nold = " not in (top / "labs" / slug / "lab.toml").read_text("utf-8")


@pytest.mark.parametrize("more", [True, False])
def test_what_is_in_a_bundle(tmp_path: Path, more: bool) -> None:
    """The starter in the place of what make has linked; hints, a library, and points without a sandbox as it is
    asked."""
    lab, build = labs.load("13-uring"), tmp_path / "build"
    others = ["code/13-uring/ring", "code/common/die"]
    linked = [*others, *(f"code/13-uring/{Path(name).stem}" for name in lab.files)]
    objects = [build / f"obj/glibc/{path}.o" for path in linked]
    for path in objects:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    tools = Toolchain.of_words("cc", "-O2", " ".join(map(str, objects)), "-luring" if more else "")
    settings = Settings(build=build, tools=tools, hints=more, sandbox_wanted=more)
    bundle.handout(lab, settings)
    bundle.autograder(lab, settings)
    shutil.unpack_archive(build / "handout" / f"{lab.slug}{'' if more else '-nohints'}.tar.gz", tmp_path)
    shutil.unpack_archive(build / "autograder" / f"{lab.slug}.zip", tmp_path / "autograder")
    handout, autograder = tmp_path / lab.slug, tmp_path / "autograder"
    for top in (handout, autograder):
        for name, text in work.starters(lab).items():
            assert (top / "code" / lab.slug / name).read_text("utf-8") == text
    assert (handout / f"{others[0]}.c").read_bytes() == (TREE / f"{others[0]}.c").read_bytes()
    makefile = (handout / "Makefile").read_text("utf-8")
    assert "OBJECTS := build/obj/code/13-uring/ring.o build/obj/code/common/die.o\n" in makefile
    assert ("\nlab check hint: " in makefile) == more
    assert bool((handout / "labs" / lab.slug / "hints.md").read_text("utf-8")) == more
    assert ("liburing-dev" in (handout / "README.md").read_text("utf-8")) == more
    assert ("SANDBOX=no" in (autograder / "run_autograder").read_text("utf-8")) != more
    assert sorted(path.name for path in (autograder / "build/obj").iterdir()) == ["0.o", "1.o"]
    assert (autograder / "labs" / lab.slug / "hints.md").read_text() == ""


@pytest.mark.slow
def test_an_autograder(place: Place) -> None:
    """The real one has all points, what does not build has none, and nothing at all is told."""
    top = place.top / "autograder"
    bundle_of(place, top / "source", "autograder", "CH=05-pool")
    packages = {path.name for path in (top / "source/quest").iterdir() if path.is_dir()}
    assert packages == {"ground", "labs"}, "what measures does not judge"
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


@pytest.mark.slow
def test_a_handout_is_a_lab_of_its_own(place: Place) -> None:
    """Here without hints."""
    bundle_of(place, place.top, "handout", "CH=03", "HINTS=no")
    top = place.top / "03-prefork"

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
    assert (TREE / place.build / "handout/03-prefork-nohints.tar.gz").exists()
    assert (top / "labs/03-prefork/hints.md").read_text() == ""


def test_who_has_handed_in_nothing_has_no_points(place: Place) -> None:
    """That is settled. Another grading of the same class says who it waits for."""
    table, folder = place.top / "class.csv", place.top / "class"
    for name in ("zoe", "ada", "kim/work"):
        (folder / name).mkdir(parents=True)
    with locked(place.top / ".class.csv.lock"):
        (place.top / ".class.csv.lock").write_text("4711\n")
        grading = place.start("grade-all", "CH=02-fork", f"DIR={folder}", f"CSV={table}", "JOBS=3")
        said = grading.stdout.readline() if grading.stdout is not None else ""
    assert "another grading (pid 4711); waiting" in said
    grading.communicate(timeout=LIMIT_S)
    assert grading.returncode == 0
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(r["name"], r["score"], r["state"]) for r in rows] == [
        (name, "0", class_table.NOTHING) for name in ("ada", "kim", "zoe")
    ]


@pytest.mark.long
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


@pytest.mark.slow
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
    assert "machines: 1;" in (build / "merge/thread-create/meta.gp").read_text()
    rows = (build / "merge/thread-create/machines.tsv").read_text().splitlines()
    assert len({row.split("\t")[0] for row in rows}) == len(rows)  # of one machine


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gnuplot") is None, reason="gnuplot is not installed")
def test_a_class_of_shared_files(place: Place) -> None:
    """Beside a folder; with a damaged one nothing is drawn, and one line names file and set."""
    reference, build = TREE / "benchmarks/results/reference", place.top / "build"
    folder, names = place.top / "one", ("thread-create", "fork-reap")
    folder.mkdir()
    for name in names:
        shutil.copy(reference / f"{name}.jsonl", folder)
    known = {definition.id: definition for definition in experiment_file.load_all(only=names)}
    shared = share.pack(folder, place.top, known).path
    merge.merge([folder, shared], build / "merge")
    for name in names:
        assert "machines: 2;" in (build / "merge" / name / "meta.gp").read_text()
    with zipfile.ZipFile(shared) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files["fork-reap.jsonl"] = files["fork-reap.jsonl"][:-1]
    damaged = place.top / "damaged.zip"
    damaged.write_bytes(zipped(files.items(), share.SECONDS))
    with pytest.raises(LabError) as error:
        merge.merge([folder, shared, damaged], place.top / "none")
    assert str(error.value) == f"RUNS: {damaged}: fork-reap.jsonl: damaged: its hash is not that of SHA256SUMS"
    assert not (place.top / "none").exists()


@pytest.mark.parametrize(("words", "said"), [
    ("handout CH=overload", "a lab that measures has no program to build"),
    ("handout CH=02-fork HINTS=few", "yes or no"), ("autograder", "which lab?"),
    ("merge", "RUNS="), ("merge RUNS=/nowhere", "/nowhere"),
])  # fmt: skip
def test_a_wrong_word(words: str, said: str) -> None:
    command, *settings = words.split()
    with pytest.raises(LabError) as error:
        commands.run(command, cli.settings_of(settings, {}))
    assert said in str(error.value) and "\n" not in str(error.value)


@pytest.mark.slow
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
