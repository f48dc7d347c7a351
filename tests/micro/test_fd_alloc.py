"""fd-alloc: the lowest free number, the hole that is filled again, high numbers, and the limit.

Run: python3 -m pytest tests/micro/test_fd_alloc.py --variants=glibc,diet
"""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from micro_support import cells, run

HEADER = "open\tfd\tcall_ns\trefill_ns\tgrow_ns"
LOWEST = ["socket", "open", "dup"]


def samples(folder: Path, *arguments: str) -> list[list[str]]:
    status, out, err = run([folder / "fd-alloc", *arguments])
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == HEADER
    assert all(float(row[2]) > 0 for row in cells(out))
    return cells(out)


@pytest.mark.parametrize("way", LOWEST)
def test_each_call_gives_the_next_number(folder: Path, way: str) -> None:
    """POSIX: the lowest that is free. 0, 1 and 2 are ours, 3 is what dup() makes copies of."""
    found = samples(folder, "-n", "300", way)
    assert [int(row[0]) for row in found] == [*range(300)]
    assert [int(row[1]) for row in found] == [*range(4, 304)]
    assert {row[3] for row in found} == {"-"}
    assert [(row[1], row[4] == row[2]) for row in found if row[4] != "-"] == [("256", True)]


@pytest.mark.parametrize("way", LOWEST)
def test_a_hole_is_filled_before_the_next_number_is_given(folder: Path, way: str) -> None:
    found = samples(folder, "-n", "50", "-l", "10", way)
    assert [int(row[1]) for row in found] == [*range(4, 54)]
    assert all((row[3] != "-") == (int(row[1]) > 10) for row in found)


@pytest.mark.parametrize("least", [100, 128])
def test_high_numbers_begin_where_they_are_told_to(folder: Path, least: int) -> None:
    found = samples(folder, "-n", "300", "-m", str(least), "dupfd")
    assert [int(row[1]) for row in found] == [*range(least, 300)]


def test_a_step_leaves_out_lines_but_no_growth(folder: Path) -> None:
    found = samples(folder, "-n", "300", "-k", "11", "dup")
    assert [int(row[0]) for row in found] == sorted([*range(0, 300, 11), 252])


def test_a_thread_beside(folder: Path) -> None:
    """How long it makes the kernel wait is not for a test to say. dietlibc opens some for it."""
    numbers = [int(row[1]) for row in samples(folder, "-n", "300", "-t", "2", "dup")]
    assert numbers == sorted({*numbers})
    assert len(numbers) == 300
    assert folder.name == "diet" or numbers[-1] == 303


@pytest.mark.parametrize("way", LOWEST)
def test_a_descriptor_that_is_refused_is_an_error_and_no_sample(folder: Path, way: str) -> None:
    if folder.name == "asan":
        pytest.skip("the sanitizer needs a descriptor when the program ends")
    status, out, err = run(
        [folder / "fd-alloc", "-n", "100", way],
        before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)),
    )
    assert (status, len(cells(out))) == (1, 60)
    reason = "No file descriptors available" if folder.name == "musl" else "Too many open files"
    assert err == f"fd-alloc: {way}: {reason} after 60 descriptors\n"
