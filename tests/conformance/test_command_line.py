"""Options, messages and exit statuses: what is seen of a server before the first request."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from conformance.matrix import contract, kind
from conformance.process import Server, Target, Unprivileged, die_with_parent, environment
from conformance.programs import Run, Start, has_ipv6
from conformance.site import HELLO, Site
from conformance.wire import request

pytestmark = kind("serving")
Done = subprocess.CompletedProcess[str]


def check_one_line(done: Done, status: int, name: str) -> str:
    """The message of a program that cannot go on: one line on stderr, nothing on stdout. Returns
    what it says.
    """
    assert done.returncode == status, done
    assert done.stdout == "", done
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and done.stderr.endswith("\n"), done
    assert lines[0].startswith(f"{name}: "), done
    return lines[0][len(name) + 2 :]


@contract("usage")
def test_help(target: Target, run: Run) -> None:
    for more in ((), ("-v",), ("-p", "0")):
        done = run(target.binary, *more, "-h")
        assert (done.returncode, done.stderr) == (0, ""), done
        assert "usage: " in done.stdout.lower(), done
        for option in ("-a", "-p", "-b", "-w", "-t", "-v", "DOCROOT"):
            assert option in done.stdout, option
        assert max(len(line) for line in done.stdout.splitlines()) <= 100


HUGE = "99999999999999999999"
BAD_USAGE = [
    *(("-x",), ("-Z", "1"), ("--help",), ("-vx",)),
    *(("-p",), ("-b",), ("-w",), ("-t",)),
    *(("-p", text) for text in ("", "http", "-1", "65536", "80x", "0x50", HUGE)),
    *(("-b", text) for text in ("many", "-5", "1.5", "2147483648", HUGE)),
    *(("-w", text) for text in ("0", "-1", "two", HUGE)),
    *(("-t", text) for text in ("0", "-1", "soon", HUGE)),
    *(("-t", "1", ".", "."), (".", "another"), (".", "-p", "0", "another")),
]


@contract("bad-usage")
def test_bad_usage(target: Target, run: Run) -> None:
    for arguments in BAD_USAGE:
        check_one_line(run(target.binary, *arguments), 2, target.binary.name)


#: Options of one server: to numbers that are none, and to names that it does not know.
OWN: dict[str, dict[str, tuple[str, ...]]] = {
    "11-sendfile": {"-s": ("no-such", "read+two", "")},
    "12-aio": {"-d": ("no-such", ""), "-r": ("0", "x"), "-m": ("-1", "udp")},
    "13-uring": {"-r": ("", "0", "-1", "x", "1x", "4097", HUGE)},
    "15-slashdot": dict.fromkeys(("-c", "-l", "-r"), ("0", "x", "-1", "")),
}


@contract("bad-usage")
@pytest.mark.servers(*OWN)
def test_bad_usage_of_its_own(target: Target, run: Run) -> None:
    for option, values in OWN[target.name].items():
        for value in values:
            done = run(target.binary, "-p", "0", option, value, ".")
            assert option in check_one_line(done, 2, target.binary.name)


@contract("setup-failure")
def test_a_docroot_that_is_none(
    target: Target, run: Run, docroot: Site, unprivileged: Unprivileged
) -> None:
    for folder, reason in (
        ("missing", "No such file or directory"),
        ("hello.txt", "Not a directory"),
        ("unreadable", "Permission denied"),
    ):
        path = docroot.root / folder
        done = run(*unprivileged.command(target.binary), "-p", "0", path)
        message = check_one_line(done, 1, target.binary.name)
        assert re.fullmatch(rf"\w+ {re.escape(str(path))}: {reason}", message), message


@contract("setup-failure", "address")
def test_an_address_that_is_none(target: Target, run: Run, docroot: Site) -> None:
    """A failed set-up or bad usage: the contract leaves that open, not the one clear line."""
    name = target.binary.name
    for address in ("nonsense", "", "999.1.1.1", "1.2.3", "127.0.0.1:80", "host.invalid", ":::"):
        done = run(target.binary, "-a", address, "-p", "0", docroot.root)
        assert done.returncode in (1, 2)
        assert address in check_one_line(done, done.returncode, name)
    done = run(target.binary, "-a", "192.0.2.1", "-p", "0", docroot.root)
    message = check_one_line(done, 1, name)
    assert re.fullmatch(r"bind 192\.0\.2\.1:0: .*[Aa]ddress.*", message), message
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = run(target.binary, "-p", port, docroot.root)
    message = check_one_line(done, 1, name)
    assert re.fullmatch(rf"bind 127.0.0.1:{port}: Address.* in use", message), message


@contract("setup-failure", "address")
def test_a_port_that_needs_privileges(
    target: Target, run: Run, docroot: Site, unprivileged: Unprivileged
) -> None:
    first = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")
    if not first.exists() or int(first.read_text()) <= 79:
        pytest.skip("every user may use every port here, or nobody knows")
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", 79)) == 0:
            pytest.skip("somebody serves port 79 on this machine")
    done = run(*unprivileged.command(target.binary), "-p", "79", docroot.root)
    message = check_one_line(done, 1, target.binary.name)
    assert message == "bind 127.0.0.1:79: Permission denied"


@contract("setup-failure", "listening-line")
def test_a_stdout_that_cannot_be_written(target: Target, docroot: Site) -> None:
    """Whoever waits for the line would wait for ever."""
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    with full.open("w") as out:
        done = subprocess.run(
            [*die_with_parent(), target.binary, "-p", "0", docroot.root],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            timeout=30,
            check=False,
        )
    assert done.returncode == 1, done
    assert done.stderr.startswith(f"{target.binary.name}: ") and done.stderr.count("\n") == 1, done
    assert done.stderr.endswith(": No space left on device\n"), done


@contract("listening-line", "quiet-stdout", "port-zero", "one-worker")
@pytest.mark.parametrize("options", [(), ("-v", "-t", "5", "-w", "3"), ("-w", "1")])
def test_the_listening_line(start: Start, options: tuple[str, ...]) -> None:
    """The fixture reads the line from a pipe, connects at once, and finds nothing more on stdout at
    the end.
    """
    server = start(*options)
    name, port = server.target.binary.name, server.address[1]
    assert server.line == f"{name}: listening on http://127.0.0.1:{port}/\n"
    assert port != 0
    for path in ("/hello.txt", "/nothing", "/%zz"):
        server.get(path)
    assert server.serves()


@contract("address", "listening-line")
@pytest.mark.parametrize("address", ["0.0.0.0", "127.0.0.2", "::1", "::"])
def test_addresses(start: Start, address: str) -> None:
    if ":" in address and not has_ipv6():
        pytest.skip("no IPv6 on this machine")
    server = start(address=address)
    shown = f"[{address}]" if ":" in address else address
    name, port = server.target.binary.name, server.address[1]
    assert server.line == f"{name}: listening on http://{shown}:{port}/\n"
    assert server.serves()


@contract("address", "listening-line", "stop")
def test_a_port_of_ones_choice_can_be_had_again_at_once(start: Start) -> None:
    """Connections of the server before are still in TIME_WAIT."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    server = start(port=port)
    with server.connect() as c:  # the server closes first, so the wait is on its side
        c.ask(b"GET /hello.txt HTTP/1.0\r\n\r\n")
        c.expect_end()
    server.signal(signal.SIGTERM)
    server.wait()
    again = start(port=port)
    assert again.address == server.address == ("127.0.0.1", port)
    assert again.serves()


