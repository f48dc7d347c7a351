"""A [disk] in an experiment: the museum disk is mounted anew for each repetition, its statistics
are the load's, and nothing stays mounted whatever happens.
"""

import signal
from pathlib import Path
from typing import Any, cast

import pytest

from quest.ground.errors import RepetitionError, Unsupported
from quest.ground.processes import Process
from quest.measure import museum, needs
from quest.measure.needs import missing_library
from quest.measure.records import Repetition
from quest.spec.model import Experiment
from tests.harness.made_up import Tree, await_, parsed
from tests.harness.test_load import HAMMER, SERVER, measure

ROOT = Path(__file__).resolve().parents[2]
MUSEUM = ROOT / "build" / "bin" / "museum"

DISK = {"pools": ["files=20x{size}"], "args": ["--speed", "100"]}
SEEKS = [{"name": "seeks", "scalar": "disk.seeks"}]


def variant(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "set": {"size": 1000}, **more}


READS = """\
import json, sys
paths = open(sys.argv[1]).read().splitlines()
assert len(paths) == 20 and all(path.startswith(sys.argv[2] + "/") for path in paths)
sizes = {len(open(path, "rb").read()) for path in paths[5:15]}
report = json.load(open(sys.argv[2] + "/disk/.statistics"))
print("size", "spindles", sep="\\t")
print(*sizes, len(report["spindle_utilisation"]), sep="\\t")
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
    return tree


def mounts(tree: Tree) -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return [path for path in (line.split()[4] for line in lines) if path.startswith(str(tree.root))]


def await_nothing_left(tree: Tree) -> None:
    await_(lambda: not mounts(tree) and not tree.processes("bin/museum"))


def measured(tree: Tree, experiment: Experiment, name: str = "a") -> Repetition:
    try:
        return measure(tree, experiment, name, size=1000)
    finally:
        await_nothing_left(tree)


def reading() -> Experiment:
    command = ["{bin}/fake", "{files}", "{docroot}"]
    two = [variant("a", command=command), variant("b", command=command, disk_args=["-s", "1"])]
    return parsed(disk=DISK, variant=two, metric=SEEKS)


def test_a_fresh_disk_for_each_repetition(disk_tree: Tree) -> None:
    for name, spindles in (("a", 2), ("b", 1), ("a", 2)):
        repetition = measured(disk_tree, reading(), name)  # its options reach it
        assert repetition.samples == {"size": [1000], "spindles": [spindles]}
        assert repetition.scalars["disk.reads"] == 10, "none is cached from before"
        assert repetition.scalars["disk.queue_depth"] > 0
        assert "disk.course" not in repetition.scalars


KILLS = """
import contextlib, os, sys
from pathlib import Path
for number in filter(str.isdigit, os.listdir("/proc")):
    folder = Path("/proc", number)
    with contextlib.suppress(OSError):  # it has just ended
        name, words = (folder / "comm").read_text(), (folder / "cmdline").read_text()
        if name == "museum\\n" and sys.argv[2] in words:  # and not its guardian
            os.kill(int(number), 9)
print("x", "1", sep="\\n")
"""


@pytest.mark.parametrize(
    ("program", "source", "said"),
    [
        ("fake", "import sys; sys.exit('fake: no')", "a ended with status 1: fake: no"),
        ("fake", KILLS, "museum: no statistics"),
        ("museum", "import sys\nif '--list' not in sys.argv: sys.exit(77)\n",
         "museum cannot run here"),
    ],
)  # fmt: skip
def test_what_fails_leaves_no_mount(disk_tree: Tree, program: str, source: str, said: str) -> None:
    (disk_tree.root / "build/bin" / program).unlink()
    disk_tree.program(program, source)
    with pytest.raises((RepetitionError, Unsupported), match=said):
        measured(disk_tree, reading())


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_early_end_leaves_no_mount(disk_tree: Tree, how: signal.Signals) -> None:
    disk_tree.experiment(extra='[disk]\npools = ["files=20x1000"]')
    disk_tree.program("fake", "import time; time.sleep(60)")
    process = disk_tree.start("bench", "PROFILE=smoke")
    await_(lambda: disk_tree.processes("bin/fake"), process)
    assert mounts(disk_tree)
    process.send_signal(how)
    process.communicate(timeout=20)
    await_nothing_left(disk_tree)


FETCHES = """\
import os, time
if "-r" in sys.argv:
    assert url.endswith("/page.html") and open(docroot + "/page.html").read()
    times = {"median": 1e6, "max": 2e6}
    print(json.dumps({"oldest_unfinished_s": 0.5, "total_from_intended": times}), flush=True)
    open(docroot + "/asked", "w").close()
    sys.exit()
if sys.argv[3] == "5":
    while not os.path.exists(docroot + "/asked"):
        time.sleep(0.01)
urls = open(sys.argv[1]).read().splitlines()
assert len(urls) == 20 and docroot == sys.argv[2], (urls, docroot)
for url in urls[:int(sys.argv[3])]:
    assert len(open(docroot + "/" + url.split("/", 3)[3], "rb").read()) == 1000
"""


def test_under_a_load_the_warm_up_does_not_count(disk_tree: Tree) -> None:
    def words(count: str) -> list[str]:
        return ["{urls}", "{docroot}", count, "{url}/"]

    experiment = parsed(
        kind="load",
        disk=DISK,
        hammer={"args": words("5"), "warmup": words("9")},
        variant=[variant("a", server="fake-server")],
        metric=SEEKS,
    )
    disk_tree.program("fake-server", SERVER.format(before=""))
    disk_tree.program("hammer", HAMMER.format(extra=FETCHES))
    scalars = measured(disk_tree, experiment).scalars
    assert scalars["disk.reads"] == 5
    assert scalars["requests_per_s"] == 500
    rate = scalars["disk.requests_per_s"]
    assert rate == 5, "in the seconds of the disk, of which one of ours has a hundred"
    waited = [scalars[f"{disk}bystander.median"] for disk in ("", "disk.")]
    assert waited == [1e6, 1e8]
    assert scalars["bystander.worst"] == 5e8, "one that was not answered has waited, too"


def test_rates_and_times_in_the_seconds_of_the_disk() -> None:
    disk = museum.MuseumDisk(Path(), [], cast(Process, None), speed=4.0)
    measured = {"requests_per_s": 400.0, "total.median": 25.0, "failed": 0.0}
    assert disk.in_disk_seconds(measured, "before.") == {
        "before.disk.requests_per_s": 100.0,
        "before.disk.total.median": 100.0,
    }
