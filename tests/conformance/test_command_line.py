"""Options, messages and exit statuses: what is seen of a server before the first request."""

import os
import pty
import re
import signal
import socket
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.conformance import proc, tracing
from tests.conformance.matrix import LISTENING, SHAPES, contract, kind
from tests.conformance.process import (
    AS_ROOT,
    DIE_WITH_PARENT,
    EXIT_UNSUPPORTED,
    Patience,
    Target,
    Unprivileged,
    environment,
)
from tests.conformance.programs import Run, Start, Traced, complaint, has_ipv6
from tests.conformance.site import HELLO, Site
from tests.conformance.wire import Connection, request

pytestmark = kind("serving")


@contract("usage")
def test_help(target: Target, run: Run) -> None:
    most = ("-p", "65535", "-b", "1", "-w", "1000000", "-t", "86400", "-h")
    for words in (("-h",), ("-v", "-h"), ("-p", "0", "-h"), most, ("--help",)):
        done = run(target.binary, *words)
        assert (done.returncode, done.stderr) == (0, ""), done
        assert "usage: " in done.stdout.lower(), done
        for option in ("-a", "-p", "-b", "-w", "-t", "-u", "-v", "DOCROOT"):
            assert option in done.stdout, option
        assert max(len(line) for line in done.stdout.splitlines()) <= 100
        for option in (*target.model.options[:1], *OWN.get(target.name, ())):
            assert re.search(rf"(?ms)\[{option}[ \]].*^  {option} .*\w", done.stdout), option


HUGE = "99999999999999999999"
BAD_USAGE = [
    *(("-x",), ("-Z", "1"), ("--halp",), ("-vx",)),
    *(("-p",), ("-b",), ("-w",), ("-t",), ("-u",)),
    *(("-p", text) for text in ("", "http", "-1", "65536", "80x", "0x50", HUGE)),
    *(("-b", text) for text in ("many", "-5", "1.5", "2147483648", HUGE)),
    *(("-w", text) for text in ("0", "-1", "two", "1000001", HUGE)),
    *(("-t", text) for text in ("0", "-1", "soon", "86401", HUGE)),
    *(("-u", text) for text in ("", "4294967295", HUGE)),
    *(("-t", "1", ".", "."), (".", "another"), (".", "-p", "0", "another")),
]
#: What some of them are told.
TOLD: dict[tuple[str, ...], str] = {
    ("-x",): "unknown option -x; -h lists the options",
    ("-t",): "-t needs a value; -h lists the options",
    ("-p", "65536"): "-p 65536: expected a number from 0 to 65535",
    (".", "another"): "one DOCROOT expected, found a second: another",
}


@contract("bad-usage", servers=SHAPES)
def test_bad_usage(target: Target, run: Run) -> None:
    assert TOLD.keys() <= {*BAD_USAGE}
    for arguments in BAD_USAGE:
        said = complaint(run(target.binary, *arguments), 2, target.binary.name)
        assert said == TOLD.get(arguments, said)


#: Options of one server: to numbers that are none, and to names that it does not know.
OWN: dict[str, dict[str, tuple[str, ...]]] = {
    "11-sendfile": {"-s": ("no-such", "read+two", "", "mor+sendfile", "writev+sendfile", "writev+splice")},
    "12-aio": {"-d": ("no-such", ""), "-r": ("0", "x"), "-m": ("-1", "udp")},
    "13-uring": {"-r": ("", "0", "-1", "x", "1x", "4097", HUGE)},
    "15-slashdot": dict.fromkeys(("-c", "-l", "-r"), ("0", "x", "-1", "")) | {"-s": ("x", "-1", "")},
}


@contract("bad-usage", servers=OWN)
def test_bad_usage_of_its_own(target: Target, run: Run) -> None:
    for option, values in OWN[target.name].items():
        for value in values:
            done = run(target.binary, "-p", "0", option, value, ".")
            assert option in complaint(done, 2, target.binary.name)


