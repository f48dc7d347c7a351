"""Servers in a simulated world: what sim.c says. An hour of it: `make soak-sim SECONDS=3600`."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.conformance.programs import TREE, binary
from tests.sim import planted

SERVERS = (
    "05b-nonblocking", "06-select", "07-poll", "09-epoll",
    "10-kqueue", "11-sendfile", "12-aio", "15-slashdot",
)  # fmt: skip
STEPS = 250_000  #: of each: two million in all


def run(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    if not os.access(program, os.X_OK):
        pytest.fail(f"{program} is not there: make {program.relative_to(TREE)}", False)
    command = [str(program), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize("server", SERVERS)
def test_no_fault_in_a_simulated_world(server: str, pytestconfig: pytest.Config) -> None:
    done = run(binary(pytestconfig, "asan", f"{server}_sim"), "--steps", str(STEPS))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_a_planted_fault_is_found_and_cut(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    """The client that is named after its end, of 10-kqueue; and the trace, from its seed again."""
    built = TREE / str(pytestconfig.getoption("--build"))
    fault = next(one for one in planted.FAULTS if one.name == "change-outlives-client")
    planted.build(tmp_path, built, fault)
    program = tmp_path / "build/asan/10-kqueue_sim"
    first = run(program, "--steps", "50000")
    assert first.returncode == 1
    assert "heap-use-after-free" in first.stdout
    again = re.search(r"--world [0-9]+ --chaos [0-9]+", first.stdout)
    assert again
    trace = re.compile(r"^ +[0-9]+ +[0-9.]+ s  .*$", re.M)
    second = run(program, *again[0].split())
    assert trace.findall(second.stdout) == trace.findall(first.stdout) != []
