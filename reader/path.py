"""`make next`: where the reader is, and what to do now. `make path`: all of it. `make done`: the
step that `next` has named is done, where nothing but the reader can know.

Run, predict and measure are seen from what was done; to have read and to have tried an exercise has
to be said.
"""

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reader import state
from reader.chapters import Chapter, chapters, slugs
from reader.words import Wrong, chosen

SAID = ("read", "exercise")  # by the reader


@dataclass(frozen=True)
class Step:
    kind: str
    command: str
    what: str


def steps(chapter: Chapter, build: Path) -> list[Step]:
    slug = chapter.slug
    found = []
    if chapter.server:
        found.append(Step("run", f"make run CH={slug}", "see it serve"))
    if chapter.predictions:
        what = "say what you expect before you are told"
        found.append(Step("predict", f"make predict CH={slug}", what))
    if one := chapter.measures:
        takes = f"about {one.seconds:.0f} s, beside what has to be built"
        found.append(
            Step("measure", f"make bench ONLY={one.id} CH={slug}", f"{one.question} ({takes})")
        )
    # Before reading on: the chapter shows what the lab asks for.
    if chapter.measuring:
        what = "predict, measure, conclude from your own data; its task says what to read before"
        found.insert(0, Step("lab", f"make lab CH={slug}", what))
    elif chapter.lab:
        what = "write it yourself, and have it checked; its task says what to read before"
        found.append(Step("lab", f"make lab CH={slug}", what))
    page = build / "book" / f"{slug}.html"
    read = "make read"
    what = f"in the browser (or chapters/{slug}.md); then: make done"
    if page.exists():
        read, what = str(page), "then: make done"
        if _older(page, build / "results"):
            what = "make book puts your new numbers in; then: make done"
    found.append(Step("read", read, what))
    if chapter.exercises:
        found.append(Step("exercise", read, "the exercises at its end; then: make done"))
    return found


def _older(page: Path, results: Path) -> bool:
    """Something was measured after the page was made."""
    made = page.stat().st_mtime
    return any(path.stat().st_mtime > made for path in results.glob("*.jsonl"))


PREDICTED_AND_MEASURED = 8  # points of every lab that measures (labs/measuring)


def points_of(slug: str) -> int:
    path = Path(f"labs/{slug}/lab.toml")
    measures = not path.exists()
    text = (path.with_name("measure.toml") if measures else path).read_text(encoding="utf-8")
    table = tomllib.loads(text)
    asked = table["question" if measures else "test"]
    return sum(int(one["points"]) for one in asked) + measures * PREDICTED_AND_MEASURED


def _lab_points(slug: str) -> tuple[int, int]:
    """(of the best check, of all)."""
    work = state.place().parent
    try:
        kept = json.loads((work / slug / ".progress.json").read_text(encoding="utf-8"))
        return int(kept["score"] or 0), points_of(slug)
    except (OSError, ValueError, KeyError, TypeError):
        return 0, 1


def done(chapter: Chapter, step: Step, kept: dict[str, Any], build: Path) -> bool:
    if step.kind in kept["done"].get(chapter.slug, {}):
        return True
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


Way = dict[Chapter, list[tuple[Step, bool]]]


def way(build: Path) -> Way:
    """Every chapter's steps, and which of them are done."""
    kept = state.read()
    return {
        chapter: [(step, done(chapter, step, kept, build)) for step in steps(chapter, build)]
        for chapter in chapters()
    }


def _first_open(all_steps: Way) -> tuple[Chapter, Step] | None:
    there = ((chapter, *each) for chapter, some in all_steps.items() for each in some)
    return next(((chapter, step) for chapter, step, is_done in there if not is_done), None)


def where(build: Path, kind: str) -> str:
    """The first chapter that has such a step and is not finished."""
    for chapter, some in way(build).items():
        if kind in [step.kind for step, _ in some] and not all(is_done for _, is_done in some):
            return chapter.slug
    return slugs()[-1]


def measured(settings: dict[str, str]) -> int:
    """`make bench ONLY= CH=` was for this chapter."""
    build = Path(settings.get("BUILD", "build"))
    about = next((each for each in chapters() if each.slug == settings.get("CH")), None)
    if about and _finished(build / "results" / f"{about.measure}.jsonl"):
        state.note("measure", about.slug)
    return 0


def next_step(settings: dict[str, str]) -> int:
    all_steps = way(Path(settings.get("BUILD", "build")))
    found = _first_open(all_steps)
    if not found:
        print("You have done all of it. make claims: the verdicts; labs/README.md: more to write.")
        return 0
    chapter, now = found
    number = slugs().index(chapter.slug) + 1
    print(f"{chapter.slug}: {chapter.title} (chapter {number} of {len(chapters())})\n")
    for step, is_done in all_steps[chapter]:
        mark = "x" if is_done else ">" if step == now else " "
        print(f"  {mark} {step.kind:9} {step.command}")
        if step == now:
            print(f"    {'':9} {step.what}")
    skip = "" if now.kind in SAID else "   (or make done, to go on without it)"
    print(f"\nnow: {now.command}{skip}")
    for kept in state.aside():
        print(f"{kept} could not be read; mended, it is put back by: mv {kept} {state.place()}")
    return 0


def show_path(settings: dict[str, str]) -> int:
    all_steps = way(Path(settings.get("BUILD", "build")))
    found = _first_open(all_steps)
    wide = max(len(chapter.slug) for chapter in all_steps)
    for chapter, some in all_steps.items():
        words = [f"[{'x' if is_done else ' '}] {step.kind}" for step, is_done in some]
        here = "->" if found and found[0] == chapter else "  "
        print(f"{here} {chapter.slug:{wide}}  {'  '.join(words)}")
    print("\nmake next says what to do now; make done ticks what only you can know.")
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
            kind = chosen(name, [step.kind for step, _ in some], "STEP")
            state.note(kind, slug, done=not settings.get("UNDO"))
            print(f"{'not done' if settings.get('UNDO') else 'done'}: {slug}, {kind}\n")
            return next_step(settings)
    found = _first_open(all_steps)
    if not found:
        print("there is nothing left to tick")
        return 0
    state.note(found[1].kind, found[0].slug)
    print(f"done: {found[0].slug}, {found[1].kind}\n")
    return next_step(settings)


def show_chapters(_: dict[str, str]) -> int:
    wide = max(len(chapter.slug) for chapter in chapters())
    for chapter in chapters():
        print(f"{chapter.slug:{wide}}  {chapter.title}")
    return 0
