"""What the filters make of a text: code, diffs, numbers, verdicts, figures, references, blocks,
tables, slides. What they refuse: test_refusals.py."""

import json
import re

from tests.book.tree import ROOT, Tree, accepted, cells, fence, plain, refused, when, words

# ---- code ----------------------------------------------------------------------------------------


def code(shown: str) -> str:
    return fence(f'.c include="code/{shown}')


def numbers(html: str) -> str:
    return " ".join(re.findall(r'data-n="(\d+)"', html))


def test_what_is_named_is_shown_with_its_numbers(tree: Tree) -> None:
    shown = {
        # With the comment above it; a prototype is not meant where there is the function.
        'names.c" function="one"': "13 14 15 16 18 20",
        'names.c" function="TWO"': "5",
        'names.c" function="TWO, three"': "5 6 7 8",
        'names.c" function="five, TWO"': "9 10 11 5",
        'regions.c" region="outer"': "3 5 7 8",
        'regions.c" region="inner"': "5",
        'regions.c"': "1 3 5 7 8",
    }
    found = dict(zip(shown, tree.pieces(*map(code, shown)), strict=True))
    assert {name: numbers(html) for name, html in found.items()} == shown
    assert "region: " not in plain("".join(found.values()))
    outer = plain(found['regions.c" region="outer"'])
    assert "int a;\nint b;\n\n    int c;" in outer, "it is dedented"
    assert "code/regions.c, lines 3–8" in outer
    assert "code/names.c, lines 9–11, 5" in plain(found['names.c" function="five, TWO"'])


def test_markers_of_other_languages(tree: Tree) -> None:
    marks = ("# {}: x", "// {}: x", "/* {}: x */", "    ; {}: x")
    for number, mark in enumerate(marks):
        begin, end = mark.format("region"), mark.format("endregion")
        text = f"# The region: see below.\n{begin}\nkept\n{end}\nnot\n"
        tree.write(f"code/{number}.py", text)
    texts = [fence(f'.python include="code/{n}.py" region="x"') for n in range(len(marks))]
    assert list(map(numbers, tree.pieces(*texts))) == ["3"] * len(marks)


def test_marks_and_steps(tree: Tree) -> None:
    marked = {
        'regions.c" region="outer" mark="inner 4"': ["marked 5", "marked 8"],
        'names.c" function="TWO, one" mark="part"': ["marked 18"],
        'regions.c" region="outer" steps="1 | inner"': ["step-1 3", "step-2 5"],
    }
    found = tree.pieces(*map(code, marked))
    lines = [re.findall(r'class="line ([a-z0-9-]+)" data-n="(\d+)"', html) for html in found]
    assert [list(map(" ".join, each)) for each in lines] == list(marked.values())
    assert [html.count('class="fragment step"') for html in found] == [0, 0, 2]


def test_code_is_highlighted_and_escaped(tree: Tree) -> None:
    text = 'int a = b < c; /* "x" */'
    html, unknown = tree.pieces(fence(".c", text), fence(".nonsense", "a < b\n\nc"))
    assert '<span class="dt">int</span>' in html
    assert 'a = b < c; /* "x" */' in plain(html)
    assert "<a " not in html
    assert "a < b\n\nc" in plain(unknown)


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
    hunks = (' hunk="pid_t pid"', ' hunk="a process | pid_t pid"', "")
    one, both, all_of_it = map(rows, tree.pieces(*(fence(DIFF + hunk) for hunk in hunks)))
    assert any("pid_t pid" in line for line in one)
    assert not any("demonstration book" in line for line in one)
    assert both == all_of_it


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
    texts = (f"It took [{KEY}]{{.num}} here.", f"[{OWN}]{{.num}}")
    reference, own = map(words, tree.pieces(*texts))
    assert reference == "reference runIt took 41 µs ref here."
    assert own == "your machine93 µs"


