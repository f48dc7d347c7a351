"""Where the micro-benchmarks under test are."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from micro_support import ForEveryone

from conformance.matrix import FOLDERS

TREE = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(variant: str, pytestconfig: pytest.Config) -> Path:
    """Where the programs of a variant are (--build, --variants)."""
    found = TREE / str(pytestconfig.getoption("--build")) / FOLDERS[variant]
    if not (found / "fork-latency").exists():
        pytest.fail(f"{found / 'fork-latency'} is missing: make variants builds it", False)
    return found


@pytest.fixture
def for_everyone(folder: Path) -> Iterator[ForEveryone]:
    """for_everyone(program) -> a copy that a user without any rights can run: the tree may lie
    below a folder that others cannot enter.
    """
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)

        def copy(program: str) -> Path:
            return Path(shutil.copy(folder / program, name))

        yield copy
