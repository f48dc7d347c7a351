"""The micro-benchmarks: what they print, that no process stays, that a failure is no sample.

Run: python3 -m pytest tests/micro --variants=glibc,diet   (after `make variants`)
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import time
from pathlib import Path

import pytest
from micro_support import (
    PATIENCE_S,
    PROGRAMS,
    SPARE_USER,
    ForEveryone,
    cells,
    is_mapped,
    members,
    rows,
    run,
)

FORKING = ["fork-latency", "fork-reap", "lazy-binding"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_prints_a_header_and_one_row_a_sample(folder: Path, program: str) -> None:
    columns, arguments, count = PROGRAMS[program]
    status, out, err = run([folder / program, "-n", "50", *arguments])
    assert (status, err) == (0, "")
    assert out.splitlines()[0].split("\t") == columns
    samples = cells(out)
    assert len(samples) == count
    for row in samples:
        assert len(row) == len(columns)
        named = zip(columns, row, strict=True)
        times = [float(cell) for name, cell in named if "_ns" in name and cell != "-"]
        assert min(times, default=1.0) > 0


def test_live_counts_up_and_remaining_counts_down(folder: Path) -> None:
    assert [row[0] for row in rows(run([folder / "fork-latency", "-n", "20"])[1])] == [*range(20)]
    assert [row[0] for row in rows(run([folder / "fork-reap", "-n", "20"])[1])] == [
        *range(19, -1, -1)
    ]


def test_clock_costs_less_than_a_fork(folder: Path) -> None:
    """A wide ratio within one run: catches a wrong unit, not a slow machine."""
    cost = min(row[0] for row in rows(run([folder / "clock-cost", "-n", "20"])[1]))
    fork = min(row[1] for row in rows(run([folder / "fork-latency", "-n", "20"])[1]))
    assert 1 <= cost < fork


@pytest.mark.parametrize("program", FORKING)
def test_inherited_signal_settings_do_not_matter(folder: Path, program: str) -> None:
    """With SIGCHLD ignored, as some init programs leave it, no child could be waited for."""

    def ignore() -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    status, out, err = run([folder / program, "-n", "10"], before=ignore)
    assert (status, err, len(rows(out))) == (0, "", 10)


@pytest.mark.parametrize("program", FORKING)
def test_a_failed_fork_is_an_error_and_no_sample(
    for_everyone: ForEveryone, folder: Path, program: str
) -> None:
    """With room for 20 processes, itself one of them, the 20th fork fails.

    The limit does not bind root, and an ordinary user has other processes: the one becomes somebody
    else, the other gets room for none.
    """
    if folder.name in ("asan", "tsan"):
        pytest.skip("the sanitizers start processes and threads of their own")
    root = os.geteuid() == 0 and is_mapped(SPARE_USER)
    limit = 20 if root else 0
    status, out, err = run(
        [for_everyone(program), "-n", "40"],
        before=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit)),
        user=SPARE_USER if root else None,
    )
    made = limit - 1 if root else 0
    assert status == 1
    reason = "Try again" if folder.name == "diet" else "Resource temporarily unavailable"
    assert err == f"{program}: fork: {reason} after {made} children\n"
    assert len(rows(out)) == (0 if program == "fork-reap" else made)


ONE_CHILD_A_SAMPLE = [
    ["spawn", "fork"],
    ["spawn", "vfork"],
    ["spawn", "posix_spawn", "/bin/true"],
    ["fork-memory", "-r", "2", "small"],
    ["fork-mappings", "-m", "10", "touched"],
]


def alone(for_everyone: ForEveryone, command: list[str]) -> tuple[int, str, str]:
    """Runs it where there is room for no other process than itself."""
    root = os.geteuid() == 0 and is_mapped(SPARE_USER)
    limit = 1 if root else 0
    return run(
        [for_everyone(command[0]), "-n", "2", *command[1:]],
        before=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit)),
        user=SPARE_USER if root else None,
    )


@pytest.mark.parametrize("command", ONE_CHILD_A_SAMPLE, ids=" ".join)
def test_a_fork_that_fails_is_a_line_with_its_errno(
    for_everyone: ForEveryone, folder: Path, command: list[str]
) -> None:
    if folder.name in ("asan", "tsan"):
        pytest.skip("the sanitizers start processes and threads of their own")
    if folder.name == "diet" and "posix_spawn" in command:
        pytest.skip("dietlibc has no posix_spawn()")
    status, out, err = alone(for_everyone, command)
    assert (status, err) == (0, "")
    assert cells(out)
    for *_, total_ns, error in cells(out):
        assert (total_ns, error) == ("0", "EAGAIN")


@pytest.mark.parametrize(
    "command", [["cow-pages", "child"], ["cow-pages", "parent"], ["malloc-dirty", "fresh"]]
)
def test_without_a_child_there_is_nothing_to_look_at(
    for_everyone: ForEveryone, folder: Path, command: list[str]
) -> None:
    if folder.name in ("asan", "tsan"):
        pytest.skip("the sanitizers start processes and threads of their own")
    status, out, err = alone(for_everyone, command)
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"{command[0]}: fork: ")


@pytest.mark.parametrize("program", FORKING)
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, signal.SIGALRM])
def test_children_end_with_their_parent(folder: Path, program: str, ending: signal.Signals) -> None:
    child = start_and_stop_with_children(folder / program)
    child.send_signal(ending)
    child.send_signal(signal.SIGCONT)
    _, err = child.communicate(timeout=PATIENCE_S)
    if ending == signal.SIGALRM:
        assert (child.returncode, err) == (1, f"{program}: not finished after 300 s\n")
    else:
        assert child.returncode == -ending
    deadline = time.monotonic() + PATIENCE_S
    while members(child.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert members(child.pid) == []


def start_and_stop_with_children(program: Path) -> subprocess.Popen[str]:
    """Starts it until, at a stop, it has children; a fast machine may need several starts."""
    for _ in range(20):
        child = subprocess.Popen(
            [program, "-n", "2000"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        time.sleep(0.02)
        while child.poll() is None:
            child.send_signal(signal.SIGSTOP)
            if len(members(child.pid)) > 5:
                return child
            child.send_signal(signal.SIGCONT)
            time.sleep(0.01)
        child.communicate(timeout=PATIENCE_S)
    pytest.fail(f"{program.name} was never seen with children")
