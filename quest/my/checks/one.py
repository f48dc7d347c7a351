"""One client: what a server owes to each."""

import hashlib
import os
import socket
import time

from quest.my.bench import Bench
from quest.my.client import Client, differs, get, number, parsed, shown
from quest.my.errors import Failed
from quest.my.server import ended_by, wait_for

SOON = 2.0  #: seconds in which a small reply has to come
SMALL_WINDOW = 4096
MOST_KEPT = 16 << 10  #: KiB that a server may take for one client that does not read


def hello(bench: Bench) -> None:
    with bench.start() as server:
        for turn in ("first", "second", "third"):
            with server.client() as client:
                client.ask("/", close=True)
                data, error = client.rest(3 * bench.patience)
            server.demand_alive(f"at the {turn} client")
            status, body = parsed(data)
            if error == "time" and not data:
                raise Failed(f"the {turn} client asked, and had no reply in 3 s")
            if not status:
                raise Failed(f"the {turn} client got {shown(data)}, and not `HTTP/1.1 200 OK`, lines and an empty line")
            if status != 200:
                raise Failed(f"the {turn} client was answered {status}, and not 200")
            head = data.partition(b"\r\n\r\n")[0].decode("latin-1").lower()
            lengths = [line.partition(":")[2].strip() for line in head.split("\r\n") if line[:15] == "content-length:"]
            if len(lengths) != 1:
                raise Failed(f"the reply has {'more than one' if lengths else 'no'} Content-Length")
            if number(lengths[0]) != len(body):
                raise Failed(f"Content-Length says {lengths[0]}, the body has {len(body)}: {shown(body)}")
            if error == "time":
                raise Failed(f"the {turn} client had its reply, and 3 s later the connection is still open")


def half(bench: Bench) -> None:
    with bench.start() as server:
        request = get("/", close=True)
        with server.client() as client:
            for part, pause, what in (
                (request[:-2], 0.4, "before the empty line"),
                (b"\r", 0.2, "before the last LF of the empty line"),
            ):
                client.send(part)
                if not client.is_silent(pause):
                    said = "answered" if client.data else "closed"
                    raise Failed(f"you {said} after {_end(request, part)}, {what}")
                server.demand_alive("at half a request")
            client.send(request[-1:])
            _good(client, "a request whose empty line came in three pieces")
        with server.client() as client:
            for place in range(len(request)):
                client.send(request[place : place + 1])
                time.sleep(0.002)
            _good(client, "a request that came a byte at a time")
        with server.client() as client:
            long = get("/", close=True, more=f"X-Filler: {'x' * 2900}\r\n")
            client.send(long[:1500])
            time.sleep(0.05)
            client.send(long[1500:])
            _good(client, "a head of 3000 bytes in two parts")
        server.demand_alive("when a client had left")


def _end(request: bytes, part: bytes) -> str:
    sent = request[:-2] if len(part) > 1 else request[:-1]
    return shown(b"..." + sent[-11:])


def _good(client: Client, what: str, status: int = 200) -> None:
    """Of an error only the head: without a length it may end with the connection, as long as no stage asks for one."""
    reply = client.reply(what, head_only=status != 200, wait=SOON)
    if reply.status != status:
        raise Failed(f"{what} was answered {reply.status}, and not {status}")


def files(bench: Bench) -> None:
    binary = bench.put("bin.dat", b"\0\r\n\r\n" + os.urandom(69999))
    empty, spaced = bench.put("empty.txt", b""), bench.put("a b.txt", os.urandom(99))
    inside = bench.put("sub/index.html", b"<p>sub " + os.urandom(4).hex().encode())
    with bench.start() as server:
        for path, body in (
            ("/hello.txt", bench.hello), ("/", bench.index), ("/bin.dat", binary), ("/empty.txt", empty),
            ("/sub/", inside), ("/sub/index.html", inside), ("/a%20b.txt", spaced), ("/hello.txt?x=1", bench.hello),
        ):  # fmt: skip
            with server.client() as client:
                reply = client.good(path, None, close=True)
            if reply.body != body:
                raise Failed(f"GET {path}: {differs(reply.body, body)}")
            if path.endswith(("/", ".html")) and "text/html" not in reply.head.get("content-type", "").lower():
                given = reply.head.get("content-type", "none")
                raise Failed(f"GET {path}: the Content-Type is to be text/html, and is {given}")
        with server.client() as client:
            client.ask("/nothing-here.txt", close=True)
            _good(client, "GET /nothing-here.txt, which is no file,", 404)
        server.demand_alive("after ten requests")


