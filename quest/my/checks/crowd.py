"""Bytes and crowds: what a server does for large files, slow disks, known files, too many clients, many cores."""

import ctypes
import mmap
import os
import shutil
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

from quest.ground import foreign
from quest.my.bench import Bench
from quest.my.checks.many import close_all
from quest.my.checks.one import SMALL_WINDOW, SOON
from quest.my.client import Client, parsed
from quest.my.errors import Failed, Unseen
from quest.my.server import Server, connections, wait_for
from tests.conformance import proc

NOT_COPIED = 0.9  #: of the bytes in flight
HELD_SECONDS = (0.6, 3.0)  #: how long a file takes to be read
OPENED = 0x20  #: IN_OPEN of inotify(7)


def nocopy(bench: Bench) -> None:
    """The file is written over while its bytes wait in the sockets. A server that has copied them has sent the old
    ones; what the kernel sends of its cache is the cache's page, and so the new ones."""
    size = 3 << 20
    old = bench.put("3m.bin", b"o" * size)
    with bench.start() as server:
        window = size * 3 if bench.own_network else 1 << 18
        with server.client(window=window) as client:
            client.ask("/3m.bin", close=True)
            wait_for(lambda: client.received > 0, SOON * bench.patience)
            came = -1
            while client.received != came:
                came = client.received
                time.sleep(0.2)
            with (bench.root / "3m.bin").open("r+b") as file:
                file.write(b"n" * size)
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
            data, _ = client.rest(5 * bench.patience)
        status, body = parsed(data)
        if status != 200 or len(body) != len(old):
            raise Failed(f"GET /3m.bin was answered {status}, {len(body)} of {size} bytes")
        new = body[: came - (len(data) - len(body))].count(b"n")
        waited = max(1, min(came, len(body)))
        if new < NOT_COPIED * waited:
            raise Failed(f"{waited - new} of {waited} bytes that were on their way were copies that you had made")
        server.demand_alive("at a file of 3 MB")
    with bench.start() as server, server.client() as client:
        before = client.segments
        for _ in range(5):
            client.good("/hello.txt", bench.hello)
        if (packets := client.segments - before) > 5:
            raise Failed(f"5 small replies came in {packets} packets: head and file have to leave together (MSG_MORE)")


def _resident(path: Path) -> bool:
    """Whether a page of the file is in memory. mincore(2): to read it, even without waiting, would bring it there."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as pages:
        there = (ctypes.c_ubyte * (len(pages) // mmap.PAGESIZE + 1))()
        start = ctypes.c_char.from_buffer(pages)
        failed = ctypes.CDLL(None).mincore(ctypes.byref(start), ctypes.c_size_t(len(pages)), there)
        del start
    return not failed and any(one & 1 for one in there)


def _put_out_of_cache(path: Path) -> bool:
    """Whether it is out of memory. A server may ask that, and need not fear the disk if it is in."""
    for _ in range(20):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        if not _resident(path):
            return True
        time.sleep(0.02)
    return False


def slowdisk(bench: Bench) -> None:
    """strace holds the first call of each thread that reads of one file. If others seem to wait for it, it is held for
    longer: a busy machine's delays stay as they are, and those of a server that waits for the file grow with it."""
    if shutil.which("strace") is None:
        raise Unseen("strace is not installed, which makes one file slow")
    bench.fill("cold.bin", 200_000)
    others = {f"small{number}.txt": bench.fill(f"small{number}.txt", 500) for number in range(5)}
    for held in HELD_SECONDS:
        waited, on_disk = _beside_a_slow_file(bench, held * bench.patience, others)
        if waited <= held * bench.patience / 2:
            return
        if not on_disk:
            raise Unseen("the folder of temporary files is in memory, and no disk is slow: TMPDIR=/var/tmp")
    held *= bench.patience
    raise Failed(f"one file takes {held:.1f} s to be read, and another client waited {waited:.2f} s for its own")


