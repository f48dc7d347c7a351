"""What processors have spent their time on, from /proc/stat."""

import os
from collections.abc import Iterable
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
