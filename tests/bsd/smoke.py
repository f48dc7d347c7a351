"""What a server must survive, in a minute, on any system that has a Python: for systems where the
conformance tests cannot run, as they look into Linux's /proc. The client is theirs.

    python3 smoke.py --server build/bin/10-kqueue [--only stop,time_outs]

Prints a line a case, "ok 1 - what" or "not ok 1 - what: why" (TAP); status 1 if one is not ok. The
standard library is enough. Loopback only; nothing is left running. No case asserts a time, but that
a server that has nothing to wait for takes less than half of its grace.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from conformance.wire import Connection, ContractBroken, request

CLIENTS = 300
SPARE = 64  #: descriptors, of the server's and of ours, that are no clients
PIPELINED = 500
FILES = [(f"{n} " * (40 + 97 * n)).encode() for n in range(16)]  #: they differ all over
BIG = b"".join(hashlib.sha512(b"%d" % n).digest() for n in range(65536))  #: no socket holds it
GRACE = 5.0  #: seconds that the server gives to replies in flight
SMALL_BUFFER = 4096

limit = 30.0  #: seconds for what must happen: reached only by a case that fails


def check(true: bool, text: str) -> None:
    if not true:
        raise ContractBroken(text)


def ask(n: int, *fields: str) -> bytes:
    return request(f"/{n % len(FILES)}", *fields)


def expect(client: Connection, content: bytes) -> None:
    reply = client.read_reply()
    check(reply.status == 200, f"not a 200: {reply.head[:60]!r}")
    check(reply.body == content, "the reply is not the file that was asked for")


def expect_file(client: Connection, n: int) -> None:
    expect(client, FILES[n % len(FILES)])


class Server:
    def __init__(self, program: Path, *options: str) -> None:
        self.clients: list[Connection] = []
        command = [str(program), "-a", "127.0.0.1", "-p", "0", *options]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/$", line)
        if found is None:
            self.process.kill()
            raise ContractBroken(f"it said {line!r}, not where it listens")
        self.address = ("127.0.0.1", int(found[1]))

    def client(self, receive_buffer: int | None = None) -> Connection:
        self.clients.append(Connection(self.address, limit, receive_buffer=receive_buffer))
        return self.clients[-1]

    def serves(self, n: int = 0) -> None:
        """One who comes now is served."""
        with Connection(self.address, limit) as client:
            client.send(ask(n, "Connection: close"))
            expect_file(client, n)
            client.expect_end()

    def expect_exit(self, seconds: float | None = None) -> None:
        status = self.process.wait(GRACE + limit if seconds is None else seconds)
        check(status == 0, f"it ended with status {status}")


@dataclass(frozen=True)
class Start:
    """start(*options): a server for one case, that is there afterwards, serves, and ends well."""

    program: Path
    root: Path
    clients: int

    @contextlib.contextmanager
    def __call__(self, *options: str) -> Iterator[Server]:
        server = Server(self.program, *options, str(self.root))
        try:
            yield server
            if server.process.returncode is None:
                server.serves()
                server.process.terminate()
                server.expect_exit()
        finally:
            for client in server.clients:
                client.close()
            server.process.kill()
            server.process.communicate()


# ---- the cases: each returns what it did


def connections(start: Start) -> str:
    """All are there before the first one is answered, and each gets what it has asked for."""
    with start() as server:
        clients = [server.client() for _ in range(start.clients)]
        for again in range(2):
            for n, client in enumerate(clients):
                client.send(ask(n + again))
            for n, client in reversed(list(enumerate(clients))):
                expect_file(client, n + again)
        server.serves()
    return f"{start.clients} at once, each with two requests"


def descriptors(start: Start) -> str:
    """Numbers are given out again, in another order, and nothing of their former owner is left."""
    with start() as server:
        window: list[Connection] = []
        for n in range(1000):
            window.append(server.client())
            window[-1].send(ask(n, *(["Connection: close"] if n % 3 == 0 else [])))
            expect_file(window[-1], n)
            if len(window) > 10:
                gone = window.pop(n % 7)
                gone.reset() if n % 2 else gone.close()
    return "1000 connections, 10 at a time, closed by either side"


def pipelining(start: Start) -> str:
    with start() as server:
        client = server.client()
        client.send(b"".join(ask(n) for n in range(PIPELINED)))
        for n in range(PIPELINED):
            expect_file(client, n)
    return f"{PIPELINED} requests in one piece, answered in order"


def dripping(start: Start) -> str:
    with start() as server:
        clients = [server.client() for _ in range(10)]
        asked = [ask(n) for n in range(len(clients))]
        for at in range(max(map(len, asked))):
            for client, data in zip(clients, asked, strict=True):
                client.send(data[at : at + 1])
            server.serves(at)
        for n, client in enumerate(clients):
            expect_file(client, n)
    return f"{len(clients)} requests byte by byte, others served between the bytes"


def half_close(start: Start) -> str:
    """Who says "that was all" is not gone."""
    with start() as server:
        for path, content in (("/5", FILES[5]), ("/big", BIG)):
            client = server.client()
            client.send(request(path))
            client.finish_sending()
            expect(client, content)
            client.expect_end()
    return "the whole reply, then the end"


def vanishing(start: Start) -> str:
    with start() as server:
        for n in range(50):
            for data in (b"", ask(n)[:20], ask(n), request("/big")):
                client = server.client()
                client.send(data)
                if data == request("/big"):
                    client.read_head()
                client.reset() if n % 2 else client.close()
        for n in range(len(FILES)):
            server.serves(n)
    return "200 clients leave before, within and after their requests, and within a reply"


def slow_reading(start: Start) -> str:
    with start() as server:
        clients = [server.client(SMALL_BUFFER) for _ in range(4)]
        for client in clients:
            client.send(request("/big"))
            check(int(client.read_head().need("Content-Length")) == len(BIG), "a wrong length")
        for n in range(64):
            piece = BIG[n * 16384 : (n + 1) * 16384]
            for client in clients:
                check(client.read_exactly(len(piece)) == piece, f"piece {n} is another")
            server.serves(n)
        for client in clients:
            rest = BIG[64 * 16384 :]
            check(client.read_exactly(len(rest)) == rest, "the rest is not that of the file")
    return f"{len(clients)} clients with {len(BIG) >> 20} MiB each, others served beside them"


def time_outs(start: Start) -> str:
    """Of those who say nothing, who do not say all, and who do not read; not of who goes on."""
    with start("-t", "1") as server:
        silent, half, active = server.client(), server.client(), server.client()
        stuck = server.client(SMALL_BUFFER)
        half.send(ask(0)[:20])
        stuck.send(request("/big"))
        ended = time.monotonic() + 3  # seconds: the server's time-out, and time to act on it
        while time.monotonic() < ended:
            active.send(ask(1))
            expect_file(active, 1)
            time.sleep(0.2)
        silent.expect_gone()
        half.expect_gone()
        check(len(stuck.read_all()) < len(BIG), "one who did not read was waited for")
        server.serves()
    return "the silent, the half and the stuck are ended, the active goes on"


def stop(start: Start) -> str:
    """The signal finds it busy: what had come by then is answered, all of it."""
    with start() as server:
        clients = [server.client() for _ in range(start.clients)]
        for n, client in enumerate(clients):
            client.send(ask(n))
            expect_file(client, n)
        server.process.send_signal(signal.SIGSTOP)
        os.waitpid(server.process.pid, os.WUNTRACED)
        for n, client in enumerate(clients):
            client.send(ask(n))
        time.sleep(0.5)  # for them to arrive
        server.process.send_signal(signal.SIGTERM)
        server.process.send_signal(signal.SIGCONT)
        answered = 0
        for n, client in enumerate(clients):
            with contextlib.suppress(ContractBroken):
                expect_file(client, n)
                answered += 1
        check(answered == len(clients), f"{answered} of {len(clients)} were answered")
        server.expect_exit()
    return f"{answered} requests that had come before SIGTERM are answered"


def stop_in_flight(start: Start) -> str:
    """A reply is finished, and meanwhile nobody can connect any more."""
    with start() as server:
        client = server.client(SMALL_BUFFER)
        client.send(request("/big"))
        client.read_head()
        server.process.terminate()
        deadline = time.monotonic() + GRACE / 2
        with contextlib.suppress(OSError):
            while True:
                Connection(server.address, limit).close()
                check(time.monotonic() < deadline, "connections are still completed")
        check(client.read_exactly(len(BIG)) == BIG, "the reply is not the file")
        client.expect_end()
        server.expect_exit()
    return "the reply is whole, new connections are refused"


def stop_at_any_time(start: Start) -> str:
    """The signal may come between the look at a flag and the sleep; then nothing would wake it."""
    for n in range(40):
        with start() as server:
            server.client().send(ask(n) if n % 2 else ask(0)[:20])
            time.sleep(n * 0.0001)
            server.process.send_signal(signal.SIGTERM if n % 4 < 2 else signal.SIGINT)
            server.expect_exit(GRACE / 2)
    return "40 servers end without waiting for their grace to be over"


ALL: list[Callable[[Start], str]] = [connections, descriptors, pipelining, dripping, half_close]
ALL += [vanishing, slow_reading, time_outs, stop, stop_in_flight, stop_at_any_time]
CASES = {case.__name__: case for case in ALL}


def run(case: Callable[[Start], str], start: Start) -> tuple[bool, str]:
    try:
        return True, case(start)
    except (ContractBroken, OSError, subprocess.TimeoutExpired) as error:
        return False, f"{type(error).__name__}: {str(error).splitlines()[0]}"


def room_for_clients() -> int:
    """As many as a process may have, once it may have what it is allowed to take."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = CLIENTS + SPARE if hard == resource.RLIM_INFINITY else min(hard, CLIENTS + SPARE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return most - SPARE


def main() -> int:
    global limit
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", type=Path, required=True, metavar="PROGRAM")
    parser.add_argument("--only", default=",".join(CASES), metavar="CASE,...", help="%(default)s")
    parser.add_argument("--seconds", type=float, default=limit, help="for what must happen")
    args = parser.parse_args()
    names = args.only.split(",")
    limit = args.seconds
    results = []
    print(f"# {args.server.name} on {os.uname().sysname} {os.uname().release}")
    with tempfile.TemporaryDirectory() as folder:
        for name, content in ("big", BIG), *((str(n), file) for n, file in enumerate(FILES)):
            Path(folder, name).write_bytes(content)
        start = Start(args.server.resolve(), Path(folder), room_for_clients())
        for number, name in enumerate(names, 1):
            passed, text = run(CASES[name], start)
            results.append(passed)
            print(f"{'ok' if passed else 'not ok'} {number} - {name}: {text}", flush=True)
    print(f"1..{len(names)}")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
