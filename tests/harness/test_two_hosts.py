"""CLIENT=user@host in earnest: two network namespaces with a cable between them, an sshd in one,
the harness and a server of ours in the other.

Only root can have that. The namespaces and the cable end with the two processes that hold them,
which the kernel ends with us.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from made_up import Tree, await_

from harness.system import needs, places

# Of the block for documentation, RFC 5737: nobody's.
HERE, FAR = "192.0.2.1", "192.0.2.2"
PORT = "2222"
SSHD = """\
Port {port}
ListenAddress {far}
HostKey {folder}/host
AuthorizedKeysFile {folder}/authorized
PidFile none
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
SetEnv TMPDIR={folder}/tmp
"""
SSH = """\
Host far
    HostName {far}
    Port {port}
    User root
    IdentityFile {folder}/user
    IdentitiesOnly yes
    UserKnownHostsFile {folder}/known
    StrictHostKeyChecking yes
"""
EXPERIMENT = """\
id = "sample"
title = "A sample"
question = "How fast?"
kind = "load"
[profile.smoke]
rounds = 1
[profile.quick]
rounds = 1
[profile.full]
rounds = 1
[docroot.files]
"small.html" = 1000
[hammer]
args = ["-c", "4", "-n", "400", "--json", "{url}/small.html"]
[[variant]]
name = "epoll"
server = "09-epoll"
[[variant]]
name = "prefork"
server = "03-prefork"
[[metric]]
name = "rate"
scalar = "requests_per_s"
unit = "requests/s"
"""
WITH_US = ("setpriv", "--pdeathsig", "KILL")


@dataclass
class Hosts:
    tree: Tree
    folder: Path
    here: list[str]  # the words that bring a command into its namespace
    far: list[str]

    def start(self) -> subprocess.Popen[str]:
        return self.tree.start("bench", "--profile", "smoke", inside=[*WITH_US, *self.here])

    def received(self) -> int:
        """Packets that came over the cable, to the server's end."""
        words = [*self.here, "ip", "-s", "-j", "link", "show", "here"]
        done = subprocess.run(words, capture_output=True, check=True)
        return int(json.loads(done.stdout)[0]["stats64"]["rx"]["packets"])

    def left(self) -> list[str]:
        """What of a measurement is there on either side: processes, and temporary folders."""
        marks = (str(self.tree.root / "build").encode(), b"./hammer", b"remote.sh")
        found = [str(path) for path in (self.folder / "tmp").iterdir()]
        for entry in Path("/proc").iterdir():
            try:
                place = os.readlink(entry / "cwd")
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            ours = place.startswith((str(self.folder / "tmp"), str(self.tree.root)))
            if ours and any(mark in command for mark in marks):
                found.append(command.decode(errors="replace"))
        return found


@contextlib.contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """With its block, as what it has started is with it."""
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def hold() -> subprocess.Popen[bytes]:
    """A network namespace, until this process ends."""
    script = "ip link set lo up && echo && exec sleep 600"
    words = [*WITH_US, "unshare", "--net", "sh", "-c", script]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    if not process.stdout.readline():
        _, said = process.communicate()
        pytest.skip(f"no network namespace: {said.decode().strip()}")
    return process


def cable(here: int, far: int) -> None:
    """A pair of interfaces, one in each namespace."""
    commands = [f"ip link add here netns {here} type veth peer name far netns {far}"]
    for holder, name, address in ((here, "here", HERE), (far, "far", FAR)):
        inside = f"nsenter --net -t {holder} ip"
        commands += [
            f"{inside} address add {address}/30 dev {name}",
            f"{inside} link set {name} up",
        ]
    for command in commands:
        done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"no cable between namespaces: {done.stderr.strip()}")


