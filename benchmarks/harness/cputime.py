"""What processors have spent their time on, and what was counted, from /proc/stat."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class CpuTime:
    """Seconds a set of processors has spent since boot."""

    busy: float
    softirq: float
    steal: float

    def since(self, before: "CpuTime") -> "CpuTime":
        return CpuTime(
            self.busy - before.busy, self.softirq - before.softirq, self.steal - before.steal
        )


def cpu_time(cpus: Iterable[int]) -> CpuTime:
    """Of these processors; of all if none is named."""
    wanted = {f"cpu{cpu}" for cpu in cpus} or {"cpu"}
    busy = softirq = steal = 0
    try:
        text = Path("/proc/stat").read_text(encoding="ascii")
    except OSError:
        return CpuTime(0.0, 0.0, 0.0)
    for line in text.splitlines():
        name, *fields = line.split()
        if name in wanted:
            user, nice, system, _, _, irq, soft, stolen = map(int, fields[:8])
            busy += user + nice + system + irq + soft
            softirq += soft
            steal += stolen
    return CpuTime(busy / TICKS, softirq / TICKS, steal / TICKS)


# Lines of /proc/stat whose first number counts something since boot -> our names.
EVENTS = {"ctxt": "machine_switches", "intr": "machine_interrupts"}


def events(stat: Path = Path("/proc/stat")) -> dict[str, int]:
    """What the whole machine has counted since boot; nothing where it does not say so."""
    try:
        lines = stat.read_text(encoding="ascii").splitlines()
    except OSError:
        return {}
    found = (words for line in lines if (words := line.split(maxsplit=2))[:1])
    return {EVENTS[words[0]]: int(words[1]) for words in found if words[0] in EVENTS}


def machine_times(stat: Path = Path("/proc/stat")) -> dict[str, int]:
    """Ticks of the whole machine since boot, by what it did; nothing where it does not say so."""
    try:
        words = stat.read_text(encoding="ascii").partition("\n")[0].split()
    except OSError:
        return {}
    names = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    return dict(zip(names, map(int, words[1:]), strict=False))


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


def pressure(file: Path = Path("/proc/pressure/io")) -> dict[str, int]:
    """Microseconds since boot in which some task waited for a disk, and in which all that had
    something to do did; nothing where the kernel does not keep that book (Linux 4.20, psi=1).
    """
    try:
        lines = file.read_text(encoding="ascii").splitlines()
    except OSError:
        return {}
    found = (words for line in lines if (words := line.split()))
    return {words[0]: int(words[-1].removeprefix("total=")) for words in found}


def pressure_shares(
    before: Mapping[str, int], after: Mapping[str, int], wall_s: float
) -> dict[str, float]:
    """Of the time. A processor counts by how long it, or one that waits there, had something to do:
    told where iowait is 0 because others keep the processors busy, and lower for that.
    """
    if wall_s <= 0:
        return {}
    return {
        f"machine_io_{name}_share": (after[name] - before[name]) / 1e6 / wall_s for name in after
    }


def rates(before: Mapping[str, int], after: Mapping[str, int], wall_s: float) -> dict[str, float]:
    """Events a second between two readings."""
    if wall_s <= 0:
        return {}
    return {f"{name}_per_s": (after[name] - before[name]) / wall_s for name in after}
