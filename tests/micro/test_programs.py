"""What all micro-benchmarks have in common, in tables over all of them: what they print, what they
refuse, that a failure is an error and no sample, that no process stays.
"""

import os
import re
import resource
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conformance import proc
from tests.conformance.process import wait_until
from tests.micro.micro_support import (
    PATIENCE_S,
    SANITIZED,
    UNSUPPORTED,
    Micro,
    await_end_of_session,
    children_ignored,
    limited,
    one_line,
    table,
)


class Program(NamedTuple):
    """A run, the columns that it prints, what stands in the first or how many rows there are, and
    what is refused beside what all refuse. "@" is a path where nothing is.
    """

    arguments: str
    columns: str
    first: Sequence[int] | int
    refused: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()  #: variants in which it says that it is not for them
    may_lack: bool = False  #: as with these, for want of rights or something of the kernel


def each(count: int, *values: int) -> list[int]:
    return [value for value in values for _ in range(count)]


RUSAGE = (
    "maxrss_kib ixrss idrss isrss minflt majflt nswap inblock oublock msgsnd msgrcv nsignals nvcsw"
    " nivcsw utime_us stime_us"
)
OVERFLOW = (
    "events room signals in_order lost overflow poll_finds after_default after_ignore closed"
    " in_band in_revents hup_band hup_revents"
)
FACTS = (
    "fd_setsize kernel_beyond checked_aborts plain_overruns select_ebadf poll_ebadf poll_nval"
    " poll_skips constants_equal level_again edge_again cookie_kept delete_null"
)
NUMBERS = ("-1", "x", "100000000")
NO_LIBC = ("diet", "musl")
PROGRAMS = {
    "accept-share": Program(
        "-n 3 -c 6 -u 0 accept", "process connections share", range(3), ("", "-c x epoll", "epoll accept"), ("diet",),
    ),
    "aio-threads": Program(
        "-n 8 pipes @", "reads all_ns threads per_read overtakes named", [8],
        ("pipes", "pip x", "-t 257 pool x"), ("diet",),
    ),
    "as-lmbench": Program(
        "-n 3 connect", "op_ns", 3, ("", "fork /bin/true", "exec", "mmap", "shell", "-d 0 select"),
    ),
    "clock-cost": Program("-n 20", "cost_ns step_ns", 20),
    "cow-pages": Program(
        "-n 50 -p 10 alone", "pages faults write_ns faults_per_page page_ns dirty_kib wait_share",
        each(50, *range(11)), ("", "nobody", "child fresh", "-p", "-m -1"),
    ),
    "directory-size": Program(
        "-n 30 -s 50 here @", "sample again_ns miss_ns first_ns cold_ns make_ns list_ns", range(50),
        ("here x y", "-n 1000001 here x"), NO_LIBC,
    ),
    "epoll-facts": Program(
        "-n 100 edge", "closed_event delete_ebadf reused_event undup_event out_of_order", [1],
        ("", "level", "edge oneshot", "-n -1 edge"), ("diet",),
    ),
    "event-rate": Program(
        "poll", "waits events_per_wait messages_per_wait lost rate", 1, ("", "sigio-handler", "sigio-signalfd"),
    ),
    "event-wait": Program("-n 20 poll", "wait_ns event_ns calls send_ns read_ns", 20),
    "fairness": Program(
        "-n 5", "spinner cpu_ns involuntary share", range(5), tuple(f"-t {n}" for n in NUMBERS),
    ),
    "fault-around": Program(
        "-n 3 -p 64 whole @", "pages faults faults_per_page look_ns", each(3, 64),
        ("", "whole", "half @", "-r 2 whole @", "-a 2 whole @"),
    ),
    "fd-alloc": Program(
        "-n 300 dup", "open fd call_ns refill_ns grow_ns", range(300),
        ("", "dup dup", "dup2", "-k 0 dup", "-l 10 dupfd", "-l 1 dup", "-l 3 dup", "-n 128 -m 128 dupfd", "-t 65 dup"),
    ),
    "first-read": Program(
        "-n 20 together", "asked got reply", 20, ("", "both", "together apart", "-p -1 apart"),
    ),
    "fork-latency": Program(
        "-n 20", "live fork_ns", range(20), tuple(f"-n {n}" for n in ("-5", "12x", "9" * 30)),
    ),
    "fork-mappings": Program(
        "-n 2 -m 55 untouched", "mappings fork_ns total_ns error",
        each(2, 0, 5, 11, 16, 22, 27, 33, 38, 44, 49, 55), ("", "large", "touched huge", "small"),
    ),
    "fork-memory": Program(
        "-n 2 -r 63 small", "mib fork_ns total_ns error", each(2, 0, 2, 4, 8, 16, 32),
        ("", "large", "small huge", "touched"),
    ),
    "fork-reap": Program("-n 20", "remaining reap_ns", range(19, -1, -1)),
    "getrusage": Program("-n 1", RUSAGE, 1),
    "in-flight": Program("-n 5 read", "sent changed", 5, ("", "write", "-p 0 read")),
    "kernel-aio": Program(
        "-n 5 -q 7 -m 64 posix here @",
        "batch submit_ns done_ns read_ns counted cancelled threads", range(6),
        ("direct x", "direct ntfs x", "-q 65 -m 64 direct here x"), NO_LIBC, True,
    ),
    "lazy-binding": Program("-n 20", "live fork_ns dirty_kib", range(20)),
    "malloc-dirty": Program(
        "-n 5 -m 2 fresh", "mallocs faults dirty_kib asked_kib", each(5, 0, 1, 2),
        ("", "nobody", "child fresh", "fresh child", "-p", "-m -1"),
    ),
    "mmap-files": Program(
        "-n 150 -k 7 here @",
        "file open_ns mmap_ns touch_ns again_open_ns again_mmap_ns again_touch_ns",
        range(0, 150, 7), ("here", "ntfs x", "-c 2 here x"), NO_LIBC,
    ),
    "mmap-pages": Program(
        "-n 100 -k 11 @", "mapped mmap_ns touch_ns munmap_ns read_ns", range(0, 100, 11),
        ("-n 5", "-n 100001 x", "x y", "-k 0 x"),
    ),
    "nagle": Program(
        "-n 3 one", "round round_ns segments", range(3), ("", "three", "-d 2 one", "-q x one"), NO_LIBC,
    ),
    "port-bind": Program(
        "-n 40 ipv4", "in_use port bind_ns connect_ns total_ns error", range(40),
        ("", "ipv4 ipv6", "ipv5", "-d 201 late"), ("diet",), True,
    ),
    "prefork-herd": Program(
        "-n 2 -c 2 accept", "processes wakeups connect_ns", [2],
        ("", "-c x poll", "poll epoll"), ("diet",),
    ),
    "readiness-facts": Program("", FACTS, [1024], ("x",)),
    "resolver": Program(
        "-n 3 -d 50", "descriptors socket answered ask_ns", each(3, 50), ("x", "-d -1"), ("musl",),
    ),
    "resume-cost": Program("-n 20 -c 3", "resume_ns", 20, tuple(f"-c {n}" for n in NUMBERS)),
    "resume-cost-ucontext": Program("-n 20 -c 3", "resume_ns", 20, lacking=NO_LIBC),
    "run-queue": Program(
        "-n 3 -p 5 next", "turn_ns", 3,
        ("", "last", "next again", *(f"-p {n} next" for n in NUMBERS)),
    ),
    "sched-switch": Program(
        "-n 5 -r 6 -a 5 -b 2", "handover_ns pipe_ns in_use", 5,
        tuple(f"{option} {n}" for option in ("-r", "-a", "-b") for n in NUMBERS),
    ),
    "sigio-overflow": Program("-n 30 -q 5", OVERFLOW, [30], ("-n 10 -q 11",)),
    "spawn": Program(
        "-n 3 -r 130 fork", "mib return_ns total_ns error", each(3, 0, 64, 128),
        ("", "spoon", "fork /bin/true /bin/true", "posix_spawn", "-r 99999999 fork", "-r -1"),
    ),
    "stat-cost": Program(
        "-n 20 -v 10 open here warm @", "visit call_ns stat_ns open_ns read_ns close_ns", range(10),
        ("stat here x", "look here warm x", "stat here lukewarm x", "stat here cold x",
         "-n 10 -v 11 stat here warm x", "-d 0 stat here warm x"),
        NO_LIBC,
    ),
    "thread-create": Program(
        "-n 30", "live create_ns", range(30), ("-s -1", "-s x", "-s 1048577"),
    ),
    "ticks": Program(
        "-n 1 -t 50",
        "busy_ticks idle_ticks blocks busy_gives busy_stops stops_beside processes runnable", 1,
        ("-t 0", "-t 10001"), (), True,
    ),
    "timeout-accuracy": Program(
        "-n 3 select", "late_ns left_ns", 3, ("", "-t 0 select", "select poll"),
    ),
    "wake-latency": Program("-n 20 -b 2", "wake_ns", 20, tuple(f"-b {n}" for n in NUMBERS)),
    "write-parts": Program(
        "-n 20 two pipe", "write_ns", 20,
        ("", "two", "three pipe", "two tcp", "-p 8001 two pipe"),
    ),
    "zerocopy": Program(
        "-n 5 -s 2000", "sends completed copied copied_share send_ns", 1, ("-s 0", "-s 1048577"), NO_LIBC, True,
    ),
}  # fmt: skip
# Those that are about somebody else's files or server are run in tests of their own.
DRIVEN = {
    "disk-read": ("", "x", "x upwards", "-j 0 x random", "-n 0 x random"),
    "hold-connections": ("", "-n 0 /", "-p 65536 /", "/ /"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_prints_a_header_and_one_row_a_sample(micro: Micro, name: str) -> None:
    program = PROGRAMS[name]
    command = f"{name} {program.arguments}"
    status, out, err = micro.run(command)
    if micro.variant in program.lacking or (program.may_lack and status == UNSUPPORTED):
        assert status == UNSUPPORTED
        assert one_line(name, out, err)
        return
    assert (status, err) == (0, "")
    rows = table(out)
    assert list(rows[0]) == program.columns.split()
    if isinstance(program.first, int):
        assert len(rows) == program.first
    else:
        assert [next(iter(row.values())) for row in rows] == [*program.first]
    for row in rows:
        assert all(n > 0 for name, n in row.items() if name.endswith("_ns") and n != "-")
    assert not micro.at.exists()
    with open("/dev/full", "w") as full:
        lost = micro.start(command, stdout=full)
        _, err = lost.communicate(timeout=PATIENCE_S)
    assert (lost.returncode, err) == (1, f"{name}: write to stdout: No space left on device\n")


@pytest.mark.parametrize("name", [*PROGRAMS, *DRIVEN])
def test_help_and_what_is_refused(micro: Micro, name: str) -> None:
    if name in ("aio-threads", "disk-read", "kernel-aio") and not (micro.folder / name).exists():
        pytest.skip("not built in this variant")
    program = PROGRAMS.get(name) or Program("x y", "", 0, DRIVEN[name])
    here = micro.variant not in program.lacking
    if here:
        status, out, err = micro.run(f"{name} -h")
        assert (status, err, out.count("\n")) == (0, "", 1)
        assert out.startswith(f"usage: {name}")
    usual = program.arguments
    refused = [f"-n 0 {usual}", f"-x {usual}", f"{usual} 5 6", "-n", *program.refused]
    for arguments in refused:
        status, out, err = micro.run(f"{name} {arguments}")
        if not here and status == UNSUPPORTED:
            continue
        assert (status, out, err.count("\n")) == (2, "", 1), arguments
        assert re.match(f"(usage: )?{name}\\b", err), arguments


def test_a_number_has_no_blanks(micro: Micro) -> None:
    """Nor is it nothing: strtoul() would take both."""
    for number in ("", " 5"):
        command = [str(micro.folder / "clock-cost"), "-n", number]
        assert subprocess.run(command, capture_output=True, check=False).returncode == 2


def test_an_unknown_way_is_not_here_or_bad_usage(micro: Micro) -> None:
    for command in ("event-rate telepathy", "event-wait telepathy", "sched-switch -v 7"):
        assert micro.complaint(command, status=UNSUPPORTED)
    for command in ("prefork-herd select", "timeout-accuracy sleep", "accept-share select"):
        status, out, err = micro.run(command)
        expected = UNSUPPORTED if micro.variant == "diet" else 2
        assert (status, out, err.count("\n")) == (expected, "", 1), command


# ---- what the system does not give

SPACE, OPEN, QUEUED = resource.RLIMIT_AS, resource.RLIMIT_NOFILE, resource.RLIMIT_SIGPENDING
#: command, what is limited and to what, the least and the most samples, the line
SCARCE = [
    ("thread-create -n 40 -s 16384", SPACE, 128 << 20, 1, 9, "pthread_create after MADE threads: "),
    ("spawn -n 1 -r 2048 fork", SPACE, 1 << 30, 0, 0, "mmap of 2050 MiB: "),
    ("mmap-pages -n 100000 @", SPACE, 64 << 20, 101, 16383, "mmap: .* after MADE mappings$"),
    ("fd-alloc -n 100 socket", OPEN, 64, 60, 60, "socket: .* after 60 descriptors$"),
    ("fd-alloc -n 100 dup", OPEN, 64, 60, 60, "dup: .* after 60 descriptors$"),
    ("event-wait -i 50 poll", OPEN, 30, 0, 0, "socket"),
    ("event-wait -a 50 sigio", QUEUED, 10, 0, 0, "the queue of signals is full"),
    ("event-wait -a 50 sigio-handler", QUEUED, 10, 0, 0, "the queue of signals is full"),
    ("event-wait -a 50 sigio-signalfd", QUEUED, 10, 0, 0, "the queue of signals is full"),
    ("prefork-herd -n 4 accept", OPEN, 7, 0, 0, ""),
]


@pytest.mark.parametrize(("command", "what", "limit", "least", "most", "says"), SCARCE)
def test_what_there_is_too_little_of_is_an_error_and_no_sample(
    micro: Micro, command: str, what: int, limit: int, least: int, most: int,
    says: str,
) -> None:  # fmt: skip
    if micro.variant in SANITIZED or micro.variant in PROGRAMS[command.split()[0]].lacking:
        pytest.skip("not here, or a sanitizer needs memory and descriptors of its own")
    status, out, err = micro.run(command, limited(what, limit))
    made = len(table(out))
    assert status == 1
    assert least <= made <= most
    assert re.match(says.replace("MADE", str(made)), one_line(command, "", err))


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("directory-size ext4 @", "root is needed for ext4 of our own"),
        ("run-queue again", "we may not go before others: "),
    ],
)
def test_a_user_without_rights_is_told_what_it_takes(micro: Micro, command: str, says: str) -> None:
    micro.skip_in(*PROGRAMS[command.split()[0]].lacking)
    if not micro.can_be_nobody:
        pytest.skip("only root can become somebody else")
    status, out, err = micro.run_as_nobody(command)
    assert status == UNSUPPORTED
    assert one_line(command, out, err).startswith(says)


