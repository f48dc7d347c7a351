"""Fixtures of the book's tests. All need pandoc; the deck's need reveal.js too (make deps)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from book import browser
from book.tree import CHROMIUM, PANDOC, REVEAL_JS, Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    if not PANDOC:
        pytest.skip("pandoc is not installed (apt-get install pandoc)")
    return Tree(tmp_path / "tree")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """The demonstration, made once; not to be changed."""
    if not PANDOC:
        pytest.skip("pandoc is not installed (apt-get install pandoc)")
    tree = Tree(tmp_path_factory.mktemp("built") / "tree")
    done = tree.make("epub", "slides")
    assert done.returncode == 0, done.stderr
    return tree


@pytest.fixture(scope="session")
def reveal() -> None:
    if not REVEAL_JS.exists():
        pytest.skip("reveal.js is not here (make deps fetches it)")


@pytest.fixture(scope="session")
def chromium() -> str:
    if not CHROMIUM:
        pytest.skip("Chromium is not installed (apt-get install chromium)")
    return CHROMIUM


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    reason = browser.missing()
    if reason:
        pytest.skip(reason)
    running = browser.start(tmp_path_factory.mktemp("profile"))
    yield running
    running.quit()
