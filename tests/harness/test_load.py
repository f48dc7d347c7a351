"""Load experiments: a made-up server under a made-up hammer."""

import contextlib
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from quest.ground.cpus import Placement
from quest.ground.errors import InputError, RepetitionError, Unsupported
from quest.ground.processes import Usage
from quest.measure import limits, load, load_tools, micro
from quest.measure.limits import Cap
from quest.measure.measure import prepare
from quest.measure.peers import Probe
from quest.measure.records import Repetition
from quest.measure.session import Context, Session
from quest.spec.model import Experiment, Value
from tests.harness.made_up import BENCHMARKS, Tree, await_, definition, parsed, result_set, write
from tests.harness.test_load_tools import WRK

SERVER = """\
import os, signal, socket, sys, time
{before}
sock = socket.create_server(("127.0.0.1", int(sys.argv[sys.argv.index("-p") + 1])))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
end = time.process_time() + 0.05
while time.process_time() < end:
    pass
print(f"fake-server: listening on http://127.0.0.1:{{sock.getsockname()[1]}}/", flush=True)
while True:
    client, _ = sock.accept()
    client.recv(1000)
    client.sendall(sys.argv[-1].encode())
    client.close()
"""

HAMMER = """\
import json, socket, sys
url = next(word for word in sys.argv if word.startswith("http"))
address, port = url.split("/")[2].split(":")
client = socket.create_connection((address, int(port)))
client.sendall(b"x\\r\\n\\r\\n")
docroot = client.recv(1000).decode()
failed, little = 0, 1.0
{extra}
print(json.dumps({{
    "schema": 1, "requests": 100, "failed": failed, "errors": {{}}, "requests_per_s": 500.0,
    "seconds": 0.2, "client_bound": False, "bytes": {{"total": 100000}},
    "warm_up": {{"requests": 25}}, "little": {{"ratio": little}},
    "total": {{"median": 5000, "histogram": [[4096, 100]]}}, "total_from_intended": None,
}}))
"""

EXPERIMENT = """\
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
[sweep]
connections = [1, 4]
[docroot.files]
"a.html" = 100
"pool/{{0..2}}.html" = 50
[hammer]
args = ["-c", "{{connections}}", "{{url}}/a.html"]
[[variant]]
name = "server"
{variant}
[[metric]]
name = "rate"
scalar = "requests_per_s"
"""


def programs(tree: Tree, before: str = "", hammer: str = "", after: str = "") -> None:
    """`before` the server listens, before and `after` hammer prints."""
    tree.program("fake-server", SERVER.format(before=before))
    tree.program("hammer", HAMMER.format(extra=hammer) + after)


def make(tree: Tree, variant: str = 'server = "fake-server"') -> None:
    tree.experiment(text=EXPERIMENT.format(variant=variant))
    programs(tree)


def loaded(variant: dict[str, Any] | None = None, **changes: Any) -> Experiment:
    """An experiment with one variant."""
    server = {} if "peer" in (variant or {}) else {"server": "fake-server"}
    whole: dict[str, Any] = {
        "kind": "load",
        "docroot": {"files": {"a.html": 100}},
        "hammer": {"args": ["{url}/a.html"]},
        "metric": [{"name": "rate", "scalar": "requests_per_s"}],
        "variant": [{"name": "a", **server, **(variant or {})}],
    }
    return parsed(**{**whole, **changes})


UNPINNED = Placement(frozenset(), frozenset())


def measure(
    tree: Tree,
    experiment: Experiment,
    name: str = "a",
    place: Placement = UNPINNED,
    **params: Value,
) -> Repetition:
    """In this process; nothing is left of it."""
    run = load.run if experiment.kind == "load" else micro.run
    context = Context(place, 60.0, lambda: None)
    try:
        with contextlib.chdir(tree.root):
            return run(experiment, experiment.variant(name), params, context)
    finally:
        assert tree.processes("build/bin") == []


