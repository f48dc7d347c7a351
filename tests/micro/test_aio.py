"""aio-threads, kernel-aio: each read ends once, and what is counted is right.

Run: python3 -m pytest tests/micro/test_aio.py --variants=glibc,musl
"""

from __future__ import annotations

from pathlib import Path

import pytest
from micro_support import cells, run

AIO = "reads\tall_ns\tthreads\tper_read\tovertakes\tnamed"
KERNEL = "batch\tsubmit_ns\tdone_ns\tread_ns\tcounted\tcancelled\tthreads"
GLIBC_MOST = 20


def output(folder: Path, tmp_path: Path, program: str, *arguments: str) -> str:
    if folder.name == "tsan":
        pytest.skip("not built with this sanitizer")
    status, out, err = run([folder / program, *arguments, tmp_path / "files"])
    if folder.name == "diet" or (folder.name == "musl" and program == "kernel-aio"):
        assert (status, out, err) == (77, "", f"{program}: Linux and glibc are needed\n")
        pytest.skip(err.strip())
    if status == 77 and program == "kernel-aio":
        pytest.skip(err.strip())
    assert (status, err) == (0, "")
    assert [*tmp_path.iterdir()] == []
    return out


def sample(folder: Path, tmp_path: Path, *arguments: str) -> dict[str, str]:
    out = output(folder, tmp_path, "aio-threads", *arguments)
    assert out.splitlines()[0] == AIO
    assert len(cells(out)) == 1
    found = dict(zip(AIO.split("\t"), cells(out)[0], strict=True))
    assert float(found["all_ns"]) > 0
    return found


@pytest.mark.parametrize("reads", [1, 8, 40])
def test_how_many_threads_wait_for_pipes(folder: Path, tmp_path: Path, reads: int) -> None:
    """What does not get a thread cannot end, although its pipe has a byte."""
    found = sample(folder, tmp_path, "-n", str(reads), "pipes")
    most = reads if folder.name == "musl" else min(reads, GLIBC_MOST)
    assert int(found["threads"]) == most
    assert float(found["per_read"]) == pytest.approx(most / reads)
    assert found["overtakes"] == ("1" if most == reads else "0")


def test_one_descriptor_is_read_by_one_thread(folder: Path, tmp_path: Path) -> None:
    found = sample(folder, tmp_path, "-n", "40", "pipe")
    assert int(found["threads"]) == (40 if folder.name == "musl" else 1)
    assert (found["overtakes"], found["named"]) == ("-", "-")


def test_every_signal_names_its_read(folder: Path, tmp_path: Path) -> None:
    assert sample(folder, tmp_path, "-n", "40", "signal")["named"] == "1"


@pytest.mark.parametrize("cold", ["0", "1"])
@pytest.mark.parametrize("way", ["files", "file", "pool", "loop"])
def test_reads_of_a_file(folder: Path, tmp_path: Path, way: str, cold: str) -> None:
    found = sample(folder, tmp_path, "-n", "30", "-t", "5", "-c", cold, way)
    if way in ("pool", "loop"):
        assert found["threads"] == ("5" if way == "pool" else "0")


@pytest.mark.parametrize("kind", ["here", "tmpfs"])
@pytest.mark.parametrize("way", ["direct", "buffered", "hot", "posix", "loop"])
def test_a_line_for_each_batch(folder: Path, tmp_path: Path, way: str, kind: str) -> None:
    out = output(folder, tmp_path, "kernel-aio", "-n", "5", "-q", "7", "-m", "64", way, kind)
    assert out.splitlines()[0] == KERNEL
    *batches, last = cells(out)
    assert [row[0] for row in batches] == [*"01234"]
    assert all(float(row[1]) > 0 and float(row[3]) > 0 for row in batches)
    # The eventfd counts each read once, and none that the kernel was not asked for.
    counted = "1" if way in ("direct", "buffered", "hot") else "0"
    assert {row[4] for row in batches} == {counted}
    assert last[:5] == ["5", "-", "-", "-", "-"]
    assert last[5] in ("0", "1")
    if folder.name == "bin":
        assert last[6] == ("1" if way == "posix" else "0")
