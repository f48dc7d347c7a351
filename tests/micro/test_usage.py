"""What every micro-benchmark refuses, and what it says of itself.

Run: python3 -m pytest tests/micro/test_usage.py --variants=glibc,diet
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from micro_support import PATIENCE_S, PROGRAMS, run

# A program -> how its usage goes on, and the arguments that it refuses, apart from those below.
REFUSED = {
    "aio-threads": ("[-n ", ["pipes", "pip x", "-n 0 pipes x", "-t 257 pool x"]),
    "cow-pages": ("[-n SAMPLES] [-", ["", "nobody", "child fresh", "fresh child", "-p", "-m -1"]),
    "directory-size": ("[-n ", ["-n 0 here x", "here x y", "-n 1000001 here x"]),
    "disk-read": ("[-", ["", "x", "x upwards", "-j 0 x random"]),
    "fairness": (
        "[-n SPINNERS] [-t MILLISECONDS_EACH] ",
        [f"{letter} {text}" for letter in ("-n", "-t") for text in ("0", "-1", "x", "100000000")],
    ),
    "fd-alloc": (
        "[-n DESCRIPTORS] [-k STEP] [-l LOW] [-m LEAST] ",
        ["", "-n 0 dup", "dup dup", "dup2", "-k 0 dup", "-l 10 dupfd", "-n 128 -m 128 dupfd",
         "-t 65 dup"],
    ),
    "first-read": (
        "[-n SAMPLES] [-p PAGE_BYTES] together|apart ",
        ["", "both", "together apart", "-p -1 apart"],
    ),
    "fork-mappings": ("[-n SAMPLES] [-", ["", "large", "small huge", "touched huge", "small"]),
    "fork-memory": ("[-n SAMPLES] [-", ["", "large", "small huge", "touched huge", "touched"]),
    "hold-connections": (
        "[-n CONNECTIONS] [-p PORT] PATH",
        ["", "-n 0 /", "-p 65536 /", "/ /"],
    ),
    "in-flight": ("[-n ", ["", "write", "-p 0 read"]),
    "kernel-aio": ("[-n ", ["direct x", "direct ntfs x", "-q 65 -m 64 direct here x"]),
    "malloc-dirty": (
        "[-n SAMPLES] [-",
        ["", "nobody", "child fresh", "fresh child", "-p", "-m -1"],
    ),
    "mmap-files": ("[-n ", ["here", "ntfs x", "-c 2 here x"]),
    "mmap-pages": (
        "[-n MAPPINGS] [-k STEP] NEW_FILE ",
        ["", "-n 5", "-n 0 x", "-n 100001 x", "x y", "-z x", "-k 0 x"],
    ),
    "port-bind": (
        "[-n PORTS] [-k STEP] [-d DESTINATIONS] ipv4|",
        ["", "-n 0 ipv4", "ipv4 ipv6", "ipv5", "-d 201 late"],
    ),
    "prefork-herd": (
        "[-n PROCESSES] [-c CONNECTIONS] accept|poll|",
        ["", "-n 0 poll", "-c x poll", "poll epoll", "-n"],
    ),
    "readiness-facts": ("", ["x", "-n 5"]),
    "sched-switch": (
        "[-n ",
        [f"{letter} {text}" for letter in ("-r", "-a", "-b") for text in ("-1", "x", "100000000")],
    ),
    "sigio-overflow": ("[-n ", ["-n 10 -q 11"]),
    "spawn": (
        "[-n SAMPLES] [-r MIB] fork|vfork|posix_spawn|clone3 [",
        ["", "spoon", "fork /bin/true /bin/true", "posix_spawn", "-r 99999999 fork", "-r -1"],
    ),
    "stat-cost": (
        "[-n ",
        ["stat here x", "look here warm x", "stat here lukewarm x",
         "-n 10 -v 11 stat here warm x", "-d 0 stat here warm x"],
    ),
    "thread-create": ("[-n THREADS] [-s STACK_KIB]", ["-s -1", "-s x", "-s 1048577"]),
    "ticks": ("[-n SAMPLES] [-t MILLISECONDS] ", ["-n 0", "-t 0", "-t 10001", "-x", "5"]),
    "timeout-accuracy": (
        "[-n SAMPLES] [-t MICROSECONDS] [-s SLACK] ",
        ["", "-n 0 select", "-t 0 select", "select poll"],
    ),
    "wake-latency": ("[-n ", ["-b -1", "-b x", "-b 100000000"]),
    "write-parts": ("[-n ", ["", "two", "three pipe", "two tcp", "-p 8001 two pipe"]),
}  # fmt: skip
NOT_A_NUMBER = [
    *(["-n", text] for text in ("0", "-5", "12x", "", "9" * 30, " 5")),
    ["-x"],
    ["5", "6"],
]
NOT_EVERYWHERE = ["aio-threads", "directory-size", "kernel-aio", "mmap-files", "stat-cost"]
CASES = [(program, words.split()) for program, (_, refused) in REFUSED.items() for words in refused]
CASES += [
    (program, [*arguments, *PROGRAMS[program].arguments])
    for program in PROGRAMS
    for arguments in NOT_A_NUMBER
]
CASES += [(program, ["-n"]) for program in PROGRAMS]
CASES += [("thread-create", ["-n", "3", "-s", ""])]


@pytest.fixture
def program(folder: Path, request: pytest.FixtureRequest) -> str:
    """Its name; a skip where it is not built, or not for this C library."""
    name = str(request.param)
    if name in NOT_EVERYWHERE and folder.name in ("diet", "musl"):
        pytest.skip("not for this C library")
    if not (folder / name).exists() and name in ("aio-threads", "kernel-aio", "disk-read"):
        pytest.skip("not built in this variant")
    return name


@pytest.mark.parametrize(("program", "arguments"), CASES, indirect=["program"])
def test_bad_usage_is_status_2(folder: Path, program: str, arguments: list[str]) -> None:
    status, out, err = run([folder / program, *arguments])
    assert (status, out, err.count("\n")) == (2, "", 1)
    usage, _ = REFUSED.get(program, ("[-n ", []))
    assert err.startswith(f"usage: {program} {usage}".rstrip())


@pytest.mark.parametrize("program", [*PROGRAMS, "mmap-pages", "ticks"], indirect=True)
def test_help(folder: Path, program: str) -> None:
    status, out, err = run([folder / program, "-h"])
    assert (status, err, out.count("\n")) == (0, "", 1)
    assert out.startswith(f"usage: {program} [-n ")


@pytest.mark.parametrize("program", ["event-wait", "event-rate"])
def test_a_way_that_is_not_here_is_a_skip(folder: Path, program: str) -> None:
    status, out, err = run([folder / program, "telepathy"])
    assert (status, out) == (77, "")
    assert err == f"{program}: telepathy: there is no such way to wait here\n"


@pytest.mark.parametrize(
    ("program", "way"), [("prefork-herd", "select"), ("timeout-accuracy", "sleep")]
)
def test_an_unknown_way_is_bad_usage_or_not_here(folder: Path, program: str, way: str) -> None:
    status, out, err = run([folder / program, way])
    assert (status, out, err.count("\n")) == (77 if folder.name == "diet" else 2, "", 1)


def test_a_state_that_a_file_system_cannot_have_is_bad_usage(folder: Path) -> None:
    if folder.name in ("diet", "musl"):
        pytest.skip("not for this C library")
    status, out, err = run([folder / "stat-cost", "stat", "here", "cold", "x"])
    assert (status, out, err.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("program", [*PROGRAMS, "mmap-pages"])
def test_lost_output_is_an_error(folder: Path, tmp_path: Path, program: str) -> None:
    arguments = PROGRAMS[program].arguments if program in PROGRAMS else (str(tmp_path / "pages"),)
    with open("/dev/full", "w") as full:
        child = subprocess.run(
            [folder / program, "-n", "5", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
    assert child.returncode == 1
    assert child.stderr == f"{program}: write to stdout: No space left on device\n"
