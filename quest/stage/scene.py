"""The programs of a demo while it is played: servers of build/bin, hammer against them, and an end
of all of it.

Only loopback, only programs of the tree. When this process dies, however it dies, the servers are
told to end (prctl(2), PR_SET_PDEATHSIG, by setpriv where it is there).
"""

import contextlib
import json
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from quest.ground.errors import Stopped
from quest.ground.places import text_of
from quest.ground.processes import LISTENING, STOPPING, end_with_parent, readable
from quest.learn.run import free_port
from quest.learn.which.proc import Proc
from quest.stage.demos import MOST_SECONDS, Act, Demo

DOCROOT = Path("code")
PAGE = "README.md"  # of the folder that is served
LOAD_SECONDS = 0.4  # for a point
DISK_LOAD_SECONDS = 0.8  # of the museum disk, which gives some hundred files a second
POOL = 20_000  # files of 100 KiB on it; of the names a run asks for some
DESCRIPTORS_BESIDE = 500  # what a program opens beside the connections of silent clients
END_SECONDS = 6.0  # a server has five seconds for replies in flight
START_SECONDS = 15.0  # until a server listens
SWITCHES = re.compile(r"^voluntary_ctxt_switches:\s+(\d+)", re.M)


class Failed(Exception):
    """A program of the scene is not there, or has ended."""


def heed_signals() -> None:
    """Ctrl-C, a kill, the end of make or of the terminal raise Stopped, once: what runs is ended undisturbed."""
    end_with_parent()
    for number in STOPPING:
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup leaves SIGHUP
            signal.signal(number, _stop)


def _stop(number: int, _frame: object) -> None:
    for again in STOPPING:
        signal.signal(again, lambda *_: None)  # what is started meanwhile would inherit SIG_IGN
    raise Stopped(number)


