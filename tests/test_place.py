"""A place in which no test means anything is refused in one line, before the first."""

import os
import resource
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import place

TESTS = Path(__file__).resolve().parent


def test_this_place_will_do() -> None:
    assert place.lacking(TESTS.parent / "build") == ""


@pytest.mark.parametrize("most", [40, 255])
def test_few_processes(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (most, most))
    assert f"may have {most} processes and threads (ulimit -u)" in place.lacking(TESTS)
    monkeypatch.setattr(os, "geteuid", lambda: 0)  # exempt
    assert place.lacking(TESTS) == ""


@pytest.mark.parametrize(
    ("flag", "free", "said"),
    [
        (os.ST_NOEXEC, 1000, "it is mounted noexec"),
        (0, 63, "has 63 MiB for temporary files, and 64 are needed"),
        (0, 64, ""),
    ],
)
def test_mounts_and_room(flag: int, free: int, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    about = SimpleNamespace(f_flag=flag, f_bavail=free << 8, f_frsize=4096)
    monkeypatch.setattr(os, "statvfs", lambda _: about)
    found = place.lacking(TESTS)
    assert said in found and bool(said) == bool(found)


def test_it_is_one_line_and_no_test_is_run(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os\nreal = os.statvfs\n"
        "os.statvfs = lambda p: os.statvfs_result([*real(p)[:8], os.ST_NOEXEC, *real(p)[9:]])\n"
    )
    words = [sys.executable, "-m", "pytest", "-q", str(TESTS / "test_place.py")]
    done = subprocess.run(
        words, cwd=TESTS.parent, env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert done.stderr.strip().startswith("ERROR: no program may run in ")
    assert done.stderr.strip().count("\n") == 0
    assert "passed" not in done.stdout
