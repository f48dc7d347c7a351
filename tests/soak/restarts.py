"""SIGHUP again and again under clients of every kind, and then SIGTERM, with a trace of all the
server's processes. Looks whether each reply was whole, and what became of each process.

    python3 tests/soak/restarts.py --seconds 60 --workers 16 --restarts 30 --build build

One client in ten sends several requests at once, drips, or closes its sending side. A reply is
whole if it says 200, and its body is the file's; a connection may end without one only after a
reply that announced it. A process has lived well if it ended with status 0 and somebody waited for
it. Prints what was seen, and a line for each fault; status 0 if there was none. Needs strace.
Loopback only; nothing is left running.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from soak import end_the_server_too, program, running

PATIENCE_S = 20.0  #: for a reply, and for the server to end after SIGTERM
SETTLED_S = 1.0  #: between the last restart and the last downloads
LAST = 16  #: downloads that SIGTERM finds
FILES = {"s": (50, 1500), "m": (10, 100_000), "l": (2, 8_000_000)}  #: kind: number, bytes

# ---- the clients


class Broken(Exception):
    """A reply that is not whole, in a word or two."""


@dataclass
class Tally:
    replies: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)  #: of connections, after their last reply


class Client:
    """One connection."""

    def __init__(self, port: int, files: dict[str, bytes]) -> None:
        self.port = port
        self.files = files

    async def __aenter__(self) -> Client:
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        raw.setblocking(False)
        await asyncio.get_running_loop().sock_connect(raw, ("127.0.0.1", self.port))
        self.reader, self.writer = await asyncio.open_connection(sock=raw, limit=65536)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()
        with suppress(OSError):
            await self.writer.wait_closed()

    async def send(self, data: bytes) -> None:
        """Whether it arrives, the reply will tell."""
        with suppress(OSError):
            self.writer.write(data)
            await self.writer.drain()

    async def reply(self, name: str, pause: float = 0) -> bool:
        """Reads one, with a pause after each 64 KiB, and judges it. Returns whether the connection
        goes on.
        """
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await self._reply(self.files[name], pause)
        except TimeoutError:
            raise Broken("nothing came for 20 s") from None
        except ConnectionResetError:
            raise Broken("reset") from None

    async def _reply(self, content: bytes, pause: float) -> bool:
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as error:
            raise Broken("a short head" if error.partial else "no reply") from None
        if not head.startswith(b"HTTP/1.1 200 OK\r\n"):
            raise Broken(head.split(b"\r\n")[0].decode("latin-1"))
        length = re.search(rb"\r\nContent-Length: (\d+)\r\n", head)
        if length is None or int(length[1]) != len(content):
            raise Broken("a wrong length")
        at = 0
        while at < len(content):
            piece = await self.reader.read(min(65536, len(content) - at))
            if not piece:
                raise Broken("a short body")
            if piece != content[at : at + len(piece)]:
                raise Broken("a wrong body")
            at += len(piece)
            if pause:
                await asyncio.sleep(pause)
        return b"\r\nConnection: close\r\n" not in head

    async def end(self) -> str:
        """How the server ends it, once it has said so."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                more = await self.reader.read()
        except ConnectionResetError:
            return "reset"
        except TimeoutError:
            raise Broken("no end") from None
        if more:
            raise Broken("more than the reply")
        return "end of file"


def request(name: str, *fields: str) -> bytes:
    lines = [f"GET /{name} HTTP/1.1", "Host: soak", *fields]
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n"


Visit = Callable[[Client, Tally, random.Random], Coroutine[None, None, None]]


def a_name(chance: random.Random, kinds: str = "sssm") -> str:
    kind = chance.choice(kinds)
    return f"{kind}{chance.randrange(FILES[kind][0])}.bin"


async def keep(c: Client, tally: Tally, chance: random.Random) -> None:
    for _ in range(30):
        name = a_name(chance)
        await c.send(request(name))
        goes_on = await c.reply(name)
        tally.replies["kept"] += 1
        if not goes_on:
            tally.ends[await c.end()] += 1
            return
        await asyncio.sleep(chance.random() * 0.1)


async def ask_once(c: Client, tally: Tally, chance: random.Random) -> None:
    name = a_name(chance)
    await c.send(request(name, "Connection: close"))
    await c.reply(name)
    tally.replies["closed"] += 1
    tally.ends[await c.end()] += 1
    await asyncio.sleep(chance.random() * 0.05)


