"""What soak.py and restarts.py conclude from cycles, traces and replies that are made up, and their
end; the soak: `make soak`, `make soak-restarts`.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import soak
from restarts import Client, lives
from soak import Cycle, faults

from conformance.wire import ContractBroken

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
    found = faults(cycles(change), 9)
    assert len(found) == (word != "")
    assert word in "".join(found)
    assert "too few" in faults(cycles(change)[:9], 9)[0]


# ---- processes and replies, of restarts.py

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


@pytest.mark.parametrize(
    ("text", "judged"),
    [
        (HEAD + "\r\nhello", "goes on"),
        (HEAD + "Connection: close\r\n\r\nhello", "ends"),
        (HEAD + "\r\nhellO", "a wrong body"),
        (HEAD.replace("5", "6") + "\r\nhello!", "a wrong length"),
        ("HTTP/1.1 503 Service Unavailable\r\n\r\n", "status 503"),
    ],
)
def test_replies(text: str, judged: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = Client(listening.getsockname(), 20)
        with client, listening.accept()[0] as server:
            server.sendall(text.encode())
            server.shutdown(socket.SHUT_WR)
            try:
                said = "goes on" if client.reads(b"hello") else "ends"
            except ContractBroken as fault:
                said = str(fault).splitlines()[0]
    assert said == judged


# ---- their end

SERVER = """#!{python}
import os, pathlib, socket, time
pathlib.Path("{folder}/pid").write_text(str(os.getpid()))
s = socket.create_server(("127.0.0.1", 0))
print(f"listening on http://127.0.0.1:{{s.getsockname()[1]}}/", flush=True)
time.sleep(60)
"""
HAMMER = """#!/bin/sh
touch {folder}/asked
exec sleep 2
"""


def test_sigterm_ends_the_server_too(tmp_path: Path) -> None:
    """Server and load are made up."""
    (tmp_path / "bin").mkdir()
    for name, text in (("server", SERVER), ("hammer", HAMMER)):
        path = tmp_path / "bin" / name
        path.write_text(text.format(python=sys.executable, folder=tmp_path), encoding="utf-8")
        path.chmod(0o755)
    command = [sys.executable, soak.__file__, "--server", "server", "--build", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 20
        while not (tmp_path / "asked").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        pid = int((tmp_path / "pid").read_text(encoding="ascii"))
        os.kill(pid, 0)  # it is there
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=20)
    assert process.returncode == 1
    assert said.endswith("soak: ended by SIGTERM\n")
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
