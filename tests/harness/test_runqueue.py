"""How long a program waited for its processor, and of which programs that can be told."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from quest.ground import processes, runqueue
from quest.ground.runqueue import NOT_KNOWN, Waited
from tests.harness.made_up import Tree, machine

COUNTED = runqueue.waited_ns(os.getpid()) is not None
needs_counting = pytest.mark.skipif(not COUNTED, reason="this kernel does not count the wait in the run queue")


def stat(faults: int, of_children: int = 0) -> str:
    return f"7 (a ) b) Z 1 7 7 0 -1 4194564 {faults} {of_children} 0 0 5 6 0 0 20 0 1 0\n"


ALONE = {"7/stat": stat(300), "7/task/7/stat": stat(300), "7/schedstat": "5000000 2500000 9\n"}


@pytest.mark.parametrize(
    ("files", "waited"),
    [
        (ALONE, Waited(0.002)),
        ({**ALONE, "7/stat": stat(300, of_children=12)}, Waited(None, others=True)),
        ({**ALONE, "7/stat": stat(353)}, Waited(None, others=True)),
        ({**ALONE, "7/schedstat": "0 0 0\n"}, NOT_KNOWN),
        ({**ALONE, "7/schedstat": ""}, NOT_KNOWN),
        ({}, NOT_KNOWN),
    ],
    ids=["alone", "had a child", "had a thread", "zeros", "no file", "no /proc"],
)
def test_of_a_program_that_has_ended(files: Mapping[str, str], waited: Waited, tmp_path: Path) -> None:
    assert runqueue.of_ended(7, 500_000, machine(tmp_path, files)) == waited
    assert runqueue.of_ended(7, None, tmp_path) == waited._replace(seconds=None)


SPIN = "import time\nend = time.monotonic() + 0.3\nwhile time.monotonic() < end: pass\n"
FORKS = "import os\nif os.fork() == 0: os._exit(0)\nos.wait()\n"
THREADS = "import threading\none = threading.Thread(target=lambda: bytearray(1 << 20))\none.start(); one.join()\n"


def ended(program: str, beside: str = "") -> processes.Process:
    cpus = frozenset([min(os.sched_getaffinity(0))])
    command = [sys.executable, "-IS", "-c"]
    with processes.running("it", [*command, program], cpus) as one:
        if not beside:
            assert one.reap(30)
            return one
        with processes.running("beside", [*command, beside], cpus) as other:
            assert one.reap(30) and other.reap(30)
    return one


@needs_counting
def test_a_program_of_ours_is_read_before_it_is_waited_for() -> None:
    alone = ended(SPIN)
    assert alone.usage and alone.waited.seconds is not None and 0 <= alone.waited.seconds <= alone.wall_s
    shared = ended(SPIN, beside=SPIN)
    assert shared.waited.seconds is not None and shared.waited.seconds > 0.15 * shared.wall_s, "two on one processor"
    assert ended(FORKS).waited == ended(THREADS).waited == Waited(None, others=True)


@pytest.mark.slow
@needs_counting
def test_a_repetition_has_its_share(tree: Tree) -> None:
    tree.experiment()
    tree.program()
    assert tree.bench().returncode == 0
    found = tree.of_type("repetition")
    assert found and all(0 <= each["scalars"]["wait_share"] <= 1 for each in found)
    tree.program(extra="import os\nif os.fork() == 0: os._exit(0)\nos.wait()")
    assert tree.bench("AGAIN=1").returncode == 0
    found = tree.of_type("repetition")
    assert found and not any("wait_share" in each["scalars"] for each in found)
    assert not any("waiting-unknown" in each["marks"] for each in found), "the account of the processors is there"
    text = 'import sys\nprint("ns\\twait_share")\nfor i in range(9): print(f"{i}\\t0.25")\n'
    tree.program(source=text)
    assert tree.bench("AGAIN=1").returncode == 0
    for each in tree.of_type("repetition"):
        assert each["scalars"]["wait_share"] == 0.25 and set(each["samples"]) == {"ns"}
        assert "noisy" in each["marks"]
