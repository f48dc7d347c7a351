"""Many clients, and kept connections: processes, threads, pools."""

import time

from quest.my.bench import Bench
from quest.my.checks.one import SOON
from quest.my.client import Client, Reply, differs, get, readable, shown
from quest.my.errors import Failed
from quest.my.server import Server, wait_for

HALF = b"GET /hello.txt HTTP/1.1\r\nHost: x\r\n"
REST = b"Connection: close\r\n\r\n"


def finish_last_first(clients: list[Client], bench: Bench, server: Server) -> None:
    """Each completes its request, and the last that came is the first to do so: a server that takes one after the
    other in the order of their coming cannot pass. Some have sent HALF; the others nothing."""
    for number, client in reversed(list(enumerate(clients, 1))):
        client.send(REST if client.asked else HALF + REST)
        try:
            reply = client.reply("its request", wait=SOON)
        except Failed as failed:
            server.demand_alive(f"at client {number}")
            first = " asks first" if number == len(clients) else " asks"
            raise Failed(f"client {number} of {len(clients)}{first}, and waits for the others: {failed}") from None
        if reply.body != bench.hello:
            raise Failed(f"client {number} of {len(clients)}: {differs(reply.body, bench.hello)}")
        client.close()


def crowd(server: Server, count: int) -> list[Client]:
    """Clients of which every second one has sent half a request."""
    clients = []
    for number in range(count):
        client = server.client()
        if number % 2:
            client.asked = "half"
            client.send(HALF)
        clients.append(client)
    return clients


def close_all(clients: list[Client]) -> None:
    for client in clients:
        client.close()


def served_beside(server: Server, bench: Bench, count: int, what: str) -> None:
    """One more client has its answer soon."""
    with server.client() as client:
        client.ask("/hello.txt", close=True)
        try:
            reply = client.reply(wait=SOON)
        except Failed as failed:
            server.demand_alive(f"beside {count} {what}")
            raise Failed(f"client {count + 1} asked while {count} others {what}: {failed}") from None
        if reply.body != bench.hello:
            raise Failed(f"client {count + 1}: {reply.status}, {differs(reply.body, bench.hello)}")


def neighbours(bench: Bench) -> None:
    with bench.start("-w", "32") as server:  # of a pool they are enough
        clients = crowd(server, 20)
        try:
            time.sleep(0.05)
            served_beside(server, bench, 20, "say nothing more")
            finish_last_first(clients, bench, server)
        finally:
            close_all(clients)
        server.demand_alive("after 21 clients")


def tidy(bench: Bench) -> None:
    with bench.start() as server:

        def some(count: int) -> None:
            for number in range(count):
                with server.client() as client:
                    if number % 4 != 3:  # the others come and go without a word
                        client.good("/hello.txt", bench.hello, close=True)

        some(10)
        wait_for(lambda: not server.zombies(), bench.patience)
        tasks, descriptors = len(server.settled()), server.descriptors()
        some(110)
        server.demand_alive("after 120 connections")

        left = (0, 0, 0)

        def given_back() -> bool:
            nonlocal left  # one look counts: at the next a child may just be ending, and be a zombie for a moment
            left = server.zombies(), server.descriptors() - descriptors, len(server.tasks()) - tasks
            return left[0] == 0 and max(left) <= 4

        wait_for(given_back, 3 * bench.patience)
        zombies, more, born = left
        if zombies:
            raise Failed(f"{zombies} zombies after 120 connections: children that have ended, and were not waited for")
        if born > 4:
            raise Failed(f"{born} more processes and threads after 120 connections than after 10: their clients left")
        if more > 4:
            raise Failed(
                f"+{more} descriptors after 110 more connections: each is to be closed on every way out,"
                " and after fork both sides have it"
            )


def stay(bench: Bench) -> None:
    hello = bench.hello
    with bench.start() as server:
        with server.client() as client:
            for number, (method, path, status, body) in enumerate((
                ("GET", "/hello.txt", 200, hello), ("GET", "/nothing-here", 404, None), ("GET", "/", 200, bench.index),
                ("HEAD", "/hello.txt", 200, b""), ("GET", "/hello.txt", 200, hello),
                ("GET", "/nothing-here", 404, None),
            ), 1):  # fmt: skip
                client.ask(path, method=method)
                what = f"request {number} on one connection, {method} {path}"
                if number > 1 and client.data:
                    raise Failed(f"{what}: before it was sent, {shown(client.data)} was left of the reply before")
                reply = _kept(client, what, method == "HEAD")
                if reply.status != status:
                    raise Failed(f"{what}, was answered {reply.status}, and not {status}")
                if body is not None and reply.body != body:
                    raise Failed(f"{what}: {differs(reply.body, body)}")
            client.good("/hello.txt", hello, more="connection: Close\r\n")
            if not client.ends(SOON * bench.patience):
                raise Failed("the client said `connection: Close`, and the connection is still open 2 s later")
            if client.data:
                raise Failed(f"behind the last reply came {shown(client.data)}")
        with server.client() as client:
            client.good("/hello.txt", hello, version="1.0")
            if not client.ends(SOON * bench.patience):
                raise Failed("HTTP/1.0 ends a connection after a reply, and yours is still open 2 s later")
        server.demand_alive("after a kept connection")


