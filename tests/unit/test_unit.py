"""Runs the unit tests in C and reads what they print (TAP): every `not ok` is a failure with its
text.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.conformance.process import environment
from tests.conformance.programs import binary

HERE = Path(__file__).parent
PROGRAMS = sorted(path.stem for path in HERE.glob("*_test.c"))
#: What is not built with dietlibc, and why.
NOT_WITH_DIET = {
    "kqueue_test": "dietlibc's timerfd_create() is broken",
    "queue_test": "dietlibc has no eventfd()",
    "file_cache_test": "dietlibc's struct stat has no nanoseconds",
    **{f"disk_{part}_test": "dietlibc has no llround()" for part in ("cache", "files", "model")},
}
#: What is built in some variants only, and why.
BUILT_IN = {
    "confine_test": (("glibc", "static"), "a sanitizer's build is not confined"),
    "coroutine_test": (("glibc", "static", "asan"), "not every processor has it there"),
}
LINE = re.compile(r"(not )?ok ([0-9]+) - (.*)")


def failures(output: str, status: int) -> list[str]:
    """What is wrong with the output of a test program; nothing, if it is all "ok" and complete."""
    lines = output.splitlines()
    plan = [int(line[3:]) for line in lines if re.fullmatch(r"1\.\.[0-9]+", line)]
    checks = [match for line in lines if (match := LINE.match(line))]
    wrong = [match[0] for match in checks if match[1]]
    numbers = [int(match[2]) for match in checks]
    if len(plan) != 1 or numbers != list(range(1, plan[0] + 1)) or not numbers:
        wrong.append(f"{len(numbers)} checks, and the plan is {plan}: it did not come to its end")
    elif (status == 0) != (not wrong):
        wrong.append(f"exit status {status}")
    return wrong


@pytest.mark.parametrize("name", PROGRAMS)
def test_in_c(name: str, variant: str, pytestconfig: pytest.Config) -> None:
    if variant == "diet" and name in NOT_WITH_DIET:
        pytest.skip(NOT_WITH_DIET[name])
    variants, reason = BUILT_IN.get(name, ((variant,), ""))
    if variant not in variants:
        pytest.skip(reason)
    program = binary(pytestconfig, variant, name)
    if not os.access(program, os.X_OK):
        pytest.fail(f"{program} is not there: make it, or leave it out with --variants", False)
    done = subprocess.run(
        [program], env=environment(), capture_output=True, text=True, errors="replace",
        timeout=300, check=False,
    )  # fmt: skip
    wrong = failures(done.stdout, done.returncode)
    assert not wrong and done.stderr == "", "\n".join([*wrong, done.stderr])


@pytest.mark.parametrize(
    ("output", "status", "count"),
    [
        ("ok 1 - a\nok 2 - b\n1..2\n", 0, 0),
        ("ok 1 - a\nnot ok 2 - b\n1..2\n", 1, 1),
        ("ok 1 - a\nok 2 - b\n1..2\n", 1, 1),
        ("ok 1 - a\nnot ok 2 - b\n1..2\n", 0, 2),
        ("ok 1 - a\nok 3 - b\n1..2\n", 0, 1),
        ("", 0, 1),
        ("ok 1 - a\n1..2\n", 0, 1),
        ("", -11, 1),
    ],
)
def test_the_output_is_judged(output: str, status: int, count: int) -> None:
    assert len(failures(output, status)) == count
