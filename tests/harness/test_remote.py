"""CLIENT=user@host, with an ssh that runs the far side on this host, and with ssh itself."""

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from quest.ground import places, processes
from quest.ground.errors import InputError, RepetitionError, Unreachable
from quest.ground.places import link_of, numbered
from quest.ground.processes import Process
from quest.measure import needs, programs, remote
from quest.measure.remote import Client
from tests.harness.made_up import Tree, await_, parsed
from tests.harness.test_load import EXPERIMENT, HAMMER, SERVER, loaded

# The far side is in a session of its own, and what it reads and writes goes through this process:
# when it is killed, that is for both sides as if the connection were lost.
SSH = """\
import os, subprocess, sys, threading
with open({notes!r}, "a") as notes:
    print(*sys.argv[1:], file=notes)
{before}
print("a greeting of the login shell", flush=True)
environment = {{"SSH_CONNECTION": "{seen} 50000 127.0.0.1 22", "TMPDIR": {far!r}, "PATH": {path!r}}}
far = subprocess.Popen(
    ["sh", "-c", sys.argv[-1]], start_new_session=True, env=environment, stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
)

def copy(source, target):
    while data := os.read(source, 65536):
        os.write(target, data)
    os.close(target)

threading.Thread(target=copy, args=(0, far.stdin.fileno()), daemon=True).start()
copy(far.stdout.fileno(), 1)
os._exit(far.wait())
"""

# Before what a made-up hammer does anyway.
TRIED = """\
import os, pathlib, sys, time
if "-h" in sys.argv:
    sys.exit({starts})
end = time.process_time() + 0.2
while time.process_time() < end:
    pass
"""
ASKED = "pathlib.Path({asked!r}).write_text(json.dumps([sys.argv, os.getcwd()]))"

NEEDED = (
    "sh", "mktemp", "head", "chmod", "timeout", "rm", "cat", "sed", "wc", "sort", "uname",
    "getconf",
)  # fmt: skip


FAR = "client/sample"  # where the results are
# From then on nothing but a signal ends it, also when its server is gone.
ASLEEP = "open('asleep', 'w'); time.sleep(60)"


