"""What an experiment can need, as probes: name -> (ok, reason, remedy).

`make doctor` and the harness use the same probes, so they cannot disagree. A name without a probe
of its own is taken for a program that must be in PATH.
"""

import os
import re
import resource
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from quest.ground import cpus
from quest.ground.places import TABLE, Answer, answer, packages, program, text_of
from quest.ground.processes import ends_well
from quest.measure import cgroups, disks, limits, namespaces


def compiles(command: Sequence[str]) -> Answer:
    """Whether this compiler with these options makes a program of one line that runs. Only the
    answer that it is not installed has a remedy.
    """
    tool = program(command[0])
    if not tool.ok:
        return tool
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "probe.c"), str(Path(folder, "probe"))
        source.write_text("int main(void) { return 0; }\n", encoding="ascii")
        built = ends_well([*command, "-o", made, str(source)])
        return ends_well([made]) if built.ok else built


#: How the Makefile compiles each variant (tests/setup compares the names), and the remedy.
VARIANTS: dict[str, tuple[tuple[str, ...], str]] = {
    "glibc": (("cc",), "apt-get install gcc libc6-dev"),
    "static": (("cc", "-static"), "apt-get install libc6-dev"),
    "static-pie": (("cc", "-fPIE", "-static-pie"), "gcc 8 and glibc 2.26 or later"),
    "diet": (("diet", "cc"), "apt-get install dietlibc-dev"),
    "musl": (("musl-gcc", "-static"), "apt-get install musl-tools"),
    "asan": (("cc", "-fsanitize=address,undefined"), "the sanitizers of gcc (Debian: with gcc)"),
    "tsan": (("cc", "-fsanitize=thread"), "sysctl vm.mmap_rnd_bits=28, if that is what it says"),
}


def variant(name: str, reason: str = "") -> Answer:
    """Compiles a program of one line in this variant of VARIANTS, and runs it. `reason`: what is
    said in place of the compiler's words.
    """
    command, remedy = VARIANTS[name]
    tried = compiles(command)
    return tried if tried.ok or tried.remedy else Answer(False, reason or tried.reason, remedy)


def namespace() -> Answer:
    """A network namespace of our own."""
    remedy = "run as root, or sysctl kernel.unprivileged_userns_clone=1"
    return answer(namespaces.why_no_network(), remedy)


def two_cores() -> Answer:
    """One for the server, one for the load."""
    enough = len(cpus.cores(cpus.allowed())) >= 2
    reason = "only one physical core is allowed here: server and load share it"
    remedy = "a machine with two cores, or a wider taskset or cpuset"
    return answer("" if enough else reason, remedy)


def tracing() -> Answer:
    """strace is there and may trace a child of its own."""
    tool = program("strace")
    if not tool.ok:
        return tool
    tried = ends_well(["strace", "-f", "-q", "--seccomp-bpf", "-o", os.devnull, "true"])
    problem = f"tracing is not allowed: {tried.reason}" if not tried.ok else ""
    return answer(problem, "a container needs --cap-add=SYS_PTRACE")


def io_aio() -> Answer:
    """Perlbal without it does all its disk work in its only thread."""
    installed = ends_well(["perl", "-MIO::AIO", "-e", "1"]).ok
    return answer("" if installed else "libio-aio-perl is not installed", "make peers")


def root() -> Answer:
    """The rights of root."""
    return answer("needs root" if os.geteuid() else "", "run it as root")


MOUNT_ESCAPE = re.compile(r"\\([0-7]{3})")  # of a blank and its like in a path, as proc_pid_mountinfo(5) says


def is_mounted(folder: Path) -> bool:
    """The kernel's list is asked: looking at a mount whose program has died is an error. The list has paths without
    links, so those above the folder are followed.
    """
    wanted = os.path.join(os.path.realpath(folder.parent), folder.name)
    paths = (line.split()[4] for line in text_of("/proc/self/mountinfo").splitlines())
    return any(MOUNT_ESCAPE.sub(lambda code: chr(int(code[1], 8)), path) == wanted for path in paths)


def own_mounts() -> Answer:
    """Mounts that no other program sees.

    The mount that / is on may be shared with other namespaces, and what is mounted below it then,
    too. Only its own top can be asked to make it private, and a plain chroot has none.
    """
    tool = program("unshare")
    if not tool.ok or is_mounted(Path("/")):
        return tool
    reason = "/ is no mount point, as in a plain chroot"
    return Answer(False, reason, "mount --bind DIR DIR before chroot DIR")


def fuse() -> Answer:
    """A file system in user space. What else can be missing, mounting it tells."""
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC))
    except PermissionError:
        return Answer(False, "/dev/fuse may not be opened", "run it as root, or chmod 666 /dev/fuse")
    except OSError as error:
        remedy = "modprobe fuse; a container needs --device /dev/fuse"
        return Answer(False, f"/dev/fuse: {error.strerror}", remedy)
    return Answer(True) if os.geteuid() == 0 else program("fusermount3")


def processes() -> Answer:
    """A thousand are no more than the quarter that an experiment may take."""
    cap = limits.smallest(["processes"])
    reason = f"an experiment may have only {cap.most} processes, a quarter of {cap.why}"
    return answer("" if cap.most >= 1000 else reason, "ulimit -u, or pids.max")


