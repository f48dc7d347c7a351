"""`python3 -m quest GOAL NAME=VALUE...`: the one command line. quest/command/goals.py has the goals and their settings.

Status 0, or what the goal gives; 2, with one line on stderr, where the command line, a file of the user's or the
machine is wrong. `--of-make`, from make: it has checked the settings for all its goals, and some are not for this one.
"""

import sys
from importlib import import_module

from quest.command import settings
from quest.command.goals import BY_NAME, Goal
from quest.ground.entry import begin, run_to_status
from quest.learn.words import Wrong

BAD_USAGE = 2
OF_MAKE = "--of-make"


def run(goal: Goal, given: settings.Given) -> int:
    """What the table says runs this goal."""
    if not goal.runs:
        raise Wrong(f"it is a rule of the makefiles: make {goal.name}")
    module, _, function = goal.runs.partition(":")
    try:
        status = getattr(import_module(module), function)(given)
    except ImportError as error:  # also of what it imports when it is needed
        if (error.name or "").startswith(("quest", "tests")):  # a mistake of ours
            raise
        if isinstance(error, ModuleNotFoundError):
            raise Wrong(f"it needs Python's {error.name}: make deps installs it") from None
        why = str(error.__cause__ or error).partition("\n")[0]  # numpy tells a page of its own
        raise Wrong(f"a library of Python's cannot be loaded: {why}") from None
    assert isinstance(status, int)
    return status


def main(words: list[str]) -> int:
    """The command line's words -> the status."""
    if words[:1] == ["settings"]:
        from quest.command import of_make

        return of_make.settings(words[1:])
    trusted = words[:1] == [OF_MAKE]
    name, *rest = words[1 if trusted else 0 :] or ["help"]
    if name in ("-h", "--help"):
        name = "help"
    goal = BY_NAME.get(name) or Goal(name, "", "")

    def command() -> int:
        settings.goal_of(name)
        given = settings.parsed(rest)
        return run(goal, settings.of_goal(goal, given if trusted else settings.checked([goal], given)))

    stopped = "stopped; the same command goes on from here" if goal.goes_on else ""
    return run_to_status(command, goal.says.format(name), BAD_USAGE, stopped)


if __name__ == "__main__":
    begin()
    sys.exit(main(sys.argv[1:]))
