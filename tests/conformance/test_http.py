"""The parser and the replies through one server of each shape: what it refuses, what it sends, and
that what follows a refusal or a body is no request. Each case by itself: tests/unit, in C.
"""

from __future__ import annotations

import pytest

from conformance.matrix import contract, kind
from conformance.process import Server
from conformance.site import HELLO, NAMES, OLD_DATE, TYPES, Site
from conformance.wire import ASK, LAST, ConnectionLost, NotServed, Reply, request

pytestmark = kind("shared")
SIZE = len(HELLO)
BEFORE = "Sun, 06 Nov 1994 08:49:36 GMT"
AFTER = "Sun, 06 Nov 1994 08:49:38 GMT"
INDEX = b"<!doctype html><title>index</title>\n"
END = b"\r\nHost: x\r\n\r\n"
START = b"GET /hello.txt HTTP/1.1\r\nHost: x\r\n"

#: After one of these nobody can tell what follows: the connection has to end.
MALFORMED = (
    b"GET\r\n\r\n",
    b"GET /hello.txt\r\n\r\n",
    b"GET  /hello.txt HTTP/1.1" + END,
    b"GET /hello .txt HTTP/1.1" + END,
    b" GET /hello.txt HTTP/1.1" + END,
    b"G(T /hello.txt HTTP/1.1" + END,
    b"GET /hello.txt HTTP/1.10" + END,
    b"GET /hello.txt\0.html HTTP/1.1" + END,
    b"GET /hello.txt\rx HTTP/1.1" + END,
    b"GET /hello.txt HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
    b"GET /hello.txt HTTP/1.1\r\nX-Between: 1\r\n\r\n",
    b"GET http://localhost/hello.txt HTTP/1.1\r\n\r\n",
    START + b"no colon\r\n\r\n",
    START + b"Name : value\r\n\r\n",
    START + b"Name: a\r\n b\r\n\r\n",
    START + b"Name: a\0b\r\n\r\n",
    START + b"Content-Length: -1\r\n\r\n",
    START + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
    START + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    START + b"Transfer-Encoding: chunked, identity\r\n\r\n",
    bytes.fromhex("16030100c8010000c40303") + bytes(range(180)) + b"\r\n\r\n",  # a TLS client
    bytes(64) + b"\r\n\r\n",
)


@contract("400", "host", "body", "survives")
def test_malformed(server: Server) -> None:
    for data in MALFORMED:
        with server.connect() as c:
            c.send(data + ASK)
            reply = c.read_reply()
            assert reply.status == 400, data
            assert not reply.keeps_alive, data
            c.expect_end()
    assert server.serves()


#: Whole requests that are refused: whether the connection goes on is what the reply says.
REFUSED = {
    request("*"): 400,
    request("localhost:80"): 400,
    request("http:///hello.txt"): 400,
    request("ftp://x/hello.txt"): 400,
    request("/hello.txt%00.html"): 400,
    request("/%4"): 400,
    request("/nothing/"): 404,
    request("/hello.txt/x"): 404,
    request("/" + "n" * 300): 404,
    request("/no-index/"): 404,
    request("/hello.txt", method="DELETE"): 405,
    request("/nothing", method="OPTIONS"): 405,
    request("/hello.txt", method="get"): 501,
    request("/hello.txt", method="HEADER"): 501,
    request("/hello.txt", version="0.9"): 505,
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9): 505,
    request("/<script>alert(1)</script>"): 404,
    request("/%3Cscript%3Ealert(1)%3C/script%3E"): 404,
}


@contract("400", "404", "405", "501", "505", "close")
def test_refused(server: Server) -> None:
    for data, status in REFUSED.items():
        with server.connect() as c:
            reply = c.ask(data)
            assert reply.status == status, data
            assert reply.get("Last-Modified") is None
            assert (reply.get("Allow") == "GET, HEAD") is (status == 405)
            assert b"alert(1)" not in reply.body  # a script in somebody's browser
            if reply.keeps_alive:
                assert c.ask(LAST).body == HELLO, data
            c.expect_end()
    assert server.get("localhost:80", method="CONNECT").status in (400, 405)


@contract("host", "head", "close")
def test_a_head_without_host(server: Server) -> None:
    """Refused by the parser, which has read the method: a body would be taken for another reply."""
    with server.connect() as c:
        reply = c.ask(request("/hello.txt", host=None, method="HEAD"), "HEAD")
        assert (reply.status, reply.keeps_alive) == (400, False)
        c.expect_end()