def test_numbers_of_the_exporter_are_read_as_written(tree: Tree) -> None:
    noisy = '{"text": "93 µs", "interval": "", "source": "here", "run": "a run", "noisy": true}'
    none = '{"text": "not measured", "source": "none", "run": "make bench ONLY=fork-reap"}'
    odd = r'{"text": "\u00b5 \"q\" \\ \ud83d\ude00 \n", "source": "here", "run": null}'
    more = '"list": [1, -2.5e3, true, null, [], {}]'
    text = f'{{"noisy": {noisy}, "fork-reap": {none}, "odd": {odd}, {more}}}'
    tree.write("build/data/numbers.json", text)
    texts = ("[noisy]{.num}", "[noisy]{.num form=both}", "It took [fork-reap.x.reap_us]{.num}.")
    plain_form, both, nobody, shown = tree.pieces(*texts, "[odd]{.num}")
    assert words(plain_form) == "your machine, noisy93 µs"
    assert words(both) == words(plain_form), "of too few repetitions there is no interval"
    assert "It took (not measured)." in words(nobody)
    assert "make bench ONLY=fork-reap" in nobody
    assert 'µ "q" \\ 😀' in words(shown)


def test_units_stay_with_their_numbers(tree: Tree) -> None:
    text = "It took 290 µs, (4 KiB) and 23\ns; 7 of 10 servers, 5 starts, 2 s.\n"
    expected = "290\u00a0µs, (4\u00a0KiB) and 23\u00a0s; 7 of 10 servers, 5 starts, 2\u00a0s."
    assert expected in accepted(tree.weave(text))


INLINE = '[yes]{.when claim=1 verdict="holds, no difference seen"}'


def test_a_verdict_chooses_the_text(tree: Tree) -> None:
    shown = {
        "[9]{.verdict}; [10]{.verdict}.": "holds; no difference seen ref.",
        when(9, "holds", "YES") + when(9, "changed", "NO") + when(9, "otherwise", "ELSE"): "YES",
        when(10, "holds", "YES") + when(10, "otherwise", "ELSE"): "ELSE",
        f'It {INLINE}[no]{{.when claim=1 verdict="otherwise"}}.': "It yes.",
        # What is hidden binds nothing.
        when(2, "holds", "[unknown.key]{.num}") + when(2, "otherwise", "ELSE"): "ELSE",
    }
    assert list(map(words, tree.pieces(*shown))) == list(shown.values())


def test_the_file_that_chapter_0_fetches_has_the_size_that_it_tells() -> None:
    text = (ROOT / "chapters/00-client.md").read_text(encoding="utf-8")
    size = (ROOT / "code/http/reply.c").stat().st_size
    assert f"Content-Length: {size}\n" in text
    assert f"after 0 of {size} bytes" in text


# ---- figures, references, blocks -----------------------------------------------------------------

FIGURE = f"![Forks, [{OWN}]{{.num}}.](fork-latency.svg){{#fig:forks}}"


def test_figure_has_number_caption_text_and_run(tree: Tree) -> None:
    tree.write("build/figures/later.skipped", "no trace: strace may not attach here\nmore\n")
    drawing = tree.read("build/figures/fork-latency.svg")
    tree.write("build/figures/ref.svg", drawing.replace("measured here", "reference machine"))
    html, short, later, reference = tree.pieces(
        FIGURE, '![Short.](fork-latency.svg){#fig:short alt="Two rising lines"}',
        "![Later.](later.svg){#fig:later}", "![Forks.](ref.svg){#fig:ref}",
    )  # fmt: skip
    assert '<figure class="figure" id="fig-forks">' in html
    assert "your machine Figure 3.1. Forks, 93 µs." in words(html)
    assert 'alt="Forks, 93 µs."' in html.replace("\u00a0", " ").replace("\n", " ")
    assert 'alt="Two rising lines"' in short.replace("\n", " ")
    assert "Not drawn here: no trace: strace may not attach here Figure 3.3." in words(later)
    assert "reference run" in words(reference)
    assert "run-label" not in accepted(tree.weave(FIGURE, results="reference"))


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
    more = '::: expect\nA\n:::\n\n::: {.box title="Why `x`"}\nB\n:::\n'
    html, box = tree.pieces(text, more)
    assert words(html) == "Exercise 3.1 A Answer 3.1 B Exercise 3.2: more C Answer 3.2 D"
    assert 'id="exercise-3-2"' in html
    assert 'id="answer-3-2"' in html
    assert words(box) == "You should see A Why x B"
    assert "<code>x</code>" in box


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
    assert cells(html)[2][3] == "62 µs ref"
    assert "your machine, and reference where marked" in words(html)
    here, reference = runs_of(tree)
    assert "AMD EPYC" in here and "reference machine" in reference