def allowed(silent: int) -> int:
    """So many silent clients as this process, and a server, may have descriptors for."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard == resource.RLIM_INFINITY:
        return silent
    return min(silent, max(1, hard - DESCRIPTORS_BESIDE))


class Scene:
    """The processes of one demo. Use it as a context: nothing outlives it."""

    def __init__(self, build: Path, docroot: Path) -> None:
        self.bin, self.docroot = build / "bin", docroot
        self.over = threading.Event()
        self.lock = threading.Lock()
        self.processes: list[subprocess.Popen[str]] = []
        self.beside: list[subprocess.Popen[str]] = []  # of them, those that have to run as long as is measured
        self.disks: list[Path] = []

    def __enter__(self) -> "Scene":
        return self

    def start(self, program: str, *words: str) -> subprocess.Popen[str]:
        """Starts a program of build/bin, whose stdout is a pipe. Failed: it is not built, or the
        demo is over.
        """
        path = self.bin / program
        if not path.exists():
            raise Failed(f"{path} is not built (make servers)")
        return self._start(str(path), *words)

    def _start(self, *command: str) -> subprocess.Popen[str]:
        guard = ["setpriv", "--pdeathsig", "TERM", "--"] if shutil.which("setpriv") else []
        with self.lock:
            if self.over.is_set():
                raise Failed("the demo is over")
            process = subprocess.Popen(
                [*guard, *command], text=True, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            self.processes.append(process)
        return process

    def disk(self) -> Path:
        """Mounts a museum disk, which ends with its program; its folder. Failed: none here."""
        folder = Path(tempfile.mkdtemp(prefix="quest-disk-"))
        self.disks.append(folder)
        process = self.start("museum", str(folder), f"files={POOL}x102400")
        if not _first_line(process):
            raise Failed("the museum disk cannot be had here (make doctor)")
        return folder

    def serve(self, server: str, args: Sequence[str], port: int = 0, docroot: Path | None = None) -> str:
        """Starts it, on any free port if `port` is 0; its URL. Failed: it does not listen."""
        process = self.start(server, "-p", str(port), *args, str(docroot or self.docroot))
        listening = LISTENING.search(_first_line(process))
        if not listening:
            raise Failed(f"{server} does not start here (try make run CH={server})")
        return listening["url"]

    def serve_script(self, script: str) -> str:
        """Starts a server in Python, which says nothing, on a free port; its URL. Failed: it does not listen."""
        if not Path(script).exists():
            raise Failed(f"{script} is not here")
        port = free_port("0")
        process = self._start(sys.executable, script, str(port), str(self.docroot))
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and process.poll() is None and not self.over.wait(0.05):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), START_SECONDS):
                return f"http://127.0.0.1:{port}/"
        raise Failed(f"{script} does not listen")

    def hammer(self, *words: str) -> tuple[int, float]:
        """One load: the number of good replies, and the median wait in nanoseconds from when a
        request was due, 0 without one. Failed: hammer prints nothing.
        """
        process = self.start("hammer", *words, "--json")
        try:
            text = process.communicate(timeout=MOST_SECONDS)[0]
        except subprocess.TimeoutExpired:
            raise Failed("hammer does not end") from None
        with self.lock:
            self.processes.remove(process)
        if not text:
            raise Failed("hammer has printed nothing")
        report = json.loads(text)
        waits = report.get("total_from_intended") or {}
        return int(report["good"]), float(waits.get("median") or 0.0)

    def check(self, act: Act) -> None:
        """Failed: its server has ended, or the clients beside it have, so that what is measured now means nothing."""
        if self.server_of(act).poll() is not None:
            raise Failed(f"{act.server} has ended")
        with self.lock:
            if any(process.poll() is not None for process in self.beside):
                raise Failed("the clients beside the measurement have ended")

    def server_of(self, act: Act) -> subprocess.Popen[str]:
        """The server of the act, once it was started."""
        program = act.script or str(self.bin / act.server)
        with self.lock:
            return next(p for p in self.processes if isinstance(p.args, list) and program in p.args)

    @contextlib.contextmanager
    def silent(self, url: str, count: int) -> Iterator[None]:
        """So many clients that connect and send nothing."""
        with self._beside("--idle", str(count), url):
            yield

    @contextlib.contextmanager
    def computing(self, url: str, number: int) -> Iterator[None]:
        """A client that asks for fib(number) again and again."""
        long = str(MOST_SECONDS)
        with self._beside("-s", long, "-t", long, f"{url}fib/{number}"):
            yield

    @contextlib.contextmanager
    def _beside(self, *words: str) -> Iterator[None]:
        process = self.start("hammer", *words)
        with self.lock:
            self.beside.append(process)
        try:
            yield
        finally:
            with self.lock:
                self.beside.remove(process)
            _end(process)

    def close(self) -> None:
        """Ends all, from any thread, and more than once."""
        self.over.set()
        with self.lock:
            for process in self.processes:
                process.terminate()
            for process in self.processes:
                _end(process)
            for folder in self.disks:
                with contextlib.suppress(OSError):
                    folder.rmdir()

    def __exit__(self, *_: object) -> None:
        try:
            self.close()
        except BaseException:  # a signal has come in the middle
            self.close()
            raise


def _first_line(process: subprocess.Popen[str]) -> str:
    """What it prints first; "" if it ends without a line, or has none in START_SECONDS."""
    assert process.stdout is not None
    return process.stdout.readline() if readable(process.stdout.fileno(), START_SECONDS) else ""


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout:
        process.stdout.close()


def slept(pid: int) -> dict[int, int]:
    """Each child of a server -> how often it has slept and was woken, by the kernel's count. {} without /proc."""
    counts = {}
    for child in (child for child, parent in Proc().parents().items() if parent == pid):
        if found := SWITCHES.search(text_of(f"/proc/{child}/status")):
            counts[child] = int(found[1])
    return counts


def share_of_busiest(before: dict[int, int], after: dict[int, int]) -> float | None:
    """Of all that woke between two counts, the part of the busiest worker, in percent; None if none woke."""
    woke = [after[worker] - count for worker, count in before.items() if worker in after]
    return round(100 * max(woke) / sum(woke), 1) if sum(woke) else None


def files_per_s(scene: Scene, url: str, readers: int) -> float:
    """Files a second from the museum disk, read by so many at a time."""
    names = (f"{url}files/{n % 256:03}/{n:06}" for n in random.sample(range(POOL), 500))
    load = ["-c", str(readers), "-w", "0.2", "-s", str(DISK_LOAD_SECONDS), "-t", "5"]
    good, _ = scene.hammer(*load, *names)
    return round(good / DISK_LOAD_SECONDS, 1)


def measured(scene: Scene, demo: Demo, url: str) -> float | None:
    """Pages a second, or the median wait in ms; None: no request was answered."""
    load = ["-r", str(demo.rate), "-s", str(LOAD_SECONDS), "-t", "0.5"]
    good, median_ns = scene.hammer(*load, f"{url}{PAGE}")
    if demo.measure == "rate":
        return round(good / LOAD_SECONDS, 1)
    return round(median_ns / 1e6, 4) if good else None
