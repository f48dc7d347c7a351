"""`bench` as a program: stopped, killed, started again, with things missing and things broken."""

import json
import os
import resource
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from quest.ground.places import link_of, numbered
from quest.measure.measure import prepare
from quest.measure.session import Session
from quest.spec import experiment_file, plan
from tests.harness.made_up import (
    BENCHMARKS,
    CHANGED,
    Tree,
    await_,
    damaged,
    identities,
    write_lines,
)


@pytest.fixture
def sample(tree: Tree) -> Tree:
    """A tree with a small experiment, and the program it starts."""
    tree.experiment()
    tree.program()
    return tree


def measured(tree: Tree) -> list[str]:
    return sorted(path.stem for path in tree.results.glob("*.jsonl"))


def whole_plan(tree: Tree) -> list[object]:
    """What the stored seed says is to be measured."""
    [definition] = experiment_file.load(tree.experiments / "sample.toml")
    run = tree.records()[0]
    profile = definition.profiles[run["profile"]]
    steps = plan.steps(definition, profile, run["seed"], ("a", "b"), {})
    return [(s.order, s.round, s.variant, json.dumps(s.params, sort_keys=True)) for s in steps]


def planned(tree: Tree) -> list[object]:
    """What is recorded of it. (On a machine with other work there are rounds beyond.)"""
    return identities(tree.records(), lambda record: record["round"] < tree.records()[0]["rounds"])


def test_an_experiment_is_measured_once_and_names_nobody(sample: Tree) -> None:
    first = sample.bench()
    assert (first.returncode, first.stderr) == (0, "")
    assert "[1/1] A sample (sample): about 30 s\n" in first.stdout
    assert first.stdout.endswith("1 experiment measured\n")
    records = sample.records()
    assert [record["type"] for record in records] == ["run", *["repetition"] * 6, "end"]
    assert records[1]["samples"] == {"live": [0, 1, 2], "ns": [1000, 1001, 1002]}
    assert records[1]["scalars"]["cpu_s"] > 0
    for key in ("kernel", "cpu", "cores", "limits", "sysctl", "mitigations", "libc", "load"):
        assert key in records[0]["environment"]
    for private in (str(sample.root), f"{Path.home()}/", "/tmp"):
        assert private not in json.dumps(records)
    # With nothing to do it returns at once, and loads nothing that is slow to load.
    code = (
        "import sys; from quest.__main__ import main\n"
        "status = main(['bench', 'PROFILE=smoke'])\n"
        "print(status, [m for m in ('scipy', 'numpy', 'quest.measure.load') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=sample.root, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(BENCHMARKS.parent)},
    )  # fmt: skip
    assert done.stdout == "everything is measured; `make distclean` removes the results\n0 []\n"
    assert sample.records() == records


@pytest.mark.slow
def test_what_no_longer_fits_is_measured_anew_and_nothing_is_lost(sample: Tree) -> None:
    sample.bench()
    before = (sample.results / "sample.jsonl").read_bytes()
    sample.program(extra="# another program")
    assert "measured anew" in sample.bench().stdout
    assert (sample.results / "old" / "sample-1.jsonl").read_bytes() == before
    records = sample.records()[:-2]
    records[0]["environment"]["kernel"] = "Linux 2.4.22"
    write_lines(map(json.dumps, records), sample.results / "sample.jsonl")
    done = sample.bench()
    assert "sample: measured anew, because kernel has changed" in done.stdout
    assert sample.of_type("resume") == []
    assert planned(sample) == whole_plan(sample)


