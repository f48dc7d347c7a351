"""What make asks when it starts with a setting, or with a goal that it does not know."""

import re
from pathlib import Path

from quest.command import settings as given_settings
from quest.command.goals import MADE, Goal
from quest.learn.words import Wrong

#: Words before a colon: what the makefiles have a rule for, without the table's goals too.
TARGETS = re.compile(r"^([a-z][a-z -]*):(?!=)", re.M)


def targets() -> set[str]:
    """All words that the makefiles have a rule for."""
    files = [Path("Makefile"), *Path().glob("*/*.mk")]
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    return {word for words in TARGETS.findall(text) for word in words.split()}


def settings(words: list[str]) -> int:
    """GOALS="goal goal", which comes first, and NAME=VALUE...: prints "ok", and the names of chapters, labs and servers
    as they were meant; or the one line with which make refuses. Status 0 both times: make reads the words.
    """
    goal = ""
    try:
        names = "".join(words[:1]).partition("=")[2].split() or ["all"]
        given = given_settings.parsed(words[1:])
        goals, files = [], [name for name in names if "/" in name or "." in name]
        for goal in (name for name in names if name not in files):
            goals.append(Goal(goal, "", "") if goal.startswith(MADE) else given_settings.goal_of(goal, targets))
        goal = names[0]
        settled = given_settings.checked(goals, given, others=bool(files))
    except Wrong as wrong:
        print(f"make {goal}: {wrong}")
        return 0
    meant = (name for name, value in settled.items() if value != given[name])
    print("ok", *(f"{name}={settled[name]}" for name in meant))
    return 0
