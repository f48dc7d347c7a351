"""`make vm` but for the machine: what is fetched, and when; the table; and that what it runs there
can fail. No QEMU is needed here.
"""

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


@pytest.mark.parametrize(
    ("deps", "right", "refusal"),
    [
        ("yes", True, ""),
        ("yes", False, "not used"),
        ("skip", True, "DEPS=yes fetches it"),
        ("ask", True, "DEPS=yes fetches it"),  # nobody is asked: this is no terminal
    ],
)
def test_an_image_is_fetched_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deps: str, right: bool, refusal: str
) -> None:
    """After a yes, if it has the right checksum; and whole or not at all."""
    monkeypatch.setenv("DEPS", deps)
    source, store = tmp_path / "disk.qcow2.xz", tmp_path / "vm"
    store.mkdir()
    packed = lzma.compress(CONTENT)
    source.write_bytes(packed)
    sha256 = hashlib.sha256(packed).hexdigest() if right else "0" * 64
    known = {"url": source.as_uri(), "sha256": sha256, "bytes": len(packed)}
    if refusal:
        with pytest.raises(vm.Failed, match=refusal):
            vm.image_of("it", known, store)
        assert list(store.iterdir()) == []
    else:
        assert vm.image_of("it", known, store).read_bytes() == CONTENT
        source.unlink()
        assert vm.image_of("it", known, store) == store / "disk.qcow2"
        assert list(store.iterdir()) == [store / "disk.qcow2"]


def test_it_says_what_is_missing(tmp_path: Path) -> None:
    command = [sys.executable, vm.__file__, "--os", "freebsd", "--build", str(tmp_path)]
    done = subprocess.run(
        command, env=os.environ | {"PATH": str(tmp_path), "DEPS": "yes"}, capture_output=True,
        text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1 and list(tmp_path.iterdir()) == []
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
    forwarded = re.findall(r"hostfwd=\S+", vm.QEMU)
    assert forwarded == ["hostfwd=tcp:127.0.0.1:{port}-:22"]


def test_the_smoke_test_can_fail() -> None:
    """Of a server for one client."""
    command = [sys.executable, str(vm.HERE / "test_smoke.py")]
    command += ["-k", "test_connections", "-k", "test_pipelining", "-k", "test_stop_in_flight"]
    environment = os.environ | {"SERVER": "01-iterative", "SECONDS": "1"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 1
    failed = set(re.findall(r"^FAIL: (\w+)", done.stderr, re.MULTILINE))
    assert failed == {"test_connections", "test_pipelining"}, done.stderr
