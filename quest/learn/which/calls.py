"""System calls that sleep: their numbers, and the functions of the kernel in which a thread sleeps for them."""

from collections.abc import Callable, Mapping

from quest.learn.which import seen
from quest.learn.which.seen import Wait

#: call -> its number on x86_64, and on the processors with the kernel's common table (aarch64, riscv64)
NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66),
    "pread64": (17, 67), "preadv": (295, 69), "sendfile": (40, 71), "splice": (275, 76),
    "recvfrom": (45, 207), "recvmsg": (47, 212), "sendto": (44, 206), "sendmsg": (46, 211),
    "accept": (43, 202), "accept4": (288, 242), "connect": (42, 203),
    "select": (23, None), "pselect6": (270, 72), "poll": (7, None), "ppoll": (271, 73),
    "epoll_wait": (232, None), "epoll_pwait": (281, 22), "epoll_pwait2": (441, 441),
    "io_uring_enter": (426, 426), "io_getevents": (208, 4), "io_pgetevents": (333, 292),
    "rt_sigtimedwait": (128, 137), "rt_sigsuspend": (130, 133), "pause": (34, None),
    "futex": (202, 98), "futex_waitv": (449, 449),
    "flock": (73, 32), "fcntl": (72, 25), "semop": (65, 193), "semtimedop": (220, 192),
    "nanosleep": (35, 101), "clock_nanosleep": (230, 115), "restart_syscall": (219, 128),
    "wait4": (61, 260), "waitid": (247, 95),
    "openat": (257, 56), "openat2": (437, 437), "newfstatat": (262, 79), "fsync": (74, 82),
}  # fmt: skip
COLUMNS = {"x86_64": 0, "aarch64": 1, "riscv64": 1}

KINDS = {
    "accept": seen.ACCEPT, "accept4": seen.ACCEPT,
    "select": seen.SELECT, "pselect6": seen.SELECT, "poll": seen.POLL, "ppoll": seen.POLL,
    "epoll_wait": seen.EPOLL, "epoll_pwait": seen.EPOLL, "epoll_pwait2": seen.EPOLL,
    "io_uring_enter": seen.RING,
    "rt_sigtimedwait": seen.QUEUE, "rt_sigsuspend": seen.SIGNALS, "pause": seen.SIGNALS,
    "futex": seen.LOCK, "futex_waitv": seen.LOCK,
    "flock": seen.TURN, "fcntl": seen.TURN, "semop": seen.TURN, "semtimedop": seen.TURN,
    "nanosleep": seen.SLEEP, "clock_nanosleep": seen.SLEEP,
    "wait4": seen.CHILDREN, "waitid": seen.CHILDREN,
    "openat": seen.DISK, "openat2": seen.DISK, "newfstatat": seen.DISK, "fsync": seen.DISK,
}  # fmt: skip
#: They name a descriptor first; what that is decides what is waited for.
TRANSFERS = {
    "read", "write", "readv", "writev", "pread64", "preadv", "sendfile", "splice",
    "recvfrom", "recvmsg", "sendto", "sendmsg",
}  # fmt: skip
NAMES_FD = TRANSFERS | {"accept", "accept4", "epoll_wait", "epoll_pwait", "epoll_pwait2", "io_uring_enter"}

#: How the name of the kernel's function begins -> what a thread does there, and its call where that is plain.
FUNCTIONS = (
    ("inet_csk_accept", seen.ACCEPT, "accept"),
    ("inet_csk_wait", seen.ACCEPT, "accept"),
    ("unix_accept", seen.ACCEPT, "accept"),
    ("ep_poll", seen.EPOLL, "epoll_wait"),
    ("do_epoll_wait", seen.EPOLL, "epoll_wait"),
    ("do_select", seen.SELECT, "select"),
    ("core_sys_select", seen.SELECT, "select"),
    ("do_poll", seen.POLL, "poll"),
    ("do_sys_poll", seen.POLL, "poll"),
    ("poll_schedule_timeout", seen.EITHER, "select or poll"),
    ("io_cqring_wait", seen.RING, "io_uring_enter"),
    ("futex_", seen.LOCK, "futex"),
    ("__futex_", seen.LOCK, "futex"),
    ("do_futex", seen.LOCK, "futex"),
    ("wait_woken", seen.CLIENT, "a read or write on a socket"),
    ("sk_wait_data", seen.CLIENT, "a read on a socket"),
    ("sk_stream_wait", seen.CLIENT, "a write on a socket"),
    ("tcp_", seen.CLIENT, "a read or write on a socket"),
    ("unix_stream_data_wait", seen.CLIENT, "a read on a socket"),
    ("do_sigtimedwait", seen.QUEUE, "rt_sigtimedwait"),
    ("sigsuspend", seen.SIGNALS, "rt_sigsuspend"),
    ("hrtimer_nanosleep", seen.SLEEP, "nanosleep"),
    ("do_nanosleep", seen.SLEEP, "nanosleep"),
    ("common_nsleep", seen.SLEEP, "nanosleep"),
    ("do_wait", seen.CHILDREN, "wait4"),
    ("kernel_wait", seen.CHILDREN, "wait4"),
    ("flock_", seen.TURN, "flock"),
    ("fcntl_setlk", seen.TURN, "fcntl"),
    ("do_semtimedop", seen.TURN, "semop"),
    ("__do_semtimedop", seen.TURN, "semop"),
    ("folio_wait", seen.DISK, ""),
    ("io_schedule", seen.DISK, ""),
)

Kind = Callable[[int], str]  #: descriptor -> CLIENT, DISK or OTHER


def of_syscall(text: str, machine: str, kind_of: Kind) -> Wait | None:
    """From the text of /proc/PID/task/TID/syscall, "232 0x4 ..." or "running". None where it says nothing: the
    number of a call that is not in the table, or of another kind of processor.
    """
    words = text.split()
    if not words:
        return None
    if words[0] == "running":
        return Wait(seen.RUNS)
    column, number = COLUMNS.get(machine), words[0]
    if column is None or not number.isdigit():
        return None
    name = next((call for call, numbers in NUMBERS.items() if numbers[column] == int(number)), "")
    if not name or name == "restart_syscall":  # of the latter: poll, futex or nanosleep, which it goes on with
        return None
    arguments = [int(word, 16) for word in words[1:7]]
    fd = arguments[0] if name in NAMES_FD and arguments else None
    if name in TRANSFERS and fd is not None:
        return Wait(kind_of(fd), name, fd)
    count = arguments[1] if name in ("poll", "ppoll") and len(arguments) > 1 else None
    return Wait(KINDS.get(name, seen.OTHER), name, fd, count)


def of_function(function: str, state: str) -> Wait:
    """From /proc/PID/task/TID/wchan and the state letter of its stat. It names no descriptor."""
    if state == "R":
        return Wait(seen.RUNS)
    for beginning, kind, call in FUNCTIONS:
        if function.startswith(beginning):
            return Wait(kind, call)
    if state == "D":
        return Wait(seen.DISK)
    return Wait(seen.HIDDEN if function in ("", "0") else seen.OTHER, function if function != "0" else "")


def numbers(machine: str) -> Mapping[str, int]:
    """The table for one kind of processor: call -> number."""
    column = COLUMNS[machine]
    return {call: number for call, both in NUMBERS.items() if (number := both[column]) is not None}
