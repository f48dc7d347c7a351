"""No file outside DOCROOT, and nothing but regular files. wire.py looks for the secret in every
byte received.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.matrix import contract, kind
from conformance.process import Server, Unprivileged, meanwhile
from conformance.programs import Start, Traced
from conformance.site import HELLO, Site
from conformance.wire import SECRET, request

pytestmark = kind("below")
REFUSED = (400, 403, 404)

CLIMBING = [
    *("/../secret.txt", "/..", "/../index.html", "/sub/../../secret.txt", "/./../secret.txt"),
    *("/%2E%2E/secret.txt", "/sub%2f..%2f..%2fsecret.txt", "/..%5csecret.txt", "//../secret.txt"),
    *("/..\\secret.txt", "/....//secret.txt", "/..;/secret.txt", "/%c0%ae%c0%ae/secret.txt"),
    *("/hello.txt/../../secret.txt", "/link-folder-inside/../../secret.txt", "/%00/../secret.txt"),
    *("/%252e%252e/secret.txt", "/../docroot-not/x", "http://localhost/%2e%2e/secret.txt"),
]
LINKS = [
    *("/link-outside.txt", "/link-absolute.txt", "/link-folder-outside/secret.txt"),
    *("/link-parent/secret.txt", "/link-parent/", "/link-parent/docroot/hello.txt"),
    *("/link-root/etc/passwd", "/link-environ", "/link-cwd/"),
    *("/link-loop", "/link-loop/x", "/link-dangling.txt"),
]
INSIDE = {
    "/link-inside.txt": HELLO,
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


@contract("outside", "403", "404")
def test_dots_and_links_that_lead_out(server: Server, docroot: Site) -> None:
    check_confined(server, *CLIMBING, *LINKS)
    for slashes in ("/", "//", "///", "/%2f", "%2f"):  # with one taken off, a path of its own
        check_confined(server, f"{slashes}{docroot.top}/secret.txt", f"{slashes}etc/passwd")
    reply = server.get("/sub/../hello.txt")
    assert reply.status in REFUSED or reply.body == HELLO


@contract("links-inside", "outside")
def test_links_that_stay_inside(server: Server) -> None:
    """A mechanism follows them all or none; where an absolute one leads depends on the mounts."""
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
        "/nothing": 404,
        "/hello.txt/x": 404,
        "/link-inside.txt": links,
        "/link-folder-inside/page.html": links,
    }
    for path, status in expected.items():
        assert server.get(path).status == status, path
    check_confined(server, *CLIMBING, *LINKS)


def flip(root: Path, *goals: str) -> None:
    for goal in goals:
        os.symlink(goal, root / "spare")
        os.replace(root / "spare", root / "flip")


def swap_with_a_link(root: Path) -> None:
    """A walk that opens by name what it has just found to be a folder is led out here."""
    for old, new in (("real", "spare"), ("link", "real"), ("real", "link"), ("spare", "real")):
        os.rename(root / old, root / new)


@contract("outside")
@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda root: flip(root, "hello.txt", "../secret.txt"), "/flip"),
        (lambda root: flip(root, "real", "../folder"), "/flip/page.txt"),
        (swap_with_a_link, "/real/page.txt"),
    ],
    ids=["file", "folder", "folder and link"],
)
def test_what_changes_while_it_is_looked_at(
    start: Start, own_site: Site, change: Callable[[Path], None], path: str
) -> None:
    """To check a path and then to open it is to open another one: here it changes all the time."""
    own_site.outside("secret.txt")
    own_site.outside("folder/page.txt")
    own_site.write("real/page.txt", HELLO)
    os.symlink("../folder", own_site.root / "link")
    os.symlink("hello.txt" if path == "/flip" else "real", own_site.root / "flip")
    server = start(root=own_site.root)
    with meanwhile(lambda: change(own_site.root)):
        for _ in range(150):
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
def test_no_device_and_nothing_unreadable(
    start: Start, own_site: Site, unprivileged: Unprivileged
) -> None:
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


@contract("outside", "docroot")
def test_the_docroot_may_be_a_link(start: Start, own_site: Site) -> None:
    """The person who starts the server says where the docroot is; what counts is below it."""
    link = own_site.top / "link-to-docroot"
    link.symlink_to("docroot")
    own_site.outside("secret.txt")
    server = start(root=link)
    assert server.get("/hello.txt").body == HELLO
    check_confined(server, "/../secret.txt")