def test_pages_that_may_not_be_locked_are_an_error(micro: Micro) -> None:
    """MSG_ZEROCOPY counts them for the user, root's alone are free."""
    micro.skip_in("diet", "musl", *SANITIZED)
    if os.geteuid() == 0 and not micro.can_be_nobody:
        pytest.skip("root may lock as many as there are")
    status, out, err = micro.run_as_nobody("zerocopy -s 65536", limited(resource.RLIMIT_MEMLOCK, 4096))
    if status == UNSUPPORTED:
        pytest.skip(err.strip())
    assert status == 1
    assert one_line("zerocopy", out, err).startswith("send MSG_ZEROCOPY (ulimit -l")


def test_too_many_mappings_is_an_error_and_no_sample(micro: Micro) -> None:
    most = int(Path("/proc/sys/vm/max_map_count").read_text())
    if micro.variant in SANITIZED or most >= 1_000_000:
        pytest.skip(f"vm.max_map_count is {most}, and a sanitizer has mappings of its own")
    said = micro.complaint("fork-mappings -n 1 -m 1000000 untouched")
    assert said.startswith("munmap after ")


AFTER = "after"  #: so many children were made, and are samples
NONE = "none"  #: no sample
ROWS = "rows"  #: samples with an error in place of their time
#: command, room for processes, what becomes of it
CROWDED = [
    ("fork-latency -n 40", 20, AFTER),
    ("fork-reap -n 40", 20, AFTER),
    ("lazy-binding -n 40", 20, AFTER),
    ("sched-switch -a 40", 20, NONE),
    ("sched-switch -b 40", 20, NONE),
    ("sched-switch -r 15 -a 15", 20, NONE),
    ("run-queue -p 40 next", 20, NONE),
    ("wake-latency -b 40", 20, NONE),
    ("fairness -n 40", 20, NONE),
    ("cow-pages -n 2 child", 1, NONE),
    ("malloc-dirty -n 2 fresh", 1, NONE),
    ("spawn -n 2 fork", 1, ROWS),
    ("spawn -n 2 vfork", 1, ROWS),
    ("spawn -n 2 posix_spawn /bin/true", 1, ROWS),
    ("fork-memory -n 2 -r 2 small", 1, ROWS),
    ("fork-mappings -n 2 -m 10 touched", 1, ROWS),
]


