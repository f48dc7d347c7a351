"""Each kind of reply, and that what follows a refusal or a body is no request. Every case of the
parser and of the replies: tests/unit, in C.
"""

import os
import time

from tests.conformance.matrix import SHAPES, contract, kind
from tests.conformance.process import Server
from tests.conformance.programs import Start
from tests.conformance.site import HELLO, OLD, OLD_DATE, SPARSE_END, SPARSE_SIZE, Site, noise
from tests.conformance.wire import ASK, LAST, request

pytestmark = kind("serving")
INDEX = b"<!doctype html><title>index</title>\n"
SINCE = f"If-Modified-Since: {OLD_DATE}"
SIZE = len(HELLO)


@contract("get", "content-length", "content-type", "last-modified", "date")
def test_get(server: Server) -> None:
    before = int(time.time())
    reply = server.get("/hello.txt")
    assert (reply.status, reply.body) == (200, HELLO)
    assert reply.need("Content-Length") == str(SIZE)
    assert reply.need("Content-Type").startswith("text/plain")
    assert reply.date("Last-Modified") == OLD
    assert before - 1 <= reply.date("Date") <= time.time() + 1


@contract("index", "query")
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
        assert (reply.status, reply.need("Content-Length")) == (200, str(len(content))), name
        assert reply.body == content, name


MEDIUM = noise(300_007)
PARTS = {
    request("/hello.txt", "Range: bytes=-5"): (HELLO, SIZE - 5, SIZE - 1),
    request("/hello.txt", "Range: bytes=0-1", f"If-Range: {OLD_DATE}"): (HELLO, 0, 1),
    request("/medium.bin", "Range: bytes=65535-300005"): (MEDIUM, 65535, 300_005),
}
#: Names as clients write them.
NAMES = {
    request("/%68%65%6c%6c%6F.txt?%zz"): HELLO,
    request("HTTP://some.other.host:8080//./hello.txt?query"): HELLO,
    request("/%C3%BCn%C3%AFcode-%E2%82%AC.txt"): b"unicode",
    request("/hello.txt?" + "q" * 4000): HELLO,
}
#: After one of these nobody can tell what follows.
MALFORMED = [
    request("/hello.txt", host=None),
    request("/hello.txt", host=None, method="HEAD"),
    request("/hello.txt", "Content-Length: 5", "Content-Length: 6"),
    bytes.fromhex("16030100c8010000c40303") + bytes(range(180)) + b"\r\n\r\n",  # TLS
    request("/hello.txt", host="a:b"),
    request("http://a:b/hello.txt"),
    request("http://a,b/hello.txt"),
    request("http://a#/hello.txt"),
    request("/hello.txt", "Transfer-Encoding: chunked", version="1.0"),
    request("/hello.txt", "Transfer-Encoding: chunked, gzip"),
    request("/hello.txt", "Transfer-Encoding: chunked, chunked"),
    request("/hello.txt", "Transfer-Encoding: gzip, chunked", "Content-Length: 5"),
]
#: These, too: the parser knows no coding but chunks.
UNKNOWN_CODINGS = [
    request("/hello.txt", "Transfer-Encoding: bogus, chunked"),
    request("/hello.txt", "Transfer-Encoding: identity", "Transfer-Encoding: chunked"),
]
#: Dates that are none, later than any file: RFC 9110 5.6.7.
NO_DATES = [
    request("/hello.txt", f"If-Modified-Since: {date} GMT")
    for date in (
        "Fri, 31 Feb 2100 00:00:00",
        "Xyz, 01 Jan 2100 00:00:00",
        "Fri, +1 Jan 2100 00:00:00",
        "Fri, 01 Jan 2100 00:00:60",
    )
]

#: It says so itself.
ENDED = {
    LAST: 200,
    request("/hello.txt", version="1.0"): 200,
    request("/nothing", "Connection: close"): 404,
    request("/hello.txt", "Connection: close", SINCE): 304,
}
STATUSES = {
    request("/hello.txt", "Range: bytes=99-"): 416,
    request("/hello.txt", "Range: bytes=99-", method="HEAD"): 200,
    request("/hello.txt", SINCE): 304,
    request("/hello.txt", SINCE, method="HEAD"): 304,
    request("/hello.txt", 'If-Match: "x"'): 412,
    request("/hello.txt", version="1.0", host=None): 200,
    **ENDED,
    request("//sub?x=1"): 301,  # with both slashes it would be the address of another server
    request("/nothing"): 404,
    request("/hello.txt/x"): 404,
    request("/" + "n" * 300): 404,
    request("/<script>alert(1)</script>"): 404,
    request("/../secret.txt"): 403,
    request("/link-outside.txt"): 403,
    request("/fifo"): 403,
    request("/hello.txt", method="POST"): 405,
    request("/", "Expect: 100-continue", "Content-Length: 5", method="POST"): 405,
    request("/hello.txt", method="FOO"): 501,
    request("/hello.txt", version="2.0"): 505,
    request("/hello.txt%00.html"): 400,
    request("/" + "a" * 9000): 414,
    request("/hello.txt", "X: " + "v" * 9000): 431,
    **dict.fromkeys(NAMES, 200),
    **dict.fromkeys(MALFORMED, 400),
    **dict.fromkeys(UNKNOWN_CODINGS, 501),
    **dict.fromkeys(NO_DATES, 200),
    request("/hello.txt", "Range: bytes=0-0", "Range: bytes=1-1"): 200,
    **dict.fromkeys(PARTS, 206),
}


