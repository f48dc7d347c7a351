"""Load generators, and how their output is parsed: hammer, and wrk and h2load to check it against.

All give the same scalars: requests_per_s, requests, seconds, failed, total.{median,p90,p99,mean} in
nanoseconds, little.ratio, client_bound. hammer gives many more (benchmarks/load/README.md).
"""

import argparse
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from quest.ground.errors import RepetitionError
from quest.ground.processes import Usage

NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9}
BYTES = {"": 1.0, "K": 1024.0, "M": 1024.0**2, "G": 1024.0**3, "T": 1024.0**4}
CLIENT_BOUND = 0.9
# Not measurements: what was asked for, and what is kept elsewhere.
NOT_SCALARS = ("parameters", "schema", "histogram", "codes")


@dataclass
class Outcome:
    """What a load generator found. `requests` counts all that the server had to answer."""

    scalars: dict[str, float]
    requests: float
    histograms: dict[str, list[list[float]]] = field(default_factory=dict)


def parse(tool: str, output: str, words: list[str], usage: Usage, available_s: float) -> Outcome:
    """The outcome of a run of `tool` with these command words. `available_s`: the seconds it ran,
    times the processors it had. (hammer has one thread, and says itself when it was at its limit.)
    RepetitionError if the output is none of this tool's.
    """
    parser: Callable[[str, list[str]], Outcome]
    parser = {"hammer": _parse_hammer, "wrk": _parse_wrk, "h2load": _parse_h2load}[tool]
    try:
        outcome = parser(output, words)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise RepetitionError(f"{tool}: not the output that was expected: {error}") from error
    share = usage.cpu_s / available_s if available_s > 0 else 0.0
    outcome.scalars.setdefault("cpu_share", share)
    outcome.scalars.setdefault("client_bound", float(share > CLIENT_BOUND))
    outcome.scalars["client_cpu_s"] = usage.cpu_s
    return outcome


def parse_last_line(output: str) -> dict[str, float]:
    """The numbers of a helper whose last line is a JSON object, as hammer's is with --json; {} if
    it is none.
    """
    try:
        return flatten(json.loads(output.strip().rpartition("\n")[2]))
    except (ArithmeticError, AttributeError, RecursionError, ValueError):
        return {}


def flatten(data: Mapping[str, object], prefix: str = "") -> dict[str, float]:
    """Nested numbers under dotted names: {"total": {"p99": 5}} -> {"total.p99": 5.0}. What is no
    number, and NOT_SCALARS, is left out.
    """
    flat: dict[str, float] = {}
    for key, value in data.items():
        if key in NOT_SCALARS:
            continue
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{prefix}{key}."))
        elif isinstance(value, bool | int | float):
            flat[prefix + key] = float(value)
    return flat


def _parse_hammer(output: str, _words: list[str]) -> Outcome:
    data = json.loads(output)
    scalars = flatten(data)
    warm_up = (data.get("warm_up") or {}).get("requests", 0)
    requests = float(data["requests"]) + float(warm_up)
    scalars["failed"] = float(data.get("failed", sum(data["errors"].values())))
    late = ("timeout", "connect_timeout")
    scalars["given_up"] = float(sum(data["errors"].get(kind, 0) for kind in late))
    histograms = {
        key: coarsen(data[key]["histogram"])
        for key in ("total", "total_from_intended")
        if data.get(key) and data[key].get("histogram")
    }
    return Outcome(scalars, requests, histograms)


def coarsen(buckets: list[list[float]]) -> list[list[float]]:
    """A histogram of [lower edge, count] pairs, with 32 buckets an octave: within 3 %, and a tenth
    of the size.
    """
    counts: dict[int, float] = {}
    for lower, count in buckets:
        edge, _ = bucket_edges(lower)
        counts[edge] = counts.get(edge, 0) + count
    return [[edge, count] for edge, count in sorted(counts.items())]


def bucket_edges(value: float) -> tuple[int, int]:
    """The lower and the upper edge of the bucket of coarsen() that a value is in."""
    shift = max(0, int(value).bit_length() - 6)
    lower = int(value) >> shift << shift
    return lower, lower + (1 << shift)


# ---- wrk ----------------------------------------------------------------------------------------


def _groups(pattern: str, text: str, tool: str) -> tuple[str, ...]:
    match = re.search(pattern, text, re.M)
    if not match:
        raise RepetitionError(f"{tool}: no line like /{pattern}/ in its output")
    return match.groups()


def nanoseconds(text: str) -> float:
    """`1.5ms` -> 1.5e6. RepetitionError if it is no time with its unit."""
    match = re.fullmatch(r"([\d.]+)(ns|us|ms|s|m|h)", text)
    if not match:
        raise RepetitionError(f"not a time: {text}")
    return float(match[1]) * NANOSECONDS[match[2]]


def _parse_wrk(output: str, _words: list[str]) -> Outcome:
    (connections,) = _groups(r"threads and (\d+) connections", output, "wrk")
    requests, seconds, read, unit = _groups(
        r"^\s*(\d+) requests in ([\d.]+[a-z]+), ([\d.]+)([KMGT]?)B read", output, "wrk"
    )
    rate = float(_groups(r"^Requests/sec:\s+([\d.]+)", output, "wrk")[0])
    mean = nanoseconds(_groups(r"^\s*Latency\s+([\d.]+[a-z]+)", output, "wrk")[0])
    failures = re.findall(r"(?:connect|read|write|timeout|responses:) (\d+)", output)
    scalars = {
        "requests": float(requests),
        "seconds": nanoseconds(seconds) / 1e9,
        "bytes.total": float(read) * BYTES[unit],
        "requests_per_s": rate,
        "total.mean": mean,
        "failed": float(sum(map(int, failures))),
        "little.ratio": rate * mean / 1e9 / float(connections),
    }
    for name, percent in (("median", 50), ("p90", 90), ("p99", 99)):
        match = re.search(rf"^\s*{percent}(?:\.0+)?%\s+([\d.]+[a-z]+)", output, re.M)
        if match:
            scalars[f"total.{name}"] = nanoseconds(match[1])
    return Outcome(scalars, scalars["requests"])


# ---- h2load -------------------------------------------------------------------------------------


def option_value(words: Sequence[str], *names: str) -> float | None:
    """The number behind an option among command words (`-c 16`, `-c16`, `--clients=16`,
    `--clients 16`); the last one counts, and None if there is none.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument(*names, dest="value", nargs="?", type=float)
    value: float | None = parser.parse_known_args(words)[0].value
    return value


def _parse_h2load(output: str, words: list[str]) -> Outcome:
    connections = option_value(words, "-c", "--clients") or 1.0
    seconds, rate = _groups(r"^finished in ([\d.]+[a-z]+), ([\d.]+) req/s", output, "h2load")
    done, failed, timeout = _groups(
        r"^requests: \d+ total, \d+ started, (\d+) done, \d+ succeeded, "
        r"(\d+) failed, \d+ errored, (\d+) timeout",
        output,
        "h2load",
    )
    if not int(done):
        raise RepetitionError("h2load: no request was answered (--h1 is needed for HTTP/1)")
    times = _groups(r"^time for request:\s+(\S+)\s+(\S+)\s+(\S+)", output, "h2load")
    least, most, mean = map(nanoseconds, times)
    scalars = {
        "requests": float(done),
        "seconds": nanoseconds(seconds) / 1e9,
        "requests_per_s": float(rate),
        "failed": float(failed) + float(timeout),
        "total.min": least,
        "total.max": most,
        "total.mean": mean,
        "little.ratio": float(rate) * mean / 1e9 / connections,
    }
    return Outcome(scalars, scalars["requests"])
