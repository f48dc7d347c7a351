"""What /proc refuses an ordinary user for a moment, while a process calls exec() or exit(), is looked at again."""

import os
import subprocess
import sys
import time

import pytest

from tests.conformance import proc, process


@pytest.mark.parametrize("times", [1, proc.LOOKS - 1])
def test_what_is_refused_for_a_moment_is_seen(times: int) -> None:
    left = [PermissionError] * times

    def look() -> str:
        if left:
            raise left.pop()
        return "seen"

    assert proc.looked_at(os.getpid(), look, "") == "seen"


def test_what_stays_refused_is_no_end() -> None:
    def look() -> str:
        raise PermissionError

    with pytest.raises(PermissionError):
        proc.looked_at(os.getpid(), look, "")


def test_of_a_process_that_has_ended_there_is_nothing() -> None:
    child = subprocess.Popen(["/bin/true"])  # a zombie until it is waited for
    while proc.alive(child.pid):
        pass

    def look() -> str:
        raise PermissionError

    assert proc.looked_at(child.pid, look, "nothing") == "nothing"
    child.wait()

    def ended() -> str:
        raise ProcessLookupError

    assert proc.looked_at(child.pid, ended, "nothing") == "nothing"
    assert proc.descriptors(child.pid) == {} and proc.text(child.pid, "maps") == ""


@pytest.mark.slow
def test_a_process_is_stopped_with_all_its_threads() -> None:
    threads = "import threading\nfor _ in range(20): threading.Thread(target=lambda: [0 for _ in iter(int, 1)]).start()"
    with subprocess.Popen([sys.executable, "-c", threads]) as busy:
        while proc.threads(busy.pid) < 21:
            pass
        proc.stop(busy.pid)
        states = {proc.stat_fields(task)[proc.STATE] for task in proc.tasks(busy.pid)}
        busy.kill()
    assert states == {"T"}


def test_of_an_output_without_an_end_the_beginning_is_kept() -> None:
    """Of both outputs; the end of the program is seen all the same."""
    flood = ["sh", "-c", "head -c 9000000 /dev/zero; head -c 9000000 /dev/zero >&2; exit 3"]
    done = process.run_bounded(flood, 60, stdin=subprocess.DEVNULL)
    assert (done.returncode, len(done.stdout), len(done.stderr)) == (3, process.KEPT, process.KEPT)
    done = process.run_bounded(["sh", "-c", "echo out; echo err >&2"], 60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"out\n", b"err\n")


@pytest.mark.parametrize("endless", ["yes", "exec sleep 5", "exec > /dev/null 2>&1; exec sleep 5", "sleep 5 &"])
def test_a_program_that_does_not_end_is_ended(endless: str) -> None:
    """Whether it writes, is silent, closes its outputs, or leaves somebody who keeps them."""
    began = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        process.run_bounded(["sh", "-c", endless], 0.5)
    assert time.monotonic() - began < 4
