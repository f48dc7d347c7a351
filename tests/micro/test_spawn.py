"""spawn: every way makes a child that ends; what fails is an error and no sample.

Run: python3 -m pytest tests/micro/test_spawn.py --variants=glibc,diet   (after `make variants`)
"""

from __future__ import annotations

import platform
import resource
import signal
from pathlib import Path

import pytest
from micro_support import cells, run

WAYS = ["fork", "vfork", "posix_spawn", "clone3"]
TINY = "/bin/true"


def unsupported(way: str, folder: Path) -> str:
    """Why this way cannot be gone in this variant, as the program has to say it."""
    if way == "posix_spawn" and folder.name == "diet":
        return "this C library has no posix_spawn()"
    if way == "clone3" and platform.machine() != "x86_64":
        return "written for x86-64 only"
    return ""


@pytest.fixture(autouse=True)
def no_sanitizer_on_another_stack(folder: Path, request: pytest.FixtureRequest) -> None:
    parameters = getattr(request.node, "callspec", None)
    clone3 = parameters is not None and parameters.params.get("way") == "clone3"
    if clone3 and folder.name in ("asan", "tsan"):
        pytest.skip("the sanitizers do not follow a child onto a stack they do not know")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("program", [[TINY], []], ids=["exec", "exit"])
def test_each_way_makes_children_at_each_size(folder: Path, way: str, program: list[str]) -> None:
    if way == "posix_spawn" and not program:
        pytest.skip("posix_spawn() needs a program; the test of bad usage covers it")
    status, out, err = run([folder / "spawn", "-n", "3", "-r", "130", way, *program])
    reason = unsupported(way, folder)
    if reason:
        assert (status, out) == (77, "")
        assert err.startswith("spawn: ")
        assert reason in err
        return
    assert (status, err) == (0, "")
    assert [row[0] for row in cells(out)] == ["0"] * 3 + ["64"] * 3 + ["128"] * 3
    for _, returned, total, error in cells(out):
        assert error == "-"
        assert 0 < int(returned) < int(total)


@pytest.mark.parametrize("way", WAYS)
def test_a_program_that_cannot_be_executed_is_no_sample(folder: Path, way: str) -> None:
    if unsupported(way, folder):
        pytest.skip(unsupported(way, folder))
    status, out, err = run([folder / "spawn", "-n", "1", way, "/nowhere"])
    if way == "posix_spawn" and status == 0:
        # A library that knows of the exec hands its errno over; else the child's status says it.
        assert cells(out)[0][2:] == ["0", "errno-2"]
        return
    assert (status, out) == (1, "")
    assert err == "spawn: /nowhere: the child could not execute it, or failed\n"


def test_more_memory_than_there_may_be_is_one_line(folder: Path) -> None:
    if folder.name in ("asan", "tsan"):
        pytest.skip("the sanitizers reserve more address space than that themselves")
    status, out, err = run(
        [folder / "spawn", "-n", "1", "-r", "2048", "fork"],
        before=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)),
    )
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("spawn: mmap of 2050 MiB: ")


def test_an_ignored_sigchld_does_not_matter(folder: Path) -> None:
    def ignore() -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    status, out, err = run([folder / "spawn", "-n", "5", "vfork"], before=ignore)
    assert (status, err, len(cells(out))) == (0, "", 5)


def test_nothing_does_nothing(folder: Path) -> None:
    assert run([folder / "nothing"]) == (0, "", "")
