"""`make vm` but for the machine: what is fetched, and when; the table. No QEMU is needed here."""

from __future__ import annotations

import hashlib
import lzma
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import vm

CONTENT = b"a disk" * 1000


def system(folder: Path, sha256: str | None = None) -> dict[str, object]:
    """One whose image is a file of ours."""
    packed = lzma.compress(CONTENT)
    (folder / "disk.qcow2.xz").write_bytes(packed)
    return {
        "url": (folder / "disk.qcow2.xz").as_uri(),
        "sha256": sha256 or hashlib.sha256(packed).hexdigest(),
        "bytes": len(packed),
    }


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "vm"
    folder.mkdir()
    return folder


def test_an_image_is_fetched_once(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPS", "yes")
    known = system(tmp_path)
    assert vm.image_of("it", known, store).read_bytes() == CONTENT
    (tmp_path / "disk.qcow2.xz").unlink()
    assert vm.image_of("it", known, store) == store / "disk.qcow2"
    assert files(store) == ["disk.qcow2"]


def test_an_image_with_another_checksum_is_not_used(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPS", "yes")
    with pytest.raises(vm.Failed, match="not used"):
        vm.image_of("it", system(tmp_path, "0" * 64), store)
    assert files(store) == []


@pytest.mark.parametrize("deps", ["skip", "ask"])  # nobody is asked: this is no terminal
def test_nothing_is_fetched_without_a_yes(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch, deps: str
) -> None:
    monkeypatch.setenv("DEPS", deps)
    with pytest.raises(vm.Failed, match="DEPS=yes fetches it"):
        vm.image_of("it", system(tmp_path), store)
    assert files(store) == []


def test_it_says_what_is_missing(tmp_path: Path) -> None:
    command = [sys.executable, vm.__file__, "--os", "freebsd", "--build", str(tmp_path)]
    done = subprocess.run(
        command, env=os.environ | {"PATH": str(tmp_path), "DEPS": "yes"}, capture_output=True,
        text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1 and files(tmp_path) == []
    assert "qemu-system-x86_64 (Debian: qemu-system-x86)" in done.stderr


def test_the_table() -> None:
    systems = tomllib.loads((vm.HERE / "images.toml").read_text())
    assert {"freebsd", "netbsd", "openbsd"} <= set(systems)
    for known in systems.values():
        assert {"ready", "prepare", "make", "off"} <= set(known)
        if "url" in known:
            assert known["url"].startswith("https://")
            assert re.fullmatch("[0-9a-f]{64}", known["sha256"])


def test_the_machine_is_reached_from_this_one_only() -> None:
    command = vm.qemu_command(Path("disk"), None, 4711, Path("console"))
    assert [word for word in command if "hostfwd" in word] == [
        "user,id=net0,hostfwd=tcp:127.0.0.1:4711-:22"
    ]
