"""`make predict CH=`: what a chapter asks under "Predict before you read on", asked here.
A guess is a line; it is kept in work/path.json. Then the chapter's answer is told.
"""

import re
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

from quest.learn import curve, path, state
from quest.learn.answer import Chapter, plain
from quest.learn.chapters import chapters, slugs
from quest.learn.words import Wrong, chosen

WIDTH = 90
BOX = re.compile(r"^:+ *(?:predict\b|\{\.predict\b)([^\n]*)\n(.*?)^:+ *$", re.M | re.S)
FIGURE = re.compile(r"^!\[[^\]]*\]\(([a-z0-9-]+)\.svg\)", re.M)


@dataclass(frozen=True)
class Question:
    text: str
    figure: str  # that answers it; "" if none follows
    axes: curve.Axes | None  # of what is to be drawn
    answer: list[str]


def questions(slug: str, build: Path) -> list[Question]:
    text = Path(f"chapters/{slug}.md").read_text(encoding="utf-8")
    chapter = Chapter(text, build)
    found = []
    for box in BOX.finditer(text):
        figure = FIGURE.match(text[box.end() :].lstrip())  # the next thing, or none
        axes, name = curve.asked(box[1], build), figure[1] if figure else ""
        found.append(Question(plain(box[2]), name, axes, chapter.answer(box.end())))
    return found


def _say(text: str) -> None:
    print("\n".join(textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="  ")))


def predict(settings: dict[str, str]) -> int:
    build = Path(settings.get("BUILD") or "build")
    if word := settings.get("CH", ""):
        slug = chosen(word, slugs(), "CH")
    else:
        here = path.here(build)
        later = chapters()[chapters().index(here) :]
        slug = next(each.slug for each in later if each.predictions)
        none = "" if slug == here.slug else f"{here.slug} asks for none; the next that does: "
        print(f"{none}{slug} (another: make predict CH=09)")
    asked = questions(slug, build)
    if not asked:
        some = ", ".join(each.slug for each in chapters() if each.predictions)
        raise Wrong(f"CH={slug}: it asks for no prediction; these do: {some}")
    guesses = state.read()["guesses"].get(slug, {})
    drawings = 0
    for number, question in enumerate(asked, 1):
        axes = question.axes
        print(f"\n{number} of {len(asked)}")
        _say(question.text)
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
            guesses[str(number)] = {"text": text}
            state.keep_guess(slug, str(number), guesses[str(number)])
            if drawn:
                guesses[f"drawn-{drawings}"] = {"y": drawn}  # the page shows it, too (make read)
                state.keep_guess(slug, f"drawn-{drawings}", {"y": drawn})
        if axes and (y := guesses.get(f"drawn-{drawings}", {}).get("y")) and text:
            curve.show(axes, y, state.place().parent / f"guess-{slug}-{drawings + 1}.svg")
        drawings += axes is not None
        if text or old:
            page = build / "book" / f"{slug}.html"
            shown = page if page.exists() else f"chapters/{slug}.md"
            _say("The book answers:" if question.answer else f"The answer follows it in {shown}")
            for paragraph in question.answer:
                _say(paragraph)
            if question.figure:
                print(f"  figure: {build}/figures/{question.figure}.svg (make figures)")
    left = sum(str(number) not in guesses for number in range(1, len(asked) + 1))
    if not left:
        state.note("predict", slug)
    else:
        print(f"\nleft open: {left} of {len(asked)}; make predict CH={slug} asks again")
    sys.stdout.flush()
    return 0
