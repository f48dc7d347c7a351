"""The command line of the fresh-machine proof. The proof itself takes a quarter of an hour:
tests/fresh-machine/run.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]


def run(*words: str) -> tuple[int, str, str]:
    command = ["sh", str(TREE / "tests/fresh-machine/run"), *words]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_it_runs_what_the_readme_says_and_refuses_what_it_does_not_know() -> None:
    status, commands, _ = run("-n", "trixie")
    assert status == 0
    assert commands.startswith("0 apt-get install -y make && make")
    assert "\n0 make test\n" in commands
    for level in ("all", "essential", "bare"):
        assert "\n1000 " in run("-n", "-u", level)[1]
    assert run("-n", "bookworm", "make a", "make b")[1] == "0 make a\n0 make b\n"
    assert run("sid") == (2, "", 'fresh-machine: "sid": there are bookworm and trixie\n')
    status, _, said = run("-u", "some", "bookworm")
    assert (status, said) == (2, 'fresh-machine: -u "some": there are all, essential and bare\n')
