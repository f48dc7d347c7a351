"""Sessions: how what a program has started is found again, and ended."""

import contextlib
import os
import signal
import time
from pathlib import Path


def session_members(session: int) -> list[int]:
    """The processes of a session, from /proc; the zombies too."""
    members = []
    for entry in Path("/proc").iterdir() if Path("/proc").is_dir() else ():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        # pid (comm) state ppid pgrp session ...; comm may hold anything, blanks and ) too.
        if int(fields.rpartition(")")[2].split()[3]) == session:
            members.append(int(entry.name))
    return members


def end_session(session: int, patience: float = 5.0) -> int:
    """Kills what is left of a session and reaps what is ours; how many there were."""
    found: set[int] = set()
    deadline = time.monotonic() + patience
    while members := session_members(session):
        found.update(members)
        for pid in members:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        for pid in members:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        if time.monotonic() > deadline:
            break
        time.sleep(0.005)
    return len(found)
