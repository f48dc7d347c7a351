"""Fixtures of the tests of the museum disk."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from museum_support import Museum

Mount = Callable[..., Museum]


@pytest.fixture
def mount() -> Iterator[Mount]:
    """mount("--speed", "10", "files=10x4K") -> a mounted disk, which ends with the test."""
    made: list[Museum] = []
    with tempfile.TemporaryDirectory(prefix="museum-") as folder:
        # pytest's own folders are closed to other users, and a mount may be one's.
        Path(folder).chmod(0o755)

        def mount_one(*args: str, **more: Any) -> Museum:
            place = Path(folder) / str(len(made))
            place.mkdir(exist_ok=True)
            place.chmod(0o777)
            made.append(Museum(place, *args, **more))
            return made[-1]

        try:
            yield mount_one
        finally:
            for museum in made:
                museum.end()
