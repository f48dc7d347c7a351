"""`make release` as its reader meets it: made, unpacked elsewhere, opened. The demonstration's, and
the real one where it is made. Prints for a minute: `make test-book`, not `make test`."""

from __future__ import annotations

import os
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from book import browser
from book.tree import CHROMIUM, PANDOC, REVEAL_JS, ROOT, Once, Tree

WHEN = "1700000000"
# A figure that is hidden has no size before it is decoded; one of a later slide no source yet.
BROKEN = """const tell = arguments[0];
Promise.allSettled([...document.images].filter((image) => image.src).map((image) => image.decode()))
  .then((all) => tell(all.filter((one) => one.status === "rejected").length));"""


@pytest.fixture(scope="session")
def released(once: Once) -> list[Path]:
    """The demonstration, released twice: in another folder, at another time, by somebody else."""
    if not PANDOC or not REVEAL_JS.exists() or not CHROMIUM:
        pytest.skip("pandoc, reveal.js or Chromium is not here (make deps)")
    places = (("first", "UTC"), ("again/and elsewhere", "Asia/Tokyo"))

    def fill(folder: Path) -> None:
        for name, zone in places:
            tree = Tree(folder / name / "tree")
            tree.write("LICENSE", "MIT")
            tree.write("benchmarks/results/reference/fork-latency.jsonl", '{"type":"run"}\n')
            tree.write("benchmarks/harness/deps.sh", "printf 'graphviz\\tok\\n'\n")
            done = tree.make("release", SOURCE_DATE_EPOCH=WHEN, TZ=zone)
            assert done.returncode == 0, done.stderr
            (archive,) = (tree.path / "build/release").glob("*.zip")
            assert done.stdout.splitlines()[-3] == f"build/release/{archive.name}"

    trees = [once("released", fill) / name / "tree" for name, _ in places]
    return [archive for tree in trees for archive in (tree / "build/release").glob("*.zip")]


@pytest.fixture(scope="module", params=["demonstration", "tree"])
def archive(request: pytest.FixtureRequest) -> Path:
    if request.param == "demonstration":
        return Path(request.getfixturevalue("released")[0])
    archives = sorted((ROOT / "build/release").glob("*.zip"), key=os.path.getmtime)
    if not archives:
        pytest.skip("no release is made (make release)")
    return archives[-1]


@pytest.fixture(scope="module")
def unpacked(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that somebody gets who opens the archive."""
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(folder)
    (only,) = folder.iterdir()
    return only


def test_same_sources_give_the_same_bytes(released: list[Path]) -> None:
    """And the dates are that of the commit."""
    first, second = (path.read_bytes() for path in released)
    assert first == second
    with zipfile.ZipFile(released[0]) as packed:
        printed = [name for name in packed.namelist() if name.endswith(".pdf")]
        assert len(printed) == 7
        for name in printed:
            dates = re.findall(rb"Date \(D:(\d+)", packed.read(name))
            assert set(dates) == {b"20231114221320"}, name


def test_every_link_of_the_front_page_opens(driver: Any, unpacked: Path) -> None:
    assert browser.page_problems(driver, unpacked / "index.html") == []
    links = re.findall(r'<a href="([^"]*)"', (unpacked / "index.html").read_text("utf-8"))
    assert len(links) >= 4 + 3 * 3 + 1
    assert [link for link in links if not (unpacked / link).is_file()] == []
    for link in links:
        if link.endswith(".html"):
            driver.get((unpacked / link).as_uri())
            assert driver.execute_async_script(BROKEN) == 0, link
            assert driver.execute_script("return document.styleSheets.length;") > 0, link
            assert browser.console_errors(driver) == [], link


def test_deck_shows_from_the_folder(driver: Any, unpacked: Path) -> None:
    """The shortest; what is on the slides of the others is the same."""
    decks = sorted((unpacked / "slides").iterdir(), key=lambda deck: deck.stat().st_size)
    assert browser.deck_problems(driver, decks[0]) == []


def test_search_works_from_the_folder(driver: Any, unpacked: Path) -> None:
    """Over file:// a page may fetch nothing: the index has to come as a script."""
    driver.get((unpacked / "book/index.html").as_uri())
    driver.find_element("css selector", "#query").send_keys("server")
    found = ("css selector", "#found .hit")
    assert browser.wait_until(lambda: driver.find_elements(*found))