@contract("setup-failure", "bad-usage", "backlog")
def test_a_backlog_of_any_size(start: Start) -> None:
    """The system cuts it down without an error."""
    for backlog in (1, 65536, 2147483647):
        assert start(backlog=backlog).serves()


@contract("log")
def test_the_log(start: Start) -> None:
    """A line for each request, and control characters, which are commands to somebody's terminal,
    in none of them. 0x9b: CSI, where a terminal takes 8 bits.
    """
    server = start("-v")
    for path in ("/hello.txt", "/nothing", "/empty.txt?query"):
        server.get(path)
    for data in (
        b"GET /\x1b[2J HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x1b]0;x\x07\r\n\r\n",
        b"GET /%1b%0a\r\n\r\n",
        b'GET /\x9b31m"\\ HTTP/1.1\r\nHost: x\r\n\r\n',
    ):
        server.ask(data)
    assert server.settles()
    text = server.stderr()
    lines = text.splitlines()
    assert len(lines) == 7, text
    for line, path, status in zip(
        lines, ("hello.txt ", "nothing ", "empty.txt?query "), (200, 404, 200), strict=False
    ):
        assert f'"GET /{path}HTTP/1.1" {status} ' in line, text
    assert all(" " <= c <= "~" or c == "\n" for c in text), repr(text)
    assert all(line.count('"') == 2 for line in lines), text


@contract("log")
def test_no_log_without_v(server: Server) -> None:
    for path in ("/hello.txt", "/nothing", "/%zz"):
        server.get(path)
    assert server.stderr() == ""


@contract("log", "survives")
@pytest.mark.servers("02-fork", "04-threads", "09-epoll", "13-uring", "14-owfat", "15-slashdot")
def test_a_log_that_nobody_reads(start: Start, tmp_path: Path) -> None:
    """A pipe holds 64 KiB: what does not fit is counted, and the count is told later."""
    fifo = tmp_path / "log"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    to_fifo = ["/bin/sh", "-c", 'log=$1; shift; exec "$@" 2> "$log"', "sh", str(fifo)]
    server = start("-v", wrapper=to_fifo)
    ask = request("/hello.txt?" + "x" * 1000)
    for _ in range(4):
        with server.connect() as c:
            c.send(ask * 50)
            for _ in range(50):
                assert c.read_reply().body == HELLO
    written = os.read(reader, 1 << 20)
    assert server.serves()
    assert server.settles()
    written += os.read(reader, 1 << 20)
    os.close(reader)
    lines = written.decode().splitlines()
    missing = [int(line.split()[1]) for line in lines if "lines are missing here" in line]
    assert len(missing) == 1
    assert sum("GET" in line for line in lines) + missing[0] == 201


@contract("docroot")
def test_the_docroot_and_the_working_folder(start: Start, docroot: Site) -> None:
    assert start(here=docroot.root / "sub").get("/page.html").body == b"sub page\n"
    server = start(here=docroot.root, root=Path("sub"))
    assert server.get("/page.html").body == b"sub page\n"
    assert server.get("/hello.txt").status == 404
