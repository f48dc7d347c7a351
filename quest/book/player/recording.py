"""A recording (benchmarks/recordings/NN-slug.SCENE.json, form in the README.md there) as typed records, and
what follows from it: who sleeps when, and for which client. Times are microseconds after the first client begins to
connect.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quest.ground.errors import InputError

FOLDER = Path("benchmarks/recordings")
#: A client that says nothing for so long is silent.
SILENT_US = 2500


@dataclass(frozen=True)
class Task:
    """A process or a thread. `born`: None if it was there before; `ended`: None if it outlives the recording;
    `collected`: when its parent has waited for it.
    """

    name: str
    kind: str
    born: int | None
    ended: int | None
    parent: int | None
    collected: int | None


@dataclass(frozen=True)
class Client:
    """What a client did, as itself saw it; None: it did not. `half`: when it fell silent within its request."""

    letter: str
    connect: int
    connected: int
    half: int | None
    sent: int | None
    first: int | None
    done: int | None


@dataclass(frozen=True)
class Call:
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
    asleep: int

    def sleeps_for(self) -> str:
        """The only client that can wake it; "" for a call that waits for any: what accept() returns was not known."""
        return self.letter if self.asleep and not self.name.startswith("accept") else ""


@dataclass(frozen=True)
class Site:
    """A line of ours that a stack passes through, and by what it is known to say the same still."""

    function: str
    file: str
    line: int
    mark: str


@dataclass(frozen=True)
class Moment:
    """What is worth stopping at. `call`: its index, None if no call is meant; `show`: the state it speaks of."""

    t: int
    rank: int
    task: int | None
    call: int | None
    head: str
    rest: str
    show: str


@dataclass(frozen=True)
class Recording:
    """One server in one scene. `plain`: the clients' times without a tracer, the only ones in captions."""

    name: str
    server: str
    title: str
    end: int
    tasks: Sequence[Task]
    clients: Sequence[Client]
    plain: Mapping[str, Client]
    sites: Sequence[Site]
    stacks: Sequence[Sequence[int]]
    calls: Sequence[Call]
    moments: Sequence[Moment]
    raw: Mapping[str, Any]  # as the file has it: for the browser

    def calls_of(self, task: int) -> Iterator[Call]:
        return (call for call in self.calls if call.task == task)

    def best(self) -> int:
        """The moment that says most: where a player rests, and what is printed."""
        order = range(len(self.moments))
        return min(order, key=lambda at: (self.moments[at].rank, self.moments[at].t))


def client_of(letter: str, times: Sequence[int | None]) -> Client:
    connect, connected, half, sent, first, done = times
    if connect is None or connected is None:
        raise ValueError(f"client {letter} does not connect")
    silent = half is not None and (sent is None or sent - half >= SILENT_US)
    return Client(letter, connect, connected, half if silent else None, sent if sent is not None else half, first, done)


def read_recording(path: Path) -> Recording:
    """InputError: the file is not there, or is no recording."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such recording") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not JSON: {error}") from None
    try:
        recording = Recording(
            path.stem, raw["server"], raw["title"], raw["end"],
            [Task(*row) for row in raw["tasks"]],
            [client_of(letter, times) for letter, _, times, *_ in raw["clients"]],
            {letter: client_of(letter, times) for letter, times in raw["plain"].items()},
            [Site(*row) for row in raw["sites"]], raw["stacks"],
            [Call(*row) for row in raw["calls"]], [Moment(*row) for row in raw["moments"]], raw,
        )  # fmt: skip
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: not a recording: {type(error).__name__}: {error}") from None
    if not recording.moments or not recording.calls:
        raise InputError(f"{path}: a recording without a {'call' if recording.moments else 'moment'}")
    return recording


# ---- what is so at a time ------------------------------------------------------------------------


def is_alive(task: Task, t: int) -> bool:
    return (task.born is None or task.born <= t) and (task.ended is None or t < task.ended)


def asleep_at(recording: Recording, task: int, t: int) -> Call | None:
    """The call in which a task sleeps at t."""
    last = None
    for call in recording.calls_of(task):
        if call.t > t:
            break
        last = call
    is_over = last is not None and last.took is not None and last.t + last.took <= t
    return last if last is not None and last.asleep and not is_over else None


def milliseconds(us: float) -> str:
    """232000 -> "232 ms", 310 -> "0.3 ms"."""
    ms = us / 1000
    return f"{ms:.0f} ms" if abs(ms) >= 10 else f"{ms:.1f} ms"
