"""Tables of the sources, with what is measured here beside them."""

from __future__ import annotations

import json
import re

from book.helpers import accepted, fence, words
from book.tree import Tree

RUNS = ("runs-here", "runs-reference")
TABLE = fence('.then table="fork-latency.linking"')


def cells(html: str) -> list[list[str]]:
    rows = re.findall(r"<tr\b.*?</tr>", html, re.S)
    return [[words(cell) for cell in re.findall(r"<t[hd]\b.*?</t[hd]>", row, re.S)] for row in rows]


def test_a_table_shows_then_and_now_and_both_ratios(tree: Tree) -> None:
    html = accepted(tree.weave(TABLE, results="reference"))
    assert cells(html) == [
        ["", "then, µs", "ratio", "here", "ratio"],
        ["glibc, dynamic", "345", "1.00", "97 µs (94–99 µs)*", "1.00"],
        ["glibc, static", "210", "0.61", "62 µs", "0.64 (0.60–0.66)"],
        ["FreeBSD 5.1", "500", "1.45", "another system", ""],
    ]
    assert "fork of a program linked in two ways (the talk, 2003); ratios to glibc, dynamic" in (
        words(html)
    )
    assert "Read off a figure." in words(html)
    assert "97\u00a0µs" in html
    assert 'title="some repetitions are marked: noisy"' in html


def test_the_reference_value_is_labelled_and_both_runs_are_named(tree: Tree) -> None:
    html = accepted(tree.weave(TABLE))
    assert cells(html)[2][3] == "62 µsref"
    assert html.count('class="ref-label"') == 1
    assert "your machine, and reference where marked" in words(html)
    # What the foot of the page is made of.
    meta = json.loads(accepted(tree.bind("chapters/03-third.md", "json")))
    runs = [json.dumps(meta["meta"][name], ensure_ascii=False) for name in RUNS]
    assert "run of 2026-11-21, AMD EPYC" in runs[0]
    assert "run of 2026-11-20, reference machine" in runs[1]


def test_a_book_of_the_reference_run_labels_nothing(tree: Tree) -> None:
    html = accepted(tree.weave(TABLE, results="reference"))
    assert "ref-label" not in html
    assert "run-label" not in html


def test_a_caption_of_its_own(tree: Tree) -> None:
    html = accepted(tree.weave(fence('.then table="fork-latency.linking" caption="What it costs"')))
    assert "What it costs" in words(html)
    assert "linked in two ways" not in html


def test_a_slide_has_no_notes_below_the_table(tree: Tree) -> None:
    slide = f"## T {{#t minutes=1}}\n\n{TABLE}\n::: notes\nSay it.\n:::\n"
    html = accepted(tree.weave(slide, form="slides"))
    assert cells(html)[1][1] == "345"
    assert "Read off" not in html
