"""The lint of chapters and slides, and the schedule: each rule both ways."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from book.tree import ROOT

WORDS = "word " * 1600
SECTIONS = {
    "question": "Why?\n",
    "run": "::: expect\nIt runs.\n:::\n",
    "code": '``` {.c include="code/01-one/server.c" region="loop"}\n```\n',
    "diff": '``` {.diff from="00-zero" to="01-one"}\n```\n',
    "timeline": "![Who waits.](timeline-01-one.svg){#fig:t}\n",
    "measurement": "![How long.](latency.svg){#fig:m}\n",
    "breaks": WORDS + "\n",
    "then-now": "Then and now.\n",
    "exercises": "::: exercise\nOne?\n:::\n\n::: answer\n1\n:::\n" * 2,
    "recap": "- One.\n- Two.\n",
}
SLIDE = "# Title {#title minutes=1}\n\n::: notes\nSay it.\n:::\n"
TRACKS = """[talk45]
title = "Talk"
minutes = 45
slides = ["title"]

[course]
title = "Course"
minutes = 90
slides = ["01-one"]
"""
MAP = """sections = 1
planned = ["02-two"]

[[section]]
number = 1
title = "T"
source = "S"
chapter = "01-one"
slide = "title"
"""
PLANNED = """
[[section]]
number = 2
title = "T"
source = "S"
chapter = "02-two"
slide = "later"
status = "planned"
"""
CODE = "/* region: loop */\nint loop;\n/* endregion: loop */\n"


class Small:
    """A tree with just enough for the lint, and nothing wrong in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sections = dict(SECTIONS)
        self.metadata = "title: One\nkind: server\nsummary: A summary.\n"
        self.write("slides/01-one.md", SLIDE)
        self.write("slides/tracks.toml", TRACKS)
        self.write("slides/talk-map.toml", MAP)
        self.write("code/01-one/server.c", CODE)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(ROOT / program), str(self.root), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def lint(self) -> str:
        body = "".join(
            f"## A heading {{.{role}}}\n\n{text}\n" for role, text in self.sections.items()
        )
        self.write("chapters/01-one.md", f"---\n{self.metadata}---\n\n{body}")
        done = self.run("chapters/pandoc/lint.py")
        assert (done.returncode == 0) == ("in order" in done.stdout), done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return Small(tmp_path)


def test_good_tree_is_accepted(small: Small) -> None:
    assert "in order" in small.lint()


@pytest.mark.parametrize("role", SECTIONS)
def test_missing_section_is_found(small: Small, role: str) -> None:
    del small.sections[role]
    assert f"0 sections of class .{role}" in small.lint()


@pytest.mark.parametrize("role", ["run", "code", "diff", "timeline", "measurement"])
def test_empty_section_is_found(small: Small, role: str) -> None:
    small.sections[role] = "Nothing.\n"
    assert f"section .{role} has not " in small.lint()


def test_order_of_sections(small: Small) -> None:
    small.sections = {"recap": small.sections.pop("recap"), **small.sections}
    assert "section .question stands after .recap" in small.lint()


def test_kinds_are_exempt_from_what_they_have_not(small: Small) -> None:
    for kind, roles in (("client", ["diff", "timeline"]), ("interlude", ["code", "breaks"])):
        small.sections = dict(SECTIONS)
        for role in roles:
            del small.sections[role]
        small.sections["then-now"] = WORDS
        small.metadata = f"title: One\nkind: {kind}\nsummary: A summary.\n"
        text = small.lint()
        assert "sections of class" not in text
    small.metadata = "title: One\nkind: poem\n"
    assert 'kind: "poem"' in small.lint()


def test_exercises_have_answers(small: Small) -> None:
    small.sections["exercises"] = "::: exercise\nOne?\n:::\n\n" + SECTIONS["exercises"]
    assert "an exercise without its answer" in small.lint()
    small.sections["exercises"] = "None.\n"
    assert "0 exercises; two or more" in small.lint()


@pytest.mark.parametrize(("points", "fine"), [(0, False), (1, True), (5, True), (6, False)])
def test_length_of_the_recap(small: Small, points: int, fine: bool) -> None:
    small.sections["recap"] = "- Point.\n" * points or "Nothing.\n"
    assert ("in order" in small.lint()) is fine


