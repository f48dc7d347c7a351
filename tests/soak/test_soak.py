"""The verdict of a soak, on made-up cycles both ways, and its end; the soak: `make soak`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import soak
from soak import Cycle, faults

Change = Callable[[int, Cycle], Cycle]


def cycles(change: Change, n: int = 60) -> list[Cycle]:
    """Flat, with some noise, then changed; the workers are replaced once."""
    flat = [
        Cycle(5.0 * i, i // 30, 9000, 0, 80 + (i * 7) % 11, 4000 + (i * 5) % 13, 9)
        for i in range(n)
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


def test_too_few_cycles() -> None:
    assert "too few" in faults(cycles(lambda _, c: c, n=9), 9)[0]


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
