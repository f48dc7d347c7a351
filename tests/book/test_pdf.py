"""`make release` and what it prints: the pages of deck and book are counted and looked at, the
demonstration's and, where they are made, the real ones. Minutes of it: `make test-book` and
`make test ALL=yes`, not `make test`.
"""

import os
import re
import shutil
import subprocess
import sys
import unicodedata
import zipfile
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.book import browser
from tests.book.tree import ROOT, Done, Once, Tree, epubcheck_finds_nothing
from tests.book.tree import plain as text_of

WHEN = "1700000000"  # 2023-11-14, 22:13:20 UTC
MADE = "build/release/build"
PAGE = re.compile(r'<page width="([\d.]+)" height="([\d.]+)">(.*?)</page>', re.DOTALL)
WORD = re.compile(
    r'<word xMin="([\d.-]+)" yMin="([\d.-]+)" xMax="([\d.-]+)" yMax="([\d.-]+)">(.*?)</word>'
)
MM = 72 / 25.4
# White that a page has to keep: left, top, right and bottom, in points (slides/print.css,
# slides/deck.js, chapters/pandoc/book.css). In the bottom margin of the book, 24 mm, stands the
# number of the page.
DECK = (15, 20, 12, 2)
NOTES = (18 * MM, 16 * MM, 18 * MM, 14 * MM)
BOOK = (22 * MM, 0, 22 * MM, 8 * MM)
TOLERANCE = 1.5  # points by which a letter may lean out of its box


pytestmark = pytest.mark.slow


class Page(NamedTuple):
    """Sizes and places in points, from the top left corner; words are left, top, right, bottom,
    text.
    """

    width: float
    height: float
    words: list[tuple[float, float, float, float, str]]

    @property
    def text(self) -> str:
        return squeezed("".join(word[4] for word in self.words))


def poppler(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, timeout=120, check=True).stdout.decode()


def squeezed(text: str) -> str:
    """Without white space and ligatures: how lines are broken, and drawn, does not matter."""
    return "".join(unicodedata.normalize("NFKC", text).split())


def plain(html: str) -> str:
    """Text of HTML, squeezed."""
    return squeezed(text_of(html))


def pages_of(pdf: Path) -> list[Page]:
    pages = []
    for width, height, body in PAGE.findall(poppler("pdftotext", "-bbox", pdf, "-")):
        words = [
            (float(a), float(b), float(c), float(d), unescape(text))
            for a, b, c, d, text in WORD.findall(body)
        ]
        pages.append(Page(float(width), float(height), words))
    return pages


def cut_off(pages: list[Page], edges: tuple[float, float, float, float]) -> list[str]:
    """Words in the margins."""
    left, top, right, bottom = edges
    return [
        f'page {number}: "{word[4]}" runs out of the page'
        for number, page in enumerate(pages, 1)
        for word in page.words
        if min(word[0] - left, word[1] - top) < -TOLERANCE
        or word[2] > page.width - right + TOLERANCE
        or word[3] > page.height - bottom + TOLERANCE
    ]


# ---- what is made --------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def released(once: Once, pandoc: None, reveal: None, chromium: str) -> list[Tree]:
    """The demonstration, released twice: in another folder, at another time, by somebody else. Not
    to be changed.
    """
    places = (("first", "UTC"), ("again/and elsewhere", "Asia/Tokyo"))

    def fill(folder: Path) -> None:
        for name, zone in places:
            tree = Tree(folder / name / "tree")
            tree.write("LICENSE", "MIT")
            tree.write("benchmarks/results/reference/fork-latency.jsonl", '{"type":"run"}\n')
            tree.write("setup/deps.sh", "printf 'gnuplot-nox\\tok\\n'\n")
            tree.replace("slides/01-first.md", "A program that", "[A program]{.fragment} that")
            done = tree.make("release", SOURCE_DATE_EPOCH=WHEN, TZ=zone)
            assert done.returncode == 0, done.stderr
            assert f"build/release/{archive_of(tree).name}" in done.stdout

    return [Tree(once("released", fill) / name / "tree", "") for name, _ in places]


