"""Faults that the simulated world must find: each is planted in a copy of the tree, the servers are
built from that, and the line says after how many steps it was found, or that it was not.

    python3 tests/sim/planted.py [BUILD] [NAME ...]        make sim-faults
"""

import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
STEPS = 2_000_000  #: of each server at most
LOOPS = ("06-select", "07-poll", "09-epoll", "10-kqueue", "11-sendfile", "12-aio", "15-slashdot")
DISK = ("12-aio", "15-slashdot")
CONN_C, CONN_H = "05b-nonblocking/conn.c", "05b-nonblocking/conn.h"
CLIENTS = "06-select/clients.c"


@dataclass(frozen=True)
class Planted:
    name: str
    servers: tuple[str, ...]
    file: str  #: below code/
    old: str  #: stands there once
    new: str


#: Those that issues have told of first: what the mend was is taken out again.
FAULTS = (
    Planted("waiting-is-overdue", DISK, CONN_H, "if (conn_waits_for_disk(c) || (c", "if ((c"),
    Planted("disk-time-counts", DISK, CONN_C,
            "        conn_begin_step(c);\n    take_input(c);",
            "        (void)0;\n    take_input(c);"),
    Planted("disk-for-ever", DISK, "12-aio/job.c",
            "return silent > SILENT_STEPS * step || waited > LONGEST_STEPS * step;",
            "return false && silent > SILENT_STEPS * LONGEST_STEPS * waited * step;"),
    Planted("change-outlives-client", ("10-kqueue",), "10-kqueue/server.c",
            "            forget(c);\n", "            (void)forget;\n"),
    Planted("slow-never-leave", LOOPS, CLIENTS,
            "        else if (is_held_up(c))\n            return c;", ""),
    Planted("deaf-to-what-came-in-time", ("09-epoll",), CONN_H,
            "(c->state == READING && recv(c->fd, &byte, 1, MSG_PEEK) > 0)", "(byte = 0)"),
    Planted("short-read-is-all", ("09-epoll",), CONN_C,
            "c->ops != NULL && c->ops->short_count_is_all && !ends", "!ends"),
    Planted("short-write-is-eagain", ("09-epoll", "06-select"), CONN_C,
            "        *budget -= n;\n    }\n    return SENT_BUDGET;",
            "        *budget -= n;\n        if (n < len)\n            return SENT_BLOCKED;\n"
            "    }\n    return SENT_BUDGET;"),
    Planted("file-stays-open", ("09-epoll",), CONN_C,
            "else if (x->reply.fd >= 0)\n        close(x->reply.fd);", ""),
    Planted("no-lingering", ("09-epoll", "15-slashdot"), CONN_H,
            "return !unread && all_acknowledged(c->fd) ? WANT_CLOSE : conn_begin_to_linger"
            "(c, unread);", "return WANT_CLOSE;"),
    Planted("input-lost", LOOPS, CONN_C, "        in.have -= (size_t)used;\n",
            "        in.have = 0 * (size_t)used;\n"),
    Planted("place-forgotten", ("07-poll",), "07-poll/server.c",
            "    who[c->place]->place = c->place;\n", ""),
    Planted("no-room-is-empty", ("09-epoll",), CLIENTS,
            "} else if (errno == EAGAIN || stopping) {",
            "} else if (errno == EAGAIN || errno == EMFILE || stopping) {"),
    Planted("edge-not-asked-again", ("12-aio",), CLIENTS,
            "if (again > 0 || until <= now)", "if (until <= now)"),
    Planted("free-twice", ("15-slashdot",), "15-slashdot/file_cache.c",
            "        f->users++;\n        return f;", "        return f;"),
)  # fmt: skip


def build(work: Path, built: Path, planted: Planted) -> None:
    """The copy of the tree that has the fault: what it does not concern is not compiled again."""
    for path in TREE.iterdir():
        if path.name not in ("code", built.name, ".git"):
            (work / path.name).symlink_to(path)
    shutil.copytree(TREE / "code", work / "code")
    shutil.copytree(built / "obj/asan", work / "build/obj/asan")
    file = work / "code" / planted.file
    text = file.read_text(encoding="utf-8")
    if text.count(planted.old) != 1:
        raise SystemExit(f"sim: {planted.name}: {planted.file} has not once: {planted.old!r}")
    file.write_text(text.replace(planted.old, planted.new), encoding="utf-8")
    goals = [f"build/asan/{server}_sim" for server in planted.servers]
    make = ["make", "-k", "-C", str(work), "BUILD=build", "WERROR=", *goals]
    done = subprocess.run(make, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"sim: {planted.name} does not compile\n{done.stderr[:600]}")


def found(built: Path, planted: Planted, steps: int = STEPS) -> dict[str, tuple[int, str]]:
    """Server -> after how many steps, and what was found; 0: it was not."""
    results = {}
    with tempfile.TemporaryDirectory(prefix="sim-") as folder:
        build(Path(folder), built, planted)
        for server in planted.servers:
            command = [f"{folder}/build/asan/{server}_sim", "--steps", str(steps), "--lines", "0"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            after = re.search(r"after ([0-9]+) steps", done.stdout)
            what = re.search(r"ERROR: AddressSanitizer: [^ ]+", done.stdout)
            text = what[0] if what else done.stdout.split("\n", 2)[1].partition(": ")[2]
            results[server] = (int(after[1]), text) if after and done.returncode == 1 else (0, "")
    return results


def main() -> int:
    built = Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()
    names = sys.argv[2:]
    chosen = [fault for fault in FAULTS if not names or fault.name in names]
    missed = 0
    with ThreadPoolExecutor(2) as pool:
        for fault, results in zip(
            chosen, pool.map(lambda one: found(built, one), chosen), strict=True
        ):
            for server, (after, what) in results.items():
                missed += after == 0
                said = f"after {after:7} steps: {what}" if after else "NOT FOUND"
                print(f"{fault.name:26} {server:12} {said}", flush=True)
    print(f"{len(chosen)} faults planted, {missed} not found")
    return int(missed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