def test_a_longer_profile_answers_for_a_shorter_one_but_not_the_reverse(
    sample: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sample.run("bench", "PROFILE=quick").returncode == 0
    monkeypatch.chdir(sample.root)
    [definition] = experiment_file.load(sample.experiments / "sample.toml")
    assert prepare(definition, "smoke", sample.results, Session()) == (None, [])
    job, _ = prepare(definition, "full", sample.results, Session())
    assert job
    assert (job.profile.name, job.old) == ("full", None)


@pytest.mark.slow
def test_which_experiments_are_chosen(tree: Tree) -> None:
    """By id or its beginning, by headline, and what is measured by name only."""
    for name in ("disk-seek", "disk-noatime", "fork"):
        tree.experiment(name, extra="[profile.headline]\nrounds = 1\nset = { n = 1 }")
    tree.edit(("[profile.smoke]", "[profile.smoke]\nby_name = true\nseconds = 90"), name="fork")
    tree.edit(('id = "fork"', 'id = "fork"\nheadline = true'), name="fork")
    tree.program()
    wrong = tree.bench("ONLY=dis")
    assert wrong.returncode == 2
    assert wrong.stderr == 'unknown experiment "dis" (known: disk-noatime, disk-seek, fork)\n'
    assert tree.bench("ONLY=disk").returncode == 0
    assert measured(tree) == ["disk-noatime", "disk-seek"]
    said = tree.bench().stdout
    assert "fork: measured only by name, 2 min for all (make bench ONLY=id,id)" in said
    assert "all else is measured" in said
    assert tree.run("headline").returncode == 0
    assert tree.records("fork")[0]["profile"] == "headline"
    assert "by name" not in tree.bench("ONLY=fork").stdout


# ---- what fails, what is missing ----------------------------------------------------------------


@pytest.mark.slow
def test_a_failing_repetition_is_recorded_and_tried_again(tree: Tree) -> None:
    tree.experiment(rounds=5)
    tree.edit(('"b"\ncommand = ["{bin}/fake"', '"b"\ncommand = ["{bin}/good"'))
    tree.program(extra="import os\nif os.path.exists('broken'): sys.exit('x: no luck')")
    tree.program("good")
    (tree.root / "broken").touch()
    first = tree.run("bench", "PROFILE=quick")
    assert first.returncode == 1
    assert "failed: sample a: a ended with status 1: x: no luck" in first.stderr
    assert {r["variant"] for r in tree.of_type("repetition")} == {"b"}
    end = tree.of_type("end")[0]
    assert (end["given_up"], end["failures"]) == (["a"], 10)
    assert len(tree.of_type("failure")) == 3  # then it was given up
    (tree.root / "broken").unlink()
    second = tree.run("bench", "PROFILE=quick")
    assert (second.returncode, second.stderr) == (0, "")
    assert len(tree.of_type("repetition")) == 15
    assert tree.records()[-1]["failures"] == 0


BAD = {
    "short": ("print('a\\tb'); print('1')", "line 2 of stdout has 1 columns, the header 2"),
    "silent": ("", "no header line on stdout"),
    "empty": ("print('ns')", "no samples on stdout"),
    "killed": ("import os; os.kill(os.getpid(), 9)", "killed was ended by SIGKILL"),
    "slow": ("time.sleep(60)", "slow did not end within 5 s"),
}


LACKING = {
    "needy": "a-program-nobody-has is not installed (apt-get install a-program-nobody-has)",
    "unbuilt": "build/bin/unbuilt is not built (make variants)",
    "unable": "unable: needs io_uring",
}


@pytest.mark.slow
def test_bad_output_is_no_sample_and_what_cannot_run_no_failure(sample: Tree) -> None:
    """That is said again at each call. Errors among the samples are counted and marked."""
    variant = '[[variant]]\nname = "{0}"\ncommand = ["{{bin}}/{0}", "-n", "1"]\n'
    needs = 'needs = ["a-program-nobody-has"]\n'
    names = [*BAD, "wrong", "unable", "unbuilt", "needy"]
    sample.experiment(extra="".join(map(variant.format, names)) + needs)
    sample.edit(("[profile.smoke]\nrounds = 2", "[profile.smoke]\ntimeout = 5\nrounds = 1"))
    for name, (does, _) in BAD.items():
        sample.program(name, extra=f"{does}\nsys.exit()")
    sample.program("wrong", extra="print('ns\\terror\\n1000\\t-\\n3\\tEMFILE')\nsys.exit()")
    sample.program("unable", extra="sys.stderr.write('unable: needs io_uring\\n'); sys.exit(77)")
    done = sample.bench()
    assert done.returncode == 1
    for name, (_, why) in BAD.items():
        assert f"failed: sample {name}: {why}\n" in done.stderr
    for name, why in LACKING.items():
        assert f"skipped: sample {name}: {why}\n" in done.stdout
    assert {r["variant"]: f"{r['reason']} ({r['remedy']})" for r in sample.of_type("skip")} == {
        **LACKING, "unable": f"{LACKING['unable']} ()"
    }  # fmt: skip
    found = {r["variant"]: r for r in sample.of_type("repetition")}
    assert sorted(found) == ["a", "a+aa", "b", "wrong"]
    assert found["wrong"]["samples"]["error"] == ["-", "EMFILE"]
    assert found["wrong"]["scalars"]["errors"] == 1
    assert "errors" in found["wrong"]["marks"]
    assert sample.processes("build/bin") == []
    for name in BAD:
        sample.program(name)
    assert f"skipped: sample needy: {LACKING['needy']}\n" in sample.bench().stdout
    again = sample.bench()
    assert again.returncode == 0
    assert f"skipped: sample needy: {LACKING['needy']}\n" in again.stdout
    assert again.stdout.endswith("all else is measured; `make distclean` removes the results\n")


def test_a_column_that_no_program_prints_is_one_line(sample: Tree) -> None:
    sample.edit(('column = "ns"', 'column = "nss"'))
    done = sample.bench()
    assert done.returncode == 1
    assert done.stderr == 'sample: metric "us": the program prints no column "nss"; it prints live, ns\n'
    assert len(sample.of_type("repetition")) == 6


def test_damaged_results_are_neither_taken_nor_in_the_way(tree: Tree) -> None:
    for name in ("one", "two"):
        tree.experiment(name)
    tree.program()
    tree.bench()
    two, path = (tree.results / f"{name}.jsonl" for name in ("two", "one"))
    two.write_bytes(two.read_bytes()[:100])  # as of one that was killed in its first line
    lines = path.read_bytes().splitlines(keepends=True)[:4]  # without an end
    lines[2] = lines[2].replace(b"[1000,", b"[100000,")
    path.write_bytes(b"".join(lines))
    done = tree.bench()
    assert done.returncode == 1
    assert done.stderr == damaged("build/results/one.jsonl:3", CHANGED) + "\n"
    assert path.read_bytes() == b"".join(lines)
    assert len(tree.of_type("repetition", "two")) == 6


def test_results_that_cannot_be_written_are_one_line(sample: Tree) -> None:
    (sample.root / "file").touch()
    done = sample.bench("BUILD=file")
    assert (done.returncode, done.stderr) == (2, "file/results: Not a directory\n")


def test_a_disk_that_is_full_is_one_line_and_the_next_run_goes_on(sample: Tree) -> None:
    """No file may have more than some KiB: half of the first line is written."""
    process = sample.start("bench", "PROFILE=smoke", inside=("sh", "-c", 'ulimit -f 2 && exec "$0" "$@"'))
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (1, "build/results/sample.jsonl: File too large\n")
    assert b"\n" not in (sample.results / "sample.jsonl").read_bytes()
    assert sample.bench().returncode == 0
    assert planned(sample) == whole_plan(sample)


@pytest.mark.slow
def test_two_measurements_do_not_measure_each_other(sample: Tree) -> None:
    """The second is refused; or, if the first soon ends, it finds that nothing is left to do."""
    sample.program(extra="import os\nwhile not os.path.exists('go'): time.sleep(0.02)")
    first = sample.start("bench", "PROFILE=smoke")
    await_(lambda: sample.processes("fake"), first)
    refused = sample.bench("BUILD=build/others")
    assert refused.returncode == 2
    assert refused.stderr == f"another measurement runs here (process {first.pid}): try again when it has ended\n"
    second = sample.start("bench", "PROFILE=smoke")
    lock = os.path.realpath(sample.root / "build/measuring.lock")
    descriptors = Path(f"/proc/{second.pid}/fd")
    await_(lambda: lock in map(link_of, numbered(descriptors)), second)
    (sample.root / "go").touch()
    for process, said in ((first, "1 experiment measured"), (second, "everything is measured")):
        out, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, "")
        assert said in out
    assert len(sample.of_type("repetition")) == 6
    assert not (sample.results / "old").exists()


