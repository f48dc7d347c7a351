"""The demos of slides/demos.toml: which servers, which load, what must be seen."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from quest.ground.toml import Doc, Rule, read_toml, record_of
from quest.stage.events import Begin

FILE = Path(__file__).resolve().parents[2] / "slides/demos.toml"
MOST_CLIENTS, MOST_SECONDS = 10_000, 30
MOST_FIB = 32  # a second or so of Python

Seconds = Annotated[float, Rule(least=0)]
Counts = tuple[Annotated[int, Rule(least=1)], ...]


@dataclass(frozen=True)
class Act:
    """One server of a demo. Times are seconds after the demo has begun."""

    server: Annotated[str, Doc("its program in build/bin; with `script` only its name")]
    end: Annotated[Seconds, Doc("when it ends")]
    silent: Annotated[Counts, Doc("silent clients, from `arrive` to `leave`; or one number after another")] = ()
    readers: Annotated[Counts, Doc("of a museum disk of its own: so many, and from `arrive` on so many")] = ()
    computes: Annotated[int, Rule(least=0), Doc("n of fib(n), which one client has computed until `leave`")] = 0
    args: Annotated[tuple[str, ...], Doc("options of the server")] = ()
    script: Annotated[str, Doc("a server in Python, in the tree: SCRIPT PORT FOLDER")] = ""
    begin: Annotated[Seconds, Doc("when it starts")] = 0
    arrive: Annotated[Seconds, Doc("when the silent clients come, or the one that has something computed")] = 0
    leave: Annotated[Seconds, Doc("when they go")] = 0
    must: Annotated[str, Rule(choices=("served", "nobody")), Doc("is served beside the silent clients")] = "served"

    def fault(self) -> str:
        """What is wrong with the act as a whole."""
        if self.end > MOST_SECONDS:
            return f'"end" must be at most {MOST_SECONDS} s'
        if max((*self.silent, *self.readers), default=0) > MOST_CLIENTS:
            return f"there may be at most {MOST_CLIENTS} clients"
        if self.computes > MOST_FIB:
            return f'"computes" must be at most {MOST_FIB}'
        return ""


@dataclass(frozen=True)
class Contrast:
    """What must be seen: the line `higher` lies at least `times` as high as the line `lower`,
    beside the silent clients or at the last number of readers. Without `lower`: its last point as
    its first.
    """

    higher: Annotated[str, Doc("a server")]
    times: Annotated[float, Rule(above=1), Doc("how many times as high")]
    lower: Annotated[str, Doc("another server")] = ""


@dataclass(frozen=True)
class Demo:
    """A table of the file."""

    number: int  # of make demo N=
    name: str
    acts: Annotated[tuple[Act, ...], Rule(filled=True), Doc("servers, side by side")]
    title: Annotated[str, Doc("above the drawing")]
    measure: Annotated[str, Rule(choices=("rate", "wait", "files", "share")), Doc("what is drawn")]
    y: Annotated[str, Doc("what stands beside the axis")]
    rate: Annotated[int, Doc("requests a second")] = 0
    x: Annotated[str, Rule(choices=("seconds", "silent")), Doc("the other axis")] = "seconds"
    top: Annotated[float, Doc("of the axis; 0: as high as the points")] = 0
    contrast: Annotated[Contrast | None, Doc("what must be seen")] = None

    def begin(self) -> Begin:
        """The first event."""
        return Begin(
            self.name, self.title, self.x, self.y, self.top,
            until=max(act.end for act in self.acts),
            lines=[act.server for act in self.acts],
            ticks=sorted({n for act in self.acts for n in act.silent if self.x == "silent"}),
        )  # fmt: skip


def demos(file: Path = FILE) -> list[Demo]:
    """All, in the order of the file. InputError, in one line, for a mistake in it."""
    return [
        record_of(Demo, table, f"{file}: {name}", number=number, name=name)
        for number, (name, table) in enumerate(read_toml(file).items(), 1)
    ]
