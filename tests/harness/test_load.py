"""Load experiments: a made-up server under a made-up hammer."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest
from made_up import BENCHMARKS, Tree, await_
from test_tools import WRK

from harness.run import load_tools
from harness.system import cpus

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
address, port = sys.argv[-1].split("/")[2].split(":")
client = socket.create_connection((address, int(port)))
client.sendall(b"x")
docroot = client.recv(1000).decode()
{extra}
print(json.dumps({{
    "schema": 1, "requests": 100, "failed": {failed}, "errors": {{}}, "requests_per_s": 500.0,
    "seconds": 0.2, "client_bound": False, "bytes": {{"total": 100000}},
    "warm_up": {{"requests": 25}}, "little": {{"ratio": {little}}},
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
[x]
parameter = "connections"
title = "connections"
[[variant]]
name = "server"
{variant}
[[metric]]
name = "rate"
scalar = "requests_per_s"
unit = "requests/s"
better = "higher"
{extra}
"""


def make(
    tree: Tree,
    variant: str = 'server = "fake-server"',
    extra: str = "",
    before: str = "",
    **hammer: Any,
) -> None:
    tree.experiment(text=EXPERIMENT.format(variant=variant, extra=extra))
    tree.program("fake-server", SERVER.format(before=before))
    settings = {"extra": "", "failed": 0, "little": 1.0, **hammer}
    tree.program("hammer", HAMMER.format(**settings))


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


def test_without_a_load_the_server_is_measured_all_the_same(tree: Tree) -> None:
    make(tree, variant='server = "fake-server"\nload = "none"')
    tree.edit(("requests_per_s", "server_pss_kib"))
    scalars = scalars_of(tree)
    assert scalars["requests_served"] == 0
    assert scalars["server_pss_kib"] > 0
    assert scalars["server_statm_resident_kib"] > 0
    assert "kernel_slab_kib" in scalars


PLACED = """
import json, os, sys
with open("placed", "a") as file:
    print(json.dumps([sys.argv, sorted(os.sched_getaffinity(0))]), file=file)
"""


def test_each_worker_has_a_core_and_the_load_the_others(tree: Tree) -> None:
    """Where there are no two cores for workers, two of them share one, and that is marked."""
    variant = 'server = "fake-server"\nargs = ["-w", "{workers}"]'
    make(tree, variant=variant, before=PLACED)
    tree.program("hammer", HAMMER.format(extra=PLACED, failed=0, little=1.0))
    tree.edit(
        ('kind = "load"', 'kind = "load"\npin = "workers"'),
        ("connections = [1, 4]", "workers = [1, 2]"),
        ('"{connections}"', '"{workers*128}", "-t", "{load_cpus}"'),
        ('"connections"', '"workers"'),
    )
    scalars_of(tree)
    allowed = cpus.allowed()
    whole = cpus.place("workers", cpus.cores(allowed), allowed)
    placed = [json.loads(line) for line in (tree.root / "placed").read_text().splitlines()]
    for repetition, server, load in zip(
        tree.of_type("repetition"), placed[::2], placed[1::2], strict=True
    ):
        workers = repetition["params"]["workers"]
        narrow = cpus.narrowed(whole, workers)
        assert server[0][5:7] == ["-w", str(workers)]
        assert load[0][1:5] == ["-c", str(128 * workers), "-t", str(len(whole.load))]
        assert (server[1], load[1]) == (sorted(narrow.measured), sorted(whole.load))
        assert ("shared-core" in repetition["marks"]) == ("shared-core" in narrow.marks)
    assert sorted(r["params"]["workers"] for r in tree.of_type("repetition")) == [1, 2]


# ---- what goes wrong ----------------------------------------------------------------------------


def test_doubtful_results_are_marked_and_kept(tree: Tree) -> None:
    make(tree, failed=3, little=0.7)
    scalars_of(tree)
    assert {"errors", "little"} <= set(tree.of_type("repetition")[0]["marks"])


@pytest.mark.parametrize(
    ("program", "source", "why"),
    [
        ("fake-server", "sys.exit('fake-server: bind 127.0.0.1:80: Permission denied')",
         "fake-server ended with status 1: fake-server: bind 127.0.0.1:80: Permission denied"),
        ("fake-server", "print('hello', flush=True)",
         'fake-server: no listening line, but "hello"'),
        ("fake-server", "socket.socket.close = lambda *_: os.kill(os.getpid(), 11)",
         "fake-server was ended by SIGSEGV"),
        ("hammer", "sys.exit('hammer: nothing fetched')",
         "hammer ended with status 1: hammer: nothing fetched"),
    ],
)  # fmt: skip
def test_what_fails_is_a_failure_and_leaves_nothing(
    tree: Tree, program: str, source: str, why: str
) -> None:
    make(tree, before=source if program == "fake-server" else "")
    if program == "hammer":
        tree.program("hammer", f"import sys; {source}")
    done = tree.bench()
    assert done.returncode == 1
    assert f"failed: sample server: {why}" in done.stderr
    assert tree.processes("build/bin") == []


