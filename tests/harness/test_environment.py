"""What is recorded of a machine, and that it names no person."""

import gzip
import json
import os
import re
import resource
import shutil
import subprocess
from pathlib import Path

import pytest

from quest.ground import cpus, foreign
from quest.ground.cpus import Placement
from quest.measure import environment
from quest.measure.environment import Environment
from quest.measure.namespaces import OwnNetwork


def test_no_path_host_or_user_name_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "someone")
    monkeypatch.setattr("socket.gethostname", lambda: "secret-host")
    text = f"{Path.cwd()}/build/x on secret-host by someone in /home/someone/a: /proc/self/fd"
    assert foreign.anonymous(text) == "build/x on  by  in a: /proc/self/fd"
    assert foreign.anonymous("http://127.0.0.1:80/a/b") == "http://127.0.0.1:80/a/b"


def test_what_is_no_name_of_anybody_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """root, short names, which are ordinary words, and the slashes of a user whose home is /."""
    monkeypatch.setenv("HOME", "/")
    text = "root, bob, vm and box at http://127.0.0.1:80/a/b"
    for user, host in (("root", "vm"), ("bob", "box")):
        monkeypatch.setenv("USER", user)
        monkeypatch.setenv("LOGNAME", user)
        monkeypatch.setattr("socket.gethostname", lambda host=host: host)
        assert foreign.anonymous(text) == text
    monkeypatch.setenv("USER", "anna")
    monkeypatch.setattr("socket.gethostname", lambda: "far7.example.org")
    assert foreign.anonymous("anna: far7 is far7.example.org") == ":  is "


def test_a_user_without_a_home_and_without_a_line_in_passwd(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: int) -> None:
        raise KeyError("uid not found")

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", none)
    assert foreign.anonymous(f"{Path.cwd()}/build/x ~ y") == "build/x ~ y"


def test_short_processor_names() -> None:
    short = {
        "Intel(R) Core(TM) i7-8550U CPU @ 1.80GHz": "Intel Core i7-8550U",
        "AMD EPYC 7763 64-Core Processor": "AMD EPYC 7763",
    }
    assert {long: environment.short_cpu(long) for long in short} == short


def test_what_is_recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Beside what is asked of the system by another way here."""
    monkeypatch.setattr(cpus, "allowed", lambda: [0, 1, 2])
    monkeypatch.setattr(cpus, "cores", lambda _: [0, 2])
    monkeypatch.setattr(environment, "version", lambda program: f"{program} 1 in {Path.cwd()}/x")
    placement = Placement(frozenset({2, 1}), frozenset({0}))
    versions = {"z": "/opt/z", "a": "a"}
    network = OwnNetwork(entered=True)
    found = environment.collect(placement, versions, network, f"-O2 -I{Path.cwd()}/code")
    system = os.uname()
    assert found["kernel"] == f"{system.sysname} {system.release}"
    assert (found["machine"], found["cpus"]) == (system.machine, os.cpu_count())
    assert (found["allowed_cpus"], found["cores"]) == ([0, 1, 2], 2)
    assert found["pin"] == {"measured": [1, 2], "load": [0]}
    assert found["cflags"] == "-O2 -Icode"
    assert list(found["peers"].items()) == [("a", "a 1 in x"), ("z", "z 1 in x")]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert found["limits"]["nofile"] == [soft, hard if hard != resource.RLIM_INFINITY else -1]
    memory = re.search(r"MemTotal: *(\d+)", Path("/proc/meminfo").read_text(encoding="ascii"))
    assert memory and found["memory_kib"] == int(memory[1])
    control = found["sysctl"]["net/ipv4/tcp_congestion_control"]
    assert found["network"] == {"namespace": True, "congestion_control": control}
    assert environment.collect(placement, {})["network"] is None
    text = json.dumps(found)
    assert str(Path.cwd()) not in text and str(Path.home()) not in text.replace("/root", "")
    monkeypatch.chdir(tmp_path)
    alone = environment.collect(placement, {})
    assert (alone["commit"], alone["dirty"], alone["cflags"]) == ("unknown", None, "unknown")
    names = {name: value for name, value in alone.items() if name in environment.OF_THE_RUN}
    assert environment.machine() == names


def test_the_flags_are_those_of_make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    nothing = Placement(frozenset(), frozenset())
    for rule, flags in (("@echo -O3 -g", "-O3 -g"), ("@echo no rule", "unknown")):
        (tmp_path / "Makefile").write_text(f"cflags:\n\t{rule}\n", encoding="ascii")
        assert environment.collect(nothing, {})["cflags"] == flags


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_the_commit_and_whether_files_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*words: str) -> str:
        command = ["git", "-c", "user.name=n", "-c", "user.email=e", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("a", encoding="ascii")
    git("init", "-q")
    git("add", "file")
    git("commit", "-q", "-m", "first")
    commit = git("rev-parse", "HEAD")
    (tmp_path / "untracked").touch()
    assert environment.git_commit() == (commit, False)
    (tmp_path / "file").write_text("b", encoding="ascii")
    assert environment.git_commit() == (commit, True)
    (tmp_path / "unpacked").mkdir()
    monkeypatch.chdir(tmp_path / "unpacked")
    assert environment.git_commit() == ("unknown", None)


def test_what_cannot_be_one_set() -> None:
    """Each of them alone, also where an older set does not have it; and nothing else."""
    whole: dict[str, object] = dict.fromkeys((*environment.OF_THE_SET, "load", "started"), 1)
    assert environment.first_difference(whole, whole) == ""
    for name in environment.OF_THE_SET:
        assert environment.first_difference(whole, {**whole, name: 2}) == name
        assert environment.first_difference({k: v for k, v in whole.items() if k != name}, whole) \
            == name  # fmt: skip
    assert environment.first_difference(whole, {**whole, "load": 2, "started": 2}) == ""


def test_versions_of_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As each wants to be asked; of those that do not tell, the package's."""
    for name in ("nginx", "python9", "go", "dpkg-query", "tcpserver"):
        path = tmp_path / name
        path.write_text(f'#!/bin/sh\necho "{name} got $*" >&2\necho more\n', encoding="ascii")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert environment.version("nginx") == "nginx got -v"
    assert environment.version("python9") == "python9 got --version"
    assert environment.version("{build}/runtimes/go") == "go got version", "of the compiler, not of our program"
    (tmp_path / "dpkg-query").write_text('#!/bin/sh\necho "of $3"\n', encoding="ascii")
    assert environment.version("tcpserver") == "of ucspi-tcp"
    assert environment.version("no-such-program") == ""
    assert environment.first_line(["/no/such/program"]) == ""