def test_limits_reduce_what_is_taken_and_mark_it(sample: Tree) -> None:
    sample.experiment(extra='[caps]\nn = "processes"')
    sample.edit(("n = 3", "n = 100000"))
    old = resource.getrlimit(resource.RLIMIT_NPROC)
    try:
        resource.setrlimit(resource.RLIMIT_NPROC, (900, old[1]))
        done = sample.bench()
    finally:
        resource.setrlimit(resource.RLIMIT_NPROC, old)
    assert done.returncode == 0, done.stderr
    caps = sample.records()[0]["caps"]["n"]
    assert caps["wanted"] == 100000
    assert caps["most"] <= 225
    repetition = sample.of_type("repetition")[0]
    assert repetition["params"]["n"] == len(repetition["samples"]["ns"]) == caps["most"]
    assert "reduced" in repetition["marks"]


# ---- stopped ------------------------------------------------------------------------------------


def has_run(runs: Path, times: int) -> bool:
    return runs.exists() and runs.stat().st_size >= times


def test_who_starts_it_may_have_it_ignore_a_hangup(tree: Tree) -> None:
    """As nohup does, for the hours after one has logged out."""
    tree.experiment()
    tree.program(extra="import os, signal\nos.kill(os.getppid(), signal.SIGHUP)")
    for how, ends in (("ignore", 0), ("default", 128 + signal.SIGHUP)):
        process = tree.start("bench", "PROFILE=smoke", inside=["env", f"--{how}-signal=HUP"])
        _, err = process.communicate(timeout=60)
        assert process.returncode == ends, err
        (tree.results / "sample.jsonl").unlink(missing_ok=True)


