"""What others take of the processors."""

import pytest

from quest.measure import noise
from quest.measure.counters import CpuTime
from quest.measure.noise import Noise
from quest.measure.records import Repetition


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


def test_what_others_take_is_seen_before(monkeypatch: pytest.MonkeyPatch) -> None:
    for busy, share in ((0.05, 0.0), (0.3, 0.5), (0.9, 1.0)):
        times = iter([CpuTime(1.0, 0.0, 0.0), CpuTime(1.0 + busy, 0.0, 0.0)])
        monkeypatch.setattr(noise, "cpu_time", lambda _, times=times: next(times))
        monkeypatch.setattr(noise, "_own_times", lambda: (0.0, 0.0))
        assert noise.foreign_share([0, 1]) == pytest.approx(share)
