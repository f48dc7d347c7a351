"""What ends our programs when the harness itself is killed.

The kernel then ends the first process of each program (PR_SET_PDEATHSIG), but not what that one
has started: the workers of other people's servers go on for ever. So a process beside us keeps a
list of the sessions that run, and when the pipe between us ends, as it does however we end, it
kills what is left of them.
"""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from quest.ground.places import numbered, text_of

PATIENCE = 5.0  # with what has been killed


def session_members(session: int) -> list[int]:
    """The processes of a session, from /proc; the zombies too."""
    members = []
    for process in numbered(Path("/proc")):
        # pid (comm) state ppid pgrp session ...; comm may hold anything, blanks and ) too.
        fields = text_of(process / "stat").rpartition(")")[2].split()
        if fields and int(fields[3]) == session:
            members.append(int(process.name))
    return members


def end_session(session: int, mercy: float = 0.0) -> list["resource.struct_rusage"]:
    """Kills what is left of a session after `mercy` seconds; what those of it have used that were
    ours to reap.
    """
    used = []
    deadline = time.monotonic() + mercy
    while members := session_members(session):
        for pid in members:
            ended = 0
            with contextlib.suppress(ChildProcessError):
                ended, _, usage = os.wait4(pid, os.WNOHANG)
                used += [usage] if ended else []
            if not ended and time.monotonic() >= deadline:  # else the number is free
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline + PATIENCE:
            break  # not ours to wait for
        time.sleep(0.005)
    return used


_pipe: IO[str] | None = None


def start() -> None:
    """Starts it once, and waits until it has: its own work must not fall into a measurement."""
    global _pipe
    if _pipe is not None:
        return
    process = subprocess.Popen(
        [sys.executable, "-m", "quest.ground.guard"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    )
    assert process.stdin and process.stdout
    with process.stdout:
        process.stdout.readline()
    process.returncode = 0  # it outlives us: nobody is to wait for it
    _pipe = process.stdin


def watch(session: int) -> None:
    _tell(f"+{session}")


def release(session: int) -> None:
    """The session has been ended; its number may be given to another process."""
    _tell(f"-{session}")


def _tell(line: str) -> None:
    if _pipe is not None:
        with contextlib.suppress(OSError):  # somebody has ended it: we go on without
            print(line, file=_pipe, flush=True)


def left(lines: Iterable[str]) -> list[int]:
    """The sessions that were begun and not ended."""
    sessions: dict[int, None] = {}
    for line in lines:
        number = int(line[1:])
        if line[0] == "+":
            sessions[number] = None
        else:
            sessions.pop(number, None)
    return list(sessions)


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if hasattr(os, "sched_setaffinity"):  # not where is measured, if there are two
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    print(flush=True)
    for session in left(sys.stdin):
        end_session(session)


if __name__ == "__main__":
    main()
