"""Habits of style: made-up paragraphs for each count, both ways, as pandoc reads them; the table that only sinks."""

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest

from quest.book import style, style_table
from quest.book.outline import Block, Outline, read_outline
from quest.ground.errors import InputError
from tests.book.tree import Tree

FIGURE = "![It is flat.](flat.svg){#fig:flat}"
NUM, VERDICT = "[a.b.c]{.num}", "[61]{.verdict}"
PREDICT = "::: predict\nDraw it.\n:::"
FINDING = '::: {.finding guard="flat"}\nIt is flat.\n:::'
#: count, hits, what stands under a heading of level 2; several paragraphs with a blank line between
CASES = [
    ("who", 1, "Who has lost the names has to ask."),
    ("who", 2, "A queue is good for whoever comes first, and for those who wait."),
    ("who", 0, "Who sent this? The author, who wrote it, asks who sent it. `whoever` is a name."),
    ("who", 0, "Who calls whom:"),
    ("he", 1, "A client is closed when his time is up."),
    ("he", 1, "The author says so. The server does not know, and he waits."),
    ("he", 0, "The author says so, and he is right. The client sends its request. `his` is a name."),
    ("body", 3, "Nobody waits, and somebody's reply is sent to everybody."),
    ("body", 0, "Another thread waits, and no body is sent. Every one of them is read."),
    ("para6", 1, f"One took {NUM}, 2 took {NUM}. It had 3, 4 and 5.5 of them."),
    ("para6", 0, f"One took {NUM}, 2 took {NUM}. It had 3 and 10 000 of them."),
    ("para6", 0, "In 2003 Linux 2.4 had epoll(7), RFC 9112, 9.3.2, 09-epoll; `1 2 3 4 5 6`, claims 4 and 5, x86-64."),
    ("para6", 0, "| a | b |\n|---|---|\n| 1 2 3 | 4 5 6 7 |"),
    ("sent4", 1, "It took 1, 2, 3 and 4 of them."),
    ("sent4", 0, "It took 1, 2 and 3 of them. It took 4, 5 and 6."),
    ("paren", 1, "It waits. (The kernel does not, see `read`.) Then it reads."),
    ("paren", 1, "(It waits in epoll_wait(2).)"),
    ("paren", 0, "It waits (RFC 9112, 9.3.2) in epoll_wait(2). A client (the second) does not (It is read)."),
    ("what", 1, "What counts is the work."),
    ("what", 0, "What is counted? The work is what counts. What a server does: it is read."),
    ("chip", 2, f"So it is true (claim 61: {VERDICT}). The ledger says {VERDICT} of it."),
    ("chip", 0, f"Claim 61: {VERDICT}; claim 62, too: {VERDICT}"),
    ("chip", 0, f"| claim | word |\n|---|---|\n| 61 | so {VERDICT} it is |"),
    ("chip", 0, "There are [61] of them."),
    ("when", 2, '[It is flat.]{.when claim=61 verdict="holds"}\n\n::: {.when claim=61 verdict="holds"}\nIt is.\n:::'),
    ("when", 0, "It is flat when it holds."),
    ("told", 2, "A server is told. Nothing was ever told, they have not been told."),
    ("told", 0, "The kernel told it. They cannot be told apart. It is `told`."),
    ("coined", 4, "It may read once in a turn. A piece comes in by the door, or two pieces."),
    ("coined", 0, "It cannot turn round; in turn it reads a pass."),
    ("figure", 1, FIGURE),
    ("figure", 0, f"{FIGURE}\n\nIn @fig:flat look at the right."),
    ("figure", 1, f"{FIGURE}\n\nIn @fig:flatter look at the right."),
    ("answer", 1, PREDICT),
    ("answer", 1, f"{PREDICT}\n\n{PREDICT}\n\n**Answer.** It is flat."),
    ("answer", 0, f"{PREDICT}\n\n### More\n\n**Answer.** It is flat."),
    ("finding", 1, f"### One\n\n{FIGURE}\n\n{FINDING}"),
    ("finding", 1, f"### One\n\n{FINDING}\n\n{FIGURE}\n\n### Two\n\nIt took {NUM}."),
    ("finding", 0, f"### One\n\nThe talk did.\n\n{PREDICT}\n\n{FINDING}\n\n{FIGURE}\n\n### Two\n\nWhy it bends."),
    ("unbound", 2, "It took 3.5 ms.\n\nIt sent 12 kB, and 300 requests a second."),
    ("unbound", 0, f"It took {NUM}, for 300 clients. In the talk it was 3 ms. There it sent 12 kB. “It was 3 s.”"),
    ("unbound", 1, "In the talk it was 3 ms. Today it takes 12 µs."),
    ("unbound", 1, "In our run it took 3 ms. It takes 12 µs."),
    ("unbound", 0, "In our run it took 3 ms.\n\n::: predict\nHow long does it take for 3 kB?\n:::"),
    ("unbound", 0, "| time |\n|---|\n| 3 ms |\n\n`sleep 3 s`\n\n*Write. Medium, 45 minutes.* Do it.\n\n0.5 of it"),
]  # fmt: skip
ANSWERED = "::: exercise\nOne?\n:::\n\n::: answer\nNobody is told.\n:::"
GLOSSARY = "---\ntitle: G\nkind: appendix\n---\n\nturn\n:   What one may do.\n\ncookie (of an event)\n:   A number.\n"


