"""release.py on made-up trees, and what `make release` refuses. The real thing is in
test_release_whole.py."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import re
import shutil
import stat
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import pytest

from book.tree import ROOT, Done, Tree

RELEASE = ROOT / "chapters/pandoc/release.py"
WHEN = "1700000000"  # 2023-11-14, 22:13:20 UTC
TRACKS = '[short]\ntitle = "A talk"\nminutes = 45\n\n[long]\ntitle = "A course"\nminutes = 360\n'
PAGE = '<!DOCTYPE html><title>Page</title><link rel="stylesheet" href="book.css">'
BUILT = {
    "book/index.html": PAGE + '<a href="01-first.html#code">First</a>',
    "book/01-first.html": PAGE + '<h2 id="code">Code</h2><img src="figures/a%20b.svg">',
    "book/book.html": '<!DOCTYPE html><style></style><img src="data:image/svg+xml,x">',
    "book/book.css": "body { color: black; }",
    "book/figures/a b.svg": "<svg/>",
    "pdf/book.pdf": "%PDF-1.4",
}
for _track in ("short", "long"):
    BUILT[f"slides/deck-{_track}.html"] = "<!DOCTYPE html><title>Deck</title>"
    BUILT[f"pdf/deck-{_track}.pdf"] = "%PDF-1.4 deck"
    BUILT[f"pdf/deck-{_track}-notes.pdf"] = "%PDF-1.4 notes"
STUBS = {"pandoc": "pandoc 2.17", "chromium": "Chromium 150.0", "gnuplot": "gnuplot 5.4", "dot": ""}


def epub(
    page: str = "", when: tuple[int, int, int, int, int, int] = (1999, 1, 1, 0, 0, 0)
) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as book:
        for name, text in {"mimetype": "application/epub+zip", "EPUB/page": page}.items():
            book.writestr(zipfile.ZipInfo(name, when), text)
    return data.getvalue()


class Made:
    """A tree in which everything is built already."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.build = path / "build/release/build"
        self.tools = path.parent / f"{path.name}-tools"
        for name, text in BUILT.items():
            self.built(name, text.encode())
        self.built("book/book.epub", epub())
        self.write("LICENSE", b"MIT\n")
        self.write(".gitignore", b"/build/\n")
        self.write("slides/tracks.toml", TRACKS.encode())
        self.write("chapters/01-first.md", b"A book that names /usr and debian.\n")
        self.write("benchmarks/results/reference/a.jsonl", b'{"type":"run"}\n')
        self.write("benchmarks/harness/deps.sh", b"printf 'pandoc\\tok\\ngraphviz\\tok\\n'\n")
        self.tools.mkdir()
        for name, said in STUBS.items():
            (self.tools / name).write_text(f"#!/bin/sh\necho '{said}'\n", encoding="utf-8")
            (self.tools / name).chmod(0o755)

    def write(self, name: str, data: bytes) -> None:
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)

    def built(self, name: str, data: bytes) -> None:
        self.write(f"build/release/build/{name}", data)

    def run(self, *arguments: str, **environment: str) -> Done:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
        settings = {"SOURCE_DATE_EPOCH": WHEN, "HOME": str(self.path.parent / "home")}
        path = f"{self.tools}:{os.environ['PATH']}"
        return subprocess.run(
            [sys.executable, str(RELEASE), *arguments],
            cwd=self.path,
            env=inherited | settings | {"PATH": path} | environment,
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    def pack(self, **environment: str) -> Done:
        return self.run(
            "pack", "build/release/build", "build/release", "pandoc", "chromium", **environment
        )

    def archives(self) -> list[Path]:
        return sorted((self.path / "build/release").glob("quest-*"))

    def packed(self, **environment: str) -> Path:
        """The one archive."""
        done = self.pack(**environment)
        assert (done.returncode, done.stderr) == (0, "")
        (archive,) = self.archives()
        return archive

    def git(self, *arguments: str) -> None:
        settings = {"GIT_COMMITTER_DATE": f"{WHEN} +0200", "GIT_CONFIG_GLOBAL": os.devnull}
        who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        subprocess.run(
            ["git", *who, *arguments], cwd=self.path, env=os.environ | settings,
            check=True, capture_output=True, timeout=60,
        )  # fmt: skip

    def commit(self) -> None:
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "All")


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "tree")


