"""`make next`: where the reader is, and what to do now. `make path`: all of it. `make done`: the
step that `next` has named is done, where only the reader can know.

Run, measure and lab are seen from what was done, and a prediction from what was drawn on the page;
to have read, to have predicted on paper and to have tried an exercise has to be said.
"""

import json
import shutil
import tomllib
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from quest.ground.files import changed_ns
from quest.learn import state
from quest.learn.chapters import Chapter, chapters, slugs
from quest.learn.state import Folders, Progress, folders
from quest.learn.words import Wrong, chosen

TICKED_BY_READER = ("predict", "read", "exercise")
DONE, SKIPPED, OPEN = "x", "-", " "
#: Of a file that is read, if it is not what was written there: int() of Infinity overflows.
DAMAGED = (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError)
PREDICTED_AND_MEASURED = 8  # points of every lab that measures (quest/labs/measured.py)


@dataclass(frozen=True)
class Step:
    """What the reader does in a chapter: one line of `make next`."""

    kind: str  # run, predict, measure, lab, read, exercise
    command: str
    what: str  # to do, in words
    about: str = ""  # where, or how far
    mark: str = OPEN
    stage: str = ""  # of a lab that was begun: the one that comes now


StepsByChapter = dict[Chapter, list[Step]]


def steps(chapter: Chapter, places: Folders) -> list[Step]:
    """The steps of a chapter in their order, not marked yet."""
    slug = chapter.slug
    page = places.build / "book" / f"{slug}.html"
    result = []
    if chapter.server:
        what = "see it fetch" if slug == "00-client" else "see it serve"
        result.append(Step("run", f"make run CH={slug}", what))
    if chapter.predictions:
        what = "say what you expect before you read it: draw it on the page, or write it down; then: make done"
        result.append(Step("predict", "make read", what, str(page)))
    if one := chapter.deciding_experiment:
        takes = f"about {one.seconds:.0f} s, and the time to build"
        what = f"{one.question} ({takes})"
        result.append(Step("measure", f"make bench ONLY={one.id} CH={slug}", what))
    # Before reading on, and before the chapter's own questions: their answers show what the lab
    # asks for.
    if chapter.lab:
        result.insert(0 if chapter.measuring else len(result), _lab(chapter, places))
    what = "read the chapter; then: make done"
    if page.exists() and is_older(page, places.build / "results"):
        what = "read the chapter (make book puts in your new numbers); then: make done"
    result.append(Step("read", "make read", what, str(page)))
    if chapter.exercises:
        what = "do the exercises at its end; then: make done"
        result.append(Step("exercise", "make read", what, str(page)))
    return result


def _lab(chapter: Chapter, places: Folders) -> Step:
    slug = chapter.slug
    if (places.work / slug).is_dir():
        reached, most = lab_points(slug, places.work)
        stage = lab_stage(slug, places.work)
        now = f"{stage}; " if stage else ""
        about = f"{reached} of {most} so far; {now}the task: labs/{slug}/task.md"
        return Step("lab", f"make check CH={slug}", f"a hint: make hint CH={slug}", about, stage=stage)
    what = (
        "predict, measure, conclude, before you read the chapter" if chapter.measuring else "write it, and then test it"
    )
    first = f"its task (labs/{slug}/task.md) says what to read first"
    return Step("lab", f"make lab CH={slug}", f"{what}; {first}")


def is_older(page: Path, results: Path) -> bool:
    """Whether something was measured after the page was made."""
    return any(changed_ns(path) > changed_ns(page) for path in results.glob("*.jsonl"))


def points_of(slug: str) -> int:
    """The points that a lab has in all. Wrong: its file cannot be read."""
    try:
        (path,) = Path("labs", slug).glob("[!.]*.toml")  # an editor may keep one of its own beside it
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        points = sum(int(one["points"]) for one in table.get("test") or table["question"])
        return points + PREDICTED_AND_MEASURED * ("question" in table)
    except DAMAGED as error:
        raise Wrong(f"labs/{slug}: the points of the lab cannot be read: {error!r}") from None


def lab_points(slug: str, work: Path) -> tuple[int, int]:
    """The points of the best check in work/SLUG, and of all that the lab has."""
    reached = 0
    with suppress(*DAMAGED):
        kept = json.loads((work / slug / ".progress.json").read_text(encoding="utf-8"))
        reached = int(kept["score"] or 0)
    return reached, points_of(slug)


def lab_stage(slug: str, work: Path) -> str:
    """Which stage of a lab comes now, by the last check in work/SLUG; "" where that is not known, or none is left."""
    with suppress(*DAMAGED):
        table = tomllib.loads((Path("labs", slug) / "lab.toml").read_text(encoding="utf-8"))
        kept = json.loads((work / slug / ".progress.json").read_text(encoding="utf-8"))
        number, stages = int(kept["stage"]), table["stage"]
        if 1 <= number <= len(stages):
            title, minutes = stages[number - 1]["title"], stages[number - 1]["minutes"]
            return f"stage {number} of {len(stages)}: {title} (about {minutes} minutes)"
    return ""


def _mark(chapter: Chapter, step: Step, progress: Progress, places: Folders) -> str:
    kept = progress.done.get(chapter.slug, {}).get(step.kind)
    if kept not in (None, state.SKIPPED) or _is_seen(chapter, step, places):
        return DONE
    return SKIPPED if kept else OPEN


def _is_seen(chapter: Chapter, step: Step, places: Folders) -> bool:
    """It is done, and the reader need not say so."""
    if step.kind == "measure":
        first = next(each for each in chapters() if each.measure == chapter.measure)
        # The measurement of an earlier chapter did not ask about this one's servers (CH=).
        return chapter == first and _is_finished(chapter.measure, places)
    if step.kind == "lab":
        reached, most = lab_points(chapter.slug, places.work)
        return reached == most
    return False


