"""What ends our programs when the harness itself is killed.

The kernel then ends the first process of each program (PR_SET_PDEATHSIG), but not the processes
that this one has started: the workers of other servers would run for ever. So a process beside the
harness keeps a list of the sessions that run. The pipe between the two ends when the harness ends,
in whatever way; the guard then kills what is left of the sessions.
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
    """The process ids of a session, from /proc; zombies too."""
    members = []
    for process in numbered(Path("/proc")):
        # pid (comm) state ppid pgrp session ...; comm may hold anything, blanks and ) too.
        fields = text_of(process / "stat").rpartition(")")[2].split()
        if fields and int(fields[3]) == session:
            members.append(int(process.name))
    return members


def end_session(session: int, mercy: float = 0.0) -> list["resource.struct_rusage"]:
    """Waits `mercy` seconds for the processes of a session to end, and kills the others. Gives what
    those have used that were our children.
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
    """Starts the guard once, and waits until it is ready: its start must not disturb a
    measurement.
    """
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
    process.returncode = 0  # it outlives us: Popen must not wait for it
    _pipe = process.stdin


def watch(session: int) -> None:
    """From now on the session is to be ended with us."""
    _send(f"+{session}")


def release(session: int) -> None:
    """The session has been ended; its number may be given to another process."""
    _send(f"-{session}")


def _send(line: str) -> None:
    if _pipe is not None:
        with contextlib.suppress(OSError):  # it was killed: we go on without it
            print(line, file=_pipe, flush=True)


def not_released(lines: Iterable[str]) -> list[int]:
    """The sessions that were watched ("+123") and not released ("-123")."""
    sessions: dict[int, None] = {}
    for line in lines:
        number = int(line[1:])
        if line[0] == "+":
            sessions[number] = None
        else:
            sessions.pop(number, None)
    return list(sessions)


def main() -> None:
    """The guard itself: reads sessions from stdin until the harness has ended."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if hasattr(os, "sched_setaffinity"):  # not where is measured, if there are two
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    print(flush=True)
    for session in not_released(sys.stdin):
        end_session(session)


if __name__ == "__main__":
    main()
