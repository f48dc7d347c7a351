"""Loads a server for minutes or for hours, and looks whether anything of it grows, and whether
anybody is lost.

    python3 tests/soak/soak.py --herd 18000 --seconds 300 --build build     `make soak`
    python3 tests/soak/soak.py --seconds 3600 --restarts 600 --build build  `make soak-mixed`
    python3 tests/soak/soak.py --seconds 60 --restarts 2 --follow           `make soak-restarts`

With --herd, a cycle opens so many keep-alive connections, serves them, and closes them; one client
asks beside them. Without, a cycle of five seconds has everything at once: kept and closed
connections, small and large files, more names than any table keeps, slow, half-dead and idle
clients, and odd ones: they break a download off, send several requests at once, drip, or close
their sending side, and what they get is compared with the files. --restarts: SIGHUP to the server
after so many seconds, again and again; memory and latency are judged between two of them. --follow:
strace follows each process of it: it has lived well if it ended with 0 and somebody waited for it.

Prints a line a cycle and the verdict; status 0 if all was flat and nobody was lost, 1 if not.
Loopback only, bounded in connections; nothing is left running.
"""

import argparse
import itertools
import json
import os
import random
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from scipy.stats import theilslopes

from tests.conformance import proc
from tests.conformance.process import wait_until
from tests.conformance.wire import Connection, ContractBroken, request

RISE = 0.25  #: of latency, over the life of a worker
GROWTH = 0.02  #: of memory, from the first quarter of a worker's cycles to the last
SPARE_KIB = 128  #: of memory, beside
SETTLE_S = 2.0  #: for the server to see that its clients have gone
CYCLE_S = 4
ODD_CLIENTS = 40  #: a cycle
PATIENCE_S = 20.0  #: for what must come to an odd client, and for the server's end
FILES = {"s": (1500, 1000), "m": (100, 100_000), "l": (4, 10_000_000)}  #: kind: number, bytes
#: what runs beside each other in a mixed cycle; the last one asks now and then
LOADS = (
    ["-k", "-c", "16", "--slow", "8", "--half-dead", "8", "--idle", "200"],
    ["-c", "16"],
    ["-k", "-c", "1", "-r", "50"],
)
STRACE = ("strace", "-DDD", "-ff", "-q", "--seccomp-bpf", "-e", "trace=process", "-o")
MANY_WORKERS = ("-w", "16", "-b", "4096")  #: of 15-slashdot, where each is followed


@dataclass(frozen=True)
class Cycle:
    at_s: float
    generation: int  #: of the workers
    requests: int
    failed: int  #: requests, and connections of a herd
    median_us: float  #: of who asks beside the others
    anonymous_kib: int
    descriptors: int


# ---- the verdict


def rise(cycles: Sequence[Cycle]) -> float:
    """What latency rises by over the life of a worker, as a share of its median there: Theil and
    Sen's line, which a few bad cycles do not turn. What ages is a process: its successors begin
    anew, whereas a machine that has other work later stays slow for them as well.
    """
    ages, shares = [], []
    for _, group in itertools.groupby(cycles, key=lambda c: c.generation):
        its = list(group)
        if len(its) == 1:
            continue
        middle = statistics.median(c.median_us for c in its)
        ages += [c.at_s - its[0].at_s for c in its]
        shares += [c.median_us / middle for c in its]
    return float(theilslopes(shares, ages)[0]) * max(ages) if ages else 0.0