class Hosts:
    """A tree to measure in, and a far side: its folder for temporary ones, its programs."""

    def __init__(self, tree: Tree, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tree, self.monkeypatch = tree, monkeypatch
        self.here, self.far, self.path = folder / "here", folder / "far", folder / "path"
        for each in (self.here, self.far, self.path):
            each.mkdir()
        for name in NEEDED:
            (self.path / name).symlink_to(shutil.which(name) or name)
        self.asked = folder / "asked"
        self.notes = folder / "notes"
        monkeypatch.setenv("PATH", f"{self.here}:{os.environ['PATH']}")
        monkeypatch.setenv("CLIENT", "somebody@far-host")
        monkeypatch.delenv("SERVER", raising=False)
        self.ssh()

    def ssh(self, before: str = "", seen: str = "127.0.0.1") -> None:
        paths = {"notes": str(self.notes), "far": str(self.far), "path": str(self.path)}
        text = SSH.format(**paths, before=before, seen=seen)
        self.program(self.here / "ssh", f"#!{sys.executable}\n{text}")

    def program(self, path: Path, text: str) -> None:
        path.unlink(missing_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def be(self, kernel: str, machine: str = "") -> None:
        """What the far side takes itself for."""
        machine = machine or os.uname().machine
        text = f"#!/bin/sh\nif [ $1 = -m ]; then echo {machine}; else echo {kernel}; fi\n"
        self.program(self.path / "uname", text)

    def make(
        self,
        extra: str = "",
        starts: str = "0",
        variant: str = 'server = "fake-server"',
        change: tuple[str, str] = ("", ""),
    ) -> None:
        """`extra`: what hammer does; `starts`: its status when tried; `change`: of the file."""
        text = EXPERIMENT.format(variant=variant).replace(*change)
        self.tree.experiment(text=text)
        self.tree.program("fake-server", SERVER.format(before=""))
        extra = f"{extra}\n{ASKED.format(asked=str(self.asked))}"
        source = HAMMER.format(extra=extra)
        self.tree.program("hammer", TRIED.format(starts=starts) + source)

    def start(self) -> subprocess.Popen[str]:
        process = self.tree.start("bench", "PROFILE=smoke")
        await_(lambda: list(self.far.glob("*/asleep")))
        return process

    def running(self) -> list[int]:
        """What works in the far side's folder."""
        return [
            int(process.name)
            for process in numbered(Path("/proc"))
            if link_of(process / "cwd").startswith(str(self.far))
        ]

    def nothing_is_left(self) -> bool:
        servers = self.tree.processes("fake-server")
        return not self.running() and not servers and not list(self.far.iterdir())


@pytest.fixture
def hosts(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hosts:
    (tmp_path / "hosts").mkdir()
    return Hosts(tree, tmp_path / "hosts", monkeypatch)


def good(done: subprocess.CompletedProcess[str]) -> str:
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


# ---- a measurement ------------------------------------------------------------------------------


def test_the_load_runs_there_and_its_results_are_kept_apart(hosts: Hosts) -> None:
    hosts.make(
        extra="assert open('urls').read().count('http://127.0.0.1:') == 4",
        change=('"{url}/a.html"', '"-i", "{urls}", "{url}/a.html"'),
    )
    good(hosts.tree.bench())
    assert not (hosts.tree.results / "sample.jsonl").exists()
    words, cwd = json.loads(hosts.asked.read_text(encoding="utf-8"))
    assert words[:3] == ["./hammer", "--allow-host", "127.0.0.1"]
    assert Path(cwd).parent == hosts.far
    (asked,) = hosts.notes.read_text(encoding="utf-8").splitlines()  # one connection
    assert "-o BatchMode=yes" in asked
    # A short line, whatever shell it is that reads it.
    assert re.search(r" -- somebody@far-host exec sh -c 'eval \"\$\(head -c \d+\)\"'$", asked)
    scalars = hosts.tree.of_type("repetition", FAR)[0]["scalars"]
    assert scalars["requests_per_s"] == 500
    assert 0.2 <= scalars["client_cpu_s"] < 2  # what it used there, though ssh used nothing
    assert scalars["cpu_share"] > 0.1
    assert "segments_per_request" not in scalars
    environment = hosts.tree.records(FAR)[0]["environment"]
    assert environment["client"]["kernel"].startswith("Linux ")
    assert environment["client"]["cores"] >= 1
    assert environment["pin"]["load"] == []
    assert environment["network"]["namespace"] is False
    for name in ("somebody", "far-host", "127.0.0.1", str(hosts.far)):
        assert name not in json.dumps(hosts.tree.records(FAR))
    assert hosts.nothing_is_left()
    # What is measured is not measured again, but from another host.
    assert "everything is measured" in good(hosts.tree.bench())
    hosts.be("Linux 2.4.20")
    assert "1 experiment measured" in good(hosts.tree.bench())
    assert hosts.tree.records(FAR)[0]["environment"]["client"]["kernel"] == "Linux 2.4.20"


@pytest.mark.slow
def test_what_needs_no_other_host_asks_none(hosts: Hosts) -> None:
    """What has no load; and `make` measures over loopback, whatever CLIENT says."""
    hosts.tree.experiment("micro")
    hosts.tree.program()
    assert "skipped: micro: no load, so nothing for CLIENT to do" in good(hosts.tree.bench())
    hosts.monkeypatch.setenv("CLIENT", "-oProxyCommand=x")
    refused = hosts.tree.bench()
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert '"-oProxyCommand=x"' in refused.stderr, "also where it is not needed"
    hosts.monkeypatch.setenv("CLIENT", "somebody@far-host")
    hosts.make(change=('kind = "load"', 'kind = "load"\nheadline = true'))
    good(hosts.tree.run("headline", "PROFILE=smoke"))
    assert (hosts.tree.results / "sample.jsonl").exists()
    assert not hosts.notes.exists()


# ---- ssh itself ---------------------------------------------------------------------------------

SSHD = """\
HostKey {far}/../key
AuthorizedKeysFile {far}/../key.pub
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
SetEnv TMPDIR={far}
"""
CONFIG = """\
Host far-host
    ProxyCommand {sshd}
    IdentityFile {far}/../key
    IdentitiesOnly yes
    UserKnownHostsFile /dev/null
    StrictHostKeyChecking no
    LogLevel ERROR
"""
# root's sshd wants an empty /run/sshd, which it gets on a /run of its own.
OF_ROOT = 'mount -t tmpfs none /run && mkdir -m 755 /run/sshd && exec "$0" "$@"'


def real_ssh(hosts: Hosts) -> None:
    """An sshd of our own for each connection, at the other end of a pipe."""
    (hosts.here / "ssh").unlink()
    for name in ("ssh", "ssh-keygen", "sshd", *(["own-mounts"] if os.geteuid() == 0 else [])):
        if not (answer := needs.probe(name)).ok:
            pytest.skip(f"{answer.reason} ({answer.remedy})")
    folder = hosts.far.parent
    keygen = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "key")]
    subprocess.run(keygen, check=True, stdin=subprocess.DEVNULL)
    (folder / "sshd").write_text(SSHD.format(far=hosts.far), encoding="utf-8")
    sshd = [places.which("sshd") or "sshd", "-i", "-f", str(folder / "sshd")]
    if os.geteuid() == 0:
        sshd = ["unshare", "--mount", "sh", "-c", OF_ROOT, *sshd]
    text = CONFIG.format(far=hosts.far, sshd=shlex.join(sshd))
    (folder / "config").write_text(text, encoding="utf-8")
    ssh = [places.which("ssh") or "ssh", "-F", f"{folder}/config"]
    if not (answer := processes.ends_well([*ssh, "far-host", "true"])).ok:
        pytest.skip(f"sshd lets nobody in: {answer.reason}")
    hosts.ssh(f"os.execv({ssh[0]!r}, {ssh!r} + sys.argv[1:])")
    # At the end of a pipe it knows of no address.
    hosts.monkeypatch.setenv("SERVER", "127.0.0.2")
    hosts.monkeypatch.setenv("CLIENT", "far-host")


@pytest.mark.slow
def test_a_load_of_hammer_by_ssh_and_ctrl_c(hosts: Hosts, pytestconfig: pytest.Config) -> None:
    """Both ends are in one network: what comes of two, as a wrong route, is not seen here."""
    real_ssh(hosts)
    load = ('["-c", "{connections}", ', '["-n", "400", "--json", "-c", "{connections}", ')
    hosts.make(variant='server = "09-epoll"', change=load)
    for name in ("09-epoll", "hammer"):
        program = Path(pytestconfig.getoption("--build"), "bin", name)
        assert program.is_file(), f"{program} is not there: make servers"
        shutil.copy(program, hosts.tree.root / "build/bin" / name)
    good(hosts.tree.bench())
    for repetition in hosts.tree.of_type("repetition", FAR):
        assert repetition["scalars"]["requests"] == 400
        assert repetition["scalars"]["failed"] == 0
        assert repetition["scalars"]["server_cpu_s"] > 0
    text = json.dumps(hosts.tree.records(FAR))
    for name in ("far-host", "127.0.0.2", str(hosts.far)):
        assert name not in text
    assert hosts.nothing_is_left()

    hosts.tree.edit(('"400"', '"100000000"'))
    process = hosts.tree.start("bench", "PROFILE=smoke")
    await_(lambda: len(hosts.running()) > 2, process)  # of the shell, and of the load
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert hosts.nothing_is_left()


# ---- what goes wrong ----------------------------------------------------------------------------


@contextlib.contextmanager
def connected(hosts: Hosts, server_address: str = "") -> Iterator[Client]:
    """As `bench` is, in this process."""
    hammer = hosts.tree.root / "build/bin/hammer"
    with remote.connected(os.environ["CLIENT"], hammer, frozenset(), server_address) as client:
        yield client
    assert hosts.nothing_is_left()


REFUSED = "ssh: connect to host far-host port 22: Connection refused"


def call(client: str) -> Callable[[Hosts], None]:
    return lambda hosts: hosts.monkeypatch.setenv("CLIENT", client)


def have_no_ssh(hosts: Hosts) -> None:
    hosts.monkeypatch.setenv("PATH", str(hosts.path))
    hosts.monkeypatch.setattr("quest.ground.places.EXTRA_FOLDERS", ())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda hosts: hosts.ssh(f"print('a word', file=sys.stderr); sys.exit({REFUSED!r})"),
         f"CLIENT=somebody@far-host: {REFUSED}"),
        (call("-oProxyCommand=x"), 'CLIENT: "-oProxyCommand=x" is no host: write user@host'),
        (call("two words"), 'CLIENT: "two words" is no host: write user@host'),
        (have_no_ssh, "CLIENT needs ssh: apt-get install openssh-client"),
        (lambda hosts: hosts.be("Darwin 23.1"), "CLIENT must run Linux, and runs Darwin 23.1"),
        (lambda hosts: hosts.ssh(seen="192.0.2.77"),
         "CLIENT reaches us at 192.0.2.77, but nothing can listen there "
         "(Cannot assign requested address): give SERVER=ADDR, an address of this host"),
    ],
)  # fmt: skip
def test_a_host_that_cannot_be_had_is_one_line(hosts: Hosts, change: Callable[[Hosts], None], said: str) -> None:
    change(hosts)
    with pytest.raises(InputError, match=f"^{re.escape(said)}$"), connected(hosts):
        pass


