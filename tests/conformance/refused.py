"""What becomes of a server, and of its clients, when the system refuses one call of it, once or for
ever, while it serves: the table server x call x errno. test_refused.py judges a sample of it.

    python3 -m tests.conformance.refused BUILD [SERVER...]
        tries all of it, prints it, and ends with 1 if there is a hole: make server-tables

The calls are those that strace sees in a short scene, so a new call of a server is in the table
without a word here, or ends it: each must be in ERRORS or in NEVER.
"""

import contextlib
import errno
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.conformance import proc, tracing
from tests.conformance.matrix import FOLDERS, MODELS
from tests.conformance.process import Launch, Patience, Server, Target, wait_until
from tests.conformance.site import HELLO, Site, noise
from tests.conformance.wire import ASK, LAST, request

TIME_OUT = 2  #: seconds, -t
STUCK = 0.4  #: seconds without a byte
AT_ONCE = 1.3  #: seconds: less than the time-out, so it was not that
SPIN = 120  #: calls in a second: the shortest rest is 10 ms
#: ... of errors of one connection: in each process accept_must_pause() takes 640 for that
SPIN_OF_CONNECTIONS = 1500
SPARE_LINES = 20  #: on stderr, in a second
JOBS = 10
TRIES = 5  #: where strace ended in the middle of a call
STRACE = shutil.which("strace") or "strace"

# ---- what is refused

