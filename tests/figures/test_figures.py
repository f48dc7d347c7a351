"""Figures: each draws what the exporter writes, the same bytes each time, and says its run.

Run: python3 -m pytest tests/figures   (needs gnuplot)
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from harness.spec import experiment_file

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
EVERY = experiment_file.load_all(ROOT / experiment_file.FOLDER)
NAMED = re.compile(r'^experiment = "(.*)"$', re.M)
FOOTER = "run of 2026-11-21, Some CPU, 2 cores, Linux 6.18, quick"
XS = [1, 2, 4, 8, 16]

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


# ---- tables as the exporter writes them ----------------------------------------------------------


LINKED = {
    "dynamic": "glibc, dynamic",
    "static": "glibc, static",
    "static-pie": "glibc, static-pie",
    "diet": "dietlibc, static",
    "musl": "musl, static",
}
# Other titles are the variants' names.
TITLES = {**LINKED, "02-fork-keep": "02-fork, keep-alive"}
LINKS = " ".join(LINKED)
PEERS = "15-slashdot nginx null-server"
TOOLS = ("hammer", "wrk", "h2load")
WHEN = ("before", "during", "after")
Levels = dict[str, float | tuple[float, ...]]
HERD: Levels = {
    f"{when}_{what}": 100.0 * place
    for place, when in enumerate(WHEN, 1)
    for what in ("us", "p99_us", "pss_kib", "slab_kib")
}
SHOP: Levels = {"held": (8, 16), "during_sockets": (6, 12), "before_sockets": 1}
for _when in WHEN:
    SHOP |= {f"{_when}_us": (100, 200), f"{_when}_p99_us": (200, 400)}
    SHOP |= {f"{_when}_good": (50, 100), f"{_when}_failed": 10}

# Experiment -> its variants, and the level of each metric, of all or one by one. Those that only
# lines of the table of plots show have the metrics that stand there.
MADE: dict[str, tuple[str, Levels]] = {
    "aio-threads": ("musl pipes pipe", {"threads": (20.5, 10.2, 5.1)}),
    "disk-read-threads": ("threads elevator", {"bytes_per_s": 8.5, "requests_per_s": 80.5}),
    "disk-stat-threads": ("threads", {"bytes_per_s": 8.5, "requests_per_s": 80.5}),
    "disk-stream": ("alone two", {"mb_per_s": (27.5, 13.5)}),
    "fairness": ("long brief", {"jain": 0.98, "least": 0.8, "most": 1.1}),
    "fd-alloc": ("socket dup dup-thread", {"call_us": (2, 1, 0.7), "grow_us": (2e3, 2e5, 2e7)}),
    "fork-latency": (LINKS, {"fork_us": (100, 90, 80, 70, 60)}),
    "fork-reap": (LINKS, {"reap_us": (100, 90, 80, 70, 60)}),
    "hammer-crosscheck": (" ".join(f"{m}-{t}" for m in ("close", "keep") for t in TOOLS), {}),
    "idle-herd": ("09-epoll", HERD),
    "mmap-files": ("disk cold eager", {"open_us": 1.5, "mmap_us": 2.5, "touch_us": 50.5}),
    "mmap-pages": ("pages", {"mmap_us": 2.2, "touch_us": 1.8, "munmap_us": 2.6, "read_us": 1.2}),
    "overload": ("05-pool 15-slashdot-c128", {"goodput": (0, 700)}),  # a curve on the axis
    "peers-cores": ("15-slashdot nginx lighttpd h2o", {}),
    "peers-idle": (PEERS, {"before_kib": 900.5, "during_kib": (951, 952, 953)}),
    "peers-latency": (PEERS, {"median_us": 40.5, "p99_us": 90.5, "p999_us": (400, 800, 1200)}),
    "peers-small": (PEERS, {"requests_per_cpu_s": (4e4, 8e4, 12e4)}),
    "pool-queueing": ("pool-16 threads", {"latency_ms": (0.5, 500)}),
    "port-bind": ("ipv4 late", {"total_us": (0.8, 800), "bind_us": 0.8}),
    "prefork-herd": ("accept poll", {"wakeups": (1.5, 24)}),
    "request-latency": ("07-poll 09-epoll", {"connect_us": 20.5, "request_us": (900, 50)}),
    "scaling": ("15-slashdot nginx", {"requests_per_s": (6e4, 4e4)}),
    "sched-switch": ("ring asleep busy", {"handover_us": (9, 6.5, 4), "pipe_us": 0.8}),
    "send-packets": ("sendfile two", {"median_ms": (40, 4e4), "reply_packets": (1, 2)}),
    "send-path": ("sendfile two", {"cpu_s_per_gb": (0.1, 0.2)}),
    "slow-client": ("01-a 01-a-slow 02-b 02-b-slow", {}),
    "slow-readers": ("15-slashdot none", {"kernel_mb": (450.5, 901), "max_ms": 90.5}),
    "stat-share": ("cold warm", {"stat_us": 500.5, "open_us": 1.5, "read_us": 70.5}),
    "switches": ("a b", {}),
    "throughput": (
        "01-iterative-close 02-fork-keep",
        {"requests_per_s": (1e4, 2e4), "requests_per_cpu_s": (2e4, 4e4)},
    ),
    "ticks": ("system", {}),
    "timeout-accuracy": ("select select-1ns event", {"late_us": (78.5, 53.5, 28.5)}),
    "toy-shop": ("03-prefork nginx", SHOP),
    "wake-latency": ("busy alone", {"wake_us": 9, "wake_p90_us": 50, "wake_max_us": 5000}),
}
BOUNDED = [f"{name}{end}" for name in ("busy_ticks", "idle_ticks", "busy_stops", "stops_beside")
           for end in ("", "_low", "_high")]  # fmt: skip
META = """
then_source_bytes = "a paper, 2007"
then_base_bytes = "the base"
then_metric_bytes = "MB"
then_rows_bytes = 5
then_source_utilisation = "a paper, 2007"
then_base_utilisation = "the base"
then_metric_utilisation = "share"
then_rows_utilisation = 1
"""


def tables() -> dict[str, list[list[str]]]:
    """The other ones, as tables.txt has them: name, then rows; two blanks part the columns."""
    blocks = (HERE / "tables.txt").read_text(encoding="utf-8").split("\n\n")
    found = {name: [re.split(" {2,}", row) for row in rows]
             for name, *rows in map(str.splitlines, blocks)}  # fmt: skip
    found["ticks/summary"] = [["variant", "title", *BOUNDED], ["system", "it", *["200.5"] * 12]]
    for place, name in enumerate(MADE["slow-client"][0].split(), 1):
        steps = [[f"{0.1 * place * 2**step}", f"{step / 10}"] for step in range(11)]
        found[f"slow-client/distribution-{name}"] = [["ms", "within"], *steps]
    return found


def write_table(path: Path, lines: Iterable[Iterable[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(map(str, line)) + "\n" for line in lines))


def write_meta(
    data: Path, experiment: str, names: Iterable[str], source: str = "here", missing: str = ""
) -> None:
    names = list(names)
    quoted = " ".join(f"'{TITLES.get(name, name)}'" for name in names)
    path = data / experiment / "meta.gp"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f'footer = "{FOOTER}"\nsource = "{source}"\nvariants = "{" ".join(names)}"\n'
        f'titles = "{quoted}"\nmissing = "{missing}"\nmarks = ""\n{META}'
    )


def write_series(folder: Path, variant: str, levels: dict[str, float]) -> None:
    """A curve that rises a little, and three repetitions around it."""
    parts = ["", "_low", "_high", "_min", "_p99"]
    table: list[list[object]] = [["x", *(m + part for m in levels for part in parts), "n", "bound"]]
    points: list[list[object]] = [["x", *levels]]
    for step, x in enumerate(XS):
        values = [level * (1 + step / 50) for level in levels.values()]
        table.append([x, *(v * f for v in values for f in (1, 0.9, 1.1, 0.8, 1.5)), 3, step % 2])
        points.extend([x, *(v * f for v in values)] for f in (0.9, 1.0, 1.1))
    write_table(folder / f"{variant}.tsv", table)
    write_table(folder / f"points-{variant}.tsv", points)
    write_table(folder / f"samples-{variant}.tsv", points)


def write(data: Path, experiment: str, leave_out: str = "", missing: str = "") -> None:
    """All tables of an experiment."""
    plotted = {row[3]: (20.5, 10.2) for row in PLOTS.values() if row[1] == experiment}
    variants, metrics = MADE.get(experiment, ("one other" if plotted else "", plotted))
    names = [name for name in variants.split() if name != leave_out]
    for place, name in enumerate(names):
        levels = {m: v[place] if isinstance(v, tuple) else v for m, v in metrics.items()}
        if levels:
            write_series(data / experiment, name, levels)
    for name, rows in tables().items():
        if name.startswith(f"{experiment}/"):
            write_table(data / f"{name}.tsv", rows)
    write_meta(data, experiment, names, missing=missing)


def change(data: Path, new: Callable[[str, str, str], str]) -> None:
    """Every cell of every table by new(x of its row, name of its column, the cell)."""
    for table in data.glob("*/*.tsv"):
        head, *lines = [line.split("\t") for line in table.read_text().splitlines()]
        changed = ([new(ln[0], *pair) for pair in zip(head, ln, strict=True)] for ln in lines)
        write_table(table, [head, *changed])


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


# ---- drawing -------------------------------------------------------------------------------------


def draw(slug: str, data: Path, out: Path) -> subprocess.CompletedProcess[str]:
    script = "plot" if slug in PLOTS else "timeline" if slug.startswith("timeline") else slug
    return subprocess.run(
        ["sh", "figures/draw.sh", slug, f"figures/{script}.gp", str(data), str(out)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def drawn(slug: str, data: Path, out: Path) -> str:
    """Its words, one a line; it was drawn without one of gnuplot's."""
    done = draw(slug, data, out)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not re.search(r"\bnan\b", out.read_text(), re.IGNORECASE)
    texts = ET.parse(out).getroot().iter("{http://www.w3.org/2000/svg}text")
    return "\n".join("".join(text.itertext()) for text in texts)