@contract(
    *("range", "if-range", "if-modified-since", "preconditions", "version-1.0", "host", "outside"),
    *("400", "403", "404", "405", "414", "431", "501", "505", "close", "body"),
    *("percent", "absolute-form", "query", "index"),
)
def test_each_status(server: Server) -> None:
    """What comes behind it is answered, unless the reply says that it is the last."""
    for data, status in STATUSES.items():
        with server.connect() as c:
            c.send(data + LAST)
            reply = c.read_reply("HEAD" if data.startswith(b"HEAD") else "GET")
            assert reply.status == status, data
            assert (reply.get("Allow") == "GET, HEAD") is (status == 405), data
            assert reply.get("Location") == ("/sub/?x=1" if status == 301 else None), data
            assert reply.get("Last-Modified") is None or status < 400, data
            assert b"alert(1)" not in reply.body  # a script in somebody's browser
            assert reply.body == NAMES.get(data, reply.body), data
            if status == 206:
                whole, first, last = PARTS[data]
                assert reply.need("Content-Range") == f"bytes {first}-{last}/{len(whole)}"
                assert reply.body == whole[first : last + 1], data
            if reply.keeps_alive:
                assert data not in (*MALFORMED, *UNKNOWN_CODINGS, *ENDED), data
                assert status not in (414, 431), data
                assert c.read_reply().body == HELLO, data
            c.expect_end()


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
    with server.download("/sparse.bin") as c:  # and it can be left in the middle
        assert c.read_exactly(1 << 20) == bytes(1 << 20)
    assert server.serves()


@contract("last-modified", "docroot", "get", "content-length", servers=SHAPES)
def test_files_that_come_and_change(start: Start, own_site: Site) -> None:
    server = start(root=own_site.root)
    assert server.get("/later.txt").status == 404
    own_site.write("later.txt", b"later")
    assert server.get("/later.txt").body == b"later"
    os.unlink(own_site.root / "later.txt")
    own_site.write("later.txt", b"second", mtime=OLD + 60)
    reply = server.get("/later.txt")
    assert (reply.body, reply.date("Last-Modified")) == (b"second", OLD + 60)


@contract("431", "drain", "split", of="model")
def test_heads_of_every_length_around_the_limit(server: Server) -> None:
    """Served or refused: alone, and behind another, where it begins in the middle of the buffer."""
    behind = (b"",) if server.target.model.slug == "01-iterative" else (b"", request("/one.bin"))
    for first in behind:
        for size in range(8100, 8180, 3):
            head = request("/hello.txt", f"X: {'v' * size}", "Connection: close")
            with server.connect() as c:
                c.send(first + head)
                assert not first or c.read_reply().body == b"\0"
                reply = c.read_reply()
                assert reply.status == (200 if len(head) <= 8192 else 431), len(head)
                c.expect_end()


@contract("431", "split", of="model")
def test_what_lies_behind_the_limit_is_not_looked_at(server: Server) -> None:
    """However much of it has come, and with what: the first 8 KiB decide."""
    head = request("/hello.txt", f"X: {'v' * 8200}", "no field at all")
    for first in (1, 100, 8000):
        with server.connect() as c:
            c.send(head[:first])
            time.sleep(server.patience.silence / 10)
            c.send(head[first:])
            assert c.read_reply().status == 431, first
            c.expect_end()


SMUGGLED = request("/one.bin", "X-Smuggled: 1")
CHUNKED = f"{len(SMUGGLED):x}\r\n".encode() + SMUGGLED + b"\r\n0\r\n\r\n"
#: version and fields -> the body
FRAMINGS = {
    ("1.1", f"Content-Length: {len(SMUGGLED)}"): SMUGGLED,
    ("1.1", f"Content-Length: {len(SMUGGLED)}", "Connection: keep-alive"): SMUGGLED,
    ("1.1", "Transfer-Encoding: chunked"): CHUNKED,
    ("1.1", "Transfer-Encoding: gzip, chunked"): SMUGGLED,
    ("1.0", "Transfer-Encoding: chunked", "Connection: keep-alive"): CHUNKED,
}
#: What the framing says, where the method does not: a coding that is not known, or not allowed.
REFUSED = {("1.1", "Transfer-Encoding: gzip, chunked"): 501} | {
    framing: 400 for framing in FRAMINGS if framing[0] == "1.0"
}


@contract("body", of="shared")
def test_a_body_is_no_request(server: Server) -> None:
    """At once or later: a server may read it and go on, or close, and not answer what is in it."""
    for method, status in {"GET": 200, "HEAD": 200, "POST": 405, "FOO": 501}.items():
        for framing, body in FRAMINGS.items():
            version, *fields = framing
            head = request("/hello.txt", *fields, method=method, version=version)
            for now, later in ((body + ASK, b""), (b"", body)):
                with server.connect() as c:
                    reply = c.ask(head + now, method)
                    assert reply.status == REFUSED.get(framing, status), head
                    c.try_send(later)
                    c.finish_sending()
                    rest = c.read_all()
                    assert rest == b"" or (now and rest.count(b"HTTP/1.1 ") == 1), c.transcript()
                    assert rest == b"" or rest.endswith(HELLO), c.transcript()
