"""What the filters make of a text: code, diffs, numbers, verdicts, figures, references, blocks,
tables, slides. What they refuse: test_refusals.py."""

from __future__ import annotations

import json
import re

import pytest

from book.tree import ROOT, Tree, accepted, cells, fence, plain, refused, when, words

# ---- code ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shown", "numbers"),
    [
        # With the comment above it; a prototype is not meant where there is the function.
        ('names.c" function="one"', "13 14 15 16 18 20"),
        ('names.c" function="TWO"', "5"),
        ('names.c" function="TWO, three"', "5 6 7 8"),
        ('names.c" function="five, TWO"', "9 10 11 5"),
        ('regions.c" region="outer"', "3 5 7 8"),
        ('regions.c" region="inner"', "5"),
        ('regions.c"', "1 3 5 7 8"),
    ],
)
def test_what_is_named_is_shown_with_its_numbers(tree: Tree, shown: str, numbers: str) -> None:
    html = accepted(tree.weave(fence(f'.c include="code/{shown}')))
    assert re.findall(r'data-n="(\d+)"', html) == numbers.split()
    assert not re.search(r"region: [a-z]\b", plain(html))


@pytest.mark.parametrize("style", ["# {}: x", "// {}: x", "/* {}: x */", "    ; {}: x"])
def test_markers_of_other_languages(tree: Tree, style: str) -> None:
    marks = style.format("region"), style.format("endregion")
    tree.write("code/x.py", f"# The region: see below.\n{marks[0]}\nkept\n{marks[1]}\nnot\n")
    html = accepted(tree.weave(fence('.python include="code/x.py" region="x"')))
    assert re.findall(r'data-n="(\d+)"', html) == ["3"]


def test_lines_are_dedented_and_say_where_they_stand(tree: Tree) -> None:
    html = plain(accepted(tree.weave(fence('.c include="code/regions.c" region="outer"'))))
    assert "int a;\nint b;\n\n    int c;" in html
    assert "code/regions.c, lines 3–8" in html
    html = plain(accepted(tree.weave(fence('.c include="code/names.c" function="five, TWO"'))))
    assert "code/names.c, lines 9–11, 5" in html


@pytest.mark.parametrize(
    ("shown", "lines"),
    [
        ('regions.c" region="outer" mark="inner 4"', ["marked 5", "marked 8"]),
        ('names.c" function="TWO, one" mark="part"', ["marked 18"]),
        ('regions.c" region="outer" steps="1 | inner"', ["step-1 3", "step-2 5"]),
    ],
)
def test_marks_and_steps(tree: Tree, shown: str, lines: list[str]) -> None:
    html = accepted(tree.weave(fence(f'.c include="code/{shown}')))
    found = re.findall(r'class="line ([a-z0-9-]+)" data-n="(\d+)"', html)
    assert list(map(" ".join, found)) == lines
    assert html.count('class="fragment step"') == (2 if "steps" in shown else 0)


def test_code_is_highlighted_and_escaped(tree: Tree) -> None:
    html = accepted(tree.weave(fence(".c", 'int a = b < c; /* "x" */')))
    assert '<span class="dt">int</span>' in html
    assert 'a = b < c; /* "x" */' in plain(html)
    assert "<a " not in html
    assert "a < b\n\nc" in plain(accepted(tree.weave(fence(".nonsense", "a < b\n\nc"))))


DIFF = '.diff from="01-first" to="02-second"'


def rows(html: str) -> list[str]:
    """Lines of a drawn diff with their signs."""
    body = html.split("<code>")[1].split("</code></pre>")[0]
    return [plain(line) for line in body.split("\n")]


def test_diff_agrees_with_diff(tree: Tree) -> None:
    for slug in ("01-first", "02-second"):
        text = tree.read(f"code/{slug}/server.c")
        tree.write(f"{slug}.c", "".join(ln for ln in text.splitlines(True) if "region:" not in ln))
    expected = tree.run("diff", "-U", "3", "01-first.c", "02-second.c").stdout.splitlines()[2:]
    html = accepted(tree.weave(fence(DIFF)))
    drawn = [line[0] + line[2:] for line in rows(html) if line != " "]
    assert drawn == [line for line in expected if not line.startswith("@@")]
    line = tree.read("code/02-second/server.c").splitlines().index("        pid_t pid = fork();")
    assert re.search(rf'class="line added" data-n=" +{line + 1}"', html)


