"""What other programs take of the processors during a measurement."""

import os
import time
from collections.abc import Collection
from dataclasses import dataclass

from quest.measure.counters import CpuTime, cpu_time, kernel_threads_s
from quest.measure.records import Repetition

NOISY_SHARE = 0.10
NOISY_SECONDS = 0.05  # below it the clock ticks of the accounting decide
STEAL_SHARE = 0.01
STEAL_SECONDS = 0.015  # one tick of the clock is not yet a share
LOOK_SECONDS = 0.3


@dataclass
class Noise:
    """What the processors of a measurement do from begin() to end(), and for whom: seconds."""

    cpus: Collection[int]
    total: CpuTime
    children_s: float  # of our children that have ended
    own_s: float  # of this process
    kernel_s: float  # of the kernel's threads

    @classmethod
    def begin(cls, cpus: Collection[int]) -> "Noise":
        """On these processors; on all if none is named."""
        return cls(cpus, cpu_time(cpus), *_own_times(), kernel_threads_s())

    def end(self) -> None:
        """The figures are from now on what was done since begin()."""
        children_s, own_s = _own_times()
        self.total = cpu_time(self.cpus).since(self.total)
        self.children_s, self.own_s = children_s - self.children_s, own_s - self.own_s
        self.kernel_s = kernel_threads_s() - self.kernel_s

    def mark(self, repetition: Repetition, known_s: float, wall_s: float) -> None:
        """Marks a repetition of `wall_s` seconds as noisy where others used the same processors,
        and records their share.

        `known_s` is what our programs say they have used. A server that lets the kernel reap its
        children is the only one to know what they used; a helper's time is in our children's.
        """
        available_s = wall_s * max(1, len(self.cpus))
        if available_s <= 0:
            return
        ours_s = self.own_s + max(known_s, self.children_s) + self.kernel_s
        foreign_s = max(0.0, self.total.busy - self.total.softirq - ours_s)
        repetition.scalars["foreign_share"] = foreign_s / available_s
        repetition.scalars["kernel_share"] = self.kernel_s / available_s
        repetition.scalars["steal_share"] = self.total.steal / available_s
        noisy = foreign_s > NOISY_SECONDS and foreign_s / available_s > NOISY_SHARE
        steal_s = self.total.steal
        if noisy or (steal_s > STEAL_SECONDS and steal_s / available_s > STEAL_SHARE):
            repetition.mark("noisy")


def foreign_share(cpus: Collection[int]) -> float:
    """The share of these processors that other programs take just now; 0 where it would make no
    repetition `noisy`. Takes LOOK_SECONDS.
    """
    noise = Noise.begin(cpus)
    time.sleep(LOOK_SECONDS)
    noise.end()
    foreign_s = max(0.0, noise.total.busy - noise.total.softirq - noise.own_s)
    share = foreign_s / (LOOK_SECONDS * len(cpus))
    return min(1.0, share) if share > NOISY_SHARE else 0.0


def _own_times() -> tuple[float, float]:
    """Seconds of processor time: of all our children that have ended, and of this process."""
    times = os.times()
    return times.children_user + times.children_system, times.user + times.system
