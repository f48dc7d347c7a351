"""The commands of the labs, behind the goals of make with the same names (labs/README.md).

Status 0: all points, or nothing to count; 1: points are missing; 3: not everything could be judged
on this machine. What is wrong with a lab, its use or the machine is a LabError: there is no grade
then, and what was there stays.
"""

import contextlib
import os
import secrets
import subprocess
import tempfile
import textwrap
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from quest.ground.entry import os_error_text, under_way
from quest.ground.files import locked
from quest.labs import catalogue, class_table, files, intake, kept, place, stages, work
from quest.labs.errors import CannotJudge, LabError, complain, say
from quest.labs.judge import How, Result, Verdict, grade
from quest.labs.lab import MECHANISM, Lab
from quest.labs.measured import ANSWERS, MeasuredLab
from quest.labs.settings import Settings

MISSING, UNJUDGED = 1, 3
WIDTH = 100
SEEDS = 1 << 31


def run(command: str, settings: Settings) -> int:
    """The status of a command, one of COMMANDS. A LabError is one line; so is what an OSError
    becomes."""
    try:
        return COMMANDS[command](settings)
    except OSError as error:
        raise LabError(_where(error, settings)) from None


def _where(error: OSError, settings: Settings) -> str:
    """What failed, at which file, and the setting that names another place for it."""
    name = error.filename2 or error.filename  # of a copy: where it was to be
    if not isinstance(name, str):
        return os_error_text(error)
    path = Path(name)
    part = [each for each in (path, *path.parents) if each.name.startswith(files.PART)]
    path = part[0].parent if part else path
    places = {
        "JSON": settings.results,
        "LOGS": settings.logs,
        "CSV": settings.table,
        "WORK": settings.work,
        "BUILD": settings.build,
    }
    with contextlib.suppress(OSError):  # where nothing can be written there is no such folder
        places["TMPDIR"] = Path(tempfile.gettempdir())
    for setting, named in places.items():
        if named and (path.is_relative_to(named) or named.is_relative_to(path)):
            return f"{path}: {error.strerror}; choose another place with {setting}="
    return f"{path}: {error.strerror}"


# ---- which lab


def _chosen(settings: Settings) -> Lab | MeasuredLab:
    if not settings.lab:
        raise LabError(f"which lab? CH={', CH='.join(catalogue.slugs())}")
    return catalogue.load(settings.lab)


def _program(settings: Settings) -> Lab:
    """The lab that is judged, with ONLY= and PROCESSES=."""
    lab = catalogue.load_program(_chosen(settings).slug)
    lab = lab.only(list(settings.only)) if settings.only else lab
    if settings.processes:
        lab = replace(lab, limits=replace(lab.limits, processes=settings.processes))
    return lab


def _list(folder: Path) -> str:
    """A line for each lab, and how far the student is."""
    lines, first = [], ""
    for slug in catalogue.slugs():
        lab = catalogue.load(slug)
        score = work.Progress.load(folder / slug).score
        state = "begun" if (folder / slug).is_dir() else "not begun"
        state = state if score is None else f"{score} of {lab.points} points"
        first = first or (slug if score != lab.points else "")
        lines.append(f"  {slug:<15} {lab.title} ({lab.kind}; {state})")
    lines += ["", "build: write what is missing; debug: mend mistakes; extend: add to a server that is whole;",
              "measure: predict, measure, conclude."]  # fmt: skip
    more = f"To begin, or to go on: make lab CH={first}" if first else "You have done all of them."
    return "\n".join([*lines, "", more])


# ---- for students


def _lab(settings: Settings) -> int:
    if not settings.lab:
        say(_list(settings.work))
        return 0
    lab = _chosen(settings)
    folder = settings.work / lab.slug
    if isinstance(lab, MeasuredLab):
        from quest.labs import self_check  # with what a bundle does not have: the measurements

        say(self_check.begin(lab, folder))
    else:
        say(work.begin(lab, folder))
    return 0


def _hint(settings: Settings) -> int:
    lab = _chosen(settings)
    if isinstance(lab, MeasuredLab):
        say((lab.folder / "hints.md").read_text(encoding="utf-8").rstrip())
    else:
        if settings.hint and settings.hint > len(lab.hints):
            raise LabError(f"N={settings.hint}: there are {len(lab.hints)} hints")
        say(work.hint(lab, settings.work / lab.slug, settings.hint))
    return 0


def _solution(settings: Settings) -> int:
    lab = _chosen(settings)
    if isinstance(lab, MeasuredLab):
        say("There is no solution to copy: your own data decide. What ours were, the chapter says: "
            f"chapters/{lab.slug}.md")  # fmt: skip
    else:
        say(work.solution(lab, settings.work / lab.slug, settings.sure))
    return 0


