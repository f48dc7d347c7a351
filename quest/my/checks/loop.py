"""One loop: what a server owes to all when one thread serves them."""

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from quest.my.bench import Bench
from quest.my.checks.many import close_all, crowd, finish_last_first, served_beside
from quest.my.checks.one import SMALL_WINDOW, SOON
from quest.my.client import Client, differs, get, readable
from quest.my.errors import Failed, Unseen
from quest.my.server import Server, on_the_way

PATIENT = "60"  #: -t, where a busy machine may need long for a crowd
BUSY = 0.2  #: of a processor: a server that has nothing to do takes less
MANY, AT_ONCE = 2500, 50
#: Silent clients of `flat`: at last so many that a walk over all of them shows, however short its steps are.
IDLE = (1000, 3000, 9000)
REQUESTS = 200  #: that fit in a buffer of 8 KiB
HUGE, FIRST = 64 << 20, 24 << 20  #: bytes of a large file, and how many of them may come before a small one


def percent(share: float) -> str:
    """`27 %`"""
    return f"{share * 100:.0f} %"


ALLOWED = percent(BUSY)


def busy(server: Server) -> float:
    """The share of a processor that it takes in a second; the less of two, as buffers may still fill at first."""
    load = server.load(1.0)
    return load if load <= BUSY else min(load, server.load(1.0))


def oneloop(bench: Bench) -> None:
    with bench.start("-t", PATIENT) as server:
        time.sleep(0.1)
        before = len(server.tasks())
        clients = crowd(server, 300)
        try:
            served_beside(server, bench, 300, "say nothing more")
            if (more := len(server.tasks()) - before) > 20:
                raise Failed(f"300 clients, and {more} more processes and threads")
            if (load := busy(server)) > BUSY:
                raise Failed(f"300 clients are silent, and you use {percent(load)} of a processor, of {ALLOWED}")
            finish_last_first(clients, bench, server)
        finally:
            close_all(clients)
        server.demand_alive("after 301 clients")


def slowreaders(bench: Bench) -> None:
    large = bench.fill("large.bin", 8 << 20)
    with bench.start("-t", PATIENT) as server:
        time.sleep(0.1)
        before = len(server.tasks())
        clients, idle = list[Client](), list[Client]()
        try:
            for _ in range(5):  # to these all can be sent, and nothing is
                idle.append(server.client())
                idle[-1].good("/hello.txt", bench.hello)
            for _ in range(40):
                client = server.client(window=SMALL_WINDOW)
                client.ask("/large.bin", close=True)
                clients.append(client)
            served_beside(server, bench, 40, "ask for 8 MiB and do not read")
            if (more := len(server.tasks()) - before) > 20:
                raise Failed(f"40 clients do not read, and you have {more} more processes and threads")
            if (load := busy(server)) > BUSY:
                raise Failed(f"40 clients do not read, and you use {percent(load)} of a processor, of {ALLOWED}")
            for client in clients[:6]:
                client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 18)  # it was slow long enough
                reply = client.reply(wait=8.0)
                if reply.body != large:
                    raise Failed(f"a slow reader of 8 MiB: {differs(reply.body, large)}")
        finally:
            close_all(clients + idle)
        server.demand_alive("at 40 clients that did not read")


