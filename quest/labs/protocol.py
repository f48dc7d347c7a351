"""What the judge and its pytest (plugin.py) tell each other, each as a line of JSON: how a cell is
made, and how each test has ended.
"""

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class CellPlan:
    """bin/NAME of the grading's folder is to start real/NAME in a cell."""

    root: str  #: the folder of the grading
    user: int | None  #: that the programs run as; None: the judge's own
    limits: list[str]  #: prlimit and its arguments
    programs: list[str]  #: names
    confine: str  #: the program that installs the filter of system calls
    filter: str  #: the file with the filter itself, for bwrap
    options: list[str]  #: of confine


@dataclass(frozen=True)
class Ending:
    """How a pytest test has ended."""

    outcome: str  #: pytest's: passed, failed, skipped
    why: str
    server: str  #: how the server has ended that should not have; "" if none has
    test: str = ""  #: the name of its function


def to_json(record: CellPlan | Ending) -> str:
    """One line; the other side reads it as CellPlan(**json.loads(line))."""
    return json.dumps(asdict(record))
