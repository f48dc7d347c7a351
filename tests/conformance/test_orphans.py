"""Processes whose parent is killed end too, even if it was gone before they could ask for that."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from conformance import proc, tracing
from conformance.contract import contract
from conformance.process import wait_until
from conformance.programs import Start



@pytest.mark.servers("03-prefork", "15-slashdot")
@contract("mechanism", "stop")
def test_a_worker_that_asks_too_late(start: Start, tmp_path: Path) -> None:
    """prctl() takes half a second here, in which the one who would have to stop it is killed."""
    inject = "prctl:delay_enter=500000"
    trace = tracing.Trace(tmp_path / "trace", "prctl", inject=inject)
    server = start("-w", "2", wrapper=trace.wrapper(), env=tracing.ENV)
    assert wait_until(lambda: len(server.children()) == 2, server.patience.limit)
    workers = server.children()
    server.ends_with = -signal.SIGKILL
    server.signal(signal.SIGKILL)
    server.wait()
    assert wait_until(lambda: not any(map(proc.alive, workers)), server.patience.limit)
