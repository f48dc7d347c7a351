"""A lab that measures, from its beginning to its points. They are a self-check: nobody has watched
how the data were measured.
"""

import os
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from quest.ground.errors import InputError
from quest.ground.files import write_whole
from quest.labs import answers, class_table, data, files, intake, kept, place, work
from quest.labs.answers import Answers, Mark, Part, Sealed
from quest.labs.class_table import Grade, Kind, Row
from quest.labs.data import Measurement
from quest.labs.errors import LabError, say
from quest.labs.measured import ANSWERS, MEASURED, PREDICTED, SEALED, MeasuredLab, answers_template
from quest.labs.report import Entry, Outcome, Report
from quest.measure.records import utc_now

SELF_CHECK = "This is a self-check, not a grade: nobody has watched how the data were measured."
WIDTH = 96
MOST_BYTES = 1 << 26  #: of a file of data
#: and of a text: of a key with 16 000 dots the reader of TOML makes a gigabyte
MOST_OF = {ANSWERS: 1 << 14, SEALED: 1 << 16}


def begin(lab: MeasuredLab, folder: Path) -> str:
    """Writes answers.toml where there is none yet; what to say about it."""
    path = folder / ANSWERS
    if path.exists():
        lines = [f"{path} is there already: nothing was changed."]
    else:
        folder.mkdir(parents=True, exist_ok=True)
        files.write(path, answers_template(lab))
        lines = [f"{lab.title} ({lab.points} points, about {lab.minutes} minutes)", ""]
        lines += [f"  your file    {path}"]
    lines += [f"  the task     labs/{lab.slug}/task.md", f"  then         make check CH={lab.slug}"]
    return "\n".join(lines)


def check(lab: MeasuredLab, folder: Path, build: Path) -> bool:
    """The next step of three: seals the prediction; waits for data, or measures them; judges. True
    with all points."""
    if not (folder / ANSWERS).exists():
        raise LabError(f"{folder / ANSWERS} is not there: make lab CH={lab.slug}")
    if not (folder / SEALED).exists():
        prediction = Answers.read(folder).prediction
        if lacking := answers.missing(lab.predicted, prediction):
            say("Predict before you measure; what is missing under [prediction]:")
            say("\n".join(f"  {line}" for line in lacking))
            return False
        Sealed.write(folder, prediction)
        say(f"Your prediction is kept: {folder / SEALED}. It need not be right to have its points.")
    if not _has_data(lab, folder, build):
        return False
    judged = Judged.from_folder(lab, folder)
    judged.tell()
    if answers.missing(lab.questions, judged.answers.conclusion):
        say(f"Now fill in [conclusion] of {folder / ANSWERS} from your data, and again: make check CH={lab.slug}")
    with work.changing(lab.slug, folder) as progress:
        progress.score = max(progress.score or 0, judged.report.score)
    return judged.report.score == lab.points


def _has_data(lab: MeasuredLab, folder: Path, build: Path) -> bool:
    """Measures what a lab measures by itself, or takes over what `make bench` has measured since
    the prediction; else tells what to do."""
    path, sealed = folder / lab.data_file, Sealed.read(folder)
    if sealed.at > utc_now() and not path.exists():
        say(f"Your prediction is of {sealed.at}, which is yet to come: the clock was wrong. No data will be newer.")
        say(f"To predict again with the right time, remove {folder / SEALED}, and: make check CH={lab.slug}")
        return False
    if lab.runs and not path.exists():
        say("Measuring: some seconds for each run; in each the server is stopped for one second.")
        data.measure(lab, build, path)
    own = build / "results" / path.name
    newer = lab.experiment and own.exists() and data.started(lab, own) >= sealed.at
    if newer and (data.is_finished(own) or not path.exists()):  # else it is being measured, or was stopped
        write_whole(path, own.read_bytes())
    if path.exists():
        return True
    again = "" if lab.profile == "quick" else f" PROFILE={lab.profile}"
    again += " AGAIN=1" if own.exists() else ""
    say(f"Now measure: make bench ONLY={lab.experiment} CH={lab.slug}{again}")
    say(f"Then fill in [conclusion] of {folder / ANSWERS}, and: make check CH={lab.slug}")
    return False


def shared_with(
    lab: MeasuredLab, mine: frozenset[str], others: Mapping[str, frozenset[str]], name: str = ""
) -> list[str]:
    """A line for each of `others`, and for the reference run, that has repetitions in common with
    `mine`, the fingerprints of `name`."""
    known = [("the reference run", data.reference_fingerprints(lab))]  # whatever a student is called
    known += [(whose, theirs) for whose, theirs in others.items() if whose != name]
    shared = [(whose, len(mine & theirs)) for whose, theirs in known]
    return [f"{count} of {len(mine)} repetitions are those of {whose}" for whose, count in shared if count]


