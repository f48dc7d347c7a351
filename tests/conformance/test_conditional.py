"""If-Modified-Since, Range and If-Range: RFC 9110 sections 13 and 14."""

from __future__ import annotations

from email.utils import formatdate

import pytest

from conformance.contract import contract
from conformance.process import Server
from conformance.programs import Start
from conformance.servers import SHAPES
from conformance.site import HELLO, OLD, OLD_DATE, Site
from conformance.wire import request

SIZE = len(HELLO)


@contract("if-modified-since")
@pytest.mark.parametrize(
    "date",
    [
        OLD_DATE,
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        formatdate(OLD + 1, usegmt=True),
        formatdate(OLD + 86400, usegmt=True),
        formatdate(OLD + 20 * 365 * 86400, usegmt=True),
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_not_modified(server: Server, date: str, method: str) -> None:
    with server.connect() as c:
        fields = (f"If-Modified-Since: {date}", "Connection: close")
        c.send(request("/hello.txt", *fields, method=method))
        reply = c.read_reply(method)
        assert reply.status == 304
        assert reply.get("Content-Length") in (None, str(SIZE))
        c.expect_end()  # 304 has no body, whatever its Content-Length


@contract("if-modified-since")
@pytest.mark.parametrize(
    "date",
    [
        formatdate(OLD - 1, usegmt=True),
        formatdate(0, usegmt=True),
        "Saturday, 05-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:36 1994",
    ],
)
def test_modified_since(server: Server, date: str) -> None:
    reply = server.get("/hello.txt", f"If-Modified-Since: {date}")
    assert (reply.status, reply.body) == (200, HELLO)


@contract("if-modified-since")
@pytest.mark.parametrize(
    "date",
    [
        "",
        "yesterday",
        "1994-11-06T08:49:37Z",
        "Sun, 06 Nov 2094",
        "Sun, 06 Xyz 2094 08:49:37 GMT",
        "Sun, 99 Nov 2094 08:49:37 GMT",
        "Sun, 06 Nov 2094 25:49:37 GMT",
        "Sun, 06 Nov 2094 08:49:37 GMT and more",
        "Sun, 06 Nov 99999999999999999999 08:49:37 GMT",
        "9" * 400,
        "Sun, 06 Nov 2094 -8:49:37 GMT",
        "%s%n%s%n",
        "-1",
    ],
)
def test_a_date_that_is_none_is_ignored(server: Server, date: str) -> None:
    reply = server.get("/hello.txt", f"If-Modified-Since: {date}")
    assert (reply.status, reply.body) == (200, HELLO)


@contract("if-modified-since", "if-range")
def test_garbage_is_no_date_for_a_file_from_before_1970(start: Start, own_site: Site) -> None:
    """A parser that says -1 for `no date` says at the same time 31 Dec 1969 23:59:59."""
    own_site.write("older.txt", HELLO, mtime=-1)
    server = start(root=own_site.root)
    assert server.get("/older.txt", "If-Modified-Since: garbage").status == 200
    assert server.get("/older.txt", "Range: bytes=0-1", "If-Range: garbage").status == 200


@contract("if-modified-since")
def test_if_modified_since_of_something_missing(server: Server) -> None:
    assert server.get("/nothing", f"If-Modified-Since: {OLD_DATE}").status == 404


@pytest.mark.servers(*SHAPES)
@contract("preconditions")
def test_the_order_of_preconditions(server: Server) -> None:
    """RFC 9110 section 13.2.2; all of it is in tests/unit/reply_test.c."""
    since, before = f"If-Modified-Since: {OLD_DATE}", formatdate(OLD - 1, usegmt=True)
    expected: dict[tuple[str, ...], int] = {
        (): 200,
        ('If-None-Match: "x"', since): 200,
        ("If-None-Match: *",): 304,
        ('If-Match: "x"',): 412,
        ("If-Match: *", f"If-Unmodified-Since: {before}"): 200,
        (f"If-Unmodified-Since: {before}", since): 412,
    }
    for method in ("GET", "HEAD"):
        for fields, status in expected.items():
            reply = server.get("/hello.txt", *fields, method=method)
            assert reply.status == status, fields
            assert (reply.body == HELLO) == (status == 200 and method == "GET"), fields
    assert server.get("/nothing", 'If-Match: "x"').status == 404


@contract("range", "content-length")
@pytest.mark.parametrize(
    ("ranges", "first", "last"),
    [
        ("0-0", 0, 0),
        ("0-4", 0, 4),
        ("5-", 5, SIZE - 1),
        ("-5", SIZE - 5, SIZE - 1),
        (f"{SIZE - 1}-", SIZE - 1, SIZE - 1),
        (f"0-{SIZE - 1}", 0, SIZE - 1),
        ("0-", 0, SIZE - 1),
        (f"0-{SIZE}", 0, SIZE - 1),
        ("3-99999", 3, SIZE - 1),
        ("3-99999999999999999999999", 3, SIZE - 1),
        ("-99999", 0, SIZE - 1),
        ("-99999999999999999999999", 0, SIZE - 1),
        ("007-0008", 7, 8),
    ],
)
def test_range(server: Server, ranges: str, first: int, last: int) -> None:
    reply = server.get("/hello.txt", f"Range: bytes={ranges}")
    assert reply.status == 206
    assert reply.body == HELLO[first : last + 1]
    assert reply.need("Content-Range") == f"bytes {first}-{last}/{SIZE}"
    assert reply.need("Content-Length") == str(last + 1 - first)
    assert reply.date("Last-Modified") == OLD


@contract("range")
@pytest.mark.parametrize(
    "ranges", [f"{SIZE}-", f"{SIZE}-{SIZE + 5}", "999-1000", "99999999999999999999999-", "-0"]
)
def test_range_not_satisfiable(server: Server, ranges: str) -> None:
    reply = server.get("/hello.txt", f"Range: bytes={ranges}")
    assert reply.status == 416
    assert reply.need("Content-Range") == f"bytes */{SIZE}"
    assert HELLO not in reply.body


@contract("range")
@pytest.mark.parametrize("ranges", ["0-", "0-0", "5-"])
def test_range_of_an_empty_file(server: Server, ranges: str) -> None:
    reply = server.get("/empty.txt", f"Range: bytes={ranges}")
    assert (reply.status, reply.need("Content-Range")) == (416, "bytes */0")


@contract("range")
def test_the_last_bytes_of_an_empty_file(server: Server) -> None:
    """RFC 9110 calls it satisfiable, and has no Content-Range that could say so."""
    assert server.get("/empty.txt", "Range: bytes=-5").status in (200, 416)


@contract("range")
@pytest.mark.parametrize(
    "value",
    [
        "bytes=0-1,3-4",
        "bytes=0-1, -1",
        "bytes=5-4",
        "bytes=",
        "bytes=-",
        "bytes",
        "bytes=a-b",
        "bytes=0x0-0x5",
        "bytes=1",
        "bytes=--1",
        "bytes=-1-",
        "bytes=1-2-3",
        "bytes=+0-4",
        "bytes=0-+4",
        "bytes=0-4x",
        "bytes 0-4",
        "bytes=0-4;q=1",
        "lines=0-4",
        "0-4",
        "",
        "=0-4",
    ],
)
def test_several_and_malformed_ranges_are_ignored(server: Server, value: str) -> None:
    reply = server.get("/hello.txt", f"Range: {value}")
    assert (reply.status, reply.body) == (200, HELLO)
    assert reply.get("Content-Range") is None


@contract("range", "head")
def test_range_means_nothing_to_head(server: Server) -> None:
    """RFC 9110 section 14.2: a range is defined for GET alone."""
    reply = server.get("/hello.txt", "Range: bytes=0-1", method="HEAD")
    assert (reply.status, reply.need("Content-Length")) == (200, str(SIZE))


@contract("range")
def test_a_range_of_something_missing(server: Server) -> None:
    assert server.get("/nothing", "Range: bytes=0-1").status == 404


@contract("range", "any-length")
def test_a_range_across_many_sends(server: Server, docroot: Site) -> None:
    content = (docroot.root / "medium.bin").read_bytes()
    first, last = 65535, len(content) - 2
    reply = server.get("/medium.bin", f"Range: bytes={first}-{last}")
    assert reply.status == 206
    assert reply.body == content[first : last + 1]


@contract("range", "if-modified-since")
def test_not_modified_comes_before_range(server: Server) -> None:
    fields = ("Range: bytes=0-1", f"If-Modified-Since: {OLD_DATE}")
    assert server.get("/hello.txt", *fields).status == 304


@contract("if-range")
def test_if_range_of_the_same_file(server: Server) -> None:
    reply = server.get("/hello.txt", "Range: bytes=0-1", f"If-Range: {OLD_DATE}")
    assert (reply.status, reply.body) == (206, HELLO[:2])


@contract("if-range")
@pytest.mark.parametrize(
    "validator",
    [
        formatdate(OLD - 1, usegmt=True),
        formatdate(OLD + 1, usegmt=True),
        formatdate(OLD + 86400, usegmt=True),
        '"an-etag"',
        'W/"an-etag"',
        "garbage",
        "",
    ],
)
@pytest.mark.parametrize("ranges", ["0-1", "999-1000"])
def test_if_range_of_another_file(server: Server, validator: str, ranges: str) -> None:
    reply = server.get("/hello.txt", f"Range: bytes={ranges}", f"If-Range: {validator}")
    assert (reply.status, reply.body) == (200, HELLO)


@contract("if-range")
def test_if_range_with_the_etag_if_there_is_one(server: Server) -> None:
    etag = server.get("/hello.txt").get("ETag")
    if etag is None or etag.startswith("W/"):
        pytest.skip("this server sends no strong ETag, and the contract asks for none")
    reply = server.get("/hello.txt", "Range: bytes=0-1", f"If-Range: {etag}")
    assert reply.status == 206


@contract("if-range")
def test_if_range_without_a_range(server: Server) -> None:
    assert server.get("/hello.txt", f"If-Range: {OLD_DATE}").status == 200
