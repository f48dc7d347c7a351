"""The ratios over machines: whose they are, and what is drawn and printed of them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from quest.ground.errors import InputError
from quest.report import machines, share
from quest.report.measured import Library
from tests.harness.made_up import Tree, lines, parsed, result_set, write, write_lines

NUMBERS = [
    {"key": "gain", "ratio": ["b.us", "a.us"]},
    {"key": "loss", "ratio": ["b.us", "a+aa.us"]},
    {"key": "plain", "value": "a.us"},
]
DEFINITIONS = [parsed(number=NUMBERS), parsed(id="other", number=NUMBERS)]
KNOWN = {definition.id: definition for definition in DEFINITIONS}
RATIOS = "# a comment\nsample.gain\tb against a\nsample.loss\tthe second a\nother.gain\twhat none has\n"


def run(folder: Path, gain: float, loss: float = 50.0, finished: bool = True) -> Path:
    data = {"a": 1000.0, "b": 1000.0 * gain, "a+aa": 1000.0 * gain / loss}
    result = result_set(DEFINITIONS[0], {name: [value] * 8 for name, value in data.items()})
    write_lines(map(json.dumps, lines(result)[: None if finished else -1]), folder / "sample.jsonl")
    return folder


@pytest.fixture
def ratios(tmp_path: Path) -> Path:
    path = tmp_path / "headline.tsv"
    path.write_text(RATIOS, encoding="utf-8")
    return path


def committed(tmp_path: Path, name: str, gain: float) -> None:
    packed = share.pack(run(tmp_path / name, gain), tmp_path / "packed", KNOWN)
    (tmp_path / "machines").mkdir(exist_ok=True)
    shutil.move(packed.path, tmp_path / f"machines/{name}.zip")


def strips(tmp_path: Path, ratios: Path) -> tuple[list[machines.Strip], dict[str, str]]:
    library = Library(tmp_path / "own", tmp_path / "reference", definitions=DEFINITIONS)
    return machines.strips(library, tmp_path / "machines", ratios)


def test_each_machine_is_a_dot_and_ones_own_is_the_last(tmp_path: Path, ratios: Path) -> None:
    for name, gain in (("zen", 3.0), ("atom", 4.0)):
        committed(tmp_path, name, gain)
    run(tmp_path / "reference", 2.0)
    run(tmp_path / "own", 5.0)
    found, runs = strips(tmp_path, ratios)
    names = ["reference, Example", "atom", "zen", "yours"]
    assert list(runs) == names
    assert {name: number.value for name, number in found[0].ratios.items()} == dict(
        zip(names, (2, 4, 3, 5), strict=True)
    )
    assert not found[2].ratios
    entry = machines.entry(found, runs)
    assert entry["rows"][0] == ["b against a", "2", "4", "3", "5"]
    assert entry["rows"][2] == ["what none has", "", "", "", ""]
    assert [each["source"] for each in entry["runs"]] == ["reference"] * 3 + ["here"]
    files = machines.files(found, runs)
    dots = [line.split("\t") for line in files["dots.tsv"].splitlines()[1:]]
    assert sorted((place, value, whose) for place, value, _, _, whose in dots if place == "1") == [
        ("1", "2", "1"), ("1", "3", "0"), ("1", "4", "0"), ("1", "5", "2"),
    ]  # fmt: skip
    variables = dict(line.split(" = ") for line in files["meta.gp"].splitlines() if not line.startswith("#"))
    assert (variables["rows"], variables["large"], variables["others"], variables["yours"]) == ("2", "1", "2", "1")


def test_one_committed_machine_alone(tmp_path: Path, ratios: Path) -> None:
    run(tmp_path / "reference", 2.0)
    run(tmp_path / "own", 5.0, finished=False)
    found, runs = strips(tmp_path, ratios)
    assert list(runs) == ["reference, Example"]
    assert "yours = 0" in machines.files(found, runs)["meta.gp"]
    assert [list(each.ratios) for each in found] == [list(runs), list(runs), []]


def test_nothing_is_measured_yet(tmp_path: Path, ratios: Path) -> None:
    found, runs = strips(tmp_path, ratios)
    assert 'source = "none"' in machines.files(found, runs)["meta.gp"]
    assert machines.entry(found, runs)["names"] == []


@pytest.mark.parametrize("line", ["sample.plain\tno ratio", "sample.gone\tnone", "nothing.gain\tnone", "sample.gain\t"])
def test_what_is_no_ratio_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "headline.tsv"
    path.write_text(f"#\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=f"{path}:2: "):
        machines.headline(KNOWN, path)


@pytest.mark.parametrize("change", [{"environment": {"cpu": 17}}, {"environment": {"libc": "x"}}])
def test_a_run_that_none_can_be_is_named(tmp_path: Path, ratios: Path, change: dict[str, object]) -> None:
    """Each of its lines has the form that it should have."""
    result = result_set(DEFINITIONS[0], {"a": [1.0], "b": [2.0]})
    result.run.update(change)
    write(result, tmp_path / "eve/sample.jsonl")
    packed = share.pack(tmp_path / "eve", tmp_path / "machines", KNOWN)
    with pytest.raises(InputError) as error:
        strips(tmp_path, ratios)
    assert str(error.value) == f"{packed.path}: sample: damaged: no run of sample has such lines"


def test_half_a_character_in_a_run_of_others_stops_no_export(tmp_path: Path, ratios: Path) -> None:
    """JSON can name one, and no file of text can hold it."""
    result = result_set(DEFINITIONS[0], {"a": [1000.0] * 8, "a+aa": [1000.0] * 8, "b": [3000.0] * 8})
    result.run["environment"]["cpu"] = "E\ud800"
    write(result, tmp_path / "eve/sample.jsonl")
    share.pack(tmp_path / "eve", tmp_path / "machines", KNOWN)
    found, runs = strips(tmp_path, ratios)
    text = json.dumps(machines.entry(found, runs), ensure_ascii=False)
    assert text.encode() and "E\\\\ud800" in text


def test_a_damaged_machine_is_named_and_the_rest_exported(tree: Tree, said: Callable[..., str]) -> None:
    tree.experiment()
    (tree.root / "benchmarks/headline.tsv").write_text("", encoding="utf-8")
    folder = tree.root / "benchmarks/results/machines"
    folder.mkdir(parents=True)
    (folder / "atom.zip").write_bytes(b"x")
    write(result_set(parsed(), {"a": [4e4], "b": [8e4]}), tree.root / "build/results/sample.jsonl")
    assert said("export", status=1).startswith("benchmarks/results/machines/atom.zip: it is no file of make share")
    assert "sample.a.us" in json.loads((tree.root / "build/data/numbers.json").read_text(encoding="utf-8"))
    (folder / "atom.zip").unlink()
    said("export")
    assert json.loads((tree.root / "build/data/machines.json").read_text(encoding="utf-8"))["rows"] == []
