"""A lab in which one predicts, measures and concludes: labs/NN-slug/measure.toml. A mistake in it
is one InputError, with its place.

Handed in are three files of work/NN-slug: answers.toml, sealed.json (the prediction as it stood
before anything was measured) and the data.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from quest.ground import toml
from quest.ground.toml import Doc, Rule
from quest.labs.lab import TREE, Texts

ANSWERS, SEALED = "answers.toml", "sealed.json"
DIRECTIONS = ("up", "flat", "down")
PREDICTED, MEASURED = 4, 4  #: points, whatever the prediction was


@dataclass(frozen=True)
class Question:
    """`direction` and `factor` are decided by the student's own data, `cause` by the lab."""

    id: Annotated[str, Rule(filled=True), Doc("its name")]
    kind: Annotated[str, Rule(choices=("direction", "factor", "cause")), Doc("what an answer may be")]
    ask: Annotated[str, Doc("the question")]
    points: Annotated[int, Rule(least=1), Doc("all of them, or none")]
    operands: Annotated[
        Texts, Rule(count=(2,)), Doc("two operands: the first over the second is judged", key="of")
    ] = ()
    flat: Annotated[float, Rule(above=1), Doc("a ratio nearer to 1 than this is flat")] = 1.25
    within: Annotated[float, Rule(above=1), Doc("how far a factor may be from that of the data, as a ratio")] = 1.15
    choices: Annotated[Texts, Doc("of a cause: the answers that are offered")] = ()
    right: Annotated[Texts, Doc("of a cause: those of them that are right")] = ()
    after: Annotated[str, Doc("what to notice, printed with full points")] = ""

    def fault(self) -> str:
        if self.kind == "cause":
            good = self.right and set(self.right) <= set(self.choices)
            return "" if good else "right is not among the choices"
        return "" if self.operands else "of is missing"


@dataclass(frozen=True)
class Run:
    """One run of hammer, against a server that stands still for a second."""

    name: Annotated[str, Doc("what operands call it")]
    args: Annotated[Texts, Doc("arguments of hammer")]


@dataclass(frozen=True)
class MeasuredLab:
    """What measure.toml says."""

    title: Annotated[str, Doc("what it is called")]
    minutes: Annotated[int, Rule(least=1), Doc("an estimate")]
    questions: Annotated[tuple[Question, ...], Rule(filled=True), Doc("what is asked", key="question")]
    experiment: Annotated[str, Doc("whose data are judged")] = ""
    profile: Annotated[str, Doc("of the experiment, with enough rounds")] = "quick"
    runs: Annotated[tuple[Run, ...], Doc("in place of an experiment: measured by make check", key="run")] = ()
    slug: str = ""

    kind = "measure"

    def fault(self) -> str:
        both = bool(self.experiment) == bool(self.runs)
        return "the data are of an experiment, or of runs: one of the two" if both else ""

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
    """The names of the labs that measure."""
    return sorted(path.parent.name for path in tree.glob("labs/*/measure.toml"))


def load(slug: str, tree: Path = TREE) -> MeasuredLab:
    """The lab of a name that slugs() has."""
    table = toml.read_toml(tree / "labs" / slug / "measure.toml")
    return toml.record_of(MeasuredLab, table, f"labs/{slug}/measure.toml", slug=slug)


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
