"""All that is made of a small made-up result set, compared whole with golden/expected.txt.

golden/ is a tree of its own: experiments, a ledger, the results of a reader and a reference run,
with errors, marks, failures, skips, outliers, A/A pairs, bins, sweeps and a trace. Where a change
is meant, this writes the file anew, and `git diff` shows what it means for a reader:

    /usr/bin/python3 -m tests.harness.test_golden
"""

import contextlib
import io
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from quest.report import claims, compare, export, result, then, verdicts
from quest.report.measured import Library

pytest.importorskip("scipy")

GOLDEN = Path(__file__).with_name("golden")
EXPECTED = GOLDEN / "expected.txt"
RESULTS, REFERENCE = Path("results"), Path("reference")
DIGITS = 9  # of a number in JSON: the last ones are another machine's


def steady(value: Any) -> Any:
    """What JSON holds, without the digits that depend on the machine."""
    if isinstance(value, dict):
        return {key: steady(item) for key, item in value.items()}
    if isinstance(value, list):
        return [steady(item) for item in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def text_of(path: Path) -> str:
    """A file as it is; of JSON an entry a line."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".json":
        return text
    data = json.loads(text)
    assert text == json.dumps(data, ensure_ascii=False, indent=1) + "\n", "no longer than that"
    data = steady(data)
    entries = data.items() if isinstance(data, dict) else enumerate(data)
    return "".join(f"{key}: {json.dumps(each, ensure_ascii=False)}\n" for key, each in entries)


def exported(data: Path, reference_only: bool = False) -> dict[str, str]:
    """The files of an export by name, without tables.jsonl, which are read back elsewhere."""
    assert export.export(RESULTS, REFERENCE, data, reference_only) == 0
    files = sorted(path for path in data.rglob("*") if path.is_file())
    names = {str(path.relative_to(data)): path for path in files}
    return {
        name: text_of(path)
        for name, path in names.items()
        if name != verdicts.STAMP and not name.startswith("numbers/")
    }


def printed() -> Iterator[tuple[str, str]]:
    """What the terminal shows."""
    library = Library(RESULTS, REFERENCE)
    chosen = list(library.experiments.values())
    for name, show in (
        ("bench", lambda: result.print_results(chosen, library, 100)),
        ("claims", lambda: verdicts.print_ledger(claims.judge_all(library), None, False)),
        ("claims, as make ends", lambda: verdicts.print_ledger(
            claims.judge_all(library), RESULTS, True)),
        ("tables", lambda: then.tables(chosen, library)),
        ("compare", lambda: compare.compare(REFERENCE, RESULTS, [])),
    ):  # fmt: skip
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            show()
        yield f"$ {name}", out.getvalue()


def everything(folder: Path) -> str:
    """All of it, each part under its name."""
    with contextlib.chdir(GOLDEN), mock.patch.dict(os.environ, {"COLUMNS": "100"}):
        parts = exported(folder / "data") | dict(printed())
        reference = exported(folder / "reference", reference_only=True)
        for name in ("claims.json", "claims/meta.gp", "fork/meta.gp"):
            parts[f"{name}, of the reference run alone"] = reference[name]
    return "".join(f"==== {name}\n{text}" for name, text in parts.items())


def test_all_that_is_made_of_a_result_set(tmp_path: Path) -> None:
    assert everything(tmp_path).splitlines() == EXPECTED.read_text("utf-8").splitlines()


def test_tables_that_are_kept_give_the_same(tmp_path: Path) -> None:
    """A second export reads build/data/numbers, and analyses nothing."""
    with contextlib.chdir(GOLDEN):
        first = exported(tmp_path)
        dates = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*") if p.name != verdicts.STAMP}
        (tmp_path / verdicts.STAMP).unlink()
        with mock.patch("quest.stats.analysis.analyse", side_effect=AssertionError):
            assert exported(tmp_path) == first
        assert dates == {path: path.stat().st_mtime_ns for path in dates}, "nothing is rewritten"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        EXPECTED.write_text(everything(Path(folder)), encoding="utf-8")
