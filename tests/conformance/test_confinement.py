"""No file outside DOCROOT, and nothing but regular files. wire.py looks for the secret in every
byte received.
"""

import os
from pathlib import Path

import pytest

from tests.conformance.matrix import contract, kind
from tests.conformance.process import Server, Unprivileged, meanwhile
from tests.conformance.programs import Start, Traced
from tests.conformance.site import HELLO, Site
from tests.conformance.wire import SECRET, request

pytestmark = kind("shared")
REFUSED = (400, 403, 404)

#: How paths are read: tests/unit/reply_test.c; where they lead: tests/unit/open_below_test.c.
OUTSIDE = [
    *("/../secret.txt", "/sub%2f..%2f%2e%2e%2fsecret.txt", "/link-folder-inside/../../secret.txt"),
    *("/link-outside.txt", "/link-absolute.txt", "/link-parent/secret.txt", "/link-parent/"),
    *("/link-environ", "/link-loop", "//etc/passwd"),
]
INSIDE = {
    "/sub/link-inside.txt": HELLO,
    "/link-folder-inside/page.html": b"sub page\n",
    "/link-folder-inside/": b"sub index\n",
}


def check_confined(server: Server, *paths: str) -> None:
    for path in paths:
        reply = server.get(path)
        assert reply.status in REFUSED, path
        for part in (SECRET, b"root:", b"PATH="):
            assert part not in reply.body, path


@contract("outside", "403", "404", "docroot", "links-inside")
def test_dots_and_links(start: Start, docroot: Site, tmp_path: Path) -> None:
    """That docroot is a link is its starter's affair; what counts is below. A mechanism follows all
    links that stay there, or none; where an absolute one leads depends on the mounts.
    """
    link = tmp_path / "link-to-docroot"
    link.symlink_to(docroot.root)
    server = start(root=link)
    check_confined(server, *OUTSIDE)
    replies = [server.get(path) for path in INSIDE]
    assert {reply.status for reply in replies} in ({200}, {403})
    for reply, body in zip(replies, INSIDE.values(), strict=True):
        assert reply.status == 403 or reply.body == body
    assert server.get("/link-absolute-inside.txt").status in (200, 403)


@contract("outside", "links-inside", "get")
@pytest.mark.parametrize("error", ["ENOSYS", "EPERM"])
def test_without_openat2(traced: Traced, error: str) -> None:
    """Old kernels, containers' filters: then a walk. A ring has an openat2 that no filter sees."""
    server, _ = traced("openat2", inject=f"openat2:error={error}")
    links = 200 if server.target.model.ring else 403
    expected = {
        "/hello.txt": 200,
        "/sub/page.html": 200,
        "/a/deep/folder/page.html": 200,
        "/a/deep/none/page.html": 404,
        "/fifo": 403,
        "/hello.txt/x": 404,
        "/link-folder-inside/page.html": links,
    }
    for path, status in expected.items():
        assert server.get(path).status == status, path
    check_confined(server, *OUTSIDE)


#: A file and a link, a folder and a link: each comes to the other's place, and back. A walk that
#: opens by name what it has just found to be a folder is led out here.
SWAPS = [
    *(("file", "spare"), ("file-link", "file"), ("file", "file-link"), ("spare", "file")),
    *(("real", "spare"), ("link", "real"), ("real", "link"), ("spare", "real")),
]


@contract("outside")
def test_what_changes_while_it_is_looked_at(start: Start, own_site: Site) -> None:
    """To check a path and then to open it is to open another one: here it changes all the time."""

    def change() -> None:
        for old, new in SWAPS:
            os.rename(own_site.root / old, own_site.root / new)

    own_site.outside("secret.txt")
    own_site.outside("folder/page.txt")
    own_site.write("real/page.txt", HELLO)
    own_site.write("file", HELLO)
    os.symlink("../folder", own_site.root / "link")
    os.symlink("../secret.txt", own_site.root / "file-link")
    server = start(root=own_site.root)
    with meanwhile(change):
        for path in ("/file", "/real/page.txt") * 150:
            reply = server.get(path)
            assert reply.body == HELLO or reply.status in REFUSED


@contract("regular-only", "403", "survives")
def test_no_fifo_no_socket(server: Server, docroot: Site) -> None:
    """open() of a FIFO waits for a writer unless told not to; and read() gets what one wrote."""
    for path in ("/fifo", "/socket"):
        for method in ("GET", "HEAD"):
            assert server.get(path, method=method).status in (403, 404)
    writer = os.open(docroot.root / "fifo", os.O_RDWR | os.O_NONBLOCK)
    try:
        os.write(writer, b"from the fifo")
        reply = server.ask(request("/fifo") + request("/hello.txt"))
        assert reply.status in (403, 404)
        assert b"from the fifo" not in reply.body
    finally:
        os.close(writer)
    assert server.serves()


@contract("regular-only", "403")
def test_no_device_and_nothing_unreadable(start: Start, own_site: Site, unprivileged: Unprivileged) -> None:
    server = start(user=unprivileged)
    for path in ("/unreadable.txt", "/unreadable/page.html", "/unreadable/"):
        assert server.get(path).status == 403, path
    assert server.serves()
    try:
        for name, minor in (("null", 3), ("zero", 5)):
            os.mknod(own_site.root / name, 0o020666, os.makedev(1, minor))
            os.close(os.open(own_site.root / name, os.O_RDONLY))
    except OSError:
        return  # device nodes need privileges this user does not have
    server = start(root=own_site.root)
    assert [server.get(path).status for path in ("/null", "/zero")] == [403, 403]
    assert server.serves()
