"""A small tree with a book and a deck of its own, made by the real modules and filters."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DATA = Path(__file__).resolve().parent / "data"
FILTERS = ROOT / "chapters" / "pandoc"
PANDOC = os.environ.get("PANDOC") or shutil.which("pandoc") or ""
REVEAL = ROOT / "build" / "node"
REVEAL_JS = REVEAL / "node_modules/reveal.js/dist/reveal.js"
SHARED_SLIDES = [
    "module.mk", "template.html", "theme.css", "print.css", "deck.js", "demo.js", "tracks.py",
]  # fmt: skip
# The same text is read once.
PARSED: dict[str, str] = {}
Done = subprocess.CompletedProcess[str]


class Tree:
    """A copy of data/ with links to what is under test; commands run in it as in the real root."""

    def __init__(self, path: Path, copied: Tree | None = None) -> None:
        self.path = path
        if copied:
            shutil.copytree(copied.path, path, symlinks=True)
            return
        shutil.copytree(DATA, path)
        (path / "chapters/pandoc").symlink_to(FILTERS)
        for name in ("module.mk", "release.mk"):
            (path / "chapters" / name).symlink_to(ROOT / "chapters" / name)
        for name in SHARED_SLIDES:
            (path / "slides" / name).symlink_to(ROOT / "slides" / name)
        if REVEAL_JS.exists():
            (path / "build/node").symlink_to(REVEAL)

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
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
        return subprocess.run(
            command,
            cwd=self.path,
            env={**inherited, "PYTHONDONTWRITEBYTECODE": "1", **environment},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def make(self, *arguments: str, **environment: str) -> Done:
        return self.run(
            "make", f"PANDOC={PANDOC}", f"PYTHON={sys.executable}", *arguments, **environment
        )

    def filter(self, name: str, source: str, to: str, **settings: str) -> Done:
        options = [f"-M{key}={value}" for key, value in {"build": "build", **settings}.items()]
        return self.run(
            PANDOC,
            "-f",
            "markdown",
            "-t",
            to,
            *options,
            f"--lua-filter=chapters/pandoc/{name}.lua",
            source,
        )

    def tables(self, *arguments: str) -> Done:
        return self.run(sys.executable, "chapters/pandoc/tables.py", *arguments)

    def label(self, *sources: str) -> Done:
        """Pass 1 for these chapters."""
        trees = []
        for source in sources:
            text = self.read(source)
            if text not in PARSED:
                done = self.run(PANDOC, "-f", "markdown", "-t", "json", source)
                PARSED[text] = done.stdout
            name = f"build/weave/{Path(source).stem}.ast"
            trees.append(str(self.write(name, PARSED[text]).relative_to(self.path)))
        return self.tables("labels", "build/weave/labels.lua", *trees)

    def bind(self, source: str, to: str, **settings: str) -> Done:
        """Pass 2 for a file; the data is what lies in build/data."""
        for name in ("numbers", "claims", "then"):
            data = f"build/data/{name}.json"
            done = self.tables("data", data, f"build/weave/data/{name}.lua")
            if done.returncode:
                return done
        return self.filter("weave", source, to, **settings)

    def weave(self, text: str, form: str = "chapter", **settings: str) -> Done:
        """Passes 1 and 2 for one text, as HTML. Chapters are number 3 of the book."""
        folder, title = (
            ("slides", "") if form == "slides" else ("chapters", "---\ntitle: Third\n---\n\n")
        )
        source = f"{folder}/03-third.md"
        self.write(source, title + text)
        chapters = ["chapters/01-first.md"] + ([] if form == "slides" else [source])
        done = self.label(*chapters)
        if done.returncode:
            return done
        to = "revealjs" if form == "slides" else "html"
        return self.bind(source, to, form=form, **settings)