def test_where_the_server_listens(hosts: Hosts) -> None:
    hosts.ssh(seen="192.0.2.77")
    with connected(hosts, "127.0.0.1") as client:
        assert client.address == "127.0.0.1"
    unknown = "CLIENT reaches us at an unknown address, which is no IPv4 address: give SERVER=ADDR"
    for told, connection, why in (
        ("", "", unknown),
        ("", "fe80::1%eth0 1 2 3", "CLIENT reaches us at fe80::1%eth0, which is no IPv4 address"),
        ("far-host", "127.0.0.1 1 2 3", "SERVER=far-host, which is no IPv4 address"),
    ):
        with pytest.raises(InputError, match=f"^{re.escape(why)}"):
            remote.listening_address(told, connection)
    assert remote.listening_address("", "127.0.0.2 1 2 3") == "127.0.0.2"


def test_a_load_that_is_not_to_be_had_there_is_a_skip(hosts: Hosts) -> None:
    hosts.make(starts="'hammer: no such C library'")
    with connected(hosts) as client:
        hammer, wrk = loaded(), loaded({"load": "wrk"}, wrk={"args": ["{url}/a"]})
        answers = [programs.missing(each, each.variants[0], client) for each in (hammer, wrk)]
    assert answers[0]
    assert answers[0].reason.startswith("hammer does not run there: ")
    assert answers[0].reason.endswith("no such C library")
    missing = "wrk is not installed at CLIENT", "there: apt-get install wrk"
    assert answers[1] == (False, *missing)
    hosts.be("Linux 6.1", "pdp11")
    with connected(hosts) as client:
        assert client.no_hammer == f"hammer is built for {os.uname().machine}, CLIENT is pdp11"


