"""Starting a server, looking at it while it runs, and ending it: nothing survives a test."""

import contextlib
import itertools
import os
import re
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import IO, Any

import pytest

from tests.conformance import proc
from tests.conformance.matrix import Model
from tests.conformance.wire import Connection, ConnectionLost, ContractBroken, Reply, request

EXIT_UNSUPPORTED = 77
STOP_GRACE = 5.0  #: seconds the contract leaves to replies in flight
ENOUGH = 1 << 20  #: bytes of what it writes: whoever writes more may never end
KEPT = 2 << 20  #: bytes of the output of a program that is to end by itself
SANITIZER_REPORT = re.compile(r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:")
#: What a server says to root that gives it no -u, as these tests do: no complaint.
AS_ROOT = re.compile(r"^[\w-]+: running as root; .*\n", re.MULTILINE)
INETD = Path(__file__).with_name("inetd.py")
#: If the test run is killed, so are its servers.
DIE_WITH_PARENT = (shutil.which("setpriv") or "setpriv", "--pdeathsig", "KILL")


class Unsupported(Exception):
    """The server says that this system cannot run it (exit status 77), and what is missing."""


class Misbehaved(Exception):
    """Found after the test proper: a leak, a crash, a sanitizer's report. Never an expected
    failure.
    """


@dataclass(frozen=True)
class Patience:
    """How long to wait, in multiples of what this machine takes for a process and a connection.

    limit: for what must happen; reached only by a test that fails. silence: for what must not
    happen; waited for in full by tests that pass, so short.
    """

    factor: float  #: 1 on an idle machine of our days

    @property
    def limit(self) -> float:
        return 10.0 * self.factor

    @property
    def silence(self) -> float:
        return 0.3 * self.factor


def calibrate() -> Patience:
    """Measures fork, exec, exit and a connection, the work of a test, against a machine with
    nothing else to do.
    """
    trips = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        for _ in range(7):
            before = time.monotonic()
            subprocess.run(["true"], check=True, stdin=subprocess.DEVNULL)
            with socket.create_connection(listener.getsockname()), listener.accept()[0]:
                pass
            trips.append(time.monotonic() - before)
    median = sorted(trips)[len(trips) // 2]
    return Patience(min(20.0, max(1.0, median / 0.006)))


def wait_until(true: Callable[[], bool], limit: float) -> bool:
    """Looks again, first soon and then less often, until it is true or the time is up."""
    deadline = time.monotonic() + limit
    pause = 0.001
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
        pause = min(0.05, pause * 1.5)
    return True


@contextlib.contextmanager
def meanwhile(*acts: Callable[[], object]) -> Iterator[None]:
    """Does each again and again, in a thread of its own, until the block is over."""
    done = threading.Event()

    def repeat(act: Callable[[], object]) -> None:
        while not done.is_set():
            act()

    with ThreadPoolExecutor(len(acts)) as pool:
        running = [pool.submit(repeat, act) for act in acts]
        try:
            yield
        finally:
            done.set()
    for one in running:
        one.result()


@dataclass(frozen=True)
class Target:
    """One program in one build variant."""

    model: Model
    variant: str
    binary: Path
    in_cell: bool = False  #: nsenter(1) starts it in other namespaces, and waits for it

    def __str__(self) -> str:
        return f"{self.model.slug}-{self.variant}"

    @property
    def name(self) -> str:
        return self.model.slug

    @property
    def spare_threads(self) -> int:
        """ThreadSanitizer and dietlibc start one of their own, with the first of the program."""
        return int(self.model.threaded and self.variant in ("tsan", "diet"))


@dataclass
class Launch:
    """How to start a server."""

    docroot: Path | None
    options: Sequence[str] = ()
    cwd: Path | None = None
    address: str = "127.0.0.1"
    port: int = 0
    backlog: int | None = None
    wrapper: Sequence[str] = ()  #: put before everything: strace, a shell that sets a limit
    as_user: Sequence[str] = ()  #: put before the program: setpriv
    env: dict[str, str] = field(default_factory=dict)

    def command(self, target: Target) -> list[str]:
        program = [*self.as_user, str(target.binary), *target.model.options, *self.options]
        docroot = [] if self.docroot is None else [str(self.docroot)]
        if target.model.under_inetd:
            backlog = str(self.backlog or 1024)
            inetd = [sys.executable, "-I", "-S", str(INETD), self.address, str(self.port), backlog]
            return [*self.wrapper, *inetd, *program, *docroot]
        program += ["-a", self.address, "-p", str(self.port)]
        if self.backlog is not None:
            program += ["-b", str(self.backlog)]
        return [*self.wrapper, *program, *docroot]


@dataclass(frozen=True)
class Holdings:
    """What a server owns between two requests; equal before and after a test."""

    descriptors: int  #: of all its processes, those in the table of a ring too
    children: int
    threads: int  #: of its first process, or of all if they are its threads


def environment(**more: str) -> dict[str, str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith("LD_")}
    env.update(
        ASAN_OPTIONS="detect_leaks=1:abort_on_error=0:exitcode=99:quarantine_size_mb=16",
        UBSAN_OPTIONS="print_stacktrace=1",
        TSAN_OPTIONS="exitcode=99",
        LC_ALL="C",
    )
    return env | more


def written(file: IO[bytes]) -> str:
    """Not by seek() and read(): who writes to it does so with the same offset."""
    return os.pread(file.fileno(), ENOUGH, 0).decode(errors="replace")


def run_bounded(
    command: Sequence[str | Path], limit: float, stdout: int = subprocess.PIPE, **more: Any
) -> subprocess.CompletedProcess[bytes]:
    """As subprocess.run() with both outputs captured, but of each no more than KEPT bytes: what comes behind them is
    read and dropped, since a program may write without an end. TimeoutExpired after `limit` seconds.
    """
    deadline = time.monotonic() + limit
    with (
        subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE, **more) as process,
        selectors.DefaultSelector() as ready,
    ):
        said = {pipe: bytearray() for pipe in (process.stdout, process.stderr) if pipe is not None}
        for pipe, kept in said.items():
            ready.register(pipe, selectors.EVENT_READ, kept)
        try:
            while ready.get_map():
                if time.monotonic() > deadline:
                    raise subprocess.TimeoutExpired(command, limit)
                for key, _ in ready.select(max(0.0, deadline - time.monotonic())):
                    data = os.read(key.fd, 1 << 16)
                    key.data.extend(data[: KEPT - len(key.data)])
                    if not data:
                        ready.unregister(key.fileobj)
            process.wait(max(0.1, deadline - time.monotonic()))
        except BaseException:
            process.kill()
            raise
    out, errors = (b"" if pipe is None else bytes(said[pipe]) for pipe in (process.stdout, process.stderr))
    return subprocess.CompletedProcess(command, process.returncode, out, errors)


class Server:
    """A running server. The address is where it listens, the pid that of its first process."""

    def __init__(self, target: Target, launch: Launch, patience: Patience) -> None:
        self.target = target
        self.launch = launch
        self.patience = patience
        self.connections: list[Connection] = []
        self.stopped: int | None = None
        self.ends_with = 0  #: another status where a test ends it by other means
        self._stdout: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._stderr_text = ""  #: once the file is closed
        self.process = subprocess.Popen(
            [*DIE_WITH_PARENT, *launch.command(target)],
            stdin=subprocess.DEVNULL,
            stdout=self._stdout,
            stderr=self._stderr,
            env=environment(**launch.env),
            cwd=launch.cwd,
            start_new_session=True,
        )
        self._started = proc.start_time(self.process.pid)
        self._nobody_left = False
        self.pid = self.process.pid
        try:
            self.line = self._first_line()
            self.address = self._address()
            if target.in_cell:
                inside = proc.children(self.process.pid)
                if len(inside) != 1:
                    raise Misbehaved(f"{target}: its first process ended when it had said that it listens")
                self.pid = inside[0]
            self._await_workers()
            self.base = self.holdings()
        except BaseException:
            self.release()
            raise

    def _await_workers(self) -> None:
        """Those that are there before any connection; or as many as a limit lets be there."""
        model = self.target.model
        if not model.workers or model.workers_first:
            return
        given = {"-w": model.workers, "-r": model.threads_of_worker}
        for option, value in itertools.pairwise(self.launch.options):
            if option in given:
                given[option] = int(value)

        def there() -> bool:
            found = self.holdings()
            workers = found.threads - 1 if model.threaded else found.children
            # what a worker opens it opens before it starts its threads
            all_threads = given["-r"] + model.looks_up_by
            ready = all(proc.threads(pid) > all_threads for pid in self.serving())
            return workers >= given["-w"] and ready

        wait_until(there, self.patience.limit)

    def _first_line(self) -> str:
        wait_until(lambda: "\n" in written(self._stdout) or not self.alive(), self.patience.limit)
        line, end, _ = written(self._stdout).partition("\n")
        if self.process.poll() == EXIT_UNSUPPORTED:
            raise Unsupported(self.stderr().strip())
        if not end:
            raise Misbehaved(f"{self.target}: no listening line: {line[:80]!r}\n{self.stderr()}")
        return line + end

    def _address(self) -> tuple[str, int]:
        name = "inetd" if self.target.model.under_inetd else self.target.binary.name
        address = r"(\[[^]]+\]|[^:/]+):([0-9]+)"
        match = re.fullmatch(rf"{re.escape(name)}: listening on http://{address}/\n", self.line)
        if match is None:
            raise ContractBroken(f"not the listening line of {name}: {self.line!r}")
        return match[1].strip("[]"), int(match[2])

    # ---- talking to it

    def connect(self, *, receive_buffer: int | None = None, limit: float = 0.0) -> Connection:
        limit = limit or self.patience.limit
        self.connections.append(Connection(self.address, limit, receive_buffer=receive_buffer))
        return self.connections[-1]

    def crowd(self, number: int, data: bytes = b"", **more: Any) -> list[Connection]:
        """So many connections; when all are there, this is sent on each."""
        clients = [self.connect(**more) for _ in range(number)]
        for c in clients:
            c.send(data)
        return clients

    def ask(self, data: bytes, method: str = "GET") -> Reply:
        """One request on a connection of its own, and its reply."""
        with self.connect() as c:
            return c.ask(data, method)

    def get(self, target: str, *fields: str, method: str = "GET") -> Reply:
        return self.ask(request(target, *fields, "Connection: close", method=method), method)

    def serves(self) -> bool:
        """True if it answers as it should: the question after every attack."""
        return self.get("/hello.txt").status == 200

    def download(self, path: str = "/big.bin", *fields: str, window: int = 4096) -> Connection:
        """A reply in flight, at the end of its head: a file that the buffers do not hold."""
        c = self.connect(receive_buffer=window)
        c.send(request(path, *fields))
        if (head := c.read_head()).status not in (200, 206):
            raise ContractBroken(f"{path}: {head.status}")
        return c

    # ---- looking at it

    def children(self) -> list[int]:
        """Of a server with a master, the workers: some may be the children of a successor of it."""
        found = proc.children(self.pid)
        if not self.target.model.master:
            return found
        return [pid for child in found for pid in proc.children(child) or [child]]

    def processes(self) -> list[int]:
        return [self.pid, *self.children()]

    def session(self) -> list[int]:
        """All that it has started, orphans too."""
        found = proc.session(self.process.pid)
        return [pid for pid in found if not self.target.in_cell or pid != self.process.pid]

    def serving(self) -> list[int]:
        """Those who talk to clients: the workers, where the first process does not."""
        return self.children() if self.target.model.master else [self.pid]

    def descriptors(self, pid: int) -> dict[int, str]:
        """Without the files that it keeps open on purpose."""
        found = proc.descriptors(pid)
        if not self.target.model.keeps_files or self.launch.docroot is None:
            return found
        below = f"{self.launch.docroot.resolve()}/"
        return {fd: what for fd, what in found.items() if not what.startswith(below)}

    def holdings(self) -> Holdings:
        if self.target.model.threaded:
            # dietlibc's threads are processes with memory and descriptors in common
            threads = sum(proc.threads(pid) for pid in self.session())
            return Holdings(len(proc.descriptors(self.pid)), 0, threads)
        pids = self.processes()
        descriptors = sum(len(self.descriptors(pid)) for pid in pids)
        if self.target.model.ring:
            descriptors += proc.direct_descriptors(self.pid)
        return Holdings(descriptors, len(pids) - 1, proc.threads_of_kernel(self.pid)[0])

    def memory_kib(self) -> int:
        return sum(proc.memory_kib(pid) for pid in self.processes())

    def stderr(self, *, whole: bool = False) -> str:
        text = self._stderr_text if self._stderr.closed else written(self._stderr)
        return text if whole else AS_ROOT.sub("", text)

    def alive(self) -> bool:
        return self.process.poll() is None

    def listens(self) -> bool:
        """False while no worker has its socket: then that is shut (15-slashdot)."""
        try:
            with self.connect():
                return True
        except ConnectionRefusedError:
            return False

    def is_back_with(self, workers: int) -> None:
        """So many are there again; what they own is what the server was started with."""
        assert wait_until(lambda: len(self.children()) == workers, self.patience.limit)
        self._await_workers()
        self.begins_anew()

    def begins_anew(self) -> None:
        """What is owned once all threads have been started is what it was started with."""

        def calm() -> bool:
            before, self.base = self.base, self.holdings()
            return self.base == before

        time.sleep(self.patience.silence)
        assert wait_until(calm, self.patience.limit)

    def rests(self) -> bool:
        """True once no call of it is under way but a wait, and stays so for ten looks."""
        looks: deque[bool] = deque(maxlen=10)

        def long_enough() -> bool:
            looks.append(all(proc.asleep(pid) for pid in self.serving()))
            return len(looks) == 10 and all(looks)

        return wait_until(long_enough, self.patience.limit)

    def settles(self) -> bool:
        """True once it owns no more than when it was started."""

        spare = (0, 0, self.target.spare_threads)

        def at_rest() -> bool:
            rows = zip(astuple(self.holdings()), astuple(self.base), spare, strict=True)
            return not self.alive() or all(now <= base + more for now, base, more in rows)

        return wait_until(at_rest, self.patience.limit)

    # ---- ending it

    def signal(self, signum: int) -> None:
        os.kill(self.pid, signum)

    def signal_group(self, signum: int) -> None:
        """As a terminal does; not to nsenter, which is of the group of a server in a cell."""
        if not self.target.in_cell:
            os.killpg(self.pid, signum)
        for pid in self.session() if self.target.in_cell else []:
            proc.send(pid, signum)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """While it is stopped, whatever happens happens at once. (Under a tracer nothing tells that
        the signal has come.)
        """
        pids = self.processes()
        for pid in pids:
            proc.send(pid, signal.SIGSTOP)
        try:
            traced = any(Path(word).name == "strace" for word in self.launch.wrapper)
            if not wait_until(lambda: traced or all(map(proc.stopped, pids)), self.patience.limit):
                raise Misbehaved(f"{self.target} cannot be stopped")
            yield
        finally:
            for pid in pids:
                proc.send(pid, signal.SIGCONT)

    def finishes(self, c: Connection, left: int, signalled: float, drips: bool = False) -> bytes:
        """So many bytes, the rest of the reply in flight of a server that was told to stop at `signalled`. drips: for
        each piece the client sends a byte that nobody asked for.

        A reply that takes longer than the contract's 5 s may be cut. Where bytes have come all the time the machine was
        too busy: nothing can be said, and the test is skipped. A cut before is the server's fault; so is one after it
        has sent nothing for half of them.
        """
        body, moment, pause = bytearray(), time.monotonic(), 0.0
        try:
            while len(body) < left:
                body += c.read_exactly(min(65_536, left - len(body)))
                if drips and not c.try_send(b"x"):
                    c.ended = None  # gone; what was acknowledged is here, and can be read
                moment, pause = time.monotonic(), max(pause, time.monotonic() - moment)
        except ConnectionLost:
            now = time.monotonic()
            if now - signalled < STOP_GRACE or max(pause, now - moment) > STOP_GRACE / 2:
                raise
            self.wait()
            pytest.skip(f"too busy a machine: {left} bytes in {STOP_GRACE:.0f} s, of which {len(body)} have come")
        return bytes(body)

    def wait(self, limit: float | None = None) -> int:
        """Its exit status, or a broken contract if it goes on."""
        limit = STOP_GRACE + self.patience.limit if limit is None else limit
        if self.target.in_cell:  # nsenter stops with it, and is to see its end
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGCONT)
        try:
            self.stopped = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            raise ContractBroken(f"{self.target} still runs {limit:.1f} s later") from None
        return self.stopped

    def finish(self) -> None:
        """After every test: still there, nothing leaked, ends when told to, leaves nobody."""
        for connection in self.connections:
            connection.close()
        if self.stopped is None:
            if self.process.poll() is not None:
                raise Misbehaved(f"{self.target} ended with {self.process.returncode}")
            if not self.settles():
                names = proc.descriptors(self.pid)
                raise Misbehaved(f"{self.target} had {self.base}, has {self.holdings()}: {names}")
            self.signal(signal.SIGTERM)
            try:
                self.wait()
            except ContractBroken as error:
                raise Misbehaved(str(error)) from None
        if self.stopped != self.ends_with:
            raise Misbehaved(f"{self.target} ended with {self.stopped}\n{self.stderr()}")
        if SANITIZER_REPORT.search(self.stderr()):
            raise Misbehaved(f"{self.target}: a sanitizer's report\n{self.stderr()}")
        if not wait_until(lambda: not self.session(), self.patience.limit):
            raise Misbehaved(f"{self.target} left processes behind: {self.session()}")
        if text := written(self._stdout)[len(self.line) :]:
            raise Misbehaved(f"{self.target}: more than its line on stdout: {text!r}")
        self._nobody_left = True

    def release(self) -> None:
        """Ends what is left of it: by number, and nobody who has got the number since."""
        if not self._nobody_left and proc.start_time(self.process.pid) in ("", self._started):
            for member in proc.session(self.process.pid):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(member, signal.SIGKILL)
        self._stdout.close()
        self._stderr_text = self.stderr(whole=True)
        self._stderr.close()


