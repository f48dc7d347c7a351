"""`make pdf`: the pages of deck and book are counted and looked at, the demonstration's and, where
they are made, the real ones."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest

from book import paper
from book.tree import PANDOC, REVEAL_JS, ROOT, Done, Tree

sys.path.insert(0, str(ROOT / "slides"))
import tracks

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
PRINT = ROOT / "chapters/pandoc/print.py"
# What slides/print.css, slides/deck.js and chapters/pandoc/book.css leave white, in points. In the
# bottom margin of the book, 24 mm, stands the number of the page.
MM = 72 / 25.4
DECK = paper.Edges(left=15, top=20, right=12, bottom=2)
NOTES = paper.Edges(left=18 * MM, right=18 * MM, top=16 * MM, bottom=14 * MM)
BOOK = paper.Edges(left=22 * MM, right=22 * MM, bottom=8 * MM)


@pytest.fixture(scope="session")
def chromium() -> str:
    if not CHROMIUM:
        pytest.skip("Chromium is not installed (apt-get install chromium)")
    return CHROMIUM


@pytest.fixture(scope="session")
def poppler() -> None:
    if paper.missing():
        pytest.skip(paper.missing())


@pytest.fixture(scope="session")
def printed(tmp_path_factory: pytest.TempPathFactory, chromium: str) -> Tree:
    """The demonstration on paper; not to be changed."""
    if not PANDOC or not REVEAL_JS.exists():
        pytest.skip("pandoc or reveal.js is not here (make deps)")
    tree = Tree(tmp_path_factory.mktemp("printed") / "tree")
    tree.replace(
        "slides/01-first.md", "A program that greets", "[A program that greets]{.fragment}"
    )
    for arguments in (["pdf"], ["pdf", "TRACK=talk45"]):
        done = tree.make(*arguments)
        assert done.returncode == 0, done.stderr
    return tree


@pytest.fixture(params=["demonstration", "tree"])
def root(request: pytest.FixtureRequest, poppler: None) -> Path:
    """The tree whose build/pdf is looked at."""
    if request.param == "demonstration":
        return Path(request.getfixturevalue("printed").path)
    if not (ROOT / "build/pdf").exists():
        pytest.skip("the PDFs are not made (make pdf)")
    return ROOT


def decks_of(root: Path) -> list[tuple[str, Path]]:
    """Names of what is printed: deck, deck-talk45, ..., each with its page."""
    decks = sorted((root / "build/slides").glob("deck*.html"))
    found = [(deck.stem, deck) for deck in decks if (root / f"build/pdf/{deck.stem}.pdf").exists()]
    if not found:
        pytest.skip("no deck is on paper (make pdf)")
    return found


def slides_of(root: Path, track: str) -> int:
    """How many slides a track has; all of the sources' without one."""
    every = tracks.read_slides(tracks.sources(root))
    known = tracks.read_tracks(root / "slides/tracks.toml")
    return len(tracks.track_of(track, known).slides(every) if track else every)


