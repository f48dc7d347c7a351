"""A report for each student, to be sent back: Markdown, and a page of HTML without scripts. First the
sentence of the test to mend first, then what to read, then the points of each test.

Names, notes and messages are foreign text: each is escaped for Markdown or HTML where it is put in.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from quest.ground import foreign
from quest.labs import files, kept
from quest.labs.class_table import FOR_TEACHERS, NOTHING, SETTLED, Row
from quest.labs.kept import Kept, Tested
from quest.labs.lab import Lab
from quest.labs.measured import MeasuredLab
from quest.labs.report import Outcome
from quest.learn.chapters import chapter

MANUAL = re.compile(r"\b([a-z_][a-z0-9_]*\([2-8]\))")
STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem }
.grade { font-size: 1.4rem; font-weight: 600 }
.first { border-left: 4px solid #b3261e; padding: .2rem 0 .2rem 1rem; margin: 1.5rem 0 }
.first strong { font-weight: 600 }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; padding: .4rem .8rem .4rem 0; border-bottom: 1px solid #8886 }
td:nth-child(2) { white-space: nowrap }
.said { overflow-wrap: anywhere }
pre { white-space: pre-wrap; overflow-wrap: anywhere; border: 1px solid #8886; padding: .6rem }
@media (max-width: 30rem) { body { margin: 1rem auto } td, th { padding-right: .4rem } }
"""
#: nothing in a report asks for anything beside itself
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


@dataclass(frozen=True)
class Sheet:
    """What a report says, before it is Markdown or HTML."""

    who: str
    lab: str
    title: str
    grade: str  #: the sentence with the points
    remarks: tuple[str, ...]
    first: Tested | None  #: to be mended first
    reads: tuple[str, ...]
    message: str  #: of the compiler
    tests: tuple[Tested, ...]


def to_read(lab: Lab | MeasuredLab, test: Tested | None) -> tuple[str, ...]:
    """The chapter, the task, and the manual pages that the test's sentence and hints name."""
    about = chapter(lab.slug)
    reads = [f"the chapter “{about.title}” (build/book/{lab.slug}.html)"] if about else []
    reads.append(f"the task, labs/{lab.slug}/task.md")
    if test is not None and isinstance(lab, Lab):
        texts = [test.said, *(one.fail for one in lab.tests if one.id == test.id)]
        texts += [hint.text for hint in lab.hints if hint.test == test.id]
        if pages := dict.fromkeys(MANUAL.findall("\n".join(texts))):
            reads.append(f"the manual: {', '.join(pages)}")
        reads.append(f"then: make check CH={lab.slug} ONLY={test.id}")
    return tuple(reads)


def _grade(row: Row, with_notes: bool) -> tuple[str, list[str]]:
    """The sentence with the points, and what is to be said of them."""
    if row.state not in SETTLED:
        return "No grade yet", [f"{row.state}: {row.failed}" if with_notes and row.failed else row.state]
    remarks = []
    if row.late not in ("", "0"):
        days = "1 day" if row.late == "1" else f"{row.late} days"
        remarks.append(f"Handed in {days} late: {row.score} points for the tests, {row.grade} are left."
                       if row.grade else "Handed in late; your teacher says by how many days.")  # fmt: skip
    if row.state not in ("graded", NOTHING):
        remarks.append(f"This is {row.state}.")
    return f"{row.grade or row.score} of {row.of} points", remarks


def sheet(row: Row, found: Kept | None, lab: Lab | MeasuredLab, who: str, with_notes: bool = True) -> Sheet:
    """What is said to a student. found: of this very work, or None. with_notes: also what was found
    in the submission, which may name files by their student."""
    grade, remarks = _grade(row, with_notes)
    if row.state == NOTHING:
        remarks.append("Nothing was handed in.")
    elif found is None:
        remarks.append("The result of each test was not kept.")
    note = row.note.partition(FOR_TEACHERS)[0].removesuffix("; ")
    if with_notes and note:
        remarks.append(f"Note: {note}.")
    tests = found.tests if found else ()
    no_program = found is not None and bool(found.no_program)
    first = None if no_program else next((test for test in tests if test.failed), None)
    message = found.said if found is not None and no_program else ""
    reads = () if row.score == row.of and row.state in SETTLED else to_read(lab, first)
    return Sheet(who, lab.slug, lab.title, grade, tuple(remarks), first, reads, message, () if no_program else tests)


