"""Load experiments: a made-up server under a made-up hammer."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from made_up import BENCHMARKS, Tree
from test_bench import await_process, bench
from test_tools import WRK

from harness.run import load_tools, peers
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


def test_a_fresh_server_for_each_repetition_and_its_work_counted(tree: Tree) -> None:
    make(tree)
    done = bench(tree)
    assert (done.returncode, done.stderr) == (0, "")
    first, second = tree.of_type("repetition")
    assert {first["params"]["connections"], second["params"]["connections"]} == {1, 4}
    scalars = first["scalars"]
    assert scalars["requests_per_s"] == 500
    assert scalars["requests_served"] == 125
    assert scalars["server_cpu_s"] >= 0.05
    assert scalars["requests_per_cpu_s"] == pytest.approx(125 / scalars["server_cpu_s"])
    each = scalars["bytes_per_cpu_s"] / scalars["requests_per_cpu_s"]
    assert each == pytest.approx(1000)
    gigabytes = 125 * 1000 / 1e9
    assert scalars["user_s_per_gb"] == pytest.approx(scalars["server_user_s"] / gigabytes)
    assert scalars["system_s_per_gb"] == pytest.approx(scalars["server_system_s"] / gigabytes)
    assert scalars["segments_per_request"] >= 0
    for key in ("softirq_s", "server_voluntary_switches", "server_pss_kib", "client_cpu_s"):
        assert key in scalars
    own = scalars["server_voluntary_switches"]
    assert scalars["server_voluntary_per_request"] == pytest.approx(own / 125)
    assert scalars["machine_switches_per_s"] > 0
    assert scalars["machine_interrupts_per_s"] > 0
    assert first["histograms"] == {"total": [[4096, 100]]}
    assert tree.processes("fake-server") == []


def test_without_a_load_the_server_is_measured_all_the_same(tree: Tree) -> None:
    make(tree, variant='server = "fake-server"\nload = "none"')
    text = (tree.root / "benchmarks/experiments/sample.toml").read_text(encoding="utf-8")
    tree.experiment(text=text.replace("requests_per_s", "server_pss_kib"))
    done = bench(tree)
    assert (done.returncode, done.stderr) == (0, "")
    scalars = tree.of_type("repetition")[0]["scalars"]
    assert scalars["requests_served"] == 0
    assert scalars["server_pss_kib"] > 0
    assert scalars["server_statm_resident_kib"] > 0
    assert "kernel_slab_kib" in scalars


def test_server_and_load_are_on_different_cores_or_marked(tree: Tree) -> None:
    make(tree)
    bench(tree)
    run = tree.records()[0]
    pin = run["environment"]["pin"]
    if run["environment"]["cores"] >= 2:
        assert pin["measured"] != pin["load"]
    else:
        assert "shared-core" in tree.of_type("repetition")[0]["marks"]


PLACED = """
import json, os, sys
with open("placed", "a") as file:
    print(json.dumps([sys.argv, sorted(os.sched_getaffinity(0))]), file=file)
