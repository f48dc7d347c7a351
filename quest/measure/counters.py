"""What processors have spent their time on, and what was counted, from /proc and /sys.

Each reading is of what was counted since boot: two of them are compared. It is empty where the
system does not say so.
"""

import contextlib
import os
import re
from collections.abc import Iterable, Mapping
from operator import sub
from pathlib import Path
from typing import NamedTuple

from quest.ground.guard import session_members
from quest.ground.places import numbered, text_of

TICKS = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")
STAT = PROC / "stat"
KINDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


class CpuTime(NamedTuple):
    """Seconds a set of processors has spent since boot."""

    busy: float
    softirq: float
    steal: float

    def since(self, before: "CpuTime") -> "CpuTime":
        return CpuTime(*map(sub, self, before))


def machine_times(stat: Path = STAT, cpus: Iterable[str] = ("cpu",)) -> dict[str, int]:
    """Ticks since boot, by what the whole machine or some processors did."""
    found: dict[str, int] = {}
    wanted = set(cpus)
    for name, *fields in map(str.split, text_of(stat).splitlines()):
        if name in wanted:
            for kind, ticks in zip(KINDS, map(int, fields), strict=False):
                found[kind] = found.get(kind, 0) + ticks
    return found


def cpu_time(cpus: Iterable[int]) -> CpuTime:
    """Of these processors; of all if none is named."""
    ticks = machine_times(STAT, {f"cpu{cpu}" for cpu in cpus} or {"cpu"})
    busy = sum(ticks.get(kind, 0) for kind in ("user", "nice", "system", "irq", "softirq"))
    return CpuTime(busy / TICKS, ticks.get("softirq", 0) / TICKS, ticks.get("steal", 0) / TICKS)


KERNEL_THREAD = 0x00200000  # PF_KTHREAD, a bit of the field `flags` of proc_pid_stat(5)


def kernel_threads_s(proc: Path = PROC) -> float:
    """Seconds that the kernel's own threads have worked since boot: loop devices, write-back.

    They work for whoever asked, and mostly that is us. 0 where they cannot be seen.
    """
    ticks = 0
    for process in numbered(proc):
        fields = text_of(process / "stat").rpartition(")")[2].split()
        if fields and int(fields[6]) & KERNEL_THREAD:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / TICKS


# Lines of /proc/stat whose first number counts something since boot -> our names.
EVENTS = {"ctxt": "machine_switches", "intr": "machine_interrupts"}


def events(stat: Path = STAT) -> dict[str, int]:
    """What the whole machine has counted."""
    found = (line.split(maxsplit=2) for line in text_of(stat).splitlines())
    return {EVENTS[words[0]]: int(words[1]) for words in found if words[0] in EVENTS}


def rates(
    before: Mapping[str, float], after: Mapping[str, float], wall_s: float, unit: str = "per_s"
) -> dict[str, float]:
    """Events a second between two readings, or the share of the time that they are seconds of."""
    if wall_s <= 0:
        return {}
    return {f"{name}_{unit}": (after[name] - before[name]) / wall_s for name in after}


def shares(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, float]:
    """Of the time of all processors: idle, idle while a process waited for a disk, and busy; and
    `waiting`, the second as a share of the first two: what others do meanwhile changes it least.

    Which of the two kinds of idleness it is depends on where the one who waits has run last: with
    two processors one process that waits makes at most half of it iowait (proc(5) warns of it).
    """
    total = sum(after[name] - before[name] for name in after)
    if total <= 0:
        return {}
    found = {name: (after[name] - before[name]) / total for name in ("idle", "iowait")}
    found["busy"] = 1 - found["idle"] - found["iowait"]
    if nothing_to_run := found["idle"] + found["iowait"]:
        found["waiting"] = found["iowait"] / nothing_to_run
    return {f"machine_{name}_share": share for name, share in found.items()}


