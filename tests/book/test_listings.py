"""Code by name and by region, generated diffs, how both are drawn; the one line a bad one gets."""

from __future__ import annotations

import re

import pytest

from book.helpers import accepted, fence, plain
from book.tree import Tree

C_FILE = """/* A file for regions. */
/* region: outer */
    int a;
    /* region: inner */
    int b;
    /* endregion: inner */

        int c;
/* endregion: outer */
"""


C_NAMES = """/* Of two lines,
 * about one(). */
static int one(void);

#define TWO 2
struct three {
    struct inner *four; /* one() */
};
static struct three five[] = {
    {NULL},
};

/* The answer. */
static int
one(void)
{
    /* region: part */
    return TWO;
    /* endregion: part */
}
"""


# ---- names


@pytest.mark.parametrize(
    ("names", "numbers"),
    [
        ("one", "13 14 15 16 18 20"),
        ("TWO", "5"),
        ("three", "6 7 8"),
        ("five", "9 10 11"),
        ("TWO, three", "5 6 7 8"),
        ("five, TWO", "9 10 11 11 5"),
    ],
)
def test_what_is_named_is_shown(tree: Tree, names: str, numbers: str) -> None:
    """With the comment above it; a prototype is not what is meant where there is the function."""
    tree.write("code/x.c", C_NAMES)
    html = accepted(tree.weave(fence(f'.c include="code/x.c" function="{names}"')))
    assert re.findall(r'data-n="(\d+)"', html) == numbers.split()


def test_a_part_of_what_is_named_is_stressed(tree: Tree) -> None:
    tree.write("code/x.c", C_NAMES)
    html = accepted(tree.weave(fence('.c include="code/x.c" function="TWO, one" mark="part"')))
    assert re.findall(r'class="line marked" data-n="(\d+)"', html) == ["18"]


# ---- regions


@pytest.fixture
def code(tree: Tree) -> Tree:
    tree.write("code/x.c", C_FILE)
    return tree


def test_region_shows_its_lines_with_true_numbers(code: Tree) -> None:
    html = accepted(code.weave(fence('.c include="code/x.c" region="outer"')))
    assert re.findall(r'data-n="(\d+)"', html) == ["3", "5", "7", "8"]
    assert "region" not in plain(html).split("code/x.c")[0]
    assert "int a;\nint b;\n\n    int c;" in plain(html)
    assert "code/x.c, lines 3–8" in plain(html)


def test_nested_region_is_a_listing_of_its_own(code: Tree) -> None:
    html = accepted(code.weave(fence('.c include="code/x.c" region="inner"')))
    assert re.findall(r'data-n="(\d+)"', html) == ["5"]
    assert "line 5" in plain(html)


def test_whole_file_without_markers(code: Tree) -> None:
    html = accepted(code.weave(fence('.c include="code/x.c"')))
    assert re.findall(r'data-n="(\d+)"', html) == ["1", "3", "5", "7", "8"]


@pytest.mark.parametrize("style", ["# {}: x", "// {}: x", "/* {}: x */", "    ; {}: x"])
def test_markers_of_other_languages(tree: Tree, style: str) -> None:
    text = f"{style.format('region')}\nkept\n{style.format('endregion')}\nnot kept\n"
    tree.write("code/x.py", text)
    html = accepted(tree.weave(fence('.python include="code/x.py" region="x"')))
    assert plain(html).strip().startswith("kept\n")
    assert "not kept" not in html


def test_solution_markers_are_never_shown(tree: Tree) -> None:
    solution = "/* solution: y */\nint a;\n    /* endsolution: y */\n"
    tree.write("code/x.c", f"/* region: x */\n{solution}/* endregion: x */\n")
    for attributes in ('.c include="code/x.c" region="x"', '.c include="code/x.c"'):
        html = accepted(tree.weave(fence(attributes)))
        assert re.findall(r'data-n="(\d+)"', html) == ["3"]
        assert "solution" not in html


def test_a_comment_that_only_mentions_regions_is_code(tree: Tree) -> None:
    tree.write("code/x.c", "/* The region: see below. */\n#define REGION 1\n")
    assert "The region: see below." in accepted(tree.weave(fence('.c include="code/x.c"')))


def test_marks_and_steps(code: Tree) -> None:
    html = accepted(code.weave(fence('.c include="code/x.c" region="outer" mark="inner 4"')))
    marked = re.findall(r'class="line marked" data-n="(\d+)"', html)
    assert marked == ["5", "8"]
    html = accepted(code.weave(fence('.c include="code/x.c" region="outer" steps="1 | inner"')))
    assert 'data-steps="2"' in html
    assert re.findall(r'class="line step-(\d)" data-n="(\d+)"', html) == [("1", "3"), ("2", "5")]
    assert html.count('class="fragment step"') == 2


def test_code_is_highlighted_and_escaped(tree: Tree) -> None:
    html = accepted(tree.weave(fence(".c", 'int a = b < c; /* "x" */')))
    assert '<span class="dt">int</span>' in html
    assert 'a = b < c; /* "x" */' in plain(html)
    assert "<a " not in html


def test_unknown_language_is_plain(tree: Tree) -> None:
    assert "a < b\n\nc" in plain(accepted(tree.weave(fence(".nonsense", "a < b\n\nc"))))


# ---- diffs


DIFF = '.diff from="01-first" to="02-second"'


def rows(html: str) -> list[str]:
    """Lines of a drawn diff with their signs."""
    body = html.split("<code>")[1].split("</code></pre>")[0]
    return [plain(line) for line in body.split("\n")]


def test_diff_shows_signs_and_true_numbers(tree: Tree) -> None:
    html = accepted(tree.weave(fence(DIFF)))
    lines = rows(html)
    assert "+         pid_t pid = fork();" in lines
    assert "-         if (greet(STDOUT_FILENO) < 0)" in lines
    assert not [line for line in lines if "region" in line]
    number = (
        tree.read("code/02-second/server.c").splitlines().index("        pid_t pid = fork();") + 1
    )
    assert re.search(rf'class="line added" data-n=" +{number}"', html)


def test_diff_agrees_with_diff(tree: Tree) -> None:
    for slug in ("01-first", "02-second"):
        text = tree.read(f"code/{slug}/server.c")
        tree.write(f"{slug}.c", "".join(ln for ln in text.splitlines(True) if "region:" not in ln))
    expected = tree.run("diff", "-U", "3", "01-first.c", "02-second.c").stdout.splitlines()[2:]
    wanted = [line for line in expected if not line.startswith("@@")]
    drawn = [line[0] + line[2:] for line in rows(accepted(tree.weave(fence(DIFF)))) if line != " "]
    assert drawn == wanted


def test_hunks_by_number_and_by_text(tree: Tree) -> None:
    by_text = rows(accepted(tree.weave(fence(DIFF + ' hunk="pid_t pid"'))))
    assert any("pid_t pid" in line for line in by_text)
    assert not any("demonstration book" in line for line in by_text)
    by_number = rows(accepted(tree.weave(fence(DIFF + ' hunk="1"'))))
    assert any("demonstration book" in line for line in by_number)


def test_diff_of_named_files(tree: Tree) -> None:
    tree.write("code/a.c", "one\n")
    tree.write("code/b.c", "two\n")
    html = accepted(tree.weave(fence('.diff from="code/a.c" to="code/b.c"')))
    assert rows(html) == ["- one", "+ two"]
