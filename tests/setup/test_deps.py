"""deps.sh on made-up machines: what it says, when it asks, when and how it installs, and what it
fetches; its table; and what tests/fresh-machine would have it do on real ones.
"""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.conformance.process import wait_until
from tests.setup.made_up_machine import REVEAL, TABLE, TREE, Machine, Result

MAY_GO_ON = "going on; what needs them is skipped"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


# ---- what it says


def test_all_here_is_silent(machine: Machine) -> None:
    """Then it needs no means to fetch, either. A header counts in whichever folder a release has
    it: Debian 13 has moved libowfat's.
    """
    machine.have_all_but("python3-pip", "ca-certificates", "libowfat-dev")
    machine.put("headers", (machine.fake / "headers").read_text() + "libowfat/iob.h")
    assert machine.run() == machine.run(DEPS="yes") == machine.run(typed="") == Result(0, "")
    assert machine.calls() == []


def test_only_the_classes_asked_for(machine: Machine) -> None:
    machine.have("gcc", "libc6-dev", "make", "python3", "strace")
    said = {name: machine.run(*name.split(), DEPS="skip").said for name in ("build", "lint", "")}
    assert "dietlibc-dev" in said["build"] and "pandoc" not in said["build"]
    assert "shellcheck" in said["lint"] and "shellcheck" not in said[""]
    assert "nginx" not in said[""]
    lines = machine.run("--status", "measure").said.splitlines()
    assert {"wrk\tmissing", "strace\tok"} <= set(lines)
    assert "pandoc" not in "".join(lines)


def test_bad_usage(machine: Machine) -> None:
    classes = "build measure book slides test lint browser cross peers"
    refusal = f'deps.sh: unknown class "biuld"; there are {classes}\n'
    assert machine.run("biuld") == Result(2, refusal)
    refusal = 'deps.sh: DEPS is "maybe"; it can be ask, yes or skip\n'
    assert machine.run("build", DEPS="maybe") == Result(2, refusal)


# ---- who is asked, and whether it installs then

ASK_FOR = "ask for:\n  apt-get install --no-install-recommends wrk\n"


@pytest.mark.parametrize(
    ("deps", "sudo", "typed", "asked", "installs", "says"),
    [
        # sudo: None for root. typed: None where there is no terminal.
        ("ask", None, "y\n", True, True, "install these 1 packages with apt-get? [y/N]"),
        ("ask", None, "maybe\n", True, False, MAY_GO_ON),
        ("ask", None, "\x04", True, False, MAY_GO_ON),
        ("ask", "password", "y\n", True, True, ""),
        ("ask", "refusing", "y\n", True, False, "sudo did not let us"),
        ("ask", "", "y\n", False, False, ASK_FOR),
        ("ask", "free", None, False, False, MAY_GO_ON),
        ("ask", None, None, False, True, "root without a terminal"),
        ("skip", None, None, False, False, MAY_GO_ON),
        ("skip", "password", "y\n", False, False, MAY_GO_ON),
        ("yes", None, "", False, True, ""),
        ("yes", "free", None, False, True, ""),
        ("yes", "password", None, False, False, ASK_FOR),
        ("yes", "", None, False, False, ASK_FOR),
    ],
)
def test_who_is_asked(
    machine: Machine, deps: str, sudo: str | None, typed: str | None, asked: bool, installs: bool,
    says: str,
) -> None:  # fmt: skip
    machine.have_all_but("wrk")
    if sudo is not None:
        machine.user(sudo)
    result = machine.run(typed=typed, DEPS=deps)
    assert (result.status, result.said.count("[y/N]")) == (0, asked)
    assert result.said.index("cross-check of hammer") < result.said.rindex(says)
    assert machine.installed() == ["wrk"] * installs
    # sudo reports who may not use it: it is not tried before a yes
    if deps == "skip" or (deps == "ask" and typed != "y\n"):
        assert not any(call.startswith("sudo") for call in machine.calls())


# ---- how it installs, and what may go wrong