#: Call -> what its manual page says that the system, and not the program, may be the reason of.
ERRORS = {
    "accept": "ECONNABORTED EHOSTUNREACH EPROTO EPERM EMFILE ENFILE ENOBUFS ENOMEM EIO EBADF",
    "brk": "ENOMEM",
    "clone": "EAGAIN ENOMEM EPERM",
    "clock_nanosleep": "EINTR",
    "close": "EINTR EIO ENOSPC",
    "epoll_ctl": "ENOMEM ENOSPC EBADF ENOENT EEXIST EPERM",
    "epoll_wait": "EINTR EBADF EINVAL",
    "fcntl": "EPERM EACCES EINTR EBADF EINVAL",
    "fstat": "EIO ENOMEM EACCES EOVERFLOW",
    "fstatfs": "EIO ENOSYS",
    "getsockopt": "ENOBUFS ENOPROTOOPT",
    "io_getevents": "EINTR EINVAL",
    "io_submit": "EAGAIN EINVAL ENOSYS",
    "io_uring_enter": "EINTR EAGAIN EBUSY ENOMEM EBADR EBADF ENXIO EINVAL",
    "ioctl": "ENOTTY EINVAL EIO",
    "madvise": "EAGAIN ENOMEM EINVAL",
    "mmap": "ENOMEM EAGAIN ENFILE",
    "mprotect": "ENOMEM EACCES",
    "munmap": "ENOMEM",
    "open": "EMFILE ENFILE ENOMEM EACCES EPERM EIO EINTR ELOOP EAGAIN ENOSYS",
    "poll": "EINTR ENOMEM EINVAL",
    "prctl": "EINVAL EPERM",
    "read": "EINTR EIO EAGAIN EISDIR ENOMEM",
    "readahead": "EINVAL EBADF",
    "recv": "EINTR ECONNRESET ETIMEDOUT ENOMEM ENOTCONN EIO EBADF",
    "rt_sigtimedwait": "EINTR EINVAL",
    "select": "EINTR ENOMEM EBADF EINVAL",
    "send": "EINTR ECONNRESET EPIPE ENOBUFS ENOMEM EPERM EIO",
    "sendfile": "EINTR EIO ENOMEM EINVAL EOVERFLOW EPIPE",
    "setsockopt": "ENOBUFS ENOMEM EINVAL ENOPROTOOPT EPERM",
    "shutdown": "ENOTCONN ENOBUFS EIO",
    "statx": "EIO ENOMEM EACCES",
    "wait": "ECHILD EINTR",
    "write": "EINTR EIO ENOSPC EPIPE",
}
#: The same by another name.
ALIASES = {
    "accept4": "accept", "clone3": "clone", "fork": "clone", "vfork": "clone",
    "epoll_pwait": "epoll_wait", "epoll_pwait2": "epoll_wait", "newfstatat": "fstat",
    "openat": "open", "openat2": "open", "ppoll": "poll", "pselect6": "select",
    "pread64": "read", "preadv2": "read", "preadv": "read", "readv": "read",
    "recvfrom": "recv", "recvmsg": "recv", "sendto": "send", "sendmsg": "send", "writev": "write",
    "wait4": "wait", "waitid": "wait", "nanosleep": "clock_nanosleep", "stat": "fstat",
}  # fmt: skip
#: What the first process says when all the others end: each of those has said why.
OF_THE_FIRST = ("process could be kept", "could be started again", "lines are missing here")
#: Not in the table, and why.
NEVER = {
    "they fail for wrong arguments only": {
        "alarm", "clock_gettime", "exit", "exit_group", "getpid", "getppid", "gettid", "kill",
        "lseek", "rseq", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sched_yield",
        "set_robust_list", "set_tid_address", "sched_getaffinity", "sched_getparam",
        "sched_getscheduler", "tgkill", "uname", "getrandom",
        "setitimer", "setpgid", "umask", "arch_prctl", "prlimit64", "membarrier",
    },
    "EINTR is how they return": {"pause", "restart_syscall", "rt_sigsuspend"},
    "the C library's own: it ends the program if one fails": {"futex"},
}  # fmt: skip
EXEMPT = {name: why for why, names in NEVER.items() for name in names}
#: The operations of a ring, which fail by preload.c.
OPERATIONS = {
    "ACCEPT": ERRORS["accept"] + " EBADR",  # that: its completion is lost (preload.c)
    "OPENAT2": "EMFILE ENFILE ENOMEM EACCES EIO EINTR ELOOP",
    "POLL": "ENOMEM",
    "READ": "EINTR EIO EAGAIN ENOMEM",
    "RECV": ERRORS["recv"] + " ENOBUFS",
    "SEND": ERRORS["send"],
    "SHUTDOWN": ERRORS["shutdown"],
    "STATX": ERRORS["statx"],
    "URING_CMD": "EOPNOTSUPP ENOMEM",
}
#: That an interrupted call is interrupted again for ever is no error but a storm of signals. (Every
#: second would hit only one of two calls that are made in turn.)
EVERY_THIRD = "1+3"
STORMS = ("EINTR", "EAGAIN", "EBUSY")
OF_ONE_CONNECTION = ("ECONNABORTED", "EHOSTUNREACH", "EPROTO")


@dataclass(frozen=True)
class Row:
    """A server in one of its ways."""

    slug: str
    options: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join([self.slug, *self.options])


ROWS = (
    Row("01-iterative"),
    Row("02-fork", ("-w", "4")),
    Row("02-inetd"),
    Row("03-prefork", ("-w", "2")),
    Row("04-threads"),
    Row("05-pool", ("-w", "2")),
    *(Row(slug) for slug in ("05b-nonblocking", "06-select", "07-poll", "08-sigio")),
    *(Row(slug) for slug in ("09-epoll", "09-epoll-edge", "10-kqueue", "11-sendfile")),
    Row("12-aio"),
    Row("12-aio", ("-m", "unix")),
    Row("12-aio", ("-d", "linux")),
    Row("12-aio", ("-d", "posix")),
    *(Row(slug) for slug in ("13-uring", "14-owfat", "15-slashdot", "16-coroutines")),
)


@dataclass(frozen=True)
class Cell:
    row: Row
    call: str
    error: str
    operation: bool = False  #: of a ring

    def __str__(self) -> str:
        return f"{self.row}: {self.call}: {self.error}"

    @property
    def by_preload(self) -> bool:
        return self.operation or self.call == "close"

    @property
    def accepts(self) -> bool:
        return self.call.lower().startswith("accept")

    @property
    def spin(self) -> int:
        return SPIN_OF_CONNECTIONS if self.accepts and self.error in OF_ONE_CONNECTION else SPIN


