"""axe-core, which looks for what shuts readers out: of a page, in light and in dark.

    python3 -m tests.book.axe [PAGE...]    every rule, in both schemes, on all pages of build/book: some minutes

Contrast is nine tenths of axe's time, and depends on the style sheets alone: so the tests ask for it once for each kind
of place, which is an element's tags and classes from the body on and its colour, and for all other rules on every page.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.book.tree import CHROMIUM, ROOT

AXE = ROOT / "build/node/axe-core/axe.min.js"
SCHEMES = ("light", "dark")
COLOUR = ("color-contrast", "link-in-text-block")
# What pandoc writes for a footnote; the book has none.
NOT_OURS = ("aria-deprecated-role",)
# Without `preload` it asks for the style sheets again, which a browser refuses for files, with an error.
RUN = """
  const [context, options, done] = arguments;
  const where = (nodes) => nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(" ");
  axe.run(context ?? document, { preload: false, resultTypes: ["violations"], ...options }).then(
    (result) => done(result.violations.map(({ id, nodes }) => `${id} (${nodes.length}): ${where(nodes)}`)),
    (error) => done([`${error}`]));
"""
# Marks the first element of each kind of place that has text, and returns those kinds.
NEW_PLACES = """
  const seen = new Set(arguments[0]), found = [];
  const step = (one) => [one.localName, ...[...one.classList].sort()].join(".");
  for (const one of document.querySelectorAll("[data-axe]")) delete one.dataset.axe;
  for (const one of document.body.querySelectorAll("*")) {
    const hasText = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!hasText || !one.checkVisibility()) continue;
    let path = `${document.body.className} ${getComputedStyle(one).color}`;
    for (let each = one; each !== document.body; each = each.parentElement) path = `${step(each)} ${path}`;
    if (seen.has(path)) continue;
    seen.add(path);
    found.push(path);
    one.dataset.axe = "";
  }
  return found;
"""


@contextmanager
def scheme(driver: Any, name: str) -> Iterator[None]:
    """The system's wish: light or dark."""
    features = [{"name": "prefers-color-scheme", "value": name}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    try:
        yield
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def load(driver: Any) -> None:
    """Into the page that is shown."""
    driver.execute_script(AXE.read_text(encoding="utf-8"))


def found(driver: Any, context: object = None, **options: object) -> list[str]:
    """A line for each rule that is broken. `context`: what is looked at, as axe.run() takes it; None: the page."""
    return list(driver.execute_async_script(RUN, context, options))


def problems(driver: Any, seen: set[str]) -> list[str]:
    """Of the page that is shown; `seen` are the kinds of places whose contrast is known, and gets the new ones."""
    load(driver)
    new = driver.execute_script(NEW_PLACES, list(seen))
    seen.update(new)
    wrong = found(driver, rules={rule: {"enabled": False} for rule in (*COLOUR, *NOT_OURS)})
    for name in SCHEMES if new else ():
        with scheme(driver, name):
            wrong += [f"{name}: {each}" for each in found(driver, {"include": ["[data-axe]"]}, runOnly=list(COLOUR))]
    return wrong


#: Leaves one slide in the deck, with all its steps: axe goes through the whole page each time. And nothing that lies
#: over or under it, or fades: then axe knows no background, and says nothing of contrast.
ALONE = """
  const slide = (window.allSlides ??= Reveal.getSlides())[arguments[0]];
  slide.classList.remove("past", "future");
  slide.classList.add("present");
  for (const name of ["hidden", "aria-hidden"]) slide.removeAttribute(name);
  slide.style.cssText = "display: flex; pointer-events: auto";
  for (const step of slide.querySelectorAll(".fragment")) step.classList.add("visible");
  slide.insertAdjacentHTML("afterbegin", "<style>*, ::before, ::after { transition: none !important }</style>");
  for (const other of document.querySelectorAll(".reveal > :not(.slides)")) other.remove();
  document.querySelector(".reveal .slides").replaceChildren(slide);
  return slide.id;
"""
SLIDE = {"include": [".reveal .slides"]}
#: A deck's theme is its own, not the system's.
THEME = "document.documentElement.dataset.theme = arguments[0];"


def slide_problems(driver: Any, seen: set[str]) -> list[str]:
    """As problems(), of the slide that ALONE has left in a deck into which axe is loaded."""
    new = driver.execute_script(NEW_PLACES, list(seen))
    seen.update(new)
    wrong = found(driver, SLIDE, rules={rule: {"enabled": False} for rule in (*COLOUR, *NOT_OURS)})
    for name in (*reversed(SCHEMES),) if new else ():  # light is left behind
        driver.execute_script(THEME, name)
        wrong += [f"{name}: {each}" for each in found(driver, {"include": ["[data-axe]"]}, runOnly=list(COLOUR))]
    return wrong


def main(names: list[str]) -> int:
    """Status 1 if anything is found."""
    from selenium import webdriver

    from quest.book.paper import running
    from tests.book import browser

    pages = [ROOT / f"build/book/{name}.html" for name in names] or sorted((ROOT / "build/book").glob("*.html"))
    count = 0
    with running(CHROMIUM, webdriver.ChromeOptions()) as driver:
        driver.set_script_timeout(1200)
        for page in pages:
            driver.get(page.as_uri())
            browser.resize(driver, 1280, 900)
            load(driver)
            for name in SCHEMES:
                with scheme(driver, name):
                    wrong = found(driver)
                count += len(wrong)
                print(*(f"{page.name}, {name}: {each}" for each in wrong or ["nothing"]), sep="\n", flush=True)
    print(f"{len(pages)} pages, light and dark: {count} rules broken")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
