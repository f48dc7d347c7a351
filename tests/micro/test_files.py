"""mmap-files, stat-cost, directory-size: a line for each visit, and file systems without a trace.

Run: python3 -m pytest tests/micro/test_files.py --variants=glibc,diet
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from micro_support import SPARE_USER, ForEveryone, cells, is_mapped, run

HEADERS = {
    "mmap-files": "file\topen_ns\tmmap_ns\ttouch_ns\tagain_open_ns\tagain_mmap_ns\tagain_touch_ns",
    "stat-cost": "visit\tcall_ns\tstat_ns\topen_ns\tread_ns\tclose_ns",
    "directory-size": "sample\tagain_ns\tmiss_ns\tfirst_ns\tcold_ns\tmake_ns\tlist_ns",
}
FORGETTABLE = ["ext2", "ext4", "xfs", "btrfs"]


def traces(folder: Path) -> list[str]:
    """Mounts on it and loop devices on its files that do not end soon: the kernel may be late."""
    found: list[str] = []
    for _ in range(100):
        mounts = Path("/proc/self/mounts").read_text().splitlines()
        found = [line for line in mounts if str(folder) in line]
        for file in Path("/sys/block").glob("loop*/loop/backing_file"):
            with contextlib.suppress(OSError):  # it was given back while we looked
                found += [line for line in [file.read_text()] if str(folder) in line]
        if not found:
            break
        time.sleep(0.05)
    return found


def samples(folder: Path, tmp_path: Path, program: str, *arguments: str | Path) -> list[list[str]]:
    """The cells; a skip where the program says that it cannot. Nothing may be left."""
    status, out, err = run([folder / program, *arguments, tmp_path / "files"])
    assert traces(tmp_path) == []
    if status == 77:
        assert out == ""
        assert err.startswith(f"{program}: ")
        assert err.count("\n") == 1
        must_work = folder.name not in ("diet", "musl") and (
            "here" in arguments or (os.geteuid() == 0 and "tmpfs" in arguments)
        )
        assert not must_work or "mount" in err, err
        pytest.skip(err.strip())
    assert (status, err) == (0, "")
    assert [*tmp_path.iterdir()] == []
    assert out.splitlines()[0] == HEADERS[program]
    return cells(out)


@pytest.mark.parametrize("more", [[], ["-c", "1"], ["-p", "1"]])
@pytest.mark.parametrize("kind", ["here", "tmpfs"])
def test_each_file_is_mapped_twice(
    folder: Path, tmp_path: Path, kind: str, more: list[str]
) -> None:
    found = samples(folder, tmp_path, "mmap-files", "-n", "150", "-k", "7", *more, kind)
    assert [int(row[0]) for row in found] == [*range(0, 150, 7)]
    assert all(float(cell) > 0 for row in found for cell in row[1:])


@pytest.mark.parametrize("way", ["stat", "statx", "open", "below", "read", "serve"])
@pytest.mark.parametrize("depth", ["1", "8"])
def test_each_way_to_find_a_file(folder: Path, tmp_path: Path, way: str, depth: str) -> None:
    arguments = ["-n", "60", "-v", "50", "-d", depth, way, "here", "warm"]
    found = samples(folder, tmp_path, "stat-cost", *arguments)
    assert [int(row[0]) for row in found] == [*range(50)]
    assert all(float(row[1]) > 0 for row in found)
    parts = [[float(cell) for cell in row[2:] if cell != "-"] for row in found]
    assert {len(row) for row in parts} == {4 if way == "serve" else 0}
    assert all(sum(part) <= float(row[1]) for part, row in zip(parts, found, strict=True))


@pytest.mark.parametrize("state", ["cold", "listed", "walked"])
def test_what_was_forgotten_takes_longer(folder: Path, tmp_path: Path, state: str) -> None:
    """A wide ratio within one run: a file that was never read comes from the disk."""
    found = samples(folder, tmp_path, "stat-cost", "-n", "2000", "serve", "ext4", state)
    stat_us = sum(float(row[2]) for row in found) / len(found)
    read_us = sum(float(row[4]) for row in found) / len(found)
    close_us = sum(float(row[5]) for row in found) / len(found)
    assert read_us > 4 * close_us
    assert state != "cold" or stat_us > 4 * close_us


@pytest.mark.parametrize("kind", ["here", "tmpfs", *FORGETTABLE])
def test_names_are_found_and_missed(folder: Path, tmp_path: Path, kind: str) -> None:
    if kind in FORGETTABLE and not shutil.which(
        f"mkfs.{kind}", path=os.defpath + ":/usr/sbin:/sbin"
    ):
        pytest.skip(f"mkfs.{kind} is not installed")
    found = samples(folder, tmp_path, "directory-size", "-n", "30", "-s", "50", kind)
    assert [int(row[0]) for row in found] == [*range(50)]
    assert all(float(row[1]) > 0 and float(row[2]) > 0 for row in found)
    forgotten = [row[3] != "-" and row[4] != "-" for row in found]
    assert forgotten == [kind in FORGETTABLE and i < 30 for i in range(50)]
    assert [row[5] != "-" and row[6] != "-" for row in found] == [True] + 49 * [False]


def test_a_list_is_searched_and_a_hash_is_not(folder: Path, tmp_path: Path) -> None:
    """A wide ratio within one test: ext2 without dir_index reads all of 4000 names for a miss."""

    def miss(kind: str) -> float:
        found = samples(folder, tmp_path, "directory-size", "-n", "4000", kind)
        return sorted(float(row[2]) for row in found)[len(found) // 2]

    assert miss("ext2") > 3 * miss("ext4")


def test_a_file_system_ends_with_its_process(folder: Path, tmp_path: Path) -> None:
    """However that ends. The folder it covered stays, empty."""
    if folder.name in ("diet", "musl") or os.geteuid() != 0:
        pytest.skip("there is none to be left")
    program, files = str(folder / "directory-size"), str(tmp_path / "files")
    command = [program, "-n", "200000", "ext2", files]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as child:
        assert child.stderr is not None
        try:
            child.wait(timeout=2)
        except subprocess.TimeoutExpired:
            child.kill()
        else:
            pytest.skip(child.stderr.read().decode().strip())
    assert traces(tmp_path) == []
    assert [*(tmp_path / "files").iterdir()] == []
    assert [path.name for path in tmp_path.iterdir()] == ["files"]


def test_a_folder_that_is_there_is_left_alone(folder: Path, tmp_path: Path) -> None:
    if folder.name in ("diet", "musl"):
        pytest.skip("not for this C library")
    (tmp_path / "mine").mkdir()
    status, out, err = run([folder / "directory-size", "here", tmp_path / "mine"])
    assert (status, out) == (1, "")
    assert err == f"directory-size: mkdir {tmp_path / 'mine'}: File exists\n"
    assert (tmp_path / "mine").is_dir()


def test_a_user_without_rights_is_told_what_it_takes(
    folder: Path, for_everyone: ForEveryone
) -> None:
    if folder.name in ("diet", "musl"):
        pytest.skip("not for this C library")
    if os.geteuid() != 0 or not is_mapped(SPARE_USER):
        pytest.skip("only root can become somebody else")
    with tempfile.TemporaryDirectory() as open_to_all:
        os.chmod(open_to_all, 0o777)
        status, out, err = run(
            [for_everyone("directory-size"), "ext4", f"{open_to_all}/x"], user=SPARE_USER
        )
    assert (status, out) == (77, "")
    assert err == "directory-size: root is needed for ext4 of our own\n"
