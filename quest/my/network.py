"""A network of the checker's own whose connections take much at once: for checks that ask what a server sends first."""

import contextlib
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

SETTINGS = ("tcp_wmem", "tcp_rmem")
PACKETS = 2000  #: that may be under way before the first is acknowledged; one takes 64 KiB of the loopback
RTM_NEWROUTE, REQUEST, REPLACE, ACKNOWLEDGE = 24, 1, 0x100, 4  # rtnetlink(7)
DST, OIF, PREFSRC, METRICS, INITCWND = 1, 4, 7, 8, 11
LOCAL_TABLE, BY_KERNEL, HOST, LOCAL = 255, 2, 254, 2
LOOPBACK = socket.inet_aton("127.0.0.1")


@contextlib.contextmanager
def roomy(size: int, own: bool) -> Iterator[None]:
    """Gives the sockets of this network, if it is our own, so many bytes of room at both ends, and lets all of it be
    sent at once. Where that is not permitted nothing changes."""
    before = list[tuple[Path, str]]()
    try:
        if own:
            with contextlib.suppress(OSError):
                for setting in (Path("/proc/sys/net/ipv4", name) for name in SETTINGS):
                    before.append((setting, setting.read_text(encoding="ascii")))
                    setting.write_text(f"4096 {size} {size}", encoding="ascii")
                _first_window(PACKETS)
        yield
    finally:
        for setting, text in before:
            with contextlib.suppress(OSError):
                setting.write_text(text, encoding="ascii")
        if before:
            with contextlib.suppress(OSError):
                _first_window(0)


def _first_window(packets: int) -> None:
    """Sets what a connection to 127.0.0.1 may send before anything is acknowledged; 0 for the usual. OSError."""
    route = struct.pack("8BI", socket.AF_INET, 32, 0, 0, LOCAL_TABLE, BY_KERNEL, HOST, LOCAL, 0)
    route += _attribute(DST, LOOPBACK) + _attribute(PREFSRC, LOOPBACK)
    route += _attribute(OIF, struct.pack("I", socket.if_nametoindex("lo")))
    if packets:
        route += _attribute(METRICS, _attribute(INITCWND, struct.pack("I", packets)))
    head = struct.pack("IHHII", 16 + len(route), RTM_NEWROUTE, REQUEST | REPLACE | ACKNOWLEDGE, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.send(head + route)
        error = struct.unpack_from("i", kernel.recv(4096), 16)[0]
    if error:
        raise OSError(-error, "the route of the loopback cannot be changed")


def _attribute(kind: int, data: bytes) -> bytes:
    return struct.pack("HH", 4 + len(data), kind) + data
