"""Descriptors, ports and sockets: which numbers there are, and what has been sent."""

import itertools
import resource
import socket
import subprocess
import threading

import pytest

from tests.micro.micro_support import PATIENCE_S, SANITIZED, Micro, limited, table


@pytest.mark.parametrize("way", ["socket", "open", "dup"])
def test_the_lowest_number_that_is_free(micro: Micro, way: str) -> None:
    """POSIX. 0, 1 and 2 are ours, 3 is what dup() makes copies of. A hole comes first."""
    found = micro.rows(f"fd-alloc -n 300 {way}")
    assert [row["open"] for row in found] == [*range(300)]
    assert [row["fd"] for row in found] == [*range(4, 304)]
    assert {row["refill_ns"] for row in found} == {"-"}
    growths = [row for row in found if row["grow_ns"] != "-"]
    assert [(row["fd"], row["grow_ns"] == row["call_ns"]) for row in growths] == [(256, True)]
    holes = micro.rows(f"fd-alloc -n 50 -l 10 {way}")
    assert [row["fd"] for row in holes] == [*range(4, 54)]
    assert all((row["refill_ns"] != "-") == (row["fd"] > 10) for row in holes)


def test_high_numbers_and_steps_and_a_thread_beside(micro: Micro) -> None:
    for least in (100, 128):
        found = micro.rows(f"fd-alloc -n 300 -m {least} dupfd")
        assert [row["fd"] for row in found] == [*range(least, 300)]
    stepped = micro.rows("fd-alloc -n 300 -k 11 dup")
    assert [row["open"] for row in stepped] == sorted([*range(0, 300, 11), 252]), (
        "no growth is left out"
    )
    beside = micro.column("fd", "fd-alloc -n 300 -t 2 dup")
    assert (len(beside), beside) == (300, sorted({*beside}))
    assert micro.variant == "diet" or beside[-1] == 303, "dietlibc opens some for the thread"


# ---- resolver


def test_a_name_is_resolved_beyond_the_low_descriptors(micro: Micro) -> None:
    micro.skip_in("musl", why="musl's resolver cannot be told of a port")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if resource.RLIM_INFINITY != most < 1200:
        pytest.skip(f"one process may have {most} descriptors here")
    for row in micro.rows("resolver -n 2 -d 1100"):
        assert 1100 <= row["socket"] < 1110
        assert row["answered"] == 1


def test_a_question_that_is_not_heard_is_not_answered(micro: Micro) -> None:
    micro.skip_in("musl", why="musl's resolver cannot be told of a port")
    command = ["unshare", "--net", str(micro.folder / "resolver"), "-n", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    if "unshare: " in done.stderr:
        pytest.skip(done.stderr)
    assert [row["answered"] for row in table(done.stdout)] == [0], "the loopback there is down"


# ---- port-bind

RANGE = range(32768, 61000)  # of a new network namespace


@pytest.mark.parametrize("way", ["ipv4", "ipv6"])
def test_odd_ports_come_first_and_the_last_is_refused(micro: Micro, way: str) -> None:
    *found, refused = micro.rows(f"port-bind -k 199 {way}", may_lack=True)
    ports = [row["port"] for row in found]
    assert [row["in_use"] for row in found] == [*range(0, len(RANGE), 199)]
    assert len({*ports} & {*RANGE}) == len(ports)
    for row in found:
        assert row["port"] % 2 == (row["in_use"] < len(RANGE) // 2)
        assert (row["connect_ns"], row["total_ns"], row["error"]) == ("-", row["bind_ns"], "-")
    assert [refused[name] for name in ("in_use", "port", "error")] == [28232, 0, "EADDRINUSE"]


@pytest.mark.parametrize("way", ["early", "late"])
def test_a_connection_has_a_port_of_the_range(micro: Micro, way: str) -> None:
    """bind() takes odd ports, to leave connect() the even ones."""
    found = micro.rows(f"port-bind -n 200 {way}", may_lack=True)
    assert len({*[row["port"] for row in found]} & {*RANGE}) == len(found) == 200
    for row in found:
        assert row["port"] % 2 == (way == "early")
        assert row["total_ns"] == row["bind_ns"] + row["connect_ns"]
        assert row["error"] == "-"


def test_ports_for_all_that_are_wanted(micro: Micro) -> None:
    # Few descriptors are enough: the children hold the sockets.
    few = limited(resource.RLIMIT_NOFILE, 512)
    assert len(micro.rows("port-bind -n 2000 -k 20 early", before=few, may_lack=True)) == 100
    if micro.variant not in SANITIZED:  # there it is the same, and too slow
        # Some port must be given twice, for another destination.
        found = micro.rows("port-bind -n 16000 -d 8 late")
        assert len({*[row["port"] for row in found]}) < len(found) == 16000


# ---- first-read, write-parts, in-flight


def test_what_the_first_read_gets(micro: Micro) -> None:
    """All of a short reply and the first of a long one; of two pieces the first, or both."""
    asked, head = 4096, 190
    for page, way, allowed in (
        (1000, "together", {head + 1000}),
        (65536, "together", {asked}),
        (1000, "apart", {head, head + 1000}),
        (65536, "apart", {head, asked}),
        (0, "apart", {head}),
    ):
        found = micro.rows(f"first-read -n 50 -p {page} {way}")
        assert {(row["asked"], row["reply"]) for row in found} == {(asked, head + page)}
        assert {row["got"] for row in found} <= allowed, (page, way)


def test_every_way_into_everything(micro: Micro) -> None:
    for way, where in itertools.product(("two", "copy", "writev"), ("pipe", "unix", "file")):
        found = micro.column("write_ns", f"write-parts -n 20 -p 8000 {way} {where}")
        assert (len(found), min(found) > 0) == (20, True), (way, where)


@pytest.mark.parametrize("way", ["read", "mmap", "sendfile", "splice"])
def test_the_pages_of_the_file_or_a_copy(micro: Micro, way: str) -> None:
    for size in (1, 20000, 32768):
        of_the_file = size if way in ("sendfile", "splice") else 0
        found = micro.rows(f"in-flight -n 5 -p {size} {way}", may_lack=True)
        assert found == [{"sent": size, "changed": of_the_file}] * 5


# ---- hold-connections

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"


class Server:
    """Answers the first request of each connection with `reply`, in two parts, and keeps it."""

    def __init__(self, reply: bytes) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
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


def test_connections_are_held_until_it_is_ended(micro: Micro) -> None:
    server = Server(OK)
    command = f"hold-connections -n 5 -p {server.port} /x.html"
    with micro.start(command, stdout=subprocess.PIPE) as holder:
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
        (OK.replace(b"200", b"503"), "expected a page, got HTTP/1.1 503 OK"),
        (OK[:-2] + b"X: " + b"x" * 5000, "a reply whose head is longer than 4096 bytes"),
        (None, "connect: Connection refused"),
    ],
)
def test_a_server_that_does_not_keep_them_is_an_error(
    micro: Micro, reply: bytes | None, said: str
) -> None:
    server = Server(reply or b"")
    port = server.port
    if reply is None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
    assert micro.complaint(f"hold-connections -n 2 -p {port} /") == said
