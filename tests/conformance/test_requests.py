"""GET and HEAD: what is served, and what its head says."""

from __future__ import annotations

import hashlib
import time

import pytest

from conformance import site
from conformance.contract import contract
from conformance.process import Server
from conformance.programs import Start
from conformance.site import HELLO, NAMES, OLD, SPARSE_END, SPARSE_SIZE, TYPES, Site
from conformance.wire import request


@contract("get", "content-length")
def test_get(server: Server) -> None:
    reply = server.get("/hello.txt")
    assert (reply.status, reply.body) == (200, HELLO)
    assert reply.need("Content-Length") == str(len(HELLO))


@contract("head", "content-length", "content-type", "last-modified", "date")
@pytest.mark.parametrize("path", ["/hello.txt", "/", "/empty.txt", "/nothing", "/no-index/"])
def test_head_is_the_head_of_get(server: Server, path: str) -> None:
    get = server.get(path)
    with server.connect() as c:
        c.send(request(path, "Connection: close", method="HEAD"))
        head = c.read_reply("HEAD")
        c.expect_end()
    drop = ("date",)
    assert head.status == get.status
    assert [f for f in head.fields if f[0].lower() not in drop] == [
        f for f in get.fields if f[0].lower() not in drop
    ]


@contract("any-length", "content-length")
@pytest.mark.parametrize("name", ["empty.txt", "one.bin", "medium.bin", "big.bin"])
def test_files_arrive_as_they_are(server: Server, docroot: Site, name: str) -> None:
    content = (docroot.root / name).read_bytes()
    reply = server.get(f"/{name}")
    assert reply.status == 200
    assert reply.need("Content-Length") == str(len(content))
    assert len(reply.body) == len(content)
    assert hashlib.sha256(reply.body).digest() == hashlib.sha256(content).digest()


@contract("any-length", "signals")
def test_a_slow_reader_gets_every_byte(server: Server, docroot: Site) -> None:
    """A full socket buffer makes send() take less than it was given, or wait."""
    content = (docroot.root / "big.bin").read_bytes()[: 4 << 20]
    with server.connect(receive_buffer=4096) as c:
        c.send(request("/big.bin", f"Range: bytes=0-{len(content) - 1}", "Connection: close"))
        reply = c.read_head()
        time.sleep(server.patience.silence)
        assert reply.status == 206
        assert c.read_exactly(len(content)) == content
        c.expect_end()


@contract("any-length", "content-length", "range")
def test_beyond_4_gib(server: Server) -> None:
    reply = server.get("/sparse.bin", method="HEAD")
    assert (reply.status, reply.need("Content-Length")) == (200, str(SPARSE_SIZE))
    first = SPARSE_SIZE - len(SPARSE_END) - 5
    reply = server.get("/sparse.bin", f"Range: bytes={first}-")
    assert reply.status == 206
    assert reply.body == bytes(5) + SPARSE_END
    assert reply.need("Content-Range") == f"bytes {first}-{SPARSE_SIZE - 1}/{SPARSE_SIZE}"


@contract("any-length")
def test_a_large_file_can_be_left_in_the_middle(server: Server) -> None:
    with server.connect() as c:
        c.send(request("/sparse.bin"))
        assert c.read_head().need("Content-Length") == str(SPARSE_SIZE)
        assert c.read_exactly(1 << 20) == bytes(1 << 20)
    assert server.serves()


@contract("index")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/", b"<!doctype html><title>index</title>\n"),
        ("/sub/", b"sub index\n"),
        ("/?query", b"<!doctype html><title>index</title>\n"),
    ],
)
def test_index(server: Server, path: str, body: bytes) -> None:
    reply = server.get(path)
    assert (reply.status, reply.body) == (200, body)
    assert reply.need("Content-Type").startswith("text/html")


@contract("index", "403", "404")
def test_a_folder_without_an_index_is_not_listed(server: Server) -> None:
    reply = server.get("/no-index/")
    assert reply.status in (403, 404)
    assert b"page.html" not in reply.body


@contract("index")
@pytest.mark.parametrize("path", ["/sub", "/sub?x=1", "/no-index"])
def test_a_folder_without_its_slash(server: Server, path: str) -> None:
    """The page of a folder sent for `/sub` would have its relative links lead astray."""
    reply = server.get(path)
    assert reply.status in (301, 308, 403, 404)
    if reply.status in (301, 308):
        assert reply.need("Location").split("?")[0].endswith("/" + path.split("?")[0][1:] + "/")


@contract("index", "outside")
def test_a_folder_never_redirects_to_another_host(server: Server) -> None:
    """`//host` in Location is the address of another server."""
    reply = server.get("//sub")
    if reply.status in (301, 302, 307, 308):
        assert not reply.need("Location").startswith("//")


@contract("date")
@pytest.mark.parametrize("path", ["/hello.txt", "/nothing"])
def test_date(server: Server, path: str) -> None:
    before = int(time.time())
    reply = server.get(path)
    assert before - 1 <= reply.date("Date") <= time.time() + 1


@contract("last-modified")
def test_last_modified(server: Server) -> None:
    assert server.get("/hello.txt").date("Last-Modified") == OLD
    assert server.get("/epoch.txt").date("Last-Modified") == 0


