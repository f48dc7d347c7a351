"""A network namespace of our own, with `reno`, for what goes over loopback.

Nobody else's traffic or settings are in it, and the congestion control is the same everywhere:
with the host's choice the same server was measured at half the rate. Root may always make one; a
user where user namespaces are allowed. It ends with the last process in it, so nothing is left
behind.
"""

import ctypes
import errno
import fcntl
import os
import socket
import struct
from pathlib import Path

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
SIOCGIFFLAGS = 0x8913
SIOCSIFFLAGS = 0x8914
IFF_UP = 1

IPV4 = Path("/proc/sys/net/ipv4")
# A close per request leaves an address pair in TIME_WAIT; the wide port range keeps those from
# running out.
SETTINGS = {
    "tcp_congestion_control": "reno",
    "ip_local_port_range": "1024 65535",
}

_entered = False


def entered() -> bool:
    return _entered


def why_not() -> str:
    """Why no namespace can be had; "" if it can. Tried in a child, so nothing changes here."""
    if _entered:
        return ""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.write(writer, _try().encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read().decode()
    _, status = os.waitpid(pid, 0)
    return answer if status == 0 else "the probe of network namespaces died"


def _try() -> str:
    try:
        _unshare()
        _configure()
        _loopback_works()
    except OSError as error:
        return f"no network namespace: {error.strerror or error}"
    return ""


def enter() -> str:
    """Moves this process (and all it will start) into a namespace of its own; the reason if not."""
    global _entered
    if _entered:
        return ""
    reason = why_not()
    if not reason:
        _unshare()
        _configure()
        _entered = True
    return reason


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


def _loopback_works() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(5)
        socket.create_connection(server.getsockname(), timeout=5).close()
