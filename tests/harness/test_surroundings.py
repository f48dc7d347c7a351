"""Limits, processors, what the machine counts, names that must not be recorded, programs, needs,
progress.
"""

import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

import pytest

from quest.ground import cpus, foreign, guard, places
from quest.ground.cpus import Placement
from quest.measure import counters, docroot, environment, limits, needs, programs
from quest.measure.limits import Cap
from quest.measure.progress import Estimate, Progress, duration
from quest.measure.session import Settings
from quest.spec.model import RESOURCES, Docroot
from quest.spec.plan import Step
from tests.harness.made_up import BENCHMARKS, Tree, await_


def machine(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


# ---- limits -------------------------------------------------------------------------------------

MACHINE = {
    **{f"proc/{number}/comm": "" for number in range(1, 101)},
    "proc/sys/kernel/pid_max": "32768\n",
    "proc/meminfo": f"MemTotal: 9 kB\nMemAvailable:  {480 << 10} kB\n",
    "proc/sys/fs/file-max": "60000\n",
    "proc/sys/fs/epoll/max_user_watches": "12000\n",
    "proc/sys/vm/max_map_count": "65530\n",
}
# A limit further up counts too; file pages that nobody maps do not count.
USED, IDLE = f"{900 << 20}\n", f"cache 1\ninactive_file {300 << 20}\n"
SECOND = {
    "proc/self/cgroup": "0::/a/b\n",
    "cg/a/b/pids.max": "max\n",
    "cg/a/pids.max": "512\n",
    "cg/a/pids.current": "12\n",
    "cg/a/memory.max": f"{1000 << 20}\n",
    "cg/a/memory.current": USED,
    "cg/a/memory.stat": IDLE,
}
FIRST = {
    "proc/self/cgroup": "8:cpu,pids:/a/b\n4:memory:/a\n",
    "cg/pids/a/pids.max": "512\n",
    "cg/pids/a/pids.current": "12\n",
    "cg/memory/a/memory.limit_in_bytes": f"{1000 << 20}\n",
    "cg/memory/a/memory.usage_in_bytes": USED,
    "cg/memory/a/memory.stat": IDLE,
}


@pytest.mark.parametrize(
    ("groups", "limit"), [(SECOND, "memory.max"), (FIRST, "memory.limit_in_bytes")]
)
def test_what_a_machine_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, groups: Mapping[str, str], limit: str
) -> None:
    def caps(name: str, ulimit: int = -1) -> list[tuple[int, str]]:
        monkeypatch.setattr("resource.getrlimit", lambda _: (ulimit, ulimit))
        return [(cap.most, cap.why) for cap in limits.RESOURCES[name]()]

    monkeypatch.setattr(limits, "PROC", machine(tmp_path, {**MACHINE, **groups}) / "proc")
    monkeypatch.setattr(limits, "CGROUPS", tmp_path / "cg")
    pids = [(8167, "kernel.pid_max 32768"), (125, "pids.max 512 of our cgroup")]
    memory = [(120, "480 MiB available"), (100, f"{limit} 1000 MiB of our cgroup")]
    assert caps("processes") == pids
    assert caps("processes", 900) == [(200, "ulimit -u 900"), *pids]
    assert caps("descriptors", 900) == [(836, "ulimit -n 900"), (15000, "fs.file-max 60000")]
    assert caps("memory") == memory
    assert caps("memory", 4 << 30) == [memory[0], (1024, "ulimit -v 4194304"), memory[1]]
    assert caps("connections") == [
        *((most * 1024 // 12, why) for most, why in memory), (7500, "fs.file-max 60000")
    ]  # fmt: skip
    assert caps("mappings") == [(64530, "vm.max_map_count 65530")]
    says = {
        10000: "",
        15000: "they take 15000 entries of epoll, and max_user_watches is 12000",
        25000: "they take 70000 open files, and fs.file-max is 60000",
        35000: f"they take up to 410 MiB, and there are 400: {memory[1][1]}",
        50000: "they take up to 585 MiB, and there are 480: 480 MiB available",
    }
    assert {n: limits.shortage(n) for n in says} == says
    for path in (tmp_path / "proc").glob("[msn]*/**/*"):
        path.unlink() if path.is_file() else None
    (tmp_path / "proc/meminfo").unlink()
    assert caps("mappings") == caps("memory") == [] and limits.shortage(1 << 30) == ""


def test_every_resource_an_experiment_may_name_has_its_limits() -> None:
    assert tuple(limits.RESOURCES) == RESOURCES
    assert all(limits.smallest([name]).most >= 1 for name in limits.RESOURCES)


def test_the_smallest_limit_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"processes": [Cap(50, "p"), Cap(70, "q")], "descriptors": [Cap(60, "d")]}
    monkeypatch.setattr(limits, "RESOURCES", {n: partial(list, c) for n, c in found.items()})
    assert limits.smallest(found) == Cap(50, "p")
    assert limits.smallest(["descriptors"]) == Cap(60, "d")
    found["processes"][0] = Cap(-5, "full")
    assert limits.smallest(["processes"]) == Cap(1, "full")


# ---- what the machine counts ---------------------------------------------------------------------


def test_switches_and_interrupts_a_second(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    assert counters.machine_events(stat) == {}
    stat.write_text("cpu  1 2 3\nintr 1000 7 0 5\nctxt 500\nbtime 99\n")
    before = counters.machine_events(stat)
    stat.write_text("intr 1600 9 0 5\nctxt 520\n")
    rates = counters.rates(before, counters.machine_events(stat), 2.0)
    assert rates == {"machine_interrupts_per_s": 300, "machine_switches_per_s": 10}
    assert counters.rates(before, before, 0.0) == {}


def test_segments_of_a_request_and_of_a_reply(tmp_path: Path) -> None:
    def counted(sent: int, data: int, opened: int) -> dict[str, int]:
        tcp = f"Tcp: Max OutSegs PassiveOpens\nTcp: -1 {sent} {opened}\n"
        more = f"TcpExt: TCPOrigDataSent More\nTcpExt: {data} 7\n"
        machine(tmp_path, {"snmp": f"Udp: In Out\nUdp: 1 2\n{tcp}", "netstat": more})
        return counters.tcp_counters(tmp_path)

    assert counters.tcp_counters(tmp_path) == {}
    before, after = counted(100, 50, 3), counted(150, 84, 5)
    expected = {"segments_per_request": 5, "segments_of_reply": 2}
    assert counters.tcp_scalars(before, after, 10) == expected
    assert counters.tcp_scalars(before, after, 0) == counters.tcp_scalars({}, after, 10) == {}


PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024


@pytest.fixture(name="proc")
def _proc(tmp_path: Path) -> Path:
    """Two processes, 7 and 8."""
    for pid in ("7", "8"):
        rollup = f"Rss: {pid}00 kB\nPss: 40 kB\nPss_Dirty: 7 kB\nPrivate_Dirty: 12 kB\n"
        status, statm = "Name:\tx\nVmPTE:\t      44 kB\n", "625 400 390 4 0 89 0\n"
        books = {"smaps_rollup": rollup, "status": status, "statm": statm}
        books |= {f"task/{pid}/schedstat": "1500000000 7 3\n"}
        machine(tmp_path / pid, books | {"task/5/schedstat": "250000000 0 1\n"})
        (tmp_path / pid / "fd").mkdir()
        for place, what in enumerate(("/dev/null", "socket:[1]", f"socket:[{pid}]")):
            (tmp_path / pid / "fd" / str(place)).symlink_to(what)
    return tmp_path


def test_the_memory_of_a_session_is_added_up(proc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "session_members", lambda _: [7, 8, 9])  # 9 has just ended
    assert counters.session_memory(7, proc) == {
        "processes": 3, "descriptors": 6, "sockets": 3, "rss_kib": 1500, "pss_kib": 80,
        "private_dirty_kib": 24, "page_tables_kib": 88,
    }  # fmt: skip


def test_a_process_that_ends_while_all_are_looked_at(
    proc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object, **__: object) -> None:
        raise ProcessLookupError("No such process")

    found = {path.name for path in places.numbered(proc)}
    assert found == {"7", "8"}
    monkeypatch.setattr(Path, "stat", gone)  # what Path.glob() asks of each
    assert os.getpid() in guard.session_members(os.getsid(0))
    assert counters.kernel_threads_s() >= 0
    monkeypatch.setattr(os, "listdir", gone)
    assert places.numbered(proc) == []


@pytest.mark.parametrize("how", [FileNotFoundError, ProcessLookupError, PermissionError])
def test_a_process_that_ends_between_two_looks(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, how: type[OSError]
) -> None:
    """lstat() of its link finds it, readlink() does not: as os.path.realpath() asks."""

    def gone(*_: object, **__: object) -> str:
        raise how("it has ended")

    command = [sys.executable, "-c", "input()", "its-marker"]
    with subprocess.Popen(command, cwd=tree.root, stdin=subprocess.PIPE, text=True) as process:
        await_(lambda: tree.processes("its-marker") == [process.pid], process)
        with monkeypatch.context() as patched:
            patched.setattr(os, "readlink", gone)
            assert tree.processes("its-marker") == []
            assert places.link_of("/proc/self/cwd") == ""
        process.communicate("\n")


def test_processes_are_looked_at_by_what_bears_their_end() -> None:
    """Path.glob(), Path.resolve() and os.path.realpath() look twice at each file of /proc."""
    twice = re.compile(r'"/proc[^"]*"[,)][^\n]*\.(glob|rglob|resolve)\(|realpath\(\w.*(proc|pid)')
    tree = BENCHMARKS.parent
    files = [p for top in ("benchmarks", "labs", "tests") for p in (tree / top).rglob("*.py")]
    found = {
        f"{path.relative_to(tree)}: {line.strip()}"
        for path in files
        for line in path.read_text(encoding="utf-8").splitlines()
        if twice.search(line)
    }
    assert files and not found


def test_what_all_threads_of_a_session_have_computed(
    proc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counters, "session_members", lambda _: [7, 8, 9])
    assert counters.session_cpu_s(7, proc) == 3.5
    (proc / "8/task/5/schedstat").write_text("", encoding="ascii")  # just ended
    assert counters.session_cpu_s(7, proc) == 3.25


def test_one_process_in_two_books(proc: Path) -> None:
    account = counters.process_memory(7, proc)
    pages = [account[f"statm_{name}_kib"] / PAGE_KIB for name in ("size", "resident", "data")]
    assert pages == [625, 400, 89]
    assert (account["one_rss_kib"], account["one_private_dirty_kib"]) == (700, 12)
    assert counters.process_memory(9, proc) == {}


def test_the_kernels_own_memory(tmp_path: Path) -> None:
    assert counters.kernel_memory(tmp_path) == {}
    sockets = "TCP: inuse 5 orphan 0 tw 0 alloc 6 mem 3\nUDP: mem 9\n"
    machine(tmp_path, {"meminfo": "Slab:  300 kB\nKernelStack:  16 kB\n", "net/sockstat": sockets})
    expected = {"slab_kib": 300, "stacks_kib": 16, "page_tables_kib": 0, "tcp_kib": 3 * PAGE_KIB}
    assert counters.kernel_memory(tmp_path) == expected


# ---- processors ---------------------------------------------------------------------------------


@pytest.fixture(name="ten_cores")
def _ten_cores(tmp_path: Path) -> Path:
    """Of two hardware threads each: 0 and 10, 1 and 11, ... A processor above 19 is a core."""
    pairs = [f"{cpu % 10},{cpu % 10 + 10}\n" for cpu in range(20)]
    names = [f"cpu{cpu}/topology/thread_siblings_list" for cpu in range(20)]
    return machine(tmp_path, dict(zip(names, pairs, strict=True)))


@pytest.mark.parametrize(
    ("pin", "allowed", "measured", "load", "marks"),
    [
        ("none", [0, 4], [], [], ()),
        ("one", [0, 4], [4], [], ()),
        ("apart", [0, 4], [4], [0], ()),
        ("apart", [4], [4], [4], ("shared-core",)),
        # Hardware threads too: a server that asks how many it may use counts them.
        ("shared", [0, 4, 10, 14], [0, 4, 10, 14], [0, 4, 10, 14], ()),
        ("shared", [3], [3], [3], ()),
        # A worker has one thread of its core; the load has both of its cores, but none that is
        # not allowed, and no more than it has connections at one worker.
        ("workers", range(20), [6, 7, 8, 9], [*range(6), *range(10, 16)], ()),
        ("workers", [2, 3, 4, 5, 6, 13, 14], [5, 6], [2, 3, 4, 13, 14], ()),
        ("workers", range(20, 420), range(260, 420), range(20, 148), ()),
        ("workers", [0], [0], [0], ("shared-core",)),
        ("workers", [0, 1], [1], [0], ()),
    ],
)
def test_placement(
    ten_cores: Path,
    pin: str,
    allowed: Iterable[int],
    measured: Iterable[int],
    load: Iterable[int],
    marks: tuple[str, ...],
) -> None:
    cores = cpus.cores(list(allowed), ten_cores)
    found = cpus.place(pin, cores, allowed, ten_cores)
    assert found == Placement(frozenset(measured), frozenset(load), marks)


def test_a_repetition_has_a_core_for_each_worker_or_is_marked() -> None:
    placement = Placement(frozenset({6, 7, 8, 9}), frozenset({0, 1}))
    one = Placement(frozenset({9}), placement.load)
    shared = Placement(placement.measured, placement.load, ("shared-core",))
    assert [cpus.narrowed(placement, n) for n in (1, 4, 5)] == [one, placement, shared]


def test_workers_that_share_are_as_many_as_the_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpus, "allowed", lambda: [2, 3, 7])
    assert limits.smallest(["processors"]) == Cap(3, "3 processors that we may use")


@pytest.mark.parametrize(("number", "workers"), [(1, 1), (4, 1), (5, 2), (9, 3), (10, 4), (64, 25)])
def test_two_cores_of_five_are_for_workers_and_four_are_needed(
    monkeypatch: pytest.MonkeyPatch, number: int, workers: int
) -> None:
    monkeypatch.setattr(cpus, "cores", lambda _: list(range(number)))
    (cap,) = limits.core_caps()
    why = f"{number} physical cores, and the load has {number - workers} of them"
    assert cap == Cap(workers, why)
    answer = needs.worker_cores()
    assert answer.ok == (workers >= 4)
    assert answer.ok or answer == (
        False,
        f"needs 4 cores for workers and 6 for the load, here are {number}",
        "a machine with 10 physical cores, or a wider taskset or cpuset",
    )


# ---- names --------------------------------------------------------------------------------------


def test_no_path_host_or_user_name_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "someone")
    monkeypatch.setattr("socket.gethostname", lambda: "secret-host")
    text = f"{Path.cwd()}/build/x on secret-host by someone in /home/someone/a: /proc/self/fd"
    assert foreign.anonymous(text) == "build/x on  by  in a: /proc/self/fd"
    assert foreign.anonymous("http://127.0.0.1:80/a/b") == "http://127.0.0.1:80/a/b"