"""


def test_each_worker_has_a_core_and_the_load_the_others(tree: Tree) -> None:
    """Where there are no two cores for workers, two of them share one, and that is marked."""
    variant = 'server = "fake-server"\nargs = ["-w", "{workers}"]'
    make(tree, variant=variant, before=PLACED, extra="")
    tree.program("hammer", HAMMER.format(extra=PLACED, failed=0, little=1.0))
    text = (tree.experiments / "sample.toml").read_text(encoding="utf-8")
    text = text.replace('kind = "load"', 'kind = "load"\npin = "workers"')
    text = text.replace("connections = [1, 4]", "workers = [1, 2]")
    text = text.replace('"{connections}"', '"{workers*128}", "-t", "{load_cpus}"')
    tree.experiment(text=text.replace('"connections"', '"workers"'))
    done = bench(tree)
    assert (done.returncode, done.stderr) == (0, "")
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


def test_a_namespace_with_reno_or_a_mark(tree: Tree) -> None:
    make(tree)
    bench(tree)
    network = tree.records()[0]["environment"]["network"]
    marked = "no-namespace" in tree.of_type("repetition")[0]["marks"]
    assert network["namespace"] != marked
    if network["namespace"]:
        assert network["congestion_control"] == "reno"


def test_the_docroot_has_the_files_in_their_sizes(tree: Tree) -> None:
    make(tree)
    bench(tree)
    (folder,) = (tree.root / "build" / "docroot").iterdir()
    sizes = {str(p.relative_to(folder)): p.stat().st_size for p in folder.rglob("*.html")}
    assert sizes == {"a.html": 100, "pool/0.html": 50, "pool/1.html": 50, "pool/2.html": 50}


def test_doubtful_results_are_marked_and_kept(tree: Tree) -> None:
    make(tree, failed=3, little=0.7)
    assert bench(tree).returncode == 0
    assert {"errors", "little"} <= set(tree.of_type("repetition")[0]["marks"])


@pytest.mark.parametrize(
    ("before", "why"),
    [
        ("sys.exit('fake-server: bind 127.0.0.1:80: Permission denied')",
         "fake-server ended with status 1: fake-server: bind 127.0.0.1:80: Permission denied"),
        ("print('hello', flush=True)", 'fake-server: no listening line, but "hello"'),
    ],
)  # fmt: skip
def test_a_server_that_does_not_start_is_a_failure(tree: Tree, before: str, why: str) -> None:
    make(tree, before=before)
    done = bench(tree)
    assert done.returncode == 1
    assert f"failed: sample server: {why}" in done.stderr


def test_a_server_that_cannot_run_here_is_a_skip(tree: Tree) -> None:
    make(tree, before="sys.stderr.write('13-uring: io_uring is switched off\\n'); sys.exit(77)")
    done = bench(tree)
    assert done.returncode == 0
    assert "skipped: sample server: 13-uring: io_uring is switched off" in done.stdout


def test_a_server_that_dies_under_load_is_a_failure(tree: Tree) -> None:
    make(tree, extra="", before="")
    source = SERVER.format(before="").replace("client.close()", "os.kill(os.getpid(), 11)")
    tree.program("fake-server", source)
    assert "fake-server was ended by SIGSEGV" in bench(tree).stderr


def test_a_hammer_that_fails_takes_no_server_with_it(tree: Tree) -> None:
    make(tree)
    tree.program("hammer", "import sys; sys.exit('hammer: nothing fetched')")
    done = bench(tree)
    assert "hammer ended with status 1: hammer: nothing fetched" in done.stderr
    assert tree.processes("fake-server") == []


def test_ctrl_c_ends_server_and_load(tree: Tree) -> None:
    make(tree, extra="")
    tree.program("hammer", "import time; time.sleep(60)")
    process = tree.start("bench", "--profile", "smoke")
    await_process(tree, "bin/hammer")
    assert tree.processes("fake-server")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 130
    assert tree.processes("bin/hammer") == []
    assert tree.processes("fake-server") == []


def test_a_killed_harness_takes_server_and_load_with_it(tree: Tree) -> None:
    make(tree)
    tree.program("hammer", "import time; time.sleep(60)")
    process = tree.start("bench", "--profile", "smoke")
    await_process(tree, "bin/hammer")
    process.kill()
    process.communicate(timeout=20)
    deadline = time.monotonic() + 5
    while tree.processes("build/bin") and time.monotonic() < deadline:
        time.sleep(0.02)
    assert tree.processes("build/bin") == []


def test_a_make_that_is_killed_takes_the_harness_with_it(tree: Tree) -> None:
    make(tree)
    tree.program("hammer", "import time; time.sleep(60)")
    command = f"{sys.executable} -m harness bench --profile smoke || exit 1"
    (tree.root / "Makefile").write_text(f"all:\n\t{command}\n", encoding="utf-8")
    process = subprocess.Popen(
        ["make"],
        cwd=tree.root,
        env={**os.environ, "PYTHONPATH": str(BENCHMARKS)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    await_process(tree, "bin/hammer")
    process.terminate()  # make tells its shells, and a shell tells nobody
    process.wait(timeout=20)
    deadline = time.monotonic() + 20
    while tree.processes("harness") and time.monotonic() < deadline:
        time.sleep(0.02)
    left = tree.processes("harness") + tree.processes("build/bin")
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


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
    make(tree, variant='peer = "peer"\nset = { workers = 4 }', extra="")
    peers = tree.root / "benchmarks" / "peers"
    peers.mkdir()
    (peers / "peer.toml").write_text(PEER, encoding="utf-8")
    tree.program("peer", PEER_PROGRAM)
    done = bench(tree)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(tree.of_type("repetition")) == 2
    assert tree.of_type("repetition")[0]["scalars"]["requests_served"] == 126  # the probe too
    run = tree.records()[0]
    assert run["environment"]["peers"] == {"peer": "peer 1.0"}
    assert re.fullmatch("[0-9a-f]{64}", run["programs"]["peers/peer"])
    text = PEER.replace("root @docroot@", "root  @docroot@")
    (peers / "peer.toml").write_text(text, encoding="utf-8")
    assert "measured anew" in bench(tree).stdout, "its settings have changed"


@pytest.mark.parametrize("path", sorted((BENCHMARKS / "peers").glob("*.toml")), ids=str)
def test_the_peers_that_are_there_can_be_read(path: Path) -> None:
    peer = peers.load(path.stem, path.parent)
    assert peer.title
    assert peer.program in peer.command
    assert any("{port}" in word for word in peer.command) or peer.files


def test_a_peer_without_a_file_is_one_line(tree: Tree) -> None:
    make(tree, variant='peer = "nobody"')
    done = bench(tree)
    assert done.returncode == 1
    assert done.stderr == "benchmarks/peers/nobody.toml: No such file or directory\n"


HELPERS = """
[[helper]]
name = "disk"
command = ["{bin}/helper", "disk"]
[[helper]]
name = "attack"
command = ["{bin}/helper", "{url}"]
after_server = true
phases = ["during"]
[[phase]]
name = "before"
[[phase]]
name = "during"
"""
HELPER = """\
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
with open("helpers", "a") as file:
    file.write(sys.argv[1].split(":")[0] + "\\n")