@contract("setup-failure", "address", "docroot")
def test_a_set_up_that_fails(target: Target, run: Run, docroot: Site, unprivileged: Unprivileged) -> None:
    name, root = target.binary.name, docroot.root
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        long = root.joinpath(*["long" * 50] * 8)  # the reason stands behind it, and is not cut off
        failures = {
            ("-p", "0", root / "missing"): f"\\w+ {root}/missing: No such file or directory",
            ("-p", "0", long): f"\\w+ {long}: No such file or directory",
            ("-p", "0", root / "hello.txt"): f"\\w+ {root}/hello.txt: Not a directory",
            ("-p", "0", root / "unreadable"): f"\\w+ {root}/unreadable: Permission denied",
            ("-a", "192.0.2.1", "-p", "0", root): "bind 192.0.2.1:0: .*[Aa]ddress.*",
            ("-p", str(port), root): f"bind 127.0.0.1:{port}: Address.* in use",
        }
        if int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text()) > 79:
            failures["-p", "79", root] = "bind 127.0.0.1:79: Permission denied"
        for arguments, expected in failures.items():
            message = complaint(run(*unprivileged.command(target.binary), *arguments), 1, name)
            assert re.fullmatch(expected, message), message
    # A failed set-up or bad usage: the contract leaves that open, not the one clear line.
    for address in ("nonsense", "", "999.1.1.1", "1.2.3", "127.0.0.1:80", "host.invalid", ":::"):
        done = run(target.binary, "-a", address, "-p", "0", root)
        assert done.returncode in (1, 2)
        assert address in complaint(done, done.returncode, name)


#: What a set-up asks the system for, and lines of a trace of which it is no part, or can go on.
SETUP = (
    "socket,setsockopt,bind,listen,getsockname,fcntl,epoll_create1,epoll_ctl,eventfd2,signalfd4,"
    "rt_sigaction,rt_sigprocmask,prlimit64,pipe2,clone3"
)
NO_NEED = re.compile(
    r"NOTSENT_LOWAT|F_GETF|SIGRT_1|RLIMIT_STACK|"
    r"rt_sigprocmask\(SIG_(SETMASK|UNBLOCK|BLOCK, .*(~|ALRM))"
)


@contract("setup-failure", of="model")
@pytest.mark.servers(*(name for name in LISTENING if name != "14-owfat"))  # its library is silent
def test_each_call_of_the_set_up(target: Target, run: Run, start: Start, docroot: Site, tmp_path: Path) -> None:
    """One after the other fails, in the first process: one line that says so, and the end."""
    if target.variant != "glibc":
        pytest.skip("a sanitizer has a set-up of its own")
    trace = tracing.Trace(tmp_path / "trace", SETUP)
    strace = [word for word in trace.wrapper() if word != "-f"]
    assert start(wrapper=strace, env=trace.env).rests()
    seen: Counter[str] = Counter()
    said = tmp_path / "stderr"  # a file, as at the start: a pipe is set up, too
    for line in trace.lines():
        call = line.partition("(")[0]
        seen[call] += 1
        if NO_NEED.search(line) is None and (call != "clone3" or seen[call] <= 1):
            inject = ["-e", f"inject={call}:error=ENOMEM:when={seen[call]}"]
            command = [*strace, *inject, target.binary, *target.model.options, "-p", "0"]
            to_file = ["/bin/sh", "-c", 'exec "$@" 2> "$0"', said]
            done = run(*to_file, *command, docroot.root, env=trace.env)
            expected = rf"{target.binary.name}: .*: (Cannot allocate memory|Resource temp.*)\n"
            text = AS_ROOT.sub("", said.read_text())
            assert re.fullmatch(expected, text), (line, text)
            assert done.returncode in (1, EXIT_UNSUPPORTED)


@contract("address", "backlog", "idle-time-out", servers=("01-iterative",))
def test_the_defaults(target: Target, run: Run, traced: Traced, tmp_path: Path) -> None:
    """Where it would listen, and for how long it lets a client be silent. (The port may be taken: it is not bound.)"""
    if target.variant != "glibc":
        pytest.skip("a sanitizer has a set-up of its own")
    trace = tracing.Trace(tmp_path / "defaults", "bind,listen", inject=("bind:retval=0", "listen:error=ENOBUFS"))
    said = complaint(run(*trace.wrapper(), target.binary, env=trace.env), 1, target.binary.name)
    assert said == "listen 127.0.0.1:8080: No buffer space available"
    server, sockets = traced("setsockopt")
    assert trace.saw("ENOBUFS", server.patience.limit)
    bound, listens = trace.lines()
    assert 'htons(8080), sin_addr=inet_addr("127.0.0.1")' in bound and ", 1024)" in listens
    assert server.serves()
    times = re.compile(r'SO_(RCV|SND)TIMEO\w*, ("\\27\\0|\{tv_sec=23,)')
    assert sockets.has(lambda _: sum(map(bool, map(times.search, sockets.lines()))) == 2, server.patience.limit)


