"""A scene: the few clients that visit a server while it is recorded, and what each of them does (benchmarks/scenes).

One thread plays them all, so that what one does comes in the order in which it stands there.
"""

import contextlib
import heapq
import os
import select
import selectors
import socket
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from quest.ground.errors import InputError, RepetitionError
from quest.ground.toml import Doc, Rule, load
from quest.spec.model import Docroot

FOLDER = Path("benchmarks/scenes")
CHUNK = 65536
READ, WRITE = -1.0, -2.0
EVENTS = {READ: selectors.EVENT_READ, WRITE: selectors.EVENT_WRITE}
ONE_READ_S = 0.002  # what a client receives within that time is one act

Milliseconds = Annotated[float, Rule(least=0)]


@dataclass(frozen=True)
class Client:
    """A client, or several that do the same one after the other."""

    name: Annotated[str, Rule(pattern="[A-Z]+"), Doc("its letter; several letters are as many clients", example='"A"')]
    at_ms: Annotated[Milliseconds, Doc("when it connects")] = 0.0
    each_ms: Annotated[Milliseconds, Doc("of several clients each comes that much after the one before")] = 0.0
    pause_ms: Annotated[Milliseconds, Doc("how long it pauses in the middle of its request")] = 0.0
    requests: Annotated[int, Rule(least=1), Doc("so many in one go, on one connection")] = 1
    target: Annotated[str, Rule(pattern="/[!-~]*"), Doc("what it asks for", example='"/big.bin"')] = "/"
    resets: Annotated[bool, Doc("it gives up when its pause is over: its connection is reset")] = False
    read_after_ms: Annotated[Milliseconds, Doc("it reads nothing for that long after its request")] = 0.0
    receive_bytes: Annotated[int, Rule(least=0), Doc("the size of its receive buffer; 0: the kernel's own")] = 0

    def does(self) -> str:
        """What is out of the ordinary about it, in a word or two."""
        if self.resets:
            return "resets"
        if self.read_after_ms:
            return "reads late"
        if self.pause_ms:
            return "pauses"
        return "pipelines" if self.requests > 1 else ""


@dataclass(frozen=True)
class Scene:
    """What is served, and the clients that come."""

    title: Annotated[str, Rule(filled=True), Doc("as printed above the recording", example='"Four clients, one slow"')]
    question: Annotated[str, Rule(filled=True), Doc("what it is to show", example='"Which client has to wait?"')]
    servers: Annotated[tuple[str, ...], Rule(filled=True, distinct=True), Doc("those it is recorded with")]
    clients: Annotated[tuple[Client, ...], Rule(filled=True), Doc("the clients", key="client")]
    args: Annotated[
        Mapping[str, tuple[str, ...]], Doc("more options of a server", example='{ "03-prefork" = ["-w", "16"] }')
    ] = field(default_factory=dict)
    docroot: Annotated[Docroot, Doc("what is served")] = field(default_factory=Docroot)
    signals: Annotated[int, Rule(least=0), Doc("room in the server's queue of signals; 0: as much as there is")] = 0
    disk: Annotated[
        str, Rule(pattern="|[a-z]+=[0-9]+x[0-9]+"), Doc("files on a museum disk, in /disk", example='"files=1x2000"')
    ] = ""
    disk_speed: Annotated[float, Rule(above=0), Doc("how fast that disk is; 1: as in 2006")] = 1.0

    def fault(self) -> str:
        """A letter is one client's; and for an unknown server there is no argument."""
        letters = "".join(client.name for client in self.clients)
        if len(set(letters)) != len(letters):
            return "two clients have the same letter"
        if any(client.resets and not (client.pause_ms or client.read_after_ms) for client in self.clients):
            return 'a client that resets has sent nothing without "pause_ms" or "read_after_ms"'
        if unknown := sorted(set(self.args) - set(self.servers)):
            return f'"args" names {unknown[0]}, which is not among "servers"'
        return ""

    def each(self) -> dict[str, Client]:
        """Letter -> the client, each with its own time, in alphabetical order."""
        alone = {
            letter: Client(**{**client.__dict__, "name": letter, "at_ms": client.at_ms + number * client.each_ms})
            for client in self.clients
            for number, letter in enumerate(client.name)
        }
        return dict(sorted(alone.items()))