async def download(c: Client, tally: Tally, chance: random.Random) -> None:
    name = a_name(chance, "l")
    await c.send(request(name, "Connection: close"))
    await c.reply(name, pause=chance.uniform(0.002, 0.025))
    tally.replies["downloads"] += 1
    tally.ends[await c.end()] += 1


async def several(c: Client, names: Sequence[str]) -> int:
    """The replies to requests that have been sent: all, or as many as the server announced."""
    for i, name in enumerate(names, 1):
        if not await c.reply(name):
            return i
    return len(names)


async def pipeline(c: Client, tally: Tally, chance: random.Random) -> None:
    names = [a_name(chance) for _ in range(8)]
    for _ in range(10):
        await c.send(b"".join(map(request, names)))
        answered = await several(c, names)
        tally.replies["pipelined"] += answered
        if answered < len(names):
            tally.ends[await c.end()] += 1
            return
        await asyncio.sleep(chance.random() * 0.1)


async def drip(c: Client, tally: Tally, chance: random.Random) -> None:
    for _ in range(10):
        name = a_name(chance)
        data = request(name)
        for at in range(0, len(data), 2):
            await c.send(data[at : at + 2])
            await asyncio.sleep(0.03)
        goes_on = await c.reply(name)
        tally.replies["dripped"] += 1
        if not goes_on:
            tally.ends[await c.end()] += 1
            return


async def half_close(c: Client, tally: Tally, chance: random.Random) -> None:
    names = [a_name(chance) for _ in range(chance.choice([1, 1, 3]))]
    await c.send(b"".join(map(request, names)))
    with suppress(OSError):
        c.writer.write_eof()
    tally.replies["half-closed"] += await several(c, names)
    tally.ends[await c.end()] += 1
    await asyncio.sleep(chance.random() * 0.05)


#: of ten clients; the tenth is one of the odd ones
USUAL: Sequence[Visit] = (keep, keep, keep, keep, keep, ask_once, ask_once, ask_once, download)
ODD: Sequence[Visit] = (pipeline, drip, half_close)


async def visit(how: Visit, port: int, files: dict[str, bytes], tally: Tally, seed: int) -> None:
    """One connection. A fault is one of its reply in hand, and of the kind of client."""
    try:
        async with Client(port, files) as c:
            await how(c, tally, random.Random(seed))
    except Broken as fault:
        tally.faults[f"{how.__name__}: {fault}"] += 1
    except OSError as error:
        tally.faults[f"{how.__name__}: {error.strerror or error!r}"] += 1


async def come_again(
    how: Visit, port: int, files: dict[str, bytes], tally: Tally, number: int, until: float
) -> None:
    seed = number * 1_000_000
    while monotonic() < until:
        seed += 1
        await visit(how, port, files, tally, seed)


