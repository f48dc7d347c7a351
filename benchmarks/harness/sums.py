"""Check sums of result files: what a line holds is what was written, and no line before it is
gone, new, doubled or at another place.

A sum is the last member of its line: SHA-256, shortened, of all bytes of the file before it. It
finds accidents and edits by hand. It is no signature: who computes it anew is believed.
"""

import hashlib

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