def names() -> list[str]:
    """The scenes there are."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def read(name: str) -> Scene:
    """The scene of that name. InputError if there is none, or for what is wrong with it."""
    if name not in names():
        raise InputError(f"there is no scene {name}; {FOLDER} has {', '.join(names()) or 'none'}")
    return load(Scene, FOLDER / f"{name}.toml")


# ---- what the clients saw ------------------------------------------------------------------------


@dataclass(frozen=True)
class Act:
    """One thing that a client did, or that came to it, at a time of CLOCK_REALTIME: connect, connected, send, receive,
    close, reset.
    """

    time: float
    what: str
    bytes: int = 0


@dataclass(frozen=True)
class Visit:
    """What a client saw; times in seconds of CLOCK_REALTIME, the clock that strace -ttt prints."""

    name: str
    port: int
    connecting: float
    connected: float
    half_sent: float  # equal to sent if it did not pause
    sent: float
    first_byte: float  # equal to done if nothing came
    done: float
    acts: tuple[Act, ...] = ()


def request(client: Client) -> bytes:
    """All that it sends."""
    one = f"GET {client.target} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    return (f"{one}\r\n" * (client.requests - 1) + f"{one}Connection: close\r\n\r\n").encode()


class _Player:
    """One client while it is there."""

    def __init__(self, client: Client, port: int) -> None:
        self.client, self.port, self.own_port = client, port, 0
        self.reply = b""
        self.acts: list[Act] = []
        self.socket = socket.socket()

    def steps(self) -> Iterator[float]:
        """All that it does. What is given is how many seconds it rests; READ: until there is something to read; WRITE:
        until it is connected.
        """
        client, text = self.client, request(self.client)
        yield from self.connect()
        half = len(text) // 2 if client.pause_ms else 0
        if half:
            self.send(text[:half])
            yield client.pause_ms / 1000
        if not client.resets or client.read_after_ms:
            self.send(text[half:])
            yield client.read_after_ms / 1000
        if client.resets:
            self.reset()
            return
        while self.acts[-1].what != "close":
            yield READ
            self.receive()

    def act(self, what: str, size: int = 0) -> None:
        self.acts.append(Act(time.time(), what, size))

    def connect(self) -> Iterator[float]:
        """Where the queue of the listening socket is full that takes a second and more, in which others have to go on:
        maybe the server waits for one of them.
        """
        if self.client.receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.client.receive_bytes)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.act("connect")
        with contextlib.suppress(BlockingIOError):
            self.socket.connect(("127.0.0.1", self.port))
        poll = select.poll()  # not select(): it takes no descriptor above 1023
        poll.register(self.socket, select.POLLOUT)
        if not poll.poll(0):  # else at once, as ever
            yield WRITE
        if number := self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(number, os.strerror(number))
        self.act("connected")
        self.socket.setblocking(True)
        self.own_port = self.socket.getsockname()[1]

    def send(self, text: bytes) -> None:
        self.socket.sendall(text)
        self.act("send", len(text))

    def reset(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()
        self.act("reset")

    def receive(self) -> None:
        part = self.socket.recv(CHUNK)
        if len(self.reply) < CHUNK:
            self.reply += part
        last = self.acts[-1]
        if not part:
            self.act("close")
        elif last.what == "receive" and time.time() - last.time < ONE_READ_S:
            self.acts[-1] = Act(last.time, "receive", last.bytes + len(part))
        else:
            self.act("receive", len(part))

    def visit(self) -> Visit:
        """RepetitionError if it was no page that it got."""
        if not self.client.resets and not self.reply.startswith(b"HTTP/1.1 200 "):
            raise RepetitionError(f"client {self.client.name}: expected a page, got {self.reply[:40]!r}")
        return visit_of(self.client.name, self.own_port, self.acts)


def visit_of(name: str, port: int, acts: Sequence[Act]) -> Visit:
    """The six times, of what a client did."""
    sends = [act.time for act in acts if act.what == "send"]
    first = next((act.time for act in acts if act.what == "receive"), acts[-1].time)
    return Visit(name, port, acts[0].time, acts[1].time, sends[0], sends[-1], first, acts[-1].time, tuple(acts))


def play(clients: Mapping[str, Client], port: int, timeout_s: float, lead_s: float = 0.0) -> list[Visit]:
    """All clients, in the order of their letters. RepetitionError if one of them fails.

    `lead_s`: until the first connects.
    """
    players = [_Player(client, port) for client in clients.values()]
    try:
        _play(players, time.monotonic() + lead_s, timeout_s)
        return [player.visit() for player in players]
    finally:
        for player in players:
            player.socket.close()


def _play(players: Sequence[_Player], zero: float, timeout_s: float) -> None:
    """Each goes on when its time has come, or when there is something to read. `zero`: of time.monotonic(), which no
    change of the date moves; only what is noted of an act has the clock of strace.
    """
    due = [(zero + player.client.at_ms / 1000, number) for number, player in enumerate(players)]
    heapq.heapify(due)
    steps = [player.steps() for player in players]
    waiting: dict[int, float] = {}  # number -> READ or WRITE

    def go_on(number: int) -> None:
        player = players[number]
        try:
            rest_s = next(steps[number], None)
        except OSError as error:
            raise RepetitionError(f"client {player.client.name}: {error.strerror}") from None
        if number in waiting and waiting[number] != rest_s:
            reading.unregister(player.socket)
            del waiting[number]
        if rest_s is None:
            return
        if rest_s not in EVENTS:
            heapq.heappush(due, (time.monotonic() + rest_s, number))
        elif number not in waiting:
            reading.register(player.socket, EVENTS[rest_s], number)
            waiting[number] = rest_s

    with selectors.DefaultSelector() as reading:
        while due or waiting:
            now = time.monotonic()
            if now > zero + timeout_s:
                late = ", ".join(sorted(players[number].client.name for number in waiting)) or "one"
                raise RepetitionError(f"client {late}: no whole reply within {timeout_s:g} s")
            until = min(due[0][0] if due else now + 1.0, zero + timeout_s)
            for key, _ in reading.select(max(0.0, until - now)):
                go_on(key.data)
            while due and due[0][0] <= time.monotonic():
                go_on(heapq.heappop(due)[1])
