"""SIGHUP again and again under clients of every kind, and then SIGTERM, with a trace of all the
processes of 15-slashdot. Looks whether each reply was whole, and what became of each process.

    python3 tests/soak/restarts.py --seconds 60 --workers 16 --restarts 30 --build build

One client in ten sends several requests at once, drips, or closes its sending side. A reply is
whole if it says 200, and its body is the file's; a connection may end without one only after a
reply that announced it. A process has lived well if it ended with status 0 and somebody waited for
it. Prints what was seen, and a line for each fault; status 0 if there was none. Needs strace.
Loopback only; nothing is left running.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from soak import end_the_server_too, program, running, write_files

from conformance.wire import Connection, ContractBroken, request

PATIENCE_S = 20.0  #: for what must come, and for the server to end after SIGTERM
SETTLED_S = 1.0  #: between the last restart and the last downloads
CLIENTS = 60
LAST = 16  #: downloads that SIGTERM finds
PIECE = 65536
FILES = {"s": (50, 1500), "m": (10, 100_000), "l": (2, 8_000_000)}  #: kind: number, bytes

# ---- the clients


@dataclass(frozen=True)
class Habit:
    """How a kind of client uses its connection."""

    name: str
    rounds: int = 1
    at_once: Sequence[int] = (1,)  #: requests of a round: one of these numbers
    kinds: str = "sssm"  #: of files
    closes: bool = False  #: says Connection: close
    half_closes: bool = False
    drips: bool = False
    pause_s: float = 0.0  #: at most, after each piece


KEEP, ONCE = Habit("kept", rounds=30), Habit("closed", closes=True)
DOWNLOAD = Habit("downloads", kinds="l", closes=True, pause_s=0.025)
ODD = (
    Habit("pipelined", rounds=10, at_once=(8,)),
    Habit("dripped", rounds=10, drips=True),
    Habit("half-closed", at_once=(1, 1, 3), half_closes=True),
)
USUAL = (*[KEEP] * 5, *[ONCE] * 3, DOWNLOAD)  #: of ten clients; the tenth is one of the odd ones
Seen = Counter[tuple[str, str]]  #: (replies | ends | faults, which)


class Client(Connection):
    def reads(self, content: bytes, pause_s: float = 0.0) -> bool:
        """Reads a reply, and judges it. Returns whether the connection goes on."""
        head = self.read_head()
        if head.status != 200:
            raise ContractBroken(f"status {head.status}")
        if head.need("Content-Length") != str(len(content)):
            raise ContractBroken("a wrong length")
        for at in range(0, len(content), PIECE):
            piece = content[at : at + PIECE]
            if self.read_exactly(len(piece)) != piece:
                raise ContractBroken("a wrong body")
            time.sleep(pause_s)
        return head.keeps_alive


def use(
    client: Client, files: Mapping[str, bytes], habit: Habit, chance: random.Random, seen: Seen
) -> None:
    fields = ["Connection: close"] if habit.closes else []
    for _ in range(habit.rounds):
        kinds = chance.choices(habit.kinds, k=chance.choice(habit.at_once))
        names = [f"{kind}{chance.randrange(FILES[kind][0])}.bin" for kind in kinds]
        data = b"".join(request(f"/{name}", *fields) for name in names)
        step = 2 if habit.drips else len(data)
        for at in range(0, len(data), step):
            if not client.try_send(data[at : at + step]):
                client.ended = None  # what had come before can still be read, and will tell
            time.sleep(0.03 if habit.drips else 0)
        if habit.half_closes:
            client.finish_sending()
        for name in names:
            goes_on = client.reads(files[name], chance.random() * habit.pause_s)
            seen["replies", habit.name] += 1
            if not goes_on:
                break
        if not goes_on or habit.closes or habit.half_closes:
            if client.read_all():
                raise ContractBroken("more than the reply")
            seen["ends", str(client.ended)] += 1
            return
        time.sleep(chance.random() * 0.1)


def visit(habit: Habit, port: int, files: Mapping[str, bytes], number: int, until: float) -> Seen:
    """One connection after the other; one at least."""
    seen: Seen = Counter()
    chance = random.Random(number)
    while True:
        try:
            with Client(("127.0.0.1", port), PATIENCE_S, receive_buffer=PIECE) as client:
                use(client, files, habit, chance, seen)
        except (ContractBroken, OSError) as error:
            what = re.sub(r"\d+", "N", str(error).splitlines()[0])
            seen["faults", f"{habit.name}: {type(error).__name__}: {what}"] += 1
        if time.monotonic() >= until:
            return seen
        time.sleep(chance.random() * 0.05)


def soak(pid: int, port: int, files: Mapping[str, bytes], seconds: float, restarts: int) -> Seen:
    """The clients come again and again, and the restarts; then downloads, and SIGTERM in their
    middle: these are to be finished.
    """
    until = time.monotonic() + seconds
    with ThreadPoolExecutor(CLIENTS) as pool:
        habits = [ODD[i // 10 % 3] if i % 10 == 9 else USUAL[i % 10] for i in range(CLIENTS)]
        visits = [pool.submit(visit, h, port, files, i, until) for i, h in enumerate(habits)]
        for _ in range(restarts):
            os.kill(pid, signal.SIGHUP)
            time.sleep(seconds / restarts)
        seen = sum((each.result() for each in visits), Counter())
        time.sleep(SETTLED_S)
        visits = [pool.submit(visit, DOWNLOAD, port, files, i, 0.0) for i in range(LAST)]
        time.sleep(0.3)
        os.kill(pid, signal.SIGTERM)
        return sum((each.result() for each in visits), seen)


# ---- the processes

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


@contextmanager
def traced(server: Path, options: Sequence[str], trace: Path) -> Iterator[tuple[int, int]]:
    """(process, port). strace watches from a session of its own (-DDD)."""
    strace = ["strace", "-DDD", "-ff", "-q", "--seccomp-bpf", "-e", "trace=process"]
    with running([*strace, "-o", str(trace), str(server), "-p", "0", *options]) as (process, port):
        yield process.pid, port
        try:
            status = process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise SystemExit(f"soak: {server} still runs after SIGTERM") from None
        if status != 0:
            raise SystemExit(f"soak: {server} ended with {status}")


def report(seen: Seen, ends: Mapping[int, str]) -> int:
    for title in ("replies", "ends"):
        counts = {what: number for (key, what), number in sorted(seen.items()) if key == title}
        listed = ", ".join(f"{number} {what}" for what, number in counts.items())
        print(f"{title}: {sum(counts.values())} ({listed})")
    print(f"processes: {len(ends)}")
    faults = [f"{n} x {what}" for (key, what), n in sorted(seen.items()) if key == "faults"]
    faults += [f"process {pid}: {end}" for pid, end in sorted(ends.items()) if end != "well"]
    for fault in faults[:40]:
        print(f"fault: {fault}")
    print(f"{len(faults)} kinds of fault" if faults else "no reply short, every life accounted for")
    return 1 if faults else 0


def main() -> int:
    end_the_server_too()
    parser = argparse.ArgumentParser(description="Restarts under load; every process is followed.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--restarts", type=int, default=30)
    parser.add_argument("--build", type=Path, default=Path("build"))
    o = parser.parse_args()
    server = program(o.build, "15-slashdot")
    if shutil.which("strace") is None:
        parser.error("strace is not there (Debian: strace)")
    with tempfile.TemporaryDirectory() as folder:
        docroot, traces = Path(folder, "docroot"), Path(folder, "traces")
        docroot.mkdir()
        traces.mkdir()
        files = write_files(docroot, FILES)
        options = ["-w", str(o.workers), "-b", "4096", str(docroot)]
        with traced(server, options, traces / "of") as (pid, port):
            seen = soak(pid, port, files, o.seconds, o.restarts)
        texts = {int(p.suffix[1:]): p.read_text(errors="replace") for p in traces.iterdir()}
    return report(seen, lives(texts))


if __name__ == "__main__":
    raise SystemExit(main())
