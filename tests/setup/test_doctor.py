"""`make doctor`: its probes, on made-up servers and compilers; what it concludes from answers, here
made up; and what it prints.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.report import doctor
from harness.report.doctor import Row
from harness.run import programs
from harness.spec import experiment_file
from harness.system import needs, places
from harness.system.places import Answer

TREE = Path(__file__).resolve().parents[2]

EXPERIMENT = """
id = "made-up"
title = "Made up"
question = "?"
kind = "micro"
chapters = ["02-fork"]
[profile]
smoke = {rounds = 1, set = {children = 10}}
quick = {rounds = 1, set = {children = 400000000}}
full = {rounds = 1, set = {children = 400000000}}
[caps]
children = "processes"
[[variant]]
name = "plain"
command = ["{bin}/made-up", "-n", "{children}"]
[[variant]]
name = "diet"
build = "diet"
command = ["{bin}/made-up", "-n", "{children}"]
[[metric]]
name = "t"
column = "t_ns"
"""
NO_DIET = Answer(False, "diet is not installed", "apt-get install dietlibc-dev")
NOT_BUILT = Answer(False, "build/bin/made-up is not built", "make variants")
DIET_SKIPPED = "skipped: diet is not installed; apt-get install dietlibc-dev"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a made-up experiment, and another that is broken."""
    (tmp_path / "made-up.toml").write_text(EXPERIMENT, encoding="utf-8")
    (tmp_path / "broken.toml").write_text("id = \n", encoding="utf-8")
    monkeypatch.setattr(experiment_file, "FOLDER", tmp_path)
    monkeypatch.chdir(TREE)
    return tmp_path


def lines(row: Row) -> list[str]:
    return [doctor.line(row), *(f"{part.name}: {doctor.line(part)}" for part in row.parts)]


# ---- servers and compilers that are tried out

LISTENING = 'echo "09-made-up: listening on http://127.0.0.1:1/"'
# A loop, not one long sleep: the shell must not leave a child behind when it is killed.
DEAF = f'trap "" TERM; {LISTENING}; while :; do sleep 0.2; done'


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="ascii")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (f"{LISTENING}; exec sleep 60", Answer(True)),
        ('echo "no epoll here: use Linux" >&2; exit 77', Answer(False, "no epoll here: use Linux")),
        ("exit 3", Answer(False, "status 3", "make test tells more")),
        (DEAF, Answer(False, "it does not end at SIGTERM", "make test tells more")),
    ],
)
def test_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, answer: Answer) -> None:
    if text == DEAF:
        monkeypatch.setattr(doctor, "PATIENCE", 2.0)
    script(tmp_path / "09-made-up", text)
    assert doctor.server("09-made-up", tmp_path) == answer


def test_server_that_is_not_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "probe", lambda _: Answer(True))
    row = doctor.row("x", doctor.server("x", tmp_path))
    assert doctor.line(row).startswith("runs (not built yet")
    monkeypatch.setattr(needs, "probe", lambda _: Answer(False, "no cc", "apt-get install gcc"))
    assert not doctor.server("x", tmp_path).ok


UNRUNNABLE = 'printf "#!/bin/sh\\necho ==7==unexpected memory mapping >&2\\nexit 66\\n"'


@pytest.mark.parametrize(
    ("name", "compiler", "reason"),
    [
        ("glibc", 'echo "#!/bin/sh" >$2; chmod +x $2', ""),
        ("asan", "echo 'cannot find -lasan' >&2; exit 1", "cannot find -lasan"),
        ("tsan", f"{UNRUNNABLE} >$2; chmod +x $2", "unexpected memory mapping"),
    ],
)
def test_variant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, compiler: str, reason: str
) -> None:
    """`cc` is a script here; the program it makes is another."""
    script(tmp_path / "cc", f"while [ $1 != -o ]; do shift; done\n{compiler}")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    answer = doctor.variant(name)
    assert (answer.ok, answer.reason) == (not reason, reason)
    assert answer.ok or answer.remedy


def test_names_are_those_of_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TREE)
    text = (TREE / "Makefile").read_text(encoding="utf-8")
    assert re.findall(r"^VARIANTS := (.*)$", text, re.M) == [" ".join(doctor.VARIANTS)]
    found = doctor.slugs()
    assert {"00-client", "01-iterative", "02-fork", "02-inetd"} <= set(found)
    assert found == sorted(found)
    here = doctor.status(["base", "slides"])  # by deps.sh
    assert {"gcc", "pandoc", "reveal.js@5.2.1"} <= set(here)
    assert here["make"] == (places.which("make") is not None)


