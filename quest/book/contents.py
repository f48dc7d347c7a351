"""What the reader's path knows of the chapters: chapters/contents.json.

    python3 -m quest.book.contents OUTLINE...

writes it from what pandoc has read. It is committed, so that `make next`, `path` and `run` work
where pandoc is not installed and before a book is made; lint says when it is not what the chapters
say.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from quest.book.outline import Outline, read_outlines
from quest.book.parts import read_parts
from quest.ground.entry import run_main
from quest.ground.errors import InputError
from quest.ground.files import write_whole

CONTENTS = Path("chapters/contents.json")
TYPED = re.compile(r"^[$#>] .*", re.M)  # lines of a console that the reader types
PROGRAM = re.compile(r"\bbuild/bin/([\w-]+)")


@dataclass(frozen=True)
class Entry:
    """A chapter; appendices and pages of parts have no steps."""

    slug: str  # 02-fork
    part: str  # the title of the part that it stands in
    title: str
    summary: str
    measure: str  # the experiment that decides what the chapter asks; "" if there is none
    predictions: int
    exercises: int
    programs: list[str]  # of build/bin, that its reader starts by hand


def entry_of(chapter: Outline, part: str) -> Entry:
    """What the path has to know of a chapter of the part with this title."""
    consoles = [b.text for b in chapter.blocks if b.kind == "fence" and "console" in b.classes]
    typed = " ".join(TYPED.findall("\n".join(consoles)))
    metadata = {name: chapter.metadata.get(name, "") for name in ("title", "summary", "measure")}
    return Entry(
        chapter.slug,
        part,
        **metadata,
        predictions=len(chapter.divs("predict")),
        exercises=len(chapter.divs("exercise")),
        programs=list(dict.fromkeys(PROGRAM.findall(typed))),
    )


def text_of(chapters: list[Outline]) -> str:
    """The file for these pages, in their order."""
    titles, parts = {one.slug: one.metadata.get("title", "") for one in chapters}, read_parts()
    entries = [entry_of(one, titles.get(parts.part_of(one.slug), "")) for one in chapters if one.is_chapter]
    return json.dumps(list(map(asdict, entries)), indent=1, ensure_ascii=False) + "\n"


def read_contents() -> list[Entry]:
    """In the order of the book. InputError if the file is not as text_of() writes it."""
    try:
        return [Entry(**entry) for entry in json.loads(CONTENTS.read_text(encoding="utf-8"))]
    except (ValueError, TypeError) as error:
        raise InputError(f"{CONTENTS}: {error}; make contents writes it anew") from None


def faults(chapters: list[Outline]) -> Iterator[str]:
    """One line if the file is not what the chapters say."""
    kept = CONTENTS.read_text(encoding="utf-8") if CONTENTS.exists() else ""
    if kept != text_of(chapters):
        yield f"{CONTENTS}:1: not what the chapters say; make contents"


def main(arguments: list[str]) -> int:
    """The outlines of all chapters."""
    write_whole(CONTENTS, text_of(read_outlines(arguments)[0]))
    return 0


if __name__ == "__main__":
    run_main(main)
