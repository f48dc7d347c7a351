"""How much an experiment may take: the limits of made-up machines."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from quest.ground import cpus
from quest.measure import limits
from quest.measure.limits import Cap
from quest.spec.model import RESOURCES
from tests.harness.made_up import machine

MACHINE = {
    **{f"proc/{number}/comm": "" for number in range(1, 101)},
    "proc/sys/kernel/pid_max": "32768\n",
    "proc/meminfo": f"MemTotal: 9 kB\nMemAvailable:  {480 << 10} kB\n",
    "proc/sys/fs/file-max": "60000\n",
    "proc/sys/fs/epoll/max_user_watches": "12000\n",
    "proc/sys/vm/max_map_count": "65530\n",
}
# A limit further up counts too; file pages that nobody maps do not count.
USED, IDLE = f"{900 << 20}\n", f"cache 1\ninactive_file {300 << 20}\n"
SECOND = {
    "proc/self/cgroup": "0::/a/b\n",
    "cg/a/b/pids.max": "max\n",
    "cg/a/pids.max": "512\n",
    "cg/a/pids.current": "12\n",
    "cg/a/memory.max": f"{1000 << 20}\n",
    "cg/a/memory.current": USED,
    "cg/a/memory.stat": IDLE,
}
FIRST = {
    "proc/self/cgroup": "8:cpu,pids:/a/b\n4:memory:/a\n",
    "cg/pids/a/pids.max": "512\n",
    "cg/pids/a/pids.current": "12\n",
    "cg/memory/a/memory.limit_in_bytes": f"{1000 << 20}\n",
    "cg/memory/a/memory.usage_in_bytes": USED,
    "cg/memory/a/memory.stat": IDLE,
}


@pytest.mark.parametrize(("groups", "limit"), [(SECOND, "memory.max"), (FIRST, "memory.limit_in_bytes")])
def test_what_a_machine_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, groups: Mapping[str, str], limit: str
) -> None:
    def caps(name: str, ulimit: int = -1) -> list[tuple[int, str]]:
        monkeypatch.setattr("resource.getrlimit", lambda _: (ulimit, ulimit))
        return [(cap.most, cap.why) for cap in limits.RESOURCES[name]()]

    monkeypatch.setattr(limits, "PROC", machine(tmp_path, {**MACHINE, **groups}) / "proc")
    monkeypatch.setattr(limits, "CGROUPS", tmp_path / "cg")
    pids = [(8167, "kernel.pid_max 32768"), (125, "pids.max 512 of our cgroup")]
    memory = [(120, "480 MiB available"), (100, f"{limit} 1000 MiB of our cgroup")]
    assert caps("processes") == pids
    assert caps("processes", 900) == [(200, "ulimit -u 900"), *pids]
    assert caps("descriptors", 900) == [(836, "ulimit -n 900"), (15000, "fs.file-max 60000")]
    assert caps("memory") == memory
    assert caps("memory", 4 << 30) == [memory[0], (1024, "ulimit -v 4194304"), memory[1]]
    assert caps("connections") == [
        *((most * 1024 // 12, why) for most, why in memory), (7500, "fs.file-max 60000")
    ]  # fmt: skip
    assert caps("mappings") == [(64530, "vm.max_map_count 65530")]
    says = {
        10000: "",
        15000: "they take 15000 entries of epoll, and max_user_watches is 12000",
        25000: "they take 70000 open files, and fs.file-max is 60000",
        35000: f"they take up to 410 MiB, and there are 400: {memory[1][1]}",
        50000: "they take up to 585 MiB, and there are 480: 480 MiB available",
    }
    assert {n: limits.shortage(n) for n in says} == says
    for path in (tmp_path / "proc").glob("[msn]*/**/*"):
        path.unlink() if path.is_file() else None
    (tmp_path / "proc/meminfo").unlink()
    assert caps("mappings") == caps("memory") == [] and limits.shortage(1 << 30) == ""


def test_every_resource_an_experiment_may_name_has_its_limits() -> None:
    assert tuple(limits.RESOURCES) == RESOURCES
    assert all(limits.smallest([name]).most >= 1 for name in limits.RESOURCES)


def test_the_smallest_limit_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"processes": [Cap(50, "p"), Cap(70, "q")], "descriptors": [Cap(60, "d")]}
    monkeypatch.setattr(limits, "RESOURCES", {n: partial(list, c) for n, c in found.items()})
    assert limits.smallest(found) == Cap(50, "p")
    assert limits.smallest(["descriptors"]) == Cap(60, "d")
    found["processes"][0] = Cap(-5, "full")
    assert limits.smallest(["processes"]) == Cap(1, "full")


def test_workers_that_share_are_as_many_as_the_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpus, "allowed", lambda: [2, 3, 7])
    assert limits.smallest(["processors"]) == Cap(3, "3 processors that we may use")
