"""The micro-benchmarks about the scheduler: who is there beside, and that all of them end.

Run: python3 -m pytest tests/micro -k scheduling --variants=glibc,diet   (after `make variants`)
"""

from __future__ import annotations

import os
import platform
import re
import resource
import signal
import subprocess
import time
from pathlib import Path

import pytest
from micro_support import PATIENCE_S, SPARE_USER, ForEveryone, is_mapped, members, rows, run

# Each with everything it can have beside it.
BESIDE = {
    "sched-switch": ["-r", "6", "-a", "5", "-b", "2"],
    "wake-latency": ["-b", "2"],
}
# The processes of such a run, itself one of them.
PRESENT = {"sched-switch": 1 + 5 + 7 + 2, "wake-latency": 1 + 1 + 2}


@pytest.mark.parametrize("program", BESIDE)
def test_prints_the_same_with_others_beside(folder: Path, program: str) -> None:
    status, out, err = run([folder / program, "-n", "3", *BESIDE[program]])
    assert (status, err) == (0, "")
    assert len(rows(out)) == 3
    assert all(cell > 0 for row in rows(out) for cell in row)


def test_a_change_of_process_is_no_less_than_its_pipe(folder: Path) -> None:
    """Both are in one run: catches a ring that does not go round, or a wrong divisor."""
    samples = rows(run([folder / "sched-switch", "-n", "20", "-r", "98"])[1])
    assert min(row[0] for row in samples) > min(row[1] for row in samples)


def vector_widths() -> set[int]:
    """Of the registers this processor has and whose instructions the program knows, in bytes."""
    if platform.machine() != "x86_64":
        return {0}
    flags = set(re.findall(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.M)[0].split())
    return {0, 16} | ({32} if "avx" in flags else set()) | ({64} if "avx512f" in flags else set())


@pytest.mark.parametrize("width", [0, 16, 32, 64])
def test_registers_are_filled_or_it_says_that_there_are_none(folder: Path, width: int) -> None:
    status, out, err = run([folder / "sched-switch", "-n", "3", "-v", str(width)])
    if width in vector_widths():
        assert (status, err, len(rows(out))) == (0, "", 3)
    else:
        assert (status, out, err.count("\n")) == (77, "", 1)
        assert err.startswith("sched-switch: ")


def test_registers_of_no_width_are_not_filled(folder: Path) -> None:
    status, out, err = run([folder / "sched-switch", "-v", "7"])
    assert (status, out) == (77, "")
    assert err.startswith("sched-switch: ")


def test_those_who_compete_share_one_processor(folder: Path) -> None:
    """All their times together are no more than passed meanwhile, and the shares are of the sum."""
    cpu = min(os.sched_getaffinity(0))
    start = time.monotonic_ns()
    status, out, err = run(
        [folder / "fairness", "-n", "5", "-t", "20"], before=lambda: os.sched_setaffinity(0, {cpu})
    )
    passed = time.monotonic_ns() - start
    assert (status, err) == (0, "")
    samples = rows(out)
    times = [row[1] for row in samples]
    assert [row[0] for row in samples] == [*range(5)]
    assert 0 < sum(times) < passed
    for row in samples:
        assert row[3] == pytest.approx(row[1] * 5 / sum(times), abs=1e-3)


@pytest.mark.parametrize(
    ("program", "beside"),
    [
        ("sched-switch", ["-r", "40"]),
        ("sched-switch", ["-a", "40"]),
        ("sched-switch", ["-b", "40"]),
        ("sched-switch", ["-r", "15", "-a", "15"]),
        ("wake-latency", ["-b", "40"]),
        ("fairness", ["-n", "40"]),
    ],
)
def test_no_room_for_a_process_is_an_error_and_no_sample(
    for_everyone: ForEveryone, folder: Path, program: str, beside: list[str]
) -> None:
    """Room for 20 processes. The limit does not bind root, who becomes somebody else."""
    if folder.name in ("asan", "tsan"):
        pytest.skip("the sanitizers start processes and threads of their own")
    root = os.geteuid() == 0 and is_mapped(SPARE_USER)
    limit = 20 if root else 0
    status, out, err = run(
        [for_everyone(program), *beside],
        before=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit)),
        user=SPARE_USER if root else None,
    )
    reason = "Try again" if folder.name == "diet" else "Resource temporarily unavailable"
    assert (status, out, err) == (1, "", f"{program}: fork: {reason}\n")


@pytest.mark.parametrize("program", BESIDE)
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_all_end_with_the_first(folder: Path, program: str, ending: signal.Signals) -> None:
    child = subprocess.Popen(
        [folder / program, "-n", "100000", *BESIDE[program]],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + PATIENCE_S
    while len(members(child.pid)) < PRESENT[program]:
        assert child.poll() is None
        assert time.monotonic() < deadline
    child.send_signal(ending)
    child.wait(timeout=PATIENCE_S)
    assert child.returncode == -ending
    while members(child.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert members(child.pid) == []