def fence(bench: Bench) -> None:
    secret = b"SECRET " + os.urandom(8).hex().encode()
    (bench.top / "secret.txt").write_bytes(secret)
    beside = bench.top / "doc-private"
    beside.mkdir(exist_ok=True)
    (beside / "secret.txt").write_bytes(secret)
    for name, make in (("out.txt", lambda path: path.symlink_to("../secret.txt")), ("pipe", os.mkfifo)):
        if not os.path.lexists(bench.root / name):
            make(bench.root / name)
    with bench.start() as server:
        for path, what in (
            ("/../secret.txt", ""), ("/sub/../../secret.txt", ""), ("/%2e%2e/secret.txt", ""),
            ("/..%2fsecret.txt", ""), ("/../doc-private/secret.txt", ""), ("//etc/passwd", ""),
            ("/out.txt", ", a link that leads out,"), ("/hello.txt%00.html", ""), ("/pipe", ", a FIFO,"),
        ):  # fmt: skip
            with server.client() as client:
                client.ask(path, close=True)
                data, error = client.rest(3 * bench.patience)
            server.demand_alive(f"at GET {path}")
            status, body = parsed(data)
            if secret in data:
                raise Failed(f"GET `{path}`{what} gave `SECRET`, from outside of DOCROOT")
            if not status:
                raise Failed(f"GET `{path}`{what} had no answer in 3 s" if error == "time" else
                             f"GET `{path}`{what} had no answer: the connection ended")  # fmt: skip
            if not 400 <= status < 500:
                raise Failed(f"GET `{path}`{what} was answered {status}, {shown(body, 12)}, and not 4xx")
        with server.client() as client:
            client.good("/hello.txt", bench.hello, close=True)


def words(bench: Bench) -> None:
    with bench.start() as server:
        for path, status, length in (("/hello.txt", 200, len(bench.hello)), ("/nothing-here.txt", 404, None)):
            with server.client() as client:
                client.ask(path, method="HEAD", close=True)
                reply = client.reply(f"HEAD {path}", head_only=True)
                more, _ = client.rest(SOON * bench.patience)
            given = reply.head.get("content-length", "none")
            if reply.status != status or (length is not None and given != str(length)):
                wanted = f"{status}, {given if length is None else length}"
                raise Failed(f"HEAD {path}: {reply.status}, Content-Length {given}; GET has {wanted}")
            if more:
                raise Failed(f"HEAD {path} has a body: {shown(more)}")
        hello = b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + bytes(range(64)) + b"\0\x20\r\n\r\n"
        for request, statuses, may_close in (
            (get("/hello.txt", method="POST", more="Content-Length: 0\r\n"), (405, 501), False),
            (get("/hello.txt", method="BREW"), (405, 501), False),
            (hello, (400, 405, 501), True),
            (b"GET hello.txt\r\n\r\n", (400,), True),
            (b"GET / HTTP/1.1\r\nX: " + b"x" * 200_000, (431, 400, 413), True),
        ):
            _word(bench, server.client(), request, statuses, may_close)
            server.demand_alive(f"at {shown(request, 16)}")
            with server.client() as client:
                client.good("/hello.txt", bench.hello, close=True, wait=3.0)
        with server.client() as client:  # the buffer is full, and has its empty line
            client.send(get("/hello.txt", close=True) + b"x" * 20_000)
            _good(client, "a request with 20 000 bytes behind its empty line")


