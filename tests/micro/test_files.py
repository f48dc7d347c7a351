"""Files and file systems: each visit is one, each read ends once, and nothing of ours is left."""

import contextlib
import os
import resource
import shutil
import signal
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.micro.micro_support import PATIENCE_S, SANITIZED, UNSUPPORTED, Before, Micro, Rows, limited

FORGETTABLE = ["ext2", "ext4", "xfs", "btrfs"]


@pytest.fixture
def full(micro: Micro) -> Micro:
    """Those of a C library that has what they need."""
    micro.skip_in("diet", "musl")
    return micro


def no_bytes() -> None:
    """Files may be made, and have no content: a write fails, which is no signal."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def traces(micro: Micro) -> list[str]:
    """Mounts there and loop devices on files there that do not end soon: the kernel may be late."""
    found: list[str] = []
    for _ in range(100):
        mounts = Path("/proc/self/mounts").read_text().splitlines()
        found = [line for line in mounts if str(micro.at) in line]
        for file in Path("/sys/block").glob("loop*/loop/backing_file"):
            with contextlib.suppress(OSError):  # it was given back while we looked
                found += [line for line in [file.read_text()] if str(micro.at) in line]
        if not found:
            break
        time.sleep(0.05)
    return found


def visits(micro: Micro, command: str) -> Rows:
    """The rows; a skip where a file system of its own cannot be had. Nothing may be left."""
    try:
        return micro.rows(f"{command} @", may_lack="here" not in command)
    finally:
        assert traces(micro) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_without_loop_devices_nothing_is_left(full: Micro) -> None:
    """As in a container: the system lacks something, which is seen after the first files."""
    hidden = "[ ! -e /dev/loop-control ] || mount --bind /dev/null /dev/loop-control"
    command = f"{full.folder / 'stat-cost'} -n 2000 serve ext4 cold {full.at}"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", f"{hidden} && exec {command}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (UNSUPPORTED, "")
    assert "no loop device" in done.stderr
    assert list(full.at.parent.glob(f"{full.at.name}*")) == []


@pytest.mark.parametrize("kind", ["here", "tmpfs"])
@pytest.mark.parametrize(
    "command",
    ["mmap-files -n 5 KIND @", "stat-cost -n 20 -v 10 open KIND warm @", "kernel-aio -m 64 posix KIND @"],
)
def test_a_write_that_fails_leaves_nothing(full: Micro, command: str, kind: str) -> None:
    full.skip_in("tsan", why="kernel-aio is not built with this sanitizer")
    status, out, err = full.run(command.replace("KIND", kind), no_bytes)
    assert (status, out) in ((1, ""), (UNSUPPORTED, "")), err
    assert "write" in err or status == UNSUPPORTED
    assert not full.at.exists()


# ---- mmap-files, mmap-pages, stat-cost, directory-size


def test_each_file_is_mapped_twice(full: Micro) -> None:
    for options in ("-c 1 here", "-p 1 here", "tmpfs"):
        found = visits(full, f"mmap-files -n 150 -k 7 {options}")
        assert [row["file"] for row in found] == [*range(0, 150, 7)]
        for row in found:
            assert all(cell > 0 for name, cell in row.items() if name != "file")


def test_a_fault_reaches_no_further_than_the_mapping(micro: Micro) -> None:
    """Into the first turn may fall what the program itself, or a sanitizer, has not looked at."""
    for order in (0, 1):
        apart, whole = (
            micro.column("faults", f"fault-around -p 512 -r {order} {way} @")[1:]
            for way in ("apart", "whole")
        )
        assert min(apart) == 512
        assert max(whole) < 256


def test_a_path_that_is_taken_is_left_alone(micro: Micro) -> None:
    micro.at.write_text("mine")
    assert micro.complaint("mmap-pages -n 5 @") == f"open {micro.at}: File exists"
    assert micro.at.read_text() == "mine"
    micro.skip_in("diet", "musl")
    assert micro.complaint("directory-size here @") == f"mkdir {micro.at}: File exists"


@pytest.mark.parametrize("way", ["stat", "statx", "open", "below", "read", "serve"])
def test_each_way_to_find_a_file(full: Micro, way: str) -> None:
    for options in ("-d 1", "-d 8", "-b 102400"):
        found = visits(full, f"stat-cost -n 60 -v 50 {options} {way} here warm")
        assert [row["visit"] for row in found] == [*range(50)]
        for row in found:
            _, call, *parts = (cell for cell in row.values() if cell != "-")
            assert call > 0
            assert len(parts) == (4 if way == "serve" else 0)
            assert sum(parts) <= call


@pytest.mark.parametrize("state", ["cold", "listed", "walked"])
def test_what_was_forgotten_takes_longer(full: Micro, state: str) -> None:
    """A wide ratio within one run: a file that was never read comes from the disk. Medians: in a sum one close() that
    another program has interrupted may weigh more than all others.
    """
    found = visits(full, f"stat-cost -n 2000 serve ext4 {state}")
    stat_ns, read_ns, close_ns = (
        statistics.median([row[f"{call}_ns"] for row in found]) for call in ("stat", "read", "close")
    )
    assert read_ns > 4 * close_ns
    assert state != "cold" or stat_ns > 4 * close_ns


@pytest.mark.parametrize("kind", ["tmpfs", *FORGETTABLE])
def test_names_are_found_and_missed(full: Micro, kind: str) -> None:
    found = visits(full, f"directory-size -n 30 -s 50 {kind}")
    forgotten = [row["first_ns"] != "-" and row["cold_ns"] != "-" for row in found]
    assert forgotten == [kind in FORGETTABLE and i < 30 for i in range(50)]
    made = [row["make_ns"] != "-" and row["list_ns"] != "-" for row in found]
    assert made == [True] + 49 * [False]


def test_a_list_is_searched_and_a_hash_is_not(full: Micro) -> None:
    """A wide ratio within one test: ext2 without dir_index reads all of 4000 names for a miss.
    The least of each: a machine with other work makes both slower, and their ratio smaller.
    """
    ext2, ext4 = (
        min(row["miss_ns"] for row in visits(full, f"directory-size -n 4000 {kind}"))
        for kind in ("ext2", "ext4")
    )
    assert ext2 > 3 * ext4


def test_a_file_system_ends_with_its_process(full: Micro) -> None:
    """However that ends. The folder it covered stays, empty."""
    if os.geteuid() != 0:
        pytest.skip("there is none to be left")
    with full.start("directory-size -n 200000 ext2 @", stdout=subprocess.DEVNULL) as child:
        try:
            _, err = child.communicate(timeout=2)
        except subprocess.TimeoutExpired:
            child.kill()
        else:
            pytest.skip(err.strip())
    assert traces(full) == []
    assert [*full.at.parent.rglob("*")] == [full.at]


# ---- aio-threads, kernel-aio


def aio(micro: Micro, arguments: str) -> dict[str, Any]:
    """The one row of aio-threads."""
    micro.skip_in("diet", "tsan", why="not for this C library, or not built")
    [found] = micro.rows(f"aio-threads {arguments} @")
    assert found["all_ns"] > 0
    return found


@pytest.mark.parametrize("reads", [1, 40])
def test_how_many_threads_wait_for_pipes(micro: Micro, reads: int) -> None:
    """What does not get a thread cannot end, although its pipe has a byte. glibc has twenty."""
    found = aio(micro, f"-n {reads} pipes")
    most = reads if micro.variant == "musl" else min(reads, 20)
    assert found["threads"] == most
    assert found["per_read"] == pytest.approx(most / reads)
    assert found["overtakes"] == (most == reads)


def test_one_descriptor_is_read_by_one_thread(micro: Micro) -> None:
    found = aio(micro, "-n 40 pipe")
    assert found["threads"] == (40 if micro.variant == "musl" else 1)
    assert (found["overtakes"], found["named"]) == ("-", "-")
    assert aio(micro, "-n 40 signal")["named"] == 1, "every signal names its read"


@pytest.mark.parametrize("way", ["files", "file", "pool", "loop"])
def test_reads_of_a_file(micro: Micro, way: str) -> None:
    for cold in (0, 1):
        found = aio(micro, f"-n 30 -t 5 -c {cold} {way}")
        assert found["threads"] == {"pool": 5, "loop": 0}.get(way, found["threads"])


@pytest.mark.parametrize("kind", ["here", "tmpfs"])
@pytest.mark.parametrize("way", ["direct", "buffered", "hot", "posix", "loop"])
def test_a_line_for_each_batch(full: Micro, way: str, kind: str) -> None:
    full.skip_in("tsan", why="not built with this sanitizer")
    *batches, last = full.rows(f"kernel-aio -n 5 -q 7 -m 64 {way} {kind} @", may_lack=True)
    assert [row["batch"] for row in batches] == [*range(5)]
    assert all(row["submit_ns"] > 0 and row["read_ns"] > 0 for row in batches)
    # The eventfd counts each read once, and none that the kernel was not asked for.
    assert {row["counted"] for row in batches} == {way in ("direct", "buffered", "hot")}
    *rest, cancelled, threads = last.values()
    assert rest == [5, "-", "-", "-", "-"]
    assert cancelled in (0, 1)
    if full.variant == "bin":
        assert threads == (way == "posix")


@pytest.mark.parametrize(("before", "says"), [(no_bytes, "write "), (limited(resource.RLIMIT_NOFILE, 20), "open ")])
def test_blocks_that_cannot_be_made_or_opened(micro: Micro, before: Before, says: str) -> None:
    micro.skip_in("diet", *SANITIZED, why="not for this C library, or not built")
    said = micro.complaint("aio-threads -n 40 files @", before)
    assert said.startswith(f"{says}{micro.at}: ")
    assert not micro.at.exists()


# ---- disk-read


@pytest.fixture
def files(micro: Micro) -> Path:
    """A list of forty files."""
    if micro.variant not in ("bin", "asan"):
        pytest.skip("disk-read is built in glibc and asan only")
    place = micro.at.parent
    paths = [place / f"{number:02}" for number in range(40)]
    for path in paths:
        path.write_bytes(bytes(70001))
    (place / "list").write_text("".join(f"{path}\n" for path in paths), encoding="utf-8")
    return place / "list"


@pytest.mark.parametrize("order", ["random", "sorted"])
def test_a_line_for_each_part(micro: Micro, files: Path, order: str) -> None:
    found = micro.rows(f"disk-read -j 3 -n 7 -p 4 {files} {order}")
    assert [*found[0]] == ["readers", "files_per_s", "mb_per_s", "read_ms"]
    assert [row["readers"] for row in found] == [3] * 4
    for row in found:
        assert min(row["files_per_s"], row["read_ms"]) > 0
        assert row["mb_per_s"] == pytest.approx(row["files_per_s"] * 70001 / 1e6, rel=1e-3)


def test_each_file_once_in_the_order_wanted(micro: Micro, files: Path) -> None:
    if micro.variant == "asan" or not shutil.which("strace"):
        pytest.skip("needs strace (apt-get install strace), under which no leaks can be found")

    def opened(order: str) -> list[str]:
        """The files in the order in which one reader opens them, 40 of them."""
        command = (
            f"strace -f -qq -e trace=openat {micro.folder}/disk-read -n 20 -p 1 {files} {order}"
        )
        traced = subprocess.run(
            command.split(), capture_output=True, text=True, check=False, timeout=PATIENCE_S
        )
        if "ptrace" in traced.stderr:
            pytest.skip("tracing is not allowed here")
        _, _, *after = traced.stderr.split(f'"{files.parent}/')
        return [text[:2] for text in after]

    names = [f"{number:02}" for number in range(40)]
    upwards, shuffled = opened("sorted"), opened("random")
    first = int(upwards[0])
    assert upwards == names[first:] + names[:first]
    assert sorted(shuffled) == names
    assert shuffled != upwards


def test_the_last_line_needs_no_newline(micro: Micro, files: Path) -> None:
    files.write_text(files.read_text(encoding="utf-8").splitlines()[0], encoding="utf-8")
    assert len(micro.rows(f"disk-read -n 1 -p 2 {files} sorted")) == 2


def test_a_file_that_is_not_there_and_an_empty_list(micro: Micro, files: Path) -> None:
    (files.parent / "07").unlink()
    said = micro.complaint(f"disk-read -n 40 -p 1 {files} sorted")
    assert said == f"{files.parent}/07: No such file or directory"
    files.write_text("")
    assert "no paths" in micro.complaint(f"disk-read {files} random")
