"""A cell (bubblewrap(1)): where a submission is built and run. It has a user, mounts, processes, an
IPC and a host name of its own, an empty environment, and only the files that are named. A
compiler's cell has no network; a server's has the loopback of its judge.

Limits (prlimit(1)) bound what it uses, and a filter which system calls it may ask for (confine.c).
A server's cell has no place to write to: a file system in memory is bounded in bytes, but not in
the number of its files. Where no cell can be had, the submission may do what the user may who
checks it, or, with root, what a user id without processes may: good enough for one's own work, and
no grade.

The judge stays outside. It starts a program inside with nsenter(1), so that the program is its
child and the cell outlives it: what the program leaves behind can be seen, and ends with the cell.
"""

import contextlib
import fcntl
import functools
import json
import os
import resource
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from quest.labs.errors import CannotJudge
from quest.labs.lab import TREE, Limits
from tests.conformance import proc

TOOLS = ("bwrap", "nsenter", "unshare", "prlimit", "setpriv")
READY_SECONDS = 20.0
SIOCSIFFLAGS, IFF_UP = 0x8914, 1  # netdevice(7)
HOSTS = b"127.0.0.1 localhost\n"
SYSTEM = ("/bin", "/sbin", "/lib", "/lib64")
#: /tmp: what a compiler keeps there, and what lies there to be seen
TEMPORARY_MIB = {True: 128, False: 1}
CONFINE = Path(__file__).with_name("confine.c")
#: Variables that a program in a cell is given: how a sanitizer ends.
PASSED_ON = ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS")
SPARE_USERS = range(61000, 61100)
#: Without a cell the limit of processes is that of a user, who has others that a container's /proc
#: need not show: room for these, and still an end to a bomb.
UNSEEN = 4000
_claims: list[socket.socket] = []


def path_of(tool: str) -> str:
    """The path of a system's program; its name if it is not installed. PATH is not asked: a submission may be in it."""
    return shutil.which(tool, path="/usr/sbin:/usr/bin:/sbin:/bin") or tool


