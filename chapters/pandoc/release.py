"""`make release`: packs what release.mk has built into one archive, whole or not at all.

    release.py BUILD OUT VERSION SECONDS     OUT/quest-VERSION.zip of what is in BUILD

Runs in the root of the tree. SECONDS since 1970 are the date of all that is in it, so that the same
sources give the same bytes. Status 1 and a line for each reason on stderr when there is no archive:
something is missing, a link leads out of it, this machine shows in it. A zip, because every system
opens one with a double click.
"""

from __future__ import annotations

import hashlib
import io
import posixpath
import re
import string
import sys
import time
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent))
from source import read_toml

HERE = Path(__file__).resolve().parent
REFERENCE = Path("benchmarks/results/reference")
MEGABYTE = 1_000_000
# A link from a page to a file of the tree, as references.lua writes it: text, in a release.
TO_THE_TREE = re.compile(rb'<a\s[^>]*href="\.\./\.\./[^>]*>(.*?)</a>', re.DOTALL)
LINK = re.compile(
    r'<(\w+)\b[^>]*?\s(?:href|src|data-src)="([^"]*)"|url\(\s*["\']?(?!data:)([^"\')]+)'
)
SCRIPT = re.compile(r"(<script\b[^>]*>).*?</script>", re.DOTALL)  # has strings like links in it
NOT_MEASURED = re.compile(r'class="num none"|verdict-not-measured-here|class="not-drawn"')
README = """$title. $version

Unpack it all, then open index.html in a browser: it leads to everything, and needs no network.
book/      index.html is the book, a page a chapter; book.html is all of it in one file
           book.epub is for e-readers
slides/    a deck for each track ($tracks), for a browser: S opens the speaker view
pdf/       the book and the decks for paper; deck-*-notes.pdf: each slide with what to say
results/   the raw data of the reference run behind all numbers: one experiment a file
LICENSE    text CC BY 4.0, code MIT, data CC0
"""
ROW = (
    "<tr><th>$title</th><td>$minutes min</td>"
    '<td><a href="slides/deck-$name.html">slides</a></td>'
    '<td><a href="pdf/deck-$name.pdf">PDF</a></td>'
    '<td><a href="pdf/deck-$name-notes.pdf">PDF with notes</a></td></tr>'
)

Files = dict[str, bytes]


def filled(template: str, **values: object) -> str:
    return string.Template(template).substitute(values)


def collected(build: Path) -> Files:
    """The book, the decks, the PDFs, the data and the licence, under their names in the archive."""
    paths = [path for pattern in ("book/**/*", "slides/*", "pdf/*") for path in build.glob(pattern)]
    files = {p.relative_to(build).as_posix(): p.read_bytes() for p in paths if p.is_file()}
    for name in files:
        if name.startswith("book/") and name.endswith(".html"):
            files[name] = TO_THE_TREE.sub(rb"\1", files[name])
    files |= {f"results/{path.name}": path.read_bytes() for path in REFERENCE.glob("*.jsonl")}
    return files | {"LICENSE": Path("LICENSE").read_bytes()}


def lacking(files: Files, tracks: Iterable[str]) -> Iterator[str]:
    wanted = ["book/index.html", "book/book.html", "book/book.epub", "pdf/book.pdf"]
    for track in tracks:
        wanted += [
            f"slides/deck-{track}.html",
            f"pdf/deck-{track}.pdf",
            f"pdf/deck-{track}-notes.pdf",
        ]
    yield from (f"{name} is not there" for name in wanted if not files.get(name))
    if not any(name.startswith("results/") for name in files):
        yield f"results/*.jsonl (from {REFERENCE}) is not there"