def alarm(bench: Bench) -> None:
    with bench.start("-t", "2") as server, server.client() as talking:
        silent: list[tuple[Client, float]] = []
        try:
            for number in range(50):
                if number % 10 == 0:
                    talking.good("/hello.txt", bench.hello, wait=SOON)
                silent.append((server.client(), time.monotonic()))
                time.sleep(0.02)
            began = time.monotonic()
            limit = 5.0 * bench.patience
            ends: list[float] = []
            while silent and time.monotonic() - began < limit + 1:
                talking.good("/hello.txt", bench.hello, wait=SOON)
                time.sleep(0.1)
                for pair in list(silent):
                    if pair[0].ends(0.001):
                        ends.append(time.monotonic() - pair[1])
                        pair[0].close()
                        silent.remove(pair)
            server.demand_alive("when the time was up")
            if silent:
                raise Failed(f"-t 2: {len(silent)} of 50 silent clients are still there after {limit:.0f} s")
            if min(ends) < 1.5:
                raise Failed(f"-t 2: a silent client was sent away after {min(ends):.1f} s")
            if max(ends) > limit:
                raise Failed(f"-t 2: a silent client was still there after {max(ends):.1f} s")
        finally:
            close_all([client for client, _ in silent])
    with bench.start("-t", "60") as server:
        clients = []
        try:
            for _ in range(100):
                client = server.client()
                client.good("/hello.txt", bench.hello)
                clients.append(client)
            time.sleep(0.2)
            before = server.switches()
            time.sleep(2.0)
            woke = server.switches() - before
        finally:
            close_all(clients)
        if woke > 12:
            raise Failed(f"-t 60: 100 clients are idle, and you woke {woke} times in 2 s")


def asked_once(server: Server, count: int) -> list[Client]:
    """So many kept connections. Each has asked once: some kernels give a server no client that never spoke."""
    clients: list[Client] = []
    try:
        while len(clients) < count:
            new: list[
                Client
            ] = []  # some at once: to a server that looks at all of them each time, one by one takes long
            while len(new) < AT_ONCE and len(clients) < count:
                new.append(server.client(wait=4.0))
                clients.append(new[-1])
                new[-1].send(get("/hello.txt"))
            for number, client in enumerate(new, len(clients) - len(new) + 1):
                try:
                    client.reply("GET /hello.txt", wait=4.0)
                except Failed as failed:
                    time.sleep(0.1)
                    server.demand_alive(f"at client {number} of {count}")
                    raise Failed(f"client {number} of {count}: {failed}") from None
    except Failed:
        close_all(clients)
        time.sleep(0.05)
        server.demand_alive(f"at client {len(clients)} of {count}")
        raise
    return clients


def thousand(bench: Bench) -> None:
    count = min(MANY, bench.files - 100)
    if count < 1100:
        raise Unseen(f"only {bench.files} files may be open here: ulimit -n 4096")
    with bench.start("-t", PATIENT) as server:
        clients = asked_once(server, count)
        try:
            for client, which in ((clients[0], "the first"), (clients[-1], "the last")):
                try:
                    client.good("/hello.txt", bench.hello, wait=SOON)
                except Failed as failed:
                    server.demand_alive(f"with {count} clients")
                    raise Failed(f"{count} clients are connected, and {which} asks again: {failed}") from None
            served_beside(server, bench, count, "stay")
        finally:
            close_all(clients)
        server.demand_alive(f"when {count} clients left")


def flat(bench: Bench) -> None:
    most = bench.files - 200
    counts = [count for count in IDLE if count <= most]
    if len(counts) < 2:
        raise Unseen(f"only {bench.files} files may be open here: ulimit -n 16384")
    with bench.start("-t", PATIENT) as server, server.client() as client:
        client.good("/hello.txt", bench.hello)

        def cost(beside: int) -> float:
            """Microseconds of processor time for a request: the best of three times 300."""
            best = 1.0
            for _ in range(3):
                before = server.cpu()
                try:
                    for _ in range(300):
                        client.good("/hello.txt", bench.hello)
                except Failed as failed:
                    server.demand_alive(f"beside {beside} idle clients")
                    raise Failed(f"one client asks beside {beside} idle ones: {failed}") from None
                best = min(best, (server.cpu() - before) / 300)
            return best * 1e6

        alone = cost(0)
        clients: list[Client] = []
        try:
            for count in counts:  # first fewer: what is wrong with these is said sooner
                clients += asked_once(server, count - len(clients))
                if (beside := cost(count)) > 1.6 * alone + 3 and (beside := min(beside, cost(count))) > 1.6 * alone + 3:
                    raise Failed(
                        f"a request costs {alone:.0f} µs of processor time alone,"
                        f" and {beside:.0f} µs beside {count} idle clients"
                    )
        finally:
            close_all(clients)
        server.demand_alive(f"when {len(clients)} idle clients left")