def test_short_processor_names() -> None:
    short = {
        "Intel(R) Core(TM) i7-8550U CPU @ 1.80GHz": "Intel Core i7-8550U",
        "AMD EPYC 7763 64-Core Processor": "AMD EPYC 7763",
    }
    assert {long: environment.short_cpu(long) for long in short} == short


# ---- programs, files, needs ----------------------------------------------------------------------


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
    names = docroot.file_names(Docroot({"a/{08..10}/{0..1}.html": 5, "x.html": 1}))
    assert names == [*(f"a/{a}/{b}.html" for a in ("08", "09", "10") for b in "01"), "x.html"]
    assert len(docroot.file_content("a", 12345)) == 12345
    assert docroot.file_content("a", 100) != docroot.file_content("b", 100)


def test_an_unknown_need_is_a_program_with_a_remedy() -> None:
    assert places.program("sh").ok
    answer = places.program("no-such-program")
    assert answer == (False, "no-such-program is not installed", "apt-get install no-such-program")
    # The rest is told by packages.tsv.
    brought = {name: places.PACKAGES[name] for name in ("cc", "h2load", "tcpserver")}
    assert brought == {"cc": "gcc libc6-dev", "h2load": "nghttp2-client", "tcpserver": "ucspi-tcp"}
    assert {"nginx", "tcpserver"} <= places.PEERS
    assert "wrk" not in places.PEERS


