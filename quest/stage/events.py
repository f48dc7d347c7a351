"""What a demo reports while it is played, and its form as JSON: for the page, and in recordings."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Begin:
    """The first: what is to be drawn."""

    demo: str
    title: str
    x: str  # seconds, or silent: the number of silent clients
    y: str
    top: float  # of the axis; 0: as high as the points
    until: float  # seconds
    lines: list[str]  # servers
    ticks: list[int]  # of x, where it is no time

    def message(self) -> dict[str, object]:
        """Its JSON object."""
        return {
            "begin": self.demo, "title": self.title, "x": self.x, "y": self.y, "top": self.top,
            "until": self.until, "lines": self.lines, "ticks": self.ticks,
        }  # fmt: skip


@dataclass(frozen=True)
class Point:
    """A point of a server's line. y: None if no request was answered."""

    line: str
    x: float
    y: float | None

    def message(self) -> dict[str, object]:
        """Its JSON object."""
        return {"line": self.line, "x": self.x, "y": self.y}


@dataclass(frozen=True)
class Note:
    """What happens now; x: where it is marked."""

    text: str
    x: float | None = None

    def message(self) -> dict[str, object]:
        """Its JSON object."""
        return {"note": self.text} | ({} if self.x is None else {"x": self.x})


@dataclass(frozen=True)
class End:
    """The last. why: "" if the demo was played to its end."""

    why: str = ""

    def message(self) -> dict[str, object]:
        """Its JSON object."""
        return {"failed": self.why} if self.why else {"end": True}


Event = Begin | Point | Note | End
Listener = Callable[[Event], None]
