"""Checks chapters and slides for what the build itself cannot see: `lint.py [ROOT]`.

The chapter template, exercises with answers, blocks that cover every verdict, slides with minutes,
tracks and notes, the map of the talk, and regions of the sources that nothing shows. Prints one
line for each fault, `file:line: what`, and ends with 1 if there is any. The rules are explained to
authors in README.md here.
"""

import re
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "slides"))
import tracks
from source import Block, Source, parse_attributes, read_toml, regions_of

ROLES = [
    "question",
    "run",
    "code",
    "diff",
    "timeline",
    "measurement",
    "breaks",
    "then-now",
    "exercises",
    "recap",
]
EXEMPT = {
    "server": set[str](),
    "client": {"diff", "timeline", "measurement"},
    "interlude": {"code", "diff", "timeline", "breaks"},
    "appendix": set(ROLES),
    "front": set(ROLES),
}
WORDS = (1500, 3000)
VERDICTS = {"holds", "changed", "reversed", "no difference seen", "not judged", "not measured here"}
WHEN = re.compile(r"\{([^{}]*\.when\b[^{}]*)\}")
NOT_PROSE = {"answer", "box", "when"}  # of .when blocks the reader sees one

Problems = Iterator[tuple[str, int, str]]  # file, line, what


def has(body: list[Block], kind: str, test: str = "") -> bool:
    """Whether a section holds a block of this kind whose text or class matches."""
    return any(
        block.kind == kind
        and (re.search(test, block.text) is not None or test in block.attributes.classes)
        for block in body
    )


def role_content(role: str, body: list[Block]) -> str:
    """What a section of this role lacks, or nothing."""
    needs = {
        "run": (has(body, "div", "expect"), "an ::: expect block"),
        "code": (has(body, "fence", "include="), "a listing by include="),
        "diff": (has(body, "fence", "diff"), "a .diff block"),
        "timeline": (has(body, "image", r"^timeline-"), "a figure timeline-*.svg"),
        "measurement": (has(body, "image"), "a figure"),
    }
    fine, what = needs.get(role, (True, ""))
    return "" if fine else what


def check_template(chapter: Source) -> Problems:
    name, kind = str(chapter.path), chapter.metadata.get("kind", "")
    if kind not in EXEMPT:
        yield name, 1, f'kind: "{kind}" in the metadata; one of {", ".join(EXEMPT)}'
        return
    if not chapter.metadata.get("summary"):
        yield name, 1, "no summary in the metadata"
    expected = [role for role in ROLES if role not in EXEMPT[kind]]
    found: list[str] = []
    for heading, body in chapter.sections(2):
        for role in (role for role in heading.attributes.classes if role in ROLES):
            if found and ROLES.index(role) < ROLES.index(found[-1]):
                yield name, heading.line, f"section .{role} stands after .{found[-1]}"
            found.append(role)
            lacks = role_content(role, body)
            if lacks:
                yield name, heading.line, f"section .{role} has not {lacks}"
    for role in expected:
        if found.count(role) != 1:
            yield (
                name,
                1,
                f"{found.count(role)} sections of class .{role}; a chapter of kind {kind} has one",
            )


def check_recap(chapter: Source) -> Problems:
    for heading, body in chapter.sections(2):
        points = [block for block in body if re.match(r"^([-*]|\d+[.)]) ", block.text)]
        if "recap" in heading.attributes.classes and not 1 <= len(points) <= 5:
            yield str(chapter.path), heading.line, f"a recap of {len(points)} points; one to five"


def check_exercises(chapter: Source) -> Problems:
    name = str(chapter.path)
    blocks = [
        b
        for b in chapter.blocks
        if b.kind == "div" and {"exercise", "answer"} & set(b.attributes.classes)
    ]
    exercises = [block for block in blocks if "exercise" in block.attributes.classes]
    for block, after in zip_longest(blocks, blocks[1:]):
        if block in exercises and (after is None or after in exercises):
            yield name, block.line, "an exercise without its answer"
    if chapter.metadata.get("kind") in ("server", "client", "interlude") and len(exercises) < 2:
        yield name, 1, f"{len(exercises)} exercises; two or more"


def check_words(chapter: Source) -> Problems:
    if chapter.metadata.get("kind") in ("appendix", "front"):
        return
    prose = [b.text for b in chapter.blocks if b.kind == "text" and not NOT_PROSE & set(b.inside)]
    count = len(re.findall(r"\w[\w’'-]*", re.sub(r"\{[^{}]*\}", "", " ".join(prose))))
    if not WORDS[0] <= count <= WORDS[1]:
        yield str(chapter.path), 1, f"{count} words; a chapter has {WORDS[0]} to {WORDS[1]}"


def check_language(source: Source) -> Problems:
    for block in source.blocks:
        if block.kind in ("text", "heading") and re.search(
            r"\bsimply\b", re.sub(r"`[^`]*`", "", block.text), re.I
        ):
            yield str(source.path), block.line, 'the word "simply"'


def check_verdicts(source: Source) -> Problems:
    """The blocks on a claim cover all verdicts, for a reader's machine may give any of them."""
    named: dict[str, set[str]] = {}
    lines: dict[str, int] = {}
    for block in source.blocks:
        for match in WHEN.finditer(block.text):
            values = parse_attributes(match[1]).values
            claim = values.get("claim", "")
            named.setdefault(claim, set()).update(
                name.strip() for name in values.get("verdict", "").split(",")
            )
            lines.setdefault(claim, block.line)
    for claim, verdicts in named.items():
        missing = VERDICTS - verdicts
        if missing and "otherwise" not in verdicts:
            listed = ", ".join(sorted(missing))
            yield (
                str(source.path),
                lines[claim],
                f'claim {claim}: no .when for {listed} (or "otherwise")',
            )


