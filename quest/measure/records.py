"""Result files: their check sums, reading and writing them, the form of each line, and whose results are asked for.

A check sum says that a line holds what was written, and that no line before it is gone, new, doubled or at another
place. It is the last member of its line: SHA-256, shortened, of all bytes of the file before it. It finds accidents
and edits by hand. It is no signature: a sum that was computed anew is believed.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from quest.ground.errors import InputError
from quest.ground.toml import Doc, Rule, record_of
from quest.spec.model import PROFILES, Id, Texts, Value, Values

MARK = b',"sum":"'
END = b'"}'
DIGITS = 16


class Sums:
    """The digest of a file up to some line."""

    def __init__(self, before: bytes = b"") -> None:
        self._digest = hashlib.sha256(before)

    def added(self, line: bytes) -> bytes:
        """The next line, an object that ends in `}`, with its sum and a newline."""
        body = line[:-1] + MARK
        self._digest.update(body)
        end = self._digest.hexdigest()[:DIGITS].encode() + END + b"\n"
        self._digest.update(end)
        return body + end


def wrong_sum(lines: Iterable[bytes]) -> tuple[int, str]:
    """The first line whose sum is wrong or missing, and which it is; 0 and "" if all is right."""
    sums = Sums()
    for number, line in enumerate(lines, 1):
        body, mark, _ = line.rpartition(MARK)
        if not mark:
            return number, "it has no check sum"
        if sums.added(body + b"}") != line + b"\n":
            return number, "its check sum is wrong: this line, or one above it, was changed"
    return 0, ""


# ---- Result files: JSON Lines, one object a line, appended and synced one by one -----------------
#
# A run that was killed leaves at most one unfinished last line. It is dropped, and its repetition
# is measured again. What has another check sum is damage, reported with file and line: the harness
# cannot know what is missing there, so it neither guesses nor goes on.

Record = dict[str, Any]


@dataclass
class Repetition:
    """What one repetition found; measure.py adds what identifies it. A module of each kind has a
    function run(), that makes one, or raises: RepetitionError where it failed, Unsupported where
    the variant cannot run here.
    """

    samples: dict[str, list[Any]] = field(default_factory=dict)
    scalars: dict[str, float] = field(default_factory=dict)
    histograms: dict[str, list[list[float]]] = field(default_factory=dict)
    marks: list[str] = field(default_factory=list)

    def mark(self, *marks: str) -> None:
        """Adds marks, each once."""
        self.marks += [mark for mark in marks if mark not in self.marks]


@dataclass
class ResultSet:
    """A result file in memory."""

    path: Path
    run: Record
    repetitions: list[Record] = field(default_factory=list)
    failures: list[Record] = field(default_factory=list)
    skips: list[Record] = field(default_factory=list)
    end: Record | None = None

    def add(self, record: Record) -> None:
        """Adds a line that was read or written, which is of any type but "run"."""
        kind = record["type"]
        if kind in ("repetition", "failure"):
            # A repetition that failed before and now went well is no failure any more.
            self.failures = [f for f in self.failures if step_key(f) != step_key(record)]
        if kind == "end":
            self.end = record
        elif kind != "resume":
            kinds = {"skip": self.skips, "failure": self.failures, "repetition": self.repetitions}
            kinds[kind].append(record)


def step_key(record: Record) -> tuple[str, str, int]:
    """What identifies a repetition in its set."""
    return record["variant"], json.dumps(record["params"], sort_keys=True), record["round"]


def failure_texts(result: ResultSet) -> list[str]:
    """One line a variant: how often it failed, and the last error."""
    errors_by_variant: dict[str, list[str]] = {}
    for failure in result.failures:
        errors_by_variant.setdefault(failure["variant"], []).append(failure["error"])
    return [
        f"{result.run['experiment']} {variant}: {errors[-1]}"
        + (f" ({len(errors)} repetitions)" if len(errors) > 1 else "")
        for variant, errors in errors_by_variant.items()
    ]


def utc_now() -> str:
    """As in the records: 2026-11-24T05:30:00Z."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


# ---- reading ------------------------------------------------------------------------------------


def complete_lines(data: bytes) -> tuple[list[bytes], int]:
    """The lines that end in a newline, and the length of all of them together."""
    end = data.rfind(b"\n") + 1
    return data[:end].split(b"\n")[:-1] if end else [], end


def started(path: Path) -> bool:
    """Whether there is a set: one that was killed in its first line is none."""
    return path.exists() and b"\n" in path.read_bytes()


