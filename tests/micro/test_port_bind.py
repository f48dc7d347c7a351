"""port-bind: which ports there are, in which order, and what is refused when there are none.

Run: python3 -m pytest tests/micro/test_port_bind.py --variants=glibc,diet
"""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path

import pytest
from micro_support import cells, run

HEADER = "in_use\tport\tbind_ns\tconnect_ns\ttotal_ns\terror"
RANGE = range(32768, 61000)  # of a new network namespace
HALF = len(RANGE) // 2


def samples(
    folder: Path, *arguments: str, before: Callable[[], None] | None = None
) -> list[list[str]]:
    status, out, err = run([folder / "port-bind", *arguments], before)
    if status == 77:
        assert (out, err.count("\n")) == ("", 1)
        pytest.skip(err)
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == HEADER
    return cells(out)


@pytest.mark.parametrize("way", ["ipv4", "ipv6"])
def test_odd_ports_come_first_and_the_last_is_refused(folder: Path, way: str) -> None:
    *found, refused = samples(folder, "-k", "199", way)
    ports = [int(row[1]) for row in found]
    assert [int(row[0]) for row in found] == [*range(0, len(RANGE), 199)]
    assert all(port in RANGE for port in ports)
    assert len(set(ports)) == len(ports)
    assert all(port % 2 == (int(row[0]) < HALF) for port, row in zip(ports, found, strict=True))
    assert all(row[3:] == ["-", row[2], "-"] for row in found)
    assert (refused[0], refused[1], refused[5]) == (str(len(RANGE)), "0", "EADDRINUSE")


def test_the_kernels_choice_and_ours_never_meet(folder: Path) -> None:
    """Were a port that we choose in use already, the run would fail."""
    found = samples(folder, "-n", "3000", "-k", "2", "ipv4")
    assert len({row[1] for row in found}) == 1500


@pytest.mark.parametrize("way", ["early", "late"])
def test_a_connection_has_a_port_of_the_range(folder: Path, way: str) -> None:
    found = samples(folder, "-n", "200", way)
    assert len(found) == 200
    for in_use, port, bind_ns, connect_ns, total_ns, error in found:
        assert int(port) in RANGE
        # bind() takes odd ports, to leave connect() the even ones.
        assert int(port) % 2 == (way == "early"), in_use
        assert int(total_ns) == int(bind_ns) + int(connect_ns)
        assert error == "-"
    assert len({row[1] for row in found}) == 200


def test_a_port_does_for_several_destinations(folder: Path) -> None:
    """So many connections that some port must have been given twice."""
    if folder.name in ("asan", "tsan"):
        pytest.skip("the same, and too slow")
    found = samples(folder, "-n", "16000", "-d", "8", "late")
    assert len(found) == 16000
    assert len({row[1] for row in found}) < 16000


def test_few_descriptors_are_enough(folder: Path) -> None:
    """The children hold the sockets."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, 512))

    assert len(samples(folder, "-n", "2000", "-k", "20", "early", before=limit)) == 100


def test_a_system_without_is_a_skip(folder: Path) -> None:
    status, out, err = run([folder / "port-bind", "-n", "2", "ipv4"])
    assert status in ((77,) if folder.name == "diet" else (0, 77))
    assert (out == "", err.count("\n")) == ((True, 1) if status else (False, 0))
