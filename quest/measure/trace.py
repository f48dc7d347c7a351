"""kind = "trace": which task runs and which waits while a server serves four clients, one slow.

The clients are those of the scene "slow": A, C and D ask for a page at once, B sends half of its request, pauses,
and sends the rest. Out comes one repetition of the results (see timeline.Row for its columns), and
from it the tables figures/timeline.gp draws. Nothing is drawn by hand. Nothing is measured
either: each traced call costs some tens of microseconds more, too little to see among 300 ms.
"""

import contextlib
import os
import signal
import tempfile
import time
from collections.abc import Sequence
from dataclasses import astuple, replace
from pathlib import Path

from quest.ground import places, processes
from quest.ground.errors import RepetitionError, Unsupported
from quest.ground.processes import Process, running
from quest.measure import docroot, needs, scene, strace, timeline
from quest.measure.programs import folders
from quest.measure.records import Repetition
from quest.measure.scene import Visit
from quest.measure.session import Context
from quest.measure.timeline import Row
from quest.spec.model import Experiment, Params, Variant
from quest.spec.plan import expand_all

LEAD_S = 0.05  # until the first client connects: the server must have reached its accept
LINGER_S = 0.1  # after the last reply: children end and are collected
STOP_S = 10.0
CALLS = [*strace.WAITING_CALLS, *strace.MAKING_CALLS, "close", "execve", "exit", "exit_group"]

# -ff all tasks, each in a file of its own, -ttt absolute time, -T time in the call, -yy the peer
# of a socket.
STRACE = ["strace", "-ff", "-q", "-ttt", "-T", "-yy"]
# -s 1 one letter of a text, and one descriptor of those that poll() is given. The question marks let a call pass that
# this architecture does not have; with --seccomp-bpf the calls that are not traced run at full speed.
WAITS_ONLY = ["-s", "1", "--seccomp-bpf", "-e", "trace=" + ",".join(f"?{call}" for call in CALLS)]


def record(command: Sequence[str], timeout_s: float = 30.0) -> Repetition:
    """Runs the server (which is to choose its port itself, -p 0) under strace and visits it.
    RepetitionError if the server, a client or the trace is not as it should be.
    """
    clients = scene.read("slow").each()
    with tempfile.TemporaryDirectory() as folder:
        words = [*STRACE, *WAITS_ONLY, "-o", f"{folder}/trace", *command]
        with running("the server", words, pipe=True) as process:
            visits = scene.play(clients, processes.listening_port(process, timeout_s), timeout_s, LEAD_S)
            time.sleep(LINGER_S)
            stop(process, Path(folder))
        try:
            events = strace.parse(traces(Path(folder)))
        except strace.SyntaxErrorInTrace as error:
            raise RepetitionError(str(error)) from None
    return recording(timeline.rows(events, visits), visits)


def traces(folder: Path) -> dict[int, list[str]]:
    """Task -> the lines that strace has written of it by now."""
    files = {int(file.suffix[1:]): file for file in folder.iterdir()}
    return {pid: file.read_text(errors="replace").splitlines() for pid, file in files.items()}


def stop(process: Process, folder: Path) -> None:
    """SIGTERM for the server, whose trace begins before the others'; strace ends with it."""
    began = [(lines[0], pid) for pid, lines in traces(folder).items() if lines]
    if not began:
        raise RepetitionError("the trace is empty")
    with contextlib.suppress(ProcessLookupError):
        os.kill(min(began)[1], signal.SIGTERM)
    if not process.reap(STOP_S):
        raise RepetitionError(f"the server did not end within {STOP_S:g} s of SIGTERM")
    if process.status != 0:
        raise RepetitionError(process.describe_end())


def recording(rows: Sequence[Row], visits: Sequence[Visit]) -> Repetition:
    """The rows as samples (timeline.COLUMNS), and how long each client took."""
    in_ms = [replace(row, start=milliseconds(row.start), end=milliseconds(row.end)) for row in rows]
    columns = map(list, zip(*map(astuple, in_ms), strict=True))
    scalars: dict[str, float] = {
        f"client_{visit.name.lower()}_ms": milliseconds(visit.done - visit.connecting) for visit in visits
    }
    scalars["tasks"] = len({row.name for row in rows if row.kind == "task"})
    return Repetition(dict(zip(timeline.COLUMNS, columns, strict=True)), scalars)


def milliseconds(seconds: float) -> float:
    """To the microsecond."""
    return round(seconds * 1000, 3)


def run(experiment: Experiment, variant: Variant, params: Params, context: Context) -> Repetition:
    """One repetition of the variant; errors as records.Repetition says."""
    tracing = needs.probe("strace")
    if not tracing.ok:
        raise Unsupported(tracing.reason, tracing.remedy)
    root = docroot.prepare(experiment.docroot)
    values: Params = {**params, **folders(variant), "docroot": str(root)}
    server = places.build_folder(variant.build) / variant.server
    command = [str(server), "-p", "0", *expand_all(variant.args, values), str(root)]
    return record(command, timeout_s=min(context.timeout, 30.0))
