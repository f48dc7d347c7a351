"""`make present`: the deck through one of our own servers."""

from __future__ import annotations

import re
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
    present.link_server(deck.parent.parent)
    command, environment = present.program(deck.parent.parent, deck, port)
    return subprocess.run(
        command, capture_output=True, text=True, timeout=30, check=False, env=environment, cwd=ROOT
    )


def test_addresses_are_those_of_the_deck(tree: Tree, deck: Path) -> None:
    with present.presenting(tree, deck) as process:
        assert process.stdout is not None
        shown, speaker = (process.stdout.readline().split() for _ in range(2))
        assert shown[0] == "deck"
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/slides/deck\.html\?stage=\d+\.\S+", shown[1])
        assert speaker == ["speaker", "view", f"{shown[1]}&speaker"]
        for address in (shown[1], speaker[2]):
            with urllib.request.urlopen(address, timeout=10) as reply:
                assert reply.read() == deck.read_bytes()
        process.terminate()
        assert process.wait(10) == 0
        with pytest.raises(OSError):
            urllib.request.urlopen(shown[1], timeout=10)


def test_a_port_that_is_taken_is_the_next(tree: Tree, deck: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        present.link_server(deck.parent.parent)
        command, environment = present.program(deck.parent.parent, deck, str(port))
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT
        ) as process:
            assert process.stdout is not None
            shown = process.stdout.readline()
            process.terminate()
    other = re.search(r"http://127\.0\.0\.1:(\d+)/", shown)
    assert other and port < int(other[1]) <= port + 20


def test_deck_that_is_not_there_is_said(deck: Path) -> None:
    deck.unlink()
    done = run(deck, "0")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.strip() == f"present: {deck} is not there (make slides)"


def test_the_real_target_names_what_it_runs() -> None:
    """`make present` of this tree: the deck of the track, the port."""
    command = ["make", "-n", "present", "TRACK=talk45", "PORT=8123", "DEPS=skip"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "-m stage --build build present build/slides/deck-talk45.html 8123" in done.stdout
