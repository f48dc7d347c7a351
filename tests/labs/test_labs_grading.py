"""A grade is right: full for the real server, small for the starter and for servers that only look
like one, and there is one, soon and without damage, for whatever is handed in.

LAB_RUNS=1 (make test-labs): every lab, with every mistake; each real server so many times. Without
it: a lab of each kind, with some.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from quest.labs import cell, class_table, work
from quest.labs import lab as labs
from quest.labs.lab import MECHANISM
from tests.conformance import proc
from tests.conformance.process import wait_until
from tests.labs.grading import SOON, TREE, Place, solution, write

RUNS = int(os.environ.get("LAB_RUNS", "0"))
FAULTS: list[dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("faults.toml").read_text(encoding="utf-8")
)["fault"]
#: Labs whose starter does not work as the lab asks yet.
WITHOUT = ("02-fork", "06-select", "12-aio")
#: each starts a server several times and waits for what must not happen
pytestmark = pytest.mark.long
SOME: list[Any] = ["04-threads", *(pytest.param(slug, marks=pytest.mark.slow) for slug in ("06-select", "15-slashdot"))]
SOME_LABS = pytest.mark.parametrize("slug", labs.slugs() if RUNS else SOME)
no_cell = cell.unavailable(None)
in_a_cell = pytest.mark.skipif(bool(no_cell), reason=no_cell)


@SOME_LABS
def test_the_solution_has_all_points(place: Place, slug: str) -> None:
    lab = labs.load(slug)
    found = place.grade_class(slug, {f"run-{n}": solution(lab) for n in range(max(RUNS, 1))})
    assert {(row["score"], row["failed"]) for row in found.values()} == {(str(lab.points), "")}


def with_those_after(lab: labs.Lab, failed: Iterable[str]) -> set[str]:
    """And the tests that are not tried, because they need one of them."""
    found = set(failed)
    for test in lab.tests:
        if found.intersection(test.needs):
            found.add(test.id)
    return found


def wrong_ones(lab: labs.Lab) -> dict[str, tuple[dict[str, str], set[str]]]:
    """Name -> what is handed in, and which tests it fails: those and no other."""
    missing = {test.id for test in lab.tests[1:] if test.id != MECHANISM or lab.slug in WITHOUT}
    found = {"starter": (work.starters(lab), missing)}
    for number, mistake in enumerate(lab.mistakes):
        fails = with_those_after(lab, [mistake.test])
        found[f"mistake-{number}-{mistake.test}"] = (solution(lab, mistake.old, mistake.new), fails)
    for fault in FAULTS:
        if fault["lab"] == lab.slug:
            fails = with_those_after(lab, fault["fails"])
            name = fault["name"].replace(" ", "-").replace(",", "")
            found[name] = (solution(lab, fault["old"], fault["new"]), fails)
    return found


@pytest.mark.slow
@SOME_LABS
def test_what_is_wrong_fails_its_tests_alone(place: Place, slug: str) -> None:
    """Without LAB_RUNS one of them: all mistakes of a debug lab at once, or one of another."""
    lab = labs.load(slug)
    wrong = wrong_ones(lab)
    chosen = list(wrong) if RUNS else ["starter" if lab.kind == "debug" else list(wrong)[-1]]
    texts = {name: wrong[name][0] for name in chosen}
    found = place.grade_class(slug, texts, SOON)
    if len(found) < len(chosen):  # some tests are slow by themselves: our own was too late, too
        found = place.grade_class(slug, texts)
    failed = {name: set(row["failed"].split()) for name, row in found.items()}
    assert failed == {name: wrong[name][1] for name in chosen}


# ---- attempts

#: functions of hostile.c
HOSTILE = (
    "fork_bomb", "memory_without_end", "flood_of_lines", "flood_without_a_line", "flood_of_a_reply",
    "orphans_that_stay", "vandal", "somebody_elses_work",
)  # fmt: skip
NO_PROGRAM = {
    "mistaken": "int main(void)\n{\n    return 0\n}\n",
    "includes-the-solution": '#include "02-fork/server.c"\n',
    "includes-its-path": f'#include "{TREE}/code/02-fork/server.c"\n',
    "links-its-object": f'__asm__(".incbin \\"{TREE}/README.md\\"");\nint main(void)\n{{\n}}\n',
    "takes-ours": '__asm__(".incbin \\"real/02-fork\\"");\nint main(void)\n{\n}\n',
    "gigabyte-of-data": "char x[1 << 30] = {1};\nint main(void)\n{\n}\n",
}


@contextlib.contextmanager
def real_servers(path: str) -> Iterator[tuple[int, list[socket.socket]]]:
    """What a proxy would ask, in the ways it may try: a port, an abstract name, a path."""
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(socket.create_server(("127.0.0.1", 0)))]
        for address in ("\0" + path[1:], path):
            found.append(stack.enter_context(socket.socket(socket.AF_UNIX)))
            found[-1].bind(address)
            found[-1].listen()
        Path(path).chmod(0o777)
        yield found[0].getsockname()[1], found


def marks(place: Place) -> list[Path]:
    """What a hostile program has left, where it tries to."""
    folders = [TREE, TREE / "labs", TREE / "quest/labs", TREE / "tests", place.top]
    folders += [place.temporary, place.top / "class"]
    folders += [Path(name) for name in ("/", "/tmp", "/var/tmp", "/dev/shm", "/home")]
    return [path for folder in folders for path in folder.glob("*lab_was_here*")]


@pytest.mark.slow
@in_a_cell
def test_the_table_of_attempts(place: Place) -> None:
    """No points, nothing left (the fixture looks for processes and files), and whoever comes after
    them has his. Of those who hand in no file, nothing is judged.
    """
    hostile = Path(__file__).with_name("hostile.c").read_text(encoding="utf-8")
    path = str(place.top / "socket")
    with real_servers(path) as (port, servers):
        told = f'#define TREE "{TREE}"\n#define PORT {port}\n#define PATH "{path}"\n'
        texts = {name: f"#define WHAT {name}\n{told}{hostile}" for name in HOSTILE} | NO_PROGRAM
        everybody = {name: {"server.c": text} for name, text in texts.items()}
        real = {"server.c": (TREE / "code/02-fork/server.c").read_text(encoding="utf-8")}
        sequential = {"server.c": (TREE / "code/01-iterative/server.c").read_text(encoding="utf-8")}
        none: dict[str, str] = {}
        everybody |= {"sequential": sequential, "big": none, "zoe": real}
        folder = place.top / "class"
        for name in ("link", "folder", "pipe"):
            (folder / name).mkdir(parents=True)
        (folder / "link/server.c").symlink_to(TREE / "code/02-fork/server.c")
        (folder / "folder/server.c").mkdir()
        os.mkfifo(folder / "pipe/server.c")
        (folder / "a-link").symlink_to(TREE / "code/02-fork")
        with (write(folder / "big", none) / "server.c").open("wb") as file:
            file.truncate(10 << 30)
        # where all gradings are one user's, a fork bomb in one must leave room in the others
        words = ("ONLY=serves,concurrency", "PROCESSES=60", "JOBS=4")
        found = place.grade_class("02-fork", everybody, *words, SOON)
        if (found["sequential"]["score"], found["zoe"]["score"]) != ("2", "5"):  # a right server was too late, too
            (place.top / "grades.csv").unlink()
            found = place.grade_class("02-fork", everybody, *words)
        for server in servers:
            server.settimeout(0)
            with pytest.raises(BlockingIOError):
                server.accept()
    scores = {name: (row["score"], row["failed"]) for name, row in found.items()}
    assert {scores.pop(name) for name in HOSTILE} == {("0", "serves concurrency")}
    not_built = ("0", "serves concurrency (it does not build)")
    assert {scores.pop(name) for name in NO_PROGRAM} == {not_built}
    assert scores.pop("big") == ("0", "serves concurrency (server.c is longer than 1 MiB)")
    assert (scores.pop("sequential"), scores.pop("zoe")) == (("2", "concurrency"), ("5", ""))
    assert {score for score, _ in scores.values()} == {""}
    said = {name: found[name]["failed"] for name in scores}
    assert all("server.c is not a file" in said.pop(name) for name in ("link", "folder", "pipe"))
    assert list(said) == ["a-link"] and "is a link" in said["a-link"]
    assert marks(place) == []


def hostile(name: str, before: str = "") -> dict[str, str]:
    """A function of hostile.c that needs nothing from outside."""
    text = Path(__file__).with_name("hostile.c").read_text(encoding="utf-8")
    told = f'#define WHAT {name}\n#define TREE ""\n#define PORT 1\n#define PATH "/x"\n'
    return {"server.c": told + before + text}


@pytest.mark.slow
@in_a_cell
def test_what_a_cell_leaves_open(place: Place) -> None:
    """Nothing to write to, no namespace, and no calls but those a server needs: what succeeds says
    so on stderr."""
    folder = write(place.top / "hand-in", hostile("attempts"))
    place.grade("02-fork", folder, "ONLY=serves", SOON)
    log = (place.logs / "serves.log").read_text()
    tried = [line.partition("could")[2] for line in log.splitlines() if "could" in line]
    assert len(tried) == 20, log
    assert [line for line in tried if not line.startswith(" not: ")] == []


def grader_at_work(place: Place) -> int:
    """The process that grades 02-fork, once it has built the server."""
    assert wait_until(lambda: any(place.temporary.glob("lab-*/bin/02-fork")), 60)
    words = {"quest", "grade", "CH=02-fork", f"WORK={place.work}"}
    commands = {pid: proc.text(pid, "cmdline").split("\0") for pid in proc.pids()}
    (grader,) = [pid for pid, command in commands.items() if words <= set(command)]
    return grader


def below(pid: int) -> list[int]:
    """The children of a process, their children, and so on."""
    found = proc.children(pid)
    return found + [one for child in found for one in below(child)]


@pytest.mark.slow
def test_a_grading_that_was_killed_is_cleared_away(place: Place) -> None:
    """By the next one; meanwhile it is closed to others, and so is one that is at work. Another's
    folder of such a name stays."""
    folder = place.hand_in("#include <unistd.h>\nint main(void)\n{\n    pause();\n}\n")
    grading = place.start("grade", "CH=02-fork", f"DIR={folder}", "ONLY=serves", "PATIENCE=9")
    grader = grader_at_work(place)
    left = next(place.temporary.glob("lab-*/bin")).parent
    closed = left if left.stat().st_mode & 0o001 == 0 else left / "hand-in"
    assert closed.stat().st_mode & 0o007 == 0
    if os.geteuid() == 0:
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        told = subprocess.run([*nobody, "cat", left / "hand-in/server.c"], check=False)
        assert told.returncode != 0
    os.kill(grader, signal.SIGKILL)
    grading.communicate(timeout=60)
    assert left.exists()
    (place.temporary / "lab-of-chemistry").mkdir()
    place.grade("02-fork", place.hand_in("int x("), "ONLY=serves")
    assert [path.name for path in place.temporary.iterdir()] == ["lab-of-chemistry"]
    (place.temporary / "lab-of-chemistry").rmdir()


#: Modules that the judge imports, and files that pytest or Python would look for by themselves.
SHADOWS = (
    "json.py", "re.py", "pytest.py", "conftest.py", "sitecustomize.py", "usercustomize.py",
    "quest/__init__.py", "quest/labs/__init__.py", "tests/__init__.py", "tests/conftest.py",
    "plugin.py", "mechanism.py", "test_fork.py",
)  # fmt: skip


@pytest.mark.slow
def test_the_judge_imports_nothing_of_a_submission(place: Place) -> None:
    """Neither from the folder that it judges, nor because the environment says so; the folder's own
    pytest.ini is not obeyed. A module that is imported all the same leaves a mark, and ends."""
    folder = write(place.top / "hand-in", solution(labs.load("02-fork")))
    mark = place.top / "imported"
    for name in SHADOWS:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"open({str(mark)!r}, 'a').write({name!r})\nraise SystemExit(9)\n")
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -p plugin --collect-only\n")
    hostile = "".join(
        f" {name}={value}"
        for name, value in {
            **dict.fromkeys(("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE"), folder),
            **dict.fromkeys(("PYTEST_ADDOPTS", "PYTEST_PLUGINS"), "plugin"),
            "PYTHONSTARTUP": folder / "re.py",
        }.items()
    )
    python = place.top / "python"
    python.write_text(f"""#!/bin/sh