def stray_links(files: Files) -> Iterator[str]:
    """What a page is shown with must be in the release; a link may lead to the network."""
    for page in sorted(name for name in files if name.endswith((".html", ".css"))):
        for tag, link, of_style in LINK.findall(SCRIPT.sub(r"\1", files[page].decode())):
            parts = urlsplit(link or of_style)
            if parts.scheme in ("http", "https", "mailto", "data") and (
                tag == "a" or not parts.netloc
            ):
                continue
            target = posixpath.normpath(
                posixpath.join(posixpath.dirname(page), unquote(parts.path))
            )
            if parts.scheme or parts.netloc or (parts.path and target not in files):
                yield f"{page}: {link or of_style} leads out of the release"


def traces(files: Files) -> Iterator[str]:
    """The place of this tree has no business in it."""
    place = str(Path.cwd().resolve()).encode()
    yield from (
        f"{name}: has the place of the tree in it" for name in sorted(files) if place in files[name]
    )


def zipped(entries: Iterable[tuple[str, bytes]], seconds: int) -> bytes:
    """A zip whose bytes depend on nothing but the arguments. The mimetype of an EPUB is not packed,
    so that readers see by it what they have."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as packed:
        for name, content in entries:
            entry = zipfile.ZipInfo(name, date_time=time.gmtime(seconds)[:6])
            entry.create_system = 3  # Unix: then the permissions below count
            entry.external_attr = 0o100644 << 16
            how = zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED
            packed.writestr(entry, content, how, compresslevel=9)
    return data.getvalue()


def dated(epub: bytes, seconds: int) -> bytes:
    """pandoc 2.17 heeds SOURCE_DATE_EPOCH in the text, but not in the zip around it."""
    with zipfile.ZipFile(io.BytesIO(epub)) as book:
        return zipped([(name, book.read(name)) for name in book.namelist()], seconds)


def add_fronts(files: Files, version: str, tracks: dict[str, dict[str, object]]) -> None:
    """The page that leads to everything, and README.txt."""
    about = dict(
        re.findall(r"^(\w+): (.*)$", (HERE / "book.yaml").read_text("utf-8"), re.MULTILINE)
    )
    rows = [filled(ROW, name=n, title=t["title"], minutes=t["minutes"]) for n, t in tracks.items()]
    sizes = {"html": "book/book.html", "epub": "book/book.epub", "pdf": "pdf/book.pdf"}
    front = filled(
        (HERE / "release.html").read_text("utf-8"),
        title=about["title"],
        subtitle=about["subtitle"],
        version=f"Version {version}",
        tracks="\n".join(rows),
        experiments=sum(name.startswith("results/") for name in files),
        **{f"size_{k}": f"{max(len(files[n]) / MEGABYTE, 0.1):.1f} MB" for k, n in sizes.items()},
    )
    files["index.html"] = front.encode()
    readme = filled(
        README, title=about["title"], version=f"Version {version}", tracks=", ".join(tracks)
    )
    files["README.txt"] = readme.encode()


def main(build: Path, out: Path, version: str, seconds: int) -> int:
    tracks = read_toml(Path("slides/tracks.toml"))
    files = collected(build)
    problems = list(lacking(files, tracks))
    if not problems:
        files["book/book.epub"] = dated(files["book/book.epub"], seconds)
        add_fronts(files, version, tracks)
        problems = [*stray_links(files), *traces(files)]
    if problems:
        print("\n".join(f"release: not made: {line}" for line in problems), file=sys.stderr)
        return 1
    name = f"quest-{version}"
    data = zipped([(f"{name}/{path}", files[path]) for path in sorted(files)], seconds)
    part = out / f"{name}.zip.part"
    part.write_bytes(data)
    part.replace(out / f"{name}.zip")
    pages = {
        path: NOT_MEASURED.findall(files[path].decode()) for path in files if path.endswith(".html")
    }
    for path, gaps in pages.items():
        if gaps:
            print(f"warning: {path} says of {len(gaps)} numbers or figures: not measured")
    print(f"{out / name}.zip\n  {len(data) / MEGABYTE:.1f} MB, {len(files)} files")
    print(f"  SHA-256 {hashlib.sha256(data).hexdigest()}")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
