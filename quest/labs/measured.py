"""A lab in which one predicts, measures and concludes: labs/NN-slug/measure.toml. A mistake in it
is one line with its place.

Handed in are three files of work/NN-slug: answers.toml, sealed.json (the prediction as it stood
before anything was measured) and the data.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quest.labs.errors import LabError
from quest.labs.lab import TREE, record_of

ANSWERS, SEALED = "answers.toml", "sealed.json"
DIRECTIONS = ("up", "flat", "down")
KINDS = ("direction", "factor", "cause")
PREDICTED, MEASURED = 4, 4  #: points, whatever the prediction was


@dataclass(frozen=True)
class Question:
    """`direction` and `factor` are decided by the student's own data, `cause` by the lab."""

    id: str
    kind: str  #: one of KINDS
    ask: str
    points: int
    of: tuple[str, str] = ("", "")  #: two operands: the first over the second is judged
    flat: float = 1.25  #: a ratio nearer to 1 than this is flat
    within: float = 1.15  #: how far a factor may be from that of the data, as a ratio
    choices: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    after: str = ""  #: printed with full points


@dataclass(frozen=True)
class Run:
    """One run of hammer, against a server that stands still for a second."""

    name: str
    args: tuple[str, ...]


@dataclass(frozen=True)
class About:
    """The keys at the top of measure.toml."""

    title: str
    minutes: int
    experiment: str = ""  #: "" where `runs` are the data
    profile: str = "quick"  #: of the experiment, with enough rounds


@dataclass(frozen=True)
class MeasuredLab(About):
    slug: str = ""
    runs: tuple[Run, ...] = ()
    questions: tuple[Question, ...] = ()

    kind = "measure"

    @property
    def folder(self) -> Path:
        return TREE / "labs" / self.slug

    @property
    def data_file(self) -> str:
        """The name of the file with what was measured."""
        return f"{self.experiment}.jsonl" if self.experiment else "runs.json"

    @property
    def files(self) -> tuple[str, ...]:
        """What is handed in."""
        return ANSWERS, SEALED, self.data_file

    @property
    def points(self) -> int:
        return PREDICTED + MEASURED + sum(question.points for question in self.questions)

    @property
    def predicted(self) -> tuple[Question, ...]:
        """The questions that can be guessed before the measurement."""
        return tuple(question for question in self.questions if question.kind != "cause")


def slugs(tree: Path = TREE) -> list[str]:
    return sorted(path.parent.name for path in tree.glob("labs/*/measure.toml"))


def load(slug: str, tree: Path = TREE) -> MeasuredLab:
    """The lab of a name that slugs() has; a LabError for a mistake in its file."""
    path = tree / "labs" / slug / "measure.toml"
    try:
        return _lab(slug, tomllib.loads(path.read_text(encoding="utf-8")))
    except (AttributeError, TypeError, ValueError) as error:
        raise LabError(f"labs/{slug}/measure.toml: {error}") from None


def _lab(slug: str, table: dict[str, Any]) -> MeasuredLab:
    asked, run = table.pop("question", []), table.pop("run", [])
    about = record_of(About, table, "lab")
    questions = tuple(record_of(Question, one, f"question {n}") for n, one in enumerate(asked, 1))
    runs = tuple(record_of(Run, one, f"run {n}") for n, one in enumerate(run, 1))
    if not questions:
        raise ValueError("there is no question")
    if bool(about.experiment) == bool(runs):
        raise ValueError("the data are of an experiment, or of runs: one of the two")
    for one in questions:
        if one.kind not in KINDS:
            raise ValueError(f"question {one.id}: kind {one.kind}")
        if one.kind == "cause" and not one.right:
            raise ValueError(f"question {one.id}: no choice is right")
        if one.kind != "cause" and not all(one.of):
            raise ValueError(f"question {one.id}: of names two operands")
        if not set(one.right) <= set(one.choices):
            raise ValueError(f"question {one.id}: right is not among the choices")
    return MeasuredLab(**vars(about), slug=slug, runs=runs, questions=questions)


def answers_template(lab: MeasuredLab) -> str:
    """The text of answers.toml, to be filled in."""
    lines = [f"# {lab.title}: labs/{lab.slug}/task.md", "", "# Before you measure anything.",
             "[prediction]"]  # fmt: skip
    for question in lab.predicted:
        lines += [f"# {question.ask}", f"{question.id} = {_blank(question)}"]
    lines += ["# Why? A sentence or two, for a person.", 'why = ""', ""]
    lines += ["# After you have measured: what your own data say.", "[conclusion]"]
    for question in lab.questions:
        lines += [f"# {question.ask}"]
        lines += [f"#   one of: {', '.join(question.choices)}"] if question.choices else []
        lines += [f"{question.id} = {_blank(question)}"]
    lines += ["# What in your data made you say so? For a person.", 'why = ""', ""]
    return "\n".join(lines)


def _blank(question: Question) -> str:
    return "0" if question.kind == "factor" else '""'
