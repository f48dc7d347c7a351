"""System-call traces and injected errors by strace(1), where the system allows tracing; else the
test is skipped. For servers whose operations are no system calls: the same by preload.c.
"""

import atexit
import errno
import functools
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conformance.process import Target, wait_until

#: A leak check stops the process with ptrace, which is taken while strace looks on, and which
#: SIGCONT from elsewhere upsets.
ENV = {"ASAN_OPTIONS": "detect_leaks=0:exitcode=99"}
FORKS = "clone,clone3,fork,vfork"
MOST_TRACED = 32 << 20  #: bytes of a trace that are looked at
CALL = re.compile(r"(?P<pid>\d+) +(?P<name>\w+)\((?P<arguments>.*)\) += (?P<result>-?\w+)(?: (?P<error>\w+))?")


@dataclass(frozen=True)
class Call:
    """A system call that has returned, as strace prints it."""

    pid: int
    name: str
    arguments: str
    result: str  #: a number, or ? of a call that did not return
    error: str = ""  #: its name, as EAGAIN, of a call that failed

    @property
    def succeeded(self) -> bool:
        return not self.result.startswith("-")


def parsed(lines: Iterable[str]) -> list[Call]:
    """The calls of lines that begin with the process (strace -f); what else strace prints is left out."""
    matches = filter(None, map(CALL.match, lines))
    return [Call(int(m["pid"]), m["name"], m["arguments"], m["result"], m["error"] or "") for m in matches]


