"""How many processes and descriptors an experiment may take: well below what the user may have.

On a shared host nobody else must notice, so a quarter of what is free now is the most.
"""

import resource
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

SHARE = 4
RESERVE_DESCRIPTORS = 64


@dataclass(frozen=True)
class Cap:
    """How many at most, and which limit says so."""

    most: int
    why: str


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return None  # absent, or "max"


def cgroup_folders(proc: Path, cgroups: Path) -> list[Path]:
    """Our folders in the pids controller, version 2 and 1, from the innermost outwards."""
    try:
        lines = (proc / "self" / "cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    folders = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "pids" not in controllers.split(","):
            continue
        top = cgroups / "pids" if controllers else cgroups
        folder = top / path.lstrip("/")
        while folder != top.parent:
            folders.append(folder)
            folder = folder.parent
    return folders


def process_caps(
    proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup"), soft: int | None = None
) -> Iterable[Cap]:
    running = sum(1 for entry in proc.iterdir() if entry.name.isdigit())
    if soft is None:
        soft = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    if soft != resource.RLIM_INFINITY:
        yield Cap((soft - running) // SHARE, f"ulimit -u {soft}")
    for name in ("pid_max", "threads-max"):
        value = _number(proc / "sys" / "kernel" / name)
        if value is not None:
            yield Cap((value - running) // SHARE, f"kernel.{name} {value}")
    for folder in cgroup_folders(proc, cgroups):
        most = _number(folder / "pids.max")
        if most is not None:
            current = _number(folder / "pids.current") or 0
            yield Cap((most - current) // SHARE, f"pids.max {most} of our cgroup")


def descriptor_caps(soft: int | None = None, proc: Path = Path("/proc")) -> Iterable[Cap]:
    if soft is None:
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if soft != resource.RLIM_INFINITY:
        # One process holds them: nearly all of its own limit may be used.
        yield Cap(soft - RESERVE_DESCRIPTORS, f"ulimit -n {soft}")
    most = _number(proc / "sys" / "fs" / "file-max")
    if most is not None:
        yield Cap(most // SHARE, f"fs.file-max {most}")


def smallest(resources: Iterable[str]) -> Cap:
    caps: list[Cap] = []
    for name in resources:
        caps += process_caps() if name == "processes" else descriptor_caps()
    least = min(caps, key=lambda cap: cap.most, default=Cap(1 << 30, "no limit"))
    return Cap(max(least.most, 1), least.why)


def caps_for(declared: Mapping[str, tuple[str, ...]]) -> dict[str, Cap]:
    """The [caps] of an experiment -> the most each of those parameters may be."""
    return {parameter: smallest(resources) for parameter, resources in declared.items()}
