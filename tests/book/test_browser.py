"""Every page and slide in Chromium: the demonstration's, and the real book's where it is built.
The deck also through one of our own servers: `make present`.
"""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quest.stage import seen
from quest.stage.events import End, Point
from tests.book import axe, browser
from tests.book.tree import ROOT, Tree
from tests.stage.test_stage import DEMOS, recorded


@pytest.fixture
def deck(site: Path, reveal: None) -> Path:
    """The longest: those of a track have some of its slides."""
    decks = sorted((site / "slides").glob("*.html"), key=lambda deck: deck.stat().st_size)
    if not decks:
        pytest.skip("the deck is not built (make slides)")
    return decks[-1]


#: What a browser runs, refuses or shows by its type alone. A page from the server asks for all of
#: it and says what became of it.
SERVED = {
    "index.html": "<!doctype html><link rel=stylesheet href=a.css><p>x<script src=a.js></script>",
    "a.css": "p { color: rgb(1, 2, 3); }",
    "a.js": "window.classic = true;",
    "a.mjs": "export const value = 1;",
    "a.json": '{"value": 2}',
    "a.wasm": "\0asm\1\0\0\0",
    "a.svg": '<svg xmlns="http://www.w3.org/2000/svg" width="7" height="5"/>',
    "a.htm": "<p>a page</p>",
    "favicon.ico": "",
    "a.xhtml": '<html xmlns="http://www.w3.org/1999/xhtml"><body/></html>',
    "a.txt": "<script>top.stolen = true</script>",
}
ASK_FOR_ALL = """
const done = arguments[0], image = new Image();
const framed = (name) => new Promise((found) => {
  const frame = document.createElement("iframe");
  frame.onload = () => found(frame.contentDocument.contentType);
  frame.src = name;
  document.body.append(frame);
});
(async () => [
  window.classic, getComputedStyle(document.querySelector("p")).color,
  (await import("./a.mjs")).value,
  (await import("./a.json", { with: { type: "json" } })).default.value,
  (await WebAssembly.compileStreaming(fetch("a.wasm"))) instanceof WebAssembly.Module,
  await new Promise((found) => { image.onload = () => found(image.width); image.src = "a.svg"; }),
  await framed("a.htm"), await framed("a.xhtml"), await framed("a.txt"), window.stolen ?? false,
])().then(done, (error) => done([`${error}`]));
"""


def test_a_browser_takes_files_for_what_they_are(driver: Any, tmp_path: Path) -> None:
    server = ROOT / "build/bin/09-epoll"
    if not server.exists():
        pytest.skip("09-epoll is not built (make servers)")
    for name, text in SERVED.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    with subprocess.Popen([server, "-p", "0", tmp_path], stdout=subprocess.PIPE) as running:
        try:
            assert running.stdout is not None
            driver.get(running.stdout.readline().split()[-1].decode())
            driver.set_script_timeout(30)
            found = driver.execute_async_script(ASK_FOR_ALL)
        finally:
            running.terminate()
    types = ["text/html", "application/xhtml+xml", "text/plain"]
    assert found == [True, "rgb(1, 2, 3)", 1, 2, True, 7, *types, False]
    assert browser.console_errors(driver) == []


#: A hundred pages and as many slides take minutes: several browsers share them.
PARTS = 4
in_parts = pytest.mark.parametrize("part", range(PARTS))


@in_parts
def test_pages(driver: Any, site: Path, part: int) -> None:
    pages = sorted((site / "book").glob("*.html"))
    assert len(pages) >= PARTS
    assert [problem for page in pages[part::PARTS] for problem in browser.page_problems(driver, page)] == []


@in_parts
def test_axe_finds_nothing_on_any_page(driver: Any, axe_core: None, site: Path, part: int) -> None:
    """Each but the book in one file, which has the others' text. All rules on each page: python3 -m tests.book.axe."""
    pages = sorted(set((site / "book").glob("*.html")) - {site / "book/book.html"})
    seen: set[str] = set()
    browser.resize(driver, 1280, 900)
    problems = []
    for page in pages[part::PARTS]:
        driver.get(page.as_uri())
        problems += [f"{page.name}: {problem}" for problem in axe.problems(driver, seen)]
    assert problems == []
    assert len(seen) > 20


@in_parts
def test_slides(driver: Any, deck: Path, part: int) -> None:
    assert browser.deck_problems(driver, deck, part, PARTS) == []


