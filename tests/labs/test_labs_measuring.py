"""Labs that measure: a prediction before the data, conclusions from one's own."""

import contextlib
import csv
import io
import json
import os
import re
import shutil
import signal
import tomllib
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest

from quest.ground.errors import InputError
from quest.labs import answers, class_table, cli, commands, data, measured, self_check, stages, student_report
from quest.labs.data import Measurement, fingerprints, reference_fingerprints
from quest.labs.errors import LabError
from quest.measure.records import Sums

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "benchmarks/results/reference"
LABS = sorted(path.parent.name for path in ROOT.glob("labs/*/measure.toml"))
SLUG, DATA = "process-cost", "fork-latency.jsonl"
PREDICTION = {"growth": '"down"', "linking": "3", "why": '"a guess"'}
CONCLUSION = {
    "growth": '"flat"', "linking": "1.57", "why": '"the table"',
    "cause-growth": '"only the parent is copied"',
    "cause-linking": '"fewer mappings and page tables to copy"',
}  # fmt: skip

pytest.importorskip("scipy")


def lab(work: Path, *words: str) -> tuple[int, str, str]:
    """The status of a command, what it has printed, and the line that says what is wrong."""
    settings = cli.settings_of([*words[1:], f"WORK={work}"], {"LAB_BUILD": f"{work}/build"})
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        try:
            return commands.run(words[0], settings), said.getvalue(), ""
        except LabError as error:
            return 2, said.getvalue(), str(error)


