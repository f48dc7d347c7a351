"""A small tree with a book and a deck of its own, made by the real modules and filters."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest

from quest.book import tables
from quest.ground.entry import run_to_status
from tests.place import without_outer_make

ROOT = Path(__file__).resolve().parents[2]
PANDOC = os.environ.get("PANDOC") or shutil.which("pandoc") or ""
REVEAL = ROOT / "build" / "node"
PACKAGE = "build/node/node_modules/reveal.js"
REVEAL_JS = ROOT / PACKAGE / "dist/reveal.js"
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
# What the tree links to: what is under test.
SHARED = [
    "quest", "chapters/pandoc", "chapters/module.mk", "chapters/release.mk",
    *(f"slides/{name}" for name in (
        "module.mk", "template.html", "theme.css", "pictures.css", "print.css", "recorded.css", "deck.js", "demo.js",
    )),
]  # fmt: skip
DEMONSTRATION = Path(__file__).with_name("demonstration.txt").read_text(encoding="utf-8")
# The same text is read once.
OUTLINES: dict[str, str] = {}
Done = subprocess.CompletedProcess[str]
# once(name, fill): a folder that is filled for all tests.
Once = Callable[[str, Callable[[Path], None]], Path]


def files_of(text: str) -> dict[str, str]:
    """Of a file that holds several: "==> NAME <==", and then what is in it."""
    parts = re.split(r"^==> (.*) <==\n", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


class Tree:
    """The demonstration, or files, or a copy; commands run in it as in the real root. With "" it is
    there already.
    """

    def __init__(self, path: Path, made_of: Tree | str = DEMONSTRATION) -> None:
        self.path = path
        if isinstance(made_of, Tree):
            shutil.copytree(made_of.path, path, symlinks=True)
            return
        for name, text in files_of(made_of).items():
            self.write(name, text)
        if made_of is not DEMONSTRATION:
            return
        for name in SHARED:
            (path / name).symlink_to(ROOT / name)
        if REVEAL_JS.exists():
            (path / "build/node").symlink_to(REVEAL)
        else:
            self.fake_reveal()

    def fake_reveal(self, version: str = "5.2.1") -> None:
        """Enough for a deck that is not opened."""
        self.write(f"{PACKAGE}/package.json", f'{{\n"version": "{version}"\n}}')
        plugins = (f"plugin/{name}/{name}.js" for name in ("notes", "search", "zoom"))
        for name in ("dist/reset.css", "dist/reveal.css", "dist/reveal.js", *plugins):
            self.write(f"{PACKAGE}/{name}", "/* reveal */\n")
        self.write(f"{PACKAGE}/LICENSE", "Permission is granted to tell a tale.\n")

    def write(self, name: str, text: str) -> Path:
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        return target

    def read(self, name: str) -> str:
        return (self.path / name).read_text(encoding="utf-8")

    def replace(self, name: str, old: str, new: str) -> None:
        text = self.read(name)
        assert old in text
        self.write(name, text.replace(old, new))

    def run(self, *command: str, **environment: str) -> Done:
        # The outer make must not hand its flags and job server to the one under test.
        return subprocess.run(
            command, cwd=self.path, env={**without_outer_make(), "PYTHONPATH": str(ROOT), **environment},
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip

    def make(self, *arguments: str, **environment: str) -> Done:
        tools = (f"PANDOC={PANDOC}", f"PYTHON={sys.executable}")
        return self.run("make", *tools, *arguments, **environment)

    def tables(self, *arguments: str) -> Done:
        """A step of tables.py, as its command ends; Python starts once for all."""
        with contextlib.chdir(self.path), contextlib.redirect_stderr(io.StringIO()) as errors:
            status = run_to_status(lambda: tables.main([*arguments]))
        return Done(("tables.py",), status, "", errors.getvalue())

    def outlines(self, *sources: str) -> list[str]:
        """Pass 1 for these chapters and slides: the files that it leaves."""
        names = []
        for source in sources:
            key = f"{source} {self.read(source)}"
            if key not in OUTLINES:
                is_slides = source.startswith("slides/")
                dialect = "markdown-auto_identifiers" if is_slides else "markdown"
                outline = "--lua-filter=chapters/pandoc/outline.lua"
                done = self.run(PANDOC, "-f", dialect, "-t", "html", outline, source)
                assert done.returncode == 0, done.stderr  # an id that is doubled is only warned of
                OUTLINES[key] = done.stdout
            folder = "slides/" if source.startswith("slides/") else ""
            names.append(f"build/weave/{folder}{Path(source).stem}.outline")
            self.write(names[-1], OUTLINES[key])
        return names

    def label(self, *sources: str) -> Done:
        """The labels of these chapters."""
        return self.tables("labels", "build/weave/labels.lua", *self.outlines(*sources))

    def bind(self, source: str, to: str, **settings: str) -> Done:
        """Pass 2 for a file; the data is what lies in build/data."""
        for name in ("numbers", "claims", "since", "guards", "judges", "then"):
            done = self.tables("data", f"build/data/{name}.json", f"build/weave/data/{name}.lua")
            if done.returncode:
                return done
        options = [f"-M{key}={value}" for key, value in {"build": "build", **settings}.items()]
        weave = "--lua-filter=chapters/pandoc/weave.lua"
        return self.run(PANDOC, "-f", "markdown", "-t", to, *options, weave, source)

    def weave(self, text: str, form: str = "chapter", **settings: str) -> Done:
        """Passes 1 and 2 for one text, as HTML. Chapters are number 3 of the book."""
        is_slide = form == "slides"
        source = f"{'slides' if is_slide else 'chapters'}/03-third.md"
        self.write(source, text if is_slide else f"---\ntitle: Third\n---\n\n{text}")
        done = self.label("chapters/01-first.md", *([] if is_slide else [source]))
        if done.returncode:
            return done
        return self.bind(source, "revealjs" if is_slide else "html", form=form, **settings)

    def pieces(self, *texts: str, **settings: str) -> list[str]:
        """The HTML of several texts of one chapter."""
        html = accepted(self.weave("\n\nNEXT\n\n".join(texts), **settings))
        return html.split("<p>NEXT</p>")


# ---- pieces of Markdown, and what is expected of a run -------------------------------------------


def when(claim: int, verdict: str, text: str) -> str:
    return f'::: {{.when claim={claim} verdict="{verdict}"}}\n{text}\n:::\n\n'


def fence(attributes: str, text: str = "") -> str:
    return f"``` {{{attributes}}}\n{text}\n```\n"


def plain(html: str) -> str:
    """Text of HTML, without entities."""
    return unescape(re.sub(r"<[^>]*>", "", html)).replace("\u00a0", " ")


def words(html: str) -> str:
    return " ".join(plain(html).split())


def refused(done: Done, *parts: str) -> None:
    """Status not 0, nothing on stdout, and one line of stderr that holds all the parts."""
    assert done.returncode != 0
    assert done.stdout == ""
    matching = [line for line in done.stderr.splitlines() if all(part in line for part in parts)]
    assert len(matching) == 1, done.stderr
    assert "traceback" not in done.stderr


def accepted(done: Done) -> str:
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def epubcheck_finds_nothing(book: Path) -> None:
    """No error, no warning. Skips without epubcheck; Debian's is an archive that not all machines start by name."""
    archive, java, by_name = Path("/usr/share/java/epubcheck.jar"), shutil.which("java"), shutil.which("epubcheck")
    command = [by_name] if by_name and not archive.exists() else [java, "-jar", str(archive)] if java else []
    if not command or not (by_name or archive.exists()):
        pytest.skip("epubcheck is not installed (apt-get install epubcheck default-jre-headless)")
    asked = [*command, "--failonwarnings", str(book)]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