def plain(html: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", html))


def titles_of(deck: Path) -> list[str]:
    html = deck.read_text(encoding="utf-8")
    return [plain(title) for title in re.findall(r"<h[12][^>]*>(.*?)</h[12]>", html, re.DOTALL)]


def notes_of(deck: Path) -> list[str]:
    html = deck.read_text(encoding="utf-8")
    return [plain(notes) for notes in re.findall(r'<aside class="notes">(.*?)</aside>', html, re.S)]


# ---- the deck


def test_deck_has_a_page_for_every_slide(root: Path) -> None:
    for name, deck in decks_of(root):
        expected = slides_of(root, name.removeprefix("deck").removeprefix("-"))
        assert expected == len(titles_of(deck)) > 0
        for pdf in (f"{name}.pdf", f"{name}-notes.pdf"):
            assert paper.count(root / "build/pdf" / pdf) == expected, pdf


def test_every_title_stands_on_its_page(root: Path) -> None:
    for name, deck in decks_of(root):
        for pdf in (f"{name}.pdf", f"{name}-notes.pdf"):
            pages = paper.pages_of(root / "build/pdf" / pdf)
            for title, page in zip(titles_of(deck), pages, strict=True):
                assert paper.squeezed(title) in paper.squeezed(page.text), pdf


def test_deck_has_no_blank_page_and_nothing_cut_off(root: Path) -> None:
    folder = root / "build/pdf"
    problems = []
    for name, _ in decks_of(root):
        problems += paper.paper_problems(folder / f"{name}.pdf", DECK, foot=40)
        problems += paper.paper_problems(folder / f"{name}-notes.pdf", NOTES, foot=40)
    assert problems == []


def test_notes_are_whole_and_have_their_minutes(root: Path) -> None:
    for name, deck in decks_of(root):
        minutes = re.findall(r'<section[^>]*data-minutes="([^"]*)"', deck.read_text("utf-8"))
        pages = paper.pages_of(root / f"build/pdf/{name}-notes.pdf")
        begin = 0.0
        for notes, takes, page in zip(notes_of(deck), minutes, pages, strict=True):
            end = begin + float(takes)
            assert f"{takes} min (minute {begin:g} to {end:g})" in page.text
            assert paper.squeezed(notes) in paper.squeezed(page.text)
            begin = end


def test_handout_is_A4_and_the_deck_is_a_screen(root: Path) -> None:
    for name, _ in decks_of(root):
        screen, handout = (
            paper.pages_of(root / f"build/pdf/{name}{notes}.pdf")[0] for notes in ("", "-notes")
        )
        assert screen.width / screen.height == pytest.approx(16 / 9, rel=0.01)
        assert (handout.width, handout.height) == pytest.approx((210 * MM, 297 * MM), abs=2)


def test_fragments_make_no_pages_and_are_all_shown(printed: Tree, poppler: None) -> None:
    """The second slide of the demonstration lights up lines in two steps."""
    html = printed.read("build/slides/deck.html")
    assert html.count('class="fragment step"') == 2
    assert html.count('class="fragment"') == 1
    pages = paper.pages_of(printed.path / "build/pdf/deck.pdf")
    assert "A program that greets" in pages[0].text
    assert "perror" in pages[1].text


# ---- the book


@pytest.fixture
def book(root: Path) -> Path:
    path = root / "build/pdf/book.pdf"
    if not path.exists():
        pytest.skip("the book is not on paper (make pdf)")
    return path


@pytest.fixture
def one_file(root: Path) -> str:
    return (root / "build/book/book.html").read_text(encoding="utf-8")


def test_book_has_no_blank_page_and_nothing_in_its_margins(book: Path) -> None:
    assert paper.paper_problems(book, BOOK, foot=24 * MM) == []


def test_pages_of_the_book_are_numbered_but_the_title(book: Path) -> None:
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
    rows = [paper.squeezed(row) for page in pages[1 : first - 1] for row in page.rows()]
    for place, title in entries:
        squeezed = paper.squeezed(plain(title))
        assert f"{squeezed}{places[place]}" in rows
        assert paper.squeezed(pages[places[place] - 1].text).startswith(squeezed)


def test_links_lead_somewhere(book: Path) -> None:
    links = {
        unquote(re.sub(rb"#([0-9A-F]{2})", rb"%\1", name).decode())
        for name in re.findall(rb"/Dest /([^\s/>]+)", book.read_bytes())
    }
    assert len(links) > 5
    assert links - set(paper.destinations(book)) == set()


def test_code_is_whole(book: Path, one_file: str) -> None:
    text = paper.running_text(book)
    lines = [
        paper.squeezed(plain(line))
        for block in re.findall(r"<pre[^>]*><code[^>]*>(.*?)</code></pre>", one_file, re.DOTALL)
        for line in block.splitlines()
    ]
    assert len(lines) > 20
    assert [line for line in lines if line not in text] == []


def test_figures_are_whole_and_stand_with_their_captions(book: Path, one_file: str) -> None:
    pages = [{word[4] for word in page.words} for page in paper.pages_of(book)]
    figures = re.findall(
        r'<img[^>]*src="data:image/svg\+xml,([^"]*)"[^>]*>.*?(Figure)\s*(?:</?\w[^>]*>)*([\w.]+)\.',
        one_file, re.DOTALL,
    )  # fmt: skip
    assert figures
    for svg, figure, number in figures:
        texts = re.findall(r"<text[^>]*>(.*?)</text>", unquote(svg), re.DOTALL)
        words = {word for text in texts for word in plain(text).split() if word.isalpha()}
        words |= {figure, f"{number}."}
        least = min((sorted(words - page) for page in pages), key=len)
        assert least == [], f"Figure {number}"


# ---- the printer


def print_page(page: str, output: Path, program: str) -> Done:
    return subprocess.run(
        [sys.executable, str(PRINT), program, page, str(output)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def html(folder: Path, body: str, margin: str = "20mm") -> str:
    page = folder / "page.html"
    style = f"@page {{ size: A4; margin: {margin}; }} body {{ margin: 0; }} p {{ margin: 0; }}"
    page.write_text(f"<!DOCTYPE html><style>{style}</style>{body}", encoding="utf-8")
    return str(page)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("<p>one<p style='break-before: page'>&nbsp;", "blank"),
        ("<p style='margin-left: 5mm'>left", '"left" runs out'),
        ("<p style='text-align: right; width: 200mm'>right", '"right" runs out'),
        ("<p style='height: 280mm'>high<p>low", '"low" runs out'),
        ("<p style='margin-left: 5mm; background: #888'>&nbsp;", "white at the left"),
        (
            "<p style='margin-left: 100mm; width: 100mm; background: #888'>&nbsp;",
            "white at the right",
        ),
        ("<p style='height: 285mm; background: #888'>&nbsp;", "white at the bottom"),
        ("<p style='margin: 20mm'>fine", ""),
    ],
)
def test_bad_pages_are_found(
    chromium: str, poppler: None, tmp_path: Path, body: str, problem: str
) -> None:
    """Chromium shrinks what is too wide, so the margin is made too small instead."""
    done = print_page(html(tmp_path, body, "0"), tmp_path / "out.pdf", chromium)
    assert done.returncode == 0, done.stderr
    edges = paper.Edges(left=15 * MM, right=15 * MM, bottom=15 * MM)
    found = paper.paper_problems(tmp_path / "out.pdf", edges, foot=0)
    assert any(problem in line for line in found) if problem else found == []


def test_page_that_lays_out_late_is_waited_for(
    chromium: str, poppler: None, tmp_path: Path
) -> None:
    script = """<p>early</p><script>
    document.documentElement.dataset.printing = "wait";
    setTimeout(() => {
      document.body.textContent = "late";
      document.documentElement.dataset.printing = "ready";
    }, 1500);</script>"""
    assert print_page(html(tmp_path, script), tmp_path / "out.pdf", chromium).returncode == 0
    assert paper.running_text(tmp_path / "out.pdf") == "late"


def failed(done: Done, text: str) -> None:
    assert done.returncode == 1
    assert done.stdout == ""
    assert text in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_figure_that_is_broken_is_no_pdf(chromium: str, tmp_path: Path) -> None:
    output = tmp_path / "out.pdf"
    output.write_text("before")
    failed(print_page(html(tmp_path, "<img src='none.svg'>"), output, chromium), "in the page: ")
    assert output.read_text() == "before"


def test_date_that_is_none_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "today")
    done = print_page(html(tmp_path, ""), tmp_path / "out.pdf", "/bin/false")
    failed(done, "SOURCE_DATE_EPOCH=today is no number of seconds")


