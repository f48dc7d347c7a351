"""Starting, pinning, waiting for and ending programs, and what they have used.

Each program gets a session of its own, so that Ctrl-C reaches the harness alone and whatever the
program has started can be found again. All of it is ended by process id when the block that
started it is left, in whatever way; if the harness itself is killed, the kernel ends the programs
(PR_SET_PDEATHSIG), and the guard whatever they have started.
"""

import contextlib
import ctypes
import math
import os
import re
import resource
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import IO

from quest.ground import guard
from quest.ground.errors import RepetitionError, Unsupported
from quest.ground.foreign import anonymous
from quest.ground.guard import end_session
from quest.ground.places import Answer

PRCTL = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)  # looked up before any fork
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
EXIT_UNSUPPORTED = 77  # of a program that this system cannot run
LISTENING = re.compile(r": listening on http://\S+:(\d+)/\s*$")
START_PATIENCE = 15.0
STOP_PATIENCE = 8.0  # the contract gives a server 5 s to finish its replies
REST_PATIENCE = 1.0  # for what it has started and not waited for
SLICE = 2.0  # how often a waiting harness wakes to report progress
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # what ends a measurement

Tick = Callable[[], None]


def _nothing() -> None:
    pass


def _prctl(option: int, value: int) -> None:
    if PRCTL:
        PRCTL(option, value, 0, 0, 0)


def become_subreaper() -> None:
    """Orphans of the programs we start become our children: they can be found, ended and reaped."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def end_with_parent() -> None:
    """SIGTERM comes when the parent dies: make tells its shell to end, and that tells nobody."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


@dataclass(frozen=True)
class Usage:
    """What a program and its reaped children have used."""

    user_s: float
    system_s: float
    voluntary: int
    involuntary: int
    minor_faults: int
    max_rss_kib: int
    integral_sizes: int = 0  # ru_ixrss, ru_idrss, ru_isrss: Linux leaves them at 0

    @property
    def cpu_s(self) -> float:
        return self.user_s + self.system_s

    @staticmethod
    def of(ru: "resource.struct_rusage") -> "Usage":
        return Usage(
            user_s=ru.ru_utime,
            system_s=ru.ru_stime,
            voluntary=ru.ru_nvcsw,
            involuntary=ru.ru_nivcsw,
            minor_faults=ru.ru_minflt,
            max_rss_kib=ru.ru_maxrss,
            integral_sizes=ru.ru_ixrss + ru.ru_idrss + ru.ru_isrss,
        )

    def plus(self, other: "Usage") -> "Usage":
        together = Usage(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))
        return replace(together, max_rss_kib=max(self.max_rss_kib, other.max_rss_kib))


@dataclass
class Process:
    """A program that runs, or has run once `usage` is there."""

    name: str
    popen: subprocess.Popen[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]
    started: float
    usage: Usage | None = None
    wall_s: float = 0.0

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def status(self) -> int | None:
        return self.popen.returncode

    def output(self) -> str:
        self.stdout.seek(0)
        return self.stdout.read().decode("utf-8", "replace")

    def last_words(self) -> str:
        """The last line on stderr, for a failure record."""
        self.stderr.seek(0)
        lines = self.stderr.read().decode("utf-8", "replace").strip().splitlines()
        return anonymous(lines[-1].strip())[:300] if lines else ""

    def describe_end(self) -> str:
        status = self.popen.returncode
        if status is not None and status < 0:
            how = f"was ended by {signal.Signals(-status).name}"
        else:
            how = f"ended with status {status}"
        words = self.last_words()
        return f"{self.name} {how}" + (f": {words}" if words else "")

    def refuse(self) -> None:
        """Unsupported, where its status says so."""
        if self.status == EXIT_UNSUPPORTED:
            raise Unsupported(self.last_words() or f"{self.name} cannot run here")

    def reap(self, timeout: float | None, tick: Tick = _nothing) -> bool:
        """Waits for the end; False if it has not come in time."""
        if self.usage is not None:
            return True
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        while not _ends_within(self.pid, max(0.0, min(SLICE, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                return False
            tick()
        _, status, ru = os.wait4(self.pid, 0)
        self.wall_s = time.monotonic() - self.started
        self.popen.returncode = os.waitstatus_to_exitcode(status)
        self.usage = Usage.of(ru)
        return True

    def kill(self) -> None:
        """Ends it and all it has started, at once."""
        if self.usage is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self.reap(None)
        end_session(self.pid)
        guard.release(self.pid)

    def close(self) -> None:
        self.kill()
        self.stdout.close()
        self.stderr.close()


def _ends_within(pid: int, seconds: float) -> bool:
    try:
        fd = os.pidfd_open(pid)
    except (AttributeError, OSError):  # not every system has that
        time.sleep(min(seconds, 0.01))
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))
    finally:
        os.close(fd)


def _prepare(cpus: frozenset[int], groups: Iterable[Path]) -> Callable[[], None]:
    parent = os.getpid()

    def in_child() -> None:
        if cpus and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, cpus)
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)  # the harness died before prctl took effect
        for file in groups:
            file.write_text("0", encoding="ascii")  # this process

    return in_child


@contextlib.contextmanager
def _signals_put_off() -> Iterator[None]:
    """Ctrl-C while a program is started would leave one that nobody ends: it comes afterwards.

    By a handler, for a blocked signal goes to another thread if there is one. What is ignored, or
    has no handler, stays so, as the program shall find it.
    """
    noted: list[int] = []
    handlers = {n: handler for n in STOPPING if callable(handler := signal.getsignal(n))}
    for number in handlers:
        signal.signal(number, lambda came, _frame: noted.append(came))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for came in noted:
            os.kill(os.getpid(), came)


