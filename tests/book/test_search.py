"""The search of the pages, in Chromium: the demonstration's, and the real book's where it is built."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from quest.book.calls import read_calls
from tests.book import axe, browser
from tests.book.tree import ROOT, Tree

BOOK = ROOT / "build/book"
LUNR = Path("/usr/share/javascript/lunr/lunr.min.js")
lunr = pytest.mark.skipif(not LUNR.exists(), reason="lunr is not installed (apt-get install libjs-lunr)")
whole_book = pytest.mark.skipif(
    not (BOOK / "calls.html").exists(), reason="the book is not built, or before it had an index of calls (make book)"
)
#: The addresses that the search shows for some words, in its order.
ADDRESSES = "return [...document.querySelectorAll('#found .hit')].map((link) => link.href);"
STATUS = "return document.querySelector('#found [role=status]').textContent;"
IS_WHOLE = "return document.querySelector('form.search').dataset.index === 'whole';"
#: All sections for each of the words, as [page, id, title, section, text].
SECTIONS = "return arguments[0].map((words) => findByStems(words).map((one) => one.slice(0, 5)));"


def opened(driver: Any, page: Path, width: int = 1280) -> None:
    """The page, with its index there."""
    browser.resize(driver, width, 900)
    driver.get(page.as_uri())
    driver.find_element("css selector", "body").send_keys("/")
    assert browser.wait_until(lambda: driver.execute_script(IS_WHOLE))


def search(driver: Any, text: str) -> list[str]:
    field = driver.find_element("css selector", "#query")
    field.clear()
    field.send_keys(text)
    return list(driver.execute_script(ADDRESSES))


def test_sections_are_found_and_said(driver: Any, site: Path) -> None:
    page = sorted((site / "book").glob("0*.html"))[-1]
    driver.get(page.as_uri())
    heading = driver.find_element("css selector", "h1").text
    word = max(heading.replace(":", " ").replace(",", " ").split(), key=len)
    opened(driver, site / "book/index.html")
    found = search(driver, word)
    assert any(page.name in link for link in found)
    assert "section" in driver.execute_script(STATUS).lower()
    assert len(driver.find_elements("css selector", "#found mark")) > 0
    assert search(driver, "qqzzxx") == []
    assert driver.execute_script(STATUS) == "Not found."
    driver.get(next(link for link in found if "#" in link))
    assert driver.execute_script("return !!document.querySelector(':target');")
    assert browser.console_errors(driver) == []


#: An index: page, id, title, section, text.
SMALL = [
    ["title", "", "Alpha", "beta", "gamma " * 20],
    ["text", "", "x", "x", "alpha beta"],
    ["once", "", "x", "x", "alpha delta"],
    ["often", "", "x", "x", "delta " * 20],
    ["named", "", "Delta", "x", ""],
]
BY_LETTERS = "window.BOOK_INDEX = arguments[0]; return findByLetters(arguments[1]).map(([page]) => page);"


@pytest.mark.parametrize(
    ("asked", "pages"),
    [
        ("alpha", ["title", "text", "once"]), ("ALPHA  beta", ["title", "text"]), ("gamma alpha", ["title"]),
        ("none alpha", []), ("alpha none", []), ("delta", ["named", "often", "once"]), ("", []),
    ],
)  # fmt: skip
def test_by_letters_all_words_are_there_and_a_title_counts_most(
    driver: Any, built: Tree, asked: str, pages: list[str]
) -> None:
    driver.get((built.path / "build/book/index.html").as_uri())
    assert driver.execute_script(BY_LETTERS, SMALL, asked) == pages


EXCERPT = """
const found = excerpt(...arguments);
return [found.textContent, [...found.querySelectorAll("mark")].map((mark) => mark.textContent)];
"""
FAR = "before " * 40 + "needle " + "behind " * 40


@pytest.mark.parametrize(
    ("text", "asked", "marks", "ends"),
    [
        ("abcabc", "abca bca", ["abca"], (True, True)),  # they overlap
        ("a needle in hay", "needle hay", ["needle", "hay"], (True, True)),
        (FAR, "needle", ["needle"], (False, False)),
        (FAR[200:], "needle", ["needle"], (False, False)),
        (FAR[250:], "needle", ["needle"], (True, False)),
        (FAR, "none", [], (True, False)),
    ],
    ids=["overlap", "short", "far", "nearer", "at its beginning", "none"],
)
def test_what_is_shown_of_a_section(
    driver: Any, built: Tree, text: str, asked: str, marks: list[str], ends: tuple[bool, bool]
) -> None:
    """A part of its text as it stands there, with what was asked for; whether it is the beginning, and the end."""
    driver.get((built.path / "build/book/index.html").as_uri())
    shown, found = driver.execute_script(EXCERPT, text, asked)
    assert found == marks
    assert (not shown.startswith("… "), not shown.endswith(" …")) == ends
    assert shown.removeprefix("… ").removesuffix(" …") in text and len(shown) < 200


def test_without_lunr_the_search_goes_by_letters(driver: Any, made: Tree) -> None:
    """As on a system that has no such package."""
    (made.path / "build/book/lunr.js").unlink()
    done = made.make("book", "LUNR=", "LUNR_RIGHTS=")
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("SKIP")] == [
        "SKIP search by word stems: lunr is not here (apt-get install libjs-lunr); the pages search by letters"
    ]
    assert "no software of others" in made.read("build/book/NOTICE.txt")
    opened(driver, made.path / "build/book/index.html")
    assert search(driver, "process per cli")
    assert search(driver, "qqzzxx") == []
    assert browser.console_errors(driver) == []


@lunr
def test_the_licence_goes_with_the_library(built: Tree) -> None:
    assert built.read("build/book/lunr.js") == LUNR.read_text(encoding="utf-8")
    notice = built.read("build/book/NOTICE.txt")
    assert "Oliver Nightingale" in notice and "Permission is hereby granted" in notice
    assert 'href="NOTICE.txt"' in built.read("build/book/01-first.html")


@lunr
@whole_book
def test_each_call_and_the_errors_are_found(driver: Any) -> None:
    opened(driver, BOOK / "09-epoll.html")
    page = (BOOK / "calls.html").read_text(encoding="utf-8")
    names = [name for name in read_calls() if f"<code>{name}</code>" in page]
    assert len(names) > 200
    for name, sections in zip(names, driver.execute_script(SECTIONS, names), strict=True):
        addresses = [f"{one[0]}#{one[1]}" for one in sections[:12]]
        assert any(address.startswith("calls.html#calls-") for address in addresses), name
    for words, section in {
        "C10K": "C10K", "EAGAIN": "EAGAIN", "Nagle": "Nagle", "timeout": "time-out", "SIGCHLD": "SIGCHLD",
        "epoll_wait": "epoll_wait",
    }.items():  # fmt: skip
        found = driver.execute_script(SECTIONS, [words])[0]
        assert found and section.lower() in " ".join(found[0]).lower(), words


@lunr
@whole_book
def test_words_are_found_by_their_stems_and_their_beginnings(driver: Any) -> None:
    opened(driver, BOOK / "index.html")
    one, many = driver.execute_script(SECTIONS, ["connection", "connections"])
    assert {tuple(each[:2]) for each in one} == {tuple(each[:2]) for each in many}
    assert any("connections" not in f"{each[3]} {each[4]}".lower() for each in many)
    blocked = driver.execute_script(SECTIONS, ["blocked"])[0]
    assert any("blocked" not in f"{each[3]} {each[4]}".lower() for each in blocked)
    both, first, second = (
        {tuple(each[:2]) for each in found}
        for found in driver.execute_script(SECTIONS, ["edge triggered", "edge", "triggered"])
    )
    assert both == first & second
    assert driver.execute_script(SECTIONS, ["connecti"])[0], "while it is being typed"
    assert driver.execute_script(SECTIONS, ["sendfiel"])[0], "with a slip of the finger"
    assert driver.execute_script(SECTIONS, ["the"])[0], "a word that is everywhere, alone"


@whole_book
@pytest.mark.parametrize("width", browser.WIDTHS)
def test_by_keyboard_alone(driver: Any, width: int) -> None:
    from selenium.webdriver.common.keys import Keys

    def focused() -> Any:
        return driver.switch_to.active_element

    opened(driver, BOOK / "02-fork.html", width)
    assert focused().get_attribute("id") == "query", "the key / leads there, on a phone, too"
    focused().send_keys("zombie")
    assert browser.wait_until(lambda: len(driver.execute_script(ADDRESSES)) > 1)
    focused().send_keys(Keys.ARROW_DOWN)
    first = focused().get_attribute("href")
    assert first == driver.execute_script(ADDRESSES)[0]
    focused().send_keys(Keys.ARROW_DOWN)
    assert focused().get_attribute("href") == driver.execute_script(ADDRESSES)[1]
    focused().send_keys(Keys.ARROW_UP)
    focused().send_keys(Keys.ARROW_UP)
    assert focused().get_attribute("id") == "query"
    focused().send_keys(Keys.ESCAPE)
    assert driver.execute_script(ADDRESSES) == []
    assert driver.execute_script("return document.documentElement.scrollWidth - innerWidth") <= 0
    focused().send_keys("zombie", Keys.ENTER)
    assert browser.wait_until(lambda: driver.current_url == first)
    assert browser.console_errors(driver) == []


def test_other_fields_and_keys_are_left_alone(driver: Any, built: Tree) -> None:
    """A / that is typed into a field stays one."""
    browser.resize(driver, 1280, 900)
    driver.get((built.path / "build/book/index.html").as_uri())
    add = "document.querySelector('main').insertAdjacentHTML('afterbegin', '<textarea id=own></textarea>')"
    driver.execute_script(add)
    own = driver.find_element("css selector", "#own")
    own.send_keys("a/b")
    assert own.get_attribute("value") == "a/b"
    press = {"type": "keyDown", "key": "F", "code": "KeyF", "windowsVirtualKeyCode": 70, "modifiers": 2 | 8}
    driver.execute_cdp_cmd("Input.dispatchKeyEvent", press)
    assert driver.switch_to.active_element.get_attribute("id") == "query", "Ctrl-Shift-F leads to the search"


@whole_book
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", browser.WIDTHS)
def test_axe_finds_nothing_in_what_was_found(driver: Any, axe_core: None, width: int, theme: str) -> None:
    with axe.scheme(driver, theme):
        opened(driver, BOOK / "glossary.html", width)
        driver.execute_script("localStorage.clear()")
        assert len(search(driver, "blocked signal")) > 1
        axe.load(driver)
        assert axe.found(driver) == []


def test_an_index_that_is_missing_is_said(driver: Any, built: Tree, tmp_path: Path) -> None:
    shutil.copytree(built.path / "build/book", tmp_path / "book")
    (tmp_path / "book/search-index.js").unlink()
    browser.resize(driver, 1280, 900)
    driver.get((tmp_path / "book/index.html").as_uri())
    driver.find_element("css selector", "#query").send_keys("process")
    assert browser.wait_until(lambda: "search-index.js is missing" in driver.execute_script(STATUS))
    browser.console_errors(driver)  # Chromium names the file, too
