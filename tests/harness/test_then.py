"""[[then]]: the tables of the sources, read, checked, and put beside what was measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_up import Tree, definition, end_record, parsed, repetition, result_set, run_record, write

from harness.errors import InputError
from harness.report import export, gnuplot, then
from harness.run import records
from harness.run.records import ResultSet, Source, Sources
from harness.spec.model import Experiment

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


def rows(*added: dict[str, Any]) -> list[dict[str, Any]]:
    return [*ROWS, *added]


def results(found: Experiment, a: float, b: float, count: int = 8) -> ResultSet:
    values = {"a": [a + i for i in range(count)], "b": [b + 2 * i for i in range(count)]}
    return result_set(found, {name: column for name, column in values.items() if column[0] > 0})


def compared(
    here: ResultSet | None, reference: ResultSet | None = None, skips: dict[str, str] | None = None
) -> then.Beside:
    found = Sources(
        Source(records.HERE, here) if here else None,
        Source(records.REFERENCE, reference) if reference else None,
        list((skips or {}).items()),
    )
    return then.of(with_table(), found)[0]


# ---- what cannot be right ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": "S3"}, '"source" must be one of talk'),
        ({"metric": "ms"}, 'unknown metric "ms"'),
        ({"scale": None}, '"scale" is missing: metric "us" is in "µs", not "MB/s"'),
        ({"unit": "µs"}, '"scale" is not 1'),
        ({"scale": 0}, '"scale" must be above 0'),
        ({"scale": -1}, '"scale" must be above 0'),
        ({"scale": float("nan")}, "a number is infinite, or none"),
        ({"scale": "much"}, '"scale" must be a number'),
        ({"base": "c"}, '"base" must be the variant of a row, not "c"'),
        ({"base": "LiteSpeed"}, '"base" must be the variant of a row'),
        ({"base": None}, '"base" is missing'),
        ({"key": "Small files"}, '"key" must be lower-case words'),
        ({"rows": []}, '"rows" must not be empty'),
        ({"row": []}, 'unknown key "row"'),
        ({"rows": [{"variant": "a", "value": 0}]}, 'no ratio to "a", whose value is 0'),
        ({"rows": rows({"variant": "c", "value": 1})}, 'row 4: unknown variant "c"'),
        ({"rows": rows({"variant": "a", "value": 1})}, 'row 4: "a" is there twice'),
        ({"rows": rows({"variant": "a@4", "value": 1})}, 'row 4: "@4" names no x'),
        (
            {"rows": rows({"variant": "a@", "value": 1})},
            'row 4: "variant" must be a text that does not end with "@"',
        ),
        ({"rows": rows({"variant": "b+aa", "value": 1})}, "row 4: variant"),
        ({"rows": rows({"title": "x", "value": 1})}, 'row 4: either "variant" is needed, or'),
        ({"rows": rows({"why": "x", "value": 1})}, 'row 4: either "variant" is needed, or'),
        ({"rows": [{**ROWS[0], "why": "x"}]}, 'row 1: either "variant" is needed, or'),
        ({"rows": [{"variant": "a"}]}, 'row 1: "value" is missing'),
        ({"rows": [{"variant": "a", "value": "6"}]}, 'row 1: "value" must be a number'),
        ({"rows": [{"variant": "a", "value": True}]}, 'row 1: "value" must be a number'),
        ({"rows": [{"variant": "a", "value": -1}]}, 'row 1: "value" must be at least 0'),
        ({"rows": [{"variant": "a", "value": float("inf")}]}, "a number is infinite"),
        ({"rows": [{"variant": "a", "value": 5, "low": 4}]}, 'row 1: "low" goes with "high"'),
        ({"rows": [{"variant": "a", "value": 5, "low": 6, "high": 7}]}, 'row 1: "value" must be'),
        ({"rows": [{"variant": "a", "valeu": 5}]}, 'row 1: unknown key "valeu"'),
        ({"rows": [{"variant": "a", "value": 5, "at": 4}]}, 'row 1: unknown key "at"'),
    ],
)
def test_a_mistake_is_one_line_that_names_the_table(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        with_table(**changes)
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith("sample.toml: then ") or "infinite" in text
    assert message in text


def test_two_tables_of_one_key() -> None:
    with pytest.raises(InputError, match='sample.toml: then "small" is there twice'):
        parsed(then=[THEN, THEN])


def sweeping(x: str, **axis: Any) -> Experiment:
    table = {**THEN, "rows": [*ROWS, {"variant": f"a@{x}", "value": 9}]}
    profiles = definition()["profile"]
    profiles["quick"]["sweep"] = {"threads": [0, 64]}
    axis = axis or {"parameter": "threads"}
    return parsed(
        sweep={"threads": [1, 16]}, profile=profiles, x={"title": "threads", **axis}, then=[table]
    )


@pytest.mark.parametrize("x", ["1", "16", "0", "64", "first", "last"])
def test_an_x_of_some_profile(x: str) -> None:
    assert sweeping(x).thens[0].rows[3].operand("us") == f"a.us@{x}"


def test_an_x_of_no_profile() -> None:
    with pytest.raises(InputError, match='row 4: "@2": no sweep has this value of threads'):
        sweeping("2")
    assert sweeping("2", column="live").thens


def test_a_title_tells_x_unless_the_row_has_one() -> None:
    found = sweeping("64")
    assert [then.title_of(found, row) for row in found.thens[0].rows] == [
        "a", "b", "LiteSpeed", "a, threads 64"
    ]  # fmt: skip


# ---- beside what was measured --------------------------------------------------------------------


def test_ratios_are_taken_in_the_source_and_in_one_run() -> None:
    found = compared(results(with_table(), 1000, 3000))
    first, second, third = found.lines
    assert [round(line.then_ratio, 2) for line in found.lines] == [1.0, 2.0, 0.71]
    assert first.here and second.here and second.ratio
    assert (first.here.value, second.here.value) == (1.0035, 3.007)
    assert second.ratio.value == pytest.approx(3.007 / 1.0035)
    assert second.ratio.low and second.ratio.high
    assert second.ratio.low <= second.ratio.value <= second.ratio.high
    assert (third.here, third.origin, third.why) == (None, "none", "no longer to be had")


def test_what_was_not_measured_here_has_the_reference_value_and_its_ratio() -> None:
    found = with_table()
    here, reference = results(found, 1000, 0), results(found, 5000, 20000)
    first, second, _ = compared(here, reference).lines
    assert first.here and second.here and second.ratio
    assert (first.origin, second.origin) == ("here", "reference")
    assert (first.here.value, second.here.value) == pytest.approx((1.0035, 20.007))
    # 20 to the 5 of the same run, not to the 1 of this machine.
    assert second.ratio.value == pytest.approx(20.007 / 5.0035)


def test_what_was_never_measured_says_why() -> None:
    lines = compared(None, skips={"b": "nginx is not installed"}).lines
    assert [line.why for line in lines] == [
        "not measured: make bench ONLY=sample", "nginx is not installed", "no longer to be had"
    ]  # fmt: skip
    assert [line.origin for line in lines] == ["none"] * 3


def test_without_the_base_there_is_no_ratio_here() -> None:
    second = compared(results(with_table(), 0, 3000)).lines[1]
    assert second.here
    assert second.ratio is None


def test_a_value_at_an_x() -> None:
    found = sweeping("16")
    result = ResultSet(Path("x"), run_record(found))
    for threads in (1, 16):
        result.add(
            repetition("a", 0, params={"threads": threads}, samples={"ns": [1000 * threads]})
        )
    result.add(end_record(2))
    line = then.of(found, Sources(Source(records.HERE, result), None, []))[0].lines[3]
    assert line.here
    assert line.here.value == 16


# ---- how it is shown -----------------------------------------------------------------------------


def test_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RESULTS", raising=False)
    found = with_table()
    here, reference = results(found, 1000, 0), results(found, 5000, 20000)
    here.repetitions[0]["marks"] = ["noisy"]
    lines = then.text(compared(here, reference), "sample").splitlines()
    assert lines[0] == "sample.small: Small files"
    assert "raw I/O" in lines[1]
    assert lines[2].startswith("  here: run of 2026-11-21, Example")
    assert lines[3].startswith("  reference: run of 2026-11-21")
    assert [line.split() for line in lines[5:9]] == [
        ["then", "MB/s", "ratio", "here", "ratio"],
        ["a", "6.11", "1.00", "1.00", "µs", "(1.00–1.01", "µs)", "1.00", "noisy"],
        ["b", "12.22", "(12–13)", "2.00", "20.0", "µs", "4.00", "reference"],
        ["LiteSpeed", "4.35", "0.71", "-", "no", "longer", "to", "be", "had"],
    ]
    assert [line.strip() for line in lines[9:]] == ["Two disks.", "b: the best of three"]


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0.00"), (0.0123, "0.0123"), (0.714, "0.71"), (131.5, "132")]
)
def test_ratios_as_text(value: float, text: str) -> None:
    assert then.ratio_text(value) == text


def test_as_a_table_for_figures() -> None:
    found = compared(results(with_table(), 1000, 3000))
    header, *lines = [line.split("\t") for line in then.tsv([found]).splitlines()]
    cells = [dict(zip(header, line, strict=True)) for line in lines]
    # In the unit of the metric, not of the source.
    assert [cell["then"] for cell in cells] == ["6.11e+06", "1.222e+07", "4.35e+06"]
    assert [cell["then_high"] for cell in cells] == ["-", "1.3e+07", "-"]
    assert [cell["then_ratio"] for cell in cells] == ["1", "2", "0.711948"]
    assert [cell["ratio"] for cell in cells] == ["1", "2.99651", "-"]
    assert [cell["source"] for cell in cells] == ["here", "here", "none"]
    assert [cell["then_text"] for cell in cells][1:] == ["12.22 (12–13) MB/s", "4.35 MB/s"]
    assert cells[0]["here_text"] == "1.00 µs (1.00–1.01 µs)"
    assert cells[2]["here_text"] == "no longer to be had"
    assert 'then_base_small = "a"\n' in gnuplot.thens([found])
    assert "then_rows_small = 3\n" in gnuplot.thens([found])


def test_a_bar_of_another_machine_says_so() -> None:
    found = with_table()
    here, reference = results(found, 1000, 0), results(found, 5000, 20000)
    lines = then.tsv([compared(here, reference)]).splitlines()
    assert ["reference machine" in line for line in lines] == [False, False, True, False]
    alone = then.tsv([compared(None, reference)])
    assert "reference machine" not in alone  # the foot of the figure says it


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


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path)
    tree.experiment()
    path = tree.experiments / "sample.toml"
    path.write_text(path.read_text(encoding="utf-8") + TABLE, encoding="utf-8")
    tree.experiment("plain")
    tree.program()
    return tree


def test_bench_ends_with_the_tables_of_what_it_measured(tree: Tree) -> None:
    done = tree.run("bench", "--profile", "smoke")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("sample.small: Small files") == 1
    assert "plain." not in done.stdout
    again = tree.run("bench", "--profile", "smoke", "--only", "sample")
    assert again.stdout.count("sample.small") == 1, "what was named is told again"


def test_tables_of_what_is_not_measured_too(tree: Tree) -> None:
    done = tree.run("tables")
    assert (done.returncode, done.stderr) == (0, "")
    assert "not measured: make bench ONLY=sample" in done.stdout
    assert "4.35" in done.stdout
    assert tree.run("tables", "sample").stdout == done.stdout
    assert tree.run("tables", "plain").stdout.startswith("no table of a source")


def test_tables_of_an_unknown_experiment(tree: Tree) -> None:
    done = tree.run("tables", "smaple")
    assert done.returncode == 2
    assert done.stderr == 'unknown experiment "smaple"; did you mean sample?\n'


def test_export(tree: Tree) -> None:
    assert tree.run("export").returncode == 0
    folder = tree.root / "build/data"
    historical = (folder / "sample/then.tsv").read_text(encoding="utf-8")
    assert "LiteSpeed\t4.35" in historical
    before = (folder / "sample/meta.gp").read_text(encoding="utf-8")
    assert tree.run("bench", "--profile", "smoke").returncode == 0
    assert tree.run("export").returncode == 0
    assert (folder / "sample/then.tsv").read_text(encoding="utf-8") != historical
    # What figures depend on has changed with it.
    assert (folder / "sample/meta.gp").read_text(encoding="utf-8") != before
    assert not (folder / "plain/then.tsv").exists()
    found = json.loads((folder / "then.json").read_text(encoding="utf-8"))
    assert list(found) == ["sample.small"]
    table = found["sample.small"]
    assert table["base"] == "a"
    assert [row["source"] for row in table["rows"]] == ["here", "here", "none"]
    assert [row["then_ratio"] for row in table["rows"]] == ["1.00", "2.00", "0.71"]
    assert table["rows"][2]["here"] == "no longer to be had"
    assert list(table["runs"]) == ["here"]


def test_a_stale_table_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = with_table()
    path = write(results(found, 1000, 3000), tmp_path / "results/sample.jsonl").parent
    loaded = records.load_sources(found, path, tmp_path / "none")
    export._export_one(found, loaded, then.of(found, loaded), tmp_path)
    assert (tmp_path / "sample/then.tsv").exists()
    export._export_one(found, loaded, [], tmp_path)
    assert not (tmp_path / "sample/then.tsv").exists()