def as_user(user: int | None) -> list[str]:
    """The prefix of a program of this user, or of ours: without capabilities, which bubblewrap does
    not want."""
    how = ["--ambient-caps=-all", "--inh-caps=-all"]
    if user is not None:
        how = [f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs"]
    return [path_of("setpriv"), *how, "--pdeathsig=KILL", "--"]


@dataclass(frozen=True)
class Filter:
    """A filter of system calls: confine.c, compiled."""

    confine: Path  #: the program
    data: Path  #: what bwrap(1) is given
    options: tuple[str, ...]

    @classmethod
    def made_by(cls, confine: Path, uring: bool) -> Self:
        """Runs the program `confine`, which writes its filter beside itself. uring: io_uring is permitted."""
        options = ("-u",) if uring else ()
        data = confine.with_suffix(".filter")
        with data.open("wb") as file:
            subprocess.run([confine, *options], stdout=file, check=True)
        return cls(confine, data, options)


def walls(
    user: int | None, see: Iterable[Path], own: Iterable[Path] = (), compiler: bool = False,
    more: Sequence[str] = (),
) -> list[str]:  # fmt: skip
    """The prefix of a command that runs in a cell which sees the files `see` and may write to
    `own`.

    compiler: with all of /usr and a /tmp to write to, and without a network. more: options of
    bwrap.
    """
    words = [
        *as_user(user), path_of("bwrap"), "--unshare-user", "--unshare-pid", "--unshare-ipc",
        "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent", "--new-session", "--clearenv",
        "--hostname", "lab", "--proc", "/proc", "--dev", "/dev",
        "--size", str(TEMPORARY_MIB[compiler] << 20), "--tmpfs", "/tmp",
    ]  # fmt: skip
    if compiler:
        words += ["--unshare-net", "--ro-bind", "/usr", "/usr", "--setenv", "PATH", os.defpath]
        words += ["--ro-bind-try", "/etc/alternatives", "/etc/alternatives"]
        for folder in filter(os.path.exists, SYSTEM):
            link = os.path.islink(folder)
            words += ["--symlink" if link else "--ro-bind"]
            words += [os.readlink(folder) if link else folder, folder]
    for option, paths in (("--ro-bind", see), ("--bind", own)):
        for path in paths:
            words += [option, str(path), str(path)]
    closed = ("/dev", "/") if compiler else ("/tmp", "/dev", "/")
    return [*words, *more, *(word for place in closed for word in ("--remount-ro", place))]


def judge_in_a_network_of_its_own() -> list[str]:
    """The prefix of a judge's command: the judge and its cells alone share a loopback. Without root
    it becomes the owner of a user namespace, and so of the cells in it."""
    mine = [] if os.geteuid() == 0 else ["--user", "--map-current-user", "--keep-caps"]
    return [path_of("unshare"), *mine, "--net", "--"]


def loopback_up() -> None:
    """Starts the loopback of a new network, which is down at first."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as anything:
        fcntl.ioctl(anything, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))


def try_one(user: int | None) -> None:
    """Does all that a judge does; a RuntimeError or OSError if it is not permitted. A container may
    permit a part of it: then a submission would seem to fail where the machine did."""
    loopback_up()
    true = Path(path_of("true"))
    cell = Cell(user, [true])
    script = ["sh", "-c", cell.script(true, [])]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    cell.end()
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or f"status {done.returncode}")


@functools.cache
def unavailable(user: int | None) -> str:
    """Why no cell can be had here; "" if one can."""
    for tool in TOOLS:
        if shutil.which(path_of(tool)) is None:
            package = "bubblewrap" if tool == "bwrap" else "util-linux"
            return f"{tool} is not installed (Debian: {package})"
    python = [sys.executable, "-E", "-s", "-m", "quest.labs.cell", *([str(user)] if user else [])]
    done = subprocess.run(
        [*judge_in_a_network_of_its_own(), *python], cwd=TREE,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    last = done.stderr.strip().splitlines()[-1:] or [f"status {done.returncode}"]
    return "" if done.returncode == 0 else f"no sandbox here: {last[0]}"


class Cell:
    """A cell that stays until end() is called."""

    def __init__(self, user: int | None, see: Iterable[Path], calls: Filter | None = None) -> None:
        holder = Path(path_of("sleep"))
        # with its libraries, and the loader, which are those of a server, too
        ldd = subprocess.run(["ldd", str(holder)], capture_output=True, text=True, check=False)
        seen = [*see, holder, *(Path(word) for word in ldd.stdout.split() if word[0] == "/")]
        reading, writing = os.pipe()
        hosts, names = os.pipe()
        os.write(names, HOSTS)
        os.close(names)
        options = ["--ro-bind-data", str(hosts), "/etc/hosts", "--info-fd", str(writing)]
        given = [writing, hosts]
        if calls is not None:
            # The first processes of the cell, too: their memory is open to what runs beside them.
            seen.append(calls.confine)
            given.append(os.open(calls.data, os.O_RDONLY))
            options += ["--seccomp", str(given[-1])]
        self.user, self.calls = user, calls
        try:
            self.process = subprocess.Popen(
                [*walls(user, seen, more=options), "--", str(holder), "infinity"],
                pass_fds=given, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        finally:
            for descriptor in given:
                os.close(descriptor)
        with os.fdopen(reading) as info:
            text = info.read()
        #: the pid, outside, of its first process
        self.init = json.loads(text)["child-pid"] if text else 0
        deadline = time.monotonic() + READY_SECONDS
        while not self._ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.end()
                raise RuntimeError("the sandbox did not start")
            time.sleep(0.002)

    def _ready(self) -> bool:
        """Whether its mounts are made: then the holder runs."""
        return any(proc.text(pid, "comm") == "sleep\n" for pid in proc.children(self.init))

    def script(self, program: Path, limits: list[str]) -> str:
        """The text of a shell script that runs the program inside, and ends as it does
        (nsenter)."""
        ids = ["--preserve-credentials"]
        if self.user is not None:
            ids = ["-S", str(self.user), "-G", str(self.user)]
        enter = [path_of("nsenter"), "-t", str(self.init), "-U", "-m", "-p", "-i", "-u", *ids, "--"]
        variables = " ".join(f'{name}="${name}"' for name in PASSED_ON)
        drop = [path_of("setpriv"), "--no-new-privs", "--"]
        confine = [] if self.calls is None else [str(self.calls.confine), *self.calls.options]
        rest = shlex.join([*limits, *drop, *enter, *confine, str(program)])
        return f'#!/bin/sh\nexec {path_of("env")} -i LC_ALL=C {variables} {rest} "$@"\n'

    def end(self) -> None:
        """Kills its first process: while that sets itself up, it does not learn of its parent's
        end."""
        with contextlib.suppress(ProcessLookupError):
            if self.init and self.process.poll() is None:
                os.kill(self.init, signal.SIGKILL)
        self.process.kill()
        self.process.wait()


def _spare_user(folder: Path) -> int | None:
    """A user id without processes, to which that folder is opened. No other grading uses it: the
    name of a socket is taken as long as this process runs. None if we are not root, or a root that
    cannot become another user."""
    in_use = set()
    for pid in proc.pids():
        with contextlib.suppress(OSError):
            in_use.add(os.stat(f"/proc/{pid}").st_uid)
    for user in SPARE_USERS if os.geteuid() == 0 else ():
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0lab-user-{user}")
        except OSError:
            continue
        if user not in in_use:
            _claims.append(claim)
            if not _can(user, "true"):
                return None
            os.chown(folder, -1, user)
            folder.chmod(0o710)
            if not _can(user, "test", "-x", str(folder)):
                raise CannotJudge(f"{folder} is closed to others; choose another place with TMPDIR=/tmp")
            return user
    if os.geteuid() == 0:  # anybody may have taken the names: no submission runs as root for that
        ids = f"{SPARE_USERS.start} to {SPARE_USERS.stop - 1}"
        raise CannotJudge(f'no user id from {ids} is free: in use, or its name "lab-user-ID" is taken')
    return None


def _can(user: int, *command: str) -> bool:
    done = subprocess.run([*as_user(user), *command], capture_output=True, check=False)
    return done.returncode == 0


@dataclass(frozen=True)
class Confinement:
    """As whom a submission runs, and within which limits."""

    limits: Limits
    user: int | None  #: None: that of the grader
    processes: int  #: RLIMIT_NPROC, with those the user has already
    no_cell: str  #: why there is no cell; "" if there is one

    def prlimit(self, limits: Limits) -> list[str]:
        """The prefix of a command that runs within these limits."""
        bytes_of = {"as": limits.memory_mib << 20, "fsize": limits.file_mib << 20}
        most = {"nproc": self.processes, "cpu": limits.cpu_seconds, **bytes_of, "core": 0}
        return [path_of("prlimit"), *(f"--{what}={n}" for what, n in most.items()), "--"]

    def compiler(self, command: list[str], limits: Limits, folder: Path, calls: int | None) -> list[str]:
        """A command that reads below the folder, and writes to folder/real. `calls`: a descriptor
        of the filter."""
        if self.no_cell:
            return [*self.prlimit(limits), *as_user(self.user), *command]
        see = [folder / "hand-in", folder / "code"]
        more = [] if calls is None else ["--seccomp", str(calls)]
        cell = walls(self.user, see, [folder / "real"], compiler=True, more=more)
        return [*cell, "--chdir", str(folder), "--", *self.prlimit(limits), *command]

    def script(self, program: Path) -> str:
        """Without a cell: the text of a shell script that runs the program within its limits, as
        the spare user. Some tests start it as another user themselves, who is not its owner. (No
        `id -u`: a trace counts forks.)"""
        limits = shlex.join(self.prlimit(self.limits))
        run = shlex.quote(str(program)) + ' "$@"'
        user = shlex.join(as_user(self.user))
        return f'#!/bin/sh\n[ -O "$0" ] || exec {limits} {run}\nexec {limits} {user} {run}\n'


def confinement(limits: Limits, folder: Path, no_cell: str = "") -> Confinement:
    """The tightest limits that let an honest server work in that folder. no_cell: why no cell is to
    be tried."""
    user = _spare_user(folder)
    no_cell = no_cell or unavailable(user)
    count = limits.processes + UNSEEN if no_cell else limits.processes
    most = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    count = count if most == resource.RLIM_INFINITY else min(count, most)
    return Confinement(limits, user, count, no_cell)


if __name__ == "__main__":
    try_one(int(sys.argv[1]) if len(sys.argv) > 1 else None)
