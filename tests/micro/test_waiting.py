"""Waiting: that all events are found, with how many calls, and how late."""

import resource
import signal
import subprocess
import time
from typing import Any

import pytest

from tests.micro.micro_support import PATIENCE_S, UNSUPPORTED, Micro, limited, table

# System calls for each of ten events; a handler takes one to begin, one to end, one an event.
CALLS = {
    "select": 0.1,
    "poll": 0.1,
    "sigio": 1,
    "sigio-handler": 1.2,
    "sigio-signalfd": 0.1,
    "epoll": 0.1,
    "epoll-edge": 0.1,
    "epoll-one": 1,
    "kqueue": 0.1,
}


@pytest.mark.parametrize("way", CALLS)
def test_each_way_finds_all_events_with_its_calls(micro: Micro, way: str) -> None:
    if (micro.variant, way) == ("diet", "kqueue"):
        pytest.skip("10-kqueue cannot be built with dietlibc")
    if (micro.variant, way) == ("tsan", "sigio-handler"):
        pytest.skip("this sanitizer calls signal handlers when it thinks fit")
    for row in micro.rows(f"event-wait -n 5 -i 30 -a 10 {way}"):
        assert row["calls"] == pytest.approx(CALLS[way])
        assert row["event_ns"] == pytest.approx(row["wait_ns"] / 10, abs=0.1)


def test_more_descriptors_than_an_fd_set_holds(micro: Micro) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2000:
        pytest.skip(f"no more than {hard} descriptors are to be had")
    many = limited(resource.RLIMIT_NOFILE, 2000, hard)
    for way in ("select", "poll", "epoll"):
        assert len(micro.rows(f"event-wait -n 2 -i 1500 -a 100 {way}", before=many)) == 2


def test_poll_looks_at_all_and_epoll_at_those_that_are_ready(micro: Micro) -> None:
    """A wide ratio: catches a way under another's name, not a slow machine."""
    select, poll, epoll, edge = (
        min(micro.column("wait_ns", f"event-wait -i 900 {way}"))
        for way in ("select", "poll", "epoll", "epoll-edge")
    )
    assert min(select, poll) > 5 * max(epoll, edge)


@pytest.mark.parametrize("way", ["select", "poll", "epoll", "epoll-edge"])
def test_a_slow_wait_gets_more_at_once_and_loses_nothing(micro: Micro, way: str) -> None:
    """One message in half a millisecond, and a rest of 200 ms: a reader without a rest has to be 40 ms late each time
    to get a third as many at once. No queue of a socket is full: then its sender would wait.
    """
    batches = []
    for delay in (0, 200000):
        [row] = micro.rows(f"event-rate -n 1000 -s 200 -r 2000 -d {delay} {way}")
        assert row["lost"] == 0
        assert row["waits"] * row["messages_per_wait"] == pytest.approx(1000, rel=0.05)
        assert 1 <= row["events_per_wait"] <= 200
        assert row["rate"] > 0
        batches.append(row["messages_per_wait"])
    assert batches[1] > 3 * batches[0]


def test_a_socket_that_is_full_loses_nothing(micro: Micro) -> None:
    [row] = micro.rows("event-rate -n 200 -s 1 -r 1000000 -d 2000 poll")
    assert (row["lost"], row["events_per_wait"]) == (0, 1)


def overflow(micro: Micro, room: int, expected: dict[str, Any]) -> dict[str, Any]:
    """The columns for 30 events. The kernel counts the signals of a user in all processes, so that
    another program's may be in the way: then it is tried again.
    """
    for _ in range(10):
        [found] = micro.rows(f"sigio-overflow -n 30 -q {room}")
        if expected.items() <= found.items():
            return found
    pytest.fail(f"{found}, not {expected}")


def test_a_full_queue_tells_of_itself_once_and_can_be_emptied(micro: Micro) -> None:
    expected: dict[str, Any] = dict.fromkeys(("room", "signals", "in_order", "closed"), 10)
    expected |= dict.fromkeys(("events", "poll_finds"), 30) | {"lost": 20, "overflow": 1}
    expected |= {"after_default": 10, "after_ignore": 0, "in_band": 0x41, "in_revents": 0x41}
    found = overflow(micro, 10, expected)
    assert found["hup_band"] != found["hup_revents"]
    overflow(micro, 30, {"signals": 30, "lost": 0, "overflow": 0})


