"""`python3 -m measuring COMMAND CH= [DIR= JSON= CSV=]`, as make calls it.

Status: 0 all points, 1 some are missing, 2 nothing could be judged (one line says why).
"""

import json
import os
import shutil
import sys
import textwrap
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from grader import files, many
from grader.errors import LabError

from harness import entry
from measuring import data, judge
from measuring.lab import Lab, load, slugs, starter

SEALED, ANSWERS, PROGRESS = "sealed.json", "answers.toml", ".progress.json"
WIDTH = 96
MOST_BYTES = 1 << 26


def begin(lab: Lab, work: Path) -> int:
    path = work / ANSWERS
    if path.exists():
        print(f"{path} is yours already and stays as it is.")
    else:
        work.mkdir(parents=True, exist_ok=True)
        files.write(path, starter(lab))
        print(f"{lab.title} ({lab.points} points, about {lab.minutes} minutes)\n")
        print(f"  your file    {path}")
    print(f"  the task     labs/{lab.slug}/task.md\n  then         make check CH={lab.slug}")
    return 0


def check(lab: Lab, work: Path, build: Path) -> int:
    """Seals the prediction, then waits for data, then judges."""
    if not (work / ANSWERS).exists():
        raise LabError(f"{work / ANSWERS} is not there: make lab CH={lab.slug}")
    answers = judge.read_answers(work / ANSWERS)
    if not (work / SEALED).exists():
        if lacking := judge.missing(lab.predicted, answers["prediction"]):
            print("Predict before you measure; what is missing under [prediction]:")
            print("\n".join(f"  {line}" for line in lacking))
            return 1
        sealed = {"at": data.now(), "prediction": answers["prediction"]}
        files.write(work / SEALED, json.dumps(sealed, indent=1) + "\n")
        print(f"Your prediction is kept: {work / SEALED}. It is not marked for being right.")
    sealed_at, _ = unsealed(work)
    path = work / lab.data
    if lab.runs and not path.exists():
        print("Measuring: some seconds for each run, the server stands still for one of them.")
        data.measure(lab, build, path)
    if lab.experiment:
        own = build / "results" / path.name
        if own.exists() and data.started(lab, own) >= sealed_at:
            shutil.copyfile(own, path)
        elif not path.exists():
            again = "" if lab.profile == "quick" else f" PROFILE={lab.profile}"
            again += " AGAIN=1" if own.exists() else ""
            print(f"Now measure: make bench ONLY={lab.experiment} CH={lab.slug}{again}")
            print(f"Then fill in [conclusion], and: make check CH={lab.slug}")
            return 1
    got = report(lab, work, None)
    kept = {"score": max(got, best(work) or 0)}
    files.write(work / PROGRESS, json.dumps(kept) + "\n")
    return 0 if got == lab.points else 1


def unsealed(folder: Path) -> tuple[str, dict[str, Any]]:
    """When the prediction was kept, and what it was."""
    try:
        sealed = json.loads((folder / SEALED).read_text(encoding="utf-8"))
        return str(sealed["at"]), dict(sealed["prediction"])
    except (OSError, ValueError, KeyError, TypeError):
        raise LabError(f"{folder / SEALED}: no prediction was sealed before measuring") from None


def handed_in(lab: Lab) -> tuple[str, ...]:
    return ANSWERS, SEALED, lab.data


@dataclass(frozen=True)
class Judged:
    answers: dict[str, dict[str, Any]]
    prediction: dict[str, Any]
    numbers: data.Numbers
    lines: list[judge.Line]

    @property
    def score(self) -> int:
        return sum(line.points for line in self.lines)


def judged(lab: Lab, folder: Path) -> Judged:
    """The points for the three files of a folder. Whoever handed them in may have put a pipe there,
    or a link to what others have written.
    """
    for path in (folder / name for name in handed_in(lab)):
        if os.path.lexists(path):
            files.check_is_file(path, MOST_BYTES)
    answers = judge.read_answers(folder / ANSWERS)
    path = folder / lab.data
    at, prediction = unsealed(folder)
    if data.started(lab, path) < at:
        raise LabError(f"{path} is older than the prediction in {SEALED}")
    try:
        numbers = data.Numbers(lab, path)
        numbers.rows()
        lines = judge.judge(lab, answers, numbers)
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise LabError(f"{path}: no data of this lab ({type(error).__name__})") from None
    return Judged(answers, prediction, numbers, lines)


