"""A recording (quest/measure/form.py) as it is shown: its clients, who sleeps when, and where a player rests."""

from dataclasses import dataclass
from pathlib import Path

from quest.ground.errors import InputError
from quest.measure.form import Recorded, Recording, Times, read

#: A client that says nothing for so long is silent.
SILENT_US = 2500


@dataclass(frozen=True)
class Client:
    """What a client did. `half`: when it fell silent within its request, None if it did not; `sent`: when it had
    sent what it sent.
    """

    letter: str
    connect: int
    connected: int
    half: int | None
    sent: int | None
    first: int | None
    done: int | None


def client_of(letter: str, times: Times) -> Client:
    """ValueError if it does not connect."""
    connect, connected, half, sent, first, done = times
    if connect is None or connected is None:
        raise ValueError(f"client {letter} does not connect")
    silent = half is not None and (sent is None or sent - half >= SILENT_US)
    return Client(letter, connect, connected, half if silent else None, sent if sent is not None else half, first, done)


def traced_clients(recording: Recording) -> list[Client]:
    """Of the traced run, as calls and moments are."""
    return [client_of(guest.letter, guest.times) for guest in recording.clients]


def plain_clients(recording: Recording) -> dict[str, Client]:
    """Of the run without a tracer, by their letters: only these times stand in captions."""
    return {letter: client_of(letter, times) for letter, times in recording.plain.items()}


def read_recording(path: Path) -> Recording:
    """InputError: the file is not there, is no recording, or one of which nothing can be shown."""
    recording = read(path)
    try:
        traced_clients(recording)
        plain_clients(recording)
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
    if not recording.moments or not recording.calls:
        raise InputError(f"{path}: a recording without a {'call' if recording.moments else 'moment'}")
    return recording


def best(recording: Recording) -> int:
    """The moment that says most: where a player rests, and what is printed."""
    order = range(len(recording.moments))
    return min(order, key=lambda at: (recording.moments[at].rank, recording.moments[at].t))


# ---- what is so at a time ------------------------------------------------------------------------


def asleep_at(recording: Recording, task: int, t: int) -> Recorded | None:
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
