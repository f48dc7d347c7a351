"""The demos of slides/demos.toml: which servers, which load, what must be seen."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from quest.ground.errors import InputError
from quest.stage.events import Begin

FILE = Path(__file__).resolve().parents[2] / "slides/demos.toml"
MOST_SILENT, MOST_SECONDS = 10_000, 30


@dataclass(frozen=True)
class Act:
    """One server of a demo. Times are seconds after the demo has begun."""

    server: str
    end: float
    silent: Sequence[
        int
    ] = ()  # silent clients from `arrive` to `leave`, or one number after another
    readers: Sequence[int] = ()  # of a museum disk of its own: so many, from `arrive` on so many
    args: Sequence[str] = ()
    begin: float = 0
    arrive: float = 0
    leave: float = 0
    # What must be seen while the silent clients are there: all are "served", or "nobody" is.
    must: Literal["served", "nobody"] = "served"


@dataclass(frozen=True)
class Contrast:
    """What must be seen: the line `higher` lies at least `times` as high as the line `lower`,
    beside the silent clients or at the last number of readers. Without `lower`: its last point as
    its first.
    """

    higher: str
    times: float
    lower: str = ""


@dataclass(frozen=True)
class Demo:
    """A table of the file."""

    number: int  # of make demo N=
    name: str
    acts: Sequence[Act]
    title: str
    measure: Literal["rate", "wait", "files"]
    y: str
    rate: int = 0  # requests a second
    x: Literal["seconds", "silent"] = "seconds"
    top: float = 0
    contrast: Contrast | None = None

    def begin(self) -> Begin:
        """The first event."""
        return Begin(
            self.name, self.title, self.x, self.y, self.top,
            until=max(act.end for act in self.acts),
            lines=[act.server for act in self.acts],
            ticks=sorted({n for act in self.acts for n in act.silent if self.x == "silent"}),
        )  # fmt: skip


def demos(file: Path = FILE) -> list[Demo]:
    """All, in the order of the file. InputError with the name of the demo that is wrong."""
    table = tomllib.loads(file.read_text(encoding="utf-8"))
    return [_demo(file, number, name, data) for number, (name, data) in enumerate(table.items(), 1)]


def _demo(file: Path, number: int, name: str, data: Mapping[str, Any]) -> Demo:
    try:
        acts = [Act(**act) for act in data["acts"]]
        contrast = Contrast(**data["contrast"]) if "contrast" in data else None
        rest = {key: value for key, value in data.items() if key not in ("acts", "contrast")}
        demo = Demo(number, name, acts, contrast=contrast, **rest)
    except (KeyError, TypeError) as error:
        raise InputError(f"{file.name}: {name}: {error}") from None
    if max(count for act in acts for count in (*act.silent, *act.readers)) > MOST_SILENT:
        raise InputError(f"{file.name}: {name}: more than {MOST_SILENT} clients")
    if max(act.end for act in acts) > MOST_SECONDS:
        raise InputError(f"{file.name}: {name}: longer than {MOST_SECONDS} s")
    return demo
