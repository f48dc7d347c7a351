"""The JSON, the summary, the samples, and bad usage."""

from __future__ import annotations

import json
import math
import resource
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hammer_support import HANG_S, OK, Peer, Server, binary, keep_alive, measure, rows, run

KEYS = {
    "schema",
    "parameters",
    "interrupted",
    "seconds",
    "requests",
    "good",
    "failed",
    "unfinished",
    "oldest_unfinished_s",
    "unsent",
    "errors",
    "status",
    "codes",
    "bytes",
    "requests_per_s",
    "bytes_per_s",
    "connect",
    "first_byte",
    "total",
    "total_from_intended",
    "connections",
    "fairness",
    "cpu",
    "cpu_share",
    "client_bound",
    "little",
    "schedule",
    "warm_up",
    "slow",
    "slow_read",
    "half_dead",
    "idle",
    "herd",
}
TIMES = {"count", "min", "max", "mean", "median", "p90", "p99", "p999", "histogram"}
COLUMNS = [
    "intended_ns",
    "start_ns",
    "connect_ns",
    "first_byte_ns",
    "total_ns",
    "status",
    "bytes",
    "connection",
    "url",
    "error",
]


def nearest_rank(values: list[int], permille: int) -> int:
    return sorted(values)[math.ceil(len(values) * permille / 1000) - 1]


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
            assert times[key] == pytest.approx(nearest_rank(values, permille), rel=1 / 1024)
    assert sum(count for _, count in times["histogram"]) == len(values)
    lowers = [lower for lower, _ in times["histogram"]]
    assert lowers == sorted(set(lowers))
    assert lowers[0] <= min(values)
    assert lowers[-1] <= max(values)


@pytest.mark.parametrize("number", [5, 50, 500, 10_000])
def test_json_agrees_with_the_samples(number: int, tmp_path: Path) -> None:
    samples = tmp_path / "samples"
    with Server(keep_alive) as server:
        result = measure(
            "-k",
            "-n",
            str(number),
            "-c",
            "2",
            "--seed",
            "9",
            "--samples",
            str(samples),
            server.url(),
        )
    assert set(result) == KEYS
    assert result["schema"] == 1
    assert result["parameters"]["seed"] == 9
    assert result["parameters"]["requests"] == number
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


def test_open_loop_latency_agrees_with_the_samples(tmp_path: Path) -> None:
    samples = tmp_path / "samples"
    with Server(keep_alive) as server:
        result = measure("-k", "-r", "1000", "-n", "200", "--samples", str(samples), server.url())
    check_times(
        result["total_from_intended"],
        [
            int(row["start_ns"]) - int(row["intended_ns"]) + int(row["total_ns"])
            for row in rows(samples)
        ],
    )


def test_first_byte_is_not_the_last() -> None:
    def script(peer: Peer) -> None:
        if peer.request() is not None:
            peer.send(OK[:-1])
            time.sleep(0.1)
            peer.send(OK[-1:])

    with Server(script) as server:
        result = measure("-n", "2", server.url())
    assert result["total"]["min"] - result["first_byte"]["min"] > 50e6


def test_cpu_is_recorded() -> None:
    with Server(keep_alive) as server:
        result = measure("-k", "-n", "500", server.url())
    used = result["cpu"]["user_ns"] + result["cpu"]["system_ns"]
    assert used > 0
    assert result["cpu_share"] == pytest.approx(used / 1e9 / result["seconds"], rel=1e-3)
    assert result["client_bound"] == (result["cpu_share"] > 0.9)


def test_summary_speaks_like_http_load() -> None:
    with Server(keep_alive) as server:
        result = run("-k", "-n", "20", "-c", "2", server.url())
    assert result.status == 0
    assert result.err == ""
    lines = result.out.splitlines()
    assert lines[0].startswith("20 fetches, 2 max parallel, 100 bytes, in ")
    assert lines[1] == "5 mean bytes/fetch"
    assert " fetches/sec, " in lines[2]
    assert lines[3].startswith("msecs/connect: ")
    assert lines[4].startswith("msecs/first-response: ")
    assert "  code 200 -- 20" in lines
    assert "errors: 0" in lines


def test_warm_up_and_crowd_appear_in_the_summary() -> None:
    with Server(keep_alive) as server:
        out = run("-k", "-w", "0.1", "-n", "3", "--idle", "2", server.url()).out
    assert "not in the figures" in out
    assert "idle: 2 wanted, 2 established" in out


def test_help() -> None:
    result = run("-h")
    assert result.status == 0
    assert result.out.startswith("usage: hammer ")
    assert result.err == ""
    assert run("--help").out == result.out


