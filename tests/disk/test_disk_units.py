"""Compiles and runs the C tests of the museum disk's pure parts; each prints TAP."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from museum_support import HANG_S, ROOT

HERE = Path(__file__).resolve().parent
DISK = ROOT / "benchmarks" / "disk"
UNIT = ROOT / "tests" / "unit"
FLAGS = [
    *("-std=c11", "-D_GNU_SOURCE", "-g", "-O1", "-Wall", "-Wextra", "-Wshadow", "-Werror"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
]


@pytest.mark.parametrize("part", ["model", "cache", "files"])
def test_part(part: str, tmp_path: Path) -> None:
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if not compiler:
        pytest.skip("needs a C compiler (apt-get install gcc)")
    program = tmp_path / part
    sources = [str(HERE / f"{part}_test.c"), str(UNIT / "tap.c"), str(DISK / f"{part}.c")]
    command = [compiler, *FLAGS, f"-I{DISK}", f"-I{UNIT}", "-o", str(program), *sources, "-lm"]
    subprocess.run(command, check=True)
    done = subprocess.run([program], capture_output=True, text=True, timeout=HANG_S, check=False)
    lines = done.stdout.splitlines()
    assert not [line for line in lines if line.startswith("not ok")]
    assert done.returncode == 0, done.stdout + done.stderr
    assert lines[-1:] == [f"1..{len(lines) - 1}"], "the program ran to its end"
