"""deps.sh on made-up machines: what it says, when it asks, when and how it installs, and what it
fetches; and its table.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from setup.made_up_machine import FAKES, HARNESS, TREE, Machine, Result

from harness.system import places

LONG_AGO = 3 * 86400  #: seconds
ASK_FOR = "ask for:\n  apt-get install --no-install-recommends wrk\n"
MAY_GO_ON = "going on; what needs them is skipped"
TABLE = [
    line.split("\t")
    for line in (TREE / HARNESS / "packages.tsv").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


# ---- nothing to do, nothing to say


def test_all_here_is_silent(machine: Machine) -> None:
    """Then it needs no means to fetch, either."""
    machine.have_all_but("python3-pip", "ca-certificates")
    assert machine.run() == machine.run(DEPS="yes") == Result(0, "")
    assert machine.run(typed="") == Result(0, "")
    assert machine.calls() == []


def test_only_the_classes_asked_for(machine: Machine) -> None:
    machine.have("gcc", "libc6-dev", "make", "python3")
    said = {name: machine.run(*name.split(), DEPS="skip").said for name in ("build", "lint", "")}
    assert "dietlibc-dev" in said["build"] and "pandoc" not in said["build"]
    assert "shellcheck" in said["lint"] and "shellcheck" not in said[""]
    assert "nginx" not in said[""]


# ---- who is asked, and what is installed then


@dataclass(frozen=True)
class Case:
    says: str
    installed: str = ""
    typed: str | None = None  #: on a terminal
    deps: str = "ask"
    sudo: str | None = None  #: of a user without rights; else root
    asked: bool = False


CASES = {
    "yes": Case("install these 1 packages with apt-get? [y/N]", "wrk", "y\n", asked=True),
    "no": Case(MAY_GO_ON, typed="n\n", asked=True),
    "enter": Case(MAY_GO_ON, typed="\n", asked=True),
    "end of file": Case(MAY_GO_ON, typed="\x04", asked=True),
    "neither": Case(MAY_GO_ON, typed="maybe\n", asked=True),
    "sudo": Case("", "wrk", "y\n", sudo="password", asked=True),
    "sudo, no": Case(MAY_GO_ON, "", "n\n", sudo="password", asked=True),
    "sudo refuses": Case("sudo did not let us", "", "y\n", sudo="refusing", asked=True),
    "no sudo": Case(ASK_FOR, "", "y\n", sudo=""),
    "user, no terminal": Case(MAY_GO_ON, sudo="free"),
    "root, no terminal": Case("root without a terminal", "wrk"),
    "skip": Case(MAY_GO_ON, deps="skip"),
    "skip, terminal": Case(MAY_GO_ON, typed="y\n", deps="skip"),
    "skip, user": Case(MAY_GO_ON, deps="skip", sudo="password"),
    "DEPS=yes": Case("", "wrk", deps="yes"),
    "DEPS=yes, terminal": Case("", "wrk", typed="", deps="yes"),
    "DEPS=yes, sudo": Case("", "wrk", deps="yes", sudo="free"),
    "DEPS=yes, no sudo": Case(ASK_FOR, deps="yes", sudo=""),
    "DEPS=yes, password": Case(ASK_FOR, deps="yes", sudo="password"),
    "DEPS=yes, refused": Case(ASK_FOR, deps="yes", sudo="refusing"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_who_is_asked(machine: Machine, case: Case) -> None:
    machine.have_all_but("wrk")
    if case.sudo is not None:
        machine.user("student", sudo=case.sudo)
    result = machine.run(typed=case.typed, DEPS=case.deps)
    assert (result.status, result.said.count("[y/N]")) == (0, case.asked)
    assert result.said.index("cross-check of hammer") < result.said.rindex(case.says)
    assert "still missing" not in result.said or not case.installed
    assert machine.installed() == ([case.installed] if case.installed else [])
    # sudo reports who may not use it: it is not tried before a yes
    if case.deps != "yes" and case.typed != "y\n" and case.sudo:
        assert machine.calls() == []


# ---- how it installs, and what may go wrong


@pytest.mark.parametrize(
    ("state", "says", "installed", "updates"),
    [
        ({}, "100 %", "wrk strace", False),
        ({"lists": "none"}, "apt-get update", "wrk strace", True),
        ({"lists": "old"}, "100 %", "wrk strace", False),
        ({"unknown": "wrk"}, "wrk: not in this release; skipped", "strace", False),
        ({"unknown": "wrk", "lists": "old"}, "apt-get update", "wrk strace", True),
        ({"stale": ""}, "404", "wrk strace", True),
        ({"interrupted": ""}, "dpkg --configure -a", "wrk strace", False),
        ({"broken": "wrk"}, "wrk: not installed: E: wrk has unmet dependencies", "strace", False),
    ],
)
def test_how_it_installs(
    machine: Machine, state: dict[str, str], says: str, installed: str, updates: bool
) -> None:
    """One that cannot be installed takes no other with it; what can be mended is."""
    machine.have_all_but("wrk", "strace")
    lists = machine.root / "var/lib/apt/lists"
    if state.get("lists") == "none":
        (lists / "x_Packages").unlink()
    elif state.get("lists") == "old":
        os.utime(lists, (time.time() - LONG_AGO,) * 2)
    for name in state.keys() - {"lists"}:
        (machine.fake / name).write_text(f"{state[name]}\n", encoding="ascii")
    result = machine.run(DEPS="yes")
    assert result.status == 0
    assert says in result.said
    assert machine.installed()[-1] == installed
    assert ("still missing:\n  wrk" in result.said) == ("wrk" not in installed)
    calls = machine.calls()
    assert any(" update" in call for call in calls) == updates
    assert ("dpkg --configure -a" in calls) == ("interrupted" in state)
    for call in (call for call in calls if call.startswith("apt-get")):
        assert call.endswith("[noninteractive]")
        assert " install " not in call or "--no-install-recommends" in call


# ---- what nothing runs without


@pytest.mark.parametrize("package", ["gcc", "python3", "make", "libc6-dev"])
def test_without_the_base_the_status_is_1(machine: Machine, package: str) -> None:
    machine.have_all_but(package)
    result = machine.run(DEPS="skip")
    assert result.status == 1
    assert "deps.sh: nothing can run without: " in result.said.splitlines()[-1]
    (machine.fake / "broken").write_text(f"{package}\n", encoding="ascii")
    assert machine.run(DEPS="yes").status == 1
    (machine.fake / "broken").write_text("", encoding="ascii")
    assert machine.run(DEPS="yes").status == 0


def test_a_header_counts_in_whichever_folder_a_release_has_it(machine: Machine) -> None:
    machine.have_all_but("libowfat-dev")
    with (machine.fake / "headers").open("a", encoding="ascii") as headers:
        headers.write("libowfat/iob.h\n")  # as in Debian 13
    assert machine.run() == Result(0, "")


def test_a_bare_machine_gets_everything(machine: Machine) -> None:
    machine.expect_what_is_made_up()
    result = machine.run(DEPS="yes")
    assert result.status == 0, result.said
    assert "still missing" not in result.said
    assert machine.run() == Result(0, "")


def test_modules_of_a_python_that_will_not_be_used_do_not_count(machine: Machine) -> None:
    machine.have_all_but("python3-scipy", "python3-jsonschema", "python3-xdist")
    machine.script(machine.bin / "python3", "echo ' tomllib jsonschema xdist '")
    (machine.root / "usr/bin").mkdir()
    machine.script(machine.root / "usr/bin/python3", FAKES["python3"])
    said = machine.run(DEPS="yes").said
    assert "python3-scipy" in said and "python3-jsonschema" in said
    assert machine.run() == Result(0, "")


def test_without_apt_it_lists_generic_names_and_goes_on(machine: Machine) -> None:
    machine.no_apt()
    result = machine.run("build")
    assert result.status == 1
    assert "C compiler" in result.said.splitlines()[-1]
    machine.have_all_but("nghttp2-client", "gnuplot-nox")
    for result in (machine.run(), machine.run(DEPS="yes"), machine.run(typed="y\n")):
        assert result.status == 0
        assert "h2load (nghttp2)" in result.said and "gnuplot 5.4 or later" in result.said
        assert "gnuplot-nox" not in result.said and "apt-get install" not in result.said


def test_status(machine: Machine) -> None:
    machine.have_all_but("wrk")
    lines = machine.run("--status", "measure").said.splitlines()
    assert {"wrk\tmissing", "strace\tok"} <= set(lines)
    assert "pandoc" not in "".join(lines)
    assert machine.calls() == []


@pytest.mark.parametrize(
    ("words", "deps", "complaint"),
    [
        (["biuld"], "ask", 'unknown class "biuld"'),
        ([], "maybe", 'DEPS is "maybe"; it can be ask, yes or skip'),
    ],
)
def test_bad_usage(machine: Machine, words: list[str], deps: str, complaint: str) -> None:
    result = machine.run(*words, DEPS=deps)
    assert (result.status, len(result.said.splitlines())) == (2, 1)
    assert complaint in result.said


# ---- its table


def test_the_table_is_in_order() -> None:
    classes = re.compile(
        r"((base|build|measure|book|slides|fetch|test|lint|browser|cross|peers)(,|$))+"
    )
    kind = re.compile(r"(command|header|python|font|file|daemon|reveal|zig|perl):[^|]+")
    for line in TABLE:
        _, found, provides, name, needed_by = line
        assert classes.fullmatch(found), line
        assert all(kind.fullmatch(alternative) for alternative in provides.split("|")), line
        assert name and needed_by, line
    assert len({line[0] for line in TABLE}) == len(TABLE)


def test_harness_and_table_name_the_same_packages() -> None:
    """needs.py tells a user what to install; so does deps.sh."""
    items = {
        alternative.partition(":")[2]: line[0]
        for line in reversed(TABLE)
        for alternative in line[2].split("|")
    }
    for program in places.PACKAGES.keys() & items.keys():
        assert items[program] in places.PACKAGES[program].split(), program


# ---- reveal.js and Zig, which are not in Debian

REVEAL = "build/node/node_modules/reveal.js/dist/reveal.js"
ZIG = "build/zig/0.17.1/zig"
FETCHED = {"slides": ("reveal.js@5.2.1", REVEAL), "cross": ("ziglang@0.17.1", ZIG)}
PLAN = {"slides": "fetch reveal.js 5.2.1 (2.4 MB) into build/node",
        "cross": "fetch Zig 0.17.1 (101 MB; 411 MB unpacked) into build/zig"}  # fmt: skip
BOTH = pytest.mark.parametrize("what", FETCHED)


@BOTH
def test_fetching_needs_no_right_but_a_yes(machine: Machine, what: str) -> None:
    package, place = FETCHED[what]
    machine.have_all_but(package)
    assert (machine.run("build").said == "") and package in machine.run(what, DEPS="skip").said
    machine.user("student")
    machine.expect_what_is_made_up()
    left_by_a_run_that_was_killed = "/".join([*place.split("/")[:2], "new.99999"])
    (machine.tree / left_by_a_run_that_was_killed).mkdir(parents=True)
    assert f"{PLAN[what]}? [y/N]" in machine.run(what, typed="n\n").said
    assert MAY_GO_ON in machine.run(what).said  # nobody can say yes
    assert not (machine.tree / place).exists()
    assert machine.run(what, typed="y\n").status == 0
    assert (machine.tree / place).exists()
    assert not [*machine.tree.glob("/".join([*place.split("/")[:2], "new.*"]))]
    assert machine.run(what) == Result(0, "")
    assert machine.calls() == []


@BOTH
@pytest.mark.parametrize("network", [True, False])
def test_what_is_not_what_was_expected_is_not_used(
    machine: Machine, what: str, network: bool
) -> None:
    package, place = FETCHED[what]
    machine.have_all_but(package)
    if network:
        (machine.fake / "network").touch()
    result = machine.run(what, DEPS="yes")
    assert result.status == 0
    assert ("wrong checksum" if network else "not fetched: ERROR: no route") in result.said
    assert "going on" in result.said
    assert not (machine.tree / place).exists()


def test_where_there_is_npm_and_no_pip(machine: Machine) -> None:
    """It brings reveal.js, not Zig. What was there by hand is taken if it is the right one."""
    machine.have_all_but("reveal.js@5.2.1", "ziglang@0.17.1", "python3-pip")
    machine.script(machine.bin / "npm", FAKES["npm"])
    machine.expect_what_is_made_up()
    result = machine.run("slides", "cross", DEPS="yes")
    assert result.status == 0
    assert "not fetched: pip is not here" in result.said
    assert (machine.tree / REVEAL).exists() and not (machine.tree / ZIG).exists()
    assert machine.installed() == []
    (machine.tree / "build/node/reveal-5.2.1").unlink()
    package = (machine.tree / REVEAL).parents[1] / "package.json"
    for version, said in (("5.2.1", ""), ("6.0.2", "reveal.js@5.2.1")):
        package.write_text(f'{{\n  "version": "{version}"\n}}\n', encoding="ascii")
        assert said in machine.run("slides", DEPS="skip").said
        assert said or machine.run("slides") == Result(0, "")


# ---- peers

PEERS = (
    "nginx", "lighttpd", "apache2", "h2o", "perlbal", "ucspi-tcp", "ipsvd", "openssh-server",
)  # fmt: skip
POLICY = "usr/sbin/policy-rc.d"


def services(machine: Machine, *names: str) -> None:
    (machine.root / "etc/init.d").mkdir(parents=True)
    for name in names:
        (machine.root / "etc/init.d" / name).touch()


def boot_link(machine: Machine, name: str) -> Path:
    link = machine.root / "etc/systemd/system" / f"{name.split('.')[-1]}s.wants" / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(f"/usr/lib/systemd/system/{name}")
    return link


def test_no_peer_is_started_and_none_at_boot(machine: Machine) -> None:
    machine.have_all_but(*PEERS)
    (machine.fake / "policy").touch()  # the fake apt-get shows the policy it finds
    services(machine, "nginx")
    names = "nginx.service", "lighttpd-maint.timer", "ssh.service"  # the last not as its package
    links = [boot_link(machine, name) for name in names]
    other = boot_link(machine, "nginx2.service")
    assert machine.run("peers", DEPS="yes").status == 0
    assert not any(link.is_symlink() for link in links)
    assert other.is_symlink()
    assert machine.installed() == [" ".join(PEERS)]
    assert "exit 101" in machine.calls()
    assert not (machine.root / POLICY).exists()
    assert "update-rc.d nginx disable" in machine.calls()


def test_peer_that_was_there_keeps_its_service(machine: Machine) -> None:
    machine.have_all_but("lighttpd")
    services(machine, "nginx", "lighttpd")
    link = boot_link(machine, "nginx.service")
    machine.run("peers", DEPS="yes")
    assert link.is_symlink()
    disabled = [c for c in machine.calls() if c.startswith("update-rc.d")]
    assert disabled == ["update-rc.d lighttpd disable"]


@pytest.mark.parametrize(("status", "installs"), [(0, False), (101, True)])
def test_a_policy_of_the_users_own_is_kept(machine: Machine, status: int, installs: bool) -> None:
    machine.have_all_but("nginx")
    policy = machine.root / POLICY
    machine.script(policy, f"exit {status}")
    before = policy.read_text()
    result = machine.run("peers", DEPS="yes")
    assert (result.status, policy.read_text()) == (0, before)
    assert machine.installed() == (["nginx"] if installs else [])
    assert ("move it away" in result.said) != installs


def test_a_policy_whose_maker_is_gone_prevents_nothing(machine: Machine) -> None:
    machine.have_all_but("nginx")
    (machine.fake / "policy").touch()
    machine.script(machine.root / POLICY, "# deps.sh of the web server book: left over\nexit 101")
    machine.run("peers", DEPS="yes")
    assert not (machine.root / POLICY).exists()
    lines = machine.calls()
    place = lines.index("#!/bin/sh")
    written = "\n".join(lines[place : place + 4])
    ours = re.sub(r"/proc/\d+", f"/proc/{os.getpid()}", written)
    for script, status in ((written, 0), (ours, 101)):
        command = ["sh", "-c", script, "nginx", "start"]
        assert subprocess.run(command, check=False).returncode == status


def test_nothing_stays_when_it_is_stopped(machine: Machine) -> None:
    machine.have_all_but("nginx")
    (machine.fake / "slow").touch()
    services(machine, "nginx")
    link = boot_link(machine, "nginx.service")
    child = subprocess.Popen(
        machine.command("peers"), env=machine.environment(DEPS="yes"), start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 30
    while not (machine.fake / "begun").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert (machine.root / POLICY).exists()
    os.killpg(child.pid, signal.SIGTERM)
    assert child.wait(timeout=30) != 0
    assert not (machine.root / POLICY).exists()
    assert "update-rc.d nginx disable" in machine.calls()
    assert not link.is_symlink()
