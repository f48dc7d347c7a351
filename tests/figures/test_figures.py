"""Figures: each draws what the exporter makes of the committed results, the same bytes each time,
and says its run.

Run: python3 -m pytest tests/figures   (needs gnuplot)
"""

import functools
import itertools
import os
import re
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from quest.report import export, gnuplot, machines, then
from quest.spec import experiment_file, model
from tests.book.test_diagrams import contrast
from tests.known import EXPERIMENTS, REFERENCE, ROOT, reference

ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
NAMED = re.compile(r'^experiment = "(.*)"$', re.M)

pytestmark = pytest.mark.skipif(not shutil.which("gnuplot"), reason="gnuplot is not installed")


# ---- what there is -------------------------------------------------------------------------------


def rows_of_plots() -> dict[str, list[str]]:
    lines = (ROOT / "figures/plots.tsv").read_text(encoding="utf-8").splitlines()
    return {line.split("\t")[0]: line.split("\t") for line in lines if not line.startswith("#")}


def scripts() -> dict[str, str]:
    """Those that draw a figure alone -> the experiment; parts name none."""
    paths = sorted((ROOT / "figures").glob("*.gp"))
    found = ((path.stem, re.search(NAMED, path.read_text("utf-8"))) for path in paths)
    timeline = "timeline-01-iterative"
    return {**{stem: match[1] for stem, match in found if match}, timeline: timeline}


PLOTS, SCRIPTS = rows_of_plots(), scripts()
EXPERIMENT = {**{slug: row[1] for slug, row in PLOTS.items()}, **SCRIPTS}
# All that differ: the scripts, and one line of the table for each part.
KINDS = [*SCRIPTS, *{row[2]: slug for slug, row in PLOTS.items()}.values()]


@pytest.mark.skipif(not shutil.which("pandoc"), reason="pandoc is not installed")
def test_a_page_does_not_wait_for_the_figures_of_slides(tmp_path: Path) -> None:
    def drawn(goal: str) -> set[str]:
        command = ["make", "-n", goal, f"BUILD={tmp_path / 'build'}"]
        done = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=True)
        return set(re.findall(r"^sh figures/draw.sh (\S+)", done.stdout, re.M))

    pages, slides = drawn("book"), drawn("slides")
    assert not [name for name in pages if name.startswith("stage-")]
    assert {name for name in slides if name.startswith("stage-")} == slides - pages
    assert {*PLOTS, *SCRIPTS} - pages == set() and len(slides) > 2 * len(pages)


# ---- tables as the exporter writes them ----------------------------------------------------------


EXPORTED = tempfile.TemporaryDirectory()
#: Columns that say where something stands, not what was measured.
PLACES = ("x", "n", "bound", "row", "y", "from_y", "to_y", "client")


