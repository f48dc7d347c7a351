"""What came of a race: a file of JSON that one can hand in, and that a class puts on a board.

It holds the value of every round, and no ratio: all that is shown is computed from the rounds. Its check sum finds
accidents and edits by hand. It is no signature: a sum that was computed anew is believed, and so are numbers that a
machine can have.
"""

import hashlib
import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

from quest.ground import foreign
from quest.ground.errors import InputError
from quest.ground.files import write_whole
from quest.ground.toml import Rule, record_of
from quest.measure.records import Utc
from quest.spec.model import LEAST
from quest.stats import units
from quest.stats.reach import reach

SCHEMA = "quest-race-1"
MINE = "mine"  #: the name of one's own server
MOST_BYTES = 1 << 20
SAME = 1.05  #: two that differ by less, in all rounds, are as good as each other
LONGEST_NAME = 60
LEAST_VALUE = 1e-3  #: of a lap: of less, as memory may be where a round gave some back, there is no ratio
MOST_OF_A_MACHINE = 1 << 40


@dataclass(frozen=True)
class Lap:
    """One question. `parts` are measured apart, and added up; `least`, `most` (in `unit`): what no machine passes."""

    name: str
    title: str
    unit: str
    parts: tuple[str, ...]
    more_is_better: bool
    least: float
    most: float


#: A request costs two system calls at least, a connection two sockets in the kernel, a reply two ways over loopback.
LAPS = (
    Lap("work", "requests a CPU second", "/s", ("work",), True, 0.01, 2e6),
    Lap("idle", "an idle client", "B", ("own", "kernel"), False, 1000.0, 1e9),
    Lap("slow", "p99 beside slow clients", "ms", ("slow",), False, 0.005, 60e3),
)
PARTS = tuple(part for lap in LAPS for part in lap.parts)
Text = Annotated[str, Rule(pattern=r"[^\x00-\x1f\x7f]*")]
Sum = Annotated[str, Rule(pattern="[0-9a-f]{64}", must="be a SHA-256 sum")]


@dataclass(frozen=True)
class Machine:
    """What a ratio may depend on, and nothing that names a person."""

    cpu: Text
    cores: Annotated[int, Rule(least=1)]
    kernel: Text
    memory_mib: Annotated[int, Rule(least=1)]

    def fault(self) -> str:
        more = max(self.cores, self.memory_mib) > MOST_OF_A_MACHINE
        return '"cores" or "memory_mib" is more than a machine can have' if more else ""

    def __str__(self) -> str:
        cores = f"{self.cores} core{'s' if self.cores > 1 else ''}"
        return f"{self.cpu}, {cores}, {self.kernel}, {self.memory_mib / 1024:.0f} GiB"


@dataclass(frozen=True)
class Racer:
    """A server. `program`: a hash of what it is made of; `version`: of another's server, as it says itself."""

    name: Annotated[str, Rule(pattern="[a-z0-9][a-z0-9-]*")]
    program: Sum
    version: Text = ""


@dataclass(frozen=True)
class Values:
    """One part of a lap, by one server. `rounds`: number -> value; `noisy`: rounds in which other programs took more
    than a tenth of the processors; `failed`: why there are none.
    """

    server: str
    part: Annotated[str, Rule(choices=PARTS)]
    rounds: Mapping[Annotated[str, Rule(pattern="[0-9]{1,3}")], float]
    noisy: tuple[Annotated[int, Rule(least=0)], ...] = ()
    failed: Text = ""