def grade_one(lab: Lab, student: Path) -> many.Row:
    """A line of a class's table."""
    row: many.Row = {"name": student.name, "of": lab.points, "seconds": "0.0"}
    try:
        if student.is_symlink():
            raise LabError(f"{student} is a link: hand in the folder itself")
        found = judged(lab, many.handed_in(handed_in(lab), student))
    except (LabError, OSError) as wrong:
        state = many.NOTHING if many.empty(handed_in(lab), student) else many.GRADED
        return row | {"score": 0, "state": state, "failed": f"({wrong})"}
    missed = " ".join(line.id for line in found.lines if line.points < line.of)
    return row | {"score": found.score, "state": many.GRADED, "failed": missed}


def report(lab: Lab, folder: Path, into: Path | None) -> int:
    """As judged(), told; JSON as Gradescope wants it, if `into`."""
    found = judged(lab, folder)
    numbers, indent = found.numbers, " " * 12
    for row in numbers.rows():
        print(f"  {row}".rstrip())
    for line in found.lines:
        print(f"  {line.points:>3} of {line.of:<2} {line.id}")
        if line.why:
            print(textwrap.fill(line.why, WIDTH, initial_indent=indent, subsequent_indent=indent))
    # Before, it would be the conclusion.
    if not judge.missing(list(lab.questions), found.answers["conclusion"]):
        print("\nPredicted, and seen:")
        for question in lab.predicted:
            direction, ratio = judge.seen(question, numbers)
            saw = direction if question.kind == "direction" else f"{ratio:.3g}"
            print(f"  {question.id:14} {found.prediction.get(question.id)!s:>10}  {saw:>10}")
    got = found.score
    print(f"\n{got} of {lab.points} points.")
    if got == lab.points:
        for question in lab.questions:
            if question.after:
                print(textwrap.fill(question.after, WIDTH))
    if into:
        tests = [{"name": line.id, "score": line.points, "max_score": line.of, "output": line.why}
                 for line in found.lines]  # fmt: skip
        whys = {part: answers.get("why", "") for part, answers in found.answers.items()}
        result = {"score": got, "tests": tests, "extra_data": {"for a person": whys}}
        files.write(into, json.dumps(result, indent=2) + "\n")
    print("For a person to read: the two `why` of answers.toml.")
    return got


def listed(work: Path) -> int:
    print("\nTo predict, measure and conclude:")
    for slug in slugs():
        lab, folder = load(slug), work / slug
        score = best(folder)
        state = f"{score} of {lab.points} points" if score is not None else "begun"
        print(f"  {slug:<15} {lab.title} (measure; {state if folder.is_dir() else 'not begun'})")
    return 0


def best(folder: Path) -> int | None:
    """The points of the best check."""
    try:
        return int(json.loads((folder / PROGRESS).read_text(encoding="utf-8"))["score"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def main(words: list[str]) -> int:
    given = dict(word.partition("=")[::2] for word in words[1:])
    build = Path(given.get("BUILD", "build"))
    all_work = Path(given.get("WORK", "work"))

    def run() -> int:
        if words[0] == "list":
            return listed(all_work)
        lab = load(given.get("CH", ""))
        work = all_work / lab.slug
        folder = Path(given.get("DIR", work))
        if words[0] == "lab":
            return begin(lab, work)
        if words[0] == "check":
            return check(lab, work, build)
        if words[0] == "grade":
            into = Path(given["JSON"]) if "JSON" in given else None
            got = report(lab, many.handed_in(handed_in(lab), folder), into)
            return 0 if got == lab.points else 1
        if words[0] == "grade-all":
            table = Path(given.get("CSV") or f"{folder}.csv")
            return many.grade_all(folder, table, partial(grade_one, lab), anew=True)
        if words[0] == "hint":
            print((lab.folder / "hints.md").read_text(encoding="utf-8").rstrip())
            return 0
        if words[0] == "solution":
            print("There is none to copy: your data decide. The chapter says what ours were: "
                  f"chapters/{lab.slug}.md")  # fmt: skip
            return 0
        raise LabError(f"{words[0]} is for labs with a program")

    try:
        return entry.ended(run, "lab: ")
    except LabError as wrong:
        print(f"lab: {wrong}", file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    return 2


if __name__ == "__main__":
    entry.begin()
    sys.exit(main(sys.argv[1:]))