def test_the_facts_of_each_library(micro: Micro) -> None:
    true = ["kernel_beyond", "plain_overruns", "select_ebadf", "poll_nval", "poll_skips"]
    true += ["level_again", "cookie_kept", "delete_null"]
    if micro.variant not in ("diet", "musl"):
        true.append("checked_aborts")
    [found] = micro.rows("readiness-facts")
    assert (found.pop("fd_setsize"), found.pop("constants_equal")) == (1024, 5)
    assert found == {name: name in true for name in found}
    few = limited(resource.RLIMIT_NOFILE, 200, 1024)
    said = micro.complaint("readiness-facts", status=UNSUPPORTED, before=few)
    assert said == "1040 descriptors are needed (ulimit -Hn)"


# ---- timeout-accuracy

POSIX = ["select", "poll", "nanosleep"]
LINUX = ["ppoll", "epoll_wait", "epoll_pwait2", "timerfd", "event"]


@pytest.fixture
def way(request: pytest.FixtureRequest, micro: Micro) -> str:
    """A skip where it is not there."""
    name = str(request.param)
    micro.rows(f"timeout-accuracy -n 1 -t 1000 {name}", may_lack=name in LINUX)
    return name


@pytest.mark.parametrize("way", POSIX + LINUX, indirect=True)
def test_it_waits_at_least_as_long_as_asked(micro: Micro, way: str) -> None:
    for slack in (0, 1):
        start = time.monotonic()
        command = f"timeout-accuracy -n 10 -t 5000 -s {slack} {way}"
        found = micro.rows(command, may_lack=slack == 1)  # dietlibc cannot set it
        waited_us = (time.monotonic() - start) * 1e6
        late_us = sum([row["late_ns"] for row in found]) / 1e3
        asked_us = 10 * 5000 / (2 if way == "event" else 1)
        assert len(found) == 10
        assert late_us > 0
        assert asked_us + late_us <= waited_us
        assert way == "event" or {row["left_ns"] for row in found} == {"-"}


def test_no_time_out_of_select_is_exact(micro: Micro) -> None:
    """Claim 42: each of them ends a microsecond late, the unit of what select is given, or more."""
    for slack in (0, 1):
        found = micro.rows(f"timeout-accuracy -n 20 -t 1000 -s {slack} select", may_lack=slack == 1)
        assert min([row["late_ns"] for row in found]) >= 1000


@pytest.mark.parametrize("way", ["event"], indirect=True)
def test_select_leaves_the_rest_of_its_time(micro: Micro, way: str) -> None:
    """Half of it, less what the event was late. musl hands the kernel a copy of the time-out."""
    for row in micro.rows(f"timeout-accuracy -n 5 -t 200000 {way}"):
        gone_us = 200000 - row["left_ns"] / 1000
        if micro.variant == "musl":
            assert gone_us == 0
        else:
            assert 100000 <= gone_us <= 100000 + row["late_ns"] / 1000 + 1


def test_no_sample_is_begun_after_the_longest_time(micro: Micro) -> None:
    assert 1 <= len(micro.rows("timeout-accuracy -n 1000 -m 40 -t 10000 select")) <= 4


@pytest.mark.parametrize(("way", "us"), [("poll", 1500), ("epoll_wait", 10)], indirect=["way"])
def test_what_cannot_be_asked_for_is_an_error(micro: Micro, way: str, us: int) -> None:
    said = micro.complaint(f"timeout-accuracy -t {us} {way}")
    assert said == f"{way} cannot be asked for {us} us"


@pytest.mark.parametrize("way", ["select", "epoll_wait", "event"], indirect=True)
def test_a_stop_is_no_sample(micro: Micro, way: str) -> None:
    """Where it cuts a wait short, the wait is taken again; else the sample is late."""
    child = micro.start(f"timeout-accuracy -n 2 -t 300000 {way}", stdout=subprocess.PIPE)
    time.sleep(0.2)
    child.send_signal(signal.SIGSTOP)
    time.sleep(0.05)
    child.send_signal(signal.SIGCONT)
    out, err = child.communicate(timeout=PATIENCE_S)
    assert (child.returncode, err, len(table(out))) == (0, "", 2)
