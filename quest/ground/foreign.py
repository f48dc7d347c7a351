"""Foreign text: what a submission, a server, a peer or the name of a file says.

Each place that such text reaches obeys characters of its own: a terminal its escape codes, a
spreadsheet its formulas, a page its markup. There is one function for each place, and it is called
where the text leaves us. Printable text is not changed, apart from what that place would obey.
"""

import html
import json
import os
import re
import socket
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: All but printable ASCII, newline and tab; of these plain() keeps what is printable.
_UNUSUAL = re.compile(r"[^\n\t -~]")
#: What begins a formula, also in full width, as some spreadsheets read it.
FORMULA = "=+\\-@\uff1d\uff0b\uff0d\uff20"
#: The beginning of a cell, and what a spreadsheet set to another separator takes for one.
_BEGINS = re.compile(rf"(^|[;,\"|])(?=\s*[{FORMULA}])")


def _escaped(match: re.Match[str]) -> str:
    """As \\x1b. A byte that is not UTF-8 (Python's surrogates) is \\xfc, as it was."""
    char = match[0]
    if char.isprintable() or unicodedata.category(char) == "Zs":  # a space that does not break
        return char
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def plain(text: str) -> str:
    """For a terminal, a log or XML: lines and tabs stay. Codes that move the cursor, set the title
    or turn the direction of the text, and halves of characters, are named instead of sent."""
    return _UNUSUAL.sub(_escaped, text)


def line(text: str) -> str:
    """The same in one line."""
    return plain(text).replace("\n", "\\n").replace("\t", "\\t")


def name(text: str) -> str:
    """A file's name, or a student's: in one line, and two names never become one."""
    return line(text.replace("\\", "\\\\"))


def cell(text: str) -> str:
    """For CSV: a spreadsheet is to show it, and not to compute it. from_cell() undoes it."""
    text = line(text)
    return "'" + text if text.startswith("'") else _BEGINS.sub(r"\1'", text)


def from_cell(text: str) -> str:
    """The text of which cell() has made this."""
    return text[1:] if text.startswith("'") else text


def markdown(text: str) -> str:
    """For Markdown, as a paragraph or inside one: what would mean something is written as itself, a
    line stays one line, no address becomes a link, and @name calls nobody."""
    text = re.sub(r"([\\`*_\[\]<>|~&#{}$])", r"\\\1", line(text))
    text = re.sub(r"^(\s*)([-+=])", r"\1\\\2", text)
    text = re.sub(r"^(\s*\d+)([.)])", r"\1\\\2", text)
    text = re.sub(r"(?i)(www)\.", r"\1\\.", text.replace("://", ":\\//"))
    return text.replace("@", "@<!-- -->")


def page(text: str) -> str:
    """For a page of HTML, inside or outside of a tag: lines and tabs stay."""
    return html.escape(plain(text))


def gnuplot(text: str) -> str:
    """A string of gnuplot's, in double quotes: what stands between backquotes would be run."""
    for char, instead in (("\\", "\\\\"), ('"', '\\"'), ("`", "\\140")):
        text = text.replace(char, instead)
    return f'"{line(text)}"'


def to_json(data: Any, indent: int | None = None) -> str:
    """JSON whose texts are plain(): a reader may refuse half of a character, and may print the text
    on a terminal.
    """
    return json.dumps(_plain_in(data), indent=indent)


def _plain_in(data: Any) -> Any:
    if isinstance(data, str):
        return plain(data)
    if isinstance(data, Mapping):
        return {plain(str(key)): _plain_in(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_plain_in(value) for value in data]
    return data


def anonymous(text: str) -> str:
    """Without the paths, the host name and the user name of this machine."""
    # Path.home() fails where a user has neither HOME nor a line in passwd; this gives "~" then.
    places = [str(Path.cwd()), os.path.expanduser("~"), os.environ.get("TMPDIR", "")]
    for place in sorted((p for p in places if len(p) > 1), key=len, reverse=True):
        text = text.replace(place.rstrip("/") + "/", "").replace(place, ".")
    text = re.sub(r"(?<![\w.:/])/(?:home|Users)/[^/\s:]+/?", "", text)
    text = re.sub(r"(?<![\w.:/])/(?!proc\b|sys\b|dev\b)(?:[\w.+-]+/)+", "", text)
    # A name such as "vm" or "root" would also hit ordinary words: only whole, longer ones are
    # taken.
    host = socket.gethostname()
    for name in (host, host.partition(".")[0], os.environ.get("USER", ""), os.environ.get("LOGNAME", "")):
        if len(name) > 3 and name != "root":
            text = re.sub(rf"\b{re.escape(name)}\b", "", text)
    return text
