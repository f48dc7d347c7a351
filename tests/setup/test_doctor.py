"""`make doctor`: what it concludes from probes, here made up, and what it prints."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness import checkup, doctor, experiment, needs, programs
from harness.model import Experiment
from harness.needs import Answer

TREE = Path(__file__).resolve().parents[2]

EXPERIMENT = """
id = "made-up"
title = "Made up"
question = "?"
kind = "micro"
chapters = ["02-fork"]
[profile.smoke]
rounds = 1
set = {children = 10}
[profile.quick]
rounds = 1
set = {children = 400000000}
[profile.full]
rounds = 1
set = {children = 400000000}
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


@pytest.fixture
def made_up(tmp_path: Path) -> Experiment:
    path = tmp_path / "made-up.toml"
    path.write_text(EXPERIMENT, encoding="utf-8")
    return experiment.load(path)


def answers(monkeypatch: pytest.MonkeyPatch, **missing: Answer | None) -> None:
    monkeypatch.setattr(programs, "missing", lambda _, variant: missing[variant.name])


# ---- experiments


def test_experiment_that_runs(monkeypatch: pytest.MonkeyPatch, made_up: Experiment) -> None:
    answers(monkeypatch, plain=None, diet=None)
    monkeypatch.setattr(doctor, "reduced", lambda _: "")
    assert doctor.line(doctor.experiment_row(made_up)) == "runs"


def test_variant_that_is_skipped(monkeypatch: pytest.MonkeyPatch, made_up: Experiment) -> None:
    answers(monkeypatch, plain=None, diet=NO_DIET)
    row = doctor.experiment_row(made_up)
    assert row.ok
    assert [(part.name, doctor.line(part)) for part in row.parts] == [
        ("diet", "skipped: diet is not installed; apt-get install dietlibc-dev")
    ]


def test_same_reason_for_all_variants(monkeypatch: pytest.MonkeyPatch, made_up: Experiment) -> None:
    answers(monkeypatch, plain=NO_DIET, diet=NO_DIET)
    row = doctor.experiment_row(made_up)
    expected = "skipped: diet is not installed; apt-get install dietlibc-dev"
    assert doctor.line(row) == expected
    assert row.parts == ()


def test_different_reasons(monkeypatch: pytest.MonkeyPatch, made_up: Experiment) -> None:
    answers(monkeypatch, plain=Answer(False, "no fork", "another system"), diet=NO_DIET)
    row = doctor.experiment_row(made_up)
    assert doctor.line(row) == "skipped: no variant runs"
    assert [part.name for part in row.parts] == ["plain", "diet"]


def test_what_is_not_built_yet_runs(monkeypatch: pytest.MonkeyPatch, made_up: Experiment) -> None:
    answers(monkeypatch, plain=NOT_BUILT, diet=NO_DIET)
    row = doctor.experiment_row(made_up)
    assert doctor.line(row).startswith("runs (once built")
    assert [part.name for part in row.parts] == ["diet"]


def test_limits_that_reduce_an_experiment(made_up: Experiment) -> None:
    """No machine can have 400 million processes."""
    assert re.match(r"children at most \d+ instead of 400000000 \(.+\)", doctor.reduced(made_up))


def test_broken_experiment_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, made_up: Experiment
) -> None:
    assert made_up
    (tmp_path / "broken.toml").write_text("id = \n", encoding="utf-8")
    monkeypatch.setattr(experiment, "FOLDER", tmp_path)
    answers(monkeypatch, plain=None, diet=None)
    rows, of_chapter = doctor.experiments()
    assert [(row.name, row.ok) for row in rows] == [("broken", False), ("made-up", True)]
    assert "not TOML" in rows[0].reason
    assert of_chapter == {"02-fork": ["made-up"]}


# ---- chapters


def test_chapter_counts_its_experiments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TREE)
    monkeypatch.setattr(checkup, "server", lambda _: Answer(True))
    skipped = doctor.Row("b", False, "no strace", "apt-get install strace")
    row = doctor.chapter_row("02-fork", [doctor.Row("a", True), skipped])
    assert doctor.line(row) == "runs (1 of 2 experiments)"
    assert doctor.line(row.parts[0]) == "skipped: no strace; apt-get install strace"


def test_chapter_whose_server_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TREE)
    monkeypatch.setattr(checkup, "server", lambda _: Answer(False, "no io_uring here", "Linux 5.6"))
    row = doctor.chapter_row("02-fork", [])
    assert doctor.line(row) == "skipped: no io_uring here; Linux 5.6"


def test_all_chapters_and_servers_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TREE)
    found = doctor.slugs()
    assert {"00-client", "01-iterative", "02-fork", "02-inetd"} <= set(found)
    assert found == sorted(found)


# ---- tools


def test_tool_rows() -> None:
    text = "# comment\nwrk\tmeasure\tcommand:wrk\twrk\tcross-check of hammer\n"
    (package,) = doctor.packages(text)
    assert doctor.line(doctor.tool_row(package, True)) == "runs (wrk)"
    expected = "skipped: not installed: cross-check of hammer; make deps"
    assert doctor.line(doctor.tool_row(package, False)) == expected


@pytest.mark.parametrize(
    ("klass", "remedy"),
    [("peers", "make peers"), ("lint", "apt-get install x"), ("book", "make deps")],
)
def test_remedies(klass: str, remedy: str) -> None:
    assert doctor.tool_row(doctor.Package("x", (klass,), "x", "y"), False).remedy == remedy


def test_deps_sh_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TREE)
    here = doctor.status(["base", "slides"])
    assert {"gcc", "pandoc", "reveal.js@5.2.1"} <= set(here)
    assert here["make"] == (needs.which("make") is not None)


# ---- the whole


def report() -> doctor.Report:
    return doctor.Report(
        machine={"system": "made up"},
        limits=[doctor.Row("namespace", False, "not allowed", "run as root")],
        chapters=[doctor.Row("02-fork", True, note="1 of 1 experiments")],
        experiments=[doctor.Row("fork-latency", True, parts=(doctor.row("diet", NO_DIET),))],
        variants=[doctor.row("diet", NO_DIET)],
        tools=[doctor.Row("gcc", True), doctor.Row("wrk", False, "not installed: x", "make deps")],
    )


PRINTED = """\
this machine
  system     made up

limits
  namespace  no: not allowed; run as root

chapters
  02-fork  runs (1 of 1 experiments)

experiments
  fork-latency  runs
                  diet skipped: diet is not installed; apt-get install dietlibc-dev

libc variants
  diet  skipped: diet is not installed; apt-get install dietlibc-dev

tools
  here: gcc
  wrk  skipped: not installed: x; make deps
"""


def test_what_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "examine", report)
    assert doctor.main([]) == 0
    assert capsys.readouterr().out == PRINTED


def test_json_has_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "examine", report)
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
        "from harness import doctor; sys.exit(doctor.main(['--json']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=TREE, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": "benchmarks", "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert [row["name"] for row in data["variants"]] == list(checkup.VARIANTS)
    for section in ("limits", "chapters", "experiments", "variants", "tools"):
        for row in data[section]:
            assert row["ok"] or row["reason"], row
