"""Check sums of result files: what a line holds is what was written, and no line before it is
gone, new, doubled or at another place.

A sum is the last member of its line: SHA-256, shortened, of all bytes of the file before it. It
finds accidents and edits by hand. It is no signature: who computes it anew is believed.
"""

import hashlib
from collections.abc import Iterable

MARK = b',"sum":"'
END = b'"}'
DIGITS = 16


class Sums:
    """The digest of a file up to some line."""

    def __init__(self, before: bytes = b"") -> None:
        self._digest = hashlib.sha256(before)

    def added(self, line: bytes) -> bytes:
        """The next line, an object that ends in `}`, with its sum and a newline."""
        body = line[:-1] + MARK
        self._digest.update(body)
        end = self._digest.hexdigest()[:DIGITS].encode() + END + b"\n"
        self._digest.update(end)
        return body + end

    def right(self, line: bytes) -> bool | None:
        """Whether the next line has the right sum; None if it has none."""
        body, mark, end = line.rpartition(MARK)
        if mark and len(end) == DIGITS + len(END):
            return self.added(body + b"}") == line + b"\n"
        self._digest.update(line + b"\n")
        return None


def wrong(lines: Iterable[bytes]) -> tuple[int, str]:
    """The first line whose sum is wrong or missing, and which it is; 0 and "" if all is right.

    Above the first sum there need be none: then that one is of all these lines.
    """
    sums, right, number = Sums(), None, 0
    for number, line in enumerate(lines, 1):
        before, right = right, sums.right(line)
        if right is False:
            return number, "its check sum is wrong: this line, or one above it, was changed"
        if before and right is None:
            break
    return (number, "it has no check sum") if number and not right else (0, "")
