"""Processes, their memory and their turns: what is measured is what was made."""

import math
import os
import platform
import statistics
import time
from typing import Any

import pytest

from tests.micro.micro_support import SANITIZED, UNSUPPORTED, Micro, Rows, one_line, table

PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024
ROUNDS = 20  #: at most, of what another program may disturb
#: ways to wait for a connection: by which it wakes all, and by which it wakes one
HERDS, SINGLE = ("poll", "epoll"), ("accept", "exclusive", "reuseport")


@pytest.fixture
def plain(micro: Micro) -> Micro:
    """Those without a sanitizer."""
    micro.skip_in(*SANITIZED, why="the sanitizers have memory, mappings and a malloc of their own")
    return micro


def test_clock_costs_less_than_a_fork(micro: Micro) -> None:
    """A wide ratio within one run: catches a wrong unit, not a slow machine."""
    cost = min(micro.column("cost_ns", "clock-cost -n 20"))
    assert 1 <= cost < min(micro.column("fork_ns", "fork-latency -n 20"))


def test_each_operation_of_lmbench(micro: Micro) -> None:
    """The least of several rounds: beside others a batch may take twice as long. Far apart, so that one operation under
    the names of two is not taken for two.
    """
    for way in ("mmap @", "connect"):
        assert min(micro.column("op_ns", f"as-lmbench -n 3 {way}")) > 0
    least = dict.fromkeys(("select", "fork", f"exec {micro.folder}/nothing"), math.inf)
    for _ in range(ROUNDS):
        least = {way: min(ns, *micro.column("op_ns", f"as-lmbench -n 3 {way}")) for way, ns in least.items()}
        select_ns, fork_ns, exec_ns = least.values()
        if 2 * select_ns < fork_ns < exec_ns / 1.2:
            break
    assert 2 * select_ns < fork_ns < exec_ns / 1.2, least
    assert micro.complaint("as-lmbench exec /nowhere") == "a child failed"


# ---- memory


def fork_ns(rows: Rows) -> tuple[float, float]:
    """The medians for the least and the most that the parent has."""
    assert {*[row["error"] for row in rows]} == {"-"}
    assert all(0 < row["fork_ns"] < row["total_ns"] for row in rows)
    least, most = (
        statistics.median([row["fork_ns"] for row in part]) for part in (rows[:9], rows[-9:])
    )
    return least, most


def test_memory_makes_fork_dearer_and_huge_pages_less_so(plain: Micro) -> None:
    """A wide ratio within one run: catches memory that is not there, not a slow machine."""
    none, small = fork_ns(plain.rows("fork-memory -n 9 -r 128 small"))
    assert small > 3 * none
    status, out, err = plain.run("fork-memory -n 9 -r 128 huge")
    if status == UNSUPPORTED:
        assert "huge pages" in one_line("fork-memory", out, err)
        return
    assert (status, err) == (0, "")
    assert small > 2 * fork_ns(table(out))[1]


@pytest.mark.slow
def test_mappings_make_fork_dearer(plain: Micro) -> None:
    for kind in ("touched", "untouched"):
        none, many = fork_ns(plain.rows(f"fork-mappings -n 9 -m 5000 {kind}"))
        assert many > 3 * none, kind


def test_each_page_that_is_written_is_a_fault_and_a_page_of_the_child(plain: Micro) -> None:
    for writer in ("child", "parent"):
        _, _, first, *_, last = plain.rows(f"cow-pages -n 3 -p 300 {writer}")
        assert (first["faults_per_page"], first["page_ns"], last["pages"]) == ("-", "-", 300)
        assert 300 <= last["faults"] <= 310, writer
        assert last["faults_per_page"] == pytest.approx(last["faults"] / 300, abs=0.001)
        assert last["page_ns"] == pytest.approx(last["write_ns"] / 300, abs=0.001)
        assert 298 * PAGE_KIB <= last["dirty_kib"] - first["dirty_kib"] <= 310 * PAGE_KIB
        shares = {row["wait_share"] for row in plain.rows(f"cow-pages -n 3 -p 300 {writer}")}
        assert len(shares) == 1 and (shares == {"-"} or 0 <= min(shares) <= 1), "of the whole run"
    last = plain.rows("cow-pages -n 3 -p 300 alone")[-1]
    assert last["dirty_kib"] == "-"
    assert last["faults"] <= 3, "without a child nothing is copied"