# ---- what is concluded


@pytest.mark.parametrize(
    ("plain", "diet", "expected"),
    [
        (None, None, ["runs"]),
        (None, NO_DIET, ["runs", f"diet: {DIET_SKIPPED}"]),
        (NO_DIET, NO_DIET, [DIET_SKIPPED]),
        (
            Answer(False, "no fork", "another system"),
            NO_DIET,
            ["skipped: no variant runs", "plain: skipped: no fork; another system",
             f"diet: {DIET_SKIPPED}"],
        ),
        (NOT_BUILT, NO_DIET, ["runs (once built: make variants)", f"diet: {DIET_SKIPPED}"]),
    ],
)  # fmt: skip
def test_experiment(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    plain: Answer | None,
    diet: Answer | None,
    expected: list[str],
) -> None:
    """A broken one is a line, too; no machine can have 400 million processes."""
    made_up = experiment_file.load(folder / "made-up.toml")
    assert re.match(r"children at most \d+ instead of 400000000 \(.+\)", doctor.reduced(made_up))
    monkeypatch.setattr(programs, "missing", lambda _, v: {"plain": plain, "diet": diet}[v.name])
    monkeypatch.setattr(doctor, "reduced", lambda _: "")
    (broken, row), of_chapter = doctor.experiments()
    assert lines(row) == expected
    assert (broken.name, broken.ok) == ("broken", False) and "not TOML" in broken.reason
    assert of_chapter == {"02-fork": ["made-up"]}


def test_chapter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "server", lambda _: Answer(True))
    skipped = Row("b", False, "no strace", "apt-get install strace")
    assert lines(doctor.chapter_row("02-fork", [Row("a", True), skipped])) == [
        "runs (1 of 2 experiments)", "b: skipped: no strace; apt-get install strace",
    ]  # fmt: skip
    monkeypatch.setattr(doctor, "server", lambda _: Answer(False, "no io_uring here", "Linux 5.6"))
    assert lines(doctor.chapter_row("02-fork", [])) == ["skipped: no io_uring here; Linux 5.6"]


@pytest.mark.parametrize(
    ("klass", "remedy"),
    [("peers", "make peers"), ("lint", "apt-get install wrk"), ("measure", "make deps")],
)
def test_tools(klass: str, remedy: str) -> None:
    (package,) = doctor.packages(f"# comment\nwrk\t{klass}\tcommand:wrk\twrk\tcross-check\n")
    assert doctor.line(doctor.tool_row(package, True)) == "runs (wrk)"
    expected = f"skipped: not installed: cross-check; {remedy}"
    assert doctor.line(doctor.tool_row(package, False)) == expected


# ---- the whole

REPORT = doctor.Report(
    machine={"system": "made up"},
    limits=[Row("namespace", False, "not allowed", "run as root")],
    chapters=[Row("02-fork", True, note="1 of 1 experiments")],
    experiments=[Row("fork-latency", True, parts=(doctor.row("diet", NO_DIET),))],
    variants=[doctor.row("diet", NO_DIET)],
    tools=[Row("gcc", True), Row("wrk", False, "not installed: x", "make deps")],
)
PRINTED = f"""\
this machine
  system     made up

limits
  namespace  no: not allowed; run as root

chapters
  02-fork  runs (1 of 1 experiments)

experiments
  fork-latency  runs
                  diet {DIET_SKIPPED}

libc variants
  diet  {DIET_SKIPPED}

tools
  here: gcc
  wrk  skipped: not installed: x; make deps
"""


def test_what_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "examine", lambda: REPORT)
    assert doctor.main([]) == 0
    assert capsys.readouterr().out == PRINTED
    assert doctor.main(["--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert set(data) == {"machine", "limits", "chapters", "experiments", "variants", "tools"}
    assert data["experiments"][0]["parts"][0]["reason"] == "diet is not installed"


@pytest.mark.long
def test_on_this_machine_without_any_library() -> None:
    """The real probes; scipy and all else beside the standard library is hidden."""
    hidden = "scipy", "numpy", "jsonschema", "pytest"
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({hidden!r}));"
        "from harness.report import doctor; sys.exit(doctor.main(['--json']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=TREE, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": "benchmarks", "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert [row["name"] for row in data["variants"]] == list(doctor.VARIANTS)
    for section in ("limits", "chapters", "experiments", "variants", "tools"):
        assert all(row["ok"] or row["reason"] for row in data[section]), data[section]
