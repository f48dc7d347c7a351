"""What a chapter or a file of slides consists of, as pandoc reads it (chapters/pandoc/outline.lua).

The only parser of the dialect is pandoc with our filters. Labels, lint, schedule and the reader's
path read the JSON that it writes: build/weave/SLUG.outline, build/weave/slides/SLUG.outline.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from quest.book.parts import read_parts
from quest.ground.errors import InputError


@dataclass(frozen=True)
class Block:
    """One block or inline element, in the order of the source.

    kind   text
    heading  its words
    div      ""; its content follows as blocks of its own
    fence    what stands between the fences
    image    the file that is shown
    text     the words of a paragraph, a caption or a table's cell; code stands between backquotes, a bound number
             is [0], a verdict [61]
    term     what a list of definitions explains; the definition follows as blocks of its own
    item     ""; an item of a list, whose content follows
    span     the words of a span, which are those of its paragraph once more
    """

    kind: str
    line: int  # of the source, from 1
    text: str
    level: int  # of a heading, 1 to 6; else 0
    id: str
    classes: list[str]
    values: dict[str, str]  # key="value" of its braces
    inside: list[str]  # the classes of all divs around it; "table" and "caption" for what stands in one


@dataclass(frozen=True)
class Outline:
    """One file of the book or the deck."""

    source: Path  # chapters/02-fork.md
    metadata: dict[str, str]
    blocks: list[Block]

    @property
    def slug(self) -> str:
        """The name of the file without its ending: 02-fork."""
        return self.source.stem

    @property
    def is_chapter(self) -> bool:
        """Not the front page, the page of a part or an appendix: a reader goes through it step by step."""
        return self.metadata.get("kind") not in ("front", "part", "appendix")

    def sections(self) -> list[tuple[Block, list[Block]]]:
        """Headings of level 1 and 2 that stand in no div, each with the blocks up to the next."""
        result: list[tuple[Block, list[Block]]] = []
        for block in self.blocks:
            if block.kind == "heading" and block.level <= 2 and not block.inside:
                result.append((block, []))
            elif result:
                result[-1][1].append(block)
        return result

    def divs(self, of_class: str) -> list[Block]:
        """The divs with this class, in the order of the source."""
        return [each for each in self.blocks if each.kind == "div" and of_class in each.classes]


def read_outline(path: Path) -> Outline:
    """InputError if outline.lua has not written it."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        blocks = [Block(**block) for block in data["blocks"]]
        return Outline(Path(data["source"]), data["metadata"], blocks)
    except FileNotFoundError:
        raise InputError(f"{path}: not there; pandoc makes it (make deps)") from None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: no outline of a chapter ({error!r})") from None


def read_outlines(names: list[str]) -> tuple[list[Outline], list[Outline]]:
    """The chapters and the slides of these files, each in the order of the book."""
    parts = read_parts()
    outlines = sorted((read_outline(Path(name)) for name in names), key=lambda one: parts.place(one.slug))
    chapters = [each for each in outlines if each.source.parts[0] == "chapters"]
    return chapters, [each for each in outlines if each.source.parts[0] == "slides"]


REGION = re.compile(r"^\s*(?:/\*|//|#|;|--)\s*region:\s*([a-z0-9-]+)\s*(?:\*/)?\s*$")


def regions_of(path: Path) -> dict[str, int]:
    """Name -> line of each region that is marked in a source of code."""
    lines = enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1)
    return {match[1]: number for number, line in lines if (match := REGION.match(line))}
