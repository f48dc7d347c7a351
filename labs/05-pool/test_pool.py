"""What the conformance tests leave open about 05-pool: its queue."""

import time

import pytest

from tests.conformance.matrix import contract
from tests.conformance.process import Server
from tests.conformance.programs import Start
from tests.conformance.site import HELLO
from tests.conformance.test_faults import busy_share
from tests.conformance.wire import ASK, LAST, ContractBroken

pytestmark = pytest.mark.servers("05-pool")


@contract("concurrency")
def test_clients_that_come_together(start: Start) -> None:
    """All are in the backlog before the first is accepted, and most have to wait for a thread."""
    server = start("-w", "2")
    for _ in range(3):
        with server.held():
            clients = [server.connect() for _ in range(20)]
            for client in clients:
                client.send(LAST)
        for client in clients:
            assert client.read_reply().body == HELLO
            client.expect_end()


@contract("concurrency")
def test_first_come_first_served(start: Start) -> None:
    """Silent clients hold both threads; who is served after them keeps the one that is free."""
    server = start("-w", "2")
    silent, other, first, second = (server.connect() for _ in range(4))
    time.sleep(server.patience.silence)
    silent.send(LAST)
    assert silent.read_reply().body == HELLO
    silent.expect_end()
    for client in (second, first):
        client.send(ASK)
    assert first.read_reply().body == HELLO
    if not second.hears_nothing(server.patience.silence):
        raise ContractBroken("who came later was served as well: two threads, and three are busy")
    other.close()
    assert second.read_reply().body == HELLO


@contract("mechanism")
def test_who_waits_costs_nothing(server: Server) -> None:
    server.connect()
    time.sleep(server.patience.silence)
    share = busy_share(server, 0.6)
    assert share < 0.3, f"takes {share:.0%} of a busy loop's time while nobody asks for anything"
