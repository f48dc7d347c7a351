"""Started by anybody: with signals blocked or ignored, descriptors closed, limits, an odd
environment. Each server serves all the same, or ends with one line and status 1; none listens and
is deaf. The states are a table: inherited.py.
"""

import dataclasses
import socket
import subprocess
import time

import pytest

from tests.conformance.inherited import QUICK, is_right, verdicts
from tests.conformance.matrix import SANITIZED, contract, kind
from tests.conformance.process import DIE_WITH_PARENT, Patience, Target, Unprivileged, environment
from tests.conformance.site import Site
from tests.conformance.wire import request

pytestmark = kind("serving")


@contract("inherited", "listening-line", "setup-failure", "stop")
def test_whatever_it_inherits(target: Target, docroot: Site, patience: Patience, unprivileged: Unprivileged) -> None:
    """Those that are harmless in one start, the others one by one. `make server-tables`: all."""
    if target.variant in SANITIZED:
        pytest.skip("a sanitizer needs memory, threads and a stderr of its own")
    if target.variant == "diet" and target.model.threaded:
        pytest.skip("its threads are processes that tell each other all by queued signals")
    reachable = dataclasses.replace(target, binary=unprivileged.reachable(target.binary))
    found = verdicts(reachable, docroot.root, patience.limit, QUICK)
    wrong = [
        f"{state.name}: {verdict}" for state, verdict in found.items() if not is_right(target.model, state, verdict)
    ]
    assert not wrong, "\n".join(wrong)


@contract("inherited", servers=("02-inetd",))
def test_a_connection_that_does_not_block(target: Target, docroot: Site, patience: Patience) -> None:
    """On a BSD it has that from a listening socket that does not. Request and reply are waited for."""
    content = (docroot.root / "big.bin").read_bytes()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname(), patience.limit)
        connection, _ = listener.accept()
    connection.setblocking(False)
    command = [*DIE_WITH_PARENT, str(target.binary), str(docroot.root)]
    with client:
        with connection:
            fd = connection.fileno()
            process = subprocess.Popen(command, stdin=fd, stdout=fd, env=environment())
        try:
            time.sleep(patience.silence)
            client.sendall(request("/big.bin", "Connection: close"))
            time.sleep(patience.silence)
            reply = b"".join(iter(lambda: client.recv(1 << 17), b""))
            assert reply.partition(b"\r\n\r\n")[2] == content
            assert process.wait(patience.limit) == 0
        finally:
            process.kill()
            process.wait()
