"""What happens in the ring of an io_uring server: submissions and completions, as the kernel's trace events tell them.

strace sees only io_uring_enter(2), which says how many, and not for whom.
"""

import contextlib
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from quest.ground.places import Answer, link_of, text_of

TRACEFS = Path("/sys/kernel/tracing")
#: A submission had another name before Linux 6.4.
SUBMITTING = ("io_uring_submit_req", "io_uring_submit_sqe")
EVENT = re.compile(
    r".*?-(?P<pid>\d+)\s+\[\d+\]\s+\S+\s+(?P<time>\d+\.\d+): (?P<what>io_uring_\w+): ring (?P<ring>\w+), "
    r"req(?:uest)? \w+, user_data (?P<data>0x[0-9a-f]+|\d+), (?:opcode (?P<opcode>\w+)|result (?P<result>-?\d+))"
)
NAME_BITS = 15  #: of the data: 13-uring/steps.h has the step there, and a pointer above
ROOTS = "the kernel's trace events are root's alone"


@dataclass(frozen=True)
class Event:
    """A submission, or with a result a completion; time in seconds of CLOCK_MONOTONIC."""

    time: float
    pid: int
    ring: str
    data: int
    opcode: str  # "" of a completion
    result: int | None


@dataclass(frozen=True)
class Told:
    """The same, with the operation and the client, "" for none in particular; time in seconds of CLOCK_REALTIME."""

    time: float
    what: str
    opcode: str
    letter: str
    result: int | None


def usable() -> Answer:
    """Whether the kernel's events can be had."""
    if not os.path.isdir(TRACEFS / "events/io_uring"):  # Path.is_dir() fails where one may not look
        if os.geteuid() == 0:
            return Answer(False, "tracefs is not there", f"mount -t tracefs tracefs {TRACEFS}")
        return Answer(False, ROOTS, "run it as root")
    if not os.access(TRACEFS / "instances", os.W_OK):
        return Answer(False, ROOTS, "run it as root")
    return Answer(True)


def parse(text: str, pids: Iterable[int] = ()) -> list[Event]:
    """The events of the file `trace` that are submissions or completions, of the rings that these processes use."""
    found: list[Event] = []
    for match in filter(None, map(EVENT.match, text.splitlines())):
        if match["what"] in SUBMITTING or match["what"] == "io_uring_complete":
            result = None if match["result"] is None else int(match["result"])
            opcode = (match["opcode"] or "").lower()
            data = int(match["data"], 0)
            found.append(Event(float(match["time"]), int(match["pid"]), match["ring"], data, opcode, result))
    wanted = set(pids)
    rings = {event.ring for event in found if event.pid in wanted}
    return [event for event in found if event.ring in rings]


def _prefix() -> str:
    """What the names of our folders begin with. All containers of a machine share tracefs, and each counts its process
    ids from 1: so the name has the number of the container's process namespace, too.
    """
    return f"quest-{link_of('/proc/self/ns/pid').strip('pid:[]')}-"


def _remove_leftovers(proc: Path = Path("/proc")) -> None:
    """What a recorder that was killed has left writes events down for ever, and slows each ring."""
    prefix = _prefix()
    for folder in TRACEFS.glob(f"instances/{prefix}*"):
        owner = folder.name.removeprefix(prefix)
        if owner.isdecimal() and (int(owner) == os.getpid() or not (proc / owner).exists()):
            with contextlib.suppress(OSError):
                _remove(folder)


def _remove(folder: Path) -> None:
    with contextlib.suppress(OSError):
        (folder / "events/enable").write_text("0", encoding="ascii")
    folder.rmdir()


@contextlib.contextmanager
def watched() -> Iterator[list[str]]:
    """The events while the block runs: in the list is one text afterwards. usable() comes first."""
    folder = TRACEFS / "instances" / f"{_prefix()}{os.getpid()}"
    text: list[str] = []
    _remove_leftovers()
    folder.mkdir()
    try:
        (folder / "trace_clock").write_text("mono", encoding="ascii")
        for name in (*SUBMITTING, "io_uring_complete"):
            with contextlib.suppress(OSError):
                (folder / f"events/io_uring/{name}/enable").write_text("1", encoding="ascii")
        yield text
        text.append(text_of(folder / "trace"))
    finally:
        _remove(folder)


def told(events: Sequence[Event], letters: Sequence[str]) -> list[Told]:
    """Each event with its client. `letters`: in the order in which they connected, which is that in which they are
    accepted.

    A connection is known by the pointer in its data, from the first receive after it was accepted. What is done for a
    request has a pointer of its own; it is that connection's whose reply it is sent with.
    """
    ahead = time.time() - time.clock_gettime(time.CLOCK_MONOTONIC)
    left = list(letters)
    accepted: list[str] = []  # without a receive yet
    owners: dict[int, str] = {}
    last: dict[int, str] = {}  # the operation of each pointer that was completed last
    opcodes: dict[int, str] = {}
    open_jobs: dict[int, list[int]] = {}  # where in `found` are events of a job whose client is not known yet
    found: list[Told] = []
    job = 0
    for event in events:
        what = "submit" if event.result is None else "complete"
        opcode = event.opcode or opcodes.get(event.data, "accept" if not event.data else "")
        opcodes[event.data] = opcode
        pointer = event.data & ~NAME_BITS
        letter = ""
        if what == "complete" and opcode == "accept" and (event.result or 0) >= 0 and left:
            letter = left.pop(0)
            accepted.append(letter)
        elif pointer:
            if what == "submit" and opcode == "recv" and accepted and last.get(pointer) != "recv":
                owners[pointer] = accepted.pop(0)
            if what == "submit" and opcode.startswith("openat"):
                owners.pop(pointer, None)
                open_jobs[pointer] = []
            if what == "submit" and opcode == "read":
                job = pointer
            letter = owners.get(pointer, "")
            if what == "submit" and opcode == "send" and letter and job in open_jobs:
                owners[job] = letter
                for n in open_jobs.pop(job):
                    found[n] = Told(**{**vars(found[n]), "letter": letter})
            if not letter and pointer in open_jobs:
                open_jobs[pointer].append(len(found))
            last[pointer] = opcode if what == "complete" else last.get(pointer, "")
        found.append(Told(event.time + ahead, what, opcode, letter, event.result))
    return found
