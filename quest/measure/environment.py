"""Where a run took place: everything that can change a number, and nothing that names a person.

No path, host or user name is recorded; texts of other programs go through `anonymous` first.
"""

import contextlib
import gzip
import os
import platform
import re
import resource
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

from quest.ground import cpus
from quest.ground.cpus import Placement
from quest.ground.foreign import anonymous
from quest.ground.places import PACKAGES, text_of, which
from quest.measure.counters import proc_number
from quest.measure.namespaces import OwnNetwork

CONGESTION_CONTROL = "net/ipv4/tcp_congestion_control"
SYSCTLS = (
    "net/core/somaxconn", "net/core/rmem_max", "net/core/wmem_max", "net/core/netdev_max_backlog",
    CONGESTION_CONTROL, "net/ipv4/ip_local_port_range", "net/ipv4/tcp_tw_reuse",
    "net/ipv4/tcp_max_syn_backlog", "net/ipv4/tcp_max_tw_buckets", "net/ipv4/tcp_fin_timeout",
    "net/ipv4/tcp_rmem", "net/ipv4/tcp_wmem", "net/ipv4/tcp_syncookies",
    "fs/file-max", "fs/nr_open", "fs/aio-max-nr",
    "kernel/pid_max", "kernel/threads-max", "kernel/sched_autogroup_enabled",
    "vm/max_map_count", "vm/overcommit_memory", "vm/swappiness", "vm/vfs_cache_pressure",
)  # fmt: skip
VULNERABILITIES = Path("/sys/devices/system/cpu/vulnerabilities")
LIB = Path("/lib")
LIMITS = {
    "nofile": resource.RLIMIT_NOFILE,
    "nproc": resource.RLIMIT_NPROC,
    "stack": resource.RLIMIT_STACK,
    "memlock": resource.RLIMIT_MEMLOCK,
    "sigpending": getattr(resource, "RLIMIT_SIGPENDING", resource.RLIMIT_NPROC),
}


class Pin(TypedDict):
    """The processors of each; none: not pinned."""

    measured: list[int]
    load: list[int]


class Network(TypedDict):
    """What the load goes over."""

    namespace: bool  # an own one
    congestion_control: str


class ClientEnvironment(TypedDict):
    """The same of the other host, where the load comes from one."""

    kernel: str
    machine: str
    cpu: str
    cpus: int
    cores: int
    tools: dict[str, str]  # load generator -> version


class Environment(TypedDict, total=False):
    """What is recorded of a run's machine. Of older results some members are not there."""

    kernel: str
    machine: str
    distribution: str
    cpu: str
    cpus: int | None
    allowed_cpus: list[int]
    cores: int
    pin: Pin
    hypervisor: bool
    governor: str | None
    memory_kib: int | None
    page_size: int
    hz: int | None
    clocksource: str
    thp: str
    aslr: str
    mitigations: dict[str, str]
    limits: dict[str, list[int]]  # soft and hard; -1: none
    sysctl: dict[str, str]
    network: Network | None  # None where nothing goes over one
    libc: dict[str, str]
    compiler: str
    cflags: str
    peers: dict[str, str]  # name -> version, of other programs than ours
    python: str
    commit: str
    dirty: bool | None
    load: list[float]
    steal: float | None  # share of all processor time since boot
    client: ClientEnvironment


#: All sets of one run are of one commit and one machine, built alike.
OF_THE_RUN = (
    "commit",
    "kernel",
    "cpu",
    "cores",
    "memory_kib",
    "distribution",
    "compiler",
    "cflags",
)
#: A set that was stopped may go on only where these are still the same.
OF_THE_SET = ("kernel", "cpu", "cores", "pin", "network", "libc", "client", "peers")