@pytest.mark.parametrize(("command", "room", "what"), CROWDED)
def test_a_fork_that_fails_is_an_error_and_no_sample(
    micro: Micro, command: str, room: int, what: str
) -> None:
    if micro.variant == "diet" and "posix_spawn" in command:
        pytest.skip("dietlibc has no posix_spawn()")
    status, out, err = micro.run_with_room(room, command)
    rows = table(out)
    if what == ROWS:
        assert (status, err) == (0, "")
        assert {(row["total_ns"], row["error"]) for row in rows} == {(0, "EAGAIN")}
        return
    said = "fork: " + (
        "Try again" if micro.variant == "diet" else "Resource temporarily unavailable"
    )
    made = 0
    if what == AFTER:
        made = room - 1 if micro.can_be_nobody else 0
        said += f" after {made} children"
    assert (status, one_line(command, "", err)) == (1, said)
    # What fork-reap measures comes after all of them.
    assert len(rows) == (0 if command.startswith("fork-reap") else made)


# ---- nobody stays

FORKING = ["fork-latency", "fork-reap", "lazy-binding"]
#: command, with how many processes it is stopped
FAMILIES = [
    *((f"{name} -n 2000", 6) for name in FORKING),
    ("sched-switch -n 100000 -r 6 -a 5 -b 2", 1 + 5 + 7 + 2),
    ("run-queue -n 100000 -p 5 next", 1 + 5),
    ("wake-latency -n 100000 -b 2", 1 + 1 + 2),
    ("cow-pages -n 5000 -p 10 child", 2),
    ("malloc-dirty -n 5000 used", 2),
]


