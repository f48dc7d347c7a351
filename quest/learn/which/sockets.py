"""The tables of sockets in /proc/PID/net: what listens, and which connections there are. Pure functions over text."""

import socket
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

ESTABLISHED, CLOSE_WAIT, LISTEN = "01", "08", "0A"
UNIX_LISTENS, UNIX_CONNECTED = 1 << 16, "03"  # __SO_ACCEPTCON; SS_CONNECTED


@dataclass(frozen=True)
class Place:
    """Where a server can be reached: what its connections have in common with its listening socket."""

    name: str  #: a port, or the path of a socket in the file system
    address: str = ""  #: as one writes it: 127.0.0.1:8080


@dataclass(frozen=True)
class Sockets:
    """Of one network namespace."""

    listening: dict[int, Place]  #: inode of a listening socket -> its place
    connected: tuple[tuple[str, int], ...]  #: name of a place, inode of the connection; 0: it waits for accept()

    def of(self, names: Iterable[str]) -> list[int]:
        """The inodes of the connections of these places."""
        wanted = set(names)
        return [inode for name, inode in self.connected if name in wanted]


def _address(text: str) -> tuple[str, str]:
    """Of "0100007F:1F90": the address as one writes it, and the port. ValueError if it is none."""
    digits, _, port = text.partition(":")
    if len(digits) not in (8, 32):
        raise ValueError(text)
    words = (int(digits[i : i + 8], 16).to_bytes(4, sys.byteorder) for i in range(0, len(digits), 8))
    packed = b"".join(words)
    if len(packed) == 4:
        return socket.inet_ntop(socket.AF_INET, packed), str(int(port, 16))
    return f"[{socket.inet_ntop(socket.AF_INET6, packed)}]", str(int(port, 16))


def _of_tcp(lines: Iterable[str]) -> Iterator[tuple[str, str, str, int]]:
    """State, port, address and inode of each line that can be read."""
    for line in lines:
        words = line.split()
        if len(words) < 10 or words[3] not in (ESTABLISHED, CLOSE_WAIT, LISTEN):
            continue
        try:
            host, port = _address(words[1])
            yield words[3], port, f"{host}:{port}", int(words[9])
        except ValueError:
            continue


def parsed(tcp: Iterable[str], unix: Iterable[str] = ()) -> Sockets:
    """From the lines of tcp and tcp6, and of unix."""
    listening: dict[int, Place] = {}
    connected: list[tuple[str, int]] = []
    for state, port, address, inode in _of_tcp(tcp):
        if state == LISTEN:
            listening[inode] = Place(port, address)
        else:
            connected.append((port, inode))
    for line in unix:
        words = line.split(maxsplit=7)
        if len(words) != 8 or not words[6].isdigit():
            continue
        try:
            flags = int(words[3], 16)
        except ValueError:
            continue
        name = f"unix:{words[7].strip()}"
        if flags & UNIX_LISTENS:
            listening[int(words[6])] = Place(name, name)
        elif words[5] == UNIX_CONNECTED:
            connected.append((name, int(words[6])))
    return Sockets(listening, tuple(connected))
