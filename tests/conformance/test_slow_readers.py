"""What a client who does not read costs the kernel: unsent.h."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from conformance.contract import contract
from conformance.process import Server, wait_until
from conformance.site import Site
from conformance.wire import request

#: The limit, what the client's own kernel takes at first, and the last portion that was added.
MOST = 512 * 1024


def unsent(port: int) -> list[int]:
    """Bytes in the send queues of the connections to a port (tx_queue of /proc/net/tcp)."""
    found = []
    for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
        fields = line.split()
        if fields[1].endswith(f":{port:04X}") and fields[3] != "0A":
            found.append(int(fields[4].split(":")[0], 16))
    return found


@contract("memory")
def test_who_does_not_read_has_little_of_the_kernels_memory(server: Server, docroot: Site) -> None:
    if server.target.model.under_inetd:
        pytest.skip("inherits from a listening socket that is inetd's")
    content = (docroot.root / "big.bin").read_bytes()
    with server.connect(receive_buffer=4096) as c:
        c.send(request("/big.bin"))
        assert c.read_head().status == 200
        assert wait_until(
            lambda: max(unsent(server.address[1]), default=0) > 0, server.patience.limit
        )
        c.hears_nothing(server.patience.silence)
        assert max(unsent(server.address[1])) <= MOST
        body = c.read_exactly(len(content))  # and who reads after all gets everything
        assert hashlib.sha256(body).digest() == hashlib.sha256(content).digest()