def test_a_musl_of_another_kind_of_machine_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Debian keeps those of all architectures in one folder."""
    monkeypatch.setattr(environment, "LIB", tmp_path)
    for name, text in (("aarch64", "\x7fELF"), ("x86_64", "#!/bin/sh\necho 'Version 1.2.3' >&2\n"), ("xtensa", "")):
        (tmp_path / f"ld-musl-{name}.so.1").write_text(text, encoding="ascii")
        (tmp_path / f"ld-musl-{name}.so.1").chmod(0o755)
    (tmp_path / "ld-musl-armhf.so.1").symlink_to("gone")
    assert environment._libc_versions()["musl"] == "1.2.3"


def test_the_ticks_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """From its configuration, packed or not; not known where none can be read."""
    text, there = b"# CONFIG_HZ_100 is not set\nCONFIG_HZ_250=y\nCONFIG_HZ=250\n", dict[str, bytes]()

    def read(path: Path) -> bytes:
        if str(path) not in there:
            raise FileNotFoundError(2, "No such file or directory")
        return there[str(path)]

    monkeypatch.setattr(Path, "read_bytes", read)
    assert environment._timer_hz() is None
    for name, data in (("/proc/config.gz", gzip.compress(text)), (f"/boot/config-{os.uname().release}", text)):
        there.clear()
        there[name] = data
        assert environment._timer_hz() == 250, name


def test_the_share_of_time_that_others_were_given(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, share in (
        ("cpu  10 20 30 100 20 5 5 10 99 99\ncpu0 1\n", 0.05),  # guests are in user and nice
        ("cpu  10 20 30\n", None),
        ("cpu  0 0 0 0 0 0 0 0\n", None),
        ("", None),
    ):
        monkeypatch.setattr(environment, "text_of", lambda _, text=text: text)
        assert environment.steal_share() == share


def test_a_run_in_one_line() -> None:
    whole: Environment = {"cpu": "A CPU @ 1GHz", "cores": 1, "kernel": "Linux 6.18.44-x"}
    line = "run of 2026-11-21, A, 1 core, Linux 6.18, quick"
    assert environment.footer("2026-11-21T12:00:00Z", "quick", whole) == line
    whole["client"] = {
        "kernel": "", "machine": "", "cpu": "", "cpus": 1, "cores": 1, "tools": {}
    }  # fmt: skip
    afar = f"{line}, load from another host"
    assert environment.footer("2026-11-21T12:00:00Z", "quick", whole) == afar
    assert environment.core_count(2) == "2 cores"
    assert environment.short_kernel("plan9") == "plan9"
