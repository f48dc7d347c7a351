"""CLIENT=user@host, with an ssh that runs the far side on this host."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from made_up import Tree, parsed
from test_load import EXPERIMENT, SERVER

from harness.errors import InputError
from harness.run import remote
from harness.spec.model import Experiment

# The far side is in a session of its own, and what it reads and writes goes through this process:
# when it is killed, that is for both sides as if the connection were lost.
SSH = """\
import os, pathlib, subprocess, sys, threading
with open({notes!r}, "a") as notes:
    print(*sys.argv[1:], file=notes)
pathlib.Path({pid!r}).write_text(str(os.getpid()))
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

HAMMER = """\
import json, os, pathlib, socket, sys, time
if "-h" in sys.argv:
    sys.exit({starts})
end = time.process_time() + 0.2
while time.process_time() < end:
    pass
address, port = sys.argv[-1].split("/")[2].split(":")
client = socket.create_connection((address, int(port)))
client.sendall(b"x")
client.recv(1000)
{extra}
pathlib.Path({asked!r}).write_text(json.dumps([sys.argv, os.getcwd()]))
print(json.dumps({{
    "schema": 1, "requests": 100, "failed": 0, "errors": {{}}, "requests_per_s": 500.0,
    "seconds": 0.2, "bytes": {{"total": 100000}}, "warm_up": None, "little": {{"ratio": 1.0}},
    "total": {{"median": 5000, "histogram": [[4096, 100]]}}, "total_from_intended": None,
}}))
"""

