"""Checks chapters and slides for what the build itself cannot see.

The chapter template, exercises with answers, slides with minutes, tracks and notes, the map of the
talk, and regions and figures that nothing shows. Prints one line for each fault, `file:line: what`,
and ends with 1 if there is any. The rules are explained to authors in README.md here.
"""

import re
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from quest.book import tracks
from quest.book.source import Block, Source, read_toml, regions_of

ROLES = [
    "question", "run", "code", "diff", "timeline", "measurement", "breaks", "then-now", "exercises",
    "recap",
]  # fmt: skip
EXEMPT = {
    "server": set[str](),
    "client": {"diff", "timeline", "measurement"},
    "interlude": {"code", "diff", "timeline", "breaks"},
    "appendix": set(ROLES),
    "front": set(ROLES),
}
# What a section must hold: the kind of a block, what occurs in it, and how that is called.
HOLDS = {
    "run": ("div", "expect", "an ::: expect block"),
    "code": ("fence", "include=", "a listing by include="),
    "diff": ("fence", "diff", "a .diff block"),
    "timeline": ("image", "^timeline-", "a figure timeline-*.svg"),
    "measurement": ("image", "", "a figure"),
}
WORDS = (1500, 3000)
NOT_PROSE = {"answer", "box", "when"}  # of .when blocks the reader sees one

Problems = Iterator[str]  # file:line: what


def check_template(chapter: Source) -> Problems:
    kind, body_kinds = chapter.metadata.get("kind", ""), ", ".join(EXEMPT)
    if kind not in EXEMPT:
        yield f'{chapter.path}:1: kind: "{kind}" in the metadata; one of {body_kinds}'
        return
    if not chapter.metadata.get("summary"):
        yield f"{chapter.path}:1: no summary in the metadata"
    found: list[str] = []
    for heading, body in chapter.sections():
        place = f"{chapter.path}:{heading.line}: section"
        for role in (role for role in heading.classes if role in ROLES):
            if found and ROLES.index(role) < ROLES.index(found[-1]):
                yield f"{place} .{role} stands after .{found[-1]}"
            found.append(role)
            of, test, what = HOLDS.get(role, ("", "", ""))
            if of and not any(block.kind == of and re.search(test, block.text) for block in body):
                yield f"{place} .{role} has not {what}"
            points = sum(re.match(r"([-*]|\d+[.)]) ", block.text) is not None for block in body)
            if role == "recap" and not 1 <= points <= 5:
                yield f"{place} .recap has {points} points; one to five"
    for role in ROLES:
        count = found.count(role)
        if role not in EXEMPT[kind] and count != 1:
            what = f"{count} sections of class .{role}; a chapter of kind {kind} has one"
            yield f"{chapter.path}:1: {what}"


def check_exercises(chapter: Source) -> Problems:
    roles = {"exercise", "answer"}
    blocks = [b for b in chapter.blocks if b.kind == "div" and roles & set(b.classes)]
    exercises = [block for block in blocks if "exercise" in block.classes]
    for block, after in zip_longest(blocks, blocks[1:]):
        if block in exercises and (after is None or after in exercises):
            yield f"{chapter.path}:{block.line}: an exercise without its answer"
    if chapter.metadata.get("kind") in ("server", "client", "interlude") and len(exercises) < 2:
        yield f"{chapter.path}:1: {len(exercises)} exercises; two or more"


def check_words(chapter: Source) -> Problems:
    prose = [b.text for b in chapter.blocks if b.kind == "text" and not NOT_PROSE & set(b.inside)]
    count = len(re.findall(r"\w[\w’'-]*", re.sub(r"\{[^{}]*\}", "", " ".join(prose))))
    is_long = chapter.metadata.get("kind") not in ("appendix", "front")
    if is_long and not WORDS[0] <= count <= WORDS[1]:
        yield f"{chapter.path}:1: {count} words; a chapter has {WORDS[0]} to {WORDS[1]}"


def check_language(source: Source) -> Problems:
    for block in source.blocks:
        prose = re.sub(r"`[^`]*`", "", block.text) if block.kind in ("text", "heading") else ""
        if re.search(r"\bsimply\b", prose, re.I):
            yield f'{source.path}:{block.line}: the word "simply"'


#: What notes say where something is shown later than the slide.
COVERS = re.compile(r"\b(cover it|then show|ask before|before you show|uncover)\b", re.I)


def _uncovers(block: Block) -> bool:
    stepped = {"fragment", "incremental"} & {*block.classes, *block.inside}
    is_plot = re.search(r"\{[^}]*\.fragment|\(stage-", block.text)
    return bool(stepped or is_plot or "steps" in block.values)


