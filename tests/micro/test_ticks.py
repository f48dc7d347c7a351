"""ticks: what it counts is of its own processor and of its own making."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from micro_support import rows, run

COLUMNS = [
    "busy_ticks", "idle_ticks", "blocks", "busy_gives", "busy_stops", "stops_beside", "processes",
    "runnable",
]  # fmt: skip


def on_one_processor() -> None:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def test_prints_a_header_and_one_row_a_sample(folder: Path) -> None:
    status, out, err = run([folder / "ticks", "-n", "3", "-t", "50"], before=on_one_processor)
    if status == 77:
        pytest.skip(err)
    assert (status, err) == (0, "")
    assert out.splitlines()[0].split("\t") == COLUMNS
    samples = [dict(zip(COLUMNS, row, strict=True)) for row in rows(out)]
    assert len(samples) == 3
    for sample in samples:
        # A call that waits is one change of process; sanitizers may add some of their own.
        assert 0.9 <= sample["blocks"] < 3
        assert sample["processes"] >= 1
        assert sample["runnable"] >= 1


def test_another_that_computes_makes_it_stop(folder: Path) -> None:
    """Not in each short window: in the sum of them."""
    status, out, err = run([folder / "ticks", "-n", "2", "-t", "250"], before=on_one_processor)
    if status == 77:
        pytest.skip(err)
    samples = [dict(zip(COLUMNS, row, strict=True)) for row in rows(out)]
    assert sum(sample["stops_beside"] for sample in samples) > 0
    assert sum(sample["busy_ticks"] for sample in samples) > 0
