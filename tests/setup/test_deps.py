"""deps.sh: what it says, when it asks, when and how it installs. On made-up machines."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from setup.made_up_machine import FAKES, Machine, Result


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


# ---- nothing to do, nothing to say


def test_all_here_is_silent(machine: Machine) -> None:
    machine.have_all_but()
    assert machine.run() == Result(0, "")
    assert machine.on_terminal("") == Result(0, "")
    assert machine.run(DEPS="yes") == Result(0, "")
    assert machine.calls() == []


def test_all_here_needs_no_means_to_fetch(machine: Machine) -> None:
    machine.have_all_but("python3-pip", "ca-certificates")
    assert machine.run() == Result(0, "")


def test_only_the_classes_asked_for(machine: Machine) -> None:
    machine.have("gcc", "libc6-dev", "make", "python3")
    said = machine.run("build", DEPS="skip").said
    assert "dietlibc-dev" in said
    assert "pandoc" not in said
    assert "shellcheck" not in machine.run(DEPS="skip").said
    assert "shellcheck" in machine.run("lint", DEPS="skip").said
    assert "nginx" not in machine.run(DEPS="skip").said


# ---- asking


def test_yes_installs_what_is_missing_and_only_that(machine: Machine) -> None:
    machine.have_all_but("wrk", "strace")
    result = machine.on_terminal("y\n")
    assert result.status == 0
    assert "install these 2 packages with apt-get? [y/N]" in result.said
    assert "still missing" not in result.said
    assert machine.installed() == ["wrk strace"]


@pytest.mark.parametrize("answer", ["n\n", "\n", "\x04", "maybe\n"])
def test_anything_else_does_not_install(machine: Machine, answer: str) -> None:
    machine.have_all_but("wrk")
    result = machine.on_terminal(answer)
    assert result.status == 0
    assert "cross-check of hammer" in result.said
    assert "going on" in result.said
    assert machine.calls() == []


def test_asks_once_for_packages_and_reveal(machine: Machine) -> None:
    machine.have_all_but("wrk", "reveal.js@5.2.1")
    said = machine.on_terminal("n\n").said
    assert said.count("[y/N]") == 1
    assert "install these 1 packages with apt-get and fetch reveal.js 5.2.1" in said


def test_user_with_sudo_is_asked(machine: Machine) -> None:
    machine.have_all_but("wrk")
    machine.user("student", sudo="password")
    assert machine.on_terminal("y\n").status == 0
    assert machine.installed() == ["wrk"]
    assert any(call.startswith("sudo env ") for call in machine.calls())


def test_user_whom_sudo_refuses(machine: Machine) -> None:
    machine.have_all_but("wrk")
    machine.user("student", sudo="refusing")
    result = machine.on_terminal("y\n")
    assert result.status == 0
    assert "sudo did not let us" in result.said
    assert machine.installed() == []


def test_user_without_sudo_is_not_asked(machine: Machine) -> None:
    machine.have_all_but("wrk")
    machine.user("student")
    result = machine.on_terminal("y\n")
    assert result.status == 0
    assert "[y/N]" not in result.said
    assert "ask for:\n  apt-get install --no-install-recommends wrk\n" in result.said
    assert machine.calls() == []


# ---- without a terminal


def test_user_without_a_terminal_goes_on(machine: Machine) -> None:
    machine.have_all_but("wrk")
    machine.user("student", sudo="free")
    result = machine.run()
    assert result.status == 0
    assert "going on" in result.said
    assert machine.calls() == []


def test_sudo_is_not_tried_before_a_yes(machine: Machine) -> None:
    """It would report a user who may not use it."""
    machine.have_all_but("wrk")
    machine.user("student", sudo="password")
    machine.run()
    machine.run(DEPS="skip")
    machine.on_terminal("n\n")
    assert machine.calls() == []


def test_root_without_a_terminal_installs_what_it_printed(machine: Machine) -> None:
    machine.have_all_but("wrk")
    result = machine.run()
    assert result.status == 0
    assert result.said.index("cross-check of hammer") < result.said.index("root without a terminal")
    assert machine.installed() == ["wrk"]


# ---- DEPS=skip, DEPS=yes


def test_skip_never_asks_and_never_installs(machine: Machine) -> None:
    machine.have_all_but("wrk", "reveal.js@5.2.1")
    (machine.fake / "network").touch()
    for result in (machine.run(DEPS="skip"), machine.on_terminal("y\n", DEPS="skip")):
        assert result.status == 0
        assert "wrk" in result.said
        assert "[y/N]" not in result.said
    assert machine.calls() == []
    assert not (machine.tree / "build/node/node_modules/reveal.js").exists()


@pytest.mark.parametrize("terminal", [False, True])
def test_yes_as_root(machine: Machine, terminal: bool) -> None:
    machine.have_all_but("wrk")
    result = machine.on_terminal("", DEPS="yes") if terminal else machine.run(DEPS="yes")
    assert result.status == 0
    assert "[y/N]" not in result.said
    assert machine.installed() == ["wrk"]


def test_yes_as_user_with_a_sudo_that_asks_nothing(machine: Machine) -> None:
    machine.have_all_but("wrk")
    machine.user("student", sudo="free")
    assert machine.run(DEPS="yes").status == 0
    assert machine.installed() == ["wrk"]


@pytest.mark.parametrize("sudo", ["", "password", "refusing"])
def test_yes_as_user_without_the_right_says_so(machine: Machine, sudo: str) -> None:
    machine.have_all_but("wrk")
    machine.user("student", sudo=sudo)
    result = machine.run(DEPS="yes")
    assert result.status == 0
    assert "apt-get install --no-install-recommends wrk" in result.said
    assert machine.installed() == []


# ---- how it installs


def test_how_apt_get_is_called(machine: Machine) -> None:
    machine.have_all_but("wrk")
    machine.run(DEPS="yes")
    calls = machine.calls()
    assert calls
    assert all("--no-install-recommends" in call for call in calls)
    assert all(call.endswith("[noninteractive]") for call in calls)
    assert not any(" update" in call for call in calls)


def test_lists_are_read_when_there_are_none(machine: Machine) -> None:
    machine.have_all_but("wrk")
    (machine.root / "var/lib/apt/lists/x_Packages").unlink()
    machine.run(DEPS="yes")
    assert " update " in machine.calls()[0]
    assert machine.installed() == ["wrk"]


def test_package_unknown_to_fresh_lists_is_skipped(machine: Machine) -> None:
    machine.have_all_but("wrk", "strace")
    (machine.fake / "unknown").write_text("wrk\n", encoding="ascii")
    result = machine.run(DEPS="yes")
    assert result.status == 0
    assert "wrk: not in this release; skipped" in result.said
    assert machine.installed() == ["strace"]
    assert not any(" update" in call for call in machine.calls())


def test_package_unknown_to_old_lists_is_looked_up_again(machine: Machine) -> None:
    machine.have_all_but("wrk")
    (machine.fake / "unknown").write_text("wrk\n", encoding="ascii")
    long_ago = time.time() - 3 * 86400
    os.utime(machine.root / "var/lib/apt/lists", (long_ago, long_ago))
    assert machine.run(DEPS="yes").status == 0
    assert machine.installed() == ["wrk"]


def test_old_lists_do_as_long_as_they_know_all(machine: Machine) -> None:
    machine.have_all_but("wrk")
    long_ago = time.time() - 3 * 86400
    os.utime(machine.root / "var/lib/apt/lists", (long_ago, long_ago))
    assert machine.run(DEPS="yes").status == 0
    assert not any(" update" in call for call in machine.calls())
    assert machine.installed() == ["wrk"]


def test_lists_that_name_what_is_gone(machine: Machine) -> None:
    machine.have_all_but("wrk")
    (machine.fake / "stale").touch()
    result = machine.run(DEPS="yes")
    assert result.status == 0
    assert "404" in result.said
    assert "still missing" not in result.said
    assert any(" update" in call for call in machine.calls())


def test_installation_that_was_killed_is_finished(machine: Machine) -> None:
    machine.have_all_but("wrk")
    (machine.fake / "interrupted").touch()
    result = machine.run(DEPS="yes")
    assert result.status == 0
    assert "dpkg --configure -a" in machine.calls()
    assert "still missing" not in result.said


def test_one_that_cannot_be_installed_takes_no_other_with_it(machine: Machine) -> None:
    machine.have_all_but("wrk", "strace")
    (machine.fake / "broken").write_text("wrk\n", encoding="ascii")
    result = machine.run(DEPS="yes")
    assert result.status == 0
    assert "wrk: not installed: E: wrk has unmet dependencies" in result.said
    assert result.said.split("still missing:")[1].count("cross-check") == 1
    assert machine.installed()[-1] == "strace"


# ---- what nothing runs without


@pytest.mark.parametrize("package", ["gcc", "python3", "make"])
def test_without_the_base_the_status_is_1(machine: Machine, package: str) -> None:
    machine.have_all_but(package)
    (machine.fake / "broken").write_text(f"{package}\n", encoding="ascii")
    assert machine.run(DEPS="yes").status == 1
    result = machine.run(DEPS="skip")
    assert result.status == 1
    assert "deps.sh: nothing can run without: " in result.said.splitlines()[-1]


def test_headers_are_part_of_the_base(machine: Machine) -> None:
    machine.have_all_but("libc6-dev")
    assert machine.run(DEPS="skip").status == 1
    assert machine.run(DEPS="yes").status == 0


def test_a_header_counts_in_whichever_folder_a_release_has_it(machine: Machine) -> None:
    machine.have_all_but("libowfat-dev")
    with (machine.fake / "headers").open("a", encoding="ascii") as headers:
        headers.write("libowfat/iob.h\n")  # as in Debian 13
    assert machine.run() == Result(0, "")


def test_a_bare_machine_gets_everything(machine: Machine) -> None:
    (machine.fake / "network").touch()
    machine.expect_the_made_up_reveal()
    result = machine.run(DEPS="yes")
    assert result.status == 0, result.said
    assert "still missing" not in result.said
    assert machine.run() == Result(0, "")


def test_modules_of_a_python_that_will_not_be_used_do_not_count(machine: Machine) -> None:
    machine.have_all_but("python3-scipy", "python3-jsonschema", "python3-xdist")
    machine.script(machine.bin / "python3", "echo ' tomllib jsonschema xdist '")
    debian = machine.root / "usr/bin/python3"
    debian.parent.mkdir()
    machine.script(debian, FAKES["python3"])
    result = machine.run(DEPS="yes")
    assert "python3-scipy" in result.said
    assert "python3-jsonschema" in result.said
    assert machine.run() == Result(0, "")


# ---- no apt


def test_without_apt_it_lists_generic_names_and_goes_on(machine: Machine) -> None:
    machine.have_all_but("nghttp2-client", "gnuplot-nox")
    machine.no_apt()
    for result in (machine.run(), machine.run(DEPS="yes"), machine.on_terminal("y\n")):
        assert result.status == 0
        assert "h2load (nghttp2)" in result.said
        assert "gnuplot 5.4 or later" in result.said
        assert "gnuplot-nox" not in result.said
        assert "apt-get install" not in result.said


def test_without_apt_and_base(machine: Machine) -> None:
    machine.no_apt()
    result = machine.run()
    assert result.status == 1
    assert "C compiler" in result.said.splitlines()[-1]


# ---- the rest


def test_status(machine: Machine) -> None:
    machine.have_all_but("wrk")
    result = machine.run("--status", "measure")
    lines = dict(line.split("\t") for line in result.said.splitlines())
    assert lines["wrk"] == "missing"
    assert lines["strace"] == "ok"
    assert "pandoc" not in lines
    assert machine.calls() == []


@pytest.mark.parametrize(
    ("words", "settings", "complaint"),
    [
        (["biuld"], {}, 'unknown class "biuld"'),
        ([], {"DEPS": "maybe"}, 'DEPS is "maybe"; it can be ask, yes or skip'),
    ],
)
def test_bad_usage(
    machine: Machine, words: list[str], settings: dict[str, str], complaint: str
) -> None:
    result = machine.run(*words, **settings)
    assert result.status == 2
    assert len(result.said.splitlines()) == 1
    assert complaint in result.said
