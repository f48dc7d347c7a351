"""Reads chapters and slides as lint.py and quest/book/tracks.py need them: headings, fences, divs.

Not a Markdown parser: only what the author's guide (README.md here) allows, line by line. pandoc
does the rest.
"""

import re
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ATTRIBUTES = re.compile(
    r"""\#(?P<id>[\w:.-]+) | \.(?P<class>[\w-]+)
        | (?P<key>[\w-]+)=(?:"(?P<quoted>[^"]*)"|(?P<bare>\S+))""",
    re.X,
)
METADATA = re.compile(r"^([\w-]+):[ ]*(.*?)[ ]*(?: #.*)?$", re.MULTILINE)
HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*(?:\{([^{}]*)\})?\s*$")
FENCE = re.compile(r"^\s*(`{3,}|~{3,})\s*(?:\{([^{}]*)\}|(\S*))\s*$")
DIV = re.compile(r"^\s*:{3,}\s*(?:\{([^{}]*)\}|([\w-]+))?\s*:*\s*$")
IMAGE = re.compile(r"!\[[^\]]*\]\(([^)]+)\)")
REGION = re.compile(r"^\s*(?:/\*|//|#|;|--)\s*region:\s*([a-z0-9-]+)\s*(?:\*/)?\s*$")


class Block:
    """A heading, a fence, a div, an image or a line of text, with what stands in its curly braces
    (`#id .class key=value key="value"`), and the divs it stands in.
    """

    level = 0  # of a heading

    def __init__(
        self, kind: str, line: int, text: str, attributes: str, inside: Sequence[str]
    ) -> None:
        self.kind, self.line, self.text, self.inside = kind, line, text, tuple(inside)
        found = list(ATTRIBUTES.finditer(attributes))
        self.id = "".join(each["id"] or "" for each in found)
        self.classes = [each["class"] for each in found if each["class"]]
        self.values = {
            each["key"]: each["quoted"] or each["bare"] or "" for each in found if each["key"]
        }


def read_toml(path: Path) -> dict[str, Any]:
    """The table in a TOML file; leaves with one line when there is none."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        sys.exit(f"{path}: {getattr(error, 'strerror', error)}")


class Source:
    """One file of Markdown: its metadata and its blocks in order."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.blocks: list[Block] = []
        text = path.read_text(encoding="utf-8")
        head = "".join(re.findall(r"\A---\n.*?\n---\n", text, re.DOTALL))
        skip = head.count("\n")
        self.metadata = {key: value.strip('"') for key, value in METADATA.findall(head)}
        divs: list[str] = []
        fence = ""
        for number, line in enumerate(text.splitlines()[skip:], start=skip + 1):
            if fence:
                fence = "" if line.strip() == fence else fence
            elif match := FENCE.match(line):
                fence = match[1]
                self.blocks.append(Block("fence", number, line, match[2] or "." + match[3], divs))
            elif match := DIV.match(line):
                if match[1] is None and match[2] is None:
                    del divs[-1:]
                    continue
                div = Block("div", number, line, match[1] or f".{match[2] or ''}", divs)
                self.blocks.append(div)
                divs.append(next(iter(div.classes), ""))
            elif (match := HEADING.match(line)) and not divs:
                self.blocks.append(Block("heading", number, match[2], match[3] or "", ()))
                self.blocks[-1].level = len(match[1])
            else:
                images = IMAGE.findall(line)
                self.blocks += [Block("image", number, name, "", divs) for name in images]
                self.blocks.append(Block("text", number, line, "", divs))

    def sections(self) -> list[tuple[Block, list[Block]]]:
        """Headings of level 1 and 2, each with the blocks up to the next one."""
        result: list[tuple[Block, list[Block]]] = []
        for block in self.blocks:
            if block.kind == "heading" and block.level <= 2:
                result.append((block, []))
            elif result:
                result[-1][1].append(block)
        return result


def regions_of(path: Path) -> dict[str, int]:
    """Names of the regions marked in a source file, with their lines."""
    lines = enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1)
    return {match[1]: number for number, line in lines if (match := REGION.match(line))}