print("ready", flush=True)
time.sleep(60)
"""


def test_helpers_run_beside_and_phases_have_their_own_scalars(tree: Tree) -> None:
    make(tree, extra=HELPERS)
    tree.program("helper", HELPER)
    done = bench(tree)
    assert (done.returncode, done.stderr) == (0, "")
    scalars = tree.of_type("repetition")[0]["scalars"]
    assert scalars["before.requests_per_s"] == scalars["during.requests_per_s"] == 500
    assert scalars["requests_served"] == 250
    text = (tree.root / "helpers").read_text(encoding="utf-8")
    assert text == "disk\nhttp\n" * 2
    assert tree.processes("helper") == []


TELLING = HELPER.replace(
    "sys.exit(0)",
    "(print('ended', '{\"held\": 7, \"kinds\": {\"idle\": 3}}', sep='\\n'), sys.exit(0))",
)


def test_what_a_helper_tells_at_its_end_is_kept_under_its_name(tree: Tree) -> None:
    make(tree, extra=HELPERS)
    tree.program("helper", TELLING)
    done = bench(tree)
    assert (done.returncode, done.stderr) == (0, "")
    scalars = tree.of_type("repetition")[0]["scalars"]
    assert (scalars["attack.held"], scalars["attack.kinds.idle"]) == (7, 3)
    assert scalars["disk.held"] == 7


@pytest.mark.parametrize("words", ["", "{", "{]", "ended", "7"])
def test_a_helper_may_tell_anything(words: str) -> None:
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
    done = bench(tree)
    assert done.returncode == (0 if ok else 1)
    if ok:
        assert tree.of_type("repetition")[0]["scalars"]["during.failed"] == 100
    else:
        why = "nobody" if prints else "no memory"
        assert tree.of_type("failure")[0]["error"] == f"hammer ended with status 1: {why}"


def test_what_a_profile_needs_is_asked_for_in_that_profile_alone(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what was measured with consent stays when it is not given again."""
    make(tree)
    path = tree.experiments / "sample.toml"
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace("[profile.full]", '[profile.full]\nneeds = ["many"]'), encoding="utf-8"
    )
    monkeypatch.setenv("MANY", "1")
    assert tree.run("bench", "--profile", "full").returncode == 0
    before = (tree.results / "sample.jsonl").read_bytes()
    monkeypatch.delenv("MANY")
    done = tree.run("bench", "--profile", "full")
    assert done.returncode == 0
    assert "sample profile full: so many processes or connections" in done.stdout
    assert "all else is measured" in done.stdout
    assert (tree.results / "sample.jsonl").read_bytes() == before
    (tree.results / "sample.jsonl").unlink()
    assert bench(tree).returncode == 0
    assert tree.of_type("run")[0]["profile"] == "smoke"


