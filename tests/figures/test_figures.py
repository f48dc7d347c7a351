"""Figures: each script draws what the exporter writes, the same bytes each time, and says its run.

Run: python3 -m pytest tests/figures   (needs gnuplot)
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENTS = ROOT / "benchmarks" / "experiments"
# Loaded by the others.
PARTS = {"style", "curves", "log-log", "doublings", "labels", "then-and-now", "peers", "stage"}
SCRIPTS = sorted(path.stem for path in (ROOT / "figures").glob("*.gp") if path.stem not in PARTS)
FOOTER = "run of 2026-11-21, Some CPU, 2 cores, Linux 6.18, quick"
XS = [1, 2, 4, 8, 16]

pytestmark = pytest.mark.skipif(not shutil.which("gnuplot"), reason="gnuplot is not installed")


# ---- tables as the exporter writes them ------------------------------------------------------


def write_table(path: Path, lines: Sequence[Sequence[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(map(str, line)) + "\n" for line in lines))


def write_meta(
    folder: Path, titles: dict[str, str], source: str = "here", missing: str = ""
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    quoted = " ".join(f"'{title}'" for title in titles.values())
    (folder / "meta.gp").write_text(
        f'footer = "{FOOTER}"\nsource = "{source}"\nvariants = "{" ".join(titles)}"\n'
        f'titles = "{quoted}"\nmissing = "{missing}"\nmarks = ""\n'
    )


def write_series(folder: Path, variant: str, levels: dict[str, float]) -> None:
    """A curve that rises a little, and three repetitions around it."""
    parts = ["", "_low", "_high", "_min", "_p99"]
    table: list[list[object]] = [["x", *(m + part for m in levels for part in parts), "n", "bound"]]
    points: list[list[object]] = [["x", *levels]]
    for step, x in enumerate(XS):
        values = [level * (1 + step / 50) for level in levels.values()]
        table.append([x, *(v * f for v in values for f in (1, 0.9, 1.1, 0.8, 1.5)), 3, step % 2])
        points.extend([x, *(v * f for v in values)] for f in (0.9, 1, 1.1))
    write_table(folder / f"{variant}.tsv", table)
    write_table(folder / f"points-{variant}.tsv", points)
    write_table(folder / f"samples-{variant}.tsv", points)


def write_then(folder: Path, key: str) -> None:
    """A table of a source: the base, one that is slower now, one that was faster, one with no now.

    A second one in the same file, which must not be drawn.
    """
    ends = ["then", "then_low", "then_high", "then_ratio", "here", "here_low", "here_high"]
    head = ["key", "row", "variant", "title", *ends, "ratio", "ratio_low", "ratio_high", "source"]
    table: list[list[object]] = [[*head, "then_text", "here_text"]]
    for name in (key, "other"):
        end = [f"then of {name}", f"now of {name}"]
        table += [
            [name, 1, "a", "the base", 6.5, 6.0, 7.0, 1, 50.5, "-", "-", 1, 1, 1, "here", *end],
            [name, 2, "b", "B", 13.5, "-", "-", 2.08, 5.5, 5.1, 6.1, 0.11, 0.1, 0.13, "here", *end],
            [name, 3, "c", "C", 1.5, "-", "-", 0.23, 99.5, "-", "-", 1.98, "-", "-", "here", *end],
            [name, 4, "d", "D", 2.5, "-", "-", 0.38, 99.5, "-", "-", "-", "-", "-", "here", *end],
            [name, 5, "-", "LiteSpeed", 4.35, "-", "-", 0.67, *["-"] * 6, "none", *end],
        ]
    write_table(folder / "then.tsv", table)
    with (folder / "meta.gp").open("a") as meta:
        for what, said in {"source": "a paper, 2007", "base": "the base", "metric": "MB"}.items():
            meta.write(f'then_{what}_{key.replace("-", "_")} = "{said}"\n')
        meta.write(f"then_rows_{key.replace('-', '_')} = 5\n")


LINKED = {
    "dynamic": "glibc, dynamic",
    "static": "glibc, static",
    "static-pie": "glibc, static-pie",
    "diet": "dietlibc, static",
    "musl": "musl, static",
}


def write_fork(data: Path, experiment: str, metric: str, linked: dict[str, str] = LINKED) -> None:
    folder = data / experiment
    gains: list[list[object]] = [["key", "value", "low", "high", "unit"]]
    for place, name in enumerate(linked):
        write_series(folder, name, {metric: 100 - 10 * place})
        key = "aa" if name == "dynamic" else name
        gains.append([f"{key}-gain", 1 + place / 5, 0.95 + place / 5, 1.05 + place / 5, "-"])
    write_table(folder / "numbers.tsv", gains)
    write_meta(folder, linked, missing="" if linked == LINKED else "dietlibc, static: no diet")
    write_then(folder, "linking")


def write_spawn(data: Path) -> None:
    """Two that hold memory, and fork and vfork of one way to link."""
    folder = data / "spawn"
    titles = {"fork-exec": "fork, exec", "vfork-exec": "vfork, exec", "fork": "f", "vfork": "v"}
    summary: list[list[object]] = [["variant", "title", "total_us", "total_us_low"]]
    summary[0].append("total_us_high")
    for place, (name, title) in enumerate(titles.items(), start=1):
        write_series(folder, name, {"total_us": 1e4 / 10**place, "return_us": 1.0})
        summary.append([name, title, 500.5 / place, 490.5 / place, 510.5 / place])
    write_table(folder / "summary.tsv", summary)
    write_meta(folder, titles, missing="posix_spawn: none here")
    write_then(folder, "vfork")


def write_malloc(data: Path) -> None:
    for place, name in enumerate(("used", "diet"), start=1):
        levels = {"dirty_kib": 30.0 * place, "asked_kib": 10.0, "faults": 7.0}
        write_series(data / "malloc-dirty", name, levels)
    write_meta(data / "malloc-dirty", {"used": "glibc, used heap", "diet": "dietlibc"})


def write_pool_queueing(data: Path) -> None:
    titles = {"pool-16": "05-pool, 16 threads", "threads": "04-threads"}
    for place, name in enumerate(titles):
        write_series(data / "pool-queueing", name, {"latency_ms": 0.5 * 1000**place})
    write_meta(data / "pool-queueing", titles)


def write_server_memory(data: Path) -> None:
    titles = {"02-fork": "02-fork", "04-threads": "04-threads"}
    for place, name in enumerate(titles, start=1):
        write_series(data / "server-memory", name, {"pss_kib": 900 / place})
    write_meta(data / "server-memory", titles)


def write_request_latency(data: Path) -> None:
    titles = {"07-poll": "07-poll", "09-epoll": "09-epoll"}
    for place, name in enumerate(titles):
        write_series(
            data / "request-latency", name, {"connect_us": 30.0, "request_us": 60.0**place}
        )
    write_meta(data / "request-latency", titles)


def write_idle_herd(data: Path) -> None:
    levels = {
        f"{when}_{what}": 100.0 * place
        for place, when in enumerate(("before", "during", "after"), start=1)
        for what in ("us", "p99_us", "pss_kib", "slab_kib")
    }
    write_series(data / "idle-herd", "09-epoll", levels)
    write_meta(data / "idle-herd", {"09-epoll": "09-epoll"})


def write_overload(data: Path) -> None:
    """One that answers nobody: a curve on the axis."""
    titles = {"05-pool": "05-pool, 16 threads", "15-slashdot-c128": "15-slashdot -c 128"}
    for place, name in enumerate(titles):
        write_series(data / "overload", name, {"goodput": 700.0 * place})
    write_meta(data / "overload", titles)


def write_slow_readers(data: Path) -> None:
    titles = {"15-slashdot": "15-slashdot", "none": "no limit"}
    for place, name in enumerate(titles, start=1):
        write_series(data / "slow-readers", name, {"kernel_mb": 450.5 * place, "max_ms": 90.5})
    write_meta(data / "slow-readers", titles)


def write_million(data: Path) -> None:
    levels = {
        f"{when}_{what}": 100.0 * place
        for place, when in enumerate(("before", "during", "after"), start=1)
        for what in ("us", "p99_us", "pss_kib", "slab_kib")
    }
    write_series(data / "million", "09-epoll", levels)
    write_meta(data / "million", {"09-epoll": "09-epoll"})


def write_toy_shop(data: Path) -> None:
    titles = {"03-prefork": "03-prefork", "nginx": "nginx"}
    for place, name in enumerate(titles, start=1):
        levels = {"held": 8.0 * place, "during_sockets": 6.0 * place, "before_sockets": 1.0}
        for when in ("before", "during", "after"):
            levels |= {f"{when}_us": 100.0 * place, f"{when}_p99_us": 200.0 * place}
            levels |= {f"{when}_good": 50.0 * place, f"{when}_failed": 10.0}
        write_series(data / "toy-shop", name, levels)
    write_meta(data / "toy-shop", titles)


def write_prefork_herd(data: Path) -> None:
    titles = {"accept": "accept", "poll": "poll, accept"}
    for place, name in enumerate(titles):
        write_series(data / "prefork-herd", name, {"wakeups": 1.5 * 16**place})
    write_meta(data / "prefork-herd", titles)


def write_switches(data: Path) -> None:
    counts = [f"{load}_{what}" for what in ("switches", "interrupts") for load in ("light", "busy")]
    table: list[list[object]] = [["variant", "title", *counts]]
    table.extend([name, name, 100.5 * (i + 1), 900.5, 50.5, 400.5] for i, name in enumerate("ab"))
    write_table(data / "switches" / "summary.tsv", table)
    write_meta(data / "switches", {"a": "a", "b": "b"})


def write_throughput(data: Path) -> None:
    titles = {"01-iterative-close": "01-iterative, close", "02-fork-keep": "02-fork, keep-alive"}
    for place, name in enumerate(titles, start=1):
        levels = {"requests_per_s": 1e4 * place, "requests_per_cpu_s": 2e4 * place}
        write_series(data / "throughput", name, levels)
    write_meta(data / "throughput", titles)


def write_crosscheck(data: Path, tools: Sequence[str] = ("wrk", "h2load")) -> None:
    folder = data / "hammer-crosscheck"
    titles = {f"{mode}-{tool}": tool for mode in ("close", "keep") for tool in ("hammer", *tools)}
    ratios: list[list[object]] = [
        [f"{m}-hammer-{tool}", 1.1, 1.05, 1.15, "-"] for m in ("close", "keep") for tool in tools
    ]
    rates: list[list[object]] = [
        [name, title, 1234.5, int("keep" in name)] for name, title in titles.items()
    ]
    write_table(folder / "numbers.tsv", [["key", "value", "low", "high", "unit"], *ratios])
    write_table(
        folder / "summary.tsv", [["variant", "title", "requests_per_s", "client_bound"], *rates]
    )
    write_meta(folder, titles, missing="" if tools else "wrk: not installed; h2load: not installed")


def write_slow_client(data: Path) -> None:
    titles = {f"{server}{end}": server for server in ("01-a", "02-b") for end in ("", "-slow")}
    for place, name in enumerate(titles):
        steps = [[0.1 * 2**i * (1 + 9 * place), i / 10] for i in range(11)]
        write_table(data / "slow-client" / f"distribution-{name}.tsv", [["ms", "within"], *steps])
    write_meta(data / "slow-client", titles)


def write_sched_switch(data: Path) -> None:
    titles = {"ring": "all in the ring", "asleep": "others asleep", "busy": "others busy"}
    for place, name in enumerate(titles):
        levels = {"handover_us": 9 - 2.5 * place, "pipe_us": 0.8}
        write_series(data / "sched-switch", name, levels)
    write_meta(data / "sched-switch", titles)


def write_mmap_pages(data: Path) -> None:
    titles = {"pages": "every other page"}
    levels = {"mmap_us": 2.2, "touch_us": 1.8, "munmap_us": 2.6, "read_us": 1.2}
    write_series(data / "mmap-pages", "pages", levels)
    write_meta(data / "mmap-pages", titles)


def write_wake_latency(data: Path, names: Sequence[str] = ("busy", "alone")) -> None:
    for name in names:
        levels = {"wake_us": 9.0, "wake_p90_us": 50.0, "wake_max_us": 5000.0}
        write_series(data / "wake-latency", name, levels)
    write_meta(data / "wake-latency", {name: f"title of {name}" for name in names}, missing="x: y")


def write_fairness(data: Path) -> None:
    for name in ("long", "brief"):
        write_series(data / "fairness", name, {"jain": 0.98, "least": 0.8, "most": 1.1})
    write_meta(data / "fairness", {"long": "many turns", "brief": "few turns"})


def write_ticks(data: Path) -> None:
    names = ["busy_ticks", "idle_ticks", "busy_stops", "stops_beside"]
    parts = ["", "_low", "_high"]
    head = ["variant", "title", *(name + part for name in names for part in parts)]
    values = [200 * f for _ in names for f in (1.0, 0.9, 1.1)]
    write_table(data / "ticks" / "summary.tsv", [head, ["system", "this system", *values]])
    write_meta(data / "ticks", {"system": "this system"})


def write_fd_alloc(data: Path) -> None:
    titles = {"socket": "socket()", "dup": "dup()", "dup-thread": "dup(), a thread beside"}
    for place, name in enumerate(titles, start=1):
        levels = {"call_us": 2.0 / place, "grow_us": 20.0 * 100**place}
        write_series(data / "fd-alloc", name, levels)
    write_meta(data / "fd-alloc", titles)


def write_port_bind(data: Path) -> None:
    titles = {"ipv4": "bind(), IPv4", "late": "connect() chooses, one server"}
    for place, name in enumerate(titles):
        levels = {"total_us": 0.8 * 1000**place, "bind_us": 0.8}
        write_series(data / "port-bind", name, levels)
    write_meta(data / "port-bind", titles)


def write_files(data: Path) -> None:
    levels = {"open_us": 1.5, "mmap_us": 2.5, "touch_us": 50.5}
    titles = {"disk": "on disk, in memory", "cold": "on disk", "eager": "MAP_POPULATE"}
    for name in titles:
        write_series(data / "mmap-files", name, levels)
    write_meta(data / "mmap-files", titles)
    for name in ("cold", "warm"):
        levels = {"stat_us": 500.5, "open_us": 1.5, "read_us": 70.5}
        write_series(data / "stat-share", name, levels)
    write_meta(data / "stat-share", {"cold": "nothing in memory", "warm": "all in memory"})
    for experiment, metric in (
        ("directory-size", "miss_us"),
        ("stat-cost", "call_us"),
        ("kernel-aio", "submit_us"),
        ("aio-threads", "threads"),
    ):
        names = ["musl", "pipes", "pipe"] if experiment == "aio-threads" else ["one", "other"]
        for place, name in enumerate(names):
            write_series(data / experiment, name, {metric: 20.5 / 2**place})
        write_meta(data / experiment, {name: f"title of {name}" for name in names})


def write_timeout_accuracy(data: Path) -> None:
    titles = {"select": "select()", "select-1ns": "slack 1 ns", "event": "select(), an event"}
    for place, name in enumerate(titles):
        write_series(data / "timeout-accuracy", name, {"late_us": 78.5 - 25 * place})
    write_meta(data / "timeout-accuracy", titles)


def write_send(data: Path) -> None:
    """Two ways, one of them a thousand times slower."""
    for experiment in ("send-path", "send-packets"):
        for place, name in enumerate(("sendfile", "two"), start=1):
            levels = {"cpu_s_per_gb": 0.1 * place, "median_ms": 0.04 * 1000**place}
            write_series(data / experiment, name, {**levels, "reply_packets": 1.0 * place})
        write_meta(data / experiment, {"sendfile": "sendfile", "two": "head, then body"})


def write_peers(data: Path) -> None:
    titles = {"15-slashdot": "15-slashdot", "nginx": "nginx", "null-server": "null server"}
    for place, name in enumerate(titles, start=1):
        rates = {"requests_per_cpu_s": 40000.5 * place, "gb_per_cpu_s": 4.5 * place}
        for experiment in ("small", "close", "100k", "10m"):
            write_series(data / f"peers-{experiment}", name, rates)
        waits = {"median_us": 40.5 * place, "p99_us": 90.5 * place, "p999_us": 400.5 * place}
        write_series(data / "peers-latency", name, waits)
        write_series(data / "peers-idle", name, {"before_kib": 900.5, "during_kib": 950.5 + place})
        write_series(data / "peers-waiting", name, {"request_us": 40.5 * place})
    for experiment in ("small", "close", "100k", "10m", "latency", "idle", "waiting"):
        write_meta(data / f"peers-{experiment}", titles)
    write_peers_cores(data)


def write_peers_cores(data: Path) -> None:
    """No large files, as the profile "quick"; a peer without a number of one kind."""
    kinds = ("small", "closed", "100k")
    ratios: list[list[object]] = [["key", "value", "low", "high", "unit"]]
    for place, kind in enumerate(kinds):
        ratios.append([f"{kind}-over-nginx", 1.25 + place, 1.15 + place, 1.35 + place, "-"])
        ratios.append([f"{kind}-over-lighttpd", 0.95, "-", "-", "-"])
        h2o: list[object] = [5.5, 5.0, 6.0] if place else ["-", "-", "-"]
        ratios.append([f"{kind}-over-h2o", *h2o, "-"])
    write_table(data / "peers-cores" / "numbers.tsv", ratios)
    titles = {"15-slashdot": "15-slashdot", "nginx": "nginx", "lighttpd": "lighttpd", "h2o": "h2o"}
    write_meta(data / "peers-cores", titles)


def write_event_wait(data: Path) -> None:
    titles = {"select": "select", "poll": "poll", "epoll": "epoll"}
    for place, name in enumerate(titles):
        write_series(data / "event-wait", name, {"wait_us": 900 / 10**place})
        write_series(data / "event-wait-active", name, {"event_us": 9 / 2**place})
    write_meta(data / "event-wait", titles)
    write_meta(data / "event-wait-active", titles)


def write_owfat(data: Path) -> None:
    titles = {"09-epoll": "09-epoll", "14-owfat": "14-owfat"}
    for place, name in enumerate(titles):
        write_series(data / "owfat-epoll", name, {"requests_per_cpu_s": 8.0 - 2 * place})
    write_meta(data / "owfat-epoll", titles)


def write_uring(data: Path) -> None:
    titles = {"09-epoll": "09-epoll, 64 clients", "uring-one": "13-uring, one client"}
    for place, name in enumerate(titles):
        write_series(data / "uring-epoll", name, {"requests_per_cpu_s": 8.0 - 6 * place})
    write_meta(data / "uring-epoll", titles)


SERVED = ("disk-wait", "disk-read-threads", "disk-stat-threads")


def write_disk(data: Path) -> None:
    titles = {"fifo": "two disks, FIFO", "elevator": "two disks, elevator", "one": "one disk, FIFO"}
    for place, name in enumerate(titles):
        levels = {"files_per_s": 150.0 - 30 * place, "read_ms": 12.0}
        write_series(data / "disk-model", name, levels)
        write_series(data / "disk-seek", name, levels)
        write_series(data / "disk-stream", name, {"mb_per_s": 30.0 / (place + 1)})
        for served in SERVED:
            write_series(data / served, name, {"requests_per_s": 70.0 + 70 * place})
    for experiment in ("disk-model", "disk-seek", "disk-stream", *SERVED):
        write_meta(data / experiment, titles)
    folder = data / "disk-backends-100k"
    write_series(folder, "sendfile", {"bytes_per_s": 7.5e6})
    write_meta(folder, {"sendfile": "12-aio: sendfile in the loop"})
    write_then(folder, "bytes")


def write_claims(data: Path) -> None:
    """Of one source some stand in each way, of the other all in the same."""
    standings = [
        "holds",
        "changed",
        "reversed",
        "unseen",
        "noisy",
        "none",
        "other",
        "old",
        "unruled",
    ]
    rows: list[list[object]] = [["a talk", *(8.5 - i for i in range(9))]]
    rows.append(["a page", 3.5, *[0] * 8])
    write_table(data / "claims" / "verdicts.tsv", [["source", *standings], *rows])
    write_meta(data / "claims", {})


BARS = """\
y	start_ms	end_ms	kind	state	call	letter	client
4.0	0.0	0.1	client	connecting	-	A	1
4.0	0.1	1.0	client	waiting	-	A	1
4.0	1.0	1.1	client	receiving	-	A	1
3.0	20.0	250.0	client	pausing	-	B	2
2.0	40.0	250.0	client	waiting	-	C	3
1.0	-15.0	20.0	task	waiting	accept	-	0
1.0	20.0	21.0	task	running	-	B	2
1.0	21.0	250.0	task	waiting	recv	B	2
1.0	250.0	250.0	task	ended	-	-	0
"""


def write_timeline(data: Path) -> None:
    folder = data / "timeline-01-iterative"
    write_meta(folder, {})
    rows: list[list[object]] = [
        [4, "client", "A"],
        [3, "client", "B"],
        [2, "client", "C"],
        [1, "task", "main"],
    ]
    write_table(folder / "rows.tsv", [["y", "kind", "name"], *rows])
    (folder / "bars.tsv").write_text(BARS)
    arrows: list[list[object]] = [
        ["ms", "from_y", "to_y", "kind", "client"],
        [0.1, 1.0, 1.0, "accept", 1],
    ]
    write_table(folder / "arrows.tsv", arrows)


def write_scaling(data: Path) -> None:
    """κ of the second cannot be told from 0."""
    folder = data / "scaling"
    titles = {"15-slashdot": "15-slashdot", "nginx": "nginx"}
    law: list[list[object]] = [["key", "value", "low", "high", "unit"]]
    for place, name in enumerate(titles):
        write_series(folder, name, {"requests_per_s": 6e4 - 2e4 * place})
        law.append([f"{name}-lambda", 6.5e4 - 2e4 * place, 6e4, 7e4, "requests/s"])
        law.append([f"{name}-sigma", 0.0125, 0.0105, 0.0145, "-"])
        law.append([f"{name}-kappa", 0.0025, (1 - place) * 0.0015, 0.0035, "-"])
        peak = ["-", 12.5, "-"] if place else [19.7, 17.7, 22.7]
        law.append([f"{name}-peak", *peak, "workers"])
    write_table(folder / "numbers.tsv", law)
    write_meta(folder, titles)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    write_fork(folder, "fork-latency", "fork_us")
    write_fork(folder, "fork-reap", "reap_us")
    write_spawn(folder)
    write_malloc(folder)
    write_fork(folder, "thread-create", "create_us")
    write_fork(folder, "fork-memory", "fork_us")
    write_fork(folder, "fork-mappings", "fork_ms")
    write_throughput(folder)
    write_switches(folder)
    write_prefork_herd(folder)
    write_server_memory(folder)
    write_pool_queueing(folder)
    write_request_latency(folder)
    write_idle_herd(folder)
    write_overload(folder)
    write_million(folder)
    write_slow_readers(folder)
    write_toy_shop(folder)
    write_slow_client(folder)
    write_disk(folder)
    write_crosscheck(folder)
    write_timeline(folder)
    write_sched_switch(folder)
    write_mmap_pages(folder)
    write_wake_latency(folder)
    write_fairness(folder)
    write_ticks(folder)
    write_fd_alloc(folder)
    write_files(folder)
    write_port_bind(folder)
    write_timeout_accuracy(folder)
    write_event_wait(folder)
    write_owfat(folder)
    write_uring(folder)
    write_send(folder)
    write_scaling(folder)
    write_claims(folder)
    write_peers(folder)
    return folder


# ---- drawing ---------------------------------------------------------------------------------


def slug_of(script: str) -> str:
    return "timeline-01-iterative" if script == "timeline" else script


def draw(script: str, data: Path, out: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "figures/draw.sh", slug_of(script), f"figures/{script}.gp", str(data), str(out)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def words(svg: Path) -> str:
    """All text of a figure; that it can be read at all shows that it is well-formed."""
    texts = ET.parse(svg).getroot().iter("{http://www.w3.org/2000/svg}text")
    return "\n".join("".join(text.itertext()) for text in texts)


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_figure_is_drawn_without_a_word_and_says_its_run(
    script: str, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "figure.svg"
    done = draw(script, data, out)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    text = words(out)
    assert f"measured here, {FOOTER}" in text
    assert "nan" not in text.lower()
    assert not re.search(r"\bnan\b", out.read_text(), re.IGNORECASE)
    assert f"<title>{slug_of(script)}</title>" in out.read_text()
    assert [path.name for path in tmp_path.iterdir() if path.name != "data"] == ["figure.svg"]


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_same_data_give_the_same_bytes(script: str, data: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.svg", tmp_path / "second.svg"
    draw(script, data, first)
    draw(script, data, second)
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("script", SCRIPTS)
def test_other_data_give_another_figure(script: str, data: Path, tmp_path: Path) -> None:
    """Else a script could draw constants and pass everything above."""
    first, second = tmp_path / "first.svg", tmp_path / "second.svg"
    draw(script, data, first)
    for table in data.glob("*/*.tsv"):
        header, _, rest = table.read_text().partition("\n")
        table.write_text(header + "\n" + re.sub(r"\b(\d+)\.\d+", r"\1.77", rest))
    draw(script, data, second)
    assert first.read_bytes() != second.read_bytes()


@pytest.mark.parametrize("script", SCRIPTS)
def test_data_that_are_missing_are_named_in_one_line(
    script: str, data: Path, tmp_path: Path
) -> None:
    for meta in data.glob("*/meta.gp"):
        meta.unlink()
    done = draw(script, data, tmp_path / "figure.svg")
    assert done.returncode == 1
    assert done.stderr.startswith(f"figures: {slug_of(script)}: no data of the experiment ")
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.glob("figure*"))


def test_what_could_not_be_measured_leaves_its_reason(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "figure.svg"
    out.write_text("of an earlier run")
    write_meta(data / "fork-reap", {}, source="none", missing="all: no fork here")
    done = draw("fork-reap", data, out)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "SKIP fork-reap.svg: all: no fork here\n"
    assert (tmp_path / "figure.skipped").read_text() == "all: no fork here\n"
    assert not out.exists()
    write_fork(data, "fork-reap", "reap_us")
    draw("fork-reap", data, out)
    assert out.exists()
    assert not (tmp_path / "figure.skipped").exists()


@pytest.mark.parametrize("script", ["fork-latency", "fork-static", "fork-2003"])
def test_a_missing_variant_is_left_out_and_named(script: str, data: Path, tmp_path: Path) -> None:
    shutil.rmtree(data / "fork-latency")
    few = {name: title for name, title in LINKED.items() if name != "diet"}
    write_fork(data, "fork-latency", "fork_us", few)
    done = draw(script, data, tmp_path / "figure.svg")
    assert (done.returncode, done.stderr) == (0, "")
    text = words(tmp_path / "figure.svg")
    assert "not measured: dietlibc, static: no diet" in text
    assert "musl, static" in text


def without_intervals(data: Path, every: int, instead: Literal["-", "value"]) -> None:
    """Takes the ends of the intervals from each `every`-th row; "-" or the value stands there."""
    for table in data.glob("*/*.tsv"):
        head, *lines = [line.split("\t") for line in table.read_text().splitlines()]
        ends = [i for i, name in enumerate(head) if re.search(r"(^|_)(low|high|p99)$", name)]
        for line in lines[::every]:
            for end in ends:
                value = re.sub(r"(^|_)(low|high|p99)$", "", head[end]) or "value"
                line[end] = line[head.index(value)] if instead == "value" else instead
        write_table(table, [head, *lines])


@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.parametrize("script", SCRIPTS)
def test_too_few_repetitions_for_an_interval(
    script: str, every: int, data: Path, tmp_path: Path
) -> None:
    """What the profile "smoke" gives: the ends of intervals are missing, the value is drawn."""
    missing, equal = tmp_path / "missing.svg", tmp_path / "equal.svg"
    without_intervals(data, every, "-")
    done = draw(script, data, missing)
    assert (done.returncode, done.stderr) == (0, "")
    without_intervals(data, every, "value")
    draw(script, data, equal)
    # Only words may differ: an interval that is not there is not written.
    written = re.sub(r" \((\d+(?:\.\d\d)?)–\1\)", "", equal.read_text())
    assert missing.read_text() == written


@pytest.mark.parametrize("x", [XS[2], XS[-1]])
@pytest.mark.parametrize("script", ["fork-latency", "fork-reap", "throughput"])
def test_one_place_without_a_value(script: str, x: int, data: Path, tmp_path: Path) -> None:
    """The curve has a gap there, or ends before; its name stays beside it."""
    for table in [*data.glob("*/*static.tsv"), *data.glob("*/*keep.tsv")]:
        head, *lines = [line.split("\t") for line in table.read_text().splitlines()]
        for line in lines:
            if line[0] == str(x):
                for i, name in enumerate(head):
                    line[i] = line[i] if name in ("x", "n", "bound") else "-"
        write_table(table, [head, *lines])
    done = draw(script, data, tmp_path / "figure.svg")
    assert (done.returncode, done.stderr) == (0, "")
    assert not re.search(r"\bnan\b", (tmp_path / "figure.svg").read_text(), re.IGNORECASE)
    name = "02-fork, keep-alive" if script == "throughput" else "glibc, static"
    assert name in words(tmp_path / "figure.svg").splitlines()


def test_a_server_that_answered_nobody_has_its_row(data: Path, tmp_path: Path) -> None:
    """It has no wait to be drawn, but how much it held and that nobody was answered."""
    table = data / "toy-shop" / "03-prefork.tsv"
    head, *lines = [line.split("\t") for line in table.read_text().splitlines()]
    for line in lines:
        for i, name in enumerate(head):
            if name.startswith(("during_us", "during_p99_us")):
                line[i] = "-"
            elif name == "during_good":
                line[i] = "0"
    write_table(table, [head, *lines])
    done = draw("toy-shop", data, tmp_path / "figure.svg")
    assert (done.returncode, done.stderr) == (0, "")
    assert {"03-prefork", "nginx"} <= set(words(tmp_path / "figure.svg").splitlines())


def test_crosscheck_with_one_tool_and_with_none(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "figure.svg"
    write_crosscheck(data, ["wrk"])
    assert draw("hammer-crosscheck", data, out).stderr == ""
    assert words(out).count("not measured here") == 2
    assert words(out).count("1.2k and 1.2k") == 1
    assert words(out).count("1.2k* and 1.2k*") == 1
    write_crosscheck(data, [])
    assert draw("hammer-crosscheck", data, out).returncode == 0
    assert "wrk: not installed" in (tmp_path / "figure.skipped").read_text()


def test_scaling_says_what_the_law_found_and_what_not(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "figure.svg"
    assert draw("scaling", data, out).stderr == ""
    text = words(out).splitlines()
    law = "σ 1.25 (1.05–1.45) %"
    peak = "most with 20 (18–23) workers, more than were measured"
    assert f"15-slashdot: {law}, κ 0.25 (0.15–0.35) %, {peak}" in text
    assert f"nginx: {law}, κ not told from 0" in text
    assert any(line.endswith("the load generator was at its limit, not fitted") for line in text)


@pytest.mark.parametrize("rows", [0, 4])
def test_scaling_with_too_few_points_for_a_fit(rows: int, data: Path, tmp_path: Path) -> None:
    table = data / "scaling/numbers.tsv"
    head, *lines = table.read_text().splitlines(keepends=True)
    table.write_text(head + "".join(lines[:rows]))
    out = tmp_path / "figure.svg"
    assert (done := draw("scaling", data, out)).stderr == "", done
    text = words(out)
    assert "nginx: too few points for a fit" in text
    assert ("15-slashdot: too few points for a fit" in text) == (rows == 0)
    assert "nan" not in out.read_text().lower()


def test_nobody_beside_is_no_figure(data: Path, tmp_path: Path) -> None:
    write_wake_latency(data, ["alone"])
    assert draw("wake-latency", data, tmp_path / "figure.svg").returncode == 0
    reason = (tmp_path / "figure.skipped").read_text()
    assert reason == "no run with others beside: x: y\n"


def test_a_reference_run_is_labelled(data: Path, tmp_path: Path) -> None:
    write_meta(data / "fork-reap", LINKED, source="reference")
    draw("fork-reap", data, tmp_path / "figure.svg")
    assert f"reference machine, {FOOTER}" in words(tmp_path / "figure.svg")


def test_what_lies_outside_is_marked_and_counted(data: Path, tmp_path: Path) -> None:
    with (data / "fork-reap" / "points-musl.tsv").open("a") as points:
        points.write("4\t5000\n")
    draw("fork-reap", data, tmp_path / "figure.svg")
    text = words(tmp_path / "figure.svg")
    assert "1 of the dots, marked at the upper edge, lie higher: up to 5000" in text


def test_names_stay_in_the_order_of_their_curves(data: Path, tmp_path: Path) -> None:
    for place, name in enumerate(LINKED):
        write_series(data / "fork-reap", name, {"reap_us": 100 + (place % 2) / 10 - place / 100})
    draw("fork-reap", data, tmp_path / "figure.svg")
    found = re.findall(
        r"translate\([\d.]+,([\d.]+)\)[^<]*<text>(?:<[^>]*>)*([^<]*)",
        (tmp_path / "figure.svg").read_text(),
    )
    heights = {name: float(y) for y, name in found if name in LINKED.values()}
    assert sorted(heights, key=heights.__getitem__) == [
        LINKED[name] for name in ("static", "diet", "dynamic", "static-pie", "musl")
    ]
    gaps = [
        b - a for a, b in zip(sorted(heights.values()), sorted(heights.values())[1:], strict=False)
    ]
    assert len(heights) == 5
    assert min(gaps) > 12


def test_a_timeline_says_who_waits_in_what(data: Path, tmp_path: Path) -> None:
    draw("timeline", data, tmp_path / "figure.svg")
    text = words(tmp_path / "figure.svg").splitlines()
    for name in (
        "A",
        "B",
        "C",
        "main",
        "waits in recv() for B",
        "pauses in the middle of its request",
    ):
        assert name in text
    assert "waits in accept()" not in text  # 35 ms are too short for it
    assert "accept()" in text


# ---- scripts and experiments -----------------------------------------------------------------


@pytest.mark.parametrize("script", SCRIPTS)
def test_each_figure_belongs_to_an_experiment_and_shows_its_metrics(script: str) -> None:
    text = (ROOT / "figures" / f"{script}.gp").read_text()
    if script == "timeline":
        files = sorted(EXPERIMENTS.glob("timeline-*.toml"))
        assert files
    else:
        [name] = re.findall(r'^experiment = "(.*)"$', text, re.MULTILINE)
        # The ledger is exported beside the experiments, and has no metrics.
        files = [] if name == "claims" else [EXPERIMENTS / f"{name}.toml"]
    for file in files:
        metrics = {metric["name"] for metric in tomllib.loads(file.read_text()).get("metric", [])}
        assert set(re.findall(r'^metric = "(\w+)"$', text, re.MULTILINE)) <= metrics


# ---- a table of a source beside ours -------------------------------------------------------------


def test_then_and_now_draws_its_own_table_only(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "figure.svg"
    assert draw("spawn-then", data, out).stderr == ""
    text = words(out)
    assert text.count("then of vfork") == 5
    assert text.count("now of vfork") == 5
    assert "of other" not in text
    assert "a paper, 2007" in text
    assert "MB, times that of the base (logarithmic)" in text
    assert all(name in text for name in ("the base", "B", "C", "D", "LiteSpeed"))


def test_then_and_now_without_its_table_says_so(data: Path, tmp_path: Path) -> None:
    meta = data / "spawn/meta.gp"
    meta.write_text(meta.read_text().replace("_vfork", "_another"))
    done = draw("spawn-then", data, tmp_path / "figure.svg")
    assert done.returncode == 1
    assert done.stderr == "figures: spawn-then: experiment spawn has no [[then]] vfork\n"
