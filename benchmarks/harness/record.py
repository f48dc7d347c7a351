"""Result files: JSON Lines, one object a line, appended and synced one by one.

A run that was killed leaves at most one unfinished last line. It is dropped, and its repetition is
measured again. Anything else that does not read well is damage, reported with file and line: the
harness cannot know what is missing there, so it neither guesses nor goes on.
"""

import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import InputError
from harness.sums import MARK, Sums

Record = dict[str, Any]
SCHEMA_FILE = Path(__file__).with_name("schema.json")
# Arrays are checked in plain Python; the validator sees only their first elements, else a large
# result file takes it minutes.
SHORT = 4


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
        kind = record["type"]
        if kind == "repetition":
            self.repetitions.append(record)
            # A repetition that failed before and now went well is no failure any more.
            self.failures = [f for f in self.failures if step_key(f) != step_key(record)]
        elif kind == "failure":
            self.failures = [f for f in self.failures if step_key(f) != step_key(record)]
            self.failures.append(record)
        elif kind == "skip":
            self.skips.append(record)
        elif kind == "end":
            self.end = record


def step_key(record: Record) -> tuple[str, str, int]:
    """What identifies a repetition in its set."""
    return record["variant"], json.dumps(record["params"], sort_keys=True), record["round"]


def failure_texts(result: ResultSet) -> list[str]:
    """One line a variant: how often it failed, and the last error."""
    found: dict[str, list[str]] = {}
    for failure in result.failures:
        found.setdefault(failure["variant"], []).append(failure["error"])
    return [
        f"{result.run['experiment']} {variant}: {errors[-1]}"
        + (f" ({len(errors)} repetitions)" if len(errors) > 1 else "")
        for variant, errors in found.items()
    ]


def utc_now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


# ---- reading ------------------------------------------------------------------------------------


def complete_lines(data: bytes) -> tuple[list[bytes], int]:
    """The lines that end in a newline, and the length of all of them together."""
    end = data.rfind(b"\n") + 1
    return data[:end].split(b"\n")[:-1] if end else [], end


def read(path: Path) -> ResultSet:
    """Reads a whole set; an unfinished last line is not part of it."""
    lines, _ = complete_lines(_bytes(path))
    return _assemble(path, lines)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error


def _assemble(path: Path, lines: Iterable[bytes]) -> ResultSet:
    result: ResultSet | None = None
    for number, line in enumerate(lines, 1):
        record = _parse(path, number, line)
        if result is None:
            if record["type"] != "run":
                raise _damaged(path, number, 'the first line is not of type "run"')
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


def _parse(path: Path, number: int, line: bytes) -> Record:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise _damaged(path, number, "not JSON") from error
    problem = problem_of(record)
    if problem:
        raise _damaged(path, number, problem)
    checked: Record = record
    return checked


REQUIRED = {
    "run": ("schema", "experiment", "profile", "seed", "plan", "started", "environment"),
    "repetition": ("variant", "params", "round", "order", "wall_s", "samples", "scalars", "marks"),
    "failure": ("variant", "params", "round", "order", "error"),
    "skip": ("reason", "remedy"),
    "resume": ("resumed",),
    "end": ("finished", "repetitions", "failures"),
}
TYPES: dict[str, type | tuple[type, ...]] = {
    "schema": int, "experiment": str, "profile": str, "seed": int, "plan": str, "started": str,
    "environment": dict, "variant": str, "params": dict, "round": int, "order": int,
    "wall_s": (int, float), "samples": dict, "scalars": dict, "marks": list, "error": str,
    "reason": str, "remedy": str, "resumed": str, "finished": str, "repetitions": int,
    "failures": int,
}  # fmt: skip


def problem_of(record: Any) -> str:
    """What is wrong with a record, by the rules every reader relies on; "" if nothing."""
    if not isinstance(record, dict) or record.get("type") not in REQUIRED:
        return "no known type"
    kind = record["type"]
    for key in REQUIRED[kind]:
        if key not in record:
            return f'"{key}" is missing'
        if not isinstance(record[key], TYPES[key]):
            return f'"{key}" has the wrong type'
    if kind == "run" and record["schema"] != 1:
        return f"schema {record['schema']}, this harness reads 1"
    return _samples_problem(record["samples"]) if kind == "repetition" else ""


