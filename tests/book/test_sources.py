"""The bibliography: its file, what lint finds, the page."""

import re
from pathlib import Path

import pytest

from quest.book import sources
from quest.ground.errors import InputError
from tests.book.test_calls import chapter
from tests.book.tree import ROOT, Tree, accepted, plain

ENTRY = """
[[source]]
id = "rfc1"
group = "standard"
authors = "A. Writer"
title = "RFC 1: A Standard"
year = 1984
address = "https://example.org/rfc1"
cites = ['\\bRFC 1\\b', "\\\\bWriter's rule\\\\b"]
"""


def read(tmp_path: Path, text: str) -> sources.Sources:
    path = tmp_path / "sources.toml"
    path.write_text(text, encoding="utf-8")
    return sources.read_sources(path)


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('"standard"', '"rumour"', "rumour"),
        ("https://example.org/rfc1", "example.org", "address"),
        ("'\\bRFC 1\\b'", "'(RFC'", "is no regular expression"),
        (ENTRY, ENTRY * 2, "there twice: rfc1"),
    ],
)
def test_a_file_that_cannot_be_right_is_refused(tmp_path: Path, old: str, new: str, fault: str) -> None:
    assert old in ENTRY
    with pytest.raises(InputError, match=re.escape(fault)):
        read(tmp_path, ENTRY.replace(old, new))


def test_which_chapters_cite(tmp_path: Path) -> None:
    found = read(tmp_path, ENTRY)
    pages = [
        chapter("01-first", ("text", "See RFC 1, and tcp(7).", "")),
        chapter("02-second", ("text", "By Writer\u2019s rule; `close(6)` is no page.", "")),
        chapter("03-third", ("text", "RFC 12 is another.", "")),
        chapter(sources.OWN, ("text", "RFC 1", "")),
    ]
    sections = {one.id: one.entries for one in sources.sections_of(found, pages)}
    assert sections["standard"][0].pages == ["01-first", "02-second"]
    assert [(one.title, one.pages) for one in sections["manual"]] == [("tcp(7)", ["01-first"])]


def test_a_page_of_the_manual_may_have_an_address_of_its_own(tmp_path: Path) -> None:
    own = "https://example.org/tcp"
    found = read(tmp_path, f'{ENTRY}[[manual]]\nname = "tcp(7)"\naddress = "{own}"\n')
    pages = sources.manual_pages(found, [chapter("01-first", ("text", "Of tcp(7) and close(2).", ""))])
    man = "https://man7.org/linux/man-pages"
    assert {one.title: one.address for one in pages} == {"close(2)": f"{man}/man2/close.2.html", "tcp(7)": own}


def test_lint_names_a_citation_without_an_entry_and_an_entry_in_vain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "chapters").mkdir()
    (tmp_path / "chapters/sources.toml").write_text(ENTRY, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    page = chapter(
        "01-first",
        ("text", "RFC 2, by Smith and Jones (2004), at https://elsewhere.org/x. Not http://127.0.0.1:8080/.", ""),
    )
    assert [line.partition(": ")[2] for line in sources.faults([page])] == [
        "RFC 2 is not in chapters/sources.toml",
        "Smith and Jones (2004 is not in chapters/sources.toml",
        "https://elsewhere.org/x is not in chapters/sources.toml",
        "rfc1: no chapter cites it, and `why` does not say what it is for",
    ]


def test_the_page_leads_to_source_and_chapter(tree: Tree) -> None:
    tree.write("chapters/sources.toml", ENTRY)
    tree.replace("chapters/01-first.md", "## ", "RFC 1 says so, and so does write(2).\n\n## ")
    tree.write("chapters/03-third.md", "---\ntitle: Third\nkind: appendix\n---\n\n``` {.bibliography}\n```\n")
    accepted(tree.label("chapters/01-first.md", "chapters/03-third.md"))
    outlines = tree.outlines("chapters/01-first.md")
    accepted(tree.run("python3", "-m", "quest.book.sources", "build/weave/data/sources.lua", *outlines))
    html = accepted(tree.bind("chapters/03-third.md", "html"))
    assert 'href="https://example.org/rfc1"' in html and 'href="01-first.html"' in html
    assert "A. Writer (1984): RFC 1: A Standard." in plain(html)
    assert 'href="https://man7.org/linux/man-pages/man2/write.2.html"' in html


def test_each_source_of_the_ledger_has_an_entry() -> None:
    from quest.spec.model import SOURCES

    ids = {one.id for one in sources.read_sources(ROOT / sources.SOURCES).sources}
    assert set(SOURCES) <= ids
