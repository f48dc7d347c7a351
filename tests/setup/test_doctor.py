"""`make doctor`: what it says of a made-up machine, on which each kind of answer occurs; and all of
it on this one.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from quest.ground import places
from quest.ground.places import Answer, Package
from quest.measure import limits, needs, programs
from quest.report import doctor
from quest.spec import experiment_file

TREE = Path(__file__).resolve().parents[2]

LISTENING = 'echo "made-up: listening on http://127.0.0.1:1/"'
SERVERS = {
    "00-client": 'test "$*" = -h',  # it listens to nobody
    "02-fork": f"{LISTENING}; exec sleep 60",
    "03-odd": "exit 3",
    # a loop, not one long sleep: the shell must not leave a child behind when it is killed
    "04-deaf": f'trap "" TERM; {LISTENING}; while :; do sleep 0.2; done',
    "09-epoll": 'echo "no epoll here: use Linux" >&2; exit 77',
}
COMPILERS = {
    # what it makes is a script, too
    "cc": r"""
        program=:
        case "$*" in
            *address*) echo 'cannot find -lasan' >&2; exit 1 ;;
            *thread*) program='echo ==7==unexpected memory mapping >&2; exit 66' ;;
        esac
        while [ "$1" != -o ]; do shift; done
        printf '#!/bin/sh\n%s\n' "$program" >"$2" && chmod +x "$2"
        """,
    "diet": 'exec "$@"',
    "musl-gcc": 'exec cc "$@"',
}
EXPERIMENT = """
id = "ID"
title = "Made up"
question = "?"
kind = "micro"
chapters = ["02-fork"]
profile = {smoke = PROFILE, quick = PROFILE, full = PROFILE}
caps = {children = "processes"}
metric = [{name = "t", column = "t_ns"}]
[[variant]]
name = "plain"
command = ["{bin}/made-up", "-n", "{children}"]
[[variant]]
name = "diet"
build = "diet"
command = ["{bin}/made-up", "-n", "{children}"]
""".replace("PROFILE", "{rounds = 1, set = {children = 4000}}")
NO_DIET = Answer(False, "no diet", "install it")
NO_FORK = Answer(False, "no fork", "another system")
NOT_BUILT = Answer(False, "build/bin/made-up is not built", "make variants")
MISSING = {  # experiment: of its variants, plain and diet
    "all-run": (None, None),
    "one-runs": (None, NO_DIET),
    "unbuilt": (NOT_BUILT, NO_DIET),
    "no-diet": (NO_DIET, NO_DIET),
    "none-runs": (NO_FORK, NO_DIET),
}
PACKAGES = {"gcc": "base", "nginx": "peers", "mypy": "lint", "wrk": "measure"}
PRINTED = """\
this machine
  system     made up

limits
  namespace  no: no fork; another system

chapters and servers
  00-client  runs
  02-fork    runs (3 of 5 experiments)
               no-diet skipped: no diet; install it
               none-runs skipped: no variant runs
  02b-text   runs
  03-odd     skipped: 03-odd ended with status 3; make test tells more
  04-deaf    skipped: 04-deaf did not end within 3 s of SIGTERM; make test tells more
  05-built   runs (not built yet, make servers)
  09-epoll   skipped: no epoll here: use Linux

experiments
  all-run    runs (children at most 1000 instead of 4000 (made up))
  broken     skipped: WHY; mend benchmarks/experiments/broken.toml
  no-diet    skipped: no diet; install it
  none-runs  skipped: no variant runs
               plain skipped: no fork; another system
               diet skipped: no diet; install it
  one-runs   runs (children at most 1000 instead of 4000 (made up))
               diet skipped: no diet; install it
  unbuilt    runs (once built: make variants; children at most 1000 instead of 4000 (made up))
               diet skipped: no diet; install it

