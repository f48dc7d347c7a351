"""Which settings were given, for which goals, and with which values: refused here, before anything is done."""

import os
from collections.abc import Callable, Iterable, Mapping

from quest.command.goals import BY_NAME, EVERYWHERE, FROM_ENVIRONMENT, Goal, Setting
from quest.learn.words import Wrong, chosen, meant

Given = dict[str, str]
ON = ("1", "yes")  #: either will do, wherever a setting is on or not given


def parsed(words: Iterable[str]) -> Given:
    """NAME=VALUE words. Wrong for a word that is none."""
    given: Given = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise Wrong(f"{word}: a setting is NAME=VALUE")
        given[name] = value
    return given


def goal_of(name: str, also: Callable[[], Iterable[str]] = tuple) -> Goal:
    """The goal. Wrong, with what was meant, if there is none of that name; `also`: names of makefiles' own."""
    if name in BY_NAME:
        return BY_NAME[name]
    if name in also():
        return Goal(name, "", "")
    if "/" in name or "." in name:
        raise Wrong("there is no such file, and no rule that makes it")
    listed = [goal.name for goal in BY_NAME.values() if goal.group]
    raise Wrong(f"there is no such goal{_near(name, sorted(listed))}; make help says what there is")


def checked(goals: Iterable[Goal], given: Mapping[str, str], others: bool = False) -> Given:
    """The settings with the values that were meant: CH=9 is CH=09-epoll. Wrong for what none of the goals takes, and
    for a value that cannot be. `others`: settings of no goal are for a file that is made beside them.
    """
    goals = list(goals)
    takes = {setting.name: setting for goal in reversed(goals) for setting in goal.settings}
    settled: Given = {}
    for name, value in given.items():
        if name in takes:
            settled[name] = _value(takes[name], value)
        elif name in EVERYWHERE or others:
            if name == "JOBS" and not (_is_number(value) and int(value)):  # make would take none for any number
                raise Wrong(f"JOBS={value}: it must be a whole number above 0")
            settled[name] = value
        else:
            raise Wrong(_unknown(name, takes))
    if goals and goals[0].name == "bench" and settled.get("CH") and not settled.get("ONLY"):
        raise Wrong(_of_chapter(settled["CH"]))
    return settled


def of_goal(goal: Goal, given: Mapping[str, str], environ: Mapping[str, str] = os.environ) -> Given:
    """What this goal is told of them: what it takes and what holds everywhere, the environment's where the command line
    says nothing, and no empty ones.
    """
    takes = {setting.name: setting for setting in goal.settings}
    outside = {name: environ.get(name, "") for name in FROM_ENVIRONMENT if name not in given}
    outside |= {name: _value(takes[name], value) for name, value in outside.items() if name in takes}
    known = takes.keys() | EVERYWHERE.keys()
    return {name: value for name, value in {**outside, **given}.items() if name in known and value}


def _unknown(name: str, takes: Mapping[str, Setting]) -> str:
    here = ", ".join(sorted(takes)) or "no settings"
    known = {setting.name for goal in BY_NAME.values() for setting in goal.settings}
    if name not in known:
        near = _near(name, [*takes, *sorted(known), *EVERYWHERE])
        return f"there is no setting {name}{near}; it takes {here}"
    return f"it takes no {name}; it takes {here}" if takes else f"it takes {here}"


def _near(name: str, known: list[str]) -> str:
    text = meant(name, known)
    return text if "did you mean" in text else ""


def _of_chapter(slug: str) -> str:
    """CH= alone would measure everything: the experiments of the chapter were meant."""
    from quest.learn.chapters import chapter

    about = chapter(slug)
    ids = ",".join(one.id for one in about.experiments) if about else ""
    wanted = f"for {slug}: ONLY={ids}" if ids else f"{slug} has no experiment of its own"
    return f"CH= goes only together with ONLY=; {wanted}"


# ---- values --------------------------------------------------------------------------------------


def _is_number(value: str) -> bool:
    """Of no more digits than anything here can count to."""
    return value.isascii() and value.isdigit() and len(value) <= 18


def _value(setting: Setting, value: str) -> str:
    if not value:
        return value
    name, kind = setting.name, setting.kind
    if kind == "flag" or setting.among == ("yes",):
        if value not in ON:
            raise Wrong(f"{name}={value}: write {name}={'1' if kind == 'flag' else 'yes'}, or leave it out")
        return "1" if kind == "flag" else "yes"
    if kind == "words" or kind == "track":
        among = setting.among or tracks()
        if value not in among:
            raise Wrong(f"{name}={value}: {name} is one of {', '.join(among)}")
    elif kind == "number":
        if not _is_number(value):
            raise Wrong(f"{name}={value}: it must be a whole number")
    elif kind == "port":
        if not (_is_number(value) and int(value) < 1 << 16):
            raise Wrong(f"{name}={value}: a port is a number from 1 to 65535")
    elif kind in NAMED:
        known, what = NAMED[kind]
        return _chosen(value, known(), name, what)
    return value


def _chosen(value: str, known: list[str], name: str, what: str) -> str:
    """02 is the chapter's server, and not 02-inetd."""
    try:
        return chosen(value, [each for each in known if each in set(chapters())] or known, name, what)
    except Wrong:
        return chosen(value, known, name, what)


def _folders(top: str, *having: str) -> list[str]:
    """Those of `top` that have one of these files, or any."""
    names = sorted(name for name in os.listdir(top) if os.path.isdir(f"{top}/{name}") and name[:1] not in "_.")
    return [n for n in names if not having or any(os.path.exists(f"{top}/{n}/{one}") for one in having)]


def chapters() -> list[str]:
    """Those that have steps, in the order of the book: `make next` goes through them."""
    with open("chapters/contents.json", encoding="utf-8") as file:
        return [line.split('"')[3] for line in file if line.startswith('  "slug"')]


def servers() -> list[str]:
    """Those of the series, 00-client and 02-inetd too."""
    return [name for name in _folders("code") if name[:1].isdigit()]


def programs() -> list[str]:
    """The servers, and constant."""
    return [*servers(), "constant"]


def labs() -> list[str]:
    """Of both kinds."""
    return _folders("labs", "lab.toml", "measure.toml")


def tracks() -> tuple[str, ...]:
    """The tables of tracks.toml, without those inside a table: tomllib would take as long as all the rest."""
    with open("slides/tracks.toml", encoding="utf-8") as file:
        return tuple(line.strip()[1:-1] for line in file if line[:1] == "[" and "." not in line)


def scenes() -> list[str]:
    """The scenes that a server is recorded with."""
    return sorted(name[:-5] for name in os.listdir("benchmarks/scenes") if name.endswith(".toml"))


def parts() -> list[str]:
    """What `make test ONLY=` takes."""
    tests = [name for name in _folders("tests") if any(f[:5] == "test_" for f in os.listdir(f"tests/{name}"))]
    return sorted({*_folders("quest"), *tests})


def listed() -> list[str]:
    """The goals that `make help` may name."""
    return [goal.name for goal in BY_NAME.values() if goal.group or goal.first]


NAMED: dict[str, tuple[Callable[[], list[str]], str]] = {
    "server": (servers, "server"),
    "program": (programs, "program"),
    "chapter": (chapters, "chapter"),
    "lab": (labs, "lab"),
    "scene": (scenes, "scene"),
    "part": (parts, "part"),
    "goal": (listed, "goal"),
}
