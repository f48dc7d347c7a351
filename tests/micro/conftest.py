"""The micro-benchmarks under test: python3 -m pytest tests/micro --variants=glibc,diet (after
`make variants`).
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.programs import binary
from tests.micro.micro_support import Micro


@pytest.fixture
def micro(variant: str, pytestconfig: pytest.Config) -> Iterator[Micro]:
    """The programs of a variant (--build, --variants), and a place that is open to all."""
    folder = binary(pytestconfig, variant, "fork-latency").parent
    if not (folder / "fork-latency").exists():
        pytest.fail(f"{folder / 'fork-latency'} is missing: make variants builds it", False)
    with tempfile.TemporaryDirectory(prefix="micro-") as place:
        os.chmod(place, 0o777)
        yield Micro(folder, Path(place))