def _lines(path: Path) -> list[bytes]:
    try:
        return complete_lines(path.read_bytes())[0]
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error


def read_results(path: Path) -> ResultSet:
    """A whole set, from its file; an unfinished last line is not part of it. InputError for a damaged one."""
    lines = _lines(path)
    number, why = wrong_sum(lines)
    if number:
        raise _damaged(path, number, why)
    result: ResultSet | None = None
    for number, line in enumerate(lines, 1):
        record = parsed_line(path, number, line)
        if result is None:
            if record["type"] != "run":
                raise _damaged(path, number, 'the first line is not of type "run"')
            if record.get("schema") != 1:
                raise _damaged(path, number, "not of schema 1, which this harness reads")
            result = ResultSet(path, record)
        elif record["type"] == "run":
            raise _damaged(path, number, 'a second line of type "run"')
        else:
            result.add(record)
    if result is None:
        raise InputError(f"{path}: empty; delete it to measure again")
    return result


def _damaged(path: Path, number: int, why: str) -> InputError:
    return InputError(f"{path}:{number}: damaged: {why}; move the file away to measure again")


def parsed_line(path: Path, number: int, line: bytes) -> Record:
    """The object of a line; InputError, with file and number, where it is none of ours."""
    try:
        record = json.loads(line)
    except ValueError as error:
        raise _damaged(path, number, "not JSON") from error
    if not isinstance(record, dict) or record.get("type") not in LINES:
        raise _damaged(path, number, "no known type")
    return record


def first_and_last(path: Path) -> tuple[Record, Record] | None:
    """The first and the last line, where the sums of all are right; None if read_results() has to look.

    For `bench`, which must see at once that there is nothing to do.
    """
    try:
        data = path.read_bytes()
    except OSError:
        return None
    lines, end = complete_lines(data)
    if not lines or end < len(data) or wrong_sum(lines)[0]:
        return None
    return parsed_line(path, 1, lines[0]), parsed_line(path, len(lines), lines[-1])


# ---- writing ------------------------------------------------------------------------------------


