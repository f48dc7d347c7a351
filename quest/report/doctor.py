"""`make doctor`: how much runs on this machine, and of all that does not the reason and the remedy.

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
from dataclasses import dataclass, field
from pathlib import Path

from quest.ground import cpus, foreign, processes
from quest.ground.errors import InputError, RepetitionError, Unsupported
from quest.ground.places import Answer, answer, build_folder, packages, text_of
from quest.measure import chosen, environment, limits, needs, programs
from quest.spec import experiment_file
from quest.spec.model import Experiment

PATIENCE = 10.0  # seconds for a server to listen or to end
IO_URING_SETUP = 425  # on every processor
NO_PORT = ("00-client", "02-inetd")  # nothing to listen to: they are only asked for their usage
CODE = Path("code")
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
    """The machine, in a few words each."""
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
    """Whether one process may have enough for the common experiments."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    words = {resource.RLIM_INFINITY: "unlimited"}
    hard_and_soft = f"{words.get(hard, hard)} (now {words.get(soft, soft)}; the harness raises it)"
    if hard == resource.RLIM_INFINITY or hard >= 4096:
        return Answer(True, hard_and_soft)
    return Answer(False, hard_and_soft, "ulimit -Hn 20000 (as root), or limits.conf(5)")


def process_limit() -> Answer:
    """Whether an experiment may have a thousand processes."""
    cap = limits.smallest(["processes"])
    share = f"an experiment may have {cap.most} at once (a quarter of {cap.why})"
    return Answer(cap.most >= 1000, share, "" if cap.most >= 1000 else "ulimit -u, or pids.max")


def congestion_control() -> Answer:
    """In a namespace of its own the harness sets reno; else the machine's own stays."""
    current = text_of("/proc/sys/net/ipv4/tcp_congestion_control") or "unknown"
    if needs.probe("namespace").ok:
        return Answer(True, f"reno for measurements (this machine's own: {current})")
    reason = f"{current}, this machine's own: results over TCP are marked"
    return Answer(current == "reno", reason, "as for the namespace, or sysctl net.ipv4.tcp_congestion_control=reno")


def seccomp() -> Answer:
    """Whether no filter of system calls is active."""
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
# whose packages are wanted only while something that fetch.py brings is missing.
CLASSES = dict.fromkeys(("base", "build", "measure", "book", "slides", "test"), "make deps") | {
    "browser": "",
    "lint": "",
    "cross": "make cross",
    "peers": "make peers",
}


# ---- what does not run ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Section:
    """How many things of one kind there are, and of those that do not run: name -> why, and what helps."""

    title: str
    verb: str  #: what is said of those that are as they should be
    total: int
    lacking: dict[str, Answer]
    beside: dict[str, Answer] = field(default_factory=dict)  #: parts of things that run otherwise

    def lines(self) -> list[str]:
        """How many are as they should be; below it a line for each reason, with all that it is the reason of."""
        good = self.total - len(self.lacking)
        names_by_reason: dict[Answer, list[str]] = {}
        for name, why in (*self.lacking.items(), *self.beside.items()):
            names_by_reason.setdefault(why, []).append(name)
        reasons = (
            foreign.line(f"{', '.join(names)}: {'; '.join(filter(None, why[1:]))}")
            for why, names in names_by_reason.items()
        )
        return [f"{self.title}: {good} of {self.total} {self.verb}", *(f"  {line}" for line in reasons)]


def limits_here() -> Section:
    """What the machine and its administrator allow."""
    answers = {name: needs.probe(ask) if isinstance(ask, str) else ask() for name, ask in LIMITS.items()}
    return Section("limits", "as needed", len(answers), _lacking(answers))


def servers() -> Section:
    """Those of code/, each started once."""
    slugs = sorted(path.name for path in CODE.glob("[0-9][0-9]*") if path.is_dir())
    return Section("servers", "run", len(slugs), _lacking({slug: server(slug) for slug in slugs}))


def experiments() -> Section:
    """One runs if one of its variants does; those that do not are told beside it, and what this machine's limits make
    smaller than the quick profile asks.
    """
    lacking: dict[str, Answer] = {}
    beside: dict[str, Answer] = {}
    count = 0
    for path in sorted([*experiment_file.FOLDER.glob("*.toml"), *chosen.SINCE.glob("*.toml")]):
        try:
            definitions = experiment_file.load(path)
        except InputError as error:
            count += 1
            lacking[path.stem] = Answer(False, str(error).removeprefix(f"{path}: "), f"mend {path}")
            continue
        for one in definitions:
            count += 1
            whole, parts = of_experiment(one)
            lacking |= {one.id: whole} if not whole.ok else {}
            beside |= parts if whole.ok else {}
    return Section("experiments", "run", count, lacking, beside)


def of_experiment(definition: Experiment) -> tuple[Answer, dict[str, Answer]]:
    """Whether it runs here; and its variants that do not, with what has to be smaller."""
    why = {v.name: answer for v in definition.variants if (answer := programs.missing(definition, v))}
    skipped = {name: answer for name, answer in why.items() if answer.remedy != NOT_BUILT}
    if len(skipped) == len(definition.variants):
        reasons = list(dict.fromkeys(answer.reason for answer in skipped.values()))
        remedies = list(dict.fromkeys(answer.remedy for answer in skipped.values() if answer.remedy))
        return Answer(False, " and ".join(reasons), " and ".join(remedies)), {}
    parts = {f"{definition.id} {name}": answer for name, answer in skipped.items()}
    for key, (cap, wanted) in limits.reducing(definition, definition.profiles["quick"]).items():
        parts[definition.id] = Answer(False, f"{key} at most {cap.most} instead of {wanted} ({cap.why})")
    return Answer(True), parts


def variants() -> Section:
    """The ways of building, each tried with a program of one line."""
    return Section(
        "libc variants", "work", len(needs.VARIANTS), _lacking({name: needs.variant(name) for name in needs.VARIANTS})
    )


def tools() -> Section:
    """Those of packages.tsv, but for what is fetched. deps.sh is asked what is here, and not imitated: there is one way
    to find out.
    """
    if not Path(DEPS).is_file():
        raise InputError(f"{DEPS}: no such file; run from the root of the tree")
    command = ["sh", DEPS, "--status", *CLASSES]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    here = {line.removesuffix("\tok") for line in done.stdout.splitlines()}
    all_of_them = [package for package in packages() if package.classes.partition(",")[0] in CLASSES]
    lacking = {
        package.name: Answer(
            False,
            f"not installed: {package.needed_by}",
            CLASSES[package.classes.partition(",")[0]]
            or (f"DEPS=yes sh {DEPS} browser" if "@" in package.name else f"apt-get install {package.name}"),
        )
        for package in all_of_them
        if package.name not in here
    }
    return Section("tools", "installed", len(all_of_them), lacking)


def _lacking(answers: dict[str, Answer]) -> dict[str, Answer]:
    return {name: answer for name, answer in answers.items() if not answer.ok}


def doctor(_: dict[str, str]) -> int:
    """The goal. Always 0: to lack something is no error."""
    print(", ".join(facts().values()))
    for look in (limits_here, servers, experiments, variants, tools):
        print("\n".join(look().lines()), flush=True)
    return 0
