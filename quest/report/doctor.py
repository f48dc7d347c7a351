"""`make doctor`: what runs on this machine and what is skipped, with the reason and the remedy.

Needs the standard library only, because it has to say what is missing.
"""

import ctypes
import errno
import os
import platform
import resource
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from quest.ground import cpus, foreign, processes
from quest.ground.errors import InputError, RepetitionError, Unsupported
from quest.ground.places import Answer, answer, build_folder, packages, text_of
from quest.measure import environment, limits, needs, programs
from quest.spec import experiment_file
from quest.spec.model import Experiment

PATIENCE = 10.0  # seconds for a server to listen or to end
IO_URING_SETUP = 425  # on every processor
NO_PORT = ("00-client", "02-inetd")  # nothing to listen to: they are only asked for their usage
CODE = Path("code")
CHAPTERS = Path("chapters")
DEPS = "setup/deps.sh"
NOT_BUILT = "make variants"  # the remedy programs.missing() gives for what only has to be compiled

# ---- servers -------------------------------------------------------------------------------------


def server(slug: str) -> Answer:
    """Starts it on a free loopback port in an empty folder, and stops it once it listens."""
    program = build_folder("glibc") / slug
    if not program.is_file():
        compiler = needs.probe("cc")
        if not compiler.ok:
            return compiler
        return needs.missing_library(slug) or Answer(True, "not built yet", "make servers")
    if slug in NO_PORT:
        return processes.ends_well([str(program), "-h"])
    with tempfile.TemporaryDirectory() as docroot:
        command = [str(program.resolve()), "-a", "127.0.0.1", "-p", "0", docroot]
        try:
            with processes.running(slug, command, pipe=True, folder=Path(docroot)) as process:
                processes.listening_port(process, PATIENCE)
                processes.stop(process, patience=PATIENCE)
        except Unsupported as error:
            return Answer(False, error.reason)
        except RepetitionError as error:
            return Answer(False, str(error), "make test tells more")
    return Answer(True)


# ---- the machine ---------------------------------------------------------------------------------


def facts() -> dict[str, str]:
    system = environment.distribution() or platform.system()
    processor = environment.short_cpu(environment.cpu_model())
    cores = environment.core_count(len(cpus.cores(cpus.allowed())))
    return {
        "system": f"{system}, {platform.system()} {platform.release()}",
        "processor": f"{processor}, {platform.machine()}, {cores} allowed",
        "compiler": foreign.anonymous(environment.first_line(["cc", "--version"])) or "none",
        "user": "root" if os.geteuid() == 0 else "not root",
    }


def descriptors() -> Answer:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    words = {resource.RLIM_INFINITY: "unlimited"}
    found = f"{words.get(hard, hard)} (now {words.get(soft, soft)}; the harness raises it)"
    if hard == resource.RLIM_INFINITY or hard >= 4096:
        return Answer(True, found)
    return Answer(False, found, "ulimit -Hn 20000 (as root), or limits.conf(5)")


def process_limit() -> Answer:
    cap = limits.smallest(["processes"])
    found = f"an experiment may have {cap.most} at once (a quarter of {cap.why})"
    return Answer(cap.most >= 1000, found, "" if cap.most >= 1000 else "ulimit -u, or pids.max")


def congestion_control() -> Answer:
    """In a namespace of its own the harness sets reno; else the machine's own stays."""
    current = text_of("/proc/sys/net/ipv4/tcp_congestion_control") or "unknown"
    if needs.probe("namespace").ok:
        return Answer(True, f"reno for measurements (this machine's own: {current})")
    reason = f"{current}, this machine's own: results over TCP are marked"
    return Answer(current == "reno", reason, "what the line above says, or sysctl")


def seccomp() -> Answer:
    if environment.match_in_file(r"^Seccomp:\s+(\d)", "/proc/self/status", "0") == "0":
        return Answer(True, "none")
    reason = "a filter is active (a container?): some system calls may be refused"
    return Answer(False, reason, "docker run --security-opt seccomp=unconfined")


def io_uring() -> Answer:
    """EFAULT, for want of parameters, is the answer of a kernel that would make a ring."""
    ctypes.CDLL(None, use_errno=True).syscall(IO_URING_SETUP, 1, None)
    why = "" if (error := ctypes.get_errno()) == errno.EFAULT else os.strerror(error)
    remedy = "sysctl kernel.io_uring_disabled=0; a container: --security-opt seccomp=unconfined"
    return answer(why and f"io_uring_setup: {why}", remedy)


LIMITS: dict[str, str | Callable[[], Answer]] = {  # what answers, or a probe of needs.py
    "descriptors": descriptors,
    "processes": process_limit,
    "two physical cores": "two-cores",
    "network namespace": "namespace",
    "congestion control": congestion_control,
    "control group, memory": "memory-cgroup",
    "control group, reads": "io-throttle",
    "loop device": "loop-device",
    "tracing (strace)": "strace",
    "io_uring": io_uring,
    "museum disk (FUSE)": "fuse",
    "seccomp": seccomp,
}
# Class of packages.tsv -> what installs it; "": apt-get, package by package. Without class fetch,
# whose packages are wanted only while reveal.js or Zig is missing.
CLASSES = dict.fromkeys(("base", "build", "measure", "book", "slides", "test"), "make deps") | {
    "browser": "",
    "lint": "",
    "cross": "make cross",
    "peers": "make peers",
}


# ---- Rows: what runs or is skipped ---------------------------------------------------------------


class Row(NamedTuple):
    """A thing that runs or is skipped; the answer's words say more about what runs, too."""

    name: str
    answer: Answer
    parts: tuple["Row", ...] = ()


