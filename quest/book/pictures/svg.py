"""Elements of a picture. Sizes and places are in pixels of a slide of 1280 x 720, of which a picture has 1152 x 528."""

from collections.abc import Iterable
from html import escape

WIDTH, HEIGHT = 1152, 528
#: The smallest text that the last row can read.
LEAST_SIZE = 22
#: Behind a number that was not measured here; smaller than its number.
REFERENCE_MARK = "\N{NARROW NO-BREAK SPACE}ref"
#: What is too short to be seen is drawn as wide as this, and is still a line beside a bar.
HAIRLINE = 4.0


def short(value: float) -> str:
    """A coordinate: a tenth of a pixel is enough."""
    return f"{value:.1f}".removesuffix(".0")


def text(x: float, y: float, words: str, size: int = 28, names: str = "") -> str:
    """A line of text. `names` are classes of pictures.css: end and middle anchor it there, b is bold, m is code."""
    anchor = next((f' text-anchor="{name}"' for name in ("end", "middle") if name in names.split()), "")
    place = f'x="{short(x)}" y="{short(y)}" font-size="{size}"{anchor}'
    said = escape(words, quote=False).replace(REFERENCE_MARK, f'<tspan class="ref">{REFERENCE_MARK}</tspan>')
    return f'<text class="{names}" {place}>{said}</text>'


def box(x: float, y: float, width: float, height: float, names: str) -> str:
    """A rectangle."""
    return f'<rect class="{names}" x="{short(x)}" y="{short(y)}" width="{short(width)}" height="{short(height)}"/>'


def line(path: str, names: str = "rule") -> str:
    """A path, of SVG's commands."""
    return f'<path class="{names}" d="{path}"/>'


def arrow(x1: float, y1: float, x2: float, y2: float, names: str = "arrow") -> str:
    """A straight arrow with its head at the second point; it lies level or upright."""
    dx, dy = (x2 > x1) - (x2 < x1), (y2 > y1) - (y2 < y1)
    wing = 13
    left = f"M{short(x2 - wing * dx + wing * 0.7 * dy)} {short(y2 - wing * dy + wing * 0.7 * dx)}"
    right = f"L{short(x2 - wing * dx - wing * 0.7 * dy)} {short(y2 - wing * dy - wing * 0.7 * dx)}"
    return line(f"M{short(x1)} {short(y1)}L{short(x2)} {short(y2)}{left}L{short(x2)} {short(y2)}{right}", names)


def step(*parts: str) -> str:
    """What appears with one step of the slide; on paper it is there."""
    return f'<g class="fragment">{"".join(parts)}</g>'


def picture(parts: Iterable[str], defs: str = "") -> str:
    """The whole, for a page of HTML; the filter of figures gives it its name for those who cannot see it."""
    box_of_view = f'viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="xMinYMin"'
    head = f'<svg class="wall" xmlns="http://www.w3.org/2000/svg" {box_of_view} role="img">'
    return head + (f"<defs>{defs}</defs>" if defs else "") + "".join(parts) + "</svg>\n"
