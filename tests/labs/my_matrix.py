"""Our own servers by all stages of `make my`: labs/my/matrix.tsv.

python3 -m tests.labs.my_matrix [SERVER...]   writes their rows anew; all without
"""

import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from quest.my import stages
from quest.my.judge import FAILED, PASSED, Outcome, outcomes

TREE = Path(__file__).resolve().parents[2]
TABLE = TREE / "labs/my/matrix.tsv"
MARKS = {PASSED: "+", FAILED: "."}
#: Those of the series that listen themselves: 00 is a client, and 02-inetd is started for each connection.
SERVERS = (
    "01-iterative", "02-fork", "03-prefork", "04-threads", "05-pool", "05b-nonblocking", "06-select", "07-poll",
    "08-sigio", "09-epoll", "10-kqueue", "11-sendfile", "12-aio", "13-uring", "14-owfat", "15-slashdot",
    "16-coroutines",
)  # fmt: skip

Row = dict[str, str]


def judged(program: Path, names: Iterable[str]) -> list[Outcome]:
    """A program with the contract of the starter, by these stages."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder, "run")
        run.write_text(f'#!/bin/sh\nexec {program} "$@"\n')
        run.chmod(0o755)
        return list(outcomes(Path(folder), list(names)))


def binary(server: str) -> Path:
    return TREE / "build/bin" / server


def read(table: Path = TABLE) -> dict[str, Row]:
    """Server -> stage -> mark."""
    rows = [line.split("\t") for line in table.read_text().splitlines() if line[:1] != "#"]
    names, servers = [row[0] for row in rows[1:]], rows[0][1:]
    return {server: {name: row[place] for name, row in zip(names, rows[1:], strict=True)}
            for place, server in enumerate(servers, 1)}  # fmt: skip


def write(rows: dict[str, Row], table: Path = TABLE) -> None:
    """A line for each stage, a column for each server."""
    lines = [
        "# Which stage of `make my` each of our servers passes (+) or fails (.): what a model lacks fails.",
        "# python3 -m tests.labs.my_matrix writes this table; tests/labs/test_my.py holds it.",
        "\t".join(["stage", *rows]),
    ]
    lines += ["\t".join([name, *(row.get(name, "?") for row in rows.values())]) for name in stages.load().names]
    table.write_text("\n".join(lines) + "\n")


def main(words: list[str]) -> int:
    rows = read() if TABLE.exists() else {}
    for server in words or SERVERS:
        found = judged(binary(server), stages.load().names)
        rows[server] = {one.stage: MARKS.get(one.how, "?") for one in found}
        print(server, " ".join(f"{one.stage} {one.seconds:g}" for one in found), flush=True)
        for one in found:
            if not one.passed:
                print(f"  {one.stage}: {one.why}", flush=True)
    write({server: rows[server] for server in SERVERS if server in rows})
    return 0


if __name__ == "__main__":
    assert shutil.which("strace")
    sys.exit(main(sys.argv[1:]))
