"""Every peer of benchmarks/peers, through the harness's own code: started, asked, ended, gone."""

import contextlib
import dataclasses
import http.client
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from quest.ground import guard, processes
from quest.ground.errors import InputError, RepetitionError, Unsupported
from quest.ground.guard import session_members
from quest.ground.processes import Process
from quest.measure import counters, docroot, environment, needs, peers
from quest.measure.peers import Peer
from quest.spec.model import Params
from tests.harness.made_up import BENCHMARKS, await_

TREE = BENCHMARKS.parent
BIN = TREE / "build" / "bin"
SMALL, BIG = 1000, 102400
TICK = 1 / os.sysconf("SC_CLK_TCK")
# Peer file, and what differs from its defaults.
CASES: list[tuple[str, Params]] = [
    ("nginx", {}),
    ("nginx", {"workers": 4, "sendfile": "off", "tcp_nopush": "off", "open_file_cache": "max=99"}),
    ("nginx-best", {}),
    ("nginx-crowd", {}),
    ("nginx-aio", {}),
    ("nginx-aio", {"directio": "4k"}),
    ("lighttpd", {}),
    ("lighttpd", {"workers": 4, "backend": "writev", "stat_cache": "simple"}),
    ("lighttpd-crowd", {}),
    ("lighttpd-stat-helper", {}),
    ("lighttpd-stat-helper", {"transport": "tcp", "threads": 1}),
    ("apache-prefork", {"workers": 8}),
    ("apache-event", {}),
    ("apache-event", {"workers": 2, "threads": 16, "sendfile": "off", "mmap": "on"}),
    ("h2o", {}),
    ("h2o", {"workers": 2}),
    ("perlbal", {}),
    ("perlbal", {"aio_mode": "none"}),
    ("tcpserver", {}),
    ("tcpsvd", {}),
    ("openbsd-inetd", {}),
    ("xinetd", {}),
    ("systemd-socket-activate", {}),
]


#: They serve a hundred bytes and no files; nginx-package has a backlog of 511 and not ours.
#: tests/reader/test_which_live.py starts those of Node and Python.
RUNTIMES = {"nginx-package", "go", "java-platform", "java-virtual", "node", "python-asyncio", "python-threads"}


def installed(name: str) -> Peer:
    """Skips where it cannot run here, for the same reasons as the harness."""
    peer = peers.load(name, BENCHMARKS / "peers")
    for need in (peer.program, *peer.needs):
        answer = needs.probe(need)
        if not answer.ok:
            pytest.skip(f"{answer.reason}: {answer.remedy}")
    for helper in peer.helpers:
        program = Path(helper).name
        lacking = needs.missing_library(program, TREE)
        if lacking is not None:
            pytest.skip(f"{lacking.reason}: {lacking.remedy}")
        if "/runtimes/" in helper and not Path(helper.format(build=BIN.parent)).is_file():
            pytest.skip(f"{program}: make compiles it when an experiment asks for it")
        assert Path(helper.format(build=BIN.parent, bin=BIN)).is_file(), f"{program} is not there: make servers"
    return peer


@pytest.fixture(scope="module", autouse=True)
def heir() -> None:
    """As in a measurement: what a peer leaves behind is ours to end and to count."""
    processes.become_subreaper()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "docroot"
    root.mkdir()
    for name, size in (("small.html", SMALL), ("big.bin", BIG)):
        docroot.write_file(root / name, name, size)
    (tmp_path / "scratch").mkdir()
    return tmp_path


def serve(
    peer: Peer, folder: Path, values: Params, cpus: frozenset[int] = frozenset()
) -> Iterator[tuple[Process, int]]:
    whole: Params = {"docroot": str(folder / "docroot"), "bin": str(BIN), **values}
    probe = peers.Probe("small.html", SMALL)
    with peers.serving(peer, whole, folder / "scratch", probe, cpus) as (process, port):
        yield process, port


def get(connection: http.client.HTTPConnection, name: str, **headers: str) -> tuple[int, bytes]:
    connection.request("GET", f"/{name}", headers=headers)
    reply = connection.getresponse()
    return reply.status, reply.read()


def expect_the_files(port: int) -> None:
    """All over one connection: it is kept."""
    big = docroot.file_content("big.bin", BIG)
    connection = http.client.HTTPConnection(peers.ADDRESS, port, timeout=20)
    connection.connect()
    socket = connection.sock
    assert get(connection, "small.html") == (200, docroot.file_content("small.html", SMALL))
    assert get(connection, "big.bin") == (200, big)
    assert get(connection, "big.bin", Range="bytes=70001-70999") == (206, big[70001:71000])
    assert connection.sock is socket
    assert get(connection, "missing.html")[0] == 404
    connection.close()


