"""What the servers refuse, with which status, and that they live on."""

from __future__ import annotations

import pytest

from conformance.contract import contract
from conformance.process import Server
from conformance.servers import SHAPES
from conformance.site import HELLO
from conformance.wire import request

END = b"\r\nHost: x\r\n\r\n"

#: Bad request heads; what follows after one cannot be told apart any more, so the connection has
#: to end.
MALFORMED = {
    "no target, no version": b"GET\r\n\r\n",
    "no version, as HTTP/0.9 had it": b"GET /hello.txt\r\n\r\n",
    "no target": b"GET HTTP/1.1" + END,
    "empty target": b"GET  HTTP/1.1" + END,
    "two spaces before the target": b"GET  /hello.txt HTTP/1.1" + END,
    "two spaces before the version": b"GET /hello.txt  HTTP/1.1" + END,
    "a tab for a space": b"GET\t/hello.txt\tHTTP/1.1" + END,
    "a space in the target": b"GET /hello .txt HTTP/1.1" + END,
    "a space before the method": b" GET /hello.txt HTTP/1.1" + END,
    "a space after the version": b"GET /hello.txt HTTP/1.1 " + END,
    "a word after the version": b"GET /hello.txt HTTP/1.1 x" + END,
    "no method": b"/hello.txt HTTP/1.1" + END,
    "a method that is no token": b"G(T /hello.txt HTTP/1.1" + END,
    "a version without numbers": b"GET /hello.txt HTTP/x.y" + END,
    "a version without a dot": b"GET /hello.txt HTTP/11" + END,
    "a version without its minor": b"GET /hello.txt HTTP/1." + END,
    "a version with three numbers": b"GET /hello.txt HTTP/1.1.1" + END,
    "a version with two digits": b"GET /hello.txt HTTP/1.10" + END,
    "a version with a sign": b"GET /hello.txt HTTP/+1.1" + END,
    "a version in lower case": b"GET /hello.txt http/1.1" + END,
    "another protocol": b"GET /hello.txt HTTPS/1.1" + END,
    "a control character in the target": b"GET /hello\x01.txt HTTP/1.1" + END,
    "DEL in the target": b"GET /hello\x7f.txt HTTP/1.1" + END,
    "NUL in the target": b"GET /hello.txt\0.html HTTP/1.1" + END,
    "CR in the target": b"GET /hello.txt\rx HTTP/1.1" + END,
    "a field without a colon": b"GET /hello.txt HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n",
    "a field without a name": b"GET /hello.txt HTTP/1.1\r\nHost: x\r\n: value\r\n\r\n",
    "a space before the colon": b"GET /hello.txt HTTP/1.1\r\nHost: x\r\nName : value\r\n\r\n",
    "a space before Host's colon": b"GET /hello.txt HTTP/1.1\r\nHost : x\r\n\r\n",
    "a name that is no token": b"GET /hello.txt HTTP/1.1\r\nHost: x\r\nNa(me: v\r\n\r\n",
    "a name beyond ASCII": b"GET /hello.txt HTTP/1.1\r\nHost: x\r\nN\xc3\xa4me: v\r\n\r\n",
    "a folded line": b"GET /hello.txt HTTP/1.1\r\nHost: x\r\nName: a\r\n b\r\n\r\n",
    "a folded line first": b"GET /hello.txt HTTP/1.1\r\n Host: x\r\nHost: x\r\n\r\n",
    "NUL in a value": b"GET /hello.txt HTTP/1.1\r\nHost: x\r\nName: a\0b\r\n\r\n",
    "CR in a value": b"GET /hello.txt HTTP/1.1\r\nHost: x\r\nName: a\rb\r\n\r\n",
    "lines that end in CR alone": b"GET /hello.txt HTTP/1.1\rHost: x\r\r\n\r\n",
    "a TLS client": bytes.fromhex("16030100c8010000c40303") + bytes(range(180)) + b"\r\n\r\n",
    "zeros": bytes(64) + b"\r\n\r\n",
}


@contract("400", "survives")
@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(server: Server, name: str) -> None:
    with server.connect() as c:
        c.send(MALFORMED[name])
        reply = c.read_reply()
        assert reply.status == 400
        assert not reply.keeps_alive
        c.expect_end()
    assert server.serves()


