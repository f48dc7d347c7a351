"""The made-up machine (tests/book/reversed.py): its results reverse the ten findings that it names."""

from pathlib import Path

import pytest

from quest.measure import chosen
from quest.report import guards
from quest.report.guards import AGREES, DISAGREES
from quest.report.measured import Library
from tests.book.reversed import EXCHANGED, NOTED, REFERENCE, ROOT, write

pytest.importorskip("scipy")


def test_ten_findings_of_the_book_are_reversed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    write(tmp_path)
    found = guards.judge_all(Library(tmp_path, REFERENCE, definitions=chosen.everything()))
    assert len(NOTED) == 10
    assert {name: (found[name]["on_reference"], found[name]["on_own"]) for name in NOTED} == dict.fromkeys(
        NOTED, (AGREES, DISAGREES)
    )
    others = {name for name, one in found.items() if one["on_own"] == AGREES}
    assert {"a-signal-is-flat", "fork-is-flat"} <= others, "what is not exchanged is still what the text says"


@pytest.mark.parametrize("guard", NOTED)
def test_the_finding_stands_on_the_page_that_is_named(guard: str) -> None:
    text = (ROOT / "chapters" / f"{NOTED[guard]}.md").read_text(encoding="utf-8")
    assert f'guard="{guard}"' in text


def test_each_exchange_is_of_variants_that_were_measured() -> None:
    for name, pairs in EXCHANGED.items():
        text = (REFERENCE / f"{name}.jsonl").read_text(encoding="utf-8")
        assert not [one for pair in pairs for one in pair if f'"variant":"{one}"' not in text], name
