"""The make rules: what is made again after which change, what a failure leaves, what is skipped;
what the outputs of the demonstration hold."""

import os
import re
import zipfile
from shutil import which
from xml.etree import ElementTree

import pytest

from quest.learn.read import stale
from tests.book.tree import PACKAGE, PANDOC, Done, Tree, epubcheck_finds_nothing


def succeeded(done: Done) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout


def stamps(tree: Tree) -> dict[str, int]:
    folders = (tree.path / "build/book", tree.path / "build/slides")
    files = [path for folder in folders for path in folder.rglob("*.*")]
    return {path.name: path.stat().st_mtime_ns for path in files}


def remade(tree: Tree, *arguments: str) -> set[str]:
    """Names of the outputs that make writes now."""
    before = stamps(tree)
    succeeded(tree.make("epub", "slides", *arguments))
    after = stamps(tree)
    return {name for name, time in after.items() if before.get(name) != time}


def slide_ids(html: str) -> list[str]:
    return re.findall(r'<section\s+id="([^"]*)"\s+class="(?:title-)?slide', html)


# ---- what is made again

WHOLE = {"answers.html", "book.html", "book.epub", "search-index.js"}
FIRST, SECOND = "01-first.html", "02-second.html"
NUMBERS, TIMELINE = "build/data/numbers.json", "timeline-02-second.svg"


OTHERS = {"part-one.html", "part-two.html", "unnumbered.html"}
CHAPTER, CODE = "chapters/01-first.md", "code/02-second/server.c"


@pytest.mark.slow
def test_a_change_remakes_what_shows_it(made: Tree) -> None:
    for changed, old, new, pages, shown in [
        (CODE, "perror", "puts", {SECOND, f"player-{SECOND}", "deck.html"}, (SECOND, "puts")),
        (f"build/figures/{TIMELINE}", "child 2", "child two", {SECOND, TIMELINE, "deck.html"},
         (f"figures/{TIMELINE}", "child two")),
        (CHAPTER, "nothing tells it why", "nobody does", {FIRST}, (FIRST, "nobody")),
        (CHAPTER, "One client at a time", "One client",
         {"index.html", FIRST, SECOND, "deck.html", *OTHERS}, (SECOND, "One client</a>")),
    ]:  # fmt: skip
        made.replace(changed, old, new)
        assert remade(made) == {*pages, *WHOLE}, new
        assert shown[1] in made.read(f"build/book/{shown[0]}")
    assert succeeded(made.make("epub", "slides")) == ""


@pytest.mark.slow
def test_a_book_that_was_not_finished_is_not_read_as_one(made: Tree) -> None:
    """An early end of `make book` leaves some new pages, or no `whole`."""
    build = made.path / "build"
    assert succeeded(made.make("book")) == "" and stale(build) == ""
    made.replace(CHAPTER, "One client at a time", "One client")
    succeeded(made.make(f"build/book/{FIRST}"))
    assert stale(build) == "the book is finished first"
    succeeded(made.make("book"))
    assert stale(build) == ""
    (build / "results").mkdir(exist_ok=True)
    (build / "results/sample.jsonl").write_text("", encoding="utf-8")
    later = (build / "book/whole").stat().st_mtime + 1  # within a tick of the clock it is no later
    os.utime(build / "results/sample.jsonl", (later, later))
    assert stale(build) == "your new numbers are put in"
    (build / "book/whole").unlink()
    assert stale(build) == "the book is not finished"


@pytest.mark.slow
def test_number_that_is_exported_in_the_same_run_is_seen(made: Tree) -> None:
    made.write("exported.json", made.read(NUMBERS).replace("93 µs", "78 µs"))
    assert remade(made) == {FIRST, SECOND, "deck.html", *WHOLE}
    assert "78\u00a0µs" in made.read("build/book/01-first.html")
    assert remade(made) == set()


@pytest.mark.slow
def test_page_that_left_the_book_goes(made: Tree) -> None:
    (made.path / "chapters/02-second.md").unlink()
    made.replace("chapters/01-first.md", " @ch:02-second,", " another chapter,")
    made.replace("chapters/01-first.md", "@sec:changes", "there")
    for line in ("@ch:02-second, @fig:fork-latency", "@ch:02-second"):
        made.replace("slides/01-first.md", line, "the book")
    succeeded(made.make("epub", "slides"))
    assert not (made.path / "build/book/02-second.html").exists()
    assert "02-second" not in made.read("build/book/index.html")


@pytest.mark.slow
def test_reference_results_are_said_once(made: Tree) -> None:
    assert "ref-label" in made.read("build/book/01-first.html")
    assert {"index.html", FIRST, "deck.html"} <= remade(made, "RESULTS=reference")
    html = made.read("build/book/01-first.html")
    assert "ref-label" not in html
    assert '<p class="runs">' in html
    assert "Reference: run of 2026-11-20" in html


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


def test_a_figure_that_cannot_be_copied_stops_its_page(made: Tree) -> None:
    """Else the page is there without it, newer than all it is made of, and never made again."""
    figure = "figures/fork-latency.svg"
    made.replace(f"build/{figure}", "</svg>", "<!-- anew --></svg>")
    made.write("bin/cp", '#!/bin/sh\ncase $1 in *fork-latency*) exit 1 ;; esac\nexec /bin/cp "$@"\n').chmod(0o755)
    assert made.make("book", PATH=f"{made.path}/bin:{os.environ['PATH']}").returncode != 0
    succeeded(made.make("book"))
    assert "anew" in made.read(f"build/book/{figure}")


