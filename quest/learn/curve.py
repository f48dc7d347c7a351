"""A curve that is guessed at the terminal, in three points: drawn there beside what was
measured, and as a picture in work/.
"""

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
#: In microseconds where the curve has a time; a plain number is in the curve's own unit.
TIMES = {"ns": 1e-3, "us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6}
GUESS = re.compile(r"(\d+(?:[.,]\d+)?)\s*(k)?\s*(ns|us|µs|ms|s)?", re.I)
SCRIPT = """
set terminal dumb size 92, 22
set logscale y
set xlabel "{x}"
set title "{y}, in {unit}"
set key top left
set offsets graph 0, graph 0, graph 0.15, graph 0.05
plot $guess with linespoints title "your guess", $measured with linespoints title "reference run"
set terminal svg size 800, 480 background "white"
set output "{picture}"
replot
"""


@dataclass(frozen=True)
class Axes:
    """What a box with draw="EXPERIMENT.VARIANT.METRIC" asks for; y is in `unit`."""

    operand: str
    x_title: str
    y_title: str
    unit: str
    x: tuple[float, ...]
    y: tuple[float, ...]


def asked(attributes: str, build: Path) -> Axes | None:
    """None if the box asks for no curve, or its numbers are not there (make export)."""
    given = dict(ATTRIBUTE.findall(attributes))
    numbers = build / "data/numbers.json"
    if "draw" not in given or not numbers.is_file():
        return None
    points, unit = {}, ""
    for key, entry in json.loads(numbers.read_text(encoding="utf-8")).items():
        operand, _, x = key.rpartition("@")
        if operand == given["draw"] and re.fullmatch(r"[\d.]+", x) and entry["value"] is not None:
            points[float(x)] = entry.get("reference") or entry["value"]
            unit = entry["unit"]
    if len(points) < 3:
        return None
    xs = tuple(sorted(points))
    return Axes(
        given["draw"], given.get("x", "x"), given.get("y", "y"), unit, xs,
        tuple(points[x] for x in xs),
    )  # fmt: skip


def number(text: str, unit: str) -> float | None:
    """ "2 ms" -> 2000.0 where the unit is µs; "15k" -> 15000.0; None if it is no such number."""
    found = GUESS.fullmatch(text.strip())
    if not found:
        return None
    value = float(found[1].replace(",", ".")) * (1000 if found[2] else 1)
    if found[3]:
        if unit not in TIMES:
            return None
        value *= TIMES[found[3].lower()] / TIMES[unit]
    return value if value > 0 else None


def guessed(axes: Axes) -> tuple[str, list[float]]:
    """The words of the guess, and a value for each x; "" and none if the reader has no guess."""
    places = sorted({0, len(axes.x) // 2, len(axes.x) - 1})
    points: list[tuple[int, float]] = []
    print(f"  {axes.y_title}, by {axes.x_title}; a number of {axes.unit or 'things'}, or as in "
          f"{'2 ms' if axes.unit in TIMES else '15k'} (empty: no guess)")  # fmt: skip
    for place in places:
        while True:
            text = input(f"    at {axes.x[place]:g}: ")
            if not text.strip():
                return "", []
            value = number(text, axes.unit)
            if value:
                points.append((place, value))
                break
            print(f"    {text.strip()}: not a number above 0")
    words = ", ".join(f"{value:g} {axes.unit}".strip() + f" at {axes.x[at]:g}"
                      for at, value in points)  # fmt: skip
    return words, spread(points, len(axes.x))


def spread(points: list[tuple[int, float]], count: int) -> list[float]:
    """A value for each of `count` places, by equal ratios between the points."""
    values = []
    for place in range(count):
        after = next(index for index, (at, _) in enumerate(points) if at >= place)
        (left, low), (right, high) = points[max(0, after - 1)], points[after]
        part = (place - left) / (right - left) if right > left else 0.0
        values.append(low * (high / low) ** part)
    return values


def said(number: float) -> str:
    """Three digits, and no exponent: 21100, 3.46, 0.0271."""
    return f"{number:.0f}" if number >= 1000 else f"{number:.3g}"


def show(axes: Axes, guess: list[float], picture: Path) -> None:
    """Guess and measured line. Without gnuplot: the same as numbers."""
    if not shutil.which("gnuplot") or len(guess) != len(axes.x):
        for x, mine, measured in zip(axes.x, guess, axes.y, strict=False):
            print(
                f"    at {x:g}: your guess {said(mine)}, reference run {said(measured)} {axes.unit}"
            )
        return
    blocks = "".join(
        f"${name} << E\n" + "".join(f"{x} {y}\n" for x, y in zip(axes.x, ys, strict=True)) + "E\n"
        for name, ys in (("guess", guess), ("measured", axes.y))
    )
    logarithmic = "set logscale x\n" if min(axes.x) > 0 and max(axes.x) >= 50 * min(axes.x) else ""
    picture.parent.mkdir(parents=True, exist_ok=True)
    script = SCRIPT.format(x=axes.x_title, y=axes.y_title, unit=axes.unit or "number",
                           picture=picture)  # fmt: skip
    subprocess.run(["gnuplot"], input=blocks + logarithmic + script, text=True, check=False)
    experiment = axes.operand.split(".")[0]
    print(f"  as a picture: {picture}; on your machine: make bench ONLY={experiment}")
