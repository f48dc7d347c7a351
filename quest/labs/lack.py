"""What a machine may lack for a grading: asked after our own server has failed a test, so that one
line can name the cause. A cause that is not known here is in the words of the test.
"""

import contextlib
import os
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path

from quest.labs.lab import Limits
from tests.conformance import tracing

FREE_MIB = 64
SPARE_PROCESSES = 50
#: What a judge, its servers and its clients may use: some tests connect a thousand times, and some
#: serve a file of more than 4 GiB that takes no room.
LEAST = (
    (resource.RLIMIT_NOFILE, 2048, "{} open files (ulimit -n)"),
    (resource.RLIMIT_FSIZE, 8 << 30, "{} bytes in a file (ulimit -f)"),
    (resource.RLIMIT_AS, 2 << 30, "{} bytes of address space (ulimit -v)"),
    (resource.RLIMIT_CPU, 60, "{} seconds of a processor (ulimit -t)"),
)


def _forbids_programs(folder: Path) -> bool:
    return bool(os.statvfs(folder).f_flag & os.ST_NOEXEC)


def _cgroups() -> Iterator[Path]:
    """The control groups that this process is in, and all above them."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            top = Path("/sys/fs/cgroup") / ("pids" if controllers else "")
            here = top / path.lstrip("/")
            if controllers in ("", "pids"):
                yield from (p for p in (here, *here.parents) if p.is_relative_to(top))


def _processes() -> tuple[int, str]:
    """The tightest limit of processes, and the name of that limit."""
    limits = [(1 << 62, "")]
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if soft != resource.RLIM_INFINITY:
        limits.append((soft, "ulimit -u"))
    for folder in _cgroups():
        with contextlib.suppress(OSError, ValueError):
            limits.append((int((folder / "pids.max").read_text()), "pids.max of the cgroup"))
    with contextlib.suppress(OSError, ValueError):
        limits.append((int(Path("/proc/sys/kernel/threads-max").read_text()), "kernel.threads-max"))
    return min(limits)


def lacks(folder: Path, limits: Limits) -> list[str]:
    """Clauses: each names something of which there is too little here, and how much there is."""
    clauses = []
    if _forbids_programs(folder):
        clauses.append(f"{folder.parent} is mounted noexec; choose another place with TMPDIR=")
    free = shutil.disk_usage(folder).free >> 20
    if free < FREE_MIB:
        clauses.append(f"{folder.parent} has {free} MiB left; choose another place with TMPDIR=")
    count, whose = _processes()
    if count < limits.processes + SPARE_PROCESSES:
        clauses.append(f"at most {count} processes ({whose})")
    for limit, least, words in LEAST:
        most, hard = resource.getrlimit(limit)
        if limit == resource.RLIMIT_NOFILE:  # a test raises its own
            most = hard
        if most != resource.RLIM_INFINITY and most < least:
            clauses.append(f"at most {words.format(most)}")
    if reason := tracing.unavailable():
        clauses.append(reason)
    return clauses
