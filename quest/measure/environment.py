"""Where a run took place: everything that can change a number, and nothing that names a person.

No path, host or user name is recorded; texts of other programs go through `anonymous` first.
"""

import contextlib
import ctypes
import errno
import fcntl
import gzip
import os
import platform
import re
import resource
import socket
import struct
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quest.ground import cpus
from quest.ground.cpus import Placement
from quest.ground.foreign import anonymous
from quest.ground.places import PACKAGES, text_of, which

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
LIMITS = {
    "nofile": resource.RLIMIT_NOFILE,
    "nproc": resource.RLIMIT_NPROC,
    "stack": resource.RLIMIT_STACK,
    "memlock": resource.RLIMIT_MEMLOCK,
    "sigpending": getattr(resource, "RLIMIT_SIGPENDING", resource.RLIMIT_NPROC),
}


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


def told(pattern: str, file: str, otherwise: str = "") -> str:
    """What a pattern finds in a file of the system."""
    match = re.search(pattern, text_of(file), re.M)
    return match.group(1).strip() if match else otherwise


def cpu_model() -> str:
    pattern = r"^(?:model name|Model|cpu model)\s*:\s*(.+)$"
    return told(pattern, "/proc/cpuinfo", platform.processor() or platform.machine())


def _hz() -> int | None:
    """CONFIG_HZ, from the kernel's configuration where it can be read."""
    for path in (Path("/proc/config.gz"), Path(f"/boot/config-{platform.release()}")):
        with contextlib.suppress(OSError):
            data = path.read_bytes()
            text = gzip.decompress(data) if path.suffix == ".gz" else data
            if match := re.search(rb"^CONFIG_HZ=(\d+)$", text, re.M):
                return int(match.group(1))
    return None


def _asked_of_make() -> str:
    """The flags the Makefile compiles servers with; "unknown" where it does not print any."""
    flags = first_line(["make", "-s", "--no-print-directory", "cflags"])
    return flags if flags.startswith("-") else "unknown"


def _libc() -> dict[str, str]:
    versions = {}
    if "CS_GNU_LIBC_VERSION" in os.confstr_names:
        versions["glibc"] = (os.confstr("CS_GNU_LIBC_VERSION") or "").removeprefix("glibc ")
    for loader in sorted(Path("/lib").glob("ld-musl-*.so.1"))[:1]:
        done = subprocess.run([loader], capture_output=True, check=False, timeout=10)
        match = re.search(rb"Version (\S+)", done.stderr)
        versions["musl"] = match.group(1).decode() if match else "unknown"
    if diet := first_line(["diet", "-v"]):
        versions["diet"] = diet.removeprefix("dietlibc-")
    return versions


def commit_here() -> tuple[str, bool | None]:
    commit = first_line(["git", "rev-parse", "HEAD"])
    if not re.fullmatch(r"[0-9a-f]{40,64}", commit):
        return "unknown", None
    return commit, bool(first_line(["git", "status", "--porcelain", "--untracked-files=no"]))


def _limit(kind: int) -> list[int]:
    return [-1 if value == resource.RLIM_INFINITY else value for value in resource.getrlimit(kind)]


def steal_share() -> float | None:
    """Share of all processor time since boot that the hypervisor gave to others."""
    fields = text_of("/proc/stat").partition("\n")[0].split()[1:9]
    total = sum(map(int, fields))
    return int(fields[7]) / total if len(fields) == 8 and total else None


def collect(
    placement: Placement,
    peers: Mapping[str, str],
    network: "OwnNetwork | None" = None,
    compiler_flags: str = "",
) -> dict[str, Any]:
    """The environment of a run that starts now. `peers`: name -> program, whose versions are
    recorded; `network`: None where nothing goes over one; `compiler_flags`: "" asks make.
    """
    allowed = cpus.allowed()
    commit, dirty = commit_here()
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
        "memory_kib": int(told(r"^MemTotal:\s+(\d+)", "/proc/meminfo", "0")) or None,
        "page_size": resource.getpagesize(),
        "hz": _hz(),
        "clocksource": text_of("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "thp": text_of("/sys/kernel/mm/transparent_hugepage/enabled"),
        "aslr": text_of("/proc/sys/kernel/randomize_va_space"),
        "mitigations": {path.name: text_of(path) for path in sorted(VULNERABILITIES.glob("*"))},
        "limits": {name: _limit(kind) for name, kind in LIMITS.items()},
        "sysctl": sysctl,
        "network": None
        if network is None
        else {"namespace": network.entered, "congestion_control": sysctl[CONGESTION_CONTROL]},
        "libc": _libc(),
        "compiler": anonymous(first_line(["cc", "--version"])),
        "cflags": anonymous(compiler_flags or _asked_of_make()),
        "peers": {peer: anonymous(version(peers[peer])) for peer in sorted(peers)},
        "python": platform.python_version(),
        "commit": commit,
        "dirty": dirty,
        "load": list(os.getloadavg()),
        "steal": steal_share(),
    }


