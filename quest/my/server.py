"""A learner's server that runs, as it is seen from outside: /proc and nothing else tells what it holds."""

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from quest.ground import foreign
from quest.my.box import Box, excess
from quest.my.client import Client
from quest.my.errors import Failed, Unseen
from tests.conformance import proc

START_SECONDS = 10.0
WATCH_SECONDS = 0.1
SETTLE_SECONDS = 0.2
MOST_LOOKS = 8  #: of load(), before it takes what it has
WORDS = 1 << 16  #: bytes at the end of what it has printed, in which its last line is looked for
LISTEN, ESTABLISHED = "0A", ("01", "08")  #: states in /proc/net/tcp


def _sockets() -> list[list[str]]:
    """The lines of /proc/net/tcp and tcp6, as words."""
    lines: list[list[str]] = []
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            lines += [line.split(None, 5) for line in Path("/proc/self/net", name).read_text().splitlines()[1:]]
    return lines


def listens(port: int) -> bool:
    """Whether a socket is in the state LISTEN on that port: no connection is made to find that out, which a server
    that takes one client at a time would be serving."""
    return any(int(words[1].rpartition(":")[2], 16) == port and words[3] == LISTEN for words in _sockets())


def connections(port: int) -> int:
    """The server's ends of connections on that port, accepted or not."""
    return sum(int(words[1].rpartition(":")[2], 16) == port and words[3] in ESTABLISHED for words in _sockets())


