"""One loop: what a server owes to all when one thread serves them."""

import socket
import statistics
import time

from quest.my.bench import Bench
from quest.my.checks.many import close_all, crowd, finish_last_first, served_beside
from quest.my.checks.one import SMALL_WINDOW, SOON
from quest.my.client import Client, differs, get, readable
from quest.my.errors import Failed, Unseen
from quest.my.network import roomy
from quest.my.server import Server

MOST_WAKES = 12  #: in two seconds in which nothing happens
PATIENT = "60"  #: -t, where a busy machine may need long for a crowd
BUSY = 0.2  #: of a processor: a server that has nothing to do takes less
MANY, AT_ONCE = 2500, 50
#: Silent clients of `flat`: at last so many that a walk over all of them shows, however short its steps are.
IDLE = (1000, 3000, 9000)
ROUNDS = (12, 24)  #: in which they are compared; the second ones only if the first say that it is dear
TIMES, MORE = 1.5, 1.0  #: so many times as much, and so many microseconds
REQUESTS = 200  #: that fit in a buffer of 8 KiB
HUGE, FIRST = 64 << 20, 24 << 20  #: bytes of a large file, and how many of them may come before a small one
AHEAD = 1 << 20  #: bytes of it that may come before the small one is asked for: more, and the try says nothing
PIECE = 1 << 18  #: bytes taken at once
GOOD, BAD, TRIES = 2, 7, 20


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
        before = len(server.settled())
        clients = crowd(server, 300)
        try:
            served_beside(server, bench, 300, "say nothing more")
            if (more := len(server.tasks()) - before) > 20:
                raise Failed(f"300 clients, and {more} more processes and threads")
            if (load := busy(server)) > BUSY:
                raise Failed(f"300 clients are silent, and you use {percent(load)} of a processor; allowed: {ALLOWED}")
            finish_last_first(clients, bench, server)
        finally:
            close_all(clients)
        server.demand_alive("after 301 clients")


def slowreaders(bench: Bench) -> None:
    large = bench.fill("large.bin", 8 << 20)
    with bench.start("-t", PATIENT) as server:
        before = len(server.settled())
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
                raise Failed(f"40 clients do not read, and you use {percent(load)} of a processor; allowed: {ALLOWED}")
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
                began = time.monotonic()  # before it is there: what is told then is not too early
                silent.append((server.client(), began))
                time.sleep(0.02)
            began = looked = time.monotonic()
            limit = 5.0 * bench.patience
            ends, late = list[float](), 0.0  # late: how long we did not look
            while silent and time.monotonic() - began < limit + late + 1:
                talking.good("/hello.txt", bench.hello, wait=SOON)
                time.sleep(0.1)
                late, looked = max(late, time.monotonic() - looked), time.monotonic()
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
            if max(ends) > limit + late:
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
        if woke > MOST_WAKES:
            raise Failed(f"-t 60: 100 clients are idle, and you woke {woke} times in 2 s: {MOST_WAKES} are allowed")


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


def _requests(server: Server, client: Client) -> float:
    """Microseconds of processor time for a request."""
    before = server.cpu()
    for _ in range(25):
        client.good("/hello.txt")
    return (server.cpu() - before) / 25 * 1e6


def _drops(server: Server, client: Client) -> float:
    """The same for a byte of a request; more exactly, for each time that the server goes to sleep, as it may find two
    at once. That is so little work that a walk over all clients is most of it, however short its steps are."""
    before, slept = server.cpu(), server.switches()
    client.send(get("/hello.txt")[:-2] + b"X-Filler: ")
    for _ in range(20):
        for _ in range(40):
            client.send(b"x")
            time.sleep(0.0003)
        if (times := server.switches() - slept) >= 20:
            break
    each = (server.cpu() - before) / max(1, times) * 1e6
    client.send(b"\r\n\r\n")
    client.reply("a request that came a byte at a time", wait=SOON)
    return each


def _cheapest(costs: list[tuple[float, float]]) -> tuple[float, float]:
    return min(alone for alone, _ in costs), min(beside for _, beside in costs)


def _is_dear(costs: list[tuple[float, float]]) -> bool:
    """By the cheapest of each, and by most of the pairs: a busy machine makes some of them dear, and not all."""
    alone, beside = _cheapest(costs)
    return beside > TIMES * alone + MORE and statistics.median(b / max(a, MORE) for a, b in costs) > TIMES


