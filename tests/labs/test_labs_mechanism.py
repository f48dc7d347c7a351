"""Points mean what the task asks: a program that works in another way stays far below a pass mark,
however well it serves, and one that asks for the same in another form loses nothing.

LAB_RUNS=1 (make test-labs): the program of each other chapter in each lab, and every form. Without
it: some of each.
"""

import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

from quest.labs import lab as labs
from quest.labs import mechanism
from quest.labs.lab import TREE
from tests.conformance import tracing
from tests.conformance.matrix import EPOLL, POLL, SELECT, SIGNALS
from tests.conformance.tracing import Call
from tests.conformance.wire import ContractBroken
from tests.labs.grading import SOON, Place, solution

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(bool(tracing.unavailable()), reason=str(tracing.unavailable())),
]
RUNS = int(os.environ.get("LAB_RUNS", "0"))
PASS_MARK = 8
SERVERS = sorted({p.parent.name for p in TREE.glob("code/*/Makefile")} - {"00-client"})
JUDGED = [slug for slug in labs.slugs() if slug in SERVERS]

# ---- another chapter's program


#: Of two programs the libraries are in no other lab.
ALONE = ("13-uring", "14-owfat")
DEFINED = re.compile(r"^(\w[\w.]*):|^\t\.(?:local|comm)\t(\w[\w.]*)", re.M)
INSTRUCTION = re.compile(r"\t[a-z]\w*")
WORD = re.compile(r"[\w.]+")


