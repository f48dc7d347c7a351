"""Fixtures of the book's tests. All need pandoc; to open the deck, reveal.js too (make deps)."""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.book.axe import AXE
from tests.book.tree import CHROMIUM, PANDOC, REVEAL_JS, ROOT, Once, Tree

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What a browser looks at is slow, for each file starts one; but test_browser.py stays, on the demonstration."""
    ours = (item for item in items if item.path.parent == HERE and item.path.name != "test_browser.py")
    for item in ours:
        if "driver" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """once(name, fill): a folder that fill() has filled, for all workers of pytest-xdist together.
    A session is one worker's, and each would build again what takes longest.
    """
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def folder(name: str, fill: Callable[[Path], None]) -> Path:
        place, whole = base / name, base / f"{name}.whole"
        with (base / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not whole.exists():
                shutil.rmtree(place, ignore_errors=True)  # of a worker that failed
                place.mkdir()
                fill(place)
                whole.touch()
        return place

    return folder


@pytest.fixture(scope="session")
def pandoc() -> None:
    if not PANDOC:
        pytest.skip("pandoc is not installed (apt-get install pandoc)")


@pytest.fixture
def tree(pandoc: None, tmp_path: Path) -> Tree:
    return Tree(tmp_path / "tree")


@pytest.fixture(scope="session")
def built(pandoc: None, once: Once) -> Tree:
    """The demonstration, made once; not to be changed."""

    def fill(folder: Path) -> None:
        done = Tree(folder / "tree").make("epub", "slides")
        assert done.returncode == 0, done.stderr

    return Tree(once("built", fill) / "tree", "")


@pytest.fixture(params=["demonstration", pytest.param("tree", marks=pytest.mark.slow)])
def site(request: pytest.FixtureRequest) -> Path:
    """The build folder whose pages are opened."""
    if request.param == "demonstration":
        return Path(request.getfixturevalue("built").path) / "build"
    if not (ROOT / "build/book/index.html").exists():
        pytest.skip("the book is not built (make book)")
    return ROOT / "build"


@pytest.fixture(scope="session")
def reveal() -> None:
    if not REVEAL_JS.exists():
        pytest.skip("reveal.js is not here (make deps fetches it)")


@pytest.fixture
def made(built: Tree, tmp_path: Path) -> Tree:
    """A tree of its own, made with a deck: a copy with its times."""
    return Tree(tmp_path / "tree", built)


@pytest.fixture(scope="session")
def chromium() -> str:
    pytest.importorskip("selenium")
    if not CHROMIUM or not shutil.which("chromedriver"):
        pytest.skip("Chromium is not installed (apt-get install chromium chromium-driver)")
    return CHROMIUM


@pytest.fixture(scope="session")
def axe_core() -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not here (setup/deps.sh browser fetches it)")


@pytest.fixture(scope="module")
def driver(chromium: str) -> Iterator[Any]:
    """One for all tests of a module: it takes seconds to start, and memory while it is there."""
    from selenium import webdriver

    from quest.book.paper import running

    options: Any = webdriver.ChromeOptions()
    options.add_argument("--hide-scrollbars")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with running(chromium, options) as browser:
        yield browser
