"""A machine that is made up: the reference run, in which ten findings of the book are reversed.

    python3 -m tests.book.reversed      writes build/reversed/results
    make BUILD=build/reversed book      the pages of a reader with these results

On those pages a note must stand below each finding that is reversed, and no sentence around it may say what the
numbers beside it deny: read the ten (NOTED says where they stand), light and dark, wide and narrow.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from quest.ground.places import BUILD
from quest.measure.records import Sums

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "benchmarks/results/reference"
FOLDER = BUILD / "reversed"
MACHINE = "made-up machine"
#: Experiment -> pairs of its variants. Each of a pair gets the measurements of the other.
EXCHANGED: Mapping[str, tuple[tuple[str, str], ...]] = {
    "slow-client": (("01-iterative", "01-iterative-slow"),),
    "throughput": (("01-iterative-close", "02-fork-close"),),
    "prefork-herd": (("accept", "poll"),),
    "thread-create": (("thread", "fork"),),
    "fork-latency": (("static", "dynamic"),),
    "event-wait": (("epoll", "poll"),),
    "event-wait-active": (("epoll", "sigio"),),
    "send-path": (("read", "sendfile"),),
    "peers-small": (("15-slashdot", "nginx-read"),),
    "overload": (("15-slashdot", "15-slashdot-c128"),),
}
#: Guard of each finding that this reverses -> the page of its note.
NOTED = {
    "one-slow-client": "01-iterative",
    "fork-costs-more-than-the-reply": "02-fork",
    "accept-wakes-one": "03-prefork",
    "thread-is-faster-than-fork": "04-threads",
    "static-forks-faster": "process-cost",
    "poll-pays-for-each": "07-poll",
    "epoll-is-flat": "09-epoll",
    "sendfile-saves-on-long-files": "11-sendfile",
    "slashdot-leads-small": "15-slashdot",
    "full-queue-wastes-work": "overload",
}


def exchanged(lines: list[str], pairs: tuple[tuple[str, str], ...]) -> bytes:
    """A result file in which these variants have changed their places, of a machine with a name of its own."""
    names = {one: other for pair in pairs for one, other in (pair, pair[::-1])}
    sums, text = Sums(), b""
    for line in lines:
        record = json.loads(line)
        record.pop("sum")
        if "variant" in record:
            record["variant"] = names.get(record["variant"], record["variant"])
        if "environment" in record:
            record["environment"]["cpu"] = MACHINE
        text += sums.added(json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode())
    return text


def write(results: Path) -> None:
    """The result files of the machine: only the experiments in which something is reversed."""
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    for name, pairs in EXCHANGED.items():
        lines = (REFERENCE / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        (results / f"{name}.jsonl").write_bytes(exchanged(lines, pairs))


if __name__ == "__main__":
    write(FOLDER / "results")
    print(f"{FOLDER}/results: ten findings reversed. Now: make BUILD={FOLDER} book")