def _samples_problem(samples: dict[str, Any]) -> str:
    lengths = set()
    for name, column in samples.items():
        if not isinstance(column, list):
            return f'sample column "{name}" is no list'
        if not all(type(value) in (int, float, str) for value in column):
            return f'sample column "{name}" holds something else than numbers and texts'
        lengths.add(len(column))
    return "sample columns differ in length" if len(lengths) > 1 else ""


def first_and_last(path: Path) -> tuple[Record, Record] | None:
    """The first and the last line, without what lies between; None if they do not read well.

    For `bench`, which must see at once that there is nothing to do.
    """
    try:
        with path.open("rb") as file:
            first = file.readline()
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 4096))
            tail = file.read()
    except OSError:
        return None
    if not tail.endswith(b"\n"):
        return None
    last = tail[:-1].rpartition(b"\n")[2]
    try:
        records = json.loads(first), json.loads(last)
    except ValueError:
        return None
    if any(problem_of(record) for record in records) or records[0]["type"] != "run":
        return None
    return records


# ---- writing ------------------------------------------------------------------------------------


class Writer:
    """Appends records to a set; each is on the disk before `append` returns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        data = path.read_bytes()
        _, end = complete_lines(data)
        self._sums = Sums(data[:end])
        os.ftruncate(self._fd, end)
        os.lseek(self._fd, end, os.SEEK_SET)

    def append(self, record: Record) -> None:
        problem = problem_of(record)
        if problem:
            raise AssertionError(f"a record of our own: {problem}")
        line = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        data = memoryview(self._sums.added(line.encode()))
        try:
            while data:
                data = data[os.write(self._fd, data) :]
            os.fsync(self._fd)
        except OSError as error:
            raise InputError(f"{self.path}: {error.strerror}") from error

    def close(self) -> None:
        os.close(self._fd)

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def set_aside(path: Path) -> Path:
    """Moves a set into `old/` beside it, under a name that is still free."""
    folder = path.parent / "old"
    folder.mkdir(parents=True, exist_ok=True)
    number = 1
    while (target := folder / f"{path.stem}-{number}.jsonl").exists():
        number += 1
    path.rename(target)
    return target


def seal(path: Path) -> bool:
    """Gives a finished set of before there were sums one sum, in its last line.

    False if it has sums. It believes what it finds: for migration alone.
    """
    lines, _ = complete_lines(_bytes(path))
    if any(MARK in line for line in lines):
        return False
    if not _assemble(path, lines).end:
        raise InputError(f"{path}: not finished; only a finished set can be sealed")
    above = b"".join(line + b"\n" for line in lines[:-1])
    unfinished = path.with_suffix(".new")
    unfinished.write_bytes(above + Sums(above).added(lines[-1]))
    os.replace(unfinished, path)
    return True


# ---- the schema ---------------------------------------------------------------------------------


def schema_problems(path: Path) -> Iterator[str]:
    """What the JSON schema finds wrong in a file, one line each, beside what `read` refuses."""
    from jsonschema import Draft202012Validator

    schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    validators = {
        kind: Draft202012Validator(
            {"$ref": f"#/definitions/{kind}", "definitions": schema["definitions"]}
        )
        for kind in REQUIRED
    }
    lines, _ = complete_lines(_bytes(path))
    for number, line in enumerate(lines, 1):
        record = _parse(path, number, line)
        for error in validators[record["type"]].iter_errors(_shortened(record)):
            place = "/".join(str(part) for part in error.absolute_path) or record["type"]
            yield f"{path}:{number}: {place}: {error.message}"


def _shortened(record: Record) -> Record:
    short = dict(record)
    for key in ("samples", "histograms"):
        if isinstance(record.get(key), dict):
            short[key] = {
                name: values[:SHORT] if isinstance(values, list) else values
                for name, values in record[key].items()
            }
    return short
