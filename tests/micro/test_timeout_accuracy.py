"""timeout-accuracy: never early, what select() leaves, and what cannot be asked for.

Run: python3 -m pytest tests/micro/test_timeout_accuracy.py --variants=glibc,diet
"""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest
from micro_support import PATIENCE_S, cells, run

POSIX = ["select", "poll", "nanosleep"]
LINUX = ["ppoll", "epoll_wait", "epoll_pwait2", "timerfd", "event"]
ASKED_US = 5000


def samples(folder: Path, *arguments: str) -> list[list[str]]:
    status, out, err = run([folder / "timeout-accuracy", *arguments])
    if status == 77:
        assert (out, err.count("\n")) == ("", 1)
        pytest.skip(err)
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == "late_ns\tleft_ns"
    return cells(out)


@pytest.mark.parametrize("slack", ["0", "1"])
@pytest.mark.parametrize("way", POSIX + LINUX)
def test_it_waits_at_least_as_long_as_asked(folder: Path, way: str, slack: str) -> None:
    start = time.monotonic()
    found = samples(folder, "-n", "10", "-t", str(ASKED_US), "-s", slack, way)
    waited_us = (time.monotonic() - start) * 1e6
    late_us = sum(float(row[0]) for row in found) / 1e3
    asked_us = 10 * ASKED_US / (2 if way == "event" else 1)
    assert len(found) == 10
    assert late_us > 0
    assert asked_us + late_us <= waited_us


@pytest.mark.parametrize("way", POSIX)
def test_the_ways_of_posix_are_everywhere(folder: Path, way: str) -> None:
    status, out, err = run([folder / "timeout-accuracy", "-n", "3", way])
    assert (status, err, len(cells(out))) == (0, "", 3)
    assert {row[1] for row in cells(out)} == {"-"}


def test_select_leaves_the_rest_of_its_time(folder: Path) -> None:
    """Half of it, less what the event was late. musl hands the kernel a copy of the time-out."""
    for late_ns, left_ns in samples(folder, "-n", "5", "-t", "200000", "event"):
        gone_us = 200000 - int(left_ns) / 1000
        if folder.name == "musl":
            assert gone_us == 0
            continue
        assert 100000 <= gone_us <= 100000 + int(late_ns) / 1000 + 1


def test_no_sample_is_begun_after_the_longest_time(folder: Path) -> None:
    found = samples(folder, "-n", "1000", "-m", "40", "-t", "10000", "select")
    assert 1 <= len(found) <= 4


@pytest.mark.parametrize(("way", "us"), [("poll", 1500), ("epoll_wait", 10)])
def test_what_cannot_be_asked_for_is_an_error(folder: Path, way: str, us: int) -> None:
    if folder.name == "diet" and way in LINUX:
        pytest.skip("that way is not there")
    status, out, err = run([folder / "timeout-accuracy", "-t", str(us), way])
    assert (status, out) == (1, "")
    assert err == f"timeout-accuracy: {way} cannot be asked for {us} us\n"


@pytest.mark.parametrize("way", ["select", "epoll_wait", "event"])
def test_a_stop_is_no_sample(folder: Path, way: str) -> None:
    """Where it cuts a wait short, the wait is taken again; else the sample is late."""
    if folder.name == "diet" and way in LINUX:
        pytest.skip("that way is not there")
    child = subprocess.Popen(
        [folder / "timeout-accuracy", "-n", "2", "-t", "300000", way],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(0.2)
    child.send_signal(signal.SIGSTOP)
    time.sleep(0.05)
    child.send_signal(signal.SIGCONT)
    out, err = child.communicate(timeout=PATIENCE_S)
    assert (child.returncode, err, len(cells(out))) == (0, "", 2)
