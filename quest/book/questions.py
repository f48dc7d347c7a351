"""The question bank, chapters/questions.toml: `make questions` prints it for students, and with
ANSWERS=yes for a teacher. It is no page of the book, and no handout of a lab has it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from quest.book.contents import read_contents
from quest.book.outline import Outline
from quest.book.parts import read_parts
from quest.ground import toml
from quest.ground.toml import Doc, Rule

BANK = Path("chapters/questions.toml")
LEAST = 3  #: questions of a chapter


@dataclass(frozen=True)
class Question:
    """One of the bank, in Markdown."""

    chapter: Annotated[str, Rule(filled=True), Doc("the page that it is about")]
    ask: Annotated[str, Rule(filled=True), Doc("what the students see")]
    answer: Annotated[str, Rule(filled=True), Doc("the teacher's, with what full marks need")]
    believes: Annotated[str, Rule(filled=True), Doc("the mistake that the question finds")]
    where: Annotated[str, Rule(filled=True), Doc("the section that answers it: its heading")]


@dataclass(frozen=True)
class Bank:
    """The file."""

    questions: Annotated[tuple[Question, ...], Rule(filled=True), Doc("in the order of the book", key="question")]


def read_bank(path: Path = BANK) -> tuple[Question, ...]:
    """InputError for a mistake in the file."""
    return toml.load(Bank, path).questions


def markdown(bank: Sequence[Question], titles: Mapping[str, str], answers: bool) -> str:
    """The questions in the order of the book, by chapters; with answers: a teacher's copy."""
    pages = read_parts().pages
    lines = ["# Questions and answers, for the teacher" if answers else "# Questions", ""]
    before = ""
    ordered = sorted(bank, key=lambda one: pages.index(one.chapter))
    for number, one in enumerate(ordered, 1):
        if one.chapter != before:
            lines += [f"## {titles.get(one.chapter, one.chapter)}", ""]
            before = one.chapter
        lines += [f"**{number}.** {one.ask}", ""]
        if answers:
            lines += [f"> {one.answer}", ">", f"> *It finds:* {one.believes}", ">",
                      f"> *In the book:* chapters/{one.chapter}.md, “{one.where}”", ""]  # fmt: skip
    return "\n".join(lines)


def show(given: Mapping[str, str]) -> int:
    """Prints them, of one chapter (CH) or of all."""
    chosen = [one for one in read_bank() if given.get("CH", one.chapter) == one.chapter]
    titles = {each.slug: each.title for each in read_contents()}
    print(markdown(chosen, titles, given.get("ANSWERS") == "yes"))
    return 0


def _plain(heading: str) -> str:
    return re.sub(r"[`*]", "", heading).strip()


def faults(chapters: Sequence[Outline], path: Path = BANK) -> Iterator[str]:
    """A line for each chapter with too few questions, and for each question about what is not there."""
    bank = read_bank(path)
    asked = Counter(one.chapter for one in bank)
    headings = {
        chapter.slug: {_plain(block.text) for block in chapter.blocks if block.kind == "heading"}
        for chapter in chapters
    }
    for chapter in chapters:
        if chapter.is_chapter and asked[chapter.slug] < LEAST:
            yield f"{path}:1: {asked[chapter.slug]} questions about {chapter.slug}; at least {LEAST}"
    for one in bank:
        if one.chapter not in headings:
            yield f'{path}:1: "{one.ask[:40]}...": there is no chapter {one.chapter}'
        elif one.where not in headings[one.chapter]:
            yield f'{path}:1: "{one.ask[:40]}...": chapters/{one.chapter}.md has no section "{one.where}"'
