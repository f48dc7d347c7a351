"""The museum disk: mounted, its files, time, statistics and end; and as arithmetic (museum-model).
Its parts: tests/unit.
"""

import concurrent.futures
import errno
import json
import mmap
import os
import random
import shutil
import signal
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from quest.measure import needs
from tests.conformance.museum import HANG_S, Museum, await_unmounted, mounted, needed
from tests.conformance.process import Unprivileged, wait_until

MASK = (1 << 64) - 1


def run(name: str, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [needed(name), *args], capture_output=True, text=True, timeout=HANG_S, check=False
    )


# ---- the content, computed a second time


def _mix(x: int) -> int:
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & MASK
    return x ^ (x >> 31)


def content(path: str, offset: int, length: int) -> bytes:
    """Bytes of MOUNT/path."""
    seed = 0xCBF29CE484222325
    for byte in path.encode():
        seed = (seed ^ byte) * 0x100000001B3 & MASK
    first = offset // 8
    words = (length + offset % 8 + 7) // 8
    values = [_mix(seed + (first + 1 + i) * 0x9E3779B97F4A7C15 & MASK) for i in range(words)]
    return struct.pack(f"<{words}Q", *values)[offset % 8 :][:length]


# ---- a mount

Mount = Callable[..., Museum]
FAST = ("--speed", "100")
K100 = 102400


@pytest.fixture
def mount() -> Iterator[Mount]:
    """mount("--speed", "10", "files=10x4K") -> a mounted disk, which ends with the test."""
    made: list[Museum] = []
    with tempfile.TemporaryDirectory(prefix="museum-") as folder:
        # pytest's own folders are closed to other users, and a mount may be one's.
        Path(folder).chmod(0o755)

        def mount_one(*args: str, **more: Any) -> Museum:
            place = Path(folder) / str(len(made))
            place.mkdir(exist_ok=True)
            place.chmod(0o777)
            made.append(Museum(place, *args, **more))
            return made[-1]

        try:
            yield mount_one
        finally:
            for museum in made:
                museum.end()


def names(*pools: str) -> list[str]:
    return run("museum", "--list", *pools).stdout.splitlines()


# ---- the files


def test_first_line_and_tree(mount: Mount) -> None:
    museum = mount(*FAST, "files=600x100K")
    assert museum.line == f"museum: mounted on {museum.folder}, 600 files\n"
    listed = {
        str(Path(top, name).relative_to(museum.folder))
        for top, _, files in os.walk(museum.folder)
        for name in files
    }
    assert listed == set(names("files=600x100K"))
    assert len(listed) == 600
    state = (museum.folder / "files/000/000256").stat()
    assert (state.st_size, state.st_mtime) == (K100, 1170374400)
    with pytest.raises(FileNotFoundError):
        (museum.folder / "files/000/000001").stat()


def test_nobody_can_write(mount: Mount) -> None:
    museum = mount(*FAST, "files=1x10")
    file, new = museum.folder / "files/000/000000", museum.folder / "new"
    attempts: list[Callable[[], object]] = [lambda: file.open("r+"), new.touch, file.unlink]
    for attempt in attempts:
        with pytest.raises(OSError) as caught:
            attempt()
        assert caught.value.errno in (errno.EROFS, errno.EACCES)


def by_mmap(fd: int, length: int, offset: int) -> bytes:
    inside = offset % mmap.PAGESIZE
    span, page = inside + length, offset - inside
    with mmap.mmap(fd, span, mmap.MAP_SHARED, mmap.PROT_READ, offset=page) as mapped:
        return mapped[inside:]


def by_direct_io(fd: int, length: int, offset: int) -> bytes:
    inside = offset % 4096
    with (
        open(f"/proc/self/fd/{fd}", "rb", buffering=0, opener=direct) as file,
        mmap.mmap(-1, (inside + length + 4095) & ~4095) as buffer,
    ):
        got = os.preadv(file.fileno(), [buffer], offset - inside)
        return buffer[:got][inside:][:length]


def direct(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_DIRECT)


@pytest.mark.parametrize("how", [os.pread, by_mmap, by_direct_io])
def test_every_way_reads_the_same(mount: Mount, how: Callable[[int, int, int], bytes]) -> None:
    """At odd offsets, over the borders of pieces and fragments, at the end, and beyond 4 GiB."""
    size = 5000000001
    museum = mount(*FAST, "--fragment", "8", f"big=2x{size}")
    path = "big/001/000001"
    with (museum.folder / path).open("rb", buffering=0) as file:
        fd = file.fileno()
        for place in ((0, 10), (1, 4097), (131071, 3), (100003, 50001), (4294967290, 20000)):
            offset, length = place
            assert how(fd, length, offset) == content(path, offset, length), place
        assert how(fd, 7, size - 7) == content(path, size - 7, 7)
        assert os.pread(fd, 100, size - 3) == content(path, size - 3, 3)
        assert os.pread(fd, 100, size) == b""


