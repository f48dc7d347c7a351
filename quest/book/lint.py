"""Checks chapters and slides for what the build itself cannot see.

    python3 -m quest.book.lint OUTLINE...

The chapter template, exercises with answers, slides with minutes, tracks and notes, the map of the
talk, regions and figures that nothing shows, what the reader's path knows of the chapters, the question
bank (questions.py), and habits of style (style.py).
Prints one line for each fault, `file:line: what`; status 1 if there is any. The rules are explained
to authors in chapters/pandoc/README.md.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Annotated

from quest.book import calls, contents, parts, questions, sources, style_table, tracks
from quest.book.outline import Block, Outline, read_outlines, regions_of
from quest.ground.entry import run_main
from quest.ground.toml import Doc, Rule, load

ROLES = [
    "question", "run", "code", "diff", "timeline", "measurement", "breaks", "then-now", "exercises",
    "recap",
]  # fmt: skip
EXEMPT = {
    "server": set[str](),
    "client": {"diff", "timeline", "measurement"},
    "interlude": {"code", "diff", "timeline", "breaks"},
    "essay": set(ROLES) - {"question", "recap"},
    "part": set(ROLES),
    "appendix": set(ROLES),
    "front": set(ROLES),
}
WORDS = (1500, 3000)
LEAST_OF_AN_ESSAY = 800
FILE_WITH_SIZE = re.compile(r"\| `(code/[\w./-]+)` \|.* (\d+) lines")
NOT_PROSE = {"answer", "box", "machine", "when"}  # of .when blocks the reader sees one

Problems = Iterator[str]  # file:line: what


def lacks(role: str, body: list[Block]) -> str:
    """What a section of this role must hold and does not; "" if it is there."""
    images = [block.text for block in body if block.kind == "image"]
    fences = [block for block in body if block.kind == "fence"]
    expects = [block for block in body if block.kind == "div" and "expect" in block.classes]
    holds = {
        "run": (expects, "an ::: expect block"),
        "code": ([one for one in fences if "include" in one.values], "a listing by include="),
        "diff": ([one for one in fences if "diff" in one.classes], "a .diff block"),
        "timeline": (
            [name for name in images if name.startswith(("timeline-", "player-"))],
            "a player, or a figure timeline-*.svg",
        ),
        "measurement": (images, "a figure"),
    }
    has, what = holds.get(role, (["nothing is asked"], ""))
    return "" if has else what


def check_template(chapter: Outline) -> Problems:
    """Metadata, and the sections that a chapter of this kind has, in their order."""
    kind, known = chapter.metadata.get("kind", ""), ", ".join(EXEMPT)
    if kind not in EXEMPT:
        yield f'{chapter.source}:1: kind: "{kind}" in the metadata; one of {known}'
        return
    if not chapter.metadata.get("summary"):
        yield f"{chapter.source}:1: no summary in the metadata"
    roles: list[str] = []
    for heading, body in chapter.sections():
        place = f"{chapter.source}:{heading.line}: section"
        for role in (role for role in heading.classes if role in ROLES):
            if roles and ROLES.index(role) < ROLES.index(roles[-1]):
                yield f"{place} .{role} stands after .{roles[-1]}"
            roles.append(role)
            if what := lacks(role, body):
                yield f"{place} .{role} has not {what}"
            points = sum(block.kind == "item" for block in body)
            if role == "recap" and not 1 <= points <= 5:
                yield f"{place} .recap has {points} points; one to five"
    for role in ROLES:
        count = roles.count(role)
        if role not in EXEMPT[kind] and count != 1:
            what = f"{count} sections of class .{role}; a chapter of kind {kind} has one"
            yield f"{chapter.source}:1: {what}"


def check_exercises(chapter: Outline) -> Problems:
    """Enough of them, each followed by its answer."""
    roles = {"exercise", "answer"}
    blocks = [b for b in chapter.blocks if b.kind == "div" and roles & set(b.classes)]
    exercises = chapter.divs("exercise")
    for block, after in zip_longest(blocks, blocks[1:]):
        if block in exercises and (after is None or after in exercises):
            yield f"{chapter.source}:{block.line}: an exercise without its answer"
    if chapter.metadata.get("kind") in ("server", "client", "interlude") and len(exercises) < 2:
        yield f"{chapter.source}:1: {len(exercises)} exercises; two or more"


def check_length(chapter: Outline) -> Problems:
    """Words of a chapter, without code, answers, boxes and .when blocks."""
    prose = [b.text for b in chapter.blocks if b.kind == "text" and not NOT_PROSE & set(b.inside)]
    count = len(re.findall(r"\w[\w’'-]*", " ".join(prose)))
    least = LEAST_OF_AN_ESSAY if chapter.metadata.get("kind") == "essay" else WORDS[0]
    if chapter.is_chapter and not least <= count <= WORDS[1]:
        yield f"{chapter.source}:1: {count} words; a chapter of its kind has {least} to {WORDS[1]}"


def check_sizes(chapter: Outline) -> Problems:
    """How many lines a file has that a table names. In tens: that stays true after a change of a few lines."""
    for line, text in enumerate(Path(chapter.source).read_text(encoding="utf-8").splitlines(), 1):
        if (row := FILE_WITH_SIZE.match(text)) and (path := Path(row[1])).is_file():
            has = len(path.read_bytes().splitlines())
            if abs(int(row[2]) - has) > 7:
                yield f"{chapter.source}:{line}: {path} has {has} lines, not {row[2]}: write {(has + 5) // 10 * 10}"


def check_language(outline: Outline) -> Problems:
    """Words that are not to be used."""
    for block in outline.blocks:
        prose = re.sub(r"`[^`]*`", "", block.text) if block.kind in ("text", "heading") else ""
        if re.search(r"\bsimply\b", prose, re.I):
            yield f'{outline.source}:{block.line}: the word "simply"'


#: What notes say where something is shown later than the slide.
COVERS = re.compile(r"\b(cover it|then show|ask before|before you show|uncover)\b", re.I)


def is_shown_later(block: Block) -> bool:
    """Whether a part of the slide appears by a step of its own."""
    by_class = {"fragment", "incremental"} & {*block.classes, *block.inside}
    is_plot = block.kind == "image" and block.text.startswith(("stage-", "player-", "wall-", "machine-"))
    return bool(by_class or is_plot or "steps" in block.values)


def check_slides(outlines: list[Outline], in_tracks: set[str]) -> Problems:
    """`in_tracks`: the ids, and the files, that a track has."""
    first_places: dict[str, str] = {}
    for outline in outlines:
        for heading, body in outline.sections():
            place = f"{outline.source}:{heading.line}"
            slide = f'{place}: slide "{heading.text}"'
            if not heading.id:
                yield f"{slide} has no id"
            elif (first := first_places.setdefault(heading.id, place)) != place:
                yield f'{place}: slide id "{heading.id}" is doubled, first in {first}'
            if not re.fullmatch(r"\d+(\.\d+)?", heading.values.get("minutes", "")):
                yield f"{slide} has no minutes"
            if not in_tracks & {heading.id, outline.source.name}:
                yield f"{slide} is in no track of slides/tracks.toml"
            notes = [block.text for block in body if "notes" in block.inside]
            if not any(text.strip() for text in notes):
                yield f"{slide} has no notes"
            covers = COVERS.search(" ".join(notes))
            if covers and not any(map(is_shown_later, body)) and "demo" not in heading.values:
                remedy = "a fragment, steps, or a plot of figures/stage.tsv"
                yield f'{slide}: notes say "{covers[0]}", and nothing is covered: {remedy}'


@dataclass(frozen=True)
class Section:
    """A section of the talk of 2003."""

    number: Annotated[int, Doc("from 1 on, without a gap")]
    title: Annotated[str, Rule(filled=True), Doc("in English")]
    source: Annotated[str, Rule(filled=True), Doc("the heading, or the figure, in the source")]
    chapter: Annotated[str, Doc("that tells it again")]
    slide: Annotated[str, Doc("that shows it")]


@dataclass(frozen=True)
class TalkMap:
    """slides/talk-map.toml"""

    count: Annotated[int, Doc("how many the talk has", key="sections")]
    sections: Annotated[tuple[Section, ...], Doc("in the order of the talk", key="section")]


def check_talk_map(path: Path, chapters: set[str], slides: set[str]) -> Problems:
    """Every section of the talk has a chapter and a slide."""
    talk, text = load(TalkMap, path), path.read_text(encoding="utf-8").splitlines()
    lines = [number for number, line in enumerate(text, 1) if line.strip() == "[[section]]"]
    if len(lines) != len(talk.sections):  # TOML has other ways to write them
        lines = [1] * len(talk.sections)
    for expected, (section, line) in enumerate(zip(talk.sections, lines, strict=True), 1):
        for what, is_wrong in {
            f"number {section.number}; expected {expected}": section.number != expected,
            f'{expected}: unknown chapter "{section.chapter}"': section.chapter not in chapters,
            f'{expected}: no slide has the id "{section.slide}"': section.slide not in slides,
        }.items():
            if is_wrong:
                yield f"{path}:{line}: section {what}"
    if len(talk.sections) != talk.count:
        yield f"{path}:1: {len(talk.sections)} sections; the talk has {talk.count}"


def check_regions(outlines: list[Outline]) -> Problems:
    """A region that nothing shows is dead weight in the source, or a listing that was forgotten."""
    shown: set[tuple[str, str]] = set()
    for outline in outlines:
        for values in (block.values for block in outline.blocks if block.kind == "fence"):
            parts = " ".join(values.get(key, "") for key in ("region", "steps", "mark"))
            shown.update((values.get("include", ""), name) for name in re.split(r"[\s|]+", parts))
    for path in sorted([*Path("code").rglob("*"), *Path("benchmarks").rglob("*")]):
        if path.suffix in (".c", ".h", ".py", ".toml", ".mk", ".sh") and path.is_file():
            for name, line in regions_of(path).items():
                if (str(path), name) not in shown:
                    yield f'{path}:{line}: region "{name}" is shown by no chapter and no slide'


def check_figures(outlines: list[Outline]) -> Problems:
    """Likewise a figure. Parts of scripts name no experiment; readme.svg is README's."""
    images = (block.text for one in outlines for block in one.blocks if block.kind == "image")
    shown = {"readme.svg", *images}
    for path in sorted([*Path("figures").glob("*.*"), *Path("figures/diagrams").glob("*.svg")]):
        text, names = path.read_text(encoding="utf-8"), [path.stem]
        if path.suffix == ".tsv":
            prefix = "stage-" if path.stem == "stage" else ""
            names = [prefix + name for name in re.findall(r"^([a-z0-9][a-z0-9-]*)\t", text, re.M)]
        elif path.suffix != ".svg" and not re.search(r'^experiment = "', text, re.M):
            continue
        for name in names:
            if f"{name}.svg" not in shown:
                yield f'{path}:1: figure "{name}" is shown by no chapter and no slide'