def flat(bench: Bench) -> None:
    """Two of the same server are compared, of which one has idle clients, and by turns: a busy machine makes all things
    dear, and both alike."""
    counts = [count for count in IDLE if count <= bench.files - 200]
    if len(counts) < 2:
        raise Unseen(f"only {bench.files} files may be open here: ulimit -n 16384")
    with bench.start("-t", PATIENT) as alone, bench.start("-t", PATIENT) as server:
        clients: list[Client] = []
        with alone.client() as one, server.client() as other:
            one.good("/hello.txt", bench.hello)
            other.good("/hello.txt", bench.hello)
            try:
                for count in counts:  # first fewer: what is wrong with these is said sooner
                    clients += asked_once(server, count - len(clients))
                    for what, cost in (("a request", _requests), ("a byte of a request", _drops)):
                        costs = list[tuple[float, float]]()
                        try:
                            for rounds in ROUNDS:
                                costs += [(cost(alone, one), cost(server, other)) for _ in range(rounds)]
                                if not _is_dear(costs):
                                    break
                            else:
                                cheap, dear = _cheapest(costs)
                                raise Failed(
                                    f"{what} costs {cheap:.0f} µs of processor time, and beside {count} idle clients"
                                    f" {dear:.0f} µs"
                                )
                        except Failed as failed:
                            server.demand_alive(f"beside {count} idle clients")
                            raise failed from None
            finally:
                close_all(clients)
        server.demand_alive(f"when {len(clients)} idle clients left")


def turns(bench: Bench) -> None:
    """The send buffers have room for most of a large file: then a server never hears from send that it is to wait.

    What came before the small file is told by the kernel's times of arrival, not by when we look. A server with a
    thread for each client may still be late: the kernel gives the threads their turns, and a busy machine gives them
    late. Two good tries show a right one; they are a loop without turns' only by chance."""
    bench.hole("huge.bin", HUGE)
    good, bad = 0, list[str]()
    with roomy(2 * FIRST, bench.own_network):
        for _ in range(TRIES):
            words = _beside_a_fast_line(bench)
            good += words == ""
            bad += [words] if words else []
            if good == GOOD:
                break
            if len(bad) == BAD:
                raise Failed(f"a small file was asked for beside one of 64 MiB: {min(bad)}")
        else:
            raise Unseen("this machine is too busy: between two sends of a client much time passes")
    with bench.start() as server, server.client() as client:
        client.send(get("/hello.txt") * REQUESTS)  # of these a turn answers some; of the others no event will tell
        for number in range(REQUESTS):
            try:
                client.reply("the next", wait=SOON)
            except Failed as failed:
                server.demand_alive(f"at {REQUESTS} requests in one piece")
                raise Failed(f"{REQUESTS} requests in one piece: {number} replies, and then {failed}") from None


def _beside_a_fast_line(bench: Bench) -> str | None:
    """What is wrong, or "". None: we were interrupted between the two requests, and nothing can be told."""
    with bench.start() as server, server.client() as large, server.client() as small:
        for client in (small, large):  # the large one is then first in the kernel's list, too
            client.good("/hello.txt", bench.hello)
            client.stamp()
        time.sleep(0.05)
        large.send(get("/huge.bin"))
        small.send(get("/hello.txt"))
        asked = time.time()
        try:
            pieces, came = _until_the_small_one(large, small, SOON * bench.patience)
        except OSError as error:
            server.demand_alive("beside a client with a fast line")
            return f"then {error.strerror}"
        server.demand_alive("beside a client with a fast line")
    if not came:
        return f"it has no reply in {SOON:g} s"
    if sum(size for size, at in pieces if at <= asked) > AHEAD:
        return None
    before = sum(size for size, at in pieces if asked < at <= came)
    return "" if before < FIRST else f"{before >> 20} MiB of these came first, and less than {FIRST >> 20} are allowed"


def _until_the_small_one(large: Client, small: Client, seconds: float) -> tuple[list[tuple[int, float]], float]:
    """Takes away what comes to the large one, as fast as the kernel can. The pieces, each with its time, and the time
    of the small one's reply; 0.0 if none came. OSError."""
    pieces, room, deadline = list[tuple[int, float]](), bytearray(PIECE), time.monotonic() + seconds
    while time.monotonic() < deadline:
        ready = readable([large, small], 0.1)
        if large in ready:
            pieces.append(large.take(room, socket.MSG_TRUNC))
        if small in ready:
            break
    else:
        return pieces, 0.0
    _, came = small.take(bytearray(1))
    while readable([large], 0) and (not pieces or (pieces[-1][0] and pieces[-1][1] <= came)):
        pieces.append(large.take(room, socket.MSG_TRUNC))
    return pieces, came


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