@pytest.mark.parametrize(("command", "size"), FAMILIES)
def test_children_end_with_their_parent(micro: Micro, command: str, size: int) -> None:
    endings = [signal.SIGKILL, signal.SIGTERM]
    name = command.split()[0]
    if name in FORKING:
        endings.append(signal.SIGALRM)
    for ending in endings:
        child = stopped_with_children(micro, command, size)
        child.send_signal(ending)
        child.send_signal(signal.SIGCONT)
        _, err = child.communicate(timeout=PATIENCE_S)
        if ending == signal.SIGALRM:
            assert (child.returncode, err) == (1, f"{name}: not finished after 300 s\n")
        else:
            assert child.returncode == -ending
        await_end_of_session(child.pid)


def test_those_who_compete_end_with_their_parent(micro: Micro) -> None:
    """Killed when they compete for a second each, which are more than this test waits."""
    child = micro.start("fairness -n 70 -t 1000", stdout=subprocess.DEVNULL)

    def competes() -> bool:
        used = [proc.stat_fields(pid)[proc.UTIME :][:1] for pid in proc.session(child.pid) if pid != child.pid]
        return any(int(ticks) > 2 for fields in used for ticks in fields)

    assert wait_until(competes, PATIENCE_S)
    child.kill()
    child.communicate(timeout=PATIENCE_S)
    await_end_of_session(child.pid)


