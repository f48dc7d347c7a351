"""What a server must survive, in a minute, on any system that has a Python: for systems where the
conformance tests cannot run, as they look into Linux's /proc. The client is theirs.

    python3 -m tests.bsd.test_smoke -v [-k stop]

The standard library is enough; pytest runs it too. BIN=folder and SERVER=name choose the program.
Loopback only; nothing is left running. No case asserts a time, but that a server that has nothing
to wait for takes less than half of its grace.
"""

import contextlib
import hashlib
import os
import re
import resource
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from tests.conformance.wire import Connection, request

TREE = Path(__file__).resolve().parents[2]
SERVER = TREE / os.environ.get("BIN", "build/bin") / os.environ.get("SERVER", "10-kqueue")
CLIENTS = 300
SPARE = 64  #: descriptors, of the server's and of ours, that are no clients
PIPELINED = 500
FILES = [(f"{n} " * (40 + 97 * n)).encode() for n in range(16)]  #: they differ all over
BIG = b"".join(hashlib.sha512(b"%d" % n).digest() for n in range(65536))  #: no socket holds it
GRACE = 5.0  #: seconds that the server gives to replies in flight
LIMIT = float(os.environ.get("SECONDS", "30"))  #: only a case that fails waits so long
SMALL_BUFFER = 4096


def ask(n: int, *fields: str) -> bytes:
    return request(f"/{n % len(FILES)}", *fields)


