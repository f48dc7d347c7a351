"""Which processors we may use, which of them are one physical core, and who gets which."""

import os
from dataclasses import dataclass
from pathlib import Path

TOPOLOGY = Path("/sys/devices/system/cpu")


@dataclass(frozen=True)
class Placement:
    """Processors for what is measured and for the load; empty: not pinned."""

    measured: frozenset[int]
    load: frozenset[int]
    marks: tuple[str, ...] = ()


def allowed() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def siblings(cpu: int, topology: Path = TOPOLOGY) -> str:
    """A text that is the same for all hardware threads of one physical core."""
    folder = topology / f"cpu{cpu}" / "topology"
    for name in ("core_cpus_list", "thread_siblings_list"):
        try:
            return (folder / name).read_text(encoding="ascii").strip()
        except OSError:
            continue
    return str(cpu)


def cores(cpus: list[int], topology: Path = TOPOLOGY) -> list[int]:
    """One processor of each physical core, in ascending order."""
    first: dict[str, int] = {}
    for cpu in cpus:
        first.setdefault(siblings(cpu, topology), cpu)
    return sorted(first.values())


def place(pin: str, core_list: list[int]) -> Placement:
    """pin = one | apart | none, as the experiment says.

    The last core is measured: interrupts and the rest of the system tend to be on the first.
    """
    if pin == "none":
        return Placement(frozenset(), frozenset())
    measured = frozenset(core_list[-1:])
    if pin == "one":
        return Placement(measured, frozenset())
    if len(core_list) < 2:
        return Placement(measured, measured, ("shared-core",))
    return Placement(measured, frozenset(core_list[-2:-1]))