def descriptors() -> Answer:
    """A hundred thousand connections in one process, and what else it has open."""
    most, wanted = resource.getrlimit(resource.RLIMIT_NOFILE)[1], 100_100
    reason = f"one process may have {most} descriptors here, and {wanted} are needed"
    remedy = "as root: sysctl fs.nr_open=1048576, ulimit -Hn 200000"
    few = most != resource.RLIM_INFINITY and most < wanted
    return answer(reason if few else "", remedy)


MANY = "many"


def consent(given: bool) -> Answer:
    """To more processes or connections than others on the machine would fail to notice."""
    reason = "so many processes or connections need your consent"
    return answer("" if given else reason, "MANY=1 make bench")


def million() -> Answer:
    """A million connections with both ends here."""
    reason = limits.shortage(1_000_000)
    problem = f"a million connections: {reason}" if reason else ""
    return answer(problem, "a larger machine, or a higher limit")


def token_bucket() -> Answer:
    """A link of some megabits, in a namespace of its own."""
    if not (tool := program("tc")).ok:
        return tool
    tried = ends_well(["unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", "htb"])
    return answer("" if tried.ok else f"no token bucket: {tried.reason}", "run it as root")


def loop_device() -> Answer:
    """A disk of its own for the files of an experiment (disks.py)."""
    mounts = own_mounts()
    return answer(disks.why_no_disk(), disks.REMEDY) if mounts.ok else mounts


def java_21() -> Answer:
    """A Java that has virtual threads. The first line that it says begins as "openjdk 21.0.5"."""
    tool = program("java")
    if not tool.ok:
        return tool
    done = subprocess.run(
        ["java", "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
    )
    found = re.search(r"\d+", done.stdout)
    old = f"java {found[0] if found else '8 or older'} has no virtual threads: 21 or newer is needed"
    remedy = "a JDK from 21 on, first in PATH (Debian 13: apt-get install openjdk-21-jdk-headless)"
    return answer("" if found and int(found[0]) >= 21 else old, remedy)


PROBES: dict[str, Callable[[], Answer]] = {
    "static": lambda: variant("static", "the static C library is not installed"),
    "static-pie": lambda: variant("static-pie", "the compiler cannot make static-pie programs"),
    "strace": tracing,
    "namespace": namespace,
    "two-cores": two_cores,
    "io-aio": io_aio,
    "root": root,
    "own-mounts": own_mounts,
    "fuse": fuse,
    "processes": processes,
    "descriptors": descriptors,
    "million": million,
    "memory-cgroup": lambda: answer(cgroups.why_unusable("memory"), cgroups.REMEDY),
    "io-throttle": lambda: answer(cgroups.why_unusable("io"), cgroups.REMEDY),
    "loop-device": loop_device,
    "token-bucket": token_bucket,
    "java-21": java_21,
}
# Build variant -> the need without which it cannot be built.
BUILD_NEEDS = {"static": "static", "static-pie": "static-pie", "diet": "diet", "musl": "musl-gcc"}


def probe(name: str, many: bool = False) -> Answer:
    """Whether a need is met here; an answer with ok = False always has a reason. `many`: whether
    MANY=1 was said, which is all that the need "many" asks for.
    """
    return consent(many) if name == MANY else _probe(name)


@cache
def _probe(name: str) -> Answer:
    """Asks once a process."""
    try:
        return PROBES[name]() if name in PROBES else program(name)
    except (OSError, subprocess.SubprocessError) as error:
        return Answer(False, f"{name}: {error}", "")


# ---- Libraries that some programs are built with, and whether their headers are here -------------
#
# Which program needs which header stands in the module.mk that builds it (`x_NEEDS :=
# liburing.h`), which package brings it, and into which folder on which system, in packages.tsv.

NEEDS = re.compile(r"^(\S+)_NEEDS *:= *(.+?) *(?:#.*)?$", re.M)


@cache
def needed_libraries(tree: Path) -> dict[str, list[str]]:
    """Program -> the headers it needs."""
    files = [*tree.glob("*/module.mk"), *tree.glob("*/*/module.mk")]
    lines = (line for path in files for line in NEEDS.findall(path.read_text(encoding="utf-8")))
    return {program: headers.split() for program, headers in lines}


@cache
def header_is_here(header: str) -> bool:
    """Whether the compiler finds this C header."""
    command = ["cc", "-E", "-x", "c", "-include", header, "/dev/null"]
    return ends_well(command).ok


def missing_library(program: str, tree: Path = Path(), table: Path = TABLE) -> Answer | None:
    """Why this program cannot be built here, or None."""
    for header in needed_libraries(tree).get(program, ()):
        item = f"header:{header}"
        package = next((p for p in packages(table) if item in p.provides.split("|")), None)
        # One system or another has it in another folder; what is not in the table is its own name.
        name, places = (package.name, package.provides) if package else (header, item)
        if not any(header_is_here(place.removeprefix("header:")) for place in places.split("|")):
            return Answer(False, f"{name} is not installed", f"apt-get install {name}")
    return None
