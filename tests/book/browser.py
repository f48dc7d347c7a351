"""What is looked for on pages and slides in the one headless Chromium of conftest.py.

page_problems() and deck_problems() return one line for each fault; the tests compare with an empty
list.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

WIDTHS = (1280, 390)

HERE = Path(__file__).resolve().parent
CHECK_PAGE = (HERE / "check_page.js").read_text(encoding="utf-8")
CHECK_SLIDE = (HERE / "check_slide.js").read_text(encoding="utf-8")
ASKED = "return performance.getEntriesByType('resource').map((one) => one.name);"
# Two frames later what observes sizes has seen the new one.
DRAWN = "const [done] = arguments; requestAnimationFrame(() => requestAnimationFrame(() => done()));"
SHOW_SLIDE = """
const all = Reveal.getSlides(), at = Reveal.getIndices(all[arguments[0]]);
Reveal.slide(at.h, at.v, 99);
return Reveal.getCurrentSlide().id;
"""


def resize(driver: Any, width: int, height: int) -> None:
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    assert wait_until(lambda: driver.execute_script("return innerWidth;") == width)


def console_errors(driver: Any) -> list[str]:
    """What the page complained of since the last call: also of a file that it did not find."""
    return [
        f"console: {entry['message']}"
        for entry in driver.get_log("browser")
        if entry["level"] == "SEVERE"
    ]


def requests(driver: Any) -> list[str]:
    """What the page has asked the network for."""
    asked = driver.execute_script(ASKED)
    return [f"asks for {url}" for url in asked if not url.startswith(("file:", "data:", "blob:"))]


def page_problems(driver: Any, page: Path) -> list[str]:
    problems = []
    driver.get(page.as_uri())
    for width in WIDTHS:
        resize(driver, width, 900)
        driver.execute_async_script(DRAWN)
        found = driver.execute_script(CHECK_PAGE) + console_errors(driver)
        problems += [f"{page.name} at {width}: {problem}" for problem in found]
    return problems + [f"{page.name}: {problem}" for problem in requests(driver)]


def wait_until(condition: Callable[[], object], seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def started(driver: Any) -> bool:
    """Waits until reveal.js is ready; at once False where there is none."""
    if driver.execute_script("return typeof Reveal === 'undefined';"):
        return False
    return wait_until(lambda: driver.execute_script("return Reveal.isReady();"))


def deck_problems(driver: Any, deck: Path, part: int, parts: int) -> list[str]:
    """One of so many consecutive parts of a deck's slides, with all fragments shown; part: from 0."""
    resize(driver, 1280, 720)
    driver.get(deck.as_uri())
    if not started(driver):
        return [f"{deck.name}: reveal.js did not start", *console_errors(driver)]
    count = driver.execute_script("return Reveal.getTotalSlides();")
    problems = [] if count else [f"{deck.name}: no slide"]
    for index in range(count * part // parts, count * (part + 1) // parts):
        name = driver.execute_script(SHOW_SLIDE, index)
        found = driver.execute_script(CHECK_SLIDE)
        problems += [f"{deck.name}#/{name}: {problem}" for problem in found]
    return problems + requests(driver) + console_errors(driver)