def stopped_with_children(micro: Micro, command: str, size: int) -> subprocess.Popen[str]:
    """Starts it until, at a stop, it has children; a fast machine may need several starts."""
    for _ in range(20):
        child = micro.start(command, stdout=subprocess.DEVNULL)
        time.sleep(0.02)
        while child.poll() is None:
            child.send_signal(signal.SIGSTOP)
            if len(proc.session(child.pid)) >= size:
                return child
            child.send_signal(signal.SIGCONT)
            time.sleep(0.01)
        child.communicate(timeout=PATIENCE_S)
    pytest.fail(f"{command} was never seen with {size} processes")


@pytest.mark.parametrize("command", [*(f"{name} -n 10" for name in FORKING), "spawn -n 10 vfork"])
def test_inherited_signal_settings_do_not_matter(micro: Micro, command: str) -> None:
    """With SIGCHLD ignored no child could be waited for; one that has SIGTERM blocked would not end by it."""

    def ignore() -> None:
        children_ignored()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGALRM})

    assert len(micro.rows(command, before=ignore)) == 10


@pytest.mark.parametrize(
    "command",
    ["nagle -n 3 one", "zerocopy -n 5 -s 2000", "stat-cost -n 20 -v 10 open ext2 warm @"],
)
def test_a_child_is_waited_for_where_none_could_be(micro: Micro, command: str) -> None:
    micro.skip_in("diet", "musl")
    assert micro.rows(command, before=children_ignored, may_lack=True)