SERVED = {
    b"/hello.txt?": HELLO,
    b"/hello.txt?../../secret.txt": HELLO,
    b"/hello.txt?%zz": HELLO,
    b"/%68%65%6c%6c%6F.txt": HELLO,
    b"http://some.other.host:8080/hello.txt": HELLO,
    b"HTTP://LOCALHOST/hello.txt?query": HELLO,
    b"http://[::1]:80/hello.txt": HELLO,
    b"http://localhost": INDEX,
    b"http://localhost?x=/y": INDEX,
    b"/./hello.txt": HELLO,
    b"//hello.txt": HELLO,
    b"/sub//page.html": b"sub page\n",
    b"/hello.txt?" + b"q" * 4000: HELLO,
}


@contract("query", "percent", "absolute-form", "index", "get", "content-type")
def test_served(server: Server) -> None:
    everything = SERVED | {path.encode(): name.encode() for name, path in NAMES.items()}
    for target, body in everything.items():
        reply = server.get(target)
        assert (reply.status, reply.body) == (200, body), target
    for name, content_type in TYPES.items():
        assert server.get(f"/types/{name}").need("Content-Type").split(";")[0] == content_type


@contract("get", "split")
def test_fields_and_lines_of_any_form(server: Server) -> None:
    """LF alone, and an empty line first: RFC 9112 section 2.2. A later minor version: RFC 9110
    section 2.5.
    """
    many = [f"X-{i}: {'v' * 50}" for i in range(60)]
    for data in (
        b"GET /hello.txt HTTP/1.1\r\nhOST:x\r\ncONNECTION:\t close \t\r\nx-empty:\r\n\r\n",
        b"\r\nGET /hello.txt HTTP/1.1\nHost: x\nConnection: close\n\n",
        request("/hello.txt", *many, "Connection: close"),
        request("/hello.txt", f"X-Long: {'v' * 4000}", "Connection: close"),
        request("/hello.txt", "Connection: close", version="1.9"),
        request("/hello.txt", "Connection: close", host=""),
        request("/hello.txt", "Connection: close", host="[::1]:80"),
    ):
        with server.connect() as c:
            assert c.ask(data).body == HELLO, data
            c.expect_end()


@contract("index", "outside")
def test_a_folder_without_its_slash(server: Server) -> None:
    """`//host` in Location would be the address of another server."""
    for path in ("/sub", "/sub?x=1", "//sub"):
        reply = server.get(path)
        assert (reply.status, reply.need("Location")) == (301, "/sub/"), path


SINCE = f"If-Modified-Since: {OLD_DATE}"
#: Fields -> the status, and the range of bytes that comes.
CONDITIONS: dict[tuple[str, ...], tuple[int, slice]] = {
    (SINCE,): (304, slice(0)),
    ("If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT",): (304, slice(0)),
    ("If-Modified-Since: Sun Nov  6 08:49:37 1994",): (304, slice(0)),
    (f"If-Modified-Since: {AFTER}",): (304, slice(0)),
    (f"If-Modified-Since: {BEFORE}",): (200, slice(SIZE)),
    ("If-Modified-Since: yesterday",): (200, slice(SIZE)),
    ("If-Modified-Since: " + "9" * 400,): (200, slice(SIZE)),
    ('If-None-Match: "x"', SINCE): (200, slice(SIZE)),
    ("If-None-Match: *",): (304, slice(0)),
    ('If-Match: "x"',): (412, slice(0)),
    ("If-Match: *", f"If-Unmodified-Since: {BEFORE}"): (200, slice(SIZE)),
    (f"If-Unmodified-Since: {BEFORE}", SINCE): (412, slice(0)),
    ("Range: bytes=0-0",): (206, slice(0, 1)),
    ("Range: bytes=5-",): (206, slice(5, SIZE)),
    ("Range: bytes=-5",): (206, slice(SIZE - 5, SIZE)),
    ("Range: bytes=3-99999999999999999999999",): (206, slice(3, SIZE)),
    (f"Range: bytes=0-{SIZE}",): (206, slice(0, SIZE)),
    (f"Range: bytes={SIZE}-",): (416, slice(0)),
    ("Range: bytes=-0",): (416, slice(0)),
    ("Range: bytes=0-1,3-4",): (200, slice(SIZE)),
    ("Range: bytes=5-4",): (200, slice(SIZE)),
    ("Range: lines=0-4",): (200, slice(SIZE)),
    ("Range: bytes=0-1", SINCE): (304, slice(0)),
    ("Range: bytes=0-1", f"If-Range: {OLD_DATE}"): (206, slice(0, 2)),
    ("Range: bytes=0-1", f"If-Range: {AFTER}"): (200, slice(SIZE)),
    ("Range: bytes=0-1", 'If-Range: "an-etag"'): (200, slice(SIZE)),
    (f"If-Range: {OLD_DATE}",): (200, slice(SIZE)),
}