@pytest.mark.slow
def test_stopped_anywhere_it_goes_on_and_ends_the_same(tree: Tree) -> None:
    """And leaves no process, nor the child of one."""
    tree.experiment(rounds=5)
    # Runs of the program that go on until the signal has come.
    held = {3: signal.SIGKILL, 8: signal.SIGTERM}
    tree.program(
        extra="import subprocess\nsubprocess.Popen(['sleep', '61.25'])\n"
        f"runs = open('runs', 'a'); runs.write('.'); runs.flush()\n"
        f"time.sleep(60 if runs.tell() in {(*held,)} else 0)"
    )
    runs = tree.root / "runs"
    for run, number in held.items():
        process = tree.start("bench", "PROFILE=quick")
        await_(partial(has_run, runs, run), process)
        process.send_signal(number)
        _, err = process.communicate(timeout=20)
        if number == signal.SIGKILL:
            assert process.returncode == -9
        else:
            assert process.returncode == 128 + number
            assert err == "stopped; the same command goes on from here\n"
        await_(lambda: not tree.processes("fake") and not tree.processes("61.25"))
    assert tree.run("bench", "PROFILE=quick").returncode == 0
    assert tree.processes("61.25") == []
    assert planned(tree) == whole_plan(tree)
    assert len(tree.of_type("resume")) == 2
    assert len(tree.of_type("end")) == 1
    assert not list((tree.root / "build" / "scratch").iterdir())