def pressure(file: Path = PROC / "pressure/io") -> dict[str, float]:
    """Seconds in which some task waited for a disk, and in which all that had something to do did;
    nothing where the kernel does not keep that book (Linux 4.20, psi=1).

    A processor counts by how long it, or one that waits there, had something to do: told where
    iowait is 0 because others keep the processors busy, and lower for that.
    """
    found = (line.split() for line in text_of(file).splitlines())
    return {
        f"machine_io_{words[0]}": int(words[-1].removeprefix("total=")) / 1e6 for words in found
    }


# ---- What memory a server takes ------------------------------------------------------------------
#
# By the books of its processes and those of the kernel: from /proc, in KiB. No book counts
# everything. What a process has mapped says nothing of the sockets the kernel keeps for it; what
# the kernel holds is known for the whole machine only, so it is told by difference, and whatever
# else happens meanwhile is in it.

PAGE_KIB = os.sysconf("SC_PAGE_SIZE") / 1024
# Names in smaps_rollup, status and meminfo (proc(5)) -> ours.
ROLLUP = {"Rss": "rss_kib", "Pss": "pss_kib", "Private_Dirty": "private_dirty_kib"}
STATUS = {"VmPTE": "page_tables_kib"}
KERNEL = {"Slab": "slab_kib", "KernelStack": "stacks_kib", "PageTables": "page_tables_kib"}
STATM = ("size", "resident", "shared", "text", "lib", "data", "dirty")


def kib_of(path: Path, names: dict[str, str]) -> dict[str, float]:
    """The numbers of lines `Name:   123 kB`; 0 for a line that is not there. {} without a file."""
    if not (text := text_of(path)):
        return {}
    found = dict(re.findall(r"^(\w+):\s+(\d+)", text, re.M))
    return {ours: float(found.get(name, 0)) for name, ours in names.items()}


def memory_of(session: int, proc: Path = PROC) -> dict[str, float]:
    """Memory, descriptors and sockets of a session now; in PSS what they share is counted once,
    and so is a socket that several have: each connection that somebody has accepted is one.
    """
    counts = ("processes", "descriptors", "sockets")
    totals = dict.fromkeys((*counts, *ROLLUP.values(), *STATUS.values()), 0.0)
    sockets: set[str] = set()
    for pid in session_members(session):
        folder = proc / str(pid)
        totals["processes"] += 1
        for book, wanted in (("smaps_rollup", ROLLUP), ("status", STATUS)):
            for key, value in kib_of(folder / book, wanted).items():
                totals[key] += value
        with contextlib.suppress(OSError):  # it has just ended
            for name in os.listdir(folder / "fd"):
                totals["descriptors"] += 1
                with contextlib.suppress(OSError):  # closed just now
                    file = os.readlink(folder / "fd" / name)
                    sockets.update({file} if file.startswith("socket:") else ())
    totals["sockets"] = float(len(sockets))
    return totals


def cpu_of(session: int, proc: Path = PROC) -> float:
    """Seconds that the threads of a session have computed so far (sched-stats.rst of the kernel: to
    the nanosecond, where proc_pid_stat(5) has ticks of 10 ms). 0 where that is not counted.
    """
    total = 0
    for pid in session_members(session):
        for thread in numbered(proc / str(pid) / "task"):
            total += int((text_of(thread / "schedstat").split() or ["0"])[0])
    return total / 1e9


def account_of(pid: int, proc: Path = PROC) -> dict[str, float]:
    """The same process in two books: statm and smaps_rollup."""
    folder = proc / str(pid)
    pages = zip(STATM, text_of(folder / "statm").split(), strict=False)
    one = kib_of(folder / "smaps_rollup", ROLLUP)
    return {
        **{f"statm_{name}_kib": float(count) * PAGE_KIB for name, count in pages},
        **{f"one_{name}": value for name, value in one.items()},
    }


