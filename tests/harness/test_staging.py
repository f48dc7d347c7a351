"""[stage]: limits by control groups of both versions, a disk of its own, and what they leave."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quest.ground import places, processes
from quest.ground.errors import InputError, RepetitionError, Unsupported
from quest.ground.places import text_of
from quest.measure import cgroups, disks, needs, programs
from quest.measure.cgroups import Limits
from tests.harness.made_up import BENCHMARKS, await_
from tests.harness.test_load import loaded

# ---- the table -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"memory_mib": 0}, '"memory_mib" must be a whole number above 0, or a placeholder'),
        ({"memory_mib": True}, '"memory_mib" must be a whole number above 0, or a placeholder'),
        ({"read_iops": "many"}, '"read_iops" must be a whole number above 0, or a placeholder'),
        ({"read_iops": "{iops}"}, "unknown placeholder {iops}"),
        ({"mount": "{option}"}, "unknown placeholder {option}"),
        ({"mount": "noatime -o bind"}, '"mount" must be options of mount(8)'),
    ],
)
def test_a_mistake_is_one_line(table: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"^sample.toml: [^\n]*{re.escape(message)}[^\n]*$"):
        loaded(stage=table)
    with pytest.raises(InputError, match='"stage".* goes with kind = "load"'):
        loaded(stage={"memory_mib": 12}, docroot={"files": {}})  # it needs files


def test_what_a_stage_needs_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, both = (
        loaded(stage={"mount": "noatime"}),
        loaded(stage={"memory_mib": 9, "read_iops": 9}),
    )
    assert plain.stage
    assert plain.stage.needs == ("loop-device",)
    asked = []

    def probe(name: str, _many: bool) -> places.Answer:
        asked.append(name)
        return places.Answer(name != "io-throttle", "no such thing", "buy one")

    monkeypatch.setattr(needs, "probe", probe)
    answer = programs.missing(both, both.variants[0])
    assert answer == places.Answer(False, "no such thing", "buy one")
    assert asked == ["loop-device", "memory-cgroup", "io-throttle"]


# ---- for real, where it is allowed ---------------------------------------------------------------

ALLOWED = [needs.probe(name) for name in ("loop-device", "memory-cgroup", "io-throttle")]
REFUSED = next((answer.reason for answer in ALLOWED if not answer.ok), "")
real = pytest.mark.skipif(bool(REFUSED), reason=REFUSED)

# In a process of its own: it moves into a mount namespace.
INSIDE = """
import os, sys, time
from pathlib import Path
from quest.measure import cgroups, disks
from quest.measure.cgroups import Limits
files = Path(sys.argv[1])
def read(disk, group):
    child = os.fork()
    if child == 0:
        for file in group:
            file.write_text("0")
        for path in sorted(disk.root.glob("[0-9]*")):
            path.read_bytes()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(20):
        (folder / str(number)).write_bytes(bytes([number + 1]) * 40960)
    return folder


def inside(script: str, files: Path) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", INSIDE + script, str(files)]
    environment = {**os.environ, "PYTHONPATH": str(BENCHMARKS.parent)}
    return subprocess.Popen(words, cwd=files.parent, env=environment, stdout=subprocess.PIPE, text=True)


def said(script: str, files: Path) -> list[str]:
    process = inside(script, files)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return out.splitlines()


def loops(folder: Path) -> list[str]:
    """Loop devices over a file of this folder."""
    backing = Path("/sys/block").glob("loop*/loop/backing_file")
    return [str(file) for file in backing if str(folder) in text_of(file)]  # "": detached meanwhile


@real
def test_a_disk_is_cold_each_time_and_leaves_nothing(files: Path) -> None:
    """Access times are as the mount has them."""
    script = """
for options in ("", "strictatime", "relatime", "noatime"):
    with disks.staged_disk(files, options) as disk:
        before = {path: path.stat().st_atime_ns for path in disk.root.glob("[0-9]*")}
        first = disk.counters()
        read(disk, [])
        second = disk.counters()
        read(disk, [])
        third = disk.counters()
        print(second.since(first).read_sectors, third.since(second).read_sectors)
        print(sum(path.stat().st_atime_ns != was for path, was in before.items()))
    print(disk.root.exists())
"""
    lines = said(script, files)
    assert lines[1::3] == ["0", "20", "0", "0"]
    assert lines[2::3] == ["False"] * 4
    for line in lines[::3]:
        cold, warm = map(int, line.split())
        assert cold >= 20 * 80
        assert warm <= cold // 20  # a block of the file system's own, now and then
    await_(lambda: not loops(files.parent))
    assert not list((files.parent / "build/scratch").iterdir())