def turns(bench: Bench) -> None:
    """The send buffers have room for most of a large file: then a server never hears from send that it is to wait."""
    bench.hole("huge.bin", HUGE)
    with _send_buffers(2 * FIRST, bench.own_network) as roomy:
        words = [_beside_a_fast_line(bench, roomy) for _ in range(3)]
    if words.count("") < 2:  # chance may help once, or hinder
        raise Failed(f"a small file was asked for beside 64 MiB: {max(words)}")
    with bench.start() as server, server.client() as client:
        client.send(get("/hello.txt") * REQUESTS)  # of these a turn answers some; of the others no event will tell
        for number in range(REQUESTS):
            try:
                client.reply("the next", wait=SOON)
            except Failed as failed:
                server.demand_alive(f"at {REQUESTS} requests in one piece")
                raise Failed(f"{REQUESTS} requests in one piece: {number} replies, and then {failed}") from None


def _beside_a_fast_line(bench: Bench, roomy: bool) -> str:
    """What is wrong, or ""."""
    with bench.start() as server, server.client() as large, server.client() as small:
        for client in (small, large):  # the large one is then first in the kernel's list, too
            client.good("/hello.txt", bench.hello)
        time.sleep(0.05)
        before = large.received
        large.send(get("/huge.bin"))
        small.send(get("/hello.txt"))
        try:
            if not roomy:  # what is there is taken away as fast as the kernel can
                _drain_until(large, small)
            small.reply("GET /hello.txt", wait=SOON)
        except Failed as failed:
            server.demand_alive("beside a client with a fast line")
            return str(failed)
        sent = large.received - before + on_the_way(large.socket.getsockname()[1])
        server.demand_alive("beside a client with a fast line")
    return "" if sent < FIRST else f"{sent >> 20} MiB of these came first"


@contextlib.contextmanager
def _send_buffers(size: int, own_network: bool) -> Iterator[bool]:
    """Gives the sockets of this network, if it is ours, so much room to send; whether that is permitted."""
    setting = Path("/proc/sys/net/ipv4/tcp_wmem")
    try:
        before = setting.read_text(encoding="ascii")
        if own_network:
            setting.write_text(f"4096 {size} {size}", encoding="ascii")
    except OSError:
        own_network = False
    try:
        yield own_network
    finally:
        if own_network:
            setting.write_text(before, encoding="ascii")


def _drain_until(large: Client, small: Client) -> None:
    deadline, room = time.monotonic() + SOON, bytearray(1 << 22)
    while time.monotonic() < deadline and small not in (ready := readable([large, small], 0.5)):
        if large in ready:
            large.socket.recv_into(room, len(room), socket.MSG_TRUNC)


def full(bench: Bench) -> None:
    with bench.start(files=200) as server:
        clients: list[Client] = []
        try:
            for _ in range(320):
                client = server.client()
                client.send(get("/hello.txt"))
                clients.append(client)
            time.sleep(0.2)
            server.demand_alive("when descriptors ran out: 200 of them, 320 clients")
            if (load := server.load(1.0)) > 0.3:
                raise Failed(f"320 clients, 200 descriptors: you use {percent(load)} of a processor and serve none")
            for client in clients[:260]:
                client.close()
            deadline = time.monotonic() + 3 * bench.patience
            words = "no answer"
            while time.monotonic() < deadline:  # a request in this moment may get 503: its file finds no descriptor
                try:
                    with server.client(wait=1.0) as client:
                        client.good("/hello.txt", bench.hello, close=True, wait=1.0)
                    return
                except Failed as failed:
                    words = str(failed)
                server.demand_alive("when 260 of 320 clients had left")
                time.sleep(0.1)
            raise Failed(f"320 clients, 200 descriptors; 260 left, and 3 s later a new one is not served: {words}")
        finally:
            close_all(clients)