def number_of(cell: Cell | None) -> int:
    return int(getattr(errno, cell.error)) if cell is not None else 0


def errors_of(call: str) -> list[str]:
    """Not those for which there is no sense in it: see EXEMPT."""
    if call in EXEMPT:
        return []
    known = ERRORS.get(ALIASES.get(call, call))
    if known is None:
        raise SystemExit(f"refused.py: no errors are named for the call {call}")
    return known.split()


# ---- clients


def ask(address: tuple[str, int], data: bytes = LAST, limit: float = TIME_OUT + 1.5) -> str:
    """How it ends: a status, "closed", "late" (by the time-out, or not at all)."""
    begun, got = time.monotonic(), b""
    try:
        with socket.create_connection(address, timeout=limit) as s:
            s.sendall(data)
            while more := s.recv(65536):
                got += more
    except TimeoutError:
        return "late"
    except OSError:
        pass
    if got.startswith(b"HTTP/1.1 ") and (got[9:12] != b"200" or got.endswith(HELLO)):
        return got[9:12].decode()
    return "closed" if time.monotonic() - begun < AT_ONCE else "late"


def serves(address: tuple[str, int]) -> bool:
    return ask(address) == "200"


def answers(s: socket.socket, data: bytes, length: int) -> bool:
    """Whether so many bytes come; False also where nothing does, for a while."""
    got = 0
    with contextlib.suppress(OSError):
        s.sendall(data)
        while got < length and (more := s.recv(1 << 17)):
            got += len(more)
    return got >= length


def scene(address: tuple[str, int]) -> list[socket.socket]:
    """Requests kept alive, a file, a pipelined pair, one without a word, one that leaves at once.
    Returns those that got neither a reply nor an end.
    """
    pending = []
    file = request("/file.bin", "Connection: close")
    for what in ([ASK, ASK, file], [ASK + LAST], [request("/nothing", "Connection: close")], []):
        s = socket.create_connection(address, timeout=STUCK)
        for data in what:
            if not answers(s, data, 300_007 if data is file else len(HELLO)):
                break
        try:
            while what and s.recv(1 << 17):
                pass
        except TimeoutError:
            pending.append(s)
            continue
        except OSError:
            pass
        s.close()
    return pending


def forgotten(pending: list[socket.socket]) -> int:
    """How many of them have still got no end when their time is up."""
    left, end = 0, time.monotonic() + TIME_OUT + 2.5
    for s in pending:
        try:
            s.settimeout(max(0.01, end - time.monotonic()))
            while s.recv(1 << 17):
                pass
        except TimeoutError:
            left += 1
        except OSError:
            pass
        s.close()
    return left


# ---- the server, and what fails in it


@dataclass
class Refusal:
    """Errors that are on while it is entered; when it is left, they are over."""

    server: Server
    cell: Cell | None
    output: Path
    switch: Path

    def __post_init__(self) -> None:
        self.tracer: subprocess.Popen[str] | None = None

    def begin(self, when: str) -> None:
        if self.cell is not None and self.cell.by_preload:
            self.switch.touch()
            return
        if self.server.target.model.under_inetd:  # its program is started under strace
            self.switch.write_text(when)
            return
        what = ["-e", "trace=all"]
        if self.cell is not None:
            inject = f"inject={self.cell.call}:error={self.cell.error}:when={when}"
            what = ["-e", f"trace={self.cell.call}", "-e", inject]
        self.attach(what)

    def attach(self, what: list[str]) -> None:
        pids = proc.session(self.server.process.pid)
        named = [word for pid in pids for word in ("-p", str(pid))]
        command = [STRACE, "-f", "-qq", "-o", str(self.output), *what, *named]
        self.tracer = subprocess.Popen(command, stderr=subprocess.DEVNULL, text=True)

        def traced() -> bool:
            tasks = [task for pid in pids for task in proc.tasks(pid)]
            found = all("TracerPid:\t0\n" not in proc.text(task, "status") for task in tasks)
            return found or not self.server.alive()  # the call it slept in was refused at once

        wait_until(traced, 5.0)

    def end(self) -> None:
        self.switch.unlink(missing_ok=True)
        if self.tracer is not None:
            self.tracer.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.tracer.wait(2.0)
            self.tracer.kill()  # it may wait for a thread that has ended meanwhile
            self.tracer.wait()

    def count(self) -> int:
        """Calls that were refused."""
        if not self.output.exists():
            return 0
        text = self.output.read_text(errors="replace")
        if self.cell is not None and self.cell.operation:
            return text.count(f" {self.cell.call} ")
        return text.count("(INJECTED)")


