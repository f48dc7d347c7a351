"""write-parts and in-flight: what is written, and what has been sent.

Run: python3 -m pytest tests/micro/test_sent.py --variants=glibc,diet
"""

from __future__ import annotations

from pathlib import Path

import pytest
from micro_support import rows, run

UNSUPPORTED = 77


@pytest.mark.parametrize("where", ["pipe", "unix", "file"])
@pytest.mark.parametrize("way", ["two", "copy", "writev"])
def test_every_way_into_everything(folder: Path, way: str, where: str) -> None:
    status, out, err = run([folder / "write-parts", "-n", "100", "-p", "8000", way, where])
    assert (status, err) == (0, "")
    assert len(rows(out)) == 100
    assert all(row[0] > 0 for row in rows(out))


@pytest.mark.parametrize("size", [1, 20000, 32768])
@pytest.mark.parametrize("way", ["read", "mmap", "sendfile", "splice"])
def test_the_pages_of_the_file_or_a_copy(folder: Path, way: str, size: int) -> None:
    status, out, err = run([folder / "in-flight", "-n", "5", "-p", str(size), way])
    if status == UNSUPPORTED:
        pytest.skip(err)
    assert (status, err) == (0, "")
    of_the_file = size if way in ("sendfile", "splice") else 0
    assert rows(out) == [[size, of_the_file]] * 5
