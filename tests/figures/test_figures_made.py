"""figures/module.mk: a figure is drawn when its data have changed, and left alone when they have
not, whether the last drawing left a picture or the reason why there is none.

Run: python3 -m pytest tests/figures/test_figures_made.py   (needs gnuplot)
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = """BUILD := build
Q := @
say = @echo $(1) $(2)
export: ; @:
include figures/module.mk
"""
SCRIPT = """experiment = "sample"
load "figures/style.gp"
plot [0:1] x title "made up"
"""

pytestmark = pytest.mark.skipif(not shutil.which("gnuplot"), reason="gnuplot is not installed")


class Tree:
    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "figures").mkdir()
        for name in (
            "module.mk",
            "style.gp",
            "curves.gp",
            "log-log.gp",
            "doublings.gp",
            "labels.gp",
            "then-and-now.gp",
            "peers.gp",
            "draw.sh",
        ):
            shutil.copy(ROOT / "figures" / name, path / "figures")
        (path / "Makefile").write_text(MAKEFILE)
        (path / "figures/sample.gp").write_text(SCRIPT)
        self.left = path / "build/figures"

    def data(self, source: str, missing: str = "") -> None:
        meta = self.path / "build/data/sample/meta.gp"
        meta.parent.mkdir(parents=True, exist_ok=True)
        meta.write_text(f'source = "{source}"\nmissing = "{missing}"\n')

    def figures(self, *settings: str) -> list[str]:
        """Makes them; what make said."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
        done = subprocess.run(
            ["make", "figures", *settings], cwd=self.path, env=environment,
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        return [line for line in done.stdout.splitlines() if not line.startswith("make: Nothing")]

    def names(self) -> list[str]:
        """What is left of the figures."""
        return sorted(path.name for path in self.left.glob("*.s*"))


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_a_picture_is_drawn_once(tree: Tree) -> None:
    tree.data("here")
    assert tree.figures() == ["PLOT build/figures/sample.svg"]
    assert tree.figures() == []
    (tree.left / "sample.svg").unlink()
    assert tree.figures() == ["PLOT build/figures/sample.svg"]


def test_a_reason_is_found_once(tree: Tree) -> None:
    tree.data("none", "not measured yet")
    skip = ["PLOT build/figures/sample.svg", "SKIP sample.svg: not measured yet"]
    assert tree.figures() == skip
    written = (tree.left / "sample.skipped").stat().st_mtime_ns
    assert tree.figures() == []
    assert (tree.left / "sample.skipped").stat().st_mtime_ns == written
    assert tree.names() == ["sample.skipped"]


def test_what_is_left_follows_the_data(tree: Tree) -> None:
    for source, left in (("none", "sample.skipped"), ("here", "sample.svg")) * 2:
        tree.data(source, "not measured yet")
        assert tree.figures()[0] == "PLOT build/figures/sample.svg"
        assert tree.names() == [left]
        assert tree.figures() == []


def test_a_figure_is_drawn_once_gnuplot_is_there(tree: Tree) -> None:
    tree.data("here")
    assert "gnuplot is not installed" in tree.figures("GNUPLOT=")[0]
    assert tree.names() == ["sample.skipped"]
    assert tree.figures() == ["PLOT build/figures/sample.svg"]
    assert tree.names() == ["sample.svg"]
    assert tree.figures() == []