def test_blocks_nobody_writes_to_make_memory_private(plain: Micro) -> None:
    for heap in ("fresh", "used"):
        _, first, *_, before_last, last = plain.rows(f"malloc-dirty -n 2 -m 300 {heap}")
        assert (first["mallocs"], first["asked_kib"], last["mallocs"]) == (0, 0, 256)
        assert 256 * 16 / 1024 <= last["asked_kib"] <= 256 * 512 / 1024
        assert before_last["asked_kib"] == last["asked_kib"], "every child asks for the same"
        assert last["dirty_kib"] > first["dirty_kib"]
        assert last["faults"] > first["faults"]


def test_binding_at_start_spares_each_child_a_page_where_there_is_a_linker(plain: Micro) -> None:
    """Each child of several runs has at least so much for itself.

    The kernel places stack and heap at random: in some runs they reach into one page more.
    """

    def least_dirty(value: str) -> Any:
        def bound() -> None:
            os.environ["LD_BIND_NOW"] = value  # empty is as if it were not there

        runs = [plain.rows("lazy-binding -n 20", before=bound) for _ in range(6)]
        return min(row["dirty_kib"] for rows in runs for row in rows)

    now = least_dirty("1")
    assert now >= PAGE_KIB
    if plain.variant == "bin":
        assert least_dirty("") >= now + PAGE_KIB
    else:
        assert least_dirty("") == now


def test_getrusage_has_done_what_it_says(micro: Micro) -> None:
    [small] = micro.rows("getrusage -n 1")
    [large] = micro.rows("getrusage -n 200")
    # Below that it can be ours: exec keeps what the process had been before. The kernel counts for
    # each processor, and does not add up all of it.
    assert large["maxrss_kib"] >= 199 * 1024
    # With pages of 64 KiB, as some kernels have, it would be 3184.
    assert large["minflt"] - small["minflt"] >= 3000
    assert small["nvcsw"] >= 1, "it slept"
    # Linux has no count for these (getrusage(2)): ten signals and ten messages leave no trace.
    assert [small[name] for name in ("msgsnd", "msgrcv", "nsignals", "nswap")] == [0] * 4


@pytest.mark.parametrize("way", ["fork", "vfork", "posix_spawn", "clone3"])
def test_each_way_makes_children_at_each_size(micro: Micro, way: str) -> None:
    if way == "clone3":
        micro.skip_in(*SANITIZED, why="they do not follow a child onto a stack they do not know")
    lacking = {"posix_spawn": micro.variant == "diet", "clone3": platform.machine() != "x86_64"}
    if lacking.get(way):
        assert micro.complaint(f"spawn {way} /bin/true", status=UNSUPPORTED)
        return
    for program in ("/bin/true", "") if way != "posix_spawn" else ("/bin/true",):
        rows = micro.rows(f"spawn -n 3 -r 130 {way} {program}")
        assert [row["mib"] for row in rows] == [0] * 3 + [64] * 3 + [128] * 3
        assert {*[row["error"] for row in rows]} == {"-"}
        assert all(0 < row["return_ns"] < row["total_ns"] for row in rows)
    status, out, err = micro.run(f"spawn -n 1 {way} /nowhere")
    if way == "posix_spawn" and status == 0:
        # A library that knows of the exec hands its errno over; else the child's status says it.
        assert out.endswith("\t0\terrno-2\n")
        return
    said = "/nowhere: the child could not execute it, or failed"
    assert (status, one_line("spawn", out, err)) == (1, said)


# ---- whose turn it is


def test_a_change_of_process_is_no_less_than_its_pipe(micro: Micro) -> None:
    """Both are in one run: catches a ring that does not go round, or a wrong divisor."""
    rows = micro.rows("sched-switch -n 20 -r 98")
    assert min([row["handover_ns"] for row in rows]) > min([row["pipe_ns"] for row in rows])


