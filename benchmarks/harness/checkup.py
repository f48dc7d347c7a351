"""The probes only `make doctor` uses: servers tried out, compilers tried out, facts of the machine.

What an experiment needs is asked of needs.py, as the harness itself does, so they cannot disagree.
"""

import ctypes
import os
import platform
import re
import resource
import select
import struct
import subprocess
import tempfile
import time
from pathlib import Path

from harness import cpus, environment, libraries, limits, needs
from harness.context import EXIT_UNSUPPORTED
from harness.needs import Answer
from harness.programs import build_folder

PATIENCE = 10.0  # seconds for a server to listen or to end
NO_PORT = ("00-client", "02-inetd")  # nothing to listen to: they are only asked for their usage

# How the Makefile compiles each variant (tests/setup compares the names), and the remedy.
VARIANTS: dict[str, tuple[tuple[str, ...], str]] = {
    "glibc": (("cc",), "apt-get install gcc libc6-dev"),
    "static": (("cc", "-static"), "apt-get install libc6-dev"),
    "static-pie": (("cc", "-fPIE", "-static-pie"), "gcc 8 and glibc 2.26 or later"),
    "diet": (("diet", "cc"), "apt-get install dietlibc-dev"),
    "musl": (("musl-gcc", "-static"), "apt-get install musl-tools"),
    "asan": (("cc", "-fsanitize=address,undefined"), "the sanitizers of gcc (Debian: with gcc)"),
    "tsan": (("cc", "-fsanitize=thread"), "sysctl vm.mmap_rnd_bits=28, if that is what it says"),
}


def _ends_well(command: list[str]) -> Answer:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            check=False, timeout=60,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        return Answer(False, str(error))
    if done.returncode == 0:
        return Answer(True)
    said = [line for line in (done.stderr + done.stdout).splitlines() if line.strip(" =")]
    reason = said[0] if said else f"status {done.returncode}"
    return Answer(False, re.sub(r"^==\d+==", "", environment.anonymous(reason)))


def variant(name: str) -> Answer:
    """Compiles a program of one line in this variant, and runs it."""
    command, remedy = VARIANTS[name]
    tool = needs.program(command[0])
    if not tool.ok:
        return tool
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "probe.c"), Path(folder, "probe")
        source.write_text("int main(void) { return 0; }\n", encoding="ascii")
        answer = _ends_well([*command, "-o", str(program), str(source)])
        if answer.ok:
            answer = _ends_well([str(program)])
    return answer if answer.ok else Answer(False, answer.reason, remedy)


# ---- servers -------------------------------------------------------------------------------------


