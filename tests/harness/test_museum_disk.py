"""A [disk] in an experiment: the museum disk is mounted anew for each repetition, its statistics
are the load's, and nothing stays mounted whatever happens.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import cast

import pytest
from made_up import Tree
from test_bench import await_process, bench
from test_load import HAMMER, SERVER

from harness.run import museum
from harness.spec import plan
from harness.system import needs
from harness.system.needs import missing_library
from harness.system.processes import Process

ROOT = Path(__file__).resolve().parents[2]
MUSEUM = ROOT / "build" / "bin" / "museum"

MICRO = """\
id = "sample"
title = "A sample"
question = "How fast?"
kind = "micro"
[profile.smoke]
rounds = 2
set = { size = 1000 }
[profile.quick]
rounds = 1
[profile.full]
rounds = 1
[disk]
pools = ["files=20x{size}"]
args = ["--speed", "100"]
[[variant]]
name = "a"
command = ["{bin}/fake", "{files}", "{docroot}"]
set = { size = 1000 }
[[variant]]
name = "b"
disk_args = ["-s", "1"]
command = ["{bin}/fake", "{files}", "{docroot}"]
set = { size = 1000 }
[[metric]]
name = "seeks"
scalar = "disk.seeks"
"""

READS = """\
import sys, time
paths = open(sys.argv[1]).read().splitlines()
assert len(paths) == 20 and all(path.startswith(sys.argv[2] + "/") for path in paths)
sizes = {len(open(path, "rb").read()) for path in paths[5:15]}
print("size")
print(*sizes)
"""


@pytest.fixture
def disk_tree(tree: Tree) -> Tree:
    """A tree with the real museum in it."""
    lacking = needs.probe("fuse") if MUSEUM.is_file() else missing_library("museum", ROOT)
    if lacking is not None and not lacking.ok:
        pytest.skip(f"{lacking.reason}: {lacking.remedy}")
    if not MUSEUM.is_file():
        pytest.fail(f"{MUSEUM} is not there: make servers", False)
    tree.program("fake", READS)
    (tree.root / "build" / "bin" / "museum").symlink_to(MUSEUM)
    tree.experiment(text=MICRO)
    return tree


def mounts(tree: Tree) -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return [path for path in (line.split()[4] for line in lines) if path.startswith(str(tree.root))]


def nothing_left(tree: Tree) -> bool:
    deadline = time.monotonic() + 20
    while mounts(tree) or tree.processes("bin/museum"):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_a_fresh_disk_for_each_repetition(disk_tree: Tree) -> None:
    done = bench(disk_tree)
    assert (done.returncode, done.stderr) == (0, "")
    repetitions = disk_tree.of_type("repetition")
    assert len(repetitions) == 4
    for repetition in repetitions:
        assert repetition["samples"]["size"] == [1000]
        assert repetition["scalars"]["disk.reads"] == 10, "none is cached from before"
        assert repetition["scalars"]["disk.queue_depth"] > 0
        assert "disk.course" not in repetition["scalars"]
    assert mounts(disk_tree) == []


def test_its_options_reach_it(disk_tree: Tree) -> None:
    shows = "import json, sys\nr = json.load(open(sys.argv[2] + '/.statistics'))\n"
    disk_tree.program("fake", shows + "print('spindles')\nprint(len(r['spindle_utilisation']))\n")
    assert bench(disk_tree).returncode == 0
    found = {r["variant"]: r["samples"]["spindles"] for r in disk_tree.of_type("repetition")}
    assert found == {"a": [2], "b": [1]}


def test_a_program_that_fails_leaves_no_mount(disk_tree: Tree) -> None:
    disk_tree.program("fake", "import sys; sys.exit('fake: no')")
    done = bench(disk_tree)
    assert done.returncode == 1
    assert "fake: no" in done.stderr
    assert nothing_left(disk_tree)


def test_options_that_are_wrong_are_a_failure_in_one_line(disk_tree: Tree) -> None:
    disk_tree.experiment(text=MICRO.replace('"-s", "1"', '"-s", "0"'))
    done = bench(disk_tree)
    assert done.returncode == 1
    assert "failed: sample b: museum ended with status 2: museum: --spindles: '0'" in done.stderr


def test_a_disk_that_cannot_be_had_is_a_skip(disk_tree: Tree) -> None:
    (disk_tree.root / "build/bin/museum").unlink()
    refuses = "import sys\nif '--list' not in sys.argv: sys.exit(77)\n"
    disk_tree.program("museum", refuses)
    done = bench(disk_tree)
    assert done.returncode == 0
    assert "skipped: sample a: museum cannot run here" in done.stdout


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_early_end_leaves_no_mount(disk_tree: Tree, how: signal.Signals) -> None:
    disk_tree.program("fake", "import sys, time; open(sys.argv[1]); time.sleep(60)")
    process = disk_tree.start("bench", "--profile", "smoke")
    await_process(disk_tree, "bin/fake")
    assert mounts(disk_tree)
    process.send_signal(how)
    process.communicate(timeout=20)
    assert nothing_left(disk_tree)


def test_a_disk_that_dies_is_a_failure_and_leaves_no_mount(disk_tree: Tree) -> None:
    hold = disk_tree.root / "hold"
    hold.touch()
    wait = "import os, time\nwhile os.path.exists('hold'): time.sleep(0.02)\n"
    disk_tree.program("fake", wait + "print('x'); print('1')")
    process = disk_tree.start("bench", "--profile", "smoke")
    await_process(disk_tree, "bin/fake")
    for pid in disk_tree.processes("bin/museum"):
        if "guardian" not in Path(f"/proc/{pid}/comm").read_text(encoding="ascii"):
            os.kill(pid, signal.SIGKILL)
    hold.unlink()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "museum: no statistics" in err
    assert nothing_left(disk_tree)


LOAD = """\
id = "sample"
title = "A sample"
question = "How fast?"
kind = "load"
[profile.smoke]
rounds = 1
[profile.quick]
rounds = 1
[profile.full]
rounds = 1
[disk]
pools = ["files=20x1000"]
args = ["--speed", "100"]
[hammer]
args = ["{urls}", "{docroot}", "5", "{url}/"]
warmup = ["{urls}", "{docroot}", "9", "{url}/"]
[[variant]]
name = "server"
server = "fake-server"
[[metric]]
name = "rate"
scalar = "requests_per_s"
"""

FETCHES = """\
urls = open(sys.argv[1]).read().splitlines()
assert len(urls) == 20 and docroot == sys.argv[2], (urls, docroot)
for url in urls[:int(sys.argv[3])]:
    assert len(open(docroot + "/" + url.split("/", 3)[3], "rb").read()) == 1000
