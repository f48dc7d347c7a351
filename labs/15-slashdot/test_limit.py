"""A limit of connections for each address (-n), which the real 15-slashdot does not have. All of
127.0.0.0/8 is this machine, so that one client can have many addresses.
"""

import contextlib
import http.client
import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.conformance import proc
from tests.conformance.matrix import contract
from tests.conformance.process import Server, Target, wait_until
from tests.conformance.programs import Run, Start, complaint
from tests.conformance.site import HELLO

pytestmark = pytest.mark.servers("15-slashdot")
ONE, OTHER = "127.0.0.1", "127.0.0.2"


class Guest(http.client.HTTPConnection):
    """A connection from this address, which has asked once."""

    def __init__(self, server: Server, address: str = ONE) -> None:
        host, port = server.address
        super().__init__(host, port, server.patience.limit, source_address=(address, 0))
        self.served = self.asks()

    def asks(self) -> bool:
        """True if the file comes; False if the server says that there is no room, and ends it."""
        self.request("GET", "/hello.txt")
        with contextlib.closing(self.getresponse()) as reply:
            body = reply.read()
            if reply.status == 503:
                assert reply.getheader("Retry-After") == "1"
                return False
            assert (reply.status, body) == (200, HELLO)
            return True


@contextlib.contextmanager
def guests(server: Server, *addresses: str) -> Iterator[list[Guest]]:
    here = [Guest(server, address) for address in addresses]
    try:
        yield here
    finally:
        for guest in here:
            guest.close()


def has(server: Server, clients: int) -> bool:
    """So many are left; one socket more is the one that listens."""
    (pid,) = server.serving()
    return wait_until(lambda: len(proc.sockets(pid)) == 1 + clients, server.patience.limit)


@contract("concurrency", "survives")
def test_one_address_and_another(start: Start) -> None:
    """Those who are here go on being served; whoever is refused once may come again."""
    server = start("-n", "3")
    with guests(server, ONE, ONE, ONE, ONE, ONE, OTHER) as here:
        assert [guest.served for guest in here] == [True, True, True, False, False, True]
        assert all(guest.asks() for guest in here if guest.served)


@contract("concurrency", "survives", "leaks")
def test_room_comes_back(start: Start) -> None:
    """After an end by the client, a reset, a last reply and a time-out; each more often than the
    limit.
    """
    server = start("-n", "2", "-t", "1")
    for _ in range(3):
        with guests(server, ONE, ONE) as here:
            assert all(guest.served for guest in here), "after an end by the client"
        assert has(server, 0)
    for _ in range(3):
        crowd = [server.connect() for _ in range(2)]
        for c in crowd:
            assert c.ask().status == 200, "after a reset"
            c.reset()
        assert has(server, 0)
    for _ in range(5):
        assert server.get("/hello.txt").status == 200, "after a last reply"
        assert has(server, 0)
    for _ in range(2):
        with guests(server, ONE, ONE) as here:
            assert all(guest.served for guest in here), "after a time-out"
            assert has(server, 0), "with -t 1 the silent ones are still there"


@contract("concurrency")
def test_many_addresses(start: Start) -> None:
    """One of each comes, another of each, and the third of each is too many; then all leave, and
    their places are free.
    """
    server = start("-n", "2")
    everybody = [f"127.0.{i % 5}.{1 + i % 50}" for i in range(50)]
    for _ in range(2):
        with guests(server, *everybody) as first, guests(server, *everybody) as second:
            assert all(guest.served for guest in first + second)
            with guests(server, *everybody) as third:
                assert not any(guest.served for guest in third)
            for guest in first[::2]:
                guest.close()
            assert has(server, len(first) // 2 + len(second))
            with guests(server, *everybody) as fourth:
                assert [guest.served for guest in fourth] == [True, False] * (len(first) // 2)
        assert has(server, 0)


@contract("concurrency", "bad-usage")
def test_without_the_option(start: Start, run: Run, target: Target) -> None:
    server = start()
    with guests(server, *[ONE] * 200) as here:
        assert all(guest.served for guest in here)
    done: subprocess.CompletedProcess[str] = run(target.binary, "-n", "0")
    assert "-n 0" in complaint(done, done.returncode, target.binary.name)
    assert done.returncode != 0


@contract("survives", "concurrency")
def test_when_the_house_is_full(start: Start) -> None:
    """Whoever finds no room in the house is not counted; whoever has to leave it is not either."""
    server = start("-n", "3", "-c", "2")
    busy = [server.download() for _ in range(2)]
    for c in busy:
        c.read_exactly(2 << 20)  # who has taken a megabyte does not leave for others
    for _ in range(5):
        with guests(server, ONE) as full:
            assert not full[0].served
    for c in busy:
        c.close()
    assert has(server, 0)
    with guests(server) as here:
        for address in [ONE] * 5 + [OTHER] * 5:
            here.append(Guest(server, address))
            assert here[-1].served, "somebody counts who was never let in, or has left"
            time.sleep(0.01)  # age is counted in milliseconds
    assert has(server, 0)
