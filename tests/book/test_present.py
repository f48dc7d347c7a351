"""`make present`: the deck through one of our own servers."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator

import pytest

from book.tree import ROOT, Tree

SERVER = ROOT / "build/bin/15-slashdot"


@contextlib.contextmanager
def presenting(tree: Tree, port: str = "0") -> Iterator[subprocess.Popen[str]]:
    """The running program; ended by SIGTERM, if it has not ended by itself."""
    if not SERVER.exists():
        pytest.skip("build/bin/15-slashdot is not built (make servers)")
    build = tree.path / "build"
    (build / "bin").mkdir(exist_ok=True)
    if not (build / "bin" / SERVER.name).exists():
        (build / "bin" / SERVER.name).symlink_to(SERVER)
    words = ["--build", str(build), "present", str(build / "slides/deck.html"), port]
    with subprocess.Popen(
        [sys.executable, "-m", "stage", *words], cwd=ROOT, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT / "slides")},
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.terminate()


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_the_deck_is_served_at_a_free_port_until_the_show_ends(tree: Tree) -> None:
    deck = tree.write("build/slides/deck.html", "<!DOCTYPE html><title>Deck</title>")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with presenting(tree, str(port)) as process:
            shown, speaker = line_of(process).split(), line_of(process).split()
            assert shown[0] == "deck"
            address = r"http://127\.0\.0\.1:(\d+)/slides/deck\.html\?stage=\d+\.\S+"
            found = re.fullmatch(address, shown[1])
            assert found and port < int(found[1]) <= port + 20
            assert speaker == ["speaker", "view", f"{shown[1]}&speaker"]
            for url in (shown[1], speaker[2]):
                with urllib.request.urlopen(url, timeout=10) as reply:
                    assert reply.read() == deck.read_bytes()
            process.terminate()
            assert process.wait(10) == 0
            with pytest.raises(OSError):
                urllib.request.urlopen(shown[1], timeout=10)


def test_deck_that_is_not_there_is_said(tree: Tree) -> None:
    with presenting(tree) as process:
        said = process.communicate(timeout=30)
    deck = tree.path / "build/slides/deck.html"
    assert (process.returncode, *said) == (1, "", f"present: {deck} is not there (make slides)\n")
