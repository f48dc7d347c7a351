"""What /proc says about a process: children, descriptors, memory, signals. Linux only.

A process may end while it is looked at. Then there is nothing to see: "", [], 0.
"""

import contextlib
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

DIRECT = re.compile(r"^ *[0-9]+: ", re.MULTILINE)
STATE, PARENT, UTIME, THREADS, START = 0, 1, 11, 17, 19  # in stat_fields()
LOOKS, PAUSE_S = 50, 0.002  #: how often at what is root's for a moment, and how long between
STOP_S = 30.0  #: for the threads of a process to find SIGSTOP, on a busy machine
T = TypeVar("T")


def looked_at(pid: int | str, look: Callable[[], T], nothing: T) -> T:
    """What `look` finds of a process; `nothing` if it has ended. While a process calls exec() or exit() some of its
    files are root's for a moment, so that an ordinary user looks again. PermissionError if they stay so.
    """
    for _ in range(LOOKS):
        try:
            return look()
        except (FileNotFoundError, ProcessLookupError):
            return nothing
        except PermissionError:
            if ending(pid):
                return nothing
        time.sleep(PAUSE_S)
    return look()


def text(pid: int | str, name: str) -> str:
    return looked_at(pid, lambda: Path(f"/proc/{pid}/{name}").read_text(errors="replace"), "")


def tasks(pid: int) -> list[str]:
    """Its threads, as text() takes them."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return [f"{pid}/task/{task}" for task in os.listdir(f"/proc/{pid}/task")]
    return []


def stat_fields(pid: int | str) -> list[str]:
    """/proc/PID/stat from the state on: what stands before it, the name, may hold anything."""
    _, _, rest = text(pid, "stat").rpartition(") ")
    return rest.split()


def alive(pid: int | str) -> bool:
    """True while it runs; a zombie does not."""
    fields = stat_fields(pid)
    return bool(fields) and fields[STATE] not in "ZX"


def ending(pid: int | str) -> bool:
    """True from where exit() has given the memory back: from then on its descriptors are root's
    to see, though it counts as running until it is a zombie. (`stat` and `statm` are for all to read.)
    """
    return not alive(pid) or text(pid, "statm").startswith("0 ")


def stopped(pid: int) -> bool:
    """True once SIGSTOP has reached all its threads. kill() returns before: until one of them has run, and so has
    found the signal, the others go on.
    """
    return {state for task in tasks(pid) for state in stat_fields(task)[:1]} <= {"T", "Z", "X"}


def send(pid: int, signum: int) -> None:
    """A signal to one of several that were there when they were listed: one that has ended since gets none."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signum)


def stop(pid: int) -> None:
    """SIGSTOP, until it has reached all threads; TimeoutError if it does not. Not for a process with a tracer: nothing
    tells there that the signal has come.
    """
    os.kill(pid, signal.SIGSTOP)
    end = time.monotonic() + STOP_S
    while not stopped(pid):
        if time.monotonic() > end:
            raise TimeoutError(f"process {pid} does not stop")
        time.sleep(PAUSE_S)


def asleep(pid: int) -> bool:
    """True if none of its threads runs, wants to, or waits for a disk."""
    return {state for task in tasks(pid) for state in stat_fields(task)[:1]} == {"S"}


def start_time(pid: int) -> str:
    """In clock ticks. Tells a process from a later one with its number."""
    fields = stat_fields(pid)
    return fields[START] if fields else ""


def pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


#: A kernel may be built without it (CONFIG_PROC_CHILDREN); to look at all processes is slower.
HAS_CHILDREN_FILE = Path("/proc/thread-self/children").exists()


def children(pid: int) -> list[int]:
    """The children of a process, zombies too."""
    if not HAS_CHILDREN_FILE:
        return [each for each in pids() if stat_fields(each)[PARENT:2] == [str(pid)]]
    return [int(word) for task in tasks(pid) for word in text(task, "children").split()]


def session(leader: int) -> list[int]:
    """The running processes of a session, orphans too. Not zombies: nobody may be there to reap
    them.
    """
    found = []
    for pid in pids():
        with contextlib.suppress(ProcessLookupError):
            if os.getsid(pid) == leader and alive(pid):
                found.append(pid)
    return found


def descriptors(pid: int) -> dict[int, str]:
    """Descriptor -> what it is ("socket:[123]", a path)."""

    def all_of_them() -> dict[int, str]:
        found = {}
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                found[int(name)] = os.readlink(f"/proc/{pid}/fd/{name}")
        return found

    return looked_at(pid, all_of_them, {})


def sockets(pid: int) -> set[str]:
    return {what for what in descriptors(pid).values() if what.startswith("socket:")}


def _value(pid: int, file: str, name: str) -> list[str]:
    for line in text(pid, file).splitlines():
        if line.startswith(name):
            return line.split()[1:]
    return []


def threads(pid: int) -> int:
    fields = stat_fields(pid)
    return int(fields[THREADS]) if fields else 0


def threads_of_kernel(pid: int) -> tuple[int, int]:
    """The threads of a process that has an io_uring: its own, and the workers of the kernel, which
    are among them and come and go.
    """
    names = [text(task, "comm") for task in tasks(pid)]
    workers = sum(name.startswith("iou-") for name in names)
    return sum(map(bool, names)) - workers, workers


def direct_descriptors(pid: int) -> int:
    """The files in the tables of the process's io_urings, which no listing of descriptors shows."""
    found = 0
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
        for name in os.listdir(f"/proc/{pid}/fdinfo"):
            _, _, rest = text(pid, f"fdinfo/{name}").partition("UserFiles:")
            found += len(DIRECT.findall(rest.partition("UserBufs:")[0]))
    return found


def memory_kib(pid: int) -> int:
    """The proportional share of memory (PSS), or the resident size if the kernel does not tell."""
    share = _value(pid, "smaps_rollup", "Pss:") or _value(pid, "status", "VmRSS:")
    return int(share[0]) if share else 0


def anonymous_kib(pid: int) -> int:
    """Memory that is no file's: unlike a share of those, it does not depend on other processes."""
    found = _value(pid, "smaps_rollup", "Anonymous:")
    return int(found[0]) if found else 0


def cpu_seconds(pid: int) -> float:
    """User and system time of a process and of its children that have been waited for."""
    ticks = stat_fields(pid)[UTIME : UTIME + 4]
    return sum(int(n) for n in ticks) / os.sysconf("SC_CLK_TCK")


def blocked_signals(pid: int) -> list[int]:
    mask = int("".join(_value(pid, "status", "SigBlk:")) or "0", 16)
    return [signum for signum in range(1, 65) if mask >> (signum - 1) & 1]
