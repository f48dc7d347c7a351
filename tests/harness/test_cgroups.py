"""Control groups of both versions, on trees that are made up; for real in test_staging.py."""

import errno
import itertools
import os
from pathlib import Path

import pytest

from quest.ground.errors import RepetitionError, Unsupported
from quest.measure import cgroups
from quest.measure.cgroups import Limits
from tests.harness.made_up import machine

LIMITS = Limits(48 << 20, 240, "7:0")


@pytest.fixture
def first(tmp_path: Path) -> str:
    """/proc/mounts of a system with version 1, and an empty version 2 beside it."""
    for name in ("memory", "blkio", "unified"):
        (tmp_path / name).mkdir()
    (tmp_path / "unified/cgroup.controllers").write_text("\n")
    return (
        f"tmpfs {tmp_path} tmpfs rw 0 0\n"
        f"cgroup2 {tmp_path}/unified cgroup2 rw,relatime 0 0\n"
        f"cgroup {tmp_path}/memory cgroup rw,relatime,memory 0 0\n"
        f"cgroup {tmp_path}/blkio cgroup rw,relatime,blkio 0 0\n"
    )


@pytest.fixture
def second(tmp_path: Path) -> str:
    root = tmp_path / "with blank"
    root.mkdir()
    (root / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    (root / "cgroup.subtree_control").write_text("cpu memory\n")
    return f"none {str(root).replace(' ', chr(92) + '040')} cgroup2 rw,nosuid 0 0\n"


def written(text: str, limits: Limits) -> tuple[list[Path], dict[str, str]]:
    """The groups, and what was written into them; a real one's files go with it."""
    found = {}
    with cgroups.group(limits, text) as files:
        for place in files:
            for file in place.parent.iterdir():
                found[file.name] = file.read_text()
                file.unlink()
    return files, found


def test_version_1_has_a_group_in_each_hierarchy(first: str, tmp_path: Path) -> None:
    files, settings = written(first, LIMITS)
    name = files[0].parent.name
    assert name.startswith(f"quest-{os.getpid()}-")
    assert sorted(files) == [tmp_path / c / name / "cgroup.procs" for c in ("blkio", "memory")]
    assert settings == {
        "memory.limit_in_bytes": "50331648",
        "blkio.throttle.read_iops_device": "7:0 240",
    }
    assert not [*tmp_path.glob("*/quest-*"), *tmp_path.glob("*/*_control")], "it has nothing to be switched on"
    # Only what is asked for is set; without limits there is no group.
    assert [*written(first, Limits(memory_bytes=9))[1]] == ["memory.limit_in_bytes"]
    assert written(first, Limits(device="7:0")) == ([], {})


def test_version_2_has_one_group_and_enables_what_it_needs(second: str, tmp_path: Path) -> None:
    root = tmp_path / "with blank"
    files, settings = written(second, LIMITS)
    assert [file.parent.parent for file in files] == [root]
    assert (root / "cgroup.subtree_control").read_text() == "+io"
    assert settings == {"memory.max": "50331648", "io.max": "7:0 riops=240"}
    assert not list(root.glob("quest-*"))
    assert [*written(second, Limits(read_iops=9, device="7:0"))[1]] == ["io.max"]


def test_a_name_that_a_killed_harness_of_our_number_has_left_is_not_taken(
    first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "_numbers", itertools.count(1))
    left = tmp_path / f"blkio/quest-{os.getpid()}-1"
    left.mkdir()
    files, _ = written(first, LIMITS)
    assert {file.parent.name for file in files} == {f"quest-{os.getpid()}-2"}
    assert left.is_dir()


def test_where_it_cannot_run_it_says_why_and_leaves_nothing(first: str, tmp_path: Path) -> None:
    with pytest.raises(Unsupported) as caught:
        written("proc /proc proc rw 0 0\n", LIMITS)
    assert "limit the reads of a disk and limit memory" in caught.value.reason
    assert "as root" in caught.value.remedy
    half = first.replace(",blkio", ",cpu")
    assert cgroups.choose_version(["memory"], half)[0] is cgroups.VERSIONS[0]
    with pytest.raises(Unsupported):
        cgroups.choose_version(["memory", "io"], half)
    (tmp_path / "blkio").rmdir()
    (tmp_path / "blkio").write_text("no folder")
    with pytest.raises(Unsupported, match="no control group: "):
        written(first, LIMITS)
    assert not list(tmp_path.glob("*/quest-*"))


def test_one_that_cannot_be_removed_keeps_no_other(first: str, tmp_path: Path) -> None:
    with pytest.raises(RepetitionError, match="cannot be removed"), cgroups.group(LIMITS, first):
        for file in tmp_path.glob("memory/quest-*/*"):
            file.unlink()
    left = [path.parent.name for path in tmp_path.glob("*/quest-*")]
    assert left == ["blkio"], "there it has a file"


def test_its_last_process_may_take_a_moment_to_be_gone(
    first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried, rmdir = list[Path](), Path.rmdir

    def busy_at_first(folder: Path) -> None:
        tried.append(folder)
        if len(tried) < 3:
            raise OSError(errno.EBUSY, "Device or resource busy")
        rmdir(folder)

    monkeypatch.setattr(Path, "rmdir", busy_at_first)
    assert len(written(first, LIMITS)[0]) == 2
    assert not list(tmp_path.glob("*/quest-*"))


def test_what_a_killed_harness_left_is_removed(first: str, tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    (proc / "12").mkdir(parents=True)
    others = "other-11-1", "quest-12-1", "quest-db-1", "quest-11-1-db"
    for name in ("memory/quest-11-1", "blkio/quest-11-1", *(f"memory/{other}" for other in others)):
        (tmp_path / name).mkdir()
    assert cgroups.remove_leftovers(first, proc) == ["quest-11-1"]
    left = sorted(path.name for path in tmp_path.glob("*/*-1*"))
    assert left == sorted(others), "what has another form of name is not ours"


def test_a_leftover_of_another_container_or_user_ends_nothing_of_ours(
    first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0 stands for a process that is not in our /proc, and kill(0) would end ourselves."""
    asked: list[int] = []

    def refused(pid: int, _: int) -> None:
        asked.append(pid)
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.kill", refused)
    machine(tmp_path / "memory", {"quest-11-1/cgroup.procs": "7\n0\n", "quest-12-1/cgroup.procs": "8\n9\n"})
    assert cgroups.remove_leftovers(first, tmp_path / "proc") == ["quest-12-1"]
    assert asked == [8, 9]
