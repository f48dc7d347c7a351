"""prefork-herd: who is woken by one connection, and that nobody stays behind.

Run: python3 -m pytest tests/micro/test_prefork_herd.py --variants=glibc,diet
"""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from micro_support import rows, run

PROCESSES = 12


def herd(folder: Path, *arguments: str) -> tuple[int, str, str]:
    status, out, err = run([folder / "prefork-herd", *arguments])
    if status == 77:
        pytest.skip(err)
    return status, out, err


@pytest.mark.parametrize(
    ("way", "woken"),
    [("accept", 1), ("poll", PROCESSES), ("epoll", PROCESSES), ("exclusive", 1), ("reuseport", 1)],
)
def test_one_connection_wakes_one_or_all(folder: Path, way: str, woken: int) -> None:
    """Far apart, as a busy machine may wake some twice, or leave some awake."""
    status, out, err = herd(folder, "-n", str(PROCESSES), "-c", "20", way)
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == "processes\twakeups\tconnect_ns"
    [(processes, wakeups, nanoseconds)] = rows(out)
    assert processes == PROCESSES
    assert abs(wakeups - woken) < PROCESSES / 3
    assert nanoseconds > 1000


def test_a_system_without_is_a_skip(folder: Path) -> None:
    status, out, err = run([folder / "prefork-herd", "-n", "2", "-c", "2", "accept"])
    assert status == (77 if folder.name == "diet" else 0)
    assert (out == "", err.count("\n")) == ((True, 1) if status else (False, 0))


def test_too_few_descriptors_is_an_error_of_one_line(folder: Path) -> None:
    if folder.name == "diet":
        pytest.skip("there are no ways to wait in that one")
    status, out, err = run(
        [folder / "prefork-herd", "-n", "4", "accept"],
        before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (7, 7)),
    )
    assert (status, out) == (1, "")
    assert err.startswith("prefork-herd: ")
    assert err.count("\n") == 1
