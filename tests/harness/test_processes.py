"""How programs are started and ended."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from quest.ground import processes
from quest.ground.errors import RepetitionError


def children() -> str:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")


@pytest.fixture(autouse=True)
def another_thread() -> Iterator[None]:
    """To which the kernel may give a signal that is for the process."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    yield
    over.set()
    thread.join()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="wants Linux's /proc")
def test_ctrl_c_while_a_program_starts_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before, harness = children(), os.getpid()
    monkeypatch.setattr(
        processes, "_prepare", lambda *_: lambda: os.kill(harness, signal.SIGINT)
    )  # in the child, before exec: the harness waits for that
    with pytest.raises(KeyboardInterrupt), processes.running("sleep", ["sleep", "60"]):
        pytest.fail("the signal was lost")
    assert children() == before


def test_a_program_can_be_ended_as_ever() -> None:
    with processes.running("sleep", ["sleep", "60"]) as process:
        os.kill(process.pid, signal.SIGINT)
        assert process.reap(5)
        assert process.describe_end() == "sleep was ended by SIGINT"


def test_an_end_by_a_real_time_signal_has_a_name() -> None:
    with processes.running("sleep", ["sleep", "60"]) as process:
        os.kill(process.pid, signal.SIGRTMIN + 1)
        assert process.reap(5)
        assert process.describe_end() == "sleep was ended by SIGRTMIN+1"


def test_one_that_cannot_be_started_leaves_the_signals_alone() -> None:
    with (
        pytest.raises(RepetitionError, match="cannot be started: No such file"),
        processes.running("none", ["/nonexistent"]),
    ):
        pass
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
