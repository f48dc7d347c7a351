"""`make race` and `make board`: what is said of two servers, the file, what is refused, and a race of real servers."""

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from quest.ground import places
from quest.ground.errors import InputError
from quest.learn.words import Wrong
from quest.measure import peers, programs
from quest.my import board, drawn, finish, race
from quest.my.finish import LAPS, MINE, Gain, Lap, Machine, Race, Racer, Values
from quest.report.bench import Report
from quest.spec import experiment_file
from tests.labs.my_matrix import binary

TREE = Path(__file__).resolve().parents[2]
FAULTY = Path(__file__).with_name("faulty.py")
WORK, IDLE, SLOW = LAPS
ROUNDS = range(6)


def values(server: str, part: str, numbers: list[float], **more: object) -> Values:
    return Values(server, part, {str(n): value for n, value in enumerate(numbers)}, **more)  # type: ignore[arg-type]


def around(middle: float) -> list[float]:
    return [middle * (1 + (n - 2.5) / 1000) for n in ROUNDS]


def made(name: str = "ada", mine: float = 2.0, machine: str = "A Processor", **changes: object) -> Race:
    """One's own server is `mine` times as good as 09-epoll in each lap. (Of memory only the server's part is.)"""
    found = []
    for server, times in ((MINE, mine), ("09-epoll", 1.0)):
        found += [
            values(server, "work", around(30_000 * times)),
            values(server, "own", around(8000 / times)), values(server, "kernel", [4000.0] * 6),
            values(server, "slow", around(3.0 / times)),
        ]  # fmt: skip
    whole = Race(
        name=name, time="2026-11-27T05:00:00Z", profile="quick", commit="0123",
        machine=Machine(machine, 2, "Linux 6.1", 8000), reference="09-epoll",
        servers=(Racer(MINE, "1" * 64), Racer("09-epoll", "2" * 64)), values=tuple(found),
    )  # fmt: skip
    return replace(whole, **changes)  # type: ignore[arg-type]


def changed(whole: Race, server: str, part: str, numbers: list[float], **more: object) -> Race:
    others = [one for one in whole.values if (one.server, one.part) != (server, part)]
    return replace(whole, values=(*others, values(server, part, numbers, **more)))


# ---- what is said of two servers


def word(whole: Race, lap: Lap = WORK) -> str:
    one = finish.gain(whole, lap, MINE, "09-epoll")
    return one.word if one else "-"


def test_who_is_ahead_only_where_the_rounds_agree() -> None:
    """Less memory and shorter waits are better; a round in which the machine was busy decides nothing."""
    assert [word(made(mine=2.0), lap) for lap in LAPS] == ["ahead"] * 3
    assert [word(made(mine=0.5), lap) for lap in LAPS] == ["behind"] * 3
    near = around(30_000)
    assert word(changed(made(), MINE, "work", [v * 1.01 for v in near])) == "ahead"
    for highest, lowest, said in ((1.2, 0.8, "not decided"), (1.2, 0.99, "not decided"), (1.02, 0.8, "not decided"),
                                  (1.02, 0.99, "as good")):  # fmt: skip
        factors = [highest, 1, 1, 1, 1, lowest]
        assert word(changed(made(), MINE, "work", [v * f for v, f in zip(near, factors, strict=True)])) == said
    noisy = changed(made(), MINE, "work", around(60_000), noisy=(3,))
    assert word(noisy) == "not decided: 5 of 6 rounds undisturbed"
    assert finish.score(noisy) is None
    one = finish.gain(made(mine=2.0), WORK, MINE, "09-epoll")
    assert one and one.value == pytest.approx(2.0) and one.low == pytest.approx(2.0)


def test_the_score_is_open_and_wants_all_laps() -> None:
    assert finish.score(made(mine=1.0)) == pytest.approx(100)
    assert finish.score(made(mine=1.0), "09-epoll") == pytest.approx(100)
    twice, more = finish.score(made(mine=2.0)), finish.score(made(mine=20.0))
    assert twice and more and 150 < twice < more
    failed = changed(made(), MINE, "slow", [], failed="300 of 300 quick clients had no good reply")
    assert finish.score(failed) is None and word(failed, SLOW) == "-" and word(failed, WORK) == "ahead"
    assert any("300 of 300 quick clients" in line for line in drawn.race_lines(failed))


# ---- the file


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "ada.json"
    signed = finish.write(made(), path)
    assert finish.read(path) == signed
    assert replace(signed, sum=made().sum) == made()


