"""What processors have spent their time on, what memory a server takes, what TCP has sent and what
a disk has done, from /proc and /sys.

Most readings are of what was counted since boot: two of them are compared. A reading is empty, or
0, where the system does not keep the count.
"""

import contextlib
import os
import re
from collections.abc import Iterable, Mapping
from operator import sub
from pathlib import Path
from typing import NamedTuple

from quest.ground.guard import session_members
from quest.ground.places import link_of, numbered, text_of

TICKS = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")
STAT = PROC / "stat"
KINDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


def proc_number(path: str | Path, name: str = "") -> int | None:
    """The number in a file, or behind a name at the start of a line (`MemAvailable: 123 kB`); None
    where there is none, as in "max".
    """
    match = re.search(rf"^{name}\s*(\d+)", text_of(path), re.M)
    return int(match[1]) if match else None


class CpuTime(NamedTuple):
    """Seconds a set of processors has spent since boot."""

    busy: float
    softirq: float
    steal: float

    def since(self, before: "CpuTime") -> "CpuTime":
        """What came after `before`."""
        return CpuTime(*map(sub, self, before))


def cpu_ticks(stat: Path = STAT, cpus: Iterable[str] = ("cpu",)) -> dict[str, int]:
    """Ticks of the clock since boot, by KINDS: those of the whole machine, or the sum of some
    processors, as `cpu0`.
    """
    total: dict[str, int] = {}
    wanted = set(cpus)
    for name, *fields in map(str.split, text_of(stat).splitlines()):
        if name in wanted:
            for kind, ticks in zip(KINDS, map(int, fields), strict=False):
                total[kind] = total.get(kind, 0) + ticks
    return total


def cpu_time(cpus: Iterable[int]) -> CpuTime:
    """That of these processors; of all if none is named."""
    ticks = cpu_ticks(STAT, {f"cpu{cpu}" for cpu in cpus} or {"cpu"})
    busy = sum(ticks.get(kind, 0) for kind in ("user", "nice", "system", "irq", "softirq"))
    return CpuTime(busy / TICKS, ticks.get("softirq", 0) / TICKS, ticks.get("steal", 0) / TICKS)


KERNEL_THREAD = 0x00200000  # PF_KTHREAD, a bit of the field `flags` of proc_pid_stat(5)


def kernel_threads_s(proc: Path = PROC) -> dict[int, float]:
    """Seconds that each of the kernel's own threads has worked since it began: loop devices, write-back.

    They work for the programs that asked, and mostly those are ours. {} where they cannot be seen. One that ends
    takes its seconds with it, so that no sum of them may be set against a later one.
    """
    found: dict[int, float] = {}
    for process in numbered(proc):
        fields = text_of(process / "stat").rpartition(")")[2].split()
        if fields and int(fields[6]) & KERNEL_THREAD:
            found[int(process.name)] = (int(fields[11]) + int(fields[12])) / TICKS
    return found


# Lines of /proc/stat whose first number counts something since boot -> our names.
EVENTS = {"ctxt": "machine_switches", "intr": "machine_interrupts"}


def machine_events(stat: Path = STAT) -> dict[str, int]:
    """Context switches and interrupts of the whole machine since boot."""
    lines = (line.split(maxsplit=2) for line in text_of(stat).splitlines())
    return {EVENTS[words[0]]: int(words[1]) for words in lines if words[0] in EVENTS}


def rates(
    before: Mapping[str, float], after: Mapping[str, float], wall_s: float, unit: str = "per_s"
) -> dict[str, float]:
    """The difference of two readings, divided by the seconds between them: events a second, or of
    seconds their share. {} where no time has passed.
    """
    if wall_s <= 0:
        return {}
    return {f"{name}_{unit}": (after[name] - before[name]) / wall_s for name in after}


