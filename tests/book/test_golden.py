"""The whole output of the filters: golden.py says of what, and writes golden.txt anew."""

import pytest

from tests.book import golden
from tests.book.tree import Tree, files_of

EXPECTED = files_of(golden.GOLDEN.read_text(encoding="utf-8"))


@pytest.fixture
def of_this_pandoc(tree: Tree) -> None:
    made_by = EXPECTED["pandoc"].strip()
    if golden.version(tree) != made_by:
        pytest.skip(f"golden.txt was made by {made_by}; another version writes other HTML")


def compared(found: dict[str, str]) -> None:
    for name, text in found.items():
        assert text.splitlines() == EXPECTED[name].splitlines(), name


def test_every_construction(of_this_pandoc: None, tree: Tree) -> None:
    compared(golden.constructs(tree))


def test_the_pages_of_the_demonstration(of_this_pandoc: None, built: Tree) -> None:
    compared(golden.pages(built))
