"""`make doctor`: what it says of servers that end in each way, of things that lack something, and all of it on this
machine.
"""

import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from quest.ground import places
from quest.ground.places import Answer
from quest.measure import chosen, limits, needs, programs
from quest.report import doctor
from quest.spec import experiment_file
from quest.spec.model import Experiment

TREE = Path(__file__).resolve().parents[2]

LISTENING = 'echo "made-up: listening on http://127.0.0.1:1/"'
SERVERS = {
    "00-client": ('test "$*" = -h', Answer(True)),  # it listens to nobody
    "02-fork": (f"{LISTENING}; exec sleep 60", Answer(True)),
    "03-odd": ("exit 3", Answer(False, "03-odd ended with status 3", "make test tells more")),
    # a loop, not one long sleep: the shell must not leave a child behind when it is killed
    "04-deaf": (f'trap "" TERM; {LISTENING}; while :; do sleep 0.2; done',
                Answer(False, "04-deaf did not end within 1 s of SIGTERM", "make test tells more")),
    "09-epoll": ('echo "no epoll here: use Linux" >&2; exit 77', Answer(False, "no epoll here: use Linux")),
}  # fmt: skip


@pytest.mark.parametrize("slug", SERVERS)
def test_a_server_is_tried_out(slug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script, answer = SERVERS[slug]
    program = tmp_path / "build/bin" / slug
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="ascii")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(doctor, "PATIENCE", 1.0 if slug == "04-deaf" else 10.0)  # which that one is waited for in full
    monkeypatch.setattr(needs, "missing_library", lambda _: None)
    assert doctor.server(slug) == answer


NO_DIET = Answer(False, "no diet", "install it")
NO_FORK = Answer(False, "no fork", "another system")
NOT_BUILT = Answer(False, "build/bin/made-up is not built", doctor.NOT_BUILT)


@pytest.fixture
def experiment() -> Experiment:
    """One of two variants."""
    return next(e for e in experiment_file.load_all() if len(e.variants) == 2)


@pytest.mark.parametrize(
    ("answers", "whole", "parts"),
    [
        ((None, None), Answer(True), {}),
        ((NOT_BUILT, None), Answer(True), {}),
        ((None, NO_DIET), Answer(True), {1: NO_DIET}),
        ((NO_DIET, NO_DIET), NO_DIET, {}),
        ((NO_FORK, NO_DIET), Answer(False, "no fork and no diet", "another system and install it"), {}),
    ],
)
def test_an_experiment_runs_if_a_variant_does(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch, answers: tuple[Answer | None, ...], whole: Answer,
    parts: dict[int, Answer],
) -> None:  # fmt: skip
    names = [variant.name for variant in experiment.variants]
    monkeypatch.setattr(programs, "missing", lambda _, variant: answers[names.index(variant.name)])
    monkeypatch.setattr(limits, "reducing", lambda *_: {})
    named = {f"{experiment.id} {names[number]}": answer for number, answer in parts.items()}
    assert doctor.of_experiment(experiment) == (whole, named)
    cap = limits.Cap(1000, "made up")
    monkeypatch.setattr(limits, "reducing", lambda *_: {"children": (cap, 4000)})
    smaller = {experiment.id: Answer(False, "children at most 1000 instead of 4000 (made up)")}
    assert doctor.of_experiment(experiment)[1] == (named | smaller if whole.ok else {})


def test_each_reason_is_told_once_with_all_that_it_is_the_reason_of() -> None:
    section = doctor.Section("things", "run", 4, {"a": NO_DIET, "b": NO_FORK, "c": NO_DIET}, {"d part": NO_FORK})
    assert section.lines() == [
        "things: 1 of 4 run",
        "  a, c: no diet; install it",
        "  b, d part: no fork; another system",
    ]


@pytest.mark.parametrize(("hard", "enough"), [(4096, True), (4095, False), (resource.RLIM_INFINITY, True)])
def test_how_many_descriptors_are_enough(monkeypatch: pytest.MonkeyPatch, hard: int, enough: bool) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, hard))
    assert doctor.descriptors().ok is enough


@pytest.mark.parametrize(("most", "enough"), [(1000, True), (999, False)])
def test_how_many_processes_are_enough(monkeypatch: pytest.MonkeyPatch, most: int, enough: bool) -> None:
    monkeypatch.setattr(limits, "smallest", lambda _: limits.Cap(most, "made up"))
    assert doctor.process_limit().ok is enough


@pytest.mark.long
def test_this_machine_without_any_library() -> None:
    """The real probes; scipy and all else beside the standard library is hidden."""
    hidden = "scipy", "numpy", "pytest"
    code = (
        f"import runpy, sys; sys.modules.update(dict.fromkeys({hidden!r})); sys.argv = ['quest', 'doctor'];"
        "runpy.run_module('quest', run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=TREE, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": "."},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    counts = re.findall(r"^(\w[\w ]*): (\d+) of (\d+) ", done.stdout, re.M)
    assert [title for title, _, _ in counts] == ["limits", "servers", "experiments", "libc variants", "tools"]
    count = {title: (int(good), int(every)) for title, good, every in counts}
    assert count["servers"][1] == len(list((TREE / "code").glob("[0-9]*")))
    assert count["experiments"][1] == len(chosen.everything())
    lines = [line for line in done.stdout.splitlines() if line.startswith("  ")]
    assert all(re.fullmatch(r"  \S.*: \S.*", line) for line in lines), "with its reason"
    lacking = [name for package in places.packages() if (name := package.name) and f"  {name}: not inst" in done.stdout]
    good, every = count["tools"]
    assert every - good == len(lacking)
    assert ("make" not in lacking) == (places.which("make") is not None)


def test_what_debian_does_not_have_is_not_asked_of_apt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, ""))  # nothing is here
    remedies = {name: answer.remedy for name, answer in doctor.tools().lacking.items()}
    assert remedies["axe-core@4.12.1"].startswith("DEPS=yes sh ") and remedies["chromium"].startswith("apt-get ")


def test_the_variants_are_those_of_make() -> None:
    assert f"\nVARIANTS := {' '.join(needs.VARIANTS)}\n" in (TREE / "Makefile").read_text(encoding="utf-8")
