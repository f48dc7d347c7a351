"""Points: for a prediction made before the data, for the data, and for each conclusion that agrees
with one's own data. A prediction is never marked for being right.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quest.labs.errors import LabError
from quest.labs.measuring.data import Numbers
from quest.labs.measuring.lab import DIRECTIONS, MEASURED, PREDICTED, Lab, Question

ROUNDS = 6  # fewer give no interval


@dataclass(frozen=True)
class Line:
    id: str
    of: int
    why: str = ""  # of no points

    @property
    def points(self) -> int:
        return 0 if self.why else self.of


def read_answers(path: Path) -> dict[str, dict[str, Any]]:
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise LabError(f"{path} is not there") from None
    except (OSError, ValueError) as error:
        raise LabError(f"{path}: {error}") from None
    parts = {name: found.get(name, {}) for name in ("prediction", "conclusion")}
    if not all(isinstance(part, dict) for part in parts.values()):
        raise LabError(f"{path}: [prediction] and [conclusion] are tables")
    return parts


def missing(questions: list[Question], part: dict[str, Any]) -> list[str]:
    """A line for each answer that is not there, or cannot be one."""
    found = []
    for question in questions:
        answer = part.get(question.id)
        if question.kind == "factor":
            if not isinstance(answer, int | float) or answer <= 0:
                found.append(f"{question.id}: a number above 0 ({question.ask})")
        else:
            known = question.choices or DIRECTIONS
            if answer not in known:
                found.append(f"{question.id}: one of {', '.join(known)} ({question.ask})")
    if not str(part.get("why", "")).strip():
        found.append("why: a sentence or two")
    return found


def seen(question: Question, numbers: Numbers) -> tuple[str, float]:
    """What the data say: up, flat or down, and the ratio."""
    ratio = numbers.ratio(question.of)
    if 1 / question.flat <= ratio <= question.flat:
        return "flat", ratio
    return ("up" if ratio > 1 else "down"), ratio


def fault(question: Question, answer: Any, numbers: Numbers) -> str:
    """Why a conclusion is wrong, or ""."""
    if question.kind == "cause":
        good = answer in question.right
        return "" if good else f'"{answer}" does not explain these data; look at the task again'
    direction, ratio = seen(question, numbers)
    if question.kind == "direction":
        good, data = answer == direction, f"{direction} ({ratio:.3g} times)"
    else:
        good = max(answer / ratio, ratio / answer) <= question.within
        data = f"{ratio:.3g} times"
    said = f"you say {answer}, your data say {data}: {' over '.join(question.of)}"
    return "" if good else said


def judge(lab: Lab, answers: dict[str, dict[str, Any]], numbers: Numbers) -> list[Line]:
    """The prediction has been sealed, and the data are younger."""
    enough = not lab.experiment or numbers.rounds >= ROUNDS
    few = f"{numbers.rounds} rounds, and {ROUNDS} are needed (PROFILE={lab.profile})"
    lines = [Line("prediction", PREDICTED), Line("data", MEASURED, "" if enough else few)]
    part = answers["conclusion"]
    lacking = {line.partition(":")[0]: line for line in missing(list(lab.questions), part)}
    for one in lab.questions:
        why = lacking.get(one.id) or fault(one, part[one.id], numbers)
        lines.append(Line(one.id, one.points, why))
    return lines