@real
def test_a_group_slows_the_reads_of_those_in_it(files: Path) -> None:
    script = """
for iops in (0, 10):
    with disks.staged_disk(files, "") as disk:
        with cgroups.group(Limits(64 << 20, iops, disk.device)) as group:
            start = time.monotonic()
            read(disk, group)
            print(time.monotonic() - start)
            for file in group:
                assert file.read_text() == ""
"""
    free, limited = map(float, said(script, files))
    assert limited > 5 * free


@real
def test_a_process_starts_in_the_group(tmp_path: Path) -> None:
    with cgroups.group(Limits(memory_bytes=64 << 20)) as group:
        name = group[0].parent.name
        with processes.running("cat", ["cat", "/proc/self/cgroup"], groups=group) as process:
            assert process.reap(10)
            assert name in process.output()
        missing = [tmp_path / "none" / "cgroup.procs"]
        with pytest.raises(RepetitionError, match="cannot be started in its control group"):  # noqa: SIM117
            with processes.running("cat", ["cat"], groups=missing):
                pass
    assert not group[0].parent.exists()


def left_behind(name: str) -> Iterator[Path]:
    for folders in (v.folders(cgroups.MOUNTS.read_text()) for v in cgroups.VERSIONS):
        yield from (place for root in folders.values() for place in root.glob(name))


def dead(pid: int) -> bool:
    """Whoever is its parent now may never ask for its status."""
    return text_of(f"/proc/{pid}/stat").rpartition(") ")[2][:1] in ("", "Z", "X")


@real
def test_what_a_killed_one_leaves_the_next_removes(files: Path) -> None:
    script = """
with disks.staged_disk(files, "noatime") as disk, cgroups.group(Limits(64 << 20)) as group:
    child = os.fork()
    if child == 0:
        group[0].write_text("0")
        os.close(1)
        time.sleep(60)
    while not group[0].read_text():
        time.sleep(0.01)
    print(group[0].parent.name, child, flush=True)
    time.sleep(60)
"""
    process = inside(script, files)
    assert process.stdout
    name, child = process.stdout.readline().split()
    try:
        assert loops(files.parent)
        assert list(left_behind(name))
    finally:
        process.kill()
        process.communicate(timeout=10)
    # The child held the mounts; it is ended as a member of the group.
    assert name in cgroups.remove_leftovers()
    assert not list(left_behind(name))
    await_(lambda: not loops(files.parent))
    scratch = files.parent / "build/scratch"
    assert sorted(path.name.split("-")[1] for path in scratch.iterdir()) == ["disk", "image"]
    assert said("from quest.ground import places; places.sweep_scratch()", files) == []
    assert list(scratch.iterdir()) == []
    await_(lambda: dead(int(child)))


@real
def test_what_mke2fs_says_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(RepetitionError) as caught:
        disks._tool("mke2fs", "-q", str(tmp_path / "none" / "image"), "4096k")
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("mke2fs: ")


# A copy of / without a mount of its own; the mounts in it end with the process.
PLAIN_CHROOT = """
for path in /*; do
    if [ -L "$path" ]; then cp -P "$path" .
    elif [ -d "$path" ]; then mkdir ".$path" && mount --rbind "$path" ".$path"; fi
done
exec chroot . "$@"
"""


def test_in_a_plain_chroot_mounts_of_our_own_are_refused(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    tried = subprocess.getstatusoutput("unshare --mount true")
    if os.geteuid() != 0 or tried[0] != 0:
        pytest.skip(f"needs root, and mounts of its own: {tried[1]}")
    probe = f"import sys; sys.path.append('{BENCHMARKS.parent}'); from quest.measure import needs"
    probe += "; print(*needs.probe('loop-device'), sep='; ', end='')"
    program = Path(pytestconfig.getoption("--build"), "bin/directory-size").absolute()
    wanted = "/ is no mount point, as in a plain chroot"
    remedy = "mount --bind DIR DIR before chroot DIR"
    for words, status, said in (
        ([sys.executable, "-c", probe], 0, f"False; {wanted}; {remedy}"),
        ([program, "tmpfs", tmp_path / "x"], 77,
         f"directory-size: no mounts of our own: {wanted} ({remedy})\n"),
    ):  # fmt: skip
        (root := tmp_path / f"root-{status}").mkdir()
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-ec", PLAIN_CHROOT, "sh", *words], cwd=root, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=60,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (status, said)


@real
def test_a_limit_the_kernel_refuses_is_named() -> None:
    limits = Limits(read_iops=240, device="250:250")
    with pytest.raises(Unsupported, match=r"250:250.*240: "), cgroups.group(limits):
        pass
    assert not list(left_behind(f"quest-{os.getpid()}-*"))
