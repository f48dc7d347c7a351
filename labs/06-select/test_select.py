"""What the conformance tests leave open about 06-select: that it sleeps."""

import time

import pytest

from tests.conformance.matrix import contract
from tests.conformance.process import Server
from tests.conformance.test_faults import busy_share
from tests.conformance.wire import ASK

pytestmark = pytest.mark.servers("06-select")


@contract("mechanism")
def test_who_waits_costs_nothing(server: Server) -> None:
    """Nearly every socket can be written to, nearly always: who asks to be told never sleeps."""
    idle = server.connect()
    idle.ask(ASK)
    server.download()
    time.sleep(server.patience.silence)
    share = busy_share(server, 0.6)
    assert share < 0.3, f"takes {share:.0%} of a busy loop's time while all its clients are silent"
