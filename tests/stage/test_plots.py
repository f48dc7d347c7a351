"""The plots of the stage, figures/stage.tsv."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.known import OF_THE_TALK, ROOT

PLOTS = [
    line.split("\t")
    for line in (ROOT / "figures/stage.tsv").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]


@pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: plot[0])
def test_a_plot_of_the_stage_names_what_there_is(plot: list[str]) -> None:
    _, experiment, kind, metric, series, labels, *axes = plot
    assert len(axes) == 2 and all(axes)
    assert kind in ("lines", "lines-x", "lines-y", "lines-xy", "bars")
    about = OF_THE_TALK[experiment]
    names = series.split()
    assert len(names) <= 4, "more cannot be told apart from the last row"
    variants = {variant.name for variant in about.variants}
    metrics = {one.name for one in about.metrics}
    for one in names:
        first, _, rest = one.partition(":")
        if first == "2003":
            then, _, curve = rest.partition(":")
            table = ROOT / f"figures/history/{then}-2003.tsv"
            words = curve.replace("_", " ").replace(":", "\t")
            assert f"\n{words}\t" in table.read_text(encoding="utf-8"), one
        else:
            assert first in variants and (rest or metric).removesuffix("/1000") in metrics, one
    assert len(labels.split("|")) == len(names)


@pytest.mark.skipif(not shutil.which("gnuplot"), reason="gnuplot is not installed")
@pytest.mark.parametrize("xs", [[], [500], [500, 1000, 2000]], ids=len)
@pytest.mark.parametrize("kind", {plot[2]: plot for plot in PLOTS})
def test_a_plot_of_little_data_is_drawn_or_says_why(
    kind: str, xs: list[int], tmp_path: Path
) -> None:
    name, experiment, _, metric, series, *_ = next(plot for plot in PLOTS if plot[2] == kind)
    folder = tmp_path / experiment
    folder.mkdir()
    variants = {one.partition(":")[0] for one in series.split()}
    about = f"source = 'here'; footer = 'now'; variants = '{' '.join(sorted(variants))}'"
    (folder / "meta.gp").write_text(f"{about}; titles = variants\n", encoding="utf-8")
    metrics = {metric, *(one.partition(":")[2] for one in series.split() if ":" in one)}
    for variant in variants:
        rows = [["x", *metrics], *([str(x), *(f"{x + 1}" for _ in metrics)] for x in xs)]
        text = "".join("\t".join(row) + "\n" for row in rows)
        (folder / f"{variant}.tsv").write_text(text, encoding="utf-8")
    plot = tmp_path / f"stage-{name}-1.svg"
    words = ["sh", "figures/draw.sh", plot.stem, "figures/stage.gp", str(tmp_path), str(plot)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert plot.exists() if len(xs) == 3 else plot.exists() or plot.with_suffix(".skipped").exists()
