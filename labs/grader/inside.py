"""A plug-in of pytest (-p grader.inside): its programs run in a cell that lives as long as it does.

LAB_CELL says how: {"user": 61000 or null, "see": [paths], "limits": [prlimit ...], "programs":
{"bin/02-fork": "real/02-fork"}}. Nobody shares this pytest's network but the cell.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
from pathlib import Path

from grader.cell import Cell

SIOCSIFFLAGS, IFF_UP = 0x8914, 1  # netdevice(7)
cells: list[Cell] = []


def _loopback_up() -> None:
    """A new network has a loopback, and it is down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as anything:
        fcntl.ioctl(anything, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))


def pytest_configure() -> None:
    how = json.loads(os.environ.pop("LAB_CELL"))
    _loopback_up()
    cell = Cell.start(how["user"], [Path(path) for path in how["see"]])
    cells.append(cell)
    for name, program in how["programs"].items():
        script = Path(name)
        script.write_text(cell.script(Path(program), how["limits"]), encoding="utf-8")
        script.chmod(0o755)


def pytest_unconfigure() -> None:
    while cells:
        cells.pop().end()
