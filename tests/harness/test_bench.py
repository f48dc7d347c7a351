"""`bench` as a program: stopped, killed, started again, with things missing and things broken."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from made_up import CHANGED, Tree, damaged, identities, write_lines

from harness.spec import experiment_file, plan

NEEDS_A_MISSING_PROGRAM = """
[[variant]]
name = "c"
command = ["{bin}/fake", "-n", "{n}"]
needs = ["a-program-nobody-has"]
"""


def bench(tree: Tree, *more: str) -> subprocess.CompletedProcess[str]:
    return tree.run("bench", "--profile", "smoke", *more)


def await_records(tree: Tree, process: subprocess.Popen[str], count: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            if len(tree.of_type("repetition")) >= count:
                return
        except (OSError, json.JSONDecodeError):
            pass
        assert process.poll() is None
        time.sleep(0.01)
    raise AssertionError("the measurement did not get going")


def await_run(tree: Tree, process: subprocess.Popen[str], number: int) -> None:
    """Until a program that writes a byte each time has been started for so many times."""
    runs = tree.root / "runs"
    deadline = time.monotonic() + 30
    while not runs.exists() or runs.stat().st_size < number:
        assert process.poll() is None
        assert time.monotonic() < deadline, "the measurement did not get going"
        time.sleep(0.005)


def await_process(tree: Tree, marker: str) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if tree.processes(marker):
            return
        time.sleep(0.005)
    raise AssertionError(f"{marker} was not started")


# ---- micro --------------------------------------------------------------------------------------


def test_a_micro_experiment_is_measured_once(tree: Tree) -> None:
    tree.experiment()
    tree.program()
    first = bench(tree)
    assert (first.returncode, first.stderr) == (0, "")
    assert "1 experiment measured" in first.stdout
    types = [record["type"] for record in tree.records()]
    assert types == ["run", *["repetition"] * 6, "end"]
    repetition = tree.of_type("repetition")[0]
    assert repetition["samples"] == {"live": [0, 1, 2], "ns": [1000, 1001, 1002]}
    assert repetition["scalars"]["cpu_s"] > 0
    before = tree.records()
    second = bench(tree)
    assert second.returncode == 0
    assert "everything is measured" in second.stdout
    assert tree.records() == before


def test_the_set_knows_its_environment_and_names_nobody(tree: Tree) -> None:
    tree.experiment()
    tree.program()
    bench(tree)
    run = tree.records()[0]
    for key in ("kernel", "cpu", "cores", "limits", "sysctl", "mitigations", "libc", "load"):
        assert key in run["environment"]
    text = json.dumps(tree.records())
    assert str(tree.root) not in text
    assert str(Path.home()) + "/" not in text
    assert "/tmp" not in text


def test_a_changed_program_is_measured_anew_and_nothing_is_lost(tree: Tree) -> None:
    tree.experiment()
    tree.program()
    bench(tree)
    plan_before = tree.records()[0]["plan"]
    before = (tree.results / "sample.jsonl").read_bytes()
    tree.program(extra="# another program")
    assert "measured anew" in bench(tree).stdout
    assert (tree.results / "old" / "sample-1.jsonl").read_bytes() == before
    assert tree.records()[0]["plan"] != plan_before


def test_a_longer_profile_answers_for_a_shorter_one_but_not_the_reverse(tree: Tree) -> None:
    tree.experiment()
    tree.program()
    assert tree.run("bench", "--profile", "quick").returncode == 0
    assert "everything is measured" in bench(tree).stdout
    assert "1 experiment measured" in tree.run("bench", "--profile", "full").stdout
    assert tree.records()[0]["profile"] == "full"


def test_only_takes_ids_and_their_beginnings(tree: Tree) -> None:
    for name in ("disk-seek", "disk-noatime", "fork"):
        tree.experiment(name)
    tree.program()
    assert bench(tree, "--only", "disk").returncode == 0
    assert sorted(p.stem for p in tree.results.glob("*.jsonl")) == ["disk-noatime", "disk-seek"]
    wrong = bench(tree, "--only", "dis")
    assert wrong.returncode == 2
    assert wrong.stderr == 'unknown experiment "dis" (known: disk-noatime, disk-seek, fork)\n'


def test_headline_takes_only_what_is_one(tree: Tree) -> None:
    tree.experiment("one", extra="[profile.headline]\nrounds = 1\nset = { n = 1 }")
    tree.experiment("two")
    path = tree.experiments / "one.toml"
    path.write_text("headline = true\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    tree.program()
    assert tree.run("bench", "--headline").returncode == 0
    assert [p.stem for p in tree.results.glob("*.jsonl")] == ["one"]
    assert tree.records("one")[0]["profile"] == "headline"


def test_what_is_measured_by_name_only_is_named(tree: Tree) -> None:
    for name in ("one", "two", "three"):
        tree.experiment(name)
    for name in ("one", "two"):
        path = tree.experiments / f"{name}.toml"
        text = path.read_text(encoding="utf-8")
        text = text.replace("[profile.smoke]", "[profile.smoke]\nby_name = true\nseconds = 90")
        path.write_text(text, encoding="utf-8")
    tree.program()
    done = bench(tree)
    assert done.returncode == 0
    assert [p.stem for p in tree.results.glob("*.jsonl")] == ["three"]
    assert "one, two: measured only by name, 3 min for all (make bench ONLY=id,id)" in done.stdout
    assert "by name" not in bench(tree, "--only", "two").stdout
    assert sorted(p.stem for p in tree.results.glob("*.jsonl")) == ["three", "two"]
    assert tree.run("bench", "--profile", "full").returncode == 0
    assert len(list(tree.results.glob("*.jsonl"))) == 3


# ---- what fails, what is missing ----------------------------------------------------------------


def test_a_failing_repetition_is_recorded_and_tried_again(tree: Tree) -> None:
    tree.experiment(rounds=6)
    tree.program(extra="import os\nif os.path.exists('broken'): sys.exit('x: no luck')")
    tree.program("good")
    path = tree.experiments / "sample.toml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"b"\ncommand = ["{bin}/fake"', '"b"\ncommand = ["{bin}/good"'))
    (tree.root / "broken").touch()
    first = tree.run("bench", "--profile", "quick")
    assert first.returncode == 1
    assert "failed: sample a: a ended with status 1: x: no luck" in first.stderr
    assert {r["variant"] for r in tree.of_type("repetition")} == {"b"}
    end = tree.of_type("end")[0]
    assert end["given_up"] == ["a"]
    assert end["failures"] == 12
    assert len(tree.of_type("failure")) == 3  # then it was given up
    (tree.root / "broken").unlink()
    second = tree.run("bench", "--profile", "quick")
    assert (second.returncode, second.stderr) == (0, "")
    assert len(tree.of_type("repetition")) == 18
    assert tree.records()[-1]["failures"] == 0


@pytest.mark.parametrize(
    ("extra", "why"),
    [
        ("print('a\\tb'); print('1'); sys.exit()", "line 2 of stdout has 1 columns, the header 2"),
        ("sys.exit()", "no header line on stdout"),
        ("print('ns'); sys.exit()", "no samples on stdout"),
        ("import os; os.kill(os.getpid(), 9)", "a was ended by SIGKILL"),
    ],
)
def test_bad_output_is_a_failure_never_a_sample(tree: Tree, extra: str, why: str) -> None:
    tree.experiment()
    tree.program(extra=extra)
    done = bench(tree)
    assert done.returncode == 1
    assert f"failed: sample a: {why}" in done.stderr
    assert tree.of_type("repetition") == []


def test_a_program_that_hangs_is_ended(tree: Tree) -> None:
    tree.experiment()
    path = tree.experiments / "sample.toml"
    text = path.read_text(encoding="utf-8").replace("rounds = 2\n", "rounds = 2\ntimeout = 0.3\n")
    path.write_text(text, encoding="utf-8")
    tree.program(extra="time.sleep(60)")
    done = bench(tree)
    assert "a did not end within 0.3 s" in done.stderr
    assert tree.processes("fake") == []


def test_errors_among_the_samples_are_counted_and_marked(tree: Tree) -> None:
    tree.experiment()
    rows = "print('ns\\terror'); print('1000\\t-'); print('3\\tEMFILE'); sys.exit()"
    tree.program(extra=rows)
    assert bench(tree).returncode == 0
    repetition = tree.of_type("repetition")[0]
    assert repetition["samples"]["error"] == ["-", "EMFILE"]
    assert repetition["scalars"]["errors"] == 1
    assert "errors" in repetition["marks"]


def test_what_is_missing_is_skipped_with_reason_and_remedy(tree: Tree) -> None:
    tree.experiment(extra=NEEDS_A_MISSING_PROGRAM)
    tree.program()
    done = bench(tree)
    assert done.returncode == 0
    assert ("skipped: sample c: a-program-nobody-has is not installed "
            "(apt-get install a-program-nobody-has)") in done.stdout  # fmt: skip
    assert tree.of_type("skip") == [
        {"type": "skip", "variant": "c", "reason": "a-program-nobody-has is not installed",
         "remedy": "apt-get install a-program-nobody-has"}
    ]  # fmt: skip
    assert {r["variant"] for r in tree.of_type("repetition")} == {"a", "a+aa", "b"}
    assert "skipped: sample c" in bench(tree).stdout  # said again, also with nothing to do


def test_a_program_that_is_not_built_is_skipped(tree: Tree) -> None:
    tree.experiment()
    done = bench(tree)
    assert done.returncode == 0
    assert "skipped: sample a: build/bin/fake is not built (make variants)" in done.stdout
    tree.program()
    assert bench(tree).returncode == 0
    assert len(tree.of_type("repetition")) == 6


def test_status_77_is_a_skip(tree: Tree) -> None:
    tree.experiment()
    tree.program(extra="sys.stderr.write('fake: needs io_uring\\n'); sys.exit(77)")
    done = bench(tree)
    assert done.returncode == 0
    assert "skipped: sample a: fake: needs io_uring" in done.stdout
    assert len(tree.of_type("skip")) == 2
    assert "everything is measured" in bench(tree).stdout


def test_damaged_results_are_one_line_and_do_not_stop_the_others(tree: Tree) -> None:
    for name in ("one", "two"):
        tree.experiment(name)
    tree.program()
    bench(tree)
    path = tree.results / "one.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[2] = lines[2][:40]
    path.write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")
    (tree.results / "two.jsonl").unlink()
    done = bench(tree)
    assert done.returncode == 1
    assert done.stderr == (damaged("build/results/one.jsonl:3", "it has no check sum") + "\n")
    assert len(tree.of_type("repetition", "two")) == 6


@pytest.mark.parametrize("count", [4, 8])  # stopped, finished
def test_an_edited_set_is_neither_measured_on_nor_taken_for_measured(
    tree: Tree, count: int
) -> None:
    tree.experiment()
    tree.program()
    bench(tree)
    path = tree.results / "sample.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)[:count]
    lines[2] = lines[2].replace(b"[1000,", b"[100000,")
    path.write_bytes(b"".join(lines))
    done = bench(tree)
    assert done.returncode == 1
    assert done.stderr == damaged("build/results/sample.jsonl:3", CHANGED) + "\n"
    assert path.read_bytes() == b"".join(lines)


def test_two_measurements_at_once_are_refused(tree: Tree) -> None:
    tree.experiment()
    tree.program(extra="time.sleep(3)")
    first = tree.start("bench", "--profile", "smoke")
    await_records(tree, first, 1)
    second = bench(tree, "--results", "build/others")
    assert second.returncode == 2
    assert second.stderr == f"another measurement runs here (process {first.pid})\n"
    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=20)


def test_what_another_has_measured_meanwhile_is_not_measured_again(tree: Tree) -> None:
    tree.experiment()
    tree.program(extra="import os\nwhile not os.path.exists('go'): time.sleep(0.02)")
    first = tree.start("bench", "--profile", "smoke")
    await_condition(first, lambda: bool(tree.processes("fake")))
    second = tree.start("bench", "--profile", "smoke")
    await_condition(second, lambda: holds_open(second, tree.root / "build/measuring.lock"))
    (tree.root / "go").touch()
    for process, said in ((first, "1 experiment measured"), (second, "everything is measured")):
        out, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, "")
        assert said in out
    assert len(tree.of_type("repetition")) == 6
    assert tree.of_type("resume") == []
    assert not (tree.results / "old").exists()


def await_condition(process: subprocess.Popen[str], condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)


def holds_open(process: subprocess.Popen[str], path: Path) -> bool:
    return any(
        os.path.realpath(fd) == str(path) for fd in Path(f"/proc/{process.pid}/fd").iterdir()
    )


def test_limits_reduce_what_is_taken_and_mark_it(tree: Tree) -> None:
    tree.experiment(extra='[caps]\nn = "processes"')
    tree.program()
    path = tree.experiments / "sample.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("n = 3", "n = 100000"))

    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NPROC, (900, 900))

    done = subprocess.run(
        [sys.executable, "-m", "harness", "bench", "--profile", "smoke"],
        cwd=tree.root, check=False, capture_output=True, text=True, preexec_fn=few,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    caps = tree.records()[0]["caps"]["n"]
    assert caps["wanted"] == 100000
    assert caps["most"] <= 225
    repetition = tree.of_type("repetition")[0]
    assert repetition["params"]["n"] == caps["most"]
    assert "reduced" in repetition["marks"]
    assert len(repetition["samples"]["ns"]) == caps["most"]


# ---- stopped ------------------------------------------------------------------------------------


def whole_plan(tree: Tree) -> list[object]:
    """What the stored seed says is to be measured."""
    definition = experiment_file.load(tree.experiments / "sample.toml")
    seed = tree.records()[0]["seed"]
    steps = plan.steps(definition, definition.profiles["quick"], seed, ("a", "b"), {})
    return [(s.order, s.round, s.variant, json.dumps(s.params, sort_keys=True)) for s in steps]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_stopped_anywhere_it_goes_on_and_ends_the_same(tree: Tree, number: signal.Signals) -> None:
    tree.experiment(rounds=12)
    held = (3, 8)  # runs of the program that go on until the signal has come
    tree.program(
        extra=f"runs = open('runs', 'a'); runs.write('.'); runs.flush()\n"
        f"time.sleep(60 if runs.tell() in {held} else 0)"
    )
    for run in held:
        process = tree.start("bench", "--profile", "quick")
        await_run(tree, process, run)
        process.send_signal(number)
        _, err = process.communicate(timeout=20)
        if number == signal.SIGKILL:
            assert process.returncode == -9
        else:
            assert process.returncode == 128 + number
            assert err == "stopped; the same command goes on from here\n"
        deadline = time.monotonic() + 20
        while tree.processes("fake") and time.monotonic() < deadline:
            time.sleep(0.02)
        assert tree.processes("fake") == []
    assert tree.run("bench", "--profile", "quick").returncode == 0
    assert identities(tree.records()) == whole_plan(tree)
    assert len(tree.of_type("resume")) == 2
    assert len(tree.of_type("end")) == 1
    assert not list((tree.root / "build" / "scratch").iterdir())


def test_a_last_line_cut_off_is_measured_again(tree: Tree) -> None:
    tree.experiment()
    tree.program()
    tree.run("bench", "--profile", "quick")
    path = tree.results / "sample.jsonl"
    data = path.read_bytes()
    end = data.rfind(b"\n", 0, -1) + 1
    for cut in (end - 1, end - 30):  # within the last repetition
        path.write_bytes(data[:cut])
        assert tree.run("bench", "--profile", "quick").returncode == 0
        assert identities(tree.records()) == whole_plan(tree)


def test_a_file_cut_in_its_first_line_begins_again(tree: Tree) -> None:
    tree.experiment()
    tree.program()
    bench(tree)
    path = tree.results / "sample.jsonl"
    path.write_bytes(path.read_bytes()[:50])
    assert bench(tree).returncode == 0
    assert len(tree.of_type("repetition")) == 6


def test_a_set_does_not_go_on_on_another_kernel(tree: Tree) -> None:
    tree.experiment()
    tree.program()
    tree.run("bench", "--profile", "quick")
    path = tree.results / "sample.jsonl"
    records = tree.records()[:-2]
    records[0]["environment"]["kernel"] = "Linux 2.4.22"
    write_lines(map(json.dumps, records), path)
    done = tree.run("bench", "--profile", "quick")
    assert "sample: measured anew, because kernel is not what it was" in done.stdout
    assert tree.of_type("resume") == []
    assert identities(tree.records()) == whole_plan(tree)


def test_results_that_cannot_be_written_are_one_line(tree: Tree) -> None:
    tree.experiment()
    tree.program()
    (tree.root / "file").touch()
    done = bench(tree, "--results", "file/results")
    assert done.returncode == 2
    assert done.stderr == "file/results: Not a directory\n"


def test_children_of_a_program_end_with_it(tree: Tree) -> None:
    tree.experiment()
    spawn = "import subprocess\nsubprocess.Popen(['sleep', '61.25'], start_new_session=False)"
    tree.program(extra=spawn)
    assert bench(tree).returncode == 0
    assert tree.processes("61.25") == []


def test_ctrl_c_leaves_no_process(tree: Tree) -> None:
    tree.experiment()
    spawn = "import subprocess\nsubprocess.Popen(['sleep', '62.25'])\ntime.sleep(60)"
    tree.program(extra=spawn)
    process = tree.start("bench", "--profile", "smoke")
    await_process(tree, "62.25")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 130
    assert tree.processes("62.25") == []
    assert tree.processes("fake") == []


# ---- progress -----------------------------------------------------------------------------------


def test_progress_says_what_runs_and_how_long_still(tree: Tree) -> None:
    tree.experiment()
    tree.program()
    out = bench(tree).stdout
    assert out.startswith("[1/1] A sample (sample): about 30 s\n")


def test_with_nothing_to_do_neither_scipy_nor_a_namespace_is_touched(tree: Tree) -> None:
    tree.experiment()
    tree.program()
    bench(tree)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "from harness import cli; status = cli.main(['bench', '--profile', 'smoke']);"
        "print(status, [m for m in ('scipy', 'numpy', 'harness.run.load')"
        " if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(Path(plan.__file__).parents[2])],
        cwd=tree.root, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "0 []"
