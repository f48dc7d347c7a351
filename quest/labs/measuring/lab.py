"""Reads measure.toml. A mistake in it is one line with its place."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quest.labs.errors import LabError
from quest.labs.lab import TREE, read

DIRECTIONS = ("up", "flat", "down")
PREDICTED, MEASURED = 4, 4  # points, whatever the prediction was


@dataclass(frozen=True)
class Question:
    """`direction` and `factor` are decided by the student's own data, `cause` by the lab."""

    id: str
    kind: str  # direction | factor | cause
    ask: str
    points: int
    of: tuple[str, str] = ("", "")  # two operands; their ratio, the first over the second
    flat: float = 1.25  # a ratio nearer to 1 than this is flat
    within: float = 1.15  # so far may a factor be from that of the data
    choices: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    after: str = ""  # what to notice, told with the points


@dataclass(frozen=True)
class Lab:
    slug: str
    title: str
    minutes: int
    experiment: str  # "" where `runs` are the data
    profile: str  # of the experiment, with rounds enough
    # arguments of hammer, against a server that stands still for a second
    runs: dict[str, list[str]]
    questions: tuple[Question, ...]

    @property
    def folder(self) -> Path:
        return TREE / "labs" / self.slug

    @property
    def data(self) -> str:
        """The name of the file with what was measured."""
        return f"{self.experiment}.jsonl" if self.experiment else "runs.json"

    @property
    def points(self) -> int:
        return PREDICTED + MEASURED + sum(question.points for question in self.questions)

    @property
    def predicted(self) -> list[Question]:
        """What can be guessed before."""
        return [question for question in self.questions if question.kind != "cause"]


def slugs() -> list[str]:
    return sorted(path.parent.name for path in TREE.glob("labs/*/measure.toml"))


def load(slug: str) -> Lab:
    if slug not in slugs():
        known = ", ".join(slugs())
        raise LabError(f"CH={slug}: there is no such lab; those that measure: {known}")
    path = TREE / "labs" / slug / "measure.toml"
    try:
        return _lab(slug, tomllib.loads(path.read_text(encoding="utf-8")))
    except (AttributeError, TypeError, KeyError, ValueError) as error:
        raise LabError(f"labs/{slug}/measure.toml: {error}") from None


def _lab(slug: str, table: dict[str, Any]) -> Lab:
    entries = enumerate(table["question"], 1)
    questions = tuple(read(Question, entry, f"question {number}") for number, entry in entries)
    for one in questions:
        if one.kind not in ("direction", "factor", "cause"):
            raise ValueError(f"question {one.id}: kind {one.kind}")
        if not set(one.right) <= set(one.choices):
            raise ValueError(f"question {one.id}: right is not among the choices")
    runs = {entry["name"]: entry["args"] for entry in table.get("run", [])}
    named = (table["title"], table["minutes"], table.get("experiment", ""))
    return Lab(slug, *named, table.get("profile", "quick"), runs, questions)


def starter(lab: Lab) -> str:
    """answers.toml, to be filled in."""
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
