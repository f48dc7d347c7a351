"""Runs a server with the clients of a scene, once under strace for the calls and their lines, and several times without
for the times, and makes one recording of it.
"""

import contextlib
import os
import platform
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from quest.ground import guard
from quest.ground.errors import RepetitionError
from quest.ground.places import Answer, link_of, numbered, text_of
from quest.ground.processes import Process, listening_port, running
from quest.measure import docroot, lines, moments, museum, ring, strace
from quest.measure.form import How, Recording, RingEvent, Times
from quest.measure.recording import UNTRACED, Source, guests, record_calls, times_of
from quest.measure.scene import Client, Scene, Visit, play
from quest.measure.trace import STOP_S, STRACE, stop, traces
from quest.spec.model import Disk, Params, Variant

FLAGS = "-std=c11 -O2 -g -fno-optimize-sibling-calls -U_FORTIFY_SOURCE"
TRIES = 5  # a traced run that something else on the machine has disturbed is made again
PLAIN_RUNS = 5
TIMEOUT_S = 20.0
LEAD_S = 0.05
SIGNAL_S = 0.1  # until strace has written the stacks
ASLEEP_S = 0.06  # a server whose tasks have all slept for that long has nothing to do
ASLEEP_PATIENCE_S = 15.0
# -k the stack of each call; room for as many descriptors as a scene has clients. What only libc asks for is left alone.
WITH_LINES = ["-k", "-s", "128", "--seccomp-bpf", "-e", "trace=!" + ",".join(f"?{call}" for call in sorted(UNTRACED))]
STANDARD = ("stdin", "stdout", "stderr")
KINDS = {"eventpoll": "epoll"}


ALLOWED = Answer(True)


@dataclass(frozen=True)
class Target:
    """A server to record. folders: where the lines are that are shown, below root."""

    name: str
    program: Path
    args: tuple[str, ...] = ()
    root: Path = field(default_factory=Path.cwd)
    folders: tuple[str, ...] = ("code/",)
    flags: str = FLAGS
    may_be_stopped: bool = True  # it goes on after SIGSTOP and SIGCONT, though epoll_wait() then says EINTR


@dataclass
class _Run:
    """A server that runs, and what has come of it."""

    process: Process
    port: int
    opened: list[tuple[int, int, str]] = field(default_factory=list)
    visits: list[Visit] = field(default_factory=list)
    until: float = 0.0


def record(target: Target, scene_name: str, scene: Scene, tracing: Answer = ALLOWED) -> Recording:
    """One recording, of several the one in which the clients were held up least by other work on this machine. Where
    nothing may be traced it has no calls, and says so. RepetitionError if the server, a client or the trace is never as
    it should be.
    """
    kept: list[tuple[list[Visit], Recording]] = []

    def again() -> list[Visit]:
        kept.append(traced(target, scene_name, scene))
        return kept[-1][0]

    guard.start()  # if we are killed, strace ends, and the server that it has traced would go on
    with going_first():
        plain = least_disturbed(lambda: plain_run(target, scene), scene, PLAIN_RUNS)
        if tracing.ok:
            best = least_disturbed(again, scene, TRIES)
            recording = next(recording for visits, recording in kept if visits is best)
        else:
            recording = empty(target, scene_name, scene, plain)
            remedy = f" ({tracing.remedy})" if tracing.remedy else ""
            recording.left.append(f"Processes, threads and calls: {tracing.reason}{remedy}.")
    recording.plain = {visit.name: times_of(visit, plain[0].connecting) for visit in plain}
    first = recording.clients[0]
    recording.how["overhead"] = [_took(first.times), _took(recording.plain[first.letter])]
    recording.moments = moments.found(recording)
    return recording


