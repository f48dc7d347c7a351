"""`make amalgamate`: every server as one file that compiles alone, without a warning."""

import subprocess
from pathlib import Path

import pytest

from quest.measure import needs
from tests.conformance.matrix import PROGRAMS
from tests.place import without_outer_make

ROOT = Path(__file__).resolve().parents[2]
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-pthread"]
LIBRARIES = {
    "13-uring": ["-luring"],
    "14-owfat": ["-idirafter", "/usr/include/libowfat", "-lowfat"],
}


@pytest.mark.parametrize("server", PROGRAMS)
def test_one_file_compiles_alone(server: str, tmp_path: Path) -> None:
    if (lacking := needs.missing_library(server, ROOT)) is not None:
        pytest.skip(f"{lacking.reason}: {lacking.remedy}")
    command = ["make", "-s", "amalgamate", f"CH={server}", f"BUILD={tmp_path}"]
    done = subprocess.run(command, cwd=ROOT, env=without_outer_make(), capture_output=True, text=True, check=True)
    source = Path(done.stdout.strip())
    assert '#include "' not in source.read_text(encoding="utf-8")
    command = ["cc", *FLAGS, "-o", str(tmp_path / server), str(source), *LIBRARIES.get(server, [])]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    help_text = subprocess.run([tmp_path / server, "-h"], capture_output=True, check=True).stdout
    assert b"usage" in help_text
