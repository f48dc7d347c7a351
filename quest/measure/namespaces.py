"""Namespaces of the measurement's own: a network for what goes over loopback, and mounts.

In its own network no other program's traffic or settings are, and the congestion control is the
same everywhere: with the host's choice the same server was measured at half the rate. Root may
always make one; a user where user namespaces are allowed. A namespace ends with the last process in
it, so nothing is left behind.
"""

import ctypes
import errno
import fcntl
import os
import socket
import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1

IPV4 = Path("/proc/sys/net/ipv4")
# A close per request leaves an address pair in TIME_WAIT; the wide port range keeps those from
# running out.
NETWORK_SETTINGS = {
    "tcp_congestion_control": "reno",
    "ip_local_port_range": "1024 65535",
}


def _unshare(flags: int) -> None:
    """unshare(2); OSError where it is refused or not known."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "unshare"):
        raise OSError(errno.ENOSYS, "this system has no namespaces")
    if libc.unshare(flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@cache
def separate_mounts() -> None:
    """Gives this process mounts of its own, once: what it mounts from now on only it sees, and what
    it starts. OSError where that is refused.
    """
    _unshare(CLONE_NEWNS)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@dataclass
class OwnNetwork:
    """The network namespace of this process: its own once it has `entered` one."""

    entered: bool = False

    def enter(self) -> None:
        """Moves this process (and all it will start) into a namespace of its own, if there can be
        one. It stays there: a second call does nothing.
        """
        if not self.entered and not why_no_network():
            _unshare_network()
            self.entered = True


def why_no_network() -> str:
    """Why there can be no network of our own; "" if there can. Tried in a child process, so nothing
    changes here.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            _unshare_network()
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
        reason = pipe.read().decode()
    _, status = os.waitpid(pid, 0)
    return reason if status == 0 else "the probe of network namespaces died"


def _unshare_network() -> None:
    """An own network whose loopback interface is up. A user needs an own user namespace too."""
    uid, gid = os.geteuid(), os.getegid()
    _unshare(CLONE_NEWNET if uid == 0 else CLONE_NEWNET | CLONE_NEWUSER)
    if uid != 0:
        # We stay who we are: a program must not take itself for root.
        own = Path("/proc/self")
        (own / "setgroups").write_text("deny", encoding="ascii")
        (own / "uid_map").write_text(f"{uid} {uid} 1", encoding="ascii")
        (own / "gid_map").write_text(f"{gid} {gid} 1", encoding="ascii")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(sock, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))
    for name, value in NETWORK_SETTINGS.items():
        (IPV4 / name).write_text(value, encoding="ascii")
