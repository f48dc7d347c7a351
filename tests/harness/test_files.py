"""Whole files and locks."""

import io
import os
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest

from quest.ground.files import Busy, locked, write_whole, zipped

HOLDER = """\
import sys
from pathlib import Path
from quest.ground.files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(path: Path) -> subprocess.Popen[str]:
    """A process that has the lock until its stdin ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    return process


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    for content, expected in (("µ\n", b"\xc2\xb5\n"), (b"\xff", b"\xff")):
        write_whole(path, content)
        assert path.read_bytes() == expected
        assert os.listdir(tmp_path) == ["x.txt"]


def test_a_reader_never_sees_a_part(tmp_path: Path) -> None:
    path = tmp_path / "x"
    contents = [bytes([65 + n]) * 100_000 for n in range(20)]
    write_whole(path, contents[0])
    done = threading.Event()

    def write() -> None:
        for content in contents * 5:
            write_whole(path, content)
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = []
    while not done.is_set():
        seen.append(path.read_bytes())
    writer.join()
    assert seen and all(content in contents for content in seen)


@pytest.mark.parametrize("wrong", ["missing/x", "folder"])
def test_what_cannot_be_written_is_named_and_leaves_nothing(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "folder" / "inside").mkdir(parents=True)
    with pytest.raises(OSError, match=".") as error:
        write_whole(tmp_path / wrong, "x")
    assert error.value.filename == str(tmp_path / wrong)
    assert os.listdir(tmp_path) == ["folder"]


def test_a_full_disk_is_named_and_the_old_file_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, data: bytes) -> int:
        self.touch()
        raise OSError(28, "No space left on device")

    path = tmp_path / "x"
    path.write_text("old", encoding="utf-8")
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space") as error:
        write_whole(path, "new")
    assert error.value.filename == str(path)
    assert path.read_text(encoding="utf-8") == "old" and os.listdir(tmp_path) == ["x"]


def test_a_lock_is_held_by_one_process_and_freed_by_its_end(tmp_path: Path) -> None:
    path, waited = tmp_path / "lock", []
    process = holder(path)
    with pytest.raises(Busy, match=f"^{process.pid}$"), locked(path, patience_s=0.2):
        raise AssertionError("two have it")
    process.kill()
    process.wait()
    path.write_text("9" * 40)  # what an earlier one has left may be longer than what we write
    with locked(path, lambda: waited.append(1)):
        assert path.read_text() == str(os.getpid())
    assert not waited
    process = holder(path)

    def let_go() -> None:
        waited.append(1)
        assert process.stdin
        process.stdin.close()

    with locked(path, let_go):
        assert waited == [1]
    process.wait()


def test_a_lock_is_no_link(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="lock"), locked(tmp_path / "lock"):
        pass
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(("seconds", "year"), [(0, 1980), (315532799, 1980), (1795000000, 2026)])
def test_a_zip_of_any_time(seconds: int, year: int) -> None:
    """SOURCE_DATE_EPOCH=0 is what some builders set, and where a clock without a battery begins."""
    with zipfile.ZipFile(io.BytesIO(zipped([("x", b"y")], seconds))) as packed:
        about = packed.getinfo("x")
    assert about.date_time[0] == year
    assert (about.create_system, about.external_attr >> 16) == (3, 0o100644), "who unpacks it on Unix may read it"