def faults(chapters: list[Outline], slides: list[Outline]) -> Problems:
    """What is wrong in the tree in the current folder, whose outlines these are."""
    in_tracks = {name for track in tracks.read_tracks() for name in track.named()}
    ids = {heading.id for outline in slides for heading, _ in outline.sections()}
    for chapter in chapters:
        for check in (check_template, check_exercises, check_length, check_sizes):
            yield from check(chapter)
    for outline in chapters + slides:
        yield from check_language(outline)
    yield from check_slides(slides, in_tracks)
    yield from check_talk_map(Path("slides/talk-map.toml"), {one.slug for one in chapters}, ids)
    yield from check_regions(chapters + slides)
    yield from check_figures(chapters + slides)
    yield from parts.faults([one.slug for one in chapters])
    yield from contents.faults(chapters)
    yield from questions.faults(chapters)
    yield from calls.faults(chapters)
    yield from sources.faults(chapters)
    yield from style_table.faults(chapters + slides)


def main(arguments: list[str]) -> int:
    """The outlines of all chapters and slides; 1 if something is wrong."""
    problems = list(faults(*read_outlines(arguments)))
    print("\n".join(problems) or "  lint-book: chapters, slides and the map of the talk are in order")
    return 1 if problems else 0


if __name__ == "__main__":
    run_main(main)
