"""What other programs take of the processors during a measurement.

Of a program that does its work in one thread it is known exactly: how long that thread waited in the run
queue (quest/ground/runqueue.py). Of all others there is an account of the processors: what was used
there, less what is ours. It is kept in ticks of the clock, so it says nothing of a single short
repetition; of the rounds of a step together it does (usable.py).
"""

import os
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from quest.ground.errors import RepetitionError
from quest.measure.counters import CpuTime, cpu_time, kernel_threads_s
from quest.measure.records import Repetition
from quest.measure.usable import NOISY, NOISY_SECONDS, NOISY_SHARE, WAIT_SHARE

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
    threads: Mapping[int, float] = field(default_factory=dict, compare=False)  # each of them, at the beginning

    @classmethod
    def begin(cls, cpus: Collection[int]) -> "Noise":
        """On these processors; on all if none is named."""
        return cls(cpus, cpu_time(cpus), *_own_times(), 0.0, kernel_threads_s())

    def end(self) -> None:
        """The figures are from now on what was done since begin()."""
        children_s, own_s = _own_times()
        self.total = cpu_time(self.cpus).since(self.total)
        self.children_s, self.own_s = children_s - self.children_s, own_s - self.own_s
        # Of one that has ended since it is not known; one with the number of another may have worked less.
        self.kernel_s = sum(max(0.0, s - self.threads.get(pid, 0.0)) for pid, s in kernel_threads_s().items())

    def mark(self, repetition: Repetition, known_s: float, wall_s: float, wait_share: float | None = None) -> None:
        """Marks a repetition of `wall_s` seconds as noisy where others used the same processors,
        and records their share. RepetitionError where one of the processors was switched off meanwhile: its time is
        gone, and the program was moved to another.

        `known_s` is what our programs say they have used. A server that lets the kernel reap its
        children is the only one to know what they used; a helper's time is in our children's.
        `wait_share`: of the time, that the program waited in the run queue; None where that is not known.
        """
        available_s = wall_s * max(1, len(self.cpus))
        if available_s <= 0:
            return
        if self.total.busy < -1.0:  # a counter of /proc/stat may step back by a tick
            raise RepetitionError("a processor of this measurement was switched off meanwhile")
        ours_s = self.own_s + max(known_s, self.children_s) + self.kernel_s
        foreign_s = max(0.0, self.total.busy - self.total.softirq - ours_s)
        repetition.scalars["foreign_share"] = min(1.0, foreign_s / available_s)
        repetition.scalars["foreign_s"], repetition.scalars["available_s"] = foreign_s, available_s
        repetition.scalars["kernel_share"] = self.kernel_s / available_s
        repetition.scalars["steal_share"] = self.total.steal / available_s
        noisy = foreign_s > NOISY_SECONDS and foreign_s / available_s > NOISY_SHARE
        if wait_share is not None:
            repetition.scalars[WAIT_SHARE] = wait_share = min(1.0, wait_share)
            noisy = wait_share > NOISY_SHARE
        steal_s = self.total.steal
        if noisy or (steal_s > STEAL_SECONDS and steal_s / available_s > STEAL_SHARE):
            repetition.mark(NOISY)


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