case $* in *"-E -s -m quest"*) export{hostile};; esac
exec {sys.executable} "$@"
""")
    python.chmod(0o755)
    grade = place.grade("02-fork", folder, "ONLY=serves", "SANDBOX=no", f"PYTHON={python}")
    assert not mark.exists(), mark.read_text()
    assert grade.results["score"] == 2


@pytest.mark.slow
@in_a_cell
def test_helper_programs_that_only_say_so(place: Place) -> None:
    say = '#include <stdio.h>\nint main(void)\n{{\n    puts("{}");\n    return 0;\n}}\n'
    told = "looked 1000 times, was told 0 times of a client that it has forgotten"
    shared = say.format("the second worker was told of its client")
    texts = solution(labs.load("09-epoll")) | {"closed.c": say.format(told), "shared.c": shared}
    folder = write(place.top / "hand-in", texts)
    grade = place.grade("09-epoll", folder, "ONLY=closed,shared", SOON)
    assert grade.results["score"] == 0, grade.out
    assert "its system calls do not" in " ".join(grade.outputs.values())
    (folder / "closed.c").unlink()
    assert place.grade("09-epoll", folder).said == "there is no closed.c"


@pytest.mark.slow
def test_without_a_sandbox_it_is_no_grade(place: Place) -> None:
    grade = place.grade("02-fork", TREE / "code/02-fork", "ONLY=serves", LAB_NO_CELL="1")
    assert "A self-check, not a grade: " in grade.results["output"]
    assert "self-check, not a grade" in grade.out
    assert "lab: no grade: " in grade.err and "Error 3" in grade.err
    assert "score" not in json.dumps(grade.results), "no number that would become a grade"
    ada = {"ada": solution(labs.load("02-fork"))}
    rows = place.grade_class("02-fork", ada, "ONLY=serves", unjudged=True, LAB_NO_CELL="1")
    assert (rows["ada"]["score"], rows["ada"]["state"]) == ("", class_table.UNJUDGED)
    trusted = place.grade(
        "02-fork", TREE / "code/02-fork", "ONLY=serves", "SANDBOX=no", LAB_NO_CELL="1"
    )
    assert (trusted.results["score"], trusted.err) == (2, "")
    assert "A self-check, not a grade: " in trusted.said


@pytest.mark.slow
@in_a_cell
def test_a_seed_serves_the_same_again(place: Place) -> None:
    """And the form of the results: the keys that Gradescope knows, and the sums."""
    folder, only = TREE / "code/02-fork", "ONLY=serves,keep-alive"
    first = place.grade("02-fork", folder, only, "SEED=5")
    assert "SEED=5 tests with the same files again" in first.out
    assert first.out == place.grade("02-fork", folder, only, "SEED=5").out
    assert first.results["score"] == 3
    assert [test["max_score"] for test in first.results["tests"]] == [2, 1]
    for test in first.results["tests"]:
        assert (test["score"], test["status"]) == (test["max_score"], "passed")
        assert (test["visibility"], test["output"]) == ("visible", "Passed.")


@pytest.mark.slow
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_client_whose_output_has_no_end(place: Place, stream: str) -> None:
    """A grade, and the same for whoever comes after it: neither the judge's memory nor its disk is full."""
    head = "#include <stdio.h>\nint main(void)\n{\n    static char x[1 << 16];\n"
    text = f"{head}    for (;;)\n        fwrite(x, 1, sizeof x, {stream});\n}}\n"
    grade = place.grade("00-client", write(place.top / "hand-in", {"client.c": text}), "ONLY=fetches", SOON)
    assert grade.results["score"] == 0
    assert "It does not fetch a page" in grade.outputs["fetches"]
    assert sum(path.stat().st_size for path in place.logs.iterdir()) < 8 << 20


