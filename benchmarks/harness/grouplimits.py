"""What both versions of control groups share: which limits there are, and where groups are."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


@dataclass(frozen=True)
class Limits:
    """0: no limit. `device` is that of the read limits, as major:minor."""

    memory_bytes: int = 0
    read_iops: int = 0
    read_bytes_per_s: int = 0
    device: str = ""

    @property
    def controllers(self) -> frozenset[str]:
        wanted = {"memory": self.memory_bytes, "io": self.read_iops or self.read_bytes_per_s}
        return frozenset(name for name, value in wanted.items() if value)


class Setting(NamedTuple):
    controller: str
    file: str
    value: str


def mounted(mounts: str) -> Iterator[tuple[Path, str, list[str]]]:
    """Place, kind and options of each line of /proc/mounts."""
    for line in mounts.splitlines():
        words = line.split()
        if len(words) >= 4:
            yield Path(words[1].replace("\\040", " ")), words[2], words[3].split(",")
