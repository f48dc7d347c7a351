"""What a mark spoils, and for which question."""

from typing import Any

import pytest

from quest.measure import noise, usable
from quest.measure.counters import CpuTime, kernel_threads_s
from quest.measure.noise import Noise
from quest.measure.records import Repetition
from quest.report import rules
from quest.spec.model import Metric
from quest.stats.analysis import Point

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


@pytest.mark.parametrize(
    ("metric", "share"), [(RATE, 0.25), (WAIT, 0.25), (WORK, 0.25), (SHARE, 0.25), (COUNT, 0)]
)
def test_what_others_took(metric: Metric, share: float) -> None:
    shares = {"foreign_share": 0.2, "steal_share": 0.05}
    assert usable.disturbance(metric, repetition("noisy", **shares)) == share
    assert usable.disturbance(metric, repetition(**shares)) == 0


#: Half of the effect, or of its logarithm.
BEARS: list[tuple[str, dict[str, float], float]] = [
    ("faster", {}, 0.024),
    ("faster", {"min_effect": 0.5}, 0.184),
    ("ratio_at_least", {"bound": 10}, 0.684),
    ("ratio_at_least", {"bound": 0.5}, 0.293),
    ("ratio_between", {"low": 0.5, "high": 2}, 0.293),
    ("equal", {"margin": 0.5}, 0.184),
    ("flat", {"tolerance": 0.25}, 0.106),
    ("grows", {"at_least": 4}, 0.5),
    ("about", {"factor": 4}, 0.5),
    ("expected", {"factor": 4}, 0.5),
    ("at_least", {"bound": 3}, 0.1),
    ("at_most", {"bound": 3}, 0.1),
    ("exists", {}, 0.1),
]


def test_what_rules_can_bear() -> None:
    assert {rule for rule, *_ in BEARS} == set(rules.RULES)
    for rule, numbers, share in BEARS:
        assert rules.allowed(rule, numbers) == pytest.approx(share, abs=0.001), rule


def test_a_point_keeps_what_a_rule_may_ask() -> None:
    values = dict.fromkeys(range(5), 1.0)
    point = Point(None, values, taken={0: 0.1, 1: 0.3}, spoilt={2: "little"})
    assert set(point.usable(0.1).values) == {0, 3, 4}
    assert point.unusable(0.01) == {0: "noisy", 1: "noisy", 2: "little"}


def marked(busy: float, children: float, own: float, kernel: float, steal: float = 0) -> Repetition:
    found = Repetition()
    Noise([0, 1], CpuTime(busy, 0.5, steal), children, own, kernel).mark(found, 1.0, 10.0)
    return found


def test_helpers_and_the_kernels_threads_are_not_others() -> None:
    assert marked(busy=7.5, children=4, own=1, kernel=2).marks == []
    assert marked(busy=7.5, children=4, own=1, kernel=0).marks == []  # a tenth is allowed
    busy = marked(busy=12.5, children=4, own=1, kernel=2)
    assert busy.marks == ["noisy"]
    assert busy.scalars["foreign_share"] == pytest.approx(0.25)
    assert marked(busy=1.5, children=1, own=0, kernel=0, steal=0.3).marks == ["noisy"]


def test_only_the_kernels_own_threads_are_counted(tmp_path: Any) -> None:
    flags = {"2 (kworker/0:1)": 0x00208040, "9 (a (b) c)": 0x00400000}
    for name, bits in flags.items():
        folder = tmp_path / name.split()[0]
        folder.mkdir()
        (folder / "stat").write_text(f"{name} S 1 1 1 0 -1 {bits} 0 0 0 0 300 200 0 0 20\n")
    assert kernel_threads_s(tmp_path) == 5.0


def test_what_others_take_is_seen_before(monkeypatch: pytest.MonkeyPatch) -> None:
    for busy, share in ((0.05, 0.0), (0.3, 0.5), (0.9, 1.0)):
        times = iter([CpuTime(1.0, 0.0, 0.0), CpuTime(1.0 + busy, 0.0, 0.0)])
        monkeypatch.setattr(noise, "cpu_time", lambda _, times=times: next(times))
        monkeypatch.setattr(noise, "_own_times", lambda: (0.0, 0.0))
        assert noise.foreign_share([0, 1]) == pytest.approx(share)