@contract("bad-usage", servers=("01-iterative",))
def test_a_program_without_a_name(target: Target, run: Run) -> None:
    """argv[0] may be empty, execve() allows it."""
    complaint(run("", "-x", executable=target.binary), 2, "?")


@contract("setup-failure", "emfile", of="model", servers=("01-iterative", "03-prefork", "09-epoll"))
def test_no_room_for_a_client_and_its_file(
    target: Target, run: Run, start: Start, docroot: Site, tmp_path: Path
) -> None:
    """The server says so and ends. Else it would run, and could serve no client."""
    if target.variant != "glibc":
        pytest.skip("a sanitizer has a set-up of its own")
    used = max(proc.descriptors(start().pid)) + 1
    said = tmp_path / "stderr"  # a file, as at the start: a pipe is opened once more
    for room in (0, 1):
        limited = ["/bin/sh", "-c", 'exec "$@" 2> "$0"', said, "/usr/bin/prlimit", f"--nofile={used + room}"]
        assert run(*limited, target.binary, "-p", "0", docroot.root).returncode == 1
        text = AS_ROOT.sub("", said.read_text())
        assert text == f"{target.binary.name}: a descriptor for a client, and one for a file: Too many open files\n"
    assert start(wrapper=["/usr/bin/prlimit", f"--nofile={used + 2}"]).serves()


#: ... and what it tells the kernel of its clients once for all.
ONCE = "socket,setsockopt,bind,listen,fcntl,clone3,clone,epoll_create1,eventfd2,io_uring_register"


@contract("listening-line", of="model")
@pytest.mark.servers(*LISTENING)
def test_the_line_is_the_last_of_the_set_up(target: Target, traced: Traced) -> None:
    """Who reads it is served, with all options: they are those that the listening socket had then.
    (03-prefork starts its other processes after the first.)
    """
    if target.variant != "glibc":
        pytest.skip("a sanitizer has a set-up of its own")
    server, trace = traced(f"{ONCE},write", "-w", "2")
    assert server.rests()
    assert trace.has(lambda _: any("listening" in line for line in trace.completed()), 5.0)
    lines = trace.completed()
    said = next(i for i, line in enumerate(lines) if "listening on http" in line)
    late = [line for line in lines[said + 1 :] if target.name != "03-prefork" or "clone" not in line]
    assert late == []
    listening: set[str] = set()
    for call, fd in re.findall(r" (listen|setsockopt)\((\d+),", "\n".join(lines)):
        assert call == "listen" or fd not in listening, lines
        listening |= {fd} if call == "listen" else set()
    assert listening


@contract("setup-failure", servers=("02-inetd",))
def test_what_is_no_socket(target: Target, run: Run) -> None:
    for stdin in ("/dev/null", "&-"):
        done = run("/bin/sh", "-c", f'exec "$0" <{stdin}', target.binary)
        assert complaint(done, 1, "02-inetd").startswith("standard input is not a socket")