def collect(
    placement: Placement,
    programs: Mapping[str, str],
    network: OwnNetwork | None = None,
    compiler_flags: str = "",
) -> Environment:
    """The environment of a run that starts now. `programs`: name -> program whose version is
    recorded; `network`: None where nothing goes over one; `compiler_flags`: "" asks make.
    """
    allowed = cpus.allowed()
    commit, dirty = git_commit()
    sysctl = {name: " ".join(text_of(f"/proc/sys/{name}").split()) for name in SYSCTLS}
    return {
        "kernel": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "distribution": distribution(),
        "cpu": cpu_model(),
        "cpus": os.cpu_count(),
        "allowed_cpus": allowed,
        "cores": len(cpus.cores(allowed)),
        "pin": {"measured": sorted(placement.measured), "load": sorted(placement.load)},
        "hypervisor": "hypervisor" in text_of("/proc/cpuinfo"),
        "governor": text_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") or None,
        "memory_kib": proc_number("/proc/meminfo", "MemTotal:"),
        "page_size": resource.getpagesize(),
        "hz": _timer_hz(),
        "clocksource": text_of("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "thp": text_of("/sys/kernel/mm/transparent_hugepage/enabled"),
        "aslr": text_of("/proc/sys/kernel/randomize_va_space"),
        "mitigations": {path.name: text_of(path) for path in sorted(VULNERABILITIES.glob("*"))},
        "limits": {name: _limit(kind) for name, kind in LIMITS.items()},
        "sysctl": sysctl,
        "network": None
        if network is None
        else {"namespace": network.entered, "congestion_control": sysctl[CONGESTION_CONTROL]},
        "libc": _libc_versions(),
        "compiler": anonymous(first_line(["cc", "--version"])),
        "cflags": anonymous(compiler_flags or _flags_of_make()),
        "peers": {name: anonymous(version(programs[name])) for name in sorted(programs)},
        "python": platform.python_version(),
        "commit": commit,
        "dirty": dirty,
        "load": list(os.getloadavg()),
        "steal": steal_share(),
    }


def machine(compiler_flags: str = "") -> dict[str, object]:
    """What all sets of one run have in common; `compiler_flags` as in collect()."""
    whole: Mapping[str, object] = collect(Placement(frozenset(), frozenset()), {}, compiler_flags=compiler_flags)
    return {name: whole[name] for name in OF_THE_RUN}


def first_difference(old: Mapping[str, object], new: Mapping[str, object]) -> str:
    """The first thing by which two environments cannot belong to one set; "" if there is none."""
    return next((name for name in OF_THE_SET if old.get(name) != new.get(name)), "")


# ---- one fact each -------------------------------------------------------------------------------


def first_line(command: list[str]) -> str:
    """The first line a program prints, on whichever stream; "" if it cannot be run."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            check=False, timeout=10,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    lines = done.stdout.decode("utf-8", "replace").strip().splitlines()
    return lines[0].strip() if lines else ""


def match_in_file(pattern: str, file: str | Path, otherwise: str = "") -> str:
    """The first group of a pattern (its ^ and $ are those of lines) in a file of the system;
    `otherwise` where it does not match.
    """
    match = re.search(pattern, text_of(file), re.M)
    return match.group(1).strip() if match else otherwise


def cpu_model() -> str:
    """As the processor calls itself; else the machine's name for its kind."""
    pattern = r"^(?:model name|Model|cpu model)\s*:\s*(.+)$"
    return match_in_file(pattern, "/proc/cpuinfo", platform.processor() or platform.machine())


def distribution() -> str:
    """`Debian GNU/Linux 12 (bookworm)`; "" where it is not known."""
    return match_in_file(r'^PRETTY_NAME="?([^"\n]*)', "/etc/os-release")


def _timer_hz() -> int | None:
    """CONFIG_HZ, from the kernel's configuration where it can be read."""
    for path in (Path("/proc/config.gz"), Path(f"/boot/config-{platform.release()}")):
        with contextlib.suppress(OSError):
            data = path.read_bytes()
            text = gzip.decompress(data) if path.suffix == ".gz" else data
            if match := re.search(rb"^CONFIG_HZ=(\d+)$", text, re.M):
                return int(match.group(1))
    return None


def _flags_of_make() -> str:
    """The flags the Makefile compiles servers with; "unknown" where it does not print any."""
    flags = first_line(["make", "-s", "--no-print-directory", "cflags"])
    return flags if flags.startswith("-") else "unknown"


def _libc_versions() -> dict[str, str]:
    versions = {}
    if "CS_GNU_LIBC_VERSION" in os.confstr_names:
        versions["glibc"] = (os.confstr("CS_GNU_LIBC_VERSION") or "").removeprefix("glibc ")
    for loader in sorted(LIB.glob("ld-musl-*.so.1")):
        with contextlib.suppress(OSError, subprocess.SubprocessError):  # one of another kind of machine
            done = subprocess.run([loader], capture_output=True, check=False, timeout=10)
            match = re.search(rb"Version (\S+)", done.stderr)
            versions.setdefault("musl", match.group(1).decode("utf-8", "replace") if match else "unknown")
    if diet := first_line(["diet", "-v"]):
        versions["diet"] = diet.removeprefix("dietlibc-")
    return versions


def git_commit() -> tuple[str, bool | None]:
    """The commit of this tree, and whether files differ from it; ("unknown", None) without one."""
    commit = first_line(["git", "rev-parse", "HEAD"])
    # Of the tree, and not of a repository around it, in which the tree of an archive may have been unpacked.
    if not re.fullmatch(r"[0-9a-f]{40,64}", commit) or first_line(["git", "rev-parse", "--show-prefix"]):
        return "unknown", None
    return commit, bool(first_line(["git", "status", "--porcelain", "--untracked-files=no"]))


def _limit(kind: int) -> list[int]:
    return [-1 if value == resource.RLIM_INFINITY else value for value in resource.getrlimit(kind)]


def steal_share() -> float | None:
    """Share of all processor time since boot that the hypervisor gave to others."""
    fields = text_of("/proc/stat").partition("\n")[0].split()[1:9]
    total = sum(map(int, fields))
    return int(fields[7]) / total if len(fields) == 8 and total else None


#: The others print it for --version.
PRINT_VERSION_FOR = {**dict.fromkeys(("nginx", "lighttpd", "apache2", "h2o", "wrk"), "-v"), "go": "version"}
WITHOUT_VERSION = ("inetd", "tcpserver", "tcpsvd", "xinetd")  # that of their Debian package is told


def version(program: str) -> str:
    """What a program says when asked for its version; "" if it is not installed. One that we have compiled has that of
    its compiler, whose name it has: {build}/runtimes/go.
    """
    if program.startswith("{build}/"):
        program = Path(program).name
    path = which(program)
    if not path:
        return ""
    if program in WITHOUT_VERSION:
        show = "--showformat=${Package} ${Version}\\n"
        return first_line(["dpkg-query", "--show", show, PACKAGES.get(program, program)])
    return first_line([path, PRINT_VERSION_FOR.get(program, "--version")])


# ---- an environment in a few words ---------------------------------------------------------------


def footer(started: str, profile: str, environment: Environment) -> str:
    """One line that names a run, for the foot of a figure. `started`: as records.utc_now()."""
    cores = environment.get("cores", "?")
    parts = [
        f"run of {started[:10]}",
        short_cpu(environment.get("cpu", "unknown processor")),
        core_count(cores),
        short_kernel(environment.get("kernel", "unknown kernel")),
        profile,
    ]
    return ", ".join([*parts, *(["load from another host"] if "client" in environment else [])])


def in_words(started: str, profile: str, environment: Environment) -> dict[str, str]:
    """What `env.KEY` of book and deck prints of a run, by KEY; "" where it is not known. Arguments as of footer()."""
    known: Mapping[str, object] = environment
    return {
        "cpu": short_cpu(environment.get("cpu", "")),
        "kernel": short_kernel(environment.get("kernel", "")),
        **{key: str(known.get(key) or "") for key in ("cores", "compiler", "cflags")},
        **{key: environment.get("libc", {}).get(key, "") for key in ("glibc", "musl", "diet")},
        **{key: str(known.get(key) or "") for key in ("hz", "distribution")},
        "date": started[:10],
        "profile": profile,
    }


def core_count(number: object) -> str:
    """`1 core`, `4 cores`."""
    return f"{number} core" if number == 1 else f"{number} cores"


def short_cpu(cpu: str) -> str:
    """`Intel(R) Core(TM) i7-8550U CPU @ 1.80GHz` -> `Intel Core i7-8550U`."""
    cpu = re.sub(r"\((?:R|TM|r|tm)\)|\bCPU\b|\bProcessor\b|@.*$|\b\d+-Core\b", " ", cpu)
    return " ".join(cpu.split())


def short_kernel(kernel: str) -> str:
    """`Linux 6.18.44-fc-v669` -> `Linux 6.18`."""
    match = re.match(r"(\S+ \d+\.\d+)", kernel)
    return match.group(1) if match else kernel
