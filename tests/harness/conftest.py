from collections.abc import Callable
from pathlib import Path

import pytest

from quest.__main__ import OF_MAKE, main
from tests.harness.made_up import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@pytest.fixture
def said(tree: Tree, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What a command prints in that tree, run in this process; of one that fails its one line."""
    monkeypatch.chdir(tree.root)
    monkeypatch.delenv("RESULTS", raising=False)

    def of(*words: str, status: int = 0) -> str:
        assert main([OF_MAKE, *words]) == status
        out, err = capsys.readouterr()
        assert not (out if status else err)
        return err if status else out

    return of