def test_a_server_that_cannot_run_here_is_a_skip(tree: Tree) -> None:
    make(tree, before="sys.stderr.write('13-uring: io_uring is switched off\\n'); sys.exit(77)")
    done = tree.bench()
    assert done.returncode == 0
    assert "skipped: sample server: 13-uring: io_uring is switched off" in done.stdout


@pytest.mark.parametrize("how", ["Ctrl-C", "SIGKILL", "make is killed"])
def test_nothing_outlives_a_harness_that_is_ended(tree: Tree, how: str) -> None:
    make(tree)
    tree.program("hammer", "import time; time.sleep(60)")
    if how == "make is killed":
        command = f"{sys.executable} -m harness bench --profile smoke || exit 1"
        (tree.root / "Makefile").write_text(f"all:\n\t{command}\n", encoding="utf-8")
        process = subprocess.Popen(
            ["make"], cwd=tree.root, env={**os.environ, "PYTHONPATH": str(BENCHMARKS)},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
    else:
        process = tree.start("bench", "--profile", "smoke")
    await_(lambda: tree.processes("bin/hammer"), process)
    assert tree.processes("fake-server")
    # make tells its shells, and a shell tells nobody
    process.send_signal({"Ctrl-C": signal.SIGINT, "SIGKILL": signal.SIGKILL}.get(how, 15))
    process.communicate(timeout=20)
    if how == "Ctrl-C":
        assert process.returncode == 130
    await_(lambda: not tree.processes("harness") and not tree.processes("build/bin"))


PEER = """\
title = "A peer"
program = "build/bin/peer"
command = ["build/bin/peer", "{scratch}/peer.conf"]
stop = "QUIT"
[files]
"peer.conf" = "port @port@ root @docroot@ workers @workers@"
"""
PEER_PROGRAM = """\
import signal, socket, sys
if sys.argv[1] == "--version":
    sys.exit("peer 1.0")
words = open(sys.argv[1]).read().split()
signal.signal(signal.SIGQUIT, lambda *_: sys.exit(0))
sock = socket.create_server(("127.0.0.1", int(words[1])))
while True:
    client, _ = sock.accept()
    if client.recv(1000).startswith(b"GET /pool/0.html "):
        client.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 50\\r\\n\\r\\n" + b"x" * 50)
    else:
        client.sendall(words[5].encode())
    client.close()
"""


def test_a_peer_is_configured_started_and_ended(tree: Tree) -> None:
    make(tree, variant='peer = "peer"\nset = { workers = 4 }')
    done = tree.bench()
    assert done.returncode == 1
    assert done.stderr == "benchmarks/peers/peer.toml: No such file or directory\n"
    file = tree.root / "benchmarks" / "peers" / "peer.toml"
    file.parent.mkdir()
    file.write_text(PEER, encoding="utf-8")
    tree.program("peer", PEER_PROGRAM)
    assert scalars_of(tree)["requests_served"] == 126  # the probe too
    run = tree.records()[0]
    assert run["environment"]["peers"] == {"peer": "peer 1.0"}
    assert re.fullmatch("[0-9a-f]{64}", run["programs"]["peers/peer"])
    file.write_text(PEER.replace("root @docroot@", "root  @docroot@"), encoding="utf-8")
    assert "measured anew" in tree.bench().stdout, "its settings have changed"
    tree.edit(("set =", 'holds = "{connections}"\nset ='))
    done = tree.bench()
    assert done.stderr.endswith('variant "server": "holds" goes with "server"\n')


# ---- helpers and phases -------------------------------------------------------------------------

PHASES = '[[phase]]\nname = "before"\n[[phase]]\nname = "during"\n'
HELPERS = """
[[helper]]
name = "disk"
command = ["{bin}/helper", "disk"]
[[helper]]
name = "attack"
command = ["{bin}/helper", "{url}"]
after_server = true
phases = ["during"]
"""
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
    """A helper may tell something at its end, and of the signal that ended it."""
    make(tree, extra=PHASES + HELPERS)
    tree.program("helper", HELPER.replace("sys.exit(0)", TELLING))
    scalars = scalars_of(tree)
    assert scalars["before.requests_per_s"] == scalars["during.requests_per_s"] == 500
    assert scalars["requests_served"] == 250
    assert (scalars["attack.held"], scalars["attack.kinds.idle"], scalars["disk.held"]) == (7, 3, 7)
    assert (tree.root / "helpers").read_text(encoding="utf-8") == "disk\nhttp\n" * 2


def test_a_helper_that_fails_at_its_end_fails_the_repetition(tree: Tree) -> None:
    make(tree, extra=PHASES + HELPERS)
    tree.program("helper", HELPER.replace("sys.exit(0)", 'sys.exit("one is gone")'))
    assert tree.bench().returncode == 1
    assert tree.of_type("failure")[0]["error"] == "attack ended with status 1: one is gone"
    for words in ("", "{", "{]", "ended", "7"):
        assert load_tools.read_helper(words) == {}


@pytest.mark.parametrize(
    ("flag", "prints", "ok"), [("", True, False), ("true", True, True), ("true", False, False)]
)
def test_that_nobody_was_served_may_be_a_result(
    tree: Tree, flag: str, prints: bool, ok: bool
) -> None:
    """hammer ends with status 1 then; where it has printed nothing it has failed all the same."""
    make(tree, extra='[[phase]]\nname = "during"\n' + (f"may_fail = {flag}\n" if flag else ""))
    hammer = HAMMER.format(extra="", failed=100, little=1.0) + "sys.exit('nobody')\n"
    tree.program("hammer", hammer if prints else "import sys\nsys.exit('no memory')\n")
    done = tree.bench()
    assert done.returncode == (0 if ok else 1)
    if ok:
        assert tree.of_type("repetition")[0]["scalars"]["during.failed"] == 100
    else:
        why = "nobody" if prints else "no memory"
        assert tree.of_type("failure")[0]["error"] == f"hammer ended with status 1: {why}"


def test_memory_is_noted_at_the_end_of_each_phase(tree: Tree) -> None:
    """The server keeps 8 MiB for each request, and each phase has one."""
    make(tree, extra=PHASES, before="held = []")
    server = SERVER.format(before="held = []")
    growing = "client.recv(1000)\n    held.append(bytearray(8 << 20))"
    tree.program("fake-server", server.replace("client.recv(1000)", growing))
    scalars = scalars_of(tree)
    more = scalars["during.server_pss_kib"] - scalars["before.server_pss_kib"]
    assert more == pytest.approx(8 << 10, rel=0.2)
    assert scalars["server_pss_kib"] == pytest.approx(scalars["during.server_pss_kib"], rel=0.2)
    assert "before.kernel_slab_kib" in scalars


# ---- profiles, many connections, other tools -----------------------------------------------------


def test_what_a_profile_needs_is_asked_for_in_that_profile_alone(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what was measured with consent stays when it is not given again."""
    make(tree)
    tree.edit(("[profile.full]", '[profile.full]\nneeds = ["many"]'))
    monkeypatch.setenv("MANY", "1")
    assert tree.run("bench", "--profile", "full").returncode == 0
    before = (tree.results / "sample.jsonl").read_bytes()
    monkeypatch.delenv("MANY")
    done = tree.run("bench", "--profile", "full")
    assert done.returncode == 0
    assert "sample profile full: so many processes or connections" in done.stdout
    assert "all else is measured" in done.stdout
    assert (tree.results / "sample.jsonl").read_bytes() == before


@pytest.mark.parametrize(("connections", "servers"), [(1, 1), (936, 1), (937, 2)])
def test_servers_share_the_connections_one_may_not_hold(
    tree: Tree, connections: int, servers: int
) -> None:
    """Of 1000 descriptors 64 are for other things."""
    make(tree, variant='server = "fake-server"\nholds = "{connections}"')
    tree.edit(("[1, 4]", f"[{connections}]"), ('["-c",', '["{urls}", "-c",'))
    listing = "open('urls', 'w').write(open(sys.argv[1]).read())"
    tree.program("hammer", HAMMER.format(extra=listing, failed=0, little=1.0))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    process = tree.start("bench", "--profile", "smoke")
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (min(soft, 1000), min(hard, 1000)))
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, ""), out
    scalars = tree.of_type("repetition")[0]["scalars"]
    assert scalars["server_processes"] == servers
    assert scalars["server_cpu_s"] >= 0.05 * servers, "of all of them"
    urls = (tree.root / "urls").read_text(encoding="utf-8").split()
    assert len(set(urls)) == 4 * servers
    assert [url.rpartition("/")[2] for url in urls[:servers]] == ["a.html"] * servers


def test_other_load_tools_fill_the_same_scalars(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tree, variant='server = "fake-server"\nload = "wrk"', extra='[wrk]\nargs = ["{url}"]')
    wrk = tree.program("wrk", f"print({WRK!r})")
    monkeypatch.setenv("PATH", f"{wrk.parent}{os.pathsep}{os.environ['PATH']}")
    assert scalars_of(tree)["requests_per_s"] == 4000
    assert "errors" in tree.of_type("repetition")[0]["marks"]


def test_tsung_loads_this_host_alone_until_somebody_changes_its_file() -> None:
    root = ElementTree.parse(BENCHMARKS / "tsung" / "quest.xml").getroot()
    clients = [dict(client.attrib) for client in root.iter("client")]
    assert [(c["host"], c["use_controller_vm"]) for c in clients] == [("localhost", "true")]
    assert [server.attrib["host"] for server in root.iter("server")] == ["127.0.0.1"]
    phases = list(root.iter("arrivalphase"))
    assert {phase.attrib["unit"] for phase in phases} == {"second"}
    assert sum(int(phase.attrib["duration"]) for phase in phases) <= 30
