"""The bibliography: chapters/sources.toml, and which chapters cite what stands in it.

    python3 -m quest.book.sources OUTPUT OUTLINE...

writes it as a table of Lua, for sources.lua, which draws the page. Written only if it differs. Status 2 and one line
for a file that cannot be right.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from quest.book.calls import address
from quest.book.outline import Outline, read_outlines
from quest.book.tables import lua
from quest.ground.entry import run_main
from quest.ground.errors import InputError
from quest.ground.files import write_if_other
from quest.ground.toml import Doc, Rule, load

SOURCES = Path("chapters/sources.toml")
OWN = "bibliography"  # the page that lists them cites none
#: Of a source; in the order of the page.
GROUPS = {
    "quest": "The sources of the quest",
    "paper": "Papers and talks",
    "standard": "Standards",
    "documentation": "Documentation",
}
RFC = re.compile(r"\bRFC ?(\d+)\b")
MANUAL = re.compile(r"(?<![\w.-])([a-z_][a-z0-9_.+-]*\([1-8]\))(?!\w)")
NAMED = re.compile(r"\b([A-Z][a-z]+)(?: and [A-Z][a-z]+| et al\.),? \(?(?:19|20)\d\d\b")
ADDRESS = re.compile(r"https?://[^\s`<>()\[\]]+")
#: Addresses that are examples or of this machine.
NOT_ELSEWHERE = re.compile(r"https?://(?:127\.|localhost|\[?::1|[\w.-]*example|[A-Z$])")


@dataclass(frozen=True)
class Source:
    """What can be cited."""

    id: Annotated[str, Rule(pattern="[a-z0-9_-]+"), Doc("of its place on the page")]
    group: Annotated[str, Rule(choices=tuple(GROUPS)), Doc("under which heading it stands")]
    authors: Annotated[str, Rule(filled=True), Doc("in the order of the work")]
    title: Annotated[str, Rule(filled=True), Doc("of the work")]
    year: Annotated[int, Rule(least=1950), Doc("in which it appeared")]
    address: Annotated[str, Rule(pattern="https?://.+"), Doc("where it can be read")]
    cites: Annotated[tuple[str, ...], Doc("regular expressions: words that cite it")]
    where: Annotated[str, Doc("it appeared")] = ""
    why: Annotated[str, Doc("it is listed though no chapter cites it")] = ""

    def fault(self) -> str:
        """A pattern that is none."""
        for pattern in self.cites:
            try:
                re.compile(pattern)
            except re.error as error:
                return f"cites: {pattern} is no regular expression: {error}"
        return ""


@dataclass(frozen=True)
class Manual:
    """A page of the manual with an address of its own."""

    name: Annotated[str, Rule(pattern=r"[\w.+-]+\([1-8]\)"), Doc("kevent(2)")]
    address: Annotated[str, Rule(pattern="https?://.+"), Doc("where it can be read")]


@dataclass(frozen=True)
class Sources:
    """The file."""

    sources: Annotated[tuple[Source, ...], Doc("what can be cited", key="source")]
    manual: Annotated[tuple[Manual, ...], Doc("pages with another address than man7.org", key="manual")] = ()


@dataclass(frozen=True)
class Cited:
    """An entry of the page: `pages` are the slugs of the chapters that cite it."""

    id: str
    authors: str
    title: str
    where: str
    year: str
    address: str
    why: str
    pages: list[str]


@dataclass(frozen=True)
class Section:
    """The entries under one heading."""

    id: str
    title: str
    entries: list[Cited]


def read_sources(path: Path = SOURCES) -> Sources:
    """The file. InputError for what cannot be right in it."""
    found = load(Sources, path)
    ids = [one.id for one in found.sources]
    if doubled := sorted({id for id in ids if ids.count(id) > 1}):
        raise InputError(f"{path}: there twice: {', '.join(doubled)}")
    return found


def words_of(chapter: Outline, with_code: bool = False) -> Iterator[tuple[int, str]]:
    """Line and words of each heading, paragraph and cell; without what stands between backquotes."""
    for block in chapter.blocks:
        if block.kind in ("text", "heading", "term"):
            text = block.text.replace("\u2019", "'").replace("\u00a0", " ")
            yield block.line, text if with_code else re.sub(r"`[^`]*`", "`", text)


def pages_citing(source: Source, chapters: Sequence[Outline]) -> list[str]:
    """The slugs of the chapters that cite it."""
    patterns = [re.compile(pattern) for pattern in source.cites]
    texts = {chapter.slug: " ".join(text for _, text in words_of(chapter, with_code=True)) for chapter in chapters}
    return [slug for slug, text in texts.items() if any(pattern.search(text) for pattern in patterns)]


def entry_of(one: Source, pages: list[str]) -> Cited:
    """Its entry on the page."""
    return Cited(one.id, one.authors, one.title, one.where, str(one.year), one.address, one.why, pages)


def manual_pages(found: Sources, chapters: Sequence[Outline]) -> list[Cited]:
    """The pages of the manual that chapters name, by name."""
    own = {page.name: page.address for page in found.manual}
    pages: dict[str, list[str]] = {}
    for chapter in chapters:
        for name in {name for _, text in words_of(chapter) for name in MANUAL.findall(text)}:
            pages.setdefault(name, []).append(chapter.slug)
    return [
        Cited(f"man-{name[:-3]}-{name[-2]}", "", name, "", "", own.get(name) or address(name), "", pages[name])
        for name in sorted(pages)
    ]


def sections_of(found: Sources, chapters: Sequence[Outline]) -> list[Section]:
    """What the page shows."""
    chapters = [chapter for chapter in chapters if chapter.slug != OWN]
    result = []
    for id, title in GROUPS.items():
        entries = [entry_of(one, pages_citing(one, chapters)) for one in found.sources if one.group == id]
        result.append(Section(id, title, entries))
    return [*result, Section("manual", "Pages of the manual", manual_pages(found, chapters))]


def faults(chapters: Sequence[Outline]) -> Iterator[str]:
    """For lint: a line for each citation without an entry, and for each entry in vain. Nothing without the file."""
    if not SOURCES.exists():
        return
    found = read_sources()
    known = " ".join(f"{one.authors} {one.title} {one.year}" for one in found.sources)
    addresses = {one.address for one in found.sources}
    for chapter in chapters:
        for line, text in words_of(chapter):
            for number in RFC.findall(text):
                if f"RFC {number}:" not in known:
                    yield f"{chapter.source}:{line}: RFC {number} is not in {SOURCES}"
            for named in NAMED.finditer(text):
                if named[1] not in known:
                    yield f"{chapter.source}:{line}: {named[0]} is not in {SOURCES}"
        for line, text in words_of(chapter, with_code=True):
            for link in ADDRESS.findall(text):
                where = link.rstrip(".,;:")
                if where not in addresses and not NOT_ELSEWHERE.match(where):
                    yield f"{chapter.source}:{line}: {where} is not in {SOURCES}"
    for one in found.sources:
        if not one.why and not pages_citing(one, [chapter for chapter in chapters if chapter.slug != OWN]):
            yield f"{SOURCES}:1: {one.id}: no chapter cites it, and `why` does not say what it is for"


def main(arguments: list[str]) -> int:
    """OUTPUT, and the outlines of all chapters."""
    output, *names = arguments
    sections = sections_of(read_sources(), read_outlines(names)[0])
    Path(output).parent.mkdir(parents=True, exist_ok=True)
    write_if_other(Path(output), f"return {lua([asdict(section) for section in sections])}\n")
    return 0


if __name__ == "__main__":
    run_main(main)