def _word(bench: Bench, client: Client, request: bytes, statuses: tuple[int, ...], may_close: bool) -> None:
    what = shown(request, 12)
    with client:
        client.send(request)
        try:
            while b"\r\n\r\n" not in client.data and client.fill(3 * bench.patience):
                pass
        except TimeoutError:
            hint = ": your code takes a byte zero for the end of the text" if b"\0" in request else ""
            raise Failed(f"no answer in 3 s to {what}{hint}") from None
        except OSError:
            if may_close:
                return
            raise Failed(f"{what} was answered by a reset") from None
        status, _ = parsed(client.data)
        client.ends(0.2)  # to leave in the middle of a reply is for another stage
    wanted = " or ".join(map(str, statuses[:2]))
    if not status and not may_close:
        raise Failed(f"{what} is to be answered {wanted}, and the connection was closed")
    if client.data and status not in statuses:
        raise Failed(f"{what} was answered {status or shown(client.data)}, and not {wanted}")


def whole(bench: Bench) -> None:
    large = bench.fill("large.bin", 8 << 20)
    bench.hole("huge.bin", 64 << 20)
    with bench.start() as server:
        with server.client(window=SMALL_WINDOW) as client:
            client.ask("/large.bin", close=True)
            time.sleep(0.4)
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 18)  # it has waited long enough
            data, error = client.rest(5 * bench.patience)
        server.demand_alive("at a slow reader of 8 MiB")
        status, body = parsed(data)
        if status != 200:
            raise Failed(f"GET /large.bin, 8 MiB, was answered {status or shown(data)}")
        if hashlib.sha256(body).digest() != hashlib.sha256(large).digest():
            end = {"": "then the end", "time": "then nothing for 5 s"}.get(error, f"then: {error}")
            raise Failed(f"8 MiB to a slow reader: {differs(body, large)}; {end}")
        before = server.own_kib()
        with server.client(window=SMALL_WINDOW) as client:
            client.ask("/huge.bin", close=True)
            wait_for(lambda: client.received > 0, SOON * bench.patience)
            time.sleep(0.3)
            server.demand_alive("at a client that asked for 64 MiB and did not read")
            grown = server.own_kib() - before
        if grown > MOST_KEPT:
            most = f"at most {MOST_KEPT >> 10} MiB are allowed"
            raise Failed(f"you keep {grown} KiB for one client that asked for 64 MiB and does not read: {most}")


def gone(bench: Bench) -> None:
    bench.fill("3m.bin", 3_000_000)
    with bench.start() as server:
        before = server.serving()
        for number in range(20):
            server.demand_alive("as a client left")
            client = server.client(window=SMALL_WINDOW)
            kind = number % 4
            if kind == 1:
                client.send(b"GET /3m.bin HTT")
            elif kind > 1:
                client.ask("/3m.bin", version="1.0")
            if kind == 3:
                wait_for(lambda one=client: one.received > 0, SOON * bench.patience)  # type: ignore[misc]
            if kind == 2:
                client.close()  # what the server then sends is answered by a reset, and what follows is its SIGPIPE
            else:
                client.reset()
            time.sleep(0.01)
        time.sleep(0.05)
        server.demand_alive("as a client left")
        with server.client() as client:
            client.good("/hello.txt", bench.hello, close=True)
        server.demand_alive("as a client left")
        now = server.serving()
        if before and now and not before & now:
            raise Failed(f"process {min(before)} is gone, and {max(now)} in its place: all its other clients were lost")


def hangup(bench: Bench) -> None:
    large = bench.fill("300k.bin", 300_000)
    with bench.start() as server:
        with server.client(window=SMALL_WINDOW) as client:
            client.ask("/300k.bin", version="1.0")
            for _ in range(8):
                time.sleep(0.1)
                client.send(b"x" * 100)
            _all_came(client, large, bench, "bytes arrived after your close, and TCP answered with a reset")
        with server.client() as client:
            client.send(get("/300k.bin", version="1.0") + b"x" * 200_000)
            _all_came(client, large, bench, "you closed before the 200 000 bytes behind the request were read")
        server.demand_alive("as a client went on sending")


