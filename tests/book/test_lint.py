"""The lint of chapters and slides, and the tracks: each rule both ways."""

import contextlib
import io
import re
import sys
from pathlib import Path

import pytest

from quest.book import contents, parts, readme, tables
from quest.book import lint as checks
from quest.ground.errors import InputError
from tests.book.tree import ROOT, Done, Tree, files_of


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("44 ms, 130 bytes and 12 %", ["44 ms", "130 bytes", "12 %"]),
        ("<!--n a.b-->44 ms<!--/n-->, <!--own-->5 min<!--/own-->, `sleep 5 s`, [a](x-5%20s)", []),
        ("beside 10 000 idle connections, in 2003, for 16 clients, of 3.11", []),
    ],
)
def test_a_measured_number_of_the_readme_is_bound(text: str, found: list[str]) -> None:
    assert readme.unbound(text) == found
    assert readme.unbound((ROOT / "README.md").read_text(encoding="utf-8")) == []


def test_a_number_of_the_readme_is_that_of_the_run() -> None:
    text = "It took <!--n a.b-->44 ms<!--/n-->."
    assert readme.faults(text, {"a.b": "44 ms"}) == []
    for numbers in ({"a.b": "45 ms"}, {}):
        assert readme.faults(text, numbers) == ["README.md: a.b is not 44 ms; make readme"]
    assert readme.faults("It took 44 ms.", {}) == ["README.md: 44 ms is typed by hand: <!--n KEY--> binds it"]
    assert readme.bound(text, {"a.b": "45 ms"}) == text.replace("44", "45")
    with pytest.raises(InputError, match="README.md: unknown key a.b"):
        readme.bound(text, {})


@pytest.mark.parametrize(
    ("slug", "number"),
    [("00-client", "0"), ("05b-nonblocking", "5b"), ("16-x", "16"), ("appendix-b-machines", "B"), ("noise", None)],
)
def test_the_number_of_a_page_is_that_of_its_name(slug: str, number: str | None) -> None:
    assert tables.number_of(slug) == number