def test_a_load_that_fails_is_a_failure_without_an_address(hosts: Hosts) -> None:
    with connected(hosts) as client:
        for script, timeout, why in (
            (f"echo hammer: {client.address}: nothing fetched >&2; exit 1", 60,
             "hammer ended with status 1 at CLIENT: hammer: SERVER: nothing fetched"),
            ("while :; do :; done", 1, "hammer did not end within 1 s at CLIENT"),
        ):  # fmt: skip
            with pytest.raises(RepetitionError, match=f"^{why}$"):
                client.run("hammer", ["sh", "-c", script], timeout)


def test_a_far_side_that_cannot_note_the_times_answers_all_the_same(hosts: Hosts) -> None:
    """As on a full disk."""
    hosts.make(starts="os.mkdir('used')")
    with connected(hosts) as client:
        assert client.no_hammer == ""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_early_end_leaves_nothing_on_either_side(hosts: Hosts, how: signal.Signals) -> None:
    hosts.make(extra=ASLEEP)
    process = hosts.start()
    process.send_signal(how)
    process.communicate(timeout=20)
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert hosts.nothing_is_left()
    await_(hosts.nothing_is_left)


@pytest.mark.slow
def test_a_lost_connection_is_one_line_and_the_rest_is_measured_next_time(hosts: Hosts) -> None:
    mended = hosts.far.parent / "mended"
    hosts.make(extra=f"if not os.path.exists({str(mended)!r}): {ASLEEP}")
    process = hosts.start()
    (ssh,) = hosts.tree.processes("here/ssh")
    os.kill(ssh, signal.SIGKILL)
    _, err = process.communicate(timeout=40)
    assert process.returncode == 1
    # what ssh said of it, if it said anything, stands in between
    lost = r"the connection to CLIENT was lost(: .*)?; the same command goes on from here\n"
    assert re.fullmatch(lost, err)
    await_(hosts.nothing_is_left)
    mended.touch()
    assert "measured anew" not in good(hosts.tree.bench())
    assert len(hosts.tree.of_type("repetition", FAR)) == 2