def archive_of(tree: Tree) -> Path:
    """The newest."""
    archives = sorted((tree.path / "build/release").glob("*.zip"), key=os.path.getmtime)
    if not archives:
        pytest.skip("no release is made (make release)")
    return archives[-1]


@pytest.fixture(params=["demonstration", "tree"])
def build(request: pytest.FixtureRequest) -> Path:
    """The folder whose pdf/ is looked at; of this tree what `make pdf` has made, or the release."""
    if not shutil.which("pdftotext"):
        pytest.skip("poppler-utils are not installed (apt-get install poppler-utils)")
    if request.param == "demonstration":
        return Path(request.getfixturevalue("released")[0].path / MADE)
    made = [b for b in (ROOT / "build", ROOT / MADE) if (b / "pdf").exists()]
    if not made:
        pytest.skip("the PDFs are not made (make pdf)")
    return made[0]


def decks_of(build: Path) -> list[Path]:
    """The shortest that is on paper, and the longest, in which nearly all slides are."""
    decks = sorted((build / "slides").glob("deck*.html"), key=lambda deck: deck.stat().st_size)
    found = [deck for deck in decks if (build / f"pdf/{deck.stem}.pdf").exists()]
    if not found:
        pytest.skip("no deck is on paper (make pdf)")
    return [found[0], found[-1]] if len(found) > 1 else found


def test_same_sources_give_the_same_bytes(released: list[Tree]) -> None:
    """But for PDFs, which bear the time of their printing."""

    def members(tree: Tree) -> dict[str, tuple[object, ...]]:
        with zipfile.ZipFile(archive_of(tree)) as packed:
            return {
                one.filename: (one.date_time, one.external_attr, packed.read(one))
                for one in packed.infolist()
                if "/pdf/" not in one.filename
            }

    first, second = map(members, released)
    assert len(first) > 10 and list(first) == list(second)
    assert [name for name in first if first[name] != second[name]] == []
    assert {date for date, *_ in first.values()} == {(2023, 11, 14, 22, 13, 20)}


@pytest.mark.parametrize("of", ["demonstration", "tree"])
def test_every_link_of_the_front_page_opens(
    driver: Any, request: pytest.FixtureRequest, of: str, tmp_path: Path
) -> None:
    tree = Tree(ROOT, "") if of == "tree" else request.getfixturevalue("released")[0]
    with zipfile.ZipFile(archive_of(tree)) as packed:
        packed.extractall(tmp_path)
    (folder,) = tmp_path.iterdir()
    assert browser.page_problems(driver, folder / "index.html") == []
    links = re.findall(r'<a href="([^"]*)"', (folder / "index.html").read_text("utf-8"))
    assert len(links) >= 4 + 2 * 3 + 1
    for link in links:
        assert (folder / link).is_file(), link
        if link.endswith(".html"):
            driver.get((folder / link).as_uri())
            assert browser.console_errors(driver) == [], link


def test_nothing_is_printed_twice(released: list[Tree]) -> None:
    done = released[0].make("pdf", "TRACK=lecture90", f"BUILD={MADE}", "RESULTS=reference")
    assert (done.returncode, done.stdout) == (0, "")


# ---- the pages -----------------------------------------------------------------------------------