def answer(work: Path, part: str, answers: dict[str, str]) -> None:
    path = work / SLUG / "answers.toml"
    text = path.read_text("utf-8")
    before, mark, after = text.partition(f"[{part}]")
    own, rest = (after, "") if part == "conclusion" else re.split(r"(?m)^(?=# After)", after)
    for name, value in answers.items():
        own = re.sub(rf"(?m)^{name} = .*$", f"{name} = {value}", own)
    path.write_text(before + mark + own + rest, "utf-8")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The way of one who learns: begun, predicted and sealed long ago, and measured, with the
    reference run's data.
    """
    words, sealed = ("check", f"CH={SLUG}"), tmp_path / SLUG / "sealed.json"
    assert lab(tmp_path, *words)[0] == 2
    assert lab(tmp_path, "lab", f"CH={SLUG}")[0] == 0
    status, said, _ = lab(tmp_path, *words)
    assert status == 1
    assert "growth: one of up, flat, down" in said and "linking: a number above 0" in said
    assert not sealed.exists(), "half a prediction is none"
    answer(tmp_path, "prediction", PREDICTION)
    status, said, _ = lab(tmp_path, *words)
    assert status == 1
    assert f"make bench ONLY=fork-latency CH={SLUG}" in said
    assert json.loads(sealed.read_text("utf-8"))["prediction"]["growth"] == "down"
    sealed.write_text(re.sub(r"20\d\d-", "2020-", sealed.read_text("utf-8")), "utf-8")
    results = tmp_path / "build/results"
    results.mkdir(parents=True)
    shutil.copy(REFERENCE / DATA, results)
    return tmp_path


def test_a_word_without_quotes(tmp_path: Path) -> None:
    lab(tmp_path, "lab", f"CH={SLUG}")
    answer(tmp_path, "prediction", {"growth": "up"})
    status, _, error = lab(tmp_path, "check", f"CH={SLUG}")
    assert status == 2 and re.search(r'answers.toml: .* \(at line \d.*\); write a word in quotes: "up"', error)


def test_what_was_measured_before_the_prediction_does_not_count(work: Path) -> None:
    sealed = work / SLUG / "sealed.json"
    sealed.write_text(sealed.read_text("utf-8").replace("2020-", "2099-"), "utf-8")
    status, said, _ = lab(work, "check", f"CH={SLUG}")
    assert status == 1 and "Now measure" not in said
    assert "which is yet to come: the clock was wrong" in said, "else nobody knows why no data are new enough"
    shutil.copy(REFERENCE / DATA, work / SLUG)
    status, _, wrong = lab(work, "grade", f"CH={SLUG}", f"DIR={work / SLUG}")
    assert status == 2 and "is older than the prediction" in wrong


def test_a_measurement_that_was_stopped_replaces_none_that_is_whole(work: Path) -> None:
    own, mine = work / "build/results" / DATA, work / SLUG / DATA
    whole = own.read_bytes()
    part = whole[: whole.rindex(b"\n", 0, -1) + 1]
    for measured_now, counts in ((part, part), (whole, whole), (part, whole)):
        own.write_bytes(measured_now)
        assert lab(work, "check", f"CH={SLUG}")[0] == 1
        assert mine.read_bytes() == counts


def test_what_was_measured_long_ago_is_measured_again(work: Path) -> None:
    """Without AGAIN=1 `make bench` would leave a finished set alone."""
    own = work / "build/results" / DATA
    own.write_text(re.sub(r'"started":"20\d\d', '"started":"2019', own.read_text("utf-8"), count=1), "utf-8")
    wanted = f"make bench ONLY=fork-latency CH={SLUG}"
    assert f"{wanted} AGAIN=1\n" in lab(work, "check", f"CH={SLUG}")[1]
    own.unlink()
    assert f"{wanted}\n" in lab(work, "check", f"CH={SLUG}")[1]


@pytest.mark.slow
def test_a_conclusion_is_judged_by_ones_own_data(work: Path) -> None:
    for name, value, why in (
        ("growth", '"up"', "you say up, your data say flat"),
        ("growth", '"sideways"', "one of up, flat, down"),
        ("linking", "3", "you say 3, your data say 1.5"),
        ("linking", "0", "a number above 0"),
        ("cause-growth", '"the processes share a stack"', "does not explain these data"),
    ):
        answer(work, "conclusion", CONCLUSION | {name: value})
        into = work / "result.json"
        lab(work, "check", f"CH={SLUG}")
        status, _, _ = lab(work, "grade", f"CH={SLUG}", f"JSON={into}")
        result = json.loads(into.read_text("utf-8"))
        lost = {test["name"]: test["output"] for test in result["tests"] if not test["score"]}
        assert (status, result["score"], list(lost)) == (1, 17, [name])
        assert why in lost[name]


def test_a_wrong_prediction_costs_nothing_and_a_grade_needs_the_three_files(work: Path) -> None:
    _, said, _ = lab(work, "check", f"CH={SLUG}")
    assert "Predicted, and seen" not in said, "it would be the conclusion"
    assert "Now fill in [conclusion] of " in said, "and what to do about it"
    answer(work, "conclusion", CONCLUSION)
    status, said, wrong = lab(work, "check", f"CH={SLUG}")
    assert (status, wrong) == (0, "")
    assert re.search(r"growth +down +flat", said), "predicted, and seen"
    for growth, status in (('"up"', 1), ('"flat"', 0)):
        answer(work, "conclusion", CONCLUSION | {"growth": growth})
        assert lab(work, "check", f"CH={SLUG}")[0] == status
        progress = json.loads((work / SLUG / ".progress.json").read_text("utf-8"))
        assert progress["score"] == 20, "of the best check"
    into = work / "result.json"
    words = ("grade", f"CH={SLUG}", f"DIR={work / SLUG}", f"JSON={into}")
    assert lab(work, *words)[0] == 0
    result = json.loads(into.read_text("utf-8"))
    assert (result["score"], sum(test["max_score"] for test in result["tests"])) == (20, 20)
    assert result["extra_data"]["for a person"]["conclusion"] == "the table"
    nobody, table = work / "class/nobody", work / "class.csv"
    nobody.mkdir(parents=True)
    shutil.copytree(work / SLUG, work / "class/ada/mine" / SLUG)
    shutil.copytree(work / SLUG, work / "class/bob").joinpath(DATA).unlink()
    (work / "class/eve").symlink_to(work / "class/ada")
    shutil.copytree(work / SLUG, work / "class/fay").joinpath("answers.toml").unlink()
    os.mkfifo(work / "class/fay/answers.toml")
    run = b'{"type": "run", "schema": 1, "started": "2031"}'
    odd = b'{"type": "repetition", "round": 1, "variant": "dynamic", "params": 7}'
    shutil.copytree(work / SLUG, work / "class/gil")
    sums = Sums()
    (work / "class/gil" / DATA).write_bytes(sums.added(run) + sums.added(odd))
    assert lab(work, "grade-all", f"CH={SLUG}", f"DIR={work / 'class'}", f"CSV={table}")[0] == 3
    with table.open(newline="", encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    assert [tuple(row[key] for key in ("name", "score", "of", "state")) for row in found] == [
        ("ada", "20", "20", "self-check"),
        ("bob", "0", "20", "self-check"),
        ("eve", "", "20", "not graded"),
        ("fay", "", "20", "not graded"),
        ("gil", "0", "20", "self-check"),
        ("nobody", "0", "20", "nothing handed in"),
    ]
    assert found[1]["failed"] == f"({DATA} is not there)", "without a folder of the machine that judges"
    for name in ("sealed.json", DATA, "answers.toml"):
        (work / SLUG / name).rename(work / "away")
        status, _, wrong = lab(work, *words)
        assert status == 2 and name in wrong and "\n" not in wrong
        assert name == "sealed.json" or wrong.endswith(" is not there")
        (work / "away").rename(work / SLUG / name)


@pytest.mark.slow
def test_data_of_others_are_flagged_and_it_is_a_self_check(work: Path) -> None:
    """Also under another date; with the machine and the time that they are said to be of."""
    answer(work, "conclusion", CONCLUSION)
    into, data = work / "result.json", work / SLUG / DATA
    shutil.copy(REFERENCE / DATA, data)
    _, said, _ = lab(work, "grade", f"CH={SLUG}", f"DIR={work / SLUG}", f"JSON={into}")
    said = " ".join(said.split())
    assert re.search(r"Measured: .*, \d cores, Linux [\d.]+, 20\d\d-", said)
    assert re.search(r"(\d+) of \1 repetitions are those of the reference run", said)
    assert "self-check" in json.loads(into.read_text("utf-8"))["output"]
    # somebody else's, with another header and so with other sums; and half of it
    lines = [
        re.sub(rb',"sum":"[0-9a-f]+"}$', b"}", line) for line in data.read_bytes().splitlines()
    ]
    lines[0] = re.sub(rb'"started":"[^"]*"', b'"started":"2031-01-01T00:00:00Z"', lines[0])
    changed = [re.sub(rb'"wall_s":[\d.]+', b'"wall_s":%d.5' % n, x) for n, x in enumerate(lines)]
    for name, chosen in (("ada", changed), ("bob", changed[:1] + changed[1:]), ("cyd", lines)):
        shutil.copytree(work / SLUG, work / "class" / name)
        sums = Sums()
        (work / "class" / name / DATA).write_bytes(b"".join(sums.added(line) for line in chosen))
    table = work / "class.csv"
    lab(work, "grade-all", f"CH={SLUG}", f"DIR={work / 'class'}", f"CSV={table}")
    with table.open(newline="", encoding="utf-8") as file:
        notes = {row["name"]: row["note"] for row in csv.DictReader(file)}
    assert "are those of bob" in notes["ada"] and "are those of ada" in notes["bob"]
    row = class_table.read_rows(table, ())["ada"]
    one = student_report.sheet(row, None, measured.load(SLUG), "ada")
    told = student_report.markdown(one) + student_report.page(one)
    assert "2031-01-01" in told.replace("\\", "") and "bob" not in told, "who else has them is not for a student"
    assert "reference" not in notes["ada"] and "2031-01-01" in notes["ada"]
    assert "are those of the reference run" in notes["cyd"] and "those of ada" not in notes["cyd"]


def test_runs_made_here_are_a_row_each(tmp_path: Path) -> None:
    times = {"median": 30_000, "p99": 1_400_000}
    due = {"median": 130_000, "p99": 920_000_000}
    runs = {
        "closed": {"requests": 50_000, "total": times, "total_from_intended": None},
        "open": {"requests": 8000, "total": times, "total_from_intended": due},
    }
    (tmp_path / "runs.json").write_text(json.dumps({"started": "", "runs": runs}), "utf-8")
    rows = Measurement.read(measured.load("measuring"), tmp_path / "runs.json").table()
    assert [" ".join(row.split()) for row in rows] == [
        "requests median p99", "closed 50000 0.030 ms 1.400 ms", "open 8000 0.130 ms 920.000 ms",
        "",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ('title = "What', 'titel = "What', "titel"),
        ('experiment = "fork-latency"', "", "experiment"),
        ('experiment = "fork-latency"', 'experiment = "x"\n[[run]]\nname = "r"\nargs = []', "runs"),
        ('kind = "direction"', 'kind = "guess"', 'question "growth": "kind"'),
        ("points = 3", "points = 0", 'question "growth": "points"'),
        ('of = ["dynamic.fork_us@last", ', "of = [", 'question "growth": "of"'),
        ('of = ["dynamic.fork_us", "static.fork_us"]', "", 'question "linking": of'),
        ("points = 3\n\n", "points = 3\nflat = 1.0\n\n", 'question "growth": "flat"'),
        ('right = ["only the parent is copied"]', "", 'question "cause-growth": right'),
        ('right = ["only the parent', 'right = ["all of', 'question "cause-growth": right'),
    ],
)
def test_a_mistake_in_a_lab_is_said(tmp_path: Path, old: str, new: str, place: str) -> None:
    text = (ROOT / "labs" / SLUG / "measure.toml").read_text("utf-8")
    assert old in text
    path = tmp_path / "labs" / SLUG / "measure.toml"
    path.parent.mkdir(parents=True)
    path.write_text(text.replace(old, new, 1), "utf-8")
    with pytest.raises(InputError) as error:
        measured.load(SLUG, tmp_path)
    assert str(error.value).startswith(f"labs/{SLUG}/measure.toml: ")
    assert place in str(error.value) and "\n" not in str(error.value)


class Data:
    """A measurement with one ratio."""

    def __init__(self, ratio: float, rounds: int = 6) -> None:
        self.found, self.rounds = ratio, rounds

    def ratio(self, of: Sequence[str]) -> float:
        return self.found


ASKED = measured.load(SLUG)
GROWTH, LINKING, CAUSE = ASKED.questions[:3]


@pytest.mark.parametrize(
    ("question", "answer", "ratio", "right"),
    [
        (GROWTH, "flat", 1.25, True), (GROWTH, "flat", 1 / 1.25, True),
        (GROWTH, "up", 1.2501, True), (GROWTH, "down", 0.7999, True),
        (GROWTH, "flat", 1.2501, False), (GROWTH, "up", 0.5, False), (GROWTH, "down", 2.0, False),
        (LINKING, 1.15, 1.0, True), (LINKING, 1.16, 1.0, False), (LINKING, 1, 1.15, True),
        (LINKING, 1, 1.16, False), (LINKING, float("inf"), 1.0, False),
        (CAUSE, "only the parent is copied", 9.0, True),
        (CAUSE, "the processes share a stack", 1.0, False),
    ],
)  # fmt: skip
def test_how_near_a_conclusion_has_to_be(
    question: measured.Question, answer: object, ratio: float, right: bool
) -> None:
    data: Any = Data(ratio)
    why = answers.fault_of(question, answer, data)
    assert (why == "") == right
    assert right or question is CAUSE or f"{ratio:.3g}" in why


def test_data_in_another_order_are_the_same_data(tmp_path: Path) -> None:
    """Rounds with other numbers, or a mark, are no other measurement."""
    text = re.sub(r'"(round|order)":\d+', r'"\1":99', (REFERENCE / DATA).read_text("utf-8"))
    (tmp_path / DATA).write_text(text.replace('"marks":[]', '"marks":["busy"]'), "utf-8")
    assert fingerprints(ASKED, tmp_path / DATA) == reference_fingerprints(ASKED) != frozenset()


def test_nobody_is_the_reference_run() -> None:
    """A submission of that name hides no data that are those of the reference run."""
    name, ours = "the reference run", reference_fingerprints(ASKED)
    said = [f"{len(ours)} of {len(ours)} repetitions are those of the reference run"]
    assert self_check.shared_with(ASKED, ours, {name: frozenset()}, "ada") == said
    assert self_check.shared_with(ASKED, ours, {name: ours}, name) == said


def test_a_line_by_hand_gets_no_note(capsys: pytest.CaptureFixture[str]) -> None:
    """Of data that are another's; the other's line says so."""
    judged = self_check._Class(ASKED)
    judged.fingerprints = dict.fromkeys(("ada", "bob"), frozenset(("x",)))
    rows = {"ada": class_table.Row("ada", state=class_table.BY_HAND, note="mine"), "bob": class_table.Row("bob")}
    judged.finish(rows)
    assert rows["ada"].note == "mine" and "are those of ada" in rows["bob"].note
    assert "ada: 1 of 1 repetitions are those of bob" in capsys.readouterr().out


def test_what_is_missing_has_no_points_and_few_rounds_have_none() -> None:
    whole = {"growth": "flat", "linking": 1.0, "why": "w", "cause-linking": "x",
             "cause-growth": "only the parent is copied"}  # fmt: skip
    for rounds, enough in ((5, 0), (6, 4)):
        data: Any = Data(1.0, rounds)
        marks = answers.marks(ASKED, whole, whole, data)
        assert [(mark.id, mark.points, mark.most) for mark in marks] == [
            ("prediction", 4, 4), ("data", enough, 4), ("growth", 3, 3), ("linking", 3, 3),
            ("cause-growth", 3, 3), ("cause-linking", 0, 3),
        ]  # fmt: skip
    asked = [GROWTH, LINKING]
    for table, lacking in (
        ({"growth": "up", "linking": 2, "why": "w"}, []), ({}, ["growth", "linking", "why"]),
        ({"growth": "UP", "linking": 0, "why": " "}, ["growth", "linking", "why"]),
        ({"growth": "up", "linking": "2", "why": "w"}, ["linking"]),
    ):  # fmt: skip
        lines = answers.missing(asked, table)
        assert [line.partition(":")[0] for line in lines] == lacking


def test_answers_that_an_editor_of_windows_has_saved(tmp_path: Path) -> None:
    (tmp_path / "answers.toml").write_text("[prediction]\nwhy = 'w'\n", "utf-8-sig")
    assert answers.Answers.read(tmp_path).prediction == {"why": "w"}


@pytest.mark.parametrize(
    "text",
    ["[]", "{}", '{"at": "2020", "prediction": 3}', '{"at": "2020", "prediction": "ab"}', "[" * 60_000],
    ids=["list", "empty", "number", "word", "deep"],
)
def test_what_is_no_prediction_that_was_sealed(tmp_path: Path, text: str) -> None:
    (tmp_path / "sealed.json").write_text(text, "utf-8")
    with pytest.raises(LabError, match="no prediction was sealed"):
        answers.Sealed.read(tmp_path)


def test_the_stages_of_a_lab_that_measures(tmp_path: Path) -> None:
    """By the files that are there."""
    found = [stages.of_measured(ASKED, tmp_path)]
    for name in ("sealed.json", DATA):
        (tmp_path / name).write_text("", "utf-8")
        found.append(stages.of_measured(ASKED, tmp_path))
    assert found == [1, 2, 3]
    assert sum(stage.points for stage in stages.of(ASKED)) == ASKED.points


def test_the_server_stands_still_in_each_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a second, two seconds after it began; and goes on before it is ended."""
    done = list[object]()

    class Program:
        """What is asked of the server, and of hammer."""

        def __init__(self, words: Sequence[object], **_: object) -> None:
            self.words, self.stdout = words, io.StringIO("listening on http://127.0.0.1:1/\n")

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None: ...

        def send_signal(self, number: int) -> None:
            done.append(signal.Signals(number).name)

        def terminate(self) -> None:
            done.append("ended")

        def communicate(self, timeout: float) -> tuple[str, None]:
            return json.dumps(self.words[1:]), None

    one, into = measured.load("measuring"), tmp_path / "runs.json"
    for name in ("01-iterative", "hammer"):
        with pytest.raises(LabError, match="is not built"):
            data.measure(one, tmp_path, into)
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).write_text("")
    fake = SimpleNamespace(Popen=Program, PIPE=-1, TimeoutExpired=TimeoutError)
    monkeypatch.setattr(data, "subprocess", fake)
    monkeypatch.setattr(data, "time", SimpleNamespace(sleep=done.append))
    data.measure(one, tmp_path, into)
    assert done == [2.0, "SIGSTOP", 1.0, "SIGCONT", "SIGCONT", "ended"] * len(one.runs)
    assert json.loads(into.read_text("utf-8"))["runs"] == {
        run.name: [*run.args, "--json", "http://127.0.0.1:1/README.md"] for run in one.runs
    }