def idle_shares(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, float]:
    """Shares of the time of all processors between two readings of cpu_ticks(): idle, idle while a
    process waited for a disk (iowait), and busy; and `waiting`, the second as a share of the first
    two, which other programs change least. {} where no tick has passed.

    Which of the two kinds of idleness it is depends on where the process that waits has run last:
    with two processors one process that waits makes at most half of it iowait (proc(5) warns).
    """
    total = sum(after[name] - before[name] for name in after)
    if total <= 0:
        return {}
    shares = {name: (after[name] - before[name]) / total for name in ("idle", "iowait")}
    shares["busy"] = 1 - shares["idle"] - shares["iowait"]
    if nothing_to_run := shares["idle"] + shares["iowait"]:
        shares["waiting"] = shares["iowait"] / nothing_to_run
    return {f"machine_{name}_share": share for name, share in shares.items()}


def io_pressure(file: Path = PROC / "pressure/io") -> dict[str, float]:
    """Seconds since boot in which some task waited for a disk, and in which all that had something
    to do did; {} where the kernel does not count them (Linux 4.20, psi=1).

    A processor counts by how long it, or a task that waits there, had something to do. So this is
    known also where iowait is 0 because other programs keep the processors busy.
    """
    lines = (line.split() for line in text_of(file).splitlines())
    return {f"machine_io_{words[0]}": int(words[-1].removeprefix("total=")) / 1e6 for words in lines}


# ---- What memory a server takes ------------------------------------------------------------------
#
# As /proc counts it for its processes and for the kernel, in KiB. No file of it counts everything.
# What a process has mapped says nothing of the sockets the kernel keeps for it; what the kernel
# holds is known for the whole machine only, so a difference is taken, and whatever else happens
# meanwhile is in it.

PAGE_KIB = os.sysconf("SC_PAGE_SIZE") / 1024
# Names in smaps_rollup, status and meminfo (proc(5)) -> ours.
ROLLUP = {"Rss": "rss_kib", "Pss": "pss_kib", "Private_Dirty": "private_dirty_kib"}
STATUS = {"VmPTE": "page_tables_kib"}
KERNEL = {"Slab": "slab_kib", "KernelStack": "stacks_kib", "PageTables": "page_tables_kib"}
STATM = ("size", "resident", "shared", "text", "lib", "data", "dirty")


def _kib_values(path: Path, names: Mapping[str, str]) -> dict[str, float]:
    """The numbers of lines `Name:   123 kB`, under our names; 0 for a line that is not there. {}
    without a file.
    """
    if not (text := text_of(path)):
        return {}
    numbers = dict(re.findall(r"^(\w+):\s+(\d+)", text, re.M))
    return {ours: float(numbers.get(name, 0)) for name, ours in names.items()}


def session_memory(session: int, proc: Path = PROC) -> dict[str, float]:
    """Memory in KiB, and the numbers of processes, descriptors and sockets, of all processes of a
    session now. In PSS what they share is counted once, and so is a socket that several of them
    have: each accepted connection is one.
    """
    counts = ("processes", "descriptors", "sockets")
    totals = dict.fromkeys((*counts, *ROLLUP.values(), *STATUS.values()), 0.0)
    sockets: set[str] = set()
    for pid in session_members(session):
        folder = proc / str(pid)
        totals["processes"] += 1
        for file, names in (("smaps_rollup", ROLLUP), ("status", STATUS)):
            for key, value in _kib_values(folder / file, names).items():
                totals[key] += value
        with contextlib.suppress(OSError):  # it has just ended
            for name in os.listdir(folder / "fd"):
                totals["descriptors"] += 1
                target = link_of(folder / "fd" / name)  # "": closed just now
                sockets.update({target} if target.startswith("socket:") else ())
    totals["sockets"] = float(len(sockets))
    return totals


def session_cpu_s(session: int, proc: Path = PROC) -> float:
    """Seconds of processor time of the threads of a session so far (sched-stats.rst of the kernel:
    to the nanosecond, where proc_pid_stat(5) has ticks of 10 ms). 0 where that is not counted.
    """
    total = 0
    for pid in session_members(session):
        for thread in numbered(proc / str(pid) / "task"):
            total += int((text_of(thread / "schedstat").split() or ["0"])[0])
    return total / 1e9


