"""thread-create: as many threads as asked for, or an error, and nothing stays.

Run: python3 -m pytest tests/micro/test_thread_create.py --variants=glibc,diet,tsan
"""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from micro_support import rows, run


@pytest.mark.parametrize("stack", [[], ["-s", "0"], ["-s", "64"], ["-s", "1024"]])
def test_live_counts_up(folder: Path, stack: list[str]) -> None:
    status, out, err = run([folder / "thread-create", "-n", "30", *stack])
    assert (status, err) == (0, "")
    assert [row[0] for row in rows(out)] == [*range(30)]


def test_a_failed_thread_is_an_error_and_no_sample(folder: Path) -> None:
    """Of stacks of 16 MiB not many have room in 128 MiB of address space."""
    if folder.name in ("asan", "tsan"):
        pytest.skip("the sanitizers reserve more address space than that themselves")
    status, out, err = run(
        [folder / "thread-create", "-n", "40", "-s", str(16 * 1024)],
        before=lambda: resource.setrlimit(resource.RLIMIT_AS, (128 << 20, 128 << 20)),
    )
    made = len(rows(out))
    assert 1 <= made < 10
    assert status == 1
    assert err.startswith(f"thread-create: pthread_create after {made} threads: ")
    assert err.count("\n") == 1
