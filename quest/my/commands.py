"""`make my`: one server that grows through the book. What was given decides what is done:

nothing        the stage in hand and those that it can break are checked; what has failed is said first, then what to do
STAGE=name     the same for that stage
HINT=1         a hint of the stage
ALL=yes        every stage that has passed, and the one in hand
WATCH=yes      again whenever a file of work/my was saved
SKIP=name      that stage is left out, for now
"""

import contextlib
import os
import signal
import subprocess
import textwrap
import time
from collections.abc import Generator, Iterable
from pathlib import Path

from quest.ground.entry import under_way
from quest.ground.errors import InputError
from quest.ground.foreign import plain
from quest.ground.processes import signals_raise
from quest.learn.words import chosen
from quest.my import work
from quest.my.judge import UNSEEN, Outcome, outcomes
from quest.my.stages import Stage, Stages, load

Given = dict[str, str]
FAILED = 1
WIDTH = 100
LOOK_SECONDS = 0.2
BUILD_SECONDS = 120.0
AHEAD_SECONDS = 8.0  #: later stages are tried until so much time is used
MESSAGE_LINES = 20


def my(given: Given) -> int:
    """Status 0 if what was asked for passes, 1 if not. InputError for what is wrong with the folder."""
    stages, folder = load(), Path(given.get("WORK", "work"), "my")
    for setting in ("STAGE", "SKIP"):
        if name := given.get(setting, ""):
            given = {**given, setting: chosen(name, stages.names, setting, "stage")}
    if work.begin(folder):
        _say(f"Your server begins in {folder}: server.c reads its options, run starts it. It may be in any language.\n"
             "Write what the first stage asks for, then: make my\n"
             f"By hand, after that: {folder}/run -p 8080 code/site\n")
        _say(_task(stages, folder, stages.names[0]))
        return 0
    if "SKIP" in given:
        return _skip(stages, folder, given["SKIP"])
    if "HINT" in given:
        return _hint(stages, folder, given)
    if "WATCH" in given:
        _watch(stages, folder, given)
    return _check(stages, folder, given)


def _say(text: str) -> None:
    print(plain(text), flush=True)


def _filled(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), WIDTH, break_long_words=False, break_on_hyphens=False)


# ---- what to do


def _hint_of(stages: Stages, folder: Path, name: str, number: int) -> str:
    """The command for a hint of a stage: HINT= alone is about the one in hand."""
    which = "" if name == work.Progress.load(folder).in_hand(stages) else f"STAGE={name} "
    return f"make my {which}HINT={number}"


def _task(stages: Stages, folder: Path, name: str) -> str:
    stage = stages[name]
    number = stages.place(name) + 1
    side = f" No later stage builds on it: make my SKIP={name} goes on without it." if stage.side else ""
    told = "".join(f"\n{line}" for line in stages.told(name))
    return (
        f"{name}: {stage.title} (stage {number} of {len(stages.all)}, about {stage.minutes} minutes)\n"
        f"{_filled(stage.task)}{side}{told}\n"
        f"Read: {stage.where}.    A hint: {_hint_of(stages, folder, name, 1)}"
    )


def _demand(stages: Stages, folder: Path, given: Given) -> Stage:
    name = given.get("STAGE") or work.Progress.load(folder).in_hand(stages)
    return stages[name or stages.names[-1]]


def _hint(stages: Stages, folder: Path, given: Given) -> int:
    stage, number = _demand(stages, folder, given), int(given["HINT"])
    if not 1 <= number <= len(stage.hints):
        raise InputError(f"HINT={number}: the stage {stage.name} has {len(stage.hints)} hints")
    with work.changing(folder) as progress:
        progress.hints[stage.name] = max(number, progress.hints.get(stage.name, 0))
    more = f"\nThe next one: {_hint_of(stages, folder, stage.name, number + 1)}" if number < len(stage.hints) else ""
    _say(f"{stage.name}, hint {number} of {len(stage.hints)}: {_filled(stage.hints[number - 1])}{more}")
    return 0


def _skip(stages: Stages, folder: Path, name: str) -> int:
    with work.changing(folder) as progress:
        if name in progress.done:
            raise InputError(f"SKIP={name}: this stage has passed already")
        progress.skipped += [] if name in progress.skipped else [name]
        then = progress.in_hand(stages)
    _say(f"{name} is left out; make my STAGE={name} checks it later.\n")
    _say(_task(stages, folder, then) if then else "All other stages are done.")
    return 0


# ---- checking


