"""Who gets a connection, what epoll has registered, what small writes wait for, and how many calls a way to wait takes:
facts, and no times.
"""

import http.client
import os
import re
import resource
import signal
from pathlib import Path

import pytest

from tests.conformance import proc
from tests.conformance.process import wait_until
from tests.micro.micro_support import PATIENCE_S, Micro, await_end_of_session, children_ignored, limited, table

WAYS = ("accept", "epoll", "exclusive", "reuseport")


@pytest.mark.parametrize("way", WAYS)
def test_each_connection_is_of_one_process(micro: Micro, way: str) -> None:
    micro.skip_in("diet", why="dietlibc does not know EPOLLEXCLUSIVE")
    found = micro.rows(f"accept-share -n 4 -c 40 -u 100 {way}")
    assert [row["process"] for row in found] == [0, 1, 2, 3]
    assert sum(row["connections"] for row in found) == 40
    assert sum(row["share"] for row in found) == pytest.approx(100, abs=0.01)
    assert all(row["share"] == pytest.approx(row["connections"] * 2.5, abs=0.01) for row in found)


def test_one_process_gets_all(micro: Micro) -> None:
    micro.skip_in("diet", why="dietlibc does not know EPOLLEXCLUSIVE")
    assert micro.column("share", "accept-share -n 1 -c 5 -u 0 exclusive") == [100]


@pytest.fixture
def slow(micro: Micro) -> Micro:
    if not (micro.folder / "one-slow").exists():
        pytest.skip("not built in this variant")
    return micro


@pytest.mark.parametrize("way", WAYS)
def test_each_process_serves_and_ends(slow: Micro, way: str, tmp_path: Path) -> None:
    server = slow.start(f"one-slow -p 0 -w 3 -m {way} {tmp_path}", stdout=-1)
    try:
        assert server.stdout
        at = re.fullmatch(r"one-slow: listening on http://(127\.0\.0\.1:\d+)/\n", server.stdout.readline())
        assert at
        for target in ("/quick", "/slow") * 3:
            connection = http.client.HTTPConnection(at[1], timeout=PATIENCE_S)
            connection.request("GET", target)
            reply = connection.getresponse()
            assert (reply.status, len(reply.read()), reply.getheader("Connection")) == (200, 100, "close")
            connection.close()
    finally:
        server.send_signal(signal.SIGTERM)
        _, err = server.communicate(timeout=PATIENCE_S)
    said = [line for line in err.splitlines() if "running as root" not in line]
    assert (server.returncode, said) == (0, [])
    await_end_of_session(server.pid)


def test_no_process_outlives_the_first(slow: Micro, tmp_path: Path) -> None:
    server = slow.start(f"one-slow -p 0 -m exclusive {tmp_path}", stdout=-1)
    assert server.stdout and server.stdout.readline()
    server.kill()
    server.communicate(timeout=PATIENCE_S)
    await_end_of_session(server.pid)


def test_a_process_that_is_missing_is_an_error(slow: Micro, tmp_path: Path) -> None:
    """With one less its waits are those of another queue."""
    server = slow.start(f"one-slow -p 0 -w 3 -m accept {tmp_path}", stdout=-1)
    assert server.stdout and server.stdout.readline()
    missing = proc.children(server.pid)[1]
    os.kill(missing, signal.SIGKILL)
    assert wait_until(lambda: not proc.alive(missing), PATIENCE_S)
    server.terminate()
    _, err = server.communicate(timeout=PATIENCE_S)
    assert (server.returncode, err.splitlines()[-1]) == (1, "one-slow: a process has ended before it was told to")


@pytest.mark.parametrize("arguments", ["", "-m poll", "-m accept -w 65"])
def test_what_the_server_refuses(slow: Micro, arguments: str) -> None:
    status, out, err = slow.run(f"one-slow -p 0 {arguments} .")
    assert (status, out, err.count("\n")) == (2, "", 1)


# ---- epoll-facts, nagle


@pytest.mark.parametrize("way", ["edge", "oneshot"])
def test_a_registration_is_of_the_open_file(micro: Micro, way: str) -> None:
    micro.skip_in("diet")
    [row] = micro.rows(f"epoll-facts -n 3000 {way}")
    facts = [row[name] for name in ("closed_event", "delete_ebadf", "reused_event", "undup_event")]
    assert facts == [1, 1, 1, 0]
    assert way == "edge" or row["out_of_order"] == 0, "one thread at a time has the stream"


@pytest.mark.parametrize(("arguments", "least", "most"), [("one", 1, 1), ("two", 2, 2), ("-d 1 bytes", 2, 200)])
def test_segments_are_counted(micro: Micro, arguments: str, least: int, most: int) -> None:
    micro.skip_in("diet", "musl")
    for sent in micro.column("segments", f"nagle -n 3 {arguments}"):
        assert least <= sent <= most


def test_nagle_joins_what_waits(micro: Micro) -> None:
    """200 writes of a byte make a few segments: the first goes at once, the others wait for its acknowledgement."""
    micro.skip_in("diet", "musl")
    assert max(micro.column("segments", "nagle -n 3 bytes")) < 200


