"""The parts of the fresh-machine proof that need neither root nor network.

The proof itself takes a quarter of an hour: tests/fresh-machine/run.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]
PROOF = TREE / "tests" / "fresh-machine"
sys.path.insert(0, str(PROOF))

import fresh_tree  # noqa: E402
import machine_setup  # noqa: E402
import prove  # noqa: E402
import readme_commands  # noqa: E402
from machine import Outcome, Step  # noqa: E402

BLOCK = """\
Text.

```sh fresh-machine
# a comment

one && two
  three
```

```sh
four
```
"""


# ---- the README's block


def test_commands_of_the_block() -> None:
    assert readme_commands.commands(BLOCK) == ["one && two", "three"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("no block", "0 blocks"),
        (BLOCK + BLOCK, "2 blocks"),
        ("```sh fresh-machine\none\n", "not closed"),
        ("```sh fresh-machine\n# nothing\n```\n", "no command"),
        ("```sh fresh-machine\none \\\ntwo\n```\n", "README.md:2: .* must stand on one line"),
    ],
)
def test_block_that_cannot_be_run(text: str, complaint: str) -> None:
    with pytest.raises(readme_commands.ReadmeError, match=complaint):
        readme_commands.commands(text)


def test_readme_promises_what_is_proved() -> None:
    commands = readme_commands.read(TREE / "README.md")
    assert commands[0].startswith("apt-get install")
    assert "make" in commands[0].split()
    assert "make test" in commands


def test_no_readme(tmp_path: Path) -> None:
    with pytest.raises(readme_commands.ReadmeError, match="No such file"):
        readme_commands.read(tmp_path / "README.md")


# ---- what is taken over from this machine

LISTING = """\
http://mirror.example/debian/ bookworm main
http://mirror.example/debian/ bookworm contrib
http://mirror.example/debian/ bookworm-updates main
http://mirror.example/debian/ bookworm-backports main
http://security.example/debian-security/ bookworm-security main
http://other.example/ stable main
http://flat.example/ /
"""


def test_sources_of_this_machine_for_another_release() -> None:
    sources = machine_setup.parse_sources(LISTING, "bookworm")
    assert [source.part for source in sources] == ["", "-updates", "-security"]
    assert machine_setup.sources_list(sources, "trixie") == (
        "deb http://mirror.example/debian trixie main\n"
        "deb http://mirror.example/debian trixie-updates main\n"
        "deb http://security.example/debian-security trixie-security main\n"
    )


def test_no_debian_source(tmp_path: Path) -> None:
    assert tmp_path
    assert machine_setup.parse_sources("http://x.example/ noble main\n", "bookworm") == []


def test_codename() -> None:
    assert machine_setup.codename('NAME="Debian"\nVERSION_CODENAME=trixie\n') == "trixie"
    assert machine_setup.codename("NAME=x\n") == ""


def test_proxies() -> None:
    environment = {"https_proxy": "a", "NO_PROXY": "b", "PATH": "c", "TOKEN": "d"}
    assert machine_setup.proxies(environment) == {"https_proxy": "a", "NO_PROXY": "b"}
    proxy = 'Acquire::http::Proxy "http://p/";\n'
    dump = proxy + 'Acquire::https::Proxy "";\nAPT::Architecture "amd64";\n'
    assert machine_setup.apt_proxies(dump) == proxy


def test_suite_an_old_debootstrap_does_not_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "bookworm").touch()
    monkeypatch.setenv("DEBOOTSTRAP_DIR", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda _: "/sbin/debootstrap")
    known = machine_setup.debootstrap_command("bookworm", Path("/t"), "http://m/")
    assert known[-3:] == ["bookworm", "/t", "http://m/"]
    unknown = machine_setup.debootstrap_command("trixie", Path("/t"), "http://m/")
    assert unknown[-1] == str(tmp_path / "scripts" / "sid")


# ---- the judgement


def judged(step: Step, outcomes: list[Outcome], folder: Path) -> list[str]:
    return prove.judge([step], outcomes, lambda _: folder)


def test_all_well(tmp_path: Path) -> None:
    (tmp_path / "book").write_text("x", encoding="ascii")
    assert judged(Step("make", makes=("book",)), [Outcome(0, 1.0)], tmp_path) == []


def test_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    step = Step("make", makes=("absent", "empty"))
    assert judged(step, [Outcome(2, 1.0, left=["process: sleep 60"])], tmp_path) == [
        "make: status 2",
        "make: left a process: sleep 60",
        "make: did not make absent",
        "make: did not make empty",
    ]
    assert judged(Step("make"), [], tmp_path) == ["make: did not end"]


def test_what_no_package_has_brought() -> None:
    log = "missing here:\n  wrk  x\n{}going on; what needs them is skipped\n"
    assert prove.not_brought(log.format("")) == []
    left = prove.not_brought(log.format("still missing:\n  libowfat-dev   14-owfat\n"))
    assert left == ["still missing after the installation: libowfat-dev"]


def test_refusal_must_say_why(tmp_path: Path) -> None:
    step = Step("make", refuses="nothing can run")
    said = ["deps.sh: nothing can run without: C compiler", "make: *** [all] Error 1"]
    assert judged(step, [Outcome(2, 0.1, said=said)], tmp_path) == []
    assert judged(step, [Outcome(0, 0.1, said=said)], tmp_path) != []
    assert judged(step, [Outcome(2, 0.1, said=["Segmentation fault"])], tmp_path) != []


def test_plans() -> None:
    assert [step.command for step in prove.steps_for(prove.README, ["a", "b"])] == ["a", "b"]
    for level in prove.LEVELS:
        steps = prove.steps_for(level, ["a"])
        assert steps[0].uid == 0
        assert any(step.uid == prove.STUDENT for step in steps)


def test_duration() -> None:
    assert prove.duration(9.6) == "10 s"
    assert prove.duration(754.2) == "12 min 34 s"


# ---- the tree


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_tree_is_removed_whatever_happens(base: Path) -> None:
    handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        tree = fresh_tree.Tree("bookworm", base / "log", 60)
        with contextlib.suppress(fresh_tree.Interrupted), tree:
            (tree.path / "file").write_text("x" * 3_000_000, encoding="ascii")
            assert tree.measure() >= 2
            raise fresh_tree.Interrupted(signal.SIGTERM)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert not tree.path.exists()
    assert tree.traces_left() == []
    assert list(base.iterdir()) == []


def test_only_trees_of_dead_runs_are_stale(base: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    dead = base / f"{fresh_tree.PREFIX}{ended.pid}-trixie-abc"
    alive = base / f"{fresh_tree.PREFIX}{os.getpid()}-trixie-abc"
    for folder in (dead, alive):
        folder.mkdir()
    fresh_tree.remove_stale()
    assert not dead.exists()
    assert alive.exists()


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_working_tree_without_what_git_ignores(tmp_path: Path) -> None:
    root, place = tmp_path / "root", tmp_path / "place"
    (root / "build").mkdir(parents=True)
    (root / ".gitignore").write_text("/build/\n", encoding="ascii")
    (root / "build" / "x").touch()
    (root / "run").touch(mode=0o755)
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    fresh_tree.copy_working_tree(root, place)
    assert sorted(p.name for p in place.iterdir()) == [".gitignore", "run"]
    assert os.access(place / "run", os.X_OK)


def test_without_root_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["run"])
    assert prove.main() == 2
    assert capsys.readouterr().err == "fresh-machine: needs root: debootstrap and mounts do\n"