def test_hunks_by_their_texts(tree: Tree) -> None:
    one = rows(accepted(tree.weave(fence(DIFF + ' hunk="pid_t pid"'))))
    assert any("pid_t pid" in line for line in one)
    assert not any("demonstration book" in line for line in one)
    both = rows(accepted(tree.weave(fence(DIFF + ' hunk="a process | pid_t pid"'))))
    assert both == rows(accepted(tree.weave(fence(DIFF))))


# ---- numbers and verdicts ------------------------------------------------------------------------

KEY, OWN = "fork-latency.static.fork_us", "fork-latency.dynamic.fork_us"


def test_a_number_has_four_forms_and_says_whose_it_is(tree: Tree) -> None:
    text = " ".join(
        f"[{KEY}]{{.num form={form}}};" for form in ("text", "interval", "both", "value")
    )
    html = accepted(tree.weave(text, results="reference"))
    assert words(html) == "41 µs; 40–43 µs; 41 µs (40–43 µs); 41;"
    assert "ref-label" not in html
    assert "run-label" not in html
    html = accepted(tree.weave(f"It took [{KEY}]{{.num}} here."))
    assert words(html) == "reference runIt took 41 µsref here."
    assert words(accepted(tree.weave(f"[{OWN}]{{.num}}"))) == "your machine93 µs"
    entry = '{"text": "93 µs", "interval": "", "source": "here", "run": "a run", "noisy": true}'
    tree.write("build/data/numbers.json", f'{{"{OWN}": {entry}}}')
    assert words(accepted(tree.weave(f"[{OWN}]{{.num}}"))) == "your machine, noisy93 µs"
    both = words(accepted(tree.weave(f"[{OWN}]{{.num form=both}}")))
    assert both == "your machine, noisy93 µs", "of too few repetitions there is no interval"


def test_number_nobody_has_measured_yet(tree: Tree) -> None:
    entry = '{"text": "not measured", "source": "none", "run": "make bench ONLY=fork-reap"}'
    tree.write("build/data/numbers.json", f'{{"fork-reap": {entry}}}')
    html = accepted(tree.weave("It took [fork-reap.dynamic.reap_us]{.num}."))
    assert "It took (not measured)." in words(html)
    assert "make bench ONLY=fork-reap" in html


def test_json_text_is_read_as_written(tree: Tree) -> None:
    entry = r'{"text": "\u00b5 \"q\" \\ \ud83d\ude00 \n", "source": "here", "run": null}'
    more = '"list": [1, -2.5e3, true, null, [], {}]'
    tree.write("build/data/numbers.json", f'{{"odd": {entry}, {more}}}')
    assert 'µ "q" \\ 😀' in words(accepted(tree.weave("[odd]{.num}")))


def test_units_stay_with_their_numbers(tree: Tree) -> None:
    text = "It took 290 µs, (4 KiB) and 23\ns; 7 of 10 servers, 5 starts, 2 s.\n"
    expected = "290\u00a0µs, (4\u00a0KiB) and 23\u00a0s; 7 of 10 servers, 5 starts, 2\u00a0s."
    assert expected in accepted(tree.weave(text))


INLINE = '[yes]{.when claim=10 verdict="holds, no difference seen"}'


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[9]{.verdict}; [10]{.verdict}.", "holds; no difference seenref."),
        (when(9, "holds", "YES") + when(9, "changed", "NO") + when(9, "otherwise", "ELSE"), "YES"),
        (when(10, "holds", "YES") + when(10, "otherwise", "ELSE"), "ELSE"),
        (f'It {INLINE}[no]{{.when claim=10 verdict="otherwise"}}.', "It yes."),
        # What is hidden binds nothing.
        (when(9, "changed", "[unknown.key]{.num}") + when(9, "otherwise", "ELSE"), "ELSE"),
    ],
)
def test_a_verdict_chooses_the_text(tree: Tree, text: str, shown: str) -> None:
    assert words(accepted(tree.weave(text))) == shown


def test_the_file_that_chapter_0_fetches_has_the_size_that_it_tells() -> None:
    text = (ROOT / "chapters/00-client.md").read_text(encoding="utf-8")
    size = (ROOT / "code/http/reply.c").stat().st_size
    assert f"Content-Length: {size}\n" in text
    assert f"after 0 of {size} bytes" in text


# ---- figures, references, blocks -----------------------------------------------------------------

FIGURE = f"![Forks, [{OWN}]{{.num}}.](fork-latency.svg){{#fig:forks}}"