def test_what_others_would_notice_needs_room_or_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    for most, enough in ((999, False), (1000, True)):
        caps = [Cap(most, "ulimit -u")]
        monkeypatch.setattr(limits, "RESOURCES", {"processes": partial(list, caps)})
        assert needs.processes().ok == enough
        assert f"{most} processes, a quarter of ulimit -u" in needs.processes().reason or enough
    assert not needs.probe("many").ok
    assert needs.probe("many", many=True).ok


@pytest.mark.parametrize(
    ("program", "header", "lacks"),
    [
        ("x", "no-such-header.h", True),
        ("x", "no-such-header.h|header:sys/stat.h", False),  # elsewhere it is in another folder
        ("y", "no-such-header.h", False),
        ("z", "no-such-header.h", False),
    ],
)
def test_a_program_without_its_library_says_which_package_brings_it(
    tmp_path: Path, program: str, header: str, lacks: bool
) -> None:
    rules = "x_NEEDS := stdio.h no-such-header.h # why\ny_NEEDS := stdio.h\n"
    table = f"# head\nlibno-dev\tbuild\theader:{header}\tno\tx\n"
    machine(tmp_path, {"code/module.mk": rules, "table": table})
    lacking = needs.missing_library(program, tmp_path, tmp_path / "table")
    wanted = (False, "libno-dev is not installed", "apt-get install libno-dev")
    assert lacking == (wanted if lacks else None)


