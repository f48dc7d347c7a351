"""event-rate: that a slow wait gets more at once, and that nothing is lost.

Run: python3 -m pytest tests/micro/test_event_rate.py --variants=glibc,diet
"""

from __future__ import annotations

from pathlib import Path

import pytest
from micro_support import rows, run


@pytest.mark.parametrize("way", ["select", "poll", "epoll", "epoll-edge"])
def test_a_slow_wait_gets_more_at_once_and_loses_nothing(folder: Path, way: str) -> None:
    batches = []
    for delay in ("0", "60000"):
        arguments = ["-n", "4000", "-s", "200", "-d", delay, way]
        status, out, err = run([folder / "event-rate", *arguments])
        assert (status, err) == (0, "")
        [(waits, events, messages, lost, rate)] = rows(out)
        assert lost == 0
        assert waits * messages == pytest.approx(4000, rel=0.05)
        assert 1 <= events <= 200
        assert rate > 0
        batches.append(messages)
    assert batches[1] > 3 * batches[0]


def test_a_socket_that_is_full_loses_nothing(folder: Path) -> None:
    arguments = ["-n", "200", "-s", "1", "-r", "1000000", "-d", "2000", "poll"]
    status, out, err = run([folder / "event-rate", *arguments])
    assert (status, err) == (0, "")
    [(_waits, events, _messages, lost, _rate)] = rows(out)
    assert (lost, events) == (0, 1)
