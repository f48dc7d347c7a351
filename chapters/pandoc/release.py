"""`make release`: packs what release.mk has built into one archive, whole or not at all.

    release.py needs PANDOC CHROMIUM           status 1 and one line if a tool is missing
    release.py begin OUT                       prints the date it will have, in seconds
    release.py pack BUILD OUT PANDOC CHROMIUM  OUT/quest-VERSION.zip of what is in BUILD

Runs in the root of the tree. A tool is its path, "" if it is not there. Status 1 and a line for
each reason on stderr when there is no archive. One of the same name from before does not outlive
the beginning: what is there after a failure must not be taken for the new one.

Why a zip: every system opens it with a double click. A .tar.gz of the same files is no smaller.
"""

from __future__ import annotations

import hashlib
import html
import io
import os
import re
import string
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from release_check import broken_links, not_measured, traces
from source import read_toml

HERE = Path(__file__).resolve().parent
REFERENCE = Path("benchmarks/results/reference")
DEPS = "benchmarks/harness/deps.sh"
# Of packages.tsv; fonts, because without them the figures have other letters and the PDFs none.
TOOLS = {"python3-scipy", "gnuplot-nox", "graphviz", "fonts-dejavu-core", "reveal.js@5.2.1"}
WRITTEN = ("chapters", "code", "figures", "slides")
FIRST_DATE = 315532800  # a zip knows no year before 1980
MEGABYTE = 1_000_000
# A link from a page to a file of the tree, as references.lua writes it.
TO_THE_TREE = re.compile(rb'<a\s[^>]*href="\.\./\.\./[^>]*>(.*?)</a>', re.DOTALL)

Files = dict[str, bytes]


# ---- what is needed


def missing_tools(pandoc: str, chromium: str) -> list[str]:
    """What is missing and its remedy, in parts of one sentence."""
    command = ["sh", DEPS, "--status", "measure", "book", "slides"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr.strip() or f"{DEPS}: status {done.returncode}")
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    lacking = [name for name, state in rows if name in TOOLS and state == "missing"]
    lacking += [] if pandoc else ["pandoc"]
    return [
        *([f"{', '.join(lacking)} (make deps installs that)"] if lacking else []),
        *([] if chromium else ["Chromium (apt-get install chromium)"]),
    ]


# ---- which version, and of when


def git(*arguments: str) -> str:
    """What git says of this tree; "" if it is not the root of a repository, or git is missing."""
    answers = []
    for command in (["rev-parse", "--show-toplevel"], arguments):
        try:
            done = subprocess.run(
                ["git", *command], capture_output=True, text=True, check=False, timeout=60
            )
        except OSError:
            return ""
        if done.returncode:
            return ""
        answers.append(done.stdout.strip())
    return answers[1] if Path(answers[0]).resolve() == Path.cwd().resolve() else ""


def newest_source() -> int:
    """A tree that was unpacked from an archive has the date of its commit on every file."""
    paths = [path for folder in (*WRITTEN, "benchmarks") for path in Path(folder).rglob("*")]
    kept = [path for path in paths if path.is_file() and "__pycache__" not in path.parts]
    return max((int(path.stat().st_mtime) for path in kept), default=FIRST_DATE)


def epoch() -> int:
    given = os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct")
    if given and not re.fullmatch(r"\d{1,11}", given):
        sys.exit(f"release: SOURCE_DATE_EPOCH={given} is no number of seconds")
    return max(int(given) if given else newest_source(), FIRST_DATE)


def day(when: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(when))


def version(when: int) -> str:
    """The tag or the commit, and whether the tree differs from it; without git the date."""
    # A length of its own: git's would grow with the repository.
    described = git("describe", "--always", "--abbrev=10")
    if not described:
        return day(when)
    dirty = "-dirty" if git("status", "--porcelain") else ""
    return re.sub(r"[^\w.-]", "-", described) + dirty


def made_with(pandoc: str, chromium: str) -> str:
    """The versions that decide about the bytes."""
    tools = {
        "pandoc": [pandoc, "--version"],
        "gnuplot": ["gnuplot", "--version"],
        "Graphviz": ["dot", "-V"],
        "Chromium": [chromium, "--version"],
    }
    texts = []
    for name, command in tools.items():
        said = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        ).stdout
        numbers = re.search(r"\d+(\.\d+)+( patchlevel \d+)?", said)
        texts.append(f"{name} {numbers[0]}" if numbers else name)
    return ", ".join(texts)


# ---- what is in it


def tracks() -> dict[str, tuple[str, str]]:
    """Name of a track: its title and its minutes."""
    table = read_toml(Path("slides/tracks.toml"))
    return {name: (str(entry["title"]), str(entry["minutes"])) for name, entry in table.items()}


def made(build: Path) -> Files:
    """The book, the decks and the PDFs, under their names in the archive."""
    patterns = ("book/**/*", "slides/*", "pdf/*")
    paths = [path for pattern in patterns for path in build.glob(pattern) if path.is_file()]
    files = {path.relative_to(build).as_posix(): path.read_bytes() for path in paths}
    for name in files:
        if name.startswith("book/") and name.endswith(".html"):
            files[name] = TO_THE_TREE.sub(rb"\1", files[name])  # as in the one-file book
    return files


def lacking(files: Files) -> Iterator[str]:
    """Names of what must be there and is not; what is empty is not there."""
    wanted = ["LICENSE", "book/index.html", "book/book.html", "book/book.epub", "pdf/book.pdf"]
    for track in tracks():
        wanted += [f"slides/deck-{track}.html"]
        wanted += [f"pdf/deck-{track}.pdf", f"pdf/deck-{track}-notes.pdf"]
    yield from (name for name in wanted if not files.get(name))
    if not any(name.startswith("results/") for name in files):
        yield f"results/*.jsonl (from {REFERENCE})"


