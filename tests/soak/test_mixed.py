"""The verdict of a mixed soak, on made-up cycles both ways; the soak: `make soak-mixed`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from mixed import Cycle, faults

Change = Callable[[int, Cycle], Cycle]


def same(_: int, c: Cycle) -> Cycle:
    return c


def cycles(change: Change = same, n: int = 60) -> list[Cycle]:
    """Flat, with some noise, then changed; the workers are replaced once."""
    flat = [
        Cycle(5.0 * i, i // 30, 9000, 0, 80 + (i * 7) % 11, 4000 + (i * 5) % 13, 9)
        for i in range(n)
    ]
    return [change(i, c) for i, c in enumerate(flat)]


def test_flat() -> None:
    assert faults(cycles(), 9) == []


def test_workers_that_are_new_may_be_smaller_or_larger() -> None:
    """And tables fill in their first cycles."""
    larger = cycles(
        lambda i, c: replace(c, anonymous_kib=c.anonymous_kib + 900 * c.generation - 500 * (i == 0))
    )
    assert faults(larger, 9) == []


def test_a_machine_with_other_work_is_not_a_server_that_ages() -> None:
    """Its new workers are as slow as the old ones were."""
    slower = cycles(lambda i, c: replace(c, median_us=c.median_us * (1.6 if i >= 30 else 1)))
    assert faults(slower, 9) == []


def test_too_few() -> None:
    assert len(faults(cycles(n=9), 9)) == 1


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda i, c: replace(c, failed=1) if i == 30 else c, "lost"),
        (lambda i, c: replace(c, sockets=10) if i == 59 else c, "sockets"),
        (lambda i, c: replace(c, anonymous_kib=c.anonymous_kib + 10 * max(0, i - 30)), "memory"),
        (lambda i, c: replace(c, median_us=c.median_us + 2 * (i % 30)), "latency"),
    ],
)
def test_what_is_not_flat(change: Change, word: str) -> None:
    found = faults(cycles(change), 9)
    assert len(found) == 1
    assert word in found[0]
