from __future__ import annotations

from pathlib import Path

import pytest
from made_up import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)
