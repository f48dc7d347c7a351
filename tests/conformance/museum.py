"""A mounted museum disk, for tests. Skips the test where none can be had."""

import json
import os
import select
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.process import wait_until

ROOT = Path(__file__).resolve().parents[2]
HANG_S = 60  #: never reached in a good run; only ends one that hangs
UNSUPPORTED = 77


def needed(name: str = "museum") -> str:
    """The program's path, in $BIN; skips where it cannot be built, fails where it was not."""
    program = ROOT / os.environ.get("BIN", "build/bin") / name
    if not os.access(program, os.X_OK):
        from quest.measure import needs  # a bundle of a lab is without the harness

        lacking = needs.missing_library(name, ROOT)
        if lacking is not None:
            pytest.skip(f"{lacking.reason}: {lacking.remedy}")
        pytest.fail(f"{program} is not there: make {name}", False)
    return str(program)


def mounted(folder: Path) -> bool:
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return any(line.split()[4] == str(folder) for line in lines)


def await_unmounted(folder: Path) -> bool:
    return wait_until(lambda: not mounted(folder), HANG_S)


class Museum:
    """A mounted disk. Skips the test where none can be had."""

    def __init__(self, folder: Path, *args: str, prefix: tuple[str, ...] = (), program: str = "") -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [*prefix, program or needed(), str(folder), *args],
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
        if not await_unmounted(self.folder):
            subprocess.run(["fusermount3", "-u", "-z", str(self.folder)], check=False)
