"""What is asked for, what of it is left to do, and how long that still takes."""

import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from harness.run import programs
from harness.run.records import ResultSet, first_and_last, read
from harness.spec import plan
from harness.spec.model import PROFILES, Experiment, Profile
from harness.spec.plan import Step
from harness.system.needs import probe
from harness.system.places import Answer


@dataclass
class Job:
    """An experiment that has something left to measure."""

    experiment: Experiment
    profile: Profile
    path: Path
    programs: Mapping[str, str]
    missing: Mapping[str, Answer]
    plan: str
    old: ResultSet | None = None  # the set to go on with


# ---- what is there already ----------------------------------------------------------------------


def prepare(experiment: Experiment, wanted: str, results: Path) -> tuple[Job | None, list[str]]:
    """The job, or None if nothing is left to do; and what cannot be run here, one line each.

    What only the profile needs, as somebody's consent, leaves older results as they are.
    """
    for need in experiment.profiles[wanted].needs:
        consent = probe(need)
        if not consent.ok:
            what = f"profile {wanted}"
            return None, [skip_text(experiment.id, what, consent.reason, consent.remedy)]
    missing = {
        v.name: answer for v in experiment.variants if (answer := programs.missing(experiment, v))
    }
    available = [v for v in experiment.variants if v.name not in missing]
    hashes = programs.fingerprints(experiment, available)
    skips = [skip_text(experiment.id, n, a.reason, a.remedy) for n, a in missing.items()]
    path = results / f"{experiment.id}.jsonl"

    def job(profile: str, old: ResultSet | None = None) -> Job:
        settings = experiment.profiles[profile]
        digest = plan.plan_hash(experiment, settings, hashes, missing)
        return Job(experiment, settings, path, hashes, missing, digest, old)

    if not path.exists():
        return job(wanted), skips
    ends = first_and_last(path)
    if ends and ends[1]["type"] == "end" and ends[1]["failures"] == 0:
        profile = ends[0]["profile"]
        enough = PROFILES.index(profile) >= PROFILES.index(wanted)
        if enough and profile in experiment.profiles and job(profile).plan == ends[0]["plan"]:
            return None, skips
        return job(wanted), skips
    if not path.read_bytes().count(b"\n"):
        path.unlink()  # killed in its first line
        return job(wanted), skips
    old = read(path)
    profile = old.run["profile"]
    goes_on = profile == wanted or (old.end and PROFILES.index(profile) > PROFILES.index(wanted))
    if goes_on and profile in experiment.profiles and job(profile).plan == old.run["plan"]:
        return job(profile, old), skips
    return job(wanted), skips


def skip_text(experiment: str, variant: str, reason: str, remedy: str) -> str:
    return f"{experiment} {variant}: {reason}" + (f" ({remedy})" if remedy else "")


# ---- What runs, how far it is, how long it still takes -------------------------------------------
#
# One line that is rewritten on a terminal, a line every ten seconds elsewhere.

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
        self._last = self._began = clock()
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
        if self._tty:
            passed = now - self._began
            done = round(20 * passed / (passed + left)) if passed + left > 0 else 0
            bar = "#" * done + "." * (20 - done)
            width = shutil.get_terminal_size().columns - 1
            self._out.write(f"\r\x1b[K{bar} {duration(left)} left  {self._text}"[: width + 4])
            self._out.flush()
        else:
            self.line(f"{self._text}  {duration(left)} left")

    def line(self, text: str) -> None:
        """A line that stays."""
        self._out.write(("\r\x1b[K" if self._tty else "") + text + "\n")
        self._out.flush()

    def finish(self) -> None:
        if self._tty:
            self._out.write("\r\x1b[K")
            self._out.flush()
