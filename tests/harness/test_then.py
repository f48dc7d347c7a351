"""[[then]]: the tables of the sources, checked, and put beside what was measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_up import Tree, definition, end_record, parsed, repetition, result_set, run_record, write

from harness.errors import InputError
from harness.report import export, then
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


def with_row(**row: Any) -> dict[str, Any]:
    return {"rows": [*ROWS, row]}


def results(a: float, b: float, *marks: str) -> ResultSet:
    values = {"a": [a + i for i in range(8)], "b": [b + 2 * i for i in range(8)]}
    found = result_set(with_table(), {n: column for n, column in values.items() if column[0] > 0})
    found.repetitions[0]["marks"] = list(marks)
    return found


def compared(
    here: ResultSet | None, reference: ResultSet | None = None, skips: dict[str, str] | None = None
) -> then.Beside:
    found = Sources(
        Source(records.HERE, here) if here else None,
        Source(records.REFERENCE, reference) if reference else None,
        list((skips or {}).items()),
    )
    return then.of(with_table(), found)[0]


BOTH = results(1000, 0, "noisy"), results(5000, 20000)  # b was not measured here


# ---- what cannot be right ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": "S3"}, '"source" must be one of talk'),
        ({"metric": "ms"}, 'unknown metric "ms"'),
        ({"scale": None}, '"scale" is missing: metric "us" is in "µs", not "MB/s"'),
        ({"unit": "µs"}, '"scale" is not 1'),
        ({"scale": 0}, '"scale" must be above 0'),
        ({"scale": float("nan")}, '"scale" must be a finite number'),
        ({"base": "c"}, '"base" must be the variant of a row, not "c"'),
        ({"base": "LiteSpeed"}, '"base" must be the variant of a row'),
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
        ({"rows": [{"variant": "a", "valeu": 5}]}, 'row 1: unknown key "valeu"'),
    ],
)
def test_a_mistake_is_one_line_that_names_the_table(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        with_table(**changes)
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith("sample.toml: then ")
    assert message in text


def test_two_tables_of_one_key() -> None:
    with pytest.raises(InputError, match='sample.toml: then "small" is there twice'):
        parsed(then=[THEN, THEN])


def sweeping(x: str, **axis: Any) -> Experiment:
    table = {**THEN, **with_row(variant=f"a@{x}", value=9)}
    profiles = definition()["profile"]
    profiles["quick"]["sweep"] = {"threads": [0, 64]}
    axis = axis or {"parameter": "threads"}
    return parsed(
        sweep={"threads": [1, 16]}, profile=profiles, x={"title": "threads", **axis}, then=[table]
    )


def test_an_x_must_be_one_of_some_profile() -> None:
    for x in ("1", "16", "0", "64", "first", "last"):
        assert sweeping(x).thens[0].rows[3].operand("us") == f"a.us@{x}"
    with pytest.raises(InputError, match='row 4: "@2": no sweep has this value of threads'):
        sweeping("2")
    assert sweeping("2", column="live").thens


# ---- beside what was measured --------------------------------------------------------------------


def test_ratios_are_taken_in_the_source_and_in_one_run() -> None:
    first, second, third = compared(results(1000, 3000)).lines
    assert [round(line.then_ratio, 2) for line in (first, second, third)] == [1.0, 2.0, 0.71]
    assert first.here and second.here and second.ratio
    assert (first.here.value, second.here.value) == (1.0035, 3.007)
    assert second.ratio.value == pytest.approx(3.007 / 1.0035)
    assert (second.ratio.low or 0) <= second.ratio.value <= (second.ratio.high or 0)
    assert (third.here, third.origin, third.why) == (None, "none", "no longer to be had")


def test_what_was_not_measured_here_has_the_reference_value_and_its_ratio() -> None:
    first, second, _ = compared(*BOTH).lines
    assert first.here and second.here and second.ratio
    assert (first.origin, second.origin) == ("here", "reference")
    assert (first.here.value, second.here.value) == pytest.approx((1.0035, 20.007))
    # 20 to the 5 of the same run, not to the 1 of this machine.
    assert second.ratio.value == pytest.approx(20.007 / 5.0035)
    alone = compared(results(0, 3000)).lines[1]
    assert alone.here and alone.ratio is None, "without the base"


def test_where_both_have_measured_a_figure_has_both_ratios() -> None:
    table = then.tsv([compared(results(1000, 3000), results(5000, 20000))])
    header, *lines = [line.split("\t") for line in table.splitlines()]
    place = header.index("there_ratio")
    assert [line[place] for line in lines] == ["1", f"{20.007 / 5.0035:.6g}", "-"]
    only_there = then.tsv([compared(None, results(5000, 20000))])
    assert [line.split("\t")[place] for line in only_there.splitlines()[1:]] == ["-"] * 3


def test_what_was_never_measured_says_why() -> None:
    lines = compared(None, skips={"b": "nginx is not installed"}).lines
    assert [line.why for line in lines] == [
        "not measured: make bench ONLY=sample", "nginx is not installed", "no longer to be had"
    ]  # fmt: skip
    assert [line.origin for line in lines] == ["none"] * 3


def test_a_value_at_an_x() -> None:
    found = sweeping("16")
    result = ResultSet(Path("x"), run_record(found))
    for n in (1, 16):
        result.add(repetition("a", 0, params={"threads": n}, samples={"ns": [1000 * n]}))
    result.add(end_record(2))
    lines = then.of(found, Sources(Source(records.HERE, result), None, []))[0].lines
    assert lines[3].here
    assert lines[3].here.value == 16
    assert [line.title for line in lines] == ["a", "b", "LiteSpeed", "a, threads 16"]


# ---- how it is shown -----------------------------------------------------------------------------


def test_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RESULTS", raising=False)
    lines = then.text(compared(*BOTH), "sample").splitlines()
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
    found = compared(results(1000, 3000))
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
    variables = export.then_titles([found])
    assert (variables["then_base_small"], variables["then_rows_small"]) == ("a", 3)


def test_a_bar_of_another_machine_says_so() -> None:
    lines = then.tsv([compared(*BOTH)]).splitlines()
    assert ["reference machine" in line for line in lines] == [False, False, True, False]
    alone = then.tsv([compared(None, BOTH[1])])
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


@pytest.fixture(name="sample")
def _sample(tree: Tree) -> Tree:
    tree.experiment()
    path = tree.experiments / "sample.toml"
    path.write_text(path.read_text(encoding="utf-8") + TABLE, encoding="utf-8")
    tree.experiment("plain")
    tree.program()
    return tree


def test_tables_of_what_is_not_measured_too(sample: Tree) -> None:
    done = sample.run("tables")
    assert (done.returncode, done.stderr) == (0, "")
    assert "not measured: make bench ONLY=sample" in done.stdout
    assert "4.35" in done.stdout
    assert sample.run("tables", "sample").stdout == done.stdout
    assert sample.run("tables", "plain").stdout.startswith("no table of a source")
    wrong = sample.run("tables", "smaple")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == 'unknown experiment "smaple"; did you mean sample?\n'


def test_bench_and_export_know_them(sample: Tree) -> None:
    assert sample.run("export").returncode == 0
    folder = sample.root / "build/data"

    def read(name: str) -> str:
        return (folder / name).read_text(encoding="utf-8")

    historical, before = read("sample/then.tsv"), read("sample/meta.gp")
    assert "LiteSpeed\t4.35" in historical
    done = sample.run("bench", "--profile", "smoke")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("sample.small: Small files") == 1
    assert "plain." not in done.stdout
    again = sample.run("bench", "--profile", "smoke", "--only", "sample")
    assert again.stdout.count("sample.small") == 1, "what was named is told again"
    assert sample.run("export").returncode == 0
    assert read("sample/then.tsv") != historical
    assert read("sample/meta.gp") != before, "what figures depend on has changed with it"
    assert not (folder / "plain/then.tsv").exists()
    found = json.loads(read("then.json"))
    assert list(found) == ["sample.small"]
    table = found["sample.small"]
    assert table["base"] == "a"
    assert [row["source"] for row in table["rows"]] == ["here", "here", "none"]
    assert [row["then_ratio"] for row in table["rows"]] == ["1.00", "2.00", "0.71"]
    assert table["rows"][2]["here"] == "no longer to be had"
    assert list(table["runs"]) == ["here"]


def test_a_stale_table_goes(tmp_path: Path) -> None:
    path = write(results(1000, 3000), tmp_path / "results/sample.jsonl").parent
    loaded = records.load_sources(with_table(), path, tmp_path / "none")
    for thens in (then.of(with_table(), loaded), []):
        export._export_one(with_table(), loaded, thens, tmp_path)
        assert (tmp_path / "sample/then.tsv").exists() == bool(thens)