def process_memory(pid: int, proc: Path = PROC) -> dict[str, float]:
    """KiB of one process as two files count them: statm and smaps_rollup."""
    folder = proc / str(pid)
    pages = zip(STATM, text_of(folder / "statm").split(), strict=False)
    rollup = _kib_values(folder / "smaps_rollup", ROLLUP)
    return {
        **{f"statm_{name}_kib": float(count) * PAGE_KIB for name, count in pages},
        **{f"one_{name}": value for name, value in rollup.items()},
    }


def kernel_memory(proc: Path = PROC) -> dict[str, float]:
    """KiB that the kernel holds for itself, and for the buffers of all TCP sockets, in whatever
    network namespace.
    """
    pages = re.search(r"^TCP: .*\bmem (\d+)", text_of(proc / "net/sockstat"), re.M)
    tcp = {"tcp_kib": float(pages[1]) * PAGE_KIB} if pages else {}
    return _kib_values(proc / "meminfo", KERNEL) | tcp


# ---- What TCP has sent ---------------------------------------------------------------------------
#
# As the kernel counts it for a network namespace (/proc/net/snmp and netstat). Of a namespace of
# our own these are the segments of the load alone; else `no-namespace` marks them.

SENT = "Tcp.OutSegs"
DATA = "TcpExt.TCPOrigDataSent"  # each once, however often it was sent again; a FIN is one too
OPENED = "Tcp.PassiveOpens"


def tcp_counters(net: Path = PROC / "net") -> dict[str, int]:
    """What was counted since boot, by protocol and name, as `Tcp.OutSegs`."""
    counted: dict[str, int] = {}
    for file in ("snmp", "netstat"):
        lines = [line.split() for line in text_of(net / file).splitlines()]
        for (protocol, *names), (_, *values) in zip(lines[::2], lines[1::2], strict=False):
            pairs = zip(names, map(int, values), strict=False)
            counted |= {f"{protocol.removesuffix(':')}.{name}": n for name, n in pairs}
    return counted


def tcp_scalars(before: Mapping[str, int], after: Mapping[str, int], requests: float) -> dict[str, float]:
    """From two readings of tcp_counters(), and the number of requests between them: segments for a
    request, those of both ends; and segments with data of a reply, since a request is one, and the
    two FINs of a connection count as such. {} without requests or counts.
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


class DiskCounters(NamedTuple):
    """Since the device is there: the first eleven numbers of the file, in its order."""

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

    def since(self, before: "DiskCounters") -> "DiskCounters":
        """What came after `before`."""
        return DiskCounters(*map(sub, self, before))


def disk_counters(device: str, devices: Path = DEVICES) -> DiskCounters:
    """Those of a device, named as major:minor; OSError if there is none."""
    words = (devices / device / "stat").read_text(encoding="ascii").split()
    return DiskCounters(*map(int, words[: len(DiskCounters._fields)]))


def disk_scalars(done: DiskCounters, wall_s: float, ceiling: int = 0) -> dict[str, float]:
    """What a device has `done` in `wall_s` seconds, as scalars of a repetition. `ceiling`: the
    reads a second that a control group allows; 0 if it has no limit.

    What the group holds back has not reached the device yet: neither the device's queue nor its
    utilisation can see it, only that the reads come at that rate.
    """
    if wall_s <= 0:
        return {}
    scalars = {
        "device_reads": float(done.reads),
        "device_reads_per_s": done.reads / wall_s,
        "device_read_kib_per_s": done.read_sectors * SECTOR / 1024 / wall_s,
        "device_writes_per_s": done.writes / wall_s,
        "device_written_kib_per_s": done.write_sectors * SECTOR / 1024 / wall_s,
        "device_utilisation": done.busy_ms / 1000 / wall_s,
        "device_queue": done.queue_ms / 1000 / wall_s,
    }
    if done.reads:
        scalars["device_kib_per_read"] = done.read_sectors * SECTOR / 1024 / done.reads
        scalars["device_read_ms"] = done.read_ms / done.reads
    if ceiling:
        scalars["device_ceiling_share"] = done.reads / wall_s / ceiling
    return scalars
