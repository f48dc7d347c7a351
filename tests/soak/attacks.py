"""make attacks: who is served while a crowd that is slow on purpose fills a server.

Each server may have 128 descriptors, and 200 attackers come. Beside them one customer asks for a
small file again and again, waits for two seconds at most, and is counted. The table goes to
attacks.txt, which the chapter on overload shows.
"""

import argparse
import re
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

DESCRIPTORS, ATTACKERS, PATIENCE = 128, 200, 2.0
FILLING, MEASURED = 3.0, 6.0  #: seconds
FIXED = ("02-fork", "03-prefork", "04-threads", "05-pool")
LOOPS = ("06-select", "07-poll", "08-sigio", "09-epoll", "10-kqueue", "11-sendfile", "12-aio")
SERVERS = (
    {name: ["-w", "64"] for name in FIXED}
    | {name: [] for name in (*LOOPS, "13-uring", "14-owfat")}
    | {"15-slashdot": ["-w", "1"]}
)
HEAD = b"GET /large HTTP/1.1\r\nHost: x\r\n"
SMALL = b"GET /small HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


class Attacker:
    """One connection. `act` is what it does ten times a second; False: it has been sent away."""

    def __init__(self, port: int, first: bytes, act: Callable[[socket.socket], bool]) -> None:
        self.port, self.first, self.act = port, first, act
        self.socket: socket.socket | None = None
        self.connect()

    def connect(self) -> None:
        self.close()
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.setblocking(False)
        self.socket.connect_ex(("127.0.0.1", self.port))
        self.greeted = False

    def close(self) -> None:
        if self.socket is not None:
            self.socket.close()

    def turn(self, returns: bool) -> None:
        assert self.socket is not None
        try:
            if not self.greeted:
                self.socket.send(self.first)
                self.greeted = True
            elif not self.act(self.socket):
                raise ConnectionResetError
        except BlockingIOError:
            pass
        except OSError:
            if returns:
                self.connect()


def send_a_byte(client: socket.socket) -> bool:
    return client.send(b"x") == 1


def read_a_byte(client: socket.socket) -> bool:
    return client.recv(1) != b""


def look(client: socket.socket) -> bool:
    """Takes nothing of what has come: a server that waits for it waits for ever."""
    return client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0


#: name -> the first bytes, what follows, and whether one that was sent away comes again
ATTACKS: dict[str, tuple[bytes, Callable[[socket.socket], bool], bool]] = {
    "slow head": (HEAD + b"X: ", send_a_byte, True),
    "no read": (HEAD + b"\r\n", look, False),
    "drip": (HEAD + b"\r\n", read_a_byte, False),
    "reconnect": (HEAD + b"\r\n", read_a_byte, True),
}


def ask(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as client:
            client.sendall(SMALL)
            return client.recv(4096).startswith(b"HTTP/1.1 200 ")
    except OSError:
        return False


def crowd(port: int, attack: str, over: threading.Event) -> None:
    first, act, returns = ATTACKS[attack]
    attackers = [Attacker(port, first, act) for _ in range(ATTACKERS)]
    while not over.wait(0.1):
        for attacker in attackers:
            attacker.turn(returns)
    for attacker in attackers:
        attacker.close()


def served(binary: Path, options: list[str], attack: str, docroot: str) -> str:
    """The customer's replies, in per cent of those it asked for."""
    command = ["prlimit", f"--nofile={DESCRIPTORS}", str(binary), "-p", "0", *options, docroot]
    over = threading.Event()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        found = re.search(rb":(\d+)/", server.stdout.readline())
        if found is None:
            return "-"
        port = int(found[1])
        attackers = threading.Thread(target=crowd, args=(port, attack, over))
        attackers.start()
        time.sleep(FILLING)
        end, replies = time.monotonic() + MEASURED, []
        while time.monotonic() < end:
            replies.append(ask(port))
            time.sleep(0.05)
        over.set()
        attackers.join()
        server.terminate()
    return f"{100 * sum(replies) // len(replies)} %"


def table(build: Path, chosen: list[str]) -> list[str]:
    lines = [f"{'server':14}" + "".join(f"{name:>12}" for name in ATTACKS)]
    with tempfile.TemporaryDirectory() as docroot, ThreadPoolExecutor(4) as runs:
        Path(docroot).chmod(0o755)
        Path(docroot, "small").write_text("hello\n", encoding="utf-8")
        with Path(docroot, "large").open("wb") as large:
            large.truncate(300_000_000)
        for name in chosen:
            binary = build / "bin" / name
            cells = runs.map(lambda a: served(binary, SERVERS[name], a, docroot), ATTACKS)  # noqa: B023
            lines.append(f"{name:14}" + "".join(f"{cell:>12}" for cell in cells))
            print(lines[-1], file=sys.stderr, flush=True)
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("attacks.txt"))
    parser.add_argument("servers", nargs="*", help=f"default: {' '.join(SERVERS)}")
    given = parser.parse_args()
    unknown = [name for name in given.servers if name not in SERVERS]
    if unknown:
        parser.error(f"no such server: {' '.join(unknown)}")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 8 * ATTACKERS), most))
    lines = table(given.build, given.servers or list(SERVERS))
    if not given.servers:
        given.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
