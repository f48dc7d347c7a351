"""Each kind of reply, from every server in every variant. All cases of each: tests/unit (in C), and
test_http.py.
"""

from __future__ import annotations

import hashlib
import os
import time

from conformance.matrix import contract, kind
from conformance.process import Server
from conformance.programs import Start
from conformance.site import HELLO, OLD, OLD_DATE, SPARSE_END, SPARSE_SIZE, Site
from conformance.wire import request

pytestmark = kind("serving")
INDEX = b"<!doctype html><title>index</title>\n"


@contract("get", "content-length", "content-type", "last-modified", "date")
def test_get(server: Server) -> None:
    before = int(time.time())
    reply = server.get("/hello.txt")
    assert (reply.status, reply.body) == (200, HELLO)
    assert reply.need("Content-Length") == str(len(HELLO))
    assert reply.need("Content-Type").startswith("text/plain")
    assert reply.date("Last-Modified") == OLD
    assert before - 1 <= reply.date("Date") <= time.time() + 1


@contract("index")
def test_index(server: Server) -> None:
    for path, body in (("/", INDEX), ("/sub/", b"sub index\n"), ("/?query", INDEX)):
        reply = server.get(path)
        assert (reply.status, reply.body) == (200, body), path
        assert reply.need("Content-Type").startswith("text/html")


@contract("any-length", "content-length")
def test_files_arrive_as_they_are(server: Server, docroot: Site) -> None:
    for name in ("empty.txt", "one.bin", "medium.bin", "big.bin"):
        content = (docroot.root / name).read_bytes()
        reply = server.get(f"/{name}")
        assert (reply.status, len(reply.body)) == (200, len(content)), name
        assert reply.need("Content-Length") == str(len(content))
        assert hashlib.sha256(reply.body).digest() == hashlib.sha256(content).digest(), name


KINDS = {
    request("/hello.txt", "Range: bytes=7-11"): 206,
    request("/hello.txt", "Range: bytes=99-"): 416,
    request("/hello.txt", f"If-Modified-Since: {OLD_DATE}"): 304,
    request("/hello.txt", 'If-Match: "x"'): 412,
    request("/sub"): 301,
    request("/nothing"): 404,
    request("/%zz"): 400,
    request("/../secret.txt"): 403,
    request("/%2e%2e/secret.txt"): 403,
    request("/link-outside.txt"): 403,
    request("/fifo"): 403,
    request("/hello.txt", method="POST"): 405,
    request("/hello.txt", method="FOO"): 501,
    request("/hello.txt", version="2.0"): 505,
    request("/hello.txt", host=None): 400,
    b"GET\r\n\r\n": 400,
    request("/" + "a" * 9000): 414,
    request("/hello.txt", "X: " + "v" * 9000): 431,
}


@contract("range", "400", "403", "404", "405", "414", "431", "501", "505", "outside", "version-1.0")
def test_each_status(server: Server) -> None:
    for data, status in KINDS.items():
        reply = server.ask(data)
        assert reply.status == status, data
        assert reply.body == b"world" or status != 206
        assert reply.get("Content-Length") in (None, str(len(reply.body))), data
    reply = server.ask(request("/hello.txt", version="1.0", host=None))
    assert (reply.status, reply.body) == (200, HELLO)


@contract("head", "content-length", "content-type", "last-modified")
def test_head_is_the_head_of_get(server: Server) -> None:
    for path in ("/hello.txt", "/", "/empty.txt", "/nothing", "/no-index/", "/sparse.bin"):
        with server.connect() as c:
            head = c.ask(request(path, "Connection: close", method="HEAD"), "HEAD")
            c.expect_end()
        with server.connect() as c:
            c.send(request(path, "Connection: close"))
            get = c.read_head()
        assert head.status == get.status, path
        assert [f for f in head.fields if f[0] != "Date"] == [
            f for f in get.fields if f[0] != "Date"
        ], path


@contract("any-length", "signals")
def test_a_slow_reader_gets_every_byte(server: Server, docroot: Site) -> None:
    """A full socket buffer makes send() take less than it was given, or wait."""
    content = (docroot.root / "big.bin").read_bytes()[: 4 << 20]
    part = f"Range: bytes=0-{len(content) - 1}"
    with server.download("/big.bin", part, "Connection: close") as c:
        time.sleep(server.patience.silence)
        assert c.read_exactly(len(content)) == content
        c.expect_end()


@contract("any-length", "content-length", "range")
def test_beyond_4_gib(server: Server) -> None:
    reply = server.get("/sparse.bin", method="HEAD")
    assert (reply.status, reply.need("Content-Length")) == (200, str(SPARSE_SIZE))
    first = SPARSE_SIZE - len(SPARSE_END) - 5
    reply = server.get("/sparse.bin", f"Range: bytes={first}-")
    assert (reply.status, reply.body) == (206, bytes(5) + SPARSE_END)
    assert reply.need("Content-Range") == f"bytes {first}-{SPARSE_SIZE - 1}/{SPARSE_SIZE}"
    with server.connect() as c:  # and it can be left in the middle
        c.send(request("/sparse.bin"))
        assert c.read_head().need("Content-Length") == str(SPARSE_SIZE)
        assert c.read_exactly(1 << 20) == bytes(1 << 20)
    assert server.serves()


@contract("last-modified")
def test_times_that_32_bits_do_not_hold(start: Start, own_site: Site) -> None:
    moments = (-1, 0, 951782400, 2147483647, 2147483648, 4107542400)
    for moment in moments:
        own_site.write(f"{moment}.txt", b"x", mtime=moment)
    server = start(root=own_site.root)
    for moment in moments:
        assert server.get(f"/{moment}.txt").date("Last-Modified") == moment


@contract("docroot", "get", "last-modified", "content-length")
def test_a_file_that_comes_later_and_one_that_is_replaced(start: Start, own_site: Site) -> None:
    server = start(root=own_site.root)
    assert server.get("/later.txt").status == 404
    own_site.write("later.txt", b"later")
    assert server.get("/later.txt").body == b"later"
    os.unlink(own_site.root / "later.txt")
    own_site.write("later.txt", b"second", mtime=OLD + 60)
    reply = server.get("/later.txt")
    assert (reply.body, reply.date("Last-Modified")) == (b"second", OLD + 60)
