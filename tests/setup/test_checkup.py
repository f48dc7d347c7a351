"""The probes of `make doctor`: servers and compilers, here made up, are tried out."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from harness import checkup, doctor, needs
from harness.needs import Answer

TREE = Path(__file__).resolve().parents[2]


# ---- servers


def server(folder: Path, text: str) -> Answer:
    program = folder / "09-made-up"
    program.write_text(f"#!/bin/sh\n{text}\n", encoding="ascii")
    program.chmod(0o755)
    return checkup.server("09-made-up", folder)


LISTENING = 'echo "09-made-up: listening on http://127.0.0.1:1/"'


def test_server_that_listens(tmp_path: Path) -> None:
    assert server(tmp_path, f"{LISTENING}; exec sleep 60") == Answer(True)


def test_server_whose_model_is_not_supported(tmp_path: Path) -> None:
    answer = server(tmp_path, 'echo "09-made-up: no epoll here: use Linux" >&2; exit 77')
    assert answer == Answer(False, "09-made-up: no epoll here: use Linux", "")


def test_server_that_fails(tmp_path: Path) -> None:
    answer = server(tmp_path, "exit 3")
    assert answer == Answer(False, "status 3", "make test tells more")


def test_server_that_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkup, "PATIENCE", 2.0)
    # A loop, not one long sleep: the shell must not leave a child behind when it is killed.
    text = f'trap "" TERM; {LISTENING}; while :; do sleep 0.2; done'
    assert server(tmp_path, text).reason == "it does not end at SIGTERM"


def test_server_that_is_not_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "probe", lambda _: Answer(True))
    assert doctor.line(doctor.row("x", checkup.server("x", tmp_path))).startswith(
        "runs (not built yet"
    )
    monkeypatch.setattr(needs, "probe", lambda _: Answer(False, "no cc", "apt-get install gcc"))
    assert not checkup.server("x", tmp_path).ok


# ---- build variants


def fake_compiler(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """`cc` is this script; the program it makes is another."""
    path = folder / "cc"
    path.write_text(f"#!/bin/sh\nwhile [ $1 != -o ]; do shift; done\n{text}\n", encoding="ascii")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_variant_that_compiles_and_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_compiler(tmp_path, monkeypatch, 'echo "#!/bin/sh" >$2; chmod +x $2')
    assert checkup.variant("glibc").ok


def test_variant_that_does_not_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_compiler(tmp_path, monkeypatch, "echo 'cannot find -lasan' >&2; exit 1")
    answer = checkup.variant("asan")
    assert not answer.ok
    assert answer.reason == "cannot find -lasan"
    assert answer.remedy


def test_variant_whose_programs_do_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = "#!/bin/sh\\necho ==7==unexpected memory mapping >&2\\nexit 66\\n"
    fake_compiler(tmp_path, monkeypatch, f"printf '{program}' >$2; chmod +x $2")
    assert checkup.variant("tsan").reason == "unexpected memory mapping"


def test_variants_are_those_of_the_makefile() -> None:
    text = (TREE / "Makefile").read_text(encoding="utf-8")
    found = re.search(r"^VARIANTS := (.*)$", text, re.M)
    assert found
    assert list(checkup.VARIANTS) == found.group(1).split()