def write_table(path: Path, lines: Iterable[Iterable[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(map(str, line)) + "\n" for line in lines))


def add_meta(data: Path, experiment: str, **variables: str) -> None:
    """What gnuplot reads last counts."""
    with (data / experiment / "meta.gp").open("a") as meta:
        meta.write(gnuplot.assignments(variables))


@functools.cache
def exported(experiment: str) -> Path:
    """All tables of an experiment, of the reference run."""
    data = Path(EXPORTED.name)
    if experiment == "claims":
        stands: Any = [{"source_title": source, "standing": how, "rule": "", "verdict": how}
                  for source in ("talk", "page") for how in ("holds", "no rule")]  # fmt: skip
        tables = gnuplot.tally(stands)
    elif experiment == "machines":
        with reference(EXPERIMENTS.values()) as library:
            tables = machines.files(*machines.strips(library, data / "none", experiment_file.RATIOS))
    else:
        definition, tables = EXPERIMENTS[experiment], {}
        with reference([definition]) as library:
            both = library.both(definition.id)
        sources = then.source_tables(definition, both)
        export.export_figure(definition, both, sources, data / definition.id)
    for name, text in tables.items():
        (data / experiment).mkdir(exist_ok=True)
        (data / experiment / name).write_text(text)
    if tables:
        add_meta(data, experiment, footer="run of 2026", source="reference")
    return data / experiment


def write(data: Path, experiment: str) -> None:
    shutil.copytree(exported(experiment), data / experiment, dirs_exist_ok=True)


def change(data: Path, new: Callable[[str, str, str], str], only: str = "*") -> None:
    """Every cell of every table by new(x of its row, name of its column, the cell)."""
    for table in data.glob(f"*/{only}.tsv"):
        head, *lines = [line.split("\t") for line in table.read_text().splitlines()]
        changed = ([new(ln[0], *pair) for pair in zip(head, ln, strict=True)] for ln in lines)
        write_table(table, [head, *changed])


def greater(cell: str) -> str:
    return f"{float(cell) * 1.1:g}" if re.fullmatch(r"\d[\d.]*(e\+\d+)?", cell) else cell


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


# ---- drawing -------------------------------------------------------------------------------------


def draw(slug: str, data: Path, out: Path) -> subprocess.CompletedProcess[str]:
    script = "plot" if slug in PLOTS else "timeline" if slug.startswith("timeline") else slug
    command = ["sh", "figures/draw.sh", slug, f"figures/{script}.gp", str(data), str(out)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)


#: A tick of gnuplot's: a line from an axis, then its number.
TICK = re.compile(
    r"<path stroke='[^']*' +d='M([\d.]+),([\d.]+) L[^']*'/>\s*<g transform=\"[^>]*"
    r"text-anchor=\"(?:middle|end)\">\s*<text>(.*?)</text>"
)


def doubled_ticks(svg: str) -> list[str]:
    """The numbers that two neighbours on an axis share, with that of the first."""
    found = [(x, y, re.sub("<.*?>", "", text)) for x, y, text in TICK.findall(svg)]
    return [
        f"{text} at {x}, {y}"
        for (x, y, text), (other_x, other_y, other) in itertools.pairwise(found)
        if text.strip() and text == other and (x == other_x) != (y == other_y)
    ]


def drawn(slug: str, data: Path, out: Path) -> str:
    """Its words, one a line; it was drawn without one of gnuplot's."""
    done = draw(slug, data, out)
    if not (ROOT / REFERENCE / f"{EXPERIMENT[slug]}.jsonl").exists() and "not measured yet" in done.stdout:
        pytest.skip(done.stdout)  # a new experiment, which the next reference run will have
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not re.search(r"\bnan\b", out.read_text(), re.IGNORECASE)
    assert not doubled_ticks(out.read_text())
    texts = ET.parse(out).getroot().iter("{http://www.w3.org/2000/svg}text")
    return "\n".join("".join(text.itertext()) for text in texts)


SYMBOL = r"(?:2\.[5-9]|[3-9]|\d\d)"  #: how large; smaller ones are dots


def weak_symbols(svg: str) -> list[str]:
    """Colours of symbols that stand out less than 3 to 1 in the dark, or less than the palest series in the light."""
    dark = dict(re.findall(r'\[color="rgb\(([\d,]+)\)"\] { color: (#\w+)', svg))
    found = set(re.findall(rf"<use [^>]*scale\({SYMBOL}[^>]*color='rgb\(([\d,]+)\)'", svg)) - {"255,255,255"}  # a hole
    both = {rgb: ("#" + bytes(map(int, rgb.split(","))).hex(), dark.get(rgb, "#8a8a92")) for rgb in found}
    return [rgb for rgb, (a, b) in both.items() if contrast(a, "#ffffff") < 2.4 or contrast(b, "#1b1c1a") < 3]


#: What these tests look at lies in figures/style.gp, which all share: `make test` leaves the scripts to CI.
SOME_KINDS = [pytest.param(slug, marks=[pytest.mark.slow] * (slug in SCRIPTS)) for slug in KINDS]


@pytest.mark.parametrize("slug", SOME_KINDS)
def test_without_any_data_these_are_named_in_one_line(slug: str, data: Path, tmp_path: Path) -> None:
    done = draw(slug, data, tmp_path / "figure.svg")
    assert done.returncode == 1
    assert done.stderr.startswith(f"figures: {slug}: no data of the experiment ")
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("slug", SOME_KINDS)
def test_the_same_data_give_the_same_bytes(slug: str, data: Path, tmp_path: Path) -> None:
    write(data, EXPERIMENT[slug])
    texts = [(drawn(slug, data, tmp_path / name), (tmp_path / name).read_text())[1] for name in ("a.svg", "b.svg")]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("slug", [pytest.param(s, marks=[pytest.mark.slow] * (s not in KINDS)) for s in EXPERIMENT])
def test_a_figure_is_its_data_and_says_their_run(slug: str, data: Path, tmp_path: Path) -> None:
    """Other bytes of other data, else a script could draw constants."""
    out = tmp_path / "figure.svg"
    write(data, EXPERIMENT[slug])
    assert "reference machine, run of 20" in drawn(slug, data, out)
    first = out.read_text()
    assert f"<title>{slug}</title>" in first and not weak_symbols(first)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "figure.svg"]
    if slug in KINDS:
        change(data, lambda _, name, cell: greater(cell) if name not in PLACES else cell)
        drawn(slug, data, out)
        assert out.read_text() != first


