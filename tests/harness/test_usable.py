"""What a mark spoils, and for which question."""

from typing import Any

import pytest

from quest.measure import usable
from quest.spec.model import Metric
from quest.stats.table import Measurement, Number

RATE = Metric("rate", "rate", "requests/s", scalar="kept.requests_per_s")
WAIT = Metric("wait", "wait", "µs", scalar="kept.total.median")
CONNECT = Metric("connect", "connect", "µs", scalar="kept.connect.median")
WORK = Metric("work", "work", "requests/s", scalar="requests_per_cpu_s")
COUNT = Metric("count", "count", "bytes", scalar="bytes")
SHARE = Metric("share", "share", "%", scalar="machine_iowait_share")


def repetition(*marks: str, **scalars: float) -> dict[str, Any]:
    return {"marks": list(marks), "scalars": {k.replace("__", "."): v for k, v in scalars.items()}}


BOUND = repetition("client-bound", new__client_bound=1, kept__client_bound=0)
BOUND_HERE = repetition("client-bound", kept__client_bound=1)
BOUND_WHOLE = repetition("client-bound", client_bound=1)
LITTLE = repetition("little", kept__little__ratio=0.6)
ONE = repetition("little", kept__little__ratio=0.6, kept__little__n=1)
TOO_MUCH = repetition("little", kept__little__ratio=1.4, kept__little__n=1)


@pytest.mark.parametrize(
    ("metric", "record", "mark"),
    [
        (RATE, BOUND, ""),  # of another phase
        (RATE, BOUND_HERE, "client-bound"),
        (WAIT, BOUND_HERE, "client-bound"),
        (RATE, BOUND_WHOLE, "client-bound"),
        (WORK, BOUND_WHOLE, ""),
        (COUNT, BOUND_WHOLE, ""),
        (WAIT, LITTLE, "little"),
        (RATE, LITTLE, ""),
        (CONNECT, LITTLE, "little"),
        (CONNECT, ONE, ""),  # it lies between his requests
        (CONNECT, TOO_MUCH, "little"),
        (WAIT, ONE, "little"),
        (WAIT, repetition(), ""),
    ],
)
def test_what_a_load_at_its_limit_spoils(metric: Metric, record: Any, mark: str) -> None:
    assert usable.spoiling_mark(metric, record) == mark


@pytest.mark.parametrize(("metric", "share"), [(RATE, 0.25), (WAIT, 0.25), (WORK, 0.25), (SHARE, 0.25), (COUNT, 0)])
def test_what_others_took(metric: Metric, share: float) -> None:
    shares = {"foreign_share": 0.2, "steal_share": 0.05}
    assert usable.disturbance(metric, repetition("noisy", **shares)) == share
    assert usable.disturbance(metric, repetition(**shares)) == 0


def test_a_row_keeps_what_a_rule_may_ask() -> None:
    values = dict.fromkeys(range(5), 1.0)
    row = Measurement(None, Number(1.0), values, taken={0: 0.1, 1: 0.3}, spoilt={2: "little"})
    assert set(row.usable_rounds(0.1)) == {0, 3, 4}
    assert row.usable_rounds(None) == values
    assert row.unusable(0.01) == {0: "noisy", 1: "noisy", 2: "little"}
