"""What runs, how far it is, how long it still takes: one line that is rewritten on a terminal, a
line every ten seconds elsewhere.
"""

import shutil
import sys
import time
from collections.abc import Callable, Iterable
from typing import TextIO

from harness.plan import Step

EVERY = 10.0


def duration(seconds: float) -> str:
    """75 -> `1:15`, 7 -> `7 s`."""
    whole = round(max(0.0, seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return (
        f"{minutes}:{rest:02}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
    )


class Estimate:
    """How long steps take, learnt while they run."""

    def __init__(self, guess: float) -> None:
        self._guess = guess
        self._seen: dict[tuple[str, str], list[float]] = {}

    def learn(self, step: Step, seconds: float) -> None:
        self._seen.setdefault(step.key()[:2], []).append(seconds)

    def of(self, steps: Iterable[Step]) -> float:
        everything = [s for seen in self._seen.values() for s in seen]
        general = sum(everything) / len(everything) if everything else self._guess
        total = 0.0
        for step in steps:
            seen = self._seen.get(step.key()[:2])
            total += sum(seen) / len(seen) if seen else general
        return total


class Progress:
    """The reporter of one `bench`."""

    def __init__(
        self, out: TextIO = sys.stdout, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._out = out
        self._tty = out.isatty()
        self._clock = clock
        self._last = clock()
        self._text = ""
        self._left = 0.0
        self._since = clock()

    def experiment(self, number: int, count: int, name: str, expected: float) -> None:
        self._head = f"[{number}/{count}] {name}"
        if not self._tty:
            self.line(f"{self._head}: about {duration(expected)}")

    def step(self, done: int, total: int, what: str, left: float) -> None:
        """A step begins."""
        self._text = f"{self._head}  {done}/{total}  {what}"
        self._left, self._since = left, self._clock()
        self.tick(force=self._tty)

    def tick(self, force: bool = False) -> None:
        """Called often; writes when it is time."""
        now = self._clock()
        if not force and now - self._last < (1.0 if self._tty else EVERY):
            return
        self._last = now
        left = max(0.0, self._left - (now - self._since))
        text = f"{self._text}  {duration(left)} left"
        if self._tty:
            width = shutil.get_terminal_size().columns - 1
            self._out.write("\r\x1b[K" + text[:width])
            self._out.flush()
        else:
            self.line(text)

    def line(self, text: str) -> None:
        """A line that stays."""
        self._out.write(("\r\x1b[K" if self._tty else "") + text + "\n")
        self._out.flush()

    def finish(self) -> None:
        if self._tty:
            self._out.write("\r\x1b[K")
            self._out.flush()
