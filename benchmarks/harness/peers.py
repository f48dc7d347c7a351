"""Other people's servers: benchmarks/peers/<name>.toml says how one is configured, started and
ended.

A peer runs from a private folder, on a port we have chosen, without touching any file of the
system. Its configuration files are templates with @port@, @docroot@, @scratch@ and the
experiment's own values; braces mean something to most servers.
"""

import re
import signal
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import InputError, RepetitionError
from harness.model import Value
from harness.processes import Process
from harness.tables import Table, read_toml

FOLDER = Path("benchmarks/peers")
MARKER = re.compile(r"@([a-z_][a-z0-9_]*)@")
STOP_SIGNALS = ("TERM", "QUIT", "INT", "WINCH")


@dataclass(frozen=True)
class Peer:
    name: str
    title: str
    program: str
    command: tuple[str, ...]
    files: Mapping[str, str]
    stop: signal.Signals


def load(name: str, folder: Path = FOLDER) -> Peer:
    path = folder / f"{name}.toml"
    table = Table(str(path), read_toml(path, str(path)))
    files = table.table("files")
    peer = Peer(
        name=name,
        title=table.text("title", name),
        program=table.text("program", name),
        command=table.texts("command"),
        files={file: files.text(file) for file in files.names()},
        stop=signal.Signals[f"SIG{table.choice('stop', STOP_SIGNALS, 'TERM')}"],
    )
    table.required("command")
    table.done()
    return peer


def fill(text: str, values: Mapping[str, Value], where: str) -> str:
    def value(match: re.Match[str]) -> str:
        if match.group(1) not in values:
            raise InputError(f"{where}: unknown value @{match.group(1)}@")
        return str(values[match.group(1)])

    return MARKER.sub(value, text)


def write_files(peer: Peer, folder: Path, values: Mapping[str, Value]) -> None:
    for name, text in peer.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(fill(text, values, f"{FOLDER}/{peer.name}.toml"), encoding="utf-8")


def free_port(address: str = "127.0.0.1") -> int:
    with socket.create_server((address, 0)) as server:
        port: int = server.getsockname()[1]
        return port


def await_connection(process: Process, address: str, port: int, patience: float = 15.0) -> None:
    """Until something accepts there: a peer prints no listening line."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if process.reap(0.0):
            raise RepetitionError(process.describe_end())
        try:
            socket.create_connection((address, port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise RepetitionError(f"{process.name} did not listen within {patience:g} s")