"""


def test_under_a_load_the_warm_up_does_not_count(disk_tree: Tree) -> None:
    disk_tree.experiment(text=LOAD)
    disk_tree.program("fake-server", SERVER.format(before=""))
    disk_tree.program("hammer", HAMMER.format(extra=FETCHES, failed=0, little=1.0))
    done = bench(disk_tree)
    assert (done.returncode, done.stderr) == (0, "")
    (repetition,) = disk_tree.of_type("repetition")
    assert repetition["scalars"]["disk.reads"] == 5
    assert repetition["scalars"]["requests_per_s"] == 500
    assert nothing_left(disk_tree)


def test_the_disk_is_part_of_the_plan(tree: Tree) -> None:
    from harness.spec import experiment_file

    hashes = set()
    for text in (MICRO, MICRO.replace("20x", "30x"), MICRO.replace('"-s", "1"', '"-s", "3"')):
        tree.experiment(text=text)
        found = experiment_file.load(tree.experiments / "sample.toml")
        hashes.add(plan.plan_hash(found, found.profiles["smoke"], {}, ()))
    assert len(hashes) == 3


def test_rates_and_times_in_the_seconds_of_the_disk() -> None:
    assert museum.speed_of([]) == museum.speed_of(["-s", "1"]) == 1.0
    assert museum.speed_of(["--speed", "4", "--speed=8"]) == 8.0
    disk = museum.Mounted(Path(), Path(), [], cast(Process, None), speed=4.0)
    measured = {"requests_per_s": 400.0, "total.median": 25.0, "failed": 0.0}
    assert disk.at_its_pace(measured, "before.") == {
        "before.disk.requests_per_s": 100.0,
        "before.disk.total.median": 100.0,
    }