def megabytes(data: bytes) -> str:
    return f"{max(len(data) / MEGABYTE, 0.1):.1f} MB"


def track_rows(files: Files) -> str:
    row = (
        "<tr><th>{title}</th><td>{minutes} min</td>"
        '<td><a href="slides/deck-{name}.html">slides</a></td>'
        '<td><a href="pdf/deck-{name}.pdf">PDF</a> <span class="size">{slides}</span></td>'
        '<td><a href="pdf/deck-{name}-notes.pdf">PDF with notes</a> '
        '<span class="size">{notes}</span></td></tr>'
    )
    return "\n".join(
        row.format(
            title=html.escape(title),
            minutes=html.escape(minutes),
            name=name,
            slides=megabytes(files[f"pdf/deck-{name}.pdf"]),
            notes=megabytes(files[f"pdf/deck-{name}-notes.pdf"]),
        )
        for name, (title, minutes) in tracks().items()
    )


def book_data(key: str) -> str:
    found = re.search(rf"^{key}: (.*)$", (HERE / "book.yaml").read_text("utf-8"), re.M)
    return found[1] if found else ""


def front_page(files: Files, edition: str) -> str:
    template = string.Template((HERE / "release.html").read_text("utf-8"))
    return template.substitute(
        title=html.escape(book_data("title")),
        subtitle=html.escape(book_data("subtitle")),
        size_html=megabytes(files["book/book.html"]),
        size_epub=megabytes(files["book/book.epub"]),
        size_pdf=megabytes(files["pdf/book.pdf"]),
        tracks=track_rows(files),
        experiments=sum(name.startswith("results/") for name in files),
        version=html.escape(edition),
    )


def readme(edition: str, tools: str) -> str:
    return f"""{book_data("title")}. {edition}

Unpack it all, then open index.html in a browser: it leads to everything, and needs no network.
book/      index.html is the book, a page a chapter; book.html is all of it in one file
           book.epub is for e-readers
slides/    a deck for each track ({", ".join(tracks())}), for a browser: S opens the speaker view
pdf/       the book and the decks for paper; deck-*-notes.pdf: each slide with what to say
results/   the raw data of the reference run behind all numbers: one experiment a file
LICENSE    text CC BY 4.0, code MIT, data CC0
Made with {tools}.
"""


# ---- the archive


def zipped(entries: Iterable[tuple[str, bytes]], when: int) -> bytes:
    """A zip whose bytes depend on nothing but the arguments; the first of an EPUB stays as it is,
    so that readers see by it what they have.
    """
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as packed:
        for name, content in entries:
            entry = zipfile.ZipInfo(name, date_time=time.gmtime(when)[:6])
            entry.create_system = 3  # Unix: then the permissions below count
            entry.external_attr = 0o100644 << 16
            how = zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED
            packed.writestr(entry, content, how, compresslevel=9)
    return data.getvalue()


def dated(epub: bytes, when: int) -> bytes:
    """pandoc 2.17 heeds SOURCE_DATE_EPOCH in the text, but not in the zip around it."""
    with zipfile.ZipFile(io.BytesIO(epub)) as book:
        return zipped([(name, book.read(name)) for name in book.namelist()], when)


def target_of(out: Path, when: int) -> Path:
    return out / f"quest-{version(when)}.zip"


def begin(out: Path) -> int:
    when = epoch()
    target_of(out, when).unlink(missing_ok=True)
    print(when)
    return 0


def pack(build: Path, out: Path, pandoc: str, chromium: str) -> int:
    when = epoch()
    label, date = version(when), day(when)
    edition = f"Version {label}" + (f" of {date}" if label != date else "")
    target = target_of(out, when)
    target.unlink(missing_ok=True)
    files = made(build)
    files |= {f"results/{path.name}": path.read_bytes() for path in REFERENCE.glob("*.jsonl")}
    files |= {path.name: path.read_bytes() for path in [Path("LICENSE")] if path.is_file()}
    problems = [f"{name} is not there" for name in lacking(files)]
    if not problems:
        files["book/book.epub"] = dated(files["book/book.epub"], when)
        files["index.html"] = front_page(files, edition).encode()
        files["README.txt"] = readme(edition, made_with(pandoc, chromium)).encode()
        problems = [*broken_links(files), *traces(files, WRITTEN)]
    if problems:
        print("\n".join(f"release: not made: {line}" for line in problems), file=sys.stderr)
        return 1
    data = zipped([(f"{target.stem}/{name}", files[name]) for name in sorted(files)], when)
    part = target.with_name(f"{target.name}.part")
    part.write_bytes(data)
    part.replace(target)
    gaps = not_measured(files)
    if gaps:
        print("warning: not measured in the reference run, and the release says so:")
        print("\n".join(f"  {line}" for line in gaps))
    print(f"{target}\n  {megabytes(data)}, {len(files)} files")
    print(f"  SHA-256 {hashlib.sha256(data).hexdigest()}")
    return 0


def main(arguments: list[str]) -> int:
    match arguments:
        case ["needs", pandoc, chromium]:
            parts = missing_tools(pandoc, chromium)
            if parts:
                sys.exit(f"release: not made without {' and '.join(parts)}")
            return 0
        case ["begin", out]:
            return begin(Path(out))
        case ["pack", build, out, pandoc, chromium]:
            return pack(Path(build), Path(out), pandoc, chromium)
    sys.exit("usage: release.py needs PANDOC CHROMIUM | begin OUT | pack BUILD OUT PANDOC CHROMIUM")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
