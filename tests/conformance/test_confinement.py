"""No file outside DOCROOT, and nothing but regular files. wire.py looks for the secret in every
byte received.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from conformance import tracing
from conformance.contract import contract
from conformance.process import Server, Target, Unprivileged
from conformance.programs import Start
from conformance.site import HELLO, Site
from conformance.wire import SECRET, request

REFUSED = (400, 403, 404)

CLIMBING = [
    "/../secret.txt",
    "/..",
    "/../",
    "/../index.html",
    "/../folder/secret.txt",
    "/sub/../../secret.txt",
    "/sub/../..",
    "/./../secret.txt",
    "/a/../../x",
    "/a/../../secret.txt",
    "/%2e%2e/secret.txt",
    "/%2E%2E/secret.txt",
    "/.%2e/secret.txt",
    "/%2e./secret.txt",
    "/..%2fsecret.txt",
    "/..%2Fsecret.txt",
    "/%2e%2e%2fsecret.txt",
    "/sub%2f..%2f..%2fsecret.txt",
    "/..%5csecret.txt",
    "/..\\secret.txt",
    "//../secret.txt",
    "/..//secret.txt",
    "/....//secret.txt",
    "/..;/secret.txt",
    "/%c0%ae%c0%ae/secret.txt",
    "/%252e%252e/secret.txt",
    "/hello.txt/../../secret.txt",
    "/link-folder-inside/../../secret.txt",
    "/%00/../secret.txt",
    "/../docroot-not/x",
    "http://localhost/../secret.txt",
    "http://../secret.txt",
    "http://localhost/%2e%2e/secret.txt",
]

LINKS = [
    "/link-outside.txt",
    "/link-absolute.txt",
    "/link-folder-outside/secret.txt",
    "/link-parent/secret.txt",
    "/link-parent/",
    "/link-parent/index.html",
    "/link-parent/docroot/hello.txt",
    "/link-root/etc/passwd",
    "/link-environ",
    "/link-cwd/",
    "/link-loop",
    "/link-loop/x",
    "/link-dangling.txt",
]


def check_confined(server: Server, path: str) -> None:
    reply = server.get(path)
    assert reply.status in REFUSED
    assert SECRET not in reply.body
    assert b"root:" not in reply.body
    assert b"PATH=" not in reply.body


@contract("outside", "403", "404")
@pytest.mark.parametrize("path", CLIMBING)
def test_dots(server: Server, path: str) -> None:
    check_confined(server, path)


@contract("outside")
@pytest.mark.parametrize("path", LINKS)
def test_links_that_lead_out(server: Server, path: str) -> None:
    check_confined(server, path)


@contract("outside")
@pytest.mark.parametrize("slashes", ["/", "//", "///", "/%2f", "%2f"])
def test_absolute_paths(server: Server, docroot: Site, slashes: str) -> None:
    """`//etc/passwd` with one slash taken off is a path of its own."""
    check_confined(server, f"{slashes}{docroot.top}/secret.txt")
    check_confined(server, f"{slashes}etc/passwd")


@contract("outside", "get")
@pytest.mark.parametrize(
    "path", ["/./hello.txt", "//hello.txt", "/sub/../hello.txt", "/sub//page.html"]
)
def test_dots_that_stay_inside(server: Server, path: str) -> None:
    """Served or refused: what counts is that nothing else is sent."""
    reply = server.get(path)
    assert reply.status in REFUSED or reply.body in (HELLO, b"sub page\n")


@contract("links-inside")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/link-inside.txt", HELLO),
        ("/sub/link-inside.txt", HELLO),
        ("/link-folder-inside/page.html", b"sub page\n"),
        ("/link-folder-inside/", b"sub index\n"),
    ],
)
def test_links_that_stay_inside(server: Server, path: str, body: bytes) -> None:
    reply = server.get(path)
    assert (reply.status, reply.body) == (200, body) or reply.status == 403


@contract("links-inside")
def test_an_absolute_link_is_refused_even_if_it_leads_back(server: Server) -> None:
    """Whether it does depends on where the docroot is mounted; neither mechanism follows it."""
    assert server.get("/link-absolute-inside.txt").status in (200, 403)


@contract("links-inside", "outside")
def test_one_answer_for_all_links_inside(server: Server) -> None:
    """A mechanism follows them all or none."""
    paths = ("/link-inside.txt", "/sub/link-inside.txt", "/link-folder-inside/page.html")
    assert len({server.get(path).status for path in paths}) == 1


@contract("outside", "links-inside", "get")
@pytest.mark.parametrize("error", ["ENOSYS", "EPERM"])
def test_without_openat2(target: Target, start: Start, tmp_path: Path, error: str) -> None:
    """Old kernels do not have it, and containers' filters forbid it: then a walk, with the same
    guarantees. A ring has an openat2 of its own, which no filter sees.
    """
    links = 200 if target.model.ring else 403
    trace = tracing.Trace(tmp_path / "trace", "openat2", inject=f"openat2:error={error}")
    server = start(wrapper=trace.wrapper(), env=tracing.ENV)
    assert server.get("/hello.txt").body == HELLO
    assert server.get("/sub/page.html").body == b"sub page\n"
    assert server.get("/a/deep/folder/page.html").body == b"deep page\n"
    assert server.get("/a/deep/none/page.html").status == 404
    assert server.get("/fifo").status in (403, 404)
    assert server.get("/link-inside.txt").status == links
    assert server.get("/link-folder-inside/page.html").status == links
    assert server.get("/nothing").status == 404
    assert server.get("/hello.txt/x").status == 404
    for path in CLIMBING + LINKS:
        check_confined(server, path)


@contract("outside")
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_link_that_changes_while_it_is_looked_at(start: Start, own_site: Site, kind: str) -> None:
    """To check a path and then to open it is to open another one: here it changes all the time."""
    inside, outside, name = {
        "file": ("hello.txt", "../secret.txt", "flip"),
        "folder": ("real", "../folder", "flip"),
    }[kind]
    own_site.outside("secret.txt")
    own_site.outside("folder/page.txt")
    own_site.write("real/page.txt", HELLO)
    done = threading.Event()

    def flip() -> None:
        spare = own_site.root / "spare"
        while not done.is_set():
            for goal in (inside, outside):
                os.symlink(goal, spare)
                os.replace(spare, own_site.root / name)

    server = start(root=own_site.root)
    os.symlink(inside, own_site.root / name)
    thread = threading.Thread(target=flip, daemon=True)
    thread.start()
    try:
        path = "/flip" if kind == "file" else "/flip/page.txt"
        for _ in range(150):
            reply = server.get(path)
            assert reply.body == HELLO or reply.status in REFUSED
    finally:
        done.set()
        thread.join()


@contract("outside")
def test_a_folder_that_changes_places_with_a_link(start: Start, own_site: Site) -> None:
    """A walk that opens by name what it has just found to be a folder is led out here."""
    own_site.outside("folder/page.txt")
    own_site.write("real/page.txt", HELLO)
    os.symlink("../folder", own_site.root / "link")
    done = threading.Event()

    def swap() -> None:
        root, spare = own_site.root, own_site.root / "spare"
        while not done.is_set():
            os.rename(root / "real", spare)
            os.rename(root / "link", root / "real")
            os.rename(root / "real", root / "link")
            os.rename(spare, root / "real")

    server = start(root=own_site.root)
    thread = threading.Thread(target=swap, daemon=True)
    thread.start()
    try:
        for _ in range(150):
            reply = server.get("/real/page.txt")
            assert reply.body == HELLO or reply.status in REFUSED
    finally:
        done.set()
        thread.join()


@contract("regular-only", "403")
@pytest.mark.parametrize("path", ["/fifo", "/socket"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_no_fifo_no_socket(server: Server, path: str, method: str) -> None:
    """open() of a FIFO waits for a writer unless told not to."""
    assert server.get(path, method=method).status in (403, 404)
    assert server.serves()


@contract("regular-only", "403")
def test_a_fifo_with_a_writer(server: Server, docroot: Site) -> None:
    writer = os.open(docroot.root / "fifo", os.O_RDWR | os.O_NONBLOCK)
    try:
        os.write(writer, b"from the fifo")
        reply = server.get("/fifo")
        assert reply.status in (403, 404)
        assert b"from the fifo" not in reply.body
    finally:
        os.close(writer)


@contract("regular-only", "403")
@pytest.mark.parametrize(("name", "minor"), [("null", 3), ("zero", 5)])
def test_no_device(start: Start, own_site: Site, name: str, minor: int) -> None:
    try:
        os.mknod(own_site.root / name, 0o020666, os.makedev(1, minor))
        os.close(os.open(own_site.root / name, os.O_RDONLY))
    except OSError as error:
        pytest.skip(f"device nodes need privileges this user does not have: {error.strerror}")
    server = start(root=own_site.root)
    assert server.get(f"/{name}").status in (403, 404)
    assert server.serves()


@contract("403")
@pytest.mark.parametrize("path", ["/unreadable.txt", "/unreadable/page.html", "/unreadable/"])
def test_unreadable(start: Start, path: str, unprivileged: Unprivileged) -> None:
    server = start(user=unprivileged)
    assert server.get(path).status in (403, 404)
    assert server.get("/unreadable.txt").status == 403
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


@contract("regular-only", "survives")
def test_a_request_for_a_fifo_holds_nobody_up(server: Server) -> None:
    with server.connect() as c:
        c.send(request("/fifo") + request("/hello.txt"))
        assert c.read_reply().status in (403, 404)
    assert server.serves()
