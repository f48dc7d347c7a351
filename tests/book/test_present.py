"""`make present`: the deck through one of our own servers."""

from __future__ import annotations

import socket
import subprocess
import urllib.request
from pathlib import Path

import pytest

from book import present
from book.tree import ROOT, Tree


@pytest.fixture
def deck(tree: Tree) -> Path:
    return tree.write("build/slides/deck.html", "<!DOCTYPE html><title>Deck</title>")


def run(deck: Path, port: str) -> subprocess.CompletedProcess[str]:
    if not present.SERVER.exists():
        pytest.skip("build/bin/02-fork is not built (make servers)")
    command = present.command(deck.parent.parent, deck, port)
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def test_addresses_are_those_of_the_deck(tree: Tree, deck: Path) -> None:
    with present.presenting(tree, deck) as process:
        assert process.stdout is not None
        shown, speaker = (process.stdout.readline().split() for _ in range(2))
        assert shown[0] == "deck"
        assert shown[1].startswith("http://127.0.0.1:")
        assert speaker == ["speaker", "view", f"{shown[1]}?speaker"]
        for address in (shown[1], speaker[2]):
            with urllib.request.urlopen(address, timeout=10) as reply:
                assert reply.read() == deck.read_bytes()
        process.terminate()
        assert process.wait(10) == 0
        with pytest.raises(OSError):
            urllib.request.urlopen(shown[1], timeout=10)


def test_port_that_is_taken_is_said(deck: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run(deck, str(taken.getsockname()[1]))
    assert done.returncode == 1
    assert done.stdout == ""
    assert "Address already in use" in done.stderr
    assert "PORT=0 takes any free port" in done.stderr


def test_deck_that_is_not_there_is_said(deck: Path) -> None:
    deck.unlink()
    done = run(deck, "0")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.strip() == f"present: {deck} is not there (make slides)"


def test_the_real_target_names_what_it_runs() -> None:
    """`make present` of this tree: the deck of the track, the server, the port."""
    command = ["make", "-n", "present", "TRACK=talk45", "PORT=8123", "DEPS=skip"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    expected = "present.py build/bin/02-fork build build/slides/deck-talk45.html 8123"
    assert expected in done.stdout