@contract("get", servers=("02-inetd",))
def test_a_connection_that_is_stderr_as_well(target: Target, docroot: Site, patience: Patience) -> None:
    """As inetd and xinetd have it: no line of the log is part of a reply."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command, end = [str(target.binary), "-v", str(docroot.root)], theirs.fileno()
        ours.settimeout(patience.limit)
        process = subprocess.Popen(command, stdin=end, stdout=end, stderr=end)
        try:
            theirs.close()
            ours.sendall(request("/hello.txt") + request("/hello.txt", "Connection: close"))
            replies = b"".join(iter(lambda: ours.recv(65536), b""))
            assert process.wait(patience.limit) == 0
        finally:
            process.kill()
            process.wait()
    assert replies.count(b"HTTP/1.1 200 OK\r\n") == replies.count(HELLO) == 2
    assert replies.startswith(b"HTTP/1.1 ") and b"hello.txt" not in replies


@contract("setup-failure", "listening-line")
def test_a_stdout_that_cannot_be_written(target: Target, run: Run, docroot: Site) -> None:
    """Whoever waits for the line would wait for ever."""
    to_full = ["/bin/sh", "-c", 'exec "$@" > /dev/full', "sh"]
    done = run(*to_full, *DIE_WITH_PARENT, target.binary, "-p", "0", docroot.root)
    message = complaint(done, 1, target.binary.name)
    assert message.endswith(": No space left on device")


@contract("listening-line", "quiet-stdout", "port-zero", "one-worker", "address", "log", "backlog")
@pytest.mark.parametrize(
    ("address", "options"),
    [
        ("127.0.0.2", ("-v", "-t", "5", "-w", "3")),
        ("0.0.0.0", ("-b", "2147483647")),  # the system cuts it down without an error
        ("::1", ("-w", "1", "-b", "1")),
        ("::", ()),
    ],
)
def test_the_listening_line(start: Start, address: str, options: tuple[str, ...]) -> None:
    """At the end there is nothing more on stdout. Without -v there is no log."""
    if ":" in address and not has_ipv6():
        pytest.skip("no IPv6 on this machine")
    server = start(*options, address=address)
    shown = f"[{address}]" if ":" in address else address
    name, port = server.target.binary.name, server.address[1]
    assert server.line == f"{name}: listening on http://{shown}:{port}/\n"
    assert port != 0
    for path in ("/hello.txt", "/nothing", "/%zz"):
        server.get(path)
    assert server.serves()
    assert "-v" in options or server.stderr() == ""


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


@contract("log")
def test_the_log(start: Start) -> None:
    """One line each, without control characters. (0x9b: CSI, where a terminal takes 8 bits.)"""
    server = start("-v")
    for path in ("/hello.txt", "/nothing", "/empty.txt?query"):
        server.get(path)
    server.ask(b'GET /\x1b[2J\x9b31m"\\ HTTP/1.1\r\nHost: x\r\n\r\n')
    assert server.settles()
    text = server.stderr()
    lines = text.splitlines()
    assert len(lines) == 4, text
    for line, path, status in zip(lines, ("hello.txt ", "nothing ", "empty.txt?query "), (200, 404, 200), strict=False):
        assert f'"GET /{path}HTTP/1.1" {status} ' in line, text
    assert all(" " <= c <= "~" or c == "\n" for c in text), repr(text)
    assert all(line.count('"') == 2 for line in lines), text


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


@contract("log", "survives", servers=("01-iterative", "09-epoll"))
def test_a_log_on_a_terminal_that_is_stopped(target: Target, docroot: Site, patience: Patience) -> None:
    """As by Ctrl-S: here nothing reads the other end. Soon there is no room for a whole line, and a write() that waits
    would wait for ever. The server opens the terminal once more, for itself alone.
    """
    ours, theirs = (open(fd, "rb", 0) for fd in pty.openpty())  # noqa: SIM115
    command = [*DIE_WITH_PARENT, str(target.binary), "-v", "-p", "0", str(docroot.root)]
    popen = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=environment(),
        start_new_session=True,
    )
    with ours, theirs, popen as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline().rpartition(b":")[2].rstrip(b"/\n"))
            for length in range(900, 1100):  # together more than a terminal keeps
                with Connection(("127.0.0.1", port), patience.limit) as c:
                    reply = c.ask(request(f"/hello.txt?{'x' * length}", "Connection: close"))
                    assert reply.body == HELLO
            open_files = proc.descriptors(process.pid).items()
            (again,) = (fd for fd, what in open_files if fd > 2 and what == os.ttyname(theirs.fileno()))
            flags = re.search(r"^flags:\s*([0-7]+)$", proc.text(process.pid, f"fdinfo/{again}"), re.MULTILINE)
            assert flags and int(flags[1], 8) & os.O_CLOEXEC
        finally:
            process.kill()


@contract("docroot")
def test_the_docroot_and_the_working_folder(start: Start, docroot: Site) -> None:
    assert start(here=docroot.root / "sub").get("/page.html").body == b"sub page\n"
    server = start(here=docroot.root, root=Path("sub"))
    assert server.get("/page.html").body == b"sub page\n"
    assert server.get("/hello.txt").status == 404
