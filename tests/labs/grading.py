"""What the tests of the labs share: make as a student or a teacher calls it."""

import csv
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from quest.labs import class_table, work
from quest.labs.lab import Lab
from tests.conformance import proc
from tests.place import without_outer_make

TREE = Path(__file__).resolve().parents[2]
#: far above what any grading takes; a grading that hangs is a failure of the test
LIMIT_S = 900.0
SOON = "PATIENCE=0.4"  #: for what has to fail: time-outs of 4 s are waited for in full


def solution(lab: Lab, old: str = "", new: str = "") -> dict[str, str]:
    """What the lab's authors would hand in; with `old`, which is there once, it has a fault."""
    texts = {name: lab.source(name).read_text(encoding="utf-8") for name in lab.files}
    if lab.kind == "extend":
        if not shutil.which("patch"):
            pytest.skip("patch is not installed")
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), work.starters(lab))
            subprocess.run(["patch", "-s", "-p1", "-i", str(lab.patch)], cwd=folder, check=True)
            texts = {name: Path(folder, name).read_text(encoding="utf-8") for name in lab.files}
    assert not old or sum(text.count(old) for text in texts.values()) == 1, old
    return {name: text.replace(old, new) if old else text for name, text in texts.items()}


def write(folder: Path, texts: Mapping[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text)
    return folder


class Grade:
    def __init__(self, results: dict[str, Any], out: str, err: str) -> None:
        self.results, self.out, self.err = results, out, err
        self.said = str([*results["output"].splitlines(), ""][1])  #: below the points
        self.outputs = {test["name"].split(":")[0]: test["output"] for test in results["tests"]}


class Place:
    """Folders of a test's own: for temporary files, what students write, and programs."""

    def __init__(self, top: Path, build: str) -> None:
        self.top, self.build, self.limit = top, build, LIMIT_S
        self.temporary, self.work, self.logs = top / "tmp", top / "work", top / "logs"

    def hand_in(self, text: str) -> Path:
        """A folder with this server.c."""
        return write(self.top / "hand-in", {"server.c": text})

    def how(self, *words: str, **environment: str) -> dict[str, Any]:
        folders = [f"WORK={self.work}", f"BUILD={self.build}", f"LOGS={self.logs}"]
        return {
            "args": ["make", "-s", f"PYTHON={sys.executable}", *folders, *words],
            "cwd": TREE,
            "env": {**without_outer_make(), "TMPDIR": str(self.temporary), **environment},
            "stdin": subprocess.DEVNULL,
            "text": True,
        }

    def make(
        self, *words: str, under: Sequence[str] = (), **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """under: a command that runs another, in a place of its own."""
        how = self.how(*words, **environment)
        how["args"] = [*under, *how["args"]]
        return subprocess.run(**how, capture_output=True, timeout=self.limit, check=False)

    def start(self, *words: str, stdout: int = subprocess.PIPE) -> subprocess.Popen[str]:
        """make, while it runs."""
        how = self.how(*words)
        return subprocess.Popen(**how, stdout=stdout, stderr=subprocess.PIPE)

    def grade(self, lab: str, folder: Path, *words: str, **environment: str) -> Grade:
        results = self.top / "results.json"
        done = self.make(
            "grade", f"CH={lab}", f"DIR={folder}", f"JSON={results}", *words, **environment
        )
        assert results.exists(), done.stdout + done.stderr
        return Grade(json.loads(results.read_text()), done.stdout, done.stderr)

    def grade_class(
        self, lab: str, everybody: Mapping[str, Mapping[str, str]], *words: str,
        unjudged: bool = False, **environment: str,
    ) -> dict[str, dict[str, str]]:  # fmt: skip
        """Name -> files of each; and whatever lies in the folder already. A skip where the place
        cannot judge, unless that is what is asked.
        """
        for name, texts in everybody.items():
            write(self.top / "class" / name, texts)
        table = self.top / "grades.csv"
        done = self.make(
            "grade-all", f"CH={lab}", f"DIR={self.top / 'class'}", f"CSV={table}", *words,
            **environment,
        )  # fmt: skip
        assert table.exists(), done.stdout + done.stderr
        with table.open(newline="", encoding="utf-8") as file:
            rows = {row["name"]: row for row in csv.DictReader(file)}
        for row in rows.values():
            if row["state"] == class_table.UNJUDGED and not unjudged:
                pytest.skip(f"{row['name']}: {row['failed']} could not be judged here")
        return rows

    def refusal(self, *words: str, under: Sequence[str] = (), **environment: str) -> str:
        """The one line that is said instead of a grade."""
        done = self.make(*words, under=under, **environment)
        said, status = done.stderr.splitlines()
        assert said.startswith("lab: ")
        assert status.endswith(" Error 2")
        return said

    def leftovers(self) -> list[str]:
        """Files and processes of a grading that should have gone with it."""
        found = [path.name for path in self.temporary.iterdir()]
        commands = [proc.text(pid, "cmdline").replace("\0", " ") for pid in proc.pids()]
        return found + [command for command in commands if str(self.temporary) in command]


@pytest.fixture
def place(pytestconfig: pytest.Config) -> Iterator[Place]:
    """Open to all: graded as root, a submission is built and run by somebody else."""
    top = Path(tempfile.mkdtemp(prefix="labs-"))
    top.chmod(0o755)
    (top / "tmp").mkdir(mode=0o755)
    found = Place(top, str(pytestconfig.getoption("--build")))
    if not (TREE / found.build / "obj/glibc/code/02-fork/server.o").exists():
        pytest.fail(f"{found.build} holds no objects: make servers", False)
    yield found
    left = found.leftovers()
    shutil.rmtree(top)
    assert left == [], left
