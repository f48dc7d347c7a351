"""What is spelt: prose, and neither code nor names; hunspell itself where it is there."""

import shutil
from pathlib import Path

import pytest

from quest.book import spelling
from quest.ground.errors import InputError
from tests.book.test_calls import chapter

hunspell = pytest.mark.skipif(
    not shutil.which("hunspell") or not Path("/usr/share/hunspell/en_GB.dic").exists(),
    reason="hunspell is not installed (apt-get install hunspell hunspell-en-gb)",
)


def test_prose_is_read_and_code_addresses_and_names_are_not() -> None:
    text = (
        "The server\u2019s `recvx` returns EAGAIN; see https://exampl.org/wrod, code/09-epoll/loop.c, @fig:x-y, "
        "`--long`, -v, SO_REUSEADDR, ThreadSanitizer and [61]. Don't [go](there.html){#sec:id}!"
    )
    assert list(spelling.words_in(spelling.plain(text))) == ["The", "server", "returns", "see", "and", "Don't", "go"]
    page = "---\ntitle: x\n---\n\nOne.\n\n``` {.c}\nint wrod;\n```\n\n    make wrod\n\nTwo.\n"
    lines = spelling.without_code(page).splitlines()
    assert lines[4] == "One." and lines[12] == "Two." and "wrod" not in " ".join(lines)


def test_captions_and_notes_are_read() -> None:
    page = chapter("01-first", ("heading", "Heding", "x"), ("text", "A wrod.", ""))
    page.blocks[1].values["caption"] = "A figuer"
    assert {"Heding", "wrod", "figuer"} <= set(spelling.of_outlines([page]))


@pytest.mark.parametrize("text", ["epoll\nbacklog\n", "epoll\nepoll\n"])
def test_the_list_is_in_order_and_each_word_once(tmp_path: Path, text: str) -> None:
    (tmp_path / "words.txt").write_text(f"# head\n{text}", encoding="utf-8")
    with pytest.raises(InputError, match="words.txt:3: .* stands after epoll"):
        spelling.own_words(tmp_path / "words.txt")


@hunspell
def test_what_is_wrong_american_or_in_vain_is_named() -> None:
    wrong = {"wrod": "a.md:3", "color": "a.md:4", "realize": "b.md:1"}
    places = wrong | {"size": "b.md:2", "Epoll": "b.md:3", "server": "b.md:4"}
    assert list(spelling.faults(places, {"epoll": 2, "zombies": 9})) == [
        "a.md:3: wrod: mend it, or put it into chapters/words.txt",
        "a.md:4: color: mend it, or put it into chapters/words.txt",
        "b.md:1: realize: write it with s in this book",
        "chapters/words.txt:9: zombies: no text uses it: remove it",
    ]


def test_where_hunspell_is_not_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(InputError, match="apt-get install hunspell hunspell-en-gb"):
        spelling.unknown(["word"])
