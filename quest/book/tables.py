"""Writes what the Lua filters look up as a table of Lua, which they load without a parser:

    python3 -m quest.book.tables data DATA.json OUTPUT       what the exporter has left
    python3 -m quest.book.tables labels OUTPUT OUTLINE...    what the chapters offer for reference

A row of the labels has a kind (page, section, figure, listing), a label (ch:02-fork, fig:x; not
every section), a number (2, 2.1; not every page), a slug (02-fork), the id of its HTML element, the
text of a title, a summary; that of a page also its role (server, interlude, part, ...) and the page of
its part.

Labels are written only if they differ, so that a change of prose makes no other page again. Faults
are one line each, with status 2.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from quest.book.outline import Block, Outline, read_outline
from quest.book.parts import read_parts
from quest.ground.entry import run_main
from quest.ground.errors import InputError
from quest.ground.files import write_if_other, write_whole

KINDS = {"fig": "figure", "lst": "listing", "diff": "listing", "sec": "section"}
EXPECTED = {"figure": "fig", "listing": "lst", "section": "sec"}
HIDDEN = {"when": "a .when block", "answer": "an answer"}
#: Of the blocks of an outline, what they are called where they are referred to.
REFERRED = {"heading": "section", "fence": "listing", "image": "figure"}


@dataclass(frozen=True)
class Row:
    """What can be referred to, or stands in the contents."""

    kind: str
    label: str | None
    slug: str
    number: str | None = None
    id: str | None = None
    text: str | None = None
    summary: str | None = None
    role: str | None = None
    part: str | None = None


def lua(value: Any) -> str:  # whatever JSON can hold
    """The value as an expression of Lua; null is left out of objects."""
    if isinstance(value, dict):
        items = (f"[{lua(key)}]={lua(item)}" for key, item in value.items() if item is not None)
        return "{" + ",\n".join(items) + "}"
    if isinstance(value, list):
        return "{" + ",\n".join(map(lua, value)) + "}"
    if isinstance(value, str):
        escaped = re.sub(r'[\x00-\x1f"\\]', lambda match: f"\\{ord(match[0]):03d}", value)
        return f'"{escaped}"'
    if value is None:
        return "nil"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def write_data(source: Path, output: Path) -> None:
    """A file of JSON as a table of Lua."""
    try:
        value = json.loads(source.read_text(encoding="utf-8"))
    except FileNotFoundError:
        what = "not there; results are exported to it before the book is made"
        raise InputError(f"{source}: {what}") from None
    except json.JSONDecodeError as error:
        raise InputError(f"{source}:{error.lineno}: not JSON: {error.msg}") from None
    output.parent.mkdir(parents=True, exist_ok=True)
    write_whole(output, f"return {lua(value)}\n")  # also if nothing has changed: make goes by its date


def number_of(slug: str) -> str | None:
    """05b-nonblocking -> 5b, appendix-a-figures -> A; None for a page without a number."""
    parts = re.match(r"0*(\d+)([a-z]?)-|appendix-([a-z])-", slug)
    return (parts[3].upper() if parts[3] else parts[1] + parts[2]) if parts else None


def label_fault(block: Block, kind: str, label: str) -> str:
    """What is wrong with the label of a block, or with its lack; "" if nothing is."""
    if block.level == 1:
        return 'a heading "#" in a chapter; the title stands in the metadata'
    if kind == "figure" and not label:
        return "a figure without label; write {#fig:name}"
    prefix, _, name = label.partition(":")
    if label and (KINDS.get(prefix) != kind or not re.fullmatch(r"[A-Za-z0-9-]+", name)):
        return f'label {label} on a {kind}; expected {EXPECTED[kind]}:name, with a-z, 0-9 and "-"'
    return ""


def rows_of(chapter: Outline, part: str, faults: list[str]) -> Iterator[Row]:
    """The rows of one chapter of this part; what is wrong with its labels is added to the faults."""
    number, metadata = number_of(chapter.slug), chapter.metadata
    if not metadata.get("title"):
        faults.append(f"{chapter.source}: no title in the metadata")
    summary = metadata.get("summary") or None
    page = f"ch:{chapter.slug}"
    yield Row(
        "page", page, chapter.slug, number,
        text=metadata.get("title"), summary=summary, role=metadata.get("kind") or None, part=part or None,
    )  # fmt: skip
    counts = {"figure": 0, "listing": 0}
    for block in chapter.blocks:
        kind = REFERRED.get(block.kind)
        # An image inside a paragraph is no figure.
        if not kind or (kind == "figure" and "figure" not in block.classes):
            continue
        is_label = re.match(r"[a-z]+:", block.id) is not None
        place = f"{chapter.source}:{block.line}"
        if hidden := next((name for name in block.inside if name in HIDDEN), ""):
            if is_label:
                faults.append(f"{place}: label {block.id} inside {HIDDEN[hidden]}")
            continue
        label = block.id if is_label or kind != "section" else ""
        if fault := label_fault(block, kind, label):
            faults.append(f"{place}: {fault}")
        count = None
        if kind in counts and label:
            counts[kind] += 1
            count = ".".join(filter(None, (number, str(counts[kind]))))
        if label or block.level == 2:
            text = block.text if kind == "section" else None
            id = block.id.replace(":", "-")
            yield Row(kind, label or None, chapter.slug, count, id=id, text=text)


def write_labels(output: Path, outlines: list[Path]) -> None:
    """The labels of the chapters, in this order."""
    faults: list[str] = []
    parts, chapters = read_parts(), map(read_outline, outlines)
    rows = [row for one in chapters for row in rows_of(one, parts.part_of(one.slug), faults)]
    first_rows: dict[str, Row] = {}
    for row in rows:
        if row.label and (first := first_rows.setdefault(row.label, row)) is not row:
            what = f"label {row.label} is doubled, first in chapters/{first.slug}.md"
            faults.append(f"chapters/{row.slug}.md: {what}")
    if faults:
        raise InputError("\n".join(faults))
    write_if_other(output, f"return {lua(list(map(asdict, rows)))}\n")


def main(arguments: list[str]) -> int:
    """data DATA.json OUTPUT, or labels OUTPUT OUTLINE..."""
    what, *names = arguments
    paths = list(map(Path, names))
    if what == "data":
        write_data(*paths)
    else:
        write_labels(paths[0], paths[1:])
    return 0


if __name__ == "__main__":
    run_main(main)