def edited(path: Path, old: str, new: str, signed: bool) -> str:
    """What is said of a file in which a text was changed, with a sum that fits or not."""
    finish.write(made(), path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    if signed:
        data = json.loads(path.read_text())
        data["sum"] = finish._digest(data)
        path.write_text(json.dumps(data))
    with pytest.raises(InputError) as error:
        finish.read(path)
    assert "\n" not in str(error.value) and str(path) in str(error.value)
    return str(error.value)


def test_what_was_changed_or_cannot_be_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ada.json"
    assert "check sum is wrong" in edited(path, '"ada"', '"eve"', signed=False)
    assert "check sum is wrong" in edited(path, "59850.0", "99850.0", signed=False)
    for old, new, said in (
        ("59850.0", "9e9", "round 0 of work, mine: 9e+09 /s is impossible"),
        ("59850.0", "-3", "is impossible"),
        ("59850.0", "NaN", "finite"),
        ('"reference": "09-epoll"', '"reference": "mine"', "the reference one of ours"),
        ('"part": "slow"', '"part": "fast"', "must be one of"),
        ('"cores": 2', '"cores": "many"', '"cores" must be a whole number'),
        ('"memory_mib": 8000', f'"memory_mib": {10**308}', "more than a machine can have"),
        ('"ada"', '"' + "a" * 61 + '"', '"name"'),
        ('"profile"', '"profil"', '"profil"'),
        ('"name": "09-epoll"', '"name": "mine"', '"servers" must have mine once'),
        ('"server": "09-epoll"', '"server": "08-sigio"', '"values" must be of these servers'),
        ('"part": "own"', '"part": "work"', '"values" must be of these servers'),
    ):
        assert said in edited(path, old, new, signed=True), new
    for text in ("", "{}", "[1]", "[" * 100_000, '{"schema": "quest-race-1"}'):
        path.write_text(text)
        with pytest.raises(InputError):
            finish.read(path)


def test_a_file_that_is_nested_as_deep_as_can_be_read_is_refused(tmp_path: Path) -> None:
    """At some depth it can just be read, and its sum cannot be computed any more."""
    path = tmp_path / "deep.json"
    for depth in range(sys.getrecursionlimit()):
        path.write_text(f'{{"schema": "{finish.SCHEMA}", "name": {"[" * depth}{"]" * depth}}}')
        with pytest.raises(InputError):
            finish.read(path)


def test_the_least_number_that_there_is_has_no_ratio(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of few rounds the memory is not judged: and a class's board must not end with one file of it."""
    least = changed(changed(made("eve"), MINE, "own", [5e-324]), MINE, "kernel", [0.0])
    assert finish.gain(least, IDLE, MINE, "09-epoll") is None
    folder = handed_in(tmp_path / "in", made("ada"), least)
    status, out, _, _ = on_board(capsys, tmp_path, folder)
    assert status == 0 and "ada" in out and "eve" in out
    assert finish.score(least) is None


def test_memory_is_judged_by_its_median(tmp_path: Path) -> None:
    """The books are those of the whole machine: a round may say anything."""
    path = tmp_path / "ada.json"
    noisy = changed(made(), MINE, "kernel", [4000.0] * 5 + [-9000.0])
    finish.write(noisy, path)
    assert finish.read(path).name == "ada"
    finish.write(changed(made(), MINE, "own", [-500.0] * 6), path)
    assert finish.read(path).name == "ada", "a server may give some back"
    finish.write(changed(made(), MINE, "kernel", [12.0] * 6), path)
    with pytest.raises(InputError, match="kernel, mine: so little memory is impossible"):
        finish.read(path)


def test_what_a_teacher_should_look_at() -> None:
    assert finish.remarks(made()) == []
    copied = changed(made(), MINE, "work", around(30_000))
    assert "work: the values are those of 09-epoll" in finish.remarks(copied)
    assert "work, mine: the same value in each round" in finish.remarks(changed(made(), MINE, "work", [5e4] * 6))
    ours = replace(made(), servers=(Racer(MINE, "2" * 64), Racer("09-epoll", "2" * 64)))
    assert "the program is 09-epoll" in finish.remarks(ours)
    assert "no difference from 09-epoll is seen in any lap" in finish.remarks(made(mine=1.0))


# ---- the board


def handed_in(folder: Path, *races: Race) -> Path:
    folder.mkdir(exist_ok=True)
    for number, one in enumerate(races):
        finish.write(one, folder / f"{number}.json")
    return folder


def on_board(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, folder: Path, **more: str
) -> tuple[int, str, str, str]:
    """Status, what is printed to both streams, and the page."""
    status = board.board({"DIR": str(folder), "BUILD": str(tmp_path / "build"), **more})
    out, err = capsys.readouterr()
    return status, out, err, (tmp_path / "build/board/index.html").read_text()


def test_only_ratios_of_different_machines_stand_in_one_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The best is first; values stand below their machine; of one name the last counts."""
    old = made("ada", 9.0, time="2026-11-26T05:00:00Z")
    races = (old, made("ada", 1.5), made("<b>bob</b>", 3.0, "Another"), made("cyd", 2.0))
    status, out, err, page = on_board(capsys, tmp_path, handed_in(tmp_path / "in", *races))
    assert (status, err) == (0, "")
    names = [line.split()[0] for line in out.splitlines() if line.startswith(("ada", "<b>bob", "cyd"))]
    assert names == ["<b>bob</b>", "cyd", "ada"]
    first, *machines = page.split("<h2>")[1:]
    assert first.count(">ada<") == 1 and "&lt;b&gt;bob" in first and "<b>bob" not in page
    assert [("Another" in one, "bob" in one) for one in machines] == [(True, True), (False, False)]
    assert "30.0k/s" not in first and "45.0k/s" in machines[1]


def test_what_cannot_be_compared_stands_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One name on two machines, and in two profiles, is three races; a folder may have folders."""
    races = (made("ada", 3.0), made("ada", 2.0, "Another"), made("ada", 1.5, profile="full"))
    assert len(board.entries_of({Path(str(number)): one for number, one in enumerate(races)})) == 3
    handed_in(tmp_path / "in", races[0])
    handed_in(tmp_path / "in/bob", *races[1:])
    status, out, err, page = on_board(capsys, tmp_path, tmp_path / "in")
    assert (status, err) == (0, "")
    assert sum(line.startswith("ada ") for line in out.splitlines()) == 3
    heads = [line for line in out.splitlines() if "better" in line]
    assert len(heads) == 2 and "quick" in heads[0] and "full" in heads[1]
    assert page.count("<h2>") == 4, "two tables of ratios, and two machines"


def test_where_the_dots_are() -> None:
    """On a logarithmic axis that holds all of them, and 1."""
    few = Gain(0.4, None, None, 5)
    assert drawn.ends([]) == drawn.ends([None]) == (0.5, 2.0)
    assert drawn.ends([Gain(4.0, 3.0, 5.0, 6), None, few]) == (0.4, 5.0)
    axis = (0.5, 2.0)
    for one, numbers in ((Gain(2.0, 0.5, 2.0, 6), ["50.0", "2.0", "96.0", "98.0"]), (None, ["50.0"]),
                         (replace(few, value=0.5), ["50.0", "2.0"])):  # fmt: skip
        assert re.findall(r"([\d.]+)%", drawn.track(one, axis)) == numbers
    whole = made()
    own = whole.part_text(MINE, "own", "B")
    assert own and own in drawn.cell(whole, MINE, IDLE) and own not in drawn.cell(whole, MINE, WORK)
    assert drawn.cell(changed(whole, MINE, "own", [], failed="none"), MINE, IDLE) == "-"


def test_files_that_are_none_are_named_and_the_others_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = handed_in(tmp_path / "in", made("ada"), made("bob"))
    (folder / "2.json").write_text((folder / "1.json").read_text().replace('"bob"', '"eve"'))
    (folder / "3.json").write_text("no JSON\x1b[2J")
    status, out, err, _ = on_board(capsys, tmp_path, folder)
    assert status == 1
    assert [line.count("2.json") + line.count("3.json") for line in err.splitlines()] == [1, 1]
    assert "ada" in out and "bob" in out and "eve" not in out
    assert "ada: the values are those of bob" in out
    with pytest.raises(InputError, match="no file of make race"):
        board.board({"DIR": str(tmp_path / "build")})
    with pytest.raises(InputError, match="DIR="):
        board.board({})


def test_names_are_those_that_the_teacher_wants(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = handed_in(tmp_path / "in", made("ada"), made("bob"))
    names = tmp_path / "names.tsv"
    names.write_text("ada\tThe Countess\n")
    _, out, _, page = on_board(capsys, tmp_path, folder, NAMES=str(names))
    assert "The Countess" in out and "ada" not in out + page and "bob" in out
    _, out, _, page = on_board(capsys, tmp_path, folder, NAMES="numbers")
    assert "server 1" in out and "server 2" in out and not {"ada", "bob"} & set(out.split())
    assert ">ada<" not in page
    names.write_text("ada\n")
    with pytest.raises(InputError, match="names.tsv:1: "):
        on_board(capsys, tmp_path, folder, NAMES=str(names))


def test_no_name_is_left_where_the_teacher_wants_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nor one that is not printed as it is: with a character of no width, say."""
    folder = handed_in(tmp_path / "in", made("ada\u200b"), made("bob"))
    _, out, _, page = on_board(capsys, tmp_path, folder, NAMES="numbers")
    assert "the values are those of server" in out
    assert "ada" not in out + page and "bob" not in out + page


# ---- who races


def test_rivals_are_ours_or_peers() -> None:
    found = race.rivals("9, nginx 15")
    assert [(one.name, one.server, one.peer) for one in found] == [
        ("09-epoll", "09-epoll", ""), ("nginx", "", "nginx"), ("15-slashdot", "15-slashdot", ""),
    ]  # fmt: skip
    assert [one.args for one in found] == [(), (), ("-w", "1")], "one worker each"
    for words in ("nginx", "", "99"):
        with pytest.raises(Wrong):
            race.rivals(words)


@pytest.mark.parametrize(("name", "said"), [("a" * 61, "NAME="), ("a\nb", "NAME="), ("a" * 60, "is not there yet")])
def test_how_long_a_name_may_be(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        race.race({"NAME": name, "WORK": str(tmp_path)})


def test_memory_is_of_each_client() -> None:
    """In bytes. A round in which the server held none says nothing."""
    seen = {
        "held": {0: 10.0, 1: 0.0}, "slab_before": {0: 100.0, 1: 5.0}, "slab_during": {0: 150.0, 1: 7.0},
        "stacks_before": {0: 3.0}, "stacks_during": {0: 8.0},
    }  # fmt: skip
    part: Any = SimpleNamespace(rounds=lambda name: seen[name])
    assert race._each(part, ("slab", "stacks")) == {0: 55 * 1024 / 10}


def test_the_laps_are_experiments_with_all_that_is_added_up() -> None:
    """And the learner's server is a peer like the others, found by its path."""
    for path in sorted(race.RACES.glob("*.toml")):
        (one,) = experiment_file.load(path)
        assert one.id in [f"race-{lap.name}" for lap in LAPS]
        assert peers.load(one.variants[0].peer).name == MINE
    names = {metric.name for metric in experiment_file.load(race.RACES / "race-idle.toml")[0].metrics}
    assert {f"{name}_{when}" for name in ("own", *race.KERNEL) for when in ("before", "during")} <= names
    seconds = sum(experiment_file.load(path)[0].profiles["quick"].seconds for path in race.RACES.glob("*.toml"))
    assert seconds <= 90


def test_a_program_that_was_made_elsewhere_is_measured_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured is kept by the values of the experiment; the script that starts it stays the same."""
    asked: list[object] = []

    def measured(definitions: list[Any], *_: object) -> Report:
        asked.append(definitions[0].variants[0].values["sources"])
        return Report()

    monkeypatch.setattr(race, "build", lambda _: "")
    monkeypatch.setattr(race, "_does_not_serve", lambda _: "")
    monkeypatch.setattr("quest.report.bench.measure_these", measured)
    (tmp_path / "my").mkdir()
    (tmp_path / "my/run").write_text('#!/bin/sh\nexec "$(dirname "$0")/server" "$@"\n')
    for program in (b"\x7fELF one", b"\x7fELF one", b"\x7fELF two"):
        (tmp_path / "my/server").write_bytes(program)
        (tmp_path / "my/server").chmod(0o755)
        (tmp_path / "my/core").write_bytes(b"\x7fELF" + os.urandom(8))  # a crash leaves one, which nobody can run
        given = {"WORK": str(tmp_path), "BUILD": str(tmp_path / "build"), "AGAINST": "09"}
        assert race.race(given) == race.FAILED
    assert asked[0] == asked[1] != asked[2]


def test_a_copy_of_ours_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the last byte, and whatever it is called."""
    for path in ("bin/09-epoll", "my/sub/copy", "other/server"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_bytes(b"\x7fELF ours")
    (tmp_path / "other/server").write_bytes(b"\x7fELF mine")
    (tmp_path / "other/text").write_bytes(b"ours")
    monkeypatch.setattr(race, "ours", lambda: ["08-sigio", "09-epoll"])
    monkeypatch.setattr(places, "build_folder", lambda _: tmp_path / "bin")
    found = [race.copy_of_ours(tmp_path / name) for name in ("my", "other")]
    assert found == [programs.fingerprint(tmp_path / "bin/09-epoll"), ""]


def test_a_file_that_may_not_be_read_stops_no_race(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would stop it when all is measured: the copies of ours are looked for then."""
    (tmp_path / "core").write_bytes(b"\x7fELF")
    (tmp_path / "server").write_bytes(b"\x7fELF")
    opened: list[str] = []

    def refuses(path: Path, *_: object, **__: object) -> object:
        opened.append(path.name)
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(race, "ours", list)
    monkeypatch.setattr(Path, "open", refuses)
    monkeypatch.setattr(Path, "read_bytes", refuses)
    found = race.copy_of_ours(tmp_path)
    monkeypatch.undo()
    assert (found, opened) == ("", ["core", "server"])


# ---- real races: a process of its own, for it enters a network and becomes the parent of orphans


def run(tmp_path: Path, line: str, *words: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """A race of a server that this line of shell starts; the file, if there is one."""
    folder = tmp_path / "my"
    folder.mkdir()
    (folder / "run").write_text(f"#!/bin/sh\n{line}\n")
    (folder / "run").chmod(0o755)
    given = [f"WORK={tmp_path}", f"BUILD={tmp_path / 'build'}", "PROFILE=smoke", "AGAINST=09", "NAME=Ada L.", *words]
    for _ in range(20):  # another test may measure in this tree, which has one lock for all
        done = subprocess.run(
            [sys.executable, "-m", "quest", "race", *given],
            cwd=TREE, text=True, capture_output=True, timeout=300, check=False,
        )  # fmt: skip
        if "another measurement runs here" not in done.stderr:
            break
        time.sleep(5)
    path = tmp_path / "build/race/ada-l.json"
    return done, json.loads(path.read_text()) if path.exists() else {}


@pytest.mark.slow
def test_a_race_gives_a_file_for_the_board(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One round decides nothing, and that is said. The same server again is not measured again."""
    done, whole = run(tmp_path, f'exec {binary("07-poll")} "$@"')
    assert done.returncode == 0, done.stdout + done.stderr
    assert whole["reference"] == "09-epoll" and whole["name"] == "Ada L."
    measured = {(one["server"], one["part"]) for one in whole["values"]}
    assert measured == {(server, part) for server in (MINE, "09-epoll") for part in finish.PARTS}
    assert "of 6 rounds undisturbed" in done.stdout
    assert "Ada L." in (tmp_path / "build/race/ada-l.html").read_text()
    assert str(tmp_path) not in json.dumps(whole)
    status, out, _, _ = on_board(capsys, tmp_path, tmp_path / "build/race")
    assert status == 0 and "Ada L." in out


@pytest.mark.long
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("echo no such port >&2; exit 3", "your server ended with status 3 before it listened"),
        pytest.param(f'exec {sys.executable} -S {FAULTY} threads length "$@"', "files: ", marks=pytest.mark.slow),
        pytest.param("exec sleep 60", "nothing listens on port", marks=pytest.mark.slow),
    ],
)
def test_what_does_not_serve_does_not_race(tmp_path: Path, line: str, said: str) -> None:
    done, whole = run(tmp_path, line)
    assert done.returncode == 1 and not whole
    assert said.removeprefix("files: ") in done.stderr and done.stderr.count("\n") == 1, done.stderr


@pytest.mark.slow
def test_a_server_that_dies_loses_that_lap_and_no_other(tmp_path: Path) -> None:
    """It has descriptors for a few clients, and ends when there are no more."""
    line = f'ulimit -n 40; exec {sys.executable} -S {FAULTY} threads none "$@"'
    done, whole = run(tmp_path, line)
    assert done.returncode == 1, done.stdout
    failed = {one["part"]: one["failed"] for one in whole["values"] if one["server"] == MINE}
    assert failed["own"] and not failed["work"]
    assert any(line.startswith("Ada L., an idle client: ") for line in done.stdout.splitlines())
    assert all(not one["failed"] for one in whole["values"] if one["server"] != MINE)
