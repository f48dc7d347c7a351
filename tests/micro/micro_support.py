"""Runs a micro-benchmark and reads what it prints; what all of them have in common."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

PATIENCE_S = 60.0
# An id nobody has, another one in each pytest worker: RLIMIT_NPROC counts all processes of a user.
SPARE_USER = 50000 + os.getpid() % 10000
ForEveryone = Callable[[str], Path]


class Program(NamedTuple):
    """How a program is called beside -n, the columns it prints, and its rows for -n 50."""

    columns: list[str]
    arguments: tuple[str, ...] = ()
    rows: int = 50


RUSAGE = [
    "maxrss_kib",
    "ixrss",
    "idrss",
    "isrss",
    "minflt",
    "majflt",
    "nswap",
    "inblock",
    "oublock",
    "msgsnd",
    "msgrcv",
    "nsignals",
    "nvcsw",
    "nivcsw",
    "utime_us",
    "stime_us",
]
OVERFLOW = [
    "events",
    "room",
    "signals",
    "in_order",
    "lost",
    "overflow",
    "poll_finds",
    "after_default",
    "after_ignore",
    "closed",
    "in_band",
    "in_revents",
    "hup_band",
    "hup_revents",
]
PROGRAMS = {
    "fork-latency": Program(["live", "fork_ns"]),
    "fork-reap": Program(["remaining", "reap_ns"]),
    "clock-cost": Program(["cost_ns", "step_ns"]),
    "first-read": Program(["asked", "got", "reply"], ("together",)),
    "thread-create": Program(["live", "create_ns"]),
    "fork-memory": Program(["mib", "fork_ns", "total_ns", "error"], ("-r", "2", "small"), 100),
    "fork-mappings": Program(
        ["mappings", "fork_ns", "total_ns", "error"], ("-m", "20", "touched"), 550
    ),
    "sched-switch": Program(["handover_ns", "pipe_ns"]),
    "wake-latency": Program(["wake_ns"]),
    "fairness": Program(["spinner", "cpu_ns", "involuntary", "share"]),
    "cow-pages": Program(
        ["pages", "faults", "write_ns", "faults_per_page", "page_ns", "dirty_kib"],
        ("-p", "10", "alone"),
        550,
    ),
    "malloc-dirty": Program(
        ["mallocs", "faults", "dirty_kib", "asked_kib"], ("-m", "2", "fresh"), 150
    ),
    "lazy-binding": Program(["live", "fork_ns", "dirty_kib"]),
    "getrusage": Program(RUSAGE, rows=1),
    "event-wait": Program(["wait_ns", "event_ns", "calls", "send_ns", "read_ns"], ("poll",)),
    "event-rate": Program(
        ["waits", "events_per_wait", "messages_per_wait", "lost", "rate"], ("poll",), 1
    ),
    "sigio-overflow": Program(OVERFLOW, ("-q", "5"), 1),
    "write-parts": Program(["write_ns"], ("two", "pipe")),
    "in-flight": Program(["sent", "changed"], ("read",)),
    "spawn": Program(["mib", "return_ns", "total_ns", "error"], ("fork",)),
}


def run(
    command: list[str | Path],
    before: Callable[[], None] | None = None,
    user: int | None = None,
) -> tuple[int, str, str]:
    """Runs a program in a session of its own, so that what it leaves behind can be found."""
    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=before,
        user=user,
    )
    out, err = child.communicate(timeout=PATIENCE_S)
    assert members(child.pid) == []
    return child.returncode, out, err


def members(session: int) -> list[int]:
    """The living processes of a session; a zombie no longer lives."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended while we looked
        if int(after_name[3]) == session and after_name[0] not in "ZX":
            found.append(int(pid))
    return found


def cells(text: str) -> list[list[str]]:
    """What stands below the header line."""
    return [line.split("\t") for line in text.splitlines()[1:]]


def rows(text: str) -> list[list[float]]:
    """The same where all are numbers."""
    return [[float(cell) for cell in line] for line in cells(text)]


def is_mapped(user: int) -> bool:
    """Whether that id exists in this user namespace: a rootless container has few."""
    ranges = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
    return any(int(first) <= user < int(first) + int(count) for first, _, count in ranges)