def server(slug: str, folder: Path | None = None) -> Answer:
    """Starts it on a free loopback port in an empty folder, and stops it once it listens."""
    program = (folder or build_folder("glibc")) / slug
    if not program.is_file():
        compiler = needs.probe("cc")
        if not compiler.ok:
            return compiler
        return libraries.missing(slug) or Answer(True, "not built yet", "make servers")
    if slug in NO_PORT:
        return _ends_well([str(program), "-h"])
    with tempfile.TemporaryDirectory() as docroot:
        command = [str(program.resolve()), "-a", "127.0.0.1", "-p", "0", docroot]
        child = subprocess.Popen(
            command, cwd=docroot, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            listening = _listens(child)
            child.terminate()
            _, said = child.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            return Answer(False, "it does not end at SIGTERM", "make test tells more")
        finally:
            child.kill()
            child.wait()
    if listening:
        return Answer(True)
    lines = environment.anonymous(said.decode(errors="replace")).splitlines()
    reason = lines[0] if lines else f"status {child.returncode}"
    remedy = "" if child.returncode == EXIT_UNSUPPORTED else "make test tells more"
    return Answer(False, reason, remedy)


def _listens(child: "subprocess.Popen[bytes]") -> bool:
    """Whether the line "... listening on ..." comes before the end of its stdout."""
    assert child.stdout
    deadline = time.monotonic() + PATIENCE
    said = b""
    while (left := deadline - time.monotonic()) > 0:
        if not select.select([child.stdout], [], [], left)[0]:
            break
        piece = os.read(child.stdout.fileno(), 4096)
        said += piece
        if b" listening on " in said or not piece:
            break
    return b" listening on " in said


# ---- the machine ---------------------------------------------------------------------------------


def facts() -> dict[str, str]:
    allowed = cpus.allowed()
    return {
        "system": f"{_distribution()}, {platform.system()} {platform.release()}",
        "processor": f"{_processor()}, {platform.machine()}, {_cores(allowed)} allowed",
        "compiler": environment.anonymous(environment.first_line(["cc", "--version"])) or "none",
        "user": "root" if os.geteuid() == 0 else "not root",
    }


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()


def _processor() -> str:
    found = re.search(r"^model name\s*:\s*(.+)$", environment.text_of("/proc/cpuinfo"), re.M)
    return environment.short_cpu(found.group(1)) if found else "processor unknown"


def _cores(allowed: list[int]) -> str:
    number = len(cpus.cores(allowed))
    return "1 core" if number == 1 else f"{number} cores"


def descriptors() -> Answer:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    found = f"{_limit(hard)} (now {_limit(soft)}; the harness raises it)"
    if hard == resource.RLIM_INFINITY or hard >= 4096:
        return Answer(True, found)
    return Answer(False, found, "ulimit -Hn 20000 (as root), or limits.conf(5)")


def _limit(value: int) -> str:
    return "unlimited" if value == resource.RLIM_INFINITY else str(value)


def process_limit() -> Answer:
    cap = limits.smallest(["processes"])
    found = f"an experiment may have {cap.most} at once (a quarter of {cap.why})"
    return Answer(cap.most >= 1000, found, "" if cap.most >= 1000 else "ulimit -u, or pids.max")


def congestion_control() -> Answer:
    """In a namespace of its own the harness sets reno; else the machine's own stays."""
    current = environment.text_of("/proc/sys/net/ipv4/tcp_congestion_control") or "unknown"
    if needs.probe("namespace").ok:
        return Answer(True, f"reno for measurements (this machine's own: {current})")
    reason = f"{current}, this machine's own: results over TCP are marked"
    return Answer(current == "reno", reason, "what the line above says, or sysctl")


def seccomp() -> Answer:
    found = re.search(r"^Seccomp:\s+(\d)", environment.text_of("/proc/self/status"), re.M)
    if not found or found.group(1) == "0":
        return Answer(True, "none")
    reason = "a filter is active (a container?): some system calls may be refused"
    return Answer(False, reason, "docker run --security-opt seccomp=unconfined")


PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
# struct perf_event_attr: PERF_TYPE_HARDWARE, its size, PERF_COUNT_HW_CPU_CYCLES; then zeros, but
# for the flags disabled, exclude_kernel and exclude_hv.
PERF_ATTRIBUTES = struct.pack("<IIQQQQQ", 0, 112, 0, 0, 0, 0, 0b1100001).ljust(112, b"\0")


def perf_counters() -> Answer:
    number = PERF_EVENT_OPEN.get(platform.machine())
    if platform.system() != "Linux" or number is None:
        return Answer(False, "not known how to ask on this system")
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.syscall(number, PERF_ATTRIBUTES, 0, -1, -1, 0)
    if descriptor >= 0:
        os.close(descriptor)
        return Answer(True, "cycles can be counted")
    reason = f"cycles cannot be counted: {os.strerror(ctypes.get_errno())}"
    return Answer(False, reason, "no experiment needs them; a virtual machine often has none")


LIMITS = {
    "descriptors": descriptors,
    "processes": process_limit,
    "two physical cores": lambda: needs.probe("two-cores"),
    "network namespace": lambda: needs.probe("namespace"),
    "congestion control": congestion_control,
    "control group, memory": lambda: needs.probe("memory-cgroup"),
    "control group, reads": lambda: needs.probe("io-throttle"),
    "loop device": lambda: needs.probe("loop-device"),
    "tracing (strace)": lambda: needs.probe("strace"),
    "seccomp": seccomp,
    "hardware counters": perf_counters,
}
