"""What the tests of the labs share: make as a student or a teacher calls it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.lab import Lab

TREE = Path(__file__).resolve().parents[2]
#: far above what any grading takes; a grading that hangs is a failure of the test
LIMIT_S = 900.0


@dataclass(frozen=True)
class Place:
    """Folders of a test's own: for temporary files, what students write, and programs."""

    top: Path
    build: str

    @property
    def temporary(self) -> Path:
        return self.top / "tmp"

    @property
    def work(self) -> Path:
        return self.top / "work"

    @property
    def logs(self) -> Path:
        return self.top / "logs"

    def hand_in(self, text: str) -> Path:
        """A folder with this server.c."""
        return self.hand_in_all({"server.c": text})

    def hand_in_the_real(self, lab: Lab, old: str = "", new: str = "") -> Path:
        """What the lab's authors would hand in; with `old`, which is there once, it has a fault."""
        texts = {name: lab.source(name).read_text(encoding="utf-8") for name in lab.files}
        assert not old or sum(text.count(old) for text in texts.values()) == 1
        return self.hand_in_all(
            {name: text.replace(old, new) if old else text for name, text in texts.items()}
        )

    def hand_in_all(self, texts: dict[str, str]) -> Path:
        folder = self.top / "hand-in"
        folder.mkdir()
        for name, text in texts.items():
            (folder / name).write_text(text)
        return folder

    def how(self, *words: str, **environment: str) -> dict[str, Any]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
        folders = [f"WORK={self.work}", f"BUILD={self.build}", f"LOGS={self.logs}"]
        return {
            "args": ["make", "-s", f"PYTHON={sys.executable}", *folders, *words],
            "cwd": TREE,
            "env": {**inherited, "TMPDIR": str(self.temporary), **environment},
            "stdin": subprocess.DEVNULL,
            "text": True,
        }

    def make(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        how = self.how(*words, **environment)
        return subprocess.run(**how, capture_output=True, timeout=LIMIT_S, check=False)

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

    def refusal(self, *words: str) -> str:
        """The one line that is said instead of a grade."""
        done = self.make(*words)
        said, status = done.stderr.splitlines()
        assert said.startswith("lab: ")
        assert status.endswith(" Error 2")
        return said

    def leftovers(self) -> list[str]:
        """Files and processes of a grading that should have gone with it."""
        found = [path.name for path in self.temporary.iterdir()]
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes()
            except OSError:
                continue
            if os.fsencode(self.temporary) in words:
                found.append(words.replace(b"\0", b" ").decode(errors="replace"))
        return found


@dataclass(frozen=True)
class Grade:
    results: dict[str, Any]
    out: str
    err: str

    def with_outcome(self, outcome: str) -> set[str]:
        """Ids of the tests that ended so."""
        return {
            test["name"].split(":")[0]
            for test in self.results["tests"]
            if test["extra_data"]["outcome"] == outcome
        }

    @property
    def passed(self) -> set[str]:
        return self.with_outcome("passed")

    @property
    def said(self) -> str:
        """Of the whole, below the points."""
        return str(self.results["output"].splitlines()[1])

    def output(self, name: str) -> str:
        found: str = next(t["output"] for t in self.results["tests"] if t["name"].startswith(name))
        return found
