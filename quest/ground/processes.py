"""Starting, pinning, waiting for and ending programs, and what they have used.

Each program gets a session of its own: Ctrl-C reaches only the harness, and the processes that the
program has started can be found again. All of them are ended by process id when the block that
started the program is left, also by an error. If the harness itself is killed, the kernel ends the
programs (PR_SET_PDEATHSIG), and the guard the processes that they have started.
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

from quest.ground import guard, runqueue
from quest.ground.errors import RepetitionError, Stopped, Unsupported
from quest.ground.foreign import anonymous
from quest.ground.guard import end_session
from quest.ground.places import Answer
from quest.ground.runqueue import NOT_KNOWN, Waited

PRCTL = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)  # looked up before any fork
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
EXIT_UNSUPPORTED = 77  # of a program that this system cannot run
LISTENING = re.compile(r": listening on (?P<url>http://\S+:(?P<port>\d+)/)\s*$")  # a server's first line
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


def signal_name(number: int) -> str:
    """As SIGTERM; SIGRTMIN+1 of a real-time signal, for which Python has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIGRTMIN{number - signal.SIGRTMIN:+d}"


def become_subreaper() -> None:
    """Orphans of the programs we start become our children: they can be found, ended and reaped."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def end_with_parent() -> None:
    """SIGTERM comes when the parent dies. (When make is stopped it ends its shell, but the shell
    does not pass that on to us.)
    """
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
        """Seconds of processor time, of both modes."""
        return self.user_s + self.system_s

    @staticmethod
    def from_rusage(ru: "resource.struct_rusage") -> "Usage":
        """Of what wait4() gives."""
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
        """The sums of both; of the resident sizes the larger."""
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
    waited_before_ns: int | None = None  # in the run queue, before `started`
    waited: Waited = NOT_KNOWN

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def status(self) -> int | None:
        """With which it ended, -N if signal N ended it; None while it runs."""
        return self.popen.returncode

    def output(self) -> str:
        """All that it has printed on stdout; bytes that are not UTF-8 are replaced."""
        self.stdout.seek(0)
        return self.stdout.read().decode("utf-8", "replace")

    def last_words(self) -> str:
        """The last line on stderr, without paths and names of this machine; at most 300
        characters; "" if there is none.
        """
        self.stderr.seek(0)
        lines = self.stderr.read().decode("utf-8", "replace").strip().splitlines()
        return anonymous(lines[-1].strip())[:300] if lines else ""

    def describe_end(self) -> str:
        """How it ended, as "01-iterative ended with status 1: bind: Address in use"."""
        status = self.popen.returncode
        if status is not None and status < 0:
            how = f"was ended by {signal_name(-status)}"
        else:
            how = f"ended with status {status}"
        words = self.last_words()
        return f"{self.name} {how}" + (f": {words}" if words else "")

    def raise_if_unsupported(self) -> None:
        """Unsupported, if its status says that it cannot run on this system."""
        if self.status == EXIT_UNSUPPORTED:
            raise Unsupported(self.last_words() or f"{self.name} cannot run here")

    def reap(self, timeout: float | None, tick: Tick = _nothing) -> bool:
        """Waits until it has ended, at most `timeout` seconds (None: for ever), and sets `usage`,
        `waited` and `wall_s`. False if it still runs. `tick` is called every two seconds meanwhile.
        """
        if self.usage is not None:
            return True
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        while not _ends_within(self.pid, max(0.0, min(SLICE, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                return False
            tick()
        wall_s = time.monotonic() - self.started
        self.waited = runqueue.of_ended(self.pid, self.waited_before_ns)
        _, status, ru = os.wait4(self.pid, 0)
        self.wall_s = wall_s
        self.popen.returncode = os.waitstatus_to_exitcode(status)
        self.usage = Usage.from_rusage(ru)
        return True

    def kill(self) -> None:
        """Ends it and all that it has started, at once, and waits for them."""
        if self.usage is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self.reap(None)
        end_session(self.pid)
        guard.release(self.pid)

    def close(self) -> None:
        """Kills it, if it still runs, and closes its output."""
        self.kill()
        self.stdout.close()
        self.stderr.close()


def readable(descriptor: int, seconds: float) -> bool:
    """Whether there is something to read, or an end, within so many seconds. Not by select(): it takes no descriptor
    above 1023, and a parent may have left us more than that open.
    """
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def _ends_within(pid: int, seconds: float) -> bool:
    """Whether a child has ended within so many seconds. It is not reaped."""
    try:
        fd = os.pidfd_open(pid)
    except (AttributeError, OSError):  # not every system has that
        time.sleep(min(seconds, 0.01))
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    try:
        return readable(fd, seconds)
    finally:
        os.close(fd)


def _prepare(cpus: frozenset[int], groups: Iterable[Path]) -> Callable[[], None]:
    """What the child does between fork and exec: pins itself, joins its control groups."""
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


def _stop(number: int, _frame: object) -> None:
    # From now on nothing may disturb the ending of what runs: make and the end of a terminal send a second signal.
    for again in STOPPING:
        signal.signal(again, signal.SIG_IGN)
    raise Stopped(number)


@contextlib.contextmanager
def signals_raise() -> Iterator[None]:
    """What would end this process raises Stopped while the block runs, once. What nohup(1) ignores stays ignored."""
    heeded = [number for number in STOPPING if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, _stop) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _signals_put_off() -> Iterator[None]:
    """Delays Ctrl-C and its like until a program that is being started is known, and can be ended.

    A handler notes the signal; blocking it would only send it to another thread, if there is one.
    A signal that is ignored, or has no handler, is left so for the program.
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
    """Runs a program inside a `with` block, and ends it where the block ends. RepetitionError if it
    cannot be started.

    `name` is used in messages. `cpus`: processors it is pinned to; none: it is not. Its output goes
    to files, or with `pipe` stdout goes to a pipe, for a server's first line. With `feed` stdin is
    a pipe too. `folder`: where it starts. `groups`: files by which it joins control groups.
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
            process.waited_before_ns = runqueue.waited_ns(popen.pid)
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
    """Runs a program to its end; the process, and what it has printed on stdout.

    RepetitionError if it runs longer than `timeout` seconds or fails; with `may_fail`, a failure
    counts only if it has printed nothing. Unsupported if it says that it cannot run here.
    """
    with running(name, command, cpus) as process:
        return process, output_of(process, timeout, tick, may_fail)


def output_of(process: Process, timeout: float, tick: Tick, may_fail: bool = False) -> str:
    """What a running program prints on stdout until it ends; errors as in run()."""
    if not process.reap(timeout, tick):
        raise RepetitionError(f"{process.name} did not end within {timeout:g} s")
    process.raise_if_unsupported()
    output = process.output()
    if process.status != 0 and not (may_fail and output):
        raise RepetitionError(process.describe_end())
    return output


def ends_well(command: Sequence[str], timeout: float = 60.0) -> Answer:
    """Whether a program ends with status 0 within `timeout` seconds; if not, the first line that it
    has printed. It has a session of its own: Ctrl-C must not end a program that cleans up.
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
    lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip(" =")]
    reason = lines[0] if lines else f"status {done.returncode}"
    return Answer(False, re.sub(r"^==\d+==", "", anonymous(reason)))


