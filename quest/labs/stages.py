"""The stages of a lab: ten minutes each, or some more. Which comes now, what it asks for, and what is said of it.

Those of a lab with a program stand in lab.toml. A lab that measures has the same three: predict, measure, conclude.
"""

import re
from collections.abc import Collection, Iterator
from pathlib import Path

from quest.labs.judge import Result, Verdict
from quest.labs.lab import Lab, Stage
from quest.labs.measured import MEASURED, PREDICTED, SEALED, MeasuredLab
from quest.labs.report import Outcome

NOW = "now"  #: STAGE=: the one that comes now
#: A step of task.md with what belongs to it, and the ids of tests in it.
STEP = re.compile(r"^(\d+)\. (.*(?:\n {3}.*)*)", re.M)
IDS = re.compile(r"\*\(([^)]*)\)\*")


def of(lab: Lab | MeasuredLab) -> tuple[Stage, ...]:
    """In their order, with points."""
    if isinstance(lab, Lab):
        return lab.stages
    each = max(1, lab.minutes // 3)
    last = lab.points - PREDICTED - MEASURED
    named = (("Predict", "prediction", PREDICTED), ("Measure", "data", MEASURED), ("Conclude", "conclusion", last))
    return tuple(Stage(title, each, (name,), points) for title, name, points in named)


def reached(lab: Lab, passed: Collection[str]) -> int:
    """The number, from 1 on, of the first stage with a test that has not passed; one more than there are without."""
    for number, stage in enumerate(lab.stages, 1):
        if not set(stage.tests) <= set(passed):
            return number
    return len(lab.stages) + 1


def of_verdict(verdict: Verdict) -> int:
    """The stage that comes now, after a check of the whole lab. What cannot be judged here holds up nothing."""
    good = (Outcome.PASSED, Outcome.UNJUDGED)
    return reached(verdict.lab, {result.test.id for result in verdict.results if result.outcome in good})


def of_measured(lab: MeasuredLab, folder: Path) -> int:
    """The same of a lab that measures, by the files that are there."""
    return 1 if not (folder / SEALED).exists() else 2 if not (folder / lab.data_file).exists() else 3


def number_of(lab: Lab, title: str) -> int:
    """The number of the stage of that title."""
    return next(n for n, stage in enumerate(lab.stages, 1) if stage.title == title)


def heading(lab: Lab | MeasuredLab, number: int) -> str:
    """`Stage 3 of 8: Close what is not yours (2 points, about 10 minutes)`."""
    stages = of(lab)
    stage = stages[number - 1]
    points = f"{stage.points} point{'s' if stage.points != 1 else ''}"
    return f"Stage {number} of {len(stages)}: {stage.title} ({points}, about {stage.minutes} minutes)"


def task(lab: Lab, number: int) -> str:
    """What the task asks for in this stage: its steps that name a test of it, without marks; "" if none does."""
    wanted = set(lab.stages[number - 1].tests)
    text = (lab.folder / "task.md").read_text(encoding="utf-8")
    steps = [" ".join(words.split()) for _, words in STEP.findall(text) if wanted & set(_ids(words))]
    return IDS.sub(r"(\1)", "\n".join(steps)).replace("**", "")  # for a terminal


def _ids(words: str) -> Iterator[str]:
    """The ids that a step names in brackets."""
    for group in IDS.findall(words):
        yield from re.findall(r"[\w-]+", group)


def first_failed(results: Collection[Result]) -> Result | None:
    """The one whose sentence is said first."""
    return next((one for one in results if one.outcome is Outcome.FAILED and not one.after), None)