def test_every_colour_has_a_dark_one(data: Path, tmp_path: Path) -> None:
    """Of every script, and of what gnuplot writes on its own."""
    dark = (ROOT / "figures/dark.css").read_text(encoding="utf-8")
    same_in_both = "8a8a92"
    for script in sorted((ROOT / "figures").glob("*.gp")):
        for colour in set(re.findall(r"0x([0-9a-f]{6})\b", script.read_text(encoding="utf-8"))) - {same_in_both}:
            rgb = "rgb({},{},{})".format(*bytes.fromhex(colour))
            for attribute in ("fill", "stroke", "color"):
                assert f'[{attribute}="{rgb}"]' in dark, f"{script.name}: 0x{colour} is not in dark.css"
    write(data, EXPERIMENT["throughput"])
    drawn("throughput", data, tmp_path / "figure.svg")
    svg = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    assert dark in svg
    assert not re.findall(r"rgb\( | [0-9]+\)", svg.replace(dark, ""))


def test_no_two_ticks_of_a_linear_axis_are_alike(tmp_path: Path) -> None:
    """From 1 to 10 million, in one run of gnuplot."""
    highs = [mantissa * 10.0**power for power in range(8) for mantissa in (1, 1.3, 2.6, 4.5, 7, 9)]
    rules = re.findall(r"^(?:thousands|tick_format)\(high\) = .*", (ROOT / "figures/style.gp").read_text("utf8"), re.M)
    plots = "".join(
        f"set output '{tmp_path}/{i}.svg'\nset xrange [0:{high}]\nset yrange [0:{high}]\n"
        f"set format tick_format({high})\nplot x\n"
        for i, high in enumerate(highs)
    )
    script = "\n".join([*rules, "set terminal svg size 800, 450", plots])
    subprocess.run(["gnuplot"], input=script, text=True, check=True)
    for i, high in enumerate(highs):
        svg = (tmp_path / f"{i}.svg").read_text(encoding="utf-8")
        assert len(TICK.findall(svg)) > 6 and not doubled_ticks(svg), high


def test_a_number_in_words_has_two_digits() -> None:
    """5.4 million are no 5M, and a tenth of a microsecond is not 0."""
    texts = {0.123: "0.12", 7.0: "7", 7.26: "7.3", 123.4: "123", 9999.0: "9999", 12345.0: "12k", 1.5e6: "1.5M",
             5.44e6: "5.4M", 34.4e6: "34M"}  # fmt: skip
    named = r"^(?:thousands|tick_format|number_text)\(\w+\) = .*"
    rules = re.findall(named, (ROOT / "figures/style.gp").read_text("utf8"), re.M)
    script = "\n".join([*rules, *(f"print number_text({value})" for value in texts)])
    done = subprocess.run(["gnuplot"], input=script, text=True, check=True, capture_output=True)
    assert done.stderr.split() == list(texts.values())
    for name in ("stage", "curves"):
        assert "number_text(" in (ROOT / f"figures/{name}.gp").read_text("utf8")


