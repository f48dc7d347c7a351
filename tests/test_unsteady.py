"""What fails among others and passes alone is named, and does no harm; what fails again does."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
# Each counts its runs in a file.
MADE_UP = """
import pathlib
import pytest

CASES = {cases!r}

@pytest.mark.parametrize("which", range(len(CASES)))
def test_it(which):
    runs = pathlib.Path(__file__).with_name(f"runs{{which}}")
    with runs.open("a") as file:
        file.write("x")
    ends = CASES[which][len(runs.read_text()) - 1]
    if ends == "s":
        pytest.skip("not now")
    assert ends == "."
"""


def run(folder: Path, *cases: str) -> tuple[int, list[str]]:
    """Status and output; a case has a letter for each of its runs: . passes, F fails, s skips."""
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="ascii")
    (folder / "test_made_up.py").write_text(MADE_UP.format(cases=cases), encoding="ascii")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.unsteady", "--unsteady=3", "."]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment | {"PYTHONPATH": str(TESTS.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.splitlines()


def test_unsteady_ones_are_named_last(tmp_path: Path) -> None:
    status, lines = run(tmp_path, "F..", ".", "F..", "F..")
    assert status == 0
    assert lines[-4:] == [
        *(
            f"unsteady: test_made_up.py::test_it[{n}] failed, and passed alone, twice"
            for n in (0, 2, 3)
        ),
        "3 unsteady, at most 3 are let pass",
    ]


@pytest.mark.parametrize(("words", "retries"), [([], ""), (["UNSTEADY=3"], "--unsteady=3")])
def test_nothing_is_run_again_unless_it_is_said(words: list[str], retries: str) -> None:
    goals = ["tests-of-all", "tests-of-variants", "test-labs", "test-book"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    done = subprocess.run(
        ["make", "-n", *goals, *words], cwd=TESTS.parent, env=environment | {"UNSTEADY": "9"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    calls = [line for line in done.stdout.splitlines() if "-m pytest" in line]
    assert len(calls) >= len(goals)
    assert all(re.findall(r"--unsteady=\S+", call) == retries.split() for call in calls), calls


def test_ci_alone_lets_unsteady_ones_pass() -> None:
    assert " UNSTEADY=3 " in (TESTS.parent / ".ci/run").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("cases", "last"),
    [
        (["F.F"], "fails alone too: test_made_up.py::test_it[0]"),
        (["F..", "FF"], "fails alone too: test_made_up.py::test_it[1]"),
        (["Fs"], "fails alone too: test_made_up.py::test_it[0]"),
        (["F.."] * 4, "4 failed: too many, or too early, to be run again"),
    ],
)
def test_what_is_red(tmp_path: Path, cases: list[str], last: str) -> None:
    status, lines = run(tmp_path, *cases)
    assert (status, lines[-1]) == (1, last)
