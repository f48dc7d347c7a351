"""What the conformance tests leave open about 09-epoll: what only edges can lose, whose turn it is,
and the two programs beside the server.
"""

import re
import time
from pathlib import Path

import pytest

from tests.conformance import proc, tracing
from tests.conformance.matrix import contract
from tests.conformance.process import Server, Target, Unprivileged, limited, wait_until
from tests.conformance.programs import Run, Start
from tests.conformance.site import HELLO, Site
from tests.conformance.test_faults import busy_share
from tests.conformance.wire import ASK, LAST, ContractBroken, request

pytestmark = pytest.mark.servers("09-epoll")
MANY = 300  #: requests: more than a turn answers, and more bytes than one read takes
TRIGGERED = pytest.mark.parametrize("options", [(), ("-e",)], ids=["level", "edge"])


@contract("concurrency", "mechanism")
def test_clients_that_come_together(server: Server) -> None:
    """The kernel tells once of all of them, and nobody comes afterwards."""
    with server.held():
        clients = [server.connect() for _ in range(40)]
        for c in clients:
            c.send(LAST)
    for c in clients:
        assert c.read_reply().body == HELLO


@contract("emfile", "mechanism")
def test_a_client_for_whom_there_was_no_descriptor(
    start: Start, unprivileged: Unprivileged
) -> None:
    """Nobody comes after this one, so the kernel has nothing more to tell: the server itself has to
    remember, and to try again, but not all the time."""
    server = start(user=unprivileged)
    with limited(server, "nofile", max(proc.descriptors(server.pid)) + 1):
        client = server.connect()
        client.send(LAST)
        share = busy_share(server, 0.6)
        assert share < 0.3, f"takes {share:.0%} of a busy loop's time while it can do nothing"
    assert client.read_reply().body == HELLO


@contract("pipelining", "mechanism")
@TRIGGERED
def test_many_requests_in_one_write(start: Start, options: tuple[str, ...]) -> None:
    with start(*options).connect() as c:
        c.send(ASK * MANY)
        for _ in range(MANY):
            assert c.read_reply().body == HELLO


@contract("any-length", "mechanism")
@TRIGGERED
def test_a_file_longer_than_a_turn(start: Start, docroot: Site, options: tuple[str, ...]) -> None:
    """There is room for all of it, also if the client comes late to read: so nobody has to wait."""
    with start(*options).connect(receive_buffer=1 << 20) as c:
        reply = c.ask(request("/medium.bin", "Connection: close"))
    assert reply.body == (docroot.root / "medium.bin").read_bytes()


@contract("any-length", "mechanism")
@TRIGGERED
def test_a_reader_that_pauses(start: Start, docroot: Site, options: tuple[str, ...]) -> None:
    """Meanwhile the buffers fill, and send() gives EAGAIN."""
    server = start(*options)
    with server.connect(receive_buffer=65536) as c:
        c.send(request("/big.bin", "Connection: close"))
        c.read_head()
        time.sleep(server.patience.silence)
        assert c.read_all() == (docroot.root / "big.bin").read_bytes()


@contract("mechanism")
@TRIGGERED
def test_who_waits_costs_nothing(start: Start, options: tuple[str, ...]) -> None:
    """Nearly every socket can be written to, nearly always: who asks to be told never sleeps."""
    server = start(*options)
    idle = server.connect()
    idle.ask(ASK)
    server.download()
    time.sleep(server.patience.silence)
    share = busy_share(server, 0.6)
    assert share < 0.3, f"takes {share:.0%} of a busy loop's time while all its clients are silent"


CALLS = "fork,vfork,clone,clone3,socketpair,epoll_ctl,epoll_wait,close,sendto,exit_group"
ADD = re.compile(r"epoll_ctl\(\d+, EPOLL_CTL_ADD, (\d+),")


class Ran:
    """A program beside the server, which says what it has seen; its calls are believed."""

    def __init__(self, target: Target, run: Run, folder: Path, name: str) -> None:
        self.name = name
        trace = tracing.Trace(folder / "trace", CALLS)
        self.done = run(*trace.wrapper(), target.binary.with_name(name))
        if self.done.returncode != 0:
            text = (self.done.stdout + self.done.stderr).strip().replace("\n", "; ")
            raise ContractBroken(f"{name}: {text}")
        ends = 2 if target.in_cell else 1  # nsenter ends as its program does
        assert wait_until(lambda: "\n".join(trace.lines()).count("exit_group(0)") >= ends, 5.0)
        self.calls = []  #: (pid, call with its arguments, result)
        for line in trace.completed():
            if found := re.match(r"(\d+) +(\w+\(.*\)) += (-?\d+)", line):
                self.calls.append((int(found[1]), found[2], int(found[3])))

    def demand(self, true: bool, what: str) -> None:
        if not true:
            raise ContractBroken(f"{self.name} says so, but its system calls do not: {what}")

    def added(self) -> list[tuple[int, int, int]]:
        """(place among the calls, pid, descriptor) of what was put into a set."""
        found = ((place, pid, ADD.match(call)) for place, (pid, call, _) in enumerate(self.calls))
        return [(place, pid, int(match[1])) for place, pid, match in found if match]

    def told(self, pid: int, since: int = 0) -> list[int]:
        """How many events each wait of a process brought."""
        return [
            r for p, call, r in self.calls[since:] if p == pid and call.startswith("epoll_wait")
        ]


@contract("mechanism")
def test_closed(target: Target, run: Run, tmp_path: Path) -> None:
    ran = Ran(target, run, tmp_path, "closed")
    ran.demand(len(ran.added()) == 1, "one client is put into the set")
    ((begun, loop, fd),) = ran.added()
    later = ran.calls[begun:]
    helpers = [r for pid, call, r in later if pid == loop and re.match("v?fork|clone", call)]
    ran.demand(len(helpers) == 1, "after that a helper is started")
    kept = not any(pid in helpers and call == f"close({fd})" for pid, call, _ in later)
    ran.demand(kept, "the helper keeps the connection")
    spoke = [at for at, (_, call, r) in enumerate(ran.calls) if "sendto" in call and r == 5]
    ran.demand(len(spoke) == 1, "then the client speaks")
    waits = ran.told(loop, spoke[0])
    ran.demand(len(waits) >= 1000 and not any(waits), "and a thousand looks find nothing")


@contract("mechanism")
def test_shared(target: Target, run: Run, tmp_path: Path) -> None:
    ran = Ran(target, run, tmp_path, "shared")
    workers = [pid for _, pid, _ in ran.added()]
    ran.demand(len(set(workers)) == 2 == len(workers), "two processes have a client each in a set")
    told = sorted(sum(ran.told(pid)) for pid in workers)
    ran.demand(told == [0, 1], "one of them is told of its client")
