"""Files that shrink, grow or vanish while they are sent."""

from __future__ import annotations

import os

import pytest

from conformance.contract import contract
from conformance.process import Server
from conformance.programs import Start
from conformance.site import HELLO, Site, bigger_than_socket_buffers, noise
from conformance.wire import Connection, ConnectionLost, request

SIZE = bigger_than_socket_buffers()


def begin(server: Server) -> Connection:
    """A download of which the server cannot have sent everything: the buffers do not hold it."""
    c = server.connect(receive_buffer=65536)
    c.send(request("/file.bin"))
    assert c.read_head().need("Content-Length") == str(SIZE)
    return c


@pytest.fixture
def file_server(start: Start, own_site: Site) -> Server:
    own_site.write("file.bin", noise(SIZE))
    return start(root=own_site.root)


@contract("file-changes", "survives")
@pytest.mark.parametrize("left", [0, 1, 4096, 100_000])
def test_a_file_that_shrinks(file_server: Server, own_site: Site, left: int) -> None:
    """The promised length cannot be kept, and only the end of the connection can say so. mmap()
    would mean SIGBUS.
    """
    c = begin(file_server)
    os.truncate(own_site.root / "file.bin", left)
    with pytest.raises(ConnectionLost):
        c.read_exactly(SIZE)
    c.close()
    assert file_server.serves()


@contract("file-changes", "concurrency")
def test_a_file_that_shrinks_ends_that_connection_only(file_server: Server, own_site: Site) -> None:
    c = begin(file_server)
    limit = 1.5 if file_server.target.model.capacity == 1 else 0
    other = file_server.connect(limit=limit)
    other.send(request("/hello.txt"))
    assert other.read_reply().body == HELLO
    os.truncate(own_site.root / "file.bin", 0)
    with pytest.raises(ConnectionLost):
        c.read_exactly(SIZE)
    other.send(request("/hello.txt"))
    assert other.read_reply().body == HELLO


@contract("file-changes", "any-length")
def test_a_file_that_vanishes(file_server: Server, own_site: Site) -> None:
    """An open file lives on without its name."""
    c = begin(file_server)
    (own_site.root / "file.bin").unlink()
    assert c.read_exactly(SIZE) == noise(SIZE)
    c.close()
    assert file_server.get("/file.bin").status == 404


@contract("file-changes", "content-length")
def test_a_file_that_grows(file_server: Server, own_site: Site) -> None:
    """What was promised is sent, and not a byte more: it would be taken for the next reply."""
    c = begin(file_server)
    with (own_site.root / "file.bin").open("ab") as file:
        file.write(b"more" * 1000)
    assert c.read_exactly(SIZE) == noise(SIZE)
    c.try_send(request("/hello.txt", "Connection: close"))
    c.finish_sending()
    rest = c.read_all()
    assert rest == b"" or rest.startswith(b"HTTP/1.1 200 "), c.transcript()


@contract("file-changes")
def test_a_file_that_is_replaced(file_server: Server, own_site: Site) -> None:
    c = begin(file_server)
    new = own_site.write("new.bin", b"new")
    os.replace(new, own_site.root / "file.bin")
    assert c.read_exactly(SIZE) == noise(SIZE)
    c.close()
    assert file_server.get("/file.bin").body == b"new"
