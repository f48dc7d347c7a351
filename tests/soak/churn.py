"""Opens thousands of connections and closes them again, for minutes, and looks whether anything of
the server grows.

    python3 tests/soak/churn.py --server 09-epoll --connections 18000 --seconds 300 --build build

A cycle is one run of hammer: a herd of idle keep-alive connections is opened and served, one client
asks beside it, and all are closed. After each cycle the server's memory and descriptors are noted.
Prints a line a cycle and the verdict; status 0 if all was flat and nobody was lost, 1 if not.
`make soak` builds what it needs. These are the defaults. Loopback only; nothing is left running.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

RISE = 0.25  #: of latency, from end to end of the fitted line
GROWTH = 0.02  #: of memory, from the second tenth of the cycles to the last
SPARE_KIB = 128  #: of memory, beside
SETTLE_S = 2.0  #: for the server to see that the herd has gone


@dataclass(frozen=True)
class Cycle:
    at_s: float
    held: int
    failed: int
    median_us: float
    rss_kib: int
    descriptors: int


def medians_of(cycles: Sequence[Cycle], part: slice) -> float:
    return statistics.median(c.rss_kib for c in cycles[part])


def rise(xs: Sequence[float], ys: Sequence[float]) -> float:
    """What the line through the points rises by from the first to the last x, as a share of their
    median: Theil and Sen's line, which a few bad cycles do not turn.
    """
    slopes = [
        (ys[j] - ys[i]) / (xs[j] - xs[i])
        for i in range(len(xs))
        for j in range(i + 1, len(xs))
        if xs[j] > xs[i]
    ]
    return statistics.median(slopes) * (xs[-1] - xs[0]) / statistics.median(ys)


def faults(cycles: Sequence[Cycle], connections: int, base: int) -> list[str]:
    """What was not flat, a sentence each."""
    if len(cycles) < 10:
        return [f"{len(cycles)} cycles are too few to judge: 10 are needed (--seconds)"]
    found = []
    if lost := [c for c in cycles if c.held != connections or c.failed]:
        found.append(f"{len(lost)} cycles lost connections or requests")
    if more := [c for c in cycles if c.descriptors != base]:
        found.append(f"{len(more)} cycles left descriptors: {more[0].descriptors}, not {base}")
    tenth = len(cycles) // 10
    first = medians_of(cycles, slice(tenth, 2 * tenth))
    last = medians_of(cycles, slice(-tenth, None))
    if last > first * (1 + GROWTH) + SPARE_KIB:
        found.append(f"memory grew from {first:.0f} to {last:.0f} KiB")
    rose = rise([c.at_s for c in cycles], [c.median_us for c in cycles])
    if rose > RISE:
        found.append(f"latency rose by {rose:.0%}")
    return found


def rss_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    match = re.search(r"^VmRSS:\s*(\d+) kB$", status, re.MULTILINE)
    if match is None:
        raise SystemExit(f"soak: process {pid} tells no VmRSS")
    return int(match[1])


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def settled(pid: int, base: int) -> int:
    """The descriptors once they are `base` again, or after SETTLE_S."""
    deadline = time.monotonic() + SETTLE_S
    while descriptors(pid) != base and time.monotonic() < deadline:
        time.sleep(0.01)
    return descriptors(pid)


def run_cycle(hammer: Path, url: str, connections: int) -> tuple[int, int, float]:
    """(held, failed, median in µs) of one herd and the client beside it."""
    load = ["-c", "1", "-k", "-n", "200", "-t", "30", "--json", url]
    done = subprocess.run(
        [str(hammer), "--herd", str(connections), *load],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"soak: hammer ended with {done.returncode}: {done.stderr.strip()}")
    result = json.loads(done.stdout)
    return result["herd"]["held"], result["failed"], result["total"]["median"] / 1e3


def soak(server: Path, hammer: Path, connections: int, seconds: float) -> int:
    with tempfile.TemporaryDirectory() as docroot:
        Path(docroot, "index.html").write_text("soak\n", encoding="ascii")
        with subprocess.Popen(
            [str(server), "-p", "0", docroot], stdout=subprocess.PIPE, text=True
        ) as process:
            try:
                line = process.stdout.readline() if process.stdout else ""
                match = re.search(r"http://\S+", line)
                if match is None:
                    raise SystemExit(f"soak: {server} said {line!r}, not where it listens")
                return watch(process.pid, hammer, match[0], connections, seconds)
            finally:
                process.terminate()


def watch(pid: int, hammer: Path, url: str, connections: int, seconds: float) -> int:
    run_cycle(hammer, url, 1)
    base = descriptors(pid)
    cycles: list[Cycle] = []
    start = time.monotonic()
    print("at_s\theld\tfailed\tmedian_us\trss_kib\tdescriptors")
    while time.monotonic() - start < seconds:
        held, failed, median_us = run_cycle(hammer, url, connections)
        now = settled(pid, base)
        at_s = time.monotonic() - start
        cycles.append(Cycle(at_s, held, failed, median_us, rss_kib(pid), now))
        print(
            *(f"{v:.1f}" if isinstance(v, float) else v for v in vars(cycles[-1]).values()),
            sep="\t",
        )
        sys.stdout.flush()
    found = faults(cycles, connections, base)
    for fault in found:
        print(f"soak: {fault}", file=sys.stderr)
    opened = sum(c.held for c in cycles)
    print(f"{len(cycles)} cycles, {opened} connections: {'not flat' if found else 'flat'}")
    return 1 if found else 0


def end_the_server_too() -> None:
    """SIGTERM ends Python at once, without its `finally`, and a server would be left behind."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("soak: ended by SIGTERM"))


def main() -> int:
    end_the_server_too()
    parser = argparse.ArgumentParser(
        description="Many connections, opened and closed, for minutes."
    )
    parser.add_argument("--server", default="09-epoll")
    parser.add_argument("--connections", type=int, default=18000)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--build", type=Path, default=Path("build"))
    o = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard < o.connections + 100:
        parser.error(f"--connections {o.connections}: the limit of descriptors is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    server, hammer = o.build / "bin" / o.server, o.build / "bin" / "hammer"
    for program in (server, hammer):
        if not os.access(program, os.X_OK):
            parser.error(f"{program} is not there: make servers")
    return soak(server, hammer, o.connections, o.seconds)


if __name__ == "__main__":
    raise SystemExit(main())
