"""The verdict of a soak, on made-up cycles both ways; the soak itself is `make soak`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from churn import Cycle, faults

Change = Callable[[int, Cycle], Cycle]


def same(_: int, c: Cycle) -> Cycle:
    return c


def cycles(change: Change = same, n: int = 60) -> list[Cycle]:
    """Flat, with some noise, then changed."""
    flat = [Cycle(2.0 * i, 100, 0, 80 + (i * 7) % 11, 9000 + (i * 5) % 13, 6) for i in range(n)]
    return [change(i, c) for i, c in enumerate(flat)]


def test_flat() -> None:
    assert faults(cycles(), 100, 6) == []


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda i, c: replace(c, held=99) if i == 30 else c, "lost"),
        (lambda i, c: replace(c, failed=1) if i == 30 else c, "lost"),
        (lambda i, c: replace(c, descriptors=7) if i == 59 else c, "descriptors"),
        (lambda i, c: replace(c, rss_kib=c.rss_kib + 10 * i), "memory"),
        (lambda i, c: replace(c, median_us=c.median_us + i), "latency"),
    ],
)
def test_what_is_not_flat(change: Change, word: str) -> None:
    found = faults(cycles(change), 100, 6)
    assert len(found) == 1
    assert word in found[0]


def test_one_bad_cycle_is_no_trend() -> None:
    def bad(i: int, c: Cycle) -> Cycle:
        return replace(c, median_us=90_000.0) if i == 50 else c

    assert faults(cycles(bad), 100, 6) == []


def test_too_few_cycles() -> None:
    assert "too few" in faults(cycles(n=9), 100, 6)[0]
