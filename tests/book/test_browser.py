"""Every page and slide in Chromium: the demonstration's, and the real book's where it is built."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from book import browser
from book.present import presented
from book.tree import ROOT, Tree


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    reason = browser.missing()
    if reason:
        pytest.skip(reason)
    running = browser.start(tmp_path_factory.mktemp("profile"))
    yield running
    running.quit()


@pytest.fixture(params=["demonstration", "tree"])
def site(request: pytest.FixtureRequest) -> Path:
    """The build folder whose pages are opened."""
    if request.param == "demonstration":
        return Path(request.getfixturevalue("built").path) / "build"
    if not (ROOT / "build/book/index.html").exists():
        pytest.skip("the book is not built (make book)")
    return ROOT / "build"


def decks_of(site: Path) -> list[Path]:
    decks = sorted((site / "slides").glob("*.html"))
    if not decks:
        pytest.skip("the deck is not built (make slides)")
    return decks


def test_pages(driver: Any, site: Path) -> None:
    pages = sorted((site / "book").glob("*.html"))
    assert len(pages) >= 4
    assert [problem for page in pages for problem in browser.page_problems(driver, page)] == []


def test_slides(driver: Any, site: Path) -> None:
    assert [
        problem for deck in decks_of(site) for problem in browser.deck_problems(driver, deck)
    ] == []


def test_slides_fit_their_pages(driver: Any, site: Path) -> None:
    """The print view, whose layout is not that of the screen."""
    check = "const check = function () {" + browser.CHECK_SLIDE + "};"
    each = (
        "return [...document.querySelectorAll('.pdf-page > section')].flatMap("
        "(slide) => check(slide).map((problem) => `#/${slide.id}: ${problem}`));"
    )
    ready = "return document.documentElement.dataset.printing === 'ready';"
    for deck in decks_of(site):
        driver.get(f"{deck.as_uri()}?view=print")
        assert browser.wait_until(lambda: driver.execute_script(ready))
        assert driver.execute_script("return document.querySelectorAll('.pdf-page').length;") > 3
        assert driver.execute_script(check + each) == [], deck.name
        assert browser.console_errors(driver) == []


def colours(driver: Any) -> tuple[str, str]:
    style = "const style = getComputedStyle(document.body);"
    background, text = driver.execute_script(style + "return [style.backgroundColor, style.color];")
    return background, text


def brightness(colour: str) -> float:
    return sum(float(part) for part in re.findall(r"[\d.]+", colour)[:3])


def test_dark_and_light(driver: Any, site: Path) -> None:
    """The button turns the page over and back, and the next page remembers."""
    pages = [(site / "book" / name).as_uri() for name in ("index.html", "answers.html")]
    driver.get(pages[0])
    driver.execute_script("localStorage.clear();")
    driver.get(pages[0])
    before = colours(driver)
    driver.find_element("css selector", ".theme").click()
    after = colours(driver)
    assert (brightness(before[0]) > brightness(before[1])) != (
        brightness(after[0]) > brightness(after[1])
    )
    driver.get(pages[1])
    assert colours(driver) == after
    driver.find_element("css selector", ".theme").click()
    assert colours(driver) == before


def test_dark_by_the_systems_wish(driver: Any, site: Path) -> None:
    driver.get((site / "book/index.html").as_uri())
    driver.execute_script("localStorage.clear();")
    for scheme, dark in (("dark", True), ("light", False)):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        driver.get((site / "book/index.html").as_uri())
        background, text = colours(driver)
        assert (brightness(background) < brightness(text)) is dark


def search(driver: Any, text: str) -> list[str]:
    """Addresses of what the search finds."""
    field = driver.find_element("css selector", "#query")
    field.clear()
    field.send_keys(text)
    return [
        link.get_attribute("href") for link in driver.find_elements("css selector", "#found .hit")
    ]


def test_search(driver: Any, site: Path) -> None:
    browser.resize(driver, 1280, 900)
    page = sorted((site / "book").glob("0*.html"))[-1]
    driver.get(page.as_uri())
    heading = driver.find_element("css selector", "h1").text
    word = max(re.findall(r"\w+", heading), key=len)
    driver.get((site / "book/index.html").as_uri())
    found = search(driver, word)
    assert any(page.name in link for link in found)
    assert search(driver, "qqzzxx") == []
    assert "Not found" in driver.find_element("css selector", "#found").text
    driver.get(found[0])
    assert browser.console_errors(driver) == []


def test_contents_open_on_a_phone(driver: Any, site: Path) -> None:
    browser.resize(driver, 390, 800)
    driver.get((site / "book/index.html").as_uri())
    sidebar = driver.find_element("css selector", ".sidebar")
    assert not sidebar.is_displayed()
    driver.find_element("css selector", ".menu summary").click()
    assert sidebar.is_displayed()


# ---- the deck of the demonstration


@pytest.fixture
def deck(driver: Any, built: Tree, request: pytest.FixtureRequest) -> Any:
    request.getfixturevalue("reveal")
    driver.get("about:blank")
    browser.resize(driver, 1280, 720)
    driver.get((built.path / "build/slides/deck.html").as_uri())
    assert browser.started(driver)
    return driver


def lit(driver: Any) -> list[str]:
    return [
        line.text.strip() for line in driver.find_elements("css selector", ".present .listing .lit")
    ]


def test_steps_light_up_lines(deck: Any) -> None:
    deck.execute_script("Reveal.slide(0, 1);")
    assert lit(deck) == []
    deck.execute_script("Reveal.next();")
    assert lit(deck) == ["if (greet(STDOUT_FILENO) < 0)", 'perror("greet");']
    deck.execute_script("Reveal.next();")
    assert lit(deck) == ["_exit(0);"]
    deck.execute_script("Reveal.prev(); Reveal.prev();")
    assert lit(deck) == []


def test_speaker_view_shows_notes(deck: Any) -> None:
    """Read through the slides' own window: chromedriver hangs on a window a script has written."""
    keep = "const open = window.open; window.open = (...rest) => window.speaker = open(...rest);"
    deck.execute_script("Reveal.slide(0, 0);" + keep)
    deck.find_element("css selector", "body").send_keys("s")

    def text(selector: str) -> str:
        script = "return window.speaker?.document.querySelector(arguments[0])?.textContent;"
        return deck.execute_script(script, selector) or ""

    try:
        expected = "Say what the evening is about"
        assert browser.wait_until(lambda: expected in text(".speaker-controls-notes .value"))
        assert "Pacing" in text(".pacing-title")
    finally:
        deck.execute_script("window.speaker?.close();")