def assembly(place: Place, slug: str) -> str:
    """Another chapter's program, whose names are those of nothing else."""
    one = TREE / place.make("amalgamate", f"CH={slug}").stdout.strip()
    flags = ["-std=c11", "-O1", "-S", "-D_GNU_SOURCE", "-fno-asynchronous-unwind-tables"]
    command = ["cc", *flags, "-o", "-", str(one)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    names = {first or second for first, second in DEFINED.findall(text)}

    def renamed(match: re.Match[str]) -> str:
        word = match[0]
        if word.startswith(".L"):
            return f".Lother_{word[2:]}"
        return f"other_{word}" if word in names else word

    lines = []
    for line in text.splitlines():
        if line.startswith(("\t.string", "\t.ascii")):
            lines.append(line)
        elif not line.startswith(("\t.globl", "\t.file", "\t.ident")):
            instruction = INSTRUCTION.match(line)
            kept = instruction[0] if instruction else ""
            lines.append(kept + WORD.sub(renamed, line.removeprefix(kept)))
    return "\n".join(lines)


def disguised(lab: labs.Lab, other: str) -> dict[str, str]:
    """Our solution, all of it; but before its main() the other program takes its place."""
    lines = (line.replace("\\", "\\\\").replace('"', '\\"') for line in other.splitlines())
    literal = "\n".join(f'"{line}\\n"' for line in lines)
    texts = solution(lab)
    texts[lab.files[0]] += f"""
#include <stdlib.h>
__asm__({literal}
".text\\n");
extern int other_main(int argc, char **argv);
__attribute__((constructor)) static void become(int argc, char **argv)
{{
    exit(other_main(argc, argv));
}}
"""
    return texts


def as_it_is(lab: labs.Lab, other: str) -> dict[str, str]:
    """The other chapter's files of the names that are asked for, with the rest of our solution."""
    found = {name: TREE / "code" / other / name for name in lab.files}
    theirs = {n: path for n, path in found.items() if path.exists() and path != lab.source(n)}
    texts = {name: path.read_text(encoding="utf-8") for name, path in theirs.items()}
    return solution(lab) | texts if texts else {}


def too_much(place: Place, slug: str, others: Iterable[str], hide: bool) -> dict[str, str]:
    """Who has more than a pass mark, with the points. (What is not there is nothing to hand in.)"""
    lab, everybody = labs.load(slug), dict[str, dict[str, str]]()
    for other in others:
        if hide and other not in ALONE:
            everybody[f"{other}-hidden"] = disguised(lab, assembly(place, other))
        if texts := as_it_is(lab, other):
            everybody[other] = texts
    found = place.grade_class(slug, everybody, SOON)
    assert {row["state"] for row in found.values()} == {"graded"}, found
    return {name: row["score"] for name, row in found.items() if int(row["score"]) > PASS_MARK}


SAMPLE = {"06-select": ["09-epoll"], "08-sigio": ["09-epoll"], "09-epoll": ["06-select"]}


@pytest.mark.slow
@pytest.mark.parametrize("slug", JUDGED if RUNS else list(SAMPLE))
def test_another_chapters_program(place: Place, slug: str) -> None:
    others = [name for name in SERVERS if name != slug] if RUNS else SAMPLE[slug]
    assert too_much(place, slug, others, hide=bool(RUNS)) == {}


@pytest.mark.slow
@pytest.mark.skipif(bool(RUNS), reason="is in the whole matrix")
def test_another_program_that_is_hidden(place: Place) -> None:
    """It serves, and by another way than is asked for. Hidden is no fault: the lab's own program
    has all points like that."""
    lab = labs.load("05-pool")
    others = {name: disguised(lab, assembly(place, name)) for name in ("04-threads", "05-pool")}
    found = place.grade_class("05-pool", others, SOON)
    if found["05-pool"]["score"] != "20":  # it was too late, too
        found = place.grade_class("05-pool", others, "STUDENT=05-pool")
    assert {row["score"] for row in found.values()} == {"1", "20"}
    assert found["04-threads"]["failed"] == "mechanism many order asleep"


# ---- the same in another form


class Form(NamedTuple):
    """An edit of our solution: code before main(), and what that puts in the place of a call."""

    lab: str
    call: str
    code: str
    includes: str = ""


PSELECT = """
    struct timespec limit = {0, 0};
    if (e != NULL)
        limit = (struct timespec){e->tv_sec, e->tv_usec * 1000L};
    return pselect(a, b, c, d, e != NULL ? &limit : NULL, NULL);"""
SIGWAITINFO = "return c == NULL ? sigwaitinfo(a, b) : sigtimedwait(a, b, c);"
EPOLL_PWAIT2 = """
    struct timespec limit = {d / 1000, d % 1000 * 1000000L};
    return epoll_pwait2(a, b, c, d < 0 ? NULL : &limit, NULL);"""
SIGNATURES = {
    "select": "int other(int a, fd_set *b, fd_set *c, fd_set *d, struct timeval *e)",
    "sigtimedwait": "int other(const sigset_t *a, siginfo_t *b, const struct timespec *c)",
    "epoll_wait": "int other(int a, struct epoll_event *b, int c, int d)",
    "fork": "pid_t other(void)",
    "accept": "int other(int a, struct sockaddr *b, socklen_t *c)",
    "recv": "ssize_t other(int a, void *b, size_t c, int d)",
}
CLONE = "return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);"
ACCEPT4 = "return accept4(a, b, c, SOCK_CLOEXEC);"
READ = "(void)d;\n    return read(a, b, c);"
FORMS = (
    Form("06-select", "select", PSELECT),
    Form("08-sigio", "sigtimedwait", SIGWAITINFO),
    Form("09-epoll", "epoll_wait", "return epoll_pwait(a, b, c, d, NULL);"),
    Form("09-epoll", "epoll_wait", EPOLL_PWAIT2),
    Form("02-fork", "fork", CLONE, "signal.h sys/syscall.h"),
    Form("02-fork", "accept", ACCEPT4),
    Form("03-prefork", "fork", CLONE, "signal.h sys/syscall.h"),
    Form("03-prefork", "accept", ACCEPT4),
    Form("04-threads", "accept", ACCEPT4),
    Form("01-iterative", "recv", READ, "unistd.h"),
    Form("05b-nonblocking", "recv", READ, "unistd.h"),
)


def in_form(form: Form) -> dict[str, str]:
    """The call is used in one file; the macro stands behind the last line that includes."""
    lab = labs.load(form.lab)
    texts = solution(lab)
    name = next(name for name, text in texts.items() if f"{form.call}(" in text)
    lines = texts[name].splitlines()
    last = max(n for n, line in enumerate(lines) if line.startswith("#include"))
    more = [f"#include <{header}>" for header in ["sys/socket.h", *form.includes.split()]]
    signature = SIGNATURES[form.call]
    more += [f"static {signature}", "{", f"    {form.code}", "}", f"#define {form.call} other"]
    return texts | {name: "\n".join([*lines[: last + 1], *more, *lines[last + 1 :], ""])}


@pytest.mark.slow
@pytest.mark.parametrize("slug", sorted({f.lab for f in FORMS}) if RUNS else ["02-fork"])
def test_other_forms_are_as_good(place: Place, slug: str) -> None:
    everybody = {f"{n}-{f.call}": in_form(f) for n, f in enumerate(FORMS) if f.lab == slug}
    only = () if RUNS else ("ONLY=serves,mechanism",)
    found = place.grade_class(slug, everybody, *only)
    whole = labs.load(slug).points if RUNS else labs.load(slug).tests[0].points
    assert {(row["score"], row["failed"]) for row in found.values()} == {(str(whole), "")}, found


# ---- calls that only look like it


def test_only_bytes_to_a_client_were_sent_by_sendfile() -> None:
    """Nothing, to a pipe, or a call that failed: none of them is a file that was sent."""
    calls = seen(
        "accept4(3, NULL, NULL, SOCK_CLOEXEC) = 5",
        "sendfile(5, 7, [0] => [13], 13) = 13",
        "sendfile(5, 7, [13], 0) = 0",
        "sendfile64(9, 7, [0] => [13], 13) = 13",
        "sendfile(5, 7, [0], 13) = -1 EAGAIN (Resource temporarily unavailable)",
        "sendfile(5, 7, [0], 13) = ?",
    )
    assert mechanism.sent_to_clients(calls) == 13


# ---- calls of another processor


def seen(*lines: str) -> list[Call]:
    return tracing.parsed(f"7 {line}" for line in lines)


ACCEPTED = "accept4(3, NULL, NULL, SOCK_CLOEXEC|SOCK_NONBLOCK) = 5"
EMPTY = "poll([{fd=5, events=POLLIN}], 1, 0) = 0 (Timeout)"
EMPTY_TOO = "ppoll([{fd=5, events=POLLIN}], 1, {tv_sec=0, tv_nsec=0}, NULL, 8) = 0 (Timeout)"
OF_ARM64 = [
    (SELECT, "pselect6(6, [3 4 5], [], NULL, NULL, NULL) = 1 (in [3])"),
    (SELECT, "pselect6(6, [3 4 5], [], NULL, {tv_sec=3, tv_nsec=0}, NULL) = 0 (Timeout)"),
    (POLL, "ppoll([{fd=3, events=POLLIN}], 1, NULL, NULL, 0) = 1 ([{fd=3, revents=POLLIN}])"),
    (POLL, "ppoll([{fd=3, events=POLLIN}], 1, {tv_sec=3, tv_nsec=0}, NULL, 0) = 0 (Timeout)"),
    (EPOLL, "epoll_pwait(4, [{events=EPOLLIN, data=0}], 256, -1, NULL, 8) = 1"),
    (SIGNALS, "rt_sigtimedwait([INT IO TERM RT_1], {si_signo=RT_1}, NULL, 8) = 35 (RT_1)"),
]


@pytest.mark.parametrize(("kind", "wait"), OF_ARM64)
def test_the_waits_of_arm64(kind: frozenset[str], wait: str) -> None:
    """Which has no select, poll or epoll_wait. To look without waiting is no wait."""
    mechanism.demand_one_loop(seen(ACCEPTED, wait, EMPTY, wait, EMPTY_TOO, wait), kind, "it")
    for other in {SELECT, POLL, EPOLL, SIGNALS} - {kind}:
        with pytest.raises(ContractBroken, match="not by it"):
            mechanism.demand_one_loop(seen(ACCEPTED, wait, wait, wait), other, "it")
    with pytest.raises(ContractBroken, match="whenever"):
        mechanism.demand_one_loop(seen(ACCEPTED, wait), kind, "it")
    for started in (
        "clone(child_stack=0x7f, flags=CLONE_VM|CLONE_THREAD) = 8",
        "clone3({flags=CLONE_VM, exit_signal=SIGCHLD}, 88) = 8",
    ):
        with pytest.raises(ContractBroken, match="starts processes or threads"):
            mechanism.demand_one_loop(seen(ACCEPTED, wait, wait, wait, started), kind, "it")


def test_calls_that_a_processor_does_not_have(tmp_path: Path) -> None:
    """strace refuses a name that is none here, unless it is told that it may be none."""
    inject = "no_such_call:error=EIO"
    trace = tracing.Trace(tmp_path / "trace", "no_such_call,getpid", inject=inject)
    command = [*trace.wrapper(), "python3", "-c", "import os; os.getpid()"]
    done = subprocess.run(command, check=False, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert trace.has(lambda _: trace.count("getpid") > 0, 5.0)