# ---- what cannot come from another host ---------------------------------------------------------


HELPERS: dict[str, Any] = {"helper": [{"name": "h", "command": ["{bin}/h"]}]}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, ""),
        (HELPERS, "its helpers"),
        ({"needs": ["namespace"]}, "a network namespace"),
        ({"variant": {"needs": ["namespace"]}}, "a network namespace"),
        ({"metric": [{"name": "m", "scalar": "segments_per_request"}]}, "the segments"),
        ({"hammer": {"args": ["--source", "127.1.0.1", "{url}/a"]}}, "loopback addresses"),
        ({"hammer": {"args": ["--samples", "{scratch}/s", "{url}/a"]}}, "a folder of this host"),
        ({"variant": {"load_args": ["--herd", "10"]}}, "loopback addresses"),
        ({"phase": [{"name": "p", "args": ["--herd", "10"]}]}, "loopback addresses"),
        ({"variant": {"peer": "tcpserver"}}, "tcpserver listens on 127.0.0.1"),
        ({"variant": {"peer": "nginx"}}, ""),
    ],
)
def test_what_cannot_come_from_another_host(changes: dict[str, Any], why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).resolve().parents[2])
    found = loaded(**changes)
    reason = remote.why_only_from_here(found, found.variants[0])
    assert (why in reason) if why else (reason == "")


def test_an_experiment_of_which_nothing_is_left_is_one_line() -> None:
    reason = "not from another host: its helpers run beside the server"
    assert remote.why_no_load_from_afar(loaded(**HELPERS)) == reason
    assert remote.why_no_load_from_afar(loaded()) == ""
    files, hammer = {"files": {"a.html": 1}}, {"args": ["{url}/a.html"]}
    metric = [{"name": "rate", "scalar": "requests_per_s"}]
    two = [{"name": "a", "server": "s", "needs": ["namespace"]}, {"name": "b", "server": "s"}]
    some = parsed(kind="load", docroot=files, hammer=hammer, metric=metric, variant=two)
    assert remote.why_no_load_from_afar(some) == "", "one of its variants can be had"


@pytest.mark.parametrize(("text", "value"), [("0m0.010s", 0.01), ("2m1.5s", 121.5), ("?", 0.0)])
def test_times_of_a_shell(text: str, value: float) -> None:
    assert remote.parse_times(text) == value


# ---- lines and bytes ----------------------------------------------------------------------------


def answering(data: bytes) -> Client:
    """A client whose far side has printed this, and has ended."""
    reader, writer = os.pipe()
    os.write(writer, data)
    os.close(writer)
    ended: dict[str, Any] = {
        "popen": SimpleNamespace(stdin=io.BytesIO()),
        "stdout": os.fdopen(reader, "rb"),
        "reap": lambda _: True,
        "last_words": lambda: "its last words",
    }
    return Client(cast(Process, SimpleNamespace(**ended)))


@pytest.mark.parametrize(
    ("answer", "error", "why"),
    [
        (b"put 0 0\n", None, ""),
        (b"put 1 0\n", RepetitionError, "CLIENT cannot store urls: its last words"),
        (b"run 0 0\n", Unreachable, 'CLIENT answers "run 0 0"'),
        (b"put 0 x\n", Unreachable, 'CLIENT answers "put 0 x"'),
        (b"run 0 x\n", Unreachable, 'CLIENT answers "run 0 x"'),
        (b"\n", Unreachable, 'CLIENT answers ""'),
        (b"put 0\n", Unreachable, 'CLIENT answers "put 0"'),
        (b"put 0 0 0\n", Unreachable, 'CLIENT answers "put 0 0 0"'),
        ("put 0 ²\n".encode(), Unreachable, 'CLIENT answers "put 0 ²"'),
        (b"put 0", Unreachable, "the connection to CLIENT was lost: its last words"),
        (b"put 0 5\nfour", Unreachable, "the connection to CLIENT was lost: its last words"),
    ],
)
def test_an_answer_of_another_kind_is_one_line(answer: bytes, error: type[Exception] | None, why: str) -> None:
    client = answering(answer)
    with pytest.raises(error, match=f"^{why}$") if error else contextlib.nullcontext():
        client.put("urls", b"http")
    stdin = client.process.popen.stdin
    assert isinstance(stdin, io.BytesIO) and stdin.getvalue() == b"put 4 urls\nhttp"