@pytest.mark.parametrize(
    ("state", "says", "installed", "updates"),
    [
        ({}, "100 %", "wrk strace", False),
        ({"lists": "none"}, "apt-get update", "wrk strace", True),
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
        os.utime(lists, (time.time() - 3 * 86400,) * 2)
    for name, text in state.items():
        machine.put(name, text)
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


def test_a_bare_machine_gets_everything(machine: Machine) -> None:
    """Without the base nothing can run, and that alone is an error."""
    refusal = "deps.sh: nothing can run without: "
    result = machine.run(DEPS="skip")
    assert result.status == 1
    base = "C compiler, C library headers, make, Python 3.11 or later"
    assert result.said.splitlines()[-1] == refusal + base
    machine.put("broken", "make")
    machine.expect_what_is_made_up()
    result = machine.run(DEPS="yes")
    assert (result.status, result.said.splitlines()[-1]) == (1, f"{refusal}make")
    machine.put("broken")
    result = machine.run(DEPS="yes")
    assert result.status == 0, result.said
    assert "still missing" not in result.said
    assert machine.run() == Result(0, "")


def test_modules_of_a_python_that_will_not_be_used_do_not_count(machine: Machine) -> None:
    machine.have_all_but("python3-scipy", "python3-pytest", "python3-xdist")
    (machine.root / "usr/bin").mkdir()
    (machine.bin / "python3").rename(machine.root / "usr/bin/python3")
    machine.script(machine.bin / "python3", "echo ' tomllib pytest xdist '")
    said = machine.run(DEPS="yes").said
    assert "python3-scipy" in said and "python3-pytest" in said
    assert machine.run() == Result(0, "")


def test_without_apt_it_lists_generic_names_and_goes_on(machine: Machine) -> None:
    for name in ("apt-get", "apt-cache"):
        (machine.bin / name).unlink()
    result = machine.run("build")
    assert result.status == 1
    assert "C compiler" in result.said.splitlines()[-1]
    machine.have_all_but("nghttp2-client", "gnuplot-nox")
    for result in (machine.run(), machine.run(DEPS="yes"), machine.run(typed="y\n")):
        assert result.status == 0
        assert "h2load (nghttp2)" in result.said and "gnuplot 5.4 or later" in result.said
        assert "gnuplot-nox" not in result.said and "apt-get install" not in result.said


# ---- reveal.js and Zig, which are not in Debian


@pytest.mark.parametrize(
    ("what", "package", "plan", "place"),
    [
        ("slides", "reveal.js@5.2.1", "fetch reveal.js 5.2.1 (2.4 MB) into build/node", REVEAL),
        ("cross", "ziglang@0.17.1", "fetch Zig 0.17.1 (101 MB; 411 MB unpacked) into build/zig",
         Path("build/zig/0.17.1")),
    ],
)  # fmt: skip
def test_fetching(machine: Machine, what: str, package: str, plan: str, place: Path) -> None:
    """It needs no right, but a yes, and what was expected."""
    machine.have_all_but(package)
    machine.user("")
    assert machine.run("build").said == "" and package in machine.run(what, DEPS="skip").said
    assert "not fetched: ERROR: no route" in machine.run(what, DEPS="yes").said
    machine.put("network")
    result = machine.run(what, DEPS="yes")
    assert result.status == 0
    assert "wrong checksum" in result.said and MAY_GO_ON in result.said
    machine.expect_what_is_made_up()
    of_a_run_that_was_killed = machine.tree / "build" / place.parts[1] / "new.99999"
    of_a_run_that_was_killed.mkdir()
    assert f"{plan}? [y/N]" in machine.run(what, typed="n\n").said
    assert MAY_GO_ON in machine.run(what).said  # nobody can say yes
    assert not (machine.tree / place).exists()
    assert machine.run(what, typed="y\n").status == 0
    assert (machine.tree / place).exists()
    assert not [*of_a_run_that_was_killed.parent.glob("new.*")]
    assert machine.run(what) == Result(0, "")
    assert machine.calls() == []


def test_where_there_is_npm_and_no_pip(machine: Machine) -> None:
    """It brings reveal.js, not Zig. What was there by hand is taken if it is the right one."""
    machine.have_all_but("reveal.js@5.2.1", "ziglang@0.17.1", "python3-pip")
    machine.has("npm")
    machine.expect_what_is_made_up()
    result = machine.run("slides", "cross", DEPS="yes")
    assert result.status == 0
    assert "not fetched: pip is not here" in result.said
    assert (machine.tree / REVEAL / "dist").exists()
    assert machine.installed() == []
    (machine.tree / "build/node/reveal-5.2.1").unlink()
    for version, said in (("5.2.1", ""), ("6.0.2", "reveal.js@5.2.1")):
        package = f'{{\n  "version": "{version}"\n}}\n'
        (machine.tree / REVEAL / "package.json").write_text(package, encoding="ascii")
        assert said in machine.run("slides", DEPS="skip").said
        assert said or machine.run("slides") == Result(0, "")


# ---- peers

POLICY = "usr/sbin/policy-rc.d"


def services(machine: Machine, *names: str) -> list[Path]:
    """What starts them at boot: a script of init, and a link of systemd."""
    links = []
    for name in names:
        script = machine.root / "etc/init.d" / name.partition(".")[0]
        link = machine.root / "etc/systemd/system/x.wants" / name
        for path in (script, link):
            path.parent.mkdir(parents=True, exist_ok=True)
        script.touch()
        link.symlink_to(f"/usr/lib/systemd/system/{name}")
        links.append(link)
    return links


def test_no_peer_is_started_and_none_at_boot(machine: Machine) -> None:
    """But what was there before keeps its service. The policy says so, ours or one that a killed
    run has left, which is written anew: without its maker it prevents nothing.
    """
    peers = [row[0] for row in TABLE if row[1] == "peers"]
    there, *new = peers[peers.index("nginx") :]
    machine.have_all_but(*new)
    machine.script(machine.root / POLICY, "# deps.sh of the web server book: left over\nexit 101")
    machine.put("policy")  # the fake apt-get shows the policy it finds
    # one is not called as its package; the last is not ours
    ours = services(machine, "lighttpd.service", "lighttpd-maint.timer", "ssh.service")
    kept = services(machine, f"{there}.service", "h2o2.service")
    assert machine.run("peers", DEPS="yes").status == 0
    assert [link.is_symlink() for link in (*ours, *kept)] == [False] * 3 + [True] * 2
    assert machine.installed() == [" ".join(new)]
    assert not (machine.root / POLICY).exists()
    calls = machine.calls()
    disabled = [call for call in calls if call.startswith("update-rc.d")]
    assert disabled == ["update-rc.d lighttpd disable", "update-rc.d ssh disable"]
    place = calls.index("#!/bin/sh")
    written = "\n".join(calls[place : place + 4])
    of_one_who_lives = re.sub(r"/proc/\d+", f"/proc/{os.getpid()}", written)
    for script, status in ((written, 0), (of_one_who_lives, 101)):
        done = subprocess.run(["sh", "-c", script, "nginx", "start"], check=False)
        assert done.returncode == status


def test_a_policy_of_the_users_own_is_kept(machine: Machine) -> None:
    machine.have_all_but("nginx")
    policy = machine.root / POLICY
    for status, installs in ((0, False), (101, True)):
        machine.script(policy, f"exit {status}")
        result = machine.run("peers", DEPS="yes")
        assert (result.status, policy.read_text()) == (0, f"#!/bin/sh\nexit {status}\n")
        assert machine.installed() == ["nginx"] * installs
        assert ("move it away" in result.said) != installs


def test_nothing_stays_when_it_is_stopped(machine: Machine) -> None:
    machine.have_all_but("nginx")
    machine.put("slow")
    (link,) = services(machine, "nginx.service")
    child = subprocess.Popen(
        machine.command("peers"), env=machine.environment(DEPS="yes"), start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert wait_until((machine.fake / "begun").exists, 30)
    assert (machine.root / POLICY).exists()
    os.killpg(child.pid, signal.SIGTERM)
    assert child.wait(timeout=30) != 0
    assert not (machine.root / POLICY).exists()
    assert "update-rc.d nginx disable" in machine.calls()
    assert not link.is_symlink()


# ---- its table, and the proof on a real machine


def test_the_table_is_in_order() -> None:
    classes = r"((base|build|measure|book|slides|fetch|test|lint|browser|cross|peers)(,|$))+"
    kind = r"(command|header|python|font|file|daemon|reveal|zig|perl):[^|]+"
    for line in TABLE:
        _, found, provides, name, needed_by = line
        assert re.fullmatch(classes, found), line
        assert re.fullmatch(rf"{kind}(\|{kind})*", provides), line
        assert name and needed_by, line
    assert len({line[0] for line in TABLE}) == len(TABLE)


def test_what_the_fresh_machine_would_run() -> None:
    """The proof itself takes a quarter of an hour: tests/fresh-machine/run."""
    for words, status, says in (
        ("-n trixie", 0, "0 apt-get install -y make && make.*\n0 make test\n"),
        *((f"-n -u {level}", 0, "\n1000 ") for level in ("all", "essential", "bare")),
        ("sid", 2, '^fresh-machine: "sid": there are bookworm and trixie\n$'),
        ("-u some", 2, '^fresh-machine: -u "some": there are all, essential, bare and forbidden'),
    ):
        command = ["sh", str(TREE / "tests/fresh-machine/run"), *words.split()]
        done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
        assert done.returncode == status, words
        assert re.search(says, done.stdout + done.stderr, re.DOTALL), words