def _is_finished(experiment: str, places: Folders) -> bool:
    """Its results end with the record that is written last."""
    try:
        text = (places.build / "results" / f"{experiment}.jsonl").read_bytes()
        last = text.rstrip(b"\n").rpartition(b"\n")[2]
        return bool(json.loads(last)["type"] == "end")
    except DAMAGED:
        return False


def marked_steps(places: Folders) -> StepsByChapter:
    """Every chapter's steps, each with its mark."""
    progress = state.read_progress(places.progress)
    return {one: [replace(s, mark=_mark(one, s, progress, places)) for s in steps(one, places)] for one in chapters()}


def first_open(by_chapter: StepsByChapter) -> tuple[Chapter, Step] | None:
    """What is to be done now; None if everything is."""
    pairs = ((chapter, step) for chapter, some in by_chapter.items() for step in some)
    return next((pair for pair in pairs if pair[1].mark == OPEN), None)


def current_chapter(places: Folders) -> Chapter:
    """The chapter of `make next`."""
    now = first_open(marked_steps(places))
    return now[0] if now else chapters()[-1]


def note_measurement(settings: dict[str, str]) -> int:
    """`make bench ONLY= CH=` was for this chapter."""
    places = folders(settings)
    chapter = next((each for each in chapters() if each.slug == settings.get("CH")), None)
    if chapter and _is_finished(chapter.measure, places):
        return 0 if state.note_step(places.progress, "measure", chapter.slug) else 1
    return 0


def show_next(settings: dict[str, str]) -> int:
    """`make next`: the chapter, its steps, and the command to type now. Takes BUILD and WORK."""
    places = folders(settings)
    by_chapter = marked_steps(places)
    now = first_open(by_chapter)
    if not now:
        print("You have done every step. make claims shows the verdicts; labs/README.md has more to write.")
        return 0
    chapter, step = now
    number = slugs().index(chapter.slug) + 1
    print(f"{chapter.slug}: {chapter.title} ({number} of {len(chapters())} chapters; part: {chapter.part})\n")
    for each in by_chapter[chapter]:
        print(f"  {'>' if each == step else each.mark} {each.kind:9} {each.command}")
        if each == step:
            print(f"    {'':9} {each.what}")
    print(f"\nnow: {step.command}{f' ({step.about})' if step.about else ''}")
    if lacking := _lacking(step, chapter):
        print(f"     {lacking}")
    if step.kind not in TICKED_BY_READER:
        print("     (or skip this step: make done)")
    for path in state.unreadable(places.progress):
        mend = f"mv {path} {places.progress}"
        print(f"{path} could not be read; when you have mended it, put it back: {mend}")
    return 0


def _lacking(step: Step, chapter: Chapter) -> str:
    """What has to be installed before it can be done."""
    if step.kind == "lab" and not find_spec("pytest"):
        return "it needs python3-pytest: make deps"
    if step.kind in TICKED_BY_READER and not shutil.which("pandoc"):
        return f"it needs pandoc: make deps; until then, as text: chapters/{chapter.slug}.md"
    return ""


def show_path(settings: dict[str, str]) -> int:
    """`make path`: a line for each chapter, below the title of its part. Takes BUILD and WORK."""
    by_chapter = marked_steps(folders(settings))
    now = first_open(by_chapter)
    width = max(len(chapter.slug) for chapter in by_chapter)
    part = None
    for chapter, some in by_chapter.items():
        if chapter.part != part:
            part = chapter.part
            print(part)
        marks = [f"[{step.mark}] {step.kind}" for step in some]
        arrow = "->" if now and now[0] == chapter else "  "
        print(f"{arrow} {chapter.slug:{width}}  {'  '.join(marks)}")
    print("\n[x] done  [-] skipped. make next says what to do now; make done marks it as done.")
    return 0


def tick(settings: dict[str, str]) -> int:
    """CH= and STEP= name another step than the next; without them it is that. UNDO=1 takes the tick
    away.
    """
    if settings.get("UNDO") and not settings.get("STEP"):
        raise Wrong("UNDO=1 needs a chapter and a step: make done CH=01 STEP=read UNDO=1")
    if settings.get("STEP") and not settings.get("CH"):
        raise Wrong("STEP= needs a chapter, too: make done CH=01 STEP=read")
    by_chapter = marked_steps(folders(settings))
    if slug := settings.get("CH"):
        by_chapter = {each: some for each, some in by_chapter.items() if each.slug == slug}
        if name := settings.get("STEP"):
            (some,) = by_chapter.values()
            kind = chosen(name, [step.kind for step in some], "STEP")
            return _ticked(kind, slug, settings)
    now = first_open(by_chapter)
    if not now:
        print("every step is done already")
        return 0
    return _ticked(now[1].kind, now[0].slug, settings)


def _ticked(kind: str, slug: str, settings: dict[str, str]) -> int:
    undo = bool(settings.get("UNDO"))
    skipped = not undo and kind not in TICKED_BY_READER
    if not state.note_step(folders(settings).progress, kind, slug, not undo, skipped):
        return 1  # note_step() has said why
    print(f"{'not done' if undo else 'skipped' if skipped else 'done'}: {slug}, {kind}\n")
    return show_next(settings)


def show_chapters(_: dict[str, str]) -> int:
    """`make chapters`: slug and title of each."""
    width = max(len(chapter.slug) for chapter in chapters())
    part = None
    for chapter in chapters():
        if chapter.part != part:
            part = chapter.part
            print(part)
        print(f"  {chapter.slug:{width}}  {chapter.title}")
    return 0
