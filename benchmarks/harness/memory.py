"""What memory a server takes: by the books of its processes, and by those of the kernel.

All from /proc, in KiB. No book counts everything. What a process has mapped says nothing of the
sockets the kernel keeps for it; what the kernel holds is known for the whole machine only, so it
is told by difference, and whatever else happens meanwhile is in it.
"""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from harness.sessions import session_members

PAGE_KIB = os.sysconf("SC_PAGE_SIZE") / 1024
# Names in smaps_rollup and status (proc(5)) -> ours.
ROLLUP = {"Rss": "rss_kib", "Pss": "pss_kib", "Private_Dirty": "private_dirty_kib"}
STATUS = {"VmPTE": "page_tables_kib"}
STATM = ("size", "resident", "shared", "text", "lib", "data", "dirty")
KERNEL = {
    "Slab": "slab_kib",
    "KernelStack": "stacks_kib",
    "PageTables": "page_tables_kib",
}


def fields(path: Path, names: dict[str, str]) -> dict[str, float]:
    """The numbers of lines `Name:   123 kB`; 0 for a line that is not there."""
    text = path.read_text(encoding="utf-8", errors="replace")
    found = {name: re.search(rf"^{name}:\s+(\d+)", text, re.M) for name in names}
    return {ours: float(m.group(1)) if (m := found[name]) else 0.0 for name, ours in names.items()}


def memory_of(session: int, proc: Path = Path("/proc")) -> dict[str, float]:
    """Memory, descriptors and sockets of a session now; in PSS what they share is counted once,
    and so is a socket that several have: each connection that somebody has accepted is one.
    """
    totals = dict.fromkeys((*ROLLUP.values(), *STATUS.values()), 0.0)
    members = session_members(session)
    descriptors = 0
    sockets: set[str] = set()
    for pid in members:
        for name, wanted in (("smaps_rollup", ROLLUP), ("status", STATUS)):
            with contextlib.suppress(OSError):
                for key, value in fields(proc / str(pid) / name, wanted).items():
                    totals[key] += value
        files = list(_open_files(proc / str(pid) / "fd"))
        descriptors += len(files)
        sockets.update(file for file in files if file.startswith("socket:"))
    counts = {"processes": len(members), "descriptors": descriptors, "sockets": len(sockets)}
    return {**{name: float(count) for name, count in counts.items()}, **totals}


def _open_files(folder: Path) -> Iterator[str]:
    """What its descriptors are, as `socket:[4711]`; "" for one that was closed just now."""
    names: list[str] = []
    with contextlib.suppress(OSError):
        names = os.listdir(folder)
    for name in names:
        try:
            yield os.readlink(f"{folder}/{name}")
        except OSError:
            yield ""


def account_of(pid: int, proc: Path = Path("/proc")) -> dict[str, float]:
    """The same process in two books: statm and smaps_rollup."""
    account: dict[str, float] = {}
    with contextlib.suppress(OSError):
        pages = (proc / str(pid) / "statm").read_text(encoding="ascii").split()
        for name, count in zip(STATM, pages, strict=False):
            account[f"statm_{name}_kib"] = float(count) * PAGE_KIB
    with contextlib.suppress(OSError):
        one = fields(proc / str(pid) / "smaps_rollup", ROLLUP)
        account.update({f"one_{name}": value for name, value in one.items()})
    return account


def kernel_memory(proc: Path = Path("/proc")) -> dict[str, float]:
    """What the kernel holds for itself, and for the buffers of all TCP sockets, in whatever network
    namespace; nothing where it does not say so.
    """
    found: dict[str, float] = {}
    with contextlib.suppress(OSError):
        found |= fields(proc / "meminfo", KERNEL)
    with contextlib.suppress(OSError):
        text = (proc / "net" / "sockstat").read_text(encoding="ascii")
        pages = re.search(r"^TCP: .*\bmem (\d+)", text, re.M)
        found |= {"tcp_kib": float(pages[1]) * PAGE_KIB} if pages else {}
    return found
