"""Limits by control groups, version 2: one hierarchy for all controllers. As cgroup_v1.py."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.grouplimits import Limits, Setting, mounted

NAMES = ("memory", "io")


def folders(mounts: str) -> dict[str, Path]:
    """Controller -> the root of the hierarchy, for those that it offers.

    On a hybrid system the controllers are in version 1, and this one has none.
    """
    for path, kind, _ in mounted(mounts):
        if kind == "cgroup2":
            offered = (path / "cgroup.controllers").read_text(encoding="ascii").split()
            return {name: path for name in NAMES if name in offered}
    return {}


def enable(root: Path, controllers: Iterable[str]) -> None:
    """Groups below the root get these controllers.

    They stay enabled: whether somebody else relies on them by now cannot be known.
    """
    control = root / "cgroup.subtree_control"
    there = control.read_text(encoding="ascii").split()
    wanted = [f"+{name}" for name in sorted(controllers) if name not in there]
    if wanted:
        control.write_text(" ".join(wanted), encoding="ascii")


def settings(limits: Limits) -> Iterator[Setting]:
    if limits.memory_bytes:
        yield Setting("memory", "memory.max", str(limits.memory_bytes))
    rates = {"riops": limits.read_iops, "rbps": limits.read_bytes_per_s}
    given = [f"{name}={value}" for name, value in rates.items() if value]
    if given:
        yield Setting("io", "io.max", " ".join([limits.device, *given]))
