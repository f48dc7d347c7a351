"""What the conformance tests leave open about 04-threads, because only a broken one shows it."""

import pytest

from tests.conformance import proc
from tests.conformance.matrix import contract
from tests.conformance.process import Server
from tests.conformance.programs import Start, Traced
from tests.conformance.site import HELLO
from tests.conformance.wire import LAST

pytestmark = pytest.mark.servers("04-threads")
MIB = 1024  # KiB
STACKS = 40


def served(server: Server, clients: int) -> None:
    """One after the other; each reply is whole, and of this client."""
    for _ in range(clients):
        with server.connect() as c:
            c.send(LAST)
            assert c.read_reply().body == HELLO
            c.expect_end()


@contract("survives", "leaks")
def test_nobody_closes_what_is_not_his(traced: Traced) -> None:
    """Whoever closes a number for the second time is lucky if it is nobody's: then it is EBADF."""
    server, trace = traced("accept,accept4,close")
    served(server, 5)
    closed = [result for _, name, result in trace.calls() if name == "close"]
    assert "EBADF" not in closed, "\n".join(trace.completed())
    assert trace.has(lambda calls: sum(name == "close" for _, name, _ in calls) >= 5, 5.0)
    assert not trace.saw("EBADF", 0.3), "\n".join(trace.completed())


def address_space_kib(server: Server) -> int:
    return int(proc.text(server.pid, "status").partition("VmSize:")[2].split()[0])


@contract("leaks")
def test_ended_threads_leave_no_stack(server: Server) -> None:
    """A thread that somebody could still join keeps its stack, of 8 MiB as a rule."""
    served(server, 5)
    before = address_space_kib(server)
    served(server, STACKS)
    grown = address_space_kib(server) - before
    assert grown < STACKS * MIB, f"{grown // MIB} MiB more after {STACKS} connections"


@contract("concurrency", "survives")
def test_places_are_given_again(start: Start) -> None:
    served(start("-w", "3"), 7)
