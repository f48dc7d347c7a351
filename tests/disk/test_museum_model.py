"""The disk as arithmetic: museum-model, and what it and museum refuse. Its parts: tests/unit."""

from __future__ import annotations

import pytest
from museum_support import run

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
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("usage: museum ")