def _check(settings: Settings) -> int:
    lab = _chosen(settings)
    folder = settings.work / lab.slug
    if isinstance(lab, MeasuredLab):
        from quest.labs import self_check

        if (folder / ANSWERS).exists():
            say(f"{stages.heading(lab, stages.of_measured(lab, folder))}\n")
        return 0 if self_check.check(lab, folder, settings.build) else MISSING
    if settings.stage and settings.only:
        raise LabError("STAGE= and ONLY= both choose tests: give only one of them")
    if settings.stage:
        return _stage(_program(settings), folder, settings)
    lab, whole = _program(settings), not settings.only
    work.demand(lab.slug, folder)
    if whole:
        files.check_writable(folder / work.PROGRESS)
    verdict = _judge(lab, folder, folder, settings, graded=False)
    best = work.note(verdict, folder) if whole else 0
    if best > verdict.score:
        say(f"Your best: {best} of {lab.points} points.")
    first = verdict.first_failure
    if first is not None and verdict.built:
        if whole and (now := stages.of_verdict(verdict)) <= len(lab.stages):
            say(f"Now: {stages.heading(lab, now)}. That stage alone, in seconds: make check CH={lab.slug} STAGE=now")
        say(f"Next: {first.id}. {_help(lab, first.id, folder, settings)}")
    elif first is None and not verdict.unseen and whole:
        ours = f" What we wrote: make solution CH={lab.slug}" if lab.is_whole else ""
        say(f"Well done.{ours}")
    return _status(verdict)


def _help(lab: Lab, test: str, folder: Path, settings: Settings) -> str:
    """Where there is more about a test that failed."""
    log = logs_of(lab.slug, folder, settings) / f"{test}.log"
    has_hints = test in {hint.test for hint in lab.hints}
    return f"{f'A hint: make hint CH={lab.slug}. ' if has_hints else ''}All that the test said: {log}"


def _stage(lab: Lab, folder: Path, settings: Settings) -> int:
    """STAGE=now or a number: the tests of a stage alone, and what has failed first of all that is said. After one that
    has passed comes the next, but for a stage that was named."""
    work.demand(lab.slug, folder)
    count, named = len(lab.stages), settings.stage != stages.NOW
    if named and not (settings.stage.isdecimal() and 1 <= int(settings.stage) <= count):
        raise LabError(f"STAGE={settings.stage}: now, or a number from 1 to {count}")
    number = int(settings.stage) if named else min(max(1, work.Progress.load(folder).stage), count)
    status = 0
    while True:
        stage = lab.stages[number - 1]
        ids = [*stage.tests, *([MECHANISM] if number == 1 and lab.mechanism else [])]
        with under_way(f"checking stage {number}: {stage.title}"):
            verdict = _judged(lab.only(ids), folder, folder, settings, False, lambda _: None)
        failed = stages.first_failed(verdict.results)
        with work.changing(lab.slug, folder) as progress:
            progress.stage = number if failed else max(progress.stage, number + 1)
            progress.first_failure = failed.test.id if failed and verdict.built else ""
        if failed:
            say(f"{failed.test.id}: {failed.why}" if verdict.built else verdict.message)
            say(f"\n{stages.heading(lab, number)}: {verdict.score} so far")
            say("\n".join(textwrap.fill(step, WIDTH) for step in stages.task(lab, number).splitlines()))
            say(f"The task: labs/{lab.slug}/task.md. {_help(lab, failed.test.id, folder, settings)}")
            return MISSING
        unseen = f"; could not be judged here: {', '.join(verdict.unseen)}" if verdict.unseen else ""
        status = UNJUDGED if unseen else status
        say(f"Passed: {stages.heading(lab, number)}{unseen}")
        number += 1
        if named or number > count:
            break
    if number > count:
        say(f"That was the last stage. All of it, for the points: make check CH={lab.slug}")
    return status


# ---- judging


def logs_of(slug: str, folder: Path, settings: Settings) -> Path:
    """The folder of the logs of a submission: no two share one. That of a student's own work has a
    short name."""
    is_default = folder == Path("work") / slug
    whose = "" if is_default else f"-{zlib.crc32(os.fsencode(folder.absolute())):08x}"
    return settings.logs or settings.build / "labs" / f"{slug}{whose}"


def _judge(lab: Lab, folder: Path, shown: Path, settings: Settings, graded: bool) -> Verdict:
    """Judges the files in a folder, and prints a line for each test, and the points. shown: the
    name of the submission."""
    told = [""]  # the stage whose heading was said last

    def on_result(result: Result) -> None:
        if graded:  # the tests of a grade come in another order, and are printed when all are done
            return
        if result.test.stage != told[0]:
            told[0] = result.test.stage
            say(stages.heading(lab, stages.number_of(lab, told[0])))
        say(result.entry.line)

    say(f"{lab.slug}: {lab.title}\n")
    with under_way("judging: the points come when all tests are done") if graded else contextlib.nullcontext():
        verdict = _judged(lab, folder, shown, settings, graded, on_result)
    if graded:
        for stage, score in verdict.by_stage if verdict.built else ():
            say(f"{stage.title}: {score} of {stage.points}")
            for result in verdict.results:
                if result.test.stage == stage.title:
                    say(result.entry.line)
        say(f"\nSeed {verdict.seed}: SEED={verdict.seed} tests with the same files again, in the same order.")
    if verdict.no_cell:
        say(f"\nThis is a self-check, not a grade: {verdict.no_cell}.")
    if verdict.message:
        say(f"{verdict.message}\n" if not verdict.built else f"\n{verdict.message}")
    say(f"\n{verdict.total}." if verdict.built else f"{verdict.total}.")
    return verdict


