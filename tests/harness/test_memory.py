"""The books of memory, read from made-up files: what is added up, and what is missing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.system import counters

ROLLUP = "Rss:     {rss} kB\nPss:       40 kB\nPss_Dirty:  7 kB\nPrivate_Dirty:  12 kB\n"
PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024


def process(proc: Path, pid: int, rss: int) -> None:
    folder = proc / str(pid)
    (folder / "fd").mkdir(parents=True)
    for place, what in enumerate(("/dev/null", "socket:[1]", f"socket:[{pid}]")):
        (folder / "fd" / str(place)).symlink_to(what)
    (folder / "smaps_rollup").write_text(ROLLUP.format(rss=rss))
    (folder / "status").write_text("Name:\tx\nVmPTE:\t      44 kB\n")
    (folder / "statm").write_text("625 400 390 4 0 89 0\n")


def test_a_session_is_added_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process(tmp_path, 7, 100)
    process(tmp_path, 8, 200)
    monkeypatch.setattr(counters, "session_members", lambda _: [7, 8, 9])  # 9 has just ended
    assert counters.memory_of(7, tmp_path) == {
        "processes": 3, "descriptors": 6, "sockets": 3, "rss_kib": 300, "pss_kib": 80,
        "private_dirty_kib": 24, "page_tables_kib": 88,
    }  # fmt: skip


def test_one_process_in_two_books(tmp_path: Path) -> None:
    process(tmp_path, 7, 1600)
    account = counters.account_of(7, tmp_path)
    assert account["statm_size_kib"] == 625 * PAGE_KIB
    assert account["statm_resident_kib"] == 400 * PAGE_KIB
    assert account["statm_data_kib"] == 89 * PAGE_KIB
    assert (account["one_rss_kib"], account["one_private_dirty_kib"]) == (1600, 12)
    assert counters.account_of(8, tmp_path) == {}


def test_the_kernels_own(tmp_path: Path) -> None:
    assert counters.kernel_memory(tmp_path) == {}
    (tmp_path / "meminfo").write_text("Slab:  300 kB\nKernelStack:  16 kB\n")
    assert counters.kernel_memory(tmp_path) == {
        "slab_kib": 300, "stacks_kib": 16, "page_tables_kib": 0,
    }  # fmt: skip
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "sockstat").write_text(
        "TCP: inuse 5 orphan 0 tw 0 alloc 6 mem 3\nUDP: mem 9\n"
    )
    assert counters.kernel_memory(tmp_path)["tcp_kib"] == 3 * PAGE_KIB
