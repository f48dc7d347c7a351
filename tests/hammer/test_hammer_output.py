"""The JSON, the samples and the summary; the C tests of the pure parts, which print TAP."""

import math
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.hammer.hammer_support import (
    HANG_S,
    OK,
    ROOT,
    TIMES,
    Peer,
    Server,
    hold,
    keep_alive,
    measure,
    measure_on,
    rows,
    run,
)

KEYS = {
    *("schema", "parameters", "interrupted", "seconds", "requests", "good", "failed", "unfinished"),
    *("oldest_unfinished_s", "unsent", "errors", "status", "codes", "bytes", "requests_per_s"),
    *("bytes_per_s", "connect", "first_byte", "total", "total_from_intended", "connections"),
    *("fairness", "cpu", "cpu_share", "client_bound", "little", "schedule", "warm_up", "slow"),
    *("slow_read", "half_dead", "idle", "herd"),
}
COLUMNS = [
    *("intended_ns", "start_ns", "connect_ns", "first_byte_ns", "total_ns", "status", "bytes"),
    *("connection", "url", "error"),
]


def check_times(times: dict[str, Any], values: list[int]) -> None:
    """The histogram's figures against the raw samples: equal within a bucket, 1/1024."""
    assert times["count"] == len(values)
    assert times["min"] == min(values)
    assert times["max"] == max(values)
    assert times["mean"] == pytest.approx(sum(values) / len(values))
    for key, permille, needed in (
        ("median", 500, 1),
        ("p90", 900, 10),
        ("p99", 990, 100),
        ("p999", 999, 10_000),
    ):
        if len(values) < needed:
            assert times[key] is None
        else:
            nearest_rank = sorted(values)[math.ceil(len(values) * permille / 1000) - 1]
            assert times[key] == pytest.approx(nearest_rank, rel=1 / 1024)
    assert sum(count for _, count in times["histogram"]) == len(values)
    lowers = [lower for lower, _ in times["histogram"]]
    assert lowers == sorted(set(lowers))
    assert lowers[0] <= min(values)
    assert lowers[-1] <= max(values)


@pytest.mark.parametrize(("number", "rate"), [(5, None), (50, None), (500, 1000), (10_000, None)])
def test_json_agrees_with_the_samples(number: int, rate: int | None, tmp_path: Path) -> None:
    samples = tmp_path / "samples"
    samples.write_text("of another run\n" * 1000)
    options = f"-k -n {number} -c 2 --seed 9" + (f" -r {rate}" if rate else "")
    _, result = measure_on(keep_alive, f"{options} --samples {samples}")
    assert set(result) == KEYS
    assert result["schema"] == 1
    asked = [result["parameters"][key] for key in ("seed", "requests", "seconds", "rate")]
    assert asked == [9, number, None, rate]
    assert set(result["total"]) == TIMES
    table = rows(samples)
    assert list(table[0]) == COLUMNS
    check_times(result["total"], [int(row["total_ns"]) for row in table])
    check_times(result["first_byte"], [int(row["first_byte_ns"]) for row in table])
    connects = [int(row["connect_ns"]) for row in table if row["connect_ns"] != "-"]
    assert len(connects) == 2
    check_times(result["connect"], connects)
    assert all(int(row["first_byte_ns"]) <= int(row["total_ns"]) for row in table)
    assert {row["error"] for row in table} == {"-"}
    assert {row["connection"] for row in table} == {"0", "1"}
    if rate:
        latencies = [
            int(row["start_ns"]) - int(row["intended_ns"]) + int(row["total_ns"]) for row in table
        ]
        check_times(result["total_from_intended"], latencies)


def test_any_url_is_json() -> None:
    with Server(keep_alive) as server:
        url = server.url('/"\\')
        assert measure("-n 1", url)["parameters"]["first_url"] == url


def test_first_byte_is_not_the_last() -> None:
    def script(peer: Peer) -> None:
        if peer.request() is not None:
            peer.send(OK[:-1])
            time.sleep(0.1)
            peer.send(OK[-1:])

    _, result = measure_on(script, "-n 2")
    assert result["total"]["min"] - result["first_byte"]["min"] > 50e6


def test_cpu_is_recorded() -> None:
    _, result = measure_on(keep_alive, "-k -n 500")
    used = result["cpu"]["user_ns"] + result["cpu"]["system_ns"]
    assert used > 0
    assert result["cpu_share"] == pytest.approx(used / 1e9 / result["seconds"], rel=1e-3)
    assert result["client_bound"] == (result["cpu_share"] > 0.9)


def test_summary_speaks_like_http_load() -> None:
    with Server(keep_alive) as server:
        result = run("-k -n 20 -c 2", server.url())
        more = run("-k -w 0.1 -n 3 --idle 2", server.url()).stdout
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0].startswith("20 fetches, 2 max parallel, 100 bytes, in ")
    assert lines[1] == "5 mean bytes/fetch"
    assert " fetches/sec, " in lines[2]
    assert lines[3].startswith("msecs/connect: ")
    assert lines[4].startswith("msecs/first-response: ")
    assert {"  code 200 -- 20", "errors: 0"} <= set(lines)
    assert "connections: 2 opened, 18 requests on old ones" in lines
    assert "not in the figures" in more
    assert "idle: 2 wanted, 2 established" in more and "lost" not in more


def test_nothing_that_ended_is_no_division_by_zero() -> None:
    with Server(hold) as server:
        lines = run("-s 0.1 -c 2", server.url()).stdout.splitlines()
    assert "Little's law: 0 requests/s x 0 s = 0.000 of 2 clients" in lines


def test_help() -> None:
    result = run("-h")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("usage: hammer ")
    assert run("--help").stdout == result.stdout


# ---- in C

FLAGS = (
    "-std=c11 -D_GNU_SOURCE -g -O1 -Wall -Wextra -Werror"
    " -fsanitize=address,undefined -fno-sanitize-recover=all"
)


@pytest.mark.parametrize("unit", ["tally", "reply", "schedule", "clock"])
def test_unit(unit: str, tmp_path: Path) -> None:
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if not compiler:
        pytest.skip("needs a C compiler (apt install gcc)")
    load, program = ROOT / "benchmarks/load", str(tmp_path / unit)
    sources = [str(Path(__file__).with_name(f"{unit}_test.c")), str(load / f"{unit}.c")]
    subprocess.run([compiler, *FLAGS.split(), f"-I{load}", "-o", program, *sources], check=True)
    done = subprocess.run(program, capture_output=True, text=True, timeout=HANG_S, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout + done.stderr
    assert lines[-1:] == [f"1..{len(lines) - 1}"], "the program ran to its end"
    assert not [line for line in lines if line.startswith("not ok")]