def _judged(
    lab: Lab, folder: Path, shown: Path, settings: Settings, graded: bool, on_result: Callable[[Result], None]
) -> Verdict:
    """Judges the files in a folder, and prints nothing but that another judges them. Arguments as of _judge()."""
    logs = logs_of(lab.slug, shown, settings)
    seed = settings.seed or secrets.randbelow(SEEDS) + 1
    how = How(settings.toolchain, logs, settings.patience, seed, graded, on_result, settings.no_cell)
    logs.mkdir(parents=True, exist_ok=True)
    with locked(logs / ".lock", lambda: say(f"{shown} is being judged; waiting for that.")):
        try:
            return grade(lab, folder, how)
        except OSError as error:
            raise CannotJudge(_where(error, settings)) from None
        except (RuntimeError, MemoryError, subprocess.SubprocessError) as error:
            raise CannotJudge(str(error) or "out of memory") from None


def _status(verdict: Verdict) -> int:
    if verdict.unseen:
        return UNJUDGED
    return 0 if verdict.score == verdict.lab.points else MISSING


def _grade(settings: Settings) -> int:
    lab = _chosen(settings)
    folder = settings.hand_in or settings.work / lab.slug
    if settings.results is not None:
        files.check_writable(settings.results)
    if isinstance(lab, MeasuredLab):
        from quest.labs import self_check

        return 0 if self_check.grade(lab, folder, settings.results) else MISSING
    lab, one = _program(settings), intake.single(folder)
    with place.temporary() as top:
        handed = intake.staged(one, lab.files, lab.slug, top)
        for note in handed.notes:
            say(f"{note}\n")
        verdict = _judge(lab, handed.folder, folder, settings, graded=True)
    trusted = not settings.sandbox_wanted
    if settings.results is not None:
        files.write(settings.results, verdict.report(trusted).gradescope())
    if verdict.built:
        say(f"What the tests said: {logs_of(lab.slug, folder, settings)}")
    if not verdict.no_cell or trusted:
        return _status(verdict)
    complain(f"no grade: {verdict.no_cell}; SANDBOX=no gives one without a sandbox")
    return UNJUDGED


def _grade_all(settings: Settings) -> int:
    from quest.labs import class_commands  # no bundle has it

    lab = _chosen(settings)
    folder = settings.hand_in or settings.work / lab.slug
    table = settings.table or Path(f"{folder}.csv")
    about = class_commands.about(settings, lab.slug, folder)
    if isinstance(lab, MeasuredLab):
        from quest.labs import self_check

        if settings.student:
            raise LabError(f"STUDENT={settings.student}: this lab measures, and all are judged each time: leave it out")
        kind = self_check.kind_of(lab)
    else:

        def logs(one: intake.Submission) -> Path:
            name = kept.safe_name(one.name)
            return settings.logs / name if settings.logs else logs_of(lab.slug, folder / name, settings)

        lab = _program(settings)
        kind = class_table.kind_of(lab, settings, logs)
    settled = class_table.grade_all(folder, table, kind, settings.jobs, settings.results, about, settings.student)
    return 0 if settled else UNJUDGED


def _class(settings: Settings) -> int:
    from quest.labs import class_commands

    return class_commands.who(settings)


def _reports(settings: Settings) -> int:
    from quest.labs import class_commands

    return class_commands.reports(settings)


def _gradebook(settings: Settings) -> int:
    from quest.labs import class_commands

    return class_commands.grades(settings)


# ---- for teachers


def _autograder(settings: Settings) -> int:
    from quest.labs import bundle

    say(bundle.autograder(catalogue.load_program(_chosen(settings).slug), settings))
    return 0


def _handout(settings: Settings) -> int:
    from quest.labs import bundle

    say(bundle.handout(catalogue.load_program(_chosen(settings).slug), settings))
    return 0


def _merge(settings: Settings) -> int:
    from quest.labs import merge

    merge.merge(settings.runs, settings.build / "merge")
    return 0


COMMANDS: dict[str, Callable[[Settings], int]] = {
    "lab": _lab,
    "check": _check,
    "hint": _hint,
    "solution": _solution,
    "grade": _grade,
    "grade-all": _grade_all,
    "class": _class,
    "reports": _reports,
    "gradebook": _gradebook,
    "autograder": _autograder,
    "handout": _handout,
    "merge": _merge,
}
