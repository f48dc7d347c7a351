"""Reads chapters and slides as lint.py and slides/schedule.py need them: headings, fences, divs.

Not a Markdown parser: only what the author's guide (README.md here) allows, line by line. pandoc
does the rest.
"""

import re
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ATTRIBUTES = re.compile(
    r"""\#(?P<id>[\w:.-]+) | \.(?P<class>[\w-]+)
        | (?P<key>[\w-]+)=(?:"(?P<quoted>[^"]*)"|(?P<bare>\S+))""",
    re.X,
)
HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*(?:\{([^{}]*)\})?\s*$")
FENCE = re.compile(r"^\s*(`{3,}|~{3,})\s*(?:\{([^{}]*)\}|(\S*))\s*$")
DIV = re.compile(r"^\s*:{3,}\s*(?:\{([^{}]*)\}|([\w-]+))?\s*:*\s*$")
IMAGE = re.compile(r"!\[[^\]]*\]\(([^)]+)\)")
REGION = re.compile(r"^\s*(?:/\*|//|#|;|--)\s*region:\s*([a-z0-9-]+)\s*(?:\*/)?\s*$")


@dataclass
class Attributes:
    id: str = ""
    classes: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)


@dataclass
class Block:
    """A heading, a fence, a div, an image or a line of text, and the divs it stands in."""

    kind: str
    line: int
    text: str = ""
    attributes: Attributes = field(default_factory=Attributes)
    level: int = 0
    inside: tuple[str, ...] = ()


def read_toml(path: Path) -> dict[str, Any]:
    """The table in a TOML file; leaves with one line when there is none."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        sys.exit(f"{path}: {reason}")


def parse_attributes(text: str) -> Attributes:
    """`#id .class key=value key="value"` as in pandoc's curly braces."""
    result = Attributes()
    for match in ATTRIBUTES.finditer(text):
        if match["id"]:
            result.id = match["id"]
        elif match["class"]:
            result.classes.append(match["class"])
        else:
            result.values[match["key"]] = (
                match["quoted"] if match["quoted"] is not None else match["bare"]
            )
    return result


def read_metadata(lines: list[str]) -> tuple[dict[str, str], int]:
    """The `key: value` lines between `---` at the top, and the number of lines they take."""
    if not lines or lines[0].strip() != "---":
        return {}, 0
    values: dict[str, str] = {}
    for index, line in enumerate(lines[1:], start=1):
        if line.strip() in ("---", "..."):
            return values, index + 1
        key, separator, value = line.partition(":")
        if separator:
            values[key.strip()] = value.split(" #")[0].strip().strip('"')
    return values, 0


class Source:
    """One file of Markdown: its metadata and its blocks in order."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text(encoding="utf-8").splitlines()
        self.metadata, skip = read_metadata(lines)
        self.blocks: list[Block] = []
        self._read(lines, skip)

    def _read(self, lines: list[str], skip: int) -> None:
        divs: list[str] = []
        fence = ""
        for number, line in enumerate(lines[skip:], start=skip + 1):
            if fence:
                fence = "" if line.strip() == fence else fence
            elif match := FENCE.match(line):
                fence = match[1]
                attributes = parse_attributes(match[2] or "." + match[3])
                self.blocks.append(Block("fence", number, line, attributes, inside=tuple(divs)))
            elif match := DIV.match(line):
                self._div(divs, number, line, match)
            else:
                self._line(divs, number, line)

    def _div(self, divs: list[str], number: int, line: str, match: re.Match[str]) -> None:
        if match[1] is None and match[2] is None:
            if divs:
                divs.pop()
            return
        attributes = parse_attributes(match[1] if match[1] is not None else "." + match[2])
        self.blocks.append(Block("div", number, line, attributes, inside=tuple(divs)))
        divs.append(attributes.classes[0] if attributes.classes else "")

    def _line(self, divs: list[str], number: int, line: str) -> None:
        heading = HEADING.match(line)
        if heading and not divs:
            attributes = parse_attributes(heading[3] or "")
            self.blocks.append(
                Block("heading", number, heading[2], attributes, level=len(heading[1]))
            )
            return
        for image in IMAGE.finditer(line):
            self.blocks.append(Block("image", number, image[1], inside=tuple(divs)))
        self.blocks.append(Block("text", number, line, inside=tuple(divs)))

    def sections(self, level: int) -> list[tuple[Block, list[Block]]]:
        """Headings of this level or above, each with the blocks up to the next one."""
        result: list[tuple[Block, list[Block]]] = []
        for block in self.blocks:
            if block.kind == "heading" and block.level <= level:
                result.append((block, []))
            elif result:
                result[-1][1].append(block)
        return result


def regions_of(path: Path) -> dict[str, int]:
    """Names of the regions marked in a source file, with their lines."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return {
        match[1]: number
        for number, line in enumerate(lines, start=1)
        if (match := REGION.match(line))
    }
