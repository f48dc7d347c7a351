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


SHORT = Metric("call", "call", "µs", column="call_ns", scale=1e-3)
LONG = Metric("all", "all", "ms", column="all_ns", scale=1e-6)


@pytest.mark.parametrize(
    ("metric", "samples", "share", "taken"),
    [
        (LONG, [5.0] * 9, 0.01, 0.01),  # all of it counts
        (LONG, [5.0] * 9, 0.5, 0.5),
        (SHORT, [90.0] * 9, 0.29, 0.0),
        (SHORT, [90.0] * 9, 0.31, 0.31),
        (SHORT, [110.0] * 9, 0.29, 0.29),
        (SHORT, [90.0] * 4, 0.29, 0.29),  # too few for a median that tells anything
        (SHORT, [1.0] * 5 + [1e6] * 4, 0.29, 0.0),
        (Metric("p", "p", "µs", column="call_ns", reduce="p99"), [1.0] * 9, 0.29, 0.29),
        (COUNT, [1.0], 0.9, 0.0),
    ],
)
def test_what_was_waited_counts_but_for_the_median_of_short_samples(
    metric: Metric, samples: list[float], share: float, taken: float
) -> None:
    assert usable.disturbance(metric, repetition(wait_share=share), samples) == taken
    assert usable.disturbance(metric, repetition("noisy", wait_share=share, foreign_share=0.9), samples) == taken


def step(number: int, foreign_s: float, available_s: float, *marks: str, n: int = 3) -> dict[str, Any]:
    account = {"foreign_s": foreign_s, "available_s": available_s, "foreign_share": foreign_s / available_s}
    return {**repetition(*marks, **account), "round": number, "params": {"n": n}}


def test_short_rounds_of_a_step_are_counted_together() -> None:
    """Each has 30 ms of others, less than the clock can tell; all seven have 0.21 s of 0.7 s."""
    short = [step(number, 0.03, 0.1) for number in range(7)]
    assert usable.shares_together(short) == pytest.approx([0.3] * 7)
    assert [usable.disturbance(WAIT, one, (), 0.3) for one in short] == [0.3] * 7
    other = [step(number, 0.001, 0.1, n=4) for number in range(7)]
    assert usable.shares_together([*short, *other]) == pytest.approx([0.3] * 7 + [0] * 7)
    assert usable.shares_together([step(0, 0.04, 0.1)]) == [0], "one alone says nothing"
    long = [step(number, 5.0 * (number == 0), 10.0, "noisy") for number in range(7)]
    assert usable.shares_together(long) == [0] * 7, "there each has its own mark"
    old = [{**repetition("noisy", foreign_share=0.2), "round": 0, "params": {}}]
    assert usable.shares_together(old) == [0]
    assert usable.disturbance(WAIT, old[0]) == 0.2


def test_a_row_keeps_what_a_rule_may_ask() -> None:
    values = dict.fromkeys(range(5), 1.0)
    row = Measurement(None, Number(1.0), values, taken={0: 0.1, 1: 0.3}, spoilt={2: "little"})
    assert set(row.usable_rounds(0.1)) == {0, 3, 4}
    assert row.usable_rounds(None) == values
    assert row.unusable(0.01) == {0: "noisy", 1: "noisy", 2: "little"}
