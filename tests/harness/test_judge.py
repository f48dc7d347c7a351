"""A judge that was there before the data: what is registered, what is frozen, and the sessions a word rests on."""

import itertools
import json
import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from quest.command import registering
from quest.ground.errors import InputError
from quest.measure import records
from quest.report import bench, check, claims, frozen, judge, sessions, verdicts
from quest.report.claims import JudgedClaim
from quest.report.measured import Library
from quest.spec import experiment_file
from quest.spec.model import Experiment
from quest.spec.plan import plan_hash
from tests.harness.made_up import Tree, parsed, repetition, run_record, write, write_lines
from tests.harness.test_packages import graph

pytest.importorskip("scipy")

needs_git = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
CPUS = ("AMD EPYC", "Intel Xeon")
LEDGER = """\
[[claim]]
id = 9
source = "talk"
kind = "testable"
text = "a is faster."
experiment = "sample"
reason = "as it says"
rule = {{ is = "{rule}", a = "a.us", b = "b.us"{more} }}
"""
FASTER, SLOWER = ("faster", ""), ("ratio_at_least", ", bound = 1")


@pytest.fixture
def place(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """A tree with one experiment and one claim, in which we stand."""
    tree.experiment(rounds=8)
    tree.program()
    monkeypatch.chdir(tree.root)
    rule(FASTER)
    return tree


def rule(of: tuple[str, str]) -> None:
    Path("benchmarks/claims.toml").write_text(LEDGER.format(rule=of[0], more=of[1]), encoding="utf-8")


REFERENCE = Path("benchmarks/results/reference")


def session(folder: Path, cpu: str, at: str = "2026-11-21T12:00:00Z", gain: float = 2, **more: object) -> None:
    """A set in which a takes 1 µs and b `gain` times as long, in seven rounds."""
    definition = parsed()
    run = run_record(definition, started=at, environment={"cpu": cpu, "cores": 2, "kernel": "Linux 6.18"}, **more)
    found = records.ResultSet(folder / "sample.jsonl", run)
    for number, (variant, ns) in itertools.product(range(7), (("a", 1000.0), ("b", 1000.0 * gain))):
        found.add(repetition(variant, number, samples={"ns": [ns + number]}))
    found.add({"type": "end", "finished": at, "repetitions": 14, "failures": 0})
    write(found, folder / "sample.jsonl")


def two_by_three(gains: tuple[float, float] = (2, 3)) -> None:
    """Two processors with three sessions each; the numbers of each session are its own."""
    for cpu, day in itertools.product(range(2), range(3)):
        other = Path("benchmarks/results/sessions") / sessions.slug(CPUS[cpu]) / f"2026-11-2{day}"
        folder = REFERENCE if (cpu, day) == (0, 0) else other
        session(folder, CPUS[cpu], f"2026-11-2{day}T12:00:00Z", gain=gains[cpu] + day / 10)


def judged(definitions: Iterable[Experiment] | None = None) -> JudgedClaim:
    [one] = claims.judge_all(Library(REFERENCE, REFERENCE, True, definitions=definitions))
    return one


# ---- sessions -----------------------------------------------------------------------------------


def test_a_rule_is_given_each_session_of_each_processor(place: Tree) -> None:
    two_by_three()
    library = Library(REFERENCE, REFERENCE, True)
    [claim] = claims.load(library.experiments.values())
    found = claims.by_processor(claim, claim.rules[0], library)
    assert {cpu: {key: len(each) for key, each in operands.items()} for cpu, operands in found.items()} == {
        cpu: {"a": 3, "b": 3} for cpu in CPUS
    }
    second_of_intel = found["Intel Xeon"]["b"][1]
    assert second_of_intel.values == pytest.approx({n: 3.1 + n / 1000 for n in range(7)})
    one = judged()
    assert (one["sessions"], one["lacking"]) == ({"AMD EPYC": 3, "Intel Xeon": 3}, "")
    assert len(one["each_session"]) == 6
    assert one["each_session"][4].startswith("Intel Xeon, session intel-xeon/2026-11-21: holds; ")
    assert check_says() == []


def test_processors_are_never_pooled(place: Tree) -> None:
    two_by_three((2, 0.3))
    one = judged()
    assert (one["verdict"], one["lacking"]) == ("depends on the processor", "")
    assert "AMD EPYC: a is faster than b" in one["why"] and "Intel Xeon: b is faster than a" in one["why"]
    # A processor with too few sessions has no say beside one with enough.
    for path in Path("benchmarks/results/sessions/intel-xeon").glob("*/*.jsonl"):
        path.unlink()
    for day in "34":
        session(REFERENCE.parent / f"sessions/amd-epyc/2026-11-2{day}", CPUS[0], f"2026-11-2{day}T12:00:00Z")
    session(REFERENCE.parent / "sessions/intel-xeon/2026-11-25", CPUS[1], gain=0.3)
    one = judged()
    assert one["sessions"] == {"AMD EPYC": 5, "Intel Xeon": 1}
    assert (one["verdict"], one["lacking"]) == ("holds", "")


def test_too_few_sessions_are_said_and_what_is_there_is_shown(place: Tree) -> None:
    session(REFERENCE, CPUS[0])
    one = judged()
    assert one["verdict"] == "holds" and one["each_session"] == []
    assert one["lacking"].startswith("within one session (AMD EPYC: 1 session; 3 on each of two")
    session(Path("build/results"), CPUS[0])
    [own] = claims.judge_all(Library(Path("build/results"), REFERENCE))
    assert own["lacking"] == sessions.OWN, "a reader's run is one session"


@pytest.mark.parametrize(
    ("counts", "enough"),
    [
        ((), []), ((1,), []), ((4,), []), ((5,), ["0"]), ((3, 3), ["0", "1"]), ((3, 2), []), ((5, 2), ["0"]),
        ((5, 3, 1), ["0", "1"]), ((2, 2, 2), []),
    ],
)  # fmt: skip
def test_how_many_sessions_are_enough(counts: tuple[int, ...], enough: list[str]) -> None:
    of = {str(number): count for number, count in enumerate(counts)}
    assert sessions.that_count(of, 3, 5) == enough
    assert bool(sessions.lacking(of, 3, 5)) == (bool(of) and not enough)


def test_a_session_goes_on_for_three_hours(place: Tree) -> None:
    of = Path("build/reference/amd-epyc")
    at = datetime.fromisoformat("2026-11-21T14:59:00+00:00")
    assert sessions.to_measure(of, "", at) == of / "2026-11-21-1459", "there is none yet"
    session(of / "first", CPUS[0], "2026-11-21T12:00:00Z")
    assert sessions.to_measure(of, "", at) == of / "first"
    assert sessions.to_measure(of, "", at.replace(hour=15)) == of / "2026-11-21-1559"
    assert sessions.to_measure(of, "mine", at) == of / "mine"
    with pytest.raises(InputError, match="SESSION=../mine"):
        sessions.to_measure(of, "../mine", at)


def check_says() -> list[str]:
    return list(check.session_problems(REFERENCE))


def test_a_session_in_the_wrong_place_is_named(place: Tree) -> None:
    two_by_three()
    folder = Path("benchmarks/results/sessions/intel-xeon")
    session(folder / "soon", CPUS[1], "2026-11-21T14:00:00Z")
    session(folder / "wrong", CPUS[0], "2026-11-25T14:00:00Z")
    assert check_says() == [
        f"{folder}/wrong: it was measured on amd-epyc, and is no session of intel-xeon",
        f"{folder}/soon: begun less than three hours after another session of its processor",
    ]


def test_a_session_is_of_one_commit_and_three_hours_are_apart(place: Tree) -> None:
    """The reference may be of several commits: an experiment may have come later."""
    two_by_three()
    folder = Path("benchmarks/results/sessions/intel-xeon")
    session(folder / "later", CPUS[1], "2026-11-21T15:00:00Z")
    assert check_says() == []
    for of, cpu in ((REFERENCE, CPUS[0]), (folder / "later", CPUS[1])):
        run = run_record(parsed(), started="2026-11-21T16:00:00Z", environment={"cpu": cpu, "commit": "b" * 40})
        write_lines([json.dumps(run)], of / "other.jsonl")
    assert check_says() == [f"{folder}/later: of more than one commit: , {'b' * 40}"]
    of = Path("build/reference/amd-epyc")
    session(of / "first", CPUS[0], "2026-11-21T12:00:00Z")
    at = datetime.fromisoformat("2026-11-21T15:00:00+00:00")
    assert sessions.to_measure(of, "", at) == of / "2026-11-21-1500"


@pytest.mark.parametrize(
    ("text", "said"),
    [('{"type": "run", "schema": 1}', ':1: "experiment" is missing'), ('{"type": []}', ": damaged: ")],
)
def test_a_set_without_its_keys_is_named_and_the_check_goes_on(place: Tree, text: str, said: str) -> None:
    path = write_lines([text], REFERENCE / "sample.jsonl")
    [problem] = check._results({"sample"}, [REFERENCE])
    assert problem.startswith(f"{path}{said}") and check_says() == []


# ---- what is registered -------------------------------------------------------------------------


def on_record() -> dict[str, Any]:
    """What a run of now writes into the first line of a set."""
    ledger = claims.load(experiment_file.load_all())
    return {"judge": judge.current(), "claims": claims.hashes(ledger), "session": "first"}


def test_what_was_there_before_the_data_is_registered(place: Tree) -> None:
    session(REFERENCE, CPUS[0], **on_record())
    assert (judged()["judged"], judged()["frozen"]) == ("registered", "")
    whole = Path("benchmarks/claims.toml").read_text("utf-8")
    Path("benchmarks/claims.toml").write_text(whole.replace("a is faster.", "a is the faster of the two."), "utf-8")
    assert judged()["judged"] == "registered", "prose may be mended"
    rule(SLOWER)
    assert judged()["judged"] == "judged anew", "its rule may not"
    rule(FASTER)
    place.edit(("rounds = 9", "rounds = 10"))
    assert judged()["judged"] == "judged anew", "an experiment may not, either"


def test_a_set_of_before_loads_and_is_judged_anew(place: Tree) -> None:
    session(REFERENCE, CPUS[0])
    assert "judge" not in records.read_results(REFERENCE / "sample.jsonl").run
    assert judged()["judged"] == "judged anew" and judged()["verdict"] == "holds"


def test_a_measured_set_names_its_judge(place: Tree) -> None:
    done = place.bench()
    assert done.returncode == 0, done.stderr
    [run] = place.of_type("run")
    ledger = claims.load(experiment_file.load_all())
    assert run["judge"] == judge.current() and run["claims"] == {"9": claims.claim_hash(ledger[0])}
    assert "session" not in run
    assert not list(records.malformed_lines(place.results / "sample.jsonl"))


def test_the_hash_is_that_of_sha256sum(place: Tree) -> None:
    root = judge.OURS
    files = [line.split("  ")[1] for line in judge.lines(root, root)]
    assert "quest/report/rules.py" in files and "benchmarks/experiments/throughput.toml" in files
    command = 'sha256sum -- "$@" | LC_ALL=C sort | sha256sum'
    done = subprocess.run(["sh", "-c", command, "sh", *files], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == judge.hash_of(root, root)


#: Asked by the judge, and not hashed: what reads files and names machines, and what keeps the record itself.
WITHOUT_SAY = {
    "quest.measure.counters", "quest.measure.environment", "quest.measure.namespaces", "quest.measure.scene",
    "quest.measure.strace", "quest.measure.timeline", "quest.report.frozen", "quest.report.judge",
}  # fmt: skip


def test_whatever_decides_is_hashed() -> None:
    needs = graph()
    found, left = set[str](), {"quest.report.claims"}
    while left:
        found.add(name := left.pop())
        left |= needs[name] - found
    hashed = {line.split("  ")[1] for line in judge.lines(judge.OURS, judge.OURS)}
    outside = {name for name in found if f"{name.replace('.', '/')}.py" not in hashed}
    assert {name for name in outside if not name.startswith("quest.ground.")} == WITHOUT_SAY


def test_what_is_registered_can_be_read_again(place: Tree) -> None:
    plan = judge.Registration(
        "a" * 64, "2026-11-26", "b" * 40, {"9": "c" * 64, "10": "d" * 64}, 3, 5, 7, ('what is "noisy"', "claim 9"),
        {"expected": 0.1}, {"scipy": "1.10"},
    )  # fmt: skip
    assert judge.registered() is None
    judge.write_registration(plan)
    assert judge.registered() == plan


# ---- the reference is refused -------------------------------------------------------------------


def git(*words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *words], check=True, capture_output=True)


def tagged(name: str, date: str = "") -> None:
    """Of this commit, in place of an older tag of that name."""
    who = {f"GIT_COMMITTER_{what}": value for what, value in (("NAME", "a"), ("EMAIL", "a@example.org"))}
    environment = {**os.environ, **who, **({"GIT_COMMITTER_DATE": date} if date else {})}
    subprocess.run(["git", "tag", "-f", "-a", "-m", "it", name], check=True, capture_output=True, env=environment)


@needs_git
def test_data_that_are_older_than_the_tag_of_their_judge_are_named(place: Tree) -> None:
    session(REFERENCE, CPUS[0], judge="d" * 64)
    git("init", "-q")
    committed()
    assert check_says() == [], "a clone without tags can say nothing"
    tagged(f"judge-{'d' * 12}", "2026-11-21T11:59:00Z")
    assert check_says() == []
    tagged(f"judge-{'d' * 12}", "2026-11-22T00:00:00Z")
    assert check_says() == [
        f"{REFERENCE}: its judge was tagged (judge-{'d' * 12}, 2026-11-22) after it was begun (2026-11-21)"
    ]


@needs_git
def test_a_set_of_the_reference_that_came_later_has_the_judge_of_its_own_day(place: Tree) -> None:
    session(REFERENCE, CPUS[0])
    session(Path("build/late"), CPUS[0], "2026-11-27T12:00:00Z", judge="d" * 64)
    shutil.copy("build/late/sample.jsonl", REFERENCE / "other.jsonl")
    git("init", "-q")
    committed()
    tagged(f"judge-{'d' * 12}", "2026-11-25T12:00:00Z")
    assert check_says() == []
    tagged(f"judge-{'d' * 12}", "2026-11-28T12:00:00Z")
    assert check_says() == [
        f"{REFERENCE}: its judge was tagged (judge-{'d' * 12}, 2026-11-28) after it was begun (2026-11-27)"
    ]


@pytest.mark.slow
@pytest.mark.long
@needs_git
def test_what_is_registered_comes_from_the_simulation(place: Tree, said: Callable[..., str]) -> None:
    session(REFERENCE, CPUS[0], gain=1.06)
    git("init", "-q")
    committed()
    assert f"git tag -a judge-{judge.current()[:12]}" in said("register")
    plan = judge.registered()
    assert plan and (plan.judge, set(plan.claims)) == (judge.current(), {"9"})
    names = {f"{name}{of}" for name in ("expected_wrong", "undecided", "wrong_at_worst")
             for of in ("", "_on_one", "_in_one_session")}  # fmt: skip
    rates = plan.error_rates
    assert set(rates) == names and all(0 <= rate <= 1 for rate in rates.values()), "of one rule"
    assert rates["wrong_at_worst"] < rates["wrong_at_worst_on_one"] < rates["wrong_at_worst_in_one_session"] < 0.4


RATES = {
    "expected_wrong": 0.02, "wrong_at_worst": 1.5, "expected_wrong_on_one": 0.1, "wrong_at_worst_on_one": 9,
    "expected_wrong_in_one_session": 0.3, "wrong_at_worst_in_one_session": 22,
}  # fmt: skip


@pytest.mark.parametrize(
    ("sessions_in", "shown", "hidden"),
    [
        ({"x": 1}, ["with one session 0.3, and 22 if", "with 3 sessions on each of two processors 0.02, and 1.5"], []),
        ({"x": 3, "y": 3}, ["1 on enough sessions", "on each of two processors 0.02, and 1.5"], ["one session"]),
        ({"x": 5}, ["1 on enough sessions", "with 5 sessions on one 0.1, and 9"], ["one session", "two processors"]),
    ],
)
def test_how_many_words_are_expected_to_be_wrong(
    place: Tree, sessions_in: dict[str, int], shown: list[str], hidden: list[str]
) -> None:
    session(REFERENCE, CPUS[0])
    assert "expected to be wrong" not in verdicts.judges([judged()]), "nothing is registered"
    judge.write_registration(judge.Registration("a" * 64, "2026-11-26", "b" * 40, {}, error_rates=RATES))
    one = judged()
    one |= {"sessions": sessions_in, "lacking": sessions.lacking(sessions_in, 3, 5)}
    text = verdicts.judges([one])
    assert all(part in text for part in shown) and not any(part in text for part in hidden)
    assert ("within one session (x: 1 session; 3 on each of two processors, or 5 on one" in text) == bool(
        one["lacking"]
    )


def committed() -> None:
    Path(".gitignore").write_text("build\n", encoding="ascii")
    git("add", "-A")
    git("commit", "-q", "-m", "as it is")


def test_a_session_is_to_take_what_the_shortest_one_took(tmp_path: Path) -> None:
    """The seconds of the file leave out what comes before and after a repetition: 48 minutes were said, 92 it took."""
    one = parsed()
    said = bench._as_last_time(one, tmp_path / "none").profiles["full"].seconds
    assert said == one.profiles["full"].seconds, "no session is kept"
    run, end = json.dumps(run_record(one)), {"type": "end", "repetitions": 1, "failures": 0}
    kept: list[tuple[str, str, dict[str, object]]] = [
        ("a", "12:31:30", {}), ("b", "12:30:30", {}), ("the clock went back", "11:00:00", {}),
        ("gave up", "12:00:10", {"given_up": ["b"]}), ("measured nothing", "12:00:20", {"repetitions": 0}),
    ]  # fmt: skip
    for session, time, more in kept:
        ended = json.dumps(end | more | {"finished": f"2026-11-21T{time}Z"})
        write_lines([run, ended], tmp_path / session / f"{one.id}.jsonl")
    write_lines([run], tmp_path / "stopped" / f"{one.id}.jsonl")
    later = bench._as_last_time(one, tmp_path)
    assert later.profiles["full"].seconds == 1830
    assert plan_hash(later, later.profiles["full"], {}, []) == plan_hash(one, one.profiles["full"], {}, [])


@pytest.mark.slow
@needs_git
def test_a_reference_needs_a_clean_tree_and_the_registered_judge(place: Tree, said: Callable[..., str]) -> None:
    place.experiment("other")
    assert "git status has to be clean, in a clone" in said("reference", status=2)
    git("init", "-q")
    committed()
    assert said("reference", status=2) == (
        "no judge is registered (benchmarks/registered.toml): make register, then commit and tag it\n"
    )
    ledger = claims.load(experiment_file.load_all())
    plan = judge.Registration(judge.current(), "2026-11-26", "b" * 40, claims.hashes(ledger), rounds=6)
    judge.write_registration(plan)
    committed()
    place.edit(("A sample", "Another sample"))
    assert "git status has to be clean" in said("reference", status=2)
    committed()
    refused = said("reference", status=2)
    assert refused.startswith(f"the judge of this tree ({judge.current()[:12]}) is not the registered one")
    assert refused.count("\n") == 1
    judge.write_registration(replace(plan, judge=judge.current()))
    rule(SLOWER)
    committed()
    assert said("reference", status=2).startswith("claims whose rules are not the registered ones: 9;")
    rule(FASTER)
    committed()
    tag = f"judge-{judge.current()[:12]}"
    assert said("reference", status=2).startswith(
        f"the registered judge has no tag {tag} with a date of its own: commit"
    )
    git("tag", tag)
    assert "has no tag" in said("reference", status=2), "a light one has no date of its own"
    tagged(tag)
    assert f"the tag {tag} does not hold {frozen.FOLDER}/{judge.current()}.zip" in said("reference", status=2)
    frozen_here()
    committed()
    tagged(tag)
    judge.write_registration(replace(plan, judge=judge.current(), exclusions=("one more",)))
    committed()
    assert f"is not what the tag {tag} has" in said("reference", status=2)
    judge.write_registration(replace(plan, judge=judge.current()))
    committed()
    git("checkout", "-q", "--orphan", "other")
    git("commit", "-q", "-m", "without a past")
    assert f"the commit of the tag {tag} is not before this one" in said("reference", status=2)
    tagged(tag, date="2099-01-01T00:00:00Z")
    assert f"the tag {tag} is of 2099-01-01" in said("reference", status=2)
    tagged(tag)
    measured = said("reference", "SESSION=first", "VERDICTS=yes")
    [path] = Path("build/reference").glob("*/first/sample.jsonl")
    kept = f"benchmarks/results/sessions/{path.parts[2]}"
    assert f"to keep it: mkdir -p {kept} && cp -r {path.parent} {kept}/\n" in measured
    found = records.read_results(path)
    marks = {one["round"]: one["marks"] for one in found.repetitions}
    assert found.run["rounds"] == 6
    assert 6 <= len(marks) <= 9, "more only where others took the processors, half as many at most"
    header = found.run["session"], found.run["judge"], found.run["environment"]["dirty"]
    assert header == ("first", judge.current(), False)
    assert not path.with_name("other.jsonl").exists(), "no rule asks it"
    assert "everything is measured" in said("reference", "SESSION=first", "VERDICTS=yes")
    git("commit", "-q", "--allow-empty", "-m", "two")
    assert "sample.jsonl: measured with another commit (" in said("reference", "SESSION=first", status=2)


# ---- the frozen judge ---------------------------------------------------------------------------


def frozen_here() -> Path:
    """The judge of our own tree, with the experiment and the ledger of this one."""
    name = judge.current()
    path = frozen.FOLDER / f"{name}.zip"
    frozen.FOLDER.mkdir(parents=True, exist_ok=True)
    path.write_bytes(frozen.packed(judge.OURS, Path()))
    frozen.write(frozen.FrozenJudge(name, "2026-11-26", "b" * 40, ""))
    return path


@pytest.mark.slow
def test_the_frozen_judge_keeps_its_word(place: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    session(REFERENCE, CPUS[0], **on_record())
    path = frozen_here()
    assert registering.kept({}) == 1 and "it has not judged these data yet" in capsys.readouterr().out
    assert registering.kept({"WRITE": "yes"}) == 0
    assert registering.kept({}) == 0
    rule(SLOWER)  # after the data: a takes less than b, so that the word is another
    one = judged()
    assert (one["verdict"], one["judged"], one["frozen"]) == ("reversed", "judged anew", "holds")
    assert "judged anew (the frozen judge: holds)" in " ".join(verdicts.line(one, 100, long=True).split())
    assert "another verdict: 9: reversed (frozen: holds)" in verdicts.judges([one])
    assert registering.kept({}) == 0, "it does not see the new rule"
    session(REFERENCE, CPUS[0], gain=3, **on_record())
    assert judged()["frozen"] == "", "it has not judged these"
    # Whoever changes its words is found out, and so is a zip that was changed.
    kept = path.with_suffix(".json")
    assert registering.kept({"WRITE": "yes"}) == 0
    kept.write_text(kept.read_text("utf-8").replace('"holds"', '"changed"'), "utf-8")
    assert registering.kept({}) == 1
    assert "claim 9: holds, was changed" in capsys.readouterr().out
    path.rename(path.with_stem("e" * 64))
    with pytest.raises(InputError, match="its files are not those of the judge eeee"):
        frozen.pronounce(path.with_stem("e" * 64), Path("benchmarks/results"))


def test_a_zip_is_the_same_bytes_each_time(place: Tree) -> None:
    first = frozen.packed(judge.OURS, Path())
    for path in Path().rglob("*.toml"):
        path.touch()
    assert frozen.packed(judge.OURS, Path()) == first


def test_a_zip_that_is_damaged_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / f"{'e' * 64}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(frozen.LIST, "x" * 1000)
    whole = bytearray(path.read_bytes())
    whole[30 + len(frozen.LIST)] = 0xFF  # the first byte of its data
    path.write_bytes(whole)
    with pytest.raises(InputError, match=str(path)):
        frozen.pronounce(path, tmp_path)


def test_what_is_committed_says_what_it_is() -> None:
    """The kept judges of this tree: each zip has its words, of data that are here."""
    folder = judge.OURS / frozen.FOLDER
    kept = frozen.all_judged(folder)
    assert kept and {one.judge for one in kept} == {path.stem for path in folder.glob("*.zip")}
    for one in kept:
        assert one.judged and all(len(said.verdicts) > 80 and said.data for said in one.judged)
        json.loads((folder / f"{one.judge}.json").read_text("utf-8"))
