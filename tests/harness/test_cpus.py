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
        ("apart", [0, 4, 10, 14], [4], [0], ()),  # of each core its first thread
        # Hardware threads too: a server that asks how many it may use counts them.
        ("shared", [0, 4, 10, 14], [0, 4, 10, 14], [0, 4, 10, 14], ()),
        ("shared", [3], [3], [3], ()),
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
    found = cpus.place(pin, cores, allowed)
    assert found == Placement(frozenset(measured), frozenset(load), marks)
