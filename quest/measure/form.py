"""A recording as records, and its file: the form is in benchmarks/recordings/README.md. Those who make recordings
(recording.py, recorder.py) and those who show them (quest/book/player) have these records in common.

Times are whole microseconds after the first client began to connect.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from quest.ground.errors import InputError

VERSION = 1
FOLDER = Path("benchmarks/recordings")


class Site(NamedTuple):
    """A line of ours that a stack passes through. `mark`: a hash of what it says, from c_source.mark()."""

    function: str
    file: str
    line: int
    mark: str


class Times(NamedTuple):
    """What a client did, as itself saw it; None: it did not. `half`: it has sent the first part of its request."""

    connect: int | None
    connected: int | None
    half: int | None
    sent: int | None
    first: int | None
    done: int | None


class How(TypedDict, total=False):
    """Where a recording comes from. `overhead`: client A's time with the tracer and without it; `lines`: the calls that
    have a line, and all calls.
    """

    commit: str
    kernel: str
    strace: str
    build: str
    date: str
    overhead: list[int | None]
    lines: list[int]


@dataclass
class Recorded:
    """One system call. `took` is None for one that did not return; `result` is -1 for an error, which `note` names."""

    task: int
    t: int
    took: int | None
    name: str
    fd: int | None
    result: int | None
    letter: str
    stack: int
    note: str
    asleep: int  # 1: a call that can wait, and did

    def end(self) -> int | None:
        """None if it had not returned."""
        return None if self.took is None else self.t + self.took

    def sleeps_for(self) -> str:
        """The only client that can wake it; "" for a call that waits for any: what accept() returns was not known."""
        return self.letter if self.asleep and not self.name.startswith("accept") else ""


@dataclass
class RingEvent:
    """What happened in the ring: submit, complete."""

    t: int
    what: str
    opcode: str
    letter: str
    result: int | None


@dataclass
class Moment:
    """What is worth stopping at. `call`: its index, None if no call is meant; `show`: the state it speaks of."""

    t: int
    rank: int
    task: int | None
    call: int | None
    head: str
    rest: str
    show: str


@dataclass
class Life:
    """A process or thread. `born`: None if it was there before; `ended`: None if it outlives the recording;
    `collected`: when its parent has waited for it.
    """

    name: str
    kind: str
    born: int | None
    ended: int | None
    parent: int | None
    collected: int | None

    def is_alive(self, t: int) -> bool:
        return (self.born is None or self.born <= t) and (self.ended is None or t < self.ended)


@dataclass
class Guest:
    """A client, and what it did. `sizes`: bytes of the first part, of the request and of the reply."""

    letter: str
    port: int
    times: Times
    sizes: tuple[int, int, int]
    does: str
    acts: list[tuple[int, str, int]]


@dataclass
class Recording:
    """One server in one scene: everything of the file. `plain`: the clients' times without a tracer, the only ones in
    sentences.
    """

    server: str
    scene: str
    title: str
    args: str
    how: How
    end: int
    tasks: list[Life]
    clients: list[Guest]
    plain: dict[str, Times]
    open: list[tuple[int, int, str]]
    sites: list[Site]
    stacks: list[tuple[int, ...]]
    calls: list[Recorded]
    ring: list[RingEvent] | None = None
    left: list[str] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)

    @property
    def name(self) -> str:
        """`02-fork.slow`: of its file, and of what is made of it."""
        return f"{self.server}.{self.scene}"

    def calls_of(self, task: int) -> Iterator[Recorded]:
        """The calls of the task of that number."""
        return (call for call in self.calls if call.task == task)

    def table(self) -> dict[str, object]:
        """As it stands in the file: each record a list, in the order of its fields."""
        table: dict[str, object] = {
            "v": VERSION, "server": self.server, "scene": self.scene, "title": self.title, "args": self.args,
            "how": self.how, "end": self.end,
            "tasks": [list(vars(task).values()) for task in self.tasks],
            "clients": [list(vars(guest).values()) for guest in self.clients],
            "plain": self.plain, "open": self.open, "sites": self.sites, "stacks": self.stacks,
            "calls": [list(vars(call).values()) for call in self.calls],
        }  # fmt: skip
        if self.ring is not None:
            table["ring"] = [list(vars(event).values()) for event in self.ring]
        if self.left:
            table["left"] = self.left
        table["moments"] = [list(vars(moment).values()) for moment in self.moments]
        return table

    def to_json(self) -> str:
        """As compact as it is committed: a member a line."""
        members = self.table().items()
        lines = (f"{json.dumps(name)}:{json.dumps(value, separators=(',', ':'))}" for name, value in members)
        return "{" + ",\n".join(lines) + "}\n"


def of_table(table: Mapping[str, Any]) -> Recording:
    """A recording from what its file has. AttributeError, KeyError, TypeError or ValueError if it is none."""
    made = Recording(
        server=table["server"], scene=table["scene"], title=table["title"], args=table["args"],
        how=table["how"], end=table["end"],
        tasks=[Life(*each) for each in table["tasks"]],
        clients=[
            Guest(letter, port, Times(*times), sizes, does, acts)
            for letter, port, times, sizes, does, acts in table["clients"]
        ],
        plain={letter: Times(*times) for letter, times in table["plain"].items()},
        open=table["open"], sites=[Site(*each) for each in table["sites"]], stacks=table["stacks"],
        calls=[Recorded(*each) for each in table["calls"]],
    )  # fmt: skip
    if "ring" in table:
        made.ring = [RingEvent(*each) for each in table["ring"]]
    made.left = table.get("left", [])
    made.moments = [Moment(*each) for each in table["moments"]]
    return made


def read(path: Path) -> Recording:
    """InputError: the file is not there, or is no recording of this version."""
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such recording") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # also [[[[ without end
        raise InputError(f"{path}: not JSON: {error}") from None
    if not isinstance(table, dict) or table.get("v") != VERSION:
        raise InputError(f"{path}: no recording of version {VERSION}")
    try:
        return of_table(table)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: not a recording: {type(error).__name__}: {error}") from None


def all_paths(folder: Path = FOLDER) -> list[Path]:
    """The recordings there are."""
    return sorted(folder.glob("*.json"))
