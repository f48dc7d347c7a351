"""What is on the pages of a PDF, by poppler-utils.

paper_problems() returns a line for each fault; the tests compare with an empty list.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from html import unescape
from pathlib import Path

TOOLS = ("pdfinfo", "pdftotext")
WORD = re.compile(
    r'<word xMin="([\d.-]+)" yMin="([\d.-]+)" xMax="([\d.-]+)" yMax="([\d.-]+)">(.*?)</word>'
)
PAGE = re.compile(r'<page width="([\d.]+)" height="([\d.]+)">(.*?)</page>', re.DOTALL)
LETTERS = {0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl"}
# Points by which a letter may lean out of its box.
TOLERANCE = 1.5


def missing() -> str:
    """Why no page can be looked at here, or nothing."""
    here = all(map(shutil.which, TOOLS))
    return "" if here else "poppler-utils are not installed (apt-get install poppler-utils)"


@dataclass
class Page:
    """Sizes and places in points, from the top left corner."""

    width: float
    height: float
    words: list[tuple[float, float, float, float, str]]

    @property
    def text(self) -> str:
        return squeezed("".join(word[4] for word in self.words))

    @property
    def rows(self) -> list[str]:
        """Words that stand beside each other, from left to right, squeezed."""
        rows: list[tuple[float, list[tuple[float, str]]]] = []
        for left, top, _, bottom, text in sorted(self.words, key=lambda word: word[1] + word[3]):
            middle = (top + bottom) / 2
            if not rows or middle - rows[-1][0] > 3:
                rows.append((middle, []))
            rows[-1][1].append((left, text))
        return [squeezed("".join(text for _, text in sorted(row))) for _, row in rows]


@dataclass
class Edges:
    """White that a page has to keep, in points."""

    left: float = 0
    top: float = 0
    right: float = 0
    bottom: float = 0


def run(*command: str) -> bytes:
    return subprocess.run(command, capture_output=True, timeout=120, check=True).stdout


def squeezed(text: str) -> str:
    """Without any white space: how lines are broken does not matter."""
    return "".join(text.split())


def pages_of(pdf: Path) -> list[Page]:
    """The words of every page; what was drawn as a ligature is two letters again."""
    xml = run("pdftotext", "-bbox", str(pdf), "-").decode()
    pages = []
    for width, height, body in PAGE.findall(xml):
        words = [
            (float(a), float(b), float(c), float(d), unescape(text).translate(LETTERS))
            for a, b, c, d, text in WORD.findall(body)
        ]
        pages.append(Page(float(width), float(height), words))
    return pages


def running_text(pdf: Path) -> str:
    """Of the whole document, in the order in which it was drawn, squeezed."""
    return squeezed(run("pdftotext", "-raw", str(pdf), "-").decode())


def destinations(pdf: Path) -> dict[str, int]:
    """Page of every named place."""
    said = run("pdfinfo", "-dests", str(pdf)).decode()
    return {name: int(page) for page, name in re.findall(r'^ *(\d+) \[.*\] "(.*)"$', said, re.M)}


def paper_problems(pdf: Path, edges: Edges, foot: float) -> list[str]:
    """Blank pages (`foot` points at the bottom do not count), and words in the margins."""
    problems = []
    for number, page in enumerate(pages_of(pdf), 1):
        right, bottom = page.width - edges.right, page.height - edges.bottom
        place = f"{pdf.name}, page {number}:"
        if not any(top < page.height - foot for _, top, _, _, _ in page.words):
            problems.append(f"{place} is blank")
        problems += [
            f'{place} "{text}" runs out of the page'
            for word_left, word_top, word_right, word_bottom, text in page.words
            if word_left < edges.left - TOLERANCE or word_top < edges.top - TOLERANCE
            or word_right > right + TOLERANCE or word_bottom > bottom + TOLERANCE
        ]  # fmt: skip
    return problems
