"""What a server inherits from the process that starts it, and whether it serves all the same or
says why not: the table server x inherited state. test_inherited.py judges it.

    python3 -m tests.conformance.inherited BUILD      (make server-tables)
"""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conformance import proc
from tests.conformance.matrix import FOLDERS, MODELS, Model
from tests.conformance.process import DIE_WITH_PARENT, Target, wait_until, written

LAUNCHER = Path(__file__).with_name("inherit.py")
FIRST_USER = 61000  #: RLIMIT_NPROC counts a user's processes: each server has a user of its own
ALARM_OVER = 1.1  #: seconds
AT_WORK = 0.05  #: seconds of processor time, more than the timers of inherit.py give
CONNECTIONS = 3000  #: that take longer, also of a server that keeps no client
ASK = b"GET /nope HTTP/1.1\r\nHost: x\r\n"
MANY = (ASK + b"\r\n") * 199 + ASK + b"Connection: close\r\n\r\n"  #: requests, on one connection

SERVES = "serves"
HAS_NO_ROOM = "503"  #: answers each client, some of them so
ENDS = "ends"  #: with one line and status 1 or 77


@dataclass(frozen=True)
class State:
    name: str
    steps: tuple[str, ...] = ()  #: functions of inherit.py
    may: tuple[str, ...] = (SERVES,)
    env: str = "PATH=/usr/bin:/bin"
    named: bool = True  #: has its name in argv[0]
    silent: bool = False  #: its stderr is nowhere, so no line can be asked for
    own_user: bool = False
    of_stdout: bool = False  #: which is the connection's, where inetd has started it
    group: str = ""  #: tried together with the others of it, or in the table alone ("-")


def limits(name: str, *numbers: int, may: tuple[str, ...], **more: Any) -> list[State]:
    return [State(f"{name} {n}", (f"limit:{name}:{n}",), may, **more) for n in numbers]


ODD = "LC_ALL=tr_TR.UTF-8\nLANG=nonsense\nTZ=:no/such/zone\nTMPDIR=/no/such\nMALLOC_ARENA_MAX=x"
STATES = (
    State("all signals blocked", ("blocked",), group="a"),
    State("an alarm in a second", ("alarm",), group="a"),
    State("SIGALRM pending", ("pending",), group="a"),
    State("3 to 60 open", ("descriptors",), group="a"),
    State("stdout does not wait", ("nonblocking:1",), group="a"),
    State("folder gone, umask 777", ("folder_gone", "umask"), group="a"),
    State("environment odd", env=ODD, group="a"),
    State("soft STACK 65536", ("soft_limit:STACK:65536",), group="a"),
    State("0 closed", ("closed:0",), group="a"),
    State("all signals ignored", ("ignored",), group="b"),
    State("environment empty", env="", group="b"),
    State("timers of processor time", ("timers",), group="c"),
    *limits("CORE", 0, may=(SERVES,), group="b"),
    *limits("SIGPENDING", 0, may=(SERVES,), group="b"),
    State("2 closed", ("closed:2",), silent=True, group="b"),
    State("stderr to no reader", ("to_no_reader:2",), silent=True, group="c"),
    State("argv[0] empty", named=False, group="c"),
    State("1 closed", ("closed:1",), group="c"),
    State("stderr to /dev/full", ("to:2:/dev/full",), silent=True),
    State("0, 1, 2 closed", ("closed:0:1:2",), silent=True),
    State("stdout to /dev/full", ("to:1:/dev/full",), (ENDS,), of_stdout=True),
    State("stdout to no reader", ("to_no_reader:1",), (ENDS,), of_stdout=True, group="-"),
    *limits("STACK", 65536, may=(ENDS,)),
    *limits("NOFILE", 6, 8, may=(SERVES, HAS_NO_ROOM, ENDS)),
    *limits("NOFILE", 16, may=(SERVES, HAS_NO_ROOM, ENDS), group="-"),
    *limits("AS", 8 << 20, 64 << 20, may=(SERVES, ENDS), group="-"),
    *limits("AS", 16 << 20, may=(SERVES, ENDS)),
    *limits("DATA", 2 << 20, may=(SERVES, ENDS), group="-"),
    *limits("DATA", 4 << 20, may=(SERVES, ENDS)),
    *limits("FSIZE", 0, may=(ENDS,), silent=True, of_stdout=True),
    *limits("MEMLOCK", 0, may=(SERVES, ENDS), group="-"),
    *limits("NPROC", 1, 3, may=(SERVES, HAS_NO_ROOM, ENDS), own_user=True),
    *limits("NPROC", 12, may=(SERVES, HAS_NO_ROOM, ENDS), own_user=True, group="-"),
)


