"""What /proc refuses an ordinary user for a moment, while a process calls exec() or exit(), is looked at again."""

import os
import subprocess
import sys

import pytest

from tests.conformance import proc


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


def test_a_process_is_stopped_with_all_its_threads() -> None:
    threads = "import threading\nfor _ in range(20): threading.Thread(target=lambda: [0 for _ in iter(int, 1)]).start()"
    with subprocess.Popen([sys.executable, "-c", threads]) as busy:
        while proc.threads(busy.pid) < 21:
            pass
        proc.stop(busy.pid)
        states = {proc.stat_fields(task)[proc.STATE] for task in proc.tasks(busy.pid)}
        busy.kill()
    assert states == {"T"}
