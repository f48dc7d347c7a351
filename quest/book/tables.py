"""Writes what the Lua filters look up as a table of Lua, which they load without a parser:

    tables.py data DATA.json OUTPUT       what the exporter has left, null left out
    tables.py labels OUTPUT CHAPTER.json...     what the chapters offer for reference

CHAPTER.json is a chapter as pandoc reads it (build/weave/SLUG.ast). A row of the labels has a kind
(page, section, figure, listing), a label (ch:02-fork, fig:x; not every section), a number (2, 2.1;
not every page), a slug (02-fork), the id of its HTML element, the text of a title, a summary.

Labels are written only if they differ, so that a change of prose makes no other page again. Faults
are told one a line, with status 1.
"""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

KINDS = {"fig": "figure", "lst": "listing", "diff": "listing", "sec": "section"}
EXPECTED = {"figure": "fig", "listing": "lst", "section": "sec"}
HIDDEN = {"when": "a .when block", "answer": "an answer"}
Row = dict[str, str | None]


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


def write(path: Path, text: str) -> None:
    """The file appears whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def export(source: Path, output: Path) -> None:
    try:
        value = json.loads(source.read_text(encoding="utf-8"))
    except FileNotFoundError:
        sys.exit(f"{source}: not there; results are exported to it before the book is made")
    except json.JSONDecodeError as error:
        sys.exit(f"{source}:{error.lineno}: not JSON: {error.msg}")
    write(output, f"return {lua(value)}\n")


def text_of(node: Any) -> str:  # a node of pandoc's, or a list of them
    """The words of what pandoc has read, as its own stringify() gives them."""
    if isinstance(node, list):
        return "".join(map(text_of, node))
    if not isinstance(node, dict):
        return ""
    kind: str = node["t"]
    content: Any = node.get("c")
    if kind in ("Str", "MetaString"):
        return str(content)
    if kind in ("Code", "Math"):
        return str(content[1])
    if kind == "Quoted":
        quote = "‘{}’" if content[0]["t"] == "SingleQuote" else "“{}”"
        return quote.format(text_of(content[1]))
    return " " if kind in ("Space", "SoftBreak", "LineBreak") else text_of(content)


class Chapter:
    """One chapter: its rows, and what is wrong with its labels."""

    def __init__(self, path: Path) -> None:
        self.slug = path.stem
        self.source = f"chapters/{self.slug}.md"
        self.problems: list[str] = []
        self.rows: list[Row] = []
        self.counts = {"figure": 0, "listing": 0}
        tree = json.loads(path.read_text(encoding="utf-8"))
        parts = re.match(r"0*(\d+)([a-z]?)-|appendix-([a-z])-", self.slug)
        self.number = (parts[3].upper() if parts[3] else parts[1] + parts[2]) if parts else None
        title, summary = (text_of(tree["meta"].get(name)) for name in ("title", "summary"))
        if not title:
            self.problems.append(f"{self.source}: no title in the metadata")
        page = f"ch:{self.slug}"
        self.row("page", page, number=self.number, text=title, summary=summary or None)
        self.read(tree["blocks"], "")

    def row(self, kind: str, label: str, **more: str | None) -> None:
        self.rows.append({"kind": kind, "label": label or None, "slug": self.slug, **more})

    def fail(self, what: str, needle: str) -> None:
        """With the first line of the source that holds the needle: pandoc tells no positions."""
        lines = Path(self.source).read_text(encoding="utf-8").splitlines()
        place = next((f":{at}" for at, line in enumerate(lines, 1) if needle in line), "")
        self.problems.append(f"{self.source}{place}: {what}")

    def read(self, node: Any, hidden: str) -> None:  # a node of pandoc's, or a list of them
        """Takes up what is in it, in order; `hidden`: the class of HIDDEN that it stands in."""
        if isinstance(node, list):
            for each in node:
                self.read(each, hidden)
        if not isinstance(node, dict) or "t" not in node:
            return
        kind: str = node["t"]
        content: Any = node.get("c")  # of most begins with attributes: [id, classes, values]
        if kind == "Header":
            self.add("section", content[1][0], hidden, content[0], text_of(content[2]))
        elif kind == "CodeBlock":
            self.add("listing", content[0][0], hidden)
        elif kind == "Para" and [inline["t"] for inline in content] == ["Image"]:
            self.add("figure", content[0]["c"][0][0], hidden)
        elif kind == "Figure":  # pandoc 3
            image = content[2][0]["c"][0]["c"][0]
            self.add("figure", content[0][0] or image[0], hidden)
        elif kind == "Div":
            inside = next((name for name in HIDDEN if name in content[0][1]), "")
            self.read(content[1], hidden or inside)
        else:
            self.read(content, hidden)

    def add(
        self, kind: str, ident: str, hidden: str, level: int = 0, text: str | None = None
    ) -> None:
        if level == 1:
            what = 'a heading "#" in a chapter; the title stands in the metadata'
            self.fail(what, f"# {text}")
        is_label = re.match(r"[a-z]+:", ident) is not None
        if hidden:
            if is_label:
                self.fail(f"label {ident} inside {HIDDEN[hidden]}", ident)
            return
        label = ident if is_label or kind != "section" else ""
        if kind == "figure" and not label:
            self.fail("a figure without label; write {#fig:name}", "](")
        prefix, _, name = label.partition(":")
        if label and (KINDS.get(prefix) != kind or not re.fullmatch(r"[A-Za-z0-9-]+", name)):
            expected = f'{EXPECTED[kind]}:name, with a-z, 0-9 and "-"'
            self.fail(f"label {label} on a {kind}; expected {expected}", label)
        number = None
        if kind in self.counts and label:
            self.counts[kind] += 1
            number = ".".join(filter(None, (self.number, str(self.counts[kind]))))
        if label or level == 2:
            self.row(kind, label, number=number, id=ident.replace(":", "-"), text=text)


def join(output: Path, paths: list[Path]) -> None:
    chapters = [Chapter(path) for path in paths]
    rows = [row for chapter in chapters for row in chapter.rows]
    problems = [problem for chapter in chapters for problem in chapter.problems]
    first: dict[str, Row] = {}
    for row in rows:
        label = row["label"]
        if label and (other := first.setdefault(label, row)) is not row:
            there = f"first in chapters/{other['slug']}.md"
            problems.append(f"chapters/{row['slug']}.md: label {label} is doubled, {there}")
    if problems:
        sys.exit("\n".join(problems))
    text = f"return {lua(rows)}\n"
    if not output.exists() or output.read_text(encoding="utf-8") != text:
        write(output, text)


if __name__ == "__main__":
    files = [Path(name) for name in sys.argv[2:]]
    if sys.argv[1] == "data":
        export(*files)
    else:
        join(files[0], files[1:])