@pytest.fixture
def repository(made: Made) -> Made:
    if not shutil.which("git"):
        pytest.skip("git is not installed (apt-get install git)")
    made.commit()
    return made


def refused(done: Done, *lines: str) -> None:
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines() == list(lines)


# ---- what is in it


def test_everything_is_in_one_folder(made: Made) -> None:
    with zipfile.ZipFile(made.packed()) as archive:
        names = archive.namelist()
    own = ["LICENSE", "README.txt", "index.html", "results/a.jsonl", "book/book.epub"]
    assert names == sorted(f"quest-2023-11-14/{name}" for name in [*BUILT, *own])


def test_front_page_leads_to_every_form(made: Made) -> None:
    with zipfile.ZipFile(made.packed()) as archive:
        names = {name.partition("/")[2] for name in archive.namelist()}
        page = archive.read("quest-2023-11-14/index.html").decode()
    links = re.findall(r'href="([^"]*)"', page)
    forms = {name for name in names if name.startswith(("pdf/", "slides/")) or "book/book." in name}
    assert forms - {"book/book.css"} | {"book/index.html", "LICENSE", "data:,"} == set(links)
    assert "A course" in page
    assert "360 min" in page
    assert "Version 2023-11-14." in page
    assert "$" not in page


def test_readme_says_in_ten_lines_what_is_what(made: Made) -> None:
    with zipfile.ZipFile(made.packed()) as archive:
        tops = {name.split("/")[1] for name in archive.namelist()} - {"README.txt"}
        text = archive.read("quest-2023-11-14/README.txt").decode()
    assert len(text.splitlines()) == 10
    assert max(map(len, text.splitlines())) <= 100
    assert [top for top in tops if top not in text] == []
    assert "pandoc 2.17, gnuplot 5.4, Graphviz, Chromium 150.0" in text


def test_path_size_and_checksum_come_last(made: Made) -> None:
    done = made.pack()
    (archive,) = made.archives()
    assert done.stdout.splitlines() == [
        "build/release/quest-2023-11-14.zip",
        "  0.1 MB, 17 files",
        f"  SHA-256 {hashlib.sha256(archive.read_bytes()).hexdigest()}",
    ]


# ---- the same bytes


def test_same_commit_gives_the_same_bytes(repository: Made, tmp_path: Path) -> None:
    """In another folder, with other dates of the files, another time zone, another umask."""
    first = repository.packed(SOURCE_DATE_EPOCH="")
    other = Made(tmp_path / "elsewhere" / "clone")
    shutil.rmtree(other.path)
    shutil.copytree(repository.path, other.path, copy_function=shutil.copyfile)
    shutil.rmtree(other.path / "build/release/build")
    for name in sorted(BUILT, reverse=True):
        other.built(name, BUILT[name].encode())
        (other.build / name).chmod(0o600)
    other.built("book/book.epub", epub(when=(2026, 11, 22, 13, 20, 2)))
    for archive in other.archives():
        archive.unlink()
    second = other.packed(SOURCE_DATE_EPOCH="", TZ="Asia/Tokyo", LC_ALL="C")
    assert first.name == second.name
    assert first.read_bytes() == second.read_bytes()


def test_entries_have_the_date_of_the_commit_and_no_owner(repository: Made) -> None:
    with zipfile.ZipFile(repository.packed(SOURCE_DATE_EPOCH="")) as archive:
        for entry in archive.infolist():
            assert entry.date_time == (2023, 11, 14, 22, 13, 20)
            assert stat.filemode(entry.external_attr >> 16) == "-rw-r--r--"
            assert entry.extra == b""


