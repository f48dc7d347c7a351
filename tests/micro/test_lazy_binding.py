"""lazy-binding: the table of addresses is copied in each child, or nobody writes to it.

Run: python3 -m pytest tests/micro/test_lazy_binding.py --variants=glibc,static
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from micro_support import rows, run

PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024


def least_dirty(folder: Path, environment: list[str]) -> float:
    """KiB: each child of several runs has at least that much for itself.

    The kernel places stack and heap at random: in some runs they reach into one page more.
    """
    command: list[str | Path] = ["env", *environment, folder / "lazy-binding", "-n", "20"]
    least = float("inf")
    for _ in range(6):
        status, out, err = run(command)
        assert (status, err) == (0, "")
        found = rows(out)
        assert [row[0] for row in found] == [*range(20)]
        least = min(least, *(row[2] for row in found))
    return least


def test_binding_at_start_spares_each_child_a_page_where_there_is_a_linker(folder: Path) -> None:
    if folder.name in ("asan", "tsan"):
        pytest.skip("the sanitizers write to shadow memory, which is copied too")
    lazy = least_dirty(folder, ["-u", "LD_BIND_NOW"])
    now = least_dirty(folder, ["LD_BIND_NOW=1"])
    assert now >= PAGE_KIB
    if folder.name == "bin":
        assert lazy >= now + PAGE_KIB
    else:
        assert lazy == now
