"""Limits, processors, names that must not be recorded, programs, progress."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from made_up import BENCHMARKS

from harness.run import load, programs
from harness.run.jobs import Estimate, Progress, duration
from harness.spec.model import Docroot
from harness.spec.plan import Step
from harness.system import counters, cpus, environment, limits, needs, places

# ---- limits -------------------------------------------------------------------------------------


def proc(root: Path, cgroup: str, processes: int = 100) -> Path:
    for number in range(1, processes + 1):
        (root / str(number)).mkdir(parents=True)
    (root / "self").mkdir()
    (root / "self" / "cgroup").write_text(cgroup)
    (root / "sys" / "kernel").mkdir(parents=True)
    (root / "sys" / "kernel" / "pid_max").write_text("32768\n")
    return root


def test_a_quarter_of_what_is_free_is_the_most(tmp_path: Path) -> None:
    found = list(limits.process_caps(proc(tmp_path, ""), tmp_path / "cg", soft=900))
    assert [(cap.most, cap.why) for cap in found] == [
        (200, "ulimit -u 900"),
        (8167, "kernel.pid_max 32768"),
    ]


@pytest.mark.parametrize(
    ("line", "folder"), [("0::/a/b\n", "a/b"), ("8:cpu,pids:/a/b\n", "pids/a/b")]
)
def test_the_cgroup_of_either_version_counts(tmp_path: Path, line: str, folder: str) -> None:
    cgroups = tmp_path / "cg"
    inner = cgroups / folder
    inner.mkdir(parents=True)
    (inner / "pids.max").write_text("max\n")
    (inner.parent / "pids.max").write_text("512\n")  # a limit further up counts too
    (inner.parent / "pids.current").write_text("12\n")
    found = list(limits.process_caps(proc(tmp_path / "proc", line), cgroups, soft=100_000))
    assert (125, "pids.max 512 of our cgroup") in [(cap.most, cap.why) for cap in found]


def test_memory_is_a_quarter_of_what_is_available(tmp_path: Path) -> None:
    (proc(tmp_path, "") / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:  8192000 kB\n")
    found = list(limits.memory_caps(tmp_path, tmp_path / "cg", soft=4 << 30))
    assert [(cap.most, cap.why) for cap in found] == [
        (2000, "8000 MiB available"),
        (1024, "ulimit -v 4194304"),
    ]


@pytest.mark.parametrize(
    ("line", "folder", "limit", "usage"),
    [
        ("0::/a/b\n", "a", "memory.max", "memory.current"),
        ("4:memory:/a/b\n", "memory/a", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ],
)
def test_memory_of_the_cgroup_counts_and_idle_file_pages_do_not(
    tmp_path: Path, line: str, folder: str, limit: str, usage: str
) -> None:
    cgroup = tmp_path / "cg" / folder
    cgroup.mkdir(parents=True)
    (cgroup / limit).write_text(f"{1000 << 20}\n")
    (cgroup / usage).write_text(f"{900 << 20}\n")
    (cgroup / "memory.stat").write_text(f"cache 1\ninactive_file {300 << 20}\n")
    found = limits.memory_caps(proc(tmp_path / "proc", line), tmp_path / "cg", soft=-1)
    assert list(found) == [limits.Cap(100, f"{limit} 1000 MiB of our cgroup")]


def test_connections_take_memory_and_files_at_both_ends(tmp_path: Path) -> None:
    root = proc(tmp_path, "")
    (root / "meminfo").write_text(f"MemAvailable: {480 << 10} kB\n")
    (root / "sys" / "fs").mkdir()
    (root / "sys" / "fs" / "file-max").write_text("80000\n")
    caps = list(limits.connection_caps(root))
    assert caps[0] == limits.Cap(10240, "480 MiB available"), "a quarter, at 12 KiB each"
    assert caps[-1] == limits.Cap(10000, "fs.file-max 80000")


@pytest.mark.parametrize(
    ("connections", "says"),
    [
        (10000, ""),
        (50000, "they take up to 585 MiB, and there are 480: 480 MiB available"),
        (25000, "they take 70000 open files, and fs.file-max is 60000"),
        (15000, "they take 15000 entries of epoll, and max_user_watches is 12000"),
    ],
)
def test_which_limit_so_many_connections_exceed(
    tmp_path: Path, connections: int, says: str
) -> None:
    root = proc(tmp_path, "")
    (root / "meminfo").write_text(f"MemAvailable: {480 << 10} kB\n")
    (root / "sys" / "fs" / "epoll").mkdir(parents=True)
    (root / "sys" / "fs" / "file-max").write_text("60000\n")
    (root / "sys" / "fs" / "epoll" / "max_user_watches").write_text("12000\n")
    assert limits.shortage(connections, root, tmp_path / "cg") == says


def test_mappings_are_those_of_one_process(tmp_path: Path) -> None:
    assert list(limits.mapping_caps(tmp_path)) == []
    (tmp_path / "sys" / "vm").mkdir(parents=True)
    (tmp_path / "sys" / "vm" / "max_map_count").write_text("65530\n")
    assert list(limits.mapping_caps(tmp_path)) == [limits.Cap(64530, "vm.max_map_count 65530")]


def test_every_resource_an_experiment_may_name_has_its_limits() -> None:
    schema = json.loads((BENCHMARKS / "harness/spec/experiment.schema.json").read_text("utf-8"))
    assert list(limits.RESOURCES) == schema["$defs"]["resource"]["enum"]
    assert all(limits.smallest([name]).most >= 1 for name in limits.RESOURCES)


def test_the_smallest_limit_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "process_caps", lambda: [limits.Cap(50, "p"), limits.Cap(70, "q")])
    monkeypatch.setattr(limits, "descriptor_caps", lambda: [limits.Cap(60, "d")])
    assert limits.caps_for({"n": ("processes", "descriptors"), "m": ("descriptors",)}) == {
        "n": limits.Cap(50, "p"),
        "m": limits.Cap(60, "d"),
    }
    monkeypatch.setattr(limits, "process_caps", lambda: [limits.Cap(-5, "full")])
    assert limits.caps_for({"n": ("processes",)})["n"].most == 1


# ---- what the machine counts ---------------------------------------------------------------------


def test_switches_and_interrupts_a_second(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    assert counters.events(stat) == {}
    stat.write_text("cpu  1 2 3\nintr 1000 7 0 5\nctxt 500\nbtime 99\n")
    before = counters.events(stat)
    assert before == {"machine_interrupts": 1000, "machine_switches": 500}
    stat.write_text("intr 1600 9 0 5\nctxt 520\n")
    rates = counters.rates(before, counters.events(stat), 2.0)
    assert rates == {"machine_interrupts_per_s": 300, "machine_switches_per_s": 10}
    assert counters.rates(before, before, 0.0) == {}


def test_segments_of_a_request_and_of_a_reply(tmp_path: Path) -> None:
    assert counters.tcp_counters(tmp_path) == {}
    (tmp_path / "snmp").write_text(
        "Udp: In Out\nUdp: 1 2\nTcp: Max OutSegs PassiveOpens\nTcp: -1 100 3\n"
    )
    (tmp_path / "netstat").write_text("TcpExt: TCPOrigDataSent More\nTcpExt: 50 7\n")
    before = counters.tcp_counters(tmp_path)
    assert before["Tcp.Max"] == -1
    assert before["TcpExt.TCPOrigDataSent"] == 50
    (tmp_path / "snmp").write_text("Tcp: Max OutSegs PassiveOpens\nTcp: -1 150 5\n")
    (tmp_path / "netstat").write_text("TcpExt: TCPOrigDataSent More\nTcpExt: 84 7\n")
    after = counters.tcp_counters(tmp_path)
    assert counters.tcp_scalars(before, after, 10) == {
        "segments_per_request": 5,
        "segments_of_reply": 2,
    }
    assert counters.tcp_scalars(before, after, 0) == {}
    assert counters.tcp_scalars({}, after, 10) == {}


# ---- processors ---------------------------------------------------------------------------------


def topology(root: Path, pairs: list[str]) -> Path:
    for cpu, text in enumerate(pairs):
        folder = root / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(text + "\n")
    return root


def test_two_threads_of_one_core_are_one_core(tmp_path: Path) -> None:
    root = topology(tmp_path, ["0,2", "1,3", "0,2", "1,3"])
    assert cpus.cores([0, 1, 2, 3], root) == [0, 1]
    assert cpus.cores([0, 2], root) == [0]
    assert cpus.cores([3, 2], root) == [2, 3]


def test_placement() -> None:
    assert cpus.place("apart", [0, 4]) == cpus.Placement(frozenset({4}), frozenset({0}))
    assert cpus.place("apart", [4]).marks == ("shared-core",)
    assert cpus.place("one", [0, 4]).measured == {4}
    assert cpus.place("none", [0, 4]).measured == frozenset()


def test_who_shares_has_all_that_is_allowed() -> None:
    """Hardware threads too: a server that asks how many it may use counts them."""
    everything = {0, 1, 4, 5}
    found = cpus.place("shared", [0, 4], everything)
    assert found == cpus.Placement(frozenset(everything), frozenset(everything))
    assert cpus.place("shared", [3], [3]) == cpus.Placement(frozenset({3}), frozenset({3}))


def test_workers_that_share_are_as_many_as_the_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpus, "allowed", lambda: [2, 3, 7])
    cap = limits.smallest(["processors"])
    assert cap == limits.Cap(3, "3 processors that we may use")


def test_two_cores_of_five_are_for_workers() -> None:
    assert [cpus.for_workers(n) for n in (1, 2, 4, 5, 9, 10, 15, 128)] == [1, 1, 1, 2, 3, 4, 6, 51]


def test_workers_have_the_last_cores_and_the_load_all_of_the_others(tmp_path: Path) -> None:
    """Ten cores of two hardware threads each: a worker has one of them, and the load both."""
    root = topology(tmp_path, [f"{cpu % 10},{cpu % 10 + 10}" for cpu in range(20)])
    allowed = list(range(20))
    placement = cpus.place("workers", cpus.cores(allowed, root), allowed, root)
    assert placement.measured == {6, 7, 8, 9}
    assert placement.load == {0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15}
    assert placement.marks == ()


def test_the_load_takes_no_processor_that_is_not_allowed(tmp_path: Path) -> None:
    root = topology(tmp_path, [f"{cpu % 10},{cpu % 10 + 10}" for cpu in range(20)])
    allowed = [2, 3, 4, 5, 6, 13, 14]
    placement = cpus.place("workers", cpus.cores(allowed, root), allowed, root)
    assert placement.measured == {5, 6}
    assert placement.load == {2, 3, 4, 13, 14}


def test_the_load_has_no_more_processors_than_connections_at_one_worker(tmp_path: Path) -> None:
    many = list(range(400))
    placement = cpus.place("workers", many, many, tmp_path)
    assert len(placement.measured) == 160
    assert placement.load == set(range(128))


@pytest.mark.parametrize("number", [1, 2])
def test_few_cores_are_shared_or_halved(number: int, tmp_path: Path) -> None:
    few = list(range(number))
    placement = cpus.place("workers", few, few, tmp_path)
    assert placement.measured == {number - 1}
    assert placement.load == {0}
    assert placement.marks == (("shared-core",) if number == 1 else ())


def test_a_repetition_has_a_core_for_each_worker_or_is_marked() -> None:
    placement = cpus.Placement(frozenset({6, 7, 8, 9}), frozenset({0, 1}))
    one = cpus.Placement(frozenset({9}), placement.load)
    shared = cpus.Placement(placement.measured, placement.load, ("shared-core",))
    found = [cpus.narrowed(placement, workers) for workers in (1, 4, 5)]
    assert found == [one, placement, shared]


@pytest.mark.parametrize(("number", "ok"), [(2, False), (9, False), (10, True), (64, True)])
def test_four_workers_need_ten_cores(
    monkeypatch: pytest.MonkeyPatch, number: int, ok: bool
) -> None:
    monkeypatch.setattr(cpus, "cores", lambda _: list(range(number)))
    answer = needs.worker_cores()
    assert answer.ok == ok
    assert ok or answer == (
        False,
        f"needs 4 cores for workers and 6 for the load, here are {number}",
        "a machine with 10 physical cores, or a wider taskset or cpuset",
    )
    (cap,) = limits.core_caps()
    assert (cap.most >= 4) == ok
    assert cap.why == f"{number} physical cores, and the load has {number - cap.most} of them"


# ---- names --------------------------------------------------------------------------------------


def test_no_path_host_or_user_name_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "someone")
    monkeypatch.setattr("socket.gethostname", lambda: "secret-host")
    text = f"{Path.cwd()}/build/x on secret-host by someone in /home/someone/a: /proc/self/fd"
    kept = environment.anonymous(text)
    assert "secret" not in kept
    assert "someone" not in kept
    assert str(Path.cwd()) not in kept
    assert kept.startswith("build/x on ")
    assert kept.endswith("/proc/self/fd")
    assert environment.anonymous("http://127.0.0.1:80/a/b") == "http://127.0.0.1:80/a/b"


@pytest.mark.parametrize(
    ("long", "short"),
    [
        ("Intel(R) Core(TM) i7-8550U CPU @ 1.80GHz", "Intel Core i7-8550U"),
        ("AMD EPYC 7763 64-Core Processor", "AMD EPYC 7763"),
        ("AMD EPYC", "AMD EPYC"),
    ],
)
def test_short_processor_names(long: str, short: str) -> None:
    assert environment.short_cpu(long) == short


def test_what_makes_two_environments_differ() -> None:
    one = {"kernel": "Linux 6.1", "cpu": "x", "cores": 2, "load": [0.1]}
    assert environment.differs(one, {**one, "load": [3.0]}) == ""
    assert environment.differs(one, {**one, "kernel": "Linux 6.2"}) == "kernel"


# ---- programs and files -------------------------------------------------------------------------


@pytest.mark.skipif(not shutil.which("cc"), reason="no compiler")
def test_a_comment_does_not_change_a_program_but_code_does(tmp_path: Path) -> None:
    def build(source: str) -> str:
        (tmp_path / "x.c").write_text(source)
        command = ["cc", "-O2", "-g", "-Wl,--build-id", "-o", "x", "x.c"]
        subprocess.run(command, cwd=tmp_path, check=True)
        return programs.fingerprint(tmp_path / "x")

    first = build("int main(void) { return 0; }\n")
    assert build("/* moved down */\n\nint main(void) { return 0; }\n") == first
    assert build("int main(void) { return 1; }\n") != first
    assert build("char room[77];\nint main(void) { return 0; }\n") != first


def test_a_script_is_hashed_as_it_is(tmp_path: Path) -> None:
    script = tmp_path / "x"
    script.write_bytes(b"#!/bin/sh\n")
    first = programs.fingerprint(script)
    script.write_bytes(b"\x7fELF\x02\x01 not really")
    assert programs.fingerprint(script) != first


def test_names_of_files_are_expanded() -> None:
    files = {"a/{08..10}/{0..1}.html": 5, "x.html": 1}
    assert load.file_names(Docroot(files)) == [
        "a/08/0.html", "a/08/1.html", "a/09/0.html", "a/09/1.html", "a/10/0.html",
        "a/10/1.html", "x.html",
    ]  # fmt: skip
    assert len(load.file_content("a", 12345)) == 12345
    assert load.file_content("a", 100) != load.file_content("b", 100)


def test_an_unknown_need_is_a_program_with_a_remedy() -> None:
    assert places.program("sh").ok
    answer = places.program("no-such-program")
    assert answer == (False, "no-such-program is not installed", "apt-get install no-such-program")
    assert places.PACKAGES["h2load"] == "nghttp2-client"


def test_every_probe_answers_with_a_reason() -> None:
    for name in needs.PROBES:
        answer = needs.probe(name)
        assert answer.ok or answer.reason


def test_many_processes_need_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MANY", raising=False)
    assert not needs.many().ok
    monkeypatch.setenv("MANY", "1")
    assert needs.many().ok


@pytest.mark.parametrize(("most", "ok"), [(999, False), (1000, True)])
def test_a_thousand_processes_may_be_needed(
    monkeypatch: pytest.MonkeyPatch, most: int, ok: bool
) -> None:
    monkeypatch.setattr(limits, "process_caps", lambda: [limits.Cap(most, "ulimit -u")])
    assert needs.processes().ok == ok
    assert ("999 processes, a quarter of ulimit -u" in needs.processes().reason) != ok


# ---- progress -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "text"), [(7.4, "7 s"), (60, "1:00"), (75, "1:15"), (3725, "1:02:05"), (-1, "0 s")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_the_estimate_learns() -> None:
    steps = [Step(variant, {}, number, 0) for number in range(3) for variant in "ab"]
    estimate = Estimate(2.0)
    assert estimate.of(steps) == 12
    estimate.learn(steps[0], 1.0)
    assert estimate.of(steps) == 6
    estimate.learn(steps[1], 3.0)
    assert estimate.of(steps) == 12


class Screen(io.StringIO):
    def __init__(self, tty: bool) -> None:
        super().__init__()
        self.tty = tty

    def isatty(self) -> bool:
        return self.tty


def test_elsewhere_than_on_a_terminal_a_line_every_ten_seconds() -> None:
    now = [0.0]
    out = Screen(False)
    shown = Progress(out, clock=lambda: now[0])
    shown.experiment(1, 2, "fork-latency", 30)
    for second in range(25):
        now[0] = float(second)
        shown.step(second, 25, "round 1, static", 25.0 - second)
    lines = out.getvalue().splitlines()
    assert lines == [
        "[1/2] fork-latency: about 30 s",
        "[1/2] fork-latency  10/25  round 1, static  15 s left",
        "[1/2] fork-latency  20/25  round 1, static  5 s left",
    ]


def test_on_a_terminal_one_line_is_rewritten() -> None:
    out = Screen(True)
    shown = Progress(out, clock=lambda: 0.0)
    shown.experiment(1, 1, "x", 3)
    shown.step(0, 2, "round 1, a", 4.0)
    shown.step(1, 2, "round 1, b", 2.0)
    shown.finish()
    assert "\n" not in out.getvalue()
    assert out.getvalue().count("\r") == 3


# ---- libraries ----------------------------------------------------------------------------------


def test_a_program_without_its_library_says_which_package_brings_it(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    rules = "x_NEEDS := stdio.h no-such-header.h # why\ny_NEEDS := stdio.h\n"
    (tmp_path / "code" / "module.mk").write_text(rules)
    table = tmp_path / needs.TABLE
    table.parent.mkdir(parents=True)
    table.write_text("# head\nlibno-dev\tbuild\theader:no-such-header.h\tno\tx\n")
    lacking = needs.missing_library("x", tmp_path)
    assert lacking is not None
    assert lacking.reason == "libno-dev is not installed"
    assert lacking.remedy == "apt-get install libno-dev"
    assert needs.missing_library("y", tmp_path) is None
    assert needs.missing_library("z", tmp_path) is None
    table.write_text("libno-dev\tbuild\theader:no-such-header.h|header:sys/stat.h\tno\tx\n")
    assert needs.missing_library("x", tmp_path) is None, "another system has it in another folder"
