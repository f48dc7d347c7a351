"""Commands are copied from a page without their prompts and without what they print."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.book import browser
from tests.book.tree import ROOT, Tree, fence

BUTTONS = "return [...document.querySelectorAll('.listing .copy')].map((one) => one.closest('figure').innerText);"
#: What the page hands to the clipboard, by the way that is given; `window.kept` has the last.
NEW_WAY = """
Object.defineProperty(navigator, "clipboard", { configurable: true, value: {
  writeText: async (text) => { window.kept = text; } } });
"""
OLD_WAY = """
Object.defineProperty(navigator, "clipboard", { configurable: true, value: undefined });
document.execCommand = () => { window.kept = document.activeElement.value; return true; };
"""
NO_WAY = """
Object.defineProperty(navigator, "clipboard", { configurable: true, value: {
  writeText: () => Promise.reject(new DOMException("no", "NotAllowedError")) } });
document.execCommand = () => false;
"""


@pytest.fixture
def page(driver: Any, built: Tree) -> Iterator[Any]:
    """The first chapter of the demonstration, from a file."""
    browser.resize(driver, 1280, 900)
    driver.get((built.path / "build/book/01-first.html").as_uri())
    yield driver
    driver.get("about:blank")


def test_root_s_prompt_is_one_and_a_line_of_output_is_none(tree: Tree) -> None:
    text = "# mount old\nold: mounted\n$ echo '\n> x'\nx\n> no prompt"
    html = tree.pieces(fence(".console", text))[0]
    assert html.count('class="line typed"') == 3
    assert '<span class="sign"># </span>mount old' in html


@pytest.mark.parametrize("way", [NEW_WAY, OLD_WAY], ids=["new", "old"])
def test_commands_are_copied_without_prompts_and_output(page: Any, way: str) -> None:
    page.execute_script(way)
    buttons = page.find_elements("css selector", ".console .copy")
    assert len(buttons) == 2
    buttons[0].click()
    assert browser.wait_until(lambda: buttons[0].text == "Copied")
    assert page.execute_script("return window.kept;") == (
        "make servers\nbuild/bin/01-first -p 8080 &\ncurl http://127.0.0.1:8080/"
    )
    assert page.execute_script("return document.querySelector('.unseen[role=status]').textContent;") == "Copied."
    buttons[1].click()
    assert browser.wait_until(lambda: page.execute_script("return window.kept;") == "build/bin/01-first")
    assert [one.get_attribute("aria-label") for one in buttons] == ["Copy the commands", "Copy the command"]
    assert browser.wait_until(lambda: buttons[0].text == "Copy")
    script = page.find_element("css selector", "figure.typed")
    page.execute_script("arguments[0].click();", script.find_element("css selector", ".copy"))
    whole = script.find_element("css selector", "code").text
    assert browser.wait_until(lambda: page.execute_script("return window.kept;") == whole)
    assert page.execute_script("return document.querySelectorAll('textarea').length;") == 0
    assert browser.console_errors(page) == []


def test_by_keyboard_and_where_nothing_may_be_copied_nothing_is_said(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    page.execute_script(NO_WAY)
    button = page.find_elements("css selector", ".listing .copy")[0]
    page.execute_script("arguments[0].focus();", button)
    assert page.switch_to.active_element == button
    button.send_keys(Keys.ENTER)
    page.execute_async_script("setTimeout(arguments[0], 300);")
    assert button.text == "Copy"
    assert page.switch_to.active_element == button, "the focus stays"
    assert browser.console_errors(page) == []


BOOK = ROOT / "build/book"
TYPED = "return document.querySelectorAll('figure.console:has(.line.typed)').length;"
COVERED = """
const over = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
return [...document.querySelectorAll(".listing .copy")].filter((button) => {
  const line = button.closest("figure").querySelector(".line.typed"), range = document.createRange();
  range.selectNodeContents(line);
  const box = button.getBoundingClientRect();
  return [...range.getClientRects()].some((text) => over(box, text));
}).map((button) => button.closest("figure").innerText.slice(0, 60));
"""


@pytest.mark.skipif(not (BOOK / "02-fork.html").exists(), reason="the book is not built (make book)")
@pytest.mark.parametrize("width", browser.WIDTHS)
@pytest.mark.parametrize("name", ["02-fork", "files", "index"])
def test_each_terminal_has_a_button_that_covers_no_command(driver: Any, name: str, width: int) -> None:
    browser.resize(driver, width, 900)
    driver.get(Path(BOOK / f"{name}.html").as_uri())
    assert len(driver.execute_script(BUTTONS)) == driver.execute_script(TYPED) > 0
    assert driver.execute_script(COVERED) == []