def distribution() -> str:
    return told(r'^PRETTY_NAME="?([^"\n]*)', "/etc/os-release")


ASKED_BY_V = ("nginx", "lighttpd", "apache2", "h2o", "wrk")
SILENT = ("inetd", "tcpserver", "tcpsvd", "xinetd")  # they do not tell: Debian's package does


def version(program: str) -> str:
    path = which(program)
    if not path:
        return ""
    if program in SILENT:
        show = "--showformat=${Package} ${Version}\\n"
        return first_line(["dpkg-query", "--show", show, PACKAGES.get(program, program)])
    return first_line([path, "-v" if program in ASKED_BY_V else "--version"])


def machine(compiler_flags: str = "") -> dict[str, Any]:
    """What all sets of one run have in common; `compiler_flags` as in collect()."""
    here = collect(Placement(frozenset(), frozenset()), {}, compiler_flags=compiler_flags)
    return {name: here[name] for name in WHOLE}


# All sets of one run are of one commit and one machine, built alike.
WHOLE = ("commit", "kernel", "cpu", "cores", "memory_kib", "distribution", "compiler", "cflags")

# A set that was stopped may go on only where these are still the same.
SAME = ("kernel", "cpu", "cores", "pin", "network", "libc", "client")


def differs(old: dict[str, Any], new: dict[str, Any]) -> str:
    """The first thing by which two environments cannot belong to one set; "" if there is none."""
    return next((name for name in SAME if old.get(name) != new.get(name)), "")


def footer(run: dict[str, Any]) -> str:
    """One line that names a run, for the foot of a figure."""
    environment = run["environment"]
    return ", ".join(
        [
            f"run of {run['started'][:10]}",
            short_cpu(environment.get("cpu", "unknown processor")),
            core_count(environment.get("cores", "?")),
            short_kernel(environment.get("kernel", "unknown kernel")),
            run["profile"],
            *(["load from another host"] if "client" in environment else []),
        ]
    )


def core_count(number: object) -> str:
    return f"{number} core" if number == 1 else f"{number} cores"


def short_cpu(cpu: str) -> str:
    """`Intel(R) Core(TM) i7-8550U CPU @ 1.80GHz` -> `Intel Core i7-8550U`."""
    cpu = re.sub(r"\((?:R|TM|r|tm)\)|\bCPU\b|\bProcessor\b|@.*$|\b\d+-Core\b", " ", cpu)
    return " ".join(cpu.split())


def short_kernel(kernel: str) -> str:
    """`Linux 6.18.44-fc-v669` -> `Linux 6.18`."""
    match = re.match(r"(\S+ \d+\.\d+)", kernel)
    return match.group(1) if match else kernel


# ---- A network namespace of our own, with `reno`, for what goes over loopback --------------------
#
# Nobody else's traffic or settings are in it, and the congestion control is the same everywhere:
# with the host's choice the same server was measured at half the rate. Root may always make one;
# a user where user namespaces are allowed. It ends with the last process in it, so nothing is
# left behind.

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1

IPV4 = Path("/proc/sys/net/ipv4")
# A close per request leaves an address pair in TIME_WAIT; the wide port range keeps those from
# running out.
SETTINGS = {
    "tcp_congestion_control": "reno",
    "ip_local_port_range": "1024 65535",
}


def why_no_namespace() -> str:
    """Why no namespace can be had; "" if it can. Tried in a child, so nothing changes here."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            _unshare()
            _configure()
            with socket.create_server(("127.0.0.1", 0)) as server:
                server.settimeout(5)
                socket.create_connection(server.getsockname(), timeout=5).close()
            status = 0
        except OSError as error:
            os.write(writer, f"no network namespace: {error.strerror or error}".encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read().decode()
    _, status = os.waitpid(pid, 0)
    return answer if status == 0 else "the probe of network namespaces died"


@dataclass
class OwnNetwork:
    """The network namespace of this process: its own once it has `entered` one."""

    entered: bool = False

    def enter(self) -> None:
        """Moves this process (and all it will start) into a namespace of its own, if there can be
        one. It stays there: a second call does nothing.
        """
        if not self.entered and not why_no_namespace():
            _unshare()
            _configure()
            self.entered = True


def _unshare() -> None:
    uid, gid = os.geteuid(), os.getegid()
    flags = CLONE_NEWNET if uid == 0 else CLONE_NEWNET | CLONE_NEWUSER
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "unshare"):
        raise OSError(errno.ENOSYS, "this system has no namespaces")
    if libc.unshare(flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    if flags & CLONE_NEWUSER:
        # We stay who we are: a program must not take itself for root.
        own = Path("/proc/self")
        (own / "setgroups").write_text("deny", encoding="ascii")
        (own / "uid_map").write_text(f"{uid} {uid} 1", encoding="ascii")
        (own / "gid_map").write_text(f"{gid} {gid} 1", encoding="ascii")


def _configure() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(sock, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))
    for name, value in SETTINGS.items():
        (IPV4 / name).write_text(value, encoding="ascii")