@pytest.mark.parametrize("width", [0, 16, 32, 64])
def test_registers_are_filled_or_it_says_that_there_are_none(micro: Micro, width: int) -> None:
    """To fill what this processor has not got would end it."""
    may_lack = width > (16 if platform.machine() == "x86_64" else 0)
    assert len(micro.rows(f"sched-switch -n 3 -v {width}", may_lack=may_lack)) == 3


def test_registers_that_nothing_fills_are_clean(micro: Micro) -> None:
    """Also where the C library has used them before; where the processor tells nothing it is 2."""
    clean, filled = ({row["in_use"] for row in micro.rows(f"sched-switch -n 5 -v {width}")} for width in (0, 16))
    assert clean in ({0}, {2})
    assert filled <= {0, 1, 2}


def test_registers_that_are_filled_are_in_use(micro: Micro, monkeypatch: pytest.MonkeyPatch) -> None:
    """Filled by the program, not left behind by glibc's functions for AVX-512, which are taken away here."""
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW")
    if {row["in_use"] for row in micro.rows("sched-switch -n 5 -v 0")} != {0}:
        pytest.skip("this processor does not tell which registers are in use")
    for width in (32, 64):
        rows = micro.rows(f"sched-switch -n 5 -v {width}", may_lack=True)
        assert {row["in_use"] for row in rows} <= {1}


def on_one_processor() -> None:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def test_those_who_compete_share_one_processor(micro: Micro) -> None:
    """All their times together are no more than passed meanwhile, and the shares are of the sum."""
    start = time.monotonic_ns()
    rows = micro.rows("fairness -n 5 -t 20", before=on_one_processor)
    total = sum([row["cpu_ns"] for row in rows])
    assert 0 < total < time.monotonic_ns() - start
    for row in rows:
        assert row["share"] == pytest.approx(row["cpu_ns"] * 5 / total, abs=1e-3)


def test_to_be_chosen_again_is_no_change_of_process(micro: Micro) -> None:
    """Others would have a slice of milliseconds each. The least of each: other work on the machine
    makes both slower.
    """
    again, following = (
        min(
            micro.column(
                "turn_ns", f"run-queue -n 9 -p 64 {way}", before=on_one_processor, may_lack=True
            )
        )
        for way in ("again", "next")
    )
    assert 0 < again < following


def test_ticks_counts_what_it_makes_itself(micro: Micro) -> None:
    """What stops it beside another that computes is not in each short window: in the sum."""
    rows = micro.rows("ticks -n 2 -t 250", before=on_one_processor, may_lack=True)
    for row in rows:
        # A call that waits is one change of process; sanitizers may add some of their own.
        assert 0.9 <= row["blocks"] < 3
        assert row["processes"] >= 1
        assert row["runnable"] >= 1
    assert sum([row["stops_beside"] for row in rows]) > 0
    assert sum([row["busy_ticks"] for row in rows]) > 0


def woken_by_one(micro: Micro) -> dict[str, float]:
    """Way to wait -> how many of twelve processes one connection wakes."""
    woken = {}
    for way in (*HERDS, *SINGLE):
        command = f"prefork-herd -n 12 -c 20 {way}"
        [row] = micro.rows(command, may_lack=micro.variant == "diet")
        assert (row["processes"], row["connect_ns"] > 1000) == (12, True)
        woken[way] = row["wakeups"]
    return woken


def test_one_connection_wakes_one_or_all(micro: Micro) -> None:
    """Far apart: a busy machine may wake some twice, or be late to wake all of them. And whoever is late to sleep again
    takes two connections for one wake-up.
    """
    for _ in range(5):
        woken = woken_by_one(micro)
        herds, single = ([woken[way] for way in ways] for ways in (HERDS, SINGLE))
        if max(herds) < 16 and min(single) >= 0.9 and 2 * max(single) < min(herds):
            return
    pytest.fail(str(woken))