def kernel_memory(proc: Path = PROC) -> dict[str, float]:
    """What the kernel holds for itself, and for the buffers of all TCP sockets, in whatever network
    namespace.
    """
    pages = re.search(r"^TCP: .*\bmem (\d+)", text_of(proc / "net/sockstat"), re.M)
    tcp = {"tcp_kib": float(pages[1]) * PAGE_KIB} if pages else {}
    return kib_of(proc / "meminfo", KERNEL) | tcp


# ---- What TCP has sent ---------------------------------------------------------------------------
#
# As the kernel counts it for a network namespace (/proc/net/snmp and netstat). Of a namespace of
# our own these are the segments of the load alone; else `no-namespace` marks them.

SENT = "Tcp.OutSegs"
DATA = "TcpExt.TCPOrigDataSent"  # each once, however often it was sent again; a FIN is one too
OPENED = "Tcp.PassiveOpens"


def tcp_counters(net: Path = PROC / "net") -> dict[str, int]:
    """By protocol and name, as `Tcp.OutSegs`."""
    found: dict[str, int] = {}
    for file in ("snmp", "netstat"):
        lines = [line.split() for line in text_of(net / file).splitlines()]
        for (protocol, *names), (_, *values) in zip(lines[::2], lines[1::2], strict=False):
            counted = zip(names, map(int, values), strict=False)
            found |= {f"{protocol.removesuffix(':')}.{name}": n for name, n in counted}
    return found


def tcp_scalars(
    before: Mapping[str, int], after: Mapping[str, int], requests: float
) -> dict[str, float]:
    """Segments for a request, those of both ends; and in how many with data a reply came, as every
    request is one, and every connection ends with two.
    """
    if requests <= 0 or not {SENT, DATA, OPENED} <= before.keys() & after.keys():
        return {}
    sent, data, opened = (after[key] - before[key] for key in (SENT, DATA, OPENED))
    return {
        "segments_per_request": sent / requests,
        "segments_of_reply": (data - 2 * opened) / requests - 1,
    }


# ---- What a block device has done: stat in /sys (Documentation/block/stat.rst) -------------------

SECTOR = 512
DEVICES = Path("/sys/dev/block")


class Counters(NamedTuple):
    """Since the device is there; in the order of the file, the first eleven."""

    reads: int = 0
    read_merges: int = 0
    read_sectors: int = 0
    read_ms: int = 0
    writes: int = 0
    write_merges: int = 0
    write_sectors: int = 0
    write_ms: int = 0
    in_flight: int = 0
    busy_ms: int = 0
    queue_ms: int = 0

    def since(self, before: "Counters") -> "Counters":
        return Counters(*map(sub, self, before))


def disk_counters(device: str, devices: Path = DEVICES) -> Counters:
    words = (devices / device / "stat").read_text(encoding="ascii").split()
    return Counters(*map(int, words[: len(Counters._fields)]))


def disk_scalars(done: Counters, wall_s: float, ceiling: int = 0) -> dict[str, float]:
    """`ceiling`: the reads a second that a control group allows.

    What it holds back has not reached the device yet: neither the device's queue nor its
    utilisation can see it, only that the reads come at that rate.
    """
    if wall_s <= 0:
        return {}
    found = {
        "device_reads": float(done.reads),
        "device_reads_per_s": done.reads / wall_s,
        "device_read_kib_per_s": done.read_sectors * SECTOR / 1024 / wall_s,
        "device_writes_per_s": done.writes / wall_s,
        "device_written_kib_per_s": done.write_sectors * SECTOR / 1024 / wall_s,
        "device_utilisation": done.busy_ms / 1000 / wall_s,
        "device_queue": done.queue_ms / 1000 / wall_s,
    }
    if done.reads:
        found["device_kib_per_read"] = done.read_sectors * SECTOR / 1024 / done.reads
        found["device_read_ms"] = done.read_ms / done.reads
    if ceiling:
        found["device_ceiling_share"] = done.reads / wall_s / ceiling
    return found