def _beside_a_slow_file(bench: Bench, held: float, others: dict[str, bytes]) -> tuple[float, bool]:
    """The longest that another client has waited, in seconds, and whether the slow file was on a disk."""
    cold = bench.root / "cold.bin"
    slow = "read,pread64,sendfile"  # not preadv2, by which one can ask without waiting (RWF_NOWAIT)
    trace = [
        "strace", "-f", "-qqq", "-o", "/dev/null", "-P", str(cold), "-e", f"trace={slow}",
        "-e", f"inject={slow}:delay_enter={int(held * 1e6)}:when=1",
    ]  # fmt: skip
    tried = subprocess.run([*trace, "true"], capture_output=True, text=True, errors="replace", check=False)
    if tried.returncode:  # a container may forbid it: that is no fault of the server
        words = (tried.stderr.strip() or f"status {tried.returncode}").splitlines()[-1]
        raise Unseen(f"strace, which makes one file slow, cannot trace: {foreign.line(words)}")
    with bench.start(trace=trace, patience=3 * bench.patience) as server:
        clients = [server.client() for _ in range(6)]
        try:
            for client in clients:
                client.good("/hello.txt", bench.hello)
            on_disk = _put_out_of_cache(cold)
            clients[0].ask("/cold.bin")
            time.sleep(0.05)
            longest = 0.0
            for client, (name, body) in zip(clients[1:], others.items(), strict=True):
                began = time.monotonic()
                client.good(f"/{name}", body)
                longest = max(longest, time.monotonic() - began)
            server.demand_alive("while one file was slow")
            if longest > held / 2:
                return longest, on_disk
            reply = clients[0].reply("GET /cold.bin", wait=6.0)
            if len(reply.body) != 200_000:
                raise Failed(f"GET /cold.bin: {reply.status}, {len(reply.body)} of 200000 bytes")
            clients[0].ask("/cold.bin")
            clients[0].reset()  # it leaves while its file is read
            for client in clients[1:]:
                client.good("/hello.txt", bench.hello)
            time.sleep(held + 0.1)
            server.demand_alive("as a client left while its file was read")
            return longest, on_disk
        finally:
            close_all(clients)