def build(folder: Path) -> str:
    """Runs the learner's Makefile, if there is one; what is wrong, or "". It is in a session of its own, so that all of
    it can be ended: neither Ctrl-C nor the end of the terminal reaches it then, but through us.
    """
    if not (folder / "run").is_file():
        return f"{folder}/run is not there: `make my` starts your server with it (see labs/my/starter/run)."
    if not os.access(folder / "run", os.X_OK):
        return f"{folder}/run cannot be executed: chmod +x {folder}/run"
    if not (folder / "Makefile").is_file():
        return ""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    with signals_raise(), subprocess.Popen(
        ["make", "-s", "-C", str(folder)], env=kept, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
    ) as making:  # fmt: skip
        try:
            said, _ = making.communicate(timeout=BUILD_SECONDS)
        except BaseException as error:  # with what it has started: a first target may be one that runs the server
            with contextlib.suppress(ProcessLookupError):
                os.killpg(making.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                return f"{folder}/Makefile: it took more than {BUILD_SECONDS:.0f} s"
            raise
    lines = said.strip().splitlines()
    text = "\n".join(lines[:MESSAGE_LINES])
    if making.returncode:
        return f"It does not build:\n{text}"
    if text:
        _say(f"{text}\n")
    return ""


def _run(folder: Path, names: Iterable[str]) -> Generator[Outcome, None, None]:
    """The outcomes of these stages. What is left of them is not tried where this is closed. On a terminal it is said
    which one is checked: some take ten seconds.
    """
    left = list(names)
    try:
        with contextlib.closing(outcomes(folder, left)) as told:
            for name in left:
                with under_way(f"checking {name}"):
                    outcome = next(told)
                yield outcome
    except RuntimeError as error:
        raise InputError(f"the check itself failed: {error}") from None


def _failed(outcome: Outcome, in_hand: str) -> str:
    """The sentence, first of all that is said."""
    name = outcome.stage
    if outcome.how == UNSEEN:
        return f"{name}: cannot be judged here: {outcome.why}. make my SKIP={name} goes on without it."
    since = f"\nIt had passed: something that you wrote since, perhaps for {in_hand}, has broken it."
    broken = since if name != in_hand else ""
    return f"{name}: {outcome.why}.{broken}"


def _help(stages: Stages, folder: Path, name: str, asked: str) -> str:
    """What is said below a failure: the task, as long as no hint was asked for; else where it is, and the next hint."""
    told = work.Progress.load(folder).hints.get(name, 0)
    if name == asked and not told:
        return _task(stages, folder, name)
    more = f"    A hint: {_hint_of(stages, folder, name, told + 1)}" if told < len(stages[name].hints) else ""
    return f"The task: labs/my/{name}.toml.    Read: {stages[name].where}.{more}"


def _check(stages: Stages, folder: Path, given: Given) -> int:
    """One round: builds, checks, and says what comes next."""
    progress = work.Progress.load(folder)
    name = given.get("STAGE") or progress.in_hand(stages)
    if problem := build(folder):
        _say(problem)
        return FAILED
    everything = "ALL" in given or not name
    asked = [name] if name else []
    at = name or stages.names[-1]
    if everything:
        earlier = [other for other in stages.names if other in progress.done and other != name]
    else:
        earlier = [other for other in stages.with_(at) if other in progress.done]
    earlier = [other for other in earlier if stages.holds(other, at) and other not in progress.skipped]
    began, seen = time.monotonic(), list[Outcome]()
    with contextlib.closing(_run(folder, asked + earlier)) as found:
        for outcome in found:
            seen.append(outcome)
            if not outcome.passed:
                _say(_failed(outcome, at))
                _say(f"\n{_summary(seen, began)}")
                _say(f"\n{_help(stages, folder, outcome.stage, at)}")
                return FAILED
    if name:
        before = progress.untried == work.mark(folder, name)
        with work.changing(folder) as progress:
            progress.passed(name, before)
        notice = f" {stages[name].notice}" if stages[name].notice else ""
        _say(_passed_before(stages[name]) if before else f"{name}: passed.{notice}")
    _say(_summary(seen, began))
    if given.get("STAGE") or everything:
        then = progress.in_hand(stages)
        if then != name:
            _say(f"\nNext: {_task(stages, folder, then)}" if then else _over(progress))
        return 0
    return _go_on(stages, folder, began)


def _go_on(stages: Stages, folder: Path, began: float) -> int:
    """Tries the stages that come next: some pass before they were begun, and of the first other one it is seen what
    fails."""
    progress = work.Progress.load(folder)
    left = [name for name in stages.names if name not in (*progress.done, *progress.skipped)]
    with contextlib.closing(_run(folder, left)) as found:
        for outcome in found:
            name = outcome.stage
            if not outcome.passed:
                now = f"Now: {outcome.why}." if outcome.how != UNSEEN else f"It cannot be judged here: {outcome.why}."
                _say(f"\nNext: {_task(stages, folder, name)}\n{now}")
                return 0
            with work.changing(folder) as progress:
                progress.passed(name, before=True)
            _say(f"\n{_passed_before(stages[name])}")
            if time.monotonic() - began > AHEAD_SECONDS:
                break
    then = progress.in_hand(stages)
    with work.changing(folder) as progress:
        progress.untried = work.mark(folder, then)
    _say(f"\nNext: {_task(stages, folder, then)}" if then else _over(progress))
    return 0


def _passed_before(stage: Stage) -> str:
    return _filled(f"{stage.name} ({stage.title}) passed before you began. A likely reason: {stage.before}")


def _over(progress: work.Progress) -> str:
    left = f" Left out: {', '.join(progress.skipped)}." if progress.skipped else ""
    return f"\nEach stage has passed.{left} make my ALL=yes checks whether they all pass at once; then: make race."


def _summary(seen: list[Outcome], began: float) -> str:
    """What was checked, in one line."""
    good = [outcome.stage for outcome in seen if outcome.passed]
    text = f"Passed: {', '.join(good)}. " if good else ""
    walls = next((outcome.no_cell for outcome in seen if outcome.no_cell), "")
    where = f" No sandbox here ({walls}): your server ran as you." if walls else ""
    return f"{text}({time.monotonic() - began:.1f} s){where}"


def _watch(stages: Stages, folder: Path, given: Given) -> None:
    """A round after each file that was saved, until it is ended. Saved while a round runs: another one follows."""
    while True:
        before = work.sources(folder)
        _say(f"---- {time.strftime('%H:%M:%S')}")
        _check(stages, folder, given)
        _say(f"\nWaiting until you save a file in {folder} (Ctrl-C ends it).")
        while work.sources(folder) == before:
            time.sleep(LOOK_SECONDS)
