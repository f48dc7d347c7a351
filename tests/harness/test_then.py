"""[[then]]: the tables of the sources, checked, and put beside what was measured."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quest.ground.errors import InputError
from quest.measure.records import HERE, REFERENCE, ResultSet
from quest.report import then
from quest.report.measured import Both
from quest.spec.model import Experiment
from quest.stats.analysis import analyse
from tests.harness.made_up import (
    Tree,
    definition,
    end_record,
    parsed,
    repetition,
    result_set,
    run_record,
)

ROWS: list[dict[str, Any]] = [
    {"variant": "a", "value": 6.11},
    {"variant": "b", "value": 12.22, "low": 12, "high": 13, "note": "the best of three"},
    {"title": "LiteSpeed", "value": 4.35, "why": "no longer to be had"},
]
THEN: dict[str, Any] = {
    "key": "small",
    "title": "Small files",
    "source": "raw-io",
    "metric": "us",
    "unit": "MB/s",
    "scale": 1e6,
    "base": "a",
    "rows": ROWS,
    "notes": ["Two disks."],
}


def with_table(**changes: Any) -> Experiment:
    whole = {key: value for key, value in {**THEN, **changes}.items() if value is not None}
    return parsed(then=[whole])


def with_row(**row: Any) -> dict[str, Any]:
    return {"rows": [*ROWS, row]}


def results(a: float, b: float, *marks: str) -> ResultSet:
    values = {"a": [a + i for i in range(8)], "b": [b + 2 * i for i in range(8)]}
    found = result_set(with_table(), {n: column for n, column in values.items() if column[0] > 0})
    found.repetitions[0]["marks"] = list(marks)
    return found


def compared(
    here: ResultSet | None, reference: ResultSet | None = None, skips: dict[str, str] | None = None
) -> then.SourceTable:
    definition = with_table()
    both = Both(
        analyse(definition, here, HERE) if here else None,
        analyse(definition, reference, REFERENCE) if reference else None,
        tuple((skips or {}).items()),
    )
    return then.source_tables(definition, both)[0]


MIXED = results(1000, 0, "noisy"), results(5000, 20000)  # b was not measured here


# ---- what cannot be right ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metric": "ms"}, 'unknown metric "ms"'),
        ({"scale": None}, '"scale" is missing: metric "us" is in "µs", not "MB/s"'),
        ({"unit": "µs"}, '"scale" is not 1'),
        ({"scale": 0}, '"scale" must be above 0'),
        ({"scale": float("nan")}, '"scale" must be a finite number'),
        ({"base": "c"}, '"base" must be the variant of a row, not "c"'),
        ({"rows": []}, '"rows" must not be empty'),
        ({"rows": [{"variant": "a", "value": 0}]}, 'no ratio to "a", whose value is 0'),
        (with_row(variant="c", value=1), 'row 4: unknown variant "c"'),
        (with_row(variant="a", value=1), 'row 4: "a" is there twice'),
        (with_row(variant="a@4", value=1), 'row 4: "@4" names no x'),
        (with_row(variant="a@", value=1), 'row 4: "variant" must be a text that does not end'),
        (with_row(title="x", value=1), 'row 4: either "variant" is needed, or'),
        ({"rows": [{**ROWS[0], "why": "x"}]}, 'row 1: either "variant" is needed, or'),
        ({"rows": [{"variant": "a", "value": -1}]}, 'row 1: "value" must be at least 0'),
        ({"rows": [{"variant": "a", "value": 5, "low": 4}]}, 'row 1: "low" goes with "high"'),
        ({"rows": [{"variant": "a", "value": 5, "low": 6, "high": 7}]}, 'row 1: "value" must be'),
    ],
)
def test_a_mistake_is_one_line_that_names_the_table(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        with_table(**changes)
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith("sample.toml: then ")
    assert message in text


def sweeping(x: str, **axis: Any) -> Experiment:
    table = {**THEN, **with_row(variant=f"a@{x}", value=9)}
    profiles = definition()["profile"]
    profiles["quick"]["sweep"] = {"threads": [0, 64]}
    axis = axis or {"parameter": "threads"}
    return parsed(sweep={"threads": [1, 16]}, profile=profiles, x={"title": "threads", **axis}, then=[table])


def test_an_x_must_be_one_of_some_profile() -> None:
    for x in ("1", "16", "0", "64", "first", "last"):
        assert sweeping(x).then_tables[0].rows[3].operand("us") == f"a.us@{x}"
    with pytest.raises(InputError, match='row 4: "@2": no sweep has this value of threads'):
        sweeping("2")
    assert sweeping("2", column="live").then_tables


# ---- beside what was measured --------------------------------------------------------------------


def test_a_value_at_an_x() -> None:
    found = sweeping("16")
    result = ResultSet(Path("x"), run_record(found))
    result.add(repetition("a", 0, params={"threads": 16}, samples={"ns": [16000]}))
    result.add(end_record(1))
    both = Both(analyse(found, result, HERE))
    first, *_, last = then.source_tables(found, both)[0].lines
    assert last.here
    assert (first.title, last.title, last.here.value) == ("a", "a, threads 16", 16)


# ---- how it is shown -----------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "text"), [(0.0, "0.00"), (0.0123, "0.0123"), (0.714, "0.71"), (131.5, "132")])
def test_ratios_as_text(value: float, text: str) -> None:
    assert then.ratio_text(value) == text


BOTH = results(1000, 3000), results(5000, 20000)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (compared(*BOTH), {"there_ratio": ["1", "3.9986", "-"], "source": ["here"] * 2}),
        # 20 to the 5 of the same run, not to the 1 of this machine; and the bar says so.
        (compared(*MIXED), {
            "here": ["1.0035", "20.007", "-"],
            "ratio": ["1", "3.9986", "-"],
            "source": ["here", "reference", "none"],
            "here_text": [
                "1.00 µs (1.00–1.01 µs)", "20.0 µs, reference machine", "no longer to be had"
            ],
        }),
        (compared(results(0, 3000)), {"here": ["-", "3.007", "-"], "ratio": ["-"] * 3}),
        (compared(None, BOTH[1]), {"there_ratio": ["-"] * 3}),  # the foot of the figure says it
        (compared(None, skips={"b": "no nginx"}), {
            "source": ["none"] * 3,
            "here_text": ["not measured: make bench ONLY=sample", "no nginx"],
        }),
    ],
)  # fmt: skip
def test_whose_value_stands_beside_that_of_then(source: then.SourceTable, expected: dict[str, list[str]]) -> None:
    header, *lines = [line.split("\t") for line in then.tsv([source]).splitlines()]
    columns = dict(zip(header, zip(*lines, strict=True), strict=True))
    for key, cells in expected.items():
        assert list(columns[key][: len(cells)]) == cells
    ends = zip(*(columns[f"ratio{end}"] for end in ("_low", "", "_high")), strict=True)
    assert all(list(each) == sorted(each) for each in ends)


# ---- the commands --------------------------------------------------------------------------------

TABLE = """
[[then]]
key = "small"
title = "Small files"
source = "raw-io"
metric = "us"
unit = "µs"
base = "a"
rows = [
    { variant = "a", value = 6.11 },
    { variant = "b", value = 12.22 },
    { title = "LiteSpeed", value = 4.35, why = "no longer to be had" },
]
"""


@pytest.fixture(name="sample")
def _sample(tree: Tree) -> Tree:
    tree.experiment()
    path = tree.experiments / "sample.toml"
    path.write_text(path.read_text(encoding="utf-8") + TABLE, encoding="utf-8")
    tree.experiment("plain")
    tree.program()
    return tree


def test_the_commands_know_them(sample: Tree, said: Callable[..., str]) -> None:
    everything = said("tables")
    assert "not measured: make bench ONLY=sample" in everything
    assert "4.35" in everything
    assert said("tables", "ONLY=sample") == everything
    assert said("tables", "ONLY=plain").startswith("no table of a source")
    wrong = 'unknown experiment "smaple"; did you mean sample?\n'
    assert said("tables", "ONLY=smaple", status=2) == wrong
    said("export")
    folder = sample.root / "build/data"

    def read(name: str) -> str:
        return (folder / name).read_text(encoding="utf-8")

    before = read("sample/meta.gp")
    done = sample.bench()
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("sample.small: Small files") == 1
    assert "plain." not in done.stdout
    again = said("bench", "PROFILE=smoke", "ONLY=sample")
    assert again.count("sample.small") == 1, "what was named is told again"
    said("export")
    assert read("sample/meta.gp") != before, "what figures depend on has changed with it"
    assert not (folder / "plain/then.tsv").exists()
    assert [row["source"] for row in json.loads(read("then.json"))["sample.small"]["rows"]] == [
        "here", "here", "none",
    ]  # fmt: skip
