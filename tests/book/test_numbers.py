"""Bound numbers, units and verdicts, both ways."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from book.helpers import accepted, when, words
from book.tree import Tree

ROOT = Path(__file__).resolve().parents[2]

# ---- numbers


KEY = "fork-latency.static.fork_us"


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("", "41 µs"),
        (" form=interval", "40–43 µs"),
        (" form=both", "41 µs (40–43 µs)"),
        (" form=value", "41"),
    ],
)
def test_number_forms(tree: Tree, form: str, text: str) -> None:
    html = accepted(tree.weave(f"It took [{KEY}]{{.num{form}}}.", results="reference"))
    assert f"It took {text}." in words(html)


def test_reference_value_is_labelled(tree: Tree) -> None:
    html = accepted(tree.weave(f"It took [{KEY}]{{.num}} here."))
    assert "reference run" in words(html)
    assert re.search(r'class="ref-label"[^>]*>ref<', html)
    assert "reference machine" in html


def test_own_value_is_not_labelled_as_reference(tree: Tree) -> None:
    html = accepted(tree.weave("It took [fork-latency.dynamic.fork_us]{.num} here."))
    assert "ref-label" not in html
    assert "your machine" in words(html)


def test_reference_book_labels_no_single_number(tree: Tree) -> None:
    html = accepted(tree.weave(f"It took [{KEY}]{{.num}} here.", results="reference"))
    assert "ref-label" not in html
    assert "run-label" not in html


def test_number_nobody_has_measured_yet(tree: Tree) -> None:
    entry = '{"text": "not measured", "source": "none", "run": "make bench ONLY=fork-reap"}'
    tree.write("build/data/numbers.json", f'{{"fork-reap": {entry}}}')
    html = accepted(tree.weave("It took [fork-reap.dynamic.reap_us]{.num}."))
    assert "It took (not measured)." in words(html)
    assert "make bench ONLY=fork-reap" in html


def test_json_text_is_read_as_written(tree: Tree) -> None:
    entry = r'{"text": "\u00b5 \"q\" \\ \ud83d\ude00 \n", "source": "here", "run": null}'
    tree.write(
        "build/data/numbers.json", f'{{"odd": {entry}, "list": [1, -2.5e3, true, null, [], {{}}]}}'
    )
    assert 'µ "q" \\ 😀' in words(accepted(tree.weave("[odd]{.num}")))


def test_units_stay_with_their_numbers(tree: Tree) -> None:
    html = accepted(
        tree.weave("It took 290 µs, (4 KiB) and 23\ns; 7 of 10 servers, 5 starts, 2 s.\n")
    )
    assert "290\u00a0µs, (4\u00a0KiB) and 23\u00a0s; 7 of 10 servers, 5 starts, 2\u00a0s." in html


# ---- verdicts


def test_verdict_word(tree: Tree) -> None:
    html = accepted(tree.weave("Claim 9 [9]{.verdict}; claim 10 [10]{.verdict}."))
    assert "Claim 9 holds; claim 10 no difference seenref." in words(html)


def test_when_shows_its_verdict_only(tree: Tree) -> None:
    text = (
        when(9, "holds", "YES") + when(9, "changed, reversed", "NO") + when(9, "otherwise", "ELSE")
    )
    assert words(accepted(tree.weave(text))) == "YES"


def test_otherwise_shows_when_no_other_block_names_the_verdict(tree: Tree) -> None:
    text = when(10, "holds", "YES") + when(10, "otherwise", "ELSE")
    assert words(accepted(tree.weave(text))) == "ELSE"


def test_when_inline_and_of_several_verdicts(tree: Tree) -> None:
    yes = '[yes]{.when claim=10 verdict="holds, no difference seen"}'
    text = f'It {yes}[no]{{.when claim=10 verdict="changed"}}.'
    assert words(accepted(tree.weave(text))) == "It yes."


def test_hidden_text_binds_nothing(tree: Tree) -> None:
    accepted(tree.weave(when(9, "changed", "[unknown.key]{.num}")))


def test_the_file_that_chapter_0_fetches_has_the_size_that_it_tells() -> None:
    text = (ROOT / "chapters/00-client.md").read_text(encoding="utf-8")
    size = (ROOT / "code/http/reply.c").stat().st_size
    assert f"Content-Length: {size}\n" in text
    assert f"after 0 of {size} bytes" in text