@in_parts
def test_axe_finds_nothing_on_any_slide(driver: Any, axe_core: None, deck: Path, part: int) -> None:
    """With all steps shown, in the light and in the dark deck."""
    browser.resize(driver, 1280, 720)
    driver.get(deck.as_uri())
    assert browser.started(driver)
    axe.load(driver)
    seen: set[str] = set()
    problems = []
    count = driver.execute_script("return Reveal.getTotalSlides();")
    for index in range(count * part // PARTS, count * (part + 1) // PARTS):
        name = driver.execute_script(axe.ALONE, index)
        driver.execute_async_script(browser.DRAWN)
        problems += [f"#/{name}: {problem}" for problem in axe.slide_problems(driver, seen)]
    assert problems == []
    assert seen


def test_slides_fit_their_pages(driver: Any, deck: Path) -> None:
    """The print view, whose layout is not that of the screen."""
    check = "const check = function () {" + browser.CHECK_SLIDE + "};"
    each = (
        "return [...document.querySelectorAll('.pdf-page > section')].flatMap("
        "(slide) => check(slide).map((problem) => `#/${slide.id}: ${problem}`));"
    )
    ready = "return document.documentElement.dataset.printing === 'ready';"
    driver.get(f"{deck.as_uri()}?view=print")
    assert browser.wait_until(lambda: driver.execute_script(ready))
    assert driver.execute_script("return document.querySelectorAll('.pdf-page').length;") > 3
    assert driver.execute_script(check + each) == []
    assert browser.console_errors(driver) == []


def is_dark(driver: Any) -> bool:
    style = "const style = getComputedStyle(document.body);"
    colours = driver.execute_script(style + "return [style.backgroundColor, style.color];")
    background, text = (sum(map(float, re.findall(r"[\d.]+", each)[:3])) for each in colours)
    return background < text


def test_dark_and_light(driver: Any, built: Tree) -> None:
    """By the system's wish, until the button turns the page over; the next page remembers."""
    pages = [(built.path / f"build/book/{name}.html").as_uri() for name in ("index", "answers")]
    driver.get(pages[0])
    driver.execute_script("localStorage.clear();")
    for scheme in ("dark", "light"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        driver.get(pages[0])
        assert is_dark(driver) is (scheme == "dark")
    driver.find_element("css selector", ".theme").click()
    assert is_dark(driver)
    driver.get(pages[1])
    assert is_dark(driver)
    driver.find_element("css selector", ".theme").click()
    assert not is_dark(driver)


def test_contents_open_on_a_phone(driver: Any, built: Tree) -> None:
    browser.resize(driver, 390, 800)
    driver.get((built.path / "build/book/index.html").as_uri())
    sidebar = driver.find_element("css selector", ".sidebar")
    assert not sidebar.is_displayed()
    driver.find_element("css selector", ".menu summary").click()
    assert sidebar.is_displayed()


# ---- the deck of the demonstration ---------------------------------------------------------------


@pytest.fixture
def shown(driver: Any, built: Tree, reveal: None) -> Any:
    driver.get("about:blank")
    browser.resize(driver, 1280, 720)
    driver.get((built.path / "build/slides/deck.html").as_uri())
    assert browser.started(driver)
    return driver


def lit(driver: Any) -> list[str]:
    lines = driver.find_elements("css selector", ".present .listing .lit")
    return [line.text.strip() for line in lines]


def test_steps_light_up_lines(shown: Any) -> None:
    shown.execute_script("Reveal.slide(0, 1);")
    assert lit(shown) == []
    shown.execute_script("Reveal.next();")
    assert lit(shown) == ["if (greet(STDOUT_FILENO) < 0)", 'perror("greet");']
    shown.execute_script("Reveal.next();")
    assert lit(shown) == ["_exit(0);"]
    assert said(shown) == ["It ends at once."]
    shown.execute_script("Reveal.prev(); Reveal.prev();")
    assert lit(shown) == said(shown) == []


def said(driver: Any) -> list[str]:
    """The sentences below the listing that are seen, without their numbers."""
    sentences = driver.find_elements("css selector", ".present .says li")
    return [sentence.text.partition(" ")[2] for sentence in sentences if sentence.is_displayed()]


def test_a_deck_is_dark_when_asked(shown: Any) -> None:
    def ground() -> int:
        colour = shown.execute_script("return getComputedStyle(document.body).backgroundColor;")
        return sum(map(int, re.findall(r"\d+", colour)[:3]))

    assert ground() > 600
    shown.find_element("css selector", "body").send_keys("d")
    assert ground() < 200
    shown.find_element("css selector", "body").send_keys("d")
    assert ground() > 600
    shown.get(shown.current_url.partition("#")[0] + "?dark")
    assert browser.started(shown) and ground() < 200


# ---- make present, and the speaker view ----------------------------------------------------------

SERVER = ROOT / "build/bin/15-slashdot"


@contextlib.contextmanager
def presenting(tree: Tree, port: str = "0") -> Iterator[subprocess.Popen[str]]:
    """The running program; ended by SIGTERM, if it has not ended by itself."""
    if not SERVER.exists():
        pytest.skip("build/bin/15-slashdot is not built (make servers)")
    build = tree.path / "build"
    (build / "bin").mkdir(exist_ok=True)
    if not (build / "bin" / SERVER.name).exists():
        (build / "bin" / SERVER.name).symlink_to(SERVER)
    words = ["present", f"BUILD={build}", f"PORT={port}"]
    with subprocess.Popen(
        [sys.executable, "-m", "quest", *words], cwd=ROOT, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.terminate()


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_the_deck_is_served_at_a_free_port_until_the_show_ends(tree: Tree) -> None:
    deck = tree.write("build/slides/deck.html", "<!DOCTYPE html><title>Deck</title>")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with presenting(tree, str(port)) as process:
            shown, speaker = line_of(process).split(), line_of(process).split()
            assert shown[0] == "deck"
            address = r"http://127\.0\.0\.1:(\d+)/[\w-]{16}/deck\.html\?stage=\d+\.\S+"
            found = re.fullmatch(address, shown[1])
            assert found and port < int(found[1]) <= port + 20
            assert speaker == ["speaker", "view", f"{shown[1]}&speaker"]
            for url in (shown[1], speaker[2]):
                with urllib.request.urlopen(url, timeout=10) as reply:
                    assert reply.read() == deck.read_bytes()
            place = shown[1].partition("?")[0]
            root = place.rsplit("/", 2)[0]
            for other in ("slides/deck.html", "deck.html", "bin/15-slashdot", "", "../"):
                with pytest.raises(urllib.error.HTTPError):  # nothing else of build/
                    urllib.request.urlopen(f"{root}/{other}", timeout=10)
            deck.write_text("<!DOCTYPE html><title>Made anew</title>", encoding="utf-8")

            def again() -> bool:
                with urllib.request.urlopen(place, timeout=10) as reply:
                    return bool(reply.read() == deck.read_bytes())

            assert browser.wait_until(again), "F5 shows the deck that was made meanwhile"
            process.terminate()
            assert process.wait(10) == 0
            with pytest.raises(OSError):
                urllib.request.urlopen(shown[1], timeout=10)


def test_deck_that_is_not_there_is_said(tree: Tree) -> None:
    with presenting(tree) as process:
        said = process.communicate(timeout=30)
    deck = tree.path / "build/slides/deck.html"
    assert (process.returncode, *said) == (1, "", f"present: {deck} is not there (make slides)\n")


# Read through the slides' own window: chromedriver hangs on a window a script has written.
SPEAKER = """
const open = window.open;
window.open = (...rest) => window.speaker = open(...rest);
Reveal.slide(0, 0);
"""
PRESS = """
const press = new window.speaker.KeyboardEvent("keydown", { keyCode: arguments[0], bubbles: true });
window.speaker.document.dispatchEvent(press);
"""
TEXT = "return window.speaker.document.querySelector(arguments[0])?.textContent ?? '';"
HERE = "const at = Reveal.getIndices(); return [at.h, at.v];"
LEFT = 37


@pytest.mark.parametrize("way", ["file", "http"])
def test_speaker_view_and_deck_follow_each_other(
    driver: Any, built: Tree, reveal: None, way: str
) -> None:
    """From the one file, and over `make present`: both have to work, with no network."""
    seen = driver.execute_script
    with contextlib.ExitStack() as stack:
        address = (built.path / "build/slides/deck.html").as_uri()
        if way == "http":
            address = line_of(stack.enter_context(presenting(built))).split()[1]
        browser.resize(driver, 1280, 720)
        driver.get(address)
        assert browser.started(driver)
        driver.execute_script(SPEAKER)
        stack.callback(driver.execute_script, "window.speaker?.close();")
        driver.find_element("css selector", "body").send_keys("s")
        assert browser.wait_until(lambda: seen("return !!window.speaker;"))
        notes = ".speaker-controls-notes .value"
        assert browser.wait_until(lambda: "Say what the evening" in seen(TEXT, notes))
        assert "Pacing" in seen(TEXT, ".pacing-title")
        driver.execute_script("Reveal.slide(0, 1);")
        assert browser.wait_until(lambda: "Step through it" in seen(TEXT, notes))
        time.sleep(1)  # The speaker view holds back what comes within half a second.
        driver.execute_script(PRESS, LEFT)
        assert browser.wait_until(lambda: seen(HERE) == [0, 0])


def test_speaker_address_opens_the_view_or_leaves_a_hint(shown: Any) -> None:
    before, keep = set(shown.window_handles), shown.current_window_handle
    address = shown.current_url.partition("#")[0] + "?speaker"
    shown.get(address)
    assert browser.started(shown)
    assert browser.wait_until(lambda: len(set(shown.window_handles) - before) == 1)
    for handle in set(shown.window_handles) - before:
        shown.execute_cdp_cmd("Target.closeTarget", {"targetId": handle})
    shown.switch_to.window(keep)
    refuse = {"source": "window.open = () => null;"}
    script = shown.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", refuse)
    try:
        shown.get("about:blank")
        shown.get(address)
        assert browser.started(shown)
        hint = "return document.querySelector('.speaker-hint')?.textContent ?? '';"
        assert browser.wait_until(lambda: "press S" in shown.execute_script(hint))
        shown.execute_script("Reveal.slide(0, 1);")
        assert shown.execute_script(HERE) == [0, 1]
    finally:
        shown.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)


# ---- demos ---------------------------------------------------------------------------------------

DECK = ROOT / "build/slides/deck.html"
SAID = """
const demo = Reveal.getCurrentSlide().querySelector(".demo");
return [demo.querySelector(".recorded").textContent, demo.querySelector(".said").textContent,
        demo.querySelectorAll("canvas").length];
"""


@pytest.mark.skipif(
    not DECK.exists() or 'id="demo-silent"' not in DECK.read_text("utf-8"),
    reason="the deck is not built, or before it had demos (make slides)",
)
@pytest.mark.parametrize(
    ("query", "says"),
    [("", "Recorded 20"), ("?stage=1.none", "The demo cannot be reached. Recorded 20")],
)
def test_without_its_control_a_demo_plays_its_recording(driver: Any, query: str, says: str) -> None:
    browser.resize(driver, 1280, 720)
    driver.get(DECK.as_uri() + query + "#/demo-silent")
    assert browser.started(driver)
    assert browser.wait_until(lambda: "01-iterative 50" in driver.execute_script(SAID)[1])
    recorded, _, canvases = driver.execute_script(SAID)
    assert recorded.startswith(says)
    assert canvases > 0, "it is drawn (libjs-dygraphs)"
    driver.execute_script("Reveal.slide(0)")
    wrong = [line for line in browser.console_errors(driver) if "ERR_" not in line]
    assert wrong == []


BREAK = """
const demo = Demos.get(Reveal.getCurrentSlide());
demo.source = { close() {} };
demo.stop();
const [begin, ...rest] = demo.events;
demo.show(begin);
rest.slice(0, 6).forEach((event) => demo.show(event));
demo.began = performance.now() - 1000 * rest[6].at;
demo.take({ failed: "07-poll has ended" });
const before = rest.filter((event) => event.line && event.at < rest[6].at);
return [before.length, demo.rows.length, demo.label];
"""


@pytest.mark.skipif(not DECK.exists(), reason="the deck is not built (make slides)")
def test_a_demo_that_breaks_off_goes_on_from_its_recording(driver: Any) -> None:
    browser.resize(driver, 1280, 720)
    driver.get(DECK.as_uri() + "#/demo-race")
    assert browser.started(driver)
    assert browser.wait_until(lambda: "07-poll" in driver.execute_script(SAID)[1])
    before, rows, label = driver.execute_script(BREAK)
    assert rows >= before > 2, "what was measured stays"
    assert label.startswith("07-poll has ended. Recorded from here on: 20"), label
    count = "return Demos.get(Reveal.getCurrentSlide()).rows.length"
    assert browser.wait_until(lambda: driver.execute_script(count) > rows)
    assert browser.console_errors(driver) == []


OVERVIEW = """
const at = (id) => { const { h, v } = Reveal.getIndices(document.getElementById(id)); Reveal.slide(h, v); };
const playing = () => [...Demos].filter(([, demo]) => demo.timers.length).map(([slide]) => slide.id);
const seen = [playing()];
Reveal.toggleOverview(true);
at("demo-race");
seen.push(playing());
Reveal.toggleOverview(false);
seen.push(playing());
return seen;
"""


@pytest.mark.skipif(not DECK.exists(), reason="the deck is not built (make slides)")
def test_who_looks_at_all_slides_at_once_starts_no_demo(driver: Any) -> None:
    browser.resize(driver, 1280, 720)
    driver.get(DECK.as_uri() + "#/demo-silent")
    assert browser.started(driver)
    assert driver.execute_script(OVERVIEW) == [["demo-silent"], [], ["demo-race"]]


DEMO_PAGE = """<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>x</title><link rel="icon" href="data:,">
<section data-demo="race"><div class="demo"><p class="y"></p></div><div class="plot"></div>
<p class="said"></p><p class="recorded"></p>
<script class="recording" type="application/json">{"date":"2026-01-01","system":"Linux","cores":1}</script></section>
<script>
const asked = [], slide = document.querySelector("section");
window.EventSource = class { constructor(url) { asked.push(url); } close() {} };
const on = (event, act) => event === "ready" && setTimeout(act);
const Reveal = { on, isOverview: () => false, getCurrentSlide: () => slide };
</script><script src="demo.js"></script>"""


def demo_at(driver: Any, folder: Path, query: str) -> list[str]:
    """A slide with a demo, at this address; where it asks for events."""
    (folder / "demo.js").write_bytes((ROOT / "slides/demo.js").read_bytes())
    (folder / "deck.html").write_text(DEMO_PAGE, encoding="utf-8")
    driver.get((folder / "deck.html").as_uri() + query)
    assert browser.wait_until(lambda: driver.execute_script("return Demos.size;"))
    return list(driver.execute_script("return asked;"))


@pytest.mark.parametrize("stage", ["", "x@3221225985/.t", "80@[2001:db8::1]/.t", "8000", "8.t/..", "99999.t", "-1.t"])
def test_a_link_names_no_other_machine_for_the_demos(driver: Any, tmp_path: Path, stage: str) -> None:
    assert demo_at(driver, tmp_path, f"?stage={stage}") == []
    assert driver.execute_script("return slide.querySelector('.recorded').textContent;") == "Recorded: no recording"
    assert browser.console_errors(driver) == []


def test_the_address_of_the_show_names_its_control(driver: Any, tmp_path: Path) -> None:
    assert demo_at(driver, tmp_path, "?stage=8000.to-k_n") == ["http://127.0.0.1:8000/demo?demo=race&token=to-k_n"]


EVENTS = """
const demo = Demos.get(slide), line = "<img src=x>";
demo.take({ begin: "race", lines: [line, "b"], x: "seconds", y: "y", top: 1, until: 9, ticks: [] });
for (const event of [{ line, x: 1, y: 2 }, { line: "b", x: 1, y: null }, { note: "<hr>" }]) demo.take(event);
return [demo.said.textContent.replace(/\\s+/g, " "), demo.said.querySelectorAll("img, hr").length];
"""


def test_what_a_demo_says_is_text(driver: Any, tmp_path: Path) -> None:
    demo_at(driver, tmp_path, "?stage=8000.t")
    assert driver.execute_script(EVENTS) == ["<img src=x> 2 b no answer <hr>", 0]


TOP = "const demo = Demos.get(slide); arguments[0].forEach((event) => demo.show(event)); return demo.top();"


def test_the_axis_of_a_demo_is_as_high_as_the_rehearsal_says(driver: Any, tmp_path: Path) -> None:
    """Of each recording, and with a point far above it: at an arrival that does not count, and in no second after."""
    demo_at(driver, tmp_path, "?stage=8000.t")
    played = [(name, recorded(name)) for name in DEMOS]
    played += [("race", [*recorded("race")[:-1], Point("07-poll", x, 99), End()]) for x in (3.9, 4, 5, 5.1, 12)]
    for name, events in played:
        messages = [event.message() for event in events[:-1]]  # the last is its end
        assert driver.execute_script(TOP, messages) == seen.top(DEMOS[name], events), (name, events[-2])
    assert browser.console_errors(driver) == []


PRESS_F5 = {"type": "keyDown", "key": "F5", "code": "F5", "windowsVirtualKeyCode": 116}


def test_a_remote_that_begins_the_show_does_not_load_the_deck_anew(shown: Any) -> None:
    shown.execute_script("window.same = true; Reveal.slide(0, 1);")
    shown.execute_cdp_cmd("Input.dispatchKeyEvent", PRESS_F5)
    time.sleep(0.5)
    assert shown.execute_script("return window.same === true;")
    assert shown.execute_script(HERE) == [0, 1]


# ---- you draw it ---------------------------------------------------------------------------------

CHAPTER = ROOT / "build/book/09-epoll.html"
OF_2003 = ROOT / "build/book/process-cost.html"  # its first drawing has a line of 2003
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
PRESS_BUTTON = """
const button = [...document.querySelector(".drawing").querySelectorAll("button")]
  .find(each => each.textContent === arguments[0] && each.checkVisibility());
if (button) button.click();
return Boolean(button)"""
FIGURE_IS_SHOWN = """
const box = document.querySelector(".drawing").parentNode;
return getComputedStyle(box.nextElementSibling).display !== "none" """
LINES_SHOWN = """
return [...document.querySelector(".drawing").querySelectorAll(".measured")]
  .map(each => getComputedStyle(each).display !== "none")"""


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
    assert driver.execute_script(PRESS_BUTTON, words), words


@pytest.mark.slow
@drawing
@pytest.mark.parametrize("width", browser.WIDTHS)
def test_a_curve_is_drawn_with_the_pointer(driver: Any, width: int) -> None:
    from selenium.webdriver.common import action_chains

    svg = drawn_on(driver, width)
    assert not driver.execute_script(FIGURE_IS_SHOWN)
    reach = int(svg.size["width"] * 0.34)
    chains: Any = action_chains
    line = chains.ActionChains(driver)
    line.move_to_element(svg).move_by_offset(-reach, 20).click_and_hold()
    for _ in range(10):
        line.move_by_offset(reach // 5 + 1, -4)
    line.release().perform()
    press(driver, "Show what was measured")
    assert driver.execute_script(FIGURE_IS_SHOWN)
    said = told(driver)
    assert re.search(r"at 1[09]\W?000 you drew .* was measured: .* times too much", said), said
    assert "measured, it stays flat" in said
    driver.refresh()
    assert told(driver) == said, "it is kept"
    wide = driver.execute_script("return document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0
    assert browser.console_errors(driver) == []


@pytest.mark.slow
@drawing
def test_a_curve_is_drawn_with_keys_with_numbers_and_as_a_shape(driver: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    drawn_on(driver, 1280).send_keys(Keys.ARROW_UP, Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    assert re.fullmatch(r"100: .* (ns|µs)", told(driver))
    driver.execute_script("document.querySelector('.drawing details').open = true")
    first = driver.find_element("css selector", ".drawing")
    last = first.find_elements("css selector", "input")[-1]
    assert last.get_attribute("aria-label").startswith("one epoll_wait at 19")
    last.send_keys("1000", Keys.TAB)
    press(driver, "Show what was measured")
    assert "you drew 1 ms" in told(driver)
    drawn_on(driver, 1280, OF_2003)
    press(driver, "in proportion")
    press(driver, "Show what was measured")
    lines = len(driver.execute_script(LINES_SHOWN))
    assert driver.execute_script(LINES_SHOWN) == [True] + [False] * (lines - 1)
    assert re.search(r"In the reference run: at .* too much\.", told(driver)), told(driver)
    if lines == 3:  # this machine has been measured
        press(driver, "And on this machine?")
        assert "On your machine: " in told(driver)
    press(driver, "And in 2003?")
    assert re.search(r"In 2003, Linux 2\.6: 350 µs at ", told(driver)), told(driver)
    driver.refresh()
    assert driver.execute_script(LINES_SHOWN) == [True] * lines, "it is kept"
    press(driver, "Draw again")
    assert driver.execute_script(LINES_SHOWN) == [False] * lines
    assert not driver.execute_script(FIGURE_IS_SHOWN)
    assert browser.console_errors(driver) == []


ONE_LINE = {"whose": "reference", "x": [1, 10, 100], "y": [1, 2, 3]}
TO_DRAW = json.dumps({"lines": [ONE_LINE], "unit": "ms", "yTitle": "time", "xTitle": "n", "measure": "make bench"})
A_BOX = f"<div class=predict data-draw='{TO_DRAW}'></div>"
TWO_DRAWINGS = f"""<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>x</title><link rel="icon" href="data:,">
<button class="theme">x</button>{2 * A_BOX}<script src="book.js"></script>"""


def two_drawings(driver: Any, folder: Path, kept: str = "") -> None:
    """A page with two drawings; what the browser has kept of the first."""
    (folder / "book.js").write_bytes((ROOT / "chapters/pandoc/book.js").read_bytes())
    (folder / "page.html").write_text(TWO_DRAWINGS, encoding="utf-8")
    driver.get((folder / "page.html").as_uri())
    driver.execute_script("localStorage.clear(); localStorage.setItem('drawn:page.html:0', arguments[0]);", kept)
    driver.refresh()


@pytest.mark.parametrize(
    "kept",
    ["{", "7", '{"y":[1,2,3]}', '{"y":[1,2,3],"shown":"x"}', '{"y":["a",{},null]}', '{"y":[-5,1,1],"shown":-1}'],
)
def test_a_drawing_that_was_kept_damaged_is_begun_anew(driver: Any, tmp_path: Path, kept: str) -> None:
    two_drawings(driver, tmp_path, kept)
    assert len(driver.find_elements("css selector", ".drawing")) == 2, "the next one is there, too"
    assert driver.execute_script(LINES_SHOWN) == [False]
    press(driver, "Show what was measured" if kept.startswith('{"y":[1') else "Show it without a guess")
    assert driver.execute_script(LINES_SHOWN) == [True]
    assert browser.console_errors(driver) == []


def test_less_than_nothing_is_no_guess(driver: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    two_drawings(driver, tmp_path)
    driver.execute_script("document.querySelector('.drawing details').open = true")
    driver.find_element("css selector", ".drawing input").send_keys("-5", Keys.TAB)
    press(driver, "Show it without a guess")
    assert "as good as it gets" not in told(driver)


PRESS_LEFT = """
const event = new KeyboardEvent("keydown", { key: "ArrowLeft", cancelable: true, [arguments[0]]: true });
document.querySelector(".drawing svg").dispatchEvent(event);
return event.defaultPrevented;
"""


def test_keys_of_the_browser_stay_its_own_in_a_drawing(driver: Any, tmp_path: Path) -> None:
    two_drawings(driver, tmp_path)
    pressed = {held: driver.execute_script(PRESS_LEFT, held) for held in ("bubbles", "altKey", "ctrlKey", "metaKey")}
    assert pressed == {"bubbles": True, "altKey": False, "ctrlKey": False, "metaKey": False}


#: Of book.js: what is computed -> what it is.
KNOWN: dict[str, object] = {
    'said(41.3, "µs")': "41 µs",
    'said(2500000, "ns")': "2.5 ms",
    'said(15000, "")': "15\u202f000",
    'tickText(1e6, "")': "1M",
    'tickText(1000, "")': "1k",
    'tickText(999, "")': "999",
    'tickText(0.02, "s")': "20 ms",
    "axis([1, 10, 100], 0, 0, true).ticks": [1, 10, 100],
    "axis([1, 10, 100], 0, 0, true).place(10)": 0.5,
    "axis([1, 10, 100], 0, 0, true).value(0.5)": 10,
    "axis([1, 100], 1, 2, true).ticks": [0.1, 1, 10, 100, 1000, 10000],
    "axis([0, 8], 0, 0.25, true).ticks": [0, 2.5, 5, 7.5, 10],
    "axis([2, 8], 0, 0.25, false).place(5)": 0.5,
    "[1, 2, 3, 4, 5].map((x) => at({ x: [1, 3, 5], y: [10, 30, 0] }, x))": [10, 20, 30, 15, 0],
}


def test_what_a_drawing_is_computed_with(driver: Any, tmp_path: Path) -> None:
    two_drawings(driver, tmp_path)
    assert {text: driver.execute_script(f"return {text};") for text in KNOWN} == KNOWN


GUESSED = "document.dispatchEvent(new CustomEvent('guessed', { detail: arguments[0] }));"
GUESSES = """
const values = (box) => [...box.querySelectorAll("input")].map(({ value }) => value);
return [...document.querySelectorAll(".drawing")].map(values);
"""


def test_a_guess_from_the_terminal_replaces_none(driver: Any, tmp_path: Path) -> None:
    """Nor one that was shown without a guess."""
    two_drawings(driver, tmp_path)
    nothing, first, second = [""] * 3, ["1", "2", "3"], ["4", "5", "6"]
    driver.execute_script(GUESSED, {"1": [4, 5, 6]})
    assert driver.execute_script(GUESSES) == [nothing, second]
    press(driver, "Show it without a guess")
    driver.execute_script(GUESSED, {"0": [1, 2, 3], "1": [7, 8, 9]})
    assert driver.execute_script(GUESSES) == [nothing, second]
    press(driver, "Draw again")
    driver.execute_script(GUESSED, {"0": [1, 2, 3]})
    assert driver.execute_script(GUESSES) == [first, second]


# ---- what make read puts into a page -------------------------------------------------------------

LIVE_PAGE = """<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>x</title><link rel="icon" href="data:,">
<p class="toc"><span><a href="09-epoll.html">x</a></span> <span><a href="none.html">x</a></span></p><script>
const steps = [{ kind: "predict", command: "make read", mark: " ", stage: "" },
  { kind: "run", command: "make run", mark: "-", stage: "" },
  { kind: "lab", command: "make check", mark: " ", stage: "stage 2 of 4" }];
const later = window.setTimeout, sent = [], chapters = { "09-epoll": "2 of 5" };
window.setTimeout = (act, ms) => later(act, ms / 10);
let gone = false, made = 0, looks = 0;
window.fetch = async (place, how) => {
  if (gone) throw new TypeError("Failed to fetch");
  if (how) sent.push([place, how.method, how.headers["X-Reader"], how.body]);
  if (/^.(done|guess)./.test(place)) steps[0].mark = "x";
  looks += place === "/version";
  return { ok: true, json: async () => place === "/version" ? made : { steps, guesses: {}, chapters } };
};
</script><script src="live.js"></script>"""
PATH_OF_PAGE = "return document.querySelector('details')?.textContent ?? ''"
LINES_OF_PATH = "return [...document.querySelectorAll('details > div')].map((line) => line.textContent);"
TICK = "document.querySelector('details').open = true; document.querySelector('details button').focus();"


@pytest.fixture
def live(driver: Any, tmp_path: Path) -> Any:
    """A page with its path, and a server that keeps what is ticked."""
    (tmp_path / "live.js").write_bytes((ROOT / "quest/learn/live.js").read_bytes())
    (tmp_path / "09-epoll.html").write_text(LIVE_PAGE, encoding="utf-8")
    driver.get((tmp_path / "09-epoll.html").as_uri())
    assert browser.wait_until(lambda: "☐" in driver.execute_script(PATH_OF_PAGE))
    return driver


def test_who_ticks_by_keyboard_stays_in_the_path(live: Any) -> None:
    live.execute_script(TICK + "document.activeElement.click();")
    assert browser.wait_until(lambda: "☑" in live.execute_script(PATH_OF_PAGE))
    assert live.execute_script("return document.activeElement.tagName") == "SUMMARY"


def test_a_tick_that_nobody_takes_is_said(live: Any) -> None:
    live.execute_script("gone = true;" + TICK + "document.activeElement.click();")
    assert browser.wait_until(lambda: "It could not be kept" in live.execute_script(PATH_OF_PAGE))
    assert browser.console_errors(live) == []


def test_a_drawing_that_is_shown_is_ticked_at_once(live: Any) -> None:
    live.execute_script("document.dispatchEvent(new CustomEvent('drawn', {detail: {number: 0, y: [1], shown: 1}}));")
    assert browser.wait_until(lambda: "☑" in live.execute_script(PATH_OF_PAGE), 5)


def test_the_path_says_of_each_step_how_it_stands(live: Any) -> None:
    """A button where the reader alone knows; else the command, but not of what is left out."""
    predict, run, lab = live.execute_script(LINES_OF_PATH)
    assert [line[0] for line in (predict, run, lab)] == ["☐", "⊟", "☐"]
    assert "make check" in lab and "stage 2 of 4" in lab and "make" not in predict + run
    assert live.execute_script("return document.querySelectorAll('details button').length;") == 1
    assert "0 of 3" in live.execute_script(PATH_OF_PAGE)
    live.execute_script("chapters['09-epoll'] = '3 of 5'; for (const _ of 'ab') dispatchEvent(new Event('focus'));")
    counts = "return [...document.querySelectorAll('.toc small')].map((each) => each.textContent);"
    assert browser.wait_until(lambda: "3 of 5" in str(live.execute_script(counts)))
    assert len(live.execute_script(counts)) == 1, "and it is there once"


def test_a_drawing_is_sent_when_it_rests(live: Any) -> None:
    """Whoever draws sends a drawing for each move: the last one counts. (This header comes from our pages alone.)"""
    drawn = "document.dispatchEvent(new CustomEvent('drawn', { detail: { number: 0, y: [y], shown: 0 } }));"
    live.execute_script(f"for (const y of [1, 2]) {drawn}")
    assert browser.wait_until(lambda: live.execute_script("return sent.length;"))
    assert live.execute_script("return sent;") == [["/guess/09-epoll/0", "POST", "1", '{"y":[2],"shown":0}']]


def test_a_page_is_loaded_again_when_the_book_was_made_anew(live: Any) -> None:
    """And not before."""
    live.execute_script("window.same = true;")
    assert browser.wait_until(lambda: live.execute_script("return looks;") > 3)
    assert live.execute_script("return window.same === true;")
    live.execute_script("made = 1;")
    assert browser.wait_until(lambda: live.execute_script("return window.same !== true;"))