def experiment_row(found: Experiment) -> Row:
    """Runs if one of its variants does; those that do not are its parts. The answer has the
    parameters that this machine's limits make smaller than the quick profile asks.
    """
    answers = {v.name: answer for v in found.variants if (answer := programs.missing(found, v))}
    skipped = {name: answer for name, answer in answers.items() if answer.remedy != NOT_BUILT}
    parts = tuple(Row(name, answer) for name, answer in skipped.items())
    if len(skipped) < len(found.variants):
        notes = ["once built: make variants"] if len(skipped) < len(answers) else []
        for key, (cap, wanted) in limits.reducing(found, found.profiles["quick"]).items():
            notes.append(f"{key} at most {cap.most} instead of {wanted} ({cap.why})")
        return Row(found.id, Answer(True, "; ".join(notes)), parts)
    if len(set(skipped.values())) == 1:
        return Row(found.id, next(iter(skipped.values())))
    return Row(found.id, Answer(False, "no variant runs"), parts)


def experiments() -> tuple[list[Row], dict[str, list[Row]]]:
    """A row an experiment file, and chapter -> those of the experiments that belong to it."""
    rows: list[Row] = []
    of_chapter: dict[str, list[Row]] = {}
    for path in sorted(experiment_file.FOLDER.glob("*.toml")):
        try:
            found = experiment_file.load(path)
        except InputError as error:
            reason = str(error).removeprefix(f"{path}: ")
            rows.append(Row(path.stem, Answer(False, reason, f"mend {path}")))
        else:
            for one in found:
                rows.append(experiment_row(one))
                for slug in one.chapters:
                    of_chapter.setdefault(slug, []).append(rows[-1])
    return rows, of_chapter


def chapter_row(slug: str, measured: list[Row]) -> Row:
    """Its server, tried out; and how many of its experiments run."""
    answer = server(slug) if (CODE / slug).is_dir() else Answer(True)
    skipped = [Row(name, why) for name, why, _ in measured if not why.ok]
    if answer.ok and measured:
        count = f"{len(measured) - len(skipped)} of {len(measured)} experiments"
        answer = Answer(True, ", ".join(filter(None, (*answer[1:], count))))
    return Row(slug, answer, tuple(skipped))


def tools() -> list[Row]:
    """A row for each of packages.tsv, but for what is fetched. deps.sh is asked what is here, and
    not imitated: there is one way to find out.
    """
    if not Path(DEPS).is_file():
        raise InputError(f"{DEPS}: no such file; run from the root of the tree")
    command = ["sh", DEPS, "--status", *CLASSES]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    here = [line.removesuffix("\tok") for line in done.stdout.splitlines()]
    rows = []
    for package in packages():
        first = package.classes.partition(",")[0]
        if first not in CLASSES:
            continue
        reason = "" if package.name in here else f"not installed: {package.needed_by}"
        remedy = CLASSES[first] or f"apt-get install {package.name}"
        rows.append(Row(package.name, answer(reason, remedy)))
    return rows


# ---- printing ------------------------------------------------------------------------------------


def examine() -> dict[str, list[Row]]:
    """Section -> what is in it."""
    rows, of_chapter = experiments()
    slugs = {path.name for path in CODE.glob("[0-9][0-9]*") if path.is_dir()}
    slugs |= {path.stem for path in CHAPTERS.glob("[0-9][0-9]*.md")}
    answers = {n: needs.probe(p) if isinstance(p, str) else p() for n, p in LIMITS.items()}
    return {
        "limits": [Row(name, answer) for name, answer in answers.items()],
        "chapters and servers": [
            chapter_row(slug, of_chapter.get(slug, [])) for slug in sorted(slugs)
        ],
        "experiments": rows,
        "libc variants": [Row(name, needs.variant(name)) for name in needs.VARIANTS],
        "tools": tools(),
    }


def words(answer: Answer) -> str:
    return foreign.line((", " if answer.ok else "; ").join(filter(None, answer[1:])))


def line(answer: Answer) -> str:
    said = words(answer)
    return f"runs ({said})".removesuffix(" ()") if answer.ok else f"skipped: {said}"


def limit_line(answer: Answer) -> str:
    return words(answer) or "yes" if answer.ok else f"no: {words(answer)}"


def show_rows(rows: list[Row], shown: Callable[[Answer], str] = line) -> None:
    width = max((len(each.name) for each in rows), default=0)
    for each in rows:
        print(f"  {each.name:{width}}  {shown(each.answer)}")
        for part in each.parts:
            print(f"  {'':{width}}    {part.name} {line(part.answer)}")


def show_all() -> None:
    print("this machine")
    for name, fact in facts().items():
        print(f"  {name:9}  {fact}")
    for section, rows in examine().items():
        print(f"\n{section}")
        if section == "tools":
            print(f"  here: {', '.join(each.name for each in rows if each.answer.ok) or 'none'}")
            rows = [each for each in rows if not each.answer.ok]
        show_rows(rows, limit_line if section == "limits" else line)


SHOWN = 4  # of what does not run, in each section of the short answer


def show_short() -> None:
    """One screen: how much runs, and of what does not the first, with the remedy."""
    print(", ".join(facts().values()))
    for section, rows in examine().items():
        lacking = [each for each in rows if not each.answer.ok]
        word = {"limits": "as wanted", "tools": "here"}.get(section, "run")
        print(f"\n{section}: {len(rows) - len(lacking)} of {len(rows)} {word}")
        show_rows(lacking[:SHOWN], limit_line if section in ("limits", "tools") else line)
        if len(lacking) > SHOWN:
            print(f"  and {len(lacking) - SHOWN} more")
    print("\nmake doctor ALL=1 has a line for each")


def show(everything: bool) -> int:
    """The command. Always 0: to lack something is no error."""
    (show_all if everything else show_short)()
    return 0