@pytest.mark.parametrize(("count", "fine"), [(1400, False), (2900, True), (3100, False)])
def test_length_of_the_chapter(small: Small, count: int, fine: bool) -> None:
    small.sections["breaks"] = "word " * count + "\n\n::: answer\n" + WORDS + "\n:::\n"
    small.sections["breaks"] = "word " * count + "\n"
    assert ("words; a chapter has" not in small.lint()) is fine


def test_words_to_avoid(small: Small) -> None:
    small.sections["question"] = "You simply call it.\n"
    assert 'the word "simply"' in small.lint()
    small.sections["question"] = "Call `simply()`.\n"
    assert "in order" in small.lint()


WHEN = '::: {{.when claim=9 verdict="{}"}}\nText.\n:::\n\n'


def test_blocks_on_a_claim_cover_all_verdicts(small: Small) -> None:
    small.sections["then-now"] = WHEN.format("holds") + WHEN.format("changed, reversed")
    assert "claim 9: no .when for no difference seen, not judged, not measured here" in small.lint()
    small.sections["then-now"] += WHEN.format("otherwise")
    assert "in order" in small.lint()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("#title ", "", "has no id"),
        ("minutes=1", "", "has no minutes"),
        ("minutes=1", "minutes=x", "has no minutes"),
        ("Say it.", "", "has no notes"),
        ("# Title", "# First {#b minutes=1}\n\n# Title", '"First" has no notes'),
        (
            "::: notes",
            "## More {#title minutes=1}\n\n::: notes",
            'id "title" is doubled',
        ),
    ],
)
def test_slides_are_complete(small: Small, old: str, new: str, message: str) -> None:
    assert old in SLIDE
    small.write("slides/01-one.md", SLIDE.replace(old, new))
    assert message in small.lint()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("number = 1", "number = 2", "section number 2; expected 1"),
        ("sections = 1", "sections = 2", "1 sections; the talk has 2"),
        ('title = "T"', 'title = ""', "has no title"),
        ('chapter = "01-one"', 'chapter = "77-none"', 'unknown chapter "77-none"'),
        ('chapter = "01-one"', 'chapter = "02-two"', "chapters/02-two.md is not there"),
        ('slide = "title"', 'slide = "none"', 'no slide has the id "none"'),
        (
            'slide = "title"',
            'slide = "title"\nstatus = "planned"',
            "is planned, but chapters/01-one.md",
        ),
        ("number = 1", "number = =", "talk-map.toml: "),
    ],
)
def test_map_of_the_talk(small: Small, old: str, new: str, message: str) -> None:
    small.write("slides/talk-map.toml", MAP.replace(old, new))
    assert message in small.lint()


def test_planned_sections_need_no_slide(small: Small) -> None:
    small.write("slides/talk-map.toml", MAP.replace("sections = 1", "sections = 2") + PLANNED)
    assert "in order" in small.lint()


def test_region_nobody_shows_is_found(small: Small) -> None:
    small.write("code/01-one/more.c", "\n/* region: lost */\n/* endregion: lost */\n")
    assert 'code/01-one/more.c:2: region "lost" is shown by no chapter and no slide' in small.lint()


def test_region_used_by_a_step_is_shown(small: Small) -> None:
    small.write(
        "code/01-one/server.c",
        CODE.replace("int loop;", "/* region: inner */\nint loop;\n/* endregion: inner */"),
    )
    assert 'region "inner"' in small.lint()
    fence = '\n``` {.c include="code/01-one/server.c" region="loop" steps="inner | 1"}\n```\n'
    small.write("slides/01-one.md", SLIDE + fence)
    assert "in order" in small.lint()


def test_the_real_tree_has_a_readable_map() -> None:
    """Whatever chapters are written: the map itself is TOML with 50 sections in their order."""
    import tomllib

    table = tomllib.loads((ROOT / "slides/talk-map.toml").read_text(encoding="utf-8"))
    assert [section["number"] for section in table["section"]] == list(
        range(1, table["sections"] + 1)
    )


# ---- the schedule


MORE = "\n## More {#more minutes=2.5}\n\n## Both {#both minutes=3}\n"
TALK = 'slides = ["title"]'


def test_schedule_adds_up(small: Small) -> None:
    small.write("slides/01-one.md", SLIDE + MORE)
    done = small.run("slides/schedule.py")
    assert done.returncode == 0
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["Title", "1", "min", "(1)", "6.5", "min", "(3)"] in rows
    assert ["Sum", "1", "min", "(1)", "6.5", "min", "(3)"] in rows
    assert ["Limit", "45", "min", "90", "min"] in rows


