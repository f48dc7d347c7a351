"""Result files: killed writers, damage, and the schema."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quest.ground.errors import InputError
from quest.measure import records
from quest.measure.records import ResultSet, Writer, first_and_last, malformed_lines, read_results
from tests.harness.made_up import (
    CHANGED,
    damaged,
    end_record,
    lines,
    parsed,
    repetition,
    result_set,
    run_record,
    write,
    write_lines,
)

DEFINITION = parsed()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(result_set(DEFINITION, {"a": [1.0, 2.0], "b": [3.0]}), tmp_path / "sample.jsonl")


def test_a_file_cut_at_any_byte_loses_that_line_only_and_goes_on(path: Path) -> None:
    data = path.read_bytes()
    assert [r["samples"]["ns"] for r in read_results(path).repetitions] == [[1.0], [2.0], [3.0]]
    last = data.rfind(b"\n", 0, -1) + 1
    before = data.rfind(b"\n", 0, last - 1) + 1
    for cut in range(before, len(data)):
        path.write_bytes(data[:cut])
        found = read_results(path)
        assert len(found.repetitions) == (3 if cut >= last else 2)
        assert found.end is None
        assert first_and_last(path) is None or cut in (before, last)
        with Writer(path) as writer:
            writer.append(end_record(3))
        assert read_results(path).end
        assert (first_and_last(path) or [{}])[-1]["type"] == "end"


Change = Callable[[list[bytes]], list[bytes]]


@pytest.mark.parametrize(
    ("change", "number"),
    [
        (lambda lines: [*lines[:2], lines[2].replace(b"2.0", b"200.0"), *lines[3:]], 3),
        (lambda lines: [lines[0].replace(b"Example", b"Another"), *lines[1:]], 1),
        (lambda lines: [*lines[:2], *lines[3:]], 3),
        (lambda lines: [*lines[:3], *lines[2:]], 4),
        (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], 2),
    ],
    ids=["edited", "other environment", "cut", "doubled", "exchanged"],
)
def test_what_was_changed_is_named(path: Path, change: Change, number: int) -> None:
    """By its line; and so is one whose sum was taken away."""
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(change(whole)))
    refused(path, number, CHANGED)
    assert first_and_last(path) is None
    path.write_bytes(b"".join([*whole[:2], whole[2].partition(b',"sum"')[0] + b"}\n", *whole[3:]]))
    refused(path, 3, "it has no check sum")


def refused(path: Path, number: int, why: str) -> None:
    with pytest.raises(InputError) as error:
        read_results(path)
    assert str(error.value) == damaged(f"{path}:{number}", why)


@pytest.mark.parametrize(
    ("number", "line", "why"),
    [
        (3, "{broken}", "not JSON"),
        (3, '{"type":"surprise"}', "no known type"),
        (3, json.dumps(run_record(DEFINITION)), 'a second line of type "run"'),
        (1, json.dumps(run_record(DEFINITION, schema=2)),
         "not of schema 1, which this harness reads"),
        (1, json.dumps(repetition("a", 0)), 'the first line is not of type "run"'),
    ],
)  # fmt: skip
def test_what_is_no_set_names_file_and_line(path: Path, number: int, line: str, why: str) -> None:
    texts = [json.dumps(record) for record in lines(read_results(path))]
    texts[number - 1] = line
    write_lines(texts, path)
    refused(path, number, why)


def test_what_is_no_file_is_one_line(path: Path) -> None:
    path.write_bytes(b'{"type":"ru')
    assert not records.started(path)
    with pytest.raises(InputError, match="empty; delete it to measure again"):
        read_results(path)
    with pytest.raises(InputError, match=r"none\.jsonl: No such file or directory"):
        read_results(path.with_name("none.jsonl"))
    assert first_and_last(path.with_name("none.jsonl")) is None


def test_a_failure_that_went_well_later_is_none_any_more() -> None:
    found = ResultSet(Path("x"), run_record(DEFINITION))
    failure = {"type": "failure", "variant": "a", "params": {"n": 3}, "round": 0, "order": 0,
               "error": "no"}  # fmt: skip
    found.add(failure)
    found.add({**failure, "error": "still not"})
    assert [f["error"] for f in found.failures] == ["still not"]
    # The order of the parameters says nothing.
    found.add({**failure, "params": {"x": 1, "y": 2}, "round": 1})
    found.add(repetition("a", 1, params={"y": 2, "x": 1}))
    found.add(repetition("a", 0))
    assert found.failures == []


def test_a_record_of_our_own_that_is_wrong_is_never_written(tmp_path: Path) -> None:
    with Writer(tmp_path / "x.jsonl") as writer, pytest.raises(ValueError, match="JSON"):
        writer.append(repetition("a", 0, scalars={"x": float("nan")}))
    assert (tmp_path / "x.jsonl").read_bytes() == b""


def test_older_results_are_moved_never_overwritten(path: Path) -> None:
    text = path.read_text()
    names = []
    for _ in range(3):
        path.write_text(text)
        names.append(records.set_aside(path).name)
    assert names == ["sample-1.jsonl", "sample-2.jsonl", "sample-3.jsonl"]
    assert not path.exists()


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"scalars": {"x": "fast"}}, '"scalars": "x"'),
        ({"samples": {"ns": [1.0, 2.0, 3.0, 4.0, 5.0, True]}}, '"samples": "ns"'),
        ({"marks": [""]}, '"marks"'),
        ({"params": {"n": [1]}}, '"params": "n"'),
        ({"round": -1}, '"round"'),
        ({"host": "example"}, 'unknown key "host"'),
        ({"histograms": {"total": [[1]]}}, '"histograms": "total 1"'),
        ({"type": "end"}, 'unknown key "variant"'),
    ],
)
def test_a_line_of_another_form_is_named(path: Path, change: dict[str, Any], place: str) -> None:
    assert list(malformed_lines(path)) == []
    with path.open("a") as file:
        file.write(json.dumps(repetition("a", 5, **change)) + "\n")
    problems = list(malformed_lines(path))
    assert len(problems) == 1
    assert problems[0].startswith(f"{path}:6: {place}")
