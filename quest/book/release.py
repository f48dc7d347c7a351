"""`make release`: packs what release.mk has built into one archive, whole or not at all.

    python3 -m quest.book.release BUILD OUT VERSION SECONDS

OUT/quest-VERSION.zip of what is in BUILD. Runs in the root of the tree. SECONDS since 1970 are the
date of each file in it: but for the PDFs, the same sources give the same bytes. Status 2 and a line
for each reason on stderr when there is no archive.
"""

import hashlib
import io
import posixpath
import re
import string
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from quest.book.tracks import Track, read_tracks
from quest.ground.entry import run_main
from quest.ground.errors import InputError
from quest.ground.files import write_whole, zipped

HERE = Path(__file__).resolve().parents[2] / "chapters/pandoc"
REFERENCE = Path("benchmarks/results/reference")
# A link from a page to a file of the tree, as references.lua writes it: text, in a release.
TO_THE_TREE = re.compile(rb'<a\s[^>]*href="\.\./\.\./[^>]*>(.*?)</a>', re.DOTALL)
LINK = re.compile(r'<(\w+)\b[^>]*?\s(?:href|src|data-src)="([^"]*)"|url\(\s*["\']?(?!data:)([^"\')]+)')
SCRIPT = re.compile(r"(<script\b[^>]*>).*?</script>", re.DOTALL)  # has strings like links in it
# What no edition may print: a number, a figure or a sentence that says "not measured yet".
HOLE = re.compile(r'class="num none" title="([\w.@-]+)|class="not-drawn">\s*([^<\n]*)|(not measured yet)')
EDITION = re.compile(r"v?\d+(\.\d+)*")  # a tag, and nothing behind it
NOT_MEASURED = re.compile(r'class="num none"|verdict-not-measured-here|class="not-drawn"')
ROW = string.Template(
    "<tr><th>$title</th><td>$minutes min</td>"
    '<td><a href="slides/deck-$name.html">slides</a></td>'
    '<td><a href="pdf/deck-$name.pdf">PDF</a></td>'
    '<td><a href="pdf/deck-$name-notes.pdf">PDF with notes</a></td></tr>'
)

Files = dict[str, bytes]


def collected(build: Path) -> Files:
    """The book, the decks, the PDFs, the data and the licence, under their names in the archive."""
    paths = [path for pattern in ("book/**/*", "slides/*", "pdf/*") for path in build.glob(pattern)]
    files = {p.relative_to(build).as_posix(): p.read_bytes() for p in paths if p.is_file()}
    for name in files:
        if name.startswith("book/") and name.endswith(".html"):
            files[name] = TO_THE_TREE.sub(rb"\1", files[name])
    files |= {f"results/{path.name}": path.read_bytes() for path in REFERENCE.glob("*.jsonl")}
    return files | {"LICENSE": Path("LICENSE").read_bytes()}


def strays(files: Files) -> Iterator[str]:
    """What a page is shown with, and what the front page leads to, must be in the release; a link
    may lead to the network. The place of this tree has no business in it."""
    for page in sorted(name for name in files if name.endswith((".html", ".css"))):
        for tag, link, of_style in LINK.findall(SCRIPT.sub(r"\1", files[page].decode())):
            parts = urlsplit(link or of_style)
            known = parts.scheme in ("http", "https", "mailto", "data")
            if known and (tag == "a" or not parts.netloc):
                continue
            folder = posixpath.dirname(page)
            target = posixpath.normpath(posixpath.join(folder, unquote(parts.path)))
            if parts.scheme or parts.netloc or (parts.path and target not in files):
                yield f"{page}: {link or of_style} is not in the release"
    notice = files.get("slides/NOTICE.txt", b"")
    for deck in sorted(name for name in files if re.fullmatch(r"slides/deck.*\.html", name)):
        if not notice or notice not in files[deck]:
            yield f"{deck}: lacks the licences of what it contains, slides/NOTICE.txt"
    place = str(Path.cwd().resolve()).encode()
    placed = sorted(name for name in files if place in files[name])
    yield from (f"{name}: contains the path of the tree" for name in placed)


def texts(files: Files) -> Iterator[tuple[str, str]]:
    """Name and text of each page, also of those in the EPUB."""
    for name in sorted(name for name in files if name.endswith(".html")):
        yield name, files[name].decode()
    with zipfile.ZipFile(io.BytesIO(files["book/book.epub"])) as book:
        for name in book.namelist():
            if name.endswith(".xhtml"):
                yield f"book/book.epub: {name}", book.read(name).decode()


def holes(files: Files) -> Iterator[str]:
    """A line for each place of the pages and of the EPUB that says that something is not measured."""
    for name, text in texts(files):
        for found in HOLE.finditer(SCRIPT.sub(r"\1", text)):
            yield f"{name}: not measured: {(found[1] or found[2] or found[3]).strip()}"


def dated(epub: bytes, seconds: int) -> bytes:
    """pandoc 2.17 heeds SOURCE_DATE_EPOCH in the text, but not in the zip around it."""
    with zipfile.ZipFile(io.BytesIO(epub)) as book:
        return zipped([(name, book.read(name)) for name in book.namelist()], seconds)


def front_page(files: Files, version: str, tracks: list[Track]) -> bytes:
    """The page that leads to everything."""
    about = dict(re.findall(r"(?m)^(\w+): (.*)$", (HERE / "book.yaml").read_text("utf-8")))
    rows = (ROW.substitute(name=track.name, title=track.title, minutes=f"{track.limit:g}") for track in tracks)
    alone = {"html": "book/book.html", "epub": "book/book.epub", "pdf": "pdf/book.pdf"}
    sizes = {key: len(files.get(name, b"")) / 1e6 for key, name in alone.items()}
    page = string.Template((HERE / "release.html").read_text("utf-8")).substitute(
        about,
        version=version,
        tracks="\n".join(rows),
        experiments=sum(name.startswith("results/") for name in files),
        **{f"size_{key}": f"{max(size, 0.1):.1f} MB" for key, size in sizes.items()},
    )
    return page.encode()


def pack(build: Path, out: Path, version: str, seconds: int) -> Path:
    """The archive, of what release.mk has built; `seconds` since 1970 are its date. InputError, a line for each
    reason: there is none. An edition (VERSION is a tag) has no hole; before that each page with one is warned of.
    """
    files = collected(build)
    files["index.html"] = front_page(files, version, read_tracks())
    problems = [*strays(files), *(holes(files) if EDITION.fullmatch(version) else [])]
    if problems:
        raise InputError("\n".join(f"release: not made: {line}" for line in problems))
    files["book/book.epub"] = dated(files["book/book.epub"], seconds)
    name = f"quest-{version}"
    data = zipped([(f"{name}/{path}", files[path]) for path in sorted(files)], seconds)
    write_whole(out / f"{name}.zip", data)
    for path in (path for path in files if path.endswith(".html")):
        if gaps := len(NOT_MEASURED.findall(files[path].decode())):
            print(f"warning: {path}: {gaps} numbers or figures were not measured")
    print(f"{out / name}.zip\n  {len(data) / 1e6:.1f} MB, {len(files)} files")
    print(f"  SHA-256 {hashlib.sha256(data).hexdigest()}")
    return out / f"{name}.zip"


def main(arguments: list[str]) -> int:
    """BUILD OUT VERSION SECONDS"""
    if len(arguments) != 4 or not arguments[3].isdecimal():
        raise InputError("release: BUILD OUT VERSION SECONDS")
    build, out, version, seconds = arguments
    pack(Path(build), Path(out), version, int(seconds))
    return 0


if __name__ == "__main__":
    run_main(main)
