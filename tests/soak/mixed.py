"""Everything at once, for an hour if need be: kept and closed connections, small and large files,
more names than any table keeps, slow, half-dead and idle clients, downloads that are broken off,
and the workers replaced while all that goes on. Looks whether anything of the server grows, and
whether anybody is lost.

    python3 tests/soak/mixed.py --server 15-slashdot --seconds 3600 --restarts 600 --build build

Prints a line a cycle of about five seconds, and the verdict; status 0 if all was flat and nobody
was lost, 1 if not. --restarts: SIGHUP to the server after so many seconds, again and again; memory
and latency are judged between two of them. Loopback only, bounded in connections; nothing is left
running.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from churn import GROWTH, RISE, SETTLE_S, SPARE_KIB, end_the_server_too, rise

CYCLE_S = 4
#: while it is looked at, a descriptor may be closed, a worker of before the restart end
GONE = (FileNotFoundError, ProcessLookupError, PermissionError)
BROKEN_OFF = 20  #: downloads a cycle
SMALL, MIDDLE, LARGE = (1500, 1000), (100, 100_000), (4, 10_000_000)  #: files, bytes
#: what runs beside each other in a cycle: name -> options of hammer
LOADS = {
    "kept": ["-k", "-c", "16", "--slow", "8", "--half-dead", "8", "--idle", "200"],
    "closed": ["-c", "16"],
    "asker": ["-k", "-c", "1", "-r", "50"],
}


@dataclass(frozen=True)
class Cycle:
    at_s: float
    generation: int  #: of the workers
    requests: int
    failed: int
    median_us: float  #: of the asker
    anonymous_kib: int
    sockets: int


def faults(cycles: Sequence[Cycle], sockets: int) -> list[str]:
    """What was not flat, a sentence each."""
    if len(cycles) < 10:
        return [f"{len(cycles)} cycles are too few to judge: 10 are needed (--seconds)"]
    found = []
    if lost := sum(c.failed for c in cycles):
        found.append(f"{lost} requests were lost")
    if more := [c for c in cycles if c.sockets != sockets]:
        found.append(f"{len(more)} cycles left sockets: {more[0].sockets}, not {sockets}")
    for generation in sorted({c.generation for c in cycles}):
        # the first cycles fill tables that are bounded
        its = [c.anonymous_kib for c in cycles if c.generation == generation][2:]
        if len(its) >= 8:
            first, last = max(its[: len(its) // 4]), max(its[-(len(its) // 4) :])
            if last > first * (1 + GROWTH) + SPARE_KIB:
                found.append(f"memory grew from {first} to {last} KiB (generation {generation})")
    rose = rise_with_age(cycles)
    if rose > RISE:
        found.append(f"latency rose by {rose:.0%} while the workers grew old")
    return found


def rise_with_age(cycles: Sequence[Cycle]) -> float:
    """Of latency, over the life of a worker. What ages is a process: its successors begin anew,
    whereas a machine that has other work in the second half hour stays slow for them as well.
    """
    ages, shares = [], []
    for generation in sorted({c.generation for c in cycles}):
        its = [c for c in cycles if c.generation == generation]
        middle = statistics.median(c.median_us for c in its)
        ages += [c.at_s - its[0].at_s for c in its]
        shares += [c.median_us / middle for c in its]
    order = sorted(range(len(ages)), key=ages.__getitem__)
    return rise([ages[i] for i in order], [shares[i] for i in order])


# ---- the server, from outside


def children(pid: int) -> list[int]:
    with suppress(*GONE):
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
        return [int(word) for word in text.split()]
    return []


def processes(pid: int) -> list[int]:
    """The first one, and those that serve: after a restart they are the children of a child."""
    return [pid, *(leaf for child in children(pid) for leaf in children(child) or [child])]


def anonymous_kib(pids: Sequence[int]) -> int:
    total = 0
    for pid in pids:
        with suppress(*GONE):
            status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
            match = re.search(r"^RssAnon:\s*(\d+) kB$", status, re.MULTILINE)
            total += int(match[1]) if match else 0
    return total


def sockets(pids: Sequence[int]) -> int:
    """Without the files that a server may keep open."""
    total = 0
    for pid in pids:
        with suppress(*GONE):
            for link in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(FileNotFoundError):
                    total += os.readlink(link).startswith("socket:")
    return total


def settled(pid: int, base: int) -> int:
    deadline = time.monotonic() + SETTLE_S
    while (now := sockets(processes(pid))) != base and time.monotonic() < deadline:
        time.sleep(0.02)
    return now


# ---- the load


def write_files(folder: Path) -> list[str]:
    """The docroot; returns the names, the small ones several times."""
    names = []
    for kind, (count, size) in {"s": SMALL, "m": MIDDLE, "l": LARGE}.items():
        for i in range(count):
            (folder / f"{kind}{i}.bin").write_bytes(os.urandom(100) + bytes(size - 100))
            names += [f"{kind}{i}.bin"] * (4 if kind == "s" else 1)
    return names


def break_off(address: tuple[str, int]) -> None:
    """A download of which a little is read, and then a reset."""
    with socket.create_connection(address, timeout=10) as s:
        s.sendall(b"GET /l0.bin HTTP/1.1\r\nHost: soak\r\n\r\n")
        s.recv(1000)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def run_cycle(
    hammer: Path, urls: Path, address: tuple[str, int], restart: int = 0
) -> tuple[int, int, float]:
    """(requests, failed, median of the asker in µs). `restart`: the process that gets SIGHUP in the
    middle of it.
    """
    running = {}
    for name, options in LOADS.items():
        command = [str(hammer), *options, "-s", str(CYCLE_S), "-t", "30", "-i", str(urls)]
        running[name] = subprocess.Popen(
            [*command, "--check", "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    for i in range(BROKEN_OFF):
        if restart and i == BROKEN_OFF // 2:
            os.kill(restart, signal.SIGHUP)
        break_off(address)
        time.sleep(CYCLE_S / BROKEN_OFF / 2)
    requests = failed = 0
    median_us = 0.0
    for name, process in running.items():
        out, err = process.communicate(timeout=60 + CYCLE_S)
        if process.returncode != 0:
            raise SystemExit(f"soak: hammer ended with {process.returncode}: {err.strip()}")
        result = json.loads(out)
        requests += result["requests"]
        failed += result["failed"]
        if name == "asker":
            median_us = result["total"]["median"] / 1e3
    return requests, failed, median_us


@contextmanager
def running(server: Path, options: Sequence[str], docroot: Path) -> Iterator[tuple[int, int]]:
    """(process, port)"""
    command = [str(server), "-p", "0", *options, str(docroot)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            match = re.search(r"http://\S+:(\d+)/", line)
            if match is None:
                raise SystemExit(f"soak: {server} said {line!r}, not where it listens")
            yield process.pid, int(match[1])
        finally:
            process.terminate()


def watch(pid: int, port: int, hammer: Path, urls: Path, seconds: float, restarts: float) -> int:
    address = ("127.0.0.1", port)
    run_cycle(hammer, urls, address)
    base = settled(pid, -1)
    cycles: list[Cycle] = []
    start = last_restart = time.monotonic()
    generation = 0
    print(*Cycle.__dataclass_fields__, sep="\t")
    while time.monotonic() - start < seconds:
        due = bool(restarts) and time.monotonic() - last_restart >= restarts
        if due:
            last_restart = time.monotonic()
            generation += 1
        requests, failed, median_us = run_cycle(hammer, urls, address, pid if due else 0)
        now = settled(pid, base)
        kib = anonymous_kib(processes(pid))
        at_s = round(time.monotonic() - start, 1)
        cycles.append(Cycle(at_s, generation, requests, failed, median_us, kib, now))
        print(*vars(cycles[-1]).values(), sep="\t", flush=True)
    found = faults(cycles, base)
    for fault in found:
        print(f"soak: {fault}", file=sys.stderr)
    total = sum(c.requests for c in cycles)
    print(f"{len(cycles)} cycles, {total} requests: {'not flat' if found else 'flat'}")
    return 1 if found else 0


def main() -> int:
    end_the_server_too()
    parser = argparse.ArgumentParser(description="All kinds of load at once, for long.")
    parser.add_argument("--server", default="15-slashdot")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--restarts", type=float, default=0, help="SIGHUP after so many seconds")
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("options", nargs="*", help="of the server, after --")
    o = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    server, hammer = o.build / "bin" / o.server, o.build / "bin" / "hammer"
    for program in (server, hammer):
        if not os.access(program, os.X_OK):
            parser.error(f"{program} is not there: make servers")
    with tempfile.TemporaryDirectory() as folder:
        docroot = Path(folder, "docroot")
        docroot.mkdir()
        names = write_files(docroot)
        with running(server, o.options, docroot) as (pid, port):
            urls = Path(folder, "urls")
            urls.write_text("".join(f"http://127.0.0.1:{port}/{name}\n" for name in names))
            return watch(pid, port, hammer, urls, o.seconds, o.restarts)


if __name__ == "__main__":
    raise SystemExit(main())
