"""deps.sh: its table, what it sees of this machine, that it does nothing without a yes, and what fetch.py takes; and
what tests/fresh-machine would have it do on real ones.
"""

import importlib.util
import os
import pty
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from quest.ground.places import Package, packages
from setup import fetch

TREE = Path(__file__).resolve().parents[2]
CLASSES = {"base", "build", "measure", "book", "slides", "test", "fetch", "lint", "browser", "cross", "peers"}
KINDS = ("command", "daemon", "python", "perl", "header", "font", "file")
GOING_ON = "going on; what needs them is skipped"
OFFLINE = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}


def deps(tree: Path, *words: str, typed: str | None = None, **environment: str) -> tuple[int, str]:
    """Status and output of the deps.sh of that tree, without a terminal, or on one on which `typed` is typed."""
    ours, theirs = pty.openpty()
    os.write(ours, (typed or "").encode())
    done = subprocess.run(
        ["/bin/sh", str(tree / "setup/deps.sh"), *words], env={**os.environ, "DEPS": "ask", **environment},
        stdin=theirs if typed is not None else subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=60, check=False,
    )  # fmt: skip
    os.close(ours)
    os.close(theirs)
    return done.returncode, done.stdout


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A tree without build/: so reveal.js and Zig are missing."""
    shutil.copytree(TREE / "setup", tmp_path / "setup")
    return tmp_path


# ---- the table


def test_the_table_is_in_order() -> None:
    found = packages()
    assert len({package.name for package in found}) == len(found)
    for package in found:
        assert set(package.classes.split(",")) <= CLASSES, package
        assert all(one.partition(":")[0] in KINDS and one.partition(":")[2] for one in package.provides.split("|"))
        assert package.generic and package.needed_by, package
    assert {package.name.partition("@")[0] for package in found if "@" in package.name} == set(fetch.WANTED)


def test_each_package_is_one_of_debian() -> None:
    """h2o is in Debian 12, and not in 13."""
    names = [package.name for package in packages() if "@" not in package.name]
    command = ["apt-cache", "policy", *names]
    if shutil.which("apt-cache") is None or not any(Path("/var/lib/apt/lists").glob("*_Packages*")):
        pytest.skip("no apt, or no lists of packages (apt-get update)")
    environment = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    known = re.findall(r"^(\S+):\n  Installed: .*\n  Candidate: (?!\(none\))", done.stdout, re.M)
    assert set(names) - set(known) <= {"h2o"}


# ---- this machine


def is_here(package: Package) -> bool | None:
    """As Python sees it; None for what only a compiler or perl can tell."""
    found = []
    for kind, _, item in (one.partition(":") for one in package.provides.split("|")):
        if kind in ("command", "daemon"):
            found.append(shutil.which(item, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is not None)
        elif kind == "python":
            found.append(importlib.util.find_spec(item) is not None)
        elif kind == "file":
            found.append((TREE / item).exists())
        else:
            return None
    return any(found)


def test_it_sees_what_is_here() -> None:
    status, told = deps(TREE, "--status", *sorted(CLASSES - {"fetch"}))
    states = dict(line.split("\t") for line in told.splitlines())
    assert status == 0 and set(states.values()) <= {"ok", "missing"}
    assert set(states) == {package.name for package in packages()}
    for package in packages():
        if (seen := is_here(package)) is not None:
            assert (states[package.name] == "ok") == seen, package
    _, some = deps(TREE, "--status", "build")
    assert "libowfat-dev\t" in some and "pandoc\t" not in some


def test_it_is_in_its_own_tree_whatever_cd_is_told(tmp_path: Path) -> None:
    """An exported CDPATH is looked in before the folder that one is in, and a tree has a folder setup."""
    for name in ("setup", ".ci", "tests/fresh-machine"):
        (tmp_path / name).mkdir(parents=True)
    environment = {**os.environ, "CDPATH": str(tmp_path), "DEPS": "skip"}
    for script, words, says in (
        ("setup/deps.sh", ["--status", "build"], "gcc\t"),
        ("tests/fresh-machine/run", ["-n"], "0 make test\n"),
    ):
        done = subprocess.run(["sh", script, *words], cwd=TREE, env=environment, capture_output=True, text=True,
                              check=False)  # fmt: skip
        assert done.returncode == 0 and says in done.stdout and done.stderr == "", script


def test_bad_usage() -> None:
    assert deps(TREE, "biuld") == (2, "deps.sh: unknown class \"biuld\"; there are base build measure book slides test "
                                      "lint browser cross peers\n")  # fmt: skip
    assert deps(TREE, "build", DEPS="maybe") == (2, 'deps.sh: DEPS is "maybe"; it can be ask, yes or skip\n')


def test_without_a_compiler_nothing_can_run(tmp_path: Path) -> None:
    for tool in ("dirname", "id", "grep", "sed", "find"):
        (tmp_path / tool).symlink_to(str(shutil.which(tool)))
    status, told = deps(TREE, DEPS="skip", PATH=str(tmp_path))
    assert status == 1
    assert "no apt-get here" in told
    assert told.splitlines()[-1].startswith("deps.sh: nothing can run without: C compiler, C library headers, make")


# ---- consent


@pytest.mark.parametrize(
    ("consent", "typed"),
    [("skip", "y\n"), ("skip", None), ("ask", None), ("ask", "n\n"), ("ask", "maybe\n"), ("ask", "\x04")],
)
def test_nothing_is_done_without_a_yes(bare: Path, consent: str, typed: str | None) -> None:
    status, told = deps(bare, "slides", "cross", typed=typed, DEPS=consent)
    assert status == 0
    assert "reveal.js@5.2.1: reveal.js 5.2.1; for the deck" in told and "ziglang@0.17.1" in told
    assert told.count("[y/N]") == (consent == "ask" and typed is not None)
    assert GOING_ON in told.splitlines()[-1]
    assert not (bare / "build").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("consent", "typed"), [("yes", None), ("ask", "y\n")])
def test_what_cannot_be_fetched_is_one_line(bare: Path, consent: str, typed: str | None) -> None:
    if importlib.util.find_spec("pip") is None:
        pytest.skip("pip is not installed: deps.sh would install it (apt-get install python3-pip)")
    status, told = deps(bare, "slides", typed=typed, DEPS=consent, **OFFLINE)
    assert status == 0
    assert re.search(r"^  reveal\.js: not fetched: ERROR: .*sphinx-revealjs", told, re.M)
    assert "still missing:\n  reveal.js@5.2.1" in told
    assert list((bare / "build").iterdir()) == []


# ---- what is fetched


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "x.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("x/dist/a.js", "x/dist/b/c.js", "x/LICENSE", "x/other"):
            archive.writestr(name, f"of {name}")
    return path


def wanted(place: Path, *sums: str) -> fetch.Wanted:
    return fetch.Wanted("x==1", "x", place / "x", ("dist", "LICENSE"), sums, place / "x-1")


def test_what_is_not_expected_is_not_used(wheel: Path, tmp_path: Path) -> None:
    with pytest.raises(fetch.NotFetched, match="x==1: wrong checksum"):
        fetch.put(wanted(tmp_path / "build", "0" * 64), wheel, tmp_path)
    assert not (tmp_path / "build").exists()


def test_what_is_expected_is_put_in_place_of_what_was_there(wheel: Path, tmp_path: Path) -> None:
    """The sum is that of `find dist LICENSE -type f | LC_ALL=C sort | xargs sha256sum | sha256sum`."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "by-hand")
    command = "find dist LICENSE -type f | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -d ' ' -f 1"
    folder = tmp_path / "by-hand/x"
    summed = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, check=True)
    (tmp_path / "build/x").mkdir(parents=True)
    (tmp_path / "build/x/old").touch()
    fetch.put(wanted(tmp_path / "build", "0" * 64, summed.stdout.strip()), wheel, tmp_path)
    assert (tmp_path / "build/x/dist/b/c.js").read_text(encoding="ascii") == "of x/dist/b/c.js"
    assert (tmp_path / "build/x-1").exists() and not (tmp_path / "build/x/old").exists()


def test_where_no_folder_can_be_made_it_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in a clone that is read-only."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "build").touch()
    assert fetch.main(["reveal.js"]) == 1
    assert re.fullmatch(r"  reveal\.js: .*File exists: 'build'\n", capsys.readouterr().err)


# ---- the proof on a real machine


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
