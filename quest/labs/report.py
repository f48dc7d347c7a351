"""A report on one submission, of either kind of lab: for a person, and for Gradescope (results.json
of an autograder).
"""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from quest.ground import foreign

WIDTH = 100
INDENT = " " * 26


class Outcome(StrEnum):
    """What can become of a test."""

    PASSED = "passed"
    FAILED = "failed"
    UNJUDGED = "could not be judged here"


@dataclass(frozen=True)
class Entry:
    """A test of a lab, or an answer, and what became of it."""

    id: str
    points: int
    most: int  #: points that it may have
    outcome: Outcome
    title: str = ""
    reason: str = ""  #: why it has not passed
    after: str = ""  #: the test that has to pass before this one is tried
    stage: str = ""  #: of the lab, to which it belongs

    @property
    def line(self) -> str:
        """For a person, with the reason below it."""
        score = "-" if self.outcome is Outcome.UNJUDGED else str(self.points)
        points = f"{score:>3} of {self.most:<2}" if self.most else f"{'':9}"
        head = f"  {points} {self.id:<13} {self.title}".rstrip()
        if self.outcome is Outcome.PASSED:
            return head
        if self.after:
            return f"{head} (after {self.after})"
        reason = textwrap.fill(self.reason, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT)
        return f"{head}\n{reason}"

    def gradescope(self, number: int, graded: bool) -> dict[str, object]:
        """A member of `tests` in results.json; without points unless `graded`."""
        score = {"score": self.points, "max_score": self.most} if graded else {}
        return {
            "number": str(number),
            "name": f"{self.id}: {self.title}" if self.title else self.id,
            **score,
            "status": "passed" if self.outcome is Outcome.PASSED else "failed",
            "output": self.reason or "Passed.",
            "visibility": "visible",
            "extra_data": {"outcome": self.outcome, **({"stage": self.stage} if self.stage else {})},
        }


@dataclass(frozen=True)
class Report:
    """What is said of one submission."""

    entries: Sequence[Entry]
    messages: Sequence[str]  #: about the whole of it
    no_grade: str = ""  #: why there are no points
    more: Mapping[str, object] = field(default_factory=dict)  #: for a program that reads it

    @property
    def score(self) -> int:
        return sum(entry.points for entry in self.entries)

    def gradescope(self) -> str:
        """The text of results.json. Without a grade there is no number in it: Gradescope would make
        one of it."""
        graded = not self.no_grade
        tests = [entry.gradescope(n, graded) for n, entry in enumerate(self.entries, 1)]
        results = {
            **({"score": self.score} if graded else {}),
            "output": "\n".join(filter(None, self.messages)),
            "visibility": "visible",
            "stdout_visibility": "hidden",
            "tests": tests,
            "extra_data": {"no_grade": self.no_grade, **self.more},
        }
        return foreign.to_json(results, indent=2) + "\n"
