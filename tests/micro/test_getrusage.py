"""getrusage: it has done what it says before it asks.

Run: python3 -m pytest tests/micro/test_getrusage.py --variants=glibc,diet
"""

from __future__ import annotations

from pathlib import Path

from micro_support import RUSAGE, rows, run


def usage(folder: Path, mib: int) -> dict[str, float]:
    status, out, err = run([folder / "getrusage", "-n", str(mib)])
    assert (status, err) == (0, "")
    return dict(zip(RUSAGE, rows(out)[0], strict=True))


def test_the_memory_is_there_and_was_faulted_in(folder: Path) -> None:
    small, large = usage(folder, 1), usage(folder, 200)
    # Below that it can be ours: exec keeps what the process had been before.
    assert large["maxrss_kib"] >= 200 * 1024
    # With pages of 64 KiB, as some kernels have, it would be 3184.
    assert large["minflt"] - small["minflt"] >= 3000


def test_it_slept(folder: Path) -> None:
    assert usage(folder, 1)["nvcsw"] >= 1


def test_what_nobody_counts_is_0(folder: Path) -> None:
    """Linux has no count for these (getrusage(2)): ten signals and ten messages leave no trace."""
    found = usage(folder, 1)
    assert [found[name] for name in ("msgsnd", "msgrcv", "nsignals", "nswap")] == [0] * 4
