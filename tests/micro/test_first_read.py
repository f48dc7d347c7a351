"""first-read: what one read() returns of a short reply and of a long one, in one piece and in two.

Run: python3 -m pytest tests/micro/test_first_read.py --variants=glibc,diet
"""

from __future__ import annotations

from pathlib import Path

from micro_support import rows, run

ASKED, HEAD = 4096, 190


def got(folder: Path, page: int, way: str) -> set[float]:
    status, out, err = run([folder / "first-read", "-n", "50", "-p", str(page), way])
    assert (status, err) == (0, "")
    assert {row[0] for row in rows(out)} == {ASKED}
    assert {row[2] for row in rows(out)} == {HEAD + page}
    return {row[1] for row in rows(out)}


def test_all_of_a_short_reply_and_the_first_of_a_long_one(folder: Path) -> None:
    assert got(folder, 1000, "together") == {HEAD + 1000}
    assert got(folder, 65536, "together") == {ASKED}


def test_in_two_pieces_it_is_the_first_or_both(folder: Path) -> None:
    assert got(folder, 1000, "apart") <= {HEAD, HEAD + 1000}
    assert got(folder, 65536, "apart") <= {HEAD, ASKED}
    assert got(folder, 0, "apart") == {HEAD}