def test_deck_and_notes_have_a_page_for_every_slide_and_nothing_is_cut_off(build: Path) -> None:
    for deck in decks_of(build):
        html = deck.read_text(encoding="utf-8")
        screens = pages_of(build / f"pdf/{deck.stem}.pdf")
        sheets = pages_of(build / f"pdf/{deck.stem}-notes.pdf")
        assert cut_off(screens, DECK) + cut_off(sheets, NOTES) == []
        assert screens[0].width / screens[0].height == pytest.approx(16 / 9, rel=0.01)
        assert sheets[0][:2] == pytest.approx((210 * MM, 297 * MM), abs=2), "A4"
        titles = re.findall(r"<h[12][^>]*>(.*?)</h[12]>", html, re.DOTALL)
        all_notes = re.findall(r'<aside class="notes">(.*?)</aside>', html, re.DOTALL)
        minutes = re.findall(r'<section[^>]*data-minutes="([^"]*)"', html)
        begin = 0.0
        told = zip(titles, all_notes, minutes, strict=True)
        for (title, notes, takes), screen, sheet in zip(told, screens, sheets, strict=True):
            end = begin + float(takes)
            assert plain(title) in screen.text, deck.name
            for part in (title, f"{takes} min (minute {begin:g} to {end:g})", notes):
                assert plain(part) in sheet.text, deck.name
            begin = end
        assert begin > 0


LAID_OUT = "return document.documentElement.dataset.printing === 'ready'"
# The height of a letter's box, in points: of the first word of each element, by page.
ON_SCREEN = """
const [pages, elements, scale] = arguments;
return [...document.querySelectorAll(pages)].map((page) => [...page.querySelectorAll(elements)]
  .filter((element) => element.textContent.trim() && !element.closest(".demo, .katex, math"))
  .flatMap((element) => {
    const text = document.createTreeWalker(element, NodeFilter.SHOW_TEXT).nextNode();
    const word = text?.data.match(/^[A-Za-z]+(?=\\s|$)/);
    if (!word) return [];
    const range = document.createRange();
    range.setStart(text, 0);
    range.setEnd(text, word[0].length);
    return [[word[0], range.getBoundingClientRect().height * 0.75 / scale]];
  }))"""


def misprinted(screen: list[list[tuple[str, float]]], pages: list[Page], scale: float) -> list[str]:
    """Words that have another size on paper than on the screen, times `scale`. Chromium and poppler take the height
    of a line from different tables of a font: for Atkinson Hyperlegible they differ by 6 %.
    """
    wrong = []
    for number, (words, page) in enumerate(zip(screen, pages, strict=True), 1):
        for word, height in words:
            printed = [w[3] - w[1] for w in page.words if w[4] == word]
            if (
                height
                and printed
                and not any(p == pytest.approx(height * scale, rel=0.08) for p in printed)
            ):
                wrong.append(f"page {number}: {word}: {printed}, not {height * scale:.1f}")
    return wrong


def test_what_is_printed_has_the_size_it_has_on_the_screen(build: Path, driver: Any) -> None:
    for deck in decks_of(build):
        driver.get("about:blank")
        browser.resize(driver, 1280, 720)
        driver.get(deck.as_uri() + "?view=print&handout")
        assert browser.wait_until(lambda: driver.execute_script(LAID_OUT))
        notes = driver.execute_script(ON_SCREEN, ".sheet", "aside.notes p, .when span", 1)
        assert sum(map(len, notes)) > 0
        size = "return getComputedStyle(document.querySelector('aside.notes p')).fontSize"
        assert float(driver.execute_script(size).removesuffix("px")) * 0.75 == pytest.approx(
            13, abs=0.01
        )
        sheets = pages_of(build / f"pdf/{deck.stem}-notes.pdf")
        assert misprinted(notes, sheets, 1) == [], deck.name
        frames = driver.execute_script(ON_SCREEN, ".sheet", ".frame :is(h1, h2, p, li)", 1)
        assert misprinted(frames, sheets, 1) == [], deck.name
        driver.get("about:blank")
        driver.get(deck.as_uri() + "?view=print")
        assert browser.wait_until(lambda: driver.execute_script(LAID_OUT))
        text = driver.execute_script(ON_SCREEN, ".pdf-page", "section :is(h1, h2, p, li)", 1)
        assert sum(map(len, text)) > 0
        assert misprinted(text, pages_of(build / f"pdf/{deck.stem}.pdf"), 1) == [], deck.name


