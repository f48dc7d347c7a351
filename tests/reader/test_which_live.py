"""`make which` on servers that run: ten of ours, of ten kinds, and others where they are installed."""

import contextlib
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from quest.__main__ import main
from quest.ground.places import which
from quest.learn.which import models
from quest.learn.which.goal import looks, server_of
from quest.learn.which.models import Model, best, judge
from quest.learn.which.proc import Proc
from quest.learn.which.seen import Server
from tests.conformance.matrix import rows

UNSUPPORTED = 77  # of a server that this system cannot run
CLIENTS = 3
PATIENCE_S = 30.0  # until it has taken its clients, on a busy machine
PORT = re.compile(r":(\d+)/?\s*$")
GUARD = [setpriv, "--pdeathsig", "KILL"] if (setpriv := shutil.which("setpriv")) else []

#: of ours: options, and the model. Each has three clients that say nothing.
OURS: dict[str, tuple[list[str], Model]] = {
    "01-iterative": ([], models.ITERATIVE),
    "02-fork": ([], models.FORK),
    "03-prefork": (["-w", "5"], models.PREFORK),
    "04-threads": ([], models.THREADS),
    "05-pool": (["-w", "5"], models.POOL),
    "06-select": ([], models.SELECT_LOOP),
    "07-poll": ([], models.POLL_LOOP),
    "08-sigio": ([], models.SIGNAL_LOOP),
    "09-epoll": ([], models.EPOLL_LOOP),
    "13-uring": ([], models.RING_LOOP),
    "15-slashdot": (["-w", "2"], models.PROCESS_LOOPS),
}
#: Of those; CI looks at all. Each test takes a second of the processor: there is much to read in /proc.
SAMPLE = ("02-fork", "05-pool", "09-epoll", "13-uring")

ASYNCIO = """
import asyncio
async def serve(reader, writer):
    await reader.read(1)
async def run():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(f":{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()
asyncio.run(run())
"""
THREADS = """
import socketserver
class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.recv(1)
with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
    print(f":{server.server_address[1]}", flush=True)
    server.serve_forever()
"""
NODE = """
const server = require("http").createServer((request, reply) => reply.end("x"));
server.listen(0, "127.0.0.1", () => console.log(":" + server.address().port));
"""
NGINX = """
daemon off; worker_processes 2; pid {folder}/pid; error_log stderr;
events {{ worker_connections 64; }}
http {{
    access_log off; server {{ listen 127.0.0.1:{port}; root {folder}; }}
    client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
    uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
}}
"""


def a_line(process: subprocess.Popen[str]) -> str:
    """Its first; "" if it ends, or says nothing for PATIENCE_S."""
    assert process.stdout
    if not select.select([process.stdout], [], [], PATIENCE_S)[0]:
        return ""
    return process.stdout.readline()


@contextlib.contextmanager
def running(command: Sequence[str | Path], port: int = 0) -> Iterator[tuple[int, int]]:
    """The number of its process, and its port, which its first line tells unless it is given."""
    with subprocess.Popen(
        [*GUARD, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            if not port:
                said = PORT.search(a_line(process))
                if not said and process.wait(PATIENCE_S) == UNSUPPORTED:
                    assert process.stderr
                    pytest.skip(process.stderr.read().strip())
                assert said, f"{command[0]} says no port"
                port = int(said[1])
            yield process.pid, port
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()


@contextlib.contextmanager
def clients(port: int, count: int = CLIENTS) -> Iterator[None]:
    """So many that connect and say nothing."""
    with contextlib.ExitStack() as stack:
        deadline = time.monotonic() + PATIENCE_S
        while count:
            try:
                stack.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE_S))
                count -= 1
            except ConnectionRefusedError:  # it does not listen yet
                assert time.monotonic() < deadline
                time.sleep(0.05)
        yield


def told(pid: int) -> tuple[tuple[Model, ...], list[Server]]:
    """The models, and what was seen."""
    proc = Proc()
    seen = list(looks(proc, server_of(proc, pid)))
    return best(map(judge, seen)).models, seen


