"""The make rules: what is made again after which change, what a failure leaves, what is skipped."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from book.tree import PANDOC, Done, Tree

REVEAL_FILES = ["dist/reset.css", "dist/reveal.css", "dist/reveal.js"] + [
    f"plugin/{name}/{name}.js" for name in ("notes", "search", "zoom")
]


def succeeded(done: Done) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout


def fake_reveal(tree: Tree, version: str = "5.2.1") -> None:
    """Enough for a deck that is not opened."""
    node = tree.path / "build/node"
    if node.is_symlink():
        node.unlink()
    package = "build/node/node_modules/reveal.js"
    tree.write(f"{package}/package.json", json.dumps({"version": version}, indent=2))
    for name in REVEAL_FILES:
        tree.write(f"{package}/{name}", "/* reveal */\n")


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    if not PANDOC:
        pytest.skip("pandoc is not installed (apt-get install pandoc)")
    tree = Tree(tmp_path_factory.mktemp("made") / "tree")
    fake_reveal(tree)
    succeeded(tree.make("epub", "slides"))
    return tree


@pytest.fixture
def made(made_once: Tree, tmp_path: Path) -> Tree:
    """A tree of its own, made with a deck: a copy with its times."""
    return Tree(tmp_path / "tree", made_once)


def stamps(tree: Tree) -> dict[str, int]:
    files = [
        path
        for folder in ("book", "slides")
        for path in (tree.path / "build" / folder).rglob("*.*")
    ]
    return {path.name: path.stat().st_mtime_ns for path in files}


def remade(tree: Tree, *arguments: str) -> set[str]:
    """Names of the outputs that make writes now."""
    before = stamps(tree)
    succeeded(tree.make("epub", "slides", *arguments))
    after = stamps(tree)
    return {name for name, time in after.items() if before.get(name) != time}


# ---- what is made again

WHOLE = {"answers.html", "book.html", "book.epub", "search-index.js"}


def test_nothing_changed_nothing_made(made: Tree) -> None:
    assert remade(made) == set()
    assert succeeded(made.make("epub", "slides")) == ""


def test_code_remakes_what_shows_it(made: Tree) -> None:
    made.replace("code/02-second/server.c", "perror", "puts")
    assert remade(made) == {"02-second.html", "deck.html", *WHOLE}
    assert "puts" in made.read("build/book/02-second.html")


def test_number_remakes_what_binds_it(made: Tree) -> None:
    made.replace("build/data/numbers.json", "93 µs", "77 µs")
    assert remade(made) == {"01-first.html", "02-second.html", "deck.html", *WHOLE}
    assert "77\u00a0µs" in made.read("build/book/01-first.html")


def test_number_that_is_exported_in_the_same_run_is_seen(made: Tree) -> None:
    made.write("exported.json", made.read("build/data/numbers.json").replace("93 µs", "78 µs"))
    assert remade(made) == {"01-first.html", "02-second.html", "deck.html", *WHOLE}
    assert "78\u00a0µs" in made.read("build/book/01-first.html")
    assert remade(made) == set()


def test_figure_remakes_its_page_and_its_copy(made: Tree) -> None:
    made.replace("build/figures/timeline-02-second.svg", "child 2", "child two")
    assert remade(made) == {"02-second.html", "timeline-02-second.svg", "deck.html", *WHOLE}
    assert "child two" in made.read("build/book/figures/timeline-02-second.svg")


def test_prose_remakes_its_page(made: Tree) -> None:
    made.replace("chapters/01-first.md", "nothing tells it why", "nobody tells it why")
    assert remade(made) == {"01-first.html", *WHOLE}


def test_title_remakes_every_page(made: Tree) -> None:
    made.replace("chapters/01-first.md", "One client at a time", "One client")
    pages = {"index.html", "01-first.html", "02-second.html"}
    assert remade(made) == {*pages, "deck.html", *WHOLE}
    assert "One client</a>" in made.read("build/book/02-second.html")


def test_page_that_left_the_book_goes(made: Tree) -> None:
    (made.path / "chapters/02-second.md").unlink()
    made.replace("chapters/01-first.md", " @ch:02-second,", " another chapter,")
    made.replace("chapters/01-first.md", "@sec:changes", "there")
    for line in ("@ch:02-second, @fig:fork-latency", "@ch:02-second"):
        made.replace("slides/01-first.md", line, "the book")
    succeeded(made.make("epub", "slides"))
    assert not (made.path / "build/book/02-second.html").exists()
    assert "02-second" not in made.read("build/book/index.html")


def test_slides_that_left_the_deck_go(made: Tree) -> None:
    slide = "## Later {#later minutes=1}\n\ntext\n\n::: notes\nSay it.\n:::\n"
    made.write("slides/02-later.md", slide)
    assert "deck.html" in remade(made)
    assert "later" in slide_ids(made.read("build/slides/deck.html"))
    (made.path / "slides/02-later.md").unlink()
    assert "deck.html" in remade(made)
    assert "later" not in slide_ids(made.read("build/slides/deck.html"))


def test_reference_results_are_said_once(made: Tree) -> None:
    assert "ref-label" in made.read("build/book/01-first.html")
    assert {"index.html", "01-first.html", "deck.html"} <= remade(made, "RESULTS=reference")
    html = made.read("build/book/01-first.html")
    assert "ref-label" not in html
    assert "All numbers are those of the reference run" in html


# ---- failures


def test_failure_leaves_no_output_as_if_good(made: Tree) -> None:
    made.replace("chapters/01-first.md", 'region="greet"', 'region="great"')
    before = stamps(made)
    for _ in range(2):
        done = made.make("epub")
        assert done.returncode != 0
        errors = [line for line in done.stderr.splitlines() if not line.startswith("make")]
        assert len(errors) == 1
        assert re.match(
            r'chapters/01-first.md:\d+: unknown region "great" in code/01-first/server.c', errors[0]
        )
    assert stamps(made) == before
    assert not list((made.path / "build").rglob("*.part"))
    made.replace("chapters/01-first.md", 'region="great"', 'region="greet"')
    succeeded(made.make("epub"))


def test_source_that_is_gone_is_an_error_of_the_chapter(made: Tree) -> None:
    (made.path / "code/01-first/server.c").rename(made.path / "code/01-first/other.c")
    done = made.make("epub")
    assert done.returncode != 0
    assert "cannot read code/01-first/server.c" in done.stderr


def test_file_of_reveal_that_is_missing_fails(tree: Tree) -> None:
    fake_reveal(tree)
    (tree.path / "build/node/node_modules/reveal.js/plugin/notes/notes.js").unlink()
    done = tree.make("slides")
    assert done.returncode != 0
    assert "reveal.js lacks build/node/node_modules/reveal.js/plugin/notes/notes.js" in done.stderr
    assert not (tree.path / "build/slides/deck.html").exists()


# ---- what is skipped


def test_without_pandoc_both_are_skipped(tree: Tree) -> None:
    done = tree.run("make", "epub", "slides", "PANDOC=")
    assert succeeded(done).splitlines() == [
        "SKIP book: pandoc is not installed (apt-get install pandoc)",
        "SKIP slides: pandoc is not installed (apt-get install pandoc)",
    ]


@pytest.mark.parametrize("version", ["", "6.0.2"])
def test_without_the_right_reveal_only_the_deck_is_skipped(tree: Tree, version: str) -> None:
    fake_reveal(tree, version)
    output = succeeded(tree.make("epub", "slides"))
    assert "SKIP slides: reveal.js 5.2.1 is not here (make deps fetches it)" in output
    assert (tree.path / "build/book/index.html").exists()
    assert not (tree.path / "build/slides/deck.html").exists()


# ---- tracks


def slide_ids(html: str) -> list[str]:
    return re.findall(r'<section\s+id="([^"]*)"\s+class="(?:title-)?slide', html)


def test_track_keeps_its_slides(made: Tree) -> None:
    assert "first-diff" in slide_ids(made.read("build/slides/deck.html"))
    succeeded(made.make("slides", "TRACK=talk45"))
    deck = made.read("build/slides/deck-talk45.html")
    assert slide_ids(deck) == ["first", "first-code", "second-end", "second"], "in its order"
    assert re.search('<section id="first-code"[^>]* data-minutes="3" data-timing="180"', deck)


def test_unknown_track_fails(made: Tree) -> None:
    done = made.make("slides", "TRACK=talk7")
    assert done.returncode != 0
    assert 'there is no track "talk7"; known: talk45, lecture90, course' in done.stderr


# ---- the outputs of the demonstration


def outside(html: str) -> list[str]:
    """Addresses that a page would load from somewhere else."""
    loaded = re.findall(r'<(?:img|script|link|iframe|source)[^>]*?\s(?:src|href)="([^"]*)"', html)
    return [address for address in loaded if not address.startswith("data:")]


def test_one_file_book_needs_no_other_file(built: Tree) -> None:
    html = built.read("build/book/book.html")
    assert outside(html) == []
    assert "url(http" not in html
    assert html.count('src="data:image/svg+xml') == 2
    assert "A process per client" in html


def test_deck_needs_no_other_file(made: Tree) -> None:
    html = made.read("build/slides/deck.html")
    assert outside(html) == []
    assert "data-timing=" in html


def test_pages_load_only_what_lies_beside_them(built: Tree) -> None:
    book = built.path / "build/book"
    for page in book.glob("0*.html"):
        for address in outside(page.read_text(encoding="utf-8")):
            assert (book / address).is_file(), address


def test_answers_stand_apart(built: Tree) -> None:
    answer = "The process 1, after the parent has gone."
    assert answer in built.read("build/book/answers.html")
    for name in ("02-second.html", "search-index.js"):
        assert answer not in built.read(f"build/book/{name}")
    assert 'href="answers.html#answer-2-2"' in built.read("build/book/02-second.html")
    assert 'href="02-second.html#exercise-2-2"' in built.read("build/book/answers.html")
    one_file = built.read("build/book/book.html")
    assert one_file.index(answer) > one_file.index('id="ch-answers"')


def test_search_index_is_data(built: Tree) -> None:
    text = built.read("build/book/search-index.js")
    body = text.removeprefix("window.BOOK_INDEX = ").rstrip().removesuffix(";")
    rows = json.loads(re.sub(r",\s*\]$", "]", body))
    assert all(len(row) == 5 for row in rows)
    assert any(
        row[0] == "01-first.html" and row[1] == "the-code" and "write" in row[4] for row in rows
    )


def xhtml_of(path: Path) -> dict[str, str]:
    with zipfile.ZipFile(path) as epub:
        names = [name for name in epub.namelist() if name.endswith((".xhtml", ".opf", ".ncx"))]
        return {name: epub.read(name).decode() for name in names}


def test_epub_is_well_formed_and_complete(built: Tree) -> None:
    path = built.path / "build/book/book.epub"
    files = xhtml_of(path)
    text = ""
    for content in files.values():
        root = ElementTree.fromstring(content)
        ids = [element.get("id") for element in root.iter() if element.get("id")]
        assert len(ids) == len(set(ids))
        assert not [name for name in ids if ":" in str(name)]
        text += "".join(root.itertext())
    assert "A process per client" in text
    assert "What the child does" in text
    with zipfile.ZipFile(path) as epub:
        assert len([name for name in epub.namelist() if name.endswith(".svg")]) == 2


def test_outputs_are_the_same_each_time(tree: Tree, tmp_path: Path) -> None:
    succeeded(tree.make("epub"))
    other = Tree(tmp_path / "other")
    succeeded(other.make("epub"))
    files = [
        path for path in (tree.path / "build/book").rglob("*.*") if path.suffix != ".epub"
    ]  # dated
    assert len(files) > 8
    for path in files:
        assert path.read_bytes() == (other.path / path.relative_to(tree.path)).read_bytes(), (
            path.name
        )
