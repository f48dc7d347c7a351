"""Spells what readers read: chapters, slides with their notes, labs, and each README, in British English.

    python3 -m quest.book.spelling OUTLINE...

asks hunspell (en_GB) for all words at once. What it does not know and chapters/words.txt has not is a fault:
`file:line: word`; so is a line of words.txt that no text needs. Status 1 if there is one, 2 where hunspell fails.
"""

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from quest.book.outline import Outline, read_outlines
from quest.ground.entry import run_main
from quest.ground.errors import InputError

WORDS = Path("chapters/words.txt")
DICTIONARY = "en_GB"
#: Files of Markdown that are read besides chapters and slides.
OTHERS = ("README.md", "CONTRIBUTING.md", "*/README.md", "*/*/README.md", "labs/*/task.md", "labs/*/hints.md")
#: Not prose: code between backquotes, addresses, attributes of pandoc, HTML, references, paths and options.
NOT_PROSE = re.compile(
    r"`[^`]*`|https?://\S+|\{[^{}\n]*\}|<[^<>\n]*>|\]\([^()\s]*\)|@\w+:[\w-]+|"
    r"[^\s()\[\]]*[/_=@$][^\s()\[\]]*|(?<!\w)--?\w[\w-]*|[\w-]+\.(?:c|h|md|py|toml|mk|html)\b"
)
FENCED = re.compile(r"^ {0,3}(```+|~~~+).*?^ {0,3}\1\s*$", re.M | re.S)
INDENTED = re.compile(r"(?:^ {4}.*\n)+", re.M)
#: A word: letters with an apostrophe inside. With a digit or with a capital inside it is a name.
WORD = re.compile(r"(?<![\w'])[^\W\d_]+(?:'[^\W\d_]+)*(?![\w])")
NAME = re.compile(r".+[A-Z].*")
#: Of two spellings that the dictionary has, the one that the book has not.
AMERICAN = re.compile(r"(?i)\w+(?:iz(?:e[sd]?|ing|ations?|ers?)|yz(?:e[sd]?|ing))\b")
WITH_Z = {
    "size", "sizes", "sized", "sizing", "resize", "resized", "prize", "prizes", "seize", "seized", "oversized",
    "citizen", "horizon", "capsize",
}  # fmt: skip

Places = dict[str, str]  #: a word -> where it first stands


def plain(text: str) -> str:
    """Only the prose of it, with straight apostrophes; lines stay lines."""
    return NOT_PROSE.sub(" ", text.replace("\u2019", "'").replace("\u00a0", " ").replace("\u202f", " "))


def without_code(text: str) -> str:
    """Markdown without blocks of code and without the metadata at its head; lines stay where they are."""

    def blank(match: re.Match[str]) -> str:
        return "\n" * match[0].count("\n")

    return INDENTED.sub(blank, FENCED.sub(blank, text))


def words_in(text: str) -> Iterator[str]:
    """The words of prose that are to be looked up: no names with a capital inside, no possessive."""
    for word in WORD.findall(text):
        bare = word.removesuffix("'s").removesuffix("'")
        if len(bare) > 1 and not NAME.fullmatch(bare):
            yield bare


def of_outlines(outlines: Sequence[Outline]) -> Places:
    """Words of chapters and slides, captions and notes among them."""
    found: Places = {}
    for outline in outlines:
        texts = [(1, outline.metadata.get(name, "")) for name in ("title", "summary")]
        texts += [(block.line, block.text) for block in outline.blocks if block.kind in ("text", "heading", "term")]
        texts += [
            (block.line, block.values.get(name, ""))
            for block in outline.blocks
            for name in ("caption", "alt", "title", "x", "y")
        ]
        for line, text in texts:
            for word in words_in(plain(text)):
                found.setdefault(word, f"{outline.source}:{line}")
    return found


def of_files(root: Path = Path()) -> Places:
    """Words of the other files, those of the tree itself and of no build folder."""
    found: Places = {}
    paths = sorted({path for pattern in OTHERS for path in root.glob(pattern)})
    for path in paths:
        if path.parts[0] in ("build", "work"):
            continue
        lines = without_code(path.read_text(encoding="utf-8")).splitlines()
        for number, line in enumerate(lines, 1):
            for word in words_in(plain(line)):
                found.setdefault(word, f"{path}:{number}")
    return found


def own_words(path: Path = WORDS) -> dict[str, int]:
    """The list, with the line of each. InputError for one that is there twice or out of its order."""
    lines = path.read_text(encoding="utf-8").splitlines()
    words = [(line, number) for number, line in enumerate(lines, 1) if line and not line.startswith("#")]
    for (before, _), (word, number) in pairwise(words):
        if (word.lower(), word) <= (before.lower(), before):
            raise InputError(f"{path}:{number}: {word} stands after {before}: keep alphabetical order, each word once")
    return dict(words)


def unknown(words: Sequence[str]) -> set[str]:
    """Those that hunspell does not know. InputError where it fails or has no such dictionary."""
    try:
        done = subprocess.run(
            ["hunspell", "-d", DICTIONARY, "-i", "utf-8", "-l"], input="\n".join(words) + "\n",
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    except OSError as error:
        raise InputError(f"hunspell: {error.strerror} (apt-get install hunspell hunspell-en-gb)") from None
    if done.returncode != 0 or "Can't open" in done.stderr:
        raise InputError(f"hunspell: {(done.stderr.splitlines() or ['failed'])[0]} (apt-get install hunspell-en-gb)")
    return set(done.stdout.split())


def faults(places: Mapping[str, str], own: Mapping[str, int]) -> Iterator[str]:
    """A line for each word that neither dictionary nor list has, for each in American spelling, and for each of the
    list that no text has.
    """
    small = {word.lower() for word in own}
    bad = unknown(sorted(places))
    for word in sorted(bad, key=lambda word: (places.get(word, ""), word)):
        if word in places and word not in own and word.lower() not in small:
            yield f"{places[word]}: {word}: mend it, or put it into {WORDS}"
    for word in sorted(set(places) - bad):
        if AMERICAN.fullmatch(word) and word.lower() not in WITH_Z | small:
            yield f"{places[word]}: {word}: write it with s in this book"
    used = {word.lower() for word in places}
    for word, number in own.items():
        if word.lower() not in used:
            yield f"{WORDS}:{number}: {word}: no text uses it: remove it"


def main(arguments: list[str]) -> int:
    """The outlines of all chapters and slides."""
    chapters, slides = read_outlines(arguments)
    places = of_files() | of_outlines([*chapters, *slides])
    problems = list(faults(places, own_words()))
    print("\n".join(problems) or f"  spelling: {len(places)} words in order")
    return 1 if problems else 0


if __name__ == "__main__":
    run_main(main)
