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

TOOLS = ("pdfinfo", "pdftotext", "pdftoppm")
# Dots an inch at which pages are looked at: enough to see that something is there.
RESOLUTION = 36
WORD = re.compile(
    r'<word xMin="([\d.-]+)" yMin="([\d.-]+)" xMax="([\d.-]+)" yMax="([\d.-]+)">(.*?)</word>'
)
PAGE = re.compile(r'<page width="([\d.]+)" height="([\d.]+)">(.*?)</page>', re.DOTALL)
LETTERS = {0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl"}
# Points by which a letter may lean out of its box.
TOLERANCE = 1.5
# Of 255: what is lighter or darker than its page by less is no ink.
FAINT = 12


def missing() -> str:
    """Why no page can be looked at here, or nothing."""
    for tool in TOOLS:
        if not shutil.which(tool):
            return f"{tool} is not installed (apt-get install poppler-utils)"
    return ""


@dataclass
class Page:
    """Sizes and places in points, from the top left corner."""

    width: float
    height: float
    words: list[tuple[float, float, float, float, str]]

    @property
    def text(self) -> str:
        return " ".join(word[4] for word in self.words)

    def rows(self) -> list[str]:
        """Words that stand beside each other, from left to right."""
        middles = sorted({round((word[1] + word[3]) / 2) for word in self.words})
        starts = [
            at for at, before in zip(middles, [-9, *middles], strict=False) if at - before > 3
        ]
        rows: dict[int, list[tuple[float, str]]] = {start: [] for start in starts}
        for left, top, _, bottom, text in self.words:
            start = max(start for start in starts if start <= round((top + bottom) / 2))
            rows[start].append((left, text))
        return [" ".join(text for _, text in sorted(row)) for row in rows.values()]


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


def count(pdf: Path) -> int:
    return int(re.findall(rb"^Pages: +(\d+)", run("pdfinfo", str(pdf)), re.MULTILINE)[0])


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
    found = re.findall(
        r'^ *(\d+) \[.*\] "(.*)"$', run("pdfinfo", "-dests", str(pdf)).decode(), re.M
    )
    return {name: int(page) for page, name in found}


Image = tuple[int, int, bytes]


def images_of(pdf: Path) -> list[Image]:
    """Every page in greys: width, height, rows from the top."""
    data = run("pdftoppm", "-gray", "-r", str(RESOLUTION), str(pdf))
    images = []
    while data:
        header = re.match(rb"P5\s+(\d+)\s+(\d+)\s+255\s", data)
        assert header
        width, height = int(header[1]), int(header[2])
        end = header.end() + width * height
        images.append((width, height, data[header.end() : end]))
        data = data[end:]
    return images


def ink(image: Image, left: float, top: float, right: float, bottom: float) -> int:
    """Dots that differ from the paper, in this part of the page (points from its edges)."""
    width, height, dots = image
    scale = RESOLUTION / 72
    paper = max(set(dots), key=dots.count)
    rows = range(round(top * scale), height - round(bottom * scale))
    first = round(left * scale)
    last = max(first, width - round(right * scale))
    return sum(
        abs(dot - paper) > FAINT
        for row in rows
        for dot in dots[row * width + first : row * width + last]
    )


def outside(page: Page, edges: Edges) -> list[str]:
    return [
        f'"{text}" runs out of the page'
        for left, top, right, bottom, text in page.words
        if left < edges.left - TOLERANCE
        or top < edges.top - TOLERANCE
        or right > page.width - edges.right + TOLERANCE
        or bottom > page.height - edges.bottom + TOLERANCE
    ]


def paper_problems(pdf: Path, edges: Edges, foot: float) -> list[str]:
    """Blank pages (`foot` points at the bottom do not count), and what stands in the margins."""
    problems = []
    for number, (page, image) in enumerate(zip(pages_of(pdf), images_of(pdf), strict=True), 1):
        found = outside(page, edges)
        if not ink(image, 0, 0, 0, foot):
            found.append("is blank")
        # Two dots at each edge belong to what is just inside it.
        for name, strip in {
            "left": (0, 0, page.width - edges.left + 4, 0),
            "right": (page.width - edges.right + 4, 0, 0, 0),
            "bottom": (0, page.height - edges.bottom + 4, 0, 0),
        }.items():
            if ink(image, *strip):
                found.append(f"is not white at the {name} edge")
        problems += [f"{pdf.name}, page {number}: {problem}" for problem in found]
    return problems