def _merged(states: list[State]) -> State:
    """One start for several: each of them alone is to be served."""
    return State(
        " + ".join(state.name for state in states),
        tuple(step for state in states for step in state.steps),
        env=next((state.env for state in states if state.env != State.env), State.env),
        named=all(state.named for state in states),
        silent=any(state.silent for state in states),
    )


#: For `make test`, in fewer starts.
QUICK = (
    *(_merged([state for state in STATES if state.group == group]) for group in "abc"),
    *(state for state in STATES if not state.group),
)


class Started:
    """One server in one state."""

    def __init__(self, target: Target, state: State, root: Path, user: int) -> None:
        self._state = state
        self._hello = (root / "hello.txt").read_bytes()
        self._alarm_over = time.monotonic() + ALARM_OVER
        self._out = tempfile.TemporaryFile()  # noqa: SIM115
        self._err = tempfile.TemporaryFile()  # noqa: SIM115
        self._client: socket.socket | None = None  #: of one that inetd has started
        self._listens_at = 0  #: the port, once it is known: the table of sockets may be long
        connection: socket.socket | None = None
        options = [*target.model.options, "-v", "-p", "0"]
        if target.model.under_inetd:
            with socket.create_server(("127.0.0.1", 0)) as listener:
                self._client = socket.create_connection(listener.getsockname())
                connection, _ = listener.accept()
        steps = [f"user:{user}"] if state.own_user and os.geteuid() == 0 else []
        name = target.binary.name if state.named else ""
        command = [
            *DIE_WITH_PARENT, sys.executable, "-I", "-S", str(LAUNCHER), str(target.binary), name,
            state.env, *steps, *state.steps, "--", *options, str(root),
        ]  # fmt: skip
        self._process = subprocess.Popen(
            command,
            stdin=connection.fileno() if connection else subprocess.DEVNULL,
            stdout=self._out,
            stderr=self._err,
            start_new_session=True,
        )
        if connection is not None:
            connection.close()

    def _port(self) -> int:
        """That on which it listens; 0: none. Its line may have gone nowhere."""
        if self._listens_at:
            return self._listens_at
        sockets = {what[len("socket:[") : -1] for what in proc.sockets(self._process.pid)}
        for line in proc.text("self", "net/tcp").splitlines()[1:]:
            words = line.split() if " 0A " in line else []  # most lines are of connections that are over
            if words and words[3] == "0A" and words[9] in sockets:
                self._listens_at = int(words[1].rpartition(":")[2], 16)
        return self._listens_at

    def _is_ready(self) -> bool:
        if self._process.poll() is not None:
            return True
        if any(re.match("closed.*1", step) for step in self._state.steps):
            return self._port() != 0
        return "\n" in written(self._out)

    def _ask(self, path: str, limit: float) -> bytes:
        return self._exchange(f"GET {path} HTTP/1.0\r\n\r\n".encode(), limit)

    def _exchange(self, requests: bytes, limit: float) -> bytes:
        """Nothing where there is no connection, it was reset, or nothing came in time."""
        client = self._client
        try:
            if client is None:
                client = socket.create_connection(("127.0.0.1", self._port()), limit)
            with client:
                client.settimeout(limit)
                client.sendall(requests)
                return b"".join(iter(lambda: client.recv(65536), b""))
        except OSError:
            return b""

    def _answers(self, limit: float) -> str:
        """How it answers; with -v on, no line of its log may be in a reply."""
        verdict = SERVES
        for path in ["/hello.txt"] if self._client else ["/hello.txt", "/nope", "/hello.txt"]:
            reply = self._ask(path, limit)
            head, _, body = reply.partition(b"\r\n\r\n")
            right = body == self._hello if path == "/hello.txt" else head[9:12] == b"404"
            if not reply:
                return f"DEAF to {path}"
            if head[9:12] == b"503":
                verdict = HAS_NO_ROOM
            elif not right or not head.startswith(b"HTTP/1.1 "):
                return f"WRONG for {path}: {reply[:60]!r}"
        return verdict

    def _work(self, limit: float) -> None:
        """Until the process that was started, with its threads, has used AT_WORK. Where its workers have, it waits for
        them and does nothing itself; and they inherit no timers. Many requests come on each connection: thousands of
        connections would stand in the kernel's table for a minute, where other tests look for theirs.
        """
        pid = self._process.pid
        for _ in range(CONNECTIONS):
            by_workers = sum(map(proc.cpu_seconds, proc.children(pid)))
            if max(by_workers, proc.cpu_seconds(pid)) > AT_WORK or not self._exchange(MANY, limit):
                return

    def verdict(self, limit: float) -> str:
        if self._client is not None:
            answer = self._answers(limit)
            return answer if self._wait(limit) == 0 else self._end()
        if not wait_until(self._is_ready, limit):
            return "NEITHER LISTENS NOR ENDS"
        if self._process.poll() is not None:
            return self._end()
        if "alarm" in self._state.steps:
            time.sleep(max(0.0, self._alarm_over - time.monotonic()))
        answer = self._answers(limit)
        if "timers" in self._state.steps:
            self._work(limit)
        if self._process.poll() is not None:
            return f"{answer}, AND {self._end()}"
        os.kill(self._process.pid, signal.SIGTERM)
        if (status := self._wait(limit)) != 0:
            return f"{answer}, AND TOLD TO STOP: {status}"
        return answer if wait_until(self._is_gone, limit) else f"{answer}, AND LEAVES PROCESSES"

    def _is_gone(self) -> bool:
        """With all its processes: to look at each that there is takes longer."""
        try:
            os.killpg(self._process.pid, 0)
        except ProcessLookupError:
            return True
        return not proc.session(self._process.pid)

    def _wait(self, limit: float) -> int | None:
        """Its status; None: it goes on."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(limit)
        return None

    def _end(self) -> str:
        status, said = self._process.wait(), written(self._err)
        clear = self._state.silent or re.fullmatch(r"([^\n:]+: [^\n]+\n)+", said)
        if status in (1, 77) and clear:
            return f"{ENDS} {status}: {' '.join(said.splitlines()[-1:])}"
        if status == 127 and "error while loading shared libraries" in said:
            return f"{ENDS} {status}: {said.strip()}"  # not our program yet
        return f"ENDED WITH {status}: {said!r}"

    def release(self) -> None:
        for pid in [] if self._is_gone() else proc.session(self._process.pid):
            proc.send(pid, signal.SIGKILL)
        self._process.wait()
        self._out.close()
        self._err.close()


def allowed(model: Model, state: State) -> tuple[str, ...]:
    """02-inetd does not write to stdout, and without a connection as stdin it is at its end."""
    if model.under_inetd and state.of_stdout:
        return (SERVES,)
    if model.under_inetd and any(re.match("closed.*0", step) for step in state.steps):
        return (ENDS,)
    return state.may


def is_right(model: Model, state: State, verdict: str) -> bool:
    return verdict.partition(" ")[0] in allowed(model, state)


def verdicts(target: Target, root: Path, limit: float, states: Sequence[State] = STATES) -> dict[State, str]:
    """Some at the same time: most of a start is waiting."""
    first = FIRST_USER + len(STATES) * list(MODELS).index(target.name)

    def one(number: int) -> str:
        started = Started(target, states[number], root, first + number)
        try:
            return started.verdict(limit)
        finally:
            started.release()

    with ThreadPoolExecutor(4) as pool:
        return dict(zip(states, pool.map(one, range(len(states))), strict=True))


def print_table(build: Path, root: Path, slugs: Sequence[str]) -> int:
    """A row for each state, a column for each server; what those that end say, once. Returns how
    many cells are wrong.
    """
    columns = {}
    for slug in slugs:
        binary = build / FOLDERS["glibc"] / (MODELS[slug].program or slug)
        columns[slug] = verdicts(Target(MODELS[slug], "glibc", binary), root, 10.0)
    short = {slug: slug.partition("-")[0] + "-edge" * slug.endswith("-edge") for slug in slugs}
    print("server x inherited state: serves; 503: answers, without room; ends: one line, status 1")
    print(f"{'':24}" + "".join(f"{short[slug]:>8}" for slug in slugs))
    wrong, said = [], dict[str, list[str]]()
    for state in STATES:
        row = f"{state.name:24}"
        for slug in slugs:
            verdict = columns[slug][state]
            word, _, rest = verdict.partition(" ")
            if not is_right(MODELS[slug], state, verdict):
                word = "WRONG"
                wrong.append(f"{slug}, {state.name}: {verdict}")
            elif word == ENDS and not state.silent:
                said.setdefault(rest.partition(": ")[2].partition(": ")[2], []).append(short[slug])
            row += f"{word:>8}"
        print(row)
    for message, who in said.items():
        print(f"    {message}  ({' '.join(sorted(set(who)))})")
    print("\n".join(wrong), end="\n" * bool(wrong))
    return len(wrong)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # some servers run as another user
        Path(folder, "hello.txt").write_text("hello\n", encoding="ascii")
        table = print_table(Path(sys.argv[1]).resolve(), Path(folder), sys.argv[2:] or list(MODELS))
        raise SystemExit(1 if table else 0)