@contextlib.contextmanager
def limited(server: Server, what: str, soft: int) -> Iterator[None]:
    """A soft limit ("nofile") of the running server, put back afterwards. As its user: root without
    all of its capabilities may not change the limits of others.
    """
    pid = server.serving()[0]
    owner = os.stat(f"/proc/{pid}").st_uid
    prlimit = [*become(owner), "/usr/bin/prlimit", "--pid", str(pid)]
    show = [*prlimit, f"--{what}", "--noheadings", "--raw", "--output", "SOFT"]
    old = subprocess.run(show, check=True, capture_output=True, text=True).stdout.strip()
    subprocess.run([*prlimit, f"--{what}={soft}:"], check=True)
    try:
        yield
    finally:
        subprocess.run([*prlimit, f"--{what}={old}:"], check=True)


def become(user: int) -> list[str]:
    """The prefix that makes root another user."""
    if os.geteuid() != 0 or user == 0:
        return []
    ids = ["--reuid", str(user), "--regid", str(user), "--clear-groups"]
    return [*DIE_WITH_PARENT, *ids]


class Unprivileged:
    """How to run a program as a user whom file modes and process limits bind, which they do not for
    root. One that is in a cell is such a user already.
    """

    def __init__(self, folder: Path, in_cell: bool) -> None:
        self._folder = folder
        self._already = in_cell or os.geteuid() != 0

    @property
    def prefix(self) -> list[str]:
        return [] if self._already else become(65534)

    def unavailable(self) -> str | None:
        probe = shlex.join([*self.prefix, "test", "-x", str(self._folder)])
        status, said = subprocess.getstatusoutput(probe)
        reason = f"root cannot become another user who reaches {self._folder}: {said}"
        return reason if status != 0 else None

    def reachable(self, binary: Path) -> Path:
        """The program where that user can start it: the tree may lie below a folder that is closed
        to others.
        """
        if self._already:
            return binary
        copy = self._folder / binary.parent.name / binary.name
        if not copy.exists():
            copy.parent.mkdir(mode=0o755, exist_ok=True)
            shutil.copyfile(binary, copy)
            copy.chmod(0o755)
        return copy

    def command(self, binary: Path) -> list[str]:
        return [*self.prefix, str(self.reachable(binary))]
