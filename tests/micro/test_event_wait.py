"""event-wait: that each way finds all events, and with how many calls.

Run: python3 -m pytest tests/micro/test_event_wait.py --variants=glibc,diet
"""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from micro_support import rows, run

IDLE, ACTIVE = 30, 10
# System calls for each of ACTIVE events; a handler takes one to begin, one to end, one an event.
CALLS = {
    "select": 1 / ACTIVE,
    "poll": 1 / ACTIVE,
    "sigio": 1,
    "sigio-handler": 1 + 2 / ACTIVE,
    "sigio-signalfd": 1 / ACTIVE,
    "epoll": 1 / ACTIVE,
    "epoll-edge": 1 / ACTIVE,
    "epoll-one": 1,
    "kqueue": 1 / ACTIVE,
}


def skip_what_is_not_there(folder: Path, way: str) -> None:
    if (folder.name, way) == ("diet", "kqueue"):
        pytest.skip("10-kqueue cannot be built with dietlibc")
    if (folder.name, way) == ("tsan", "sigio-handler"):
        pytest.skip("this sanitizer calls signal handlers when it thinks fit")


@pytest.mark.parametrize("way", CALLS)
def test_each_way_finds_all_events_with_its_calls(folder: Path, way: str) -> None:
    skip_what_is_not_there(folder, way)
    arguments = ["-n", "5", "-i", str(IDLE), "-a", str(ACTIVE), way]
    status, out, err = run([folder / "event-wait", *arguments])
    assert (status, err) == (0, "")
    for wait_ns, event_ns, calls, send_ns, read_ns in rows(out):
        assert calls == pytest.approx(CALLS[way])
        assert event_ns == pytest.approx(wait_ns / ACTIVE, abs=0.1)
        assert min(event_ns, send_ns, read_ns) > 0


@pytest.mark.parametrize("way", ["select", "poll", "epoll"])
def test_more_descriptors_than_an_fd_set_holds(folder: Path, way: str) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2000:
        pytest.skip(f"no more than {hard} descriptors are to be had")
    status, out, err = run(
        [folder / "event-wait", "-n", "2", "-i", "1500", "-a", "100", way],
        before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (2000, hard)),
    )
    assert (status, err, len(rows(out))) == (0, "", 2)


def test_poll_looks_at_all_and_epoll_at_those_that_are_ready(folder: Path) -> None:
    """A wide ratio: catches a way under another's name, not a slow machine."""
    least = {
        way: min(row[0] for row in rows(run([folder / "event-wait", "-i", "900", way])[1]))
        for way in ("select", "poll", "epoll", "epoll-edge")
    }
    for all_of_them in ("select", "poll"):
        for those_ready in ("epoll", "epoll-edge"):
            assert least[all_of_them] > 5 * least[those_ready]


@pytest.mark.parametrize("way", ["sigio", "sigio-handler", "sigio-signalfd"])
def test_a_queue_that_is_too_short_is_an_error_and_no_sample(folder: Path, way: str) -> None:
    skip_what_is_not_there(folder, way)
    status, out, err = run(
        [folder / "event-wait", "-a", "50", way],
        before=lambda: resource.setrlimit(resource.RLIMIT_SIGPENDING, (10, 10)),
    )
    assert (status, out) == (1, "")
    assert err == "event-wait: the queue of signals is full (ulimit -i)\n"


def test_too_few_descriptors_is_an_error_and_no_sample(folder: Path) -> None:
    if folder.name == "asan":
        pytest.skip("this sanitizer needs descriptors to look for leaks")
    status, out, err = run(
        [folder / "event-wait", "-i", "50", "poll"],
        before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (30, 30)),
    )
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("event-wait: socket")