@contextlib.contextmanager
def going_first() -> Iterator[None]:
    """Clients, tracer and server run before all else on this machine, where that is allowed: strace and the server take
    turns at each call, and among other programs each turn is a wait. It is over within seconds.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except (OSError, AttributeError):  # an ordinary user stands in line
        yield
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def least_disturbed(run: Callable[[], list[Visit]], scene: Scene, tries: int) -> list[Visit]:
    """Of so many runs that with the least delay. RepetitionError if none went well."""
    runs: list[list[Visit]] = []
    said = ""
    for _ in range(tries):
        try:
            runs.append(run())
        except RepetitionError as error:
            said = str(error)
    if not runs:
        raise RepetitionError(said)
    return min(runs, key=lambda visits: delay(visits, scene))


def delay(visits: Sequence[Visit], scene: Scene) -> float:
    """Seconds by which the clients came late, and those that they took."""
    zero = visits[0].connecting
    due = {letter: client.at_ms / 1000 for letter, client in scene.each().items()}
    first = due[visits[0].name]
    late = sum(abs(visit.connecting - zero - (due[visit.name] - first)) for visit in visits)
    return late + sum(visit.done - visit.connecting for visit in visits)


def _took(times: Times) -> int | None:
    return None if times.connect is None or times.done is None else times.done - times.connect


@contextlib.contextmanager
def served_folder(scene: Scene) -> Iterator[Path]:
    """What is served: files, or a museum disk that has just been mounted, and so has nothing in memory."""
    if not scene.disk:
        yield docroot.prepare(scene.docroot).resolve()
        return
    with tempfile.TemporaryDirectory() as scratch:
        disk = Disk(pools=(scene.disk,), args=("--speed", str(scene.disk_speed)))
        values: Params = {"scratch": scratch}
        with museum.mounted(disk, Variant("disk"), values, frozenset()):
            yield Path(str(values["docroot"]))


def command_of(target: Target, scene: Scene, root: Path) -> list[str]:
    """The server, at a port that it chooses itself."""
    limit = ["prlimit", f"--sigpending={scene.signals}", "--"] if scene.signals else []
    return [*limit, str(target.program), "-p", "0", *target.args, *scene.args.get(target.name, ()), str(root)]


@contextlib.contextmanager
def served(target: Target, scene: Scene, before: Sequence[str] = ()) -> Iterator[_Run]:
    """The server, after a first request, with all its tasks asleep; `before`: words of the command before its own."""
    with (
        served_folder(scene) as root,
        running("the server", [*before, *command_of(target, scene, root)], pipe=True) as process,
    ):
        run = _Run(process, listening_port(process, TIMEOUT_S))
        wait_until_asleep(process.pid)
        target_of_all = next(iter(scene.each().values())).target
        play({"A": Client("A", target=target_of_all)}, run.port, TIMEOUT_S)
        wait_until_asleep(process.pid)
        yield run


def tasks_of(session: int) -> dict[int, str]:
    """The tasks of a session, but for its leader's: their states, as R, S, t."""
    states: dict[int, str] = {}
    for process in numbered(Path("/proc")):
        text = text_of(process / "stat").rpartition(")")[2].split()
        if len(text) < 4 or int(text[3]) != session or process.name == str(session):
            continue
        for task in numbered(process / "task"):
            state = text_of(task / "stat").rpartition(")")[2].split()
            if state:
                states[int(task.name)] = state[0]
    return states


def wait_until_asleep(session: int) -> None:
    """RepetitionError if they do not come to rest."""
    deadline = time.monotonic() + ASLEEP_PATIENCE_S
    since, before = time.monotonic(), None
    while time.monotonic() - since < ASLEEP_S:
        states = tasks_of(session)
        leader = {session: "S"}
        if set(states.values()) - {"S"} or (states or leader) != before:
            since = time.monotonic()
        before = states or leader
        if time.monotonic() > deadline:
            raise RepetitionError(f"the server did not come to rest within {ASLEEP_PATIENCE_S:g} s")
        time.sleep(0.005)


# ---- without the tracer --------------------------------------------------------------------------


def plain_run(target: Target, scene: Scene) -> list[Visit]:
    """What the clients saw of a server that is not traced."""
    with served(target, scene) as run:
        visits = play(scene.each(), run.port, TIMEOUT_S, LEAD_S)
        with contextlib.suppress(ProcessLookupError):
            os.kill(run.process.pid, signal.SIGTERM)
        if not run.process.reap(STOP_S):
            raise RepetitionError(f"the server did not end within {STOP_S:g} s of SIGTERM")
    return visits


# ---- with it -------------------------------------------------------------------------------------


