"""A disk of its own for the files, with tools that are made up; for real in test_staging.py."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from quest.ground.errors import RepetitionError, Unsupported
from quest.ground.places import Answer
from quest.measure import disks
from quest.measure.counters import DiskCounters

BUSY = Answer(False, "target is busy")


class Tools:
    """Notes what is called, and answers as it is told to: a list is used up, answer by answer."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.answers: dict[str, list[Answer]] = {}
        self.always: dict[str, Answer] = {}

    def __call__(self, command: list[str], _timeout: float) -> Answer:
        self.calls.append(command)
        if left := self.answers.get(command[0], []):
            return left.pop(0)
        return self.always.get(" ".join(command[:2]), self.always.get(command[0], Answer(True)))

    def names(self) -> list[str]:
        return [command[0] for command in self.calls]


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tools]:
    made_up = Tools()
    monkeypatch.setattr(disks, "ends_well", made_up)
    monkeypatch.setattr(disks, "which", lambda name: name)
    monkeypatch.setattr(disks, "separate_mounts", lambda: None)
    monkeypatch.setattr(disks, "scratch_parent", lambda: tmp_path / "scratch")
    monkeypatch.setattr(disks, "UNMOUNT_SECONDS", 0.2)
    (tmp_path / "scratch").mkdir()
    (tmp_path / "files/pool").mkdir(parents=True)
    (tmp_path / "files/pool/a").write_bytes(bytes(9000))
    disks._image.cache_clear()
    yield made_up
    disks._image.cache_clear()


def mounts(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "scratch").glob("*-disk-*"))


def test_it_is_made_once_and_mounted_each_time(tmp_path: Path, tools: Tools) -> None:
    for options in ("", "noatime"):
        with disks.staged_disk(tmp_path / "files", options) as disk:
            assert mounts(tmp_path) == [disk.root] and disk.root.stat().st_mode & 0o777 == 0o755
            assert disk.writable == bool(options)
            number = disk.root.stat().st_dev
            assert disk.device == f"{os.major(number)}:{os.minor(number)}"
        assert not mounts(tmp_path)
    assert tools.names() == ["mke2fs", *2 * ["mount", "losetup", "umount"]]
    make = tools.calls[0]
    assert make[make.index("-d") + 1] == str(tmp_path / "files")
    # Two inodes for each of three files and folders, beside those ext4 wants; blocks with a
    # twentieth to spare, and the journal.
    assert make[make.index("-N") + 1] == "1030"
    blocks = sum(-(-p.stat().st_size // 4096) + 1 for p in (tmp_path / "files").rglob("*"))
    blocks += -(-(tmp_path / "files").stat().st_size // 4096) + 1
    size = blocks * 4096 * 21 // 20 + 1030 * 256 + (32 << 20)
    assert make[-1] == f"{size // 1024}k"
    image = make[-2]
    assert [call[-2] for call in tools.calls if call[0] == "mount"] == [image, image]
    assert [call[4] for call in tools.calls if call[0] == "mount"] == ["loop,ro", "loop,noatime"]


def test_files_count_as_read_after_they_were_written(tmp_path: Path, tools: Tools) -> None:
    """So that relatime notes no first reading."""
    with disks.staged_disk(tmp_path / "files", ""):
        about = (tmp_path / "files/pool/a").stat()
        assert about.st_atime - about.st_mtime == pytest.approx(60, abs=0.1)


@pytest.mark.parametrize("tool", ["mke2fs", "mount"])
def test_a_tool_that_fails_fails_the_repetition(tmp_path: Path, tools: Tools, tool: str) -> None:
    """An image that could not be made whole is not kept: where the disk is full, that could not be recorded."""
    tools.answers[tool] = [Answer(False, "no room")]
    with pytest.raises(RepetitionError, match=f"^{tool}: no room$"):
        disks.staged_disk(tmp_path / "files", "").__enter__()
    assert not mounts(tmp_path)
    images = list((tmp_path / "scratch").glob("*-image-*"))
    assert len(images) == (tool == "mount")


def test_direct_io_is_not_needed(tmp_path: Path, tools: Tools) -> None:
    tools.answers["losetup"] = [Answer(False, "not supported")]
    with disks.staged_disk(tmp_path / "files", ""):
        pass


def test_what_is_busy_is_unmounted_again_and_at_last_detached(tmp_path: Path, tools: Tools) -> None:
    tools.answers["umount"] = [BUSY, BUSY]
    with disks.staged_disk(tmp_path / "files", ""):
        pass
    assert tools.names()[-3:] == ["umount"] * 3 and not mounts(tmp_path)
    tools.always = {"umount": BUSY, "umount -l": Answer(True)}
    busy = pytest.raises(RepetitionError, match="^umount: target is busy$")
    with busy, disks.staged_disk(tmp_path / "files", ""):
        pass
    assert tools.calls[-1][:2] == ["umount", "-l"]


def test_without_mounts_of_our_own_it_cannot_be(tmp_path: Path, tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(disks, "separate_mounts", refused)
    why = "no mount namespace: Operation not permitted"
    with pytest.raises(Unsupported, match=why), disks.staged_disk(tmp_path / "files", ""):
        pass
    assert tools.calls == []


def test_why_there_can_be_none(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert disks.why_no_disk() == "needs root"
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert disks.why_no_disk() == ""
    assert tools.names() == ["mke2fs", "unshare"]
    tools.answers["unshare"] = [Answer(False, "mount: permission denied")]
    assert disks.why_no_disk() == "unshare: mount: permission denied"
    monkeypatch.setattr(disks, "which", lambda name: None if name == "losetup" else name)
    assert disks.why_no_disk() == "losetup is not installed"


def test_what_is_to_be_written_is_written_before_it_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(device: str) -> DiskCounters:
        asked.append(device)
        return DiskCounters(reads=3)

    monkeypatch.setattr(disks, "disk_counters", counted)
    for writable in (False, True):
        disk = disks.StagedDisk(tmp_path, "7:1", writable)
        assert disk.counters().reads == 3
    assert asked == ["7:1", "7:1"]
    with pytest.raises(OSError, match=re.escape("No such file")):
        disks.StagedDisk(tmp_path / "gone", "7:1", writable=True).counters()
