"""`make predict CH=`: what a chapter asks under "Predict before you read on", asked here.
An answer is a line; it is kept in work/path.json.
"""

import re
import sys
import textwrap
import time
from pathlib import Path

from reader import curve, state
from reader.chapters import chapters, slugs
from reader.errors import Wrong
from reader.words import chosen

BOX = re.compile(r"^:+ *(?:predict\b|\{\.predict\b)([^\n]*)\n(.*?)^:+ *$", re.M | re.S)
FIGURE = re.compile(r"^!\[[^\]]*\]\(([a-z0-9-]+)\.svg\)", re.M)


def questions(slug: str, build: Path) -> list[tuple[str, str, curve.Axes | None]]:
    """Each question, the figure that answers it ("" if none follows), and what is to be drawn."""
    text = Path(f"chapters/{slug}.md").read_text(encoding="utf-8")
    found = []
    for box in BOX.finditer(text):
        figure = FIGURE.match(text[box.end() :].lstrip())  # the next thing, or none
        found.append((plain(box[2]), figure[1] if figure else "", curve.asked(box[1], build)))
    return found


def plain(text: str) -> str:
    """Markdown as one would say it."""
    text = re.sub(r"\s*\(@(?:fig|sec|tbl)[:\w-]*\)|@(?:fig|sec|tbl):[\w-]+", "", text)
    text = re.sub(r"\[([^\]]*)\]\{[^}]*\}|`([^`]*)`", lambda m: m[1] or m[2], text)
    return " ".join(text.replace("*", "").split())


def predict(settings: dict[str, str]) -> int:
    if not settings.get("CH"):
        raise Wrong("predict needs CH=, as in make predict CH=09")
    slug = chosen(settings["CH"], slugs(), "CH")
    build = Path(settings.get("BUILD") or "build")
    asked = questions(slug, build)
    if not asked:
        some = ", ".join(each.slug for each in chapters() if each.predictions)
        raise Wrong(f"CH={slug}: it asks for no prediction; these do: {some}")
    kept = state.read()
    guesses = kept["guesses"].setdefault(slug, {})
    drawings = 0
    for number, (question, figure, axes) in enumerate(asked, 1):
        print(f"\n{number} of {len(asked)}")
        print("\n".join(textwrap.wrap(question, 90, initial_indent="  ", subsequent_indent="  ")))
        if old := guesses.get(str(number)):
            print(f"  you said: {old['text']}")
        drawn: list[float] = []
        try:
            if old:
                text = ""
            elif axes:
                text, drawn = curve.guessed(axes)
            else:
                text = input("  your guess (empty: none): ").strip()
        except EOFError:
            print()
            break
        if text:
            guesses[str(number)] = {
                "text": text, "figure": figure,
                "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            }  # fmt: skip
            if drawn:
                guesses[f"drawn-{drawings}"] = {"y": drawn}  # the page shows it, too (make read)
            state.write(kept)
        if axes and (y := guesses.get(f"drawn-{drawings}", {}).get("y")) and text:
            curve.show(axes, y, state.place().parent / f"guess-{slug}-{drawings + 1}.svg")
        drawings += axes is not None
        if text or old:
            where = f"build/figures/{figure}.svg (make figures), and " if figure else ""
            page = build / "book" / f"{slug}.html"
            shown = page if page.exists() else f"chapters/{slug}.md"
            print(f"  the answer: {where}the lines after the question in {shown}")
    if all(str(number) in guesses for number in range(1, len(asked) + 1)):
        state.note("predict", slug)
    sys.stdout.flush()
    return 0
