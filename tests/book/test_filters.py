"""What the filters make of a text, where it must agree with what is outside: diff(1), the names of
the exporter, the size of a slide. The rest is compared whole (test_golden.py); what they refuse is
in test_refusals.py.
"""

import json
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


def test_a_short_listing_is_drawn_larger(tree: Tree) -> None:
    sizes = {(6, 46): " large", (7, 46): " medium", (6, 47): " medium", (9, 54): " medium", (10, 54): "", (9, 55): ""}
    slides = "".join(
        f"## A slide {{#s{n} minutes=1}}\n\n"
        + fence(".c", "\n".join(["x" * columns] + ["a;"] * (lines - 1)))
        + "\n::: notes\nSay it.\n:::\n\n"
        for n, (lines, columns) in enumerate(sizes)
    )
    html = accepted(tree.weave(slides, "slides"))
    assert re.findall(r'<figure class="listing([^"]*)"', html) == list(sizes.values())


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


def test_measured_points_stand_beside_a_model(tree: Tree) -> None:
    """By their load; of an experiment without data it is said, but not to the readers of an edition."""
    run = "run of 2026-11-20, reference machine"
    about = {"unit": "", "text": "1", "interval": "", "source": "reference", "run": run}
    points = {
        "load@90": 72.5, "stay@90": 2.5, "load@120": 30, "stay@120": 1.01, "stay@400": 9, "load@last": 9, "stay@last": 8
    }  # fmt: skip
    none = {"text": "not measured", "source": "none", "run": "make bench ONLY=empty"}
    known = {f"knee.pool.{name}": {"value": value, **about} for name, value in points.items()}
    tree.write("build/data/numbers.json", json.dumps({**known, "empty": none}))
    machine = '.machine name="pool-queue" #fig:{} caption="x" measured="{}" measured-says="Diamonds are measured."'
    knee, empty, nothing = (fence(machine.format(name, f"{name}.pool"), "Words.") for name in ("knee", "empty", "no"))
    for results in ("here", "reference"):
        shown, missing = tree.pieces(knee, empty, results=results)
        assert 'data-measured="[[30,1.01],[72.5,2.5]]"' in shown
        assert "Diamonds are measured." in words(shown)
        assert ("reference run" in words(shown)) is (results == "here")
        assert "data-measured" not in missing
        assert ("make bench ONLY=empty" in words(missing)) is (results == "here")
    refused(tree.weave(nothing), "no.pool")
    slide = "## A slide {#a minutes=1.5}\n\n" + knee + "\n::: notes\nSay it.\n:::\n"
    assert "Diamonds" not in accepted(tree.weave(slide, "slides"))


def test_a_ratio_has_the_sign_of_its_interval(tree: Tree) -> None:
    ends = {
        "ahead": (1.1, 1.3, "+ 1.2"), "behind": (0.7, 0.9, "− 1.2"), "even": (0.9, 1.3, "= 1.2"),
        "open": (None, None, "? 1.2"),
    }  # fmt: skip
    about = {"value": 1.2, "unit": "", "text": "1.2", "interval": "", "source": "here", "run": "run"}
    known = {f"map.{name}": {**about, "low": low, "high": high} for name, (low, high, _) in ends.items()}
    tree.write("build/data/numbers.json", json.dumps(known))
    for name, html in zip(ends, tree.pieces(*(f"[map.{name}]{{.num form=sign}}" for name in ends)), strict=True):
        assert f'class="num here {name}"' in html
        assert ends[name][2] in words(html)


def test_what_the_reference_shows_is_said_where_it_has_a_run(tree: Tree) -> None:
    """Else nothing is, not even how to measure it; whatever the reader has measured."""
    about = {"value": 1, "unit": "", "text": "1", "interval": "", "run": "run"}
    none = {"text": "not measured", "source": "none", "run": "make bench ONLY=empty"}
    here, reference = {**about, "source": "here"}, {**about, "source": "reference"}
    known = {"empty": none, "own.a": here, "other.a": reference, "both.a": {**here, "reference": 1}}
    tree.write("build/data/numbers.json", json.dumps(known))
    text = '::: {{.if-measured experiment="{0}" by="reference"}}\n### Of {0}\n\nIt lies: [{0}.a]{{.num}}.\n:::'
    names = ("empty", "own", "other", "both")
    empty, own_alone, *by_reference = map(words, tree.pieces(*map(text.format, names)))
    assert (empty, own_alone) == ("", "")
    assert all("It lies" in said for said in by_reference)


def test_a_number_stays_on_one_line(tree: Tree) -> None:
    """And two numbers that stand beside each other do not."""
    whole, apart = tree.pieces("It had 10 000.", "In 2003 100 came.")
    assert "10\u00a0000." in whole and "2003 100" in apart


def test_tables_of_machines_say_what_differs_and_what_is_not_known(tree: Tree) -> None:
    both = {"names": ["reference run", "your machine"], "differs": [True, False]}
    tables = {
        "edition": both | {"rows": [["kernel", "Linux 6.18", "Linux 6.1"], ["memory", "", "3 000 000 kB"]]},
        "machines": {"names": ["reference, X", "yours"], "rows": [["a ratio", "2.1 (2.0–2.2)", ""]],
                     "runs": [{"source": "reference", "run": "of X"}, {"source": "here", "run": "of mine"}]},
    }  # fmt: skip
    for name, table in tables.items():
        tree.write(f"build/data/{name}.json", json.dumps(table))
        accepted(tree.tables("data", f"build/data/{name}.json", f"build/weave/data/{name}.lua"))
    edition, machines = tree.pieces(fence(".edition"), fence(".machines"))
    assert words(edition) == "reference run your machine kernel Linux 6.18 Linux 6.1 memory – 3 000 000 kB"
    assert re.findall("<strong>(.*?)</strong>", edition) == ["Linux 6.1"] and "3\u00a0000\u00a0000\u00a0kB" in edition
    label = "your machine, and reference where marked"
    assert words(machines) == f"{label} ratio reference, X yours a ratio 2.1 (2.0–2.2) –"


def test_of_many_files_that_make_a_call_the_first_are_named(tree: Tree) -> None:
    entry = '{{name="{0}",page="",address="",what="x",places={{}},files={{{1}}}}}'
    entries = ",".join(entry.format(f"of{n}", '"code/01-first/server.c",' * n) for n in (1, 9, 10))
    group = f'{{id="library",title="The C library",entries={{{entries}}}}}'
    tree.write("build/weave/data/calls.lua", f"return {{{group}}}\n")
    [html] = tree.pieces(fence(".calls"))
    assert [one.count("href=") for one in html.split("Code:")] == [0, 1, 9, 8]
    assert "and 2 more" in words(html) and words(html).count(" more") == 1