def read_line(process: Process, patience: float = START_PATIENCE) -> str:
    """The first line that a program prints, within `patience` seconds. RepetitionError if it ends
    or stays silent; Unsupported if it says, by its status, that it cannot run here.
    """
    fd = process.stdout.fileno()
    deadline = time.monotonic() + patience
    data = b""
    while b"\n" not in data:
        left = deadline - time.monotonic()
        if left <= 0 or not readable(fd, left):
            raise RepetitionError(f"{process.name} did not report within {patience:g} s")
        chunk = os.read(fd, 4096)
        if not chunk:
            process.reap(1.0)
            process.raise_if_unsupported()
            raise RepetitionError(process.describe_end())
        data += chunk
    return data.partition(b"\n")[0].decode("utf-8", "replace")


def rest_of_output(process: Process) -> str:
    """What is left in the pipe of a program that has ended."""
    fd = process.stdout.fileno()
    os.set_blocking(fd, False)  # a process that it has started may have the other end
    data = b""
    with contextlib.suppress(BlockingIOError):
        while chunk := os.read(fd, 65536):
            data += chunk
    return data.decode("utf-8", "replace")


def listening_port(process: Process, patience: float = START_PATIENCE) -> int:
    """The port in a server's first line. RepetitionError if there is none; errors as in
    read_line().
    """
    line = read_line(process, patience)
    match = LISTENING.search(line)
    if not match:
        raise RepetitionError(f'{process.name}: no listening line, but "{line[:80]}"')
    return int(match["port"])


def stop(
    process: Process,
    stop_signal: signal.Signals = signal.SIGTERM,
    patience: float = 0.0,
) -> Usage:
    """Asks a program to end, by a signal, and gives what it and its children have used.
    RepetitionError if it does not end within `patience` seconds (0: as long as a server may take).
    """
    patience = patience or STOP_PATIENCE
    if process.usage is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, stop_signal)
    if not process.reap(patience):
        process.kill()
        raise RepetitionError(f"{process.name} did not end within {patience:g} s of {stop_signal.name}")
    # What it has started and not waited for is ours now (become_subreaper): a parent of workers, or
    # one with a helper, may end before them. Their work counts too; they get a second to end, and
    # then are killed.
    assert process.usage is not None
    for used in end_session(process.pid, REST_PATIENCE):
        process.usage = process.usage.plus(Usage.from_rusage(used))
    return process.usage
