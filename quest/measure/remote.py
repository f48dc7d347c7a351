"""CLIENT=user@host: the load comes from another host, by ssh; the servers stay here.

One connection of OpenSSH for the whole of `bench`. At its far end a shell (remote.sh) runs one load
after the other in a temporary folder. It ends with our end of the connection, however that ends:
the load is then killed and the folder removed.

No time of one host is ever set against a time of the other. How long a load took and what it used
is measured by the host it ran on.
"""

import contextlib
import hashlib
import ipaddress
import json
import os
import re
import shlex
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from quest.ground.errors import InputError, RepetitionError, Unreachable
from quest.ground.foreign import anonymous
from quest.ground.places import PACKAGES, Answer, which
from quest.ground.processes import SLICE, Process, Tick, Usage, readable, running
from quest.measure import peers
from quest.measure.environment import ClientEnvironment
from quest.spec.model import NO_LOAD, Experiment, Variant

LOOPBACK = "127.0.0.1"
FOLDER = "client"  # of the results: they are no continuation of those over loopback
FAR_SIDE = Path(__file__).with_name("remote.sh")
# ServerAlive*: a host that is gone without a word is given up after 15 s.
OPTIONS = (
    "-T", "-x", "-a",
    "-o", "BatchMode=yes",
    "-o", "ConnectTimeout=10",
    "-o", "ServerAliveInterval=5",
    "-o", "ServerAliveCountMax=3",
    "-o", "ClearAllForwardings=yes",
    "-o", "ControlPath=none",
    "-o", "RemoteCommand=none",
)  # fmt: skip
READY_PATIENCE = 30.0
ANSWER_PATIENCE = 15.0  # for what takes no time, and for what a load has to say after its own
END_PATIENCE = 5.0
READY = b"remote.sh: ready\n"
TIMED_OUT = 124  # timeout(1)
# Among the command words of a load these name what is on this host.
PLACEHOLDERS_OF_THIS_HOST = re.compile(r"\{(scratch|docroot|files|bin|build)\}")
LOOPBACK_OPTIONS = ("--herd", "--source")  # their addresses are 127.x
TIMES = re.compile(r"(\d+)m([\d.]+)s")
#: What the far side answers, as remote.sh has it; the last field is how many bytes follow.
ANSWERS = {
    "put": re.compile(r"put (\d+) (\d+)"),
    "run": re.compile(r"run (\d+) (\d+(?:\.\d+)?) (\d+(?:\.\d+)?) (\S+) (\S+) (\d+) (\d+)"),
    "facts": re.compile(r"facts (\d+)"),
}


@dataclass(frozen=True)
class FinishedLoad:
    """What a load has printed and used, by the clocks of the host it ran on."""

    output: str
    usage: Usage
    wall_s: float
    here_s: float  # the same time by our clock