def _all_came(client: Client, large: bytes, bench: Bench, why: str) -> None:
    data, error = client.rest(5 * bench.patience)
    status, body = parsed(data)
    if body == large and error != "time":
        return
    if body == large:
        raise Failed(f"all {len(large)} bytes came, and 5 s later the connection is still open")
    came = len(body) if status else 0
    raise Failed(f"{came} of {len(large)} bytes came: {why}")


def stop(bench: Bench) -> None:
    large = bench.fill("3m.bin", 3_000_000)
    with bench.start() as server:
        port = server.port
        with server.client() as client:  # you close first: TCP remembers this one for a minute
            client.good("/hello.txt", bench.hello, close=True)
            client.ends(bench.patience)
        slow = server.client(window=SMALL_WINDOW)
        slow.ask("/3m.bin", close=True)
        wait_for(lambda: slow.received > 0, SOON * bench.patience)
        with slow, server.client():  # the second one is idle
            time.sleep(0.1)
            server.terminate()
            began = time.monotonic()
            time.sleep(0.3)
            if not server.alive() and (left := server.processes()):
                raise Failed(f"SIGTERM: your first process has ended, and {len(left)} others of yours still run")
            slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 18)
            data, error = slow.rest(3 * bench.patience)
            _, body = parsed(data)
            if body != large:
                how = "then nothing for 3 s" if error == "time" else error or "then the end"
                raise Failed(f"SIGTERM: the reply in flight was cut at {len(body)} of {len(large)} bytes ({how})")
            time_left = 3 * bench.patience - (time.monotonic() - began)
            if not server.ends_within(max(time_left, 0.1)):
                raise Failed("SIGTERM: your server still runs 3 s later; one client was idle, and no reply was left")
        status = server.process.returncode
        if status:
            raise Failed(f"SIGTERM: your server ended with {ended_by(status)}, and not with status 0{server.says}")
        if not wait_for(lambda: not server.processes(), bench.patience):
            raise Failed(f"SIGTERM: {len(server.processes())} processes of yours still run after the first has ended")
        port = server.port
    with bench.start(port=port) as server, server.client() as client:
        client.good("/hello.txt", bench.hello, close=True)


def patience(bench: Bench) -> None:
    request = get("/hello.txt", more="X-Long: " + "x" * 300 + "\r\n")
    with bench.start("-t", "1") as server:
        began = time.monotonic()
        limit, silent_for, dropping_for = 5.0 * bench.patience, 0.0, 0.0
        with server.client() as silent, server.client() as dropping:
            place, next_byte = 0, began
            while not (silent_for and dropping_for):
                if not dropping_for and time.monotonic() > next_byte:
                    dropping.send(request[place : place + 1])
                    place, next_byte = place + 1, next_byte + 0.15
                for client, known in ((silent, silent_for), (dropping, dropping_for)):
                    if not known and client.ends(0.05):
                        passed = time.monotonic() - began
                        silent_for, dropping_for = (passed, dropping_for) if client is silent else (silent_for, passed)
                        client.close()  # or a server that takes one at a time would linger for it
                passed = time.monotonic() - began
                if passed > (silent_for + 5 * bench.patience if silent_for else limit):
                    break
            server.demand_alive("when the time was up")
            if not silent_for:
                raise Failed(f"-t 1: a client that says nothing is still there after {limit:.0f} s")
            if silent_for < 0.7:
                raise Failed(f"-t 1: a client that said nothing was sent away after {silent_for:.1f} s")
            if not dropping_for:
                passed = time.monotonic() - began
                raise Failed(f"-t 1: one byte every 0.15 s: still there after {passed:.0f} s, its request not whole")
        with server.client() as client:
            client.good("/hello.txt", bench.hello, close=True)