def test_figure_has_number_caption_text_and_run(tree: Tree) -> None:
    html = accepted(tree.weave(FIGURE))
    assert '<figure class="figure" id="fig-forks">' in html
    assert "your machine Figure 3.1. Forks, 93 µs." in words(html)
    assert 'alt="Forks, 93 µs."' in html.replace("\u00a0", " ").replace("\n", " ")
    assert "run-label" not in accepted(tree.weave(FIGURE, results="reference"))
    html = accepted(tree.weave('![Short.](fork-latency.svg){#fig:forks alt="Two rising lines"}'))
    assert 'alt="Two rising lines"' in html.replace("\n", " ")
    tree.replace("build/figures/fork-latency.svg", "measured here", "reference machine")
    assert "reference run" in words(accepted(tree.weave(FIGURE)))


def test_figure_that_could_not_be_drawn_says_why(tree: Tree) -> None:
    tree.write("build/figures/later.skipped", "no trace: strace may not attach here\nmore\n")
    html = accepted(tree.weave("![Later.](later.svg){#fig:later}"))
    assert "Not drawn here: no trace: strace may not attach here Figure 3.1." in words(html)


def test_references_by_number_and_name(tree: Tree) -> None:
    code = fence('.c #lst:x caption="One"', "int a;") + "\n" + fence(DIFF + " #diff:y")
    text = f"""See @fig:forks, @lst:x, @diff:y, @lst:greet, @ch:01-first and @sec:here.

{FIGURE}\n\n## A section {{#sec:here}}\n\n{code}"""
    html = accepted(tree.weave(text))
    expected = "See Figure 3.1, Listing 3.1, Listing 3.2, Listing 1.1, Chapter 1 and A section."
    assert expected in words(html)
    targets = re.findall(r'href="([^"]*)"\s+class="ref"', html)
    own = ["fig-forks", "lst-x", "diff-y", "sec-here"]
    away = ["01-first.html#lst-greet", "01-first.html"]
    assert targets == [f"#{name}" for name in own[:3]] + away + ["#sec-here"]
    assert all(f'id="{name}"' in html for name in own)


def test_links_inside_the_tree(tree: Tree) -> None:
    text = "[a](01-first.md#the-code) [b](../code/01-first/server.c) [c](#here)\n"
    text += "[d](https://example.org/)\n\n## Here\n"
    assert re.findall(r'href="([^"]*)"', accepted(tree.weave(text))) == [
        "01-first.html#the-code", "../../code/01-first/server.c", "#here", "https://example.org/",
    ]  # fmt: skip


def test_blocks_have_titles_and_exercises_numbers(tree: Tree) -> None:
    text = "::: exercise\nA\n:::\n::: answer\nB\n:::\n"
    text += '::: {.exercise title="more"}\nC\n:::\n::: answer\nD\n:::\n'
    html = accepted(tree.weave(text))
    assert words(html) == "Exercise 3.1 A Answer 3.1 B Exercise 3.2: more C Answer 3.2 D"
    assert 'id="exercise-3-2"' in html
    assert 'id="answer-3-2"' in html
    html = accepted(tree.weave('::: expect\nA\n:::\n\n::: {.box title="Why `x`"}\nB\n:::\n'))
    assert words(html) == "You should see A Why x B"
    assert "<code>x</code>" in html


# ---- tables --------------------------------------------------------------------------------------

TABLE = fence('.then table="fork-latency.linking"')


def runs_of(tree: Tree) -> list[str]:
    """What the foot of the page is made of."""
    meta = json.loads(accepted(tree.bind("chapters/03-third.md", "json")))["meta"]
    return [
        json.dumps(meta[f"runs-{whose}"], ensure_ascii=False) for whose in ("here", "reference")
    ]


def test_a_table_shows_then_and_now_and_both_ratios(tree: Tree) -> None:
    html = accepted(tree.weave(TABLE, results="reference"))
    assert cells(html) == [
        ["", "then, µs", "ratio", "here", "ratio"],
        ["glibc, dynamic", "345", "1.00", "97 µs (94–99 µs)*", "1.00"],
        ["glibc, static", "210", "0.61", "62 µs", "0.64 (0.60–0.66)"],
        ["FreeBSD 5.1", "500", "1.45", "another system", ""],
    ]
    title = "fork of a program linked in two ways (the talk, 2003); ratios to glibc, dynamic"
    assert title in words(html)
    assert "Read off a figure." in words(html)
    assert "97\u00a0µs" in html
    assert 'title="some repetitions are marked: noisy"' in html
    assert not re.search("(ref|run)-label", html)
    html = accepted(tree.weave(TABLE))
    assert cells(html)[2][3] == "62 µsref"
    assert "your machine, and reference where marked" in words(html)
    assert ["AMD EPYC" in runs_of(tree)[0], "reference machine" in runs_of(tree)[1]] == [True] * 2


