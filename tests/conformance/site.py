"""The folder the servers serve, and what lies beside it that they never may."""

import contextlib
import functools
import os
import random
import socket
from pathlib import Path

from tests.conformance.wire import SECRET

OLD = 784111777  #: Sun, 06 Nov 1994 08:49:37 GMT, the example of every RFC on HTTP
OLD_DATE = "Sun, 06 Nov 1994 08:49:37 GMT"
#: What is served is made from it: nobody can know a reply beforehand (labs/grader).
SEED = int(os.environ.get("SITE_SEED", "0"))
HELLO = b"hello, world\n"
if SEED:
    _random = random.Random(SEED)
    HELLO = bytes(_random.choices(b"abcdefghijklmnopqrstuvwxyz ", k=_random.randrange(13, 60)))
SPARSE_SIZE = (4 << 30) + (1 << 20) + 7  #: does not fit into 32 bits, and is no round number
SPARSE_END = b"the last bytes of a sparse file\n"


def bigger_than_socket_buffers() -> int:
    """So many bytes cannot all wait between a server and a client with a small receive buffer."""
    largest_send_buffer = 4 << 20
    with contextlib.suppress(OSError, ValueError, IndexError):
        largest_send_buffer = int(Path("/proc/sys/net/ipv4/tcp_wmem").read_text().split()[2])
    return min(max(8 << 20, 2 * largest_send_buffer), 64 << 20)


@functools.cache
def noise(n: int) -> bytes:
    """Bytes in which a piece that is missing, doubled or displaced shows. Fast: a block, numbered
    and repeated.
    """
    block = random.Random(7 + SEED).randbytes(65536 - 8)
    count = n // 65536 + 1
    return b"".join(i.to_bytes(8, "big") + block for i in range(count))[:n]


class Site:
    """A docroot `root` inside the folder `top`. All can read everything, whatever the umask."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.root = top / "docroot"
        self.root.mkdir(mode=0o755)
        os.chmod(top, 0o755)
        os.chmod(self.root, 0o755)
        self.write("index.html", b"<!doctype html><title>index</title>\n")
        self.write("hello.txt", HELLO)

    def write(self, name: str, data: bytes, mtime: float = OLD) -> Path:
        path = self.root / name
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        path.write_bytes(data)
        os.chmod(path, 0o644)
        os.utime(path, (mtime, mtime))
        return path

    def sparse(self, name: str, size: int, end: bytes = b"") -> Path:
        path = self.write(name, b"")
        with path.open("r+b") as file:
            file.truncate(size)
            file.seek(size - len(end))
            file.write(end)
        os.utime(path, (OLD, OLD))
        return path

    def outside(self, name: str) -> None:
        path = self.top / name
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        path.write_bytes(SECRET + b"\n")
        os.chmod(path, 0o644)


def build(top: Path) -> Site:
    """The docroot that the tests share and never change."""
    site = Site(top)
    site.write("empty.txt", b"")
    site.write("one.bin", b"\0")
    site.write("big.bin", noise(bigger_than_socket_buffers()))
    site.write("medium.bin", noise(300_007))
    site.write("ünïcode-€.txt", b"unicode")
    site.write("sub/index.html", b"sub index\n")
    site.write("sub/page.html", b"sub page\n")
    site.write("a/deep/folder/page.html", b"deep page\n")
    site.sparse("sparse.bin", SPARSE_SIZE, SPARSE_END)
    _add_special_files(site)
    return site


def _add_special_files(site: Site) -> None:
    site.outside("secret.txt")
    site.outside("index.html")
    links = {
        "sub/link-inside.txt": "../hello.txt",
        "link-folder-inside": "sub",
        "link-outside.txt": "../secret.txt",
        "link-absolute.txt": str(site.top / "secret.txt"),
        "link-absolute-inside.txt": str(site.root / "hello.txt"),
        "link-parent": "..",
        "link-loop": "link-loop",
        "link-environ": "/proc/self/environ",
    }
    for name, target in links.items():
        os.symlink(target, site.root / name)
    os.mkfifo(site.root / "fifo", 0o644)
    unix = socket.socket(socket.AF_UNIX)
    here = os.open(site.root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        unix.bind(f"/proc/self/fd/{here}/socket")  # a path as short as sun_path wants it
    finally:
        os.close(here)
        unix.close()
    for name, mode in (("unreadable.txt", 0o000), ("unreadable/page.html", 0o644)):
        os.chmod(site.write(name, SECRET), mode)
    os.chmod(site.root / "unreadable", 0o000)