SPEAKER = """
const open = window.open;
window.open = (...rest) => window.speaker = open(...rest);
Reveal.slide(0, 0);
"""
LISTEN = """
window.heard = [];
window.speaker.addEventListener("message", (event) => window.heard.push(event.data));
"""
HEARD = """
return (window.heard || []).map((text) => JSON.parse(text))
  .filter((data) => data.namespace === "reveal" && data.eventName === arguments[0])
  .map((data) => [data.state.indexh, data.state.indexv]);
"""
PRESS = """
const press = new window.speaker.KeyboardEvent("keydown", { keyCode: arguments[0], bubbles: true });
window.speaker.document.dispatchEvent(press);
"""
HERE = "const at = Reveal.getIndices(); return [at.h, at.v];"
LEFT = 37


@pytest.mark.parametrize("way", ["file", "http"])
def test_speaker_view_and_deck_follow_each_other(
    driver: Any, built: Tree, reveal: None, way: str
) -> None:
    """From the one file, and over `make present`: both have to work, with no network."""
    deck = built.path / "build/slides/deck.html"
    with contextlib.ExitStack() as stack:
        base = stack.enter_context(presented(built, deck)) if way == "http" else deck.as_uri()
        browser.resize(driver, 1280, 720)
        driver.get(base)
        assert browser.started(driver)
        driver.execute_script(SPEAKER)
        stack.callback(driver.execute_script, "window.speaker?.close();")
        driver.find_element("css selector", "body").send_keys("s")
        assert browser.wait_until(lambda: driver.execute_script("return !!window.speaker;"))
        driver.execute_script(LISTEN)
        assert browser.wait_until(lambda: driver.execute_script(HEARD, "ready"))
        driver.execute_script("Reveal.slide(0, 1);")
        assert browser.wait_until(lambda: [0, 1] in driver.execute_script(HEARD, "slidechanged"))
        time.sleep(1)  # The speaker view holds back what comes within half a second.
        driver.execute_script(PRESS, LEFT)
        assert browser.wait_until(lambda: driver.execute_script(HERE) == [0, 0])


