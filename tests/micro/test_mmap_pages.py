"""mmap-pages: a line for each mapping, its file, and the mapping for which there is no room."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from micro_support import rows, run

HEADER = "mapped\tmmap_ns\ttouch_ns\tmunmap_ns\tread_ns"


def test_prints_a_line_for_each_mapping_and_leaves_no_file(folder: Path, tmp_path: Path) -> None:
    status, out, err = run([folder / "mmap-pages", "-n", "100", tmp_path / "pages"])
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == HEADER
    samples = rows(out)
    assert [row[0] for row in samples] == [*range(100)]
    assert all(cell > 0 for row in samples for cell in row[1:])
    assert list(tmp_path.iterdir()) == []


def test_a_step_leaves_out_lines(folder: Path, tmp_path: Path) -> None:
    arguments: list[str | Path] = ["-n", "100", "-k", "11", tmp_path / "pages"]
    status, out, err = run([folder / "mmap-pages", *arguments])
    assert (status, err) == (0, "")
    assert [row[0] for row in rows(out)] == [*range(0, 100, 11)]


def test_a_file_that_is_there_is_left_alone(folder: Path, tmp_path: Path) -> None:
    there = tmp_path / "pages"
    there.write_text("mine")
    status, out, err = run([folder / "mmap-pages", "-n", "5", there])
    assert (status, out) == (1, "")
    assert err == f"mmap-pages: open {there}: File exists\n"
    assert there.read_text() == "mine"


def test_a_mapping_that_fails_is_an_error_and_no_sample(folder: Path, tmp_path: Path) -> None:
    """The address space ends before vm.max_map_count does; that of a sanitizer is larger."""
    if folder.name in ("asan", "tsan"):
        pytest.skip("the sanitizers need address space of their own")
    most = 64 << 20
    status, out, err = run(
        [folder / "mmap-pages", "-n", "100000", tmp_path / "pages"],
        before=lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most)),
    )
    made = len(rows(out))
    assert status == 1
    assert 100 < made < most / 4096
    reason = "Out of memory" if folder.name in ("diet", "musl") else "Cannot allocate memory"
    assert err == f"mmap-pages: mmap: {reason} after {made} mappings\n"