# ---- what it costs


def test_what_is_a_seek(mount: Mount) -> None:
    """A file is: no GETATTR before a read(), no second READ, and metadata is free. Its pieces are
    one together.
    """
    museum = mount(*FAST, "files=1000x100K", "big=1x16M")
    for name in names("files=1000x100K")[40:60]:
        with (museum.folder / name).open("rb", buffering=0) as file:
            assert len(file.read(K100)) == K100
    told = museum.new_phase()
    assert told["getattrs"] <= 2
    assert (told["reads"], told["opens"], told["seeks"]) == (20, 20, 20)
    assert told["disk_bytes"] == 20 * K100
    with (museum.folder / "big/000/000000").open("rb", buffering=0) as file:
        while file.read(65536):
            pass
    told = museum.statistics()
    assert told["disk_bytes"] == 16 << 20
    assert told["reads"] >= 128
    assert told["seeks"] <= 3
    assert told["seeks"] + told["continuations"] == told["disk_reads"]


def test_cold_is_cold_and_kept_is_hot(mount: Mount) -> None:
    seen = {}
    for options in ((), ("--keep",), ("--cache", "10")):
        museum = mount(*FAST, *options, "files=10x100K")
        for _ in range(3):
            assert (museum.folder / "files/003/000003").read_bytes()[:9] == content(
                "files/003/000003", 0, 9
            )
        told = museum.statistics()
        seen[options] = (told["reads"], told["disk_reads"], told["cache_hits"])
    assert seen == {(): (3, 3, 0), ("--keep",): (1, 1, 0), ("--cache", "10"): (3, 1, 50)}


def test_a_cold_lookup_is_a_seek(mount: Mount) -> None:
    museum = mount(*FAST, "--metadata", "cold", "files=1000x100K")
    path = museum.folder / "files/007/000007"
    path.stat()
    first = museum.new_phase()
    assert first["lookups"] == 3, "the pool, the directory, the file"
    assert first["disk_reads"] == 1, "the file's inode: few directories are soon in memory"
    for _ in range(5):
        path.stat()
    assert museum.statistics()["disk_reads"] == 0, "and then they are in the kernel's cache"


def test_threads_are_not_serialised(mount: Mount) -> None:
    museum = mount("files=1000x100K")
    chosen = names("files=1000x100K")[::10]
    together = threading.Barrier(len(chosen))

    def read(name: str) -> bool:
        with (museum.folder / name).open("rb", buffering=0) as file:
            together.wait()
            return file.read()[-9:] == content(name, K100 - 9, 9)

    with concurrent.futures.ThreadPoolExecutor(len(chosen)) as pool:
        assert all(pool.map(read, chosen))
    told = museum.statistics()
    assert told["queue_deepest"] >= 64
    assert told["disk_bytes"] == len(chosen) * K100


def test_direct_reads_do_not_wait_for_each_other(mount: Mount) -> None:
    """As those of 12-aio's io_submit(): with O_DIRECT the kernel asks for all pieces of a large
    read at once. If it waited for each, the queue would be short.
    """
    museum, size = mount("big=1x16M"), 16 << 20
    with (
        open(museum.folder / "big/000/000000", "rb", buffering=0, opener=direct) as file,
        mmap.mmap(-1, size) as buffer,
    ):
        assert os.preadv(file.fileno(), [buffer], 0) == size
        assert buffer[-9:] == content("big/000/000000", size - 9, 9)
    assert museum.statistics()["queue_deepest"] >= 16  # one at a time would be one; of a busy kernel all come late


@pytest.mark.quiet
def test_the_rate_is_the_models(mount: Mount) -> None:
    """With a queue, oversleeping costs nothing: the disks' time is that of the arithmetic. Where
    the machine keeps the queue short the arms go less far, and the rate is higher.
    """
    museum = mount("--speed", "20", "files=1000x4K")
    chosen = random.Random(1).choices(names("files=1000x4K"), k=1000)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        museum.new_phase()
        list(pool.map(Path.read_bytes, [museum.folder / name for name in chosen]))
    told = museum.statistics()
    model = run("museum-model", "-j", "16", "--parts", "1", "files=1000x4K").stdout
    rate = float(model.splitlines()[1].split("\t")[1])
    assert 0.95 < len(chosen) / told["seconds"] / told["utilisation"] / rate < 1.25


