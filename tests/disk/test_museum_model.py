"""The disk as arithmetic: museum-model."""

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
    ("args", "words"),
    [
        ([], "no pool"),
        (["x"], "NAME=COUNTxSIZE"),
        (["a=1x1", "a=1x1"], "twice"),
        (["-j", "0", "a=1x1"], "--readers: '0'"),
        (["-s", "17", "a=1x1"], "--spindles: '17'"),
        (["--rate", "nan", "a=1x1"], "--rate: 'nan'"),
        (["--scheduler", "cfq", "a=1x1"], "neither fifo nor elevator"),
        (["--seek", "1,2", "a=1x1"], "TRACK,AVERAGE,FULL"),
        (["--seek", "3,2,1", "a=1x1"], "TRACK <= AVERAGE <= FULL"),
        (["a=1000x1G"], "larger than"),
        (["--cold", "a=1x1"], "unrecognized option"),
    ],
)
def test_bad_usage(args: list[str], words: str) -> None:
    done = run("museum-model", *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_all_in_memory_has_no_rate() -> None:
    done = run("museum-model", "--cache", "100", "files=10x4096")
    assert done.returncode == 1
    assert "cached" in done.stderr