def test_what_a_filter_writes_is_whole_or_not_there(tree: Tree) -> None:
    """A list of dependencies that ends in the middle would keep a page from being made again."""
    tree.write("full/other", "")
    (tree.path / "full/x.part").symlink_to("/dev/full")
    tree.write(
        "write.lua", "package.path = 'chapters/pandoc/?.lua;' .. package.path\nlocal common = require 'common'\n"
        "function Pandoc(doc)\n  common.start(doc)\n  common.write('full/x', 'text')\n  common.stop_if_failed()\nend\n",
    )  # fmt: skip
    done = tree.run(PANDOC, "--lua-filter=write.lua", CHAPTER)
    assert done.returncode != 0 and "full/x: " in done.stderr and "No space left on device" in done.stderr
    assert os.listdir(tree.path / "full") == ["other"]


# ---- what is skipped


def test_without_pandoc_what_needs_it_is_skipped(tree: Tree) -> None:
    done = tree.run("make", "epub", "slides", "PANDOC=")
    assert succeeded(done).splitlines() == [
        "SKIP book: pandoc is not installed (apt-get install pandoc)",
        "SKIP slides: pandoc is not installed (apt-get install pandoc)",
    ]
    lint = ("make", "lint-book", "schedule", "contents", "PANDOC=")
    goals = succeeded(tree.run(*lint)).splitlines()
    assert [line.split(":")[0] for line in goals] == [
        "SKIP lint-book",
        "SKIP schedule",
        "SKIP contents",
    ]
    assert tree.run(*lint, "LINT=strict").returncode != 0


def test_without_the_right_reveal_only_the_deck_is_skipped(made: Tree) -> None:
    index, deck = made.path / "build/book/index.html", made.path / "build/slides/deck.html"
    made.run("rm", "-r", "build/node", str(index), str(deck))
    made.fake_reveal("6.0.2")
    output = succeeded(made.make("book", "slides"))
    assert "SKIP slides: reveal.js 5.2.1 is not here (make deps fetches it)" in output
    assert index.exists()
    made.fake_reveal()
    missing = f"{PACKAGE}/plugin/notes/notes.js"
    (made.path / missing).unlink()
    done = made.make("slides")
    assert done.returncode != 0
    assert f"reveal.js lacks {missing}" in done.stderr
    assert not deck.exists()


# ---- the outputs


def test_track_keeps_its_slides(made: Tree) -> None:
    assert "first-diff" in slide_ids(made.read("build/slides/deck.html"))
    succeeded(made.make("slides", "TRACK=talk45"))
    deck = made.read("build/slides/deck-talk45.html")
    assert slide_ids(deck) == ["first", "first-code", "second-end", "second"], "in its order"
    assert re.search('<section id="first-code"[^>]* data-minutes="3" data-timing="180"', deck)


def test_speaker_and_address_stay_until_they_are_told_anew(made: Tree) -> None:
    """A deck for the printer is made without them, days later."""
    line = "# One client at a time {#first minutes=0.5}\n"
    made.replace("slides/01-first.md", line, f"{line}\n::: speaker\n:::\n\n::: last\n:::\n")
    told = ("SPEAKER=Ada L. & Co", "URL=https://example.org/it")
    for words in (told, ()):
        succeeded(made.make("slides", "TRACK=talk45", *words))
        deck = made.read("build/slides/deck-talk45.html")
        assert "Ada L. &amp; Co" in deck and 'href="https://example.org/it"' in deck
        code = deck.partition('<a href="https://example.org/it"')[0].rstrip()
        assert code.endswith("</svg>\n\n<p>") or not which("qrencode")
    succeeded(made.make("slides", "TRACK=talk45", "SPEAKER="))
    deck = made.read("build/slides/deck-talk45.html")
    assert "Ada L." not in deck and "https://example.org/it" in deck


def loaded(html: str) -> set[str]:
    """Addresses that are not data."""
    html = re.sub(r"(<script\b[^>]*>).*?</script>", r"\1", html, flags=re.S)
    assert "url(http" not in html
    tags = "img|script|link|iframe|source"
    return set(re.findall(rf'<(?:{tags})[^>]*?\s(?:src|href)="(?!data:)([^"]*)"', html))


def test_a_page_loads_nothing_from_elsewhere(built: Tree) -> None:
    for page in (built.path / "build/book").glob("0*.html"):
        for address in loaded(page.read_text(encoding="utf-8")):
            assert (page.parent / address).is_file(), address


def test_one_file_has_everything_in_it(built: Tree) -> None:
    for name, figures in (("book/book.html", 3), ("slides/deck.html", 2)):
        html = built.read(f"build/{name}")
        assert loaded(html) == set(), name
        assert html.count('src="data:image/svg+xml') == figures
        assert "A process per client" in html


def test_the_deck_brings_the_licences_of_what_it_contains(built: Tree) -> None:
    notice = built.read("build/slides/NOTICE.txt")
    assert "Permission is" in notice
    assert notice in built.read("build/slides/deck.html")


def test_epub_is_well_formed_and_complete(built: Tree) -> None:
    text = ""
    with zipfile.ZipFile(built.path / "build/book/book.epub") as epub:
        names = epub.namelist()
        for name in (name for name in names if name.endswith((".xhtml", ".opf", ".ncx"))):
            root = ElementTree.fromstring(epub.read(name))
            ids = [str(element.get("id")) for element in root.iter() if element.get("id")]
            assert len(ids) == len(set(ids))
            assert not [one for one in ids if ":" in one]
            text += "".join(root.itertext())
    assert "A process per client" in text
    assert "What the child does" in text
    assert len([name for name in names if name.endswith(".svg")]) == 3


def test_epubcheck_finds_nothing(built: Tree) -> None:
    epubcheck_finds_nothing(built.path / "build/book/book.epub")