@pytest.fixture(scope="module")
def parsed(pandoc: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outline]:
    """All cases in one chapter, each a section of a measurement; notes of a slide; a glossary."""
    sections = [f"## Case {number} {{.measurement}}\n\n{text}\n" for number, (*_, text) in enumerate(CASES)]
    texts = {
        "chapters/01-one.md": "---\ntitle: One\n---\n\n" + "\n".join([*sections, "## Last\n", ANSWERED]),
        "slides/01-one.md": "# One {#one minutes=1}\n\nNobody is told.\n\n::: notes\nSomebody waits.\n:::\n",
        "chapters/glossary.md": GLOSSARY,
    }
    tree = Tree(tmp_path_factory.mktemp("style"), "")
    (tree.path / "chapters").mkdir()
    (tree.path / "chapters/pandoc").symlink_to(Path(__file__).resolve().parents[2] / "chapters/pandoc")
    for name, text in texts.items():
        tree.write(name, text)
    return {name: read_outline(tree.path / made) for name, made in zip(texts, tree.outlines(*texts), strict=True)}


def sections_of(outline: Outline) -> list[Outline]:
    return [replace(outline, blocks=[heading, *body]) for heading, body in outline.sections()]


@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{name}-{hits}" for name, hits, _ in CASES])
def test_each_count_both_ways(parsed: dict[str, Outline], number: int) -> None:
    name, hits, _ = CASES[number]
    section = sections_of(parsed["chapters/01-one.md"])[number]
    found = style.counted(style.page_of(section))[name]
    assert len(found) == hits, found
    assert {hit.line for hit in found} <= {block.line for block in section.blocks}


def test_every_count_has_cases_of_both_kinds() -> None:
    for count in style.COUNTS:
        assert {bool(hits) for name, hits, _ in CASES if name == count.name} == {True, False}


def test_answers_and_what_slides_show_are_left_out(parsed: dict[str, Outline]) -> None:
    last = style.counted(style.page_of(sections_of(parsed["chapters/01-one.md"])[-1]))
    assert not any(last.values())
    notes = style.counted(style.page_of(parsed["slides/01-one.md"]))
    assert {name: [hit.text for hit in hits] for name, hits in notes.items() if hits} == {"body": ["Somebody waits."]}


def test_a_word_of_the_glossary_is_no_coinage(parsed: dict[str, Outline]) -> None:
    glossary = parsed["chapters/glossary.md"]
    assert style.terms_of([glossary]) == ["turn", "cookie (of an event)"]
    text = Block("text", 3, "In a turn a piece comes.", 0, "", [], {}, [])
    page = replace(glossary, source=Path("chapters/02-two.md"), blocks=[text])
    counts = style.counts_of([glossary, page])
    assert [hit.text for hit in counts["02-two"]["coined"]] == [text.text]
    assert len(style.counts_of([page])["02-two"]["coined"]) == 2


# ---- the table


def outline_of(text: str, source: str = "chapters/01-one.md") -> Outline:
    return Outline(Path(source), {}, [Block("text", 7, text, 0, "", [], {}, [])])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    (tmp_path / "chapters").mkdir()
    return tmp_path / style_table.TABLE


def faults(table: Path, *outlines: Outline) -> list[str]:
    with contextlib.chdir(table.parents[1]):
        return list(style_table.faults(list(outlines)))


