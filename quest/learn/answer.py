"""What a chapter says after it has asked for a prediction: its next lines, with the numbers and the
verdicts that the book would put there.
"""

import json
import re
from pathlib import Path
from typing import Any

PARAGRAPHS = 2  # so many are told; the page has the rest
WHEN = re.compile(r'claim=(\d+) verdict="([^"]*)"')
INLINE = re.compile(r"\[([^\]]*)\]\{\.when " + WHEN.pattern + r"\}")
NUMBER = re.compile(r"\[([^\]\s]+)\]\{\.num[^}]*\}")
VERDICT = re.compile(r"\[(\d+)\]\{\.verdict\}")
ENDS = re.compile(r"#|:+ *(?:predict\b|\{\.predict\b)|```|\|")


def plain(text: str) -> str:
    """Markdown as one would say it."""
    text = re.sub(r"\s*\(@(?:fig|sec|tbl|ch|lst)[:\w-]*\)", "", text)
    text = re.sub(r"@fig:[\w-]+", "the figure", text)
    text = re.sub(r"@ch:([\w-]+)", r"chapter \1", text)
    text = re.sub(r"@(?:sec|tbl|lst):[\w-]+", "another section", text)
    text = re.sub(r"\[([^\]]*)\]\{[^}]*\}|`([^`]*)`", lambda m: m[1] or m[2], text)
    return " ".join(text.replace("*", "").split())


class Chapter:
    """A chapter's text, and the numbers and verdicts of the last `make export`."""

    def __init__(self, text: str, build: Path) -> None:
        self.text = text
        self.numbers: dict[str, Any] = _data(build, "numbers") or {}
        self.verdicts = {each["id"]: each["verdict"] for each in _data(build, "claims") or []}
        self.named: dict[str, list[str]] = {}
        for claim, words in WHEN.findall(text):
            self.named.setdefault(claim, []).extend(words.split(","))

    def answer(self, after: int) -> list[str]:
        """The paragraphs that follow the question that ends at `after`."""
        found: list[str] = []
        shown = True
        # The fences of a block stand alone, whether or not an empty line parts them from its text.
        alone = re.sub(r"^(:::.*)$", r"\n\1\n", self.text[after:], flags=re.M)
        for block in filter(None, map(str.strip, re.split(r"\n\s*\n", alone))):
            if ENDS.match(block) or len(found) == PARAGRAPHS:
                break
            if block.startswith(":::"):
                when = WHEN.search(block)
                shown = self._fits(when[1], when[2]) if when else not block.strip(":")
            elif shown and not block.startswith("!["):
                found.append(plain(self._filled(block)))
        return found

    def _fits(self, claim: str, wanted: str) -> bool:
        """`otherwise`: what no other block of the chapter names. A verdict that none is written
        for, as where there is no SciPy: the first, which the reference run's verdict has.
        """
        verdict, words = self.verdicts.get(int(claim), ""), wanted.split(",")
        if verdict not in self.named[claim]:
            verdict = "otherwise" if "otherwise" in self.named[claim] else self.named[claim][0]
        return verdict in words

    def _filled(self, text: str) -> str:
        text = INLINE.sub(lambda m: m[1] if self._fits(m[2], m[3]) else "", text)
        text = VERDICT.sub(lambda m: self.verdicts.get(int(m[1]), "?"), text)
        return NUMBER.sub(lambda m: str(self.numbers.get(m[1], {}).get("text", "?")), text)


def _data(build: Path, name: str) -> Any:
    try:
        return json.loads((build / f"data/{name}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
