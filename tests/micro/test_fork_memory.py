"""fork-memory and fork-mappings: they hold what they say, and fork sees it.

Run: python3 -m pytest tests/micro/test_fork_memory.py --variants=glibc,diet
"""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path

import pytest
from micro_support import cells, run

SANITIZED = ("asan", "tsan")


def medians(out: str) -> dict[int, float]:
    """x -> the median of fork_ns."""
    found: dict[int, list[int]] = {}
    for x, fork_ns, total_ns, error in cells(out):
        assert error == "-"
        assert 0 < int(fork_ns) < int(total_ns)
        found.setdefault(int(x), []).append(int(fork_ns))
    return {x: sorted(values)[len(values) // 2] for x, values in found.items()}


def test_memory_doubles_up_to_what_was_asked_for(folder: Path) -> None:
    status, out, err = run([folder / "fork-memory", "-n", "2", "-r", "63", "small"])
    assert (status, err) == (0, "")
    assert list(medians(out)) == [0, 2, 4, 8, 16, 32]


def test_mappings_grow_in_ten_steps(folder: Path) -> None:
    status, out, err = run([folder / "fork-mappings", "-n", "2", "-m", "55", "untouched"])
    assert (status, err) == (0, "")
    assert list(medians(out)) == [0, 5, 11, 16, 22, 27, 33, 38, 44, 49, 55]


def test_memory_makes_fork_dearer_and_huge_pages_less_so(folder: Path) -> None:
    """A wide ratio within one run: catches memory that is not there, not a slow machine."""
    if folder.name in SANITIZED:
        pytest.skip("the shadow memory of the sanitizers is copied too")
    small = medians(run([folder / "fork-memory", "-n", "9", "-r", "128", "small"])[1])
    assert small[128] > 3 * small[0]
    status, out, err = run([folder / "fork-memory", "-n", "9", "-r", "128", "huge"])
    if status == 77:
        assert out == ""
        assert err.startswith("fork-memory: ")
        assert "huge pages" in err
        return
    assert (status, err) == (0, "")
    assert small[128] > 2 * medians(out)[128]


@pytest.mark.parametrize("kind", ["touched", "untouched"])
def test_mappings_make_fork_dearer(folder: Path, kind: str) -> None:
    if folder.name in SANITIZED:
        pytest.skip("the sanitizers have hundreds of mappings of their own")
    found = medians(run([folder / "fork-mappings", "-n", "9", "-m", "5000", kind])[1])
    assert found[5000] > 3 * found[0]


def no_address_space() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))


@pytest.mark.parametrize(
    ("command", "before", "reason"),
    [
        (["fork-memory", "-r", "2048", "small"], no_address_space, "mmap of 2050 MiB: "),
        (["fork-mappings", "-m", "1000000", "untouched"], None, "munmap after "),
    ],
)
def test_what_the_system_does_not_give_is_one_line(
    folder: Path, command: list[str], before: Callable[[], None] | None, reason: str
) -> None:
    if folder.name in SANITIZED:
        pytest.skip("the sanitizers reserve more address space than that themselves")
    most = int(Path("/proc/sys/vm/max_map_count").read_text())
    if before is None and most >= 1_000_000:
        pytest.skip(f"vm.max_map_count is {most}: the largest number asked for fits")
    status, out, err = run([folder / command[0], "-n", "1", *command[1:]], before=before)
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"{command[0]}: {reason}")
