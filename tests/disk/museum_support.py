"""What the tests of the museum disk share: a mount that ends with its test, and what its files
hold.
"""

from __future__ import annotations

import json
import os
import select
import signal
import struct
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from harness.system import needs

ROOT = Path(__file__).resolve().parents[2]
HANG_S = 60  #: never reached in a good run; only ends one that hangs
UNSUPPORTED = 77
MASK = (1 << 64) - 1


def binary(name: str = "museum") -> Path:
    """The program under test: in $BIN, a folder, relative to the root of the tree."""
    return ROOT / os.environ.get("BIN", "build/bin") / name


def needed(name: str = "museum") -> str:
    """Its path; the test is skipped where it cannot be built, and fails where it was not."""
    program = binary(name)
    if not os.access(program, os.X_OK):
        lacking = needs.missing_library(name, ROOT)
        if lacking is not None:
            pytest.skip(f"{lacking.reason}: {lacking.remedy}")
        pytest.fail(f"{program} is not there: make {name}", False)
    return str(program)


def run(name: str, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [needed(name), *args], capture_output=True, text=True, timeout=HANG_S, check=False
    )


# ---- the content, computed a second time


def _mix(x: int) -> int:
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & MASK
    return x ^ (x >> 31)


def content(path: str, offset: int, length: int) -> bytes:
    """Bytes of MOUNT/path."""
    seed = 0xCBF29CE484222325
    for byte in path.encode():
        seed = (seed ^ byte) * 0x100000001B3 & MASK
    first = offset // 8
    words = (length + offset % 8 + 7) // 8
    values = [_mix(seed + (first + 1 + i) * 0x9E3779B97F4A7C15 & MASK) for i in range(words)]
    return struct.pack(f"<{words}Q", *values)[offset % 8 :][:length]


# ---- a mount


def mounted(folder: Path) -> bool:
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return any(line.split()[4] == str(folder) for line in lines)


def await_unmounted(folder: Path) -> bool:
    deadline = time.monotonic() + HANG_S
    while mounted(folder):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


class Museum:
    """A mounted disk. Skips the test where none can be had."""

    def __init__(
        self, folder: Path, *args: str, prefix: tuple[str, ...] = (), program: str = ""
    ) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [*prefix, program or needed(), *args[:-1], str(folder), args[-1]],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.line = self.next_line()
        if not self.line:
            _, err = self.process.communicate(timeout=HANG_S)
            if self.process.returncode == UNSUPPORTED:
                pytest.skip(err.strip())
            pytest.fail(f"status {self.process.returncode}: {err}")

    def next_line(self) -> str:
        assert self.process.stdout
        ready, _, _ = select.select([self.process.stdout], [], [], HANG_S)
        return self.process.stdout.readline() if ready else ""

    def statistics(self, name: str = ".statistics") -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads((self.folder / name).read_text())
        return parsed

    def new_phase(self) -> dict[str, Any]:
        return self.statistics(".phase")

    def stop(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
        """Status, what else it printed, its complaints."""
        self.process.send_signal(how)
        out, err = self.process.communicate(timeout=HANG_S)
        return self.process.returncode, out, err

    def end(self) -> None:
        """Whatever has happened, nothing is left."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        await_unmounted(self.folder)
        if mounted(self.folder):
            subprocess.run(["fusermount3", "-u", "-z", str(self.folder)], check=False)
