"""What a demo runs: servers of build/bin, hammer against them, and an end of all of it.

Only loopback, only programs of the tree, at most MOST_SILENT silent clients and MOST_SECONDS. When
this process dies, however it dies, the servers are told to end (prctl(2), PR_SET_PDEATHSIG, by
setpriv where it is there).
"""

import contextlib
import json
import random
import re
import resource
import shutil
import subprocess
import tempfile
import threading
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEMOS = Path(__file__).resolve().parents[2] / "slides/demos.toml"
DOCROOT = Path("code")
PAGE = "README.md"  # of the folder that is served
MOST_SILENT, MOST_SECONDS = 10_000, 30
SLICE = 0.4  # seconds of load for a point
DISK_SLICE = 0.8  # of the museum disk, which gives some hundred files a second
POOL = 20_000  # files of 100 KiB on it; of the names a run asks for some
LISTENING = re.compile(r"listening on (http://\S+/)$")

Event = dict[str, Any]
Tell = Callable[[Event], None]


class Failed(Exception):
    """A program of the scene is not there, or has ended."""


@dataclass(frozen=True)
class Act:
    server: str
    end: float
    silent: Sequence[int] = ()
    readers: Sequence[int] = ()  # of a museum disk of its own: so many, from `arrive` on so many
    args: Sequence[str] = ()
    begin: float = 0
    arrive: float = 0
    leave: float = 0
    # What must be seen while the silent clients are there: all are "served", or "nobody" is.
    must: str = "served"


@dataclass(frozen=True)
class Demo:
    number: int  # of make demo N=
    name: str
    acts: Sequence[Act]
    title: str
    measure: str
    y: str
    rate: int = 0
    x: str = "seconds"
    top: float = 0
    # [one, other, 3]: beside the silent clients, or at the last number of readers, the line `one`
    # lies at least three times as high as `other`. [one, 3]: its last point than its first.
    over: Sequence[Any] = ()

    def begin(self) -> Event:
        """The first event: what is to be drawn."""
        return {
            "begin": self.name, "title": self.title, "x": self.x, "y": self.y, "top": self.top,
            "until": max(act.end for act in self.acts), "lines": [act.server for act in self.acts],
            "ticks": sorted({n for act in self.acts for n in act.silent if self.x == "silent"}),
        }  # fmt: skip


def demos() -> list[Demo]:
    table = tomllib.loads(DEMOS.read_text(encoding="utf-8"))
    found = []
    for number, (name, data) in enumerate(table.items(), 1):
        acts = [Act(**act) for act in data.pop("acts")]
        most = max(count for act in acts for count in (*act.silent, *act.readers))
        assert most <= MOST_SILENT and max(act.end for act in acts) <= MOST_SECONDS, name
        found.append(Demo(number, name, acts, **data))
    return found


def allowed(silent: int) -> int:
    """So many of them as this process, and a server, may have descriptors for."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return silent if hard == resource.RLIM_INFINITY else min(silent, max(1, hard - 500))


class Scene:
    """The processes of one demo. Use it as a context: nothing outlives it."""

    def __init__(self, build: Path, docroot: Path) -> None:
        self.bin, self.docroot = build / "bin", docroot
        self.over = threading.Event()
        self.lock = threading.Lock()
        self.processes: list[subprocess.Popen[str]] = []
        self.disks: list[Path] = []

    def __enter__(self) -> "Scene":
        return self

    def start(self, program: str, *words: str) -> subprocess.Popen[str]:
        """Its output is a pipe. Failed: it is not built."""
        path = self.bin / program
        if not path.exists():
            raise Failed(f"{path} is not built (make servers)")
        guard = ["setpriv", "--pdeathsig", "TERM", "--"] if shutil.which("setpriv") else []
        with self.lock:
            if self.over.is_set():
                raise Failed("the demo is over")
            process = subprocess.Popen(
                [*guard, str(path), *words], text=True, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            self.processes.append(process)
        return process

    def disk(self) -> Path:
        """Mounts a museum disk, which ends with its program."""
        folder = Path(tempfile.mkdtemp(prefix="quest-disk-"))
        self.disks.append(folder)
        process = self.start("museum", str(folder), f"files={POOL}x102400")
        assert process.stdout is not None
        if not process.stdout.readline():
            raise Failed("the museum disk cannot be had here (make doctor)")
        return folder

    def serve(
        self, server: str, args: Sequence[str], port: int = 0, docroot: Path | None = None
    ) -> str:
        """Starts it, on any free port; its address."""
        process = self.start(server, "-p", str(port), *args, str(docroot or self.docroot))
        assert process.stdout is not None
        listening = LISTENING.search(process.stdout.readline().rstrip())
        if not listening:
            raise Failed(f"{server} does not start here (try make run CH={server})")
        return listening[1]

    def hammer(self, *words: str) -> dict[str, Any]:
        process = self.start("hammer", *words, "--json")
        text = process.communicate(timeout=MOST_SECONDS)[0]
        with self.lock:
            self.processes.remove(process)
        if not text:
            raise Failed("hammer has said nothing")
        found: dict[str, Any] = json.loads(text)
        return found

    def check(self, server: str) -> None:
        """Failed: a server of this name has ended, so that what is measured now means nothing."""
        with self.lock:
            ended = [str(p.args) for p in self.processes if p.poll() is not None]
        if any(repr(str(self.bin / server)) in words for words in ended):
            raise Failed(f"{server} has ended")

    @contextlib.contextmanager
    def silent(self, url: str, count: int) -> Iterator[None]:
        """So many clients that connect and say nothing."""
        process = self.start("hammer", "--idle", str(count), url)
        try:
            yield
        finally:
            _end(process)

    def close(self, *_: object) -> None:
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

    __exit__ = close


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(6)  # a server has five seconds for replies in flight
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout:
        process.stdout.close()


def files(scene: Scene, url: str, readers: int) -> float:
    """Files a second from the museum disk, read by so many at a time."""
    names = (f"{url}files/{n % 256:03}/{n:06}" for n in random.sample(range(POOL), 500))
    done = scene.hammer("-c", str(readers), "-w", "0.2", "-s", str(DISK_SLICE), "-t", "5", *names)
    return round(float(done["good"]) / DISK_SLICE, 1)


def point(scene: Scene, demo: Demo, url: str) -> float | None:
    """Pages a second, or the median wait in ms; None: nobody was served."""
    load = ["-r", str(demo.rate), "-s", str(SLICE), "-t", "0.5"]
    done = scene.hammer(*load, f"{url}{PAGE}")
    if demo.measure == "rate":
        return round(float(done["good"]) / SLICE, 1)
    if done["good"] == 0:
        return None
    return round(float(done["total_from_intended"]["median"]) / 1e6, 4)