def test_a_prediction_that_answers_nothing_has_no_points() -> None:
    """Whoever writes sealed.json by hand has to answer, too; right it need not be."""
    data: Any = Data(1.0)
    for sealed, points in (
        ({}, 0), ({"growth": "up", "linking": 2}, 0), ({"growth": "up", "linking": "2", "why": "w"}, 0),
        ({"growth": "up", "linking": 9.0, "why": "w"}, 4),
    ):  # fmt: skip
        mark = answers.marks(ASKED, sealed, {}, data)[0]
        assert (mark.id, mark.points) == ("prediction", points)
        assert mark.why.startswith("not predicted: ") == (points == 0)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 10**400, True, -1, 0], ids=lambda n: str(n)[:9])
def test_what_is_no_number_to_count_with(number: object) -> None:
    data: Any = Data(1.0)
    concluded = {"growth": "flat", "linking": number, "why": "w"}
    marks = {mark.id: mark for mark in answers.marks(ASKED, {}, concluded, data)}
    assert (marks["growth"].points, marks["linking"].points) == (3, 0)
    assert marks["linking"].why.startswith("linking: a number above 0")


@pytest.mark.parametrize("number", [0, 10**400], ids=["zero", "long"])
def test_data_that_cannot_be_counted_with_are_one_line(tmp_path: Path, number: int) -> None:
    one = measured.load("measuring")
    answered = {"direction": "up", "factor": 3.0}
    lines = [f"{q.id} = {json.dumps(answered.get(q.kind, q.choices[:1]))}" for q in one.questions]
    given = "\n".join([*lines, 'why = "w"', ""])
    seen = {name: {"median": 1, "p99": p99} for name, p99 in (("closed", 1), ("open", number))}
    runs = {name: {"requests": 1, "total": each, "total_from_intended": each} for name, each in seen.items()}
    texts = {
        "answers.toml": f"[prediction]\n{given}[conclusion]\n{given}",
        "sealed.json": json.dumps({"at": "2020", "prediction": {}}),
        "runs.json": json.dumps({"started": "2021", "runs": runs}),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, "utf-8")
    status, _, wrong = lab(tmp_path, "grade", f"CH={one.slug}", f"DIR={tmp_path}")
    assert status == 2 and "runs.json: " in wrong and "\n" not in wrong


