"""SIGTERM to a soak ends its server as well; server and load are made up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SERVER = """#!{python}
import os, pathlib, socket, time
pathlib.Path("{folder}/pid").write_text(str(os.getpid()))
s = socket.create_server(("127.0.0.1", 0))
print(f"listening on http://127.0.0.1:{{s.getsockname()[1]}}/", flush=True)
time.sleep(60)
"""
LOAD = """#!/bin/sh
touch {folder}/asked
exec sleep 2
"""


def program(path: Path, text: str, folder: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.format(python=sys.executable, folder=folder), encoding="utf-8")
    path.chmod(0o755)


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("soak", ["churn", "mixed"])
def test_sigterm_ends_the_server_too(tmp_path: Path, soak: str) -> None:
    program(tmp_path / "bin" / "server", SERVER, tmp_path)
    program(tmp_path / "bin" / "hammer", LOAD, tmp_path)
    command = [sys.executable, str(Path(__file__).with_name(f"{soak}.py")), "--server", "server"]
    with subprocess.Popen([*command, "--build", str(tmp_path)], stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 20
        while not (tmp_path / "asked").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        pid = int((tmp_path / "pid").read_text(encoding="ascii"))
        assert is_there(pid)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=20)
    assert process.returncode == 1
    assert said.decode().endswith("soak: ended by SIGTERM\n")
    assert not is_there(pid)
