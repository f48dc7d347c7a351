"""`make pdf`: the pages of deck and book are counted and looked at, the demonstration's and, where
they are made, the real ones."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from book import paper
from book.tree import PANDOC, REVEAL_JS, ROOT, Done, Once, Tree
from book.tree import plain as text_of

sys.path.insert(0, str(ROOT / "slides"))
import tracks

PRINT = ROOT / "chapters/pandoc/print.py"
# What slides/print.css, slides/deck.js and chapters/pandoc/book.css leave white, in points. In the
# bottom margin of the book, 24 mm, stands the number of the page.
MM = 72 / 25.4
DECK = paper.Edges(left=15, top=20, right=12, bottom=2)
NOTES = paper.Edges(left=18 * MM, right=18 * MM, top=16 * MM, bottom=14 * MM)
BOOK = paper.Edges(left=22 * MM, right=22 * MM, bottom=8 * MM)


@pytest.fixture(scope="session")
def poppler() -> None:
    if paper.missing():
        pytest.skip(paper.missing())


@pytest.fixture(scope="session")
def printed(once: Once, chromium: str) -> Tree:
    """The demonstration on paper; not to be changed."""
    if not PANDOC or not REVEAL_JS.exists():
        pytest.skip("pandoc or reveal.js is not here (make deps)")

    def fill(folder: Path) -> None:
        tree = Tree(folder / "tree")
        tree.replace(
            "slides/01-first.md", "A program that greets", "[A program]{.fragment} that greets"
        )
        for arguments in (["pdf"], ["pdf", "TRACK=talk45"]):
            done = tree.make(*arguments)
            assert done.returncode == 0, done.stderr

    return Tree(once("printed", fill) / "tree", "")


@pytest.fixture(params=["demonstration", "tree"])
def build(request: pytest.FixtureRequest, poppler: None) -> Path:
    """The folder whose pdf/ is looked at; of this tree what `make pdf` has made, or the release."""
    if request.param == "demonstration":
        return Path(request.getfixturevalue("printed").path) / "build"
    made = [b for b in (ROOT / "build", ROOT / "build/release/build") if (b / "pdf").exists()]
    if not made:
        pytest.skip("the PDFs are not made (make pdf)")
    return made[0]


def decks_of(build: Path) -> list[tuple[str, Path]]:
    """Names of what is printed: deck, deck-talk45, ..., each with its page. Of a release, the
    longest, in which nearly all slides are, and the shortest.
    """
    decks = sorted((build / "slides").glob("deck*.html"), key=lambda deck: deck.stat().st_size)
    found = [(deck.stem, deck) for deck in decks if (build / f"pdf/{deck.stem}.pdf").exists()]
    if not found:
        pytest.skip("no deck is on paper (make pdf)")
    return [found[0], found[-1]] if len(found) > 2 else found


def slides_of(build: Path, track: str) -> int:
    """How many slides a track has; all of the sources' without one."""
    root = ROOT if build.is_relative_to(ROOT) else build.parent
    every = tracks.read_slides(tracks.sources(root))
    known = tracks.read_tracks(root / "slides/tracks.toml")
    return len(tracks.track_of(track, known).slides(every) if track else every)


def plain(html: str) -> str:
    """Text of HTML, squeezed."""
    return paper.squeezed(text_of(html))


def found_in(deck: Path, pattern: str) -> list[str]:
    html = deck.read_text(encoding="utf-8")
    return [plain(text) for text in re.findall(pattern, html, re.DOTALL)]


# ---- the deck


def test_deck_has_a_page_for_every_slide_with_its_title(build: Path) -> None:
    for name, deck in decks_of(build):
        titles = found_in(deck, r"<h[12][^>]*>(.*?)</h[12]>")
        assert slides_of(build, name.removeprefix("deck").removeprefix("-")) == len(titles) > 0
        for pdf in (f"{name}.pdf", f"{name}-notes.pdf"):
            pages = paper.pages_of(build / "pdf" / pdf)
            for title, page in zip(titles, pages, strict=True):
                assert title in page.text, pdf


def test_deck_has_no_blank_page_and_nothing_cut_off(build: Path) -> None:
    folder = build / "pdf"
    problems = []
    for name, _ in decks_of(build):
        problems += paper.paper_problems(folder / f"{name}.pdf", DECK, foot=40)
        problems += paper.paper_problems(folder / f"{name}-notes.pdf", NOTES, foot=40)
    assert problems == []


def test_notes_are_whole_on_A4_and_have_their_minutes(build: Path) -> None:
    for name, deck in decks_of(build):
        screen = paper.pages_of(build / f"pdf/{name}.pdf")[0]
        assert screen.width / screen.height == pytest.approx(16 / 9, rel=0.01)
        minutes = re.findall(r'<section[^>]*data-minutes="([^"]*)"', deck.read_text("utf-8"))
        pages = paper.pages_of(build / f"pdf/{name}-notes.pdf")
        assert (pages[0].width, pages[0].height) == pytest.approx((210 * MM, 297 * MM), abs=2)
        begin = 0.0
        all_notes = found_in(deck, r'<aside class="notes">(.*?)</aside>')
        for notes, takes, page in zip(all_notes, minutes, pages, strict=True):
            end = begin + float(takes)
            assert f"{takes}min(minute{begin:g}to{end:g})" in page.text
            assert notes in page.text
            begin = end


