"""How strong are the tests? Each of many small faults is built and given to the quick suite.

    make mutants [N=170] [SEED=1] [ONLY=code/http] [RESULTS_OF=build/mutants.jsonl]
    make mutants ONLY=quest/learn       in Python, tried only if asked for (PYTHON); ONLY=quest: in all of it
    make mutants N=0 RESULTS_OF=new.jsonl BEFORE=old.jsonl        compares two runs

The faults are made in a copy of the tree with its build folder. One that does not compile, or is
the same program, is no fault. The tests are those that concern the programs the file is linked
into: of C first the unit tests, then hammer's or the conformance tests, for files that many servers
share on some of them (SHAPES); of Python first those that have the module's name, then those about its
package as `make test ONLY=` has them, then all of the folders in PYTHON. A
catch is a test that fails twice and passes without the fault, or a time-out. All runs in a
namespace of processes, for which one has to be root. A line for each goes to the results; what is
there is not done again.
"""

import argparse
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from quest.command import parts
from tests.conformance.matrix import MODELS
from tests.mutants.faults import Fault, chosen, faults

ROOT = Path(__file__).resolve().parents[2]
#: faults that no test can see, by name, each with the reason: left out of the score
EQUIVALENT: dict[str, str] = {
    # 0 is standard input, which is open: no call here returns it.
    "61ad1357adfe": "05-pool/server.c: fd <= 0",
    "6f95c95643b3": "11-sendfile/server.c: epoll_fd <= 0",
    "5c8c1535bc78": "01-iterative/server.c: fd <= 0",
    "5f0ba4e5d3de": "02-fork/server.c: fd <= 0",
    # The lesser of two that are equal is either.
    "9205d9048a40": "00-client/client.c: have >= what is left",
    "9331fdc1f2b9": "load/engine.c: one more that is due in a turn of 64",
    "4cc9b2db03d9": "15-slashdot/server.c: sockets <= workers",
    "bb1bf61dc2c3": "load/herder.c: until <= until",
    "bb94baeef65f": "load/schedule.c: due >= taken: the difference is 0, too",
    # Another way to the same, or the same a moment earlier.
    "4acc8cb344c3": "15-slashdot/file_cache.c: a HEAD not from the ready reply, which is as it",
    "7a2f86e4a888": "common/clock.c: the precise clock, which costs more",
    "de91ef81875e": "13-uring/ring.c: > RING_STEP: submitted one step before it has to be",
    "33f4a3354e3c": "12-aio/server.c: without EPOLLRDHUP: the end of a client is EPOLLIN, too",
    "b841c1d704d4": "15-slashdot/master.c: looks each second who is missing, and finds all there",
    "ce488b8741cb": "http/reply.c: > REPLY_PATH_MAX: the slash in front makes room for one more",
    "17dbb8023099": "http/reply.c: >= the largest: it is as good as too large",
    "a84e4fa83891": "load/url.c: port >= 65535 before one more digit: then it is too large anyway",
    "6404444ea73f": "06-select/clients.c: > paused_until: a millisecond later",
    "611e2c7fa19f": "06-select/clients.c: list <= STATES: who waits for a turn has no time-out",
    "f2c40d6f37e0": "06-select/clients.c: deadline <= until",
    "c3ec6f217c20": "11-sendfile/body_read.c: n < 0: to send no byte is 0, too",
    # What it looks for or guards against cannot be there.
    "9a69198a7f18": "06-select/clients.c: fd > 0: 0 is open",
    "a1dd27b3ae09": "http/reply.c: from > 0: no `to` is less than 0",
    "e7cab0f264a3": "http/reply.c: n <= 0 becomes 0",
    "62e99c0a19c5": "http/reply.c: at <= end: no digit follows a field's value",
    "29c917edcb5a": "11-sendfile/join_more.c: who has no file has no offset before its end",
    "7274121fda1a": "http/http_parse.c: at <= end: there is a comma or the end of the line",
    "05a1e51804f9": "http/http_parse.c: len >= 0: before an empty line is the LF of another",
    "bb60fa8d491f": "http/reply.c: len < room: no head fits to the byte",
    "5e646a7608c9": "load/engine.c: without SFD_CLOEXEC: hammer becomes no other program",
    "788def495d8b": "01-iterative/constant.c: nothing interrupts send(), and it takes all",
    "0cb602df2e32": "load/client.c: no EPOLLOUT: the socket has room for the longest request",
    "ac046be22896": "load/json.c: a control character: URLs with one are refused",
    "b722780c4ab3": "15-slashdot/successor.c: a pipe that may wait: nobody writes so much to it",
    # The program is about to end.
    "1cd805103e52": "02-fork/children.c: signals that stay blocked",
    "332395bc146d": "00-client/client.c: a socket that stays open",
    "fc9308c6898d": "load/herd.c: a socket pair that stays open",
    "71d8724494c0": "load/herder.c: a socket that stays open: the first failure ends the herd",
    # Needs an allocation that fails.
    "27a82ff81012": "load/crowd.c: no memory for the crowd",
    "ec1b395a8c6c": "load/herder.c: nor the kernel, to watch one descriptor",
    "9c9fc4a987c5": "load/herder.c: no memory for a process of the herd",
    "ba27c99f28b3": "07-poll/server.c: no memory for more places",
    # Only a clock tells, and no test asserts a time.
    "eaaaaf40e726": "load/clock.c: a millisecond later, where the kernel has no epoll_pwait2()",
    "63c535979e0c": "load/crowd.c: each joins a step of the ramp later",
    # Needs another process, or a second signal, that connects within microseconds.
    "96867a605eff": "load/herd.c: a signal while one waits for a process that has ended",
    "e95a27ab546c": "load/herder.c: a signal within recv(), which does not wait here",
    "f2b57c784717": "common/stop.c: sa_mask: the handler of one signal within that of another",
    "c7d57e595a19": "12-aio/appendix/helper.c: -1 for a stranger at the other end",
    # A sanitizer sees it each time, but those are not in the quick suite.
    "41172cccbae4": "05-pool/queue.c: without the lock: queue_test sees two of three such races",
}
SHAPES = ["01-iterative", "09-epoll", "15-slashdot"]
SOURCES = ["code/*/*.c", "code/12-aio/appendix/*.c", "benchmarks/load/*.c"]
#: The ledger's rules: modules of quest/, wherever they are just now.
RULES = ("rules", "claims")
OF_THE_HARNESS = ("ground", "spec", "measure", "stats", "report")
#: What is tried only where ONLY begins so, and the tests that concern it.
PYTHON = {
    **{f"quest/{part}": ["tests/harness"] for part in OF_THE_HARNESS},
    "quest/labs": ["tests/labs"],
    "quest/my": ["tests/labs/test_my.py", "tests/labs/test_race.py"],
    "quest/command": ["tests/setup", "tests/reader"],
    "quest/learn": ["tests/reader"],
    "quest/stage": ["tests/stage"],
    # as in `make test`, without what is printed
    "quest/book": ["tests/book", "--ignore=tests/book/test_pdf.py"],
}
SECONDS = 600
#: A faulty server may call kill(-1), or allocate for ever: then it is the first that the kernel
#: ends. (A limit of addresses would end every program with AddressSanitizer, faulty or not.)
CONFINED = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
CONFINED += ["choom", "--adjust=1000", "--", "nice"]
#: Has make print a line for each program: its name and its sources.
OF_ONE = "$(info $(p) $($(p)_SRC) $(or $($(p)_SRC_glibc),$($(p)_SRC_any)))"
PRINT = f"mutants-sources: ; @:$(foreach p,$(PROGRAMS),{OF_ONE})"


