"""`make present` over a real server, for as long as a test needs it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from book.tree import ROOT, Tree

SERVER = ROOT / "build/bin/15-slashdot"


def program(root: Path, deck: Path, port: str) -> tuple[list[str], dict[str, str]]:
    """The command, and what it is started with; in `root` lie what is served and the programs."""
    words = ["present", str(deck), port]
    command = [sys.executable, "-m", "stage", "--build", str(root), *words]
    return command, {**os.environ, "PYTHONPATH": str(ROOT / "slides")}


def link_server(root: Path) -> None:
    if not SERVER.exists():
        pytest.skip("build/bin/15-slashdot is not built (make servers)")
    (root / "bin").mkdir(exist_ok=True)
    if not (root / "bin/15-slashdot").exists():
        (root / "bin/15-slashdot").symlink_to(SERVER)


@contextlib.contextmanager
def presenting(tree: Tree, deck: Path) -> Iterator[subprocess.Popen[str]]:
    """The running program; ended by SIGTERM, if it has not ended by itself."""
    link_server(tree.path / "build")
    command, environment = program(tree.path / "build", deck, "0")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


@contextlib.contextmanager
def presented(tree: Tree, deck: Path) -> Iterator[str]:
    """The address of the deck."""
    with presenting(tree, deck) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[1]