@functools.cache
def unavailable() -> str | None:
    """Why nothing can be traced here, with the remedy; None where it can."""
    strace = shutil.which("strace")
    if strace is None:
        return "strace is not installed (apt-get install strace)"
    probe = [strace, "-DDD", "-f", "-o", "/dev/null", "-e", "inject=sync:error=EAGAIN", "true"]
    done = subprocess.run(probe, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines()[-1:] or ["strace failed"]
        return f"tracing is not permitted here: {reason[0]} (in a container: --cap-add SYS_PTRACE)"
    return None


def if_there(calls: str) -> str:
    """The same for strace, which refuses names that this processor does not have: arm64 has neither
    fork nor select, poll or epoll_wait.
    """
    return ",".join("?" + name for name in calls.split(","))


class Trace:
    """One strace of a server and its children. The server keeps the process number it would have
    without.
    """

    env = ENV

    def __init__(
        self,
        output: Path,
        calls: str,
        inject: str | Sequence[str] = (),
        path: Path | None = None,
    ) -> None:
        if (reason := unavailable()) is not None:
            pytest.skip(reason)
        self.output = output
        self._arguments = ["-e", f"trace={if_there(calls)}"]
        for one in [inject] if isinstance(inject, str) else inject:
            names, colon, how = one.partition(":")
            self._arguments += ["-e", f"inject={if_there(names)}{colon}{how}"]
        if path is not None:  # only calls on this file
            self._arguments += ["-P", str(path)]

    def wrapper(self) -> list[str]:
        """-DDD: strace watches from a session of its own, and the server stays our child."""
        strace = shutil.which("strace") or "strace"
        return [strace, "-DDD", "-f", "-qq", "-s", "64", "-o", str(self.output), *self._arguments]

    def lines(self) -> list[str]:
        with self.output.open("rb") as file:  # of a server that never sleeps it may be a gigabyte
            return file.read(MOST_TRACED).decode(errors="replace").splitlines()

    def completed(self) -> list[str]:
        """A line for each call that has returned, in that order, and in one piece: where others ran
        meanwhile strace writes two.
        """
        found = []
        unfinished: dict[str, str] = {}
        for line in self.lines():
            pid = line.split(" ", 1)[0]
            if line.endswith("<unfinished ...>"):
                unfinished[pid] = line[: -len("<unfinished ...>")]
                continue
            resumed = re.match(r"\d+ +<\.\.\. \w+ resumed>(.*)", line)
            if resumed is not None and pid in unfinished:
                line = unfinished.pop(pid) + resumed[1]
            found.append(line)
        return found

    def calls(self) -> list[tuple[int, str, str]]:
        """(pid, call, result) of all completed calls; a result is a number or an error's name."""
        return [(c.pid, c.name, c.error if c.result == "-1" else c.result) for c in parsed(self.completed())]

    def names(self) -> list[str]:
        return [name for _, name, _ in self.calls()]

    def count(self, *names: str) -> int:
        return sum(name in names for name in self.names())

    def saw(self, result: str, limit: float) -> bool:
        """Whether any call ends so: with this error, for instance."""
        return self.has(lambda calls: any(r == result for *_, r in calls), limit)

    def has(self, true: Callable[[list[tuple[int, str, str]]], bool], limit: float) -> bool:
        """strace writes a moment later than the server acts."""
        return wait_until(lambda: self.output.exists() and true(self.calls()), limit)


# ---- what preload.c does


@functools.cache
def _preloaded(*flags: str) -> Path:
    """Our library, compiled once a session, and removed with it."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no compiler to build preload.c with")
    folder = Path(tempfile.mkdtemp(prefix="preloaded-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)  # for servers that run as somebody else
    library, source = folder / "preload.so", Path(__file__).with_name("preload.c")
    command = [compiler, "-std=c11", "-D_GNU_SOURCE", "-shared", "-fPIC", *flags]
    subprocess.run([*command, "-o", library, source, "-ldl"], check=True, timeout=60)
    return library


def preload(target: Target, *flags: str, **more: str) -> dict[str, str]:
    """The environment in which preload.c gets into a server, if it can."""
    if target.variant not in ("glibc", "asan")[: 1 if flags else 2]:
        pytest.skip("preload.c gets into programs that are linked dynamically")
    sanitizer = f"{ENV['ASAN_OPTIONS']}:verify_asan_link_order=0"
    return {"LD_PRELOAD": str(_preloaded(*flags)), "ASAN_OPTIONS": sanitizer, **more}


#: operation of io_uring -> the system calls that would do the same
OPERATIONS = {
    "POLL": ("poll_add",),
    "ACCEPT": ("accept", "accept4"),
    "CLOSE": ("close",),
    "STATX": ("statx",),
    "READ": ("read", "pread64", "readv", "preadv", "sendfile", "splice"),
    "SEND": ("sendto", "sendmsg", "writev"),
    "RECV": ("recvfrom", "recvmsg"),
    "OPENAT2": ("openat2",),
    "SHUTDOWN": ("shutdown",),
}


class RingTrace(Trace):
    """The same for a server that has a ring. Its operations are shown as the first of the calls
    they replace.
    """

    def __init__(self, target: Target, output: Path, inject: str | Sequence[str] = ()) -> None:
        self.output = output
        self.env = preload(target, RING_WATCH=str(output))
        if isinstance(inject, str):
            release = tuple(int(n) for n in os.uname().release.split(".")[:2])
            if release < (6, 10):
                pytest.skip("operations that fail when told to need Linux 6.10")
            calls, error, when = inject.split(":")
            operation = next(op for op, names in OPERATIONS.items() if names[0] in calls.split(","))
            number = getattr(errno, error.removeprefix("error="))
            first, last, step = re.fullmatch(r"when=(\d+)(?:\.\.(\d+))?(?:\+(\d+))?", when).groups()  # type: ignore[union-attr]
            last = last or (1 << 30 if step else first)
            self.env["RING_INJECT"] = f"{operation}:{number}:{first}:{last}:{step or 1}"

    def wrapper(self) -> list[str]:
        return []

    def flags(self, operation: str) -> list[int]:
        """Of each that was submitted, the flags that go with the operation."""
        submitted = [line.split() for line in self.lines() if line.startswith("submitted")]
        return [int(words[-1], 16) for words in submitted if words[2] == operation]

    def calls(self) -> list[tuple[int, str, str]]:
        """Each io_uring_enter, and after it what it brought to an end."""
        found = []
        begun: dict[str, str] = {}
        for line in self.lines():
            what, *words = line.split()
            if what == "entered":
                found.append((0, "io_uring_enter", "0"))
            elif what == "submitted":
                begun[words[0]] = words[1]
            elif words[0] in begun:
                result, name = int(words[1]), begun[words[0]]
                name = OPERATIONS.get(name, (name,))[0]
                found.append((0, name, errno.errorcode[-result] if result < 0 else words[1]))
        return found
