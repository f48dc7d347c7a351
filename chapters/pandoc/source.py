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
        sys.exit(f"{path}: {getattr(error, 'strerror', error)}")


def parse_attributes(text: str) -> Attributes:
    """`#id .class key=value key="value"` as in pandoc's curly braces."""
    result = Attributes()
    for match in ATTRIBUTES.finditer(text):
        if match["id"]:
            result.id = match["id"]
        elif match["class"]:
            result.classes.append(match["class"])
        else:
            quoted = match["quoted"]
            result.values[match["key"]] = quoted if quoted is not None else match["bare"]
    return result


def read_metadata(text: str) -> tuple[dict[str, str], int]:
    """The `key: value` lines between `---` at the top, and the number of lines they take."""
    match = re.match(r"---\n(.*?\n)(?:---|\.\.\.)\n", text, re.DOTALL)
    if not match:
        return {}, 0
    pairs = re.findall(r"^([\w-]+):[ ]*(.*?)[ ]*(?: #.*)?$", match[1], re.MULTILINE)
    return {key: value.strip('"') for key, value in pairs}, match[0].count("\n")


class Source:
    """One file of Markdown: its metadata and its blocks in order."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.blocks: list[Block] = []
        text = path.read_text(encoding="utf-8")
        self.metadata, skip = read_metadata(text)
        divs: list[str] = []
        fence = ""
        for number, line in enumerate(text.splitlines()[skip:], start=skip + 1):
            inside = tuple(divs)
            if fence:
                fence = "" if line.strip() == fence else fence
            elif match := FENCE.match(line):
                fence = match[1]
                attributes = parse_attributes(match[2] or "." + match[3])
                self.blocks.append(Block("fence", number, line, attributes, inside=inside))
            elif match := DIV.match(line):
                if match[1] is None and match[2] is None:
                    del divs[-1:]
                    continue
                attributes = parse_attributes(match[1] if match[1] is not None else "." + match[2])
                self.blocks.append(Block("div", number, line, attributes, inside=inside))
                divs.append(next(iter(attributes.classes), ""))
            elif (match := HEADING.match(line)) and not divs:
                attributes = parse_attributes(match[3] or "")
                self.blocks.append(Block("heading", number, match[2], attributes, len(match[1])))
            else:
                images = IMAGE.findall(line)
                self.blocks += [Block("image", number, name, inside=inside) for name in images]
                self.blocks.append(Block("text", number, line, inside=inside))

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
    lines = enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1)
    return {match[1]: number for number, line in lines if (match := REGION.match(line))}
