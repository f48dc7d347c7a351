"""Limits by control groups, version 1: a hierarchy for each controller. As cgroup_v2.py."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.grouplimits import Limits, Setting, mounted

NAMES = {"memory": "memory", "io": "blkio"}  # what we call a controller -> what the kernel does


def folders(mounts: str) -> dict[str, Path]:
    """Controller -> the root of its hierarchy."""
    found = {}
    for path, kind, options in mounted(mounts):
        for name, theirs in NAMES.items():
            if kind == "cgroup" and theirs in options:
                found[name] = path
    return found


def enable(_root: Path, _controllers: Iterable[str]) -> None:
    """Nothing to do: a hierarchy has its controller in all groups."""


def settings(limits: Limits) -> Iterator[Setting]:
    if limits.memory_bytes:
        yield Setting("memory", "memory.limit_in_bytes", str(limits.memory_bytes))
    if limits.read_iops:
        value = f"{limits.device} {limits.read_iops}"
        yield Setting("io", "blkio.throttle.read_iops_device", value)
    if limits.read_bytes_per_s:
        value = f"{limits.device} {limits.read_bytes_per_s}"
        yield Setting("io", "blkio.throttle.read_bps_device", value)
