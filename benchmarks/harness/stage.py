"""[stage]: an old machine for the server: little memory, few reads a second, a disk of its own."""

import re
from collections.abc import Callable
from dataclasses import astuple

from harness.errors import InputError
from harness.grouplimits import Limits
from harness.model import Stage
from harness.tables import Table

PLACEHOLDER = re.compile(r"\{[a-z_][a-z0-9_]*\}")
OPTIONS = re.compile(r"[a-z0-9_=,{}]*")


def read(top: Table, kind: str, has_files: bool) -> Stage | None:
    if "stage" not in top:
        return None
    table = top.table("stage")
    stage = Stage(
        memory_mib=_amount(table, "memory_mib"),
        read_iops=_amount(table, "read_iops"),
        read_bytes_per_s=_amount(table, "read_bytes_per_s"),
        mount=table.text("mount", ""),
    )
    table.done()
    if kind != "load" or not has_files:
        raise table.error('goes with kind = "load" and [docroot.files]')
    if not OPTIONS.fullmatch(stage.mount):
        raise table.error(f'"mount" must be options of mount(8), not "{stage.mount}"')
    return stage


def _amount(table: Table, key: str) -> str:
    value = table.raw(key)
    if value is None:
        return ""
    if isinstance(value, str) and PLACEHOLDER.fullmatch(value):
        return value
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise table.error(f'"{key}" must be a whole number above 0, or a placeholder')
    return str(value)


def texts(stage: Stage | None) -> tuple[str, ...]:
    """All that may hold a placeholder."""
    return astuple(stage) if stage else ()


def needs(stage: Stage | None) -> tuple[str, ...]:
    """Probes of needs.py without which the stage cannot be set."""
    if stage is None:
        return ()
    slow = stage.read_iops or stage.read_bytes_per_s
    limits = {"memory-cgroup": stage.memory_mib, "io-throttle": slow}
    return ("loop-device", *(name for name, wanted in limits.items() if wanted))


def limits(stage: Stage, fill: Callable[[str], str], device: str) -> Limits:
    """Those of a repetition, whose values `fill` puts in; 0 is no limit."""

    def amount(text: str) -> int:
        filled = fill(text)
        try:
            return int(float(filled or 0))
        except ValueError:
            raise InputError(f'[stage]: "{filled}" ({text}) is no number') from None

    return Limits(
        memory_bytes=amount(stage.memory_mib) << 20,
        read_iops=amount(stage.read_iops),
        read_bytes_per_s=amount(stage.read_bytes_per_s),
        device=device,
    )
