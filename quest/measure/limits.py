"""How much an experiment may take of processes, descriptors, connections, memory (in MiB),
mappings, cores and processors: well below what the user may have.

On a shared host other users must not notice, so a quarter of what is free now is the most. Of what
belongs to one process alone, its descriptors and its mappings, it may use nearly all.
"""

import resource
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from quest.ground import cpus
from quest.ground.places import text_of
from quest.measure.counters import proc_number
from quest.spec import plan
from quest.spec.model import Experiment, Profile

SHARE = 4
RESERVE_DESCRIPTORS = 64
RESERVE_FILES = 20000  # of the whole machine: what else is open
RESERVE_MAPPINGS = 1000  # of the program itself; the sanitizers have hundreds
KIB_PER_CONNECTION = 12  # of the kernel, for both ends of an idle one: here it takes 9
KIB_PER_MIB = 1 << 10
BYTES_PER_MIB = 1 << 20
PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")
MEMORY_FILES = {"memory.max": "memory.current", "memory.limit_in_bytes": "memory.usage_in_bytes"}


@dataclass(frozen=True)
class Cap:
    """How many at most, and which limit says so."""

    most: int
    why: str


def _soft_limit(kind: int) -> int | None:
    soft = resource.getrlimit(kind)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def cgroup_folders(controller: str) -> Iterator[Path]:
    """Our folders in a controller, version 2 and 1, from the innermost outwards."""
    for line in text_of(PROC / "self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers or controller in controllers.split(","):
            top = CGROUPS / controller if controllers else CGROUPS
            folder = top / path.lstrip("/")
            yield from (folder, *folder.parents[: len(folder.relative_to(top).parts)])


def process_caps() -> Iterator[Cap]:
    """Processes and threads."""
    running = sum(1 for entry in PROC.iterdir() if entry.name.isdigit())
    if (soft := _soft_limit(resource.RLIMIT_NPROC)) is not None:
        yield Cap((soft - running) // SHARE, f"ulimit -u {soft}")
    for name in ("pid_max", "threads-max"):
        if (value := proc_number(PROC / "sys/kernel" / name)) is not None:
            yield Cap((value - running) // SHARE, f"kernel.{name} {value}")
    for folder in cgroup_folders("pids"):
        if (most := proc_number(folder / "pids.max")) is not None:
            current = proc_number(folder / "pids.current") or 0
            yield Cap((most - current) // SHARE, f"pids.max {most} of our cgroup")


def descriptor_caps() -> Iterator[Cap]:
    """Descriptors of one process, and open files of the machine."""
    if (soft := _soft_limit(resource.RLIMIT_NOFILE)) is not None:
        # One process holds them: nearly all of its own limit may be used.
        yield Cap(soft - RESERVE_DESCRIPTORS, f"ulimit -n {soft}")
    if (most := proc_number(PROC / "sys/fs/file-max")) is not None:
        yield Cap(most // SHARE, f"fs.file-max {most}")


def memory_caps() -> Iterator[Cap]:
    """MiB of memory."""
    if (available := proc_number(PROC / "meminfo", "MemAvailable:")) is not None:
        yield Cap(available // KIB_PER_MIB // SHARE, f"{available // KIB_PER_MIB} MiB available")
    if (soft := _soft_limit(resource.RLIMIT_AS)) is not None:
        yield Cap(soft // BYTES_PER_MIB // SHARE, f"ulimit -v {soft // 1024}")
    for folder in cgroup_folders("memory"):
        for limit, usage in MEMORY_FILES.items():
            if (most := proc_number(folder / limit)) is not None:
                # Cached files that no process has mapped count as used, but make room.
                idle = proc_number(folder / "memory.stat", "inactive_file") or 0
                free = most - (proc_number(folder / usage) or 0) + idle
                why = f"{limit} {most // BYTES_PER_MIB} MiB of our cgroup"
                yield Cap(free // BYTES_PER_MIB // SHARE, why)


def connection_caps() -> Iterator[Cap]:
    """Idle connections with both ends here, in any number of processes."""
    for cap in memory_caps():
        yield Cap(cap.most * KIB_PER_MIB // KIB_PER_CONNECTION, cap.why)
    if (most := proc_number(PROC / "sys/fs/file-max")) is not None:
        yield Cap(most // SHARE // 2, f"fs.file-max {most}")


def shortage(connections: int) -> str:
    """Which limit of the machine so many idle connections with both ends here exceed; "" if none.
    The whole of what is free counts, not a share of it.
    """
    wanted_mib = connections * KIB_PER_CONNECTION // KIB_PER_MIB
    for cap in memory_caps():
        if cap.most * SHARE < wanted_mib:
            return f"they take up to {wanted_mib} MiB, and there are {cap.most * SHARE}: {cap.why}"
    files = 2 * connections + RESERVE_FILES
    if (most := proc_number(PROC / "sys/fs/file-max")) is not None and most < files:
        return f"they take {files} open files, and fs.file-max is {most}"
    watches = proc_number(PROC / "sys/fs/epoll/max_user_watches")
    if watches is not None and watches < connections:
        return f"they take {connections} entries of epoll, and max_user_watches is {watches}"
    return ""


def mapping_caps() -> Iterator[Cap]:
    """Mappings of one process."""
    if (most := proc_number(PROC / "sys/vm/max_map_count")) is not None:
        yield Cap(most - RESERVE_MAPPINGS, f"vm.max_map_count {most}")


def processor_caps() -> Iterator[Cap]:
    """Workers that share them with the load, with pin = "shared": what nginx calls `auto`."""
    processors = len(cpus.allowed())
    yield Cap(processors, f"{processors} processors that we may use")


RESOURCES: dict[str, Callable[[], Iterable[Cap]]] = {
    "processes": process_caps,
    "descriptors": descriptor_caps,
    "connections": connection_caps,
    "memory": memory_caps,
    "mappings": mapping_caps,
    "processors": processor_caps,
}


def smallest(resources: Iterable[str]) -> Cap:
    """The least of all caps on these resources (RESOURCES), at least 1."""
    caps = [cap for name in resources for cap in RESOURCES[name]()]
    least = min(caps, key=lambda cap: cap.most, default=Cap(1 << 30, "no limit"))
    return Cap(max(least.most, 1), least.why)


def reducing(experiment: Experiment, profile: Profile) -> dict[str, tuple[Cap, float]]:
    """Parameter -> the cap that is below what the profile asks for, and what it asks for."""
    reduced = {}
    for key, resources in experiment.caps.items():
        cap = smallest(resources)
        values = [
            value
            for variant in experiment.variants
            for params in plan.points(experiment, variant, profile)
            if isinstance(value := params.get(key), int | float)
        ]
        if (wanted := max(values, default=0)) > cap.most:
            reduced[key] = cap, wanted
    return reduced
