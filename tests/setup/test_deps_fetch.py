"""deps.sh: reveal.js and Zig, which are not in Debian, and peers, which must never be started."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from setup.made_up_machine import FAKES, Machine, Result


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


# ---- reveal.js


def reveal(machine: Machine) -> Path:
    return machine.tree / "build/node/node_modules/reveal.js/dist/reveal.js"


def test_reveal_by_pip_needs_no_right(machine: Machine) -> None:
    machine.have_all_but("reveal.js@5.2.1")
    machine.user("student")
    machine.expect_the_made_up_reveal()
    (machine.fake / "network").touch()
    (machine.tree / "build/node/new.99999").mkdir(parents=True)  # left by a run that was killed
    assert machine.run(DEPS="yes").status == 0
    assert reveal(machine).exists()
    assert (machine.tree / "build/node/reveal-5.2.1").exists()
    assert list((machine.tree / "build/node").glob("new.*")) == []
    assert machine.calls() == []


def test_reveal_by_npm_where_there_is_no_pip(machine: Machine) -> None:
    machine.have_all_but("reveal.js@5.2.1", "python3-pip")
    machine.script(machine.bin / "npm", FAKES["npm"])
    machine.expect_the_made_up_reveal()
    (machine.fake / "network").touch()
    assert machine.run(DEPS="yes").status == 0
    assert reveal(machine).exists()
    assert machine.installed() == []


def test_something_else_than_reveal_is_not_used(machine: Machine) -> None:
    machine.have_all_but("reveal.js@5.2.1")
    (machine.fake / "network").touch()
    result = machine.run(DEPS="yes")
    assert result.status == 0
    assert "wrong checksum" in result.said
    assert not reveal(machine).exists()
    assert not (machine.tree / "build/node/reveal-5.2.1").exists()


def test_reveal_without_network(machine: Machine) -> None:
    machine.have_all_but("reveal.js@5.2.1")
    result = machine.run(DEPS="yes")
    assert result.status == 0
    assert "not fetched: ERROR: no route" in result.said
    assert "going on" in result.said


def test_reveal_put_there_by_hand_with_npm(machine: Machine) -> None:
    machine.have_all_but()
    (machine.tree / "build/node/reveal-5.2.1").unlink()
    place = machine.tree / "build/node/node_modules/reveal.js/package.json"
    place.write_text('{\n  "version": "5.2.1"\n}\n', encoding="ascii")
    assert machine.run() == Result(0, "")
    place.write_text('{\n  "version": "6.0.2"\n}\n', encoding="ascii")
    assert "reveal.js@5.2.1" in machine.run(DEPS="skip").said


# ---- Zig


def zig(machine: Machine) -> Path:
    return machine.tree / "build/zig/0.17.1/zig"


def test_zig_is_wanted_by_cross_alone(machine: Machine) -> None:
    machine.have_all_but()
    assert machine.run() == Result(0, "")
    result = machine.run("cross", DEPS="skip")
    assert result.status == 0
    assert "ziglang@0.17.1" in result.said
    assert "going on" in result.said
    assert not zig(machine).exists()


def test_zig_by_pip_needs_no_right(machine: Machine) -> None:
    machine.have_all_but()
    machine.user("student")
    machine.expect_the_made_up_zig()
    (machine.fake / "network").touch()
    (machine.tree / "build/zig/new.99999").mkdir(parents=True)  # left by a run that was killed
    said = machine.on_terminal("y\n", "cross").said
    assert "fetch Zig 0.17.1 (101 MB; 411 MB unpacked) into build/zig? [y/N]" in said
    assert os.access(zig(machine), os.X_OK)
    assert list((machine.tree / "build/zig").glob("new.*")) == []
    assert machine.calls() == []
    assert machine.run("cross") == Result(0, "")


def test_zig_is_not_fetched_without_a_yes(machine: Machine) -> None:
    machine.have_all_but()
    machine.user("student")
    machine.expect_the_made_up_zig()
    (machine.fake / "network").touch()
    assert machine.on_terminal("n\n", "cross").status == 0
    assert machine.run("cross").status == 0  # without a terminal, and not root
    assert not zig(machine).exists()


def test_something_else_than_zig_is_not_used(machine: Machine) -> None:
    machine.have_all_but()
    (machine.fake / "network").touch()
    result = machine.run("cross", DEPS="yes")
    assert result.status == 0
    assert "wrong checksum" in result.said
    assert not zig(machine).exists()


@pytest.mark.parametrize(
    ("missing", "reason"),
    [((), "not fetched: ERROR: no route"), (("python3-pip",), "not fetched: pip is not here")],
)
def test_zig_that_cannot_be_fetched(machine: Machine, missing: tuple[str], reason: str) -> None:
    machine.have_all_but(*missing)
    if missing:
        machine.script(machine.bin / "npm", FAKES["npm"])  # which brings reveal.js, not Zig
    result = machine.run("cross", DEPS="yes")
    assert result.status == 0
    assert reason in result.said


# ---- peers

PEERS = (
    "nginx", "lighttpd", "apache2", "h2o", "perlbal", "ucspi-tcp", "ipsvd", "openssh-server",
)  # fmt: skip


def boot_link(machine: Machine, target: str, unit: str) -> Path:
    folder = machine.root / "etc/systemd/system" / f"{target}.wants"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / unit).symlink_to(f"/usr/lib/systemd/system/{unit}")
    return folder / unit


def test_no_peer_is_started_and_none_at_boot(machine: Machine) -> None:
    machine.have_all_but(*PEERS)
    (machine.fake / "policy").touch()  # the fake apt-get shows the policy it finds
    (machine.root / "etc/init.d").mkdir(parents=True)
    (machine.root / "etc/init.d/nginx").touch()
    links = [
        boot_link(machine, "multi-user.target", "nginx.service"),
        boot_link(machine, "timers.target", "lighttpd-maint.timer"),  # Debian 13 has one
        boot_link(machine, "multi-user.target", "ssh.service"),  # not named as its package
    ]
    other = boot_link(machine, "multi-user.target", "nginx2.service")
    assert machine.run("peers", DEPS="yes").status == 0
    assert not any(link.is_symlink() for link in links)
    assert other.is_symlink()
    assert machine.installed() == [" ".join(PEERS)]
    assert "exit 101" in machine.calls()
    assert not (machine.root / "usr/sbin/policy-rc.d").exists()
    assert "update-rc.d nginx disable" in machine.calls()


def test_peer_that_was_there_keeps_its_service(machine: Machine) -> None:
    machine.have_all_but("lighttpd")
    (machine.root / "etc/init.d").mkdir(parents=True)
    (machine.root / "etc/init.d/nginx").touch()
    (machine.root / "etc/init.d/lighttpd").touch()
    link = boot_link(machine, "multi-user.target", "nginx.service")
    machine.run("peers", DEPS="yes")
    assert link.is_symlink()
    disabled = [c for c in machine.calls() if c.startswith("update-rc.d")]
    assert disabled == ["update-rc.d lighttpd disable"]


@pytest.mark.parametrize(("status", "installs"), [(0, False), (101, True)])
def test_a_policy_of_the_users_own_is_kept(machine: Machine, status: int, installs: bool) -> None:
    machine.have_all_but("nginx")
    policy = machine.root / "usr/sbin/policy-rc.d"
    machine.script(policy, f"exit {status}")
    before = policy.read_text()
    result = machine.run("peers", DEPS="yes")
    assert result.status == 0
    assert policy.read_text() == before
    assert machine.installed() == (["nginx"] if installs else [])
    assert ("move it away" in result.said) != installs


def test_policy_left_by_a_killed_run_is_removed(machine: Machine) -> None:
    machine.have_all_but("nginx")
    policy = machine.root / "usr/sbin/policy-rc.d"
    machine.script(policy, "# deps.sh of the web server book: left over\nexit 101")
    machine.run("peers", DEPS="yes")
    assert not policy.exists()


def test_a_policy_whose_maker_is_gone_prevents_nothing(machine: Machine) -> None:
    machine.have_all_but("nginx")
    (machine.fake / "policy").touch()
    machine.run("peers", DEPS="yes")
    lines = machine.calls()
    policy = machine.fake / "policy-rc.d"
    place = lines.index("#!/bin/sh")
    policy.write_text("\n".join(lines[place : place + 4]) + "\n", encoding="ascii")
    done = subprocess.run(["sh", str(policy), "nginx", "start"], check=False)
    assert done.returncode == 0
    ours = re.sub(r"/proc/\d+", f"/proc/{os.getpid()}", policy.read_text(encoding="ascii"))
    policy.write_text(ours, encoding="ascii")
    done = subprocess.run(["sh", str(policy), "nginx", "start"], check=False)
    assert done.returncode == 101


def test_nothing_stays_when_it_is_stopped(machine: Machine) -> None:
    machine.have_all_but("nginx")
    (machine.fake / "slow").touch()
    (machine.root / "etc/init.d").mkdir(parents=True)
    (machine.root / "etc/init.d/nginx").touch()
    link = boot_link(machine, "multi-user.target", "nginx.service")
    child = subprocess.Popen(
        machine.command("peers"), env=machine.environment(DEPS="yes"), start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 30
    while not (machine.fake / "begun").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    policy = machine.root / "usr/sbin/policy-rc.d"
    assert policy.exists()
    os.killpg(child.pid, signal.SIGTERM)
    assert child.wait(timeout=30) != 0
    assert not policy.exists()
    assert "update-rc.d nginx disable" in machine.calls()
    assert not link.is_symlink()
