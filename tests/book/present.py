"""slides/present.py over a real server, for as long as a test needs it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from book.tree import ROOT, Tree

SERVER = ROOT / "build/bin/02-fork"


def command(root: Path, deck: Path, port: str) -> list[str]:
    return [
        sys.executable,
        str(ROOT / "slides/present.py"),
        str(SERVER),
        str(root),
        str(deck),
        port,
    ]


@contextlib.contextmanager
def presenting(tree: Tree, deck: Path) -> Iterator[subprocess.Popen[str]]:
    """The running program; ended by SIGTERM, if it has not ended by itself."""
    if not SERVER.exists():
        pytest.skip("build/bin/02-fork is not built (make servers)")
    with subprocess.Popen(
        command(tree.path / "build", deck, "0"), stdout=subprocess.PIPE, text=True
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