def keep_busy(port: int, session: int, seconds: float) -> float:
    """Asks until the peer has worked for so long; what it has used by then."""
    url = f"http://{peers.ADDRESS}:{port}/big.bin"
    command = [str(BIN / "hammer"), "-k", "-c", "4", "-n", "1000", url]
    deadline = time.monotonic() + 30
    while (used := counters.session_cpu_s(session)) < seconds and time.monotonic() < deadline:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return used


def affinities(session: int) -> Iterator[set[int]]:
    """Of all its threads that have not just ended."""
    for pid in session_members(session):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for task in os.listdir(f"/proc/{pid}/task"):
                yield os.sched_getaffinity(int(task))


def open_files(session: int) -> Iterator[int]:
    """The soft limit of each process that has not just ended."""
    for pid in session_members(session):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            limits = Path(f"/proc/{pid}/limits").read_text(encoding="ascii")
            yield from map(int, re.findall(r"^Max open files\s+(\d+)", limits, re.M))


def expect_nothing_left(session: int, port: int) -> None:
    assert session_members(session) == []
    with pytest.raises(ConnectionRefusedError):
        http.client.HTTPConnection(peers.ADDRESS, port, timeout=5).connect()


@pytest.fixture
def many_descriptors() -> Iterator[int]:
    """As many as bench asks for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = peers.DESCRIPTORS if hard < 0 else min(hard, peers.DESCRIPTORS)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield wanted
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


XINETD_QUEUE = 64  # and nothing changes it
# These have a process for a connection: it is reaped, or at work.
ONE_EACH = ("tcpserver", "tcpsvd", "systemd-socket-activate", "openbsd-inetd", "xinetd")


#: Of the others CI looks at all: two that are daemons, two of a process for a connection.
SOME = ("nginx", "apache-event", "tcpserver", "openbsd-inetd")


@pytest.mark.parametrize(
    ("name", "values"),
    [pytest.param(*row, marks=[pytest.mark.slow] * (row[0] not in SOME), id=str(row)) for row in CASES],
)
def test_it_serves_is_pinned_is_counted_and_leaves_nothing(
    folder: Path, name: str, values: Params, many_descriptors: int
) -> None:
    peer = installed(name)
    assert peer.title
    cpu = max(os.sched_getaffinity(0))
    for process, port in serve(peer, folder, values, frozenset({cpu})):
        expect_the_files(port)
        pinned = list(affinities(process.pid))
        assert pinned
        assert all(cpus == {cpu} for cpus in pinned)
        if shutil.which("ss"):
            command = ["ss", "-Hltn", f"sport = :{port}"]
            listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            most = int(Path("/proc/sys/net/core/somaxconn").read_text(encoding="ascii"))
            queue = XINETD_QUEUE if name == "xinetd" else min(1024, most)
            assert int(listing.split()[2]) >= queue, listing
        # systemd gives a child 1024, and that of the harness's own probe may still be ending.
        await_(lambda: min(open_files(process.pid)) >= many_descriptors)  # noqa: B023
        used = 0.0 if name in ONE_EACH else keep_busy(port, process.pid, 0.2)
        usage = processes.stop(process, peer.stop)
        assert process.status in (0, -peer.stop), process.describe_end()
        assert usage.cpu_s >= used - 2 * TICK * float(values.get("workers", 2))
        expect_nothing_left(process.pid, port)
    said = environment.version(peer.program)
    assert re.search(r"\d\.\d", said), said
    assert "usage" not in said.lower()


ALONE = """
import os, pathlib, sys
from quest.measure import peers
from quest.ground import guard, processes
processes.become_subreaper()
guard.start()
for folder in ("docroot", "scratch"):
    pathlib.Path(folder).mkdir(exist_ok=True)
pathlib.Path("docroot/a.html").write_text("x" * 100)
values = {"docroot": os.path.abspath("docroot"), "bin": "bin"}
probe = peers.Probe("a.html", 100)
peer = peers.load(sys.argv[1])
with peers.serving(peer, values, pathlib.Path("scratch"), probe) as (process, port):
    print(os.stat(f"/proc/{process.pid}").st_uid, process.pid, port, flush=True)
    sys.stdin.read()
    processes.stop(process, peer.stop)
