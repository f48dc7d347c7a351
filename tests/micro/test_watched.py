"""cow-pages and malloc-dirty: the pages that are counted are those that were written.

Run: python3 -m pytest tests/micro/test_watched.py --variants=glibc,diet
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from micro_support import PATIENCE_S, cells, members, run

PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024
SANITIZED = ("asan", "tsan")


def last_of(folder: Path, command: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    """The last row for the smallest x and the last of all, by column."""
    status, out, err = run([folder / command[0], *command[1:]])
    assert (status, err) == (0, "")
    columns = out.splitlines()[0].split("\t")
    found = [dict(zip(columns, row, strict=True)) for row in cells(out)]
    smallest = [row for row in found if row[columns[0]] == found[0][columns[0]]]
    return smallest[-1], found[-1]


@pytest.mark.parametrize("writer", ["child", "parent"])
def test_each_page_that_is_written_is_a_fault_and_a_page_of_the_child(
    folder: Path, writer: str
) -> None:
    if folder.name in SANITIZED:
        pytest.skip("the sanitizers write to shadow memory, which is copied too")
    first, last = last_of(folder, ["cow-pages", "-n", "3", "-p", "300", writer])
    assert (first["pages"], first["faults_per_page"], first["page_ns"]) == ("0", "-", "-")
    assert last["pages"] == "300"
    assert 300 <= int(last["faults"]) <= 310
    assert float(last["faults_per_page"]) == pytest.approx(int(last["faults"]) / 300, abs=0.001)
    assert float(last["page_ns"]) == pytest.approx(int(last["write_ns"]) / 300, abs=0.001)
    own = int(last["dirty_kib"]) - int(first["dirty_kib"])
    assert 298 * PAGE_KIB <= own <= 310 * PAGE_KIB


def test_without_a_child_nothing_is_copied(folder: Path) -> None:
    _, last = last_of(folder, ["cow-pages", "-n", "3", "-p", "300", "alone"])
    assert last["dirty_kib"] == "-"
    assert int(last["faults"]) <= 3


@pytest.mark.parametrize("heap", ["fresh", "used"])
def test_blocks_nobody_writes_to_make_memory_private(folder: Path, heap: str) -> None:
    if folder.name in SANITIZED:
        pytest.skip("the sanitizers bring a malloc of their own")
    first, last = last_of(folder, ["malloc-dirty", "-n", "2", "-m", "300", heap])
    assert (first["mallocs"], first["asked_kib"]) == ("0", "0.00")
    assert last["mallocs"] == "256"
    assert 256 * 16 / 1024 <= float(last["asked_kib"]) <= 256 * 512 / 1024
    assert int(last["dirty_kib"]) > int(first["dirty_kib"])
    assert int(last["faults"]) > int(first["faults"])


def test_every_child_asks_for_the_same(folder: Path) -> None:
    asked = [
        row[3] for row in cells(run([folder / "malloc-dirty", "-n", "3", "-m", "1", "fresh"])[1])
    ]
    assert asked[:3] == ["0.00"] * 3
    assert len(set(asked[3:])) == 1
    assert float(asked[3]) > 0


@pytest.mark.parametrize("command", [["cow-pages", "-p", "10", "child"], ["malloc-dirty", "used"]])
def test_the_child_ends_with_its_parent(folder: Path, command: list[str]) -> None:
    child = subprocess.Popen(
        [folder / command[0], "-n", "5000", *command[1:]],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    time.sleep(0.05)
    child.send_signal(signal.SIGKILL)
    child.communicate(timeout=PATIENCE_S)
    deadline = time.monotonic() + PATIENCE_S
    while members(child.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert members(child.pid) == []