def markdown(one: Sheet) -> str:
    """As a file of Markdown."""
    text = foreign.markdown
    lines = [f"# {text(one.lab)}: {text(one.title)}", "", text(one.who), "", f"**{text(one.grade)}**", ""]
    lines += [line for remark in one.remarks for line in (text(remark), "")]
    if one.first is not None:
        lines += [f"## To mend first: {text(one.first.id)}", "", f"> {text(one.first.said)}", ""]
    if one.message:
        lines += ["## There is no program", "", *(f"    {foreign.line(line)}" for line in one.message.splitlines()), ""]
    if one.reads:
        lines += ["Read:", "", *(f"- {text(line)}" for line in one.reads), ""]
    if one.tests:
        lines += ["| test | points | |", "|---|---|---|"]
        for test in one.tests:
            lines.append(f"| {text(test.id)} | {text(_points(test))} | {_said(test, text)} |")
    return "\n".join(lines).rstrip("\n") + "\n"


def _points(test: Tested) -> str:
    return f"{test.points or '-'} of {test.most}" if test.most else ""


def _said(test: Tested, text: Callable[[str], str]) -> str:
    passed = test.outcome == Outcome.PASSED
    return text(test.title) if passed else f"{text(test.title)}: {text(test.said)}"


def page(one: Sheet) -> str:
    """As a page of HTML."""
    text = foreign.page
    heading = f"{text(one.lab)}: {text(one.title)}"
    parts = [f"<h1>{heading}</h1>", f"<p>{text(one.who)}</p>", f'<p class="grade">{text(one.grade)}</p>']
    parts += [f"<p>{text(remark)}</p>" for remark in one.remarks]
    if one.first is not None:
        said = f"<p>{text(one.first.said)}</p>"
        parts.append(f'<div class="first"><strong>To mend first: {text(one.first.id)}</strong>{said}</div>')
    if one.message:
        parts.append(f"<h2>There is no program</h2><pre>{text(one.message)}</pre>")
    if one.reads:
        parts.append("<p>Read:</p><ul>" + "".join(f"<li>{text(line)}</li>" for line in one.reads) + "</ul>")
    if one.tests:
        rows = "".join(
            f'<tr><td>{text(test.id)}</td><td>{text(_points(test))}</td><td class="said">{_said(test, text)}</td></tr>'
            for test in one.tests
        )
        parts.append(f"<table><tr><th>test</th><th>points</th><th></th></tr>{rows}</table>")
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"><title>{heading}</title><style>{STYLE}</style>'
    )
    body = "\n".join(parts)
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def details(table: Path, row: Row) -> Kept | None:
    """What is kept of the grading of a line; None unless it is of the same work."""
    found = kept.read(kept.place_of(table, row.name))
    return found if found is not None and found.work == row.work else None


def write_all(
    table: Path, rows: Sequence[Row], lab: Lab | MeasuredLab, into: Path, called: Callable[[Row], str] | None = None
) -> int:
    """A file of Markdown and one of HTML for each line; how many students that are. called: an
    anonymous id in place of the name."""
    into.mkdir(mode=0o700, parents=True, exist_ok=True)
    for row in rows:
        name = called(row) if called else row.name
        who = name if called else f"{row.student} ({row.id})" if row.id and row.student else row.id or row.name
        one = sheet(row, details(table, row), lab, who, with_notes=called is None)
        files.write(into / f"{kept.safe_name(name)}.md", markdown(one))
        files.write(into / f"{kept.safe_name(name)}.html", page(one))
    return len(rows)