class Smoke(unittest.TestCase):
    """Each case has a server of its own, that is there afterwards, serves, and ends well."""

    root: str
    most: int  #: clients at once

    @classmethod
    def setUpClass(cls) -> None:
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted, hard = CLIENTS + SPARE, before[1]
        allowed = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        cls.addClassCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, before)
        cls.most = allowed - SPARE
        cls.root = cls.enterClassContext(tempfile.TemporaryDirectory())
        for name, content in ("big", BIG), *((str(n), file) for n, file in enumerate(FILES)):
            Path(cls.root, name).write_bytes(content)

    def setUp(self) -> None:
        self.start()

    def start(self, *options: str) -> None:
        self.process = self.enterContext(
            subprocess.Popen(
                [SERVER, "-a", "127.0.0.1", "-p", "0", *options, self.root],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
            )
        )  # fmt: skip
        self.addCleanup(self.process.kill)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/$", line)
        assert found, f"it said {line!r}, not where it listens"
        self.address = "127.0.0.1", int(found[1])

    def tearDown(self) -> None:
        if self.process.poll() is None:
            self.serves()
            self.stop()
        self.assertEqual(self.process.returncode, 0, "its status")

    def stop(self, seconds: float = GRACE + LIMIT) -> None:
        self.process.terminate()
        self.process.wait(seconds)

    def client(self, receive_buffer: int | None = None) -> Connection:
        client = Connection(self.address, LIMIT, receive_buffer=receive_buffer)
        self.addCleanup(client.close)
        return client

    def gets(self, client: Connection, content: bytes) -> None:
        reply = client.read_reply()
        self.assertEqual(reply.status, 200)
        self.assertTrue(reply.body == content, "the reply is not the file that was asked for")

    def gets_file(self, client: Connection, n: int) -> None:
        self.gets(client, FILES[n % len(FILES)])

    def serves(self, n: int = 0) -> None:
        """One who comes now is served."""
        with Connection(self.address, LIMIT) as client:
            client.send(ask(n, "Connection: close"))
            self.gets_file(client, n)
            client.expect_end()

    def test_connections(self) -> None:
        """All are there before the first one is answered, and each gets what it has asked for."""
        clients = [self.client() for _ in range(self.most)]
        for again in range(2):
            for n, client in enumerate(clients):
                client.send(ask(n + again))
            for n, client in reversed(list(enumerate(clients))):
                self.gets_file(client, n + again)
        self.serves()

    def test_descriptors(self) -> None:
        """Numbers are given out again, in another order: nothing of their former owner is left."""
        window: list[Connection] = []
        for n in range(1000):
            window.append(self.client())
            window[-1].send(ask(n, *(["Connection: close"] if n % 3 == 0 else [])))
            self.gets_file(window[-1], n)
            if len(window) > 10:
                gone = window.pop(n % 7)
                gone.reset() if n % 2 else gone.close()

    def test_pipelining(self) -> None:
        client = self.client()
        client.send(b"".join(ask(n) for n in range(PIPELINED)))
        for n in range(PIPELINED):
            self.gets_file(client, n)

    def test_dripping(self) -> None:
        """Requests that come byte by byte; others are served between the bytes."""
        clients = [self.client() for _ in range(10)]
        asked = [ask(n) for n in range(len(clients))]
        for at in range(max(map(len, asked))):
            for client, data in zip(clients, asked, strict=True):
                client.send(data[at : at + 1])
            self.serves(at)
        for n, client in enumerate(clients):
            self.gets_file(client, n)

    def test_half_close(self) -> None:
        """Who says "that was all" is not gone."""
        for path, content in (("/5", FILES[5]), ("/big", BIG)):
            client = self.client()
            client.send(request(path))
            client.finish_sending()
            self.gets(client, content)
            client.expect_end()

    def test_vanishing(self) -> None:
        """Clients leave before, within and after their requests, and within a reply."""
        for n in range(50):
            for data in (b"", ask(n)[:20], ask(n), request("/big")):
                client = self.client()
                client.send(data)
                if data == request("/big"):
                    client.read_head()
                client.reset() if n % 2 else client.close()
        for n in range(len(FILES)):
            self.serves(n)

    def test_slow_reading(self) -> None:
        """Some take a large file piece by piece; others are served beside them."""
        clients = [self.client(SMALL_BUFFER) for _ in range(4)]
        for client in clients:
            client.send(request("/big"))
            self.assertEqual(client.read_head().need("Content-Length"), str(len(BIG)))
        for at in range(0, 1 << 20, 16384):
            for client in clients:
                self.assertTrue(client.read_exactly(16384) == BIG[at : at + 16384], at)
            self.serves(at // 16384)
        for client in clients:
            rest = BIG[1 << 20 :]
            self.assertTrue(client.read_exactly(len(rest)) == rest, "the rest")

    def test_time_outs(self) -> None:
        """Of those who say nothing, not all, or do not read; not of who goes on."""
        self.stop()
        self.start("-t", "1")
        silent, half, active = self.client(), self.client(), self.client()
        stuck = self.client(SMALL_BUFFER)
        half.send(ask(0)[:20])
        stuck.send(request("/big"))
        ended = time.monotonic() + 3  # seconds: the server's time-out, and time to act on it
        while time.monotonic() < ended:
            active.send(ask(1))
            self.gets_file(active, 1)
            time.sleep(0.2)
        silent.expect_gone()
        half.expect_gone()
        self.assertLess(len(stuck.read_all()), len(BIG), "one who did not read was waited for")

    def test_stop(self) -> None:
        """The signal finds it busy: what had come by then is answered, all of it."""
        clients = [self.client() for _ in range(self.most)]
        for n, client in enumerate(clients):
            client.send(ask(n))
            self.gets_file(client, n)
        self.process.send_signal(signal.SIGSTOP)
        os.waitpid(self.process.pid, os.WUNTRACED)
        for n, client in enumerate(clients):
            client.send(ask(n))
        time.sleep(0.5)  # for them to arrive
        self.process.terminate()
        self.process.send_signal(signal.SIGCONT)
        for n, client in enumerate(clients):
            self.gets_file(client, n)
        self.process.wait(GRACE + LIMIT)

    def test_stop_in_flight(self) -> None:
        """A reply is finished, and meanwhile nobody can connect any more."""
        client = self.client(SMALL_BUFFER)
        client.send(request("/big"))
        client.read_head()
        self.process.terminate()
        deadline = time.monotonic() + GRACE / 2
        with contextlib.suppress(OSError):
            while True:
                Connection(self.address, LIMIT).close()
                self.assertLess(time.monotonic(), deadline, "connections are still completed")
        self.assertTrue(client.read_exactly(len(BIG)) == BIG, "the reply is not the file")
        client.expect_end()
        self.process.wait(GRACE + LIMIT)

    def test_stop_at_any_time(self) -> None:
        """The signal may come between the look at a flag and the sleep; then nothing would wake it:
        it must not wait for its grace to be over.
        """
        for n in range(40):
            self.client().send(ask(n) if n % 2 else ask(0)[:20])
            time.sleep(n * 0.0001)
            self.process.send_signal(signal.SIGTERM if n % 4 < 2 else signal.SIGINT)
            self.assertEqual(self.process.wait(GRACE / 2), 0, f"status, server {n}")
            self.start()


if __name__ == "__main__":
    unittest.main()