def scalars_of(tree: Tree) -> dict[str, float]:
    """Of a measurement that goes well, and leaves nothing."""
    done = tree.bench()
    assert (done.returncode, done.stderr) == (0, "")
    assert tree.processes("build/bin") == []
    found: dict[str, float] = tree.of_type("repetition")[0]["scalars"]
    return found


def test_a_fresh_server_for_each_repetition_and_its_work_counted(tree: Tree) -> None:
    make(tree)
    scalars = scalars_of(tree)
    first, second = tree.of_type("repetition")
    assert {first["params"]["connections"], second["params"]["connections"]} == {1, 4}
    assert scalars["requests_per_s"] == 500
    assert scalars["requests_served"] == 125
    assert scalars["server_cpu_s"] >= 0.05
    assert 0 < scalars["start_s"] < scalars["server_cpu_s"]  # of a program in Python
    asked = scalars["server_cpu_s"] - scalars["start_s"]
    assert scalars["requests_per_cpu_s"] == pytest.approx(125 / asked)
    assert scalars["bytes_per_cpu_s"] == pytest.approx(scalars["requests_per_cpu_s"] * 1000)
    gigabytes = 125 * 1000 / 1e9
    for key in ("user_s", "system_s"):
        per_gb = scalars[f"server_{key}"] * asked / scalars["server_cpu_s"] / gigabytes
        assert scalars[f"{key}_per_gb"] == pytest.approx(per_gb)
    own = scalars["server_voluntary_switches"]
    assert scalars["server_voluntary_per_request"] == pytest.approx(own / 125)
    for key in ("softirq_s", "server_pss_kib", "client_cpu_s", "segments_per_request"):
        assert scalars[key] >= 0
    for key in ("machine_switches_per_s", "machine_interrupts_per_s"):
        assert scalars[key] > 0
    assert first["histograms"] == {"total": [[4096, 100]]}
    # Where it ran, and on what files.
    environment = tree.records()[0]["environment"]
    pin, network = environment["pin"], environment["network"]
    assert (pin["measured"] == pin["load"]) == ("shared-core" in first["marks"])
    assert pin["measured"] != pin["load"] or environment["cores"] < 2
    assert network["namespace"] == ("no-namespace" not in first["marks"])
    assert not network["namespace"] or network["congestion_control"] == "reno"
    (folder,) = (tree.root / "build" / "docroot").iterdir()
    sizes = {str(p.relative_to(folder)): p.stat().st_size for p in folder.rglob("*.html")}
    assert sizes == {"a.html": 100, "pool/0.html": 50, "pool/1.html": 50, "pool/2.html": 50}


# ---- what goes wrong ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "why"),
    [
        ("sys.exit('fake-server: bind 127.0.0.1:80: Permission denied')",
         "fake-server ended with status 1: fake-server: bind 127.0.0.1:80: Permission denied"),
        ("print('hello', flush=True)", 'fake-server: no listening line, but "hello"'),
        ("socket.socket.close = lambda *_: os.kill(os.getpid(), 11)",
         "fake-server was ended by SIGSEGV"),
        ("signal.signal = lambda *_: None", "fake-server was ended by SIGTERM"),  # ours ends with 0
        ("sys.stderr.write('13-uring: io_uring is switched off\\n'); sys.exit(77)",
         "13-uring: io_uring is switched off"),
    ],
)  # fmt: skip
def test_a_server_that_fails_or_cannot_run(tree: Tree, before: str, why: str) -> None:
    programs(tree, before)
    kind = Unsupported if "77" in before else RepetitionError
    with pytest.raises(kind, match=f"^{why}$"):
        measure(tree, loaded())