class Trial:
    """One server, in which one call fails with one error."""

    def __init__(self, build: Path, site: Site, folder: Path, row: Row, cell: Cell | None) -> None:
        model = MODELS[row.slug]
        binary = build / FOLDERS["glibc"] / (model.program or model.slug)
        self.target = Target(model, "glibc", binary)
        self.folder, self.site, self.row, self.cell = folder, site, row, cell
        self.output, self.switch = folder / "trace", folder / "switch"

    def start(self, times: str) -> Refusal:
        self.output.unlink(missing_ok=True)
        env: dict[str, str] = {}
        wrapper: tuple[str, ...] = ()
        last = 1 if times == "1" else 1 << 30
        number = number_of(self.cell)
        if self.cell is not None and self.cell.operation:
            if self.cell.accepts:  # one submission, made at the start, brings many
                self.switch.touch()
            step = 3 if times == EVERY_THIRD else 1
            inject = f"{self.cell.call}:{number}:1:{last}:{step}"
            env = tracing.preload(
                self.target, RING_WATCH=str(self.output), RING_INJECT=inject,
                FAIL_SWITCH=str(self.switch),
            )  # fmt: skip
        elif self.cell is not None and self.cell.by_preload:
            env = tracing.preload(self.target, CLOSE_FAILS=f"{number}:1:{last}", FAIL_SWITCH=str(self.switch))
        elif self.target.model.under_inetd:
            wrapper = self.under_inetd(times)
        options = ("-t", str(TIME_OUT), *self.row.options)
        launch = Launch(self.site.root, options, as_user=wrapper, env=env)
        server = Server(self.target, launch, Patience(1.0))
        return Refusal(server, self.cell, self.output, self.switch)

    def under_inetd(self, times: str) -> tuple[str, ...]:
        """Each connection's process has a strace of its own, and the calls of its start are not for
        this table: they fail from the first that they have in common with none of it.
        """
        strace = [STRACE, "-DDD", "-f", "-qq", "-A", "-o", str(self.output)]
        if self.cell is None:
            return (*strace, "-e", "trace=all")
        inject = f"inject={self.cell.call}:error={self.cell.error}:when={times}"
        plain = 'exec "$@"'
        traced = f'exec {" ".join(strace)} -e trace={self.cell.call} -e {inject} "$@"'
        return ("/bin/sh", "-c", f"if [ -e {self.switch} ]; then {traced}; else {plain}; fi", "sh")


def complaint(refusal: Refusal) -> str:
    """Of a server that has ended: what is wrong with that, "" for one line and status 1."""
    server = refusal.server
    status = server.process.wait()
    lines = {re.sub(r"\d+ lines", "N lines", line) for line in server.stderr().splitlines()}
    lines = {line for line in lines if not any(word in line for word in OF_THE_FIRST)}
    no_line = refusal.cell is not None and refusal.cell.call == "write"  # what it would be said by
    if status == 1 and (len(lines) == 1 or (no_line and not lines)):
        return ""
    return f"ENDS with {status} and {sorted(lines)}"


def once(refusal: Refusal) -> str:
    server, pending = refusal.server, []
    with contextlib.suppress(OSError):  # it may end
        pending = scene(server.address)
    refusal.end()  # each thread and each process has its own first call
    back = wait_until(lambda: not server.alive() or serves(server.address), 10.0)
    left = forgotten(pending)
    if not server.alive():
        return complaint(refusal) or "ends"
    if not back:
        return "DEAF"
    return f"FORGETS {left}" if left else "answers"


