"""The index of calls: for each call of chapters/calls.tsv, where the book explains it and which files of code/ make it.

    python3 -m quest.book.calls OUTPUT OUTLINE...

writes it as a table of Lua, for calls.lua, which draws the page. Written only if it differs. Status 2 and one line for
a table that cannot be right.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from quest.book.outline import Block, Outline, read_outlines
from quest.book.tables import lua, number_of
from quest.ground.entry import run_main
from quest.ground.errors import InputError
from quest.ground.files import write_if_other

TABLE = Path("chapters/calls.tsv")
CODE = Path("code")
COLUMNS = ("name", "page", "word", "what")
PAGE = re.compile(r"\w+\([1-8]\)")
#: Chapters that a call is found in: those that say most of it.
MOST_CHAPTERS = 5
#: Sections that use a call rather than explain it, by their class: what a mention there counts.
USES = {"exercises": 0.1, "recap": 0.25, "then-now": 0.5, "breaks": 0.5}
#: What is printed in a terminal names a call, and explains it less than a sentence does.
IN_TERMINAL = 0.25
#: What the name in a heading counts, and that in the name of the chapter.
IN_HEADING, IN_SLUG = 4, 8
#: Pages that name calls and explain none.
LISTS = {"calls", "bibliography", "glossary", "index"}
GROUPS = {
    "system": "System calls",
    "library": "The C library",
    "liburing": "liburing",
    "libowfat": "libowfat",
}
BSD = {"kqueue", "kevent", "procctl", "pledge", "unveil"}
COMMENT_OR_TEXT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
CALLED = re.compile(r"(->|\.)?\b([a-z_]\w*)\(")
BY_NUMBER = re.compile(r"\b(?:SYS|__NR)_([a-z]\w*)")
#: Names that the C sources define themselves: functions, macros with arguments, pointers to functions.
DEFINED = re.compile(
    r"^[A-Za-z_][\w\s*]*?[\s*](\w+)\(|#\s*define\s+(\w+)\(|\(\*\s*(?:const\s+)?(\w+)\)\s*\(|^extern [^;(]*\b(\w+);",
    re.M,
)
KEYWORDS = {
    "if", "for", "while", "switch", "return", "sizeof", "defined", "case", "do", "else", "format", "offsetof",
    "_Alignof", "_Static_assert", "__asm__", "__attribute__",
}  # fmt: skip


class Call(NamedTuple):
    """A line of the table."""

    name: str  # epoll_wait
    page: str  # epoll_wait(2); "" where there is none
    is_word: bool  # also a word of English
    what: str  # it does

    @property
    def group(self) -> str:
        """A key of GROUPS."""
        if self.name.startswith("io_uring_") and not self.page.endswith("(2)"):
            return "liburing"
        if not self.page and self.what.startswith("libowfat"):
            return "libowfat"
        return "system" if self.page.endswith("(2)") else "library"

    def pattern(self) -> re.Pattern[str]:
        """What names it in prose and in terminals: the name alone, unless that is a word of English, too."""
        name = re.escape(self.name)
        if self.is_word:
            return re.compile(rf"`{name}(?:\(\))?`|\b{name}\((?:[1-8]\))?")
        return re.compile(rf"(?<![\w.]){name}(?!\w)")


@dataclass(frozen=True)
class Place:
    """A section of the book that explains a call; of the chapter that says most of it, `is_main`."""

    slug: str
    id: str
    text: str
    is_main: bool


@dataclass(frozen=True)
class Entry:
    """A call in the index."""

    name: str
    page: str
    address: str
    what: str
    places: list[Place]
    files: list[str]


@dataclass(frozen=True)
class Group:
    """The calls of one library, or of the system."""

    id: str
    title: str
    entries: list[Entry]


def read_calls(path: Path = TABLE) -> dict[str, Call]:
    """The table, by name. InputError for a line that is none."""
    calls: dict[str, Call] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        cells = line.split("\t")
        if not line or line.startswith("#") or tuple(cells) == COLUMNS:
            continue
        if len(cells) != len(COLUMNS):
            raise InputError(f"{path}:{number}: the columns are {', '.join(COLUMNS)}, with tabs between")
        name, page, word, what = cells
        if page != "-" and not PAGE.fullmatch(page):
            raise InputError(f"{path}:{number}: {page} is no page of the manual: listen(2), or -")
        if word not in ("word", "-") or not what:
            raise InputError(f'{path}:{number}: the third column is "word" or -, the fourth says what it does')
        if name in calls:
            raise InputError(f"{path}:{number}: {name} is there twice")
        calls[name] = Call(name, "" if page == "-" else page, word == "word", what)
    return calls


def address(page: str, is_bsd: bool = False) -> str:
    """Where a page of the manual can be read: listen(2) -> https://...; "" for none."""
    if not page:
        return ""
    name, section = page[:-3], page[-2]
    if is_bsd:
        return f"https://man.freebsd.org/cgi/man.cgi?query={name}&sektion={section}"
    return f"https://man7.org/linux/man-pages/man{section}/{name}.{section}.html"


# ---- the code ----------------------------------------------------------------------------------------------------


def sources(root: Path = CODE) -> dict[str, str]:
    """The C sources below it, without comments and texts, by their path."""
    paths = sorted(path for path in root.rglob("*.[ch]"))
    return {str(path): COMMENT_OR_TEXT.sub(" ", path.read_text(encoding="utf-8")) for path in paths}


def called_in(text: str) -> set[str]:
    """Names that the text calls, by a call or by the number of a system call; not by a pointer in a struct."""
    names = {match[2] for match in CALLED.finditer(text) if not match[1]}
    return (names | set(BY_NUMBER.findall(text))) - KEYWORDS