def test_doubtful_results_are_marked_and_kept(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of other tools too, which fill the same scalars."""
    programs(tree, hammer="failed, little = 3, 0.7")
    assert {"errors", "little"} <= set(measure(tree, loaded()).marks)
    wrk = tree.program("wrk", f"print({WRK!r})")
    monkeypatch.setenv("PATH", f"{wrk.parent}{os.pathsep}{os.environ['PATH']}")
    found = measure(tree, loaded({"load": "wrk"}, wrk={"args": ["{url}"]}))
    assert found.scalars["requests_per_s"] == 4000
    assert "errors" in found.marks
    assert "little" not in found.marks


def test_the_work_of_a_server() -> None:
    """2.5 s of processor time, 0.5 s of it before the first of 1000 requests of 1 MB each."""
    usage = Usage(2.0, 0.5, 30, 50, 6, 7)
    scalars = load.work_scalars(usage, 0.5, 1000, 10.0, 4.0, 1e6)
    of_usage = micro.usage_scalars(usage, "server_")
    assert {k: v for k, v in scalars.items() if k not in of_usage} == pytest.approx({
        "start_s": 0.5, "requests_served": 1000, "server_cpu_share": 0.25,
        "server_voluntary_per_request": 0.03, "server_involuntary_per_request": 0.05,
        "requests_per_cpu_s": 500, "requests_per_both_cpu_s": 1000 / 6, "cpu_us_per_request": 2000,
        "user_us_per_request": 1600, "system_us_per_request": 400, "bytes_per_cpu_s": 5e8, "cpu_s_per_gb": 2.0,
        "user_s_per_gb": 1.6, "system_s_per_gb": 0.4, "client_s_per_gb": 4.0, "both_s_per_gb": 6.0,
    })  # fmt: skip
    assert of_usage.items() <= scalars.items()
    unknown = load.work_scalars(usage, 0.5, 1000, 0.0, 4.0, 0.0)
    assert set(scalars) - set(unknown) == {"server_cpu_share", "bytes_per_cpu_s"} | {
        f"{part}_s_per_gb" for part in ("cpu", "user", "system", "client", "both")
    }
    assert "requests_per_cpu_s" not in load.work_scalars(usage, 2.5, 1000, 1.0, 4.0, 1e6)
    assert "server_voluntary_per_request" not in load.work_scalars(usage, 0.5, 0, 1.0, 4.0, 0.0)


def test_what_makes_a_load_doubtful() -> None:
    assert load.doubts({}) == load.doubts({"client_bound": 0, "failed": 0}) == []
    assert load.doubts({"little.ratio": 1.09}) == load.doubts({"little.ratio": 0.91}) == []
    assert load.doubts({"little.ratio": 1.11}) == load.doubts({"little.ratio": 0.89}) == ["little"]
    doubtful = {"client_bound": 1.0, "failed": 1.0, "little.ratio": 2.0}
    assert load.doubts(doubtful) == ["client-bound", "errors", "little"]


def test_without_a_load_the_server_is_measured_all_the_same(tree: Tree) -> None:
    programs(tree)
    scalars = measure(tree, loaded({"load": "none"})).scalars
    assert scalars["requests_served"] == 0
    for key in ("server_pss_kib", "server_statm_resident_kib"):
        assert scalars[key] > 0
    assert "kernel_slab_kib" in scalars


def test_that_nobody_was_served_may_be_a_result(tree: Tree) -> None:
    """Where hammer has printed nothing it has failed all the same."""
    may_fail = loaded(phase=[{"name": "during", "may_fail": True}])
    programs(tree, hammer="failed = 100", after="sys.exit('hammer: nothing fetched')")
    with pytest.raises(RepetitionError, match="^hammer ended with status 1: hammer: nothing"):
        measure(tree, loaded())
    assert measure(tree, may_fail).scalars["during.failed"] == 100
    programs(tree, hammer="sys.exit('no memory')")
    with pytest.raises(RepetitionError, match="^hammer ended with status 1: no memory"):
        measure(tree, may_fail)


def test_nothing_outlives_a_make_that_is_ended(tree: Tree) -> None:
    make(tree)
    tree.program("hammer", "import time; time.sleep(60)")
    command = f"{sys.executable} -m quest --of-make bench PROFILE=smoke || exit 1"
    (tree.root / "Makefile").write_text(f"all:\n\t{command}\n", encoding="utf-8")
    process = subprocess.Popen(
        ["make"], cwd=tree.root, env={**os.environ, "PYTHONPATH": str(BENCHMARKS.parent)},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    await_(lambda: tree.processes("bin/hammer"), process)
    assert tree.processes("fake-server")
    process.terminate()  # make tells its shells, and a shell tells nobody
    process.communicate(timeout=20)
    await_(lambda: not tree.processes("quest") and not tree.processes("build/bin"))


PEER = f"""\
program = "{sys.executable}"
command = [
    "{sys.executable}", "-m", "http.server", "-b", "{{address}}", "-d", "{{docroot}}", "{{port}}"
]
stop = "INT"
"""


@pytest.mark.slow
def test_a_peer_is_configured_started_and_ended(tree: Tree) -> None:
    make(tree, variant='peer = "peer"\nset = { workers = 4 }')
    file = tree.root / "benchmarks" / "peers" / "peer.toml"
    file.parent.mkdir()
    file.write_text(PEER, encoding="utf-8")
    assert scalars_of(tree)["requests_served"] == 126  # the probe too
    run = tree.records()[0]
    assert run["environment"]["peers"]["peer"].startswith("Python 3")
    assert re.fullmatch("[0-9a-f]{64}", run["programs"]["peers/peer"])
    file.write_text(PEER.replace("INT", "TERM"), encoding="utf-8")
    assert "measured anew" in tree.bench().stdout, "its settings have changed"
    with pytest.raises(InputError, match='variant "a": "holds" goes with "server"'):
        loaded({"peer": "peer", "holds": "1"})


def test_a_peer_is_asked_for_the_smallest_file() -> None:
    """Whether it is there: to read more would warm what is measured."""
    files = {"files": {"a.bin": 1000, "pool/{0..2}.html": 50, "z.bin": 1000}}
    experiment = loaded({"peer": "nginx"}, docroot=files)
    run = load.LoadRun(experiment, experiment.variants[0], Context(UNPINNED, 60.0, lambda: None), {}, Path())
    assert load._probe(run) == Probe("pool/0.html", 50)


# ---- helpers and phases -------------------------------------------------------------------------

BESIDE: dict[str, Any] = {
    "phase": [{"name": "before"}, {"name": "during"}],
    "helper": [
        {"name": "disk", "command": ["{bin}/helper", "disk"]},
        {
            "name": "attack",
            "command": ["{bin}/helper", "{url}"],
            "after_server": True,
            "phases": ["during"],
        },
    ],
}
HELPER = """\
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
with open("helpers", "a") as file:
    file.write(sys.argv[1].split(":")[0] + "\\n")
print("ready", flush=True)
time.sleep(60)
"""
TELLING = """(print('ended', '{"held": 7, "kinds": {"idle": 3}}', sep='\\n'), sys.exit(143))"""


def test_helpers_run_beside_and_phases_have_their_own_scalars(tree: Tree) -> None:
    """A helper may tell something at its end, and of the signal that ended it. The server keeps
    8 MiB for each request, and each phase has one.
    """
    growing = "client.recv(1000)\n    held.append(bytearray(8 << 20))"
    server = SERVER.format(before="held = []").replace("client.recv(1000)", growing)
    programs(tree)
    tree.program("fake-server", server)
    tree.program("helper", HELPER.replace("sys.exit(0)", TELLING))
    scalars = measure(tree, loaded(**BESIDE)).scalars
    assert scalars["before.requests_per_s"] == scalars["during.requests_per_s"] == 500
    assert scalars["requests_served"] == 250
    assert (scalars["attack.held"], scalars["attack.kinds.idle"], scalars["disk.held"]) == (7, 3, 7)
    assert (tree.root / "helpers").read_text(encoding="utf-8") == "disk\nhttp\n"
    more = scalars["during.server_pss_kib"] - scalars["before.server_pss_kib"]
    assert more == pytest.approx(8 << 10, rel=0.2)
    assert scalars["server_pss_kib"] == pytest.approx(scalars["during.server_pss_kib"], rel=0.2)
    assert "before.kernel_slab_kib" in scalars


def test_a_helper_that_knows_no_signals_is_ended_by_ours(tree: Tree) -> None:
    programs(tree)
    tree.program("helper", HELPER.replace("lambda *_: sys.exit(0)", "signal.SIG_DFL"))
    assert measure(tree, loaded(**BESIDE)).scalars["requests_served"] == 250


def test_a_helper_that_fails_at_its_end_fails_the_repetition(tree: Tree) -> None:
    programs(tree)
    tree.program("helper", HELPER.replace("sys.exit(0)", 'sys.exit("one is gone")'))
    with pytest.raises(RepetitionError, match="^attack ended with status 1: one is gone"):
        measure(tree, loaded(**BESIDE))
    for words in ("", "{", "{]", "ended", "7", "[" * 100_000, f'{{"held": 1{400 * "0"}}}'):
        assert load_tools.parse_last_line(words) == {}


# ---- profiles, many connections, other tools -----------------------------------------------------


def test_what_a_profile_needs_is_asked_for_in_that_profile_alone(tmp_path: Path) -> None:
    """And what was measured with consent stays when it is not given again."""
    data = definition()
    data["profile"]["full"]["needs"] = ["a-program-nobody-has"]
    experiment = parsed(**data)
    path = write(result_set(experiment, {"a": [1.0], "b": [1.0]}), tmp_path / "sample.jsonl")
    before = path.read_bytes()
    why = "a-program-nobody-has is not installed (apt-get install a-program-nobody-has)"
    assert prepare(experiment, "full", tmp_path, Session()) == (
        None,
        [f"sample profile full: {why}"],
    )
    assert prepare(experiment, "quick", tmp_path, Session())[0]
    assert path.read_bytes() == before


def test_servers_share_the_connections_one_may_not_hold(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "smallest", lambda _: Cap(936, "descriptors"))
    programs(tree, hammer="open('urls', 'w').write(open(sys.argv[1]).read())")
    files = {"files": {"a.html": 100, "pool/{0..2}.html": 50}}
    words = {"args": ["{urls}", "{url}"]}
    sweep = {"connections": [1, 936, 937]}
    experiment = loaded({"holds": "{connections}"}, docroot=files, hammer=words, sweep=sweep)
    for connections, servers in ((0, 1), (1, 1), (936, 1), (937, 2)):
        scalars = measure(tree, experiment, connections=connections).scalars
        assert scalars["server_processes"] == servers
        assert scalars["server_cpu_s"] >= 0.05 * servers, "of all of them"
        urls = (tree.root / "urls").read_text(encoding="utf-8").split()
        assert len(set(urls)) == 4 * servers
        assert [url.rpartition("/")[2] for url in urls[:servers]] == ["a.html"] * servers
    with pytest.raises(InputError, match=r'^"holds": "many" \(\{connections\}\) is no number$'):
        measure(tree, experiment, connections="many")


def test_tsung_loads_this_host_alone_until_somebody_changes_its_file() -> None:
    root = ElementTree.parse(BENCHMARKS / "tsung" / "quest.xml").getroot()
    clients = [dict(client.attrib) for client in root.iter("client")]
    assert [(c["host"], c["use_controller_vm"]) for c in clients] == [("localhost", "true")]
    assert [server.attrib["host"] for server in root.iter("server")] == ["127.0.0.1"]
    phases = list(root.iter("arrivalphase"))
    assert {phase.attrib["unit"] for phase in phases} == {"second"}
    assert sum(int(phase.attrib["duration"]) for phase in phases) <= 30
