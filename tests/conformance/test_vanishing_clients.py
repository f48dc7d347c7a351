"""Clients that go away at every point of the exchange, politely or not, cost the server nothing."""

from __future__ import annotations

import time

import pytest

from conformance.contract import contract
from conformance.process import Server
from conformance.wire import Connection, request

ASK = request("/hello.txt")
BIG = request("/big.bin")
#: after so many bytes of the request
POINTS = [0, 1, 3, 5, 14, 22, 24, 30, len(ASK) - 3, len(ASK) - 2, len(ASK) - 1]


def leave(c: Connection, how: str) -> None:
    if how == "reset":
        c.reset()
    elif how == "half-closed, then reset":
        c.finish_sending()
        time.sleep(0.002)
        c.reset()
    else:
        c.close()


HOW = pytest.mark.parametrize("how", ["closed", "reset", "half-closed, then reset"])


@contract("survives", "leaks")
@HOW
def test_before_the_request_is_complete(server: Server, how: str) -> None:
    for point in POINTS:
        for pause in (0.0, 0.003):
            c = server.connect()
            c.send(ASK[:point])
            time.sleep(pause)
            leave(c, how)
    assert server.serves()
    assert server.settles()


@contract("survives", "sigpipe", "leaks")
@HOW
@pytest.mark.parametrize("data", [ASK, BIG, ASK * 20, ASK + BIG + ASK], ids=["1", "big", "20", "3"])
def test_without_reading_the_reply(server: Server, how: str, data: bytes) -> None:
    for pause in (0.0, 0.001, 0.003, 0.01):
        c = server.connect(receive_buffer=4096)
        c.send(data)
        time.sleep(pause)
        leave(c, how)
    assert server.serves()
    assert server.settles()


@contract("survives", "sigpipe", "leaks")
@HOW
@pytest.mark.parametrize("taken", [1, 10, 1000, 100_000, 5_000_000])
def test_in_the_middle_of_the_reply(server: Server, how: str, taken: int) -> None:
    c = server.connect(receive_buffer=65536)
    c.send(BIG)
    c.read_exactly(taken)
    leave(c, how)
    assert server.serves()
    assert server.settles()


@contract("survives", "leaks", "drain")
@HOW
def test_in_the_middle_of_a_body_that_is_refused(server: Server, how: str) -> None:
    for size in (0, 1, 10_000):
        c = server.connect()
        c.send(request("/", "Content-Length: 100000", method="POST") + b"b" * size)
        c.read_reply()
        leave(c, how)
    assert server.serves()
    assert server.settles()


@contract("survives", "keep-alive")
@HOW
def test_between_two_requests(server: Server, how: str) -> None:
    c = server.connect()
    for _ in range(2):
        c.send(ASK)
        c.read_reply()
    leave(c, how)
    assert server.serves()
    assert server.settles()


@contract("survives", "accept-errors")
def test_before_they_are_accepted(server: Server) -> None:
    """Gone while still in the backlog: accept() may fail with ECONNABORTED, or give a socket that
    is dead.
    """
    for _ in range(100):
        server.connect().reset()
    assert server.serves()
    assert server.settles()