def test_pdf_does_not_show_when_it_was_printed() -> None:
    """Chromium's numbers of nodes differ from one run to the next; their order does not."""
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); import print as printer\n"
        "sys.stdout.buffer.write(printer.dated(sys.stdin.buffer.read(), sys.argv[2]))"
    )
    made_at = ["20231114120000", "20261122132000"]
    numbers = [(222, 224, 7), (223, 230, 8)]
    printed = [
        b"/CreationDate (D:%b+00'00') /ModDate (D:%b+00'00') /Title (D:1)"
        b"/ID (node%08d) /ID (node%08d) /Headers [(node%08d)]" % (at.encode(), at.encode(), *ids)
        for at, ids in zip(made_at, numbers, strict=True)
    ]
    settled = [
        subprocess.run(
            [sys.executable, "-c", script, str(RELEASE.parent), WHEN],
            input=pdf, capture_output=True, timeout=30, check=True,
        ).stdout
        for pdf in printed
    ]  # fmt: skip
    assert settled[0] == settled[1]
    assert settled[0] == (
        b"/CreationDate (D:20231114221320+00'00') /ModDate (D:20231114221320+00'00') /Title (D:1)"
        b"/ID (node00000001) /ID (node00000002) /Headers [(node00000000)]"
    )
    assert len(settled[0]) == len(printed[0])


def test_epub_still_says_first_what_it_is(made: Made) -> None:
    """Readers look at these bytes: https://www.w3.org/TR/epub-33/#sec-zip-container-mime"""
    with zipfile.ZipFile(made.packed()) as archive:
        book = archive.read("quest-2023-11-14/book/book.epub")
    assert book[30:58] == b"mimetypeapplication/epub+zip"
    with zipfile.ZipFile(io.BytesIO(book)) as packed:
        assert packed.namelist() == ["mimetype", "EPUB/page"]


# ---- versions


def test_version_is_that_of_git(repository: Made) -> None:
    assert re.fullmatch(r"quest-[0-9a-f]{10}\.zip", repository.packed().name)
    repository.git("tag", "-a", "-m", "First", "v1.0/rc1")
    repository.pack()
    assert repository.archives()[-1].name == "quest-v1.0-rc1.zip"


@pytest.mark.parametrize("name", ["chapters/01-first.md", "chapters/02-new.md"])
def test_change_that_is_not_committed_is_said(repository: Made, name: str) -> None:
    repository.write(name, b"Changed.\n")
    assert re.fullmatch(r"quest-[0-9a-f]{10}-dirty\.zip", repository.packed().name)


def test_without_git_it_is_the_date_of_the_newest_source(made: Made) -> None:
    for path in made.path.rglob("*"):
        os.utime(path, (1_600_000_000, 1_600_000_000))
    os.utime(made.path / "chapters/01-first.md", (int(WHEN), int(WHEN)))
    os.utime(made.build / "book/index.html", (1_800_000_000, 1_800_000_000))
    assert made.run("begin", "build/release", SOURCE_DATE_EPOCH="").stdout == f"{WHEN}\n"
    assert made.packed(SOURCE_DATE_EPOCH="").name == "quest-2023-11-14.zip"


def test_repository_around_the_tree_is_not_its_own(repository: Made) -> None:
    inner = Made(repository.path / "build/unpacked")
    assert inner.packed().name == "quest-2023-11-14.zip"


@pytest.mark.parametrize("when", ["yesterday", "-1", "1.5", "1" * 12])
def test_date_that_is_none_is_refused(made: Made, when: str) -> None:
    line = f"release: SOURCE_DATE_EPOCH={when} is no number of seconds"
    refused(made.run("begin", "build/release", SOURCE_DATE_EPOCH=when), line)


# ---- whole or not at all


@pytest.mark.parametrize(
    "name",
    ["LICENSE", *(f"build/release/build/{name}" for name in [
        "book/index.html", "book/book.html", "book/book.epub", "pdf/book.pdf",
        "slides/deck-short.html", "pdf/deck-long.pdf", "pdf/deck-long-notes.pdf",
    ])],
)  # fmt: skip
def test_release_is_whole_or_none(made: Made, name: str) -> None:
    made.packed()
    (made.path / name).unlink()
    short = name.removeprefix("build/release/build/")
    refused(made.pack(), f"release: not made: {short} is not there")
    assert made.archives() == []


