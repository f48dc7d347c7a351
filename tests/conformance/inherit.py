"""Puts a program into a state that it inherits: inherited.py has the table.

usage: inherit.py PROGRAM ARG0 ENVIRONMENT STEP ... -- ARG ...

Each STEP is a function of this file with its arguments: limit:NOFILE:6. ENVIRONMENT is all of it, a
variable a line. Python with -I and -S: a start takes a few milliseconds.
"""

import os
import resource
import signal
import sys

NEITHER = (signal.SIGKILL, signal.SIGSTOP, 32, 33)  #: nor those of glibc's threads
SIGNALS = [signum for signum in range(1, signal.NSIG) if signum not in NEITHER]
RESOURCES = {"SIGPENDING": 11}  #: of Linux, which this Python does not know


def default() -> None:
    """What Python itself has changed."""
    for signum in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(signum, signal.SIG_DFL)


def blocked() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def ignored() -> None:
    for signum in SIGNALS:
        signal.signal(signum, signal.SIG_IGN)


def alarm() -> None:
    signal.setitimer(signal.ITIMER_REAL, 1)


def pending() -> None:
    """A SIGALRM that is delivered as soon as the program unblocks it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    os.kill(os.getpid(), signal.SIGALRM)


def timers() -> None:
    """Of processor time, and longer than a start takes: a server at work would soon be killed."""
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.02, 0.001)
    signal.setitimer(signal.ITIMER_PROF, 0.02, 0.001)


def closed(*fds: str) -> None:
    for fd in fds:
        os.close(int(fd))


def limit(name: str, number: str) -> None:
    what = RESOURCES.get(name) or getattr(resource, f"RLIMIT_{name}")
    resource.setrlimit(what, (int(number), int(number)))


def soft_limit(name: str, number: str) -> None:
    what = getattr(resource, f"RLIMIT_{name}")
    resource.setrlimit(what, (int(number), resource.getrlimit(what)[1]))


def user(number: str) -> None:
    os.setgroups([])
    os.setgid(int(number))
    os.setuid(int(number))


def descriptors() -> None:
    """All from 3 to 60."""
    null = os.open("/dev/null", os.O_RDWR)
    for fd in range(3, 61):
        os.dup2(null, fd)


def folder_gone() -> None:
    here = f"/tmp/gone-{os.getpid()}"
    os.mkdir(here)
    os.chdir(here)
    os.rmdir(here)


def umask() -> None:
    os.umask(0o777)


def nonblocking(fd: str) -> None:
    os.set_blocking(int(fd), False)


def to(fd: str, path: str) -> None:
    os.dup2(os.open(path, os.O_RDWR | os.O_APPEND), int(fd))


def to_no_reader(fd: str) -> None:
    reader, writer = os.pipe()
    os.dup2(writer, int(fd))
    os.close(reader)


def main(program: str, arg0: str, environment: str, *words: str) -> None:
    end = words.index("--")
    arguments = [arg0, *words[end + 1 :]]
    pairs = (line.partition("=") for line in environment.splitlines())
    variables = {name: value for name, _, value in pairs}
    if not arg0:  # which Python refuses; and its import takes as long as all the rest
        import ctypes

        execv = ctypes.CDLL(None).execv
        argv = (ctypes.c_char_p * (len(arguments) + 1))(*map(os.fsencode, arguments))
    default()
    for word in words[:end]:
        name, *values = word.split(":")
        globals()[name](*values)
    if arg0:
        os.execve(program, arguments, variables)
    execv(os.fsencode(program), argv)


if __name__ == "__main__":
    main(*sys.argv[1:])
