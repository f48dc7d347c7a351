"""Points: for a prediction made before the data, for the data, and for each conclusion that agrees
with one's own data. A prediction is never marked for being right.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measuring.data import Numbers
from measuring.lab import DIRECTIONS, MEASURED, PREDICTED, Lab, Question, Wrong

ROUNDS = 6  # fewer give no interval


@dataclass(frozen=True)
class Line:
    id: str
    points: int
    of: int
    why: str = ""


def read_answers(path: Path) -> dict[str, dict[str, Any]]:
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Wrong(f"{path} is not there") from None
    except (OSError, ValueError) as error:
        raise Wrong(f"{path}: {error}") from None
    parts = {name: found.get(name, {}) for name in ("prediction", "conclusion")}
    if not all(isinstance(part, dict) for part in parts.values()):
        raise Wrong(f"{path}: [prediction] and [conclusion] are tables")
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


def concluded(question: Question, answer: Any, numbers: Numbers) -> Line:
    if question.kind == "cause":
        good = answer in question.right
        why = "" if good else f'"{answer}" does not explain these data; look at the task again'
        return Line(question.id, question.points if good else 0, question.points, why)
    direction, ratio = seen(question, numbers)
    if question.kind == "direction":
        good, data = answer == direction, f"{direction} ({ratio:.3g} times)"
    else:
        good = max(answer / ratio, ratio / answer) <= question.within
        data = f"{ratio:.3g} times"
    why = "" if good else f"you say {answer}, your data say {data}: {' over '.join(question.of)}"
    return Line(question.id, question.points if good else 0, question.points, why)


def judge(lab: Lab, answers: dict[str, dict[str, Any]], numbers: Numbers) -> list[Line]:
    """The prediction has been sealed, and the data are younger."""
    enough = not lab.experiment or numbers.rounds >= ROUNDS
    few = f"{numbers.rounds} rounds, and {ROUNDS} are needed (PROFILE={lab.profile})"
    data = Line("data", MEASURED if enough else 0, MEASURED, "" if enough else few)
    lines = [Line("prediction", PREDICTED, PREDICTED), data]
    part = answers["conclusion"]
    lacking = {line.partition(":")[0]: line for line in missing(list(lab.questions), part)}
    for question in lab.questions:
        if question.id in lacking:
            lines.append(Line(question.id, 0, question.points, lacking[question.id]))
        else:
            lines.append(concluded(question, part[question.id], numbers))
    return lines