URL = "http://127.0.0.1:9/"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ([], "-n N, -s SECONDS"),
        ([URL], "-n N, -s SECONDS"),
        (["-n", "1"], "no URL"),
        (["-n", "0", URL], "-n: '0'"),
        (["-n", "1.5", URL], "-n: '1.5'"),
        (["-c", "many", "-n", "1", URL], "-c: 'many'"),
        (["-s", "-1", URL], "-s: '-1'"),
        (["-s", "nan", URL], "-s: 'nan'"),
        (["-r", "0", "-n", "1", URL], "-r: '0'"),
        (["-t", "0", "-n", "1", URL], "-t: '0'"),
        (["--ramp", "0", "-n", "1", URL], "--ramp: '0'"),
        (["--crowd", "9", "--slow", "101%", URL], "'101%' is not a whole number from 0 to 100%"),
        (["--crowd", "9", "--slow", "1.5%", URL], "--slow: '1.5%'"),
        (["--crowd", "9", "--idle", "5%", URL], "--idle: '5%'"),
        (["--slow", "5%", URL], "a share needs --crowd N"),
        (["--crowd", "9", "--slow", "60%", "--half-dead", "41%", URL], "more than the whole"),
        (["--seed", "-1", "-n", "1", URL], "--seed: '-1'"),
        (["--source", "10.0.0.1", "-n", "1", URL], "127.0.0.0/8"),
        (["--source", "127.0.0.9-127.0.0.2", "-n", "1", URL], "ends before"),
        (["--source", "127.0.0.2,", "-n", "1", URL], "not an IPv4"),
        (["--source", "127.0.0.2", "-n", "1", "http://[::1]:9/"], "--source is for IPv4"),
        (["--allow-host", "name", "-n", "1", URL], "--allow-host: 'name'"),
        (["-n", "1", "https://127.0.0.1/"], "http://"),
        (["-n", "1", "http://127.0.0.1:99999/"], "port"),
        (["-n", "1", "http://127.0.0.1:x/"], "port"),
        (["-n", "1", "http:///"], "host"),
        (["-n", "1", "http://example.invalid/"], "host"),
        (["-n", "1", "http://[::1/"], "']'"),
        (["-n", "1", "http://127.0.0.1/a b"], "percent-encoded"),
        (["-n", "1", "http://127.0.0.1/#x"], "fragment"),
        (["-n", "1", "-i", "/nonexistent/urls"], "No such file"),
        (["-n", "1", "-i", "/dev/null"], "no URL"),
        (["-n", "1", "-i", "/dev/null", URL], "exclude"),
        (["-n"], "requires an argument"),
        (["--no-such"], "unrecognized option"),
    ],
)
def test_bad_usage_is_one_clear_line(args: list[str], says: str) -> None:
    result = run(*args)
    assert result.status == 2
    assert result.out == ""
    assert result.err.count("\n") == 1
    assert says in result.err


@pytest.mark.parametrize("host", ["192.0.2.1", "10.1.2.3", "0.0.0.0", "[2001:db8::1]", "128.0.0.1"])
def test_refuses_what_is_not_loopback(host: str) -> None:
    with Server(keep_alive) as server:
        result = run("-n", "1", "--idle", "1", server.url(), f"http://{host}:{server.port}/")
    assert result.status == 2
    assert result.err.count("\n") == 1
    assert "not loopback" in result.err
    assert "--allow-host" in result.err
    assert server.connections == 0, "refused before anything was sent anywhere"


def test_allow_host_allows_that_host_only() -> None:
    """0.0.0.0 is not a loopback address, but Linux takes it for this host: a safe stand-in."""
    with Server(keep_alive) as server:
        target = f"http://0.0.0.0:{server.port}/"
        assert measure("-n", "2", "--allow-host", "0.0.0.0", target)["good"] == 2
        assert run("-n", "2", "--allow-host", "192.0.2.1", target).status == 2


def test_line_of_a_bad_url_in_a_file(tmp_path: Path) -> None:
    urls = tmp_path / "urls"
    urls.write_text(f"{URL}\n# fine\nftp://127.0.0.1/\n")
    result = run("-n", "1", "-i", str(urls))
    assert result.status == 2
    assert result.err == f"hammer: {urls}:3: does not begin with http://\n"


def test_too_few_descriptors_is_one_clear_line() -> None:
    done = subprocess.run(
        [str(binary()), "-n", "1", "-c", "100", URL],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60)),
    )
    assert done.returncode == 1
    assert done.stderr == "hammer: needs 116 descriptors, but the hard limit is 60\n"


def test_soft_descriptor_limit_is_raised() -> None:
    with Server(keep_alive) as server:
        done = subprocess.run(
            [str(binary()), "-k", "--json", "-n", "200", "-c", "100", server.url()],
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (30, 300)),
        )
    assert json.loads(done.stdout)["good"] == 200


def test_unwritable_samples_file() -> None:
    result = run("-n", "1", "--samples", "/nonexistent/samples", URL)
    assert result.status == 1
    assert result.err == "hammer: /nonexistent/samples: No such file or directory\n"


def test_full_disk_under_the_samples() -> None:
    with Server(keep_alive) as server:
        result = run("-n", "1", "--samples", "/dev/full", server.url())
    assert result.status == 1
    assert result.err == "hammer: /dev/full: No space left on device\n"
    assert result.out.startswith("1 fetches"), "the summary is not lost"