# ---- the book


@pytest.fixture
def book(build: Path) -> Path:
    path = build / "pdf/book.pdf"
    if not path.exists():
        pytest.skip("the book is not on paper (make pdf)")
    return path


@pytest.fixture
def one_file(build: Path) -> str:
    return (build / "book/book.html").read_text(encoding="utf-8")


def test_pages_of_the_book_are_whole_and_numbered_but_the_title(book: Path) -> None:
    assert paper.paper_problems(book, BOOK, foot=24 * MM) == []
    for number, page in enumerate(paper.pages_of(book), 1):
        foot = [word[4] for word in page.words if word[1] > page.height - 24 * MM]
        assert foot == ([] if number == 1 else [str(number)])


def test_contents_name_the_pages_where_chapters_begin(book: Path, one_file: str) -> None:
    places = paper.destinations(book)
    contents = one_file[one_file.index('<nav class="paper-contents"') :].split("</nav>")[0]
    entries = re.findall(r'<a href="#([^"]*)">(.*?)</a>', contents)
    assert len(entries) >= 4
    pages = paper.pages_of(book)
    first = min(places[place] for place, _ in entries)  # the contents may fill several pages
    rows = [row for page in pages[1 : first - 1] for row in page.rows]
    for place, title in entries:
        assert f"{plain(title)}{places[place]}" in rows
        assert pages[places[place] - 1].text.startswith(plain(title))


def test_code_is_whole(book: Path, one_file: str) -> None:
    text = paper.running_text(book)
    blocks = re.findall(r"<pre[^>]*><code[^>]*>(.*?)</code></pre>", one_file, re.DOTALL)
    lines = [plain(line) for block in blocks for line in block.splitlines()]
    assert len(lines) > 20
    assert [line for line in lines if line not in text] == []


# ---- the printer


def print_page(page: str, output: Path, program: str) -> Done:
    return subprocess.run(
        [sys.executable, str(PRINT), program, page, str(output)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def page_of(folder: Path, body: str, name: str = "page") -> str:
    page = folder / f"{name}.html"
    page.write_text(f"<!DOCTYPE html>{body}", encoding="utf-8")
    return str(page)


LATE = """<p>early</p><script>
document.documentElement.dataset.printing = "wait";
setTimeout(() => {
  document.body.textContent = "late";
  document.documentElement.dataset.printing = "ready";
}, 1500);</script>"""


def test_page_that_lays_out_late_is_waited_for(
    chromium: str, poppler: None, tmp_path: Path
) -> None:
    assert print_page(page_of(tmp_path, LATE), tmp_path / "out.pdf", chromium).returncode == 0
    assert paper.running_text(tmp_path / "out.pdf") == "late"


def test_what_cannot_be_printed_is_said(
    chromium: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, dying = tmp_path / "out.pdf", tmp_path / "chromium"
    output.write_text("before")
    # A browser that ends is said with its last words.
    dying.write_text("#!/bin/sh\necho 'first word' >&2; echo 'no such library' >&2; exit 1\n")
    dying.chmod(0o755)
    fine, broken = page_of(tmp_path, ""), page_of(tmp_path, "<img src='none.svg'>", "broken")
    for page, program, date, text in [
        (broken, chromium, "", "in the page: "),
        (fine, "/bin/false", "today", "SOURCE_DATE_EPOCH=today is no number of seconds"),
        (f"{tmp_path}/none.html?view=print", "/bin/false", "", f"{tmp_path}/none.html is not"),
        (fine, str(dying), "", ": no such library"),
    ]:
        monkeypatch.setenv("SOURCE_DATE_EPOCH", date)
        done = print_page(page, output, program)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert text in done.stderr
        assert output.read_text() == "before"


# ---- the make rules


def test_what_is_missing_is_skipped(tree: Tree, chromium: str) -> None:
    done = tree.make("pdf", "CHROMIUM=")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "SKIP pdf: Chromium is not installed (apt-get install chromium)\n"
    assert not (tree.path / "build/pdf").exists()
    (tree.path / "build/node").unlink(missing_ok=True)
    done = tree.make("pdf")  # without reveal.js
    assert done.returncode == 0, done.stderr
    assert "SKIP slides: reveal.js" in done.stdout
    assert [path.name for path in (tree.path / "build/pdf").iterdir()] == ["book.pdf"]


def test_nothing_is_printed_twice(printed: Tree) -> None:
    done = printed.make("pdf")
    assert (done.returncode, done.stdout) == (0, "")
