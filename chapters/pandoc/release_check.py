"""What a release must not be: linked to what is not in it, or to the network for what a page needs
to be shown; marked by the machine that made it. And what it has to admit: what was not measured.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import getpass
import io
import posixpath
import re
import socket
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote, unquote, unquote_to_bytes, urlsplit

Files = Mapping[str, bytes]

LINKS = ("href", "src", "data-src")  # the last is what reveal.js shows once its slide comes
SHOWN_WITH = {"img", "script", "link", "iframe", "object", "source", "video", "audio"}
EXPERIMENT = re.compile(r"make bench ONLY=([\w-]+)")
CSS_LINK = re.compile(r"url\(\s*[\"']?(?!data:)([^\"')]+)")
STREAM = re.compile(rb"stream\r?\n(.*?)\r?\nendstream", re.DOTALL)
EMBEDDED = re.compile(rb"base64,([A-Za-z0-9+/]{8,}={0,2})")


class Page(HTMLParser):
    """The links of a page, and what it says was not measured."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[tuple[str, str]] = []
        self.gaps: list[tuple[str, str]] = []  # what is missing, as what
        self.reading = ""  # the tag of the gap whose text is being read
        self.kind = ""
        self.depth = 0
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.links += [(tag, given[name]) for name in LINKS if name in given]
        self.depth += tag == self.reading
        classes = given.get("class", "").split()
        if "num" in classes and "none" in classes:
            self.gap("number", given.get("title", ""))
        elif "verdict-not-measured-here" in classes:
            self.gap("verdict", given.get("title", ""))
        elif not self.reading and ("not-drawn" in classes or "why" in classes):
            self.kind = "figure" if "not-drawn" in classes else "row of a table"
            self.reading, self.depth, self.text = tag, 1, ""

    def handle_endtag(self, tag: str) -> None:
        self.depth -= tag == self.reading
        if self.reading and not self.depth:
            said = " ".join(self.text.split())
            # A table says why nothing stands beside a row; most reasons are no gap.
            if self.kind == "figure" or "not measured" in said:
                self.gap(self.kind, said)
            self.reading = ""

    def gap(self, kind: str, said: str) -> None:
        """An experiment that is missing has many gaps, and each names it."""
        experiment = EXPERIMENT.search(said)
        self.gaps.append((experiment[1] if experiment else said, kind))

    def handle_data(self, data: str) -> None:
        if self.reading:
            self.text += data


def pages(files: Files) -> Iterator[tuple[str, Page]]:
    for name in sorted(files):
        if name.endswith(".html"):
            yield name, Page(files[name].decode())


# ---- links


def broken(page: str, tag: str, link: str, files: Files) -> str:
    """What is wrong with a link, or nothing."""
    parts = urlsplit(link)
    if parts.scheme in ("http", "https", "mailto") or parts.netloc:
        return "needs the network" if tag in SHOWN_WITH else ""
    if parts.scheme == "data" or not parts.path:
        return ""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(page), unquote(parts.path)))
    return "" if not parts.scheme and target in files else "leads out of the release"


def broken_links(files: Files) -> list[str]:
    found = [(name, tag, link) for name, page in pages(files) for tag, link in page.links]
    for name in files:
        if name.endswith(".css"):
            found += [(name, "link", link) for link in CSS_LINK.findall(files[name].decode())]
    judged = [(name, link, broken(name, tag, link, files)) for name, tag, link in found]
    return [f"{name}: {link[:200]} {why}" for name, link, why in judged if why]


# ---- traces of the machine


def readable(name: str, data: bytes) -> Iterator[bytes]:
    """The bytes of a file, and those that are packed in them."""
    yield data
    if name.endswith(".epub"):
        with zipfile.ZipFile(io.BytesIO(data)) as book:
            for entry in book.namelist():
                yield from readable(entry, book.read(entry))
    elif name.endswith(".pdf"):
        for stream in STREAM.findall(data):
            with contextlib.suppress(zlib.error):
                yield zlib.decompress(stream)
    elif name.endswith((".html", ".xhtml")):
        yield unquote_to_bytes(data)
        for text in EMBEDDED.findall(data):
            with contextlib.suppress(binascii.Error):
                yield base64.b64decode(text)


def marks() -> dict[str, re.Pattern[bytes]]:
    """What gives this machine away: the tree's place, the home folder, its name, its user's."""
    found = {}
    places = {"the place of the tree": Path.cwd().resolve(), "the home folder": Path.home()}
    for what, path in places.items():
        if len(path.parts) > 1:
            spellings = {str(path), quote(str(path))}
            either = "|".join(re.escape(text) for text in sorted(spellings))
            found[what] = re.compile(rf"(?<![\w.-])(?:{either})(?![\w.-])".encode())
    with contextlib.suppress(KeyError, OSError):
        names = {"the user's name": getpass.getuser(), "the host's name": socket.gethostname()}
        # A name such as "vm" or "root" is an ordinary word.
        found |= {
            what: re.compile(rf"\b{re.escape(name)}\b".encode())
            for what, name in names.items()
            if len(name) > 3 and name != "root"
        }
    return found


def traces(files: Files, sources: Iterable[str]) -> list[str]:
    """Where the machine shows. What the sources say themselves is no trace: a book may well name
    /root, or a machine be called as one of its words.
    """
    own = [path for folder in sources for path in Path(folder).rglob("*")]
    texts = [path.read_bytes() for path in own if path.is_file()]
    known = {
        what: mark for what, mark in marks().items() if not any(mark.search(text) for text in texts)
    }
    return [
        f"{name}: has {what} in it"
        for name, data in sorted(files.items())
        for what, mark in known.items()
        if any(mark.search(piece) for piece in readable(name, data))
    ]


# ---- what was not measured


def counted(kinds: list[str]) -> str:
    """`3 numbers, 1 figure`"""
    plural = {"row of a table": "rows of tables"}
    each = Counter(kinds).most_common()
    return ", ".join(f"{n} {kind if n == 1 else plural.get(kind, kind + 's')}" for kind, n in each)


def not_measured(files: Files) -> list[str]:
    """A line for each experiment or reason; the one-file book, which repeats the pages, apart."""
    kinds: dict[str, list[str]] = {}
    places: dict[str, dict[str, None]] = {}
    for name, page in pages(files):
        for what, kind in page.gaps if name != "book/book.html" else []:
            kinds.setdefault(what, []).append(kind)
            places.setdefault(what, {})[name] = None
    return [f"{what}: {counted(kinds[what])} ({', '.join(places[what])})" for what in sorted(kinds)]
