"""Ends everything that a submission has started, also what has left its session and its parents."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time

from conformance import proc

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


def adopt_orphans() -> None:
    """From now on a descendant whose parent has ended becomes our child, not init's, so that nobody
    gets away. prctl(2)."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"prctl: {os.strerror(error)}")


def descendants() -> set[int]:
    """All running processes below this one."""
    parents: dict[int, list[int]] = {}
    for pid in proc.pids():
        fields = proc.stat_fields(pid)
        if fields:
            parents.setdefault(int(fields[proc.PARENT]), []).append(pid)
    found: set[int] = set()
    todo = [os.getpid()]
    while todo:
        children = [pid for pid in parents.get(todo.pop(), []) if pid not in found]
        found.update(children)
        todo += children
    return {pid for pid in found if proc.alive(pid)}


def _send(pids: set[int], signum: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signum)


def reap() -> None:
    """Collects orphans that have ended. Not while a subprocess of ours is waited for elsewhere."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0] > 0:
            pass


def end_descendants(limit: float = 20.0) -> bool:
    """Stops all before it kills the first: what is stopped starts nobody. True if all have gone."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        stopped: set[int] = set()
        while (new := descendants() - stopped) and time.monotonic() < deadline:
            _send(new, signal.SIGSTOP)
            stopped |= new
        _send(stopped, signal.SIGKILL)
        time.sleep(0.01)
        reap()
        if not descendants():
            return True
    return False
