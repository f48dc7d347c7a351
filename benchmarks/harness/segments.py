"""What TCP has sent, as the kernel counts it for a network namespace (/proc/net/snmp and netstat).

Of a namespace of our own these are the segments of the load alone; else `no-namespace` marks them.
"""

from collections.abc import Mapping
from pathlib import Path

NET = Path("/proc/net")
SENT = "Tcp.OutSegs"
DATA = "TcpExt.TCPOrigDataSent"  # each once, however often it was sent again; a FIN is one too
OPENED = "Tcp.PassiveOpens"


def counters(net: Path = NET) -> dict[str, int]:
    """By protocol and name, as `Tcp.OutSegs`; nothing where the kernel does not count."""
    found: dict[str, int] = {}
    for name in ("snmp", "netstat"):
        try:
            lines = (net / name).read_text(encoding="ascii").splitlines()
        except OSError:
            continue
        for names, values in zip(lines[::2], lines[1::2], strict=False):
            protocol, *keys = names.split()
            pairs = zip(keys, values.split()[1:], strict=False)
            found.update({f"{protocol}{key}".replace(":", "."): int(n) for key, n in pairs})
    return found


def scalars(
    before: Mapping[str, int], after: Mapping[str, int], requests: float
) -> dict[str, float]:
    """Segments for a request, those of both ends; and in how many with data a reply came, as every
    request is one, and every connection ends with two.
    """
    if requests <= 0 or not {SENT, DATA, OPENED} <= before.keys() & after.keys():
        return {}
    sent, data, opened = (after[key] - before[key] for key in (SENT, DATA, OPENED))
    return {
        "segments_per_request": sent / requests,
        "segments_of_reply": (data - 2 * opened) / requests - 1,
    }