@dataclass
class Client:
    """The other host, while we are connected."""

    process: Process  # of ssh
    address: str = ""  # IPv4, at which it reaches us
    facts: dict[str, str] = field(default_factory=dict)  # as remote.sh prints them
    no_hammer: str = ""  # why it does not run there
    _received: bytes = b""

    # ---- what is asked of it

    def put(self, name: str, content: bytes) -> None:
        """A file in the folder there. RepetitionError if it cannot be kept."""
        (status,), _ = self._request(f"put {len(content)} {name}", content)
        if status != "0":
            raise RepetitionError(f"CLIENT cannot store {name}: {self.process.last_words()}")

    def run(
        self, name: str, words: list[str], timeout: float, tick: Tick = lambda: None, may_fail: bool = False
    ) -> FinishedLoad:
        """Runs a program there. RepetitionError if it takes longer than `timeout` seconds or fails (`may_fail`: and
        has printed nothing), Unreachable if the connection is lost.
        """
        began = time.monotonic()
        line = f"run {timeout:g} {shlex.join(words)}"
        (status, begin, end, user, system, length), printed = self._request(line, b"", timeout, tick)
        output, errors = (part.decode("utf-8", "replace") for part in (printed[: int(length)], printed[int(length) :]))
        here_s = time.monotonic() - began
        if status == str(TIMED_OUT):
            raise RepetitionError(f"{name} did not end within {timeout:g} s at CLIENT")
        if status != "0" and not (may_fail and output):
            # The last line, for a record: no address may be in it.
            *_, last = anonymous(errors).strip().splitlines() or [""]
            why = f": {last.strip().replace(self.address, 'SERVER')[:300]}" if last else ""
            raise RepetitionError(f"{name} ended with status {status} at CLIENT{why}")
        usage = Usage(parse_times(user), parse_times(system), 0, 0, 0, 0)
        return FinishedLoad(output, usage, float(end) - float(begin), here_s)

    def read_facts(self, server_address: str) -> None:
        """Asks what there is, and sets the address at which it reaches us: `server_address`, or
        where that is "" the one it was reached from. InputError where nothing can be measured.
        """
        lines = self._request("facts")[1].decode("utf-8", "replace").splitlines()
        self.facts = {name: value for name, _, value in (line.partition(" ") for line in lines)}
        if not (kernel := self.facts.get("kernel", "")).startswith("Linux "):
            raise InputError(f"CLIENT must run Linux, and runs {kernel or 'unknown'}")
        self.address = listening_address(server_address, self.facts.get("connection", ""))

    # ---- lines and bytes

    def start(self, script: str) -> None:
        """Sends remote.sh, and waits until it runs; skips what a login shell prints first."""
        self._send(script.encode())
        self._read_until(lambda: READY in self._received, READY_PATIENCE)
        self._received = self._received.partition(READY)[2]

    def _request(
        self, line: str, data: bytes = b"", patience: float = 0.0, tick: Tick = lambda: None
    ) -> tuple[list[str], bytes]:
        """The fields of the answer, and what follows it: as many bytes as its last field says.
        Unreachable if there is none within `patience` and ANSWER_PATIENCE.
        """
        self._send(f"{line}\n".encode() + data)
        self._read_until(lambda: b"\n" in self._received, patience + ANSWER_PATIENCE, tick)
        answer, _, self._received = self._received.partition(b"\n")
        match = ANSWERS[line.split()[0]].fullmatch(answer.decode("utf-8", "replace"))
        if not match:
            raise Unreachable(f'CLIENT answers "{answer.decode("utf-8", "replace")[:80]}"')
        *fields, length = match.groups()
        count = int(length)
        self._read_until(lambda: len(self._received) >= count, ANSWER_PATIENCE)
        following, self._received = self._received[:count], self._received[count:]
        return fields, following

    def _send(self, data: bytes) -> None:
        pipe = self.process.popen.stdin
        assert pipe is not None
        try:
            pipe.write(data)
            pipe.flush()
        except BrokenPipeError:
            raise self._lost() from None

    def _read_until(self, complete: Callable[[], bool], patience: float, tick: Tick = lambda: None) -> None:
        """Unreachable if it is not complete within `patience` seconds."""
        deadline = time.monotonic() + patience
        pipe = self.process.stdout.fileno()
        while not complete():
            left = deadline - time.monotonic()
            if left <= 0:
                raise Unreachable("CLIENT does not answer any more")
            if not readable(pipe, min(left, SLICE)):
                tick()
            elif data := os.read(pipe, 1 << 16):
                self._received += data
            else:
                raise self._lost()

    def _lost(self) -> Unreachable:
        self.process.reap(1.0)
        words = self.process.last_words()
        return Unreachable("the connection to CLIENT was lost" + (f": {words}" if words else ""))

    # ---- what it is

    def _number(self, name: str) -> int:
        return int(text) if (text := self.facts.get(name, "")).isdecimal() else 0

    def environment(self) -> ClientEnvironment:
        """For the results: what can change a number, and neither name nor address."""
        cpus = self._number("cpus")
        return {
            "kernel": anonymous(self.facts.get("kernel", "")),
            "machine": anonymous(self.facts.get("machine", "")),
            "cpu": anonymous(self.facts.get("cpu", "")),
            "cpus": cpus,
            "cores": self._number("cores") or cpus,
            "tools": {key: self.facts[key] for key in ("wrk", "h2load") if key in self.facts},
        }

    def fingerprint(self) -> str:
        """A hash of that: other results are of another host."""
        text = json.dumps(self.environment(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def why_not(self, experiment: Experiment, variant: Variant) -> Answer | None:
        """Why this load cannot come from there, or None."""
        if reason := why_only_from_here(experiment, variant):
            return Answer(False, f"not from another host: {reason}", "measure it without CLIENT")
        tool = variant.load
        if tool == "hammer":
            return Answer(False, self.no_hammer, "another CLIENT") if self.no_hammer else None
        if tool in self.facts:
            return None
        remedy = f"there: apt-get install {PACKAGES.get(tool, tool)}"
        return Answer(False, f"{tool} is not installed at CLIENT", remedy)


def parse_times(text: str) -> float:
    """Seconds of `1m2.5s`, as a shell's `times` prints it; 0 for any other text."""
    match = TIMES.fullmatch(text)
    return int(match.group(1)) * 60 + float(match.group(2)) if match else 0.0


# ---- what cannot be had -------------------------------------------------------------------------


def why_only_from_here(experiment: Experiment, variant: Variant) -> str:
    """Why a load must come from this host; "" if it need not."""
    tool = experiment.tools.get(variant.load)
    phases = [word for phase in experiment.phases for word in phase.args]
    words = [*(tool.args + tool.warmup if tool else ()), *phases, *variant.load_args]
    if variant.load == NO_LOAD:
        return "nothing is sent but by helpers"
    if experiment.helpers:
        return "its helpers run beside the server"
    if "namespace" in (*experiment.needs, *variant.needs):
        return "it needs a network namespace of its own"
    if any(metric.scalar.startswith("segments_") for metric in experiment.metrics):
        return "it counts the segments of a network of its own"
    if any(word.startswith(LOOPBACK_OPTIONS) for word in words):
        return "its clients come from many loopback addresses"
    if any(PLACEHOLDERS_OF_THIS_HOST.search(word) for word in words):
        return "the load uses a folder of this host"
    if variant.peer and any(LOOPBACK in word for word in peers.load(variant.peer).command):
        return f"{variant.peer} listens on {LOOPBACK} only"
    return ""


def why_no_load_from_afar(experiment: Experiment) -> str:
    """Why no load of this experiment can come from another host; "" if that of a variant can."""
    if experiment.kind != "load":
        return "no load, so nothing for CLIENT to do"
    reasons = [why_only_from_here(experiment, variant) for variant in experiment.variants]
    return f"not from another host: {reasons[0]}" if all(reasons) else ""


# ---- where the server listens -------------------------------------------------------------------


def listening_address(wanted: str, connection: str) -> str:
    """`wanted`, or where there is none what SSH_CONNECTION of the far side begins with: where it
    was reached from. InputError if it is no IPv4 address of this host.
    """
    address = wanted or connection.partition(" ")[0]
    if wanted:
        where, remedy = f"SERVER={wanted}", "it must be an address of this host"
    else:
        where = f"CLIENT reaches us at {address or 'an unknown address'}"
        remedy = "give SERVER=ADDR, an address of this host"
    try:
        ipaddress.IPv4Address(address)
    except ValueError:
        raise InputError(f"{where}, which is no IPv4 address: {remedy}") from None
    try:
        with socket.socket() as sock:
            sock.bind((address, 0))
    except OSError as error:
        raise InputError(f"{where}, but nothing can listen there ({error.strerror}): {remedy}") \
            from None  # fmt: skip
    return address


# ---- connecting ---------------------------------------------------------------------------------


def check_host(host: str) -> None:
    """InputError for what ssh would take for an option or for several words."""
    if not re.fullmatch(r"[^-\s]\S*", host):
        raise InputError(f'CLIENT: "{host}" is no host: write user@host')


@contextlib.contextmanager
def connected(host: str, hammer: Path, cpus: frozenset[int], server_address: str = "") -> Iterator[Client]:
    """The other host, `host` as user@host; the program `hammer` is copied there, and our end runs
    on `cpus`. InputError if it cannot be reached or does not let us in.
    """
    check_host(host)
    if not which("ssh"):
        raise InputError("CLIENT needs ssh: apt-get install openssh-client")
    script = FAR_SIDE.read_text(encoding="utf-8")
    # It comes by stdin, before anything else: the far side's login shell, whatever it is, has one
    # short line to read.
    start = f"exec sh -c 'eval \"$(head -c {len(script.encode())})\"'"
    command = ["ssh", *OPTIONS, "--", host, start]
    with running("ssh", command, cpus, pipe=True, feed=True) as process:
        client = Client(process)
        try:
            try:
                client.start(script)
            except Unreachable as error:
                raise InputError(f"CLIENT={host}: {process.last_words() or error}") from None
            client.read_facts(server_address)
            _copy_hammer(client, hammer)
            yield client
        finally:
            # The far side ends the load and removes its folder before ssh ends.
            if process.popen.stdin:
                with contextlib.suppress(BrokenPipeError):
                    process.popen.stdin.close()
            process.reap(END_PATIENCE)


def _copy_hammer(client: Client, hammer: Path) -> None:
    """Sets `no_hammer` where it does not run there."""
    here, there = os.uname().machine, client.facts.get("machine")
    if here != there:
        client.no_hammer = f"hammer is built for {here}, CLIENT is {there}"
    elif hammer.is_file():  # else it is not built, which programs.missing() says
        try:
            client.put("hammer", hammer.read_bytes())
            client.run("hammer", ["./hammer", "-h"], ANSWER_PATIENCE)
        except RepetitionError as error:
            client.no_hammer = f"hammer does not run there: {error}"