# ---- progress -----------------------------------------------------------------------------------


def test_durations() -> None:
    texts = {-1: "0 s", 7.4: "7 s", 60: "1:00", 75: "1:15", 3725: "1:02:05"}
    assert {seconds: duration(seconds) for seconds in texts} == texts


def test_the_estimate_learns() -> None:
    steps = [Step(variant, {}, number, 0) for number in range(3) for variant in "ab"]
    estimate = Estimate(2.0)
    assert estimate.seconds_for(steps) == 12
    estimate.learn(steps[0], 1.0)
    assert estimate.seconds_for(steps) == 6
    estimate.learn(steps[1], 3.0)
    assert estimate.seconds_for(steps) == 12


def test_elsewhere_than_on_a_terminal_a_line_every_ten_seconds() -> None:
    now = [0.0]
    out = io.StringIO()
    shown = Progress(True, out, clock=lambda: now[0])
    shown.experiment(1, 2, "fork-latency", 30)
    for second in range(25):
        now[0] = float(second)
        shown.step(second, 25, "round 1, static", 25.0 - second)
    assert out.getvalue().splitlines() == [
        "[1/2] fork-latency: about 30 s",
        "[1/2] fork-latency  10/25  round 1, static  15 s left",
        "[1/2] fork-latency  20/25  round 1, static  5 s left",
    ]


