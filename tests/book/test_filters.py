"""What the filters make of a text, where it must agree with what is outside: diff(1), the names of
the exporter, the size of a slide. The rest is compared whole (test_golden.py); what they refuse is
in test_refusals.py.
"""

import re

from tests.book.tree import ROOT, Tree, accepted, fence, plain, refused, words


def numbers(html: str) -> str:
    return " ".join(re.findall(r'data-n="(\d+)"', html))


def test_markers_of_other_languages(tree: Tree) -> None:
    marks = ("# {}: x", "// {}: x", "/* {}: x */", "    ; {}: x")
    for number, mark in enumerate(marks):
        begin, end = mark.format("region"), mark.format("endregion")
        text = f"# The region: see below.\n{begin}\nkept\n{end}\nnot\n"
        tree.write(f"code/{number}.py", text)
    texts = [fence(f'.python include="code/{n}.py" region="x"') for n in range(len(marks))]
    assert list(map(numbers, tree.pieces(*texts))) == ["3"] * len(marks)


def rows(html: str) -> list[str]:
    """Lines of a drawn diff with their signs."""
    body = html.split("<code>")[1].split("</code></pre>")[0]
    return [plain(line) for line in body.split("\n")]


def test_diff_agrees_with_diff(tree: Tree) -> None:
    for slug in ("01-first", "02-second"):
        text = tree.read(f"code/{slug}/server.c")
        tree.write(f"{slug}.c", "".join(ln for ln in text.splitlines(True) if "region:" not in ln))
    expected = tree.run("diff", "-U", "3", "01-first.c", "02-second.c").stdout.splitlines()[2:]
    html = accepted(tree.weave(fence('.diff from="01-first" to="02-second"')))
    drawn = [line[0] + line[2:] for line in rows(html) if line != " "]
    assert drawn == [line for line in expected if not line.startswith("@@")]
    line = tree.read("code/02-second/server.c").splitlines().index("        pid_t pid = fork();")
    assert re.search(rf'class="line added" data-n=" +{line + 1}"', html)


def test_listing_has_to_fit_a_slide(tree: Tree) -> None:
    slide, notes = "## A slide {#a minutes=1.5}\n\n", "\n::: notes\nSay it.\n:::\n"
    fits = "\n".join(["x" * 64] + ["a;"] * 11)
    accepted(tree.weave(slide + fence(".c", fits) + notes, "slides"))
    for not_fits, problem in [
        ("a;\n" * 12 + "a;", "13 lines and 2 columns; a slide holds 12 by 64"),
        ("x" * 65, "1 lines and 65 columns"),
    ]:
        refused(tree.weave(slide + fence(".c", not_fits) + notes, "slides"), problem)


def test_claims_are_counted(tree: Tree) -> None:
    """By all the exporter's names, too."""
    from quest.spec.model import STANDINGS

    names = ["holds", "no difference seen", "another system", "all", "judged", "near", "reference"]
    text = " ".join(f"[{name}]{{.count}}" for name in [*names, *STANDINGS])
    assert words(accepted(tree.weave(text))) == "2 1 1 9 6 1 2 2 0 0 0 1 1 0 0 0 1 0 0 0 0 0 1 1 1 1"


def test_claims_are_counted_by_source(tree: Tree) -> None:
    counts = [
        words(accepted(tree.weave(f'[all]{{.count source="{source}"}}'))) for source in ("talk", "page", "talk page")
    ]
    assert int(counts[0]) + int(counts[1]) == int(counts[2]) == 9 and "0" not in counts[:2]
    refused(tree.weave('[all]{.count source="nobody"}'), 'no claim has the source "nobody"')


def test_a_word_that_a_further_session_has_changed_says_what_the_reference_run_says(tree: Tree) -> None:
    """Only where that is another word, and was measured."""
    said = {
        "near the line": "holds (the reference run alone: near the line)",
        "holds": "holds",
        "not measured here": "holds",
    }
    before = '"verdict": "holds", "standing": "holds", "why": "why 9"'
    for word, shown in said.items():
        sessions = f'"each_session": ["AMD, session reference: {word}; x 9", "Xeon, session x/1: holds; x 8"]'
        tree.replace("build/data/claims.json", before, f"{sessions}, {before}")
        assert words(accepted(tree.weave("[9]{.verdict}"))).replace("\u00a0", " ") == shown
        tree.replace("build/data/claims.json", f"{sessions}, {before}", before)


def test_the_file_that_chapter_0_fetches_has_the_size_that_it_tells() -> None:
    text = (ROOT / "chapters/00-client.md").read_text(encoding="utf-8")
    size = (ROOT / "code/http/reply.c").stat().st_size
    assert f"Content-Length: {size}\n" in text
    assert f"after 0 of {size} bytes" in text