def wait_for(true: Callable[[], bool], seconds: float) -> bool:
    """Looks every 10 ms until it is true, or the time is up."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def ended_by(status: int) -> str:
    """A status of Popen in words."""
    if status > 128:
        status = 128 - status  # as a shell says it
    if status < 0:
        with contextlib.suppress(ValueError):
            return f"signal {-status} ({signal.Signals(-status).name})"
        return f"signal {-status}"
    return f"status {status}"


class Server:
    """with Server(...) as server: it listens; where the block ends, so does all that it has started."""

    def __init__(
        self, box: Box, command: Sequence[str], port: int, patience: float, files: int, trace: Sequence[str] = ()
    ) -> None:
        """trace: strace with its options, before everything."""
        self.box, self.port, self.patience = box, port, patience
        self.levels = box.levels + bool(trace)
        self._words = tempfile.TemporaryFile()  # noqa: SIM115
        self._over, self._excess, self._told_to_end = threading.Event(), "", False
        self.process = subprocess.Popen(
            [*trace, *box.command(command, files)],
            stdin=subprocess.DEVNULL, stdout=self._words, stderr=self._words, start_new_session=True,
        )  # fmt: skip
        box.started.add(self.process.pid)
        self._watch = threading.Thread(target=self._look_on, daemon=True)
        self._watch.start()
        try:
            self._await()
        except BaseException:
            self.end()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """What a client saw of a server that has ended is not the reason; that it has ended is."""
        try:
            if isinstance(error, Failed) and not self._told_to_end and "ended" not in str(error):
                time.sleep(0.05)
                try:
                    self.demand_alive("")
                except Failed as failed:
                    raise Failed(f"{failed}; a client saw this: {error}") from None
        finally:
            self.end()

    def _look_on(self) -> None:
        """Ends a server that takes more than its bounds."""
        while not self._over.wait(WATCH_SECONDS):
            if text := excess(self.members()):
                self._excess = text
                self.box.clear(self.process.pid)
                return

    def _await(self) -> None:
        there = wait_for(lambda: listens(self.port) or self.process.poll() is not None, START_SECONDS * self.patience)
        if self.process.poll() is not None:
            raise Failed(f"your server ended with {ended_by(self.process.returncode)} before it listened{self.says}")
        if not there:
            raise Failed(
                f"connection refused: nothing listens on port {self.port}, which `-p` gave,"
                f" {START_SECONDS:g} s after the start{self.says}"
            )
        wait_for(lambda: bool(self.pid), 1.0)

    @property
    def says(self) -> str:
        """The last line that it has printed, as the end of a sentence."""
        fd = self._words.fileno()
        words = os.pread(fd, WORDS, max(0, os.fstat(fd).st_size - WORDS)).decode(errors="replace").strip().splitlines()
        return f'; it said: "{foreign.line(words[-1].strip())[:160]}"' if words else ""

    @property
    def pid(self) -> int:
        """Of its first process; 0 if that is gone."""
        at = [self.process.pid]
        for _ in range(self.levels):
            at = [child for pid in at[:1] for child in proc.children(pid)]
        return at[0] if at else 0

    def alive(self) -> bool:
        return self.process.poll() is None

    def demand_alive(self, when: str) -> None:
        """Failed if it has ended. when: the end of the sentence."""
        if self._excess:
            raise Failed(f"your server {self._excess}, and was ended{when and f'; {when}'}")
        if not self.alive():
            status = ended_by(self.process.returncode)
            raise Failed(f"your server ended with {status}{when and f' {when}'}{self.says}")

    def client(self, window: int = 0, wait: float = 5.0) -> Client:
        """A new connection to it."""
        return Client(self.port, self.patience, window, wait)

    # ---- what it holds

    def members(self) -> set[int]:
        """All its processes, zombies too."""
        return self.box.members(self.process.pid)

    def processes(self) -> set[int]:
        return {pid for pid in self.members() if proc.alive(pid)}

    def serving(self) -> set[int]:
        """Those that have a socket: not a shell that has started them and waits. Empty where that cannot be seen."""
        with contextlib.suppress(PermissionError):
            return {pid for pid in self.processes() if proc.sockets(pid)}
        return set()

    def zombies(self) -> int:
        """Not those of a parent that has ended: without a cell they become ours, and init would wait for them."""
        states = (proc.stat_fields(pid)[: proc.PARENT + 1] for pid in self.members())
        return sum(state[:1] == ["Z"] and state[1:] != [str(os.getpid())] for state in states)

    def tasks(self) -> set[str]:
        """Processes and threads, by name of their folders in /proc."""
        return {task for pid in self.processes() for task in proc.tasks(pid)}

    def settled(self) -> set[str]:
        """The same, once it has been the same for a while: a busy machine starts a server's workers late."""
        deadline, before = time.monotonic() + SETTLE_SECONDS * 10 * self.patience, set[str]()
        while (now := self.tasks()) != before and time.monotonic() < deadline:
            before = now
            time.sleep(SETTLE_SECONDS * self.patience)
        return now

    def descriptors(self) -> int:
        with contextlib.suppress(PermissionError):
            return sum(len(proc.descriptors(pid)) for pid in self.processes())
        return 0

    def memory_kib(self) -> int:
        """Shared memory counts in parts (PSS)."""
        return sum(proc.memory_kib(pid) for pid in self.processes())

    def own_kib(self) -> int:
        """Memory that is no file's (RssAnon)."""
        total = 0
        for pid in self.processes():
            for line in proc.text(pid, "status").splitlines():
                total += int(line.split()[1]) if line.startswith("RssAnon:") else 0
        return total

    def _times(self) -> tuple[int, int]:
        """Nanoseconds in which its threads that live have run, and in which they wanted to and waited for a CPU. Unseen
        where the kernel counts neither: some are built without, and say 0."""
        ran = waited = 0
        for task in self.tasks():
            words = proc.text(task, "schedstat").split()
            if len(words) > 1:
                ran, waited = ran + int(words[0]), waited + int(words[1])
        if not ran and self.tasks():
            raise Unseen("this kernel does not say how long a thread has run (/proc/PID/schedstat)")
        return ran, waited

    def cpu(self) -> float:
        """Seconds of processor time of its threads that live."""
        return self._times()[0] / 1e9

    def load(self, seconds: float) -> float:
        """Which part of the time in which it was not kept from running it has run: 1.0 is all of it. Looks for so many
        seconds, and longer where a busy machine left it little of them."""
        began, (ran, waited) = time.monotonic(), self._times()
        while True:
            time.sleep(seconds)
            now_ran, now_waited = self._times()
            passed = time.monotonic() - began
            free = passed - (now_waited - waited) / 1e9  # several threads may wait at once: then too little of it
            if free >= seconds / 4 or passed > MOST_LOOKS * seconds:
                return max(0.0, (now_ran - ran) / 1e9 / max(free, seconds / 4))

    def switches(self) -> int:
        """How often its threads went to sleep by themselves."""
        total = 0
        for task in self.tasks():
            for line in proc.text(task, "status").splitlines():
                total += int(line.split()[1]) if line.startswith("voluntary_ctxt") else 0
        return total

    # ---- its end

    def terminate(self) -> None:
        """SIGTERM to its first process."""
        self._told_to_end = True
        with contextlib.suppress(ProcessLookupError):
            if self.pid:
                os.kill(self.pid, signal.SIGTERM)

    def ends_within(self, seconds: float) -> bool:
        return wait_for(lambda: self.process.poll() is not None, seconds)

    def end(self) -> None:
        """Kills all of it."""
        self._over.set()
        self._watch.join()
        self.box.clear(self.process.pid)
        self.process.kill()  # nsenter stops itself when its child is stopped, and would not learn of its end
        self.process.wait()
        self.box.started.discard(self.process.pid)
        self._words.close()
