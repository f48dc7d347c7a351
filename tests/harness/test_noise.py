"""What others take of the processors."""

import pytest

from quest.ground.errors import RepetitionError
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


def test_what_a_program_has_waited_counts_in_place_of_the_account() -> None:
    def scalars(waited: float | None, busy: float, wall_s: float = 0.1) -> Repetition:
        found = Repetition()
        Noise([0], CpuTime(busy, 0.0, 0.0), 0.0, 0.0, 0.0).mark(found, 0.0, wall_s, waited)
        return found

    assert scalars(0.11, busy=0.0).marks == ["noisy"] and scalars(0.09, busy=0.09).marks == []
    assert scalars(0.3, busy=0.0).scalars["wait_share"] == 0.3
    assert scalars(1.3, busy=0.5).scalars["wait_share"] == 1
    account = scalars(None, busy=0.3).scalars
    assert "wait_share" not in account
    assert account["foreign_share"] == 1, "not more than all"
    assert (account["foreign_s"], account["available_s"]) == pytest.approx((0.3, 0.1))


def test_what_others_take_is_seen_before(monkeypatch: pytest.MonkeyPatch) -> None:
    for busy, share in ((0.05, 0.0), (0.3, 0.5), (0.9, 1.0)):
        times = iter([CpuTime(1.0, 0.0, 0.0), CpuTime(1.0 + busy, 0.0, 0.0)])
        monkeypatch.setattr(noise, "cpu_time", lambda _, times=times: next(times))
        monkeypatch.setattr(noise, "_own_times", lambda: (0.0, 0.0))
        assert noise.foreign_share([0, 1]) == pytest.approx(share)


def test_the_limits_of_noise() -> None:
    """A tenth of the processors, and more than the ticks of the clock; a hundredth that the
    hypervisor took, and more than one tick.
    """

    def marks(busy_s: float, wall_s: float, steal_s: float = 0.0) -> list[str]:
        found = Repetition()
        Noise([0], CpuTime(busy_s, 0.0, steal_s), 0.0, 0.0, 0.0).mark(found, 0.0, wall_s)
        return found.marks

    assert marks(0.99, 10) == [] and marks(1.01, 10) == ["noisy"]
    assert marks(0.049, 0.1) == [] and marks(0.051, 0.1) == ["noisy"]
    assert marks(0, 1, 0.014) == [] and marks(0, 1, 0.016) == ["noisy"]
    assert marks(0, 10, 0.09) == [] and marks(0, 10, 0.11) == ["noisy"]
    assert marks(5, 0) == []


def test_what_is_known_of_our_own_is_not_foreign() -> None:
    """Of what our programs say and what our children's time says, the larger; shares of all
    processors.
    """
    found = Repetition()
    time = CpuTime(busy=6.0, softirq=0.5, steal=0.2)
    Noise([0, 1], time, children_s=1.0, own_s=0.25, kernel_s=0.75).mark(found, 3.0, 10.0)
    assert found.scalars == pytest.approx(
        {
            "foreign_share": 1.5 / 20,
            "kernel_share": 0.75 / 20,
            "steal_share": 0.2 / 20,
            "foreign_s": 1.5,
            "available_s": 20,
        }
    )


def test_a_processor_that_is_switched_off_fails_the_repetition() -> None:
    """Its line is gone from /proc/stat, and the sum since boot is smaller than before."""
    with pytest.raises(RepetitionError, match="switched off"):
        marked(busy=-70.0, children=1, own=0, kernel=0, steal=-0.5)
    assert marked(busy=-0.01, children=0, own=0, kernel=0, steal=0).scalars["foreign_share"] == 0, "a tick back"


def test_from_the_beginning_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread of the kernel that ends takes its seconds with it, and one that begins has none before."""
    times = iter([(10.0, 1.0, 0.5), (14.0, 1.5, 0.75)])
    own = iter([(2.0, 1.0), (5.0, 1.5)])
    kernel = iter([{2: 4.0, 3: 90.0, 5: 7.0}, {2: 4.25, 4: 0.5, 5: 0.0}])
    monkeypatch.setattr(noise, "cpu_time", lambda _: CpuTime(*next(times)))
    monkeypatch.setattr(noise, "_own_times", lambda: next(own))
    monkeypatch.setattr(noise, "kernel_threads_s", lambda: next(kernel))
    measured = Noise.begin([3])
    measured.end()
    assert measured == Noise([3], CpuTime(4.0, 0.5, 0.25), 3.0, 0.5, 0.75)
