"""What is wrong in a chapter: all of it is told in one run, each in one line with its place."""

import itertools

import pytest

from tests.book.tree import Tree, fence, refused, when

FIGURE = "![Forks.](fork-latency.svg){#fig:forks}"
ANSWER = "::: exercise\nx\n:::\n\n::: answer\n![Y.](fork-latency.svg){#fig:y}\n:::"
KEY = "fork-latency.static.fork_us"
DIFF = '.diff from="01-first" to="02-second"'
FINDING = "::: {{.finding{}}}\nIt grows.\n:::"
# Text of a chapter, and what is said of it.
BOUND = [
    ("[fork-latency.none]{.num}", 'unknown number "fork-latency.none" (not in build/data/numbers'),
    (f"[{KEY}]{{.num form=loud}}", f'number "{KEY}" has no form "loud"'),
    ("[env.kernel]{.num form=interval}", 'number "env.kernel" has no form "interval"'),
    ("[99]{.verdict}", "unknown claim 99"),
    (when(77, "holds, otherwise", "x"), "unknown claim 77"),
    (f'::: {{.predict draw="{KEY}"}}\nx\n:::', f'"{KEY}" has no three points, as a curve has'),
    (fence('.then table="fork-latency.none"'), 'unknown table "fork-latency.none" (not in build'),
    (fence('.claims source="tlak"'), 'no claim has the source "tlak"'),
    (fence('.claims standing="perhaps"'), 'no claim has the standing "perhaps"'),
    (fence('.claims kind="old"'), 'no claim has the kind "old"'),
    (fence('.claims only="99"'), 'no claim has the id "99"'),
    (fence('.since since="1 99"'), "no claim since 2003 has the number 99"),
    ("[most]{.count}", 'no claims are counted as "most"'),
    *((f"See @{name}.", f"unknown reference @{name}") for name in (
        "fig:none", "lst:none", "ch:99-none", "sec:none", "nobody2003",
    )),
    *((f"[a]({link})", f"a link that leads nowhere: {link}") for link in (
        "#nowhere", "08-none.md", "01-first.md#nowhere", "../code/none.c", "x.txt",
    )),
    (fence('.c include="code/x.c" region="nowhere"'), 'unknown region "nowhere" in code/x.c'),
    (fence('.c include="code/x.c" region="empty"'), 'region "empty" in code/x.c holds no line'),
    (fence('.c include="code/x.c" function="absent"'), 'nothing called "absent" begins'),
    (fence('.c include="code/x.c" function="twice"'), '"twice" is there twice in code/x.c'),
    (fence('.c include="code/gone.c" region="x"'), "cannot read code/gone.c"),
    (fence('.c region="alone"'), "region= without include="),
    (fence('.c include="code/x.c" region="inner" steps="outer"'), 'steps: "outer" is neither'),
    (fence('.c include="code/x.c" region="outer" mark="never"'), 'mark: "never" is neither'),
    (fence('.c include="code/x.c" region="outer" mark="1"'), "mark: line 1 of a file may be another one soon"),
    (fence('.c include="code/x.c" region="outer" mark="int"'), 'mark: "int" is neither'),
    (fence('.c include="code/x.c" region="outer" mark="never ... int"'), 'mark: "never ... int" is neither'),
    (fence('.c steps="2-1"', "int a;\nint b;"), 'steps: "2-1" is neither'),
    (fence(DIFF + ' hunk="no-such"'), 'hunk="no-such" occurs in 0 of 2 hunks'),
    (fence('.diff from="02-second" to="02-second"'), "do not differ"),
    (fence('.diff from="01-first" to="09-none"'), "cannot read code/09-none/server.c"),
    ("::: answer\nB\n:::", "an answer that follows no exercise"),
    (FINDING.format(' guard="never"'), 'unknown guard "never" (not in chapters/guards.toml)'),
    (FINDING.format(' guard="not-so"'), 'the finding "not-so" is not what the reference run shows: changed (wanted: '
     "holds), it rises by less than 25 %; x: 41 µs at 0, 42 µs at 4000"),
    (FINDING.format(""), "a finding without its guard"),
    (FINDING.format(' trial=""'), "trial= without the reason why no experiment asks it"),
    (FINDING.format(' trial="one run" guard="grows"'), "a finding has guard= or trial=, not both"),
    ("::: {.if-measured}\nx\n:::", ".if-measured without experiment="),
    ('::: {.if-measured experiment="kept-size"}\nx\n:::', 'unknown experiment "kept-size" (not in build/data/num'),
    (fence(".part-map"), "no chapter stands in the part 03-third"),
]  # fmt: skip
OTHER = when(9, "otherwise", "x")
WHEN = [
    (when(9, "perhaps", "x") + OTHER, 'unknown verdict "perhaps"'),
    ("::: {.when claim=9}\nx\n:::\n\n" + OTHER, ".when without verdict="),
    # A reader's machine may give any of them.
    (when(9, "holds, changed, reversed", "x"),
     'claim 9: no .when for in the model: holds, by a test: holds, faster now, never so, in the model: fails, '
     'by a test: fails, no difference seen, not decided, near the line, depends on the processor, '
     'not judged, failed, not measured here (or "otherwise")'),
]  # fmt: skip
DRAWN = [
    ("![None.](none.svg){#fig:none}", "unknown figure none.svg"),
    ("![None.](../x.svg){#fig:up}", "a figure is a file of build/figures, named without a folder"),
    (fence('.c steps="1" says="a | b"', "int a;"), "says has 2 sentences for 1 steps"),
]
LABELS = [
    ("![Bare.](fork-latency.svg)", "a figure without label"),
    (fence(".c #fig:x", "int a;"), "label fig:x on a listing"),
    (when(9, "holds", FIGURE), "label fig:forks inside a .when block"),
    (ANSWER, "label fig:y inside an answer"),
    ("# Big", 'a heading "#" in a chapter'),
]


