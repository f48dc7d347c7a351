"""What the conformance tests leave open about jobs, because only a broken queue shows it."""

import time

import pytest

from tests.conformance.matrix import contract
from tests.conformance.programs import Traced
from tests.conformance.site import HELLO, noise
from tests.conformance.test_faults import busy_share
from tests.conformance.wire import ASK, request

pytestmark = pytest.mark.servers("12-aio")


@contract("concurrency", "mechanism")
def test_nobody_waits_for_the_disk_of_another(traced: Traced) -> None:
    """Nothing is in memory, and every read takes a while. Five clients want to read: so five
    threads do, and not the loop.
    """
    calls = "pread64"
    slow = ["preadv2:error=EAGAIN", f"{calls}:delay_enter=300000"]
    server, trace = traced("pread64,preadv2", "-d", "threads", inject=slow)
    at_start = len(trace.calls())  # the dynamic linker reads, too
    clients = [server.connect() for _ in range(5)]
    for c in clients:
        c.send(ASK)
    for c in clients:
        assert c.read_reply().body == HELLO
    readers = {pid for pid, name, _ in trace.calls()[at_start:] if name == calls}
    assert server.pid not in readers, "the loop itself has read"
    assert len(readers) >= 3, f"{len(readers)} read for five clients at once"


@contract("concurrency", "any-length")
def test_more_jobs_than_threads(traced: Traced) -> None:
    """Two threads, thirty clients, files of several pieces: each job is done, once."""
    slow = ["preadv2:error=EAGAIN", "pread64:delay_enter=20000"]
    server, _ = traced("preadv2,pread64", "-d", "threads", "-r", "2", inject=slow)
    clients = [server.connect() for _ in range(30)]
    for c in clients:
        c.send(request("/medium.bin"))
    for c in clients:
        assert c.read_reply().body == noise(300_007)


@contract("mechanism")
def test_when_all_is_over_it_sleeps(traced: Traced) -> None:
    server, _ = traced("preadv2", inject="preadv2:error=EAGAIN")
    with server.connect() as c:
        assert c.ask(ASK).body == HELLO
        assert c.ask(request("/medium.bin")).body == noise(300_007)
        time.sleep(server.patience.silence)
        share = busy_share(server, 0.6)
    assert share < 0.3, f"takes {share:.0%} of a busy loop's time while nothing is to be done"
