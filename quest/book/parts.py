"""The order of the book: chapters/parts.toml, the one place where it is written down.

make reads the same file by its quoted words (chapters/module.mk, slides/module.mk): a chapter that has slides has them
under the same name.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from quest.ground import toml
from quest.ground.errors import InputError
from quest.ground.toml import Doc, Rule

PARTS = Path("chapters/parts.toml")


@dataclass(frozen=True)
class Part:
    """A part of the book."""

    page: Annotated[str, Rule(filled=True), Doc("its own page, before its chapters")]
    chapters: Annotated[tuple[str, ...], Doc("in their order")]


@dataclass(frozen=True)
class Parts:
    """The file."""

    front: Annotated[str, Rule(filled=True), Doc("the first page of the book")]
    parts: Annotated[tuple[Part, ...], Doc("in their order", key="part")]

    @property
    def pages(self) -> list[str]:
        """All pages in the order of the book."""
        return [self.front, *(name for part in self.parts for name in (part.page, *part.chapters))]

    def part_of(self, slug: str) -> str:
        """The page of the part that a page belongs to, itself if it is such a page; "" for others."""
        return next((part.page for part in self.parts if slug in (part.page, *part.chapters)), "")

    def place(self, slug: str) -> tuple[int, str]:
        """To sort by: as in the book, and what is not in it behind that, by name."""
        pages = self.pages
        return (pages.index(slug) if slug in pages else len(pages), slug)


def read_parts() -> Parts:
    """Of the tree in the current folder. InputError for a file that cannot be right."""
    parts = toml.load(Parts, PARTS)
    doubled = {name for name in parts.pages if parts.pages.count(name) > 1}
    if doubled:
        raise InputError(f"{PARTS}: there twice: {', '.join(sorted(doubled))}")
    return parts


def faults(slugs: list[str]) -> Iterator[str]:
    """A line for each file of these chapters that no part names, and for each name without a file."""
    pages = read_parts().pages
    for slug in sorted(set(slugs) - set(pages)):
        yield f"chapters/{slug}.md:1: it stands in no part of {PARTS}"
    for slug in (page for page in pages if page not in slugs):
        yield f"{PARTS}:1: there is no chapters/{slug}.md"
