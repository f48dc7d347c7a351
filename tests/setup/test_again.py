"""What CI runs again (.ci/again): up to three tests that have failed, named and counted; and nothing where pytest
did not come to its end.
"""

import json
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import conftest

AGAIN = Path(__file__).resolve().parents[2] / ".ci/again"


def again(top: Path, ended: str, failed: int, passes: bool = True) -> tuple[int, str, bool]:
    """Its status, what it says, and whether tests were run; in a tree whose make only notes that it was called."""
    cache = top / "build/pytest/v"
    for folder in (cache / "cache", cache / "tests", top / "bin"):
        folder.mkdir(parents=True)
    names = {f"tests/test_x.py::test_{number}": True for number in range(failed)}
    (cache / "cache/lastfailed").write_text(json.dumps(names, indent=2))
    if ended:
        (cache / "tests/ended").write_text(ended)
    make = top / "bin/make"
    make.write_text(f"#!/bin/sh\necho \"$@\" > called\nexit {0 if passes else 2}\n")
    make.chmod(0o755)
    path = {"PATH": f"{top / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run([AGAIN], cwd=top, env=path, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, (top / "called").exists()


@pytest.mark.parametrize(
    ("ended", "failed", "passes", "status", "called", "said"),
    [
        ("1", 2, True, 0, True, "CI: unsteady, passed alone: 2\n"),
        ("1", 3, True, 0, True, "tests/test_x.py::test_2"),
        ("1", 2, False, 2, True, "CI: 2 failed in company:"),
        ("1", 4, True, 1, False, "CI: 4 failed in company:"),
        ("1", 0, True, 1, False, ""),
        ("2", 1, True, 1, False, "nothing is run again"),
        ("3", 1, True, 1, False, "nothing is run again"),
        ("", 1, True, 1, False, "nothing is run again"),
    ],
)
def test_what_is_run_again(
    tmp_path: Path, ended: str, failed: int, passes: bool, status: int, called: bool, said: str
) -> None:
    found, out, was_called = again(tmp_path, ended, failed, passes)
    assert (found, was_called) == (status, called), out
    assert said in out
    assert ("unsteady" in out) == (status == 0)


def test_how_pytest_has_ended_is_noted() -> None:
    """By the process that has heard of all tests, and not by a worker."""
    noted: dict[str, int] = {}
    config: Any = SimpleNamespace(
        cache=SimpleNamespace(set=noted.__setitem__), pluginmanager=SimpleNamespace(get_plugin=lambda _: None)
    )
    session: Any = SimpleNamespace(config=config)
    conftest.pytest_sessionfinish(session, pytest.ExitCode.INTERNAL_ERROR)
    assert noted == {"tests/ended": 3}
    config.workerinput = {}
    conftest.pytest_sessionfinish(session, pytest.ExitCode.OK)
    assert noted == {"tests/ended": 3}