def test_statistics(mount: Mount) -> None:
    museum = mount(*FAST, "-s", "3", "files=100x100K")
    for name in names("files=100x100K"):
        (museum.folder / name).read_bytes()
    told = museum.statistics()
    assert len(told["spindle_utilisation"]) == 3
    mean = sum(told["spindle_utilisation"]) / 3
    assert told["utilisation"] == pytest.approx(mean)
    assert 0 < told["utilisation"] < 1
    assert told["head_travel"] > 0
    ends, depths, shares = zip(*told["course"], strict=True)
    assert ends[-1] == pytest.approx(told["seconds"])
    widths = [end - start for start, end in zip((0, *ends), ends, strict=False)]
    for values, key in ((depths, "queue_depth"), (shares, "utilisation")):
        over_time = sum(v * w for v, w in zip(values, widths, strict=True)) / told["seconds"]
        assert over_time == pytest.approx(told[key], rel=0.01)
    museum.process.send_signal(signal.SIGUSR1)
    printed = json.loads(museum.next_line())
    assert printed["reads"] == 100
    assert museum.new_phase()["reads"] == 100
    assert museum.new_phase()["reads"] == 0
    (museum.folder / "files/000/000000").read_bytes()
    museum.process.send_signal(signal.SIGUSR2)  # begins anew, as a new phase does
    assert wait_until(lambda: bool(museum.statistics()["reads"] == 0), HANG_S)


# ---- its end

#: fusermount3, which unmounts for an ordinary user, asks it whose a mount is. A system without systemd may have none.
MTAB = Path("/etc/mtab")


def complaints(err: str) -> str:
    """What museum wrote to stderr, without what fusermount3 says there where no MTAB is; then the guardian unmounts."""
    return err if MTAB.exists() else "".join(x for x in err.splitlines(True) if f"failed to open {MTAB}" not in x)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL, "fusermount3"])
def test_asked_to_end(mount: Mount, how: signal.Signals | str) -> None:
    """Or killed, or unmounted by another."""
    museum = mount(*FAST, "files=1x100K")
    (museum.folder / "files/000/000000").read_bytes()
    assert mounted(museum.folder)
    if isinstance(how, str):
        if not shutil.which(how):
            pytest.skip("needs fusermount3 (apt-get install fuse3)")
        if os.geteuid() != 0 and not MTAB.exists():
            pytest.skip(f"fusermount3 needs {MTAB}, for an ordinary user")
        subprocess.run([how, "-u", str(museum.folder)], check=True)
        assert museum.process.wait(timeout=30) == 0
        return
    status, out, err = museum.stop(how)
    if how != signal.SIGKILL:
        assert (status, complaints(err)) == (0, "")
        assert json.loads(out)["reads"] == 1
        assert not mounted(museum.folder)
    assert await_unmounted(museum.folder)