def test_speaker_address_opens_the_view(driver: Any, built: Tree, reveal: None) -> None:
    before = set(driver.window_handles)
    driver.get((built.path / "build/slides/deck.html").as_uri() + "?speaker")
    assert browser.started(driver)
    assert browser.wait_until(lambda: len(set(driver.window_handles) - before) == 1)
    keep = driver.current_window_handle
    for handle in set(driver.window_handles) - before:
        driver.execute_cdp_cmd("Target.closeTarget", {"targetId": handle})
    driver.switch_to.window(keep)


def test_refused_speaker_view_leaves_the_deck_and_a_hint(
    driver: Any, built: Tree, reveal: None
) -> None:
    refuse = {"source": "window.open = () => null;"}
    script = driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", refuse)
    try:
        driver.get((built.path / "build/slides/deck.html").as_uri() + "?speaker")
        assert browser.started(driver)
        hint = "return document.querySelector('.speaker-hint')?.textContent ?? '';"
        assert browser.wait_until(lambda: "press S" in driver.execute_script(hint))
        driver.execute_script("Reveal.slide(0, 1);")
        assert driver.execute_script(HERE) == [0, 1]
    finally:
        driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)


# ---- the checks themselves: each fault is found


BAD_PAGE = """<!DOCTYPE html><html><head><link rel="icon" href="data:,"></head><body><main>
<h1>Bad</h1><h3 id="x">Jump</h3>
<p id="x">Text that is long enough not to be taken for an empty page; some eighty characters do.</p>
<img src="none.svg" alt="gone"><div style="width:2000px">wide</div><a href="#none">dead</a>
<script>console.error("oh no"); undefinedFunction();</script></main></body></html>"""


