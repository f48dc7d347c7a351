"""Where a learner's server runs while it is checked: a cell (bubblewrap(1)) with processes and mounts of its own, in
which nothing can be written but a small /tmp and /dev/shm. It sees all of the system, since it may be in any language.

What runs in it is bounded in processes, memory, descriptors, CPU time and length of files, so that a loop that forks
for ever ends. Where no cell can be had the bounds are the same, and the server may do what its learner may. A check is
no grade in either case.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from quest.labs.cell import as_user, path_of
from quest.labs.sandbox import descendants, send
from tests.conformance import proc

MOST_TASKS = 1000  #: processes and threads of a server
MOST_KIB = 1 << 20  #: of memory, of all its processes
CPU_SECONDS = 60
FILE_BYTES = 64 << 20
TMP_BYTES = 64 << 20
END_SECONDS = 10.0
LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
NODES = ("null", "zero", "full", "random", "urandom")
#: In place of bwrap's --dev, which has terminals, too: for these the bwrap of an ordinary user ends in a second user
#: namespace. The others are not owned by that one, and setns(2) refuses them to nsenter.
DEVICES = (
    "--size", "65536", "--tmpfs", "/dev", "--size", str(TMP_BYTES), "--tmpfs", "/dev/shm",
    *(word for name in NODES for word in ("--dev-bind-try", f"/dev/{name}", f"/dev/{name}")),
    *(word for name, to in LINKS.items() for word in ("--symlink", to, f"/dev/{name}")),
)  # fmt: skip


class Box:
    """A cell, if one can be had. It holds the servers of one check after the other."""

    def __init__(self, see: Sequence[Path], folder: Path, no_cell: str = "") -> None:
        """see: folders that may lie below /tmp, and are to be seen all the same. folder: where a server starts.
        no_cell: why no cell is to be tried."""
        self.folder, self.no_cell, self.init = folder, no_cell, 0
        self.started = set[int]()  #: what command() has started, of servers that run beside each other
        self._holder: subprocess.Popen[bytes] | None = None
        if not no_cell:
            try:
                self._hold(see)
            except (OSError, RuntimeError) as error:
                self.no_cell = str(error) or "bubblewrap failed"
                self.end()

    def _hold(self, see: Sequence[Path]) -> None:
        """Makes the cell, with a process that does nothing. RuntimeError if it cannot be had."""
        reading, writing = os.pipe()
        words = [
            *as_user(None), path_of("bwrap"), "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts",
            "--die-with-parent", "--new-session", "--info-fd", str(writing), "--ro-bind", "/", "/", *DEVICES,
            "--proc", "/proc", "--size", str(TMP_BYTES), "--tmpfs", "/tmp",
        ]  # fmt: skip
        for path in see:
            words += ["--ro-bind", str(path), str(path)]
        try:
            self._holder = subprocess.Popen(
                [*words, "--", path_of("sleep"), "infinity"],
                pass_fds=[writing], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
            )  # fmt: skip
        finally:
            os.close(writing)
        with os.fdopen(reading) as info:
            text = info.read()
        self.init = json.loads(text)["child-pid"] if text else 0
        deadline = time.monotonic() + END_SECONDS
        while not any(proc.text(pid, "comm") == "sleep\n" for pid in proc.children(self.init)):
            if self._holder.poll() is not None or time.monotonic() > deadline:
                error = self._holder.stderr.read() if self._holder.stderr and self._holder.poll() is not None else b""
                raise RuntimeError(error.decode(errors="replace").strip() or "the sandbox did not start")
            time.sleep(0.002)
        done = subprocess.run(self.command([path_of("true")], 64), capture_output=True, text=True, check=False)
        if done.returncode != 0:  # not every place that permits a cell lets a program enter it
            raise RuntimeError(done.stderr.strip() or f"nothing can run in the sandbox (status {done.returncode})")

    @property
    def levels(self) -> int:
        """How many processes stand between the one that is started here and the server."""
        return 1 if self.init else 0

    def command(self, words: Sequence[str], files: int) -> list[str]:
        """What starts a program in the cell, with at most so many open files."""
        bounds = {"nofile": files, "cpu": CPU_SECONDS, "fsize": FILE_BYTES, "core": 0}
        limits = [path_of("prlimit"), *(f"--{what}={n}" for what, n in bounds.items()), "--"]
        tied = [*as_user(None)] if self.init else [path_of("setpriv"), "--pdeathsig=KILL", "--"]
        there = [path_of("env"), "-C", str(self.folder)]
        enter = []
        if self.init:
            enter = [path_of("nsenter"), "-t", str(self.init), "-U", "-m", "-p", "-i", "-u"]
            enter += ["--preserve-credentials", "--"]
        return [*tied, *limits, *enter, *there, *words]

    def members(self, started: int, stop: bool = False) -> set[int]:
        """All processes of a server, zombies too, without those that hold it; `started`: the one that command()
        has started. With `stop` each is stopped as it is found."""
        if not self.init:
            within = set(proc.children(os.getpid())) - (self.started - {started})  # orphans, too (become_subreaper())
            if stop:
                send(within, signal.SIGSTOP)
            return descendants(within, set() if stop else None)
        holders = {self.init, self._sleeper()}
        within = {self.init, *proc.children(started)}
        if stop:
            send(within - holders, signal.SIGSTOP)
        return descendants(within, holders if stop else None) - holders

    def _sleeper(self) -> int:
        assert self._holder is not None
        if not hasattr(self, "_asleep"):
            self._asleep = next((p for p in proc.children(self.init) if proc.text(p, "comm") == "sleep\n"), 0)
        return self._asleep

    def clear(self, started: int) -> None:
        """Ends all of a server. After END_SECONDS it goes on as long as they become fewer."""
        deadline, before = time.monotonic() + END_SECONDS, sys.maxsize
        while there := {p for p in self.members(started, stop=True) if proc.alive(p)}:
            if time.monotonic() > deadline and len(there) >= before:
                return
            before = len(there)
            send(there, signal.SIGKILL)
            time.sleep(0.005)
            if not self.init:
                _reap(self.started | {started})

    def end(self) -> None:
        """Ends the cell, and with it all that is in it."""
        with contextlib.suppress(ProcessLookupError):
            if self.init and self._holder is not None and self._holder.poll() is None:
                os.kill(self.init, signal.SIGKILL)
        if self._holder is not None:
            self._holder.kill()
            self._holder.wait()
            if self._holder.stderr:
                self._holder.stderr.close()
        self._holder, self.init = None, 0


def _reap(started: set[int]) -> None:
    """Collects the orphans that have ended; those that were `started` are collected by Popen."""
    for pid in proc.children(os.getpid()):
        if pid not in started:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def excess(pids: set[int]) -> str:
    """Which bound a server has passed, as the end of a sentence; "" if none."""
    tasks = sum(proc.threads(pid) for pid in pids)
    if tasks > MOST_TASKS:
        return f"has more than {MOST_TASKS} processes and threads"
    pages = 0
    for pid in pids:
        fields = proc.text(pid, "statm").split()
        pages += int(fields[1]) - int(fields[2]) if len(fields) > 2 else 0
    if pages * (os.sysconf("SC_PAGE_SIZE") >> 10) > MOST_KIB:
        return f"has taken more than {MOST_KIB >> 10} MiB of memory"
    return ""


def tools_missing() -> str:
    """Which program the cell lacks; "" if none."""
    for tool in ("bwrap", "nsenter", "setpriv", "prlimit", "env"):
        if shutil.which(path_of(tool)) is None:
            return f"{tool} is not installed"
    return "" if sys.platform == "linux" else "this is not Linux"