def test_ends_while_files_are_open_and_read(mount: Mount) -> None:
    museum = mount("--speed", "0.01", "files=1000x100K")
    script = "exec 3<$0/files/000/000000; cat $0/files/001/*"
    command = ["sh", "-c", script, str(museum.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as reader:
        while museum.statistics()["reads"] == 0:
            time.sleep(0.01)
        status, _, err = museum.stop()
        assert (status, complaints(err)) == (0, "")
        assert not mounted(museum.folder)
        got, _ = reader.communicate(timeout=30)
    assert got[:K100] == content("files/001/000001", 0, K100), "what was asked for was answered"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_user_by_fusermount(
    mount: Mount, unprivileged: Unprivileged, how: signal.Signals
) -> None:
    """Where /dev/fuse is open to users. This mount is closed to root, even for looking at it. It
    ends also where there is no /etc/mtab, which fusermount3 asks whose it is.
    """
    program = str(unprivileged.reachable(Path(needed())))
    museum = mount(*FAST, "files=1x100K", prefix=tuple(unprivileged.prefix), program=program)
    command = [*unprivileged.prefix, "sha256sum", str(museum.folder / "files/000/000000")]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    museum.stop(how)
    assert await_unmounted(museum.folder)


def test_where_there_is_no_fuse(tmp_path: Path) -> None:
    """In a mount namespace of its own, with an empty /dev."""
    script = 'mount -t tmpfs none /dev && exec "$0" "$1" a=1x1'
    command = ["unshare", "-m", "sh", "-c", script, needed(), str(tmp_path)]
    for answer in map(needs.probe, ("root", "own-mounts")):
        if not answer.ok:
            pytest.skip(f"{answer.reason} ({answer.remedy})")
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 77, done.stderr
    assert "/dev/fuse" in done.stderr
    assert "modprobe" in done.stderr


# ---- the disk as arithmetic

FILES = "files=100000x102400"


def column(name: str, *args: str) -> list[float]:
    done = run("museum-model", *args)
    assert (done.returncode, done.stderr) == (0, "")
    head, *lines = done.stdout.splitlines()
    place = head.split("\t").index(name)
    return [float(line.split("\t")[place]) for line in lines]


def rate(*args: str) -> float:
    values = column("files_per_s", "--parts", "2", "-n", "2000", *args)
    return sum(values) / len(values)


def test_history() -> None:
    """One reader of 100 KiB files got 75 to 85 a second, half of that with a lookup each; a
    hundred got what two disks can give.
    """
    one = rate(FILES)
    assert 75 < one < 85
    assert 1.5 < rate("-j", "100", FILES) / one < 2
    assert 1.5 < one / rate("--metadata", "cold", FILES) < 2


def test_the_order_of_many() -> None:
    fifo = ["-s", "1", "-j", "100", "--scheduler", "fifo", FILES]
    elevator = ["-s", "1", "-j", "100", "--scheduler", "elevator", FILES]
    assert column("strokes_per_read", *elevator)[0] < column("strokes_per_read", *fifo)[0] / 3
    assert rate(*elevator) > 1.2 * rate(*fifo)
    assert rate("-s", "1", "--sorted", FILES) > 1.2 * rate("-s", "1", FILES)


def test_fragments_cost_seeks() -> None:
    whole, pieces = ["-s", "1", FILES], ["-s", "1", "--fragment", "32", FILES]
    assert column("seeks_per_read", *pieces)[0] == pytest.approx(4, 0.1)
    assert rate(*pieces) < rate(*whole) / 2


def test_a_cache() -> None:
    """Half of the data in memory is half of the reads."""
    args = ["--cache", "4883", "-n", "50000", "--parts", "3", FILES]
    assert column("seeks_per_read", *args)[-1] == pytest.approx(0.5, rel=0.1)


def test_the_same_seed_is_the_same_run() -> None:
    first, again, other = (
        run("museum-model", "--seed", seed, "--parts", "2", FILES).stdout for seed in "778"
    )
    assert first == again != other


@pytest.mark.parametrize(
    ("line", "status", "words"),
    [
        ("museum", 2, "no MOUNTPOINT"),
        ("museum a=1x1 b=1x1", 2, "no MOUNTPOINT"),
        ("museum /nonexistent/a=b a=1x1", 1, "/nonexistent/a=b: No such file"),
        ("museum /tmp a", 2, "NAME=COUNTxSIZE"),
        ("museum --speed 0 /tmp a=1x1", 2, "--speed: '0'"),
        ("museum --keep --cache 1 /tmp a=1x1", 2, "exclude each other"),
        ("museum --readers 1 /tmp a=1x1", 2, "unrecognized option"),
        ("museum /nonexistent a=1x1", 1, "/nonexistent: No such file"),
        ("museum /etc/passwd a=1x1", 1, "not a directory"),
        ("museum-model", 2, "no pool"),
        ("museum-model a=1x1 a=1x1", 2, "twice"),
        ("museum-model -j 0 a=1x1", 2, "--readers: '0'"),
        ("museum-model -s 17 a=1x1", 2, "--spindles: '17'"),
        ("museum-model --rate nan a=1x1", 2, "--rate: 'nan'"),
        ("museum-model --scheduler cfq a=1x1", 2, "neither fifo nor elevator"),
        ("museum-model --seek 1,2 a=1x1", 2, "TRACK,AVERAGE,FULL"),
        ("museum-model --seek 3,2,1 a=1x1", 2, "TRACK <= AVERAGE <= FULL"),
        ("museum-model a=1000x1G", 2, "larger than"),
        ("museum-model --cache 100 files=10x4096", 1, "cached"),  # all in memory has no rate
    ],
)
def test_bad_usage(line: str, status: int, words: str) -> None:
    done = run(*line.split())
    assert (done.returncode, done.stdout.splitlines()[1:]) == (status, []), "at most a heading"
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_help() -> None:
    done = run("museum", "-h")
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("usage: museum ")
