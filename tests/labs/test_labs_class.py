"""A class is graded in one go, and again where that was ended."""

from __future__ import annotations

import csv
import subprocess
from pathlib import Path

from grader import lab as labs
from grader import many
from grading import Place

QUICK = ("ONLY=serves,silence", "PATIENCE=0.4")


def handed_in(place: Place) -> Path:
    folder = place.top / "class"
    real = labs.load("06-select").source("server.c").read_text(encoding="utf-8")
    silent = "        while ((c = clients_next_overdue()) != NULL)\n"
    texts = {"ada": real, "bob": real.replace(silent, "        while ((c = NULL) != NULL)\n")}
    for name, text in (texts | {"eve": "int main(", "ida": None}).items():
        (folder / name).mkdir(parents=True)
        if text is not None:
            (folder / name / "server.c").write_text(text)
    return folder


def rows(table: Path) -> dict[str, dict[str, str]]:
    with table.open(newline="", encoding="utf-8") as file:
        return {row["name"]: row for row in csv.DictReader(file)}


def grade_all(place: Place, table: Path) -> subprocess.CompletedProcess[str]:
    folder = place.top / "class"
    words = ("CH=06-select", f"DIR={folder}", f"CSV={table}", *QUICK)
    return subprocess.run(
        **place.how("grade-all", *words), capture_output=True, timeout=300, check=False
    )


def test_a_class(place: Place) -> None:
    handed_in(place)
    table = place.top / "grades.csv"
    done = grade_all(place, table)
    assert "4 graded now, 0 before; 1 without a final grade" in done.stdout, done.stderr
    found = rows(table)
    assert {name: row["score"] for name, row in found.items()} == {
        "ada": "5", "bob": "1", "eve": "0", "ida": "",
    }  # fmt: skip
    assert found["bob"]["failed"] == "silence"
    assert found["ida"]["state"] == many.NOT_GRADED
    assert "there is no server.c" in found["ida"]["failed"]


def test_a_class_that_was_ended_half_way(place: Place) -> None:
    """The last line was cut short, and one has been graded by hand: that one stays."""
    handed_in(place)
    table = place.top / "grades.csv"
    table.write_text("name,score,of,state,failed,seconds\nada,4.5,5,graded,,9.9\nbob,1,5,gra")
    done = grade_all(place, table)
    assert "3 graded now, 1 before" in done.stdout, done.stderr
    assert {name: row["score"] for name, row in rows(table).items()} == {
        "ada": "4.5", "bob": "1", "eve": "0", "ida": "",
    }  # fmt: skip


def test_a_table_of_somebody_elses_is_left_alone(place: Place) -> None:
    handed_in(place)
    table = place.top / "grades.csv"
    table.write_text("student,points\nada,5\n")
    done = grade_all(place, table)
    assert "lab: " in done.stderr
    assert "not a table of ours" in done.stderr
    assert table.read_text() == "student,points\nada,5\n"
