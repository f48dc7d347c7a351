"""Fixtures of the book's tests. All need pandoc; the deck's need reveal.js too (make deps)."""

from __future__ import annotations

from pathlib import Path

import pytest

from book.tree import PANDOC, REVEAL_JS, Tree


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


@pytest.fixture
def reveal() -> None:
    if not REVEAL_JS.exists():
        pytest.skip("reveal.js is not here (make deps fetches it)")
