"""Which processors we may use, which of them are one physical core, and who gets which."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from quest.ground.places import text_of

TOPOLOGY = Path("/sys/devices/system/cpu")
WORKERS = "workers"
LOAD_AT_MOST = 128  # processors: each has a thread of wrk, and each thread wants a connection


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
    names = "core_cpus_list", "thread_siblings_list"
    return next(filter(None, (text_of(folder / name) for name in names)), str(cpu))


def cores(cpus: list[int], topology: Path = TOPOLOGY) -> list[int]:
    """One processor of each physical core, in ascending order."""
    return sorted({siblings(cpu, topology): cpu for cpu in reversed(cpus)}.values())


def for_workers(number: int) -> int:
    """How many of so many cores are for workers; three for the load go with two of them.

    A small request takes wrk 1.2 times the time it takes 15-slashdot, and wrk must not be at its
    limit.
    """
    return max(1, 2 * number // 5)


def place(
    pin: str, core_list: list[int], cpus: Iterable[int] = (), topology: Path = TOPOLOGY
) -> Placement:
    """pin = one | apart | shared | workers | none, as the experiment says; `cpus`: all that are
    allowed.

    The last core is measured: interrupts and the rest of the system tend to be on the first.
    """
    nobody, measured = frozenset[int](), frozenset(core_list[-1:])
    if pin == "none":
        return Placement(nobody, nobody)
    if pin == "one":
        return Placement(measured, nobody)
    if pin == "shared":
        everything = frozenset(cpus) or frozenset(core_list)
        return Placement(everything, everything)
    if len(core_list) < 2:
        return Placement(measured, measured, ("shared-core",))
    if pin != WORKERS:
        return Placement(measured, frozenset(core_list[-2:-1]))
    number = for_workers(len(core_list))
    # The load may have all hardware threads of its cores.
    rest = core_list[:-number]
    of_rest = {siblings(cpu, topology) for cpu in rest}
    load = sorted({*rest, *(cpu for cpu in cpus if siblings(cpu, topology) in of_rest)})
    return Placement(frozenset(core_list[-number:]), frozenset(load[:LOAD_AT_MOST]))


def narrowed(placement: Placement, workers: int) -> Placement:
    """The same for one repetition of pin = "workers": no core more than it has workers."""
    measured = sorted(placement.measured)[-workers:]
    marks = placement.marks if workers <= len(measured) else ("shared-core",)
    return replace(placement, measured=frozenset(measured), marks=marks)