def programs() -> dict[str, list[str]]:
    """Source file -> the programs that link it."""
    command = ["make", "-s", "--no-print-directory", f"--eval={PRINT}", "mutants-sources"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        program, *sources = line.split()
        for source in sources:
            found.setdefault(source, []).append(program)
    return found


def suites(path: str, linked: list[str]) -> Iterator[list[str]]:
    """The arguments of pytest, one list after the other until a test fails."""
    if path.endswith(".py"):
        module = Path(path).stem
        if module in RULES:
            yield ["tests/harness", "-k", "rules or export or claim"]
            return
        folder, tests = next((folder, tests) for folder, tests in PYTHON.items() if path.startswith(f"{folder}/"))
        yield [*tests, "-k", module]
        if about := [str(file) for file in parts.about(folder.removeprefix("quest/"))]:
            yield [*about, "-m", "not long and not slow and not quiet"]
        yield tests
        return
    if units := [p for p in linked if p.endswith("_test")]:
        yield ["tests/unit", "-k", " or ".join(units)]
    if path.startswith("benchmarks/load"):
        yield ["tests/hammer"]
        return
    servers = [p for p in linked if p[:2].isdigit() and p[0] in "01"]
    if path.startswith("code/00-client") or "constant" in linked:
        yield ["tests/conformance/test_client.py"]
    if len(servers) > 4:
        servers = [s for s in servers if s in SHAPES] or servers[:4]
    else:  # 09-epoll has edges, too
        servers = [slug for slug, model in MODELS.items() if (model.program or slug) in servers]
    if servers:
        yield ["tests/conformance", f"--servers={','.join(servers)}"]


def pytest_in(
    tree: Path, *arguments: str, seconds: int = SECONDS
) -> subprocess.CompletedProcess[str]:
    command = [*CONFINED, sys.executable, "-m", "pytest", "-q", "--tb=no", *arguments]
    return subprocess.run(
        command, cwd=tree, capture_output=True, text=True, timeout=seconds, check=False
    )


def first_failure(tree: Path, arguments: list[str], jobs: int) -> str | None:
    """A test that fails here again, alone, and passes, alone, where there is no fault; "time-out";
    None if all pass.

    Raises SystemExit for a test that fails without a fault: nothing it says would count.
    """
    # All of tests/harness took twelve minutes on two processors that others used, too.
    seconds = SECONDS if "-k" in arguments else 3 * SECONDS
    for _ in range(3):
        try:
            done = pytest_in(tree, "-x", "-n", str(jobs), *arguments, seconds=seconds)
        except subprocess.TimeoutExpired:
            return "time-out"
        lines = done.stdout.splitlines()
        failed = [
            line.split(" ", 1)[1].partition(" - ")[0]
            for line in lines
            if line.startswith(("FAILED ", "ERROR "))
        ]
        if not failed:
            return None if done.returncode in (0, 5) else f"pytest ended with {done.returncode}"
        name = failed[0]
        if pytest_in(ROOT, "--collect-only", name).returncode:  # it is not shown as it is called
            name = name.partition("[")[0]
        try:
            if pytest_in(tree, name).returncode == 0:
                continue
        except subprocess.TimeoutExpired:
            pass
        if all(pytest_in(ROOT, name).returncode != 0 for _ in range(2)):
            sys.exit(f"{name} fails without any fault")
        return name
    return None


def build(tree: Path, path: str, linked: list[str]) -> bool:
    """False if it does not compile, or compiles to what it was."""
    if path.endswith(".py"):
        command = [sys.executable, "-m", "py_compile", path]
        return subprocess.run(command, cwd=tree, check=False).returncode == 0
    built = tree / "build/obj/glibc" / Path(path).with_suffix(".o")
    before = code_in(built)
    command = ["make", "-s", "-j2", *(f"build/bin/{program}" for program in linked)]
    done = subprocess.run(command, cwd=tree, capture_output=True, check=False)
    return done.returncode == 0 and code_in(built) != before


def code_in(built: Path) -> bytes:
    """Without what is for debuggers: that names the folder in which it was compiled."""
    if not built.exists():
        return b""
    bare = built.with_suffix(".bare")
    subprocess.run(["objcopy", "--strip-debug", built, bare], check=True)
    return bare.read_bytes()


def described(fault: Fault, caught: str | None) -> dict[str, object]:
    return {
        "name": fault.name, "path": fault.path, "kind": fault.kind, "line": fault.number,
        "before": fault.before.strip(), "after": fault.after.strip(), "caught": caught,
    }  # fmt: skip


def tried(tree: Path, fault: Fault, linked: list[str], jobs: int) -> dict[str, object] | None:
    """The result of one fault; None if it is none."""
    file = tree / fault.path
    text = file.read_text(encoding="utf-8")
    file.write_text(fault.applied(text), encoding="utf-8")
    try:
        if not build(tree, fault.path, linked):
            return None
        tests = (first_failure(tree, words, jobs) for words in suites(fault.path, linked))
        return described(fault, next(filter(None, tests), None))
    finally:
        file.write_text(text, encoding="utf-8")
        build(tree, fault.path, linked)


def known(path: Path) -> dict[str, dict[str, object]]:
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {row["name"]: row for row in rows}


def said(row: dict[str, object]) -> str:
    where = f"{row['name']} {row['path']}:{row['line']} {row['kind']}"
    return f"{where}: {row['before']}  ->  {row['after']}"


def report(rows: list[dict[str, object]], before: dict[str, dict[str, object]]) -> int:
    real = [row for row in rows if row.get("caught") or row["name"] not in EQUIVALENT]
    survivors = [row for row in real if not row.get("caught")]
    for row in survivors:
        print("SURVIVED", said(row))
    share = 100 * (1 - len(survivors) / len(real)) if real else 100
    caught = len(real) - len(survivors)
    print(f"{len(rows)} faults, {len(rows) - len(real)} of them equivalent")
    print(f"caught: {caught} of {len(real)}, {share:.0f} %")
    lost = [row for row in survivors if before.get(str(row["name"]), {}).get("caught")]
    for row in lost:
        print("caught before, survives now:", said(row))
    return 1 if lost else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-n", type=int, default=170, help="faults")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="paths that begin so")
    parser.add_argument("--results", type=Path, default=ROOT / "build/mutants.jsonl")
    parser.add_argument("--before", type=Path, help="another revision's results: its faults first")
    parser.add_argument("--jobs", type=int, default=4, help="of pytest")
    options = parser.parse_args()
    if importlib.util.find_spec("xdist") is None:
        sys.exit("make mutants needs pytest-xdist: else each call of pytest is an error")
    done = known(options.results)
    there = [row for row in done.values() if row["path"]]
    rows = made(options, done) if options.n else there
    return report(rows, known(options.before) if options.before else {})


def made(
    options: argparse.Namespace, done: dict[str, dict[str, object]]
) -> list[dict[str, object]]:
    """As many as are asked for: those of `done`, and others that are tried now."""
    linked = programs()
    patterns = [*SOURCES, *(f"quest/**/{name}.py" for name in RULES)]
    if options.only.startswith("quest"):
        patterns += [f"{folder}/**/*.py" for folder in PYTHON]
    found = (p for pattern in patterns for p in sorted(ROOT.glob(pattern)))
    paths = [path.relative_to(ROOT).as_posix() for path in found]
    candidates = {
        path: faults(path, (ROOT / path).read_text(encoding="utf-8"))
        for path in paths
        if path.startswith(options.only)
        if path in linked or path.endswith(".py")
    }
    if not candidates:
        sys.exit(f"ONLY={options.only}: no file there in which faults are made")
    counted: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder) / "tree"
        left_out = shutil.ignore_patterns(".git", "asan", "tsan")
        shutil.copytree(ROOT, tree, symlinks=True, ignore=left_out)
        # What another revision was tried with comes first: the two can be compared.
        before = known(options.before) if options.before else {}
        queue = chosen(candidates, sum(map(len, candidates.values())), options.seed)
        for fault in sorted(queue, key=lambda fault: not before.get(fault.name, {}).get("path")):
            if len(counted) == options.n:
                break
            row = done.get(fault.name)
            if row is None:
                if fault.name in EQUIVALENT:  # nothing catches it, after minutes for all tests
                    row = described(fault, None)
                else:
                    row = tried(tree, fault, linked.get(fault.path, []), options.jobs)
                row = row or {"name": fault.name, "path": None}
                with options.results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
                if row["path"]:
                    caught = f"caught by {row['caught']}" if row["caught"] else "SURVIVED"
                    print(caught, said(row), flush=True)
            if row["path"]:
                counted.append(row)
    return counted


if __name__ == "__main__":
    sys.exit(main())