@pytest.mark.slow
def test_what_does_not_build(place: Place) -> None:
    """The compiler has more to say of a file that includes itself than anybody reads."""
    grade = place.grade("02-fork", place.hand_in('int x\n#include "server.c"\n'))
    lines = grade.results["output"].splitlines()
    assert lines[:2] == ["0 of 20 points.", "it does not build"]
    assert len(lines) < 30 and lines[-1] == "..."
    assert set(grade.outputs.values()) == {"There is no program."}


@pytest.mark.slow
def test_what_cannot_be_judged_is_no_failure(place: Place, tmp_path: Path) -> None:
    """Where tracing is not permitted, the race cannot be seen: neither points nor a failure. Nor
    can the mechanism: who checks his own work goes on without, and there is no grade."""
    strace = tmp_path / "strace"
    strace.write_text("#!/bin/sh\necho ptrace: not permitted >&2\nexit 1\n")
    strace.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    write(place.work / "02-fork", solution(labs.load("02-fork")))
    words = "CH=02-fork", "ONLY=serves,mechanism,processes,race"
    done = place.make("check", *words, PATH=path)
    assert done.stdout.count("Could not be judged here: tracing is not permitted here") == 2
    assert "3 of 4 points; 1 could not be judged here." in done.stdout
    assert "Error 3" in done.stderr
    said = place.refusal("grade", "CH=02-fork", f"DIR={place.work / '02-fork'}", PATH=path)
    assert said.startswith("lab: cannot judge here: mechanism: tracing is not permitted here")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "end"),
    [("abort()", "was ended by signal 6 (SIGABRT)"), ("exit(3)", "ended with status 3")],
)
def test_a_server_that_ends_is_called_that(place: Place, call: str, end: str) -> None:
    old = "    take_input(c);\n"
    texts = solution(labs.load("05b-nonblocking"), old, f"    {call};\n{old}")
    folder = write(place.top / "hand-in", texts)
    grade = place.grade("05b-nonblocking", folder, "ONLY=serves", SOON)
    assert grade.outputs["serves"].startswith(f"Your server {end}. ")


def test_a_grading_that_is_ended_leaves_nothing(place: Place) -> None:
    """SIGTERM, as of a time-out around it, while a fork bomb is judged. The fixture looks at what is left."""
    folder = place.hand_in("#include <unistd.h>\nint main(void)\n{\n    for (;;)\n fork();\n}\n")
    grading = place.start("grade", "CH=02-fork", f"DIR={folder}", "PROCESSES=60", "PATIENCE=9")
    grader = grader_at_work(place)
    assert wait_until(lambda: len(below(grader)) > 20, 60)
    os.kill(grader, signal.SIGTERM)
    _, said = grading.communicate(timeout=60)
    assert f"Error {128 + signal.SIGTERM}" in said, said
