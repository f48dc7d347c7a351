"""The ledger as tables and counts in chapters and slides."""

from __future__ import annotations

import json
from typing import Any

import pytest

from book.helpers import accepted, fence, refused, words
from book.test_then import cells
from book.tree import Tree

STANDINGS = [
    "holds",
    "changed",
    "reversed",
    "no difference seen",
    "not judged",
    "not measured here",
    "another system",
    "historical",
    "no rule",
]


def claim(number: int, verdict: str, **changes: Any) -> dict[str, Any]:
    return {
        "id": number,
        "source": "talk",
        "source_title": "the talk, 2003",
        "kind": "testable",
        "text": f"Text of {number}.",
        "then": "",
        "experiment": "fork-latency",
        "rule": "faster(a=x, b=y)",
        "verdict": verdict,
        "why": f"why {number}",
        "numbers": f"x {number} µs",
        "near": False,
        "near_why": "",
        "standing": verdict,
        "chapters": ["01-first", "02-second"],
        "source_run": "here",
        "run": "run of 2026-11-21, AMD EPYC",
        **changes,
    }


def without_rule(number: int, kind: str, standing: str, **changes: Any) -> dict[str, Any]:
    nothing = {"rule": "", "numbers": "", "experiment": "", "chapters": [], "run": ""}
    return claim(
        number, "not measured here", kind=kind, standing=standing, **{**nothing, **changes}
    )


PAGE = {"source": "page", "source_title": "the benchmark page, 2003"}
CLAIMS = [
    claim(1, "holds", then="350 µs", reason="A tenth.", usable=12, repetitions=15),
    claim(2, "changed", near=True, near_why="it is of the machine"),
    claim(3, "reversed", source_run="reference", run="run of 2026-11-20, reference machine"),
    claim(4, "not measured here", numbers="", near=True, chapters=["15-later"], run=""),
    without_rule(5, "historical", "historical"),
    without_rule(6, "other-system", "another system", **PAGE),
    without_rule(7, "partly", "no rule", **PAGE),
    claim(8, "no difference seen", chapters=["01-first"], **PAGE),
]


@pytest.fixture
def tree(tree: Tree) -> Tree:
    tree.write("build/data/claims.json", json.dumps(CLAIMS))
    return tree


def test_a_table_has_text_then_value_verdict_and_chapter(tree: Tree) -> None:
    html = accepted(tree.weave(fence('.claims source="talk"')))
    assert cells(html) == [
        ["", "claim", "here", "verdict", "chapter"],
        ["1", "Text of 1. Then: 350 µs The line: A tenth.", "x 1 µs why 1 12 of 15 repetitions",
         "holds", "1"],
        ["2", "Text of 2.", "x 2 µs why 2 near the line: it is of the machine",
         "changed near the line", "1"],
        ["3", "Text of 3.", "x 3 µs why 3", "reversedref", "1"],
        ["4", "Text of 4.", "why 4", "not measured here", "15"],
        ["5", "Text of 5.", "why 5", "historical", ""],
    ]  # fmt: skip
    assert 'href="01-first.html"' in html
    assert "15-later.html" not in html
    assert "350\u00a0µs" in html


def test_whole_sources_carry_an_anchor_for_each_claim(tree: Tree) -> None:
    html = accepted(tree.weave(fence('.claims source="talk page"')))
    assert [f'id="claim-{n}"' in html for n in range(1, 9)] == [True] * 8
    assert 'id="claim-' not in accepted(tree.weave(fence('.claims standing="holds"')))


@pytest.mark.parametrize(
    ("attributes", "found"),
    [
        ('source="page"', ["6", "7", "8"]),
        ('standing="changed, no difference seen"', ["2", "8"]),
        ('kind="other-system historical"', ["5", "6"]),
        ('only="8 1"', ["1", "8"]),
        ("near=yes", ["2"]),
        ('source="talk" standing="another system, reversed"', ["3"]),
    ],
)
def test_claims_are_chosen(tree: Tree, attributes: str, found: list[str]) -> None:
    html = accepted(tree.weave(fence(f".claims {attributes}")))
    assert [row[0] for row in cells(html)[1:]] == found


def test_nothing_found_is_said(tree: Tree) -> None:
    html = accepted(tree.weave(fence('.claims source="page" standing="reversed"')))
    assert words(html) == "None, on the results shown."


def test_a_tally_counts_each_source_and_all(tree: Tree) -> None:
    rows = cells(accepted(tree.weave(fence(".tally"))))
    assert rows[0] == ["", *STANDINGS, "all"]
    assert rows[1] == ["the talk, 2003", "1", "1", "1", "–", "–", "1", "–", "1", "–", "5"]
    assert rows[2] == ["the benchmark page, 2003", "–", "–", "–", "1", "–", "–", "1", "–", "1", "3"]
    assert rows[3] == ["all", "1", "1", "1", "1", "–", "1", "1", "1", "1", "8"]


def test_counts_in_a_sentence(tree: Tree) -> None:
    names = ["holds", "no difference seen", "another system", "all", "judged", "near", "reference"]
    text = " ".join(f"[{name}]{{.count}}" for name in names)
    assert words(accepted(tree.weave(text))) == "1 1 1 8 5 1 1"
    refused(tree.weave("[most]{.count}"), "03-third.md:5: ", 'no claims are counted as "most"')


def test_the_runs_are_labelled_and_named(tree: Tree) -> None:
    text = fence('.claims source="talk"')
    assert "your machine, and reference where marked" in words(accepted(tree.weave(text)))
    woven = json.loads(accepted(tree.bind("chapters/03-third.md", "json")))
    runs = [json.dumps(woven["meta"][f"runs-{name}"]) for name in ("here", "reference")]
    assert "run of 2026-11-21" in runs[0]
    assert "run of 2026-11-20" in runs[1]
    html = accepted(tree.weave(text, results="reference"))
    assert "run-label" not in html
    assert "ref-label" not in html


def test_a_slide_has_number_text_and_verdict(tree: Tree) -> None:
    body = fence('.claims only="1 3"')
    slide = f"## T {{#t minutes=1}}\n\n{body}\n::: notes\nSay it.\n:::\n"
    rows = cells(accepted(tree.weave(slide, form="slides", results="reference")))
    assert rows[0] == ["", "claim", "verdict"]
    assert rows[2] == ["3", "Text of 3.", "reversed"]


def test_every_name_of_the_exporter_is_known(tree: Tree) -> None:
    """The standings of benchmarks/harness/report/claims.py and of ledger.lua are the same."""
    from harness.report import claims

    head = cells(accepted(tree.weave(fence(".tally"))))[0]
    assert head[1:-1] == list(claims.STANDINGS)
