"""/proc, while processes end."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from quest.ground import guard, places
from quest.measure import counters
from tests.harness.made_up import BENCHMARKS, Tree, await_, machine


def test_a_process_that_ends_while_all_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object, **__: object) -> None:
        raise ProcessLookupError("No such process")

    machine(tmp_path, {"7/stat": "", "8/stat": "", "self": "", "9x": ""})
    assert {path.name for path in places.numbered(tmp_path)} == {"7", "8"}
    monkeypatch.setattr(Path, "stat", gone)  # what Path.glob() asks of each
    assert os.getpid() in guard.session_members(os.getsid(0))
    assert all(seconds >= 0 for seconds in counters.kernel_threads_s().values())
    monkeypatch.setattr(os, "listdir", gone)
    assert places.numbered(tmp_path) == []


@pytest.mark.parametrize("how", [FileNotFoundError, ProcessLookupError, PermissionError])
def test_a_process_that_ends_between_two_looks(tree: Tree, monkeypatch: pytest.MonkeyPatch, how: type[OSError]) -> None:
    """lstat() of its link finds it, readlink() does not: as os.path.realpath() asks."""

    def gone(*_: object, **__: object) -> str:
        raise how("it has ended")

    command = [sys.executable, "-c", "input()", "its-marker"]
    with subprocess.Popen(command, cwd=tree.root, stdin=subprocess.PIPE, text=True) as process:
        await_(lambda: tree.processes("its-marker") == [process.pid], process)
        with monkeypatch.context() as patched:
            patched.setattr(os, "readlink", gone)
            assert tree.processes("its-marker") == []
            assert places.link_of("/proc/self/cwd") == ""
        process.communicate("\n")


def test_processes_are_looked_at_by_what_bears_their_end() -> None:
    """Path.glob(), Path.resolve() and os.path.realpath() look twice at each file of /proc."""
    twice = re.compile(r'"/proc[^"]*"[,)][^\n]*\.(glob|rglob|resolve)\(|realpath\(\w.*(proc|pid)')
    tree = BENCHMARKS.parent
    files = [p for top in ("quest", "labs", "tests") for p in (tree / top).rglob("*.py")]
    found = {
        f"{path.relative_to(tree)}: {line.strip()}"
        for path in files
        for line in path.read_text(encoding="utf-8").splitlines()
        if twice.search(line)
    }
    assert files and not found