def traced(target: Target, scene_name: str, scene: Scene) -> tuple[list[Visit], Recording]:
    """What the clients saw, and the recording without its plain times and moments. RepetitionError as record() says."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = [*STRACE, *WITH_LINES, "-o", f"{folder}/trace"]
        with served(target, scene, words) as run:
            pids = list(traces(folder))
            opened = descriptors(pids)
            in_ring = ring.usable() if any(what == "io_uring" for _, _, what in opened) else None
            with contextlib.ExitStack() as stack:
                events_of_ring = stack.enter_context(ring.watched()) if in_ring and in_ring.ok else []
                visits = play(scene.each(), run.port, TIMEOUT_S, LEAD_S)
                wait_until_asleep(run.process.pid)
                until = time.time()
            if target.may_be_stopped:
                show_stacks([pid for pid in pids if is_process(pid)])
            stop(run.process, folder)
        try:
            events = strace.with_makers(strace.joined(strace.parse(traces(folder))))
        except strace.SyntaxErrorInTrace as error:
            raise RepetitionError(str(error)) from None
    recording = empty(target, scene_name, scene, visits)
    stacks = lines.stacks(
        (event.stack for event in events if isinstance(event, strace.Call)), target.program, target.root, target.folders
    )
    source = Source(cache(lambda file: text_of_source(target.root / file)))
    record_calls(recording, events, visits, stacks, source, until, opened)
    if in_ring:
        add_ring(recording, in_ring, "".join(events_of_ring), pids, visits)
    return visits, recording


def empty(target: Target, scene_name: str, scene: Scene, visits: Sequence[Visit]) -> Recording:
    """A recording of the clients alone."""
    zero = visits[0].connecting
    return Recording(
        server=target.name, scene=scene_name, title=scene.title,
        args=" ".join((*target.args, *scene.args.get(target.name, ()))),
        how=how(target), end=round((max(visit.done for visit in visits) - zero) * 1e6), tasks=[],
        clients=guests(scene, visits, zero), plain={}, open=[], sites=[], stacks=[], calls=[],
    )  # fmt: skip


def add_ring(recording: Recording, usable: Answer, text: str, pids: Sequence[int], visits: Sequence[Visit]) -> None:
    """What the kernel says of the ring; or that it cannot be had, and what then is not known. RepetitionError if it
    does not agree with what the clients have sent.
    """
    if not usable.ok:
        recording.left.append(f"What is in the ring is not known: {usable.reason} ({usable.remedy}).")
        return
    zero = visits[0].connecting
    order = [visit.name for visit in sorted(visits, key=lambda visit: visit.connected)]
    recording.ring = [
        RingEvent(round((event.time - zero) * 1e6), event.what, event.opcode, event.letter, event.result)
        for event in ring.told(ring.parse(text, pids), order)
    ]
    for guest in recording.clients:
        received = sum(
            max(event.result or 0, 0)
            for event in recording.ring
            if event.letter == guest.letter and event.opcode == "recv" and event.what == "complete"
        )
        if received != guest.sizes[1]:
            raise RepetitionError(
                f"client {guest.letter} has sent {guest.sizes[1]} bytes, the ring received {received}"
            )


def text_of_source(path: Path) -> list[str]:
    """The lines of a file. RepetitionError if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise RepetitionError(f"{path.name}: {error.strerror}") from None


def is_process(pid: int) -> bool:
    """And no thread of one."""
    return Path(f"/proc/{pid}/task/{pid}").exists() and f"\nTgid:\t{pid}\n" in text_of(f"/proc/{pid}/status")


def show_stacks(processes: Sequence[int]) -> None:
    """strace writes the stack of a call when it returns. A thread that sleeps until its process ends never returns:
    while the process is stopped its call ends, and the kernel then begins it anew.
    """
    for pid in processes:
        if len(numbered(Path(f"/proc/{pid}/task"))) > 1:
            for number in (signal.SIGSTOP, signal.SIGCONT):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
                time.sleep(SIGNAL_S)


def descriptors(tasks: Sequence[int]) -> list[tuple[int, int, str]]:
    """(process, descriptor, what it is) of all processes now."""
    found: list[tuple[int, int, str]] = []
    for pid in tasks:
        folder = Path(f"/proc/{pid}/fd")
        listening = _listening(text_of(f"/proc/{pid}/net/tcp"))
        for each in sorted(numbered(folder), key=lambda path: int(path.name)):
            number = int(each.name)
            what = STANDARD[number] if number < len(STANDARD) else _what(link_of(each), listening, each)
            found.append((pid, number, what))
    return found


def _listening(table: str) -> set[str]:
    """The inodes of the sockets that listen, of /proc/net/tcp."""
    rows = [line.split() for line in table.splitlines()[1:]]
    return {row[9] for row in rows if len(row) > 9 and row[3] == "0A"}


def _what(link: str, listening: set[str], path: Path) -> str:
    if inode := re.fullmatch(r"socket:\[(\d+)\]", link):
        return "listens" if inode[1] in listening else "socket"
    if kind := re.fullmatch(r"anon_inode:\[?(\w+)\]?", link):
        return KINDS.get(kind[1], kind[1])
    if link.startswith("pipe:"):
        return "pipe"
    if path.is_dir():
        return "docroot"
    return link.rpartition("/")[2].removesuffix(" (deleted)")


def how(target: Target) -> How:
    """Of which tree, with what, and when. No name and no path of this machine."""
    return {
        "commit": _first_line(["git", "rev-parse", "--short=8", "HEAD"], target.root),
        "kernel": platform.release().partition("-")[0],
        "strace": _first_line(["strace", "--version"]).rpartition(" ")[2],
        "build": f"cc {_first_line(['cc', '-dumpfullversion', '-dumpversion'])} {target.flags}",
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }


def _first_line(command: list[str], folder: Path | None = None) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20, cwd=folder)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.partition("\n")[0].strip()
