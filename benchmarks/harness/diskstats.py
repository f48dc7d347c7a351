"""What a block device has done, from its file stat in /sys (Documentation/block/stat.rst)."""

from dataclasses import dataclass, fields
from pathlib import Path

SECTOR = 512
DEVICES = Path("/sys/dev/block")


@dataclass(frozen=True)
class Counters:
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
        names = [field.name for field in fields(self)]
        return Counters(*(getattr(self, name) - getattr(before, name) for name in names))


def counters(device: str, devices: Path = DEVICES) -> Counters:
    words = (devices / device / "stat").read_text(encoding="ascii").split()
    return Counters(*map(int, words[: len(fields(Counters))]))


def scalars(done: Counters, wall_s: float, ceiling: int = 0) -> dict[str, float]:
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
