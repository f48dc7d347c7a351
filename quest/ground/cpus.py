"""Which processors we may use, which of them are one physical core, and where what is measured and the load run."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from quest.ground.places import text_of

TOPOLOGY = Path("/sys/devices/system/cpu")


@dataclass(frozen=True)
class Placement:
    """Processors for what is measured and for the load; empty: not pinned."""

    measured: frozenset[int]
    load: frozenset[int]
    marks: tuple[str, ...] = ()


def allowed() -> list[int]:
    """The numbers of the processors that this process may use, in ascending order."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def siblings(cpu: int, topology: Path = TOPOLOGY) -> str:
    """A text that is the same for all hardware threads of one physical core."""
    folder = topology / f"cpu{cpu}" / "topology"
    names = "core_cpus_list", "thread_siblings_list"
    return next(filter(None, (text_of(folder / name) for name in names)), str(cpu))


def cores(cpus: list[int], topology: Path = TOPOLOGY) -> list[int]:
    """One processor of each physical core, in ascending order."""
    return sorted({siblings(cpu, topology): cpu for cpu in reversed(cpus)}.values())


def place(pin: str, core_list: list[int], cpus: Iterable[int] = ()) -> Placement:
    """pin = one | apart | shared | none, as the experiment says; `cpus`: all that are
    allowed.

    The last core is measured: interrupts and the rest of the system tend to be on the first.
    """
    not_pinned, measured = frozenset[int](), frozenset(core_list[-1:])
    if pin == "none":
        return Placement(not_pinned, not_pinned)
    if pin == "one":
        return Placement(measured, not_pinned)
    if pin == "shared":
        everything = frozenset(cpus) or frozenset(core_list)
        return Placement(everything, everything)
    if len(core_list) < 2:
        return Placement(measured, measured, ("shared-core",))
    return Placement(measured, frozenset(core_list[-2:-1]))
