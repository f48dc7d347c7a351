"""Markers of regions and solutions are in the sources, and in nothing that is made from them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]
MARKER = re.compile(r"(region|solution): ")


def make(*arguments: str) -> str:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "-s", f"PYTHON={sys.executable}", *arguments]
    done = subprocess.run(
        command, cwd=TREE, env=inherited, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def source() -> str:
    text = (TREE / "code/02-fork/server.c").read_text()
    assert "/* region: " in text
    assert "/* solution: " in text
    return text


def test_diff_without_markers(source: str) -> None:
    diff = make("diff", "FROM=01-iterative", "TO=02-fork")
    assert "+    pid_t pid = fork();" in diff
    assert MARKER.search(diff) is None


def test_amalgamation_without_markers(source: str, tmp_path: Path) -> None:
    build = tmp_path / "build"
    assert make("amalgamate", "CH=02-fork", f"BUILD={build}").strip() == f"{build}/single/02-fork.c"
    single = build / "single/02-fork.c"
    text = single.read_text()
    assert "pid_t pid = fork();" in text
    assert MARKER.search(text) is None
    compiler = ["cc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    subprocess.run([*compiler, str(single)], check=True)


def test_the_limits_of_a_server_do_not_count_markers(source: str) -> None:
    show = "print(*lint.source_lines(pathlib.Path('02-fork/server.c')), sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", f"import lint, pathlib; {show}"],
        cwd=TREE / "code",
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines() == [
        line for line in source.splitlines() if MARKER.search(line) is None
    ]


@pytest.mark.parametrize(
    ("markers", "line"),
    [
        (["solution: a", "region: b", "endregion: b", "endsolution: a"], 0),
        (["solution: a", "endsolution: b"], 2),
        (["solution: a", "solution: b", "endsolution: b", "endsolution: a"], 2),
        (["endsolution: a"], 1),
        (["region: b", "solution: a", "endregion: b"], 2),
    ],
)
def test_a_solution_has_both_markers(markers: list[str], line: int) -> None:
    lines = [f"    /* {marker} */" for marker in markers]
    show = f"import lint; print(lint.unmatched_solution({lines!r}))"
    done = subprocess.run(
        [sys.executable, "-c", show], cwd=TREE / "code", check=True, capture_output=True, text=True
    )
    assert int(done.stdout) == line