def test_archive_from_before_is_gone_once_a_new_one_is_begun(made: Made) -> None:
    made.packed()
    made.write("build/release/quest-v1.0.zip", b"another version")
    assert made.run("begin", "build/release").stdout == f"{WHEN}\n"
    assert [archive.name for archive in made.archives()] == ["quest-v1.0.zip"]


def test_empty_file_is_none(made: Made) -> None:
    made.built("pdf/book.pdf", b"")
    refused(made.pack(), "release: not made: pdf/book.pdf is not there")


def test_data_belong_to_it(made: Made) -> None:
    (made.path / "benchmarks/results/reference/a.jsonl").unlink()
    line = "results/*.jsonl (from benchmarks/results/reference) is not there"
    refused(made.pack(), f"release: not made: {line}")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<a href="02-none.html">', "02-none.html leads out of the release"),
        ('<img src="figures/none.svg">', "figures/none.svg leads out of the release"),
        ('<img data-src="none.svg">', "none.svg leads out of the release"),
        ('<img src="../../LICENSE">', "../../LICENSE leads out of the release"),
        ('<a href="/book/index.html">', "/book/index.html leads out of the release"),
        ('<a href="file:///index.html">', "file:///index.html leads out of the release"),
        ('<script src="https://x.org/a.js">', "https://x.org/a.js needs the network"),
        ('<img src="//x.org/a.svg">', "//x.org/a.svg needs the network"),
        ('<a href="https://x.org/">', ""),
        ('<a href="#code"><a href="../index.html"><a href="../LICENSE">', ""),
    ],
)
def test_links_stay_inside(made: Made, body: str, problem: str) -> None:
    made.built("book/01-first.html", (PAGE + body).encode())
    if problem:
        refused(made.pack(), f"release: not made: book/01-first.html: {problem}")
        assert made.archives() == []
    else:
        made.packed()


def test_link_to_a_file_of_the_tree_is_text(made: Made) -> None:
    link = '<a class="x" href="../../code/01-first/server.c">the\n<code>source</code></a>'
    made.built("book/01-first.html", f"{PAGE}{link} <a href='index.html'>back</a>".encode())
    with zipfile.ZipFile(made.packed()) as archive:
        page = archive.read("quest-2023-11-14/book/01-first.html").decode()
    assert page == f"{PAGE}the\n<code>source</code> <a href='index.html'>back</a>"


def test_style_stays_inside(made: Made) -> None:
    made.built("book/book.css", b'a { background: url("none.png"), url(data:image/png,x); }')
    refused(made.pack(), "release: not made: book/book.css: none.png leads out of the release")


# ---- traces of the machine


def pdf(text: bytes) -> bytes:
    return b"%PDF-1.4\n1 0 obj\n<<>>\nstream\n" + zlib.compress(text) + b"\nendstream\nendobj\n"


def hidden(kind: str, text: str) -> tuple[str, bytes]:
    """A file of the release with the text in it."""
    if kind == "plain":
        return "book/figures/a b.svg", f"<svg><title>{text}</title></svg>".encode()
    if kind == "escaped":
        escaped = "".join(f"%{ord(letter):02x}" for letter in text)
        return "book/book.html", f'<img src="data:image/svg+xml,{escaped}">'.encode()
    if kind == "base64":
        packed = base64.b64encode(f"<svg>{text}</svg>".encode()).decode()
        return "book/book.html", f'<img src="data:image/svg+xml;base64,{packed}">'.encode()
    if kind == "epub":
        return "book/book.epub", epub(page=text)
    return "pdf/book.pdf", pdf(text.encode())


