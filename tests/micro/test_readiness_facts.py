"""readiness-facts: the same kernel, and what each C library makes of it.

Run: python3 -m pytest tests/micro/test_readiness_facts.py --variants=glibc,musl,diet
"""

from __future__ import annotations

import resource
from pathlib import Path

from micro_support import rows, run


def test_the_facts_of_each_library(folder: Path) -> None:
    status, out, err = run([folder / "readiness-facts"])
    assert (status, err) == (0, "")
    [row] = rows(out)
    found = dict(zip(out.splitlines()[0].split("\t"), row, strict=True))
    assert found == {
        "fd_setsize": 1024,
        "kernel_beyond": 1,
        "checked_aborts": folder.name not in ("diet", "musl"),
        "plain_overruns": 1,
        "select_ebadf": 1,
        "poll_ebadf": 0,
        "poll_nval": 1,
        "poll_skips": 1,
        "constants_equal": 5,
        "level_again": 1,
        "edge_again": 0,
        "cookie_kept": 1,
        "delete_null": 1,
    }


def test_without_enough_descriptors_the_facts_are_a_skip(folder: Path) -> None:
    status, out, err = run(
        [folder / "readiness-facts"],
        before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (200, 1024)),
    )
    assert (status, out) == (77, "")
    assert err == "readiness-facts: 1040 descriptors are needed (ulimit -Hn)\n"
