"""The diagrams drawn by hand: one look, light and dark, legible on a telephone, no word on another.

Run: python3 -m pytest tests/book/test_diagrams.py
"""

import re
import xml.etree.ElementTree as ET
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "figures/diagrams"
DIAGRAMS = sorted(FOLDER.glob("*.svg"))
STYLE = re.sub(r"/\*.*?\*/", "", (FOLDER / "diagram.css").read_text(encoding="utf-8"), flags=re.S)
LIGHT, DARK = STYLE.split("@media screen and (prefers-color-scheme: dark)")
#: The page's own ground (book.css), and the classes that words may stand on: quiet ones, all.
GROUNDS = {LIGHT: "#fffefb", DARK: "#1b1c1a"}
CALM = ("page", "kernel", "box")
PALE = (*CALM, "n", "a", "b", "c", "d")
PHONE, LEAST = 358, 10  # px: a column of a window of 390, and a letter
SIZE, WIDTH = 18, 640

#: Where each text is, in the diagram's own units.
PLACES = """
document.body.innerHTML = arguments[0];
const svg = document.querySelector("svg"), own = svg.getCTM();
return [...svg.querySelectorAll("text")].map((text) => {
  const box = text.getBBox(), at = text.getCTM();
  return [text.textContent, box.x + at.e - own.e, box.y + at.f - own.f, box.width, box.height];
});
"""


def classes(element: ET.Element) -> list[str]:
    return element.get("class", "").split()


def fills(css: str) -> dict[str, str]:
    """By class, of the rules with one class each; of plain text as "text"."""
    rules = re.findall(r"^\s*\.?([\w-]+) \{[^}]*?fill: (#\w+)", css, re.M)
    return {name: colour if len(colour) == 7 else "#ffffff" for name, colour in rules}


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_there_are_diagrams() -> None:
    assert len(DIAGRAMS) >= 12


@pytest.mark.parametrize("path", DIAGRAMS, ids=lambda path: path.stem)
def test_a_diagram_has_the_common_look(path: Path) -> None:
    """Colours and sizes come from the style sheet alone, so that it is dark where it must be."""
    root = ET.parse(path).getroot()
    assert (root.get("class"), root.get("width")) == ("diagram", str(WIDTH))
    assert root.get("viewBox") == f"0 0 {WIDTH} {root.get('height')}"
    known = set(re.findall(r"\.([a-zA-Z][\w-]*)", STYLE))
    for element in root.iter():
        assert not {"style", "fill", "stroke", "font-size", "font-family"} & set(element.attrib)
        assert set(classes(element)) - {"diagram"} <= known, element.attrib


def test_the_letters_are_large_enough_on_a_telephone() -> None:
    assert set(re.findall(r"(\d+)px", STYLE)) == {str(SIZE)}
    assert SIZE * PHONE / WIDTH >= LEAST


@pytest.mark.parametrize("css", [LIGHT, DARK], ids=["light", "dark"])
def test_words_can_be_read_on_every_ground(css: str) -> None:
    have = {"page": GROUNDS[css], **fills(css)}
    assert {"text", "q", *PALE} <= have.keys()
    for ink, ground in [*product(["text"], PALE), *product(["q"], CALM)]:
        assert contrast(have[ink], have[ground]) >= 4.5, (ink, ground)


@pytest.mark.parametrize("path", DIAGRAMS, ids=lambda path: path.stem)
def test_no_word_is_cut_or_covered(path: Path, driver: Any) -> None:
    source = path.read_text(encoding="utf-8")
    driver.get("about:blank")
    found = driver.execute_script(PLACES, f"<style>{STYLE}</style>{source[source.index('<svg') :]}")
    height = float(ET.parse(path).getroot().get("height", "0"))
    assert found
    for text, x, y, wide, high in found:
        assert min(x, y) >= -2 and x + wide <= WIDTH + 2 and y + high <= height + 2, text
    for one, other in combinations(found, 2):
        apart = [abs((one[i] + one[i + 2] / 2) - (other[i] + other[i + 2] / 2)) for i in (1, 2)]
        room = [(one[i + 2] + other[i + 2]) / 2 - slack for i, slack in ((1, 1), (2, 5))]
        assert apart[0] >= room[0] or apart[1] >= room[1], (one[0], other[0])
