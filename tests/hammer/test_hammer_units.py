"""Compiles and runs the C tests of hammer's pure parts; each prints TAP."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hammer_support import HANG_S, ROOT

HERE = Path(__file__).resolve().parent
LOAD = ROOT / "benchmarks" / "load"
FLAGS = [
    "-std=c11",
    "-D_GNU_SOURCE",
    "-g",
    "-O1",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
]


@pytest.mark.parametrize(
    ("test", "units"),
    [
        ("histogram_test", ["tally"]),
        ("reply_test", ["reply"]),
        ("schedule_test", ["schedule"]),
        ("deadline_test", ["clock"]),
    ],
)
def test_unit(test: str, units: list[str], tmp_path: Path) -> None:
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if not compiler:
        pytest.skip("needs a C compiler (apt install gcc)")
    program = tmp_path / test
    sources = [str(HERE / f"{test}.c"), *(str(LOAD / f"{unit}.c") for unit in units)]
    subprocess.run([compiler, *FLAGS, f"-I{LOAD}", "-o", str(program), *sources], check=True)
    done = subprocess.run(
        [str(program)], capture_output=True, text=True, timeout=HANG_S, check=False
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout + done.stderr
    assert lines[-1:] == [f"1..{len(lines) - 1}"], "the program ran to its end"
    assert not [line for line in lines if line.startswith("not ok")]