GROWING = """\
held = []
def grow(request):
    held.append(bytearray(8 << 20))
"""


def test_memory_is_noted_at_the_end_of_each_phase(tree: Tree) -> None:
    """The server keeps 8 MiB for each request, and each phase has one."""
    make(tree, extra='[[phase]]\nname = "before"\n[[phase]]\nname = "during"\n')
    server = SERVER.replace("client.recv(1000)", "grow(client.recv(1000))")
    tree.program("fake-server", server.format(before=GROWING))
    done = bench(tree)
    assert (done.returncode, done.stderr) == (0, "")
    scalars = tree.of_type("repetition")[0]["scalars"]
    more = scalars["during.server_pss_kib"] - scalars["before.server_pss_kib"]
    assert more == pytest.approx(8 << 10, rel=0.2)
    assert scalars["server_pss_kib"] == pytest.approx(scalars["during.server_pss_kib"], rel=0.2)
    assert "before.kernel_slab_kib" in scalars


def test_a_helper_that_fails_at_its_end_fails_the_repetition(tree: Tree) -> None:
    make(tree, extra=HELPERS)
    tree.program("helper", HELPER.replace("sys.exit(0)", 'sys.exit("one is gone")'))
    done = bench(tree)
    assert done.returncode == 1
    assert tree.of_type("failure")[0]["error"] == "attack ended with status 1: one is gone"


@pytest.mark.parametrize("end", ["0", "143"])
def test_a_helper_may_tell_of_the_signal_that_ended_it(tree: Tree, end: str) -> None:
    make(tree, extra=HELPERS)
    tree.program("helper", HELPER.replace("sys.exit(0)", f"sys.exit({end})"))
    done = bench(tree)
    assert (done.returncode, done.stderr) == (0, "")


LISTING = """
with open("urls", "a") as file:
    file.write(open(sys.argv[1]).read() + "\\n")
"""


@pytest.mark.parametrize(("connections", "servers"), [(1, 1), (936, 1), (937, 2)])
def test_servers_share_the_connections_one_may_not_hold(
    tree: Tree, connections: int, servers: int
) -> None:
    """Of 1000 descriptors 64 are for other things."""
    make(tree, variant='server = "fake-server"\nholds = "{connections}"')
    path = tree.experiments / "sample.toml"
    text = path.read_text(encoding="utf-8").replace("[1, 4]", f"[{connections}]")
    path.write_text(text.replace('["-c",', '["{urls}", "-c",'), encoding="utf-8")
    tree.program("hammer", HAMMER.format(extra=LISTING, failed=0, little=1.0))
    script = f"ulimit -n 1000 && {sys.executable} -m harness bench --profile smoke"
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=tree.root,
        env={**os.environ, "PYTHONPATH": str(BENCHMARKS)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    scalars = tree.of_type("repetition")[0]["scalars"]
    assert scalars["server_processes"] == servers
    assert scalars["server_cpu_s"] >= 0.05 * servers, "of all of them"
    urls = (tree.root / "urls").read_text(encoding="utf-8").split()
    assert len(set(urls)) == 4 * servers
    assert [url.rpartition("/")[2] for url in urls[:servers]] == ["a.html"] * servers
    assert tree.processes("fake-server") == []


def test_a_peer_holds_no_shares(tree: Tree) -> None:
    make(tree, variant='peer = "peer"\nholds = "{connections}"')
    done = bench(tree)
    assert done.returncode == 2
    assert done.stderr.endswith('variant "server": "holds" goes with "server"\n')


def test_other_load_tools_fill_the_same_scalars(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tree, variant='server = "fake-server"\nload = "wrk"', extra='[wrk]\nargs = ["{url}"]')
    wrk = tree.program("wrk", f"print({WRK!r})")
    monkeypatch.setenv("PATH", f"{wrk.parent}{os.pathsep}{os.environ['PATH']}")
    done = bench(tree)
    assert (done.returncode, done.stderr) == (0, "")
    repetition = tree.of_type("repetition")[0]
    assert repetition["scalars"]["requests_per_s"] == 4000
    assert "errors" in repetition["marks"]