def test_a_table_has_text_then_value_verdict_and_chapter(tree: Tree) -> None:
    html = accepted(tree.weave(fence('.claims source="talk"')))
    assert cells(html) == [
        ["", "claim", "here", "verdict", "chapter"],
        ["1", "Text of 1. Then: 350 µs The line: A tenth.", "x 1 µs why 1 12 of 15 repetitions",
         "holds", "1"],
        ["2", "Text of 2.", "x 2 µs why 2 near the line: it is of the machine",
         "changed near the line", "1"],
        ["3", "Text of 3.", "x 3 µs why 3", "reversed ref", "1"],
        ["4", "Text of 4.", "why 4", "not measured here", "15-later"],
        ["5", "Text of 5.", "why 5", "historical", ""],
    ]  # fmt: skip
    assert 'href="01-first.html"' in html
    assert "15-later.html" not in html
    assert "350\u00a0µs" in html
    assert "your machine, and reference where marked" in words(html)
    here, reference = runs_of(tree)
    assert "2026-11-21" in here and "2026-11-20" in reference
    slide = SLIDE + fence('.claims only="1 3"') + NOTES
    assert cells(accepted(tree.weave(slide, form="slides", results="reference"))) == [
        ["", "claim", "verdict"], ["1", "Text of 1. Then: 350 µs", "holds"],
        ["3", "Text of 3.", "reversed"],
    ]  # fmt: skip


def test_claims_are_chosen(tree: Tree) -> None:
    """Whole sources carry an anchor for each claim."""
    chosen = {
        'source="talk page"': "1 2 3 4 5 6 7 9 10",
        'standing="changed, no difference seen"': "2 10",
        'kind="other-system historical"': "5 6",
        'only="9 1"': "1 9",
        "near=yes": "2",
        'source="talk" standing="another system, reversed"': "3",
    }
    texts = [fence(f".claims {attributes}") for attributes in chosen]
    *found, empty = tree.pieces(*texts, fence('.claims source="page" standing="reversed"'))
    tables = map(cells, found)
    assert [" ".join(row[0] for row in table[1:]) for table in tables] == list(chosen.values())
    anchors = [" ".join(re.findall(r'id="claim-(\d+)"', html)) for html in found]
    assert anchors == [chosen['source="talk page"'], *[""] * 5]
    assert words(empty) == "None, on the results shown."


def test_claims_are_counted(tree: Tree) -> None:
    """By all the exporter's names, too."""
    from quest.report import claims

    names = ["holds", "no difference seen", "another system", "all", "judged", "near", "reference"]
    text = " ".join(f"[{name}]{{.count}}" for name in [*names, *claims.STANDINGS])
    assert words(accepted(tree.weave(text))) == "2 1 1 9 6 1 2 2 1 1 1 0 1 1 1 1"


# ---- slides --------------------------------------------------------------------------------------

SLIDE, NOTES = "## A slide {#a minutes=1.5}\n\n", "\n::: notes\nSay it.\n:::\n"


def test_listing_has_to_fit_a_slide(tree: Tree) -> None:
    fits = "\n".join(["x" * 64] + ["a;"] * 11)
    accepted(tree.weave(SLIDE + fence(".c", fits) + NOTES, "slides"))
    for not_fits, problem in [
        ("a;\n" * 12 + "a;", "13 lines and 2 columns; a slide holds 12 by 64"),
        ("x" * 65, "1 lines and 65 columns"),
    ]:
        refused(tree.weave(SLIDE + fence(".c", not_fits) + NOTES, "slides"), problem)


def test_slides_point_to_the_book_and_have_no_notes_below_tables(tree: Tree) -> None:
    text = f"{SLIDE}See @lst:greet in @ch:01-first.\n\n{TABLE}{NOTES}"
    html = accepted(tree.weave(text, "slides"))
    assert "See Listing 1.1 in Chapter 1." in words(html)
    assert "href" not in html
    assert '<aside class="notes">' in html
    assert cells(html)[1][1] == "345"
    assert "Read off" not in html
