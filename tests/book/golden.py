"""What the filters make of the demonstration and of every construction in constructs.txt: whole,
and compared whole with golden.txt.

    python3 -m tests.book.golden    writes golden.txt anew; look at its diff before it is committed

HTML differs with pandoc's version, which golden.txt names first.
"""

import json
import re
import tempfile
from pathlib import Path

from quest.book import contents
from quest.book.outline import read_outlines
from tests.book.tree import PANDOC, Done, Tree, accepted, files_of

HERE = Path(__file__).parent
GOLDEN, CONSTRUCTS = HERE / "golden.txt", HERE / "constructs.txt"
PAGES = (
    "weave/labels.lua", "weave/01-first.outline", "weave/02-second.outline", "book/index.html",
    "book/part-one.html", "book/01-first.html", "book/02-second.html", "book/unnumbered.html",
    "book/answers.html", "book/search-index.js",
    "book/book.html", "slides/deck.html",
)  # fmt: skip
LIBRARY = re.compile(r"<(style|script)\b[^>]*>.*?</\1>|(?<=data:image/svg\+xml,)[^\"]*", re.S)


def version(tree: Tree) -> str:
    return accepted(tree.run(PANDOC, "--version")).splitlines()[0]


def pages(built: Tree) -> dict[str, str]:
    """Of the demonstration, made by make: without style sheets, scripts and embedded figures, which
    are put in as they are.
    """
    texts = {name: built.read(f"build/{name}") for name in PAGES}
    slugs = ("01-first", "02-second", "unnumbered", "part-one", "part-two")
    outlines = [str(built.path / f"build/weave/{slug}.outline") for slug in slugs]
    texts["contents.json"] = contents.text_of(read_outlines(outlines)[0])
    return {name: LIBRARY.sub("", text) for name, text in texts.items()}


def constructs(tree: Tree) -> dict[str, str]:
    """A chapter and slides with every construction of the author's guide, woven: on a machine with
    results of its own, and of the reference run. Changes the tree.
    """
    for name, text in files_of(CONSTRUCTS.read_text(encoding="utf-8")).items():
        tree.write(name, text)
    accepted(tree.label("chapters/01-first.md", "chapters/03-third.md"))

    def woven(source: str, **settings: str) -> Done:
        return tree.bind(source, "html", **settings)

    def runs(source: str) -> str:
        """What the foot of the page is made of."""
        meta = json.loads(accepted(tree.bind(source, "json")))["meta"]
        found = {name: value for name, value in meta.items() if name.startswith("runs-")}
        return json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True)

    chapter, slides = "chapters/03-third.md", "slides/03-third.md"
    return {
        "constructs, here": accepted(woven(chapter, searchfile="build/search")),
        "constructs, search": tree.read("build/search"),
        "constructs, reference": accepted(woven(chapter, results="reference")),
        "constructs, slides": accepted(woven(slides, form="slides")),
        "constructs, runs": runs(chapter),
        "constructs, outline": tree.read("build/weave/03-third.outline"),
    }


def write() -> None:
    """golden.txt, of this tree and this pandoc."""
    with tempfile.TemporaryDirectory() as folder:
        built, tree = Tree(Path(folder, "built")), Tree(Path(folder, "tree"))
        done = built.make("epub", "slides")
        assert done.returncode == 0, done.stderr
        parts = {"pandoc": version(tree) + "\n"} | pages(built) | constructs(tree)
    lines = (f"==> {name} <==\n{text.removesuffix(chr(10))}\n" for name, text in parts.items())
    GOLDEN.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    write()
