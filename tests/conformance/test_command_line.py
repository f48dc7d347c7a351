"""Options, messages and exit statuses: what is seen of a server before the first request."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from pathlib import Path

import pytest

from conformance.contract import contract
from conformance.process import Server, Target, Unprivileged, die_with_parent, environment
from conformance.programs import Run, Start, has_ipv6
from conformance.site import HELLO, Site
from conformance.wire import request

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
@pytest.mark.parametrize("more", [(), ("-v",), ("-p", "0")])
def test_help(target: Target, run: Run, more: tuple[str, ...]) -> None:
    done = run(target.binary, *more, "-h")
    assert done.returncode == 0, done
    assert done.stderr == "", done
    assert "usage: " in done.stdout.lower(), done
    for option in ("-a", "-p", "-b", "-w", "-t", "-v", "DOCROOT"):
        assert option in done.stdout, option
    assert max(len(line) for line in done.stdout.splitlines()) <= 100


@contract("bad-usage")
@pytest.mark.parametrize(
    "arguments",
    [
        ("-x",),
        ("-Z", "1"),
        ("--help",),
        ("-p",),
        ("-p", ""),
        ("-p", "http"),
        ("-p", "-1"),
        ("-p", "65536"),
        ("-p", "80x"),
        ("-p", "0x50"),
        ("-p", "99999999999999999999"),
        ("-b",),
        ("-b", "many"),
        ("-b", "-5"),
        ("-b", "1.5"),
        ("-w",),
        ("-w", "0"),
        ("-w", "-1"),
        ("-w", "two"),
        ("-w", "99999999999999999999"),
        ("-t",),
        ("-t", "0"),
        ("-t", "-1"),
        ("-t", "soon"),
        ("-t", "99999999999999999999"),
        ("-t", "1", ".", "."),
        (".", "another"),
        (".", "-p", "0", "another"),
        ("-vx",),
    ],
    ids=" ".join,
)
def test_bad_usage(target: Target, run: Run, arguments: tuple[str, ...]) -> None:
    if "another" in arguments and "-p" in arguments and os.environ.get("POSIXLY_CORRECT"):
        pytest.skip("POSIXLY_CORRECT ends the options at the first argument")
    check_one_line(run(target.binary, *arguments), 2, target.binary.name)


@contract("setup-failure")
@pytest.mark.parametrize(
    ("docroot_", "reason"),
    [("missing", "No such file or directory"), ("hello.txt", "Not a directory")],
)
def test_a_docroot_that_is_none(
    target: Target, run: Run, docroot: Site, docroot_: str, reason: str
) -> None:
    path = docroot.root / docroot_
    message = check_one_line(run(target.binary, "-p", "0", path), 1, target.binary.name)
    assert re.fullmatch(rf"\w+ {re.escape(str(path))}: {reason}", message), message


@contract("setup-failure")
def test_a_docroot_that_may_not_be_read(
    target: Target, run: Run, docroot: Site, unprivileged: Unprivileged
) -> None:
    path = docroot.root / "unreadable"
    done = run(*unprivileged.command(target.binary), "-p", "0", path)
    message = check_one_line(done, 1, target.binary.name)
    assert re.fullmatch(rf"\w+ {re.escape(str(path))}: Permission denied", message), message


@contract("setup-failure", "address")
def test_a_port_in_use(target: Target, run: Run, docroot: Site) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = run(target.binary, "-p", port, docroot.root)
    message = check_one_line(done, 1, target.binary.name)
    assert re.fullmatch(rf"bind 127.0.0.1:{port}: Address.* in use", message), message


@contract("setup-failure", "address")
@pytest.mark.parametrize(
    "address", ["nonsense", "", "999.1.1.1", "1.2.3", "127.0.0.1:80", "localhost.invalid", ":::"]
)
def test_an_address_that_is_none(target: Target, run: Run, docroot: Site, address: str) -> None:
    """A failed set-up or bad usage: the contract leaves that open for an address, not the one clear
    line.
    """
    done = run(target.binary, "-a", address, "-p", "0", docroot.root)
    assert done.returncode in (1, 2)
    message = check_one_line(done, done.returncode, target.binary.name)
    assert address in message


@contract("setup-failure", "address")
def test_an_address_of_another_host(target: Target, run: Run, docroot: Site) -> None:
    done = run(target.binary, "-a", "192.0.2.1", "-p", "0", docroot.root)
    message = check_one_line(done, 1, target.binary.name)
    assert re.fullmatch(r"bind 192\.0\.2\.1:0: .*[Aa]ddress.*", message), message


@contract("setup-failure", "port-zero")
def test_a_port_that_needs_privileges(
    target: Target, run: Run, docroot: Site, unprivileged: Unprivileged
) -> None:
    try:
        first = int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text())
    except (OSError, ValueError):
        pytest.skip("cannot tell which ports need privileges here")
    if first <= 79:
        pytest.skip("every user may use every port here")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if probe.connect_ex(("127.0.0.1", 79)) == 0:
            pytest.skip("somebody serves port 79 on this machine")
    message = check_one_line(
        run(*unprivileged.command(target.binary), "-p", "79", docroot.root), 1, target.binary.name
    )
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


@contract("listening-line", "quiet-stdout", "port-zero")
@pytest.mark.parametrize("options", [(), ("-v",), ("-v", "-t", "5", "-w", "3")])
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


@contract("address", "listening-line")
def test_a_port_of_ones_choice(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    server = start(port=port)
    assert server.address == ("127.0.0.1", port)
    assert server.serves()


@contract("address", "listening-line")
@pytest.mark.parametrize("address", ["0.0.0.0", "127.0.0.2", "::1", "::"])
def test_addresses(start: Start, address: str) -> None:
    if ":" in address and not has_ipv6():
        pytest.skip("no IPv6 on this machine")
    server = start(address=address)
    shown = f"[{address}]" if ":" in address else address
    assert (
        server.line
        == f"{server.target.binary.name}: listening on http://{shown}:{server.address[1]}/\n"
    )
    assert server.serves()


@contract("address")
def test_a_port_can_be_had_again_at_once(start: Start) -> None:
    """Connections of the server before are still in TIME_WAIT."""
    server = start()
    with server.connect() as c:  # the server closes first, so the wait is on its side
        c.send(b"GET /hello.txt HTTP/1.0\r\n\r\n")
        c.read_reply()
        c.expect_end()
    server.signal(15)
    server.wait()
    again = start(port=server.address[1])
    assert again.address == server.address
    assert again.serves()


@contract("one-worker")
def test_one_worker(start: Start) -> None:
    server = start("-w", "1")
    for _ in range(3):
        assert server.serves()


@contract("setup-failure", "bad-usage")
@pytest.mark.parametrize("backlog", ["1", "4096", "65536", "2147483647"])
def test_a_backlog_of_any_size(start: Start, backlog: str) -> None:
    """The system cuts it down without an error."""
    server = start(backlog=int(backlog))
    assert server.serves()


@contract("bad-usage", "setup-failure")
@pytest.mark.parametrize("backlog", ["2147483648", "99999999999999999999"])
def test_a_backlog_that_is_no_int(target: Target, run: Run, docroot: Site, backlog: str) -> None:
    done = run(target.binary, "-b", backlog, "-p", "0", docroot.root)
    assert done.returncode in (1, 2)
    check_one_line(done, done.returncode, target.binary.name)


@contract("log")
def test_the_log(start: Start) -> None:
    server = start("-v")
    for path in ("/hello.txt", "/nothing", "/empty.txt?query"):
        server.get(path)
    assert server.settles()
    lines = server.stderr().splitlines()
    assert len(lines) == 3, lines
    assert "GET /hello.txt" in lines[0] and "200" in lines[0]
    assert "GET /nothing" in lines[1] and "404" in lines[1]
    assert "GET /empty.txt?query" in lines[2] and "200" in lines[2]


@contract("log")
def test_the_log_of_a_malformed_request_is_one_harmless_line(start: Start) -> None:
    """Control characters in a log are commands to somebody's terminal."""
    server = start("-v")
    for data in (
        b"GET /\x1b[2J HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x1b]0;x\x07\r\n\r\n",
        b"GET /%1b%0a\r\n\r\n",
        b'GET /\x9b31m"\\ HTTP/1.1\r\nHost: x\r\n\r\n',  # 0x9b: CSI, where a terminal takes 8 bits
    ):
        server.ask(data)
    assert server.settles()
    text = server.stderr()
    assert len(text.splitlines()) == 4, text
    assert all(" " <= c <= "~" or c == "\n" for c in text), repr(text)
    assert all(line.count('"') == 2 for line in text.splitlines()), text


@contract("log", "survives")
@pytest.mark.servers("02-fork", "04-threads", "09-epoll", "13-uring", "14-owfat", "15-slashdot")
def test_a_log_that_nobody_reads(start: Start, tmp_path: Path) -> None:
    """A pipe holds 64 KiB: what does not fit is counted, and the count is told later."""
    fifo = tmp_path / "log"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    server = start(
        "-v", wrapper=["/bin/sh", "-c", 'log=$1; shift; exec "$@" 2> "$log"', "sh", str(fifo)]
    )
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


@contract("log")
def test_no_log_without_v(server: Server) -> None:
    for path in ("/hello.txt", "/nothing", "/%zz"):
        server.get(path)
    assert server.stderr() == ""


@contract("docroot")
def test_the_working_folder_is_the_docroot_without_one(start: Start, docroot: Site) -> None:
    assert start(here=docroot.root / "sub").get("/page.html").body == b"sub page\n"


@contract("docroot")
def test_the_docroot_is_relative_to_the_working_folder(start: Start, docroot: Site) -> None:
    server = start(here=docroot.root, root=Path("sub"))
    assert server.get("/page.html").body == b"sub page\n"
    assert server.get("/hello.txt").status == 404
