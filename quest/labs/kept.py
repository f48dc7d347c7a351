"""What is kept of each grading beside a class's table: results.json, as report.py writes it, with the
hash of what was graded. Points per test and the students' reports are read from it.
"""

import json
import zlib
from dataclasses import dataclass
from pathlib import Path

from quest.ground import foreign
from quest.labs import files
from quest.labs.report import Outcome

LONGEST = 100  #: bytes of the name of a folder or file
NOT_TRIED = "Not tried before "  #: how the reason of a test begins whose turn has not come
UNSEEN = "?"  #: in place of points: the test could not be judged


@dataclass(frozen=True)
class Tested:
    """A test, and what became of it."""

    id: str
    title: str
    points: str  #: "" where there was no grade
    most: int
    outcome: str  #: a value of Outcome
    said: str  #: why it has not passed

    @property
    def column(self) -> str:
        """Of the table."""
        return column(self.id, self.most)

    @property
    def failed(self) -> bool:
        """Whether it was tried, and has failed."""
        return self.outcome == Outcome.FAILED and not self.said.startswith(NOT_TRIED)


@dataclass(frozen=True)
class Kept:
    """One grading."""

    work: str  #: hash of what was handed in
    said: str  #: about the whole of it
    no_program: str  #: why there is none
    tests: tuple[Tested, ...]

    @property
    def points(self) -> dict[str, str]:
        """Column -> points, of the tests that have any."""
        return {test.column: test.points for test in self.tests if test.most and test.points}


def column(id_: str, most: int) -> str:
    """The name of a test's column: with the points it may have."""
    return f"{id_} ({most})"


def safe_name(name: str) -> str:
    """The name of a student as that of a file or folder, which every file system takes."""
    short = name.replace("/", "-")
    data = short.encode()
    if len(data) <= LONGEST:
        return short
    return f"{data[:LONGEST].decode(errors='ignore')}-{zlib.crc32(name.encode()):08x}"


def folder_of(table: Path) -> Path:
    """Where the gradings of all lines of this table are kept."""
    return Path(f"{table}.d")


def place_of(table: Path, name: str) -> Path:
    """Where the grading of a line of this table is kept: by the name that is read from the table, which
    for odd ones is not the name that was written."""
    return folder_of(table) / f"{safe_name(foreign.from_cell(foreign.cell(name)))}.json"


def keep(path: Path, report: str, work: str) -> None:
    """Writes it. report: the text of results.json."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    results = json.loads(report)
    results["extra_data"] = {**results.get("extra_data", {}), "work": work}
    files.write(path, foreign.to_json(results, indent=1) + "\n")


def parsed(report: str) -> Kept:
    """From the text of results.json. ValueError, KeyError or TypeError where it is no such text."""
    results = json.loads(report)
    more = results["extra_data"]
    tests = []
    for test in results["tests"]:
        id_, _, title = str(test["name"]).partition(": ")
        outcome = str(test["extra_data"]["outcome"])
        points = "" if "score" not in test else UNSEEN if outcome == Outcome.UNJUDGED else str(test["score"])
        said = "" if outcome == Outcome.PASSED else str(test["output"])
        tests.append(Tested(id_, title, points, int(test.get("max_score", 0)), outcome, said))
    return Kept(str(more.get("work", "")), str(results["output"]), str(more.get("no_program", "")), tuple(tests))


def read(path: Path) -> Kept | None:
    """What is kept there; None if there is nothing, or it is damaged."""
    try:
        return parsed(files.read_file(path, files.LOG_BYTES).decode())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