@pytest.mark.parametrize("slug", EXPERIMENT)
def test_a_figure_is_drawn_and_says_its_run(slug: str, data: Path, tmp_path: Path) -> None:
    write(data, EXPERIMENT[slug])
    out = tmp_path / "figure.svg"
    assert f"measured here, {FOOTER}" in drawn(slug, data, out)
    assert f"<title>{slug}</title>" in out.read_text()
    assert [path.name for path in tmp_path.iterdir() if path.name != "data"] == ["figure.svg"]


@pytest.mark.parametrize("slug", KINDS)
def test_bytes_change_with_the_data_and_not_without(slug: str, data: Path, tmp_path: Path) -> None:
    """Else a script could draw constants."""
    write(data, EXPERIMENT[slug])
    files = [tmp_path / f"{name}.svg" for name in ("first", "second", "other")]
    drawn(slug, data, files[0])
    drawn(slug, data, files[1])
    change(data, lambda _x, _name, cell: re.sub(r"^(\d+)\.\d+", r"\1.77", cell))
    drawn(slug, data, files[2])
    assert files[0].read_bytes() == files[1].read_bytes() != files[2].read_bytes()


@pytest.mark.parametrize("slug", KINDS)
def test_data_that_are_missing_are_named_in_one_line(slug: str, data: Path, tmp_path: Path) -> None:
    done = draw(slug, data, tmp_path / "figure.svg")
    assert done.returncode == 1
    assert done.stderr.startswith(f"figures: {slug}: no data of the experiment ")
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.glob("figure*"))