def faults(cycles: Sequence[Cycle], base: int, least: int) -> list[str]:
    """What was not flat, a sentence each. `base`: the descriptors of a server without clients."""
    if len(cycles) < least:
        return [f"{len(cycles)} cycles are too few to judge: {least} are needed (--seconds)"]
    found = []
    if lost := sum(c.failed for c in cycles):
        found.append(f"{lost} requests or connections were lost")
    if more := [c for c in cycles if c.descriptors != base]:
        found.append(f"{len(more)} cycles left descriptors: {more[0].descriptors}, not {base}")
    for generation in sorted({c.generation for c in cycles}):
        # the first cycles fill tables that are bounded
        its = [c.anonymous_kib for c in cycles if c.generation == generation][2:]
        if len(its) >= 8:
            first, last = max(its[: len(its) // 4]), max(its[-(len(its) // 4) :])
            if last > first * (1 + GROWTH) + SPARE_KIB:
                found.append(f"memory grew from {first} to {last} KiB (generation {generation})")
    if (rose := rise(cycles)) > RISE:
        found.append(f"latency rose by {rose:.0%} while the workers grew old")
    return found


# ---- the server, from outside

FORKED = re.compile(r"^(?:clone3?|v?fork)\((?!.*CLONE_THREAD).*\) += (\d+)$", re.MULTILINE)
WAITED = re.compile(r"^wait4\(.*\) += (\d+)$", re.MULTILINE)
ENDED = re.compile(r"^\+\+\+ (exited with \d+|killed by \w+).* \+\+\+$", re.MULTILINE)


def lives(traces: Mapping[int, str]) -> dict[int, str]:
    """How each process that was forked ended, by what the traces of `strace -ff -e trace=process`
    tell, one of each process or thread: "well", or what was wrong.
    """
    waited_for = {pid for text in traces.values() for pid in WAITED.findall(text)}
    found = {}
    for pid in (pid for text in traces.values() for pid in FORKED.findall(text)):
        ended = ENDED.search(traces.get(int(pid), ""))
        end = ended[1] if ended else "never ended"
        if end == "exited with 0":
            end = "well" if pid in waited_for else "nobody waited for it"
        found[int(pid)] = end
    return found


def processes(pid: int) -> list[int]:
    """The first one, and those that serve: after a restart they are the children of a child."""
    leaves = (proc.children(child) or [child] for child in proc.children(pid))
    return [pid, *itertools.chain.from_iterable(leaves)]


def descriptors(pid: int, kind: str, base: int) -> int:
    """How many there are once they are `base` again, or after SETTLE_S. Those that begin so:
    "socket:" leaves out the files that a server may keep open.
    """

    def now() -> int:
        names = (name for each in processes(pid) for name in proc.descriptors(each).values())
        return sum(name.startswith(kind) for name in names)

    return base if wait_until(lambda: now() == base, SETTLE_S) else now()


@contextmanager
def running(command: Sequence[str]) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server and its port."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            match = re.search(r"http://\S+:(\d+)/", line)
            if match is None:
                raise SystemExit(f"soak: {command[0]} said {line!r}, not where it listens")
            yield process, int(match[1])
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise SystemExit(f"soak: {command[0]} still runs after SIGTERM") from None
    if process.returncode != 0:
        raise SystemExit(f"soak: {command[0]} ended with {process.returncode}")


# ---- the load


def write_files(folder: Path, kinds: Mapping[str, tuple[int, int]]) -> dict[str, bytes]:
    """In each a piece that is missing, doubled or another file's shows."""
    files = {}
    for kind, (count, size) in kinds.items():
        for name in (f"{kind}{i}.bin" for i in range(count)):
            files[name] = random.Random(name).randbytes(size)
            (folder / name).write_bytes(files[name])
    return files


ODD = ("broken off", "pipelined", "dripped", "half-closed")


def odd(port: int, files: Mapping[str, bytes], kind: str) -> str:
    """One client of this kind: what was wrong, or "". A reply is the last one if it says so."""
    letters = "l" if kind in ("broken off", "dripped") else "sm" * 4
    names = [random.choice([name for name in files if name[0] == letter]) for letter in letters]
    data = b"".join(request(f"/{name}") for name in names)
    step = 2 if kind == "dripped" else len(data)
    try:
        with Connection(("127.0.0.1", port), PATIENCE_S) as client:
            for at in range(0, len(data), step):
                if not client.try_send(data[at : at + step]):
                    client.ended = None  # what had come before can still be read, and will tell
                time.sleep(0.03 if kind == "dripped" else 0)
            if kind == "broken off":
                client.read_head()
                client.reset()
                return ""
            if kind == "half-closed":
                client.finish_sending()
            for name in names:
                reply = client.read_reply()
                if reply.status != 200 or reply.body != files[name]:
                    return f"{kind}: status {reply.status}, {len(reply.body)} bytes of {name}"
                if not reply.keeps_alive:
                    break
            if kind == "half-closed" or not reply.keeps_alive:
                client.expect_end()
    except (ContractBroken, OSError) as error:
        return f"{kind}: {type(error).__name__}: {str(error).splitlines()[0]}"
    return ""


@dataclass(frozen=True)
class Load:
    hammer: Path
    port: int
    urls: Path
    files: Mapping[str, bytes]
    herd: int  #: connections; 0: everything at once

    def cycle(self, pid: int = 0, restarts: int = 0) -> tuple[int, int, float]:
        """Requests, failed ones, the asker's median in us. The process gets so many SIGHUPs,
        within a mixed cycle.
        """
        url = f"http://127.0.0.1:{self.port}/s0.bin"
        if self.herd:
            options = [["--herd", str(self.herd), "-c", "1", "-k", "-n", "200", url]]
        else:
            options = [[*o, "-s", str(CYCLE_S), "--check", "-i", str(self.urls)] for o in LOADS]
        hammer = [str(self.hammer), "-t", "30", "--json"]
        hammers = [
            subprocess.Popen([*hammer, *o], stdout=subprocess.PIPE, text=True) for o in options
        ]
        with ThreadPoolExecutor(ODD_CLIENTS) as pool:
            visits = []
            for i in range(0 if self.herd else ODD_CLIENTS):
                if restarts and i % (ODD_CLIENTS // restarts) == ODD_CLIENTS // restarts // 2:
                    os.kill(pid, signal.SIGHUP)
                visits.append(pool.submit(odd, self.port, self.files, ODD[i % len(ODD)]))
                time.sleep(CYCLE_S / ODD_CLIENTS / 2)
        wrong = [said for visit in visits if (said := visit.result())]
        for said in wrong:
            print(f"soak: {said}", file=sys.stderr)
        results = []
        for process in hammers:
            out, _ = process.communicate(timeout=600 + CYCLE_S)
            if process.returncode != 0:
                raise SystemExit(f"soak: hammer ended with {process.returncode}")
            results.append(json.loads(out))
        failed = len(wrong) + sum(r["failed"] for r in results)
        if self.herd:
            failed += self.herd - results[0]["herd"]["held"]
        median_us = results[-1]["total"]["median"] / 1e3
        return sum(r["requests"] for r in results), failed, median_us


def watch(pid: int, load: Load, seconds: float, restarts: float, least: int) -> int:
    kind = "" if load.herd else "socket:"
    load.cycle()
    base = descriptors(pid, kind, -1)
    cycles: list[Cycle] = []
    start = last_restart = time.monotonic()
    generation = 0
    print(*(field.name for field in fields(Cycle)), sep="\t", flush=True)
    while (now := time.monotonic()) - start < seconds:
        due = min(int((now - last_restart) / restarts), ODD_CLIENTS) if restarts else 0
        if due:
            last_restart, generation = now, generation + due
        seen = load.cycle(pid, due)
        left = descriptors(pid, kind, base)
        at_s = round(time.monotonic() - start, 1)
        kib = sum(map(proc.anonymous_kib, processes(pid)))
        cycles.append(Cycle(at_s, generation, *seen, kib, left))
        print(*astuple(cycles[-1]), sep="\t", flush=True)
    found = faults(cycles, base, least)
    for fault in found:
        print(f"soak: {fault}", file=sys.stderr)
    total = sum(c.requests for c in cycles)
    print(f"{len(cycles)} cycles, {total} requests: {'not flat' if found else 'flat'}")
    return 1 if found else 0


def end_the_server_too() -> None:
    """SIGTERM ends Python at once, without its `finally`, and a server would be left behind."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("soak: ended by SIGTERM"))


def program(folder: Path, name: str) -> Path:
    path = folder.resolve() / "bin" / name
    if not os.access(path, os.X_OK):
        raise SystemExit(f"soak: {path} is not there: make servers")
    return path


def main() -> int:
    end_the_server_too()
    parser = argparse.ArgumentParser(description="A load for long: does anything grow?")
    parser.add_argument("--server", help="default: 09-epoll for a herd, else 15-slashdot")
    parser.add_argument("--herd", type=int, default=0, help="connections of a cycle")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--restarts", type=float, default=0, help="SIGHUP after so many seconds")
    parser.add_argument("--follow", action="store_true", help="each process, by strace")
    parser.add_argument("--build", type=Path, default=Path("build"))
    o = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < o.herd + 100:
        parser.error(f"--herd {o.herd}: the limit of descriptors is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if o.follow and shutil.which("strace") is None:
        parser.error("strace is not there (Debian: strace)")
    server = program(o.build, o.server or ("09-epoll" if o.herd else "15-slashdot"))
    hammer = program(o.build, "hammer")
    with tempfile.TemporaryDirectory() as folder:
        docroot, urls = Path(folder, "docroot"), Path(folder, "urls")
        docroot.mkdir()
        files = write_files(docroot, FILES)
        often = [name for name in files for _ in range(4 if name[0] == "s" else 1)]
        followed = (*STRACE, f"{folder}/trace") if o.follow else ()
        options = ("-p", "0", *(MANY_WORKERS if o.follow else ()), str(docroot))
        with running([*followed, str(server), *options]) as (process, port):
            urls.write_text("".join(f"http://127.0.0.1:{port}/{name}\n" for name in often))
            load = Load(hammer, port, urls, files, o.herd)
            least = 1 if o.follow else 10  # where processes are looked at, not what grows
            status = watch(process.pid, load, o.seconds, o.restarts, least)
        traces = {int(p.suffix[1:]): p.read_text() for p in Path(folder).glob("trace.*")}
    ends = lives(traces)
    for pid, end in ends.items():
        if end != "well":
            status = 1
            print(f"process {pid}: {end}")
    if o.follow:
        print(f"{len(ends)} processes were followed")
    return status


if __name__ == "__main__":
    raise SystemExit(main())
