"""`python3 -m quest.labs.measuring COMMAND CH= [DIR= JSON= CSV=]`, as make calls it.

Status: 0 all points, 1 some are missing, 2 nothing could be judged (one line says why).
"""

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quest.ground import entry, foreign
from quest.labs import files, intake, many, place
from quest.labs.errors import LabError, say
from quest.labs.measuring import data, judge
from quest.labs.measuring.lab import Lab, load, slugs, starter

SEALED, ANSWERS, PROGRESS = "sealed.json", "answers.toml", ".progress.json"
SELF_CHECK = "This is a self-check, not a grade: nobody has watched how the data were measured."
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


class Class:
    """The lines of a class's table. Whose data are whose is seen when all are judged."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.pieces: dict[str, frozenset[str]] = {}

    def grade(self, one: intake.Submission, folder: Path) -> many.Row:
        self.pieces[one.name] = data.pieces(self.lab, folder / self.lab.data)
        row: many.Row = {"state": many.SELF_CHECK, "note": data.about(folder / self.lab.data)}
        try:
            found = judged(self.lab, folder)
        except (LabError, OSError) as wrong:
            said = str(wrong).replace(f"{folder}/", "")
            return row | {"score": 0, "failed": f"({said})", "note": ""}
        missed = " ".join(line.id for line in found.lines if line.points < line.of)
        return row | {"score": found.score, "failed": missed}

    def finish(self, rows: dict[str, many.Row]) -> None:
        for name, mine in self.pieces.items():
            for whose in same_as(self.lab, mine, self.pieces, name):
                row = rows[name]
                row["note"] = "; ".join(filter(None, [str(row.get("note", "")), whose]))
                say(f"  {name}: {whose}")

    def kind(self) -> many.Kind:
        lab = self.lab
        ids = [*("prediction", "data"), *(question.id for question in lab.questions)]
        return many.Kind(
            handed_in(lab), lab.slug, lab.points, ids,
            many.hashed(["quest/labs/measuring/*.py", "quest/[msr]*/*.py"]),
            many.hashed([f"labs/{lab.slug}/measure.toml"]),
            self.grade, MOST_BYTES, True, self.finish,
        )  # fmt: skip


def same_as(
    lab: Lab, mine: frozenset[str], others: Mapping[str, frozenset[str]], name: str = ""
) -> list[str]:
    """Whose data these are, too: a line for each."""
    found = []
    for whose, theirs in {"the reference run": data.ours(lab), **others}.items():
        if whose != name and (common := mine & theirs):
            found.append(f"{len(common)} of {len(mine)} repetitions are those of {whose}")
    return found


def report(lab: Lab, folder: Path, into: Path | None) -> int:
    """As judged(), told; JSON as Gradescope wants it, if `into`."""
    found = judged(lab, folder)
    numbers, indent = found.numbers, " " * 12
    for row in numbers.rows():
        say(f"  {row}".rstrip())
    for line in found.lines:
        say(f"  {line.points:>3} of {line.of:<2} {line.id}")
        if line.why:
            say(textwrap.fill(line.why, WIDTH, initial_indent=indent, subsequent_indent=indent))
    # Before, it would be the conclusion.
    if not judge.missing(list(lab.questions), found.answers["conclusion"]):
        say("\nPredicted, and seen:")
        for question in lab.predicted:
            direction, ratio = judge.seen(question, numbers)
            saw = direction if question.kind == "direction" else f"{ratio:.3g}"
            say(f"  {question.id:14} {found.prediction.get(question.id)!s:>10}  {saw:>10}")
    got = found.score
    path, mine = folder / lab.data, data.pieces(lab, folder / lab.data)
    told = [SELF_CHECK, f"Measured: {data.about(path)}.",
            *(f"Look at this: {whose}." for whose in same_as(lab, mine, {}))]  # fmt: skip
    say("\n" + "\n".join(textwrap.fill(text, WIDTH) for text in told))
    say(f"\n{got} of {lab.points} points.")
    if got == lab.points:
        for question in lab.questions:
            if question.after:
                say(textwrap.fill(question.after, WIDTH))
    if into:
        tests = [{"name": line.id, "score": line.points, "max_score": line.of, "output": line.why}
                 for line in found.lines]  # fmt: skip
        whys = {part: answers.get("why", "") for part, answers in found.answers.items()}
        said = "\n".join(told)
        result = {"score": got, "output": said, "tests": tests,
                  "extra_data": {"for a person": whys}}  # fmt: skip
        files.write(into, foreign.to_json(result, indent=2) + "\n")
    say("For a person to read: the two `why` of answers.toml.")
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
            with place.temporary() as top:
                one = intake.single(folder)
                handed = intake.staged(one, handed_in(lab), lab.slug, top, MOST_BYTES)
                for note in handed.notes:
                    say(f"{note}\n")
                got = report(lab, handed.folder, into)
            return 0 if got == lab.points else 1
        if words[0] == "grade-all":
            table = Path(given.get("CSV") or f"{folder}.csv")
            return many.grade_all(folder, table, Class(lab).kind())
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
        print(f"lab: {foreign.line(str(wrong))}", file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    return 2


if __name__ == "__main__":
    entry.begin()
    sys.exit(main(sys.argv[1:]))
