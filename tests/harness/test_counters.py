"""What /proc and /sys count, from texts of theirs."""

import os
from pathlib import Path

import pytest

from quest.measure import counters
from tests.harness.made_up import machine


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


def test_what_all_threads_of_a_session_have_computed(proc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_what_a_device_did(tmp_path: Path) -> None:
    (tmp_path / "7:0").mkdir()
    file = tmp_path / "7:0/stat"
    file.write_text("   10 1 2000 50 4 0 80 7 0 60 70 0 0 0 0 0 0\n")
    before = counters.disk_counters("7:0", tmp_path)
    file.write_text("  490 1 98000 530 8 0 160 9 0 1060 2070 0 0 0 0 0 0\n")
    done = counters.disk_counters("7:0", tmp_path).since(before)
    assert (done.reads, done.read_sectors, done.writes) == (480, 96000, 4)
    found = counters.disk_scalars(done, 2.0, ceiling=240)
    assert found == {
        "device_reads": 480,
        "device_reads_per_s": 240,
        "device_read_kib_per_s": 24000,
        "device_writes_per_s": 2,
        "device_written_kib_per_s": 20,
        "device_utilisation": 0.5,
        "device_queue": 1,
        "device_kib_per_read": 100,
        "device_read_ms": 1,
        "device_ceiling_share": 1,
    }
    assert "device_ceiling_share" not in counters.disk_scalars(done, 2.0)
    assert "device_read_ms" not in counters.disk_scalars(counters.DiskCounters(), 2.0)


def test_idleness_of_two_kinds(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 0 100 1000 500 0 0 0 0 0\ncpu0 1 2 3\n")
    before = counters.cpu_ticks(stat)
    stat.write_text("cpu  110 0 110 1060 520 0 0 0 0 0\ncpu0 1 2 3\n")
    found = counters.idle_shares(before, counters.cpu_ticks(stat))
    assert found == pytest.approx(
        {
            "machine_idle_share": 0.6,
            "machine_iowait_share": 0.2,
            "machine_busy_share": 0.2,
            "machine_waiting_share": 0.25,
        }
    )
    assert counters.idle_shares(before, before) == {}
    assert counters.cpu_ticks(tmp_path / "none") == {}


def test_what_some_processors_have_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or all of them. Neither idle time nor what the hypervisor gave to others is work."""
    rows = ("cpu  1 0 0 5 5 0 2 3 0 0", "cpu0 1 2 4 900 900 8 16 32 0 0", "cpu1 10 20 40 900 900 80 160 320 0 0",
            "cpu10 9 9 9 9 9 9 9 9 9 9")  # fmt: skip
    (tmp_path / "stat").write_text("\n".join(rows))
    monkeypatch.setattr(counters, "STAT", tmp_path / "stat")
    monkeypatch.setattr(counters, "TICKS", 1)
    assert counters.cpu_time([0]) == (31, 16, 32)
    assert counters.cpu_time([0, 1]) == (341, 176, 352)
    assert counters.cpu_time([]) == (3, 2, 3)


def test_time_in_which_some_waited_for_a_disk(tmp_path: Path) -> None:
    file = tmp_path / "io"
    text = "some avg10=0.00 avg60=1.00 avg300=2.00 total={}\nfull avg10=0.00 total={}\n"
    file.write_text(text.format(1_000_000, 500_000))
    before = counters.io_pressure(file)
    file.write_text(text.format(2_500_000, 600_000))
    found = counters.rates(before, counters.io_pressure(file), 2.0, "share")
    assert found == pytest.approx({"machine_io_some_share": 0.75, "machine_io_full_share": 0.05})
    assert counters.io_pressure(tmp_path / "none") == {}


def test_only_the_kernels_own_threads_are_counted(tmp_path: Path) -> None:
    flags = {"2 (kworker/0:1)": 0x00208040, "9 (a (b) c)": 0x00400000}
    for name, bits in flags.items():
        folder = tmp_path / name.split()[0]
        folder.mkdir()
        (folder / "stat").write_text(f"{name} S 1 1 1 0 -1 {bits} 0 0 0 0 300 200 0 0 20\n")
    assert counters.kernel_threads_s(tmp_path) == {2: 5.0}