def keys(folder: Path) -> None:
    for name in ("host", "user"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
    public = (folder / "host.pub").read_text(encoding="ascii")
    (folder / "known").write_text(f"[{FAR}]:{PORT} {public}", encoding="ascii")
    shutil.copy(folder / "user.pub", folder / "authorized")


def serve(hosts: Hosts) -> subprocess.Popen[bytes]:
    """sshd wants an empty /run/sshd, which it gets on a /run of its own."""
    folder = hosts.folder
    (folder / "sshd").write_text(SSHD.format(port=PORT, far=FAR, folder=folder), encoding="utf-8")
    script = 'mount -t tmpfs none /run && mkdir -m 755 /run/sshd && exec "$0" "$@"'
    daemon = [places.which("sshd") or "sshd", "-D", "-e", "-f", str(folder / "sshd")]
    words = [*WITH_US, "unshare", "--mount", "sh", "-c", script, *daemon]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [*hosts.far, *words], stdout=log, stderr=log, stdin=subprocess.DEVNULL
        )


def await_sshd(hosts: Hosts, sshd: subprocess.Popen[bytes]) -> None:
    """A system whose sshd, or whose root, lets nobody in cannot have this test."""
    log = hosts.folder / "log"
    await_(lambda: sshd.poll() is not None or b"listening on" in log.read_bytes())
    words = [*hosts.here, "ssh", "far", "true"]
    if subprocess.run(words, capture_output=True, check=False).returncode != 0:
        said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        pytest.skip(f"sshd lets nobody in: {said[-1] if said else 'it does not say why'}")


def programs(tree: Tree, build: Path) -> None:
    """Of the tree under test: it has to be there."""
    for name in ("bin/09-epoll", "bin/03-prefork", "bin/hammer"):
        path = build.absolute() / name
        assert path.is_file(), f"{path} is not there: make servers"
        place = tree.root / "build" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)


@pytest.fixture
def hosts(
    tree: Tree, tmp_path: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Hosts]:
    if os.geteuid() != 0:
        pytest.skip("only root can lay a cable between network namespaces")
    for name in ("ssh", "ssh-keygen", "sshd", "ip", "own-mounts", "nsenter", "setpriv"):
        if not (answer := needs.probe(name)).ok:
            pytest.skip(f"{answer.reason} ({answer.remedy})")
    programs(tree, Path(pytestconfig.getoption("--build")))
    folder = tmp_path / "hosts"
    (folder / "tmp").mkdir(parents=True)
    (folder / "bin").mkdir()
    wrapper = folder / "bin" / "ssh"
    wrapper.write_text(f'#!/bin/sh\nexec {places.which("ssh")} -F {folder}/config "$@"\n')
    wrapper.chmod(0o755)
    text = SSH.format(far=FAR, port=PORT, folder=folder)
    (folder / "config").write_text(text, encoding="utf-8")
    keys(folder)
    monkeypatch.setenv("CLIENT", "far")
    monkeypatch.setenv("PATH", f"{folder}/bin:{os.environ['PATH']}")
    with ended(hold()) as here, ended(hold()) as far:
        cable(here.pid, far.pid)
        inside = [["nsenter", "--net", "-t", str(holder.pid)] for holder in (here, far)]
        found = Hosts(tree, folder, *inside)
        with ended(serve(found)) as sshd:
            await_sshd(found, sshd)
            yield found


@pytest.mark.long
def test_the_load_comes_over_the_cable_and_ctrl_c_ends_it(hosts: Hosts) -> None:
    hosts.tree.experiment(text=EXPERIMENT)
    before = hosts.received()
    process = hosts.start()
    _, said = process.communicate(timeout=100)
    assert (process.returncode, said) == (0, "")
    repetitions = hosts.tree.of_type("repetition", "client/sample")
    assert sorted(r["variant"] for r in repetitions) == ["epoll", "prefork"]
    for repetition in repetitions:
        assert repetition["scalars"]["requests"] == 400
        assert repetition["scalars"]["failed"] == 0
        assert repetition["scalars"]["server_cpu_s"] > 0
    # Each request is a connection of its own: at least a SYN, the request and an end.
    assert hosts.received() - before > 3 * 2 * 400
    text = json.dumps(hosts.tree.records("client/sample"))
    for name in (HERE, FAR, str(hosts.folder)):
        assert name not in text
    assert hosts.tree.records("client/sample")[0]["environment"]["client"]["cores"] >= 1
    assert hosts.left() == []

    hosts.tree.edit(('"400"', '"100000000"'))
    process = hosts.start()
    await_(lambda: any("--allow-host" in word for word in hosts.left()), process)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert hosts.left() == []