def test_answers_have_an_end(tmp_path: Path) -> None:
    """A short file of keys with many dots would take all memory, for the whole class."""
    (tmp_path / "answers.toml").write_text("#\n" * 9000, "utf-8")
    with pytest.raises(LabError, match="answers.toml has 18000 bytes; 16384 are the most"):
        self_check.Judged.from_folder(ASKED, tmp_path)


def test_a_template_has_a_place_for_each_answer() -> None:
    for slug in LABS:
        one = measured.load(slug)
        table = tomllib.loads(measured.answers_template(one))
        kinds = {q.id: q.kind for q in one.questions}
        assert set(table["conclusion"]) == {*kinds, "why"}
        expected = {name for name, kind in kinds.items() if kind != "cause"}
        assert set(table["prediction"]) == {*expected, "why"}
        for part in table.values():
            assert all(part[name] == ("" if kinds.get(name) != "factor" else 0) for name in part)


def test_what_is_wrong_is_one_line(work: Path) -> None:
    status, _, wrong = lab(work, "grade-all", f"CH={SLUG}", f"DIR={work / 'none'}")
    assert status == 2 and wrong.startswith(f"{work / 'none'}: no folder is in it")
    status, _, wrong = lab(work, "handout", f"CH={SLUG}")
    assert status == 2 and wrong.startswith(f"CH={SLUG}: a lab that measures has no program to build")
    status, _, wrong = lab(work, "lab", "CH=99")
    assert status == 2 and wrong.startswith("CH=99: there is no such lab. There are: 00-client")
    path = work / "build/results" / DATA
    changed = re.sub(r'"wall_s": ?[\d.]+', '"wall_s": 9.9', path.read_text("utf-8"), count=3)
    path.write_text(changed, "utf-8")
    status, _, wrong = lab(work, "check", f"CH={SLUG}")
    assert status == 2 and DATA in wrong, "somebody has written into the data"
    (work / SLUG / "sealed.json").write_text("{", "utf-8")
    status, _, wrong = lab(work, "check", f"CH={SLUG}")
    assert status == 2 and "\n" not in wrong and "sealed.json" in wrong


@pytest.mark.parametrize("slug", LABS)
def test_each_lab_is_whole_and_its_data_can_be_had(slug: str, tmp_path: Path) -> None:
    from quest.learn.path import points_of

    one = measured.load(slug)
    assert one.points == points_of(slug) == 20
    for name in ("task.md", "hints.md"):
        assert (ROOT / "labs" / slug / name).is_file()
    assert lab(tmp_path, "hint", f"CH={slug}")[0] == 0
    if one.experiment:
        numbers = Measurement.read(one, REFERENCE / one.data_file)
        for question in one.predicted:
            assert numbers.ratio(question.operands) > 0
