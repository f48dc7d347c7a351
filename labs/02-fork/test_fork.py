"""What the conformance tests leave open about 02-fork, because it shows only in the parts that the
lab asks for.
"""

import os
import signal

import pytest

from tests.conformance import tracing
from tests.conformance.matrix import contract
from tests.conformance.process import Server, Unprivileged, calibrate, limited, wait_until
from tests.conformance.programs import Start, Traced
from tests.conformance.site import HELLO
from tests.conformance.wire import LAST

pytestmark = pytest.mark.servers("02-fork")


@contract("mechanism", "leaks")
def test_children_that_end_before_they_are_noted(traced: Traced) -> None:
    """strace holds the parent for 0.2 s when it returns from fork(); its child is done long before.
    A third place is taken throughout: when no child at all is left, the list is empty whatever it
    says (children.c). Of the other two a server with the mistake must lose both to be found. On a
    busy machine a child may need longer than that, and then nothing is lost: so the parent is held
    for longer there, and there are twelve clients, of which two quick children are enough."""
    inject = f"{tracing.FORKS}:delay_exit={int(200_000 * min(5.0, calibrate().factor))}"
    server, _ = traced(tracing.FORKS, "-w", "3", inject=inject)
    with server.connect() as silent:
        silent.send(LAST[:10])
        assert wait_until(lambda: bool(server.children()), server.patience.limit)
        for _ in range(12):
            assert server.serves()


@contract("no-process")
def test_who_cannot_be_served_is_told(start: Start, unprivileged: Unprivileged) -> None:
    """The contract lets a server drop the client; here it is asked for better manners."""
    server = start(user=unprivileged)
    with limited(server, "nproc", 1), server.connect() as c:
        c.send(LAST)
        assert c.read_reply().status == 503


@contract("survives", "stop")
def test_a_child_that_is_ended_takes_nobody_along(server: Server) -> None:
    """The parent and its child have one listening socket: shutdown(2) in the child is shutdown for
    both."""
    with server.connect() as silent:
        assert wait_until(lambda: len(server.children()) == 1, server.patience.limit)
        (child,) = server.children()
        os.kill(child, signal.SIGTERM)
        silent.expect_gone()
    assert wait_until(lambda: not server.children(), server.patience.limit)
    assert server.serves()


@contract("leaks", "survives")
def test_a_hundred_connections(server: Server) -> None:
    """One after the other; what is left of them is looked at when the server is ended."""
    for _ in range(100):
        with server.connect() as c:
            c.send(LAST)
            assert c.read_reply().body == HELLO
            c.expect_end()
    assert server.settles(), f"at the start {server.base}, now {server.holdings()}"