class Writer:
    """Appends records to a set; each is on the disk before `append` returns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab")
        data = path.read_bytes()
        _, end = complete_lines(data)
        self._sums = Sums(data[:end])
        self._file.truncate(end)

    def append(self, record: Record) -> None:
        """Writes a line, and waits until it is on the disk. InputError if it cannot be written."""
        line = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        try:
            self._file.write(self._sums.added(line.encode()))
            self._file.flush()
            os.fsync(self._file)
        except OSError as error:
            raise InputError(f"{self.path}: {error.strerror}") from error

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def set_aside(path: Path) -> Path:
    """Moves a set into `old/` beside it, under a name that is still free."""
    folder = path.parent / "old"
    folder.mkdir(parents=True, exist_ok=True)
    number = 1
    while (target := folder / f"{path.stem}-{number}.jsonl").exists():
        number += 1
    path.rename(target)
    return target


# ---- the form of a line -------------------------------------------------------------------------

Number = int | float
Marks = tuple[Annotated[str, Rule(filled=True)], ...]
Name = Annotated[str, Rule(filled=True)]
Utc = Annotated[
    str,
    Rule(
        pattern="[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z",
        must='be a time, as "2026-11-21T12:00:00Z"',
    ),
]
Count = Annotated[int, Rule(least=0)]
CheckSum = Annotated[str, Rule(pattern="[0-9a-f]{16}"), Doc("of all bytes of the file before it")]


@dataclass(frozen=True)
class RunLine:
    """The first line: what was measured, how, and where."""

    type: Annotated[str, Rule(choices=("run",)), Doc("of the line")]
    schema: Annotated[int, Doc("of the file", example="1")]
    experiment: Annotated[Id, Doc("its id")]
    profile: Annotated[str, Rule(choices=PROFILES), Doc("that was measured")]
    seed: Annotated[int, Doc("of the order in each round")]
    plan: Annotated[
        str,
        Rule(pattern="[0-9a-f]{64}", must="be a SHA-256 sum"),
        Doc("a hash of all settings that decide about the numbers"),
    ]
    started: Annotated[Utc, Doc("when")]
    environment: Annotated[Mapping[str, object], Doc("of the machine (quest/measure/environment.py)")]
    rounds: Annotated[int, Rule(least=1), Doc("of the profile")] = 1
    programs: Annotated[Mapping[str, str], Doc("hashes of what was measured, by name")] = field(default_factory=dict)
    caps: Annotated[Mapping[str, Mapping[str, object]], Doc("what was reduced, to what, and by which limit")] = field(
        default_factory=dict
    )
    judge: Annotated[
        str,
        Rule(pattern="[0-9a-f]{64}", must="be a SHA-256 sum"),
        Doc("a hash of all that would judge it, as it was then"),
    ] = ""
    claims: Annotated[Mapping[str, str], Doc("hashes of the rules that ask it, by number of the claim")] = field(
        default_factory=dict
    )
    session: Annotated[str, Doc("of the reference, that it belongs to")] = ""
    sum: CheckSum = ""


@dataclass(frozen=True)
class RepetitionLine:
    """One fresh process (micro), or one fresh server under one load."""

    type: Annotated[str, Rule(choices=("repetition",)), Doc("of the line")]
    variant: Annotated[Name, Doc("with +aa for the second of a pair")]
    params: Annotated[Values, Doc("of the point")]
    round: Annotated[Count, Doc("from 0 on")]
    order: Annotated[Count, Doc("in the whole run, from 0 on")]
    wall_s: Annotated[float, Rule(least=0), Doc("how long it took, in seconds")]
    samples: Annotated[Mapping[str, tuple[Value, ...]], Doc("columns of raw samples, all of one length")]
    scalars: Annotated[Mapping[str, Number], Doc("numbers for the whole repetition")]
    marks: Annotated[Marks, Doc("what makes it less trustworthy, as noisy")]
    histograms: Annotated[
        Mapping[str, tuple[Annotated[tuple[Number, ...], Rule(count=(2, 3))], ...]],
        Doc("raw latencies, as pairs of lower edge and count"),
    ] = field(default_factory=dict)
    sum: CheckSum = ""


@dataclass(frozen=True)
class FailureLine:
    """A repetition that did not end well. The next `bench` runs it again."""

    type: Annotated[str, Rule(choices=("failure",)), Doc("of the line")]
    variant: Annotated[Name, Doc("as in a repetition")]
    params: Annotated[Values, Doc("of the point")]
    round: Annotated[Count, Doc("from 0 on")]
    order: Annotated[Count, Doc("in the whole run, from 0 on")]
    error: Annotated[Name, Doc("what went wrong")]
    sum: CheckSum = ""


@dataclass(frozen=True)
class SkipLine:
    """A variant (or, without one, the whole experiment) that this machine cannot run."""

    type: Annotated[str, Rule(choices=("skip",)), Doc("of the line")]
    reason: Annotated[Name, Doc("what is missing")]
    remedy: Annotated[str, Doc("how to get it")]
    variant: Annotated[Name, Doc("that is skipped")] = ""
    sum: CheckSum = ""


@dataclass(frozen=True)
class ResumeLine:
    """Here a run that had been stopped went on."""

    type: Annotated[str, Rule(choices=("resume",)), Doc("of the line")]
    resumed: Annotated[Utc, Doc("when")]
    load: Annotated[tuple[Number, ...], Doc("of the machine then, as uptime(1) has it")] = ()
    sum: CheckSum = ""


@dataclass(frozen=True)
class EndLine:
    """Every repetition of the plan was tried. Without this line the set is not used."""

    type: Annotated[str, Rule(choices=("end",)), Doc("of the line")]
    finished: Annotated[Utc, Doc("when")]
    repetitions: Annotated[Count, Doc("that went well")]
    failures: Annotated[Count, Doc("that did not")]
    given_up: Annotated[Texts, Doc("variants that failed too often to go on with")] = ()
    sum: CheckSum = ""


LINES = {
    "run": RunLine,
    "repetition": RepetitionLine,
    "failure": FailureLine,
    "skip": SkipLine,
    "resume": ResumeLine,
    "end": EndLine,
}


def malformed_lines(path: Path) -> Iterator[str]:
    """The first fault of each line that has not the form it should have, as `file:line: fault`.
    InputError for what read_results() refuses.
    """
    for number, line in enumerate(_lines(path), 1):
        record = parsed_line(path, number, line)
        try:
            record_of(LINES[record["type"]], record, f"{path}:{number}")
        except InputError as fault:
            yield str(fault)


# ---- whose result set ----------------------------------------------------------------------------

HERE = "here"
REFERENCE = "reference"


def wants_reference(wanted: str) -> bool:
    """Whether RESULTS=`wanted` asks for the committed run alone; "" is the reader's own. InputError for other words."""
    if wanted not in ("", HERE, REFERENCE):
        raise InputError(f"RESULTS={wanted}: must be {HERE} or {REFERENCE}")
    return wanted == REFERENCE
