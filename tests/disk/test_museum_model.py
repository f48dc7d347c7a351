"""The disk as arithmetic: its parts in C, museum-model, and what it and museum refuse."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from museum_support import HANG_S, ROOT, run

DISK, UNIT = ROOT / "benchmarks/disk", ROOT / "tests/unit"
FLAGS = [
    *("-std=c11", "-D_GNU_SOURCE", "-g", "-O1", "-Wall", "-Wextra", "-Wshadow", "-Werror"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-I{DISK}", f"-I{UNIT}"),
]

FILES = "files=100000x102400"


@pytest.mark.parametrize("part", ["model", "cache", "files"])
def test_part(part: str, tmp_path: Path) -> None:
    """A program that prints TAP."""
    program = tmp_path / part
    sources = [ROOT / f"tests/disk/{part}_test.c", UNIT / "tap.c", DISK / f"{part}.c"]
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, *FLAGS, "-o", program, *sources, "-lm"], check=True)
    done = subprocess.run([program], capture_output=True, text=True, timeout=HANG_S, check=False)
    lines = done.stdout.splitlines()
    assert not [line for line in lines if line.startswith("not ok")]
    assert done.returncode == 0, done.stdout + done.stderr
    assert lines[-1:] == [f"1..{len(lines) - 1}"], "the program ran to its end"


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
    fifo, elevator = (
        ["-s", "1", "-j", "100", "--scheduler", name, FILES] for name in ("fifo", "elevator")
    )
    travel = [column("strokes_per_read", *args)[0] for args in (fifo, elevator)]
    assert travel[1] < travel[0] / 3
    assert rate(*elevator) > 1.2 * rate(*fifo)
    assert rate("-s", "1", "--sorted", FILES) > 1.2 * rate("-s", "1", FILES)


def test_fragments_cost_seeks() -> None:
    whole, pieces = rate("-s", "1", FILES), rate("-s", "1", "--fragment", "32", FILES)
    assert column("seeks_per_read", "-s", "1", "--fragment", "32", FILES)[0] == pytest.approx(
        4, 0.1
    )
    assert pieces < whole / 2


def test_a_cache() -> None:
    """Half of the data in memory is half of the reads."""
    args = ["--cache", "4883", "-n", "50000", "--parts", "3", FILES]
    assert column("seeks_per_read", *args)[-1] == pytest.approx(0.5, rel=0.1)


def test_the_same_seed_is_the_same_run() -> None:
    args = ["--parts", "2", FILES]
    first, again, other = (
        run("museum-model", "--seed", seed, *args).stdout for seed in ("7", "7", "8")
    )
    assert first == again != other


@pytest.mark.parametrize(
    ("line", "status", "words"),
    [
        ("museum", 2, "no MOUNTPOINT"),
        ("museum a=1x1", 2, "no MOUNTPOINT"),
        ("museum /tmp", 2, "no pool"),
        ("museum /tmp a", 2, "NAME=COUNTxSIZE"),
        ("museum --speed 0 /tmp a=1x1", 2, "--speed: '0'"),
        ("museum --keep --cache 1 /tmp a=1x1", 2, "exclude each other"),
        ("museum --readers 1 /tmp a=1x1", 2, "unrecognized option"),
        ("museum /nonexistent a=1x1", 1, "/nonexistent: No such file"),
        ("museum /etc/passwd a=1x1", 1, "not a directory"),
        ("museum-model", 2, "no pool"),
        ("museum-model x", 2, "NAME=COUNTxSIZE"),
        ("museum-model a=1x1 a=1x1", 2, "twice"),
        ("museum-model -j 0 a=1x1", 2, "--readers: '0'"),
        ("museum-model -s 17 a=1x1", 2, "--spindles: '17'"),
        ("museum-model --rate nan a=1x1", 2, "--rate: 'nan'"),
        ("museum-model --scheduler cfq a=1x1", 2, "neither fifo nor elevator"),
        ("museum-model --seek 1,2 a=1x1", 2, "TRACK,AVERAGE,FULL"),
        ("museum-model --seek 3,2,1 a=1x1", 2, "TRACK <= AVERAGE <= FULL"),
        ("museum-model a=1000x1G", 2, "larger than"),
        ("museum-model --cold a=1x1", 2, "unrecognized option"),
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
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: museum ")
