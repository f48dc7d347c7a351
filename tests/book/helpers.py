"""What the tests of the filters share: pieces of Markdown, and what is expected of a run."""

from __future__ import annotations

import re

from book.tree import Done


def when(claim: int, verdict: str, text: str) -> str:
    return f'::: {{.when claim={claim} verdict="{verdict}"}}\n{text}\n:::\n\n'


def fence(attributes: str, text: str = "") -> str:
    return f"``` {{{attributes}}}\n{text}\n```\n"


def plain(html: str) -> str:
    """Text of HTML, without entities."""
    text = re.sub(r"<[^>]*>", "", html)
    for entity, character in {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&amp;": "&"}.items():
        text = text.replace(entity, character)
    return text.replace("\u00a0", " ")


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
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout
