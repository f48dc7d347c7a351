"""The limits under which anything that was handed in is built and run: prlimit(1), setpriv(1).

They bound what it uses; what it may do and see is bounded by a cell (cell.py). Where none can be
had it may do what the user may who checks it, or, with root, a user id that nobody else has: that
is good enough for one's own work, and no grade.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import resource
import shlex
import shutil
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Self

from conformance import proc
from grader import cell
from grader.errors import LabError
from grader.lab import Limits

SPARE_USERS = range(61000, 61100)
MIB = 1 << 20
# Has so many processes at once; status 1 if it cannot.
PROBE = """
import os, signal, sys
pids, status = [], 0
try:
    for _ in range(int(sys.argv[1])):
        pids.append(os.fork())
        if pids[-1] == 0:
            signal.pause()
except OSError:
    status = 1
for pid in pids:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
os._exit(status)
"""


def _threads() -> Counter[int]:
    """Of each user: what RLIMIT_NPROC counts already, as far as /proc shows it."""
    count: Counter[int] = Counter()
    for pid in proc.pids():
        with contextlib.suppress(OSError):
            count[os.stat(f"/proc/{pid}").st_uid] += len(os.listdir(f"/proc/{pid}/task"))
    return count


@dataclasses.dataclass(frozen=True)
class SpareUser:
    """A user id without processes, and without another grading that uses it: the name of the socket
    is taken as long as this process runs."""

    id: int
    claim: socket.socket

    @classmethod
    def find(cls) -> Self | None:
        """None if we are not root, or a root who cannot become anybody else."""
        taken = _threads()
        if os.geteuid() != 0:
            return None
        for user in SPARE_USERS:
            claim = socket.socket(socket.AF_UNIX)
            try:
                claim.bind(f"\0lab-user-{user}")
            except OSError:
                claim.close()
                continue
            if user not in taken:
                probe = [*cell.as_user(user), "true"]
                done = subprocess.run(probe, capture_output=True, check=False)
                return cls(user, claim) if done.returncode == 0 else None
        return None


def _reaches(user: int, folder: Path) -> bool:
    probe = [*cell.as_user(user), "test", "-x", str(folder)]
    return subprocess.run(probe, check=False).returncode == 0


@dataclasses.dataclass(frozen=True)
class Confinement:
    limits: Limits
    user: SpareUser | None  #: None: that of the grader
    processes: int  #: RLIMIT_NPROC, with those the user has already
    no_cell: str  #: why there is no cell; "" if there is one

    @property
    def user_id(self) -> int | None:
        return None if self.user is None else self.user.id

    def prlimit(self, limits: Limits) -> list[str]:
        return [
            cell.path_of("prlimit"),
            f"--nproc={self.processes}",
            f"--cpu={limits.cpu_seconds}",
            f"--as={limits.memory_mib * MIB}",
            f"--fsize={limits.file_mib * MIB}",
            "--core=0",
            "--",
        ]

    def command(self, program: list[str], limits: Limits | None = None) -> list[str]:
        """The program within its limits (or others: a compiler needs more)."""
        user = [] if self.user is None else cell.as_user(self.user.id)
        return [*self.prlimit(limits or self.limits), *user, *program]

    def compiler(self, command: list[str], limits: Limits, folder: Path) -> list[str]:
        """A command that reads below the folder, and writes to folder/real."""
        if self.no_cell:
            return self.command(command, limits)
        see = [folder / "hand-in", folder / "code"]
        walls = cell.walls(self.user_id, see, [folder / "real"], compiler=True)
        return [*walls, "--chdir", str(folder), "--", *self.prlimit(limits), *command]

    def script(self, program: Path) -> str:
        """The same as a file that can be started in the program's place. Whoever is not its owner
        is nobody already: some tests see to that themselves. (No `id -u`: a trace counts forks.)"""
        limits = shlex.join(self.prlimit(self.limits))
        user = "" if self.user is None else shlex.join(cell.as_user(self.user.id))
        return (
            "#!/bin/sh\n"
            f'[ -O "$0" ] || exec {limits} {shlex.quote(str(program))} "$@"\n'
            f'exec {limits} {user} {shlex.quote(str(program))} "$@"\n'
        )

    def give(self, path: Path) -> None:
        """Makes a folder the submission's, to write in."""
        if self.user is not None:
            os.chown(path, self.user.id, self.user.id)


def _holds(confinement: Confinement) -> bool:
    """True if a submission can have the processes it is promised: a container's /proc need not show
    all that count."""
    count = str(confinement.limits.processes // 2)
    probe = [sys.executable, "-I", "-S", "-c", PROBE, count]
    done = subprocess.run(
        confinement.command(probe),
        capture_output=True,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        check=False,
    )
    return done.returncode == 0


def confinement(limits: Limits, folder: Path) -> Confinement:
    """The tightest limits that let an honest server work here, in that folder."""
    for tool in ("prlimit", "setpriv"):
        if shutil.which(tool) is None:
            raise LabError(f"{tool} is not installed (Debian: util-linux)")
    user = SpareUser.find()
    mine = os.geteuid() if user is None else user.id
    if user is not None and not _reaches(user.id, folder):
        raise LabError(f"{folder} is closed to other users; another place is TMPDIR=/tmp")
    no_cell = cell.unavailable(None if user is None else user.id)
    if not no_cell:  # its user has no processes but its own
        return Confinement(limits, user, limits.processes, "")
    most = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    spare = limits.processes
    while True:
        count = _threads()[mine] + spare
        if most != resource.RLIM_INFINITY:
            count = min(count, most)
        found = Confinement(limits, user, count, no_cell)
        if _holds(found):
            return found
        if count == most or spare > 100 * limits.processes:
            raise LabError(
                f"there is no room here for {limits.processes // 2} processes (ulimit -u)"
            )
        spare *= 2