@contract("if-modified-since", "preconditions", "range", "if-range", "head")
def test_conditions_and_ranges(server: Server) -> None:
    for fields, (status, part) in CONDITIONS.items():
        reply = server.get("/hello.txt", *fields)
        assert reply.status == status, fields
        if status in (200, 206):
            assert reply.body == HELLO[part], fields
            assert reply.need("Content-Length") == str(len(HELLO[part]))
        said = {206: f"bytes {part.start}-{part.stop - 1}/{SIZE}", 416: f"bytes */{SIZE}"}
        assert reply.get("Content-Range") == said.get(status), fields
        with server.connect() as c:
            head = c.ask(request("/hello.txt", *fields, "Connection: close", method="HEAD"), "HEAD")
            c.expect_end()
        without_range = 304 if SINCE in fields and status == 304 else status
        assert head.status == (200 if status in (206, 416) else without_range), fields
        assert server.get("/nothing", *fields).status == 404
    for path, length in (("/empty.txt", 0), ("/medium.bin", 300_007)):
        reply = server.get(path, "Range: bytes=0-")
        assert reply.status == (206 if length else 416)
        assert len(reply.body) == length or not length


@contract("range", "any-length")
def test_a_range_across_many_sends(server: Server, docroot: Site) -> None:
    content = (docroot.root / "medium.bin").read_bytes()
    reply = server.get("/medium.bin", f"Range: bytes=65535-{len(content) - 2}")
    assert (reply.status, reply.body) == (206, content[65535:-1])


@contract("414", "431", "drain")
def test_heads_of_every_length_around_the_limit(server: Server) -> None:
    """Served or refused, never mixed up: one request that just fits, one that just does not, on one
    connection.
    """
    for size in range(8100, 8300, 3):
        head = request("/hello.txt", f"X: {'v' * size}", "Connection: close")
        with server.connect() as c:
            reply = c.ask(head)
            assert reply.status in (200, 431), f"a head of {len(head)} bytes"
            assert (reply.status == 200) is (len(head) <= 8192), f"a head of {len(head)} bytes"
            assert reply.status == 431 or reply.body == HELLO
            c.expect_end()


# ---- bodies


SMUGGLED = request("/one.bin", "X-Smuggled: 1")
CHUNKED = f"{len(SMUGGLED):x}\r\n".encode() + SMUGGLED + b"\r\n0\r\n\r\n"
FRAMINGS = {
    (f"Content-Length: {len(SMUGGLED)}",): SMUGGLED,
    (f"Content-Length: {len(SMUGGLED)}", "Connection: keep-alive"): SMUGGLED,
    ("Transfer-Encoding: chunked",): CHUNKED,
    ("Transfer-Encoding: gzip, chunked",): SMUGGLED,
}


def replies_until_close(server: Server, data: bytes) -> list[Reply]:
    """All replies to `data`, after which nothing more is sent."""
    replies = []
    with server.connect() as c:
        c.send(data)
        c.finish_sending()
        while True:
            try:
                replies.append(c.read_reply())
            except NotServed:
                raise
            except ConnectionLost:
                return replies


@contract("body")
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "FOO"])
def test_a_body_is_no_request(server: Server, method: str) -> None:
    """A second reply would be the smuggled one."""
    status = {"GET": 200, "HEAD": 200, "POST": 405, "FOO": 501}[method]
    for fields, body in FRAMINGS.items():
        with server.connect() as c:
            c.send(request("/hello.txt", *fields, method=method) + body)
            c.finish_sending()
            assert c.read_reply(method).status == status, fields
            c.expect_end()
        with server.connect() as c:  # and if it comes later
            reply = c.ask(request("/hello.txt", *fields, method=method), method)
            c.try_send(body)
            c.finish_sending()
            assert reply.status == status
            assert b"HTTP/1.1" not in c.read_all(), c.transcript()


@contract("body")
def test_what_follows_a_body_is_a_request_or_nothing(server: Server) -> None:
    """A server may read the body and go on, or close; it may not answer what stands in the body."""
    for fields, body in FRAMINGS.items():
        first = request("/hello.txt", *fields) + body
        replies = replies_until_close(server, first + request("/empty.txt"))
        assert [reply.body for reply in replies] in ([HELLO], [HELLO, b""]), fields
    fields = ("Transfer-Encoding: chunked", "Connection: keep-alive")
    old = request("/hello.txt", *fields, version="1.0")
    assert len(replies_until_close(server, old + CHUNKED)) <= 1


@contract("body", "405")
def test_expect_is_answered_before_the_body(server: Server) -> None:
    """The client waits for 100 or for the final status, and sends no body before that."""
    for expect in ("100-continue", "something else"):
        fields = (f"Expect: {expect}", "Content-Length: 5")
        assert server.ask(request("/", *fields, method="POST")).status in (405, 417)
