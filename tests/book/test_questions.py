"""The question bank, and the plans of chapters/instructor.md: what they name is there, and what is the
teacher's stays so.
"""

import re
from collections import Counter
from pathlib import Path

import pytest

from quest.book import questions
from quest.book.outline import Block, Outline
from quest.book.parts import read_parts
from quest.ground.errors import InputError
from tests.book.tree import ROOT

INSTRUCTOR = (ROOT / "chapters/instructor.md").read_text(encoding="utf-8")
PLANS = re.findall(r"^\| \d+ \|(.*?)\|(.*?)\|(.*?)\|(.*)\|$", INSTRUCTOR, re.M)


def chapter(slug: str, *headings: str) -> Outline:
    blocks = [Block("heading", 1, text, 2, "", [], {}, []) for text in headings]
    return Outline(Path(f"chapters/{slug}.md"), {"kind": "server"}, blocks)


def test_each_server_has_its_questions() -> None:
    """And each question names a section of its chapter."""
    counts = Counter(one.chapter for one in questions.read_bank(ROOT / questions.BANK))
    servers = [name for name in read_parts().pages if name[:1].isdigit()]
    assert {name: counts[name] for name in servers if counts[name] < questions.LEAST} == {}
    headings = {name: (ROOT / f"chapters/{name}.md").read_text(encoding="utf-8").replace("`", "") for name in counts}
    for one in questions.read_bank(ROOT / questions.BANK):
        assert re.search(rf"^##+ {re.escape(one.where)}( \{{|$)", headings[one.chapter], re.M), one.where


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "0 questions about 01-one"), ('chapter = "02-no"\nwhere = "A"', "there is no chapter 02-no"),
     ('chapter = "01-one"\nwhere = "B"', 'no section "B"')],
)  # fmt: skip
def test_the_lint_finds_what_is_missing(tmp_path: Path, text: str, said: str) -> None:
    rest = 'ask = "?"\nanswer = "!"\nbelieves = "..."\n'
    good = f'[[question]]\nchapter = "01-one"\nwhere = "A `b`"\n{rest}'.replace("`", "")
    whole = 3 * good if text else good.replace("01-one", "02-two")
    more = f"[[question]]\n{text}\n{rest}" if text else ""
    path = tmp_path / "questions.toml"
    path.write_text(whole + more, encoding="utf-8")
    found = list(questions.faults([chapter("01-one", "A `b`"), chapter("02-two", "A b")], path))
    assert any(said in line for line in found), found
    path.write_text(3 * good, encoding="utf-8")
    assert list(questions.faults([chapter("01-one", "A `b`")], path)) == []
    path.write_text(good.replace('answer = "!"', 'answer = ""'), encoding="utf-8")
    with pytest.raises(InputError, match="answer"):
        questions.read_bank(path)


def test_a_handout_has_no_answer(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The teacher's copy has all of them."""
    monkeypatch.chdir(ROOT)
    bank = [one for one in questions.read_bank() if one.chapter == "09-epoll"]
    assert questions.show({"CH": "09-epoll"}) == 0
    handed_out = capsys.readouterr().out
    assert questions.show({"CH": "09-epoll", "ANSWERS": "yes"}) == 0
    teachers = capsys.readouterr().out
    for one in bank:
        assert one.ask in handed_out and one.ask in teachers
        for text in (one.answer, one.believes, one.where):
            assert text not in handed_out and text in teachers
    assert questions.show({}) == 0
    assert len(re.findall(r"^\*\*\d+\.\*\* ", capsys.readouterr().out, re.M)) == len(questions.read_bank())


def test_no_page_has_an_answer() -> None:
    """Of the chapters and the slides, and of the book if it was built."""
    pages = [*ROOT.glob("chapters/*.md"), *ROOT.glob("slides/*.md"), *ROOT.glob("build/book/*.html"),
             *ROOT.glob("labs/*/*.md")]  # fmt: skip
    texts = {path: " ".join(path.read_text(encoding="utf-8", errors="replace").split()) for path in pages}
    for one in questions.read_bank(ROOT / questions.BANK):
        answer = " ".join(one.answer.split())
        assert [path.name for path, text in texts.items() if answer in text] == [], one.ask


def test_the_plans_name_what_there_is() -> None:
    """Six weeks and twelve: pages, stages of `make my`, labs and recordings, with the stages' minutes."""
    assert len(PLANS) == 18
    stages = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "labs/my").glob("*.toml")}
    asked = {name: re.search(r"^minutes = (\d+)", text, re.M) for name, text in stages.items()}
    minutes = {name: int(found[1]) for name, found in asked.items() if found}
    for weeks in (PLANS[:6], PLANS[6:]):
        seen: list[str] = []
        for pages, built, labs, shown in weeks:
            for name in re.findall(r"@ch:([\w-]+)", pages):
                assert (ROOT / f"chapters/{name}.md").exists(), name
            names = re.findall(r"[a-z]+", built.partition("(")[0]) if "(" in built else []
            assert not names or f"({sum(minutes[name] for name in names)} min)" in built, built
            seen += names
            for name in re.findall(r"`([\w-]+)`", labs):
                assert list((ROOT / "labs" / name).glob("*.toml")), name
            for name in re.findall(r"`player-([\w.-]+)`", shown):
                recording = name if "." in name else f"{name}.slow"
                assert (ROOT / f"benchmarks/recordings/{recording}.json").exists(), name
        assert sorted(seen) == sorted(minutes), "each stage once"


def test_the_moments_to_stop_at_are_in_the_recordings() -> None:
    for *_, shown in PLANS:
        names = re.findall(r"`player-([\w.-]+)`", shown)
        texts = [
            (ROOT / f"benchmarks/recordings/{name if '.' in name else f'{name}.slow'}.json").read_text(encoding="utf-8")
            for name in names
        ]
        for moment in re.findall(r"\*([^*]+)\*", shown):
            assert any(moment in text for text in texts), moment