@contract("400", "close")
@pytest.mark.parametrize(
    "target_",
    ["hello.txt", "*", "localhost:80", "http:///hello.txt", "http://?x", "ftp://x/hello.txt"],
)
def test_targets_that_are_none(server: Server, target_: str) -> None:
    """The request has an end, so the connection may go on; the Connection field says whether it
    does.
    """
    with server.connect() as c:
        c.send(request(target_))
        reply = c.read_reply()
        assert reply.status == 400
        if reply.keeps_alive:
            c.send(request("/hello.txt", "Connection: close"))
            assert c.read_reply().body == HELLO
        c.expect_end()


@contract("400", "survives")
@pytest.mark.parametrize("byte", [b"\x80", b"\xff", b"\xc3\xbc", b'"', b"<", b"\\", b"^", b"|"])
def test_bytes_a_target_may_not_hold(server: Server, byte: bytes) -> None:
    """Refused, or taken for a name like any other: both are safe."""
    reply = server.get(b"/hello" + byte + b".txt")
    assert reply.status in (400, 404)


@contract("host")
@pytest.mark.parametrize(
    "fields",
    [
        (),
        ("Host: x", "Host: x"),
        ("Host: x", "Host: y"),
        ("Host: x", "X-Between: 1", "hOsT: y"),
        ("Host: a b",),
        ("Host: a/b",),
        ("Host: a@b",),
        ("Host: a, b",),
    ],
)
def test_host(server: Server, fields: tuple[str, ...]) -> None:
    with server.connect() as c:
        c.send(request("/hello.txt", *fields, host=None))
        assert c.read_reply().status == 400
        c.expect_end()


@pytest.mark.servers(*SHAPES)
@contract("host", "head", "close")
def test_a_head_without_host(server: Server) -> None:
    """Refused by the parser, which has read the method: a body would be taken for another reply."""
    with server.connect() as c:
        c.send(request("/hello.txt", host=None, method="HEAD"))
        reply = c.read_reply("HEAD")
        assert reply.status == 400
        assert not reply.keeps_alive
        c.expect_end()


@contract("host")
@pytest.mark.parametrize("host", ["", "x", "x:80", "[::1]:80", "xn--bcher-kva.example", "1.2.3.4"])
def test_a_host_that_is_one(server: Server, host: str) -> None:
    """An empty value is allowed: RFC 9112 section 3.2."""
    with server.connect() as c:
        c.send(request("/hello.txt", "Connection: close", host=host))
        assert c.read_reply().body == HELLO


@contract("host", "absolute-form")
def test_an_absolute_target_does_not_replace_host(server: Server) -> None:
    with server.connect() as c:
        c.send(request("http://localhost/hello.txt", host=None))
        assert c.read_reply().status == 400


@contract("404")
@pytest.mark.parametrize(
    "path",
    ["/nothing", "/nothing/", "/hello.txt/", "/hello.txt/x", "/link-dangling.txt", "/" + "n" * 300],
)
def test_not_found(server: Server, path: str) -> None:
    reply = server.get(path)
    assert reply.status == 404 or (path == "/link-dangling.txt" and reply.status == 403)
    assert reply.need("Content-Length") == str(len(reply.body))
    assert reply.get("Last-Modified") is None


@contract("405")
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"])
@pytest.mark.parametrize("path", ["/hello.txt", "/nothing"])
def test_known_method(server: Server, method: str, path: str) -> None:
    reply = server.get(path, method=method)
    assert reply.status == 405
    allowed = [word.strip() for word in reply.need("Allow").split(",")]
    assert sorted(allowed) == ["GET", "HEAD"]


@contract("405", "400")
def test_connect_is_no_way_through(server: Server) -> None:
    reply = server.get("localhost:80", method="CONNECT")
    assert reply.status in (400, 405)


@contract("501")
@pytest.mark.parametrize(
    "method", ["FOO", "get", "Get", "GETT", "GE", "HEADER", "M-SEARCH", "X" * 60]
)
def test_unknown_method(server: Server, method: str) -> None:
    assert server.get("/hello.txt", method=method).status == 501