def check_slides(sources: list[Source], named: set[str]) -> Problems:
    """`named`: the ids, and the files, that a track has."""
    seen: dict[str, str] = {}
    for source in sources:
        for heading, body in source.sections():
            place = f"{source.path}:{heading.line}"
            slide = f'{place}: slide "{heading.text}"'
            if not heading.id:
                yield f"{slide} has no id"
            elif (first := seen.setdefault(heading.id, place)) != place:
                yield f'{place}: slide id "{heading.id}" is doubled, first in {first}'
            if not re.fullmatch(r"\d+(\.\d+)?", heading.values.get("minutes", "")):
                yield f"{slide} has no minutes"
            if not named & {heading.id, source.path.stem}:
                yield f"{slide} is in no track of slides/tracks.toml"
            notes = [block for block in body if block.kind == "text" and "notes" in block.inside]
            if not any(block.text.strip() for block in notes):
                yield f"{slide} has no notes"
            said = COVERS.search(" ".join(block.text for block in notes))
            if said and not any(map(_uncovers, body)) and "demo" not in heading.values:
                remedy = "a fragment, steps, or a plot of figures/stage.tsv"
                yield f'{slide}: notes say "{said[0]}", and nothing is covered: {remedy}'


def check_map(path: Path, chapters: set[str], slides: set[str]) -> Problems:
    """Every section of the talk has a chapter and a slide."""
    table, text = read_toml(path), path.read_text(encoding="utf-8").splitlines()
    lines = [number for number, line in enumerate(text, 1) if line.strip() == "[[section]]"]
    for expected, line in enumerate(lines, 1):
        section = table["section"][expected - 1]
        number, chapter, slide = (section.get(key, "") for key in ("number", "chapter", "slide"))
        is_named = section.get("title") and section.get("source")
        for what, is_wrong in {
            f"number {number}; expected {expected}": number != expected,
            f"{expected} has no title or no source": not is_named,
            f'{expected}: unknown chapter "{chapter}"': chapter not in chapters,
            f'{expected}: no slide has the id "{slide}"': slide not in slides,
        }.items():  # fmt: skip
            if is_wrong:
                yield f"{path}:{line}: section {what}"
    if len(lines) != table.get("sections"):
        yield f"{path}:1: {len(lines)} sections; the talk has {table.get('sections')}"


def check_regions(sources: list[Source]) -> Problems:
    """A region nobody shows is dead weight in the source, or a listing somebody forgot."""
    used: set[tuple[str, str]] = set()
    for source in sources:
        for block in source.blocks:
            values = block.values
            if block.kind == "fence" and "include" in values:
                parts = " ".join(values.get(key, "") for key in ("region", "steps", "mark"))
                used.update((values["include"], name) for name in re.split(r"[\s|]+", parts))
    for path in sorted([*Path("code").rglob("*"), *Path("benchmarks").rglob("*")]):
        if path.suffix in (".c", ".h", ".py", ".toml", ".mk", ".sh") and path.is_file():
            for name, line in regions_of(path).items():
                if (str(path), name) not in used:
                    yield f'{path}:{line}: region "{name}" is shown by no chapter and no slide'


def check_figures(sources: list[Source]) -> Problems:
    """Likewise a figure. Parts of scripts name no experiment; readme.svg is README's."""
    images = (block.text for source in sources for block in source.blocks if block.kind == "image")
    shown = {"readme.svg", *images}
    for path in sorted(Path("figures").glob("*.*")):
        text, names = path.read_text(encoding="utf-8"), [path.stem]
        if path.suffix == ".tsv":
            prefix = "stage-" if path.stem == "stage" else ""
            names = [prefix + name for name in re.findall(r"^([a-z0-9][a-z0-9-]*)\t", text, re.M)]
        elif path.suffix not in (".dot", ".svg") and not re.search(r'^experiment = "', text, re.M):
            continue
        for name in names:
            if f"{name}.svg" not in shown:
                yield f'{path}:1: figure "{name}" is shown by no chapter and no slide'


def main() -> int:
    chapters = [Source(path) for path in sorted(Path("chapters").glob("*.md"))]
    slides = tracks.sources()
    named = {name for track in tracks.read_tracks() for name in track.named()}
    ids = {heading.id for source in slides for heading, _ in source.sections()}
    found: list[str] = []
    for chapter in chapters:
        for check in (check_template, check_exercises, check_words):
            found += check(chapter)
    for source in chapters + slides:
        found += check_language(source)
    found += check_slides(slides, named)
    found += check_map(Path("slides/talk-map.toml"), {one.path.stem for one in chapters}, ids)
    found += check_regions(chapters + slides)
    found += check_figures(chapters + slides)
    print("\n".join(found) or "  lint-book: chapters, slides and the map of the talk are in order")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