# ---- pool-knee


@pytest.fixture
def pool(micro: Micro) -> Micro:
    if not (micro.folder / "pool-knee").exists():
        pytest.skip("not built in this variant")
    return micro


def test_no_more_clients_are_served_than_there_are_threads(pool: Micro) -> None:
    """All come at once, and each holds its thread: three threads are busy all the time, and never a fourth."""
    command = f"pool-knee -w 3 -r 100000 -n 30 -u 3000 {pool.folder / '05-pool'} @"
    status, out, err = pool.run(command, children_ignored)
    assert (status, [line for line in err.splitlines() if "running as root" not in line]) == (0, [])
    [row] = table(out)
    assert list(row) == ["load", "wait_us", "hold_us", "stay", "there"]
    assert 0 < row["load"] <= 100
    assert row["wait_us"] > row["hold_us"] > 0, "27 of 30 wait for others"
    assert row["stay"] == pytest.approx(1 + row["wait_us"] / row["hold_us"], rel=1e-3)
    assert row["there"] == pytest.approx(3 * row["load"] / 100 * row["stay"], rel=1e-3), "N = X R"
    assert not pool.at.exists()


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGALRM])
def test_who_is_ended_leaves_no_folder(pool: Micro, ending: signal.Signals) -> None:
    """SIGALRM is its own, after 300 s."""
    child = pool.start(f"pool-knee -r 1 -n 100 {pool.folder / '05-pool'} @", stdout=-1)
    assert wait_until((pool.at / "reply").exists, PATIENCE_S)
    child.send_signal(ending)
    child.communicate(timeout=PATIENCE_S)
    assert child.returncode == -ending
    await_end_of_session(child.pid)
    assert not pool.at.exists()


def test_a_server_that_is_none_and_a_folder_that_is_there(pool: Micro, tmp_path: Path) -> None:
    assert "has not said where it listens" in pool.complaint("pool-knee /bin/true @", status=1)
    assert pool.complaint("pool-knee /nowhere/05-pool @") == "/nowhere/05-pool: No such file or directory"
    assert "File exists" in pool.complaint(f"pool-knee {pool.folder / '05-pool'} {tmp_path}", status=1)
    assert not pool.at.exists()
    assert tmp_path.exists()


# ---- ring-map

#: Way, clients, requests at once, and the least and most system calls for a request that this can take.
CALLS = [
    ("epoll", 1, 1, 3, 3), ("epoll", 1, 16, 18 / 16, 2), ("epoll", 20, 1, 2, 3),
    ("plain", 1, 1, 2, 2), ("plain", 1, 16, 1, 2), ("plain", 20, 1, 0, 2), ("defer", 20, 16, 0, 2),
    ("multishot", 1, 1, 1, 2), ("multishot", 20, 16, 0, 2), ("multishot-defer", 20, 1, 0, 2),
    ("chain", 1, 16, 1 / 16, 1), ("chain", 20, 1, 0, 2), ("chain", 20, 16, 0, 1),
    ("epoll-joined", 1, 16, 3 / 16, 2), ("epoll-joined", 20, 1, 2, 3),
    ("joined", 1, 16, 1 / 16, 1), ("joined", 20, 16, 0, 1),
]  # fmt: skip


@pytest.fixture
def ring_map(micro: Micro) -> Micro:
    if not (micro.folder / "ring-map").exists():
        pytest.skip("not built in this variant")
    return micro


@pytest.mark.parametrize(("way", "clients", "depth", "least", "most"), CALLS)
def test_every_request_is_answered(
    ring_map: Micro, way: str, clients: int, depth: int, least: float, most: float
) -> None:
    """The clients count replies by their bytes, and the program ends when each has all of its own."""
    [row] = ring_map.rows(f"ring-map -c {clients} -d {depth} -t 400 {way}", may_lack=not way.startswith("epoll"))
    assert list(row) == ["cpu_ns", "rate", "calls", "client_busy", "wait_share"]
    assert row["cpu_ns"] > 0 < row["rate"]
    assert least * 0.99 <= row["calls"] <= most * 1.05
    assert 0 < row["client_busy"] <= 101


@pytest.mark.slow
def test_it_has_as_many_clients_as_it_may(ring_map: Micro) -> None:
    for way in ("epoll", "chain", "joined"):
        assert ring_map.column("rate", f"ring-map -c 1000 -d 16 -t 40 {way}", may_lack=way != "epoll")[0] > 0


@pytest.mark.parametrize("arguments", ["", "select", "-c 1001 epoll", "-d 17 epoll", "epoll plain"])
def test_what_the_map_refuses(ring_map: Micro, arguments: str) -> None:
    status, out, err = ring_map.run(f"ring-map {arguments}")
    assert (status, out, err.count("\n")) == (2, "", 1)


def test_no_descriptors_no_sample(ring_map: Micro) -> None:
    status, out, err = ring_map.run("ring-map -c 50 epoll", limited(resource.RLIMIT_NOFILE, 40))
    assert (status, out) == (1, "")
    assert "Too many open files" in err