def fate(refusal: Refusal, first: str) -> str:
    """What a client gets while the errors last, and what the server does meanwhile."""
    server = refusal.server
    with contextlib.ExitStack() as stack:
        if server.target.model.capacity > 1:
            for data in (b"", LAST[:20]):
                with contextlib.suppress(OSError):
                    s = socket.create_connection(server.address, timeout=1.0)
                    stack.enter_context(s).sendall(data)
        time.sleep(0.1)
        calls, lines, used = refusal.count(), server.stderr().count("\n"), cpu(server)
        begun = time.monotonic()
        time.sleep(0.7)
        seconds = time.monotonic() - begun
        rate = (refusal.count() - calls) / seconds
        said = (server.stderr().count("\n") - lines) / seconds
        busy = (cpu(server) - used) / seconds
    assert refusal.cell is not None
    if rate > refusal.cell.spin or busy > 0.5:
        return f"SPINS {rate:.0f}/s, {busy:.0%}"
    if said > SPARE_LINES:
        return f"FLOODS {said:.0f} lines/s"
    if first == "late":
        return "waits" if os.strerror(number_of(refusal.cell)) in server.stderr() else "DEAF"
    return {"200": "answers", "closed": "closes"}.get(first, first)


def cpu(server: Server) -> float:
    return sum(proc.cpu_seconds(pid) for pid in proc.session(server.process.pid))


def for_ever(refusal: Refusal) -> str:
    server = refusal.server
    assert refusal.cell is not None
    accepts = refusal.cell.accepts  # a client that is not accepted waits for ever: one is enough
    with contextlib.suppress(OSError):  # of a server that ends
        for s in scene(server.address) if not accepts else []:
            s.close()
    first = ask(server.address, limit=AT_ONCE if accepts else TIME_OUT + 1.5)
    if first in ("closed", "late"):  # perhaps it ends; a first process starts others some times
        model = server.target.model
        anew = model.workers > 0 and not model.threaded and server.stderr() != ""
        anew = anew and (not accepts or refusal.cell.error == "EBADF")
        wait_until(lambda: not server.alive(), 10.0 if anew else 0.3)
    found = fate(refusal, first) if server.alive() else ""
    if not server.alive():
        return complaint(refusal) or "ends"
    refusal.end()
    if not wait_until(lambda: serves(server.address), 10.0):
        return f"{found}, then {'DEAF' if server.alive() else complaint(refusal) or 'ENDS'}"
    return found


def stops(server: Server) -> str:
    if not server.alive():
        return ""
    server.signal(15)
    if server.target.model.under_inetd:
        server.wait(10.0)
        return ""
    status = server.wait(20.0)
    return "" if status == 0 else f", then STOPS with {status}"


@contextlib.contextmanager
def trial(build: Path, site: Site, row: Row, cell: Cell | None, times: str) -> Iterator[Refusal]:
    with tempfile.TemporaryDirectory(prefix="refused-") as name:
        refusal = Trial(build, site, Path(name), row, cell).start(times)
        try:
            refusal.begin(times)
            yield refusal
        finally:
            refusal.end()
            refusal.server.release()


def is_cut_short(refusal: Refusal) -> bool:
    """strace puts a call that there is not in the place of a refused one, and its error in the place of the result. If
    strace is ended in between, the server sees the result: ENOSYS, which it could not see otherwise.
    """
    assert refusal.cell is not None
    return refusal.cell.error != "ENOSYS" and os.strerror(errno.ENOSYS) in refusal.server.stderr()


def tried(build: Path, site: Site, cell: Cell, times: str, how: Callable[[Refusal], str]) -> str:
    for _ in range(TRIES):
        with trial(build, site, cell.row, cell, times) as refusal:
            try:
                verdict = how(refusal)
                refusal.end()
                verdict += stops(refusal.server)
            except (OSError, AssertionError) as error:
                verdict = f"FAILS: {error}"
            if not is_cut_short(refusal):
                break
    return verdict


