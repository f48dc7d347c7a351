"""On which machines the numbers of an edition were measured: a column for each processor, and the reader's."""

import json
from pathlib import Path
from typing import Any

from quest.report.edition import Edition, edition
from quest.report.measured import Library
from tests.harness.made_up import parsed, run_record, write_lines

ONE, TWO = parsed(), parsed(id="second")
AMD: dict[str, Any] = {
    "cpu": "AMD EPYC", "cores": 2, "kernel": "Linux 6.18.44", "hypervisor": True, "memory_kib": 4 << 20,
    "commit": "a" * 40, "dirty": False, "steal": 0.0012, "libc": {"glibc": "2.36"}, "hz": 250,
}  # fmt: skip
OWN = AMD | {"cpu": "Intel Core i5", "hypervisor": False, "commit": "b" * 40, "dirty": True}


def begin(folder: Path, environment: dict[str, Any], day: str = "2026-11-25", **changes: Any) -> None:
    """Two sets, of which the second begins a day later."""
    for experiment, hour in ((ONE, "01"), (TWO, "23")):
        run = run_record(experiment, environment=environment, started=f"{day}T{hour}:00:00Z", **changes)
        write_lines([json.dumps(run)], folder / f"{experiment.id}.jsonl")


def table(tmp_path: Path, only: bool = False) -> tuple[Edition, dict[str, list[str]]]:
    library = Library(tmp_path / "own", tmp_path / "results/reference", only, definitions=[ONE, TWO])
    found = edition(library)
    return found, {row[0]: row[1:] for row in found["rows"]}


def test_each_processor_has_a_column_and_what_differs_is_marked(tmp_path: Path) -> None:
    begin(tmp_path / "results/reference", AMD, judge="5" * 64)
    begin(tmp_path / "results/sessions/amd-epyc/2026-11-27-0400", AMD | {"kernel": "Linux 6.19.1"}, "2026-11-27")
    begin(tmp_path / "results/sessions/amd-epyc/before-that", AMD | {"steal": 0.02}, "2026-11-26")
    begin(tmp_path / "own", OWN, "2026-11-28")
    found, rows = table(tmp_path)
    assert found["names"] == ["reference run", "amd-epyc", "your machine"]
    assert rows["sessions"] == ["1", "2", "1"], "a page has no room for a column each"
    assert rows["measured"] == ["2026-11-25", "2026-11-26 to 2026-11-27", "2026-11-28"]
    assert rows["kernel"][1] == "Linux 6.18.44; Linux 6.19.1"
    assert rows["experiments"] == ["2", "2", "2"]
    assert rows["judge in the results"] == ["5" * 12, "", ""]
    assert rows["commit"] == ["a" * 12, "a" * 12, "b" * 12 + ", changed"]
    assert rows["processor"] == ["2 cores of AMD EPYC"] * 2 + ["2 cores of Intel Core i5"]
    assert rows["virtual machine"] == ["yes", "yes", "no"]
    assert rows["memory"][0] == "4.0 GiB" and rows["time the host took"] == ["0.12 %", "2.00 %", "0.12 %"]
    assert "compiler" not in rows, "nothing is known of it"
    differs = {row[0] for row, differs in zip(found["rows"], found["differs"], strict=True) if differs}
    assert differs == {"processor", "virtual machine"}


def test_the_reference_alone_and_damaged_sets(tmp_path: Path) -> None:
    begin(tmp_path / "results/reference", AMD)
    begin(tmp_path / "own", OWN)
    (tmp_path / "results/reference/second.jsonl").write_text('{"type": "run", "envir', encoding="utf-8")
    found, rows = table(tmp_path, only=True)
    assert found["names"] == ["reference run"] and not any(found["differs"])
    assert rows["experiments"] == ["1"]


def test_before_anything_is_measured_the_table_is_empty(tmp_path: Path) -> None:
    assert table(tmp_path)[0] == {"names": [], "rows": [], "differs": []}