#: What notes say where something is shown later than the slide.
COVERS = re.compile(r"\b(cover it|then show|ask before|before you show|uncover)\b", re.I)


def _uncovers(block: Block) -> bool:
    classes = [*block.attributes.classes, *block.inside]
    return (
        "steps" in block.attributes.values
        or bool({"fragment", "incremental"} & set(classes))
        or re.search(r"\{[^}]*\.fragment|\(stage-", block.text) is not None
    )


def check_slides(sources: list[Source], named: set[str]) -> Problems:
    """`named`: the ids, and the files, that a track has."""
    seen: dict[str, str] = {}
    for source in sources:
        for heading, body in source.sections(2):
            name, attributes = str(source.path), heading.attributes
            place = (name, heading.line)
            if not attributes.id:
                yield *place, f'slide "{heading.text}" has no id'
            elif attributes.id in seen:
                yield (
                    *place,
                    f'slide id "{attributes.id}" is doubled, first in {seen[attributes.id]}',
                )
            seen.setdefault(attributes.id, f"{name}:{heading.line}")
            if not re.fullmatch(r"\d+(\.\d+)?", attributes.values.get("minutes", "")):
                yield *place, f'slide "{heading.text}" has no minutes'
            if not named & {attributes.id, source.path.stem}:
                yield *place, f'slide "{heading.text}" is in no track of slides/tracks.toml'
            notes = [block for block in body if block.kind == "text" and "notes" in block.inside]
            if not any(block.text.strip() for block in notes):
                yield *place, f'slide "{heading.text}" has no notes'
            said = COVERS.search(" ".join(block.text for block in notes))
            if said and not any(map(_uncovers, body)) and "demo" not in attributes.values:
                text = f'slide "{heading.text}": notes say "{said[0]}", and nothing is covered'
                yield *place, f"{text}: a fragment, steps, or a plot of figures/stage.tsv"


def check_map(path: Path, chapters: set[str], slides: set[str]) -> Problems:
    """Every section of the talk has a chapter, and a slide once its chapter is written."""
    name, table = str(path), read_toml(path)
    text = path.read_text(encoding="utf-8")
    lines = [
        number
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() == "[[section]]"
    ]
    known = set(table.get("planned", [])) | chapters
    for expected, (line, section) in enumerate(
        zip(lines, table.get("section", []), strict=True), start=1
    ):
        chapter, slide = section.get("chapter", ""), section.get("slide", "")
        if section.get("number") != expected:
            yield name, line, f"section number {section.get('number')}; expected {expected}"
        if not section.get("title") or not section.get("source"):
            yield name, line, f"section {expected} has no title or no source"
        if chapter not in known:
            yield name, line, f'section {expected}: unknown chapter "{chapter}"'
        planned = section.get("status") == "planned"
        if planned and chapter in chapters:
            yield name, line, f"section {expected} is planned, but chapters/{chapter}.md is written"
        if not planned and chapter in known - chapters:
            yield (
                name,
                line,
                f'section {expected}: chapters/{chapter}.md is not there; status = "planned"?',
            )
        if not planned and slide not in slides:
            yield name, line, f'section {expected}: no slide has the id "{slide}"'
    if len(lines) != table.get("sections"):
        yield name, 1, f"{len(lines)} sections; the talk has {table.get('sections')}"


def check_regions(root: Path, sources: list[Source]) -> Problems:
    """A region nobody shows is dead weight in the source, or a listing somebody forgot."""
    used: set[tuple[str, str]] = set()
    for source in sources:
        for block in source.blocks:
            values = block.attributes.values
            if block.kind == "fence" and "include" in values:
                names = [
                    values.get("region", ""),
                    *re.split(r"[\s|]+", values.get("steps", "") + " " + values.get("mark", "")),
                ]
                used.update((values["include"], name) for name in names)
    for folder in ("code", "benchmarks"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".c", ".h", ".py", ".toml", ".mk", ".sh") and path.is_file():
                relative = str(path.relative_to(root))
                for name, line in regions_of(path).items():
                    if (relative, name) not in used:
                        yield relative, line, f'region "{name}" is shown by no chapter and no slide'


def problems_of(root: Path) -> list[str]:
    """All faults of a tree, one line each."""
    chapters = [Source(path) for path in sorted((root / "chapters").glob("*.md"))]
    slides = tracks.sources(root)
    told = tracks.read_tracks(root / "slides/tracks.toml")
    named = {word for track in told for word in track.named()}
    found: list[tuple[str, int, str]] = []
    for chapter in chapters:
        for check in (check_template, check_recap, check_exercises, check_words, check_verdicts):
            found += check(chapter)
    for source in chapters + slides:
        found += check_language(source)
    found += [problem for source in slides for problem in check_verdicts(source)]
    found += check_slides(slides, named)
    ids = {heading.attributes.id for source in slides for heading, _ in source.sections(2)}
    found += check_map(
        root / "slides/talk-map.toml", {chapter.path.stem for chapter in chapters}, ids
    )
    found += check_regions(root, chapters + slides)
    prefix = f"{root}/"
    return [f"{name.removeprefix(prefix)}:{line}: {what}" for name, line, what in found]


def main(arguments: list[str]) -> int:
    found = problems_of(Path(arguments[0] if arguments else "."))
    print(
        "\n".join(found)
        if found
        else "  lint-book: chapters, slides and the map of the talk are in order"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