@pytest.mark.parametrize("kind", ["plain", "escaped", "base64", "epub", "pdf"])
def test_place_of_the_tree_does_not_show(made: Made, kind: str) -> None:
    name, data = hidden(kind, f'"{made.path}/build"')
    made.built(name, data)
    refused(made.pack(), f"release: not made: {name}: has the place of the tree in it")
    assert made.archives() == []


def test_names_of_the_machine_do_not_show(made: Made) -> None:
    home = made.path.parent / "home"
    made.built("pdf/book.pdf", f"%PDF-1.4 /Author (gertrude) /URI (file://{home}/x)".encode())
    refused(
        made.pack(LOGNAME="gertrude"),
        "release: not made: pdf/book.pdf: has the home folder in it",
        "release: not made: pdf/book.pdf: has the user's name in it",
    )


@pytest.mark.parametrize("user", ["root", "vm", "debian", "gert"])
def test_word_of_the_book_is_no_trace(made: Made, user: str) -> None:
    """A user may be called like a word of the book; a longer word is another one."""
    text = f"{PAGE}root, vm, debian, gertrude, {made.path}-other"
    made.built("book/01-first.html", text.encode())
    made.packed(LOGNAME=user)


# ---- what was not measured


def test_what_was_not_measured_is_listed(made: Made) -> None:
    number = '<span class="num none" title="fork.us; make bench ONLY=fork">(not measured)</span>'
    figure = (
        '<div class="not-drawn">\n<p>Not drawn here: not measured yet:\nmake bench ONLY=fork</p>'
        "<div></div></div>"
    )
    verdict = '<span class="verdict verdict-not-measured-here" title="no run">not measured here'
    why = '<td><span class="why">not measured: make bench ONLY=x</span><span class="why">no such'
    measured = '<span class="num reference" title="a.b; make bench ONLY=y">41 µs</span>'
    made.built("book/01-first.html", (PAGE + number + measured + figure + why).encode())
    made.built("book/index.html", (PAGE + number + number + verdict).encode())
    made.built("book/book.html", (PAGE.replace("book.css", "data:,") + number).encode())
    done = made.pack()
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:-3] == [
        "warning: not measured in the reference run, and the release says so:",
        "  fork: 3 numbers, 1 figure (book/01-first.html, book/index.html)",
        "  no run: 1 verdict (book/index.html)",
        "  x: 1 row of a table (book/01-first.html)",
    ]


# ---- what is needed


def test_missing_tools_are_said_in_one_line(made: Made) -> None:
    rows = ["gnuplot-nox\\tmissing", "graphviz\\tok", "python3-scipy\\tmissing", "wrk\\tmissing"]
    script = "".join(f"printf '{row}\\n'\n" for row in rows)
    made.write("benchmarks/harness/deps.sh", script.encode())
    need = "release: not made without gnuplot-nox, python3-scipy"
    refused(made.run("needs", "/bin/x", "/bin/y"), f"{need} (make deps installs that)")
    refused(
        made.run("needs", "", ""),
        f"{need}, pandoc (make deps installs that) and Chromium (apt-get install chromium)",
    )


def test_with_all_tools_nothing_is_said(made: Made) -> None:
    done = made.run("needs", "/bin/x", "/bin/y")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_what_is_needed_stands_in_the_table() -> None:
    """A package that is called otherwise one day would never be missed."""
    table = (ROOT / "benchmarks/harness/packages.tsv").read_text(encoding="utf-8")
    packages = {line.split("\t")[0] for line in table.splitlines()}
    named = re.search(r"^TOOLS = \{(.*)\}", RELEASE.read_text(encoding="utf-8"), re.M)
    assert named
    assert set(re.findall(r'"([^"]*)"', named[1])) <= packages


def test_without_chromium_nothing_is_made(tree: Tree) -> None:
    tree.write("benchmarks/harness/deps.sh", "printf 'graphviz\\tok\\n'\n")
    done = tree.make("release", "CHROMIUM=")
    assert done.returncode == 2
    assert done.stdout == ""
    line = "release: not made without Chromium (apt-get install chromium)"
    assert done.stderr.splitlines()[0] == line
    assert not (tree.path / "build/release").exists()