def test_a_bar_never_goes_back_and_is_not_full_before_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two steps were to be left, and at the end of both noise makes two more."""
    out, now = io.StringIO(), [0.0]
    monkeypatch.setattr(out, "isatty", lambda: True)
    shown = Progress(True, out, clock=lambda: now[0])
    shown.experiment(1, 1, "x", 3)
    for second, left in ((0, 2.0), (1, 1.0), (2, 0.0), (2.5, 2.0), (3, 1.0), (4, 0.0), (5, 3.0)):
        now[0] = float(second)
        shown.step(1, 2, "a", left)
    bars = [len(text) for text in re.findall(r"\x1b\[K(#*)\.+ ", out.getvalue())]
    assert len(bars) == 7 and bars == sorted(bars), bars
    assert bars[0] == 0 and bars[-1] == 19


def test_settings_from_the_environment() -> None:
    made = {
        "CLIENT": "me@there", "SERVER": "192.0.2.1", "MANY": "1", "HARNESS_CFLAGS": " -O2 ",
        "MAKELEVEL": "1", "TERM": "xterm", "RESULTS": "reference",
    }  # fmt: skip
    assert Settings.from_environment(made) == Settings(
        "me@there", "192.0.2.1", many=True, compiler_flags="-O2", started_by_make=True,
        escape_codes=True,
    )  # fmt: skip
    assert Settings.from_environment({}) == Settings()
    assert not Settings.from_environment({"MANY": "0"}).many
    for change in ({"TERM": "dumb"}, {"TERM": ""}, {"NO_COLOR": "1"}):
        assert not Settings.from_environment(made | change).escape_codes


def test_no_escape_code_where_none_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: True)
    shown = Progress(False, out, clock=lambda: 0.0)
    shown.experiment(1, 1, "x", 3)
    shown.step(0, 2, "a", 4.0)
    shown.finish()
    assert out.getvalue() == "[1/1] x: about 3 s\n"


def test_on_a_terminal_one_line_is_rewritten(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: True)
    shown = Progress(True, out, clock=lambda: 0.0)
    shown.experiment(1, 1, "x", 3)
    shown.step(0, 2, "round 1, a", 4.0)
    shown.step(1, 2, "round 1, b", 2.0)
    shown.step(2, 3, "round 2, a", 1.0, most=4)
    shown.finish()
    assert "2 of up to 4  round 2, a" in out.getvalue()
    assert "\n" not in out.getvalue()
    assert out.getvalue().count("\r") == 4
    assert "...... 4 s left  [1/1] x  0/2  round 1, a" in out.getvalue()
