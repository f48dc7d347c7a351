"""What an experiment can need, and what is said where it is not met."""

import resource
import shutil
from functools import partial
from pathlib import Path

import pytest

from quest.ground import cpus, places
from quest.measure import limits, needs
from quest.measure.limits import Cap
from tests.harness.made_up import machine


def test_an_unknown_need_is_a_program_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    assert places.program("sh").ok
    answer = places.program("no-such-program")
    assert answer == (False, "no-such-program is not installed", "apt-get install no-such-program")
    # The rest is told by packages.tsv.
    brought = {name: places.PACKAGES[name] for name in ("cc", "h2load", "tcpserver")}
    assert brought == {"cc": "gcc libc6-dev", "h2load": "nghttp2-client", "tcpserver": "ucspi-tcp"}
    assert {"nginx", "tcpserver"} <= places.PEERS
    assert "wrk" not in places.PEERS
    monkeypatch.setattr(places, "which", lambda _: None)
    remedies = [places.program(name).remedy for name in ("nginx", "wrk")]
    assert remedies == ["make peers", "apt-get install wrk"], "Debian would start what apt-get installs"


def test_a_program_in_a_folder_that_a_users_path_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As nginx is in /usr/sbin."""
    (tmp_path / "made-up").touch(0o755)
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(places, "EXTRA_FOLDERS", (str(tmp_path),))
    assert places.which("made-up") == str(tmp_path / "made-up")


@pytest.mark.parametrize(
    ("says", "lacks"),
    [("openjdk 21.0.5 2024-10-15", ""), ("java 25", ""), ("openjdk 17.0.15 2025-04-15", "17"), ("", "8 or older")],
)
def test_a_java_that_is_too_old_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, lacks: str
) -> None:
    java = tmp_path / "java"
    noted = b"#!/bin/sh\necho 'Picked up JAVA_TOOL_OPTIONS: -Dby=M\xfcller' >&2\n"  # not UTF-8
    java.write_bytes(noted + f"echo '{says}'\n".encode())
    java.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    answer = needs.java_21()
    assert answer.ok == (not lacks)
    assert f"java {lacks} has no virtual threads" in answer.reason or not lacks


def test_what_others_would_notice_needs_room_or_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    for most, enough in ((999, False), (1000, True)):
        caps = [Cap(most, "ulimit -u")]
        monkeypatch.setattr(limits, "RESOURCES", {"processes": partial(list, caps)})
        assert needs.processes().ok == enough
        assert f"{most} processes, a quarter of ulimit -u" in needs.processes().reason or enough
    assert not needs.probe("many").ok
    assert needs.probe("many", many=True).ok


@pytest.mark.parametrize(
    ("program", "header", "lacks"),
    [
        ("x", "no-such-header.h", True),
        ("x", "no-such-header.h|header:sys/stat.h", False),  # elsewhere it is in another folder
        ("y", "no-such-header.h", False),
        ("z", "no-such-header.h", False),
        ("w", "no-such-header.h", True),  # of a folder below
    ],
)
def test_a_program_without_its_library_says_which_package_brings_it(
    tmp_path: Path, program: str, header: str, lacks: bool
) -> None:
    rules = "x_NEEDS := stdio.h no-such-header.h # why\ny_NEEDS := stdio.h\n"
    table = f"# head\nlibno-dev\tbuild\theader:{header}\tno\tx\n"
    below = {"benchmarks/micro/module.mk": "w_NEEDS := no-such-header.h\n"}
    machine(tmp_path, {"code/module.mk": rules, "table": table, **below})
    lacking = needs.missing_library(program, tmp_path, tmp_path / "table")
    wanted = (False, "libno-dev is not installed", "apt-get install libno-dev")
    assert lacking == (wanted if lacks else None)


def test_mounts_of_the_kernels_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As proc_pid_mountinfo(5) has them: a blank is escaped, and no link is in a path."""
    real, link = tmp_path.resolve() / "real", tmp_path / "link"
    link.symlink_to("real")
    lines = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n30 22 0:5 / /mnt/a rw shared:1 - tmpfs none rw"
    lines += f"\n31 22 0:6 / /mnt/two\\040words rw - tmpfs none rw\n32 22 0:7 / {real}/disk rw - fuse none rw"
    monkeypatch.setattr(needs, "text_of", lambda _: lines)
    mounted = {"/": True, "/mnt/a": True, "/mnt": False, "/mnt/a/b": False, "rw": False, "/mnt/two words": True}
    mounted |= {f"{link}/disk": True, f"{link}": False}
    assert {path: needs.is_mounted(Path(path)) for path in mounted} == mounted


def test_mounts_of_our_own_want_unshare_and_a_mount_point(monkeypatch: pytest.MonkeyPatch) -> None:
    for tool, root_is_mounted, reason in (
        (True, True, ""),
        (True, False, "/ is no mount point, as in a plain chroot"),
        (False, True, "unshare is not installed"),
    ):
        answer = places.Answer(tool, "" if tool else "unshare is not installed")
        monkeypatch.setattr(needs, "program", lambda _, answer=answer: answer)
        monkeypatch.setattr(needs, "is_mounted", lambda _, there=root_is_mounted: there)
        assert needs.own_mounts()[:2] == (not reason, reason)


def test_needs_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for cores, enough in (([0], False), ([0, 1], True)):
        monkeypatch.setattr(cpus, "cores", lambda _, cores=cores: cores)
        assert needs.two_cores().ok == enough
    for hard, enough in ((100_099, False), (100_100, True), (resource.RLIM_INFINITY, True)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, hard=hard: (10, hard))
        answer = needs.descriptors()
        assert answer.ok == enough and (enough or "100099" in answer.reason)
    for user, is_root in ((0, True), (1000, False)):
        monkeypatch.setattr("os.geteuid", lambda user=user: user)
        assert needs.root().ok == is_root
    for reason in ("", "there is no memory for them"):
        monkeypatch.setattr(limits, "shortage", lambda _, reason=reason: reason)
        assert needs.million().ok == (not reason) and reason in needs.million().reason


def test_a_variant_that_cannot_be_built_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler's words, or those that are given instead; a compiler that is missing is itself
    the reason.
    """
    failed = places.Answer(False, "ld: cannot find -lc")
    missing = places.Answer(False, "cc is not installed", "apt-get install gcc")
    remedy = needs.VARIANTS["static"][1]
    for compiled, reason, answer in (
        (places.Answer(True), "", places.Answer(True)),
        (failed, "", places.Answer(False, "ld: cannot find -lc", remedy)),
        (failed, "no static library", places.Answer(False, "no static library", remedy)),
        (missing, "no static library", missing),
    ):
        monkeypatch.setattr(needs, "compiles", lambda _, compiled=compiled: compiled)
        assert needs.variant("static", reason) == answer


@pytest.mark.skipif(not shutil.which("cc"), reason="no compiler")
def test_a_compiler_that_works_and_one_that_does_not() -> None:
    assert needs.compiles(["cc"]).ok
    refused = needs.compiles(["cc", "-fno-such-option-at-all"])
    assert not refused.ok and refused.reason and not refused.remedy
    absent = needs.compiles(["no-such-compiler"])
    assert (absent.ok, absent.reason) == (False, "no-such-compiler is not installed")


def test_what_is_asked_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counted() -> places.Answer:
        asked.append(1)
        raise OSError(5, "Input/output error")

    monkeypatch.setitem(needs.PROBES, "made-up", counted)
    answers = [needs.probe("made-up"), needs.probe("made-up", many=True)]
    assert not answers[0].ok and "Input/output error" in answers[0].reason
    assert answers[0] is answers[1] and len(asked) == 1
