"""hold-connections: asks once on each, says when all are there, keeps them; else one line.

Run: python3 -m pytest tests/micro/test_hold_connections.py --variants=glibc,diet
"""

from __future__ import annotations

import socket
import subprocess
import threading
from pathlib import Path

import pytest
from micro_support import PATIENCE_S, run

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"


class Server:
    """Answers the first request of each connection with `reply`, in two parts, and keeps it."""

    def __init__(self, reply: bytes) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = str(self.listener.getsockname()[1])
        self.reply = reply
        self.clients: list[socket.socket] = []
        self.requests: list[bytes] = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            client, _ = self.listener.accept()
            self.clients.append(client)
            self.requests.append(client.recv(1000))
            client.sendall(self.reply[:7])
            client.sendall(self.reply[7:])
            if not self.reply:
                client.close()


def test_holds_them_until_it_is_ended(folder: Path) -> None:
    server = Server(OK)
    program = str(folder / "hold-connections")
    command = [program, "-n", "5", "-p", server.port, "/x.html"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "holding 5 connections\n"
        assert len(server.clients) == 5
        assert server.requests[4].startswith(b"HEAD /x.html HTTP/1.1\r\nHost: ")
        for client in server.clients:
            client.setblocking(False)
            with pytest.raises(BlockingIOError):  # not closed, and nothing more was sent
                client.recv(1)
        holder.terminate()
        holder.wait(PATIENCE_S)
    server.clients[0].setblocking(True)
    assert server.clients[0].recv(1) == b""


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (b"", "the server has closed a connection"),
        (OK.replace(b"200", b"503"), "expected a page, got HTTP/1.1 503"),
        (OK[:-2] + b"X: " + b"x" * 5000, "a reply whose head is longer than 4096 bytes"),
    ],
)
def test_a_server_that_does_not_keep_them_is_an_error(
    folder: Path, reply: bytes, said: str
) -> None:
    port = Server(reply).port
    status, out, err = run([folder / "hold-connections", "-n", "2", "-p", port, "/"])
    assert (status, out) == (1, "")
    assert err.startswith(f"hold-connections: {said}")


def test_nobody_there_is_an_error(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
    status, out, err = run([folder / "hold-connections", "-n", "2", "-p", port, "/"])
    assert (status, out) == (1, "")
    assert err == "hold-connections: connect: Connection refused\n"