NEEDED = (
    "sh", "mktemp", "head", "chmod", "timeout", "rm", "cat", "sed", "wc", "sort", "uname",
    "getconf",
)  # fmt: skip


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
        self.notes, self.pid = folder / "notes", folder / "pid"
        monkeypatch.setenv("PATH", f"{self.here}:{os.environ['PATH']}")
        monkeypatch.setenv("CLIENT", "somebody@far-host")
        monkeypatch.delenv("SERVER", raising=False)
        self.ssh()

    def ssh(self, before: str = "", seen: str = "127.0.0.1") -> None:
        paths = {"notes": self.notes, "pid": self.pid, "far": self.far, "path": self.path}
        text = SSH.format(**{key: str(p) for key, p in paths.items()}, before=before, seen=seen)
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
        text = EXPERIMENT.format(variant=variant, extra="").replace(*change)
        self.tree.experiment(text=text)
        self.tree.program("fake-server", SERVER.format(before=""))
        source = HAMMER.format(extra=extra, starts=starts, asked=str(self.asked))
        self.tree.program("hammer", source)

    def bench(self, *more: str) -> subprocess.CompletedProcess[str]:
        return self.tree.run("bench", "--profile", "smoke", *more)

    def start(self) -> subprocess.Popen[str]:
        process = self.tree.start("bench", "--profile", "smoke")
        await_(lambda: list(self.far.glob("*/asleep")))
        return process

    def records(self) -> list[dict[str, Any]]:
        text = (self.tree.results / "client" / "sample.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        return [record for record in self.records() if record["type"] == kind]

    def running(self) -> list[int]:
        """What works in the far side's folder."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                inside = os.readlink(entry / "cwd").startswith(str(self.far))
            except OSError:
                continue
            if inside and entry.name.isdigit():
                found.append(int(entry.name))
        return found

    def nothing_is_left(self) -> bool:
        servers = self.tree.processes("fake-server")
        return not self.running() and not servers and not list(self.far.iterdir())


def await_(condition: Any, patience: float = 20.0) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def hosts(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hosts:
    return Hosts(tree, tmp_path / "hosts", monkeypatch)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path) -> None:
    (tmp_path / "hosts").mkdir()


# ---- a measurement ------------------------------------------------------------------------------


def test_the_load_runs_there_and_its_results_are_kept_apart(hosts: Hosts) -> None:
    hosts.make()
    done = hosts.bench()
    assert (done.returncode, done.stderr) == (0, "")
    assert not (hosts.tree.results / "sample.jsonl").exists()
    words, cwd = json.loads(hosts.asked.read_text(encoding="utf-8"))
    assert words[:3] == ["./hammer", "--allow-host", "127.0.0.1"]
    assert Path(cwd).parent == hosts.far
    scalars = hosts.of_type("repetition")[0]["scalars"]
    assert scalars["requests_per_s"] == 500
    assert 0.2 <= scalars["client_cpu_s"] < 2  # what it used there, though ssh used nothing
    assert scalars["cpu_share"] > 0.1
    assert "segments_per_request" not in scalars
    assert hosts.nothing_is_left()


def test_the_record_tells_of_the_other_host_and_does_not_name_it(hosts: Hosts) -> None:
    hosts.make()
    hosts.bench()
    run = hosts.records()[0]
    assert run["environment"]["client"]["kernel"].startswith("Linux ")
    assert run["environment"]["client"]["cores"] >= 1
    assert run["environment"]["pin"]["load"] == []
    assert run["environment"]["network"]["namespace"] is False
    text = json.dumps(hosts.records())
    for name in ("somebody", "far-host", "127.0.0.1", str(hosts.far)):
        assert name not in text


def test_one_connection_that_never_asks(hosts: Hosts) -> None:
    hosts.make()
    hosts.bench()
    (words,) = hosts.notes.read_text(encoding="utf-8").splitlines()
    assert "-o BatchMode=yes" in words
    assert " -- somebody@far-host exec sh -c " in words


def test_what_is_measured_is_not_measured_again_but_from_another_host(hosts: Hosts) -> None:
    hosts.make()
    hosts.bench()
    assert "everything is measured" in hosts.bench().stdout
    hosts.be("Linux 2.4.20")
    done = hosts.bench()
    assert "1 experiment measured" in done.stdout, done.stderr
    assert hosts.records()[0]["environment"]["client"]["kernel"] == "Linux 2.4.20"


def test_the_list_of_urls_goes_along(hosts: Hosts) -> None:
    hosts.make(
        extra="assert open('urls').read().count('http://127.0.0.1:') == 4",
        change=('"{url}/a.html"', '"-i", "{urls}", "{url}/a.html"'),
    )
    done = hosts.bench()
    assert (done.returncode, done.stderr) == (0, "")


def test_what_has_no_load_is_left_out_with_a_word(hosts: Hosts) -> None:
    hosts.tree.experiment("micro")
    hosts.tree.program()
    done = hosts.bench()
    assert (done.returncode, done.stderr) == (0, "")
    assert "skipped: micro: no load, so nothing for CLIENT to do" in done.stdout
    assert not hosts.notes.exists()


def test_make_measures_over_loopback_whatever_client_says(hosts: Hosts) -> None:
    hosts.make(change=('kind = "load"', 'kind = "load"\nheadline = true'))
    done = hosts.bench("--headline")
    assert (done.returncode, done.stderr) == (0, "")
    assert (hosts.tree.results / "sample.jsonl").exists()
    assert not hosts.notes.exists()


# ---- what goes wrong ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        "ssh: connect to host far-host port 22: Connection refused",
        "somebody@far-host: Permission denied (publickey).",
    ],
)
def test_a_host_that_cannot_be_had_is_one_line(hosts: Hosts, said: str) -> None:
    hosts.make()
    hosts.ssh(before=f"print('a word before', file=sys.stderr); sys.exit({said!r})")
    done = hosts.bench()
    assert (done.returncode, done.stderr) == (2, f"CLIENT=somebody@far-host: {said}\n")


@pytest.mark.parametrize("name", ["-oProxyCommand=x", "two words"])
def test_a_client_that_is_no_host(hosts: Hosts, name: str) -> None:
    hosts.make()
    hosts.monkeypatch.setenv("CLIENT", name)
    done = hosts.bench()
    assert (done.returncode, done.stderr) == (2, f'CLIENT: "{name}" is no user@host\n')
    assert not hosts.notes.exists()


def test_no_ssh_here(hosts: Hosts) -> None:
    hosts.make()
    (hosts.here / "ssh").unlink()
    hosts.monkeypatch.setenv("PATH", str(hosts.path))
    hosts.monkeypatch.setattr("harness.system.places.EXTRA_FOLDERS", ())
    with (
        pytest.raises(InputError, match="CLIENT needs ssh: apt-get install openssh-client"),
        remote.connected("far-host", Path("hammer"), frozenset()),
    ):
        pass


def test_a_program_that_is_not_there_is_a_skip_with_a_remedy(hosts: Hosts) -> None:
    hosts.make(variant='server = "fake-server"\nload = "wrk"', change=("[hammer]", "[wrk]"))
    done = hosts.bench()
    assert (done.returncode, done.stderr) == (0, "")
    why = "wrk is not installed at CLIENT (there: apt-get install wrk)"
    assert f"skipped: sample server: {why}" in done.stdout
    assert hosts.of_type("repetition") == []


def test_a_hammer_that_does_not_run_there_is_a_skip(hosts: Hosts) -> None:
    hosts.make(starts="'hammer: no such C library'")
    done = hosts.bench()
    assert done.returncode == 0
    assert "hammer does not run there" in done.stdout
    assert "no such C library" in done.stdout


def test_a_hammer_for_another_processor_is_a_skip(hosts: Hosts) -> None:
    hosts.make()
    hosts.be("Linux 6.1", "pdp11")
    done = hosts.bench()
    assert (done.returncode, done.stderr) == (0, "")
    assert f"hammer is built for {os.uname().machine}, CLIENT is pdp11" in done.stdout


def test_a_client_that_is_no_linux_is_one_line(hosts: Hosts) -> None:
    hosts.make()
    hosts.be("Darwin 23.1")
    done = hosts.bench()
    assert (done.returncode, done.stderr) == (2, "CLIENT must be a Linux, and is Darwin 23.1\n")


def test_a_load_that_fails_is_a_failure_without_an_address(hosts: Hosts) -> None:
    hosts.make(extra="sys.exit(f'hammer: {address}: nothing fetched')")
    done = hosts.bench()
    assert done.returncode == 1
    why = "hammer ended with status 1 at CLIENT: hammer: SERVER: nothing fetched"
    assert f"failed: sample server: {why}" in done.stderr
    assert hosts.nothing_is_left()


def test_a_load_that_does_not_end_is_ended(hosts: Hosts) -> None:
    hosts.make(extra="time.sleep(60)", change=("[profile.smoke]", "[profile.smoke]\ntimeout = 1"))
    done = hosts.bench()
    assert "hammer did not end within 1 s at CLIENT" in done.stderr
    assert hosts.nothing_is_left()


def test_ctrl_c_leaves_nothing_on_either_side(hosts: Hosts) -> None:
    hosts.make(extra=ASLEEP)
    process = hosts.start()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 130
    assert hosts.nothing_is_left()


def test_a_killed_harness_leaves_nothing_on_either_side(hosts: Hosts) -> None:
    hosts.make(extra=ASLEEP)
    process = hosts.start()
    process.kill()
    process.communicate(timeout=20)
    await_(hosts.nothing_is_left)


def test_a_lost_connection_is_one_line_and_the_rest_is_measured_next_time(hosts: Hosts) -> None:
    mended = hosts.far.parent / "mended"
    hosts.make(extra=f"if not os.path.exists({str(mended)!r}): {ASLEEP}")
    process = hosts.start()
    os.kill(int(hosts.pid.read_text(encoding="utf-8")), signal.SIGKILL)
    _, err = process.communicate(timeout=40)
    assert process.returncode == 1
    # what ssh said of it, if it said anything, stands in between
    lost = r"the connection to CLIENT was lost(: .*)?; the same command goes on from here\n"
    assert re.fullmatch(lost, err)
    await_(hosts.nothing_is_left)
    mended.touch()
    done = hosts.bench()
    assert (done.returncode, done.stderr) == (0, "")
    assert "measured anew" not in done.stdout
    assert len(hosts.of_type("repetition")) == 2


def test_an_address_of_ours_that_is_none_is_one_line(hosts: Hosts) -> None:
    hosts.make()
    hosts.ssh(seen="192.0.2.77")
    done = hosts.bench()
    assert done.returncode == 2
    assert done.stderr == (
        "CLIENT reaches us at 192.0.2.77, but nothing can listen there "
        "(Cannot assign requested address): say SERVER=ADDR, one of this host\n"
    )
    hosts.monkeypatch.setenv("SERVER", "127.0.0.1")
    assert hosts.bench().returncode == 0


# ---- parts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "connection", "why"),
    [
        ("", "", "CLIENT reaches us at an unknown address, which is no IPv4 address"),
        ("", "fe80::1%eth0 1 2 3", "CLIENT reaches us at fe80::1%eth0, which is no IPv4 address"),
        ("far-host", "127.0.0.1 1 2 3", "SERVER=far-host, which is no IPv4 address"),
        ("192.0.2.77", "127.0.0.1 1 2 3", "SERVER=192.0.2.77, but nothing can listen there"),
    ],
)
def test_an_address_nobody_can_listen_on(told: str, connection: str, why: str) -> None:
    with pytest.raises(InputError) as caught:
        remote.server_address(told, connection)
    assert str(caught.value).startswith(why)
    assert remote.server_address("", "127.0.0.2 1 2 3") == "127.0.0.2"
    assert remote.server_address("127.0.0.3", "127.0.0.2 1 2 3") == "127.0.0.3"


def load(**changes: Any) -> Experiment:
    variant = {"name": "a", **changes.pop("variant", {})}
    if "peer" not in variant:
        variant["server"] = "09-epoll"
    args = changes.pop("args", ["{url}/a"])
    tools = {variant.get("load", "hammer"): {"args": args}}
    metric = [{"name": "m", "scalar": changes.pop("scalar", "requests_per_s"), "unit": "1"}]
    docroot = {"files": {"a": 1}}
    variants = changes.pop("variants", [variant])
    whole = {"kind": "load", "docroot": docroot, "metric": metric, "variant": variants}
    return parsed(**{**whole, **tools, **changes})


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, ""),
        ({"args": ["-i", "{urls}"]}, ""),
        ({"helper": [{"name": "h", "command": ["{bin}/h"]}]}, "its helpers"),
        ({"needs": ["namespace"]}, "a network namespace"),
        ({"variant": {"needs": ["namespace"]}}, "a network namespace"),
        ({"scalar": "segments_per_request"}, "the segments"),
        ({"args": ["--source", "127.1.0.1", "{url}/a"]}, "loopback addresses"),
        ({"args": ["--samples", "{scratch}/s", "{url}/a"]}, "a folder of this host"),
        ({"variant": {"load_args": ["--herd", "10"]}}, "loopback addresses"),
        ({"phase": [{"name": "p", "args": ["--herd", "10"]}]}, "loopback addresses"),
        ({"variant": {"peer": "tcpserver"}}, "tcpserver listens on 127.0.0.1"),
        ({"variant": {"peer": "nginx"}}, ""),
    ],
)
def test_what_cannot_come_from_another_host(
    changes: dict[str, Any], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).resolve().parents[2])
    found = load(**changes)
    reason = remote.not_from_afar(found, found.variants[0])
    assert (why in reason) if why else (reason == "")


def test_an_experiment_of_which_nothing_is_left_is_one_line() -> None:
    helpers = [{"name": "h", "command": ["{bin}/h"]}]
    reason = "not from another host: its helpers run beside the server"
    assert remote.none_from_afar(load(helper=helpers)) == reason
    assert remote.none_from_afar(load()) == ""
    assert remote.none_from_afar(parsed()) == "no load, so nothing for CLIENT to do"
    some = [{"name": "a", "server": "s"}, {"name": "b", "server": "s", "load": "none"}]
    assert remote.none_from_afar(load(variants=some)) == ""


def test_the_far_shell_reads_one_short_line_whatever_shell_it_is() -> None:
    words = remote.command("u@h", "echo '!$x'\n")
    assert words[-2] == "u@h"
    assert words[-1] == "exec sh -c 'eval \"$(head -c 11)\"'"
    assert "!" not in words[-1]
    assert "\n" not in words[-1]


@pytest.mark.parametrize(("text", "value"), [("0m0.010s", 0.01), ("2m1.5s", 121.5), ("?", 0.0)])
def test_times_of_a_shell(text: str, value: float) -> None:
    assert remote.seconds(text) == value