@pytest.fixture
def book(build: Path) -> Path:
    path = build / "pdf/book.pdf"
    if not path.exists():
        pytest.skip("the book is not on paper (make pdf)")
    return path


def one_file(book: Path) -> str:
    return (book.parent.parent / "book/book.html").read_text(encoding="utf-8")


def test_pages_of_the_book_are_whole_and_numbered_but_the_title(book: Path) -> None:
    pages = pages_of(book)
    assert cut_off(pages, BOOK) == []
    for number, page in enumerate(pages, 1):
        foot = [word[4] for word in page.words if word[1] > page.height - 24 * MM]
        assert foot == ([] if number == 1 else [str(number)])
        assert len(page.words) > len(foot), f"page {number} is blank"


def test_code_is_whole(book: Path) -> None:
    text = squeezed(poppler("pdftotext", "-raw", book, "-"))
    blocks = re.findall(r"<pre[^>]*><code[^>]*>(.*?)</code></pre>", one_file(book), re.DOTALL)
    lines = [plain(line) for block in blocks for line in block.splitlines()]
    assert len(lines) > 20
    assert [line for line in lines if line not in text] == []


# ---- the printer ---------------------------------------------------------------------------------


def print_page(page: Path, output: Path, program: str) -> Done:
    return subprocess.run(
        [sys.executable, "-m", "quest.book.paper", program, str(page), str(output)],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


LATE = """<!DOCTYPE html><p>early</p><script>
document.documentElement.dataset.printing = "wait";
setTimeout(() => {
  document.body.textContent = "late";
  document.documentElement.dataset.printing = "ready";
}, 1500);</script>"""


def test_page_that_lays_out_late_is_waited_for(chromium: str, tmp_path: Path) -> None:
    page, output = tmp_path / "page.html", tmp_path / "out.pdf"
    page.write_text(LATE, encoding="utf-8")
    assert print_page(page, output, chromium).returncode == 0
    assert poppler("pdftotext", output, "-").split() == ["late"]


def test_what_cannot_be_printed_is_said(chromium: str, tmp_path: Path) -> None:
    output, dying = tmp_path / "out.pdf", tmp_path / "chromium"
    output.write_text("before")
    # A browser that ends is said with its last words.
    dying.write_text("#!/bin/sh\necho 'first word' >&2; echo 'no such library' >&2; exit 1\n")
    dying.chmod(0o755)
    broken = tmp_path / "broken.html"
    broken.write_text("<!DOCTYPE html><img src='none.svg'>")
    for page, program, text in [
        (broken, chromium, "in the page: "),
        (tmp_path / "none.html?view=print", "/bin/false", f"{tmp_path}/none.html is not"),
        (broken, str(dying), ": no such library"),
    ]:
        done = print_page(page, output, program)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert text in done.stderr
        assert output.read_text() == "before"


def test_what_is_missing_is_skipped(made: Tree, chromium: str) -> None:
    done = made.make("pdf", "CHROMIUM=")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "SKIP pdf: Chromium is not installed (apt-get install chromium)\n"
    assert not (made.path / "build/pdf").exists()
    done = made.make("pdf", "PRINTS=")
    assert done.returncode == 0, done.stderr
    reason = "selenium is not installed (apt-get install python3-selenium)"
    assert done.stdout == f"SKIP pdf: {reason}\n"
    made.run("rm", "-r", "build/node", "build/slides/deck.html")
    done = made.make("pdf")  # without reveal.js
    assert done.returncode == 0, done.stderr
    assert "SKIP slides: reveal.js" in done.stdout
    assert [path.name for path in (made.path / "build/pdf").iterdir()] == ["book.pdf"]


def test_epubcheck_finds_nothing_in_the_whole_book() -> None:
    book = ROOT / "build/book/book.epub"
    if not book.exists():
        pytest.skip("the EPUB is not made (make epub)")
    epubcheck_finds_nothing(book)
