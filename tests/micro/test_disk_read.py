"""disk-read: readers take the files of a list, each once, and say how many there were a second.

Run: python3 -m pytest tests/micro/test_disk_read.py --variants=glibc,asan
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from micro_support import rows, run

SIZE = 70001


@pytest.fixture
def program(folder: Path, variant: str) -> Path:
    if variant not in ("glibc", "asan"):
        pytest.skip("it is built in glibc and asan only")
    return folder / "disk-read"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A list of forty files."""
    paths = [tmp_path / f"{number:02}" for number in range(40)]
    for path in paths:
        path.write_bytes(bytes(SIZE))
    listed = tmp_path / "list"
    listed.write_text("".join(f"{path}\n" for path in paths), encoding="utf-8")
    return listed


@pytest.mark.parametrize("order", ["random", "sorted"])
def test_a_line_for_each_part(program: Path, files: Path, order: str) -> None:
    status, out, err = run([program, "-j", "3", "-n", "7", "-p", "4", str(files), order])
    assert (status, err) == (0, "")
    assert out.splitlines()[0].split("\t") == ["readers", "files_per_s", "mb_per_s", "read_ms"]
    assert len(rows(out)) == 4
    for readers, files_per_s, mb_per_s, read_ms in rows(out):
        assert readers == 3
        assert files_per_s > 0
        assert read_ms > 0
        assert mb_per_s == pytest.approx(files_per_s * SIZE / 1e6, rel=1e-3)


def opened(program: Path, files: Path, order: str) -> list[str]:
    """The files in the order in which one reader opens them, 40 of them."""
    if not shutil.which("strace"):
        pytest.skip("needs strace (apt-get install strace)")
    command = ["strace", "-f", "-qq", "-e", "trace=openat", str(program), "-n", "20", "-p", "1"]
    done = subprocess.run(
        [*command, str(files), order], capture_output=True, text=True, check=False, timeout=60
    )
    if "ptrace" in done.stderr:
        pytest.skip("tracing is not allowed here")
    folder = f'"{files.parent}/'
    return [line.split(folder)[1][:2] for line in done.stderr.splitlines() if folder in line][1:]


def test_each_file_once_in_the_order_wanted(program: Path, files: Path, variant: str) -> None:
    if variant == "asan":
        pytest.skip("LeakSanitizer does not work under strace")
    names = [f"{number:02}" for number in range(40)]
    upwards, shuffled = (opened(program, files, order) for order in ("sorted", "random"))
    first = int(upwards[0])
    assert upwards == names[first:] + names[:first]
    assert sorted(shuffled) == names
    assert shuffled != upwards


def test_a_file_that_is_not_there(program: Path, files: Path) -> None:
    (files.parent / "07").unlink()
    status, out, err = run([program, "-n", "40", "-p", "1", str(files), "sorted"])
    assert (status, out) == (1, "")
    assert err.endswith("07: No such file or directory\n")


def test_an_empty_list(program: Path, tmp_path: Path) -> None:
    (tmp_path / "list").touch()
    status, _, err = run([program, str(tmp_path / "list"), "random"])
    assert status == 1
    assert "no paths" in err
