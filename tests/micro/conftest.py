"""Where the micro-benchmarks under test are."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.servers import FOLDERS

TREE = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(variant: str, pytestconfig: pytest.Config) -> Path:
    """Where the programs of a variant are (--build, --variants)."""
    found = TREE / str(pytestconfig.getoption("--build")) / FOLDERS[variant]
    if not (found / "fork-latency").exists():
        pytest.fail(f"{found / 'fork-latency'} is missing: make variants builds it", False)
    return found
