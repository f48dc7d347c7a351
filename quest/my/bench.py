"""What a check is given: a folder of files to be served, and a way to start the server."""

import os
import resource
import socket
from collections.abc import Sequence
from pathlib import Path

from quest.my.box import Box
from quest.my.server import Server

OPEN_FILES = 16384  #: of a server and of its checker; what the hard limit allows
TURNS = 4096  #: by how many bytes a block of fill() can be turned


def raise_limit() -> int:
    """Opens the limit of open files of this process as far as it goes; what it is."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return most


class Bench:
    """The folder is new for each run, and what is in it is arbitrary: nothing can be learnt by heart."""

    def __init__(self, run: Sequence[str], top: Path, box: Box, patience: float, own_network: bool) -> None:
        self.run, self.top, self.box, self.patience, self.own_network = tuple(run), top, box, patience, own_network
        self.files = raise_limit()
        self.root = top / "doc"
        self.root.mkdir(exist_ok=True)
        self.port = 0
        self.index = f"index {os.urandom(4).hex()}\n".encode()
        self.hello = b"hello " + os.urandom(4).hex().encode() + b"\n"
        self.put("index.html", self.index)
        self.put("hello.txt", self.hello)

    def put(self, name: str, data: bytes) -> bytes:
        """Writes a file below DOCROOT; its bytes."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return data

    def fill(self, name: str, size: int) -> bytes:
        """A file of random bytes: blocks of 64 KiB, each the first one turned by another number of bytes."""
        block = os.urandom(1 << 16)
        parts = (block[n % TURNS :] + block[: n % TURNS] for n in range(size // len(block) + 1))
        return self.put(name, b"".join(parts)[:size])

    def hole(self, name: str, size: int) -> None:
        """A file of zeros that takes no room."""
        with (self.root / name).open("wb") as file:
            file.truncate(size)

    def start(
        self, *options: str, files: int = 0, port: int = 0, trace: Sequence[str] = (), patience: float = 0.0
    ) -> Server:
        """The server, listening. files: how many it may open."""
        self.port = port or free_port()
        command = [*self.run, "-p", str(self.port), *options, str(self.root)]
        return Server(self.box, command, self.port, patience or self.patience, files or self.files, trace)


def free_port() -> int:
    """One that nothing listens on now."""
    with socket.socket() as any_one:
        any_one.bind(("127.0.0.1", 0))
        return int(any_one.getsockname()[1])