"""
NOBODY = ("setpriv", "--reuid=nobody", "--regid=65534", "--clear-groups")
PEERS = [peers.load(path.stem, path.parent) for path in BENCHMARKS.glob("peers/*.toml")]
USERS = [(peer.name, True, k) for peer in PEERS if "root" not in peer.needs for k in (True, False)]
ROOTS = [(peer.name, False, True) for peer in PEERS if peer.as_root or "root" in peer.needs]


@pytest.mark.parametrize(
    ("name", "user", "killed"),
    [pytest.param(*row, marks=[pytest.mark.slow] * (row[0] not in SOME)) for row in sorted(USERS + ROOTS)],
)
def test_a_harness_killed_or_not_leaves_no_peer(name: str, user: bool, killed: bool) -> None:
    """Nor that of a user, who can run it too: nothing in his view belongs to root's rights."""
    installed(name)
    other = user and os.geteuid() == 0
    with tempfile.TemporaryDirectory(prefix="peer-", dir="/tmp") as folder:
        place = Path(folder)
        (place / "bin").mkdir()
        for program in ("02-inetd", "stat-helper"):
            if (BIN / program).exists():
                shutil.copy(BIN / program, place / "bin")
        for part in ("quest", "setup", "benchmarks/peers"):
            shutil.copytree(TREE / part, place / part)
        if other:
            subprocess.run(["chown", "-R", "nobody:", folder], check=True)
        path = f"{os.environ['PATH']}:/usr/sbin"
        harness = subprocess.Popen(
            [*(NOBODY if other else ()), sys.executable, "-c", ALONE, name],
            cwd=place, env={"PATH": path, "PYTHONPATH": "."},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert harness.stdout is not None
        uid, session, port = map(int, harness.stdout.readline().split())
        try:
            assert session_members(session)
            if killed:
                harness.kill()
            _, err = harness.communicate(timeout=20)  # else it stops the peer: its stdin ends
            assert (harness.returncode, err) == (-9 if killed else 0, "")
            await_(lambda: not left_of(session))
            expect_nothing_left(session, port)
        finally:
            guard.end_session(session)
        assert not other or uid == 65534


def left_of(session: int) -> list[int]:
    """We are the subreaper: the orphans of the harness we have killed are ours to wait for."""
    for pid in session_members(session):
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
    return session_members(session)


def test_the_guard_knows_what_was_not_ended() -> None:
    assert guard.not_released(["+1\n", "+2\n", "-1\n", "+3\n", "+1\n", "-3\n"]) == [2, 1]


# ---- made-up peers ------------------------------------------------------------------------------

MADE_UP = """\
title = "Made up"
program = "{python}"
command = ["{python}", "{{scratch}}/peer.py"]
[defaults]
workers = 1
{more}
[files]
"peer.py" = '''
import http.server, os, signal, sys, time
{code}
class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_): pass
os.chdir("@docroot@")
http.server.HTTPServer(("@address@", @port@), Handler).serve_forever()
'''
"""


def made_up(folder: Path, code: str = "", more: str = "") -> Peer:
    text = MADE_UP.format(python=sys.executable, code=code, more=more)
    (folder / "made-up.toml").write_text(text, encoding="utf-8")
    return peers.load("made-up", folder)


NO_READING = "http.server.SimpleHTTPRequestHandler.do_GET = None"
LONG = """
def much(self):
    self.send_response(200)
    self.end_headers()
    for _ in range(4000): self.wfile.write(bytes(1000))
http.server.SimpleHTTPRequestHandler.do_GET = much
"""


@pytest.mark.parametrize(
    ("code", "probe", "said"),
    [
        ("", peers.Probe("small.html", 999),
         "made-up: GET /small.html gave status 200 and 1000 bytes, not 999"),
        (LONG, peers.Probe("small.html", SMALL),  # or without end
         "made-up: GET /small.html gave status 200 and 66536 or more bytes, not 1000"),
        ("", peers.Probe("missing.html", 0), "made-up: GET /missing.html gave status 404 "),
        ("", peers.Probe("missing.html"), "made-up: HEAD /missing.html gave status 404"),
        ("sys.exit('no such directive')", peers.Probe("small.html", SMALL),
         "made-up ended with status 1: no such directive"),
        # On a disk that is cold nothing is read, for that would warm it.
        (NO_READING, peers.Probe(), ""),
        (NO_READING, peers.Probe("big.bin"), ""),
    ],
)  # fmt: skip
def test_a_peer_must_answer_before_it_is_measured(folder: Path, code: str, probe: peers.Probe, said: str) -> None:
    values: Params = {"docroot": str(folder / "docroot"), "bin": str(BIN)}
    expected = pytest.raises(RepetitionError, match=f"^{re.escape(said)}")
    with (
        expected if said else contextlib.nullcontext(),
        peers.serving(made_up(folder, code), values, folder / "scratch", probe) as (process, _),
    ):
        assert session_members(process.pid)


NOT_YET = """
def after_two(self):
    with open("@scratch@/asked", "a") as file:
        file.write("x")
    self.send_response(204 if os.path.getsize("@scratch@/asked") > 2 else 500)
    self.end_headers()
http.server.SimpleHTTPRequestHandler.do_HEAD = after_two
"""


def test_an_error_of_its_own_says_that_it_is_not_ready(folder: Path) -> None:
    """As while a helper of it begins: it is asked again."""
    values: Params = {"docroot": str(folder / "docroot"), "bin": str(BIN)}
    with peers.serving(made_up(folder, NOT_YET), values, folder / "scratch", peers.Probe()):
        assert (folder / "scratch/asked").read_text(encoding="ascii") == "xxx"


def test_a_peer_is_found_where_a_users_path_does_not_lead(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As nginx is in /usr/sbin."""
    monkeypatch.setattr(peers, "which", {"its-program": sys.executable}.get)
    peer = dataclasses.replace(made_up(folder), program="its-program", command=("its-program", "{scratch}/peer.py"))
    for process, _ in serve(peer, folder, {}):
        assert session_members(process.pid)


def test_a_peer_that_is_deaf_is_killed_with_its_workers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "STOP_PATIENCE", 0.3)
    deaf = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nif os.fork() == 0: time.sleep(600)"
    for process, port in serve(made_up(folder, deaf), folder, {}):
        assert len(session_members(process.pid)) == 2
        with pytest.raises(RepetitionError, match=r"did not end within 0\.3 s of SIGTERM"):
            processes.stop(process)
        expect_nothing_left(process.pid, port)


def test_what_a_peer_leaves_behind_is_counted_and_ended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "REST_PATIENCE", 0.3)
    worker = """
if os.fork() == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while time.process_time() < 0.3: pass
    open("@scratch@/worked", "w").close()
    time.sleep(600)
"""
    for process, port in serve(made_up(folder, worker), folder, {}):
        await_((folder / "scratch" / "worked").exists)
        usage = processes.stop(process)
        assert usage.cpu_s >= 0.3
        expect_nothing_left(process.pid, port)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be somebody else")
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("sh", "-c", "echo not you >&2; exit 1"), "Made up does not serve as root: not you"),
        (("setpriv-of-old",), "as root: setpriv-of-old: No such file or directory"),
    ],
)
def test_a_root_who_cannot_be_another_skips_it(folder: Path, words: tuple[str, ...], reason: str) -> None:
    peer = dataclasses.replace(made_up(folder), as_root=words)
    with pytest.raises(Unsupported, match=reason):
        next(serve(peer, folder, {}))


def test_what_a_peer_file_lacks_is_one_line(folder: Path) -> None:
    peer = made_up(folder, "@speed@")
    assert peers.unknown_values(peer, ["seconds"]) == ["speed"]
    assert peers.unknown_values(peer, ["speed"]) == []
    with pytest.raises(InputError, match='"x" must be a number or a text'):
        made_up(folder, "", "x = true")
    with pytest.raises(InputError, match="nobody.toml: No such file or directory"):
        peers.load("nobody", folder)
    # A template may have the product of two values.
    assert peers.fill("@a*b@", {"a": 3, "b": 4}, "x") == "12"
    assert peers.unknown_values(made_up(folder, "@speed*size@"), ["speed"]) == ["size"]
    wrong: list[tuple[Params, str]] = [
        ({"a": 3}, "x: unknown value @b@"),
        ({"a": 3, "b": "on"}, "x: @a*b@ is not of two whole numbers"),
    ]
    for values, problem in wrong:
        with pytest.raises(InputError, match=f"^{re.escape(problem)}$"):
            peers.fill("@a*b@", values, "x")


def test_every_peer_file_is_tested_here() -> None:
    assert {peer.name for peer in PEERS} == {name for name, _ in CASES} | RUNTIMES
