"""What load generators print, read."""

import json
from typing import Any

import pytest

from quest.ground.errors import RepetitionError
from quest.ground.processes import Usage
from quest.measure import load_tools

WRK = """\
Running 1s test @ http://127.0.0.1:18080/a.html
  1 threads and 8 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     2.00ms    1.26ms  11.16ms   79.75%
    Req/Sec     3.67k   656.02     4.95k    80.00%
  Latency Distribution
     50%    1.90ms
     75%    2.42ms
     90%    3.44ms
     99%  703.00us
  4000 requests in 1.01s, 4.00MB read
  Socket errors: connect 1, read 2, write 0, timeout 3
  Non-2xx or 3xx responses: 4
Requests/sec:   4000.00
Transfer/sec:      4.19MB
"""
H2LOAD = """\
finished in 500.00ms, 40000.00 req/s, 44.69MB/s
requests: 20000 total, 20000 started, 20000 done, 20000 succeeded, 5 failed, 0 errored, 2 timeout
status codes: 20000 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 22.62MB (23720000) total, 2.80MB (2940000) headers (space savings 0.00%), 19.07MB
                     min         max         mean         sd        +/- sd
time for request:       23us     11.49ms       200us       259us    98.95%
time for connect:       50us      1.67ms       788us       738us    87.50%
"""
HAMMER: dict[str, Any] = {
    "schema": 1,
    "parameters": {"connections": 4},
    "requests": 100,
    "failed": 0,
    "errors": {"timeout": 3, "connect_timeout": 4, "reset": 5},
    "requests_per_s": 1000.5,
    "client_bound": True,
    "cpu_share": 0.95,
    "codes": {"200": 100},
    "warm_up": {"requests": 20},
    "connect": {"count": 0, "median": None, "histogram": []},
    "total": {"median": 5000, "histogram": [[4096, 60], [4097, 20], [8192, 20]]},
    "total_from_intended": None,
    "little": {"ratio": 0.99},
}
USAGE = Usage(0.3, 0.65, 0, 0, 0, 0)


def test_wrk() -> None:
    outcome = load_tools.parse("wrk", WRK, [], USAGE, 1.0)
    assert outcome.requests == 4000
    assert outcome.scalars["requests_per_s"] == 4000
    assert outcome.scalars["failed"] == 10
    assert outcome.scalars["seconds"] == 1.01
    assert outcome.scalars["bytes.total"] == 4 * 1024**2
    assert outcome.scalars["total.median"] == 1.9e6
    assert outcome.scalars["total.p99"] == 703e3
    assert outcome.scalars["little.ratio"] == pytest.approx(1.0)
    assert outcome.scalars["client_bound"] == 1.0  # 0.95 s of processor time in 1 s


def test_who_has_two_processors_is_at_its_limit_with_both() -> None:
    half = load_tools.parse("wrk", WRK, [], USAGE, 2.0)  # as many seconds on two processors
    assert half.scalars["cpu_share"] == pytest.approx(0.475)
    assert half.scalars["client_bound"] == 0.0
    assert load_tools.parse("wrk", WRK, [], Usage(1.0, 0.9, 0, 0, 0, 0), 2.0).scalars["client_bound"]


def test_a_tool_is_at_its_limit_above_nine_tenths() -> None:
    for used_s, bound in ((0.9, 0.0), (0.901, 1.0)):
        usage = Usage(used_s, 0.0, 0, 0, 0, 0)
        assert load_tools.parse("wrk", WRK, [], usage, 1.0).scalars["client_bound"] == bound


def test_h2load() -> None:
    outcome = load_tools.parse("h2load", H2LOAD, ["h2load", "--h1", "-c8", "x"], USAGE, 2.0)
    assert outcome.requests == 20000
    assert outcome.scalars["requests_per_s"] == 40000
    assert outcome.scalars["failed"] == 7
    assert outcome.scalars["little.ratio"] == pytest.approx(1.0)
    assert outcome.scalars["client_bound"] == 0.0


def test_hammer() -> None:
    outcome = load_tools.parse("hammer", json.dumps(HAMMER), [], USAGE, 1.0)
    assert outcome.requests == 120
    assert outcome.scalars["total.median"] == 5000
    assert outcome.scalars["little.ratio"] == 0.99
    assert outcome.scalars["client_bound"] == 1.0
    assert outcome.scalars["given_up"] == 7
    assert "connect.median" not in outcome.scalars
    assert not any(key.startswith(("parameters", "codes")) for key in outcome.scalars)
    assert outcome.histograms == {"total": [[4096, 80], [8192, 20]]}


def test_hammer_says_itself_when_it_was_at_its_limit() -> None:
    """It has one thread, however many processors there are. Without a warm-up it says null."""
    outcome = load_tools.parse("hammer", json.dumps({**HAMMER, "warm_up": None}), [], USAGE, 2.0)
    assert (outcome.scalars["cpu_share"], outcome.scalars["client_bound"]) == (0.95, 1.0)
    assert outcome.requests == 100


@pytest.mark.parametrize("tool", ["hammer", "wrk", "h2load"])
@pytest.mark.parametrize("output", ["", "Segmentation fault", "{}", "[1]"])
def test_output_of_another_kind_fails_the_repetition(tool: str, output: str) -> None:
    with pytest.raises(RepetitionError):
        load_tools.parse(tool, output, [], USAGE, 1.0)


@pytest.mark.parametrize(
    ("tool", "output"),
    [
        ("hammer", "[" * 100_000),
        ("hammer", json.dumps({**HAMMER, "requests": 10**400})),
        ("hammer", json.dumps({**HAMMER, "total": {"histogram": [[float("inf"), 1]]}})),
        ("wrk", WRK.replace("Requests/sec:   4000.00", "Requests/sec:   4.0.0")),
    ],
    ids=["nested", "huge", "infinite", "two points"],
)
def test_numbers_that_are_none_fail_the_repetition(tool: str, output: str) -> None:
    with pytest.raises(RepetitionError, match=f"^{tool}: not the output that was expected: "):
        load_tools.parse(tool, output, [], USAGE, 1.0)


def test_buckets_are_fine_enough_and_keep_every_count() -> None:
    buckets = [[float(v), 1.0] for v in range(1, 100_000, 7)]
    coarse = load_tools.coarsen(buckets)
    assert sum(count for _, count in coarse) == len(buckets)
    assert len(coarse) < len(buckets) / 10
    for value in (1, 63, 64, 1000, 99_999):
        lower, upper = load_tools.bucket_edges(value)
        assert lower <= value < upper
        assert upper - lower <= max(1, value / 32)