def test_bad_page_is_found(driver: Any, tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    page.write_text(BAD_PAGE, encoding="utf-8")
    problems = "\n".join(browser.page_problems(driver, page))
    for expected in (
        "missing figure", "is wider", "heading out of order", "doubled id x", "no language",
        "link to nowhere: #none",
        "undefinedFunction", "oh no",
    ):  # fmt: skip
        assert expected in problems


BAD_SLIDES = {
    "high": "<ul>" + "<li>A line</li>" * 30 + "</ul>",
    "wide": '<p style="white-space:nowrap">' + "word " * 80 + "</p>",
    "cut": "<pre><code>" + "x" * 300 + "</code></pre>",
    "gone": '<p><img src="none.svg" alt="gone"></p>',
    "void": "",
    "fine": "<p>Text.</p>",
}
EXPECTED = {
    "high": "too high",
    "wide": "too wide",
    "cut": "too wide",
    "gone": "missing figure",
    "void": "is empty",
}


def test_bad_slides_are_found(deck: Any, built: Tree, tmp_path: Path) -> None:
    html = built.read("build/slides/deck.html")
    head, rest = html.split('<div class="slides">', 1)
    tail = rest[rest.index('<div class="foot">') :]
    slides = "".join(
        f'<section id="{name}" class="slide level2"><h2>Title</h2>{body}'
        '<aside class="notes">n</aside></section>'
        for name, body in BAD_SLIDES.items()
    )
    bad = tmp_path / "deck.html"
    bad.write_text(f'{head}<div class="slides">{slides}</div>{tail}', encoding="utf-8")
    problems = browser.deck_problems(deck, bad)
    for name, expected in EXPECTED.items():
        assert any(f"#/{name}: " in problem and expected in problem for problem in problems), (
            problems
        )
    assert not [problem for problem in problems if "#/fine" in problem]


def test_deck_without_reveal_is_found(driver: Any, tmp_path: Path) -> None:
    bad = tmp_path / "deck.html"
    bad.write_text("<!DOCTYPE html><html><body>blank</body></html>", encoding="utf-8")
    assert "reveal.js did not start" in browser.deck_problems(driver, bad)[0]


# ---- you draw it ---------------------------------------------------------------------------------

CHAPTER = ROOT / "build/book/09-epoll.html"
OF_2003 = ROOT / "build/book/02b-processes.html"  # its first drawing has a line of 2003
drawing = pytest.mark.skipif(not CHAPTER.exists(), reason="the book is not built (make book)")


# Pictures above that come late move the page, and the pointer would draw beside the drawing.
STILL = """
const [element, done] = arguments;
let last = NaN, frames = 0;
const frame = () => {
  element.scrollIntoView({block: "center", behavior: "instant"});
  const top = element.getBoundingClientRect().top;
  frames = top === last && document.readyState === "complete" ? frames + 1 : 0;
  last = top;
  if (frames < 10) requestAnimationFrame(frame); else done();
};
frame();
"""


def drawn_on(driver: Any, width: int, chapter: Path = CHAPTER) -> Any:
    browser.resize(driver, width, 900)
    driver.get(chapter.as_uri())
    driver.execute_script("localStorage.clear()")
    driver.refresh()
    found = driver.find_element("css selector", ".drawing svg")
    driver.execute_async_script(STILL, found)
    return found


def told(driver: Any) -> str:
    return str(driver.find_element("css selector", ".drawing [role=status]").text)


def press(driver: Any, words: str) -> None:
    """The button of the first drawing that can be seen and says so."""
    script = """
    const button = [...document.querySelector(".drawing").querySelectorAll("button")]
      .find(each => each.textContent === arguments[0] && each.checkVisibility());
    if (button) button.click();
    return Boolean(button)"""
    assert driver.execute_script(script, words), words


def figure_is_shown(driver: Any) -> bool:
    script = """
    const box = document.querySelector(".drawing").parentNode;
    return getComputedStyle(box.nextElementSibling).display !== "none" """
    return bool(driver.execute_script(script))


@drawing
@pytest.mark.parametrize("width", browser.WIDTHS)
def test_a_curve_is_drawn_with_the_pointer(driver: Any, width: int) -> None:
    from selenium.webdriver.common import action_chains

    svg = drawn_on(driver, width)
    assert not figure_is_shown(driver)
    reach = int(svg.size["width"] * 0.34)
    chains: Any = action_chains
    line = chains.ActionChains(driver)
    line.move_to_element(svg).move_by_offset(-reach, 20).click_and_hold()
    for _ in range(10):
        line.move_by_offset(reach // 5 + 1, -4)
    line.release().perform()
    press(driver, "Show what was measured")
    assert figure_is_shown(driver)
    said = told(driver)
    assert re.search(r"at 1[09]\W?000 you drew .* was measured: .* times too much", said), said
    assert "measured, it stays flat" in said
    driver.refresh()
    assert told(driver) == said, "it is kept"
    assert browser.console_errors(driver) == []
    wide = driver.execute_script("return document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0


@drawing
def test_a_curve_is_drawn_with_keys_and_with_numbers(driver: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    svg = drawn_on(driver, 1280)
    svg.send_keys(Keys.ARROW_UP, Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    assert re.fullmatch(r"100: .* (ns|µs)", told(driver))
    driver.execute_script("document.querySelector('.drawing details').open = true")
    first = driver.find_element("css selector", ".drawing")
    last = first.find_elements("css selector", "input")[-1]
    assert last.get_attribute("aria-label").startswith("one epoll_wait at 19")
    last.send_keys("1000", Keys.TAB)
    press(driver, "Show what was measured")
    assert "you drew 1 ms" in told(driver)
    assert browser.console_errors(driver) == []


@drawing
def test_a_shape_is_picked_and_the_lines_come_one_by_one(driver: Any) -> None:
    drawn_on(driver, 1280, OF_2003)
    press(driver, "in proportion")
    press(driver, "Show what was measured")
    seen = """
    return [...document.querySelector(".drawing").querySelectorAll(".measured")]
      .map(each => getComputedStyle(each).display !== "none")"""
    lines = len(driver.execute_script(seen))
    assert driver.execute_script(seen) == [True] + [False] * (lines - 1)
    said = told(driver)
    assert re.search(r"In the reference run: at .* too much\.", said), said
    if lines == 3:  # this machine has been measured
        press(driver, "And on this machine?")
        assert "On your machine: " in told(driver)
    press(driver, "And in 2003?")
    assert re.search(r"In 2003, Linux 2\.6: 350 µs at ", told(driver)), told(driver)
    driver.refresh()
    assert driver.execute_script(seen) == [True] * lines, "it is kept"
    press(driver, "Draw again")
    assert driver.execute_script(seen) == [False] * lines
    assert not figure_is_shown(driver)
    assert browser.console_errors(driver) == []
