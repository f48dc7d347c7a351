"""release.py on a made-up tree. The real thing: test_pdf.py."""

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.book.tree import ROOT

WHEN = "1700000000"  # 2023-11-14, 22:13:20 UTC
FILES = {
    "LICENSE": "MIT",
    "slides/tracks.toml": '[short]\ntitle = "A talk"\nminutes = 45\nslides = ["a"]\n',
    "benchmarks/results/reference/a.jsonl": "{}",
    "build/book/index.html": '<link rel="stylesheet" href="book.css"><a href="01.html#code">1</a>',
    "build/book/01.html": '<a href="../../code/x.c">x.c</a> <img src="a%20b.svg">'
    '<span class="num none">?</span>',
    "build/book/book.html": '<img src="data:image/svg+xml,x"><a href="https://example.org">away</a>',
    "build/book/book.css": "body { color: black; }",
    "build/book/a b.svg": "<svg/>",
    "build/pdf/book.pdf": "%PDF-1.4",
    "build/slides/deck-short.html": "<title>Deck</title><script>Permission is granted</script>",
    "build/slides/NOTICE.txt": "Permission is granted",
    "build/pdf/deck-short.pdf": "%PDF-1.4 deck",
    "build/pdf/deck-short-notes.pdf": "%PDF-1.4 notes",
}


def release(
    tree: Path, changed: str = "", text: str = "", version: str = "v1-2-gabc"
) -> subprocess.CompletedProcess[str]:
    """With another text in a file; without that file, where there is none."""
    files = {**FILES, changed: text}
    for name, content in ((name, content) for name, content in files.items() if content):
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    with zipfile.ZipFile(tree / "build/book/book.epub", "w") as book:
        book.writestr("mimetype", "application/epub+zip")
        hole = '<span class="num none" title="a.b@1; make bench">(not measured)</span>'
        book.writestr("EPUB/page.xhtml", f"<p>{hole}</p>")
    command = [sys.executable, "-m", "quest.book.release", "build", ".", version, WHEN]
    told = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=tree, env=told, capture_output=True, text=True, check=False)


def test_what_is_not_measured_is_said_and_the_book_is_an_epub(tmp_path: Path) -> None:
    done = release(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "warning: book/01.html: 1 numbers or figures were not measured\n" in done.stdout
    assert "\nquest-v1-2-gabc.zip\n" in done.stdout
    with zipfile.ZipFile(tmp_path / "quest-v1-2-gabc.zip") as archive:
        page = archive.read("quest-v1-2-gabc/index.html").decode()
        assert "$" not in page and page.count(">0.1 MB<") == 3
        book = archive.read("quest-v1-2-gabc/book/book.epub")
    with zipfile.ZipFile(io.BytesIO(book)) as epub:
        assert epub.infolist()[0].filename == "mimetype"
        assert epub.infolist()[0].compress_type == zipfile.ZIP_STORED


PAGE = "build/book/01.html"


def test_an_edition_has_no_hole(tmp_path: Path) -> None:
    """A tag alone is the name of an edition."""
    number = '<span class="num none" title="x.y; make bench ONLY=x">?</span>'
    figure = '<div class="not-drawn">\nNot drawn here: z\n</div>'
    done = release(tmp_path, PAGE, f"{number}{figure}<p>not measured yet</p>", "v1.2")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "release: not made: book/01.html: not measured: x.y",
        "release: not made: book/01.html: not measured: Not drawn here: z",
        "release: not made: book/01.html: not measured: not measured yet",
        "release: not made: book/book.epub: EPUB/page.xhtml: not measured: a.b@1",
    ]
    assert not list(tmp_path.glob("*.zip*"))


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("build/pdf/book.pdf", "", "index.html: pdf/book.pdf is not in the release"),
        (PAGE, '<img src="none.svg">', "book/01.html: none.svg is not in the release"),
        (PAGE, '<script src="https://a.org/x.js">', "https://a.org/x.js is not in the release"),
        (PAGE, '<script data-x src="//a.org/x.js">', "//a.org/x.js is not in the release"),
        ("build/book/book.css", "p { background: url(no.png) }", "book/book.css: no.png is not in"),
        ("build/slides/deck-short.html", "bare", "deck-short.html: lacks the licences of what it"),
        (PAGE, "in {tree}", "book/01.html: contains the path of the tree"),
    ],
)
def test_release_is_whole_or_none(tmp_path: Path, name: str, text: str, problem: str) -> None:
    done = release(tmp_path, name, text.replace("{tree}", str(tmp_path)))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert problem in done.stderr
    assert not list(tmp_path.glob("*.zip*"))
