"""What a verdict looks like: for a person, and for Gradescope (results.json of an autograder)."""

import textwrap

from quest.ground import foreign
from quest.labs.judge import Outcome, Result, Verdict

WIDTH = 100
INDENT = " " * 26


def line(result: Result) -> str:
    """One test, with the reason if it has not passed."""
    score = "-" if result.outcome is Outcome.UNJUDGED else str(result.score)
    points = f"{score:>3} of {result.test.points:<2}" if result.test.points else f"{'':9}"
    head = f"  {points} {result.test.id:<13} {result.test.title}"
    if result.outcome is Outcome.PASSED:
        return head
    if result.after:
        return f"{head} (after {result.after})"
    said = textwrap.fill(result.said, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT)
    return f"{head}\n{said}"


def total(verdict: Verdict) -> str:
    unseen = verdict.unjudged or (" and ".join(verdict.unseen))
    more = f"; {unseen} could not be judged here" if unseen else ""
    return f"{verdict.score} of {verdict.lab.points} points{more}"


def gradescope(verdict: Verdict, trusted: bool = False) -> str:
    """The text of results.json. Without a sandbox there is no number in it, which would become a
    grade, unless the submission is trusted."""
    no_grade = verdict.no_cell if not trusted else ""
    tests = [
        {
            "number": str(number),
            "name": f"{result.test.id}: {result.test.title}",
            **({} if no_grade else {"score": result.score, "max_score": result.test.points}),
            "status": "passed" if result.outcome is Outcome.PASSED else "failed",
            "output": result.said or "Passed.",
            "visibility": "visible",
            "extra_data": {"outcome": result.outcome.value},
        }
        for number, result in enumerate(verdict.results, 1)
    ]
    open_to_all = f"A self-check, not a grade: {verdict.no_cell}." if verdict.no_cell else ""
    said = ["" if no_grade else f"{total(verdict)}.", open_to_all, verdict.message]
    results = {
        **({} if no_grade else {"score": verdict.score}),
        "output": "\n".join(text for text in said if text),
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": tests,
        "extra_data": {
            "no_program": "" if verdict.built else verdict.message.splitlines()[0],
            "no_grade": no_grade,
        },
    }
    return foreign.to_json(results, indent=2) + "\n"
