"""Which settings (NAME=value) each goal of make takes, and what is said of one that it does not;
the goals themselves, in groups, for `make help`.
"""

import re
import tomllib
from pathlib import Path

from quest.learn.chapters import chapter, slugs
from quest.learn.words import Wrong, chosen, meant

JUDGING = "CH ONLY PATIENCE PROCESSES SEED"
TAKES = {
    "all": "PROFILE", "run": "CH PORT ADDR ARGS", "diff": "FROM TO", "amalgamate": "CH",
    "next": "", "path": "", "done": "CH STEP UNDO", "predict": "CH", "chapters": "",
    "read": "PORT", "watch": "PORT",
    "bench": "ONLY CH PROFILE AGAIN CLIENT SERVER MANY", "headline": "PROFILE ONLY",
    "reference": "ONLY", "compare": "A B ONLY", "claims": "ONLY", "tables": "ONLY",
    "slides": "TRACK SPEAKER EVENT DATE URL", "schedule": "TRACK", "present": "TRACK PORT",
    "pdf": "TRACK WHAT SPEAKER EVENT DATE URL", "demo": "N", "demo-record": "N", "rehearse": "",
    "lab": "CH", "labs": "", "hint": "CH N", "solution": "CH SURE",
    "grade": JUDGING + " DIR JSON SANDBOX", "grade-all": JUDGING + " DIR JSON CSV JUNIT SANDBOX",
    "reset": "CH", "autograder": "CH SANDBOX",
    "handout": "CH HINTS VARIANT", "similar": "CH DIR VARIANT", "merge": "RUNS",
    "check": JUDGING + " WATCH", "test": "CH PAPER", "tests-of-all": "PAPER", "test-book": "PAPER",
    "doctor": "ALL", "help": "ALL", "soak": "SECONDS CH", "soak-mixed": "SECONDS CH",
    "soak-restarts": "SECONDS", "soak-sim": "SECONDS SEED CH", "sim-faults": "ONLY",
    "vm": "OS IMAGE KEY VM_ARGS", "fuzz": "FUZZ_SECONDS",
    "mutants": "N SEED ONLY RESULTS_OF BEFORE", "cross": "CROSS",
}  # fmt: skip
# Of every goal: how it is built and shown, and where things are.
EVERYWHERE = {
    "V", "Q", "DEPS", "RESULTS", "LINT", "BUILD", "WORK", "LOGS", "JOBS", "TEST_JOBS",
    "PYTEST_ARGS", "UNSTEADY",
    "PYTHON", "CC", "CFLAGS", "CPPFLAGS", "LDFLAGS", "WERROR", "CHROMIUM", "PANDOC", "GNUPLOT",
    "DOT", "SYSTEM", "PROCESSOR", "SHELL", "PATH", "SOURCE_DATE_EPOCH",
}  # fmt: skip
TRACKS = tuple(tomllib.loads(Path("slides/tracks.toml").read_text(encoding="utf-8")))
VALUES = {"WHAT": ("deck",), "PROFILE": ("smoke", "quick", "full"), "TRACK": TRACKS}
GROUPS = {
    "read": "next path done read book epub chapters predict",
    "run": "run diff amalgamate servers",
    "measure": "bench claims compare tables figures doctor peers",
    "learn": "lab labs check hint solution reset",
    "teach": "grade grade-all autograder handout similar merge",
    "speak": "slides present rehearse demo demo-record schedule pdf release",
    "maintain": "",
}
FIRST = ("next", "run", "predict", "read", "done", "lab", "check", "bench", "doctor")
HELP = re.compile(r"^([a-z][a-z-]*):[^#\n]*## (.*)$", re.M)
TARGETS = re.compile(r"^([a-z][a-z -]*):", re.M)
MADE = ("lint-", "cross-")  #: by make, from a list: a goal for each variant, for each system


def refuse(given: dict[str, str]) -> int:
    """Wrong if one of GIVEN is not for any of GOALS."""
    goals = given.get("GOALS", "").split() or ["all"]
    if any("/" in goal or "." in goal for goal in goals):
        return 0
    for goal in goals:
        if goal not in TAKES and not goal.startswith(MADE) and goal not in _targets():
            given["NAME"] = goal
            return unknown(given)
    takes = {name for goal in goals for name in TAKES.get(goal, "").split()}
    known = {name for names in TAKES.values() for name in names.split()}
    for name in given.get("GIVEN", "").split():
        given["GOAL"] = goals[0]
        if name in takes or name in EVERYWHERE:
            value = given.get(name, "")
            if value and name in VALUES and value not in VALUES[name]:
                raise Wrong(f"{name}={value}: {name} is one of {', '.join(VALUES[name])}")
            _of_chapter(goals[0], given)
            continue
        here = ", ".join(sorted(takes)) or "no settings"
        if name not in known:
            near = _near(name, [*takes, *known, *EVERYWHERE])
            raise Wrong(f"there is no setting {name}{near}; it takes {here}")
        raise Wrong(f"it takes no {name}; it takes {here}" if takes else f"it takes {here}")
    return 0


def _near(name: str, known: list[str]) -> str:
    text = meant(name, known)
    return text if "did you mean" in text else ""


def _of_chapter(goal: str, given: dict[str, str]) -> None:
    """CH= alone would measure everything: the experiments of the chapter were meant."""
    if goal != "bench" or "CH" not in given.get("GIVEN", "").split():
        return
    about = chapter(chosen(given.get("CH", ""), slugs(), "CH"))
    if about and "ONLY" not in given["GIVEN"].split():
        ids = ",".join(e.id for e in about.experiments)
        said = f"{about.slug} has ONLY={ids}" if ids else f"{about.slug} has none of its own"
        raise Wrong(f"CH= wants ONLY= beside it: {said}")


def unknown(given: dict[str, str]) -> int:
    goal = given.get("NAME", "")
    given["GOAL"] = goal
    if "/" in goal or "." in goal:
        raise Wrong("there is no such file, and no rule that makes it")
    raise Wrong(
        f"there is no such goal{_near(goal, sorted(goals()))}; make help says what there is"
    )


def goals() -> dict[str, str]:
    """Goal -> its line of help, in the order of the makefiles."""
    found: dict[str, str] = {}
    for name, text in HELP.findall(_makefiles()):
        found.setdefault(name, text)
    return found


def _targets() -> set[str]:
    """All words that have a rule, those without a line of help, too."""
    return {word for words in TARGETS.findall(_makefiles()) for word in words.split()}


def _makefiles() -> str:
    files = [Path("Makefile"), *sorted(Path().glob("*/*.mk"))]
    return "".join(path.read_text(encoding="utf-8") for path in files)


def show_help(given: dict[str, str]) -> int:
    """Ten lines; with ALL=1 every goal, in groups."""
    known = goals()
    wide = max(map(len, known))
    print(f"  make {'':{wide}}  {known['all']}")
    if not given.get("ALL"):
        for name in FIRST:
            print(f"  make {name:{wide}}  {known.get(name, '')}")
        print("\nmake help ALL=1 lists every goal, in groups; README.md is the way in.")
        return 0
    named = {name for names in GROUPS.values() for name in names.split()} | {"all"}
    for group, names in GROUPS.items():
        print(group)
        for name in names.split() or [name for name in known if name not in named]:
            print(f"  make {name:{wide}}  {known.get(name, '')}")
        print()
    print(
        "Of every goal: V=1 (show the commands), DEPS=ask|yes|skip, RESULTS=reference, BUILD=folder"
    )
    return 0
