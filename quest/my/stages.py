"""The stages, as labs/my/ describes them: path.toml has their order, and NAME.toml each of them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from quest.ground import toml
from quest.ground.errors import InputError
from quest.ground.toml import Doc, Rule

TREE = Path(__file__).resolve().parents[2]
FOLDER, CHAPTERS = TREE / "labs/my", TREE / "chapters"
Names = tuple[Annotated[str, Rule(pattern="[a-z]+")], ...]


@dataclass(frozen=True)
class Stage:
    """One idea, and what shows that a server has it."""

    title: Annotated[str, Doc("the idea, in a few words")]
    minutes: Annotated[int, Rule(least=1), Doc("an estimate, with the reading")]
    read: Annotated[
        str, Rule(pattern=r"[\w-]+(#[\w:-]+)?"), Doc("the chapter that tells of it, and the id of its section")
    ]
    task: Annotated[str, Rule(filled=True), Doc("what is to be done, and what the check does")]
    hints: Annotated[tuple[str, ...], Rule(count=(3,)), Doc("three, each more than the one before")]
    check: Annotated[str, Rule(pattern="[a-z]+:[a-z]+"), Doc("module:function, below quest/my/checks")]
    before: Annotated[str, Rule(filled=True), Doc("why a server may pass before it was changed for this stage")]
    notice: Annotated[str, Doc("what to look at, once it has passed")] = ""
    breaks: Annotated[Names, Doc("earlier stages that this one may break: they are checked with it")] = ()
    ends_with: Annotated[str, Doc("the later stage with which this one is over")] = ""
    sleeps_from: Annotated[str, Doc("the later stage from which on this one is not checked")] = ""
    sleeps_until: Annotated[str, Doc("... and the one from which on it is checked again")] = ""
    needs: Annotated[str, Doc("a program without which nothing can be seen")] = ""
    side: Annotated[bool, Doc("whether no later stage builds on it")] = False
    name: str = ""
    part: str = ""

    @property
    def where(self) -> str:
        """The chapter's file, and the section as it is called now: titles change, an id stays."""
        chapter, _, section = self.read.partition("#")
        path = CHAPTERS / f"{chapter}.md"
        shown = f"chapters/{path.name}"
        if section and path.is_file():
            for line in path.read_text(encoding="utf-8").splitlines():
                title, brace, marks = line.lstrip("# ").partition(" {")
                if line.startswith("#") and brace and f"#{section}" in marks.rstrip("}").split():
                    return f"{shown}, {title}"
        return shown


@dataclass(frozen=True)
class Part:
    """Stages that belong together."""

    title: Annotated[str, Doc("its name, and the chapters")]
    stages: Annotated[Names, Rule(filled=True, distinct=True), Doc("in their order")]


@dataclass(frozen=True)
class Path_:
    """path.toml."""

    parts: Annotated[tuple[Part, ...], Rule(filled=True), Doc("of the path", key="part")]


@dataclass(frozen=True)
class Stages:
    """All of them, in their order."""

    all: tuple[Stage, ...]

    def __getitem__(self, name: str) -> Stage:
        return self.all[self.place(name)]

    @property
    def names(self) -> list[str]:
        return [stage.name for stage in self.all]

    def place(self, name: str) -> int:
        """Its number, from 0 on."""
        return self.names.index(name)

    def holds(self, name: str, now: str) -> bool:
        """Whether an earlier stage is still asked for while one works at the stage `now`: some end, and some sleep."""
        stage, here = self[name], self.place(now)
        if stage.ends_with and here >= self.place(stage.ends_with):
            return False
        asleep = stage.sleeps_from and self.place(stage.sleeps_from) <= here
        return not (asleep and here < self.place(stage.sleeps_until))

    def with_(self, name: str) -> list[str]:
        """The earlier stages that are checked with this one, in their order."""
        return [other for other in self.names if other in self[name].breaks and self.holds(other, name)]

    def told(self, name: str) -> list[str]:
        """What a learner is told beforehand: which earlier checks this stage ends, puts to sleep, or wakes."""
        lines = []
        for other in self.all:
            if other.ends_with == name:
                lines.append(f"{other.name} ends here: it is not checked any more.")
            if other.sleeps_from == name:
                until = f"from here until {other.sleeps_until}"
                lines.append(f"{other.name} is not checked {until}: it may fail meanwhile.")
            if other.sleeps_until == name:
                lines.append(f"{other.name} is checked again from here on.")
        return lines


def load(folder: Path = FOLDER) -> Stages:
    """All of a folder. InputError, with the place, for what is wrong in it."""
    path = toml.record_of(Path_, toml.read_toml(folder / "path.toml"), "labs/my/path.toml")
    found: list[Stage] = []
    for part in path.parts:
        for name in part.stages:
            table = toml.read_toml(folder / f"{name}.toml")
            found.append(toml.record_of(Stage, table, f"labs/my/{name}.toml", name=name, part=part.title))
    names = [stage.name for stage in found]
    for number, stage in enumerate(found):
        for other in stage.breaks:
            if other not in names[:number]:
                raise InputError(f"labs/my/{stage.name}.toml: breaks {other}, which does not come before it")
        for later in (stage.ends_with, stage.sleeps_from, stage.sleeps_until):
            if later and later not in names[number + 1 :]:
                raise InputError(f"labs/my/{stage.name}.toml: {later} does not come after it")
        if bool(stage.sleeps_from) != bool(stage.sleeps_until):
            raise InputError(f"labs/my/{stage.name}.toml: sleeps_from and sleeps_until belong together")
    return Stages(tuple(found))