@contract("505")
@pytest.mark.parametrize("version", ["2.0", "0.9", "3.0", "9.9", "0.0"])
def test_version(server: Server, version: str) -> None:
    with server.connect() as c:
        c.send(request("/hello.txt", version=version))
        assert c.read_reply().status == 505
        c.expect_end()


@contract("505")
def test_http_2_by_prior_knowledge(server: Server) -> None:
    with server.connect() as c:
        c.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9))
        assert c.read_reply().status in (400, 501, 505)
        c.expect_end()


@contract("get", "505")
@pytest.mark.parametrize("version", ["1.2", "1.9"])
def test_a_later_minor_version_is_answered(server: Server, version: str) -> None:
    """RFC 9110 section 2.5: as the highest minor version that the server knows."""
    with server.connect() as c:
        c.send(request("/hello.txt", "Connection: close", version=version))
        assert c.read_reply().body == HELLO


@contract("414", "drain", "survives")
@pytest.mark.parametrize("size", [9_000, 65_536, 1 << 20])
@pytest.mark.parametrize("complete", [True, False])
def test_request_line_too_long(server: Server, size: int, complete: bool) -> None:
    data = b"GET /" + b"a" * size
    with server.connect() as c:
        c.send(data + (b" HTTP/1.1\r\nHost: x\r\n\r\n" if complete else b""))
        reply = c.read_reply()
        assert reply.status == 414
        assert not reply.keeps_alive
        c.expect_end()
    assert server.serves()


@contract("431", "drain", "survives")
@pytest.mark.parametrize("size", [9_000, 65_536, 1 << 20])
@pytest.mark.parametrize("kind", ["one field", "many fields", "no end"])
def test_header_too_long(server: Server, size: int, kind: str) -> None:
    start = b"GET /hello.txt HTTP/1.1\r\nHost: x\r\n"
    fields = {
        "one field": b"X: " + b"v" * size + b"\r\n\r\n",
        "many fields": b"X: v\r\n" * (size // 6) + b"\r\n",
        "no end": b"X: " + b"v" * size,
    }
    with server.connect() as c:
        c.send(start + fields[kind])
        reply = c.read_reply()
        assert reply.status == 431
        assert not reply.keeps_alive
        c.expect_end()
    assert server.serves()


@contract("414", "431", "pipelining")
def test_heads_of_every_length_around_the_limit(server: Server) -> None:
    """Served or refused, never mixed up: one request that just fits, one that just does not, on one
    connection.
    """
    for size in range(8100, 8300, 3):
        head = request("/hello.txt", f"X: {'v' * size}")
        with server.connect() as c:
            c.send(request("/one.bin") + head)
            assert c.read_reply().body == b"\0"
            reply = c.read_reply()
            assert reply.status in (200, 431), f"a head of {len(head)} bytes"
            assert reply.status == 431 or reply.body == HELLO


@contract("survives", "drain", "400", "414")
@pytest.mark.parametrize("kind", ["text", "lines", "binary", "zeros", "line ends", "spaces"])
def test_64_kib_of_junk(server: Server, kind: str) -> None:
    """The reply arrives although the client sends all of its junk before it reads."""
    size = 65_536
    junk = {
        "text": b"junk" * (size // 4),
        "lines": b"this is not a request\r\n" * (size // 23),
        "binary": bytes(range(256)) * (size // 256),
        "zeros": bytes(size),
        "line ends": b"\r\n" * (size // 2),
        "spaces": b" " * size,
    }[kind]
    with server.connect() as c:
        c.send(junk)
        c.finish_sending()
        data = c.read_all()
        assert c.ended == "closed", c.transcript()
        if kind != "line ends":  # empty lines before a request are no error, and then nothing came
            assert data.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 414 ")), c.transcript()
    assert server.serves()


@contract("400", "404")
def test_an_error_page_repeats_nothing_of_the_request(server: Server) -> None:
    """What a request says and a page repeats is a script in somebody's browser."""
    for path in ("/<script>alert(1)</script>", "/%3Cscript%3Ealert(1)%3C/script%3E"):
        assert b"alert(1)" not in server.get(path).body
