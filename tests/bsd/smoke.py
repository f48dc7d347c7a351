"""What a server must survive, in a minute, on any system that has a Python: for systems where the
conformance tests cannot run, as they look into Linux's /proc.

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
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import AnyStr

CLIENTS = 300
SPARE = 64  #: descriptors, of the server's and of ours, that are no clients
PIPELINED = 500
FILES = 16
BIG = 4 << 20  #: bytes: more than the socket buffers of a connection hold
GRACE = 5.0  #: seconds that the server gives to replies in flight
SMALL_BUFFER = 4096
AT_ONCE = struct.pack("ii", 1, 0)  #: struct linger: close() resets

limit = 30.0  #: seconds for what must happen: reached only by a case that fails


class Broken(Exception):
    """What a case has found."""


def check(true: bool, text: str) -> None:
    if not true:
        raise Broken(text)


def found(pattern: AnyStr, text: AnyStr) -> AnyStr:
    match = re.search(pattern, text)
    if match is None:
        raise Broken(f"{text[:80]!r} has no {pattern!r}")
    return match[1]


class Site:
    """Files that differ in length and all over."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = [(f"{n} " * (40 + 97 * n)).encode() for n in range(FILES)]
        self.big = b"".join(hashlib.sha512(b"%d" % n).digest() for n in range(BIG // 64))
        for n, content in enumerate(self.files):
            (root / str(n)).write_bytes(content)
        (root / "big").write_bytes(self.big)


# ---- a client


def request(path: object, *fields: str) -> bytes:
    return "\r\n".join([f"GET /{path} HTTP/1.1", "Host: smoke", *fields, "", ""]).encode()


class Client:
    def __init__(self, port: int, receive_buffer: int = 0) -> None:
        self.bytes = bytearray()
        self.socket = socket.socket()
        self.socket.settimeout(limit)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def more(self, most: int = 65536) -> bool:
        """False at the end of the connection."""
        data = self.socket.recv(most)
        self.bytes += data
        return bool(data)

    def head(self) -> int:
        """Takes the head of a reply; the length of its body."""
        while b"\r\n\r\n" not in self.bytes:
            check(self.more(), f"the connection ends within a head: {bytes(self.bytes[:60])!r}")
        head, _, rest = self.bytes.partition(b"\r\n\r\n")
        check(head.startswith(b"HTTP/1.1 200 "), f"not a 200: {bytes(head[:60])!r}")
        self.bytes = rest
        return int(found(rb"\r\nContent-Length: (\d+)", bytes(head)))

    def expect_body(self, length: int, content: bytes) -> None:
        while len(self.bytes) < length:
            check(self.more(), f"{len(self.bytes)} of {length} bytes, then the end")
        check(self.bytes[:length] == content, "the reply is not the file that was asked for")
        del self.bytes[:length]

    def expect(self, content: bytes) -> None:
        self.expect_body(self.head(), content)

    def expect_end(self) -> None:
        check(not self.bytes and not self.more(), "bytes that nobody asked for")

    def reset(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
        self.socket.close()


# ---- a server


class Server:
    def __init__(self, program: Path, site: Site, *options: str) -> None:
        self.site = site
        self.clients: list[Client] = []
        command = [str(program), "-a", "127.0.0.1", "-p", "0", *options, str(site.root)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        try:
            self.port = int(found(r"http://127\.0\.0\.1:(\d+)/$", line))
        except Broken:
            self.process.kill()
            raise

    def client(self, receive_buffer: int = 0) -> Client:
        self.clients.append(Client(self.port, receive_buffer))
        return self.clients[-1]

    def serves(self, n: int = 0) -> None:
        """One who comes now is served."""
        client = Client(self.port)
        with client.socket:
            client.send(request(n % FILES, "Connection: close"))
            client.expect(self.site.files[n % FILES])
            client.expect_end()

    def signal(self, signum: int) -> None:
        os.kill(self.process.pid, signum)

    def expect_exit(self, seconds: float | None = None) -> None:
        status = self.process.wait(GRACE + limit if seconds is None else seconds)
        check(status == 0, f"it ended with status {status}")

    def hang_up(self) -> None:
        for client in self.clients:
            client.socket.close()


@dataclass(frozen=True)
class Start:
    """start(*options): a server for one case, that is there afterwards, serves, and ends well."""

    program: Path
    site: Site
    clients: int

    @contextlib.contextmanager
    def __call__(self, *options: str) -> Iterator[Server]:
        server = Server(self.program, self.site, *options)
        try:
            yield server
            if server.process.returncode is None:
                server.serves()
                server.signal(signal.SIGTERM)
                server.expect_exit()
        finally:
            server.hang_up()
            server.process.kill()
            server.process.communicate()


# ---- the cases: each returns what it did


def connections(start: Start) -> str:
    """All are there before the first one is answered, and each gets what it has asked for."""
    with start() as server:
        clients = [server.client() for _ in range(start.clients)]
        for again in range(2):
            for n, client in enumerate(clients):
                client.send(request((n + again) % FILES))
            for n, client in reversed(list(enumerate(clients))):
                client.expect(server.site.files[(n + again) % FILES])
        server.serves()
    return f"{start.clients} at once, each with two requests"


def descriptors(start: Start) -> str:
    """Numbers are given out again, in another order, and nothing of their former owner is left."""
    with start() as server:
        window: list[Client] = []
        for n in range(1000):
            window.append(server.client())
            window[-1].send(request(n % FILES, *(["Connection: close"] if n % 3 == 0 else [])))
            window[-1].expect(server.site.files[n % FILES])
            if len(window) > 10:
                gone = window.pop(n % 7)
                gone.reset() if n % 2 else gone.socket.close()
    return "1000 connections, 10 at a time, closed by either side"


def pipelining(start: Start) -> str:
    with start() as server:
        client = server.client()
        client.send(b"".join(request(n % FILES) for n in range(PIPELINED)))
        for n in range(PIPELINED):
            client.expect(server.site.files[n % FILES])
    return f"{PIPELINED} requests in one piece, answered in order"


def dripping(start: Start) -> str:
    with start() as server:
        clients = [server.client() for _ in range(10)]
        asked = [request(n) for n in range(len(clients))]
        for at in range(max(map(len, asked))):
            for client, data in zip(clients, asked, strict=True):
                client.send(data[at : at + 1])
            server.serves(at)
        for n, client in enumerate(clients):
            client.expect(server.site.files[n])
    return f"{len(clients)} requests byte by byte, others served between the bytes"


def half_close(start: Start) -> str:
    """Who says "that was all" is not gone."""
    with start() as server:
        for path, content in (("5", server.site.files[5]), ("big", server.site.big)):
            client = server.client()
            client.send(request(path))
            client.socket.shutdown(socket.SHUT_WR)
            client.expect(content)
            client.expect_end()
    return "the whole reply, then the end"


def vanishing(start: Start) -> str:
    with start() as server:
        for n in range(50):
            for data in (b"", request(n % FILES)[:20], request(n % FILES), request("big")):
                client = Client(server.port)
                client.send(data)
                if data == request("big"):
                    client.head()
                client.reset() if n % 2 else client.socket.close()
        for n in range(FILES):
            server.serves(n)
    return "200 clients leave before, within and after their requests, and within a reply"


def slow_reading(start: Start) -> str:
    with start() as server:
        clients = [server.client(SMALL_BUFFER) for _ in range(4)]
        for client in clients:
            client.send(request("big"))
        lengths = [client.head() for client in clients]
        for n in range(BIG // 65536):
            for client in clients:
                client.more(16384)
            server.serves(n)
        for client, length in zip(clients, lengths, strict=True):
            client.expect_body(length, server.site.big)
    return f"{len(clients)} clients with {BIG >> 20} MiB each, others served beside them"


def time_outs(start: Start) -> str:
    """Of those who say nothing, who do not say all, and who do not read; not of who goes on."""
    with start("-t", "1") as server:
        silent, half, active = server.client(), server.client(), server.client()
        stuck = server.client(SMALL_BUFFER)
        half.send(request(0)[:20])
        stuck.send(request("big"))
        ended = time.monotonic() + 3  # seconds: the server's time-out, and time to act on it
        while time.monotonic() < ended:
            active.send(request(1))
            active.expect(server.site.files[1])
            time.sleep(0.2)
        for client in (silent, half, stuck):
            with contextlib.suppress(ConnectionError):  # a reset, if something was unread
                while client.more():
                    continue
        check(len(stuck.bytes) < BIG, "one who did not read was waited for")
        server.serves()
    return "the silent, the half and the stuck are ended, the active goes on"


def stop(start: Start) -> str:
    """The signal finds it busy: what had come by then is answered, all of it."""
    with start() as server:
        clients = [server.client() for _ in range(start.clients)]
        for n, client in enumerate(clients):
            client.send(request(n % FILES))
            client.expect(server.site.files[n % FILES])
        server.signal(signal.SIGSTOP)
        os.waitpid(server.process.pid, os.WUNTRACED)
        for n, client in enumerate(clients):
            client.send(request(n % FILES))
        time.sleep(0.5)  # for them to arrive
        server.signal(signal.SIGTERM)
        server.signal(signal.SIGCONT)
        answered = 0
        for n, client in enumerate(clients):
            with contextlib.suppress(Broken, ConnectionError):
                client.expect(server.site.files[n % FILES])
                answered += 1
        check(answered == len(clients), f"{answered} of {len(clients)} were answered")
        server.expect_exit()
    return f"{answered} requests that had come before SIGTERM are answered"


def stop_in_flight(start: Start) -> str:
    """A reply is finished, and meanwhile nobody can connect any more."""
    with start() as server:
        client = server.client(SMALL_BUFFER)
        client.send(request("big"))
        length = client.head()
        server.signal(signal.SIGTERM)

        deadline = time.monotonic() + GRACE / 2
        with contextlib.suppress(OSError):
            while True:
                Client(server.port).socket.close()
                check(time.monotonic() < deadline, "connections are still completed")
        client.expect_body(length, server.site.big)
        client.expect_end()
        server.expect_exit()
    return "the reply is whole, new connections are refused"


def stop_at_any_time(start: Start) -> str:
    """The signal may come between the look at a flag and the sleep; then nothing would wake it."""
    for n in range(40):
        with start() as server:
            client = server.client()
            client.send(request(n % FILES) if n % 2 else request(0)[:20])
            time.sleep(n * 0.0001)
            server.signal(signal.SIGTERM if n % 4 < 2 else signal.SIGINT)
            server.expect_exit(GRACE / 2)
    return "40 servers end without waiting for their grace to be over"


ALL: list[Callable[[Start], str]] = [connections, descriptors, pipelining, dripping, half_close]
ALL += [vanishing, slow_reading, time_outs, stop, stop_in_flight, stop_at_any_time]
CASES = {case.__name__: case for case in ALL}


def run(case: Callable[[Start], str], start: Start) -> tuple[bool, str]:
    try:
        return True, case(start)
    except (Broken, OSError, subprocess.TimeoutExpired) as error:
        return False, f"{type(error).__name__}: {error}"


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
        start = Start(args.server.resolve(), Site(Path(folder)), room_for_clients())
        for number, name in enumerate(names, 1):
            passed, text = run(CASES[name], start)
            results.append(passed)
            print(f"{'ok' if passed else 'not ok'} {number} - {name}: {text}", flush=True)
    print(f"1..{len(names)}")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
