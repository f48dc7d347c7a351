"""Which processors are measured, and which are for the load."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from quest.ground import cpus
from quest.ground.cpus import Placement
from tests.harness.made_up import machine


@pytest.fixture(name="ten_cores")
def _ten_cores(tmp_path: Path) -> Path:
    """Of two hardware threads each: 0 and 10, 1 and 11, ... A processor above 19 is a core."""
    pairs = [f"{cpu % 10},{cpu % 10 + 10}\n" for cpu in range(20)]
    names = [f"cpu{cpu}/topology/thread_siblings_list" for cpu in range(20)]
    return machine(tmp_path, dict(zip(names, pairs, strict=True)))


@pytest.mark.parametrize(
    ("pin", "allowed", "measured", "load", "marks"),
    [
        ("none", [0, 4], [], [], ()),
        ("one", [0, 4], [4], [], ()),
        ("apart", [0, 4], [4], [0], ()),
        ("apart", [4], [4], [4], ("shared-core",)),
        # Hardware threads too: a server that asks how many it may use counts them.
        ("shared", [0, 4, 10, 14], [0, 4, 10, 14], [0, 4, 10, 14], ()),
        ("shared", [3], [3], [3], ()),
        # A worker has one thread of its core; the load has both of its cores, but none that is
        # not allowed, and no more than it has connections at one worker.
        ("workers", range(20), [6, 7, 8, 9], [*range(6), *range(10, 16)], ()),
        ("workers", [2, 3, 4, 5, 6, 13, 14], [5, 6], [2, 3, 4, 13, 14], ()),
        ("workers", range(20, 420), range(260, 420), range(20, 148), ()),
        ("workers", [0], [0], [0], ("shared-core",)),
        ("workers", [0, 1], [1], [0], ()),
    ],
)
def test_placement(
    ten_cores: Path,
    pin: str,
    allowed: Iterable[int],
    measured: Iterable[int],
    load: Iterable[int],
    marks: tuple[str, ...],
) -> None:
    cores = cpus.cores(list(allowed), ten_cores)
    found = cpus.place(pin, cores, allowed, ten_cores)
    assert found == Placement(frozenset(measured), frozenset(load), marks)


def test_a_repetition_has_a_core_for_each_worker_or_is_marked() -> None:
    placement = Placement(frozenset({6, 7, 8, 9}), frozenset({0, 1}))
    one = Placement(frozenset({9}), placement.load)
    shared = Placement(placement.measured, placement.load, ("shared-core",))
    assert [cpus.narrowed(placement, n) for n in (1, 4, 5)] == [one, placement, shared]
