"""The answers of a lab that measures, and their points: for a prediction made before the data, for
the data, and for each conclusion that agrees with the student's own data. A prediction is never
marked for being right.
"""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from quest.labs import files
from quest.labs.data import Measurement
from quest.labs.errors import LabError
from quest.labs.measured import (
    ANSWERS,
    DIRECTIONS,
    MEASURED,
    PREDICTED,
    SEALED,
    MeasuredLab,
    Question,
)  # fmt: skip
from quest.measure.records import utc_now

ROUNDS = 6  #: fewer give no interval
LARGEST = 1e100  #: a factor that is still a number to count with

Part = Mapping[str, object]  #: id of a question, or "why" -> the answer


@dataclass(frozen=True)
class Answers:
    """The two tables of answers.toml."""

    prediction: Part
    conclusion: Part

    @classmethod
    def read(cls, folder: Path) -> "Answers":
        """Of the folder's answers.toml. LabError if it is not there, or no such file."""
        path = folder / ANSWERS
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        except FileNotFoundError:
            raise LabError(f"{path} is not there") from None
        except tomllib.TOMLDecodeError as error:
            raise LabError(f'{path}: {error}; write a word in quotes: "up"') from None
        except (OSError, ValueError, RecursionError) as error:
            raise LabError(f"{path}: {error}") from None
        parts = [table.get(name, {}) for name in ("prediction", "conclusion")]
        if not all(isinstance(part, dict) for part in parts):
            raise LabError(f"{path}: [prediction] and [conclusion] must be tables")
        return cls(*parts)


@dataclass(frozen=True)
class Sealed:
    """A prediction as it was kept before anything was measured."""

    at: str  #: 2026-11-24T05:30:00Z
    prediction: Part

    @classmethod
    def read(cls, folder: Path) -> "Sealed":
        """LabError where nothing was sealed."""
        try:
            sealed = json.loads((folder / SEALED).read_text(encoding="utf-8"))
            return cls(str(sealed["at"]), dict(sealed["prediction"]))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            raise LabError(f"{folder / SEALED}: no prediction was sealed before measuring") from None

    @classmethod
    def write(cls, folder: Path, prediction: Part) -> None:
        """Keeps a prediction, with the time of this moment."""
        text = json.dumps(asdict(cls(utc_now(), prediction)), indent=1, default=str)
        files.write(folder / SEALED, text + "\n")


@dataclass(frozen=True)
class Mark:
    """The points for one answer: all of them, or none and the reason."""

    id: str
    most: int  #: points of a right answer
    why: str = ""  #: of no points

    @property
    def points(self) -> int:
        """That are given: all or none."""
        return 0 if self.why else self.most


def missing(questions: Sequence[Question], part: Part) -> list[str]:
    """A line for each answer that is not there, or cannot be one: "id: what is wanted"."""
    lines = []
    for question in questions:
        answer = part.get(question.id)
        if question.kind == "factor":
            number = answer if isinstance(answer, int | float) and not isinstance(answer, bool) else 0
            if not 0 < number < LARGEST:
                lines.append(f"{question.id}: a number above 0 ({question.ask})")
        else:
            known = question.choices or DIRECTIONS
            if answer not in known:
                lines.append(f"{question.id}: one of {', '.join(known)} ({question.ask})")
    if not str(part.get("why", "")).strip():
        lines.append("why: a sentence or two")
    return lines


def measured_answer(question: Question, data: Measurement) -> tuple[str, float]:
    """What the data say: up, flat or down; and the ratio of the two operands."""
    ratio = data.ratio(question.operands)
    if 1 / question.flat <= ratio <= question.flat:
        return "flat", ratio
    return ("up" if ratio > 1 else "down"), ratio


def fault_of(question: Question, answer: object, data: Measurement) -> str:
    """Why a conclusion is wrong; "" if it is right."""
    if question.kind == "cause":
        right = answer in question.right
        return "" if right else f'"{answer}" does not explain these data; make hint has questions that help'
    direction, ratio = measured_answer(question, data)
    if question.kind == "direction":
        right, measured = answer == direction, f"{direction} ({ratio:.3g} times)"
    else:
        assert isinstance(answer, int | float)  # missing() has seen to that
        right = max(answer / ratio, ratio / answer) <= question.within
        measured = f"{ratio:.3g} times"
    over = " over ".join(question.operands)
    return "" if right else f"you say {answer}, your data say {measured}: {over}"


def marks(lab: MeasuredLab, predicted: Part, concluded: Part, data: Measurement) -> list[Mark]:
    """One for each part of the lab. predicted: what was sealed before the data were measured; whatever it was,
    it has its points, but not if it answers nothing."""
    enough = not lab.experiment or data.rounds >= ROUNDS
    few = f"{data.rounds} rounds, and {ROUNDS} are needed (PROFILE={lab.profile})"
    unsaid = ", ".join(line.partition(":")[0] for line in missing(lab.predicted, predicted))
    nothing = f"not predicted: {unsaid}" if unsaid else ""
    given = [Mark("prediction", PREDICTED, nothing), Mark("data", MEASURED, "" if enough else few)]
    lacking = {line.partition(":")[0]: line for line in missing(lab.questions, concluded)}
    for one in lab.questions:
        why = lacking.get(one.id) or fault_of(one, concluded[one.id], data)
        given.append(Mark(one.id, one.points, why))
    return given