@contract("last-modified", "date")
@pytest.mark.parametrize(
    "moment",
    [
        -1,  # 31 Dec 1969 23:59:59
        -5 * 86400,  # a Saturday: weekday and day counted backwards
        -315619200,  # 1 Jan 1960
        951782400,  # 29 Feb 2000
        1078012799,  # the last second of 28 Feb 2004
        1709164800,  # 29 Feb 2024
        1735689599,  # 31 Dec 2024 23:59:59
        2147483647,  # where 32 bits end
        2147483648,
        4102444800,  # 2100, no leap year
        4107542400,  # 1 Mar 2100
    ],
)
def test_dates_of_the_calendar(start: Start, own_site: Site, moment: int) -> None:
    own_site.write("dated.txt", b"x", mtime=moment)
    assert start(root=own_site.root).get("/dated.txt").date("Last-Modified") == moment


@contract("content-type")
@pytest.mark.parametrize("name", TYPES)
def test_content_type(server: Server, name: str) -> None:
    reply = server.get(f"/types/{name}")
    assert reply.status == 200
    assert reply.need("Content-Type").split(";")[0] == TYPES[name]


@contract("percent", "get")
@pytest.mark.parametrize("name", NAMES)
def test_names_that_need_encoding(server: Server, name: str) -> None:
    reply = server.get(NAMES[name])
    assert (reply.status, reply.body) == (200, name.encode())


@contract("percent")
@pytest.mark.parametrize("path", ["/%68ello.txt", "/%68%65%6c%6c%6F.txt", "/hello%2Etxt"])
def test_percent_encoding(server: Server, path: str) -> None:
    assert server.get(path).body == HELLO


@contract("percent", "400", "outside")
@pytest.mark.parametrize("path", ["/%zz", "/%", "/%4", "/hello.txt%", "/%%41", "/%-1", "/% 41"])
def test_broken_percent_encoding(server: Server, path: str) -> None:
    assert server.get(path).status == 400


@contract("percent", "400", "outside")
@pytest.mark.parametrize("path", ["/hello.txt%00", "/hello.txt%00.html", "/%00", "/..%00/"])
def test_nul_in_a_path(server: Server, path: str) -> None:
    """In C the path would end there, and another file than the one asked for be sent."""
    reply = server.get(path)
    assert reply.status in (400, 404)
    assert reply.body != HELLO


@contract("percent")
def test_percent_encoding_is_resolved_once(server: Server) -> None:
    """%2541 is %41, the name of a file, and not A."""
    assert server.get("/%2541.txt").body == b"%41.txt"
    assert server.get("/%252e%252e/secret.txt").status in (400, 403, 404)


@contract("query")
@pytest.mark.parametrize("query", ["?", "?x=1&y=2", "?../../secret.txt", "?a?b", "?%zz", "?/"])
def test_query(server: Server, query: str) -> None:
    reply = server.get(f"/hello.txt{query}")
    assert (reply.status, reply.body) == (200, HELLO)


@contract("absolute-form")
@pytest.mark.parametrize(
    "path",
    [
        "http://localhost/hello.txt",
        "http://some.other.host:8080/hello.txt",
        "HTTP://LOCALHOST/hello.txt?query",
        "http://[::1]:80/hello.txt",
    ],
)
def test_absolute_form(server: Server, path: str) -> None:
    assert server.get(path).body == HELLO


@contract("absolute-form", "index")
@pytest.mark.parametrize("path", ["http://localhost", "http://localhost/", "http://localhost?x=/y"])
def test_absolute_form_of_the_root(server: Server, path: str) -> None:
    reply = server.get(path)
    assert (reply.status, reply.body) == (200, b"<!doctype html><title>index</title>\n")


@contract("version-1.0")
@pytest.mark.parametrize("fields", [(), ("Host: localhost",)])
def test_http_1_0(server: Server, fields: tuple[str, ...]) -> None:
    with server.connect() as c:
        c.send(request("/hello.txt", *fields, version="1.0", host=None))
        reply = c.read_reply()
        assert (reply.status, reply.body) == (200, HELLO)
        c.expect_end()


@contract("get")
def test_field_names_in_any_case_and_without_spaces(server: Server) -> None:
    with server.connect() as c:
        c.send(b"GET /hello.txt HTTP/1.1\r\nhOST:x\r\ncONNECTION:\t close \t\r\nx-empty:\r\n\r\n")
        assert c.read_reply().body == HELLO
        c.expect_end()


@contract("get")
def test_lines_that_end_in_lf_alone(server: Server) -> None:
    """RFC 9112 section 2.2 lets a server take them; all servers here shall do the same."""
    with server.connect() as c:
        c.send(b"\r\nGET /hello.txt HTTP/1.1\nHost: x\nConnection: close\n\n")
        assert c.read_reply().body == HELLO


@contract("get")
def test_many_and_long_but_allowed_fields(server: Server) -> None:
    fields = [f"X-{i}: {'v' * 50}" for i in range(60)]
    assert server.get("/hello.txt", *fields).body == HELLO
    assert server.get("/hello.txt", f"X-Long: {'v' * 4000}").body == HELLO
    assert server.get(f"/hello.txt?{'q' * 4000}").body == HELLO


@contract("docroot", "get")
def test_a_file_that_comes_later_is_served(start: Start, own_site: Site) -> None:
    server = start(root=own_site.root)
    assert server.get("/later.txt").status == 404
    own_site.write("later.txt", b"later")
    assert server.get("/later.txt").body == b"later"


@contract("last-modified", "content-length", "get")
def test_a_file_that_is_replaced_is_served_anew(start: Start, own_site: Site) -> None:
    server = start(root=own_site.root)
    own_site.write("file.txt", b"one")
    assert server.get("/file.txt").body == b"one"
    (own_site.root / "file.txt").unlink()
    own_site.write("file.txt", b"second", mtime=site.OLD + 60)
    reply = server.get("/file.txt")
    assert (reply.body, reply.date("Last-Modified")) == (b"second", site.OLD + 60)