def defined_in(texts: Mapping[str, str]) -> set[str]:
    """Names that these sources define."""
    return {name for text in texts.values() for match in DEFINED.findall(text) for name in match if name}


def missing(texts: Mapping[str, str], calls: Mapping[str, Call]) -> Iterator[str]:
    """A line for each call of another's function that the table has not."""
    known = defined_in(texts) | set(calls)
    seen: set[str] = set()
    for path, text in texts.items():
        for name in sorted(called_in(text) - known - seen):
            seen.add(name)
            yield f"{path}:1: calls {name}, which is not in {TABLE}"


# ---- the chapters ------------------------------------------------------------------------------------------------


class Said(NamedTuple):
    """The words of one section."""

    slug: str
    id: str
    title: str
    heading: str
    weight: float
    prose: str
    terminals: str

    def says(self, call: Call, pattern: re.Pattern[str]) -> float:
        """How much it says of a call."""
        if call.name not in self.prose and call.name not in self.terminals and call.name not in self.heading:
            return 0
        in_prose = len(pattern.findall(self.prose)) + IN_HEADING * len(pattern.findall(self.heading))
        in_slug = IN_SLUG if in_prose and call.name in self.slug.split("-") else 0
        return self.weight * (in_prose + in_slug + IN_TERMINAL * len(pattern.findall(self.terminals)))


def words_of(body: Sequence[Block], kind: str) -> str:
    """What stands in the blocks of a kind, without answers."""
    return "\n".join(block.text for block in body if block.kind == kind and "answer" not in block.inside)


def said(chapters: Sequence[Outline]) -> Iterator[Said]:
    """All sections of the chapters, in the order of the book; before its first heading the page."""
    for chapter in chapters:
        if chapter.slug in LISTS or chapter.metadata.get("kind") in ("front", "part"):
            continue
        number = number_of(chapter.slug)
        title = f"Chapter {number}" if number and number[0].isdigit() else chapter.metadata.get("title", "")
        starts = [at for at, block in enumerate(chapter.blocks) if is_section(block)]
        weight = 1.0
        for start, end in pairwise([-1, *starts, len(chapter.blocks)]):
            heading, body = chapter.blocks[start] if start >= 0 else None, chapter.blocks[start + 1 : end]
            if heading and heading.level <= 2:
                weight = min((USES[name] for name in heading.classes if name in USES), default=1.0)
            id, text = (heading.id.replace(":", "-"), heading.text) if heading else ("", "")
            yield Said(chapter.slug, id, title, text, weight, words_of(body, "text"), words_of(body, "fence"))


def is_section(block: Block) -> bool:
    """A heading that the contents, or a search, lead to."""
    return block.kind == "heading" and block.level <= 3 and not block.inside


def places_of(call: Call, sections: Sequence[Said]) -> list[Place]:
    """The chapters that say most of a call, each by the section that does; in the order of the book."""
    pattern = call.pattern()
    scores = {at: score for at, section in enumerate(sections) if (score := section.says(call, pattern))}
    chapters: dict[str, float] = {}
    for at, score in scores.items():
        chapters[sections[at].slug] = chapters.get(sections[at].slug, 0) + score
    chosen = sorted(chapters, key=lambda slug: -chapters[slug])[:MOST_CHAPTERS]
    best = {slug: max((at for at in scores if sections[at].slug == slug), key=lambda at: scores[at]) for slug in chosen}
    places = []
    for at in sorted(best.values()):
        section = sections[at]
        text = f"{section.title}: {section.heading}" if section.heading else section.title
        places.append(Place(section.slug, section.id, text.replace("`", ""), section.slug == chosen[0]))
    return places


def index_of(calls: Mapping[str, Call], chapters: Sequence[Outline], texts: Mapping[str, str]) -> list[Group]:
    """The calls that the book names or the code makes, by group and name."""
    sections = list(said(chapters))
    files: dict[str, list[str]] = {}
    for path, text in texts.items():
        for name in called_in(text):
            files.setdefault(name, []).append(path)
    groups = {id: Group(id, title, []) for id, title in GROUPS.items()}
    for name, call in sorted(calls.items(), key=lambda item: item[0].strip("_")):
        places = places_of(call, sections)
        if places or name in files:
            where = address(call.page, name in BSD)
            groups[call.group].entries.append(Entry(name, call.page, where, call.what, places, files.get(name, [])))
    return [group for group in groups.values() if group.entries]


def unused(calls: Mapping[str, Call], chapters: Sequence[Outline], texts: Mapping[str, str]) -> Iterator[str]:
    """A line for each call of the table that neither book nor code names."""
    there = {entry.name for group in index_of(calls, chapters, texts) for entry in group.entries}
    for name in sorted(set(calls) - there):
        yield f"{TABLE}:1: {name}: neither a chapter names it nor a file of code/ calls it"


def faults(chapters: Sequence[Outline]) -> Iterator[str]:
    """For lint: what the table lacks, and what it has in vain. Nothing in a tree without the table."""
    if TABLE.exists():
        calls, texts = read_calls(), sources()
        yield from missing(texts, calls)
        yield from unused(calls, chapters, texts)


def main(arguments: list[str]) -> int:
    """OUTPUT, and the outlines of all chapters."""
    output, *names = arguments
    groups = index_of(read_calls(), read_outlines(names)[0], sources())
    Path(output).parent.mkdir(parents=True, exist_ok=True)
    write_if_other(Path(output), f"return {lua([asdict(group) for group in groups])}\n")
    return 0


if __name__ == "__main__":
    run_main(main)