def test_a_page_above_its_row_is_a_fault_and_one_below_is_none(table: Path) -> None:
    twice = outline_of("Nobody waits. Somebody waits.")
    rows = {"01-one": {**style_table.NONE, "body": 2}}
    table.write_text(style_table.text_of(rows), encoding="utf-8")
    assert faults(table, twice) == []
    assert faults(table, outline_of("It waits.")) == []
    (fault,) = faults(table, outline_of("Nobody waits. Somebody waits for everybody."))
    assert fault.startswith("chapters/01-one.md:7: style: ")
    assert "3, 2 at most" in fault


def test_a_page_without_a_row_may_have_none(table: Path) -> None:
    table.write_text(style_table.text_of({}), encoding="utf-8")
    slides = outline_of("Nobody waits.", "slides/01-one.md")
    slides.blocks[0].inside.append("notes")
    (fault,) = faults(table, slides)
    assert fault.startswith("slides/01-one.md:7: style: ")
    assert "1, 0 at most" in fault


def test_a_row_without_a_page_is_a_fault(table: Path) -> None:
    table.write_text(style_table.text_of({"02-two": {**style_table.NONE, "who": 1}}), encoding="utf-8")
    assert faults(table, outline_of("It waits.")) == [f"{style_table.TABLE}:1: there is no page 02-two"]


def test_the_table_only_sinks() -> None:
    none = style_table.NONE
    allowed = {"a": {**none, "who": 3, "he": 1}, "gone": {**none, "who": 9}}
    now = {"a": {**none, "who": 1, "he": 2}, "new": {**none, "told": 1}}
    assert style_table.sunk(allowed, now) == {"a": {**none, "who": 1, "he": 1}, "new": none}
    assert list(style_table.raised(allowed, now)) == [("a", "he", 2, 1), ("new", "told", 1, 0)]


def test_a_table_is_read_as_it_was_written(table: Path) -> None:
    rows = {"a": {**style_table.NONE, "who": 3}, "empty": style_table.NONE}
    text = style_table.text_of(rows)
    table.write_text(text, encoding="utf-8")
    assert style_table.read_table(table) == {"a": rows["a"]}
    assert any(line.startswith("a ") and "3" in line for line in style_table.printed(rows, rows))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("page\twho", "page\twhom", ":4: the columns are page, who, "),
        ("a\t3", "a\tthree", ":5: a page and "),
        ("a\t3", "a", ":5: a page and "),
    ],
)
def test_a_line_that_cannot_be_right_is_named(table: Path, old: str, new: str, said: str) -> None:
    text = style_table.text_of({"a": {**style_table.NONE, "who": 3}})
    table.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError, match=said):
        style_table.read_table(table)


def test_a_page_twice_and_no_table_are_named(table: Path) -> None:
    with pytest.raises(InputError, match="not there"):
        style_table.read_table(table)
    text = style_table.text_of({"a": {**style_table.NONE, "who": 3}})
    table.write_text(text + text.splitlines()[-1] + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=":6: a is there twice"):
        style_table.read_table(table)


def test_an_outline_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "chapters").mkdir()
    (tmp_path / "chapters/01-one.md").write_text("One.\n", encoding="utf-8")
    with contextlib.chdir(tmp_path), pytest.raises(InputError, match=r"01-one\.md: .* is not there, or older"):
        style_table.outlines_in(Path("build"))


def test_a_quantity_that_is_chosen_is_not_measured(parsed: dict[str, Outline]) -> None:
    page = parsed["chapters/01-one.md"]

    def hits(chosen: list[str]) -> int:
        return len(style.counted(style.page_of(page, (), chosen))["unbound"])

    assert hits(["12 kB", "9 s"]) == hits([]), "300 requests a second stand in the same paragraph"
    assert hits(["12 kB", "300 requests a second"]) == hits(["3.5 ms"]) == hits([]) - 1


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("23 seconds", "23 s"),
        ("3\u202f000\u00a0000 bytes", "3000000 B"),
        ("20k s", "20k s"),
        ("4.2\u00a0ms", "4.2 ms"),
        ("2 a|b", "2 a|b"),
    ],
)
def test_a_quantity_has_one_spelling(text: str, same: str) -> None:
    assert style.quantity(text) == style.quantity(same) == same


@pytest.mark.parametrize(
    "line", ["23 s", "about 23 s\tthe time-out", "\tthe time-out", "23 s\tone\n23 seconds\tanother"]
)
def test_a_line_that_says_no_reason_is_refused(tmp_path: Path, line: str) -> None:
    file = tmp_path / "chosen.tsv"
    file.write_text(line + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="chosen.tsv:[12]: "):
        style_table.read_chosen(file)