def test_the_map_of_the_readme_has_each_page_in_the_order_of_the_book(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    _, _, rest = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## The map\n")
    pages = re.findall(r"\]\(chapters/([\w-]+)\.md\)", rest.partition("\n## ")[0])
    assert pages == parts.read_parts().pages[1:]


# A tree with just enough for the lint, and nothing wrong in it.
WORDS = "word " * 1600
TREE = Path(__file__).with_name("lint.txt").read_text(encoding="utf-8").replace("WORDS", WORDS)
CHAPTER, PARTS, CODE = "chapters/01-one.md", "chapters/parts.toml", "code/01-one/server.c"
PLOTS = "figures/plots.tsv"
SLIDES, TRACK, TALK = (f"slides/{name}" for name in ("01-one.md", "tracks.toml", "talk-map.toml"))
GOOD = files_of(TREE)
SLIDE = GOOD[SLIDES]
# Of the chapter, with their headings, by their roles.
SECTIONS = {
    role: f"## A heading {{.{role}}}\n{body}"
    for role, body in re.findall(r"^## A heading {.(.*)}\n((?:(?!## ).*\n)*)", GOOD[CHAPTER], re.M)
}
ANSWER = "::: answer\n1\n:::\n"
EXERCISE = "::: exercise\nOne?\n:::\n\n" + ANSWER
RECAP = "- One.\n- Two.\n"
COVER = SLIDE.replace("Say it.", "Ask. Then show it.")
INNER = "/* region: inner */\nint loop;\n/* endregion: inner */"
STEPS = '\n``` {.c include="code/01-one/server.c" region="loop" steps="inner | int loop"}\n```\n'


@pytest.fixture
def small(pandoc: None, tmp_path: Path) -> Tree:
    tree = Tree(tmp_path, TREE)
    (tmp_path / "chapters/pandoc").symlink_to(ROOT / "chapters/pandoc")
    return tree


def outlines(small: Tree) -> list[str]:
    return small.outlines("chapters/index.md", "chapters/part-one.md", CHAPTER, SLIDES)


def lint(small: Tree, write_contents: bool = True) -> str:
    names = outlines(small)
    with contextlib.chdir(small.path), contextlib.redirect_stdout(io.StringIO()) as output:
        try:
            if write_contents:
                contents.main(names)
            status = checks.main(names)
        except InputError as error:
            return str(error)
    assert (status == 0) == ("in order" in output.getvalue()), output.getvalue()
    return output.getvalue()


@pytest.mark.parametrize("role", SECTIONS)
def test_sections_are_there_once_and_hold_what_they_must(small: Tree, role: str) -> None:
    section = SECTIONS[role]
    if role in ("run", "code", "diff", "timeline", "measurement"):
        small.replace(CHAPTER, section, section.partition("\n")[0] + "\n\nNothing.\n\n")
        assert f"section .{role} has not " in lint(small)
    for times in (0, 2):
        small.write(CHAPTER, GOOD[CHAPTER].replace(section, section * times))
        assert f"{times} sections of class .{role}" in lint(small)


@pytest.mark.parametrize(
    ("file", "old", "new", "problem"),
    [
        (CHAPTER, "kind: server", "kind: novel", 'kind: "novel" in the metadata'),
        (CHAPTER, "summary:", "sum:", "no summary"),
        (CHAPTER, "{.recap}", "{.then-now .recap}", "2 sections of class .then-now"),
        (CHAPTER, "## A heading {.run}", "## A heading {.code .run}", ".run stands after .code"),
        (CHAPTER, RECAP, "Nothing.\n", ".recap has 0 points; one to five"),
        (CHAPTER, RECAP, "- Point.\n" * 5, ""),
        (CHAPTER, RECAP, "- Point.\n" * 6, ".recap has 6 points"),
        (CHAPTER, ANSWER, "", "an exercise without its answer"),
        (CHAPTER, EXERCISE * 2, EXERCISE, "1 exercises; two or more"),
        (CHAPTER, WORDS, "word " * 1400, "words; a chapter of its kind has 1500 to 3000"),
        (CHAPTER, WORDS, f"{WORDS}\n\n::: box\n{WORDS}\n:::", ""),
        (CHAPTER, WORDS, "word " * 3100, "words; a chapter of its kind has 1500 to 3000"),
        (CHAPTER, "Why?", "You simply call it.", 'the word "simply"'),
        (CHAPTER, "Why?", "Call `simply()`.", ""),
        (CHAPTER, "Why?", "Nobody waits.", f"{CHAPTER}:9: style: nobody, somebody, everybody: 1, 0 at most"),
        (SLIDES, "#title ", "", "has no id"),
        (SLIDES, "minutes=1", "minutes=x", "has no minutes"),
        (SLIDES, "Say it.", "", "has no notes"),
        (SLIDES, "# Title", "# First {#b minutes=1}\n\n# Title", '"First" has no notes'),
        (SLIDES, "::: notes", "## More {#title minutes=1}\n\n::: notes", '"title" is doubled'),
        (SLIDES, SLIDE, SLIDE + "\n``` {.sh}\n# not a heading\n```\n", ""),
        (SLIDES, SLIDE, SLIDE + "\n::: box\n## No slide\n:::\n", ""),
        (SLIDES, SLIDE, COVER, "nothing is covered"),
        (SLIDES, SLIDE, COVER.replace("::: notes", "[x]{.fragment}\n\n::: notes"), ""),
        (SLIDES, SLIDE, COVER.replace("::: notes", "![](stage-x.svg)\n\n::: notes"), ""),
        (SLIDES, SLIDE, COVER.replace("::: notes", '``` {.c steps="1"}\nx;\n```\n\n::: notes'), ""),
        (TRACK, '"01-one.md"', '"title"', ""),
        (TALK, "number = 1", "number = 2", "section number 2; expected 1"),
        (TALK, "[[section]]\nnumber = 1", "[[section]] # one\nnumber = 2", f"{TALK}:1: section number 2; expected 1"),
        (PARTS, '["01-one"]', "[]", f"{CHAPTER}:1: it stands in no part of {PARTS}"),
        (PARTS, '"01-one"', '"01-one", "02-two"', f"{PARTS}:1: there is no chapters/02-two.md"),
        (PARTS, '"01-one"', '"01-one", "01-one"', f"{PARTS}: there twice: 01-one"),
        (TALK, "sections = 1", "sections = 2", "1 sections; the talk has 2"),
        (TALK, 'title = "T"', 'title = ""', '"title" must'),
        (TALK, 'chapter = "01-one"', 'chapter = "77-none"', 'unknown chapter "77-none"'),
        (TALK, 'slide = "title"', 'slide = "none"', 'no slide has the id "none"'),
        (TALK, "number = 1", "number = =", "talk-map.toml: "),
        (CODE, "int loop;", INNER, f'{CODE}:2: region "inner" is shown by no chapter and no slide'),
        (CHAPTER, "summary: A summary.\n---\n", f"summary: A summary.\n---\n\n| `{CODE}` | all | *new*, 20 lines |\n",
         f"{CODE} has 3 lines, not 20: write 0"),
        (PLOTS, "latency", "latency\tx\nlost", f'{PLOTS}:1: figure "lost" is shown by no chapter'),
        (PLOTS, "# name", "# other", ""),
    ],
)
def test_each_rule(small: Tree, file: str, old: str, new: str, problem: str) -> None:
    small.replace(file, old, new)
    assert (problem or "in order") in lint(small)


def test_what_is_shown_by_a_step_or_in_a_track_is_used(small: Tree) -> None:
    small.replace(CODE, "int loop;", INNER)
    small.write(SLIDES, SLIDE + STEPS)
    assert "in order" in lint(small)
    small.replace(TRACK, '"01-one.md"', '"title"')
    small.write(SLIDES, SLIDE + STEPS + SLIDE.replace("title", "more"))
    assert 'slide "Title" is in no track of slides/tracks.toml' in lint(small)


def test_contents_that_are_older_than_a_chapter_are_found(small: Tree) -> None:
    stale = "chapters/contents.json:1: not what the chapters say"
    assert stale in lint(small, write_contents=False)
    assert "in order" in lint(small)
    small.replace(CHAPTER, "summary: A", "summary: Another")
    assert stale in lint(small, write_contents=False)


def test_figures_that_nothing_shows_are_found(small: Tree) -> None:
    for name in ("stage.tsv", "own.gp", "diagrams/drawn.svg", "readme.svg"):
        small.write(f"figures/{name}", "lost\tx\n" if name == "stage.tsv" else 'experiment = "x"\n')
    assert lint(small).splitlines() == [
        f'figures/{name}:1: figure "{figure}" is shown by no chapter and no slide'
        for name, figure in [("diagrams/drawn.svg", "drawn"), ("own.gp", "own"), ("stage.tsv", "stage-lost")]
    ]


# ---- the schedule


def schedule(small: Tree, *track: str) -> Done:
    names = outlines(small)
    return small.run(sys.executable, "-m", "quest.book.tracks", "show", "".join(track), *names)


MORE = "\n## More {#more minutes=2.5}\n\n## Both {#both minutes=3}\n"
TALK45 = 'slides = ["title"]'


def test_schedule_adds_up(small: Tree) -> None:
    small.write(SLIDES, SLIDE + MORE)
    done = schedule(small)
    assert done.returncode == 0
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["Title", "1", "min", "(1)", "6.5", "min", "(3)"] in rows
    assert ["Sum", "1", "min", "(1)", "6.5", "min", "(3)"] in rows
    assert ["Limit", "45", "min", "90", "min"] in rows
    listed = 'questions = 7\nslides = ["both", "title 0.5"]\nbackup = ["more"]'
    small.replace(TRACK, TALK45, listed)
    said = schedule(small, "talk45").stdout
    assert [line.split() for line in said.splitlines()[2:]] == [
        ["0", "3", "Both"], ["3", "0.5", "Title"], ["3.5", "end"], ["7", "questions"],
    ]  # fmt: skip


def test_schedule_fails_above_the_limit(small: Tree) -> None:
    small.replace(TRACK, TALK45, 'slides = ["01-one.md"]')
    for minutes, status in ((44, 0), (44.5, 1)):
        small.write(SLIDES, SLIDE + f"\n## More {{#more minutes={minutes}}}\n")
        done = schedule(small)
        assert done.returncode == status
        assert ("talk45 takes 45.5 min, limit 45 min" in done.stderr) is (status == 1)
    units = '[[course.units]]\ntitle = "{}"\nslides = ["{}"]\n'
    course = GOOD[TRACK].replace('slides = ["01-one.md"]\n', "")
    small.write(TRACK, course + units.format("One", "title") + units.format("Two", "01-one.md"))
    small.write(SLIDES, SLIDE + MORE.replace("2.5", "87"))
    said = schedule(small).stderr
    assert "schedule: course, Two takes 91 min, limit 90 min" in said


@pytest.mark.parametrize(
    ("track", "change", "message"),
    [
        ("talk4", "", 'schedule: there is no track "talk4"; known: talk45, course\n'),
        ("talk45", '"titel"', 'slides/tracks.toml: talk45: no slide has the id "titel"\n'),
        ("talk45", '"title x"', 'slides/tracks.toml: talk45: "title x": an id, and minutes if n'),
    ],
)
def test_a_wrong_track_is_said(small: Tree, track: str, change: str, message: str) -> None:
    small.replace(TRACK, '"title"', change or '"title"')
    done = schedule(small, track)
    assert done.returncode == 2
    assert done.stderr.startswith(message)