@dataclass(frozen=True)
class Race:
    """The file. `reference`: the server of ours that ratios are to; `clients`: how many were idle."""

    name: Annotated[str, Rule(filled=True, pattern=rf"[^\x00-\x1f\x7f]{{1,{LONGEST_NAME}}}")]
    time: Utc
    profile: Annotated[str, Rule(choices=("smoke", "quick", "full"))]
    commit: Text
    machine: Machine
    reference: str
    servers: tuple[Racer, ...]
    values: tuple[Values, ...]
    schema: Annotated[str, Rule(choices=(SCHEMA,))] = SCHEMA
    sum: Sum = "0" * 64

    def fault(self) -> str:
        names = [server.name for server in self.servers]
        for wanted in (MINE, self.reference):
            if names.count(wanted) != 1:
                return f'"servers" must have {wanted} once'
        if self.reference == MINE or len(set(names)) < len(names):
            return '"servers" must be different ones, and the reference one of ours'
        measured = [(one.server, one.part) for one in self.values]
        if len(set(measured)) < len(measured) or not {server for server, _ in measured} <= set(names):
            return '"values" must be of these servers, each part once'
        return ""

    # ---- what it says

    def of(self, server: str, part: str) -> Values | None:
        return next((one for one in self.values if (one.server, one.part) == (server, part)), None)

    def failed(self, server: str, lap: Lap) -> str:
        """Why there is no value; "" if there is one."""
        found = [self.of(server, part) for part in lap.parts]
        texts = [one.failed for one in found if one and one.failed]
        return texts[0] if texts else "" if all(one and one.rounds for one in found) else "not measured"

    def rounds(self, server: str, lap: Lap, noisy: bool = False) -> dict[int, float]:
        """Number of a round -> value of the whole lap; rounds in which the machine was busy only with `noisy`."""
        found = [one for part in lap.parts if (one := self.of(server, part))]
        if len(found) < len(lap.parts) or self.failed(server, lap):
            return {}
        busy = {str(number) for one in found for number in one.noisy if not noisy}
        common = set.intersection(*(set(one.rounds) for one in found)) - busy
        return {int(number): sum(one.rounds[number] for one in found) for number in sorted(common, key=int)}

    def text(self, server: str, lap: Lap) -> str:
        """`9.3 kB`: the median, with as many digits as the rounds mean."""
        return _text(list(self.rounds(server, lap, noisy=True).values()), lap.unit) or "-"

    def part_text(self, server: str, part: str, unit: str) -> str:
        """The same of one part; "" if it was not measured."""
        one = self.of(server, part)
        return _text(list(one.rounds.values()), unit) if one else ""


def _text(values: Sequence[float], unit: str) -> str:
    if not values:
        return ""
    found = reach([values])
    ends = (found.low, found.high) if len(values) >= LEAST else (None, None)
    return units.text(found.median, unit, *ends)


# ---- two servers of one race ---------------------------------------------------------------------


@dataclass(frozen=True)
class Gain:
    """By what factor one server is better than another: above 1 it is ahead. Of the same rounds of both; `low` and
    `high` hold the median with 95 % or more, and are None for fewer than LEAST undisturbed `rounds`.
    """

    value: float
    low: float | None
    high: float | None
    rounds: int

    @property
    def word(self) -> str:
        """ahead, behind, as good, or why that is not decided."""
        if self.low is None or self.high is None:
            return f"not decided: {self.rounds} of {LEAST} rounds undisturbed"
        if self.low > 1.0 or self.high < 1.0:
            return "ahead" if self.low > 1.0 else "behind"
        return "as good" if self.low >= 1 / SAME and self.high <= SAME else "not decided"

    @property
    def text(self) -> str:
        """`1.23 (1.19–1.28)`."""
        if self.low is None or self.high is None:
            return f"{self.value:.2f}"
        return f"{self.value:.2f} ({self.low:.2f}–{self.high:.2f})"


def gain(race: Race, lap: Lap, server: str, other: str) -> Gain | None:
    """How `server` stands to `other` in a lap; None if one of them has no value. Busy rounds decide nothing: the value
    is of all rounds only where too few are left.
    """
    ours, theirs = race.rounds(server, lap), race.rounds(other, lap)
    clean = len(set(ours) & set(theirs))
    if clean < LEAST:
        ours, theirs = race.rounds(server, lap, noisy=True), race.rounds(other, lap, noisy=True)
    common = sorted(set(ours) & set(theirs))
    if not common or min(min(rounds[n] for n in common) for rounds in (ours, theirs)) < LEAST_VALUE:
        return None
    sign = 1 if lap.more_is_better else -1
    found = reach([[sign * math.log(ours[n] / theirs[n]) for n in common]])
    low, high = (math.exp(found.low), math.exp(found.high)) if clean >= LEAST else (None, None)
    return Gain(math.exp(found.median), low, high, clean)


