"""The smoke test that is made for the BSDs, against the same server on Linux; and it can fail."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.process import Target, environment

SMOKE = Path(__file__).with_name("smoke.py")


def smoke(target: Target, *options: str) -> tuple[int, dict[str, bool]]:
    """The status, and of each case whether it was ok."""
    done = subprocess.run(
        [sys.executable, "-I", str(SMOKE), "--server", str(target.binary), *options],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=300,
        check=False,
    )
    print(done.stdout, done.stderr)
    cases = re.findall(r"^(not )?ok \d+ - ([^:]+):", done.stdout, re.MULTILINE)
    assert f"1..{len(cases)}\n" in done.stdout
    return done.returncode, {name: not wrong for wrong, name in cases}


@pytest.mark.servers("10-kqueue")
def test_a_right_server_passes(target: Target) -> None:
    status, cases = smoke(target)
    assert status == 0 and len(cases) == 11 and all(cases.values())


@pytest.mark.servers("01-iterative")
def test_a_server_for_one_client_does_not(target: Target) -> None:
    status, cases = smoke(target, "--seconds", "1", "--only", "connections,pipelining,stop")
    assert status == 1
    assert cases == {"connections": False, "pipelining": False, "stop": False}