def _kept(client: Client, what: str, head_only: bool) -> Reply:
    try:
        return client.reply(what, head_only=head_only, wait=SOON)
    except Failed as failed:
        if "which is no" in str(failed):
            raise Failed(f"{failed}: the reply before was longer than its Content-Length, or was to HEAD") from None
        raise


def inline(bench: Bench) -> None:
    bodies = [bench.put(f"n{number}.txt", b"number %d\n" % number * (number + 1)) for number in range(10)]
    with bench.start() as server, server.client() as client:
        client.send(b"".join(get(f"/n{number}.txt") for number in range(10)))
        for number, body in enumerate(bodies):
            try:
                reply = client.reply(f"reply {number + 1}", wait=SOON)
            except Failed as failed:
                server.demand_alive("at ten requests in one packet")
                raise Failed(f"10 requests in one packet: {number} replies, and then {failed}") from None
            if reply.body != body:
                raise Failed(f"10 requests in one packet: reply {number + 1} has {shown(reply.body)}")
        second = get("/n2.txt")
        client.send(get("/n1.txt") + second[:11])
        for part, body in ((b"", bodies[1]), (second[11:], bodies[2])):
            time.sleep(0.1 if part else 0)
            client.send(part)
            try:
                reply = client.reply("reply", wait=SOON)
            except Failed as failed:
                what = "the rest of the second" if part else "one request and 11 bytes of the next"
                raise Failed(f"after {what}: {failed}") from None
            if reply.body != body:
                raise Failed(f"one request and 11 bytes of the next: {reply.status}, {shown(reply.body)}")


def onepacket(bench: Bench) -> None:
    body = bench.fill("258.bin", 258)
    with bench.start() as server, server.client() as client:
        before, began = client.segments, time.monotonic()
        for _ in range(10):
            client.good("/258.bin", body)
        took = time.monotonic() - began
        packets = client.segments - before
        if packets > 10:
            raise Failed(f"10 replies of 258 bytes came in {packets} packets, and took {took * 1000:.0f} ms")


def light(bench: Bench) -> None:
    bodies = [bench.put(f"l{number}.txt", b"client %d\n" % number) for number in range(100)]
    with bench.start() as server:
        with server.client() as client:
            client.good("/hello.txt", bench.hello)
        server.settled()
        processes, memory = server.processes(), server.memory_kib()
        clients: list[Client] = []
        try:
            for number in range(100):
                client = server.client()
                client.ask(f"/l{number}.txt")
                clients.append(client)
            for turn in ("first", "second"):
                for number, client in enumerate(clients):
                    try:
                        reply = client.reply(f"its {turn} request", wait=SOON)
                    except Failed as failed:
                        server.demand_alive(f"with {number + 1} of 100 clients")
                        raise Failed(f"client {number + 1} of 100: {failed}") from None
                    if reply.body != bodies[number]:
                        raise Failed(f"client {number + 1} got {shown(reply.body)}: a reply for another client")
                if turn == "first":
                    for number, client in enumerate(clients):
                        client.ask(f"/l{number}.txt")
            more = len(server.processes() - processes)
            each = (server.memory_kib() - memory) / 100
        finally:
            close_all(clients)
        if more > 4:
            raise Failed(f"100 clients are silent, and you have {more} more processes, of {each:.0f} KiB each")
        if each > 64:
            raise Failed(f"100 clients are silent, and each costs {each:.0f} KiB of memory")


def bounded(bench: Bench) -> None:
    with bench.start("-w", "4") as server:
        first = server.settled()
        kept = [server.client() for _ in range(4)]
        waiting: list[Client] = []
        try:
            for client in kept:
                client.good("/hello.txt", bench.hello)
            fifth = server.client()
            waiting = [fifth]
            fifth.ask("/hello.txt")
            if readable([fifth], 0.5):
                born = len(server.tasks() - first)
                by = f" by one of {born} new threads or processes" if born else ""
                raise Failed(f"-w 4: four connections are kept, and a fifth was served{by}")
            for _ in range(30):
                waiting.append(server.client())
                waiting[-1].ask("/hello.txt")
            kept[0].close()
            deadline = time.monotonic() + SOON * bench.patience
            while not (served := readable(waiting, 0.1)) and time.monotonic() < deadline:
                pass
            server.demand_alive("with 35 clients")
            if not served:
                raise Failed("-w 4: one of four left, and none of the 31 that wait was served within 2 s")
            served[0].reply(wait=SOON)
            if (new := len(server.tasks() - first)) > 2:
                raise Failed(f"-w 4: {new} new threads or processes since the start")
        finally:
            close_all([*kept, *waiting])
