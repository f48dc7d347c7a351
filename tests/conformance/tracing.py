"""System-call traces and injected errors by strace(1), where the system allows tracing; else the
test is skipped.
"""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.process import wait_until

#: A leak check stops the process with ptrace, which is taken while strace looks on, and which
#: SIGCONT from elsewhere upsets.
ENV = {"ASAN_OPTIONS": "detect_leaks=0:exitcode=99"}
FORKS = "clone,clone3,fork,vfork"
CALL = re.compile(r"(\d+) +(\w+)\((.*?)\) += (-?\w+)(?: (\w+))?")


@functools.cache
def unavailable() -> str | None:
    """Why nothing can be traced here, with the remedy; None where it can."""
    strace = shutil.which("strace")
    if strace is None:
        return "strace is not installed (apt-get install strace)"
    probe = [strace, "-DDD", "-f", "-o", "/dev/null", "-e", "inject=sync:error=EAGAIN", "true"]
    done = subprocess.run(probe, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines()[-1:] or ["strace failed"]
        return f"tracing is not permitted here: {reason[0]} (in a container: --cap-add SYS_PTRACE)"
    return None


class Trace:
    """One strace of a server and its children. The server keeps the process number it would have
    without.
    """

    def __init__(
        self, output: Path, calls: str, inject: str | None = None, path: Path | None = None
    ) -> None:
        if (reason := unavailable()) is not None:
            pytest.skip(reason)
        self.output = output
        self._arguments = ["-e", f"trace={calls}"]
        if inject is not None:
            self._arguments += ["-e", f"inject={inject}"]
        if path is not None:  # only calls on this file
            self._arguments += ["-P", str(path)]

    def wrapper(self) -> list[str]:
        """-DDD: strace watches from a session of its own, and the server stays our child."""
        strace = shutil.which("strace") or "strace"
        return [strace, "-DDD", "-f", "-qq", "-s", "64", "-o", str(self.output), *self._arguments]

    def lines(self) -> list[str]:
        return self.output.read_text(errors="replace").splitlines()

    def calls(self) -> list[tuple[int, str, str]]:
        """(pid, call, result) of all completed calls; a result is a number or an error's name."""
        found = []
        unfinished: dict[str, str] = {}
        for line in self.lines():
            pid = line.split(" ", 1)[0]
            if line.endswith("<unfinished ...>"):
                unfinished[pid] = line[: -len("<unfinished ...>")]
                continue
            resumed = re.match(r"\d+ +<\.\.\. \w+ resumed>(.*)", line)
            if resumed is not None and pid in unfinished:
                line = unfinished.pop(pid) + resumed[1]
            match = CALL.match(line)
            if match is not None:
                found.append((int(match[1]), match[2], match[5] if match[4] == "-1" else match[4]))
        return found

    def has(self, true: Callable[[list[tuple[int, str, str]]], bool], limit: float) -> bool:
        """strace writes a moment later than the server acts."""
        return wait_until(lambda: self.output.exists() and true(self.calls()), limit)