def judge(build: Path, site: Site, cell: Cell) -> tuple[str, str]:
    """What becomes of it when the call is refused once, and for ever."""
    for_all_time = EVERY_THIRD if cell.error in STORMS else "1+"
    return tried(build, site, cell, "1", once), tried(build, site, cell, for_all_time, for_ever)


def after_the_start(lines: list[str]) -> list[str]:
    """Of each process that inetd has started, what it does from its last signal set up on. What it
    calls before, too, cannot be refused here alone.
    """
    processes: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        processes[line.split(" ", 1)[0]].append(line)
    before, after = set(), []
    for mine in processes.values():
        last = max([i for i, line in enumerate(mine) if "rt_sigaction(SIGINT" in line], default=0)
        before |= {line.split(None, 1)[1].split("(")[0] for line in mine[:last]}
        after += mine[last:]
    return [line for line in after if line.split(None, 1)[1].split("(")[0] not in before]


def calls_of(build: Path, site: Site, row: Row) -> list[str]:
    """Those that it makes while it serves."""
    with trial(build, site, row, None, "1") as refusal:
        for s in scene(refusal.server.address):
            s.close()
        serves(refusal.server.address)
        time.sleep(0.2)
        refusal.end()
        time.sleep(0.2)
        lines = refusal.output.read_text(errors="replace").splitlines()
    if refusal.server.target.model.under_inetd:
        lines = after_the_start(lines)
    names = {line.split(None, 1)[1].split("(")[0] for line in lines if "(" in line}
    return sorted(name for name in names if name.isidentifier())


def cells_of(build: Path, site: Site, row: Row) -> list[Cell]:
    cells = [Cell(row, call, error) for call in calls_of(build, site, row) for error in errors_of(call)]
    if MODELS[row.slug].ring:
        cells += [Cell(row, call, error, True) for call, errors in OPERATIONS.items() for error in errors.split()]
    return cells


def is_hole(verdicts: tuple[str, str]) -> bool:
    return any(word.isupper() and len(word) > 3 for text in verdicts for word in text.split())


def own_site(folder: Path) -> Site:
    site = Site(folder)
    site.write("file.bin", noise(300_007))
    return site


# ---- the table


def show(row: Row, found: dict[Cell, tuple[str, str]]) -> None:
    print(f"\n{row}")
    for call in sorted({cell.call for cell in found}):
        groups: dict[str, list[str]] = defaultdict(list)
        for cell, (first, ever) in found.items():
            if cell.call == call:
                groups[f"{first} / {ever}"].append(cell.error)
        for number, (verdict, errors) in enumerate(groups.items()):
            print(f"  {call if number == 0 else '':16} {verdict:28} {' '.join(errors)}")
    sys.stdout.flush()


def main(build: str, *slugs: str) -> int:
    if (reason := tracing.unavailable()) is not None:
        print(f"refused.py: {reason}", file=sys.stderr)
        return 1
    rows = [row for row in ROWS if not slugs or row.slug in slugs]
    holes, number = [], 0
    print("Server, call: refused once / for ever: errors. waits: says why, and serves afterwards.")
    with tempfile.TemporaryDirectory(prefix="refused-") as name, ThreadPoolExecutor(JOBS) as pool:
        Path(name).chmod(0o755)
        site = own_site(Path(name))
        for row in rows:
            cells = cells_of(Path(build), site, row)
            verdicts = pool.map(lambda cell: judge(Path(build), site, cell), cells)
            found = dict(zip(cells, verdicts, strict=True))
            show(row, found)
            holes += [(cell, both) for cell, both in found.items() if is_hole(both)]
            number += len(found)
    print(f"\n{number} cells, {len(holes)} holes")
    for cell, both in holes:
        print(f"  {cell}: {both[0]} / {both[1]}")
    return 1 if holes else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
