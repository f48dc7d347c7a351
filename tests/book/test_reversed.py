"""The made-up machine (tests/book/reversed.py): its results reverse the ten findings that it names."""

from pathlib import Path

import pytest

from quest.measure import chosen
from quest.measure.records import HERE
from quest.report import guards
from quest.report.guards import AGREES, DISAGREES
from quest.report.measured import Library
from tests.book.reversed import EXCHANGED, NOTED, ROOT, write
from tests.known import KEPT, REFERENCE

pytest.importorskip("scipy")

#: What is not exchanged is still what the text says.
AS_BEFORE = ("a-signal-is-flat", "fork-is-flat")


def test_ten_findings_of_the_book_are_reversed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only their guards are asked; what the export has kept of the reference's sessions is not analysed anew."""
    monkeypatch.chdir(ROOT)
    write(tmp_path / "results")
    kept = tmp_path / "kept"
    kept.mkdir()
    for folder in KEPT.glob("*"):
        if folder.name != HERE:
            (kept / folder.name).symlink_to(folder.resolve())
    every = guards.load
    monkeypatch.setattr(
        guards, "load", lambda *of: {name: one for name, one in every(*of).items() if name in (*NOTED, *AS_BEFORE)}
    )
    found = guards.judge_all(Library(tmp_path / "results", REFERENCE, keep=kept, definitions=chosen.everything()))
    assert len(NOTED) == 10
    assert {name: (found[name]["on_reference"], found[name]["on_own"]) for name in NOTED} == dict.fromkeys(
        NOTED, (AGREES, DISAGREES)
    )
    assert {name: found[name]["on_own"] for name in AS_BEFORE} == dict.fromkeys(AS_BEFORE, AGREES)


@pytest.mark.parametrize("guard", NOTED)
def test_the_finding_stands_on_the_page_that_is_named(guard: str) -> None:
    text = (ROOT / "chapters" / f"{NOTED[guard]}.md").read_text(encoding="utf-8")
    assert f'guard="{guard}"' in text


def test_each_exchange_is_of_variants_that_were_measured() -> None:
    for name, pairs in EXCHANGED.items():
        text = (ROOT / REFERENCE / f"{name}.jsonl").read_text(encoding="utf-8")
        assert not [one for pair in pairs for one in pair if f'"variant":"{one}"' not in text], name