@dataclass(frozen=True)
class Judged:
    """The three files of a folder, and their points."""

    lab: MeasuredLab
    path: Path  #: of the data
    answers: Answers
    prediction: Part  #: as it was sealed
    data: Measurement
    marks: list[Mark]

    @classmethod
    def from_folder(cls, lab: MeasuredLab, folder: Path) -> "Judged":
        """A LabError if one of the files is missing, a pipe, a link, too long, or no data."""
        for path in (folder / name for name in lab.files):
            if os.path.lexists(path):
                files.check_is_file(path, MOST_OF.get(path.name, MOST_BYTES))
        given, path = Answers.read(folder), folder / lab.data_file
        sealed = Sealed.read(folder)
        if data.started(lab, path) < sealed.at:
            raise LabError(f"{path} is older than the prediction in {SEALED}")
        try:
            measurement = Measurement.read(lab, path)
            measurement.table()
            marks = answers.marks(lab, sealed.prediction, given.conclusion, measurement)
        except data.DAMAGED as error:
            raise LabError(f"{path}: no data of this lab ({type(error).__name__})") from None
        return cls(lab, path, given, sealed.prediction, measurement, marks)

    @property
    def report(self) -> Report:
        """With the two `why`, which a person reads."""
        entries = []
        for mark in self.marks:
            outcome = Outcome.FAILED if mark.why else Outcome.PASSED
            entries.append(Entry(mark.id, mark.points, mark.most, outcome, reason=mark.why))
        shared = shared_with(self.lab, data.fingerprints(self.lab, self.path), {})
        about = [SELF_CHECK, f"Measured: {data.origin(self.path)}.",
                 *(f"Look at this: {line}." for line in shared)]  # fmt: skip
        whys = {part: table.get("why", "") for part, table in vars(self.answers).items()}
        return Report(entries, about, "", {"for a person": whys})

    def tell(self) -> None:
        """Prints the numbers, the points, and what was predicted beside what was measured."""
        report = self.report
        for row in self.data.table():
            say(f"  {row}".rstrip())
        for entry in report.entries:
            say(entry.line)
        # Before there is a conclusion, it would be the conclusion.
        if not answers.missing(self.lab.questions, self.answers.conclusion):
            say("\nPredicted, and seen:")
            for question in self.lab.predicted:
                direction, ratio = answers.measured_answer(question, self.data)
                seen = direction if question.kind == "direction" else f"{ratio:.3g}"
                say(f"  {question.id:14} {self.prediction.get(question.id)!s:>10}  {seen:>10}")
        say("\n" + "\n".join(textwrap.fill(text, WIDTH) for text in report.messages))
        say(f"\n{report.score} of {self.lab.points} points.")
        if report.score == self.lab.points:
            for question in self.lab.questions:
                if question.after:
                    say(textwrap.fill(question.after, WIDTH))
        say("The two `why` of answers.toml are read by a person.")


def grade(lab: MeasuredLab, path: Path, results: Path | None) -> bool:
    """Judges what is handed in, a folder or an archive; results: where the report goes. True with
    all points."""
    one = intake.single(path)
    with place.temporary() as top:
        handed = intake.staged(one, lab.files, lab.slug, top, MOST_BYTES)
        for note in handed.notes:
            say(f"{note}\n")
        judged = Judged.from_folder(lab, handed.folder)
        judged.tell()
        if results is not None:
            files.write(results, judged.report.gradescope())
        return judged.report.score == lab.points


class _Class:
    """The submissions of a class. Whose data are whose is known when all are judged."""

    def __init__(self, lab: MeasuredLab) -> None:
        self.lab = lab
        self.fingerprints: dict[str, frozenset[str]] = {}

    def grade(self, one: intake.Submission, folder: Path) -> Grade:
        path = folder / self.lab.data_file
        self.fingerprints[one.name] = data.fingerprints(self.lab, path)
        try:
            judged = Judged.from_folder(self.lab, folder)
        except (InputError, OSError) as error:
            reason = str(error).replace(f"{folder}/", "")
            return Grade(class_table.SELF_CHECK, 0, f"({reason})")
        missed = " ".join(mark.id for mark in judged.marks if mark.why)
        report = judged.report
        return Grade(class_table.SELF_CHECK, report.score, missed, data.origin(path), report.gradescope())

    def finish(self, rows: dict[str, Row]) -> None:
        for name, mine in self.fingerprints.items():
            for line in shared_with(self.lab, mine, self.fingerprints, name):
                if rows[name].state != class_table.BY_HAND:
                    rows[name] = rows[name].noting(class_table.FOR_TEACHERS + line)
                say(f"  {name}: {line}")


def kind_of(lab: MeasuredLab) -> Kind:
    """How a class's submissions of this lab are graded: nothing of them runs, so all each time."""
    most = {"prediction": PREDICTED, "data": MEASURED, **{one.id: one.points for one in lab.questions}}
    modules, submissions = ["quest.labs.self_check", "quest.stats.analysis"], _Class(lab)
    return Kind(
        lab.files, lab.slug, lab.points, list(most),
        class_table.hash_of_modules(modules),
        class_table.hash_of([f"labs/{lab.slug}/measure.toml"]),
        submissions.grade, MOST_BYTES, True, submissions.finish, list(map(kept.column, most, most.values())),
    )  # fmt: skip
