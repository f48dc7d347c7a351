"""The index of calls: of what it is made, what it refuses, and the page that comes of it."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from quest.book import calls
from quest.book.outline import Block, Outline
from quest.ground.errors import InputError
from tests.book.tree import ROOT, Tree, accepted, plain

HEAD = "name\tpage\tword\twhat\n"


def table(tmp_path: Path, lines: str) -> dict[str, calls.Call]:
    path = tmp_path / "calls.tsv"
    path.write_text(HEAD + lines, encoding="utf-8")
    return calls.read_calls(path)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("fork\tfork(2)\t-\n", "2: the columns are"),
        ("fork\tfork 2\t-\tcopies\n", "fork 2 is no page of the manual"),
        ("fork\tfork(2)\tyes\tcopies\n", 'the third column is "word" or -'),
        ("fork\tfork(2)\t-\tcopies\nfork\tfork(2)\t-\tcopies\n", "3: fork is there twice"),
    ],
)
def test_a_line_that_is_none_is_refused(tmp_path: Path, line: str, fault: str) -> None:
    with pytest.raises(InputError, match=re.escape(fault)):
        table(tmp_path, line)


def test_what_a_source_calls() -> None:
    source = 'x = read(fd); /* write(1) */ o->close(o); s.open(1); say("send(3)"); syscall(SYS_openat2, 1);'
    text = calls.COMMENT_OR_TEXT.sub(" ", source)
    assert calls.called_in(text) == {"read", "say", "syscall", "openat2"}
    own = {"code/a.c": "static void say(int a)\n{\n}\n#define twice(x) ((x) * 2)\nint (*hook)(void);\n"}
    assert calls.defined_in(own) >= {"say", "twice", "hook"}


def test_the_table_has_what_the_code_calls() -> None:
    texts = {str(Path(path).relative_to(ROOT)): text for path, text in calls.sources(ROOT / "code").items()}
    known = calls.read_calls(ROOT / calls.TABLE)
    assert list(calls.missing(texts, known)) == []
    without = {name: call for name, call in known.items() if name != "epoll_wait"}
    assert [line for line in calls.missing(texts, without) if "epoll_wait" in line]


def chapter(slug: str, *blocks: tuple[str, str, str]) -> Outline:
    """Blocks: kind, text, id."""
    made = [Block(kind, 1, text, 2 if kind == "heading" else 0, id, [], {}, []) for kind, text, id in blocks]
    return Outline(Path(f"chapters/{slug}.md"), {"title": slug, "kind": "server"}, made)


def test_the_section_that_says_most_is_named_and_words_of_english_are_not_calls(tmp_path: Path) -> None:
    known = table(tmp_path, "read\tread(2)\tword\tbytes\nepoll_wait\tepoll_wait(2)\t-\twait\n")
    chapters = [
        chapter(
            "01-first", ("text", "Read this: a `read` and read(2).", ""), ("heading", "More", "more"),
            ("text", "epoll_wait", ""),
        ),
        chapter(
            "02-second", ("heading", "The wait", "wait"), ("text", "epoll_wait, and epoll_wait again", ""),
            ("heading", "Answers", "sec:x"), ("text", "we read on", ""),
        ),
    ]  # fmt: skip
    group = calls.index_of(known, chapters, {"code/09/loop.c": "epoll_wait(1);"})[0]
    wait, read = group.entries
    assert [(one.slug, one.id, one.is_main) for one in wait.places] == [
        ("01-first", "more", False), ("02-second", "wait", True),
    ]  # fmt: skip
    assert wait.places[1].text == "Chapter 2: The wait"
    assert wait.files == ["code/09/loop.c"]
    assert [(one.slug, one.id) for one in read.places] == [("01-first", "")]
    assert read.address == "https://man7.org/linux/man-pages/man2/read.2.html"
    assert list(calls.unused(known, [], {})) == [
        f"{calls.TABLE}:1: {name}: neither a chapter names it nor a file of code/ calls it"
        for name in ("epoll_wait", "read")
    ]


def test_what_exercises_say_counts_little_and_what_lists_and_answers_say_nothing(tmp_path: Path) -> None:
    known = table(tmp_path, "fork\tfork(2)\t-\tcopies\n")
    much = ("text", "fork " * 9, "")
    exercises = chapter("01-first", ("heading", "Exercises", "e"), much)
    exercises.blocks[0].classes.append("exercises")
    answers = chapter("03-third", much)
    answers.blocks[0].inside.append("answer")
    pages = [
        exercises,
        chapter("02-second", ("heading", "A fork", "f")),
        answers,
        chapter("04-fourth", ("text", "fork, fork and fork", "")),
        chapter("glossary", much),
        replace(chapter("part-one", much), metadata={"kind": "part"}),
    ]
    [group] = calls.index_of(known, pages, {})
    found = [(one.slug, one.is_main) for one in group.entries[0].places]
    assert found == [("01-first", False), ("02-second", True), ("04-fourth", False)]


@pytest.mark.parametrize(
    ("line", "group", "address"),
    [
        ("kqueue\tkqueue(2)\t-\tx", "system", "https://man.freebsd.org/cgi/man.cgi?query=kqueue&sektion=2"),
        ("perror\tperror(3)\t-\tx", "library", "https://man7.org/linux/man-pages/man3/perror.3.html"),
        ("alloca\t-\t-\tx", "library", ""),
        ("io_uring_x\tio_uring_x(2)\t-\tx", "system", "https://man7.org/linux/man-pages/man2/io_uring_x.2.html"),
        ("io_uring_get_sqe\t-\t-\tx", "liburing", ""),
        ("io_wantread\t-\t-\tlibowfat: x", "libowfat", ""),
    ],
)
def test_a_call_stands_under_its_library(tmp_path: Path, line: str, group: str, address: str) -> None:
    [found] = calls.index_of(table(tmp_path, f"{line}\n"), [], {"code/a.c": line.replace("\t", "(1);", 1)})
    assert (found.id, found.entries[0].address) == (group, address)


def test_the_page_has_an_entry_for_each_call_that_the_search_finds(tree: Tree) -> None:
    tree.write("chapters/calls.tsv", HEAD + "_exit\texit(2)\t-\tend the process\nperror\tperror(3)\t-\tsay an error\n")
    tree.write("chapters/03-third.md", "---\ntitle: Third\nkind: appendix\n---\n\n``` {.calls}\n```\n")
    accepted(tree.label("chapters/01-first.md", "chapters/03-third.md"))
    outlines = tree.outlines("chapters/01-first.md")
    accepted(tree.run("python3", "-m", "quest.book.calls", "build/weave/data/calls.lua", *outlines))
    html = accepted(tree.bind("chapters/03-third.md", "html", searchfile="build/search"))
    assert 'id="03-third-_exit"' in html
    assert 'href="https://man7.org/linux/man-pages/man2/exit.2.html"' in html
    assert 'href="../../code/01-first/server.c"' in html
    assert "say an error. perror(3)" in plain(html)
    found = [json.loads(line.rstrip(",\n")) for line in tree.read("build/search").splitlines()]
    assert ["03-third.html", "03-third-_exit", "Third", "_exit"] in [one[:4] for one in found]
