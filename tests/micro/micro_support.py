"""Runs a micro-benchmark and reads what it prints."""

import contextlib
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import proc
from tests.conformance.process import wait_until

PATIENCE_S = 60.0
SANITIZED = ("asan", "tsan")
UNSUPPORTED = 77
# An id nobody has, another one in each pytest worker: RLIMIT_NPROC counts all processes of a user.
SPARE_USER = 50000 + os.getpid() % 10000

Rows = list[dict[str, Any]]
Before = Callable[[], None] | None  #: what the child does before it is the program


def await_end_of_session(leader: int) -> None:
    """dietlibc's threads end a moment after its main. Where orphans become ours (prctl(2)) nobody else waits for them,
    and a zombie counts for RLIMIT_NPROC of the next test.
    """
    assert wait_until(lambda: not proc.session(leader), PATIENCE_S), proc.session(leader)
    for pid in proc.children(os.getpid()):
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            if pid != leader and os.getsid(pid) == leader:
                os.waitpid(pid, os.WNOHANG)


def limited(what: int, soft: int, hard: int | None = None) -> Before:
    return lambda: resource.setrlimit(what, (soft, soft if hard is None else hard))


def children_ignored() -> None:
    """As some init programs leave it. No child can be waited for then."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def cell(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def table(text: str) -> Rows:
    """The rows by the name of the column: numbers, and what else there is as text."""
    lines = [line.split("\t") for line in text.splitlines()]
    return [dict(zip(lines[0], map(cell, line), strict=True)) for line in lines[1:]]


def one_line(command: str, out: str, err: str) -> str:
    """What stands behind the program's name in the one line that it printed."""
    name = f"{command.split()[0]}: "
    assert (out, err.count("\n"), err[: len(name)]) == ("", 1, name)
    return err[len(name) : -1]


class Micro:
    """The programs of one variant. A command is a name and its arguments; "@" in it is a path where
    nothing is.
    """

    def __init__(self, folder: Path, place: Path) -> None:
        self.folder = folder
        self.variant = folder.name  #: "bin" is glibc, dynamic
        self.at = place / "new"
        ranges = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
        # A rootless container has few ids.
        self.can_be_nobody = os.geteuid() == 0 and any(
            int(first) <= SPARE_USER < int(first) + int(count) for first, _, count in ranges
        )

    def skip_in(self, *variants: str, why: str = "not for this C library") -> None:
        if self.variant in variants:
            pytest.skip(why)

    def start(self, command: str, **more: Any) -> subprocess.Popen[str]:
        """In a session of its own."""
        name, *words = command.split()
        return subprocess.Popen(
            [self.folder / name, *(str(self.at) if word == "@" else word for word in words)],
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            **more,
        )

    def run(self, command: str, before: Before = None, **more: Any) -> tuple[int, str, str]:
        """Its status, stdout and stderr. No process of its session may stay."""
        child = self.start(command, stdout=subprocess.PIPE, preexec_fn=before, **more)
        out, err = child.communicate(timeout=PATIENCE_S)
        await_end_of_session(child.pid)
        return child.returncode, out, err

    def complaint(self, command: str, before: Before = None, status: int = 1) -> str:
        """What it says, in one line, when it ends with this status and without a sample."""
        ended, out, err = self.run(command, before)
        assert ended == status, err
        return one_line(command, out, err)

    def rows(self, command: str, before: Before = None, may_lack: bool = False) -> Rows:
        """What it prints in a run that succeeds.

        may_lack: the system or the user may be without what it needs. Then it says so in one line,
        and the test is skipped.
        """
        status, out, err = self.run(command, before)
        assert not self.at.exists()
        if may_lack and status == UNSUPPORTED:
            pytest.skip(one_line(command, out, err))
        assert (status, err) == (0, "")
        return table(out)

    def column(self, name: str, command: str, **more: Any) -> list[Any]:
        return [row[name] for row in self.rows(command, **more)]

    def run_as_nobody(self, command: str, before: Before = None) -> tuple[int, str, str]:
        """A copy of it, as a user without any rights, who could not enter the tree."""
        shutil.copy(self.folder / command.split()[0], self.at.parent)
        user = SPARE_USER if self.can_be_nobody else None
        return Micro(self.at.parent, self.at.parent).run(command, before, user=user)

    def run_with_room(self, processes: int, command: str) -> tuple[int, str, str]:
        """Where so many processes may be, itself one of them.

        The limit does not bind root, and an ordinary user has other processes: room for none.
        """
        self.skip_in(*SANITIZED, why="the sanitizers start processes and threads of their own")
        limit = processes if self.can_be_nobody else 0
        return self.run_as_nobody(command, limited(resource.RLIMIT_NPROC, limit))