class Opens:
    """How often a file is opened, as inotify(7) tells: no trace of the server is needed."""

    def __init__(self, path: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.fd < 0 or libc.inotify_add_watch(self.fd, os.fsencode(path), OPENED) < 0:
            raise Unseen(f"inotify: {os.strerror(ctypes.get_errno())}")

    def count(self) -> int:
        """Since the last look."""
        found = 0
        try:
            while data := os.read(self.fd, 1 << 16):
                place = 0
                while place < len(data):
                    _, mask, _, more = struct.unpack_from("iIII", data, place)
                    found += bool(mask & OPENED)
                    place += 16 + more
        except BlockingIOError:
            pass
        return found

    def close(self) -> None:
        os.close(self.fd)


def remember(bench: Bench) -> None:
    old = bench.fill("known.txt", 400)
    path = bench.root / "known.txt"
    now = time.time()
    os.utime(path, (now - 60, now - 60))
    with bench.start() as server, server.client() as client:
        time.sleep(max(0.0, 3.2 - (time.time() - path.stat().st_ctime)))  # what has just changed is not kept
        client.good("/known.txt", old)
        opens = Opens(path)
        try:
            times, began = 0, time.monotonic()
            for _ in range(40):
                client.good("/known.txt", old)
                times += opens.count()  # at once: two like events that wait become one
        finally:
            opens.close()
        # Of a second each: where a busy machine takes long for 40 requests, more are right.
        if times > min(30.0, 8 + (time.monotonic() - began)):
            raise Failed(f"40 requests for one file, and you opened it {times} times")
        new = os.urandom(400)
        (bench.root / "known.new").write_bytes(new)
        (bench.root / "known.new").rename(path)
        deadline = time.monotonic() + 3.0 * bench.patience
        while time.monotonic() < deadline:
            client.ask("/known.txt")
            if client.reply().body == new:
                server.demand_alive("after a file was replaced")
                return
            time.sleep(0.1)
        raise Failed("3 s after the file was replaced the old one is still served")


def _started_with_a_limit(bench: Bench) -> Server:
    """-c 50; without it where a server does not know it: then what it does decides, and not that option."""
    try:
        return bench.start("-c", "50", "-w", "1")
    except Failed as failed:
        if "before it listened" not in str(failed):
            raise
        return bench.start("-w", "1")


def refuse(bench: Bench) -> None:
    bench.hole("huge.bin", 64 << 20)
    size = 8 << 20
    large = bench.fill("large.bin", size)
    with _started_with_a_limit(bench) as server:
        slow = [server.client(window=SMALL_WINDOW) for _ in range(5)]
        kept: list[Client] = []
        late: list[Client] = []
        try:
            for client in slow:
                client.ask("/large.bin", close=True)
            for number in range(45):
                kept.append(server.client())
                try:
                    kept[-1].good("/hello.txt", bench.hello, wait=SOON)
                except Failed as failed:
                    server.demand_alive(f"at client {number + 6}")
                    raise Failed(f"-c 50: client {number + 6} of 50 is to be served: {failed}") from None
            deaf = refused = served = 0
            for _ in range(40):
                client = server.client()
                late.append(client)
                client.ask("/hello.txt")
                try:
                    status = client.reply(head_only=True, wait=SOON).status  # it ends with the connection
                except Failed as failed:
                    if "reset" in str(failed):
                        why = f"{failed}: you closed before you had read its request"
                        raise Failed(f"-c 50: client {50 + len(late)} is one too many: {why}") from None
                    deaf = len(late)
                    break
                refused += status == 503
                served += status == 200
            server.demand_alive("at 40 clients too many")
            if deaf:
                raise Failed(f"-c 50: client {50 + deaf} is one too many, and had no answer in {SOON:g} s")
            if refused + served != 40:
                raise Failed(f"-c 50: of 40 clients too many {40 - refused - served} had neither 200 nor 503")
            wait_for(lambda: connections(server.port) <= 50, SOON * bench.patience)
            if (there := connections(server.port)) > 50:
                raise Failed(f"-c 50: {there} connections are open")
            for client in slow:
                client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 18)
                data, _ = client.rest(8 * bench.patience)
                status, body = parsed(data)
                if body != large:
                    raise Failed(f"-c 50: a slow download was cut at {len(body)} of {size} bytes")
        finally:
            close_all([*slow, *kept, *late])
        server.demand_alive("when the crowd had left")


def _workers(server: Server) -> set[int]:
    return server.processes() - {server.pid}


def crew(bench: Bench) -> None:
    with bench.start("-w", "3") as server:
        wait_for(lambda: 3 <= len(server.processes()) <= 5, SOON * bench.patience)
        server.settled()
        before = server.processes()
        if not 3 <= len(before) <= 5:
            raise Failed(f"-w 3: {len(before)} processes before any client came, and 3 to 5 are expected")
        clients = []
        try:
            for _ in range(30):
                client = server.client()
                clients.append(client)
                client.good("/hello.txt", bench.hello, wait=SOON)
            if more := server.processes() - before:
                raise Failed(f"-w 3: 30 clients, and {len(more)} new processes")
        finally:
            close_all(clients)
        parents = {int(proc.stat_fields(pid)[1]) for pid in before if proc.alive(pid)}
        victim = next(iter(sorted(_workers(server) - parents)), 0)
        if not victim:
            raise Failed("-w 3: the first process has no worker below it")
        os.kill(victim, signal.SIGKILL)
        deadline = time.monotonic() + 3 * bench.patience
        back = False
        while not back and time.monotonic() < deadline:
            server.demand_alive("as one of three workers was killed")
            with server.client() as client:
                try:
                    client.good("/hello.txt", bench.hello, close=True, wait=SOON)
                except Failed as failed:
                    raise Failed(f"one of three workers was killed, and then {failed}") from None
            back = len(server.processes()) >= len(before)
            time.sleep(0.05)
        if not back:
            raise Failed(f"one of {len(before)} processes was killed, and 3 s later none is in its place")
