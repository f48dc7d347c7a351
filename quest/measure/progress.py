"""What runs, how far it is, how long it still takes: a line that is rewritten on a terminal, a line
every ten seconds elsewhere.
"""

import shutil
import sys
import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from statistics import fmean
from typing import TextIO

from quest.spec.plan import Step

LINE_SECONDS, REWRITE_SECONDS = 10.0, 1.0  # between two lines
BAR_WIDTH = 20


def duration(seconds: float) -> str:
    """75 -> `1:15`, 7 -> `7 s`, 3725 -> `1:02:05`; 0 for less than that."""
    whole = round(max(0.0, seconds))
    if whole < 60:
        return f"{whole} s"
    text = str(timedelta(seconds=whole))
    return text if whole >= 3600 else text[2:].lstrip("0")


def terminal_width(most: int, least: int = 60) -> int:
    """Columns of the terminal, between these; as if it had 100 where there is none."""
    return max(least, min(shutil.get_terminal_size((100, 24)).columns, most))


class Estimate:
    """How many seconds steps take, learnt while they run: as long as those of the same variant and
    parameters did, else as long as all, else as long as was guessed.
    """

    def __init__(self, guess_s: float) -> None:
        self._guess_s = guess_s
        self._durations: dict[tuple[str, str], list[float]] = {}

    def learn(self, step: Step, seconds: float) -> None:
        """The step has taken so long."""
        self._durations.setdefault(step.key()[:2], []).append(seconds)

    def seconds_for(self, steps: Iterable[Step]) -> float:
        """What all of these will take together."""
        everything = [s for durations in self._durations.values() for s in durations]
        general = fmean(everything or [self._guess_s])
        return sum(fmean(self._durations.get(step.key()[:2], [general])) for step in steps)


class Progress:
    """The reporter of one `bench`. The bar never goes back, though what is left is an estimate and
    noise makes more of it; it is full when all is done. `escape_codes`: a terminal takes them.
    """

    def __init__(
        self,
        escape_codes: bool,
        out: TextIO = sys.stdout,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._out, self._clock, self._tty = out, clock, escape_codes and out.isatty()
        self._written_at = self._began = self._step_began = clock()
        self._text = ""
        self._left_s = 0.0  # when the step began
        self._bar = 0  # of BAR_WIDTH

    def experiment(self, number: int, count: int, name: str, expected_s: float) -> None:
        """The next of so many experiments begins."""
        self._head = f"[{number}/{count}] {name}"
        if not self._tty:
            self.line(f"{self._head}: about {duration(expected_s)}")

    def step(self, done: int, total: int, what: str, left_s: float, most: int = 0) -> None:
        """A step begins: so many are done of so many, and all that is left takes `left_s` seconds.
        `most`: so many there may be, because of noise.
        """
        whole = f" of up to {most}" if most else f"/{total}"
        self._text = f"{self._head}  {done}{whole}  {what}"
        self._left_s, self._step_began = left_s, self._clock()
        self.tick(force=self._tty)

    def tick(self, force: bool = False) -> None:
        """Called often; writes when it is time."""
        now = self._clock()
        if not force and now - self._written_at < (REWRITE_SECONDS if self._tty else LINE_SECONDS):
            return
        self._written_at = now
        left_s = max(0.0, self._left_s - (now - self._step_began))
        if self._tty:
            passed_s = now - self._began
            bar = int(BAR_WIDTH * passed_s / (passed_s + left_s)) if passed_s + left_s > 0 else 0
            self._bar = max(self._bar, min(bar, BAR_WIDTH - 1))
            drawn = "#" * self._bar + "." * (BAR_WIDTH - self._bar)
            width = shutil.get_terminal_size().columns - 1
            self._write(f"{drawn} {duration(left_s)} left  {self._text}"[:width])
        else:
            self.line(f"{self._text}  {duration(left_s)} left")

    def line(self, text: str) -> None:
        """A line that stays."""
        self._write(text + "\n")

    def finish(self) -> None:
        """Nothing is left of the line that was rewritten."""
        self._write("")

    def _write(self, text: str) -> None:
        """On a terminal over what is there."""
        self._out.write(("\r\x1b[K" if self._tty else "") + text)
        self._out.flush()