def test_what_failed_has_its_place(data: Path, tmp_path: Path) -> None:
    """A bar that is absent looks like a program that was not asked."""
    write(data, "peers-idle")
    failed = {"failed": "Apache at 6000: failed 8 of 10", "failed_variants": "apache",
              "failed_titles": "'Apache'", "failed_texts": "'failed 8 of 10'"}  # fmt: skip
    add_meta(data, "peers-idle", **failed)
    lines = drawn("peers-idle", data, tmp_path / "figure.svg").splitlines()
    assert {"Apache", "failed 8 of 10"} <= set(lines)
    assert any(line.startswith("Apache at 6000: failed 8 of 10") for line in lines)
    add_meta(data, "peers-idle", **dict.fromkeys(failed, ""))
    assert "failed" not in drawn("peers-idle", data, tmp_path / "figure.svg")
    add_meta(data, "peers-idle", failed_in_part="nginx", failed_in_part_texts="'failed 2 of 10'")
    assert "× failed 2 of 10" in drawn("peers-idle", data, tmp_path / "figure.svg")


END = re.compile(r"(^|_)(low|high|p99)$")


@pytest.mark.parametrize("slug", SOME_KINDS)
def test_too_few_repetitions_for_an_interval(slug: str, data: Path, tmp_path: Path) -> None:
    """What the profile "smoke" gives: the ends of intervals are missing, the value is drawn."""
    missing, equal = tmp_path / "missing.svg", tmp_path / "equal.svg"
    for out, is_equal in ((missing, False), (equal, True)):
        write(data, EXPERIMENT[slug])
        for table in data.glob("*/*.tsv"):
            if table.name.startswith(("points", "samples")):
                continue
            head, *lines = [line.split("\t") for line in table.read_text().splitlines()]
            for line, (place, name) in itertools.product(lines, enumerate(head)):
                value = line[head.index(END.sub("", name) or "value")] if END.search(name) else ""
                line[place] = (value if is_equal else "-") if END.search(name) else line[place]
            write_table(table, [head, *lines])
        drawn(slug, data, out)
    # Only words may differ: an interval that is not there is not written.
    written = re.sub(r" \((\d+(?:\.\d\d)?)–\1\)", "", equal.read_text())
    assert missing.read_text() == written