def test_schedule_of_a_track_is_in_its_order(small: Small) -> None:
    small.write("slides/01-one.md", SLIDE + MORE)
    listed = 'questions = 7\nslides = ["both", "title 0.5"]\nbackup = ["more"]'
    small.write("slides/tracks.toml", TRACKS.replace(TALK, listed))
    said = small.run("slides/schedule.py", "talk45").stdout
    assert [line.split() for line in said.splitlines()[2:]] == [
        ["0", "3", "Both"], ["3", "0.5", "Title"], ["3.5", "end"], ["7", "questions"],
    ]  # fmt: skip


def test_schedule_of_units(small: Small) -> None:
    units = '[[course.units]]\ntitle = "{}"\nslides = ["{}"]\n'
    course = TRACKS.replace('slides = ["01-one"]\n', "")
    small.write(
        "slides/tracks.toml", course + units.format("One", "title") + units.format("Two", "01-one")
    )
    small.write("slides/01-one.md", SLIDE + MORE.replace("2.5", "87"))
    done = small.run("slides/schedule.py")
    assert done.returncode == 1
    assert "schedule: course, Two takes 91 min, limit 90 min" in done.stderr


@pytest.mark.parametrize(
    ("track", "change", "message"),
    [
        ("talk4", "", 'schedule: there is no track "talk4"; known: talk45, course\n'),
        ("talk45", '"titel"', 'slides/tracks.toml: talk45: no slide has the id "titel"\n'),
        ("talk45", '"title x"', 'slides/tracks.toml: talk45: "title x": an id, and minutes if n'),
    ],
)
def test_a_wrong_track_is_said(small: Small, track: str, change: str, message: str) -> None:
    small.write("slides/tracks.toml", TRACKS.replace('"title"', change or '"title"'))
    done = small.run("slides/schedule.py", track)
    assert done.returncode == 1
    assert done.stderr.startswith(message)


@pytest.mark.parametrize(("minutes", "status"), [("44", 0), ("44.5", 1)])
def test_schedule_fails_above_the_limit(small: Small, minutes: str, status: int) -> None:
    small.write("slides/tracks.toml", TRACKS.replace(TALK, 'slides = ["01-one"]'))
    small.write("slides/01-one.md", SLIDE + f"\n## More {{#more minutes={minutes}}}\n")
    done = small.run("slides/schedule.py")
    assert done.returncode == status
    assert ("talk45 takes 45.5 min, limit 45 min" in done.stderr) is (status == 1)


@pytest.mark.parametrize("bad", ["minutes=x", "minutes=1e3"])
def test_schedule_refuses_what_it_cannot_add(small: Small, bad: str) -> None:
    small.write("slides/01-one.md", SLIDE + f"## More {{#more {bad}}}\n")
    done = small.run("slides/schedule.py")
    assert done.returncode == 1
    assert "slides/01-one.md:6: " in done.stderr


@pytest.mark.parametrize(
    ("slide", "covered"),
    [("", False), ("[x]{.fragment}\n\n", True), ("![](stage-x.svg)\n\n", True),
     ("``` {.c steps=\"1\"}\nint x;\n```\n\n", True)],
)  # fmt: skip
def test_what_is_asked_before_it_is_shown_is_covered(
    small: Small, slide: str, covered: bool
) -> None:
    told = SLIDE.replace("Say it.", "Ask. Then show it.").replace("::: notes", slide + "::: notes")
    small.write("slides/01-one.md", told)
    assert ("nothing is covered" in small.lint()) is not covered


def test_a_slide_that_no_track_has(small: Small) -> None:
    small.write("slides/tracks.toml", TRACKS.replace('"01-one"', '"title"'))
    assert "in order" in small.lint()
    small.write("slides/01-one.md", SLIDE + "\n## More {#more minutes=1}\n\n::: notes\nSay.\n:::\n")
    assert 'slide "More" is in no track of slides/tracks.toml' in small.lint()


def test_code_on_slides_is_not_taken_for_headings(small: Small) -> None:
    small.write("slides/01-one.md", SLIDE + "\n``` {.sh}\n# not a heading\n```\n")
    assert small.run("slides/schedule.py").returncode == 0
    assert "in order" in small.lint()