def test_a_table_has_text_then_value_verdict_and_chapter(tree: Tree) -> None:
    html = accepted(tree.weave(fence('.claims source="talk"')))
    assert cells(html) == [
        ["", "claim", "here", "verdict", "chapter"],
        ["1", "Text of 1. Then: 350 µs The line: A tenth.", "x 1 µs why 1 12 of 15 repetitions",
         "holds", "1"],
        ["2", "Text of 2.", "x 2 µs why 2 near the line: it is of the machine",
         "changed near the line", "1"],
        ["3", "Text of 3.", "x 3 µs why 3", "reversedref", "1"],
        ["4", "Text of 4.", "why 4", "not measured here", "15-later"],
        ["5", "Text of 5.", "why 5", "historical", ""],
    ]  # fmt: skip
    assert 'href="01-first.html"' in html
    assert "15-later.html" not in html
    assert "350\u00a0µs" in html
    assert "your machine, and reference where marked" in words(html)
    assert ["2026-11-21" in runs_of(tree)[0], "2026-11-20" in runs_of(tree)[1]] == [True] * 2
    slide = SLIDE + fence('.claims only="1 3"') + NOTES
    assert cells(accepted(tree.weave(slide, form="slides", results="reference"))) == [
        ["", "claim", "verdict"], ["1", "Text of 1. Then: 350 µs", "holds"],
        ["3", "Text of 3.", "reversed"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("attributes", "found", "anchored"),
    [
        ('source="talk page"', ["1", "2", "3", "4", "5", "6", "7", "9", "10"], True),
        ('standing="changed, no difference seen"', ["2", "10"], False),
        ('kind="other-system historical"', ["5", "6"], False),
        ('only="9 1"', ["1", "9"], False),
        ("near=yes", ["2"], False),
        ('source="talk" standing="another system, reversed"', ["3"], False),
    ],
)
def test_claims_are_chosen(tree: Tree, attributes: str, found: list[str], anchored: bool) -> None:
    """Whole sources carry an anchor for each claim."""
    html = accepted(tree.weave(fence(f".claims {attributes}")))
    assert [row[0] for row in cells(html)[1:]] == found
    assert [f'id="claim-{number}"' in html for number in found] == [anchored] * len(found)
    empty = accepted(tree.weave(fence('.claims source="page" standing="reversed"')))
    assert words(empty) == "None, on the results shown."


def test_claims_are_counted(tree: Tree) -> None:
    """By all the exporter's names, too."""
    from harness.report import claims

    names = ["holds", "no difference seen", "another system", "all", "judged", "near", "reference"]
    text = " ".join(f"[{name}]{{.count}}" for name in [*names, *claims.STANDINGS])
    assert words(accepted(tree.weave(text))) == "2 1 1 9 6 1 2 2 1 1 1 0 1 1 1 1"


# ---- slides --------------------------------------------------------------------------------------

SLIDE, NOTES = "## A slide {#a minutes=1.5}\n\n", "\n::: notes\nSay it.\n:::\n"


def test_listing_has_to_fit_a_slide(tree: Tree) -> None:
    for fits, not_fits, problem in [
        (
            "\n".join(["a;"] * 12),
            "\n".join(["a;"] * 13),
            "13 lines and 2 columns; a slide holds 12 by 64",
        ),
        ("x" * 64, "x" * 65, "1 lines and 65 columns"),
    ]:
        accepted(tree.weave(SLIDE + fence(".c", fits) + NOTES, "slides"))
        refused(tree.weave(SLIDE + fence(".c", not_fits) + NOTES, "slides"), problem)


def test_slides_point_to_the_book_and_have_no_notes_below_tables(tree: Tree) -> None:
    text = f"{SLIDE}See @lst:greet in @ch:01-first.\n\n{TABLE}{NOTES}"
    html = accepted(tree.weave(text, "slides"))
    assert "See Listing 1.1 in Chapter 1." in words(html)
    assert "href" not in html
    assert '<aside class="notes">' in html
    assert cells(html)[1][1] == "345"
    assert "Read off" not in html
