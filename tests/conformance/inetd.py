"""inetd in a page: listens, accepts, and starts a program for each connection, which is its
standard input and output.

usage: inetd.py ADDR PORT BACKLOG PROGRAM [ARG ...]

It behaves towards the tests as the other servers do: the line on stdout, SIGTERM, no child left,
exit 0 (1 if a program that was told to stop did not exit with 0). So one and the same test drives
02-inetd and the servers that listen themselves.
"""

import contextlib
import functools
import os
import select
import signal
import socket
import sys
import time

SIGNALS = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT)
CHILDREN: set[int] = set()


def wake_up_on_signals() -> socket.socket:
    """A socket that a byte, the signal's number, comes from: nothing is lost before select()."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    signal.set_wakeup_fd(theirs.detach(), warn_on_full_buffer=False)
    for signum in SIGNALS:
        signal.signal(signum, lambda *_: None)
    return ours


def accept(listener: socket.socket, command: list[str]) -> None:
    try:
        connection, _ = listener.accept()
    except OSError:  # it has gone, or there are no descriptors: the next one, in a moment
        time.sleep(0.001)
        return
    with connection:
        to_both = [(os.POSIX_SPAWN_DUP2, connection.fileno(), fd) for fd in (0, 1)]
        default = (*SIGNALS, signal.SIGPIPE, signal.SIGXFSZ)
        spawn = functools.partial(os.posix_spawn, file_actions=to_both, setsigdef=default)
        CHILDREN.add(spawn(command[0], command, os.environ))


def reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while (pid := os.waitpid(-1, os.WNOHANG)[0]) != 0:
            CHILDREN.discard(pid)


def has_handler(pid: int) -> bool:
    """True once the program catches SIGTERM, or is gone. Before that the signal would kill it."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status") as status:
        for line in status:
            if line.startswith("State:") and line.split()[1] in "ZX":
                return True
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (signal.SIGTERM - 1) & 1)
    return True


def stop_children() -> int:
    """Passes the signal on; returns the exit status."""
    deadline = time.monotonic() + 5
    for pid in CHILDREN:
        while not has_handler(pid) and time.monotonic() < deadline:
            time.sleep(0.001)
        os.kill(pid, signal.SIGTERM)
    statuses = [os.waitpid(pid, 0)[1] for pid in CHILDREN]
    return 1 if any(statuses) else 0


def main(address: str, port: str, backlog: str, command: list[str]) -> int:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.create_server((address, int(port)), family=family, backlog=int(backlog))
    listener.setblocking(False)
    wakeup = wake_up_on_signals()
    host = f"[{address}]" if ":" in address else address
    print(f"inetd: listening on http://{host}:{listener.getsockname()[1]}/", flush=True)
    while True:
        readable, _, _ = select.select([listener, wakeup], [], [])
        if wakeup in readable:
            signals = wakeup.recv(4096)
            reap()
            if signal.SIGTERM in signals or signal.SIGINT in signals:
                break
        if listener in readable:
            accept(listener, command)
    listener.close()
    return stop_children()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]))
