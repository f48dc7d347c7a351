"""How programs are started and ended."""

import fcntl
import os
import resource
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from quest.ground import processes
from quest.ground.errors import RepetitionError, Stopped
from quest.ground.processes import Usage


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


@pytest.mark.parametrize(
    ("number", "name"),
    [(signal.SIGINT, "SIGINT"), (signal.SIGRTMIN + 1, "SIGRTMIN+1")],
    ids=["SIGINT", "real-time"],
)
def test_a_program_can_be_ended_as_ever(number: int, name: str) -> None:
    with processes.running("sleep", ["sleep", "60"]) as process:
        os.kill(process.pid, number)
        assert process.reap(5)
        assert process.describe_end() == f"sleep was ended by {name}"


def test_how_a_program_has_ended_and_what_it_has_used_with_its_children() -> None:
    """A daemon's first process ends with 0: that is no signal. Of resident sizes the larger counts."""
    with processes.running("true", ["true"]) as process:
        assert process.reap(5)
        assert process.describe_end() == "true ended with status 0"
    one, other = Usage(1.0, 2.0, 3, 4, 5, 60), Usage(0.5, 0.25, 1, 2, 3, 7)
    assert one.plus(other) == other.plus(one) == Usage(1.5, 2.25, 4, 6, 8, 60)


def test_what_nohup_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with processes.signals_raise():
            found = [signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGTERM)]
        after = signal.getsignal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert found == [signal.SIG_IGN, processes._stop]
    assert after != processes._stop


@pytest.mark.parametrize("number", processes.STOPPING)
def test_a_second_signal_does_not_disturb_the_ending(number: int) -> None:
    """make sends one more, and so does the end of a terminal."""
    before = [signal.getsignal(each) for each in processes.STOPPING]
    done = list[str]()
    with pytest.raises(Stopped) as stopped, processes.signals_raise():
        try:
            processes._stop(number, None)
        finally:
            for again in processes.STOPPING:
                os.kill(os.getpid(), again)
            done.append("ended")
    assert (stopped.value.signal_number, done) == (number, ["ended"])
    assert [signal.getsignal(each) for each in processes.STOPPING] == before


def test_one_that_cannot_be_started_leaves_the_signals_alone() -> None:
    with (
        pytest.raises(RepetitionError, match="cannot be started: No such file"),
        processes.running("none", ["/nonexistent"]),
    ):
        pass
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_descriptor_that_select_does_not_take() -> None:
    """As a process has it whose parent left it a thousand files open."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= limits[1] < 2048:
        pytest.skip("ulimit -Hn allows too few")
    resource.setrlimit(resource.RLIMIT_NOFILE, (2048, limits[1]))
    try:
        with processes.running("echo", ["echo", "hello"], pipe=True) as process:
            high = os.fdopen(fcntl.fcntl(process.stdout.fileno(), fcntl.F_DUPFD_CLOEXEC, 1500), "rb", 0)
            with process.stdout:
                process.stdout = high
            assert processes.read_line(process) == "hello"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