def test_page_that_is_not_there_is_said(tmp_path: Path) -> None:
    page = str(tmp_path / "none.html")
    failed(print_page(f"{page}?view=print", tmp_path / "out.pdf", "/bin/false"), f"{page} is not")


def test_browser_that_ends_is_said_with_its_last_words(tmp_path: Path) -> None:
    dying = tmp_path / "chromium"
    dying.write_text("#!/bin/sh\necho 'first word' >&2; echo 'no such library' >&2; exit 1\n")
    dying.chmod(0o755)
    done = print_page(html(tmp_path, ""), tmp_path / "out.pdf", str(dying))
    failed(done, ": no such library")


# ---- the make rules


def test_without_chromium_the_reason_is_said(tree: Tree) -> None:
    done = tree.make("pdf", "CHROMIUM=")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "SKIP pdf: Chromium is not installed (apt-get install chromium)\n"
    assert not (tree.path / "build/pdf").exists()


def test_without_reveal_the_book_is_printed(tree: Tree, chromium: str) -> None:
    node = tree.path / "build/node"
    if node.is_symlink():
        node.unlink()
    done = tree.make("pdf")
    assert done.returncode == 0, done.stderr
    assert "SKIP slides: reveal.js" in done.stdout
    assert [path.name for path in (tree.path / "build/pdf").iterdir()] == ["book.pdf"]


def test_nothing_is_printed_twice(printed: Tree) -> None:
    done = printed.make("pdf")
    assert (done.returncode, done.stdout) == (0, "")
