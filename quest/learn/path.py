"""`make next`: where the reader is, and what to do now. `make path`: all of it. `make done`: the
step that `next` has named is done, where nothing but the reader can know.

Run, predict and measure are seen from what was done; to have read and to have tried an exercise has
to be said.
"""

import json
import shutil
import tomllib
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from quest.learn import state
from quest.learn.chapters import Chapter, chapters, slugs
from quest.learn.words import Wrong, chosen

SAID = ("read", "exercise")  # by the reader


DONE, SKIPPED, OPEN = "x", "-", " "


@dataclass(frozen=True)
class Step:
    kind: str
    command: str
    what: str
    about: str = ""  # where, or how far
    mark: str = OPEN


Way = dict[Chapter, list[Step]]


def steps(chapter: Chapter, build: Path) -> list[Step]:
    slug = chapter.slug
    found = []
    if chapter.server:
        what = "see it fetch" if slug == "00-client" else "see it serve"
        found.append(Step("run", f"make run CH={slug}", what))
    if chapter.predictions:
        what = "say what you expect before you are told"
        found.append(Step("predict", f"make predict CH={slug}", what))
    if one := chapter.measures:
        takes = f"about {one.seconds:.0f} s, beside what has to be built"
        found.append(
            Step("measure", f"make bench ONLY={one.id} CH={slug}", f"{one.question} ({takes})")
        )
    page = build / "book" / f"{slug}.html"
    # Before reading on, and before the chapter's own questions: their answers show what the lab
    # asks for.
    if chapter.lab:
        found.insert(0 if chapter.measuring else len(found), _lab(chapter))
    what = "then: make done"
    if page.exists() and older(page, build / "results"):
        what = "make book puts your new numbers in; then: make done"
    found.append(Step("read", "make read", what, str(page)))
    if chapter.exercises:
        what = "the exercises at its end; then: make done"
        found.append(Step("exercise", "make read", what, str(page)))
    return found


def _lab(chapter: Chapter) -> Step:
    slug = chapter.slug
    if (state.place().parent / slug).is_dir():
        reached, most = _lab_points(slug)
        about = f"{reached} of {most} so far; the task: labs/{slug}/task.md"
        return Step("lab", f"make check CH={slug}", f"a hint: make hint CH={slug}", about)
    what = (
        "predict, measure, conclude, before the chapter tells"
        if chapter.measuring
        else "write it, and have it checked"
    )
    first = f"its task (labs/{slug}/task.md) says what to read first"
    return Step("lab", f"make lab CH={slug}", f"{what}; {first}")


def older(page: Path, results: Path) -> bool:
    """Something was measured after the page was made."""
    made = page.stat().st_mtime
    return any(path.stat().st_mtime > made for path in results.glob("*.jsonl"))


PREDICTED_AND_MEASURED = 8  # points of every lab that measures (quest/labs/measured.py)


def points_of(slug: str) -> int:
    (path,) = Path("labs", slug).glob("*.toml")
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    points = sum(int(one["points"]) for one in table.get("test") or table["question"])
    return points + PREDICTED_AND_MEASURED * ("question" in table)


def _lab_points(slug: str) -> tuple[int, int]:
    """(of the best check, of all)."""
    work = state.place().parent
    reached = 0
    with suppress(OSError, ValueError, KeyError, TypeError):
        kept = json.loads((work / slug / ".progress.json").read_text(encoding="utf-8"))
        reached = int(kept["score"] or 0)
    return reached, points_of(slug)


def _mark(chapter: Chapter, step: Step, done: dict[str, Any], build: Path) -> str:
    said = done.get(chapter.slug, {}).get(step.kind)
    if said not in (None, state.SKIPPED) or _seen(chapter, step, build):
        return DONE
    return SKIPPED if said else OPEN


def _seen(chapter: Chapter, step: Step, build: Path) -> bool:
    """It is done, and nobody had to say so."""
    if step.kind == "measure":
        first = next(each for each in chapters() if each.measure == chapter.measure)
        # An earlier chapter's reader was not told of this one's servers (CH=).
        return chapter == first and _finished(build / "results" / f"{chapter.measure}.jsonl")
    if step.kind == "lab":
        reached, most = _lab_points(chapter.slug)
        return reached == most
    return False


def _finished(path: Path) -> bool:
    try:
        last = path.read_bytes().rstrip(b"\n").rpartition(b"\n")[2]
        return bool(json.loads(last)["type"] == "end")
    except (OSError, ValueError, KeyError):
        return False


