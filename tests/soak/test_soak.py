"""What soak.py concludes from cycles, traces and replies that are made up, and its end; the soak:
`make soak`, `make soak-mixed`, `make soak-restarts`.
"""

import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from tests.conformance import proc
from tests.conformance.programs import TREE
from tests.soak import soak
from tests.soak.soak import Cycle, faults, lives, odd

Change = Callable[[int, Cycle], Cycle]


def cycles(change: Change) -> list[Cycle]:
    """Flat, with some noise, then changed; the workers are replaced once."""
    flat = [
        Cycle(5.0 * i, i // 30, 9000, 0, 80 + (i * 7) % 11, 4000 + (i * 5) % 13, 9)
        for i in range(60)
    ]
    return [change(i, c) for i, c in enumerate(flat)]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda _, c: c, ""),
        (lambda i, c: replace(c, failed=1) if i == 30 else c, "lost"),
        (lambda i, c: replace(c, descriptors=10) if i == 59 else c, "descriptors"),
        (lambda i, c: replace(c, anonymous_kib=c.anonymous_kib + 10 * max(0, i - 30)), "memory"),
        (lambda i, c: replace(c, median_us=c.median_us + 2 * (i % 30)), "latency"),
        # one bad cycle is no trend
        (lambda i, c: replace(c, median_us=90_000.0) if i == 50 else c, ""),
        # new workers may be larger, and tables fill in their first cycles
        (lambda i, c: replace(c, anonymous_kib=4000 + 900 * (i // 30) - 500 * (i == 0)), ""),
        # a machine with other work is as slow for the new workers as it was for the old ones
        (lambda i, c: replace(c, median_us=c.median_us * (1.6 if i >= 30 else 1)), ""),
    ],
)  # fmt: skip
def test_what_is_flat_and_what_is_not(change: Change, word: str) -> None:
    found = faults(cycles(change), 9, 10)
    assert len(found) == (word != "")
    assert word in "".join(found)
    assert "too few" in faults(cycles(change)[:9], 9, 10)[0]
    assert not faults(cycles(change)[:9], 9, 1)


# ---- processes and replies

WAIT = "wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], WNOHANG, NULL) = 12\n"
FIRST = f"""\
execve("bin/server", ["bin/server"], 0x7f /* 9 vars */) = 0
clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD, child_tidptr=0x7f) = 12
clone3({{flags=CLONE_VM|CLONE_THREAD, child_tid=0x7f}} => {{parent_tid=[13]}}, 88) = 13
--- SIGCHLD {{si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=12, si_uid=0, si_status=0}} ---
{WAIT}wait4(-1, 0x7f, WNOHANG, NULL) = -1 ECHILD (No child processes)
exit_group(0) = ?
+++ exited with 0 +++
"""


@pytest.mark.parametrize(
    ("end", "first", "judged"),
    [
        ("+++ exited with 0 +++", FIRST, "well"),
        ("+++ killed by SIGSEGV (core dumped) +++", FIRST, "killed by SIGSEGV"),
        ("+++ exited with 1 +++", FIRST, "exited with 1"),
        ("exit_group(0) = ?", FIRST, "never ended"),
        ("+++ exited with 0 +++", FIRST.replace(WAIT, ""), "nobody waited for it"),
    ],
)
def test_lives(end: str, first: str, judged: str) -> None:
    assert lives({11: first, 12: f"{end}\n", 13: f"{end}\n"}) == {12: judged}


HEAD = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"
LAST = HEAD + "Connection: close\r\n\r\n"


@pytest.mark.parametrize(
    ("kind", "text", "judged"),
    [
        ("pipelined", 7 * f"{HEAD}\r\nhello" + LAST + "hello", ""),
        ("dripped", LAST + "hello", ""),
        ("dripped", LAST + "hellO", "status 200, 5 bytes of l0.bin"),
        ("half-closed", LAST + "hello, more", "ContractBroken: expected an orderly end"),
        ("pipelined", LAST + "hellO", "status 200, 5 bytes of s0.bin"),
        ("pipelined", HEAD + "\r\nhello", "ConnectionLost: "),
        ("broken off", "", "ConnectionLost: "),
        ("pipelined", "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", "status 503, 0 bytes"),
    ],
)
def test_replies(kind: str, text: str, judged: str) -> None:
    files = dict.fromkeys(("s0.bin", "m0.bin", "l0.bin"), b"hello")
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor() as pool:
        said = pool.submit(odd, listening.getsockname()[1], files, kind)
        with listening.accept()[0] as server:
            server.sendall(text.encode())
            server.shutdown(socket.SHUT_WR)
            while server.recv(4096):
                pass
    assert said.result(20).startswith(judged and f"{kind}: {judged}")
    assert bool(said.result()) == bool(judged)


# ---- its end


def test_sigterm_ends_the_server_too(pytestconfig: pytest.Config) -> None:
    build = TREE / str(pytestconfig.getoption("--build"))
    command = [sys.executable, "-m", "tests.soak.soak", "--herd", "10", "--build", str(build)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout
        process.stdout.readline()  # by then it has a server, that has served
        (server,) = (
            pid for pid in proc.children(process.pid) if "09-epoll" in proc.text(pid, "cmdline")
        )
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "soak: ended by SIGTERM\n" in said  # beside what hammer says of a server that is gone
    assert not proc.alive(server)


def test_a_server_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "PATIENCE_S", 0.1)
    deaf = "trap '' TERM; echo http://deaf:1/; exec sleep 20"
    with pytest.raises(SystemExit, match="still runs"), soak.running(["sh", "-c", deaf]):
        pass
