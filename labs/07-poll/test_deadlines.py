"""What the conformance tests leave open about deadlines, because the real list has it right."""

import time

import pytest

from tests.conformance.matrix import contract
from tests.conformance.process import Server
from tests.conformance.programs import Start, Traced
from tests.conformance.site import HELLO
from tests.conformance.wire import ASK

pytestmark = pytest.mark.servers("07-poll")


@pytest.fixture
def impatient(start: Start) -> Server:
    return start("-t", "1")


@contract("idle-time-out", "concurrency")
def test_the_silent_one_behind_an_active_one(impatient: Server) -> None:
    """He came later, so he stands behind, for as long as nobody moves the active one."""
    with impatient.connect() as active, impatient.connect() as silent:
        assert active.ask(ASK).body == HELLO
        gone = False
        deadline = time.monotonic() + impatient.patience.limit
        while not gone and time.monotonic() < deadline:
            assert active.ask(ASK).body == HELLO
            gone = not silent.hears_nothing(0.1)
        assert gone, "the silent one is still there"
        silent.expect_gone()


@contract("mechanism")
def test_one_wait_until_the_first_deadline(traced: Traced) -> None:
    """Five silent clients, with time enough: nothing happens, so poll() has no reason to return."""
    server, trace = traced("poll,ppoll,pselect6", "-t", "30")
    silent = [server.connect() for _ in range(5)]
    for c in silent:
        assert c.ask(ASK).body == HELLO
    time.sleep(0.5)
    before = trace.count("poll", "ppoll")
    time.sleep(1.0)
    woken = trace.count("poll", "ppoll") - before
    assert woken <= 2, f"poll() returned {woken} times in a second in which nothing happened"
    assert all(c.hears_nothing(0.01) for c in silent)


@contract("idle-time-out", "concurrency")
def test_who_does_not_read_beside_who_does_not_ask(impatient: Server) -> None:
    """Each in the list of his state: both end, and the server has nothing of them left."""
    impatient.download()
    with impatient.connect() as silent:
        assert impatient.settles(), "their connections are still there"
        silent.expect_gone()
    assert impatient.serves()