async def soak(
    pid: int, port: int, files: dict[str, bytes], seconds: float, restarts: int, clients: int
) -> Tally:
    """The clients come again and again, and the restarts; then downloads, and SIGTERM in their
    middle: these are to be finished.
    """
    tally = Tally()
    until = monotonic() + seconds
    kinds = [ODD[i // 10 % 3] if i % 10 == 9 else USUAL[i % 10] for i in range(clients)]
    tasks = [
        asyncio.create_task(come_again(how, port, files, tally, i, until))
        for i, how in enumerate(kinds)
    ]
    for _ in range(restarts):
        os.kill(pid, signal.SIGHUP)
        await asyncio.sleep(seconds / restarts)
    await asyncio.gather(*tasks)
    await asyncio.sleep(SETTLED_S)
    last = [asyncio.create_task(visit(download, port, files, tally, i)) for i in range(LAST)]
    await asyncio.sleep(0.3)
    os.kill(pid, signal.SIGTERM)
    await asyncio.gather(*last)
    return tally


# ---- the processes

TRACED = re.compile(r"(\d+) +(.*)")
FORKED = re.compile(r"(?:clone3?|v?fork)\((.*)\) += (\d+)")
WAITED = re.compile(r"wait4\(.*\) += (\d+)")
ENDED = re.compile(r"\+\+\+ (exited with \d+|killed by \w+).* \+\+\+")
UNFINISHED = "<unfinished ...>"


@dataclass
class Lives:
    """What a trace of `strace -f -e trace=process` tells."""

    forked: set[int] = field(default_factory=set)  #: beside the first process
    threads: int = 0
    programs: int = 0  #: started, the first one included
    ends: dict[int, str] = field(default_factory=dict)
    waited_for: set[int] = field(default_factory=set)

    def faults(self) -> list[str]:
        found = []
        for pid in sorted(self.forked):
            end = self.ends.get(pid, "never ended")
            if end != "exited with 0":
                found.append(f"process {pid}: {end}")
            elif pid not in self.waited_for:
                found.append(f"process {pid}: nobody waited for it")
        return found


def whole_lines(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """(pid, call): where others ran meanwhile, strace writes a call in two lines."""
    begun: dict[int, str] = {}
    for line in lines:
        match = TRACED.match(line)
        if match is None:
            continue
        pid, text = int(match[1]), match[2]
        if text.endswith(UNFINISHED):
            begun[pid] = text.removesuffix(UNFINISHED)
            continue
        resumed = re.match(r"<\.\.\. \w+ resumed>(.*)", text)
        yield pid, begun.pop(pid, "") + resumed[1] if resumed else text


def lives(lines: Sequence[str]) -> Lives:
    found = Lives()
    for pid, text in whole_lines(lines):
        if forked := FORKED.match(text):
            if "CLONE_THREAD" in forked[1]:
                found.threads += 1
            else:
                found.forked.add(int(forked[2]))
        elif waited := WAITED.match(text):
            found.waited_for.add(int(waited[1]))
        elif ended := ENDED.match(text):
            found.ends[pid] = ended[1]
        elif text.startswith("execve(") and text.endswith(" = 0"):
            found.programs += 1
    return found


@contextmanager
def traced(server: Path, options: Sequence[str], trace: Path) -> Iterator[tuple[int, int]]:
    """(process, port). strace watches from a session of its own (-DDD)."""
    strace = ["strace", "-DDD", "-f", "-q", "--seccomp-bpf", "-e", "trace=process"]
    with running([*strace, "-o", str(trace), str(server), "-p", "0", *options]) as (process, port):
        yield process.pid, port
        try:
            status = process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise SystemExit(f"soak: {server} still runs after SIGTERM") from None
        if status != 0:
            raise SystemExit(f"soak: {server} ended with {status}")


# ---- all of it


def write_files(folder: Path) -> dict[str, bytes]:
    """In each a piece that is missing, doubled or another file's shows."""
    files = {}
    for kind, (count, size) in FILES.items():
        for i in range(count):
            name = f"{kind}{i}.bin"
            files[name] = random.Random(name).randbytes(size)
            (folder / name).write_bytes(files[name])
    return files


def report(tally: Tally, found: Lives) -> list[str]:
    """Prints what was seen; returns what was wrong."""
    for title, counts in (("replies", tally.replies), ("ends", tally.ends)):
        parts = ", ".join(f"{number} {what}" for what, number in sorted(counts.items()))
        print(f"{title}: {sum(counts.values())} ({parts})")
    ends = Counter(found.ends.get(pid, "never ended") for pid in found.forked)
    parts = ", ".join(f"{number} {end}" for end, number in sorted(ends.items()))
    waited_for = len(found.forked & found.waited_for)
    print(f"programs: {found.programs}")
    print(f"processes: {len(found.forked)} ({parts}; {waited_for} waited for)")
    faults = [f"{number} x {fault}" for fault, number in sorted(tally.faults.items())]
    return faults + found.faults()


def main() -> int:
    end_the_server_too()
    parser = argparse.ArgumentParser(description="Restarts under load; every process is followed.")
    parser.add_argument("--server", default="15-slashdot")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--restarts", type=int, default=30)
    parser.add_argument("--clients", type=int, default=60)
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("--keep-trace", type=Path, help="copy the trace to this file")
    o = parser.parse_args()
    server = program(o.build, o.server)
    if shutil.which("strace") is None:
        parser.error("strace is not there (Debian: strace)")
    with tempfile.TemporaryDirectory() as folder:
        docroot, trace = Path(folder, "docroot"), Path(folder, "trace")
        docroot.mkdir()
        files = write_files(docroot)
        options = ["-w", str(o.workers), "-b", "4096", str(docroot)]
        with traced(server, options, trace) as (pid, port):
            work = soak(pid, port, files, o.seconds, o.restarts, o.clients)
            tally = asyncio.run(work)
        if o.keep_trace:
            shutil.copy(trace, o.keep_trace)
        found = lives(trace.read_text(encoding="utf-8", errors="replace").splitlines())
    faults = report(tally, found)
    for fault in faults[:40]:
        print(f"fault: {fault}")
    print(f"{len(faults)} kinds of fault" if faults else "no reply short, every life accounted for")
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