@pytest.mark.parametrize(
    ("slug", "variants", "missing", "reason"),
    [("fork-reap", "", "all: no fork here", "all: no fork here"),
     ("wake-latency", "alone", "x: y", "no run with others beside: x: y")],
)  # fmt: skip
def test_what_could_not_be_measured_leaves_its_reason(
    slug: str, variants: str, missing: str, reason: str, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "figure.svg"
    out.write_text("of an earlier run")
    write(data, slug)
    source = "here" if variants else "none"
    add_meta(data, slug, variants=variants, titles=variants, source=source, missing=missing)
    done = draw(slug, data, out)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"SKIP {slug}.svg: {reason}\n"
    assert (tmp_path / "figure.skipped").read_text() == f"{reason}\n"
    assert not out.exists()
    write(data, slug)
    drawn(slug, data, out)
    assert not (tmp_path / "figure.skipped").exists()


@pytest.mark.parametrize("slug", ["fork-latency", "fork-static", "linking-2003"])
def test_a_missing_variant_is_left_out_and_named(slug: str, data: Path, tmp_path: Path) -> None:
    write(data, "fork-latency")
    (data / "fork-latency/diet.tsv").unlink()
    add_meta(data, "fork-latency", variants="dynamic static static-pie musl",
             titles="dyn static pie 'musl, static'", missing="dietlibc: no diet")  # fmt: skip
    text = drawn(slug, data, tmp_path / "figure.svg")
    assert "not measured: dietlibc: no diet" in text
    assert "musl, static" in text


@pytest.mark.parametrize("place", [2, -1])
@pytest.mark.parametrize(
    ("slug", "name", "title"),
    [("fork-latency", "static", "glibc, static"), ("throughput", "02-fork-keep", "02-fork")],
)
def test_one_place_without_a_value(slug: str, name: str, title: str, place: int, data: Path, tmp_path: Path) -> None:
    """The curve has a gap there, or ends before; its name stays beside it."""
    write(data, slug)
    x = (data / slug / f"{name}.tsv").read_text().splitlines()[1:][place].split("\t")[0]
    change(data, lambda at, column, cell: "-" if at == x and column not in PLACES else cell, name)
    assert title in drawn(slug, data, tmp_path / "figure.svg")


def test_a_server_that_answered_nobody_has_its_row(data: Path, tmp_path: Path) -> None:
    """It has no wait to be drawn, but how much it held and that nobody was answered."""
    write(data, "toy-shop")
    no_wait = re.compile("during_(p99_)?us")
    change(data, lambda _, name, cell:
           "-" if no_wait.match(name) else "0" if name == "during_good" else cell)  # fmt: skip
    assert {"03-prefork", "nginx"} <= set(drawn("toy-shop", data, tmp_path / "f.svg").splitlines())


def test_crosscheck_with_one_tool_and_with_none(data: Path, tmp_path: Path) -> None:
    out, folder = tmp_path / "figure.svg", data / "hammer-crosscheck"
    write(data, folder.name)
    change(data, lambda at, name, cell:
           str(int(at[:4] == "keep")) if name == "client_bound" else cell, "summary")  # fmt: skip
    for tool, names in (("h2load", "close-hammer close-wrk keep-hammer keep-wrk"), ("wrk", "")):
        for table in folder.glob("*.tsv"):
            rows = table.read_text().splitlines(keepends=True)
            table.write_text("".join(row for row in rows if tool not in row))
        add_meta(data, folder.name, variants=names, titles=names, missing=f"{tool}: not installed")
        if names:
            text = drawn(folder.name, data, out)
            assert text.count("not measured here") == 2
            assert [len(re.findall(rf"\dk{star} and \d+\.\dk{star}\n", text)) for star in ("", r"\*")] == [1, 1]
    assert draw(folder.name, data, out).returncode == 0
    assert "wrk: not installed" in (tmp_path / "figure.skipped").read_text()


@pytest.mark.parametrize("slug", ["fork-reap", "disk-model", "event-wait", "peers-small", "fork-2003"])
def test_the_reference_run_stands_beside_the_readers(slug: str, data: Path, tmp_path: Path) -> None:
    experiment = EXPERIMENT[slug]
    write(data, experiment)
    meta = (data / experiment / "meta.gp").read_text()
    name = re.findall(r'^variants = "([^ "]*)', meta, re.M)[0]
    own = data / experiment / f"{name}.tsv"
    alone = drawn(slug, data, tmp_path / "figure.svg")
    pictures = set()
    add_meta(data, experiment, source="here", reference_variants=name, reference_footer="of 2026")
    for factor in "24":
        other = own.with_name(f"reference-{name}.tsv")
        other.write_text(re.sub(r"(?<=\t)(\d)", rf"{factor}\1", own.read_text()))
        assert "reference machine, of 2026" in drawn(slug, data, tmp_path / "figure.svg")
        picture = (tmp_path / "figure.svg").read_text()
        assert ">measured here, " in picture, "chapters/pandoc/figures.lua looks for it"
        pictures.add(picture)
    assert "reference machine, of 2026" not in alone
    assert len(pictures) == 2


def test_curves_of_a_source_stand_beside_todays(data: Path, tmp_path: Path) -> None:
    write(data, "port-bind")
    text = set(drawn("bind-2003", data, tmp_path / "figure.svg").splitlines())
    assert {"NetBSD 1.6.1", "OpenBSD 3.4", "2003, Pentium III at 900 MHz", "now"} <= text
    assert "on the zero line: Linux, FreeBSD 5.1" in text
    write(data, "disk-read-threads")
    assert "lighttpd 1.5.0" in drawn("read-threads-2007", data, tmp_path / "figure.svg")


def test_what_lies_outside_is_marked_and_counted(data: Path, tmp_path: Path) -> None:
    write(data, "fork-reap")
    change(data, lambda _, name, cell: "10" if name == "reap_us" else cell)
    with (data / "fork-reap" / "points-musl.tsv").open("a") as points:
        points.write("4\t5000\n")
    text = drawn("fork-reap", data, tmp_path / "figure.svg")
    assert "1 of the dots, marked at the upper edge, lie higher: up to 5000" in text


def test_names_stay_in_the_order_of_their_curves(data: Path, tmp_path: Path) -> None:
    write(data, "fork-reap")
    lasts = {"static": 100.19, "diet": 100.18, "dynamic": 100.08, "static-pie": 100.07, "musl": 100}
    for name, last in lasts.items():
        head = ["x", *(f"reap_us{end}" for end in ("", "_low", "_high"))]
        write_table(data / f"fork-reap/{name}.tsv", [head, *([x, *[last] * 3] for x in (1, 9))])
    titles = {name: EXPERIMENTS["fork-reap"].title_of(name) for name in lasts}
    drawn("fork-reap", data, tmp_path / "figure.svg")
    svg = (tmp_path / "figure.svg").read_text()
    found = re.findall(r"translate\([\d.]+,([\d.]+)\)[^<]*<text>(?:<[^>]*>)*([^<]*)", svg)
    places = sorted((float(y), name) for y, name in found if name in titles.values())
    assert [name for _, name in places] == list(titles.values())
    assert min(below - above for (above, _), (below, _) in itertools.pairwise(places)) > 12


def test_a_timeline_says_who_waits_in_what(data: Path, tmp_path: Path) -> None:
    write(data, "timeline-01-iterative")
    text = drawn("timeline-01-iterative", data, tmp_path / "figure.svg").splitlines()
    pauses = "pauses in the middle of its request"
    assert {"A", "B", "C", "D", "main", "waits in recv() for B", pauses} <= set(text)
    assert "waits in accept()" not in text  # 15 ms are too short for it


def test_then_and_now_draws_its_own_table_only(data: Path, tmp_path: Path) -> None:
    write(data, "disk-backends-100k")
    add_meta(data, "disk-backends-100k", reference_variants="a", reference_footer="run of 2026")
    text = drawn("disk-backends-100k", data, tmp_path / "figure.svg")
    tables = {then.key: then for then in EXPERIMENTS["disk-backends-100k"].then_tables}
    assert len(re.findall(r"\d MB/s", text)) >= len(tables["bytes"].rows)
    assert "requests/s" not in text
    assert "◇: reference machine, run of 2026" in text
    assert model.SOURCES[tables["bytes"].source] in text
    assert "bytes, times that of linux-sendfile (logarithmic)" in text
    assert all(row.title in text for row in tables["bytes"].rows)
    meta = data / "disk-backends-100k/meta.gp"
    meta.write_text(meta.read_text().replace("_bytes", "_another"))
    done = draw("disk-backends-100k", data, tmp_path / "figure.svg")
    reason = "figures: disk-backends-100k: experiment disk-backends-100k has no [[then]] bytes\n"
    assert (done.returncode, done.stderr) == (1, reason)


# ---- figures/module.mk ---------------------------------------------------------------------------


MAKEFILE = """BUILD := build
Q := @
say = @echo $(1) $(2)
export: ; @:
include figures/module.mk
"""
SCRIPT = 'experiment = "sample"\nload "figures/style.gp"\nplot [0:1] x title "made up"\n'
DRAWN, SKIP = "PLOT build/figures/sample.svg", "SKIP sample.svg: not measured yet"


def test_a_figure_is_drawn_when_its_data_have_changed(tmp_path: Path) -> None:
    """And left alone when not, whether a picture was left or the reason why there is none."""
    shutil.copytree(ROOT / "figures", tmp_path / "figures", ignore=lambda folder, names: [
        name for name in names if Path(folder, name).suffix not in (".mk", ".sh", ".gp", ".css")
        or name in {f"{slug}.gp" for slug in SCRIPTS}
    ])  # fmt: skip
    (tmp_path / "Makefile").write_text(MAKEFILE)
    (tmp_path / "figures/sample.gp").write_text(SCRIPT)
    meta, left = tmp_path / "build/data/sample/meta.gp", tmp_path / "build/figures"

    def figures(*settings: str) -> list[str]:
        command = ["make", "figures", *settings]
        done = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
        return [line for line in done.stdout.splitlines() if not line.startswith("make: Nothing")]

    meta.parent.mkdir(parents=True)
    for source, said, kept in [
        ("here", [DRAWN], "sample.svg"),
        ("none", [DRAWN, SKIP], "sample.skipped"),
        ("here", [DRAWN], "sample.svg"),
    ]:
        meta.write_text(f'source = "{source}"\nmissing = "not measured yet"\n')
        assert figures() == said
        assert figures() == []
        assert [path.name for path in left.glob("*.s*")] == [kept]
    (left / "sample.svg").unlink()
    assert "gnuplot is not installed" in figures("GNUPLOT=")[0]
    assert figures() == [DRAWN]
    assert [path.name for path in left.glob("*.s*")] == ["sample.svg"]
