"""Figures, cross-references, blocks with a role and slides, both ways."""

from __future__ import annotations

import re

from book.helpers import accepted, fence, refused, words
from book.tree import Tree

DIFF = '.diff from="01-first" to="02-second"'


# ---- figures


FIGURE = "![Forks, [fork-latency.dynamic.fork_us]{.num}.](fork-latency.svg){#fig:forks}"


def test_figure_has_number_caption_and_alternative_text(tree: Tree) -> None:
    html = accepted(tree.weave(FIGURE))
    assert '<figure class="figure" id="fig-forks">' in html
    assert "Figure 3.1. Forks, 93 µs." in words(html)
    assert 'alt="Forks, 93 µs."' in html.replace("\u00a0", " ").replace("\n", " ")
    assert "your machine" in words(html)


def test_figure_of_another_experiment_says_whose_run_it_shows(tree: Tree) -> None:
    tree.write("build/figures/fork-other.svg", tree.read("build/figures/fork-latency.svg"))
    figure = "![Forks.](fork-other.svg){#fig:forks}"
    assert "run-label" not in accepted(tree.weave(figure))
    tree.write("figures/fork-other.gp", 'experiment = "fork-latency"\nplot x\n')
    assert "your machine" in words(accepted(tree.weave(figure)))
    tree.replace("build/data/fork-latency/meta.gp", '"here"', '"reference"')
    assert "reference run" in words(accepted(tree.weave(figure)))
    assert "run-label" not in accepted(tree.weave(figure, results="reference"))


def test_alternative_text_of_its_own(tree: Tree) -> None:
    html = accepted(tree.weave('![Short.](fork-latency.svg){#fig:forks alt="Two rising lines"}'))
    assert 'alt="Two rising lines"' in html.replace("\n", " ")
    assert "Figure 3.1. Short." in words(html)


def test_figure_that_could_not_be_drawn_says_why(tree: Tree) -> None:
    tree.write("figures/later.gp", "plot x\n")
    later = "![Later.](later.svg){#fig:later}"
    html = accepted(tree.weave(later, missing="gnuplot"))
    assert "gnuplot is not installed (apt-get install gnuplot)" in words(html)
    refused(tree.weave(later), "unknown figure later.svg")
    tree.write("build/figures/later.skipped", "no trace: strace may not attach here\nmore\n")
    assert "Not drawn here: no trace: strace may not attach here" in words(
        accepted(tree.weave(later))
    )


# ---- references


def test_references_by_number_and_name(tree: Tree) -> None:
    text = (
        "See @fig:forks, @lst:x, @diff:y, @lst:greet, @ch:01-first and @sec:here.\n\n"
        + FIGURE
        + "\n\n## A section {#sec:here}\n\n"
        + fence('.c #lst:x caption="One"', "int a;")
        + "\n"
        + fence(DIFF + " #diff:y")
    )
    html = accepted(tree.weave(text))
    expected = "See Figure 3.1, Listing 3.1, Listing 3.2, Listing 1.1, Chapter 1 and A section."
    assert expected in words(html)
    targets = re.findall(r'href="([^"]*)"\s+class="ref"', html)
    assert targets == [
        "#fig-forks",
        "#lst-x",
        "#diff-y",
        "01-first.html#lst-greet",
        "01-first.html",
        "#sec-here",
    ]
    for target in targets:
        assert not target.startswith("#") or f'id="{target[1:]}"' in html


def test_links_inside_the_tree(tree: Tree) -> None:
    text = "[a](01-first.md#the-code) [b](../code/01-first/server.c) [c](#here)\n"
    text += "[d](https://example.org/)\n\n## Here\n"
    targets = re.findall(r'href="([^"]*)"', accepted(tree.weave(text)))
    assert targets == [
        "01-first.html#the-code",
        "../../code/01-first/server.c",
        "#here",
        "https://example.org/",
    ]


# ---- blocks


def test_exercises_are_numbered_and_named(tree: Tree) -> None:
    text = "::: exercise\nA\n:::\n::: answer\nB\n:::\n"
    text += '::: {.exercise title="more"}\nC\n:::\n::: answer\nD\n:::\n'
    html = accepted(tree.weave(text))
    assert words(html) == "Exercise 3.1 A Answer 3.1 B Exercise 3.2: more C Answer 3.2 D"
    assert 'id="exercise-3-2"' in html
    assert 'id="answer-3-2"' in html


def test_boxes_have_titles(tree: Tree) -> None:
    html = accepted(tree.weave('::: expect\nA\n:::\n\n::: {.box title="Why `x`"}\nB\n:::\n'))
    assert words(html) == "You should see A Why x B"
    assert "<code>x</code>" in html


# ---- slides


SLIDE = "## A slide {#a minutes=1.5}\n\n"
NOTES = "\n::: notes\nSay it.\n:::\n"


def test_slide_has_pacing_and_notes(tree: Tree) -> None:
    html = accepted(tree.weave(SLIDE + NOTES, "slides"))
    assert 'data-timing="90"' in html
    assert '<aside class="notes">' in html


def test_file_without_a_slide_is_refused(tree: Tree) -> None:
    refused(tree.weave("text\n", "slides"), "slides/03-third.md", "no slide in it")


def test_listing_has_to_fit_a_slide(tree: Tree) -> None:
    accepted(tree.weave(SLIDE + fence(".c", "\n".join(["a;"] * 12)) + NOTES, "slides"))
    refused(tree.weave(SLIDE + fence(".c", "\n".join(["a;"] * 13)) + NOTES, "slides"), "13 lines")
    accepted(tree.weave(SLIDE + fence(".c", "x" * 64) + NOTES, "slides"))
    refused(tree.weave(SLIDE + fence(".c", "x" * 65) + NOTES, "slides"), "65 columns wide")


def test_references_on_slides_point_to_the_book(tree: Tree) -> None:
    html = accepted(tree.weave(SLIDE + "See @lst:greet in @ch:01-first.\n" + NOTES, "slides"))
    assert "See Listing 1.1 in Chapter 1." in words(html)
    assert "href" not in html
