"""How long a program has waited in the run queue: it could run, and another had its processor.

/proc/PID/schedstat of Linux has three numbers: ns run, ns waited, turns. It is of one thread, the first
one. A thread that has ended is in no file any more, and a child has its own. So the number says
something of a program only where this one thread did all the work. Whether it did can be told at the
end, while the program is a zombie: each thread and each child has had page faults of its own, and they
are added to those of the process (proc(5): minflt of the process and of its first thread; cminflt).
"""

from pathlib import Path
from typing import NamedTuple

from quest.ground.places import text_of

PROC = Path("/proc")
MINFLT, CMINFLT = 7, 8  # behind the name of the program in /proc/PID/stat


class Waited(NamedTuple):
    """`seconds`: how long a program waited in the run queue; None if that is not known. `others`: it had threads or
    children beside its first thread.
    """

    seconds: float | None = None
    others: bool = False


NOT_KNOWN = Waited()


def waited_ns(pid: int, proc: Path = PROC) -> int | None:
    """Of the first thread of a process, up to now; None where the system does not count it: without the file, or with
    zeros only.
    """
    numbers = text_of(proc / f"{pid}/schedstat").split()
    if len(numbers) != 3 or not any(map(int, numbers)):
        return None
    return int(numbers[1])


def _faults(file: Path) -> list[int]:
    fields = text_of(file).rpartition(")")[2].split()
    return list(map(int, fields[MINFLT : CMINFLT + 1]))


def of_ended(pid: int, before_ns: int | None, proc: Path = PROC) -> Waited:
    """Of a program that has ended and was not waited for yet. `before_ns`: what it had waited when it was started."""
    whole, first = _faults(proc / f"{pid}/stat"), _faults(proc / f"{pid}/task/{pid}/stat")
    if not whole or not first:
        return NOT_KNOWN
    if whole[1] > 0 or whole[0] != first[0]:
        return Waited(None, others=True)
    now_ns = waited_ns(pid, proc)
    if now_ns is None or before_ns is None:
        return NOT_KNOWN
    return Waited(max(0, now_ns - before_ns) / 1e9)