@pytest.mark.parametrize("table", [BOUND, DRAWN, LABELS, *([row] for row in WHEN)])
def test_each_mistake_is_told_with_its_line(tree: Tree, table: list[tuple[str, str]]) -> None:
    done = tree.weave("\n\n".join(text for text, _ in table))
    # The text begins on line 5, after the metadata; between two pieces is an empty line.
    sizes = [len(text.split("\n")) + 1 for text, _ in table]
    begins = itertools.accumulate(sizes, initial=5)
    for first, size, (_, message) in zip(begins, sizes, table, strict=False):
        refused(done, "chapters/03-third.md:", message)
        line = next(line for line in done.stderr.splitlines() if message in line)
        assert first <= int(line.split(":")[1]) < first + size, line
    assert len(done.stderr.splitlines()) == len(table), done.stderr


def test_doubled_label_is_refused(tree: Tree) -> None:
    done = tree.weave(fence(".c #lst:greet", "int a;") + "\n" + fence(".c #lst:x", "int b;") * 2)
    refused(done, "03-third.md: label lst:greet is doubled, first in chapters/01-first.md")
    refused(done, "03-third.md: label lst:x is doubled, first in chapters/03-third.md")


def test_bad_markers_are_refused(tree: Tree) -> None:
    found = [
        ("/* region: x */\n1\n", 1, 'region "x" is not closed'),
        ("/* region: x */\n1\n/* endregion: x */\n/* region: x */\n", 4, 'region "x" is doubled'),
        ("1\n/* endregion: x */\n", 2, 'endregion "x" without its region'),
        ("/* region: two words */\n", 1, "a region marker with no name"),
        ("1\n/* endregion: */\n", 2, "a region marker with no name"),
    ]
    for number, (text, _, _) in enumerate(found):
        tree.write(f"code/{number}.c", text)
    done = tree.weave("\n".join(fence(f'.c include="code/{n}.c"') for n in range(len(found))))
    for number, (_, line, message) in enumerate(found):
        refused(done, f"code/{number}.c:{line}: ", message)


def test_other_mistakes(tree: Tree) -> None:
    tree.write("chapters/04-none.md", "text\n")
    refused(tree.label("chapters/04-none.md"), "chapters/04-none.md: no title")
    tree.replace("build/data/claims.json", '"verdict": "holds"', '"verdict": "maybe"')
    refused(tree.weave("[9]{.verdict}"), 'unknown verdict "maybe"')
    tree.write("build/data/then.json", '{"a": 1,\n"b" 2}')
    refused(tree.weave("text"), "build/data/then.json:2: not JSON")
    (tree.path / "build/data/then.json").unlink()
    refused(tree.weave("text"), "build/data/then.json: not there")