END = re.compile(r"(^|_)(low|high|p99)$")


@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.parametrize("slug", KINDS)
def test_too_few_repetitions_for_an_interval(
    slug: str, every: int, data: Path, tmp_path: Path
) -> None:
    """What the profile "smoke" gives: the ends of intervals are missing, the value is drawn."""
    missing, equal = tmp_path / "missing.svg", tmp_path / "equal.svg"
    for out, is_equal in ((missing, False), (equal, True)):
        write(data, EXPERIMENT[slug])
        for table in data.glob("*/*.tsv"):
            head, *lines = [line.split("\t") for line in table.read_text().splitlines()]
            for line, (place, name) in itertools.product(lines[::every], enumerate(head)):
                value = line[head.index(END.sub("", name) or "value")] if END.search(name) else ""
                line[place] = (value if is_equal else "-") if END.search(name) else line[place]
            write_table(table, [head, *lines])
        drawn(slug, data, out)
    # Only words may differ: an interval that is not there is not written.
    written = re.sub(r" \((\d+(?:\.\d\d)?)–\1\)", "", equal.read_text())
    assert missing.read_text() == written


@pytest.mark.parametrize(
    ("slug", "names", "missing", "reason"),
    [
        ("fork-reap", (), "all: no fork here", "all: no fork here"),
        ("wake-latency", ("alone",), "x: y", "no run with others beside: x: y"),
    ],
)
def test_what_could_not_be_measured_leaves_its_reason(
    slug: str, names: tuple[str, ...], missing: str, reason: str, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "figure.svg"
    out.write_text("of an earlier run")
    write(data, slug)
    write_meta(data, slug, names, source="here" if names else "none", missing=missing)
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
    write(data, "fork-latency", "diet", missing="dietlibc, static: no diet")
    text = drawn(slug, data, tmp_path / "figure.svg")
    assert "not measured: dietlibc, static: no diet" in text
    assert "musl, static" in text


@pytest.mark.parametrize("x", [XS[2], XS[-1]])
@pytest.mark.parametrize("slug", ["fork-latency", "throughput"])
def test_one_place_without_a_value(slug: str, x: int, data: Path, tmp_path: Path) -> None:
    """The curve has a gap there, or ends before; its name stays beside it."""
    write(data, slug)
    name = "static" if slug == "fork-latency" else "02-fork-keep"
    others = [path for path in data.glob("*/*.tsv") if not path.stem.endswith(name)]
    kept = {path: path.read_text() for path in others}
    keep = ("x", "n", "bound")
    change(data, lambda at, column, cell: "-" if at == str(x) and column not in keep else cell)
    for path, text in kept.items():
        path.write_text(text)
    assert TITLES[name] in drawn(slug, data, tmp_path / "figure.svg").splitlines()


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
    for tool in ("h2load", "wrk"):
        for table in folder.glob("*.tsv"):
            rows = table.read_text().splitlines(keepends=True)
            table.write_text("".join(row for row in rows if tool not in row))
        names = ("close-hammer", "close-wrk", "keep-hammer", "keep-wrk") if tool == "h2load" else ()
        write_meta(data, folder.name, names, missing=f"{tool}: not installed")
        if names:
            text = drawn(folder.name, data, out)
            assert text.count("not measured here") == 2
            assert text.count("1.2k and 1.2k") == text.count("1.2k* and 1.2k*") == 1
    assert draw(folder.name, data, out).returncode == 0
    assert "wrk: not installed" in (tmp_path / "figure.skipped").read_text()


@pytest.mark.parametrize("rows", [0, 4, 8])
def test_scaling_says_what_the_law_found_and_what_not(
    rows: int, data: Path, tmp_path: Path
) -> None:
    write(data, "scaling")
    table = data / "scaling/numbers.tsv"
    table.write_text("".join(table.read_text().splitlines(keepends=True)[: rows + 1]))
    text = drawn("scaling", data, tmp_path / "figure.svg")
    found = "σ 1.25 (1.05–1.45) %"
    peak = "most with 20 (18–23) workers, more than were measured"
    few = "too few points for a fit"
    first = f"15-slashdot: {f'{found}, κ 0.25 (0.15–0.35) %, {peak}' if rows else few}"
    second = f"nginx: {f'{found}, κ not told from 0' if rows == 8 else few}"
    assert {first, second} <= set(text.splitlines())
    assert "the load generator was at its limit, not fitted" in text or rows < 8


def test_a_reference_run_is_labelled(data: Path, tmp_path: Path) -> None:
    write(data, "fork-reap")
    write_meta(data, "fork-reap", LINKED, source="reference")
    assert f"reference machine, {FOOTER}" in drawn("fork-reap", data, tmp_path / "figure.svg")


@pytest.mark.parametrize(
    "slug", ["fork-reap", "disk-model", "event-wait", "peers-small", "fork-2003"]
)
def test_the_reference_run_stands_beside_the_readers(slug: str, data: Path, tmp_path: Path) -> None:
    experiment = EXPERIMENT[slug]
    name = MADE.get(experiment, ("one",))[0].split()[0]
    write(data, experiment)
    alone = drawn(slug, data, tmp_path / "figure.svg")
    pictures = set()
    for digit in "24":
        own = (data / experiment / f"{name}.tsv").read_text()
        other = re.sub(r"\t(\d+)\.", rf"\t\g<1>{digit}.", own)
        (data / experiment / f"reference-{name}.tsv").write_text(other)
        with (data / experiment / "meta.gp").open("a") as meta:
            meta.write(f'reference_variants = "{name}"\nreference_footer = "run of 2026"\n')
        words = drawn(slug, data, tmp_path / "figure.svg")
        assert "reference machine, run of 2026" in words
        pictures.add((tmp_path / "figure.svg").read_bytes())
    assert "reference machine" not in alone
    assert len(pictures) == 2


def test_curves_of_a_source_stand_beside_todays(data: Path, tmp_path: Path) -> None:
    write(data, "port-bind")
    text = set(drawn("bind-2003", data, tmp_path / "figure.svg").splitlines())
    assert {"NetBSD 1.6.1", "OpenBSD 3.4", "ipv4", "2003, Pentium III at 900 MHz", "now"} <= text
    assert "on the zero line: Linux, FreeBSD 5.1" in text
    write(data, "disk-read-threads")
    assert "lighttpd 1.5.0" in drawn("read-threads-2007", data, tmp_path / "figure.svg")


def test_what_lies_outside_is_marked_and_counted(data: Path, tmp_path: Path) -> None:
    write(data, "fork-reap")
    with (data / "fork-reap" / "points-musl.tsv").open("a") as points:
        points.write("4\t5000\n")
    text = drawn("fork-reap", data, tmp_path / "figure.svg")
    assert "1 of the dots, marked at the upper edge, lie higher: up to 5000" in text


def test_names_stay_in_the_order_of_their_curves(data: Path, tmp_path: Path) -> None:
    write(data, "fork-reap")
    for place, name in enumerate(LINKED):
        write_series(data / "fork-reap", name, {"reap_us": 100 + (place % 2) / 10 - place / 100})
    drawn("fork-reap", data, tmp_path / "figure.svg")
    found = re.findall(
        r"translate\([\d.]+,([\d.]+)\)[^<]*<text>(?:<[^>]*>)*([^<]*)",
        (tmp_path / "figure.svg").read_text(),
    )
    places = sorted((float(y), name) for y, name in found if name in LINKED.values())
    assert [name for _, name in places] == [
        LINKED[name] for name in ("static", "diet", "dynamic", "static-pie", "musl")
    ]
    assert min(below - above for (above, _), (below, _) in itertools.pairwise(places)) > 12


def test_a_timeline_says_who_waits_in_what(data: Path, tmp_path: Path) -> None:
    write(data, "timeline-01-iterative")
    text = drawn("timeline-01-iterative", data, tmp_path / "figure.svg").splitlines()
    pauses = "pauses in the middle of its request"
    assert {"A", "B", "C", "main", "waits in recv() for B", pauses, "accept()"} <= set(text)
    assert "waits in accept()" not in text  # 35 ms are too short for it


def test_then_and_now_draws_its_own_table_only(data: Path, tmp_path: Path) -> None:
    write(data, "disk-backends-100k")
    with (data / "disk-backends-100k/meta.gp").open("a") as extra:
        extra.write('reference_variants = "a"\nreference_footer = "run of 2026"\n')
    text = drawn("disk-backends-100k", data, tmp_path / "figure.svg")
    assert text.count("then of bytes") == text.count("now of bytes") == 5
    assert "of other" not in text
    assert "◇: reference machine, run of 2026" in text
    assert "a paper, 2007" in text
    assert "MB, times that of the base (logarithmic)" in text
    assert all(name in text for name in ("the base", "B", "C", "D", "LiteSpeed"))
    meta = data / "disk-backends-100k/meta.gp"
    meta.write_text(meta.read_text().replace("_bytes", "_another"))
    done = draw("disk-backends-100k", data, tmp_path / "figure.svg")
    reason = "figures: disk-backends-100k: experiment disk-backends-100k has no [[then]] bytes\n"
    assert (done.returncode, done.stderr) == (1, reason)


@pytest.mark.parametrize("slug", EXPERIMENT)
def test_each_figure_belongs_to_an_experiment_and_shows_its_metrics(slug: str) -> None:
    if EXPERIMENT[slug] == "claims":  # the ledger is exported beside the experiments
        return
    about = next(one for one in EVERY if one.id == EXPERIMENT[slug])
    known = {metric.name for metric in about.metrics} | {then.key for then in about.thens}
    script = ROOT / "figures" / f"{slug}.gp"
    text = script.read_text(encoding="utf-8") if script.exists() else ""
    shown = re.findall(r'^metric = "(\w+)"$', text, re.M)
    assert set([PLOTS[slug][3]] if slug in PLOTS else shown) <= known


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
        name for name in names if Path(folder, name).suffix not in (".mk", ".sh", ".gp")
        or name in {f"{slug}.gp" for slug in SCRIPTS}
    ])  # fmt: skip
    (tmp_path / "Makefile").write_text(MAKEFILE)
    (tmp_path / "figures/sample.gp").write_text(SCRIPT)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    meta, left = tmp_path / "build/data/sample/meta.gp", tmp_path / "build/figures"

    def figures(*settings: str) -> list[str]:
        done = subprocess.run(
            ["make", "figures", *settings], cwd=tmp_path, env=environment,
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
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