def names(pid: int, expected: Model) -> tuple[Model, ...]:
    """The models that are told, once the server has had the time to take its clients."""
    deadline = time.monotonic() + PATIENCE_S
    while (found := told(pid)[0]) != (expected,) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def ours(config: pytest.Config, slug: str) -> Path:
    path = Path(str(config.getoption("--build")), "bin", slug).resolve()
    if not path.exists():
        from quest.measure import needs

        lacking = needs.missing_library(slug)
        pytest.skip(f"{lacking.reason}: {lacking.remedy}" if lacking else f"{path} is not built (make servers)")
    return path


def start(pytestconfig: pytest.Config, slug: str, folder: Path) -> list[str | Path]:
    return [ours(pytestconfig, slug), *OURS[slug][0], "-a", "127.0.0.1", "-p", "0", folder]


@pytest.mark.parametrize("slug", rows(OURS, SAMPLE))
def test_our_servers_are_known(
    pytestconfig: pytest.Config, slug: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = OURS[slug][1]
    with running(start(pytestconfig, slug, tmp_path)) as (pid, port), clients(port):
        assert names(pid, expected) == (expected,)
        assert main(["which", f"PID={pid}"]) == 0
        said = capsys.readouterr().out
    assert expected.name in said and f"127.0.0.1:{port}" in said and f"{expected.chapters[0]}: " in said
    assert re.search(rf"\b{CLIENTS} connections\b", said)


@pytest.mark.parametrize("slug", rows(["01-iterative", "02-fork", "04-threads"], SAMPLE))
def test_with_no_client_these_look_the_same(pytestconfig: pytest.Config, slug: str, tmp_path: Path) -> None:
    one_of = (models.ITERATIVE, models.FORK, models.THREADS)
    with running(start(pytestconfig, slug, tmp_path)) as (pid, _):
        assert told(pid)[0] == one_of


@pytest.mark.parametrize("slug", rows(["02-fork", "04-threads"], SAMPLE))
def test_what_has_served_leaves_a_trace(pytestconfig: pytest.Config, slug: str, tmp_path: Path) -> None:
    """Children, or threads, that have ended: their page faults are counted."""
    expected = OURS[slug][1]
    with running(start(pytestconfig, slug, tmp_path)) as (pid, port):
        with clients(port):
            assert names(pid, expected) == (expected,)
        deadline = time.monotonic() + PATIENCE_S
        while told(pid)[1][-1].connections and time.monotonic() < deadline:
            time.sleep(0.05)
        found, seen = told(pid)
        assert (found, seen[-1].connections, seen[-1].thread_count) == ((expected,), 0, 1)


@pytest.mark.parametrize("slug", rows(["02-fork", "03-prefork", "15-slashdot"], SAMPLE))
def test_a_worker_stands_for_its_server(pytestconfig: pytest.Config, slug: str, tmp_path: Path) -> None:
    expected = OURS[slug][1]
    with running(start(pytestconfig, slug, tmp_path)) as (pid, port), clients(port):
        assert names(pid, expected) == (expected,)
        worker, deadline = pid, time.monotonic() + PATIENCE_S
        while worker == pid and time.monotonic() < deadline:  # 02-fork forks one when it comes to accept
            worker = told(pid)[1][-1].processes[-1].pid
        found, seen = told(worker)
        assert (found, seen[-1].processes[0].pid, worker != pid) == ((expected,), pid, True)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ([sys.executable, "-c", ASYNCIO], models.EPOLL_LOOP),
        ([sys.executable, "-c", THREADS], models.THREADS),
        (["node", "-e", NODE], models.LOOP_HELPERS),
    ],
    ids=["python asyncio", "python threads", "node"],
)
def test_runtimes_are_known(command: list[str], expected: Model) -> None:
    if not which(command[0]):
        pytest.skip(f"{command[0]} is not installed")
    with running(command) as (pid, port), clients(port):
        assert names(pid, expected) == (expected,)


def test_nginx_is_known(tmp_path: Path) -> None:
    if not (nginx := which("nginx")):
        pytest.skip("nginx is not installed (make peers)")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (tmp_path / "conf").write_text(NGINX.format(folder=tmp_path, port=port))
    with running([nginx, "-p", str(tmp_path), "-c", str(tmp_path / "conf")], port) as (pid, _), clients(port):
        expected = models.PROCESS_LOOPS
        assert names(pid, expected) == (expected,)