libc variants
  glibc       runs
  static      runs
  static-pie  runs
  diet        runs
  musl        runs
  asan        skipped: cannot find -lasan; the sanitizers of gcc (Debian: with gcc)
  tsan        skipped: unexpected memory mapping; REMEDY

tools
  here: gcc
  nginx  skipped: not installed: nginx's use; make peers
  mypy   skipped: not installed: mypy's use; apt-get install mypy
  wrk    skipped: not installed: wrk's use; make deps
"""


def put(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="ascii")
    path.chmod(0o755)


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*SERVERS, "05-built"):
        put(tmp_path / "code" / name / "server.c")
    for folder, scripts in (("build/bin", SERVERS), ("compilers", COMPILERS)):
        for name, text in scripts.items():
            put(tmp_path / folder / name, f"#!/bin/sh\n{text}\n")
    put(tmp_path / "chapters/02b-text.md")
    for name in MISSING:
        put(tmp_path / experiment_file.FOLDER / f"{name}.toml", EXPERIMENT.replace("ID", name))
    put(tmp_path / experiment_file.FOLDER / "broken.toml", "id = \n")
    put(tmp_path / doctor.DEPS, r"printf 'gcc\tok\nmypy\tmissing\n'")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}/compilers{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(doctor, "PATIENCE", 3.0)
    monkeypatch.setattr(doctor, "facts", lambda: {"system": "made up"})
    monkeypatch.setattr(doctor, "LIMITS", {"namespace": lambda: NO_FORK})
    monkeypatch.setattr(needs, "missing_library", lambda _: None)
    monkeypatch.setitem(limits.RESOURCES, "processes", lambda: [limits.Cap(1000, "made up")])
    packages = [Package(n, klass, "?", n, f"{n}'s use") for n, klass in PACKAGES.items()]
    monkeypatch.setattr(doctor, "packages", lambda: packages)
    monkeypatch.setattr(programs, "missing", lambda e, v: MISSING[e.id][v.name == "diet"])


def test_a_made_up_machine(
    made_up: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert doctor.show(everything=True) == 0
    said = re.sub("skipped: not TOML: .*;", "skipped: WHY;", capsys.readouterr().out)
    assert said == PRINTED.replace("REMEDY", needs.VARIANTS["tsan"][1])
    assert doctor.show(everything=False) == 0
    short = capsys.readouterr().out
    assert len(short.splitlines()) <= 40
    assert "chapters and servers: 4 of 7 run\n  03-odd  " in short
    assert "experiments: 3 of 6 run\n  broken  " in short
    assert "tools: 1 of 4 here\n  nginx  no: not installed" in short


def test_what_cannot_even_be_built(made_up: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "probe", lambda _: NO_FORK)
    assert doctor.server("05-built") == NO_FORK


@pytest.mark.long
def test_this_machine_without_any_library() -> None:
    """The real probes; scipy and all else beside the standard library is hidden."""
    hidden = "scipy", "numpy", "pytest"
    code = (
        f"import runpy, sys; sys.modules.update(dict.fromkeys({hidden!r}));"
        "runpy.run_module('quest.report', run_name='__main__')"
    )
    command = [sys.executable, "-c", code, "doctor", "--all"]
    done = subprocess.run(
        command, cwd=TREE, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": "."},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not re.search("(skipped|no): *(;|$)", done.stdout, re.M), "with its reason"
    sections = {lines[0]: lines[1:] for lines in map(str.splitlines, done.stdout.split("\n\n"))}
    variants = " ".join(line.split()[0] for line in sections["libc variants"])
    assert f"\nVARIANTS := {variants}\n" in (TREE / "Makefile").read_text(encoding="utf-8")
    here, *rest = (re.findall(r"[\w.@-]+", line) for line in sections["tools"])  # by deps.sh
    assert ("make" in here) == (places.which("make") is not None)
    assert {"pandoc", "reveal.js@5.2.1"} <= {*here, *(words[0] for words in rest)}