@pytest.mark.parametrize("fields", ["0 1.0 2.0 0m0s 0m0s 0", "0 1,0 2,0 0m0s 0m0s 0 0", "0 x 2.0 0m0s 0m0s 0 0", "0 0"])
def test_a_load_that_is_told_of_in_another_form_is_one_line(fields: str) -> None:
    with pytest.raises(Unreachable, match=f'^CLIENT answers "run {fields}"$'):
        answering(f"run {fields}\n".encode()).run("wrk", ["wrk"], 5.0)


def test_what_a_load_has_printed_and_used() -> None:
    """The times are those of its host's clock; what is behind the output is stderr."""
    client = answering(b"run 0 100.25 102.75 0m0.500s 1m0.250s 4 9\nouterrorsrun 3 0 0 0 0 0 13\n192.0.2.1: no")
    client.address = "192.0.2.1"
    done = client.run("wrk", ["wrk", "-d", "a b"], 5.0)
    assert (done.output, done.wall_s) == ("oute", 2.5)
    assert (done.usage.user_s, done.usage.system_s) == (0.5, 60.25)
    with pytest.raises(RepetitionError, match="^wrk ended with status 3 at CLIENT: SERVER: no$"):
        client.run("wrk", ["wrk"], 5.0)
    stdin = client.process.popen.stdin
    assert isinstance(stdin, io.BytesIO)
    assert stdin.getvalue() == b"run 5 wrk -d 'a b'\nrun 5 wrk\n"


def test_that_nobody_was_served_may_be_a_result_there_too(hosts: Hosts) -> None:
    """Where hammer has printed nothing it has failed all the same."""
    phase = '[[phase]]\nname = "during"\nmay_fail = true\n[[metric]]'
    fails = "failed = 100\nimport atexit\natexit.register(lambda: (sys.stdout.flush(), os._exit(1)))"
    hosts.make(extra=fails, change=("[[metric]]", phase))
    good(hosts.tree.bench())
    assert [one["scalars"]["during.failed"] for one in hosts.tree.of_type("repetition", FAR)] == [100, 100]
    client = answering(b"run 1 0 1 0m0s 0m0s 0 5\nempty")
    client.address = "192.0.2.1"
    with pytest.raises(RepetitionError, match="^wrk ended with status 1 at CLIENT: empty$"):
        client.run("wrk", ["wrk"], 5.0, may_fail=True)


def test_what_is_recorded_of_the_other_host() -> None:
    facts = {"kernel": "Linux 6.1", "machine": "x86_64", "cpu": "A CPU", "cpus": "8", "cores": "4"}
    client = Client(cast(Process, None), "192.0.2.1", {**facts, "wrk": "wrk 4.2", "other": "1"})
    assert client.environment() == {
        "kernel": "Linux 6.1", "machine": "x86_64", "cpu": "A CPU", "cpus": 8, "cores": 4,
        "tools": {"wrk": "wrk 4.2"},
    }  # fmt: skip
    hashed = client.fingerprint()
    client.address, client.no_hammer = "192.0.2.9", "it does not run there"
    assert client.fingerprint() == hashed, "no address is in it"
    for name in ("kernel", "cpus", "cores", "wrk"):
        changed = Client(cast(Process, None), "", {**client.facts, name: "9"})
        assert changed.fingerprint() != hashed
    unknown = Client(cast(Process, None), "", {"cpus": "2", "cores": "0"})
    assert unknown.environment()["cores"] == 2
    strange = Client(cast(Process, None), "", {"cpus": "two", "cores": ""})
    assert (strange.environment()["cpus"], strange.environment()["cores"]) == (0, 0)