@contextlib.contextmanager
def running(
    name: str,
    command: Iterable[str],
    cpus: frozenset[int] = frozenset(),
    pipe: bool = False,
    folder: Path | None = None,
    groups: Iterable[Path] = (),
    feed: bool = False,
) -> Iterator[Process]:
    """Runs a program inside a `with` block, and ends it where the block ends.

    Its output goes to files, or with `pipe` stdout goes to a pipe, for a server's first line. With
    `feed` stdin is a pipe too. `groups`: files by which it joins control groups.
    """
    with (
        tempfile.TemporaryFile() as stdout,
        tempfile.TemporaryFile() as stderr,
        contextlib.ExitStack() as stack,
    ):
        with _signals_put_off():
            try:
                popen = subprocess.Popen(
                    list(command),
                    stdin=subprocess.PIPE if feed else subprocess.DEVNULL,
                    stdout=subprocess.PIPE if pipe else stdout,
                    stderr=stderr,
                    start_new_session=True,
                    cwd=folder,
                    preexec_fn=_prepare(cpus, groups),
                )
            except OSError as error:
                raise RepetitionError(f"{name}: cannot be started: {error.strerror}") from error
            except subprocess.SubprocessError as error:  # what comes before exec, in the child
                raise RepetitionError(f"{name}: cannot be started in its control group") from error
            guard.watch(popen.pid)
            process = Process(name, popen, popen.stdout or stdout, stderr, time.monotonic())
            stack.callback(process.close)
        yield process


def run(
    name: str,
    command: Iterable[str],
    cpus: frozenset[int],
    timeout: float,
    tick: Tick = _nothing,
    may_fail: bool = False,
) -> tuple[Process, str]:
    """Runs a program to its end; its output. RepetitionError if it takes too long or fails; with
    `may_fail` only if it then has printed nothing.
    """
    with running(name, command, cpus) as process:
        return process, output_of(process, timeout, tick, may_fail)


def output_of(process: Process, timeout: float, tick: Tick, may_fail: bool = False) -> str:
    """The same of a program that runs. Unsupported if it says that it cannot run here."""
    if not process.reap(timeout, tick):
        raise RepetitionError(f"{process.name} did not end within {timeout:g} s")
    process.refuse()
    output = process.output()
    if process.status != 0 and not (may_fail and output):
        raise RepetitionError(process.describe_end())
    return output


def ends_well(command: Sequence[str], timeout: float = 60.0) -> Answer:
    """Whether a program ends with 0; else the first that it says. In a session of its own: Ctrl-C
    must not end what cleans up.
    """
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            check=False, timeout=timeout, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        return Answer(False, f"{command[0]}: {error.strerror}")
    except subprocess.SubprocessError as error:
        return Answer(False, str(error))
    if done.returncode == 0:
        return Answer(True)
    said = [line for line in (done.stderr + done.stdout).splitlines() if line.strip(" =")]
    reason = said[0] if said else f"status {done.returncode}"
    return Answer(False, re.sub(r"^==\d+==", "", anonymous(reason)))


def read_line(process: Process, patience: float = START_PATIENCE) -> str:
    """The first line a program prints. RepetitionError if it ends or stays silent; Unsupported if
    it says, by its status, that it cannot run here.
    """
    fd = process.stdout.fileno()
    deadline = time.monotonic() + patience
    data = b""
    while b"\n" not in data:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([fd], [], [], left)[0]:
            raise RepetitionError(f"{process.name} did not report within {patience:g} s")
        chunk = os.read(fd, 4096)
        if not chunk:
            process.reap(1.0)
            process.refuse()
            raise RepetitionError(process.describe_end())
        data += chunk
    return data.partition(b"\n")[0].decode("utf-8", "replace")


def rest_of_output(process: Process) -> str:
    """What a program that has ended has printed into its pipe and nobody has read."""
    fd = process.stdout.fileno()
    os.set_blocking(fd, False)  # somebody it has started may still have the other end
    data = b""
    with contextlib.suppress(BlockingIOError):
        while chunk := os.read(fd, 65536):
            data += chunk
    return data.decode("utf-8", "replace")


def listening_port(process: Process, patience: float = START_PATIENCE) -> int:
    """That of a server's first line."""
    line = read_line(process, patience)
    match = LISTENING.search(line)
    if not match:
        raise RepetitionError(f'{process.name}: no listening line, but "{line[:80]}"')
    return int(match.group(1))


def stop(
    process: Process,
    stop_signal: signal.Signals = signal.SIGTERM,
    patience: float = 0.0,
) -> Usage:
    """Asks a program to end, in its own time; what it has used. RepetitionError if it does not
    within `patience` seconds (0: as long as a server may take).
    """
    patience = patience or STOP_PATIENCE
    if process.usage is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, stop_signal)
    if not process.reap(patience):
        process.kill()
        raise RepetitionError(
            f"{process.name} did not end within {patience:g} s of {stop_signal.name}"
        )
    # What it has started and not waited for is ours now (become_subreaper): a parent of workers, or
    # one with a helper, may end before them. Their work counts too; they get a second to end, and
    # then are killed.
    assert process.usage is not None
    for used in end_session(process.pid, REST_PATIENCE):
        process.usage = process.usage.plus(Usage.of(used))
    return process.usage