def score(race: Race, server: str = MINE) -> float | None:
    """100 is the reference server, and there is no end: the geometric mean of the gains over it in all laps. None if a
    lap has no value, or too few rounds that were undisturbed.
    """
    gains = [gain(race, lap, server, race.reference) for lap in LAPS]
    values = [one.value for one in gains if one and one.low is not None]
    return 100 * statistics.geometric_mean(values) if len(values) == len(LAPS) else None


# ---- the file ------------------------------------------------------------------------------------


def _digest(data: Mapping[str, object]) -> str:
    rest = {key: value for key, value in data.items() if key != "sum"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def write(race: Race, path: Path) -> Race:
    """Writes it, with its sum, and gives that. OSError if it cannot be written; the file is then as it was."""
    signed = replace(race, sum=_digest(json.loads(json.dumps(asdict(race)))))
    write_whole(path, json.dumps(asdict(signed), indent=1) + "\n")
    return signed


def read(path: Path) -> Race:
    """A file that was handed in. InputError, in one line, if it is none, was changed, or says what cannot be."""
    try:
        data = path.read_bytes() if path.stat().st_size <= MOST_BYTES else b""
        whole = json.loads(data.decode())
        right = isinstance(whole, dict) and whole.get("sum") == _digest(whole)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise InputError(f"{path}: it is no file of make race") from None
    if not isinstance(whole, dict) or whole.get("schema") != SCHEMA:
        raise InputError(f"{path}: it is no file of make race, or of another version")
    if not right:
        raise InputError(f"{path}: its check sum is wrong: it was changed after the race")
    race = record_of(Race, whole, str(path))
    if problem := impossible(race):
        raise InputError(f"{path}: {problem}")
    return race


def impossible(race: Race) -> str:
    """The first value that no machine can have; "" if there is none. What the kernel has more is known for the whole
    machine only: of memory the median counts, where there are rounds enough.
    """
    for one in race.values:
        lap = next(lap for lap in LAPS if one.part in lap.parts)
        memory = lap.name == "idle"
        for number, value in one.rounds.items():
            if not (-lap.most if memory else lap.least) <= value <= lap.most:
                return foreign.line(f"round {number} of {one.part}, {one.server}: {value:g} {lap.unit} is impossible")
        least = -lap.least if one.part == "own" else lap.least  # memory may be given back
        if memory and len(one.rounds) >= LEAST and statistics.median(one.rounds.values()) < least:
            return f"{one.part}, {one.server}: so little memory is impossible"
    return ""


def remarks(race: Race) -> list[str]:
    """What a teacher should look at, a sentence each: it may have a good reason."""
    found = []
    for one in race.values:
        values = list(one.rounds.values())
        if one.part not in ("work", "slow") or not values:  # bytes may well be the same
            continue
        if len(values) >= LEAST and len(set(values)) == 1:
            found.append(f"{one.part}, {one.server}: the same value in each round")
        mine = race.of(MINE, one.part)
        if one.server != MINE and mine and dict(mine.rounds) == dict(one.rounds):
            found.append(f"{one.part}: the values are those of {one.server}")
    mine_program = next(server.program for server in race.servers if server.name == MINE)
    for server in race.servers:
        if server.name == MINE:
            continue
        if server.program == mine_program:
            found.append(f"the program is {server.name}")
        gains = [gain(race, lap, MINE, server.name) for lap in LAPS]
        if all(one and one.low is not None and one.word in ("as good", "not decided") for one in gains):
            found.append(f"no difference from {server.name} is seen in any lap")
    return found


def fingerprint(race: Race) -> str:
    """A hash of the values alone: two files with the same were one race."""
    return _digest({"values": json.loads(json.dumps([asdict(one) for one in race.values]))})