def way(build: Path) -> Way:
    """Every chapter's steps, each with its mark."""
    done = state.read()["done"]
    return {
        about: [replace(s, mark=_mark(about, s, done, build)) for s in steps(about, build)]
        for about in chapters()
    }


def _first_open(all_steps: Way) -> tuple[Chapter, Step] | None:
    there = ((chapter, step) for chapter, some in all_steps.items() for step in some)
    return next((each for each in there if each[1].mark == OPEN), None)


def here(build: Path) -> Chapter:
    """The chapter of `make next`."""
    found = _first_open(way(build))
    return found[0] if found else chapters()[-1]


def measured(settings: dict[str, str]) -> int:
    """`make bench ONLY= CH=` was for this chapter."""
    build = Path(settings.get("BUILD", "build"))
    about = next((each for each in chapters() if each.slug == settings.get("CH")), None)
    if about and _finished(build / "results" / f"{about.measure}.jsonl"):
        return 0 if state.note("measure", about.slug) else 1
    return 0


def next_step(settings: dict[str, str]) -> int:
    all_steps = way(Path(settings.get("BUILD", "build")))
    found = _first_open(all_steps)
    if not found:
        print("You have done all of it. make claims: the verdicts; labs/README.md: more to write.")
        return 0
    chapter, now = found
    number = slugs().index(chapter.slug) + 1
    print(f"{chapter.slug}: {chapter.title} ({number} of {len(chapters())} chapters)\n")
    for step in all_steps[chapter]:
        print(f"  {'>' if step == now else step.mark} {step.kind:9} {step.command}")
        if step == now:
            print(f"    {'':9} {step.what}")
    print(f"\nnow: {now.command}{f' ({now.about})' if now.about else ''}")
    if lacking := _lacking(now, chapter):
        print(f"     {lacking}")
    if now.kind not in SAID:
        print("     (or make done, to go on without it)")
    for kept in state.aside():
        print(f"{kept} could not be read; mended, it is put back by: mv {kept} {state.place()}")
    return 0


def _lacking(now: Step, chapter: Chapter) -> str:
    """What has to be installed before it can be done."""
    if now.kind == "lab" and not find_spec("pytest"):
        return "it needs python3-pytest: make deps"
    if now.kind in SAID and not shutil.which("pandoc"):
        return f"it needs pandoc: make deps; until then, as text: chapters/{chapter.slug}.md"
    return ""


def show_path(settings: dict[str, str]) -> int:
    all_steps = way(Path(settings.get("BUILD", "build")))
    found = _first_open(all_steps)
    wide = max(len(chapter.slug) for chapter in all_steps)
    for chapter, some in all_steps.items():
        words = [f"[{step.mark}] {step.kind}" for step in some]
        here = "->" if found and found[0] == chapter else "  "
        print(f"{here} {chapter.slug:{wide}}  {'  '.join(words)}")
    print("\n[x] done  [-] skipped. make next says what to do now; make done ticks it.")
    return 0


def tick(settings: dict[str, str]) -> int:
    """CH= and STEP= name another step than the next; without them it is that. UNDO=1 takes the tick
    away.
    """
    if settings.get("UNDO") and not settings.get("STEP"):
        raise Wrong("UNDO=1 wants to know which: make done CH=01 STEP=read UNDO=1")
    if settings.get("STEP") and not settings.get("CH"):
        raise Wrong("STEP= goes with CH=: make done CH=01 STEP=read")
    all_steps = way(Path(settings.get("BUILD", "build")))
    if word := settings.get("CH"):
        slug = chosen(word, slugs(), "CH")
        all_steps = {each: some for each, some in all_steps.items() if each.slug == slug}
        if name := settings.get("STEP"):
            (some,) = all_steps.values()
            kind = chosen(name, [step.kind for step in some], "STEP")
            return _ticked(kind, slug, settings)
    found = _first_open(all_steps)
    if not found:
        print("there is nothing left to tick")
        return 0
    return _ticked(found[1].kind, found[0].slug, settings)


def _ticked(kind: str, slug: str, settings: dict[str, str]) -> int:
    how = "not done" if settings.get("UNDO") else "done" if kind in SAID else "skipped"
    if not state.note(kind, slug, done=how != "not done", skipped=how == "skipped"):
        return 1  # it has said why
    print(f"{how}: {slug}, {kind}\n")
    return next_step(settings)


def show_chapters(_: dict[str, str]) -> int:
    wide = max(len(chapter.slug) for chapter in chapters())
    for chapter in chapters():
        print(f"{chapter.slug:{wide}}  {chapter.title}")
    return 0
